"""Checkouts at the instants where something else wants the same hold: one of the two has it. With controls."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

import pytest

from holdfast.app import Application
from holdfast.checkout.answers import CheckoutView, Opened
from holdfast.holds import service as holds_service
from holdfast.holds.answers import HoldView, Placement
from holdfast.kernel.errors import HoldInCheckout, Refusal
from holdfast.workers.expire_checkouts import ExpireCheckouts
from holdfast.workers.expire_holds import ExpireHolds
from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.race.ground import Ground, all_at_once, changed, ground, until_seen

SEATS = 60
HALL = theatre_config(4, SEATS // 4, ga_capacity=100)
OVERRIDES = {"overrides": {"orphan_avoidance_strict": False, "max_holds_per_user": None}}
BEATING = {"overrides": {**OVERRIDES["overrides"], "checkout_heartbeat": True, "checkout_minutes": 1}}
APART = """
SELECT h.ordinal, h.held_until, s.held_until AS seat, c.expires_at, c.heartbeat_s, h.status::text,
  (SELECT count(*) FROM checkout_lines l WHERE l.hold_id = h.id AND l.dropped_at IS NULL)::integer AS kept
FROM holds h LEFT JOIN checkouts c ON c.id = h.checkout_id
LEFT JOIN event_seats s ON s.event_id = h.event_id AND s.hold_id = h.id
WHERE h.event_id = $1
"""


async def apart(g: Ground) -> list[str]:
    """Where a hold, its seat and its session do not agree, or a hold is in two sessions."""
    faults: list[str] = []
    for row in await g.sql(APART, g.event.id):
        if row["kept"] > 1:
            faults.append(f"the hold of seat {row['ordinal']} is in {row['kept']} checkouts")
        if row["status"] == "active" and row["ordinal"] is not None and row["seat"] != row["held_until"]:
            faults.append(f"seat {row['ordinal']} ends at {row['seat']}, its hold at {row['held_until']}")
        if row["expires_at"] is None or row["held_until"] is None:
            continue
        if row["held_until"] > row["expires_at"]:
            faults.append(f"the hold of seat {row['ordinal']} outlives its session")
        if row["heartbeat_s"] is None and row["held_until"] != row["expires_at"]:
            faults.append(f"the hold of seat {row['ordinal']} and its session end at different times")
    return faults + await g.faults()


async def one_each(g: Ground, **event: Any) -> list[UUID]:
    """A hold on each seat of a new event, all one API key's, by ordinal."""
    g.event = await g.new_event(HALL, **{**OVERRIDES, **event})
    placed = await g.hold(g.apps[0], g.api, range(SEATS))
    assert isinstance(placed, Placement), placed
    return [hold.hold_id for hold in sorted(placed.holds, key=lambda h: g.event.seats.index(h.seat_id or UUID(int=0)))]


async def opening(g: Ground, app: Application, hold_ids: Sequence[UUID]) -> Opened | Refusal:
    try:
        return await app.services.checkouts.open(g.api, g.event.id, hold_ids, "api")
    except Refusal as refusal:
        return refusal


async def sweeping(g: Ground, app: Application, stop: asyncio.Event) -> None:
    holds, checkouts = ExpireHolds(app.database, batch=7), ExpireCheckouts(app.database, batch=3)
    while not stop.is_set():
        await holds.sweep(g.organization_id)
        await checkouts.once()
        await asyncio.sleep(0)


# Two checkouts ---------------------------------------------------------------------------------------------------------
FREE = " AND h.checkout_id IS NOT DISTINCT FROM p_from"


async def two_checkouts(g: Ground) -> list[str]:
    """Each hold is wanted by two checkouts at once, each of which wants a second one too."""
    holds = await one_each(g)
    pairs = [(holds[n], holds[(n + 1) % SEATS]) for n in range(SEATS)]
    answers = await all_at_once(opening(g, g.apps[n % 2], pair) for n, pair in enumerate(pairs))
    faults = [
        f"a checkout was answered {answer!r}"
        for answer in answers
        if not isinstance(answer, Opened | HoldInCheckout) and getattr(answer, "code", "") != "no_holds"
    ]
    wanted = [pair for pair, answer in zip(pairs, answers, strict=True) if isinstance(answer, Opened)]
    given = [hold for pair in wanted for hold in pair]
    if len(given) != len(set(given)):
        faults.append("a hold was given to two checkouts")
    if not wanted:
        faults.append("nobody got anything")
    return faults + await apart(g)


