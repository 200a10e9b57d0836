"""Random histories of sessions and holds beside a model, with the clock moved: a session and its holds never differ."""

import asyncio
import random
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from uuid import UUID

import pytest
import uvloop
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from holdfast.holds.answers import Placement
from holdfast.holds.lifetime import NATIVE_RESERVE_TTL_S
from holdfast.holds.plan import HoldsAsked, PlacesAsked
from holdfast.kernel.errors import Refusal
from holdfast.kernel.ids import new_id
from holdfast.seating.event import EventStatus
from holdfast.workers.expire_checkouts import ExpireCheckouts
from holdfast.workers.expire_holds import ExpireHolds
from tests.conftest import TestDatabase
from tests.factories import PublishedEvent, theatre_config
from tests.race.ground import Ground, changed, ground

T = TypeVar("T")

EXAMPLES, STEPS = 20, 30
SEATS = 4
LIFE, SESSION, BEAT = 15, 30, 10
"""Minutes. A hold that enters a session with heartbeats is shortened."""
PRICE = 4500
MINUTES = (1, 4, 5, 9, 10, 11, 30)
ACTS = (
    *["hold"] * 5,
    *["open_all"] * 3,
    *["add", "heartbeat", "pass_time"] * 2,
    "extend",
    "release",
    "drop",
    "cancel",
    "sweep",
)
SLOW = {"SLOW": {"ttlSeconds": None, "releaseApi": "CUSTOMER,ADMIN,SYSTEM", "paymentRequired": False}}

FOUND = """
SELECT h.id, h.checkout_id, h.held_until, c.expires_at, c.heartbeat_s, h.ordinal IS NULL AS places, s.held_until AS seat,
  CASE WHEN h.status = 'active' AND h.held_until <= holdfast_now() THEN 'expired' ELSE h.status::text END AS status,
  (SELECT count(*) FROM seat_state_events l WHERE l.hold_id = h.id AND l.verb <> 'hold')::integer AS endings,
  h.status::text AS stored
FROM holds h LEFT JOIN checkouts c ON c.id = h.checkout_id
LEFT JOIN event_seats s ON s.event_id = h.event_id AND s.hold_id = h.id
WHERE h.event_id = $1
"""
SESSIONS = "SELECT id, status::text, expires_at <= holdfast_now() AS over FROM checkouts WHERE event_id = $1"


@dataclass
class Session:
    id: UUID
    end: int
    beats: bool
    status: str = "open"
    lines: list["Hold"] = field(default_factory=list)


@dataclass
class Hold:
    id: UUID
    seat: int | None
    end: int | None
    session: Session | None = None
    status: str = "active"


@dataclass
class World:
    runner: asyncio.Runner
    ground: Ground

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    async def another_event(self, *, beats: bool) -> PublishedEvent:
        g = self.ground
        document = {
            "name": "Evening",
            "layout_id": str(g.event.layout.id),
            "currency": "EUR",
            "prices": [{"zone_id": "stalls", "amount_minor": PRICE}, {"zone_id": "pit", "amount_minor": PRICE}],
            "overrides": {
                "orphan_avoidance_strict": False,
                "max_holds_per_user": None,
                "max_seats_per_booking": 1_000,
                "default_hold_ttl_minutes": LIFE,
                "max_hold_minutes": 10_000,
                "checkout_minutes": SESSION,
                "checkout_heartbeat": beats,
                "heartbeat_hold_minutes": BEAT,
            },
        }
        event = await g.parts.seating.create_event(g.admin, document)
        event = await g.parts.seating.set_status(g.admin, event.id, EventStatus.PUBLISHED)
        return replace(g.event, event=event)


@contextmanager
def world(database: TestDatabase, *control: str) -> Iterator[World]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        stack = AsyncExitStack()
        hall = theatre_config(1, SEATS, ga_capacity=1_000)
        opened = ground(database, hall, instances=1, control=control, hold_types=SLOW)
        yield World(runner, runner.run(stack.enter_async_context(opened)))
        runner.run(stack.aclose())


