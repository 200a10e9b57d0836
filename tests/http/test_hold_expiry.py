"""The end of a hold: by its clock, by the sweeper, by the event's cancelling; and writes that happen once only."""

import asyncio
import time
from typing import Any
from uuid import UUID

import asyncpg

from holdfast.accounts.principal import Role
from holdfast.insight.invariants import check_event
from holdfast.store.postgres.idempotency import lock_key
from holdfast.workers.expire_holds import ExpireHolds
from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.http.contents import contents, hold_row, member, seat_log, seat_row
from tests.http.test_holds import define_types, extend, release
from tests.http.test_reserve import held, refused, run
from tests.stage import Stage


async def assert_sound(made: Stage) -> None:
    """Seats, zones, holds and log of the event agree with one another."""
    verdict = await check_event(made.app.database, made.first.organization_id, UUID(made.event_id))
    assert [invariant for invariant in verdict if not invariant.ok] == []


# The clock ------------------------------------------------------------------------------------------------------------
def test_a_seat_whose_hold_is_over_is_taken_at_once_though_nobody_swept_it(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        first, second = await member(made), await member(made)
        old = held(await made.reserve(0, first))["hold_id"]
        places = held(await made.hold(first, ga=[{"zone_id": "pit", "quantity": 3}]))["holds"][0]["hold_id"]
        refused(await made.hold(second, ga=[{"zone_id": "pit", "quantity": 3}]), 409, "block_at_capacity")
        await made.advance_clock(298)
        refused(await made.reserve(0, second), 409, "seat_held_by_another_user")
        await made.advance_clock(3)
        assert (await made.seat(0))["state"] == "available"
        assert (await hold_row(made, old))["status"] == "active"  # nobody has been there yet
        refused(await extend(made, old, first), 409, "hold_expired")
        new = held(await made.reserve(0, second))["hold_id"]
        log = await seat_log(made, 0)
        assert [(m["verb"], m["old_state"], m["new_state"], m["version"]) for m in log] == [
            ("hold", "available", "held", 1),
            ("expire", "held", "available", 2),
            ("hold", "available", "held", 3),
        ]
        assert [str(m["hold_id"]) for m in log] == [old, old, new]
        assert log[1]["actor"] == "SYSTEM"
        assert (await seat_row(made, 0))["version"] == 3
        gone = await hold_row(made, old)
        assert (gone["status"], gone["ended_at"] is not None) == ("expired", True)
        refused(await extend(made, old, first), 409, "hold_expired")
        answer = await release(made, old, first)  # late, and without harm to the new owner
        assert (answer.status_code, answer.json()["data"]["status"]) == (200, "expired")
        refused(await made.reserve(0, first), 409, "seat_held_by_another_user")

        held(await made.hold(second, ga=[{"zone_id": "pit", "quantity": 5}]))
        assert (await hold_row(made, places))["status"] == "expired"
        (zone,) = await made.sql("SELECT held, version FROM event_zones")
        assert tuple(zone) == (5, 3)
        audited = await made.sql("SELECT entity_id FROM audit_entries WHERE action = 'seat_hold_expired' ORDER BY id")
        assert [str(entry["entity_id"]) for entry in audited] == [old, places]
        await assert_sound(made)

    run(database, check, config=theatre_config(rows=1, ga_capacity=5))


def test_the_owner_of_a_hold_that_is_over_can_take_the_seat_anew(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        buyer = await member(made)
        old = held(await made.reserve(0, buyer))["hold_id"]
        await made.advance_clock(301)
        new = held(await made.reserve(0, buyer))
        assert new["hold_id"] != old
        assert new["expires_in_seconds"] == 300
        await assert_sound(made)

    run(database, check)


# The sweeper ----------------------------------------------------------------------------------------------------------
def test_the_sweeper_frees_what_is_over_once_however_many_there_are(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        await define_types(made)
        buyer = await member(made)
        data = held(await made.hold(buyer, *range(5), ga=[{"zone_id": "pit", "quantity": 4}]))
        kept = held(await made.reserve(30, made.admin, holdType="COMP"))["hold_id"]
        sweeper = ExpireHolds(made.app.database)
        before = await contents(made)
        assert 0 < await sweeper.once() <= 1.0
        assert await contents(made) == before  # nothing is due yet
        await made.advance_clock(301)
        late = held(await made.reserve(20, await member(made)))["hold_id"]
        graceful = ExpireHolds(made.app.database, grace_s=30)
        await graceful.once()
        assert (await hold_row(made, data["holds"][0]["hold_id"]))["status"] == "active"  # its grace is not over
        await asyncio.gather(*(ExpireHolds(made.app.database, batch=2).once() for _ in range(4)))
        await sweeper.once()
        for hold in data["holds"]:
            row = await hold_row(made, hold["hold_id"])
            assert (row["status"], row["ended_at"] is not None) == ("expired", True)
        for n in range(5):
            assert [(m["verb"], m["version"]) for m in await seat_log(made, n)] == [("hold", 1), ("expire", 2)]
            seat = await seat_row(made, n)
            assert (seat["state"], seat["hold_id"], seat["held_until"], seat["locked_at"]) == ("available", *[None] * 3)
        (zone,) = await made.sql("SELECT held, sold FROM event_zones")
        assert tuple(zone) == (0, 0)
        for hold_id in (kept, late):
            assert (await hold_row(made, hold_id))["status"] == "active"
        (audited,) = await made.sql("SELECT count(*) FROM audit_entries WHERE action = 'seat_hold_expired'")
        assert audited["count"] == 6
        sent = await made.sql("SELECT * FROM outbox WHERE kind = 'SeatHoldExpired'")
        of_seats = [message for message in sent if message["ordinals"] is not None]
        freed = [pair for message in of_seats for pair in zip(message["ordinals"], message["versions"], strict=True)]
        assert sorted(freed) == [(n, 2) for n in range(5)]  # each told once, in however many messages
        (of_places,) = [message for message in sent if message["ordinals"] is None]
        assert (of_places["quantities"], of_places["zone_held"], of_places["zone_sold"]) == ([4], 0, 0)
        told = [hold_id for message in sent for hold_id in message["hold_ids"]]
        assert sorted(map(str, told)) == sorted(hold["hold_id"] for hold in data["holds"])
        assert {message["state"] for message in sent} == {"available"}
        after = await contents(made)
        await sweeper.once()
        assert await contents(made) == after
        await assert_sound(made)

    run(database, check)


def test_sweepers_and_buyers_at_the_same_instant_end_each_hold_once(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        first = [await member(made) for _ in range(4)]
        second = [await member(made) for _ in range(4)]
        for n in range(40):
            held(await made.reserve(n, first[n % 4]))
        await made.advance_clock(301)
        takers = asyncio.gather(*(made.reserve(n, second[n % 4]) for n in range(40)))
        await asyncio.gather(*(ExpireHolds(made.app.database, batch=5).once() for _ in range(4)))
        assert {answer.status_code for answer in await takers} == {201}
        for n in range(40):
            log = [(m["verb"], m["version"]) for m in await seat_log(made, n)]
            assert log == [("hold", 1), ("expire", 2), ("hold", 3)]
        await assert_sound(made)

    run(database, check)


# Cancelling the event -------------------------------------------------------------------------------------------------
def test_cancelling_gives_back_what_the_engine_may_give_back(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        await define_types(made, {"COMP": {"releaseApi": "ADMIN"}, "CLUB": {"releaseApi": "ADMIN,SYSTEM"}})
        buyer = await member(made)
        cart = held(await made.hold(buyer, 0, ga=[{"zone_id": "pit", "quantity": 2}]))["holds"]
        club = held(await made.reserve(1, made.admin, holdType="CLUB"))["hold_id"]
        comp = held(await made.reserve(2, made.admin, holdType="COMP"))["hold_id"]
        answer = await made.post(f"/api/events/{made.event_id}/status", {"status": "cancelled"})
        assert answer.status_code == 200
        for hold_id in (cart[0]["hold_id"], cart[1]["hold_id"], club):
            assert (await hold_row(made, hold_id))["status"] == "cancelled"
        assert (await hold_row(made, comp))["status"] == "active"
        assert [(m["verb"], m["actor"]) for m in await seat_log(made, 0)] == [
            ("hold", "CUSTOMER"),
            ("release", "SYSTEM"),
        ]
        (zone,) = await made.sql("SELECT held FROM event_zones")
        assert zone["held"] == 0
        refused(await made.reserve(3, buyer), 400, "event_unavailable")
        refused(await made.hold(buyer, ga=[{"zone_id": "pit", "quantity": 1}]), 400, "event_unavailable")
        refused(await made.hold(made.admin, 3, holdType="COMP"), 400, "event_unavailable")
        await assert_sound(made)

    run(database, check)


def test_a_cancel_among_fifty_reserves_leaves_no_hold_behind(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        buyers = [await made.buyer() for _ in range(10)]
        reserves = [asyncio.create_task(made.reserve(n % 40, buyers[n % 10])) for n in range(25)]
        await asyncio.sleep(0.01)
        cancel = asyncio.create_task(made.post(f"/api/events/{made.event_id}/status", {"status": "cancelled"}))
        reserves += [asyncio.create_task(made.reserve(n % 40, buyers[n % 10])) for n in range(25, 50)]
        answers = await asyncio.gather(*reserves)
        assert (await cancel).status_code == 200
        granted = [answer.json()["data"]["hold_id"] for answer in answers if answer.status_code in (200, 201)]
        for answer in answers:
            if answer.status_code not in (200, 201):
                assert answer.json()["error"] in ("event_unavailable", "seat_held_by_another_user"), answer.text
        for hold_id in granted:
            assert (await hold_row(made, hold_id))["status"] == "cancelled"
        assert await made.sql("SELECT FROM holds WHERE status = 'active'") == []
        assert await made.sql("SELECT FROM event_seats WHERE state <> 'available'") == []
        for buyer in buyers[:3]:
            refused(await made.reserve(39, buyer), 400, "event_unavailable")
        await assert_sound(made)

    run(database, check)


# Once only ------------------------------------------------------------------------------------------------------------
def test_a_key_and_a_body_seen_before_get_the_answer_they_got_before(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        buyer = await member(made)
        key = {**buyer, "Idempotency-Key": "order-1"}
        first = await made.reserve(0, key)
        assert held(first)
        await made.advance_clock(30)
        before = await contents(made)
        again = await made.reserve(0, key)
        assert (again.status_code, again.json()) == (201, first.json())
        refused(await made.reserve(0, key, source="scanner"), 422, "idempotency_key_reused")
        refused(await made.reserve(1, key), 422, "idempotency_key_reused")
        refused(await made.hold(key, 0), 422, "idempotency_key_reused")
        assert await contents(made) == before
        held(await made.reserve(1, {**await member(made), "Idempotency-Key": "order-1"}))  # another's key is another

        many = {**buyer, "Idempotency-Key": "order-2"}
        data = held(await made.hold(many, 2, 3, ga=[{"zone_id": "pit", "quantity": 2}]))
        assert held(await made.hold(many, 2, 3, ga=[{"zone_id": "pit", "quantity": 2}])) == data
        (zone,) = await made.sql("SELECT held FROM event_zones")
        assert zone["held"] == 2
        # A refusal does no work and is not remembered: once the seat is free the same key goes through.
        waiting = {**await member(made), "Idempotency-Key": "order-3"}
        refused(await made.reserve(0, waiting), 409, "seat_held_by_another_user")
        gone = {**buyer, "Idempotency-Key": "order-4"}
        mine = first.json()["data"]["hold_id"]
        assert (await release(made, mine, gone)).json() == (await release(made, mine, gone)).json()
        held(await made.reserve(0, waiting))
        for bad in ("", "x" * 256, "tab\there"):
            refused(await made.reserve(5, {**buyer, "Idempotency-Key": bad}), 400, "invalid_request")

    run(database, check)


def test_the_same_key_at_the_same_time_makes_one_hold(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        key = {**await member(made), "Idempotency-Key": "pressed-twice"}
        answers = await asyncio.gather(*(made.hold(key, 0, 1) for _ in range(12)))
        assert {answer.status_code for answer in answers} <= {201, 409}
        for answer in answers:
            if answer.status_code == 409:
                refused(answer, 409, "idempotency_key_in_flight")
        assert len({answer.text for answer in answers if answer.status_code == 201}) == 1
        assert len(await made.sql("SELECT FROM holds")) == 2

        who = await made.client.get("/api/me", headers=key)
        subject = f"user:{who.json()['data']['user_id']}"
        slow = {**key, "Idempotency-Key": "slow"}
        connection = await asyncpg.connect(made.database.owner)
        try:
            async with connection.transaction():  # somebody else is at work on this key
                name = lock_key("idempotency", made.first.organization_id, subject, "slow")
                await connection.execute("SELECT pg_advisory_xact_lock($1)", name)
                refused(await made.reserve(5, slow), 409, "idempotency_key_in_flight")
        finally:
            await connection.close()
        held(await made.reserve(5, slow))

    run(database, check)


def test_after_a_day_a_key_is_forgotten_and_the_work_is_done_anew(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        buyer = await member(made)
        first = held(await made.reserve(0, {**buyer, "Idempotency-Key": "daily"}))
        who = (await made.client.get("/api/me", headers=buyer)).json()["data"]["user_id"]
        await made.advance_clock(24 * 3600 + 5)
        issue = made.app.services.accounts.issue_token
        fresh = await issue(made.first.organization_id, Role.CUSTOMER, user_id=UUID(who))
        headers = {"Authorization": f"Bearer {fresh.token}", "Idempotency-Key": "daily"}
        second = held(await made.reserve(0, headers))
        assert second["hold_id"] != first["hold_id"]
        third = await made.reserve(0, headers)
        assert third.json()["data"] == second

    run(database, check)


# Too many at once -----------------------------------------------------------------------------------------------------
def test_a_writer_with_too_much_to_do_says_so_quickly(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        buyers = [await made.buyer() for _ in range(30)]
        for buyer in buyers:
            await made.client.get("/api/me", headers=buyer)
        connection = await asyncpg.connect(made.database.owner)
        waiting: list[asyncio.Task[Any]] = []
        try:
            async with connection.transaction():  # the event is being changed: whoever moves seats must wait
                await connection.execute("SELECT own_event($1)", made.event_id)
                for n, buyer in enumerate(buyers[:20]):
                    waiting.append(asyncio.create_task(made.reserve(n, buyer)))
                    await asyncio.sleep(0.01)
                began = time.monotonic()
                answer = await made.reserve(30, buyers[25])
                assert time.monotonic() - began < 1.0
                refused(answer, 503, "overloaded")
                assert int(answer.headers["retry-after"]) >= 1
        finally:
            await connection.close()
        answers = await asyncio.gather(*waiting)
        assert {answer.status_code for answer in answers} == {201, 503}
        granted = [answer for answer in answers if answer.status_code == 201]
        assert len(await made.sql("SELECT FROM holds")) == len(granted)
        held(await made.reserve(35, buyers[29]))
        await assert_sound(made)

    run(database, check, writer_queue=1, writer_connections=1)