def test_a_hold_enters_one_checkout_of_two(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, HALL) as g:
            for _ in range(2):
                assert await two_checkouts(g) == []

    asyncio.run(run())


def test_control_without_the_condition_a_hold_enters_two(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, HALL, control=[changed("retime_holds", (FREE, ""))]) as g:
            found = await until_seen(lambda: two_checkouts(g))
            assert any("in 2 checkouts" in fault for fault in found), found

    asyncio.run(run())


# Against the sweeper ---------------------------------------------------------------------------------------------------
class NoRace(Exception):
    """All were too early or all too late."""


async def spread(eve_s: float, act: Callable[[int], Awaitable[Any]]) -> list[Any]:
    """Evenly, from `eve_s` before the end until as long after it."""

    async def one(n: int) -> Any:
        await asyncio.sleep(2 * eve_s * ((n * 37) % SEATS) / SEATS)
        return await act(n)

    return await asyncio.gather(*[one(n) for n in range(SEATS)])


async def met(g: Ground, race: Callable[[Ground, float], Awaitable[list[str]]]) -> list[str]:
    for eve_s in (0.3, 0.8, 2.0, 4.0):
        try:
            return await race(g, eve_s)
        except NoRace:
            continue
    raise NoRace


REVIVED = """
SELECT count(*) FROM outbox o JOIN holds h ON h.id = ANY (o.hold_ids)
WHERE o.event_id = $1 AND o.kind = 'SeatHoldExtended' AND o.at > h.created_at + interval '300 s'
"""


async def opened_at_the_end(g: Ground, eve_s: float, sweepers: int = 2) -> list[str]:
    holds = await one_each(g)
    await g.to_the_eve(eve_s)
    stop = asyncio.Event()
    tasks = [asyncio.create_task(sweeping(g, app, stop)) for app in g.apps[:sweepers]]
    answers = await spread(eve_s, lambda n: opening(g, g.apps[n % 2], [holds[n]]))
    stop.set()
    await asyncio.gather(*tasks)
    got = [isinstance(answer, Opened) for answer in answers]
    if not 3 < sum(got) < SEATS - 3:
        raise NoRace
    await ExpireHolds(g.apps[0].database).sweep(g.organization_id)
    statuses = await g.statuses()
    faults = [
        f"seat {n}: {answers[n]!r}, and its hold is {statuses[hold]}"
        for n, hold in enumerate(holds)
        if statuses[hold] != ("active" if got[n] else "expired")
    ]
    faults += [f"answered {a!r}" for a in answers if not isinstance(a, Opened) and a.code != "holds_expired"]
    (revived,) = await g.sql(REVIVED, g.event.id)
    if revived["count"]:
        faults.append(f"{revived['count']} holds entered a checkout after their end")
    return faults + await apart(g)


def test_a_hold_at_its_end_enters_a_checkout_or_is_swept(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, HALL) as g:
            assert await met(g, opened_at_the_end) == []

    asyncio.run(run())


ALIVE = " AND (s.held_until IS NULL OR s.held_until > holdfast_now())"
STILL = "\n      AND (h.held_until IS NULL OR h.held_until > v_now)"


def test_control_without_the_end_in_the_condition_a_hold_enters_after_it(database: TestDatabase) -> None:
    async def run() -> None:
        # The service looks first, and is right almost always: the pause gives it time to be wrong.
        late = changed(
            "set_hold_ends", (ALIVE, ""), ("  WITH kept AS (\n", "  PERFORM pg_sleep(0.05);\n  WITH kept AS (\n")
        )
        control = [late, changed("retime_holds", (STILL, ""))]
        async with ground(database, HALL, control=control) as g:
            found = await met(g, lambda g, eve_s: opened_at_the_end(g, eve_s, sweepers=0))
            assert any("after their end" in fault for fault in found), found

    asyncio.run(run())


