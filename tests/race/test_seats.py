"""Many buyers at the same seats: one gets each, carts are whole, limits are exact. Each race with its control."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from uuid import UUID

from holdfast.holds.answers import Placement
from holdfast.http.problem import status_of
from holdfast.kernel.errors import RateLimited
from holdfast.kernel.ids import new_id
from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.race.ground import (
    SEAT_IS_FREE,
    Answer,
    Change,
    Ground,
    all_at_once,
    changed,
    deadlocks,
    ground,
    without_seat_state,
)


# One seat -----------------------------------------------------------------------------------------------------------
async def stampede(g: Ground, buyers: int) -> list[str]:
    """Everybody presses the same seat, half of them on each instance. What was wrong with the outcome."""
    guests = await g.guests(buyers)
    path = f"/api/events/{g.event.id}/seats/{g.event.seats[0]}/reserve"
    answers: list[Answer] = await all_at_once(g.post(n, path, headers) for n, headers in enumerate(guests))
    given = [UUID(answer.body["data"]["hold_id"]) for answer in answers if answer.status == 201]
    faults = [f"{len(given)} buyers were given the seat"] if len(given) != 1 else []
    for answer in answers:
        if answer.status == 201:
            continue
        body = answer.body
        clean = (answer.status, body.get("error")) == (409, "seat_held_by_another_user")
        if not clean or not 0 < body["expires_in"] <= 300:
            faults.append(f"a buyer was answered {answer.status} {body}")
    statuses = await g.statuses()
    faults += [f"hold {h} was given and is {statuses.get(h)}" for h in given if statuses.get(h) != "active"]
    return faults + await g.faults(given)


def test_of_five_hundred_buyers_one_gets_the_seat(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, theatre_config(1, 2), serve=True) as g:
            assert await stampede(g, 500) == []

    asyncio.run(run())


def test_control_without_the_state_in_the_update_several_get_the_seat(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, theatre_config(1, 2), serve=True, control=without_seat_state()) as g:
            assert "buyers were given the seat" in (await stampede(g, 500))[0]

    asyncio.run(run())


# Carts --------------------------------------------------------------------------------------------------------------
SEATS = 32
CARTS = 200
CART = 4
CARTS_HALL = theatre_config(4, SEATS // 4)
GIVE_BACK = "IF v_missed AND v_several THEN"
AS_GIVEN = "AND c.n <> ALL (v_later)) c"
# A pause before each seat, so that two batches are among the same seats at the same time.
SEAT_BY_SEAT = (SEAT_IS_FREE, f"{SEAT_IS_FREE} AND pg_sleep(0.001 + 0 * s.ordinal)::text IS NOT NULL\n")


def overlapping_carts() -> list[list[int]]:
    """Every other one is named backwards."""
    dice = random.Random(4)
    starts = [dice.randrange(SEATS) for _ in range(CARTS)]
    carts = [[(start + 3 * i) % SEATS for i in range(CART)] for start in starts]
    return [cart if n % 2 else cart[::-1] for n, cart in enumerate(carts)]


async def ask_over_http(g: Ground, carts: list[list[int]]) -> list[Answer]:
    guests = await g.guests(CARTS)
    path = f"/api/events/{g.event.id}/holds"
    bodies = [{"seats": [str(g.event.seats[seat]) for seat in cart]} for cart in carts]
    return await all_at_once(g.post(n, path, guests[n], body) for n, body in enumerate(bodies))


async def ask_services(g: Ground, carts: list[list[int]]) -> list[Answer]:
    """The same without the servers between: then both instances come with full batches at the same instant."""
    answers = await all_at_once(g.hold(g.apps[n % 2], g.buyer(), cart) for n, cart in enumerate(carts))
    return [
        Answer(201, {"data": {"holds": [{"hold_id": str(hold.hold_id)} for hold in answer.holds]}})
        if isinstance(answer, Placement)
        else Answer(status_of(answer), answer.detail)
        for answer in answers
    ]


async def race_for_carts(g: Ground, ask: Callable[[Ground, list[list[int]]], Awaitable[list[Answer]]]) -> list[str]:
    """Through two instances. What was wrong with the outcome."""
    answers = await ask(g, overlapping_carts())
    faults = [f"a buyer was answered {a.status} {a.body}" for a in answers if a.status not in (201, 409)]
    active = "SELECT user_id FROM holds WHERE event_id = $1 AND status = 'active'"
    owned = Counter(row["user_id"] for row in await g.sql(active, g.event.id))
    faults += [f"a buyer owns {count} seats of a cart of {CART}" for count in owned.values() if count != CART]
    won = sum(a.status == 201 for a in answers)
    if won != len(owned):
        faults.append(f"{won} buyers were given their cart and {len(owned)} own seats")
    given = [UUID(h["hold_id"]) for a in answers if a.status == 201 for h in a.body["data"]["holds"]]
    if not given:
        faults.append("nobody got a cart")
    return faults + await g.faults(given)


def test_overlapping_carts_in_opposite_orders_are_whole(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, CARTS_HALL, serve=True) as g:
            assert await race_for_carts(g, ask_over_http) == []
        assert await deadlocks(database) == 0

    asyncio.run(run())


def test_control_without_giving_back_there_are_half_carts(database: TestDatabase) -> None:
    async def run() -> None:
        control = [changed("hold_seats", (GIVE_BACK, "IF false THEN"))]
        async with ground(database, CARTS_HALL, serve=True, control=control) as g:
            found = await race_for_carts(g, ask_over_http)
            assert any(f"seats of a cart of {CART}" in fault for fault in found), found

    asyncio.run(run())


def test_control_without_the_state_in_the_update_carts_lose_seats(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, CARTS_HALL, control=without_seat_state()) as g:
            assert await race_for_carts(g, ask_services) != []

    asyncio.run(run())


async def deadlocks_among_carts(database: TestDatabase, *changes: Change) -> int:
    control = [
        changed("hold_seats", SEAT_BY_SEAT, *changes),
        f"ALTER DATABASE {database.name} SET deadlock_timeout = '20ms'",
    ]
    async with ground(database, CARTS_HALL, control=control) as g:
        for _ in range(3):
            g.event = await g.new_event(CARTS_HALL)
            assert await race_for_carts(g, ask_services) == []
    return await deadlocks(database)


def test_overlapping_carts_never_deadlock(database: TestDatabase) -> None:
    assert asyncio.run(deadlocks_among_carts(database)) == 0


def test_control_without_an_order_of_locking_there_are_deadlocks(database: TestDatabase) -> None:
    # And they are retried: the carts are whole all the same.
    anyhow = (AS_GIVEN, "AND c.n <> ALL (v_later) ORDER BY md5(c.hold_id::text)) c")
    for _ in range(8):  # whether two of them meet is chance
        if asyncio.run(deadlocks_among_carts(database, anyhow)) > 0:
            return
    raise AssertionError("nobody ever waited for each other")


# Limits -------------------------------------------------------------------------------------------------------------
LIMIT = 10
COUNTED = "  WITH taken AS (\n    UPDATE event_seats s\n"
SLOWLY = (
    COUNTED,
    f"  PERFORM pg_sleep(0.01);\n{COUNTED}",
)  # between the count and the taking, so that others can get in
USER_LOCKS = "PERFORM pg_advisory_xact_lock(k) FROM unnest(p_locks) k;"


async def one_user_everywhere(g: Ground) -> list[str]:
    """Forty reserves of one user for as many seats, through two instances. What was wrong with the outcome."""
    me = g.buyer(new_id())
    event = await g.new_event(theatre_config(4, 10))
    answers = await all_at_once(g.hold(g.apps[n % 2], me, [n], event=event) for n in range(40))
    given = [a.holds[0].hold_id for a in answers if isinstance(a, Placement)]
    faults = [f"{len(given)} holds were given where {LIMIT} are allowed"] if len(given) != LIMIT else []
    for answer in answers:
        if isinstance(answer, Placement):
            continue
        if not isinstance(answer, RateLimited) or not 0 < answer.facts["retry_after_s"] <= 300:
            faults.append(f"a reserve was answered {answer!r}")
    return faults + await g.faults(given, event)


def test_a_users_limit_is_exact_across_instances(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, theatre_config(4, 10), control=[changed("hold_seats", SLOWLY)]) as g:
            for _ in range(3):
                assert await one_user_everywhere(g) == []

    asyncio.run(run())


def test_control_without_the_users_lock_the_limit_leaks(database: TestDatabase) -> None:
    async def run() -> None:
        control = [changed("hold_seats", SLOWLY, (USER_LOCKS, "NULL;"))]
        async with ground(database, theatre_config(4, 10), control=control) as g:
            # Two counts must meet at the tenth hold, which they do in most rounds, not in each.
            found = [fault for _ in range(8) for fault in await one_user_everywhere(g)]
            assert any(f"where {LIMIT} are allowed" in fault for fault in found)

    asyncio.run(run())


def test_a_users_limit_is_free_again_after_the_window(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, theatre_config(4, 10), instances=1) as g:
            me = g.buyer(new_id())
            answers = [await g.hold(g.apps[0], me, [n]) for n in range(LIMIT + 1)]
            refusal = answers[LIMIT]
            assert isinstance(refusal, RateLimited)
            await g.pass_time(refusal.facts["retry_after_s"])
            assert isinstance(await g.hold(g.apps[0], me, [LIMIT]), Placement)

    asyncio.run(run())


# Failures the database asks to be tried again ------------------------------------------------------------------------
def failing(times: int, code: str) -> list[str]:
    """A trigger that fails the first so many batches, as a deadlock does. A sequence is not rolled back with them."""
    return [
        "CREATE SEQUENCE test_failures",
        f"""
        CREATE FUNCTION test_fail() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
        BEGIN
          IF nextval('test_failures') <= {times} THEN
            RAISE EXCEPTION 'made to fail' USING ERRCODE = '{code}';
          END IF;
          RETURN NULL;
        END $$
        """,
        "CREATE TRIGGER test_fail AFTER INSERT ON holds FOR EACH STATEMENT EXECUTE FUNCTION test_fail()",
    ]


def test_a_deadlock_or_serialization_failure_is_not_seen_by_the_buyer(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, theatre_config(4, 10, ga_capacity=10), instances=1, serve=True) as g:
            for code, seat, body in (
                ("40P01", 0, {}),
                ("40001", 1, {}),
                ("40P01", 2, {"ga": [{"zone_id": "pit", "quantity": 2}]}),
            ):
                for statement in (
                    "DROP TRIGGER IF EXISTS test_fail ON holds",
                    "DROP FUNCTION IF EXISTS test_fail",
                    "DROP SEQUENCE IF EXISTS test_failures",
                    *failing(3, code),
                ):
                    await g.owner.execute(statement)
                (guest,) = await g.guests(1)
                wanted = {"seats": [str(g.event.seats[seat])], **body}
                answer = await g.post(0, f"/api/events/{g.event.id}/holds", guest, wanted)
                assert answer.status == 201, answer.body
                (tries,) = await g.sql("SELECT last_value FROM test_failures")
                assert tries["last_value"] >= 4
            assert await g.faults() == []

    asyncio.run(run())


def test_after_every_retry_the_answer_is_500_and_nothing_has_changed(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(
            database, theatre_config(1, 4), instances=1, serve=True, control=failing(1_000_000, "40P01")
        ) as g:
            (guest,) = await g.guests(1)
            path = f"/api/events/{g.event.id}/seats/{g.event.seats[0]}/reserve"
            answer = await g.post(0, path, guest)
            assert (answer.status, answer.body["error"]) == (500, "seat_reservation_failed")
            (row,) = await g.sql(
                """
                SELECT (SELECT count(*) FROM holds) AS holds, (SELECT count(*) FROM seat_state_events) AS moves,
                  (SELECT count(*) FROM audit_entries WHERE action = 'seat_reserved') AS audited,
                  (SELECT count(*) FROM outbox WHERE kind = 'SeatReserved') AS messages,
                  (SELECT count(*) FROM event_seats WHERE state <> 'available' OR version > 0) AS seats
                """
            )
            assert set(row.values()) == {0}
            await g.owner.execute("DROP TRIGGER test_fail ON holds")
            assert (await g.post(0, path, guest)).status == 201

    asyncio.run(run())
