"""Booking v2 as its clients know it: integers for ids, true or false for answers, capitals for codes."""

import asyncio
from typing import Any
from uuid import UUID

import asyncpg
import httpx
import pytest

from holdfast.insight.invariants import check_event
from tests.conftest import TestDatabase
from tests.http.contents import contents, member, seat_log
from tests.http.test_reserve import held, refused, run
from tests.stage import Stage

BASE = "/api/private/v2.0/booking"
CALLS = ("lock", "unlock", "sale", "directsale", "revertsale")
TYPES = {
    "COMP": {"validStates": ["LOCKED", "SOLD"], "skipLockedState": True, "ttlSeconds": 60},
    "PAID": {"validStates": ["SOLD"]},
    "PENCIL": {"validStates": ["LOCKED"]},
}


class Till:
    """One session of a client of the API."""

    def __init__(self, made: Stage, session: str, headers: dict[str, str] | None = None) -> None:
        self.made = made
        self.session = session
        self.headers = headers or made.api_key

    def body(self, *numbers: int, places: int = 0, **more: Any) -> dict[str, Any]:
        body: dict[str, Any] = {"sessionId": self.session}
        if numbers:
            body["seats"] = [{"id": self.made.seats[n]["booking_id"]} for n in numbers]
        if places:
            body["groupOfSeats"] = [{"id": self.made.zones[0]["booking_id"], "capacity": places}]
        return {**body, **more}

    async def ask(self, call: str, *numbers: int, places: int = 0, **more: Any) -> httpx.Response:
        path = f"{BASE}/{call}?eventId={self.made.event_id}"
        return await self.made.post(path, self.body(*numbers, places=places, **more), self.headers)

    async def does(self, call: str, *numbers: int, places: int = 0, **more: Any) -> bool:
        answer = await self.ask(call, *numbers, places=places, **more)
        assert answer.status_code == 200, answer.text
        assert answer.text in ("true", "false")
        return answer.text == "true"


async def states(made: Stage) -> tuple[dict[int, tuple[str, str | None]], dict[str, Any]]:
    """State and hold type by the seat's position, and the first group."""
    answer = await made.client.get(f"{BASE}/state?eventId={made.event_id}", headers=made.api_key)
    assert answer.status_code == 200, answer.text
    said = answer.json()
    by_id = {seat["id"]: (seat["state"], seat["holdType"]) for seat in said["seats"]}
    return {n: by_id[seat["booking_id"]] for n, seat in enumerate(made.seats)}, said["groupOfSeats"][0]


async def assert_sound(made: Stage) -> None:
    verdict = await check_event(made.app.database, made.first.organization_id, UUID(made.event_id))
    assert [invariant for invariant in verdict if not invariant.ok] == []


async def define_types(made: Stage) -> None:
    assert (await made.post("/api/organizations/config", {"holdTypes": TYPES})).status_code == 200


