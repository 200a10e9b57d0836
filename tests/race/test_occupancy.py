"""The counters of occupancy beside a count of everything: after every step of random histories, and under load."""

import asyncio
import random
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import pytest
import uvloop
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule, run_state_machine_as_test

from holdfast.compat.booking_v2 import StateSelection
from holdfast.insight.occupancy_service import OccupancyService
from holdfast.kernel.errors import Refusal
from holdfast.workers.expire_holds import ExpireHolds
from holdfast.workers.fold_occupancy import FoldOccupancy
from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.histories.model import BOOKING_MINUTES
from tests.histories.test_holds import BOX_OFFICE, PLACES, SEATS, History, World, certain_seats, sessions, some_seats
from tests.race.ground import Ground, changed, ground, selection
from tests.store.occupancy_truth import differences

EXAMPLES = 100
STEPS = 25
GROUP = {"GROUP": {"validStates": ["LOCKED"], "ttlSeconds": 60 * BOOKING_MINUTES}}
endings = st.sampled_from(["sale", "unlock", "expiry"])


class CountedHistory(History):
    """Holds, releases, sales, reverts, blocks and expiries as in `History`, with folding now and then.

    Whether the engine answers as its model does is the business of `History`: here the model only says what may be
    worth asking for, and whatever comes of it must be counted.
    """

    def same(self, expected: object, answered: object) -> None:
        pass

    def looks_the_same(self) -> None:
        pass

    def teardown(self) -> None:
        if self.sound and hasattr(self, "event"):
            assert self.world.run(self.g.faults((), self.event)) == []

    @rule(session=sessions, seats=some_seats, places=st.integers(2, 3), part=st.integers(1, 2), ends=endings)
    def lock_and_end_in_part(self, session: str, seats: list[int], places: int, part: int, ends: str) -> None:
        """A hold type of its own, and a hold of places that is split."""
        seats = [n for n in seats if self.model.state(n) == "available"]
        places = min(places, self.model.free_places())
        if not seats and not places:
            return
        self.same(self.model.lock(session, seats, places), self.ask_booking("lock", session, seats, places, "GROUP"))
        if ends == "expiry":
            self.pass_time(BOOKING_MINUTES, sweep=part == 1)
        elif places >= part:
            self.end_anything(ends, session, seats[:1], part)

    @rule(seats=certain_seats, places=st.integers(2, 3), part=st.integers(2, 3))
    def sell_and_take_back(self, seats: list[int], places: int, part: int) -> None:
        seats = [n for n in seats if self.model.state(n) == "available"]
        self.direct_sale(seats, min(places, self.model.free_places()))
        self.revert(seats[:1], min(part, self.model.sold_places), sold=False)

    @rule(seats=certain_seats, force=st.booleans())
    def block_and_unblock(self, seats: list[int], force: bool) -> None:
        self.block(seats, force, sold=False)
        self.unblock(seats[:1], blocked=False)

    @rule()
    def fold(self) -> None:
        self.world.run(FoldOccupancy(self.g.apps[0].database, batch=2).once())

    @invariant()
    def counters_equal_what_is_there(self) -> None:
        if hasattr(self, "event"):
            found = self.world.run(differences(self.g.owner, self.event.id))
            self.sound = not found
            assert found == []