class History(RuleBasedStateMachine):
    world: World

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.holds: list[Hold] = []
        self.sessions: list[Session] = []

    @initialize(beats=st.booleans(), seed=st.integers(0, 2**64))
    def begin(self, beats: bool, seed: int) -> None:
        self.beats = beats
        self.chance = random.Random(seed)
        self.event = self.world.run(self.world.another_event(beats=beats))
        self.g.event = self.event
        self.call = self.g.buyer(new_id())

    @property
    def g(self) -> Ground:
        return self.world.ground

    @property
    def checkouts(self) -> Any:
        return self.g.apps[0].services.checkouts

    # The model -------------------------------------------------------------------------------------------------------
    def alive(self, hold: Hold) -> bool:
        return hold.status == "active" and (hold.end is None or hold.end > self.now)

    def seen(self, session: Session) -> str:
        return "expired" if session.status == "open" and session.end <= self.now else session.status

    def end_of(self, session: Session) -> int:
        return min(session.end, self.now + BEAT) if session.beats else session.end

    def enter(self, session: Session, holds: list[Hold]) -> None:
        for hold in holds:
            hold.session = session
            hold.end = None if hold.end is None else self.end_of(session)
        session.lines += holds

    def pick(self, which: int) -> Hold | None:
        return self.holds[-1 - which % len(self.holds)] if self.holds else None

    def session(self, which: int) -> Session | None:
        return self.sessions[-1 - which % len(self.sessions)] if self.sessions else None

    def answer(self, work: Coroutine[Any, Any, Any]) -> Any:
        try:
            return self.world.run(work)
        except Refusal as refusal:
            return refusal.code

    def same(self, expected: str | None, answered: Any) -> bool:
        """None: it goes through."""
        code = answered if isinstance(answered, str) else None
        assert code == expected, f"the engine answers {answered!r}, the model {expected!r}"
        return code is None

    # One rule for all that can happen, by lot: the generator prefers few rules and small numbers, of which nothing comes.
    @rule()
    def act(self) -> None:
        chance = self.chance
        what, which, hold = chance.choice(ACTS), chance.choice((0, 0, 1, 2)), chance.randrange(6)
        match what:
            case "hold":
                self.hold(chance.choice((None, *range(SEATS))), chance.random() < 0.2)
            case "pass_time":
                self.pass_time(chance.choice(MINUTES))
            case "add" | "drop":
                getattr(self, what)(which, hold)
            case "extend" | "release":
                getattr(self, what)(hold)
            case "heartbeat" | "cancel":
                getattr(self, what)(which)
            case _:
                getattr(self, what)()

    # Holds -----------------------------------------------------------------------------------------------------------
    def hold(self, seat: int | None, slow: bool) -> None:
        if seat is not None and any(h.seat == seat and self.alive(h) for h in self.holds):
            return
        asked = HoldsAsked(
            seats=() if seat is None else (self.event.seats[seat],),
            places=(PlacesAsked("pit", 2),) if seat is None else (),
            hold_type="SLOW" if slow else None,
            endpoint_ttl_s=NATIVE_RESERVE_TTL_S,
        )
        placed = self.world.run(self.g.apps[0].services.holds.hold_seats(self.call, self.event.id, asked))
        assert isinstance(placed, Placement)
        self.holds.append(Hold(placed.holds[0].hold_id, seat, None if slow else self.now + LIFE))

    def extend(self, which: int) -> None:
        hold = self.pick(which)
        if hold is None:
            return
        expected = None
        if not self.alive(hold):
            expected = "hold_not_active" if hold.status == "cancelled" else "hold_expired"
        elif hold.session is not None:
            expected = "hold_in_checkout"
        elif hold.end is None:
            expected = "max_hold_reached"
        if self.same(expected, self.answer(self.g.apps[0].services.holds.extend_hold(self.call, hold.id))):
            hold.end = self.now + LIFE

    def release(self, which: int) -> None:
        hold = self.pick(which)
        if hold is None:
            return
        self.same(None, self.answer(self.g.apps[0].services.holds.release_hold(self.call, hold.id)))
        self.let_go(hold, drop=hold.session is not None and self.seen(hold.session) == "open")

    def let_go(self, hold: Hold, *, drop: bool) -> None:
        if self.alive(hold):
            hold.status = "cancelled"
            if drop and hold.session is not None:
                hold.session.lines.remove(hold)

    # Sessions --------------------------------------------------------------------------------------------------------
    def open_all(self) -> None:
        free = [h for h in self.holds if self.alive(h) and h.session is None]
        running = [s for s in self.sessions if self.seen(s) == "open" and any(map(self.alive, s.lines))]
        answer = self.answer(self.checkouts.open(self.call, self.event.id, None, "web"))
        if not self.same(None if free or running else "no_holds", answer):
            return
        assert answer.created is bool(free)
        if not free:
            assert answer.checkout.id == running[-1].id
            return
        session = Session(answer.checkout.id, self.now + SESSION, self.beats)
        self.sessions.append(session)
        self.enter(session, free)
        self.shows(session, answer.checkout)

    def add(self, which: int, what: int) -> None:
        session, hold = self.session(which), self.pick(what)
        if session is None or hold is None:
            return
        inside = hold.session is session and self.alive(hold)
        expected = None
        if self.seen(session) != "open":
            expected = "checkout_expired" if self.seen(session) == "expired" else "checkout_not_open"
        elif not self.alive(hold):
            expected = "holds_expired"
        elif hold.session is not None and not inside:
            expected = "hold_in_checkout"
        answer = self.answer(self.checkouts.add(self.call, session.id, [hold.id]))
        if self.same(expected, answer):
            if not inside:
                self.enter(session, [hold])
            self.shows(session, answer)

    def drop(self, which: int, what: int) -> None:
        session = self.session(which)
        if session is None or not session.lines:
            return
        hold = session.lines[what % len(session.lines)]
        expected = None
        if self.seen(session) != "open":
            expected = "checkout_expired" if self.seen(session) == "expired" else "checkout_not_open"
        if self.same(expected, self.answer(self.checkouts.drop(self.call, session.id, hold.id))):
            self.let_go(hold, drop=False)
            session.lines.remove(hold)

    def heartbeat(self, which: int) -> None:
        session = self.session(which)
        if session is None:
            return
        expected = None
        if self.seen(session) != "open":
            expected = "checkout_expired" if self.seen(session) == "expired" else "checkout_not_open"
        answer = self.answer(self.checkouts.heartbeat(self.call, session.id))
        if self.same(expected, answer):
            for hold in session.lines:
                if session.beats and self.alive(hold) and hold.end is not None:
                    hold.end = self.end_of(session)
            self.shows(session, answer)

    def cancel(self, which: int) -> None:
        session = self.session(which)
        if session is None:
            return
        expected = "checkout_expired" if self.seen(session) == "expired" else None
        if self.same(expected, self.answer(self.checkouts.cancel(self.call, session.id))):
            for hold in session.lines if session.status == "open" else []:
                self.let_go(hold, drop=False)
            session.status = "cancelled"

    # Time ------------------------------------------------------------------------------------------------------------
    def pass_time(self, minutes: int) -> None:
        self.now += minutes
        self.world.run(self.g.pass_time(60 * minutes))

    def sweep(self) -> None:
        self.world.run(ExpireHolds(self.g.apps[0].database).sweep(self.g.organization_id))
        self.world.run(ExpireCheckouts(self.g.apps[0].database).once())
        for session in self.sessions:
            if session.status == "open" and session.end <= self.now:
                session.status = "expired"
                for hold in session.lines:
                    self.let_go(hold, drop=False)  # what has no end: its type lets the engine release it

    # Comparing -------------------------------------------------------------------------------------------------------
    def shows(self, session: Session, shown: Any) -> None:
        assert shown.total_minor == sum(
            0 if h.end is None else PRICE if h.seat is not None else 2 * PRICE for h in session.lines
        )
        assert {line.hold_id for line in shown.lines} == {h.id for h in session.lines}

    @invariant()
    def agree(self) -> None:
        if not hasattr(self, "event"):
            return
        rows = {row["id"]: row for row in self.world.run(self.g.sql(FOUND, self.event.id))}
        for hold in self.holds:
            row = rows[hold.id]
            expected = "expired" if hold.status == "active" and not self.alive(hold) else hold.status
            assert row["status"] == expected, f"hold {hold} is {row['status']}"
            assert row["endings"] == (0 if row["stored"] == "active" else 1), (
                f"hold {hold} ended {row['endings']} times"
            )
            if row["stored"] == "active" and not row["places"]:
                assert row["seat"] == row["held_until"]
            assert (row["held_until"] is None) == (hold.end is None)
            if row["expires_at"] is None or row["held_until"] is None:
                continue
            # The one clock: ordinary sessions and their holds end at one instant, others never before their holds.
            assert row["held_until"] <= row["expires_at"]
            if row["heartbeat_s"] is None:
                assert row["held_until"] == row["expires_at"]
        for row in self.world.run(self.g.sql(SESSIONS, self.event.id)):
            (session,) = [s for s in self.sessions if s.id == row["id"]]
            assert row["status"] == session.status
            assert row["over"] == (session.end <= self.now)

    def teardown(self) -> None:
        if hasattr(self, "event"):
            assert self.world.run(self.g.faults([h.id for h in self.holds], self.event)) == []


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
        "phases": [Phase.generate],
    }
    run_state_machine_as_test(Here, settings=settings(**{**chosen, **changes}))


def test_a_session_and_its_holds_have_one_clock_over_any_history(database: TestDatabase) -> None:
    with world(database) as w:
        run_histories(w)


IN_SEAT = "SET held_until = CASE WHEN s.held_until IS NOT NULL THEN p_until END"


@pytest.mark.parametrize(
    ("function", "old", "new"),
    [
        ("set_hold_ends", IN_SEAT, "SET held_until = s.held_until"),
        ("retime_holds", "CASE WHEN h.held_until IS NOT NULL THEN p_until END", "p_until"),
    ],
    ids=["forgets the seat", "ends what has no end"],
)
def test_control_a_broken_function_is_found(database: TestDatabase, function: str, old: str, new: str) -> None:
    with world(database, changed(function, (old, new))) as w, pytest.raises(AssertionError):
        run_histories(w, report_multiple_bugs=False)