def test_the_five_calls_move_seats_between_the_three_states(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        till = Till(made, "s-1")
        assert await till.does("lock", 0, 1, 2)
        seats, _ = await states(made)
        assert [seats[n] for n in range(4)] == [("LOCKED", "CART")] * 3 + [("ACTIVE", None)]
        (row,) = await made.sql("SELECT DISTINCT session_id, held_until - created_at AS life FROM holds")
        assert (row["session_id"], row["life"].total_seconds()) == ("s-1", 900)
        assert await till.does("unlock", 1)
        assert await till.does("sale", 0, 2)
        assert await till.does("directsale", 5)
        seats, _ = await states(made)
        assert [seats[n] for n in (0, 1, 2, 5)] == [("SOLD", None), ("ACTIVE", None), ("SOLD", None), ("SOLD", None)]
        assert (await made.seat(0))["state"] == "sold"
        assert await till.does("revertsale", 0, 5)
        seats, _ = await states(made)
        assert [seats[n] for n in (0, 5)] == [("ACTIVE", None)] * 2
        assert [m["verb"] for m in await seat_log(made, 0)] == ["hold", "convert", "revert_sale"]
        assert [m["verb"] for m in await seat_log(made, 5)] == ["direct_sale", "revert_sale"]
        assert [m["version"] for m in await seat_log(made, 0)] == [1, 2, 3]
        assert {m["actor"] for m in await seat_log(made, 0)} == {"API"}
        statuses = await made.sql("SELECT status::text, count(*) FROM holds GROUP BY 1 ORDER BY 1")
        assert [tuple(row) for row in statuses] == [("cancelled", 1), ("converted", 2)]
        sent = await made.sql(
            "SELECT kind, state::text, ordinals, versions FROM outbox WHERE ordinals IS NOT NULL ORDER BY id"
        )
        assert [tuple(message) for message in sent] == [
            ("SeatReserved", "held", [0, 1, 2], [1, 1, 1]),
            ("SeatReleased", "available", [1], [2]),
            ("SeatSold", "sold", [0, 2], [2, 2]),
            ("SeatSold", "sold", [5], [1]),
            ("SaleReverted", "available", [0, 5], [3, 2]),
        ]
        await assert_sound(made)

    run(database, check)


def test_state_names_every_seat_and_group_with_its_integer(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        answer = await made.client.get(f"{BASE}/state?eventId={made.event_id}", headers=made.api_key)
        said = answer.json()
        assert said["eventId"] == made.event_id
        assert [seat["id"] for seat in said["seats"]] == [seat["booking_id"] for seat in made.seats]
        first = said["seats"][0]
        assert (first["seatId"], first["section"], first["row"], first["number"]) == ("A-1", "Stalls", "A", 1)
        (group,) = said["groupOfSeats"]
        assert group["id"] == made.zones[0]["booking_id"]
        assert group["id"] not in {seat["id"] for seat in said["seats"]}
        assert (group["capacity"], group["locked"], group["sold"], group["available"]) == (100, 0, 0, 100)

    run(database, check)


def test_false_means_that_nothing_at_all_was_applied(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        one, two = Till(made, "s-1"), Till(made, "s-2")
        assert await one.does("lock", 0, 1, places=10)
        assert await one.does("directsale", 9)
        before = await contents(made)
        assert not await two.does("lock", 2, 0)  # one of them is not ACTIVE
        assert not await one.does("lock", 0)  # nor is what one has locked already
        assert not await one.does("lock", 3, 9)
        assert not await two.does("lock", 3, places=91)
        assert not await two.does("sale", 0)  # another session's
        assert not await two.does("unlock", 0)
        assert not await two.does("unlock", places=1)
        assert not await two.does("sale", places=1)
        assert not await one.does("sale", 0, 2)
        assert not await one.does("sale", 0, places=11)
        assert not await one.does("unlock", 0, 9)
        assert not await one.does("unlock", 0, 1, places=11)
        assert not await two.does("directsale", 4, 0)
        assert not await two.does("directsale", 4, 9)
        assert not await two.does("directsale", 4, places=91)
        assert not await one.does("revertsale", 9, 4)
        assert not await one.does("revertsale", 0)
        assert not await one.does("revertsale", 9, places=1)
        assert await contents(made) == before
        assert await one.does("sale", 0, 1, places=10)
        await assert_sound(made)

    run(database, check)


def test_groups_are_sold_and_unlocked_in_parts(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        till, other = Till(made, "s-1"), Till(made, "s-2")
        assert await till.does("lock", places=6)
        assert await other.does("lock", places=3)
        assert await till.does("sale", places=2)
        assert await till.does("unlock", places=1)
        _, group = await states(made)
        assert (group["locked"], group["sold"], group["available"]) == (6, 2, 92)
        assert await till.does("lock", places=2)  # beside the three that are left of the first lock
        assert await till.does("sale", places=4)  # out of both
        assert not await till.does("sale", places=2)
        assert await till.does("sale", places=1)
        _, group = await states(made)
        assert (group["locked"], group["sold"]) == (3, 7)
        assert await till.does("revertsale", places=7)
        assert not await till.does("revertsale", places=1)
        assert await till.does("directsale", places=97)
        assert not await till.does("directsale", places=1)
        _, group = await states(made)
        assert (group["locked"], group["sold"], group["available"]) == (3, 97, 0)
        (held_places,) = await made.sql("SELECT sum(quantity) FROM holds WHERE status = 'active'")
        assert held_places["sum"] == 3
        await assert_sound(made)

    run(database, check)


def test_a_lock_that_is_over_can_neither_be_sold_nor_unlocked(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        till = Till(made, "s-1")
        assert await till.does("lock", 0, 1, places=5)
        await made.advance_clock(899)
        assert await till.does("sale", 1, places=2)
        await made.advance_clock(2)
        assert not await till.does("sale", 0)
        assert not await till.does("unlock", 0)
        assert not await till.does("sale", places=1)
        seats, group = await states(made)
        assert seats[0] == ("ACTIVE", None)
        assert (group["locked"], group["sold"], group["available"]) == (0, 2, 98)
        assert await Till(made, "s-2").does("lock", 0, places=98)
        assert [m["verb"] for m in await seat_log(made, 0)] == ["hold", "expire", "hold"]
        assert await Till(made, "s-2").does("sale", 0)
        await assert_sound(made)
        assert await till.does("lock", 3)
        await made.advance_clock(901)
        assert await Till(made, "s-3").does("directsale", 3)  # what is over is ACTIVE
        assert [(m["verb"], m["version"]) for m in await seat_log(made, 3)] == [
            ("hold", 1),
            ("expire", 2),
            ("direct_sale", 3),
        ]
        await assert_sound(made)

    run(database, check)


def test_hold_types_are_those_of_the_organization_and_fit_the_state(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        await define_types(made)
        till = Till(made, "s-1")
        assert await till.does("lock", 0, holdType="COMP")
        assert await till.does("lock", 1, holdType="RESERVED")
        assert await till.does("lock", 2, holdType="PENCIL", places=2)
        lives = await made.sql("SELECT hold_type, extract(epoch FROM held_until - created_at)::int AS s FROM holds")
        assert {row["hold_type"]: row["s"] for row in lives} == {"COMP": 60, "RESERVED": None, "PENCIL": None}
        assert await till.does("sale", 0)  # keeps a type that is valid when sold
        assert await till.does("sale", 1)  # loses one that is not
        assert await till.does("sale", 2, holdType="PAID")
        assert await till.does("directsale", 3, holdType="COMP")
        seats, _ = await states(made)
        assert [seats[n] for n in range(4)] == [("SOLD", "COMP"), ("SOLD", None), ("SOLD", "PAID"), ("SOLD", "COMP")]
        assert await till.does("revertsale", 3)
        seats, _ = await states(made)
        assert seats[3] == ("ACTIVE", None)

        before = await contents(made)
        for call, hold_type in (
            ("lock", "NOPE"),
            ("lock", "PAID"),  # not valid for LOCKED
            ("sale", "NOPE"),
            ("sale", "PENCIL"),  # not valid for SOLD
            ("directsale", "PENCIL"),
            ("directsale", "PAID"),  # valid for SOLD, but may not skip LOCKED
            ("unlock", "CART"),
            ("revertsale", "COMP"),
        ):
            refused(await till.ask(call, 5, holdType=hold_type), 400, "invalid_request")
        assert await contents(made) == before

    run(database, check)


def test_input_that_makes_no_sense_is_400(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        seat, group = {"id": made.seats[0]["booking_id"]}, {"id": made.zones[0]["booking_id"], "capacity": 1}
        bodies: list[Any] = [
            {},
            [],
            {"sessionId": "s"},
            {"sessionId": "s", "seats": [], "groupOfSeats": []},
            {"seats": [seat]},
            {"sessionId": "", "seats": [seat]},
            {"sessionId": "s" * 201, "seats": [seat]},
            {"sessionId": "a\x00b", "seats": [seat]},
            {"sessionId": 7, "seats": [seat]},
            {"sessionId": "s", "seats": [seat, seat]},
            {"sessionId": "s", "groupOfSeats": [group, group]},
            {"sessionId": "s", "seats": [{"id": "1"}]},
            {"sessionId": "s", "seats": [{"id": 0}]},
            {"sessionId": "s", "seats": [{"id": -1}]},
            {"sessionId": "s", "seats": [{"id": 2**40}]},
            {"sessionId": "s", "seats": [1]},
            {"sessionId": "s", "groupOfSeats": [{"id": group["id"]}]},
            {"sessionId": "s", "groupOfSeats": [{**group, "capacity": 0}]},
            {"sessionId": "s", "groupOfSeats": [{**group, "capacity": -1}]},
            {"sessionId": "s", "seats": [seat], "colour": "red"},
        ]
        for call in CALLS:
            path = f"{BASE}/{call}?eventId={made.event_id}"
            for body in bodies if call == "lock" else bodies[:6]:
                refused(await made.post(path, body, made.api_key), 400, "invalid_request")
            answer = await made.client.post(path, content=b"{", headers=made.api_key)
            refused(answer, 400, "invalid_request")
            good = {"sessionId": "s", "seats": [seat]}
            for event in ("", "?eventId=7", "?eventId=", "?event_id=" + made.event_id):
                refused(await made.post(f"{BASE}/{call}{event}", good, made.api_key), 400, "invalid_request")
        refused(await made.client.get(f"{BASE}/state", headers=made.api_key), 400, "invalid_request")
        assert await made.sql("SELECT FROM holds") == []

    run(database, check)


def test_only_a_key_that_fits_opens_it(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        path = f"{BASE}/lock?eventId={made.event_id}"
        body = Till(made, "s").body(0)
        refused(await made.client.post(path, json=body), 401, "unauthorized")
        for headers in (
            {"X-API-Key": "nonsense"},
            {"X-API-Key": made.first.api_key[:-2] + ("aa" if not made.first.api_key.endswith("aa") else "bb")},
            made.admin,  # people have their own API
            await member(made),
            {**made.api_key, "X-Organization-ID": "00000000-0000-7000-8000-000000000000"},
        ):
            refused(await made.post(path, body, headers), 403, "forbidden")
            refused(await made.client.get(f"{BASE}/state?eventId={made.event_id}", headers=headers), 403, "forbidden")
        made_key = await made.post("/api/api-keys", {"name": "reader", "scopes": ["read"]})
        reader = {"X-API-Key": made_key.json()["data"]["secret"]}
        refused(await made.post(path, body, reader), 403, "forbidden")
        made_key = await made.post("/api/api-keys", {"name": "till", "scopes": ["booking"]})
        assert await Till(made, "s", {"X-API-Key": made_key.json()["data"]["secret"]}).does("lock", 0)

        tenant = {"X-API-Key": made.first.tenant_api_key or ""}
        refused(await made.post(path, body, tenant), 400, "invalid_request")  # for which organization?
        acting = {**tenant, "X-Organization-ID": str(made.first.organization_id)}
        assert await Till(made, "t", acting).does("lock", 1)
        stranger = await made.app.services.accounts.bootstrap("Elsewhere")
        answer = await made.post(path, body, {**tenant, "X-Organization-ID": str(stranger.organization_id)})
        assert answer.status_code in (403, 404), answer.text

    run(database, check)


def test_events_and_seats_must_be_there_and_on_sale(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        stranger = await made.app.services.accounts.bootstrap("Elsewhere")
        draft = await made.make_event(publish=False)
        archived = await made.make_event()
        for status in ("live", "archived"):
            await made.post(f"/api/events/{archived}/status", {"status": status})
        cancelled = await made.make_event()
        await made.post(f"/api/events/{cancelled}/status", {"status": "cancelled"})
        body = Till(made, "s").body(0)
        unknown = "00000000-0000-7000-8000-000000000000"
        for event, headers, status_code, code in (
            (unknown, made.api_key, 404, "ENTITY_NOT_FOUND"),
            (made.event_id, {"X-API-Key": stranger.api_key}, 404, "ENTITY_NOT_FOUND"),
            (archived, made.api_key, 410, "EVENT_ARCHIVED"),
            (draft, made.api_key, 422, "EVENT_NOT_PUBLISHED"),
            (cancelled, made.api_key, 422, "EVENT_NOT_PUBLISHED"),
        ):
            for call in CALLS:
                refused(await made.post(f"{BASE}/{call}?eventId={event}", body, headers), status_code, code)
            answer = await made.client.get(f"{BASE}/state?eventId={event}", headers=headers)
            refused(answer, status_code, code)
        for missing in ({"seats": [{"id": 99_999}]}, {"groupOfSeats": [{"id": 99_999, "capacity": 1}]}):
            for call in CALLS:
                path = f"{BASE}/{call}?eventId={made.event_id}"
                answer = await made.post(path, {**body, **missing}, made.api_key)
                assert refused(answer, 404, "ENTITY_NOT_FOUND")["ids"] == [99_999]
        assert await made.sql("SELECT FROM holds") == []

    run(database, check)


@pytest.mark.parametrize("call", ["lock", "directsale"])
def test_of_many_sessions_that_want_the_same_seats_one_gets_them(database: TestDatabase, call: str) -> None:
    async def check(made: Stage) -> None:
        tills = [Till(made, f"s-{n}") for n in range(12)]
        answers = await asyncio.gather(*(till.does(call, 0, 1, 2, places=90) for till in tills))
        assert sum(answers) == 1
        await assert_sound(made)

    run(database, check)


def test_a_native_hold_and_a_booking_lock_keep_each_other_out(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        till = Till(made, "s-1")
        assert await till.does("lock", 0)
        refused(await made.reserve(0, await member(made)), 409, "seat_held_by_another_user")
        held(await made.reserve(1, await member(made)))
        assert not await till.does("lock", 1)
        assert not await till.does("unlock", 1)
        assert not await till.does("sale", 1)
        once = {**made.api_key, "Idempotency-Key": "lock-1"}
        assert await Till(made, "s-2", once).does("lock", 2)
        assert await Till(made, "s-2", once).does("lock", 2)  # the first answer again
        refused(await Till(made, "s-2", once).ask("lock", 3), 422, "idempotency_key_reused")

    run(database, check)


def test_a_cancel_that_commits_first_wins_over_a_sale_under_way(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        till = Till(made, "s-1")
        assert await till.does("lock", 0, places=2, holdType="RESERVED")  # which a cancel does not give back
        before = await contents(made)
        connection = await asyncpg.connect(made.database.owner)
        try:
            async with connection.transaction():
                await connection.execute("SELECT own_event($1)", made.event_id)
                under_way = [
                    asyncio.create_task(till.ask("sale", 0)),
                    asyncio.create_task(till.ask("sale", places=2)),
                    asyncio.create_task(till.ask("directsale", 1)),
                    asyncio.create_task(till.ask("directsale", places=1)),
                    asyncio.create_task(till.ask("lock", 2)),
                    asyncio.create_task(till.ask("lock", places=1)),
                ]
                await asyncio.sleep(0.5)  # each has seen an event on sale, and waits
                assert not any(task.done() for task in under_way)
                await connection.execute("UPDATE events SET status = 'cancelled' WHERE id = $1", made.event_id)
        finally:
            await connection.close()
        answers = await asyncio.gather(*under_way)
        assert [answer.text for answer in answers[:4]] == ["false"] * 4
        for answer in answers[4:]:
            refused(answer, 422, "EVENT_NOT_PUBLISHED")
        assert await contents(made) == before

    run(database, check)