# Against release -------------------------------------------------------------------------------------------------------
async def opened_and_released(g: Ground) -> list[str]:
    buyer = g.buyer()
    g.event = await g.new_event(HALL, overrides={**OVERRIDES["overrides"], "max_seats_per_booking": SEATS})
    placed = await g.hold(g.apps[0], buyer, range(SEATS))
    assert isinstance(placed, Placement), placed
    holds = [hold.hold_id for hold in placed.holds]

    async def open_(app: Application, hold_id: UUID) -> Opened | Refusal:
        try:
            return await app.services.checkouts.open(buyer, g.event.id, [hold_id], "web")
        except Refusal as refusal:
            return refusal

    calls = [open_(g.apps[0], hold_id) for hold_id in holds]
    calls += [g.apps[1].services.holds.release_hold(buyer, hold_id) for hold_id in holds]  # type: ignore[misc]
    answers = await all_at_once(calls)
    opened, released = answers[:SEATS], answers[SEATS:]
    faults = [
        f"a release was answered {r!r}" for r in released if not isinstance(r, HoldView) or r.status != "cancelled"
    ]
    faults += [f"answered {a!r}" for a in opened if not isinstance(a, Opened) and a.code != "holds_expired"]
    rows = await g.sql("SELECT FROM checkout_lines l JOIN holds h ON h.id = l.hold_id WHERE l.dropped_at IS NULL")
    if rows:
        faults.append(f"{len(rows)} holds were given back by their owner and are still lines of a checkout")
    return faults + await apart(g)


def test_what_its_owner_gives_back_is_no_line_of_a_checkout(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, HALL) as g:
            for _ in range(2):
                assert await opened_and_released(g) == []

    asyncio.run(run())


