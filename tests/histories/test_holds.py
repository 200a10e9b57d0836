"""The engine beside its model: random histories of holds, sales, expiries and blocks, compared after every step."""

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from uuid import UUID

import pytest
import uvloop
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from holdfast.accounts.principal import Call
from holdfast.compat.booking_v2 import StateSelection
from holdfast.holds.lifecycle import BOOKING_STATES, SeatState
from holdfast.kernel.errors import Refusal
from holdfast.kernel.ids import new_id
from holdfast.seating.event import EventStatus
from holdfast.workers.expire_holds import ExpireHolds
from tests.conftest import TestDatabase
from tests.factories import PublishedEvent, theatre_config
from tests.histories.model import BOOKING_MINUTES, Hall, Hold, Seat
from tests.race.ground import Ground, changed, ground, selection

T = TypeVar("T")

EXAMPLES = 200
STEPS = 25
SEATS = 4
PLACES = 5
LIMIT = 4
BOX_OFFICE = {"BOX_OFFICE": {"validStates": ["LOCKED", "SOLD"], "skipLockedState": True}}

buyers = st.sampled_from(["buyer-1", "buyer-2"])
sessions = st.sampled_from(["session-1", "session-2"])
some_seats = st.lists(st.integers(0, SEATS - 1), unique=True, max_size=3)
certain_seats = st.lists(st.integers(0, SEATS - 1), unique=True, min_size=1, max_size=3)
one_seat = st.integers(0, SEATS - 1)
some_places = st.sampled_from([0, 0, 1, 2, 3])
one_of_many = st.integers(0, 30)

SEEN = """
SELECT z.sold, z.held - coalesce((
    SELECT sum(h.quantity) FROM holds h WHERE h.event_id = $1 AND h.ordinal IS NULL AND h.status = 'active'
      AND h.held_until <= holdfast_now()), 0)::integer AS held,
  array(SELECT CASE WHEN s.state = 'held' AND s.held_until <= holdfast_now() THEN 'available' ELSE s.state::text END
        FROM event_seats s WHERE s.event_id = $1 ORDER BY s.ordinal) AS states
FROM event_zones z WHERE z.event_id = $1
"""
HOLDS = """
SELECT h.id, h.ordinal, h.quantity, h.user_id, h.session_id, h.ended_at IS NOT NULL AS ended, h.status::text AS stored,
  CASE WHEN h.status = 'active' AND h.held_until <= holdfast_now() THEN 'expired' ELSE h.status::text END AS status,
  array(SELECT l.verb FROM seat_state_events l WHERE l.hold_id = h.id ORDER BY l.id) AS verbs
FROM holds h WHERE h.event_id = $1
"""
LIVES = {
    "active": [["hold"]],
    "expired": [["hold", "expire"], ["hold", "block"]],
    "cancelled": [["hold", "release"], ["hold", "block"]],
    "converted": [["hold", "convert"]],
}


@dataclass
class World:
    """One database and one event loop for all histories; each history has an event and buyers of its own."""

    runner: asyncio.Runner
    ground: Ground

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    async def another_event(self) -> PublishedEvent:
        """On the hall that is drawn already."""
        g = self.ground
        document = {
            "name": "Evening",
            "layout_id": str(g.event.layout.id),
            "overrides": {"max_holds_per_user": LIMIT, "orphan_avoidance_strict": False},
        }
        event = await g.parts.seating.create_event(g.admin, document)
        event = await g.parts.seating.set_status(g.admin, event.id, EventStatus.PUBLISHED)
        return replace(g.event, event=event)