@contextmanager
def counted_world(database: TestDatabase, *control: str) -> Iterator[World]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        stack = AsyncExitStack()
        hall = theatre_config(2, SEATS // 2, ga_capacity=PLACES)
        opened = ground(database, hall, instances=1, control=control, hold_types={**BOX_OFFICE, **GROUP})
        yield World(runner, runner.run(stack.enter_async_context(opened)))
        runner.run(stack.aclose())


def run_histories(world: World, **changes: Any) -> None:
    class Here(CountedHistory):
        pass

    Here.world = world
    chosen: dict[str, Any] = {
        "max_examples": EXAMPLES,
        "stateful_step_count": STEPS,
        "deadline": None,
        "database": None,
        "derandomize": True,
        "suppress_health_check": list(HealthCheck),
        "phases": [Phase.generate],
    }
    run_state_machine_as_test(Here, settings=settings(**{**chosen, **changes}))


def test_after_every_step_the_counters_equal_a_count_of_everything(database: TestDatabase) -> None:
    with counted_world(database) as w:
        run_histories(w)
        query = """
            SELECT verb, ordinal IS NULL AS of_places FROM seat_state_events
            WHERE quantity > 1 OR ordinal IS NOT NULL GROUP BY 1, 2
        """
        seen = {(row["verb"], row["of_places"]) for row in w.run(w.ground.sql(query))}
        ways = {"hold", "release", "expire", "convert", "direct_sale", "revert_sale"}
        assert seen >= {(verb, False) for verb in ways | {"block", "unblock"}} | {(verb, True) for verb in ways}


HELD_BY_TYPE = (
    "SELECT m.event_id, m.zone_no, m.old_state AS state, CASE m.old_state WHEN 'held' THEN m.hold_type ELSE '' END"
)
UNCOUNTED = "WHERE m.old_state <> 'available'\n"


@pytest.mark.parametrize(
    ("function", "old", "new"),
    [
        ("record_moves", "-m.quantity AS change", "-1 AS change"),
        ("record_moves", UNCOUNTED, "WHERE m.old_state NOT IN ('available', 'blocked')\n"),
        ("record_moves", HELD_BY_TYPE, HELD_BY_TYPE.replace("m.hold_type", "'CART'")),
        ("hold_places", "sum(c.quantity) FROM c\n", "count(*) FROM c\n"),
    ],
    ids=["counts holds, not places", "never unblocks", "takes every type for CART", "holds one place"],
)
def test_control_a_writer_that_miscounts_is_found(database: TestDatabase, function: str, old: str, new: str) -> None:
    with counted_world(database, changed(function, (old, new))) as w, pytest.raises(AssertionError):
        run_histories(w, report_multiple_bugs=False)


# Under load -----------------------------------------------------------------------------------------------------------
ROWS, SEATS_A_ROW, PIT = 3, 8, 30
STALLS = ROWS * SEATS_A_ROW


async def act(g: Ground, chance: random.Random, n: int) -> None:
    """One thing somebody does, on one of the instances."""
    app = g.apps[n % len(g.apps)]
    booking, seating = app.services.booking, app.services.seating
    seats = chance.sample(range(STALLS), chance.randint(1, 3))
    ids = [g.event.seats[seat] for seat in seats]
    session = f"session-{n}"
    places = chance.choice([0, 0, 1, 3])
    match chance.randrange(6):
        case 0:
            await g.hold(app, g.buyer(), seats, places)
        case 1:
            chosen = selection(seats, STALLS + 1, places + 2, session)
            chosen = StateSelection(session, chosen.seats, chosen.group_of_seats, chance.choice([None, "GROUP"]))
            if await booking.lock(g.api, g.event.id, chosen):
                verb = chance.choice([booking.sale, booking.unlock])
                await verb(g.api, g.event.id, selection(seats[:1], STALLS + 1, 1, session))
        case 2:
            await booking.revert_sale(g.api, g.event.id, selection(seats[:1], STALLS + 1, places, session))
        case 3:
            await seating.block_seats(g.admin, g.event.id, ids, "camera", force=chance.random() < 0.5)
        case 4:
            await seating.unblock_seats(g.admin, g.event.id, ids[:1])
        case 5:
            placed = await g.hold(app, g.buyer(), seats[:1])
            if not isinstance(placed, Refusal):
                await app.services.holds.release_hold(g.admin, placed.holds[0].hold_id)


async def rush(g: Ground, seed: int, actions: int) -> list[Any]:
    """Everybody at once, with two folders and a sweeper beside them; what a reader found wrong meanwhile and after."""
    chance = random.Random(seed)
    over = asyncio.Event()
    wrong: list[Any] = []
    looks = 0

    async def keep(duty: Any) -> None:
        while not over.is_set():
            await duty.once()
            await asyncio.sleep(0.005)

    async def look() -> None:
        nonlocal looks
        while not over.is_set():
            wrong.extend(await differences(g.owner, g.event.id))
            looks += 1
            await asyncio.sleep(0.002)

    async def actor(first: int) -> None:
        for n in range(first, first + actions):
            try:
                await act(g, chance, n)
            except Refusal:
                continue

    beside = [
        asyncio.create_task(keep(FoldOccupancy(g.apps[0].database, batch=3))),
        asyncio.create_task(keep(FoldOccupancy(g.apps[1].database))),
        asyncio.create_task(keep(ExpireHolds(g.apps[1].database))),
        asyncio.create_task(look()),
    ]
    actors = [asyncio.create_task(actor(1000 * n)) for n in range(8)]
    await asyncio.sleep(0.3)
    await g.database.advance_clock(301)  # everything held so far is over, in the midst of it
    await asyncio.gather(*actors)
    over.set()
    await asyncio.gather(*beside)
    assert looks > 20, "nobody looked while it went on"
    return wrong + await differences(g.owner, g.event.id)


def test_under_load_with_folding_every_instant_adds_up(database: TestDatabase) -> None:
    async def main() -> None:
        hall = theatre_config(ROWS, SEATS_A_ROW, ga_capacity=PIT)
        async with ground(database, hall, policy={"max_holds_per_user": None}, hold_types={**BOX_OFFICE, **GROUP}) as g:
            for seed in range(1, 5):  # who comes first is chance, and with it what can happen
                assert await rush(g, seed, 40) == []
                (row,) = await g.sql("SELECT count(DISTINCT verb) AS verbs FROM seat_state_events")
                if row["verbs"] >= 6:
                    break
            assert row["verbs"] >= 6, "too little happened to prove anything"
            assert await g.faults() == []
            service = OccupancyService(g.apps[0].database, g.apps[0].catalogue)
            told = await service.occupancy(g.admin, g.event.id)
            states = {r["state"]: r["n"] for r in await g.sql(
                "SELECT state::text, count(*) AS n FROM event_seats GROUP BY 1")}  # fmt: skip
            (pit,) = await g.sql("SELECT held, sold FROM event_zones")
            assert told.held == states.get("held", 0) + pit["held"]
            assert told.sold == states.get("sold", 0) + pit["sold"]
            assert told.blocked == states.get("blocked", 0)
            assert told.total == STALLS + PIT

    asyncio.run(main())


def test_control_folding_in_two_steps_is_seen_by_somebody(database: TestDatabase) -> None:
    """A folder that adds first and deletes in another transaction shows each change twice for a moment."""

    async def main() -> None:
        hall = theatre_config(ROWS, SEATS_A_ROW, ga_capacity=PIT)
        async with ground(database, hall, policy={"max_holds_per_user": None}) as g:
            await g.hold(g.apps[0], g.buyer(), [0, 1, 2], 4)
            await g.sql(
                "INSERT INTO occupancy_counts SELECT organization_id, event_id, zone_no, state, hold_type, change"
                " FROM occupancy_changes"
            )
            assert await differences(g.owner, g.event.id) != []
            assert any("occupancy" in fault for fault in await g.faults())

    asyncio.run(main())
