"""Checkout beside its model: random histories of holds, sessions, heartbeats, money and time, over HTTP, compared after
every step. What must hold whatever happens:

- a session and its holds end at the same instant (with heartbeats: the holds not later than the session);
- nothing is sold after its end, unless money came late and the seat was free;
- every hold ends in exactly one of converted, expired, cancelled;
- money that was recorded bought tickets, or is to be refunded.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

import asyncpg
import httpx
import pytest
import uvloop
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from holdfast.insight.invariants import check_event
from holdfast.workers.expire_checkouts import ExpireCheckouts
from holdfast.workers.expire_holds import ExpireHolds
from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.histories.checkout_model import PLACE_PRICE, SEAT_PRICE, CheckoutHall, Session
from tests.histories.model import Hold, Seat
from tests.http.payment_ground import add_provider, message, tell
from tests.race.ground import as_owner, changed
from tests.stage import Stage, stage

T = TypeVar("T")

EXAMPLES = 60
STEPS = 25
SEATS = 4
PLACES = 5
UNLIMITED = 1_000

buyers = st.sampled_from(["buyer-1", "buyer-2"])
some_seats = st.lists(st.integers(0, SEATS - 1), unique=True, min_size=1, max_size=2)
some_places = st.sampled_from([0, 0, 1, 2])
one_of_many = st.integers(0, 30)
minutes = st.sampled_from([1, 4, 5, 9, 10])

SEEN = """
SELECT z.sold, z.held - coalesce((
    SELECT sum(h.quantity) FROM holds h WHERE h.event_id = $1 AND h.ordinal IS NULL AND h.status = 'active'
      AND h.held_until <= holdfast_now()), 0)::integer AS held,
  array(SELECT CASE WHEN s.state = 'held' AND s.held_until <= holdfast_now() THEN 'available' ELSE s.state::text END
        FROM event_seats s WHERE s.event_id = $1 ORDER BY s.ordinal) AS states
FROM event_zones z WHERE z.event_id = $1
"""
SESSIONS = """
SELECT c.id, CASE WHEN c.status IN ('open', 'paying') AND c.expires_at <= holdfast_now() THEN 'expired'
    ELSE c.status::text END AS status,
  (SELECT count(*) FROM tickets t WHERE t.checkout_id = c.id AND t.status = 'valid') AS tickets,
  (SELECT coalesce(sum(t.price_minor), 0) FROM tickets t WHERE t.checkout_id = c.id) AS worth,
  (SELECT coalesce(sum(p.amount_minor), 0) FROM payments p WHERE p.checkout_id = c.id AND p.status = 'applied') AS applied,
  array(SELECT r.amount_minor FROM refunds r WHERE r.checkout_id = c.id ORDER BY r.amount_minor) AS refunds,
  (SELECT count(*) FROM payments p WHERE p.checkout_id = c.id AND p.status = 'received') AS unsettled
FROM checkouts c WHERE c.event_id = $1
"""
# Every hold of a session that runs: does it end with it?
CLOCKS = """
SELECT c.id, c.expires_at, c.heartbeat_s, h.held_until, s.held_until AS seat_until, h.ordinal
FROM checkouts c
JOIN checkout_lines l ON l.organization_id = c.organization_id AND l.checkout_id = c.id AND l.dropped_at IS NULL
JOIN holds h ON h.organization_id = c.organization_id AND h.id = l.hold_id AND h.status = 'active'
LEFT JOIN event_seats s ON s.organization_id = h.organization_id AND s.event_id = h.event_id AND s.ordinal = h.ordinal
  AND s.hold_id = h.id
WHERE c.event_id = $1 AND c.status IN ('open', 'paying')
"""
HOLDS = """
SELECT h.id, h.held_until, h.ended_at, h.status::text AS stored,
  CASE WHEN h.status = 'active' AND h.held_until <= holdfast_now() THEN 'expired' ELSE h.status::text END AS status,
  array(SELECT l.verb FROM seat_state_events l WHERE l.hold_id = h.id ORDER BY l.id) AS verbs