@contextmanager
def world(database: TestDatabase, *control: str) -> Iterator[World]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        stack = AsyncExitStack()
        hall = theatre_config(2, SEATS // 2, ga_capacity=PLACES)
        opened = ground(database, hall, instances=1, control=control, hold_types=BOX_OFFICE)
        yield World(runner, runner.run(stack.enter_async_context(opened)))
        runner.run(stack.aclose())


class History(RuleBasedStateMachine):
    world: World

    def __init__(self) -> None:
        super().__init__()
        self.model = Hall([Seat() for _ in range(SEATS)], PLACES, LIMIT)
        self.users = {f"buyer-{n}": new_id() for n in (1, 2)}
        self.native: list[Hold] = []
        self.sound = True

    @initialize()
    def open_event(self) -> None:
        self.event = self.world.run(self.world.another_event())

    # Asking the engine -----------------------------------------------------------------------------------------------
    @property
    def g(self) -> Ground:
        return self.world.ground

    def buyer(self, name: str) -> Call:
        return self.g.buyer(self.users[name])

    def code(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Its answer, or the code of its refusal."""
        try:
            return self.world.run(work)
        except Refusal as refusal:
            return refusal.code

    def same(self, expected: object, answered: object) -> None:
        self.sound = expected == answered
        assert answered == expected, f"the engine answers {answered!r}, the model {expected!r}"

    def ask_booking(self, verb: str, session: str, seats: list[int], places: int, hold_type: str | None = None) -> Any:
        chosen = selection(seats, SEATS + 1, places, session)
        if hold_type is not None:
            chosen = StateSelection(session, chosen.seats, chosen.group_of_seats, hold_type)
        return self.code(getattr(self.g.apps[0].services.booking, verb)(self.g.api, self.event.id, chosen))

    # Buyers ----------------------------------------------------------------------------------------------------------
    def hold(self, buyer: str, seats: list[int], places: int) -> None:
        expected = self.model.hold(buyer, seats, places)
        answer = self.world.run(self.g.hold(self.g.apps[0], self.buyer(buyer), seats, places, self.event))
        if isinstance(answer, Refusal) or isinstance(expected, str):
            self.same(expected, answer.code if isinstance(answer, Refusal) else answer)
            return
        self.same(bool(expected.created), answer.created)
        given = {hold.seat_id: hold.hold_id for hold in answer.holds}
        wanted = {None if h.seat is None else self.event.seats[h.seat]: h for h in expected.holds}
        self.same(wanted.keys(), given.keys())
        for seat_id, hold in wanted.items():
            if hold in expected.created:
                hold.id = given[seat_id]
                self.native.append(hold)
            self.same(hold.id, given[seat_id])

    @rule(buyer=buyers, seat=one_seat)
    def reserve(self, buyer: str, seat: int) -> None:
        self.hold(buyer, [seat], 0)

    @rule(buyer=buyers, seats=some_seats, places=some_places)
    def hold_together(self, buyer: str, seats: list[int], places: int) -> None:
        if seats or places:
            self.hold(buyer, seats, places)

    @rule(buyer=st.sampled_from(["buyer-1", "buyer-2", "the owner", "the organiser"]), which=one_of_many)
    def release(self, buyer: str, which: int) -> None:
        hold = self.known(which)
        if hold is None or hold.id is None:
            return
        name = hold.owner if buyer == "the owner" else buyer
        organiser = buyer == "the organiser"
        expected = self.model.release(None if organiser else name, hold)
        call = self.g.admin if organiser else self.buyer(name)
        self.same(expected, self.status(self.g.apps[0].services.holds.release_hold(call, hold.id)))

    @rule(buyer=st.sampled_from(["buyer-1", "the owner", "the owner"]), which=one_of_many)
    def extend(self, buyer: str, which: int) -> None:
        hold = self.known(which)
        if hold is None or hold.id is None:
            return
        name = hold.owner if buyer == "the owner" else buyer
        expected = self.model.extend(name, hold)
        self.same(expected, self.status(self.g.apps[0].services.holds.extend_hold(self.buyer(name), hold.id)))

    def known(self, which: int) -> Hold | None:
        return self.native[-1 - which % len(self.native)] if self.native else None

    def status(self, work: Coroutine[Any, Any, Any]) -> Any:
        answer = self.code(work)
        return answer if isinstance(answer, str) else answer.status

    # Time ------------------------------------------------------------------------------------------------------------
    @rule(minutes=st.sampled_from([1, 2, 3, 5, 15]), sweep=st.booleans())
    def pass_time(self, minutes: int, sweep: bool) -> None:
        self.model.now += minutes
        self.world.run(self.g.pass_time(60 * minutes))
        if sweep:
            self.world.run(ExpireHolds(self.g.apps[0].database).sweep(self.g.organization_id))

    # Booking v2 ------------------------------------------------------------------------------------------------------
    @rule(session=sessions, seats=certain_seats, places=some_places, free=st.booleans())
    def lock(self, session: str, seats: list[int], places: int, free: bool) -> None:
        if free:  # a random selection is seldom all free
            seats = self.model.in_state("available")[: len(seats)]
            places = min(places, self.model.free_places())
        if seats or places:
            self.same(self.model.lock(session, seats, places), self.ask_booking("lock", session, seats, places))

    @rule(verb=st.sampled_from(["sale", "sale", "unlock"]), session=sessions, seats=some_seats, places=some_places)
    def end_anything(self, verb: str, session: str, seats: list[int], places: int) -> None:
        if seats or places:
            expected = getattr(self.model, verb)(session, seats, places)
            self.same(expected, self.ask_booking(verb, session, seats, places))

    @rule(verb=st.sampled_from(["sale", "unlock"]), most=st.integers(1, SEATS), places=some_places, late=st.booleans())
    def end_what_was_locked(self, verb: str, most: int, places: int, late: bool) -> None:
        """Exactly what a session has, or had until its time was over."""
        held = [(n, seat.hold) for n, seat in enumerate(self.model.seats) if seat.state == "held"]
        locked = [(hold.owner, n) for n, hold in held if hold is not None and hold.owner.startswith("session")]
        if locked:
            session = locked[0][0]
            mine = [n for owner, n in locked if owner == session]
            places = min(places, self.model.held_places(session))
            if late:
                self.pass_time(BOOKING_MINUTES, sweep=False)
            self.end_anything(verb, session, mine[:most], places)

    @rule(seats=some_seats, places=some_places)
    def direct_sale(self, seats: list[int], places: int) -> None:
        if seats or places:
            expected = self.model.direct_sale(seats, places)
            self.same(expected, self.ask_booking("direct_sale", "session-9", seats, places, "BOX_OFFICE"))

    @rule(seats=certain_seats, places=some_places, sold=st.booleans())
    def revert(self, seats: list[int], places: int, sold: bool) -> None:
        if sold:
            seats = self.model.in_state("sold")[: len(seats)]
            places = min(places, self.model.sold_places)
        if seats or places:
            self.same(self.model.revert(seats, places), self.ask_booking("revert_sale", "session-9", seats, places))

    # The organiser ---------------------------------------------------------------------------------------------------
    @rule(seats=certain_seats, force=st.booleans(), sold=st.booleans())
    def block(self, seats: list[int], force: bool, sold: bool) -> None:
        if sold:
            seats = self.model.in_state("sold")[: len(seats)]
        if seats:
            wanted = [self.event.seats[n] for n in seats]
            seating = self.g.apps[0].services.seating
            answer = self.code(seating.block_seats(self.g.admin, self.event.id, wanted, "camera", force=force))
            self.same(self.model.block(seats, force), answer if isinstance(answer, str) else "blocked")

    @rule(seats=certain_seats, blocked=st.booleans())
    def unblock(self, seats: list[int], blocked: bool) -> None:
        if blocked:
            seats = self.model.in_state("blocked")
        if seats:
            wanted = [self.event.seats[n] for n in seats]
            answer = self.code(self.g.apps[0].services.seating.unblock_seats(self.g.admin, self.event.id, wanted))
            self.same(self.model.unblock(seats), answer if isinstance(answer, str) else "unblocked")

    @rule()
    def block_what_is_sold_for_a_while(self) -> None:
        """It comes back to its sale."""
        sold = self.model.in_state("sold")[:1]
        if sold:
            self.block(sold, True, False)
            self.unblock(sold, False)

    # Comparing -------------------------------------------------------------------------------------------------------
    @invariant()
    def looks_the_same(self) -> None:
        if not hasattr(self, "event"):
            return
        (row,) = self.world.run(self.g.sql(SEEN, self.event.id))
        self.same(self.model.summary(), (row["states"], row["held"], row["sold"]))

    def teardown(self) -> None:
        if self.sound and hasattr(self, "event"):
            self.world.run(self.reckon())

    async def reckon(self) -> None:
        """The log leads exactly to the inventory, and every hold had one life and one end."""
        seen = await self.g.apps[0].services.booking.state(self.g.api, self.event.id)
        (zone,) = seen.group_of_seats
        states, held, sold = self.model.summary()
        assert [seat.state for seat in seen.seats] == [BOOKING_STATES[SeatState(state)] for state in states]
        assert (zone.locked, zone.sold, zone.available) == (held, sold, PLACES - held - sold)
        assert await self.g.faults([h.id for h in self.native if h.id is not None], self.event) == []
        names = {user_id: name for name, user_id in self.users.items()}
        accounts: Counter[tuple[str, int | None, str]] = Counter()
        statuses: dict[UUID, str] = {}
        for row in await self.g.sql(HOLDS, self.event.id):
            owner = names[row["user_id"]] if row["user_id"] is not None else row["session_id"]
            accounts[owner, row["ordinal"], row["status"]] += row["quantity"]
            statuses[row["id"]] = row["status"]
            assert row["ended"] == (row["stored"] != "active")
            if row["ordinal"] is not None:
                assert row["verbs"] in LIVES[row["stored"]], (row["stored"], row["verbs"])
        assert accounts == self.model.accounts()
        for hold in self.native:
            assert hold.id is not None
            assert statuses[hold.id] == self.model.status(hold)


def run_histories(world: World, **changes: Any) -> None:
    class Here(History):
        pass

    Here.world = world
    chosen: dict[str, Any] = {
        "max_examples": EXAMPLES,
        "stateful_step_count": STEPS,
        "deadline": None,
        "database": None,
        "derandomize": True,
        "suppress_health_check": list(HealthCheck),
        # A history of 25 steps can be read as it is; making it shorter takes minutes.
        "phases": [Phase.generate],
    }
    run_state_machine_as_test(Here, settings=settings(**{**chosen, **changes}))


def test_the_engine_does_what_its_model_does(database: TestDatabase) -> None:
    with world(database) as w:
        run_histories(w)


ALIVE = "      AND (s.held_until IS NULL OR s.held_until > holdfast_now())\n"
FREE = "      AND (s.state = 'available' OR (s.state = 'held' AND s.held_until <= v_now))\n"
MINE = "AND h.status = 'active' AND h.session_id = p_session AND"


@pytest.mark.parametrize(
    ("function", "old", "new"),
    [
        ("convert_session_seats", ALIVE, ""),
        ("hold_seats", FREE, "AND s.state IN ('available', 'held')\n"),
        ("draw_session_places", MINE, "AND h.status = 'active' AND"),
        ("unblock_seats", "CASE WHEN s.sold_at IS NULL THEN 'available' ELSE 'sold' END", "'available'"),
    ],
    ids=["sells lapsed holds", "holds held seats", "sells others' places", "forgets tickets"],
)
def test_control_a_broken_function_is_found(database: TestDatabase, function: str, old: str, new: str) -> None:
    with world(database, changed(function, (old, new))) as w, pytest.raises(AssertionError):
        run_histories(w, report_multiple_bugs=False)
