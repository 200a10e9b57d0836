"""Every refusal has its status and the same shape."""

import asyncio
from typing import Any

import asyncpg
import msgspec
import pytest
from litestar import get, post
from litestar.params import JSONBody
from litestar.types import Receive, Scope, Send

from holdfast.holds.hold_types import ConfigInvalid
from holdfast.http.api import build_api
from holdfast.http.auth import client_ip, idempotency_of, user_agent_of
from holdfast.http.problem import problem_answer
from holdfast.kernel import errors
from holdfast.kernel.problems import Problem
from holdfast.seating.policy import PolicyInvalid
from holdfast.seating.validate import LayoutInvalid
from holdfast.settings import Settings
from tests.conftest import TestDatabase
from tests.http.client import World, world


def answer(error: Exception) -> tuple[int, dict[bytes, bytes], dict[str, Any]]:
    status, headers, body = problem_answer(error, "r")
    return status, dict(headers), msgspec.json.decode(body)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (errors.InvalidRequest("x"), 400, "invalid_request"),
        (errors.Unprocessable("x"), 422, "invalid_content"),
        (errors.Unauthorized("x"), 401, "unauthorized"),
        (errors.ZoneAccessDenied("x"), 403, "zone_access_denied"),
        (errors.EventNotFound(), 404, "event_not_found"),
        (errors.SeatHeldByAnother("x"), 409, "seat_held_by_another_user"),
        (errors.TooManySeats("x"), 422, "max_seats_exceeded"),
        (errors.Overloaded("x"), 503, "overloaded"),
        (errors.RateLimited("x"), 429, "rate_limited"),
        (errors.IdempotencyMismatch("x"), 422, "idempotency_key_reused"),
        (errors.IdempotencyInFlight("x"), 409, "idempotency_key_in_flight"),
        (errors.EventNotAvailable("x"), 400, "event_not_available"),
        (errors.EventUnavailable("x"), 400, "event_unavailable"),
        (errors.EventSalesClosed("x"), 400, "event_sales_closed"),
        (errors.ReservationFailed("x"), 500, "seat_reservation_failed"),
        (LayoutInvalid([Problem("/a", "b", "c")]), 422, "invalid_layout"),
        (ConfigInvalid([Problem("/a", "b", "c")]), 400, "invalid_config"),
        (PolicyInvalid([Problem("/a", "b", "c")]), 400, "invalid_policy"),
        (asyncpg.CharacterNotInRepertoireError("x"), 400, "invalid_request"),
        (asyncpg.UntranslatableCharacterError("x"), 400, "invalid_request"),
        (asyncpg.ConnectionDoesNotExistError("x"), 503, "unavailable"),
        (ConnectionRefusedError("secret host"), 503, "unavailable"),
        (RuntimeError("secret"), 500, "internal_error"),
    ],
)
def test_an_error_has_its_status_and_the_shape_of_a_problem(error: Exception, status: int, code: str) -> None:
    got, headers, body = answer(error)
    assert (got, body["status"], body["error"]) == (status, status, code)
    assert {"type", "title", "detail"} <= set(body)
    assert headers[b"content-type"] == b"application/problem+json"
    assert "secret" not in str(body)


def test_facts_stand_beside_the_code_and_cannot_replace_it() -> None:
    _, _, body = answer(errors.SeatNotAvailable("x", current_status="sold", status="sold"))
    assert body["current_status"] == "sold"
    assert body["status"] == 409


def test_a_refused_document_lists_every_problem_with_its_pointer() -> None:
    _, _, body = answer(ConfigInvalid([Problem("/a", "b", "c"), Problem("/d", "e", "f")]))
    assert body["errors"] == [
        {"pointer": "/a", "code": "b", "detail": "c"},
        {"pointer": "/d", "code": "e", "detail": "f"},
    ]


def test_a_rate_limit_says_when_to_come_back() -> None:
    _, headers, _ = answer(errors.RateLimited("x", retry_after_s=12.2, limit=10, window_s=300))
    assert headers[b"retry-after"] == b"13"
    assert headers[b"ratelimit"] == b'"default";r=0;t=13'
    assert headers[b"ratelimit-policy"] == b'"default";q=10;w=300'
    assert int(answer(errors.Overloaded("x"))[1][b"retry-after"]) >= 1


def test_a_missing_credential_is_challenged() -> None:
    assert answer(errors.Unauthorized("x"))[1][b"www-authenticate"].startswith(b"Bearer")


def test_half_a_surrogate_pair_in_a_sentence_does_not_break_the_answer() -> None:
    status, _, body = answer(errors.InvalidRequest("\ud800"))
    assert (status, body["error"]) == (400, "invalid_request")


class Line(msgspec.Struct, forbid_unknown_fields=True):
    seat: str
    quantity: int = 1


class Order(msgspec.Struct, forbid_unknown_fields=True):
    lines: list[Line]
    hurry: bool = False


@post("/echo")
async def echo(data: JSONBody[Order]) -> Order:
    return data


@post("/large", opt={"large_body": True})
async def large(data: JSONBody[dict[str, Any]]) -> dict[str, int]:
    return {"size": len(data)}


@get("/crash")
async def crash() -> None:
    raise RuntimeError("the secret is 42")


ROUTES: Any = [echo, large, crash]


async def refused(world_: World, body: bytes) -> dict[str, Any]:
    got = await world_.client.post("/echo", content=body, headers={"Content-Type": "application/json"})
    assert got.status_code == 400, got.text
    assert got.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = got.json()
    assert found["error"] == "invalid_request"
    return found