def test_control_a_release_that_does_not_look_again_leaves_a_line(
    database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        monkeypatch.setattr(holds_service, "require_same", lambda before, after: None)
        async with ground(database, HALL) as g:
            found = await until_seen(lambda: opened_and_released(g), tries=20)
            assert any("still lines" in fault for fault in found), found

    asyncio.run(run())


# Against extending -----------------------------------------------------------------------------------------------------
async def opened_and_extended(g: Ground) -> list[str]:
    buyer = g.buyer()
    fields = {**OVERRIDES["overrides"], "max_seats_per_booking": SEATS, "max_hold_minutes": 90, "checkout_minutes": 1}
    g.event = await g.new_event(HALL, overrides=fields)
    placed = await g.hold(g.apps[0], buyer, range(SEATS))
    assert isinstance(placed, Placement), placed
    await g.pass_time(30)  # there is something to extend

    async def ask(work: Any) -> Any:
        try:
            return await work
        except Refusal as refusal:
            return refusal

    holds = [hold.hold_id for hold in placed.holds]
    calls = [ask(g.apps[0].services.checkouts.open(buyer, g.event.id, [hold_id], "web")) for hold_id in holds]
    calls += [ask(g.apps[1].services.holds.extend_hold(buyer, hold_id)) for hold_id in holds]
    answers = await all_at_once(calls)
    faults = [f"answered {a!r}" for a in answers[:SEATS] if not isinstance(a, Opened)]
    faults += [f"answered {a!r}" for a in answers[SEATS:] if not isinstance(a, HoldView | HoldInCheckout)]
    return faults + await apart(g)


def test_a_hold_that_is_extended_as_it_enters_a_checkout_ends_with_it(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, HALL) as g:
            for _ in range(2):
                assert await opened_and_extended(g) == []

    asyncio.run(run())


def test_control_an_extension_that_does_not_look_at_checkouts_makes_two_clocks(database: TestDatabase) -> None:
    async def run() -> None:
        blind = changed("extend_hold", (" AND h.checkout_id IS NULL;", ";"))
        async with ground(database, HALL, control=[blind]) as g:
            found = await until_seen(lambda: opened_and_extended(g))
            assert any("outlives its session" in fault for fault in found), found

    asyncio.run(run())


# Heartbeats at the session's end ---------------------------------------------------------------------------------------
async def beaten_at_the_end(g: Ground, eve_s: float) -> list[str]:
    holds = await one_each(g, **BEATING)
    for hold in holds:
        assert isinstance(await opening(g, g.apps[0], [hold]), Opened)
    rows = await g.sql("SELECT id FROM checkouts WHERE event_id = $1 ORDER BY expires_at", g.event.id)
    (row,) = await g.sql(
        "SELECT extract(epoch FROM min(expires_at) - holdfast_now())::float8 AS left FROM checkouts WHERE event_id = $1",
        g.event.id,
    )
    await g.pass_time(row["left"] - eve_s)
    stop = asyncio.Event()
    tasks = [asyncio.create_task(sweeping(g, app, stop)) for app in g.apps]

    async def beat(n: int) -> CheckoutView | Refusal:
        try:
            return await g.apps[n % 2].services.checkouts.heartbeat(g.api, rows[n]["id"])
        except Refusal as refusal:
            return refusal

    answers = await spread(eve_s, beat)
    stop.set()
    await asyncio.gather(*tasks)
    faults = [f"answered {a!r}" for a in answers if isinstance(a, Refusal) and a.code != "checkout_expired"]
    return faults + await apart(g)


def test_a_heartbeat_at_the_sessions_end_carries_no_hold_past_it(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, HALL) as g:
            assert await beaten_at_the_end(g, 0.8) == []

    asyncio.run(run())


def test_control_without_the_sessions_end_in_the_reckoning_holds_outlive_it(database: TestDatabase) -> None:
    async def run() -> None:
        boundless = """
            CREATE OR REPLACE FUNCTION checkout_hold_end(p_expires_at timestamptz, p_heartbeat_s integer, p_now timestamptz)
            RETURNS timestamptz LANGUAGE sql IMMUTABLE RETURN
              CASE WHEN p_heartbeat_s IS NULL THEN p_expires_at ELSE p_now + make_interval(secs => p_heartbeat_s) END
        """
        async with ground(database, HALL, control=[boundless]) as g:
            assert any("outlives its session" in fault for fault in await beaten_at_the_end(g, 0.8))

    asyncio.run(run())


# Several sweepers ------------------------------------------------------------------------------------------------------
SKIP = " FOR UPDATE SKIP LOCKED\n"
STILL_LIVE = "\n    WHERE c.organization_id = p_org AND c.id = due.id AND c.status IN ('open', 'paying')\n"


async def several_sweepers(g: Ground) -> list[str]:
    for hold in await one_each(g):
        assert isinstance(await opening(g, g.apps[0], [hold]), Opened)
    await g.pass_time(1801)
    sweepers = [ExpireCheckouts(app.database, batch=5) for app in g.apps for _ in range(3)]
    await all_at_once(sweeper.once() for sweeper in sweepers)
    query = """
        SELECT (SELECT count(*) FROM outbox WHERE event_id = $1 AND kind = 'CheckoutExpired') AS told,
          (SELECT count(*) FROM audit_entries WHERE event_id = $1 AND action = 'checkout_expired') AS audited,
          (SELECT count(*) FROM checkouts WHERE event_id = $1 AND status = 'expired') AS expired
    """
    (row,) = await g.sql(query, g.event.id)
    return [] if tuple(row) == (SEATS,) * 3 else [f"{dict(row)} of {SEATS} sessions"]


def test_several_sweepers_end_each_session_once(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, HALL) as g:
            assert await several_sweepers(g) == []

    asyncio.run(run())


def test_control_sweepers_that_do_not_lock_end_a_session_twice(database: TestDatabase) -> None:
    async def run() -> None:
        blind = STILL_LIVE.replace(" AND c.status IN ('open', 'paying')", "")
        control = [changed("expire_due_checkouts", (SKIP, "\n"), (STILL_LIVE, blind))]
        async with ground(database, HALL, control=control) as g:
            assert await until_seen(lambda: several_sweepers(g)) != []

    asyncio.run(run())