FROM holds h WHERE h.event_id = $1
"""
LIVES = {
    "active": ["hold"],
    "expired": ["hold", "expire"],
    "cancelled": ["hold", "release"],
    "converted": ["hold", "convert"],
}


@dataclass
class World:
    runner: asyncio.Runner
    made: Stage
    owner: "asyncpg.Connection[asyncpg.Record]"
    buyers: dict[str, dict[str, str]] = field(default_factory=dict)
    messages: int = 0

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    async def sql(self, query: str, *args: Any) -> list[asyncpg.Record]:
        return await self.owner.fetch(query, *args)


@contextmanager
def world(database: TestDatabase, *control: str) -> Iterator[World]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        stack = AsyncExitStack()

        async def begin() -> World:
            await as_owner(database, *control)
            made = await stack.enter_async_context(stage(database, theatre_config(2, 2, ga_capacity=PLACES)))
            await add_provider(made)
            owner = await asyncpg.connect(database.owner)
            stack.push_async_callback(owner.close)
            return World(runner, made, owner)

        yield runner.run(begin())
        runner.run(stack.aclose())


class History(RuleBasedStateMachine):
    world: World

    def __init__(self) -> None:
        super().__init__()
        self.model = CheckoutHall([Seat() for _ in range(SEATS)], PLACES, UNLIMITED)
        self.holds: list[Hold] = []
        self.sound = True

    @initialize(heartbeat=st.booleans())
    def open_event(self, heartbeat: bool) -> None:
        self.model.heartbeat = heartbeat
        made = self.world.made
        overrides = {"orphan_avoidance_strict": False, "max_holds_per_user": None, "checkout_heartbeat": heartbeat}
        prices = [("stalls", SEAT_PRICE), ("pit", PLACE_PRICE)]
        self.event_id = self.world.run(
            made.make_event(
                theatre_config(2, 2, ga_capacity=PLACES),
                overrides=overrides,
                currency="EUR",
                prices=[{"zone_id": zone, "amount_minor": amount} for zone, amount in prices],
            )
        )
        seats = self.ask("GET", f"/api/events/{self.event_id}/seats", made.admin).json()["data"]
        self.seats: list[str] = [seat["id"] for seat in seats]
        self.tokens = {f"buyer-{n}": self.guest() for n in (1, 2)}
        self.hold_and_check_out("buyer-1", [0], 2)

    def guest(self) -> dict[str, str]:
        answer = self.ask("POST", "/api/guest-tokens", {}, {"event_id": self.event_id})
        return {"Authorization": f"Bearer {answer.json()['data']['token']}"}

    # Asking ----------------------------------------------------------------------------------------------------------
    def ask(self, method: str, path: str, headers: dict[str, str], body: Any = None) -> httpx.Response:
        sent = self.world.made.client.request(method, path, headers=headers, json=body)
        return self.world.run(sent)

    def same(self, expected: object, answered: object, said: str = "") -> None:
        self.sound = expected == answered
        assert answered == expected, f"the engine answers {answered!r}, the model {expected!r} {said}"

    def agree(self, expected: bool, answer: httpx.Response) -> None:
        """Done or refused: a refusal is a 4xx that the buyer can read."""
        assert answer.status_code < 500, answer.text
        self.same(expected, answer.status_code < 400, answer.text)
        if not expected:
            assert answer.json()["error"]
            assert answer.json()["detail"]

    def session(self, which: int) -> Session | None:
        return self.model.sessions[-1 - which % len(self.model.sessions)] if self.model.sessions else None

    def act(self, which: int, verb: str, path: str, body: Any = None, method: str = "POST") -> None:
        """On one of the sessions, by its owner; `verb` of the model."""
        session = self.session(which)
        if session is not None:
            expected = getattr(self.model, verb)(session)
            answer = self.ask(method, f"/api/checkouts/{session.id}{path}", self.tokens[session.owner], body)
            self.agree(expected, answer)

    # Holds -----------------------------------------------------------------------------------------------------------
    @rule(buyer=buyers, seats=some_seats, places=some_places, free=st.booleans())
    def hold(self, buyer: str, seats: list[int], places: int, free: bool) -> None:
        if free:  # a random selection is seldom all free
            seats = self.model.in_state("available")[: len(seats)]
            places = min(places, self.model.free_places())
        if not seats and not places:
            return
        expected = self.model.hold(buyer, seats, places)
        body: dict[str, Any] = {"seats": [self.seats[n] for n in seats]}
        if places:
            body["ga"] = [{"zone_id": "pit", "quantity": places}]
        answer = self.ask("POST", f"/api/events/{self.event_id}/holds", self.tokens[buyer], body)
        self.agree(not isinstance(expected, str), answer)
        if not isinstance(expected, str):
            given = {hold["seat_id"]: UUID(hold["hold_id"]) for hold in answer.json()["data"]["holds"]}
            for hold in expected.created:
                hold.id = given[None if hold.seat is None else self.seats[hold.seat]]
                self.holds.append(hold)

    @rule(which=one_of_many)
    def release(self, which: int) -> None:
        if self.holds:
            hold = self.holds[-1 - which % len(self.holds)]
            expected = self.model.release_own(hold)
            self.agree(expected, self.ask("DELETE", f"/api/holds/{hold.id}", self.tokens[hold.owner]))

    @rule(which=one_of_many)
    def extend(self, which: int) -> None:
        if self.holds:
            hold = self.holds[-1 - which % len(self.holds)]
            inside = self.model.session_of(hold) is not None
            expected = not inside and self.model.extend(hold.owner, hold) == "active"
            self.agree(expected, self.ask("POST", f"/api/holds/{hold.id}/extend", self.tokens[hold.owner]))

    # Sessions --------------------------------------------------------------------------------------------------------
    @rule(buyer=buyers)
    def check_out(self, buyer: str) -> None:
        session = self.model.open(buyer)
        answer = self.ask("POST", f"/api/events/{self.event_id}/checkouts", self.tokens[buyer], {})
        if session is None:  # nothing new: the session that runs, or a refusal
            assert answer.status_code in (200, 409), answer.text
            return
        self.same(201, answer.status_code, answer.text)
        shown = answer.json()["data"]
        session.id = UUID(shown["id"])
        self.same(session.due, shown["total_minor"])

    @rule(buyer=buyers, seats=some_seats, places=some_places)
    def hold_and_check_out(self, buyer: str, seats: list[int], places: int) -> None:
        self.hold(buyer, seats, places, True)
        self.check_out(buyer)

    @rule(which=one_of_many)
    def add(self, which: int) -> None:
        session = self.session(which)
        loose = [] if session is None else self.model.loose(session.owner)
        if session is not None and loose:
            expected = self.model.add(session)
            body = {"hold_ids": [str(hold.id) for hold in loose]}
            self.agree(
                expected, self.ask("POST", f"/api/checkouts/{session.id}/holds", self.tokens[session.owner], body)
            )

    @rule(which=one_of_many, line=one_of_many)
    def drop(self, which: int, line: int) -> None:
        session = self.session(which)
        if session is not None and session.kept:
            hold = session.kept[line % len(session.kept)]
            expected = self.model.drop(session, hold)
            path = f"/api/checkouts/{session.id}/holds/{hold.id}"
            self.agree(expected, self.ask("DELETE", path, self.tokens[session.owner]))

    @rule(which=one_of_many)
    def heartbeat(self, which: int) -> None:
        self.act(which, "beat", "/heartbeat")

    @rule(which=one_of_many)
    def cancel(self, which: int) -> None:
        session = self.session(which)
        if session is not None and session.status != "cancelled":
            self.act(which, "cancel", "/cancel")

    # Money -----------------------------------------------------------------------------------------------------------
    @rule(which=one_of_many)
    def pay(self, which: int) -> None:
        self.act(which, "pay", "/pay", {"provider": "stripe"})

    @rule(which=one_of_many)
    def stop_paying(self, which: int) -> None:
        self.act(which, "stop_paying", "/pay/cancel")

    @rule(which=one_of_many, wrong=st.sampled_from([0, 0, 0, 1]), again=st.booleans())
    def money_arrives(self, which: int, wrong: int, again: bool) -> None:
        """Whenever it does; and sometimes the provider says so twice."""
        session = self.session(which)
        if session is None:
            return
        self.world.messages += 1
        amount = session.due + wrong
        self.model.receive(session, amount)
        reference = f"pi_{self.world.messages}"
        for n in range(1 + again):
            body = message(str(session.id), reference, amount=amount, message_id=f"evt_{self.world.messages}_{n}")
            answer = self.world.run(tell(self.world.made, body))
            self.same(200, answer.status_code, answer.text)

    @rule(which=one_of_many, paying=st.booleans(), swept=st.booleans(), rival=st.booleans())
    def money_arrives_late(self, which: int, paying: bool, swept: bool, rival: bool) -> None:
        """Everything has run out; perhaps somebody else was glad of a seat."""
        session = self.session(which)
        if session is None or not session.kept:
            return
        if paying:
            self.act(which, "pay", "/pay", {"provider": "stripe"})
        self.pass_time(30, swept, swept)
        seats = [hold.seat for hold in session.kept if hold.seat is not None]
        if rival and seats:
            self.hold("buyer-2" if session.owner == "buyer-1" else "buyer-1", seats[:1], 0, False)
        self.money_arrives(which, 0, False)

    @rule(which=one_of_many)
    def complete_by_hand(self, which: int) -> None:
        session = self.session(which)
        if session is None or session.status == "completed":
            return
        self.world.messages += 1
        expected = self.model.complete_by_hand(session)
        body = {"payment_reference": f"till-{self.world.messages}"}
        self.agree(expected, self.ask("POST", f"/api/checkouts/{session.id}/complete", self.world.made.admin, body))

    @rule(which=one_of_many)
    def complete_without_money(self, which: int) -> None:
        """The buyer presses the button again and again: what is completed stays, nothing else is given away."""
        session = self.session(which)
        if session is not None:
            answer = self.ask("POST", f"/api/checkouts/{session.id}/complete", self.tokens[session.owner])
            self.agree(session.status == "completed", answer)

    # Time ------------------------------------------------------------------------------------------------------------
    @rule(minutes=minutes, sweep_holds=st.booleans(), sweep_sessions=st.booleans())
    def pass_time(self, minutes: int, sweep_holds: bool, sweep_sessions: bool) -> None:
        self.model.now += minutes
        self.world.run(self.world.made.advance_clock(60 * minutes))
        organization_id = self.world.made.first.organization_id
        app = self.world.made.app
        if sweep_holds:
            self.world.run(ExpireHolds(app.database).sweep(organization_id))
        if sweep_sessions:
            self.world.run(ExpireCheckouts(app.database).once())

    # Comparing -------------------------------------------------------------------------------------------------------
    @invariant()
    def looks_the_same(self) -> None:
        if hasattr(self, "tokens"):
            self.world.run(self.compare())

    async def compare(self) -> None:
        event_id = UUID(self.event_id)
        (row,) = await self.world.sql(SEEN, event_id)
        self.same(self.model.summary(), (row["states"], row["held"], row["sold"]))
        known = {session.id: session for session in self.model.sessions}
        for row in await self.world.sql(SESSIONS, event_id):
            session = known[row["id"]]
            self.same(self.model.standing(session), row["status"])
            self.same(
                (session.tickets, session.applied, session.applied), (row["tickets"], row["applied"], row["worth"])
            )
            self.same(sorted(session.refunds), row["refunds"])
            self.same(0, row["unsettled"])
        for row in await self.world.sql(CLOCKS, event_id):
            self.sound = False
            if row["ordinal"] is not None:
                assert row["held_until"] == row["seat_until"], "hold and seat disagree"
            if self.model.heartbeat:
                assert row["held_until"] <= row["expires_at"], "a hold outlives its session"
            else:
                assert row["held_until"] == row["expires_at"], "session and hold have two clocks"
            self.sound = True

    def teardown(self) -> None:
        if self.sound and hasattr(self, "tokens"):
            self.world.run(self.reckon())

    async def reckon(self) -> None:
        statuses: dict[UUID, str] = {}
        for row in await self.world.sql(HOLDS, UUID(self.event_id)):
            statuses[row["id"]] = row["status"]
            assert row["verbs"] == LIVES[row["stored"]], (row["stored"], row["verbs"])
            if row["stored"] == "converted":
                assert row["ended_at"] < row["held_until"], "sold after its end"
        for hold in self.holds:
            assert hold.id is not None
            assert statuses[hold.id] == self.model.status(hold)
        organization_id = self.world.made.first.organization_id
        found = await check_event(self.world.made.app.database, organization_id, UUID(self.event_id), set())
        assert [f"{i.name}: {i.detail}" for i in found if not i.ok] == []


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
        "phases": [Phase.generate],  # a history can be read as it is; making it shorter takes minutes
    }
    run_state_machine_as_test(Here, settings=settings(**{**chosen, **changes}))


def test_checkout_does_what_its_model_does(database: TestDatabase) -> None:
    with world(database) as w:
        run_histories(w)


FRESH = " AND (s.held_until IS NULL OR s.held_until > holdfast_now())\n"


@pytest.mark.parametrize(
    ("function", "old", "new"),
    [
        ("convert_holds", "      AND s.state = 'held' AND s.hold_id = w.id" + FRESH, "      AND s.hold_id = w.id\n"),
        ("checkout_hold_end", "least(p_expires_at, p_now", "greatest(p_expires_at, p_now"),
        (
            "retime_holds",
            "held_until = CASE WHEN h.held_until IS NOT NULL THEN p_until END",
            "held_until = h.held_until",
        ),
    ],
    ids=["sells what is over", "holds outlive the session", "two clocks"],
)
def test_control_a_broken_function_is_found(database: TestDatabase, function: str, old: str, new: str) -> None:
    with world(database, changed(function, (old, new))) as w, pytest.raises(AssertionError):
        run_histories(w, report_multiple_bugs=False)
