"""The instant a hold ends: sweeper, buyer and next buyer meet there, and exactly one of them has it. With controls."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import asyncpg

from holdfast.app import Application
from holdfast.holds.answers import Placement
from holdfast.kernel.errors import EventNotAvailable, EventUnavailable, Refusal, SeatHeldByAnother, SeatNotAvailable
from holdfast.seating.event import EventStatus
from holdfast.workers.expire_holds import ExpireHolds
from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.race.ground import Ground, all_at_once, changed, ground, selection, until_seen

SEATS = 120
HALL = theatre_config(4, SEATS // 4)

ENDED = """
SELECT h.id, h.ordinal, h.status::text, s.state::text, s.hold_id = h.id AS in_seat, h.ended_at > h.held_until AS late,
  (SELECT count(*) FROM seat_state_events l WHERE l.hold_id = h.id AND l.verb <> 'hold')::integer AS endings,
  (SELECT min(l.verb) FROM seat_state_events l WHERE l.hold_id = h.id AND l.verb <> 'hold') AS verb
FROM holds h JOIN event_seats s ON s.event_id = h.event_id AND s.ordinal = h.ordinal
WHERE h.event_id = $1 ORDER BY h.ordinal, h.created_at
"""
STATES = "SELECT ordinal, state::text, hold_id FROM event_seats WHERE event_id = $1"
VERBS = {"expired": "expire", "converted": "convert"}


class NoRace(Exception):
    """All were too early or all too late: the machine was busy, and nobody met anybody."""


async def met(g: Ground, race: Callable[[Ground, float], Awaitable[list[str]]]) -> list[str]:
    """Runs a race, with more time for it where there was too little."""
    for eve_s in (0.25, 0.5, 1.0, 2.0, 4.0):
        g.event = await g.new_event(HALL)
        assert await g.apps[0].services.booking.lock(g.api, g.event.id, selection(range(SEATS)))
        await g.to_the_eve(eve_s)
        try:
            return await race(g, eve_s)
        except NoRace:
            continue
    raise NoRace


async def spread(eve_s: float, act: Callable[[int], Awaitable[Any]]) -> list[Any]:
    """Does it for every seat, evenly from `eve_s` before the end of the holds until as long after it."""

    async def one(n: int) -> Any:
        await asyncio.sleep(2 * eve_s * ((n * 37) % SEATS) / SEATS)
        return await act(n)

    return await asyncio.gather(*[one(n) for n in range(SEATS)])


async def sweeping(app: Application, stop: asyncio.Event) -> int:
    """As fast as it can, until told to stop; how many holds it expired."""
    sweeper = ExpireHolds(app.database, batch=7)
    (organization_id,) = await organizations(app)
    total = 0
    while not stop.is_set():
        total += await sweeper.sweep(organization_id)
        await asyncio.sleep(0)
    return total + await sweeper.sweep(organization_id)


async def organizations(app: Application) -> list[UUID]:
    async with app.database.transaction(engine=True) as tx:
        return [row["organization_id"] for row in await tx.fetch("SELECT organization_id FROM organizations")]


async def accounted(g: Ground) -> list[str]:
    """Whether every hold ended once, in time, and in the way its status says."""
    faults: list[str] = []
    for row in await g.sql(ENDED, g.event.id):
        if row["status"] == "active":
            if row["endings"] or not row["in_seat"]:
                faults.append(f"hold of seat {row['ordinal']} is active with {row['endings']} endings")
        elif row["endings"] != 1 or row["verb"] != VERBS[row["status"]]:
            faults.append(
                f"hold of seat {row['ordinal']} is {row['status']} with {row['endings']} endings, {row['verb']}"
            )
        if row["status"] == "converted" and row["late"]:
            faults.append(f"hold of seat {row['ordinal']} was converted after its end")
    return faults + await g.faults()


# Sale against sweeper ------------------------------------------------------------------------------------------------
ALIVE = "      AND (s.held_until IS NULL OR s.held_until > holdfast_now())\n"


async def sales_against_the_sweeper(g: Ground, eve_s: float) -> list[str]:
    stop = asyncio.Event()
    sweepers = [asyncio.create_task(sweeping(app, stop)) for app in g.apps]
    answers = await spread(eve_s, lambda n: g.apps[n % 2].services.booking.sale(g.api, g.event.id, selection([n])))
    stop.set()
    swept = sum(await asyncio.gather(*sweepers))
    rows = await g.sql(ENDED, g.event.id)
    faults = [
        f"sale of seat {r['ordinal']}: {answers[r['ordinal']]}, and its hold is {r['status']}"
        for r in rows
        if (r["status"], r["state"]) != (("converted", "sold") if answers[r["ordinal"]] else ("expired", "available"))
    ]
    if swept + answers.count(True) != SEATS:
        faults.append(f"{answers.count(True)} sold and {swept} swept of {SEATS}")
    if not 5 < answers.count(True) < SEATS - 5:
        raise NoRace
    return faults + await accounted(g)


def test_a_hold_at_its_end_is_sold_or_swept_never_both(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, HALL) as g:
            assert await met(g, sales_against_the_sweeper) == []

    asyncio.run(run())


# Sale against the next buyer -----------------------------------------------------------------------------------------
async def sales_against_the_next_buyer(g: Ground, eve_s: float) -> list[str]:
    async def both(n: int) -> tuple[bool, Placement | Refusal]:
        sale = g.apps[0].services.booking.sale(g.api, g.event.id, selection([n]))
        sold, taken = await asyncio.gather(sale, g.hold(g.apps[1], g.buyer(), [n]))
        return sold, taken

    outcomes = await spread(eve_s, both)
    states = {row["ordinal"]: row["state"] for row in await g.sql(STATES, g.event.id)}
    faults: list[str] = []
    kinds: Counter[str] = Counter()
    for n, outcome in enumerate(outcomes):
        sold, taken = outcome
        if isinstance(taken, Placement):
            kinds["taken"] += 1
            right = not sold and states[n] == "held"
        else:  # too early, or sold
            kinds["sold" if sold else "neither"] += 1
            right = isinstance(taken, SeatHeldByAnother | SeatNotAvailable) and states[n] == (
                "sold" if sold else "held"
            )
        if not right:
            faults.append(f"seat {n} is {states[n]}: sale {sold}, next buyer {taken!r}")
    if min(kinds["sold"], kinds["taken"]) < 5:
        raise NoRace
    return faults + await accounted(g)


def test_a_hold_at_its_end_is_sold_or_taken_over_never_both(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, HALL) as g:
            assert await met(g, sales_against_the_next_buyer) == []

    asyncio.run(run())


async def sales_alone(g: Ground, eve_s: float) -> list[str]:
    """Sales before and after the end, with nobody else about: whether a late one goes through is not a matter of luck."""
    await spread(eve_s, lambda n: g.apps[n % 2].services.booking.sale(g.api, g.event.id, selection([n])))
    return await accounted(g)


def test_a_hold_that_nobody_took_over_is_not_sold_after_its_end(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, HALL) as g:
            assert await met(g, sales_alone) == []

    asyncio.run(run())


def test_control_without_the_end_in_the_condition_a_hold_is_sold_after_it(database: TestDatabase) -> None:
    async def run() -> None:
        control = [changed("convert_session_seats", (ALIVE, ""))]
        async with ground(database, HALL, control=control) as g:
            found = await met(g, sales_alone)
            assert any("was converted after its end" in fault for fault in found)

    asyncio.run(run())


# The next buyer against the sweeper ----------------------------------------------------------------------------------
async def next_buyers_against_the_sweeper(g: Ground, eve_s: float) -> list[str]:
    stop = asyncio.Event()
    sweepers = [asyncio.create_task(sweeping(app, stop)) for app in g.apps]
    answers = await spread(eve_s, lambda n: g.hold(g.apps[n % 2], g.buyer(), [n]))
    stop.set()
    await asyncio.gather(*sweepers)
    faults: list[str] = []
    states = {row["ordinal"]: row for row in await g.sql(STATES, g.event.id)}
    for n, answer in enumerate(answers):
        if isinstance(answer, Placement):
            right = states[n]["hold_id"] == answer.holds[0].hold_id
        else:
            right = isinstance(answer, SeatHeldByAnother) and states[n]["state"] == "available"
        if not right:
            faults.append(f"seat {n} is {states[n]['state']}: {answer!r}")
    if not 5 < sum(isinstance(a, Placement) for a in answers) < SEATS - 5:
        raise NoRace
    return faults + await accounted(g)


def test_a_hold_at_its_end_is_swept_or_taken_over_once(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, HALL) as g:
            assert await met(g, next_buyers_against_the_sweeper) == []

    asyncio.run(run())


# Two sweepers --------------------------------------------------------------------------------------------------------
SKIP = "    FOR UPDATE OF s SKIP LOCKED\n"
STILL_HELD = "      AND s.state = 'held' AND s.hold_id = l.hold_id\n"


async def two_sweepers(g: Ground) -> list[str]:
    (organization_id,) = await organizations(g.apps[0])
    everything = selection(range(SEATS), SEATS + 1, 40)
    assert await g.apps[0].services.booking.lock(g.api, g.event.id, everything)
    await g.pass_time(await g.seconds_left() + 1)
    sweepers = [ExpireHolds(app.database, batch=25) for app in g.apps for _ in range(2)]
    counts = await all_at_once(sweeper.sweep(organization_id) for sweeper in sweepers)
    faults = [] if sum(counts) == SEATS + 1 else [f"{sum(counts)} holds were swept of {SEATS + 1}"]
    (row,) = await g.sql(
        "SELECT count(*), count(DISTINCT hold_id) AS holds FROM seat_state_events WHERE verb = 'expire'"
    )
    if tuple(row) != (SEATS + 1, SEATS + 1):
        faults.append(f"the log has {row['count']} expiries of {row['holds']} holds")
    return faults + await g.faults()


def test_several_sweepers_expire_each_hold_once(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, theatre_config(4, SEATS // 4, ga_capacity=50)) as g:
            assert await two_sweepers(g) == []

    asyncio.run(run())


def test_control_sweepers_that_do_not_lock_expire_a_hold_twice(database: TestDatabase) -> None:
    async def run() -> None:
        control = [changed("expire_due_holds", (SKIP, ""), (STILL_HELD, ""))]
        async with ground(database, theatre_config(4, SEATS // 4, ga_capacity=50), control=control) as g:
            try:
                found = await two_sweepers(g)
            except asyncpg.NotNullViolationError as violated:  # the counters refuse what has no hold type any more
                found = [str(violated)]
            assert found != []

    asyncio.run(run())


# Cancelling an event -------------------------------------------------------------------------------------------------
TAKING = "  WITH taken AS (\n    UPDATE event_seats s\n"
GRANTED = "  IF NOT v_missed THEN\n"


async def cancel_among_buyers(g: Ground) -> list[str]:
    """A hundred buyers on two instances, and the event is cancelled among them. What was wrong afterwards."""
    event = await g.new_event(theatre_config(4, 25))

    async def buy(n: int) -> Placement | Refusal:
        await asyncio.sleep(0.001 * n)
        return await g.hold(g.apps[n % 2], g.buyer(), [n], event=event)

    async def cancel() -> None:
        await asyncio.sleep(0.04)
        await g.parts.seating.set_status(g.admin, event.id, EventStatus.CANCELLED)

    *answers, _ = await asyncio.gather(*[buy(n) for n in range(100)], cancel())
    faults: list[str] = []
    for answer in answers:
        if not isinstance(answer, Placement | EventUnavailable | EventNotAvailable):
            faults.append(f"a buyer was answered {answer!r}")
    statuses = Counter((await g.statuses(event)).values())
    if statuses["active"]:
        faults.append(f"{statuses['active']} holds are active in a cancelled event")
    if statuses.total() != sum(isinstance(a, Placement) for a in answers):
        faults.append("holds were made that nobody was told of")
    return faults + await g.faults(event=event)


def test_no_hold_outlives_the_cancelling_of_its_event(database: TestDatabase) -> None:
    async def run() -> None:
        slowly = changed("hold_seats", (TAKING, f"  PERFORM pg_sleep(0.004);\n{TAKING}"))
        async with ground(database, theatre_config(1, 2), control=[slowly]) as g:
            for _ in range(3):
                assert await cancel_among_buyers(g) == []

    asyncio.run(run())


def test_control_without_the_events_lock_holds_outlive_the_event(database: TestDatabase) -> None:
    async def run() -> None:
        # The pause is after the decision here, where a cancel can come between it and the commit.
        lockless = changed(
            "hold_seats",
            (TAKING, f"  PERFORM pg_sleep(0.004);\n{TAKING}"),
            ("  PERFORM share_events(p_events);\n", ""),
            (GRANTED, f"  PERFORM pg_sleep(0.02);\n{GRANTED}"),
        )
        async with ground(database, theatre_config(1, 2), control=[lockless]) as g:
            found = await until_seen(lambda: cancel_among_buyers(g))
            assert any("active in a cancelled event" in fault for fault in found), found

    asyncio.run(run())
