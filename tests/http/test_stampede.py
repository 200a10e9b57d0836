"""The short answers of a stampede are the same as the long ones, and stop being given the moment they are not true."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from tests.conftest import TestDatabase
from tests.http.client import bearer
from tests.stage import Stage, stage

SOON_S = 5.0


class Line:
    """A connection that is kept open, and speaks HTTP by the byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    async def answer(self) -> tuple[int, dict[str, str], Any]:
        head = (await asyncio.wait_for(self._reader.readuntil(b"\r\n\r\n"), SOON_S)).decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await self._reader.readexactly(int(headers["content-length"]))
        return int(head[0].split(" ")[1]), headers, msgspec.json.decode(body)

    async def ask(self, raw: bytes) -> tuple[int, dict[str, str], Any]:
        self.writer.write(raw)
        return await self.answer()


@asynccontextmanager
async def line(made: Stage) -> AsyncIterator[Line]:
    url = made.client.base_url
    reader, writer = await asyncio.open_connection(url.host, url.port)
    try:
        yield Line(reader, writer)
    finally:
        writer.close()


def request(made: Stage, n: int, headers: dict[str, str], body: bytes = b"{}", event_id: str | None = None) -> bytes:
    lines = {"Host": "x", "Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
    said = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"POST {made.seat_path(n, event_id)} HTTP/1.1\r\n{said}\r\n".encode() + body


def answers(made: Stage) -> int:
    """How many were given the shortest way."""
    stampede = made.app.protocol._stampede  # type: ignore[attr-defined]
    return int(repr(stampede._ids).removeprefix("count(").removesuffix(")")) - 1


def run(database: TestDatabase, check: Callable[[Stage], Awaitable[None]], **settings: Any) -> None:
    async def main() -> None:
        async with stage(database, **settings) as made:
            await made.client.get(f"/api/events/{made.event_id}/availability", headers=made.admin)
            await check(made)

    asyncio.run(main())


async def taken(made: Stage, n: int = 0) -> dict[str, str]:
    """A seat that somebody holds; answers their headers."""
    owner = await made.buyer()
    assert (await made.reserve(n, owner)).status_code == 201
    await made.app.feed.caught_up()
    return owner


def test_the_short_answer_says_what_the_long_one_says(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        await taken(made)
        buyer = await made.buyer()
        long = await made.client.post(made.seat_path(0), headers={**buyer, "X-Request-ID": "request-1"}, json={})
        async with line(made) as one:
            for _ in range(5):
                status, headers, body = await one.ask(request(made, 0, buyer))
                assert status == long.status_code == 409
                ours = {name: value for name, value in headers.items() if name not in ("x-request-id", "date")}
                theirs = {k: v for k, v in long.headers.items() if k not in ("x-request-id", "date", "content-length")}
                assert {k: v for k, v in ours.items() if k != "content-length"} == theirs
                said = long.json()
                assert 0 <= said.pop("expires_in") - body.pop("expires_in") <= 2
                assert body.pop("detail").split(".")[0] == said.pop("detail").split(".")[0]
                assert body == said
                assert len(headers["x-request-id"]) >= 8
        assert answers(made) >= 3

    run(database, check)


def test_a_buyer_is_known_on_every_connection_and_every_buyer_by_their_own_name(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        owner = await taken(made)
        buyer = await made.buyer()
        async with line(made) as one, line(made) as two:
            for each in (one, two, one, two):
                assert (await each.ask(request(made, 0, buyer)))[0] == 409
                status, _, body = await each.ask(request(made, 0, owner))
                assert status == 200
                assert body["data"]["message"].startswith("You already hold this seat")
        assert answers(made) >= 2

    run(database, check)


def test_a_seat_that_comes_free_is_given(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        owner = await made.buyer()
        held = (await made.reserve(0, owner)).json()["data"]["hold_id"]
        await made.app.feed.caught_up()
        buyer = await made.buyer()
        async with line(made) as one:
            for _ in range(3):
                assert (await one.ask(request(made, 0, buyer)))[0] == 409
            assert answers(made) >= 1
            await made.client.delete(f"/api/holds/{held}", headers=owner)
            assert (await one.ask(request(made, 0, buyer)))[0] == 201
            assert (await one.ask(request(made, 0, buyer)))[0] == 200

    run(database, check)


def test_a_sold_seat_is_refused_as_sold(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        selection = {"sessionId": "s", "seats": [{"id": made.seats[0]["booking_id"]}], "groupOfSeats": []}
        path = f"/api/private/v2.0/booking/directsale?eventId={made.event_id}"
        assert (await made.client.post(path, json=selection, headers=made.api_key)).json() is True
        await made.app.feed.caught_up()
        buyer = await made.buyer()
        async with line(made) as one:
            for _ in range(3):
                status, _, body = await one.ask(request(made, 0, buyer))
                assert (status, body["error"], body["current_status"]) == (409, "seat_not_available", "sold")
        assert answers(made) >= 1

    run(database, check)


def test_a_cancelled_event_is_refused_as_such_within_a_second(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        await taken(made)
        buyer = await made.buyer()
        async with line(made) as one:
            for _ in range(3):
                assert (await one.ask(request(made, 0, buyer)))[0] == 409
            await made.sql("UPDATE events SET status = 'cancelled'")  # by another process
            began = asyncio.get_running_loop().time()
            while (await one.ask(request(made, 0, buyer)))[0] == 409:
                assert asyncio.get_running_loop().time() - began < 1.2
                await asyncio.sleep(0.02)
            status, _, body = await one.ask(request(made, 0, buyer))
            assert (status, body["error"]) == (400, "event_unavailable")

    run(database, check)


def test_who_may_not_ask_is_not_answered_because_somebody_else_may(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        await taken(made)
        buyer = await made.buyer()
        other_event = await made.make_event()
        stranger = await made.client.post("/api/guest-tokens", json={"event_id": other_event})
        foreign = await made.app.services.accounts.bootstrap("Elsewhere")
        async with line(made) as one:
            for _ in range(3):
                assert (await one.ask(request(made, 0, buyer)))[0] == 409
                for headers in (bearer(stranger.json()["data"]["token"]), bearer(foreign.admin_token)):
                    status, _, body = await one.ask(request(made, 0, headers))
                    assert (status, body["error"]) == (404, "event_not_found")
                assert (await one.ask(request(made, 0, bearer("nonsense"))))[0] == 401

    run(database, check)


def test_a_member_who_was_shut_out_is_not_answered_any_more(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        await taken(made)
        member = await made.member()
        async with line(made) as one:
            for _ in range(3):
                assert (await one.ask(request(made, 0, member)))[0] == 409
            user_id = (await made.client.get("/api/me", headers=member)).json()["data"]["user_id"]
            answer = await made.client.patch(f"/api/users/{user_id}", json={"active": False}, headers=made.admin)
            assert answer.status_code == 200, answer.text
            assert (await one.ask(request(made, 0, member)))[0] == 401

    run(database, check)


def test_who_is_over_the_limit_hears_that_first(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        await taken(made, 39)
        buyer = await made.buyer()
        async with line(made) as one:
            for n in range(10):
                assert (await one.ask(request(made, n, buyer)))[0] == 201
                assert (await one.ask(request(made, 39, buyer)))[0] == (409 if n < 9 else 429)
            assert (await one.ask(request(made, 39, buyer)))[0] == 429

    run(database, check)


def test_requests_in_pieces_or_several_at_once_are_answered_in_order(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        await taken(made)
        buyer = await made.buyer()
        refused, free = request(made, 0, buyer), request(made, 1, buyer)
        async with line(made) as one:
            for _ in range(3):
                assert (await one.ask(refused))[0] == 409
            one.writer.write(refused + refused)
            assert [(await one.answer())[0] for _ in range(2)] == [409, 409]
            for cut in (1, 20, len(refused) - 5, len(refused) - 1):
                one.writer.write(refused[:cut])
                await asyncio.sleep(0.02)
                one.writer.write(refused[cut:])
                assert (await one.answer())[0] == 409
            one.writer.write(refused[:30])
            await asyncio.sleep(0.02)
            one.writer.write(refused[30:] + free + refused)
            assert [(await one.answer())[0] for _ in range(3)] == [409, 201, 409]
            other = request(made, 0, buyer, b'{"source":"scanner"}')
            strange = request(made, 0, buyer, b'{"seat":1}')
            assert [(await one.ask(raw))[0] for raw in (other, strange, other, strange)] == [409, 400, 409, 400]
            once = request(made, 0, {**buyer, "Connection": "close"})
            status, headers, _ = await one.ask(once)
            assert (status, headers["connection"]) == (409, "close")

    run(database, check)


def test_refusals_are_counted_and_kept_for_the_audit_as_ever(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        await taken(made)
        buyer = await made.buyer()
        async with line(made) as one:
            for _ in range(6):
                await one.ask(request(made, 0, {**buyer, "User-Agent": "crowd"}))
        assert answers(made) >= 4
        await made.app.refusals.write()
        rows = await made.sql("SELECT * FROM audit_entries WHERE action = 'seat_reserve_failed'")
        assert len(rows) == 6
        assert {(row["reason"], row["user_agent"], row["ip"]) for row in rows} == {
            ("seat_held_by_another_user", "crowd", "127.0.0.1")
        }
        assert {msgspec.json.decode(row["changes"])["seat_id"] for row in rows} == {made.seats[0]["id"]}

    run(database, check)