def test_a_bad_body_is_answered_with_the_field_that_is_wrong(database: TestDatabase) -> None:
    async def run() -> None:
        async with world(database, routes=ROUTES) as w:
            for body, pointer in [
                (b'{"lines": [{"seat": "A", "quantity": "2"}]}', "/lines/0/quantity"),
                (b'{"lines": [{"seat": 3}]}', "/lines/0/seat"),
                (b'{"lines": [{}]}', "/lines/0/seat"),
                (b'{"lines": [], "hurry": "false"}', "/hurry"),
                (b'{"lines": [], "price": 1}', "/price"),
                (b"{}", "/lines"),
                (b"[]", ""),
                (b"{", ""),
                (b'{"lines": [{"seat": "\xff"}]}', None),
            ]:
                found = await refused(w, body)
                if pointer is not None:
                    assert found["errors"][0]["pointer"] == pointer, found
            await refused(w, b"")
            good = await w.client.post("/echo", json={"lines": [{"seat": "A"}]})
            assert good.json() == {"lines": [{"seat": "A", "quantity": 1}], "hurry": False}

    asyncio.run(run())


def test_a_body_over_the_limit_is_refused_and_layouts_have_their_own(database: TestDatabase) -> None:
    async def run() -> None:
        async with world(database, routes=ROUTES, body_limit_bytes=1000, layout_limit_bytes=5000) as w:
            body = b'{"a": "' + b"x" * 2000 + b'"}'
            small = await w.client.post("/echo", content=body)
            assert (small.status_code, small.json()["error"]) == (413, "body_too_large")
            assert (await w.client.post("/large", content=body)).status_code == 201
            assert (await w.client.post("/large", content=body * 3)).status_code == 413

    asyncio.run(run())


def test_whatever_happens_the_answer_is_a_problem_with_a_request_id(database: TestDatabase) -> None:
    async def run() -> None:
        async with world(database, routes=ROUTES) as w:
            for method, path, status, code in [
                ("GET", "/crash", 500, "internal_error"),
                ("GET", "/nowhere", 404, "not_found"),
                ("DELETE", "/echo", 405, "method_not_allowed"),
            ]:
                got = await w.client.request(method, path)
                assert (got.status_code, got.json()["error"]) == (status, code)
                assert got.headers["content-type"] == "application/problem+json"
                assert got.headers["x-request-id"]
                assert got.headers["x-content-type-options"] == "nosniff"
                assert got.headers["cache-control"] == "no-store"
                assert "42" not in got.text
            assert "POST" in (await w.client.delete("/echo")).headers["allow"]

    asyncio.run(run())


def test_a_sane_request_id_is_kept_and_any_other_replaced(database: TestDatabase) -> None:
    async def run() -> None:
        async with world(database, routes=ROUTES) as w:
            kept = await w.client.get("/nowhere", headers={"X-Request-Id": "trace-12345678"})
            assert kept.headers["x-request-id"] == "trace-12345678"
            for bad in ("x", "a b c d e f g h", "<script>alert</script>", "y" * 200):
                got = await w.client.get("/nowhere", headers={"X-Request-Id": bad})
                assert got.headers["x-request-id"] != bad

    asyncio.run(run())


def test_handlers_in_front_get_the_same_headers_and_problems(database: TestDatabase) -> None:
    def front(app: Any) -> Any:
        async def handle(scope: Scope, receive: Receive, send: Send) -> None:
            if scope.get("path") == "/fast":
                raise errors.SeatNotAvailable("This seat is sold.", current_status="sold")
            await app(scope, receive, send)

        return handle

    async def run() -> None:
        async with world(database, routes=ROUTES, front=front) as w:
            got = await w.client.get("/fast")
            assert (got.status_code, got.json()["current_status"]) == (409, "sold")
            assert got.headers["x-request-id"]
            assert (await w.client.get("/nowhere")).status_code == 404

    asyncio.run(run())


def test_proxies_that_are_no_addresses_are_refused_at_the_start() -> None:
    services: Any = type("S", (), {"settings": Settings(trusted_proxies="localhost")})()
    with pytest.raises(ValueError, match="localhost"):
        build_api(services, ROUTES)


def test_the_address_is_believed_only_from_trusted_proxies() -> None:
    forwarded = [(b"x-forwarded-for", b"6.6.6.6, 9.9.9.9, 10.0.0.2")]
    assert client_ip(("1.2.3.4", 1), forwarded, "") == "1.2.3.4"
    assert client_ip(("10.0.0.1", 1), forwarded, "10.0.0.0/8") == "9.9.9.9"
    assert client_ip(("10.0.0.1", 1), [(b"x-forwarded-for", b"6.6.6.6, junk")], "10.0.0.1") == "10.0.0.1"
    assert client_ip(("10.0.0.1", 1), [], "10.0.0.1") == "10.0.0.1"
    assert client_ip(None, forwarded, "10.0.0.0/8,unix") == "9.9.9.9"
    assert client_ip(None, forwarded, "") is None


def test_a_user_agent_is_cut_and_cleaned() -> None:
    assert user_agent_of([(b"user-agent", b"a\x00b\x1b[31m" + b"c" * 400)]) == "ab[31m" + "c" * 294
    assert user_agent_of([]) is None


def test_an_idempotency_key_is_printable_and_tells_requests_apart() -> None:
    first = idempotency_of("POST", "/a", [(b"idempotency-key", b"k")], b"{}")
    other = idempotency_of("POST", "/a", [(b"idempotency-key", b"k")], b"{ }")
    assert first is not None
    assert other is not None
    assert first.request_hash != other.request_hash
    for bad in (b"", b"x" * 256, b"\x00", b"\xe9"):
        with pytest.raises(errors.InvalidRequest):
            idempotency_of("POST", "/a", [(b"idempotency-key", bad)], b"")
