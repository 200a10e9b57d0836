"""Venues, layouts, events and seats over real HTTP: what is answered, to whom, and what a refusal leaves alone."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg
import httpx
import pytest

from holdfast.accounts.principal import Role
from holdfast.accounts.records import Bootstrap
from holdfast.app import Application
from holdfast.kernel.ids import new_id
from holdfast.settings import Settings
from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.http.client import bearer, serving

SECRETS = "test:" + "t" * 40
WRITTEN = ("venues", "layouts", "layout_versions", "events", "event_whitelist", "seat_state_events", "outbox")


@dataclass
class House:
    """A running application with one organization, its administrator's and a buyer's credentials."""

    client: httpx.AsyncClient
    application: Application
    database: TestDatabase
    first: Bootstrap
    admin: dict[str, str]
    buyer: dict[str, str]

    async def ask(
        self, method: str, path: str, body: object = None, *, who: dict[str, str] | None = None, **params: Any
    ) -> httpx.Response:
        headers = self.admin if who is None else who
        if body is None:
            return await self.client.request(method, path, headers=headers, params=params)
        return await self.client.request(method, path, headers=headers, params=params, json=body)

    async def data(self, method: str, path: str, body: object = None, status: int = 200, **params: Any) -> Any:
        answer = await self.ask(method, path, body, **params)
        assert answer.status_code == status, answer.text
        return answer.json()["data"]

    async def layout(self, config: dict[str, Any] | None = None) -> dict[str, Any]:
        venue = await self.data("POST", "/api/venues", {"name": "Playhouse"}, 201)
        path = f"/api/venues/{venue['id']}/layouts"
        made: dict[str, Any] = await self.data(
            "POST", path, {"name": "House", "config": config or theatre_config()}, 201
        )
        return made

    async def event(self, config: dict[str, Any] | None = None, *, publish: bool = True, **fields: Any) -> str:
        layout = await self.layout(config)
        made = await self.data("POST", "/api/events", {"name": "First night", "layout_id": layout["id"], **fields}, 201)
        if publish:
            await self.data("POST", f"/api/events/{made['id']}/status", {"status": "published"})
        return str(made["id"])

    async def rival(self) -> dict[str, str]:
        other = await self.application.services.accounts.bootstrap("Rival")
        return bearer(other.admin_token)

    async def counts(self) -> list[int]:
        """Of everything a refused request must leave alone."""
        connection = await asyncpg.connect(self.database.owner)
        try:
            tables = (
                "venues",
                "layouts",
                "layout_versions",
                "events",
                "event_whitelist",
                "seat_state_events",
                "outbox",
            )
            return [await connection.fetchval(f"SELECT count(*) FROM {table}") for table in tables]
        finally:
            await connection.close()


@asynccontextmanager
async def house(database: TestDatabase, **settings: Any) -> AsyncIterator[House]:
    application = await Application.open(
        Settings(database_url=database.app, jwt_secrets=SECRETS, database_pool=4, **settings), work=False
    )
    try:
        accounts = application.services.accounts
        first = await accounts.bootstrap("Teatro Uno")
        buyer = await accounts.issue_token(first.organization_id, Role.CUSTOMER)
        async with serving(application.asgi) as client:
            yield House(client, application, database, first, bearer(first.admin_token), bearer(buyer.token))
    finally:
        await application.close()


def run(database: TestDatabase, test: Callable[[House], Coroutine[Any, Any, None]], **settings: Any) -> None:
    async def main() -> None:
        async with house(database, **settings) as h:
            await test(h)

    asyncio.run(main())


def pointers(answer: httpx.Response) -> set[str]:
    return {problem["pointer"] for problem in answer.json()["errors"]}


def test_a_venue_a_layout_an_event_and_its_seats(database: TestDatabase) -> None:
    async def test(h: House) -> None:
        layout = await h.layout(theatre_config(2, 3, ga_capacity=40))
        assert (layout["version"], layout["seat_count"], layout["total_capacity"]) == (1, 6, 46)
        assert layout["status"] == "draft"
        assert "config" not in layout
        event = await h.data(
            "POST",
            "/api/events",
            {
                "name": "First night",
                "layout_id": layout["id"],
                "sale_start": "2020-01-01T00:00:00Z",
                "sale_end": "2999-01-01T00:00:00Z",
                "days": ["2026-06-02"],
                "currency": "EUR",
                "prices": [{"zone_id": "stalls", "category": None, "amount_minor": 8000}],
                "overrides": {"max_seats_per_booking": 6},
            },
            201,
        )
        assert (event["status"], event["layout_version"], event["days"]) == ("draft", 1, ["2026-06-02"])
        path = f"/api/events/{event['id']}"
        published = await h.data("POST", f"{path}/status", {"status": "published"})
        assert published["status"] == "published"
        assert (await h.data("GET", f"/api/layouts/{layout['id']}"))["status"] == "active"
        answer = await h.ask("GET", f"{path}/seats", who=h.buyer, limit=4)
        page = answer.json()
        assert [seat["ordinal"] for seat in page["data"]] == [0, 1, 2, 3]
        assert page["data"][0] == {
            "id": page["data"][0]["id"],
            "seat_id": "A-1",
            "ordinal": 0,
            "booking_id": 1,
            "zone": "stalls",
            "zone_name": "Stalls",
            "row": "A",
            "number": 1,
            "category": "standard",
            "coordinates": {"x": 10.0, "y": 0.0},
            "state": "available",
            "hold_type": None,
            "version": 0,
            "held_until": None,
            "offered": True,
        }
        rest = (await h.ask("GET", f"{path}/seats", who=h.buyer, cursor=page["next_cursor"])).json()
        assert [seat["ordinal"] for seat in rest["data"]] == [4, 5]
        assert rest["next_cursor"] is None
        one = await h.data("GET", f"{path}/seats/{page['data'][2]['id']}")
        assert one["seat_id"] == "A-3"
        (zone,) = await h.data("GET", f"{path}/zones")
        assert (zone["zone_id"], zone["capacity"], zone["available"], zone["booking_id"]) == ("pit", 40, 40, 7)

    run(database, test)


def test_a_layouts_config_comes_back_as_it_was_sent(database: TestDatabase) -> None:
    async def test(h: House) -> None:
        config = theatre_config(1, 2)
        layout = await h.layout(config)
        second = theatre_config(1, 3)
        made = await h.data("POST", f"/api/layouts/{layout['id']}/versions", {"config": second}, 201)
        assert made["version"] == 2
        assert (await h.data("GET", f"/api/layouts/{layout['id']}"))["config"] == second
        assert (await h.data("GET", f"/api/layouts/{layout['id']}", version=1))["config"] == config
        assert (await h.ask("GET", f"/api/layouts/{layout['id']}", version=3)).status_code == 404
        listed = await h.data("GET", "/api/layouts")
        assert [(item["id"], item["version"]) for item in listed] == [(layout["id"], 2)]

    run(database, test)


def test_a_bad_layout_is_refused_with_every_problem_and_stores_nothing(database: TestDatabase) -> None:
    async def test(h: House) -> None:
        venue = await h.data("POST", "/api/venues", {"name": "Playhouse"}, 201)
        before = await h.counts()
        config = theatre_config(1, 3)
        config["zones"][0]["capacity"] = 4
        config["zones"][0]["seats"][1]["seat_id"] = "A-1"
        config["zones"][0]["seats"][2]["companion_seat_id"] = "Z-9"
        path = f"/api/venues/{venue['id']}/layouts"
        answer = await h.ask("POST", path, {"name": "House", "config": config})
        assert answer.status_code == 422
        assert answer.headers["content-type"] == "application/problem+json"
        assert {"/zones/0/capacity", "/zones/0/seats/1/seat_id", "/zones/0/seats/2/companion_seat_id"} <= pointers(
            answer
        )
        for body in (b"{", b'{"name": "x"}', b'{"name": "x", "config": {}, "more": 1}', b"[]", b"\xff", b"[" * 100_000):
            answer = await h.client.post(path, content=body, headers=h.admin)
            assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request"), body[:40]
        answer = await h.ask("POST", path, {"name": " ", "config": theatre_config()})
        assert (answer.status_code, pointers(answer)) == (400, {"/name"})
        assert await h.counts() == before

    run(database, test)


def test_a_layout_larger_than_the_limit_is_refused_and_a_stranger_is_not_read(database: TestDatabase) -> None:
    async def test(h: House) -> None:
        path = f"/api/venues/{new_id()}/layouts"
        large = {"name": "House", "config": theatre_config(20, 100)}
        assert (await h.ask("POST", path, large)).status_code == 413
        assert (await h.ask("POST", path, large, who={})).status_code == 401

    run(database, test, layout_limit_bytes=100_000)


def test_a_layout_beyond_the_ordinary_limit_of_bodies_is_taken(database: TestDatabase) -> None:
    async def test(h: House) -> None:
        layout = await h.layout(theatre_config(50, 100))
        assert layout["seat_count"] == 5_000

    run(database, test, body_limit_bytes=10_000)


def test_a_bad_event_is_refused_with_every_problem(database: TestDatabase) -> None:
    async def test(h: House) -> None:
        layout = await h.layout()
        before = await h.counts()
        body = {
            "name": "",
            "layout_id": layout["id"],
            "sale_start": "2026-05-01T10:00:00",
            "days": ["soon"],
            "prices": [{"zone_id": "attic", "amount_minor": -1}],
            "overrides": {"max_seats_per_booking": 0},
        }
        answer = await h.ask("POST", "/api/events", body)
        assert answer.status_code == 422
        assert pointers(answer) == {
            "/name",
            "/sale_start",
            "/days/0",
            "/currency",
            "/prices/0/zone_id",
            "/prices/0/amount_minor",
            "/overrides/max_seats_per_booking",
        }
        assert (await h.ask("POST", "/api/events", ["event"])).status_code == 400
        unknown = await h.ask("POST", "/api/events", {"name": "x", "layout_id": str(new_id())})
        assert (unknown.status_code, unknown.json()["error"]) == (404, "layout_not_found")
        assert await h.counts() == before

    run(database, test)


def test_an_event_changes_as_its_state_allows(database: TestDatabase) -> None:
    async def test(h: House) -> None:
        event = await h.event(publish=False)
        path = f"/api/events/{event}"
        assert (await h.data("PATCH", path, {"name": "Second night"}))["name"] == "Second night"
        await h.data("POST", f"{path}/status", {"status": "published"})
        patch = {
            "sale_end": "2999-01-01T00:00:00Z",
            "currency": "EUR",
            "prices": [{"zone_id": "stalls", "amount_minor": 1}],
        }
        assert (await h.data("PATCH", path, patch))["prices"][0]["amount_minor"] == 1
        frozen = await h.ask("PATCH", path, {"layout_version": 2})
        assert (frozen.status_code, frozen.json()["fields"]) == (409, ["layout_version"])
        bad = await h.ask("PATCH", path, {"sale_start": "2999-01-02T00:00:00Z"})
        assert (bad.status_code, pointers(bad)) == (422, {"/sale_end"})
        await h.data("POST", f"{path}/status", {"status": "cancelled"})
        assert (await h.ask("PATCH", path, {"name": "Third night"})).status_code == 409

    run(database, test)


def test_an_illegal_move_is_409_and_says_what_is_possible(database: TestDatabase) -> None:
    async def test(h: House) -> None:
        event = await h.event(publish=False)
        answer = await h.ask("POST", f"/api/events/{event}/status", {"status": "live"})
        assert answer.status_code == 409
        assert answer.json()["error"] == "illegal_event_move"
        assert answer.json()["allowed"] == ["published", "cancelled"]
        for body in ({"status": "sold out"}, {}, {"status": 3}):
            assert (await h.ask("POST", f"/api/events/{event}/status", body)).status_code == 400
        for status in ("published", "live", "archived"):
            await h.data("POST", f"/api/events/{event}/status", {"status": status})
        assert (await h.ask("POST", f"/api/events/{event}/status", {"status": "cancelled"})).status_code == 409

    run(database, test)


def test_seats_are_blocked_and_unblocked_all_or_none(database: TestDatabase) -> None:
    async def test(h: House) -> None:
        event = await h.event()
        path = f"/api/events/{event}/seats"
        seats = [seat["id"] for seat in await h.data("GET", path, limit=3)]
        blocked = await h.data("POST", f"{path}/block", {"seats": seats[:2], "reason": "broken"})
        assert blocked["blocked"] == seats[:2]
        assert [seat["id"] for seat in await h.data("GET", path, state="blocked")] == seats[:2]
        one = await h.data("GET", f"{path}/{seats[0]}")
        assert (one["state"], one["block_reason"], one["version"]) == ("blocked", "broken", 1)
        answer = await h.ask("GET", f"{path}/{seats[0]}", who=h.buyer)
        assert "block_reason" not in answer.json()["data"]
        answer = await h.ask("POST", f"{path}/unblock", {"seats": seats})
        assert (answer.status_code, answer.json()["error"]) == (409, "seat_not_blocked")
        assert answer.json()["seats"] == [seats[2]]
        unknown = str(new_id())
        answer = await h.ask("POST", f"{path}/block", {"seats": [seats[2], unknown], "reason": "broken"})
        assert (answer.status_code, answer.json()["error"], answer.json()["seats"]) == (
            404,
            "seat_not_found",
            [unknown],
        )
        await h.data("POST", f"{path}/unblock", {"seats": seats[:2], "reason": "mended"})
        assert await h.data("GET", path, state="blocked") == []
        log = await h.data("GET", f"/api/events/{event}/state-log")
        assert [move["verb"] for move in log] == ["block", "block", "unblock", "unblock"]
        later = (await h.ask("GET", f"/api/events/{event}/state-log", after=log[1]["id"])).json()
        assert [move["id"] for move in later["data"]] == [log[2]["id"], log[3]["id"]]
        assert later["next_cursor"] is None

    run(database, test)


def test_a_malformed_block_changes_nothing(database: TestDatabase) -> None:
    async def test(h: House) -> None:
        event = await h.event()
        (seat,) = await h.data("GET", f"/api/events/{event}/seats", limit=1)
        before = await h.counts()
        bodies: list[tuple[object, str]] = [
            ({"seats": [seat["id"]]}, "/reason"),
            ({"seats": [seat["id"]], "reason": ""}, "/reason"),
            ({"seats": [seat["id"]], "reason": "x" * 501}, "/reason"),
            ({"seats": [seat["id"]], "reason": "a\x00b"}, "/reason"),
            ({"seats": [], "reason": "broken"}, "/seats"),
            ({"seats": ["A-1"], "reason": "broken"}, "/seats/0"),
            ({"seats": seat["id"], "reason": "broken"}, "/seats"),
            ({"seats": [seat["id"]], "reason": "broken", "force": "yes"}, "/force"),
            ({"seats": [seat["id"]], "reason": "broken", "by": "me"}, "/by"),
        ]
        for body, pointer in bodies:
            answer = await h.ask("POST", f"/api/events/{event}/seats/block", body)
            assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request"), body
            assert pointers(answer) == {pointer}, body
        assert await h.counts() == before

    run(database, test)


BAD_REQUESTS: list[tuple[str, str, dict[str, Any], str]] = [
    ("GET", "/api/events/first", {}, "/event_id"),
    ("GET", "/api/layouts/house", {}, "/layout_id"),
    ("POST", "/api/layouts/house/versions", {}, "/layout_id"),
    ("POST", "/api/venues/here/layouts", {}, "/venue_id"),
    ("GET", "/api/events/{event}/seats/A-1", {}, "/seat"),
    ("GET", "/api/events/{event}/seats", {"limit": 0}, "/limit"),
    ("GET", "/api/events/{event}/seats", {"limit": 1001}, "/limit"),
    ("GET", "/api/events/{event}/seats", {"limit": "all"}, "/limit"),
    ("GET", "/api/events/{event}/seats", {"state": "gone"}, "/state"),
    ("GET", "/api/events/{event}/seats", {"cursor": "-1"}, "/cursor"),
    ("GET", "/api/events", {"cursor": "next"}, "/cursor"),
    ("GET", "/api/events", {"status": "sold"}, "/status"),
    ("GET", "/api/events/{event}/state-log", {"after": "x"}, "/after"),
    ("GET", "/api/audit", {"event_id": "x"}, "/event_id"),
    ("GET", "/api/layouts/{event}", {"version": 0}, "/version"),
]


def test_what_is_wrong_with_an_address_or_a_parameter_is_named(database: TestDatabase) -> None:
    async def test(h: House) -> None:
        event = await h.event()
        for method, path, params, pointer in BAD_REQUESTS:
            answer = await h.ask(method, path.format(event=event), **params)
            assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request"), (path, answer.text)
            assert pointers(answer) == {pointer}, (path, params, answer.text)

    run(database, test)


def test_an_unknown_zone_in_a_filter_is_404_and_names_it(database: TestDatabase) -> None:
    async def test(h: House) -> None:
        event = await h.event()
        answer = await h.ask("GET", f"/api/events/{event}/seats", zone="attic")
        assert (answer.status_code, answer.json()["error"], answer.json()["zone"]) == (404, "zone_not_found", "attic")

    run(database, test)


def test_ids_of_another_organization_are_answered_like_unknown_ones_byte_for_byte(database: TestDatabase) -> None:
    async def test(h: House) -> None:
        event = await h.event()
        (seat,) = await h.data("GET", f"/api/events/{event}/seats", limit=1)
        layout = (await h.data("GET", f"/api/events/{event}"))["layout_id"]
        venue = (await h.data("GET", "/api/venues"))[0]["id"]
        rival = await h.rival()
        block = {"seats": [seat["id"]], "reason": "mine"}
        asks: list[tuple[str, str, str, object]] = [
            ("GET", "/api/events/{}", event, None),
            ("PATCH", "/api/events/{}", event, {"name": "Mine"}),
            ("POST", "/api/events/{}/status", event, {"status": "cancelled"}),
            ("GET", "/api/events/{}/seats", event, None),
            ("GET", f"/api/events/{{}}/seats/{seat['id']}", event, None),
            ("GET", "/api/events/{}/zones", event, None),
            ("POST", "/api/events/{}/seats/block", event, block),
            ("POST", "/api/events/{}/seats/unblock", event, {"seats": [seat["id"]]}),
            ("PUT", "/api/events/{}/whitelist", event, {"user_ids": [str(new_id())]}),
            ("DELETE", "/api/events/{}/whitelist", event, {"user_ids": [str(new_id())]}),
            ("GET", "/api/events/{}/whitelist", event, None),
            ("GET", "/api/events/{}/state-log", event, None),
            ("GET", "/api/layouts/{}", layout, None),
            ("POST", "/api/layouts/{}/versions", layout, {"config": theatre_config(1, 1)}),
            ("POST", "/api/venues/{}/layouts", venue, {"name": "Mine", "config": theatre_config(1, 1)}),
        ]
        before = await h.counts()
        for method, path, theirs, body in asks:
            foreign = await h.ask(method, path.format(theirs), body, who=rival)
            unknown = await h.ask(method, path.format(new_id()), body, who=rival)
            assert foreign.status_code == unknown.status_code == 404, (path, foreign.text)
            assert foreign.content == unknown.content
            varying = ("x-request-id", "date")
            kept = [{k: v for k, v in a.headers.items() if k not in varying} for a in (foreign, unknown)]
            assert kept[0] == kept[1]
        body = {"name": "Mine", "layout_id": layout}
        foreign = await h.ask("POST", "/api/events", body, who=rival)
        unknown = await h.ask("POST", "/api/events", {**body, "layout_id": str(new_id())}, who=rival)
        assert (foreign.status_code, foreign.content) == (404, unknown.content)
        assert await h.counts() == before

    run(database, test)


def test_buyers_read_what_is_on_sale_and_write_nothing(database: TestDatabase) -> None:
    async def test(h: House) -> None:
        event, draft = await h.event(), await h.event(publish=False)
        (seat,) = await h.data("GET", f"/api/events/{event}/seats", limit=1)
        assert (await h.ask("GET", f"/api/events/{event}", who=h.buyer)).status_code == 200
        listed = (await h.ask("GET", "/api/events", who=h.buyer)).json()["data"]
        assert [item["id"] for item in listed] == [event]
        hidden = await h.ask("GET", f"/api/events/{draft}", who=h.buyer)
        unknown = await h.ask("GET", f"/api/events/{new_id()}", who=h.buyer)
        assert (hidden.status_code, hidden.content) == (404, unknown.content)
        before = await h.counts()
        asks: list[tuple[str, str, object]] = [
            ("POST", "/api/venues", {"name": "Mine"}),
            ("POST", f"/api/venues/{new_id()}/layouts", {"name": "Mine", "config": theatre_config(1, 1)}),
            ("POST", f"/api/layouts/{new_id()}/versions", {"config": theatre_config(1, 1)}),
            ("GET", f"/api/layouts/{new_id()}", None),
            ("GET", "/api/layouts", None),
            ("GET", "/api/venues", None),
            ("POST", "/api/events", {"name": "Mine"}),
            ("PATCH", f"/api/events/{event}", {"name": "Mine"}),
            ("POST", f"/api/events/{event}/status", {"status": "cancelled"}),
            ("POST", f"/api/events/{event}/seats/block", {"seats": [seat["id"]], "reason": "mine"}),
            ("POST", f"/api/events/{event}/seats/unblock", {"seats": [seat["id"]]}),
            ("PUT", f"/api/events/{event}/whitelist", {"user_ids": [str(new_id())]}),
            ("DELETE", f"/api/events/{event}/whitelist", {"user_ids": [str(new_id())]}),
            ("GET", f"/api/events/{event}/whitelist", None),
            ("GET", f"/api/events/{event}/state-log", None),
            ("GET", "/api/audit", None),
        ]
        for method, path, body in asks:
            assert (await h.ask(method, path, body, who=h.buyer)).status_code == 403, (method, path)
            assert (await h.ask(method, path, body, who={})).status_code == 401, (method, path)
        assert await h.counts() == before

    run(database, test)


def test_a_guest_sees_the_event_of_its_token_and_no_other(database: TestDatabase) -> None:
    async def test(h: House) -> None:
        own, other = await h.event(), await h.event()
        guest = bearer((await h.application.services.accounts.issue_guest_token(UUID(own))).token)
        assert (await h.ask("GET", f"/api/events/{own}/seats", who=guest)).status_code == 200
        for path in (f"/api/events/{other}", f"/api/events/{other}/seats", f"/api/events/{other}/zones"):
            assert (await h.ask("GET", path, who=guest)).status_code == 404

    run(database, test)


def test_an_idempotency_key_makes_a_write_happen_once(database: TestDatabase) -> None:
    async def test(h: House) -> None:
        headers = {**h.admin, "Idempotency-Key": "venue-1"}
        first = await h.client.post("/api/venues", json={"name": "Playhouse"}, headers=headers)
        again = await h.client.post("/api/venues", json={"name": "Playhouse"}, headers=headers)
        assert (first.status_code, again.status_code) == (201, 201)
        assert first.content == again.content
        other = await h.client.post("/api/venues", json={"name": "Annex"}, headers=headers)
        assert other.status_code == 422
        assert len(await h.data("GET", "/api/venues")) == 1
        path = f"/api/venues/{first.json()['data']['id']}/layouts"
        headers = {**h.admin, "Idempotency-Key": "layout-1"}
        body = {"name": "House", "config": theatre_config()}
        made = [await h.client.post(path, json=body, headers=headers) for _ in range(2)]
        assert made[0].status_code == 201, made[0].text
        assert made[0].content == made[1].content

    run(database, test)


def test_a_whitelist_is_added_to_and_taken_from(database: TestDatabase) -> None:
    async def test(h: House) -> None:
        event = await h.event()
        path = f"/api/events/{event}/whitelist"
        users = sorted(str(new_id()) for _ in range(3))
        assert (await h.data("PUT", path, {"user_ids": users}))["added"] == 3
        assert (await h.data("PUT", path, {"user_ids": users[:1]}))["added"] == 0
        page = (await h.ask("GET", path, limit=2)).json()
        assert [user["user_id"] for user in page["data"]] == users[:2]
        assert page["next_cursor"] == users[1]
        assert (await h.data("DELETE", path, {"user_ids": users[:2]}))["removed"] == 2
        assert [user["user_id"] for user in await h.data("GET", path)] == users[2:]
        assert (await h.ask("PUT", path, {"user_ids": ["me"]})).status_code == 400

    run(database, test)


def test_the_audit_says_who_did_what(database: TestDatabase) -> None:
    async def test(h: House) -> None:
        event = await h.event()
        entries = await h.data("GET", "/api/audit", event_id=event)
        assert [entry["action"] for entry in entries] == ["event_published", "event_created"]
        assert entries[0]["user_id"] == str(h.first.admin_user_id)
        assert entries[0]["changes"]["to"] == "published"
        by_action = await h.data("GET", "/api/audit", action="layout_created")
        assert len(by_action) == 1
        organizer = await h.application.services.accounts.issue_token(h.first.organization_id, Role.ORGANIZER)
        assert (await h.ask("GET", "/api/audit", who=bearer(organizer.token))).status_code == 403

    run(database, test)


@pytest.mark.parametrize("body", [b'{"name": "\xff"}', b"", b"null", b'{"name": "x",}'])
def test_a_body_that_is_no_json_is_400(database: TestDatabase, body: bytes) -> None:
    async def test(h: House) -> None:
        for method, path in (("POST", "/api/venues"), ("POST", "/api/events"), ("PATCH", f"/api/events/{new_id()}")):
            answer = await h.client.request(method, path, content=body, headers=h.admin)
            assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request"), (path, answer.text)

    run(database, test)


def test_events_are_listed_newest_first_in_parts(database: TestDatabase) -> None:
    async def test(h: House) -> None:
        made = [await h.event(publish=False) for _ in range(3)]
        first = (await h.ask("GET", "/api/events", limit=2)).json()
        assert [event["id"] for event in first["data"]] == made[:0:-1]
        second = (await h.ask("GET", "/api/events", limit=2, cursor=first["next_cursor"])).json()
        assert [event["id"] for event in second["data"]] == made[:1]
        assert second["next_cursor"] is None
        live = await h.client.get("/api/events", headers=h.admin, params={"status": "live"})
        assert live.json()["data"] == []

    run(database, test)


def test_nothing_new_refers_to_an_archived_version_and_what_does_already_stays(database: TestDatabase) -> None:
    async def test(h: House) -> None:
        layout = await h.layout()
        path = f"/api/layouts/{layout['id']}/versions"
        second = await h.data("POST", path, {"config": theatre_config(2, 5)}, 201)
        event = {"name": "First night", "layout_id": layout["id"], "layout_version": 1}
        first_night = await h.data("POST", "/api/events", event, 201)
        assert (await h.data("POST", f"{path}/1/status", {"status": "archived"}))["status"] == "archived"
        before = await h.counts()
        for method, where, body in (
            ("POST", "/api/events", event),
            ("POST", "/api/series", {"name": "Run", "layout_id": layout["id"], "layout_version": 1}),
        ):
            refused = await h.ask(method, where, body)
            assert refused.status_code == 422, refused.text
            assert refused.json()["errors"][0]["code"] == "archived_version"
        assert await h.counts() == before
        renamed = await h.data("PATCH", f"/api/events/{first_night['id']}", {"name": "Last night"})
        assert renamed["layout_version"] == 1
        await h.data("POST", f"/api/events/{first_night['id']}/status", {"status": "published"})
        assert (await h.data("POST", f"{path}/1/status", {"status": "active"}))["status"] == "active"
        assert (await h.data("POST", f"{path}/2/status", {"status": "archived"}))["version"] == second["version"]
        migration = await h.ask("POST", f"/api/events/{first_night['id']}/migrations", {"layout_version": 2})
        assert migration.status_code == 422, migration.text
        assert migration.json()["errors"][0]["code"] == "archived_version"
        assert (await h.data("POST", f"{path}/2/status", {"status": "active"}))["status"] == "draft"
        for version in (3, 0, -1, 2**40):
            unknown = await h.ask("POST", f"{path}/{version}/status", {"status": "archived"})
            assert unknown.status_code == 404, (version, unknown.text)
        assert (await h.ask("POST", f"{path}/1/status", {"status": "lost"})).status_code == 400

    run(database, test)
