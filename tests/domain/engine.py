"""A small engine that keeps every promise, with a clock of its own: what it leaves behind is the history of a sound run."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import msgspec

from holdfast.holds.lifecycle import HoldStatus, LogRow, SeatState, Verb
from holdfast.insight.event_facts import EventFacts, HoldFact, SeatFact, ZoneFact
from holdfast.insight.history_facts import (
    Act,
    Disturbance,
    EventRecord,
    History,
    HoldRecord,
    LoggedMove,
    Operation,
    Outcome,
    Places,
    Sample,
    Word,
)
from holdfast.insight.occupancy import Count

LIFE_S = 4.0
SEATS = 6
PIT = 1
CAPACITY = 10
EPOCH = 1_000.0
"""Ahead of the clients' monotonic clock."""
ENDS_AS = {
    Verb.RELEASE: HoldStatus.CANCELLED,
    Verb.EXPIRE: HoldStatus.EXPIRED,
    Verb.CONVERT: HoldStatus.CONVERTED,
}


@dataclass
class Seat:
    state: SeatState = SeatState.AVAILABLE
    version: int = 0
    hold: UUID | None = None


@dataclass
class Engine:
    number: int = 1
    """Of the organization, and of its event."""
    dice: random.Random = field(default_factory=lambda: random.Random(1))
    seats: list[Seat] = field(default_factory=lambda: [Seat() for _ in range(SEATS)])
    holds: dict[UUID, HoldRecord] = field(default_factory=dict)
    moves: list[LoggedMove] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    zone_version: int = 0
    pit_held: int = 0
    pit_sold: int = 0
    counted: Counter[tuple[int, SeatState, str]] = field(default_factory=Counter)
    """The counters of occupancy."""

    @property
    def organization_id(self) -> UUID:
        return UUID(int=self.number)

    @property
    def event_id(self) -> UUID:
        return UUID(int=1_000 + self.number)

    def buyer(self, n: int) -> str:
        return str(UUID(int=10_000 * self.number + n))

    # What clients ask for ------------------------------------------------------------------------------------------
    def reserve(self, owner: str, ordinal: int, t: float, *, lost: bool = False) -> Operation:
        seat = self.seats[ordinal]
        in_the_way = self._living(ordinal, t)
        if in_the_way is not None and in_the_way.owner == owner:
            found = {"hold_ids": (in_the_way.hold_id,), "until": in_the_way.held_until}
            return self._tell(Act.RESERVE, owner, t, lost=lost, ordinals=(ordinal,), **found)
        if seat.state is not SeatState.AVAILABLE:
            code = "seat_held_by_another_user" if seat.state is SeatState.HELD else "seat_not_available"
            return self._tell(Act.RESERVE, owner, t, lost=lost, ordinals=(ordinal,), code=code)
        hold = self._begin(ordinal, 1, t, user_id=UUID(owner))
        given = {"hold_ids": (hold.hold_id,), "until": hold.held_until}
        return self._tell(Act.RESERVE, owner, t, lost=lost, ordinals=(ordinal,), **given)

    def reserve_several(self, owner: str, ordinals: tuple[int, ...], t: float) -> Operation:
        """All of them, or none; those already the buyer's own come back as they are."""
        held = [self._living(ordinal, t) for ordinal in ordinals]
        for ordinal, hold in zip(ordinals, held, strict=True):
            if self.seats[ordinal].state is not SeatState.AVAILABLE and (hold is None or hold.owner != owner):
                code = "seat_held_by_another_user" if hold is not None else "seat_not_available"
                return self._tell(Act.RESERVE, owner, t, ordinals=ordinals, code=code, refused_ordinal=ordinal)
        user_id = UUID(owner)
        holds = [
            hold or self._begin(ordinal, 1, t, user_id=user_id) for ordinal, hold in zip(ordinals, held, strict=True)
        ]
        until = min(hold.held_until or t for hold in holds)
        ids = tuple(hold.hold_id for hold in holds)
        return self._tell(Act.RESERVE, owner, t, ordinals=ordinals, hold_ids=ids, until=until)

    def reserve_places(self, owner: str, quantity: int, t: float) -> Operation:
        places = (Places(PIT, quantity),)
        self.sweep(t)
        if CAPACITY - self.pit_held - self.pit_sold < quantity:
            return self._tell(Act.RESERVE, owner, t, places=places, code="block_at_capacity")
        hold = self._begin(None, quantity, t, user_id=UUID(owner))
        return self._tell(Act.RESERVE, owner, t, places=places, hold_ids=(hold.hold_id,), until=hold.held_until)

    def lock(self, session: str, ordinal: int, t: float) -> Operation:
        self._living(ordinal, t)
        if self.seats[ordinal].state is not SeatState.AVAILABLE:
            return self._tell(Act.LOCK, session, t, ordinals=(ordinal,), code="false")
        self._begin(ordinal, 1, t, session_id=session)
        return self._tell(Act.LOCK, session, t, ordinals=(ordinal,))

    def sell(self, session: str, ordinal: int, t: float, *, lost: bool = False) -> Operation:
        hold = self._living(ordinal, t)
        if hold is None or hold.session_id != session:
            return self._tell(Act.SELL, session, t, lost=lost, ordinals=(ordinal,), code="false")
        self._end(hold.hold_id, Verb.CONVERT, t)
        return self._tell(Act.SELL, session, t, lost=lost, ordinals=(ordinal,))

    def revert(self, session: str, ordinal: int, t: float) -> Operation:
        if self.seats[ordinal].state is not SeatState.SOLD:
            return self._tell(Act.REVERT, session, t, ordinals=(ordinal,), code="false")
        self._move(ordinal, Verb.REVERT_SALE, SeatState.AVAILABLE, t, session_id=session)
        return self._tell(Act.REVERT, session, t, ordinals=(ordinal,))

    def release(self, owner: str, hold_id: UUID, t: float, *, lost: bool = False) -> Operation:
        hold = self.holds[hold_id]
        if hold.status is HoldStatus.ACTIVE:
            self._end(hold_id, Verb.EXPIRE if self._over(hold, t) else Verb.RELEASE, t)
        return self._tell(Act.RELEASE, owner, t, lost=lost, hold_ids=(hold_id,), **self._target(hold))

    def extend(self, owner: str, hold_id: UUID, t: float) -> Operation:
        hold = self.holds[hold_id]
        if hold.status is not HoldStatus.ACTIVE or self._over(hold, t):
            return self._tell(Act.EXTEND, owner, t, hold_ids=(hold_id,), code="hold_expired", **self._target(hold))
        self.holds[hold_id] = msgspec.structs.replace(hold, held_until=t + LIFE_S)
        return self._tell(Act.EXTEND, owner, t, hold_ids=(hold_id,), until=t + LIFE_S, **self._target(hold))

    def sweep(self, t: float) -> None:
        for hold in list(self.holds.values()):
            if hold.status is HoldStatus.ACTIVE and self._over(hold, t):
                self._end(hold.hold_id, Verb.EXPIRE, t)

    # What is seen of it --------------------------------------------------------------------------------------------
    def word(self, t: float, source: str = "process 1", later_s: float = 0.0) -> Word:
        """What a cache knows at an instant, and says a little later."""
        counts = {(0, state): sum(seat.state is state for seat in self.seats) for state in SeatState}
        counts[PIT, SeatState.HELD] = self.pit_held
        counts[PIT, SeatState.SOLD] = self.pit_sold
        counts[PIT, SeatState.AVAILABLE] = CAPACITY - self.pit_held - self.pit_sold
        return Word(
            source=source,
            organization_id=self.organization_id,
            event_id=self.event_id,
            began=t + later_s,
            ended=t + later_s + 0.01,
            states={n: seat.state for n, seat in enumerate(self.seats)},
            holders={n: seat.hold for n, seat in enumerate(self.seats) if seat.hold is not None},
            taken={n for n, seat in enumerate(self.seats) if seat.state is not SeatState.AVAILABLE},
            counts=counts,
        )

    def facts(self) -> EventFacts:
        active = [hold for hold in self.holds.values() if hold.status is HoldStatus.ACTIVE]
        return EventFacts(
            seats=[
                SeatFact(n, seat.state, seat.version, seat.hold, "CART" if seat.hold else None, None, 0)
                for n, seat in enumerate(self.seats)
            ],
            zones=[ZoneFact(PIT, CAPACITY, self.pit_held, self.pit_sold)],
            active_holds=[HoldFact(h.hold_id, h.ordinal, h.zone_no, h.quantity, "CART", None) for h in active],
            log=[move.row for move in self.moves],
            occupancy=[Count(*key, places) for key, places in self.counted.items()],
        )

    def sample(self, t: float) -> Sample:
        sample = Sample(t, list(self.moves), self.facts())
        self.samples.append(sample)
        return sample

    def record(self, t: float) -> EventRecord:
        return EventRecord(
            organization_id=self.organization_id,
            event_id=self.event_id,
            last=Sample(t, list(self.moves), self.facts()),
            holds=list(self.holds.values()),
            samples=list(self.samples),
        )

    # Inside --------------------------------------------------------------------------------------------------------
    def _living(self, ordinal: int, t: float) -> HoldRecord | None:
        """The hold in the seat. One that is over ends here, as it does for the next who wants the seat."""
        hold_id = self.seats[ordinal].hold
        if hold_id is not None and self._over(self.holds[hold_id], t):
            self._end(hold_id, Verb.EXPIRE, t)
            return None
        return None if hold_id is None else self.holds[hold_id]

    @staticmethod
    def _over(hold: HoldRecord, t: float) -> bool:
        return hold.held_until is not None and hold.held_until <= t

    @staticmethod
    def _target(hold: HoldRecord) -> dict[str, Any]:
        if hold.ordinal is not None:
            return {"ordinals": (hold.ordinal,)}
        return {"places": (Places(hold.zone_no, hold.quantity),)}

    def _tell(self, act: Act, owner: str, t: float, *, lost: bool = False, **facts: Any) -> Operation:
        before_s, after_s = self.dice.uniform(0.001, 0.3), self.dice.uniform(0.001, 0.3)
        outcome = Outcome.DONE if facts.get("code") is None else Outcome.REFUSED
        if lost:
            outcome = Outcome.UNKNOWN
            facts = {name: value for name, value in facts.items() if name in ("ordinals", "places")}
            if act in (Act.RELEASE, Act.EXTEND):
                facts["hold_ids"] = ()
        operation = Operation(
            act=act,
            organization_id=self.organization_id,
            event_id=self.event_id,
            owner=owner,
            began=t - before_s,
            ended=t + after_s,
            began_s=t - before_s - EPOCH,
            ended_s=t + after_s - EPOCH,
            outcome=outcome,
            **facts,
        )
        self.operations.append(operation)
        return operation

    def _begin(
        self, ordinal: int | None, quantity: int, t: float, user_id: UUID | None = None, session_id: str | None = None
    ) -> HoldRecord:
        hold = HoldRecord(
            hold_id=UUID(int=1_000_000 * self.number + len(self.holds)),
            ordinal=ordinal,
            zone_no=0 if ordinal is not None else PIT,
            quantity=quantity,
            status=HoldStatus.ACTIVE,
            held_until=t + LIFE_S,
            created_at=t,
            ended_at=None,
            user_id=user_id,
            session_id=session_id,
        )
        self.holds[hold.hold_id] = hold
        self._move(ordinal, Verb.HOLD, SeatState.HELD, t, hold=hold, user_id=user_id, session_id=session_id)
        return hold

    def _end(self, hold_id: UUID, verb: Verb, t: float) -> None:
        hold = msgspec.structs.replace(self.holds[hold_id], status=ENDS_AS[verb], ended_at=t)
        self.holds[hold_id] = hold
        new_state = SeatState.SOLD if verb is Verb.CONVERT else SeatState.AVAILABLE
        asked = verb is not Verb.EXPIRE
        self._move(
            hold.ordinal,
            verb,
            new_state,
            t,
            hold=hold,
            user_id=hold.user_id if asked else None,
            session_id=hold.session_id if asked else None,
        )

    def _move(
        self,
        ordinal: int | None,
        verb: Verb,
        new_state: SeatState,
        t: float,
        *,
        hold: HoldRecord | None = None,
        user_id: UUID | None = None,
        session_id: str | None = None,
    ) -> None:
        old_state = SeatState.AVAILABLE if verb is Verb.HOLD else SeatState.HELD
        if verb is Verb.REVERT_SALE:
            old_state = SeatState.SOLD
        quantity = 1 if hold is None else hold.quantity
        if ordinal is None:
            self.zone_version += 1
            self.pit_held += quantity * (1 if verb is Verb.HOLD else -1)
            self.pit_sold += quantity if verb is Verb.CONVERT else 0
        else:
            seat = self.seats[ordinal]
            seat.state, seat.version = new_state, seat.version + 1
            seat.hold = hold.hold_id if hold is not None and new_state is SeatState.HELD else None
        for state, change in ((old_state, -quantity), (new_state, quantity)):
            if state is not SeatState.AVAILABLE:
                self.counted[0 if ordinal is not None else PIT, state, "CART" if state is SeatState.HELD else ""] += (
                    change
                )
        row = LogRow(
            ordinal=ordinal,
            zone_no=0 if ordinal is not None else PIT,
            quantity=quantity,
            old_state=old_state,
            new_state=new_state,
            verb=verb,
            hold_id=None if hold is None else hold.hold_id,
            hold_type="CART",
            version=self.zone_version if ordinal is None else self.seats[ordinal].version,
        )
        late_s = self.dice.uniform(0.0, 0.01)
        self.moves.append(
            LoggedMove(
                id=len(self.moves) + 1, at=t - late_s, committed_at=t, row=row, user_id=user_id, session_id=session_id
            )
        )


def history_of(
    *engines: Engine, t: float, words: list[Word] | None = None, disturbances: Sequence[Disturbance] = ()
) -> History:
    return History(
        operations=[operation for engine in engines for operation in engine.operations],
        events=[engine.record(t) for engine in engines],
        words=words or [],
        disturbances=disturbances,
    )


def sound_run(seed: int, steps: int) -> History:
    """Two organizations' buyers at random, with answers that are lost, and caches that are a little behind."""
    dice = random.Random(seed)
    engines = [Engine(1, dice), Engine(2, dice)]
    words: list[Word] = []
    swept = t = EPOCH + 10.0
    for _ in range(steps):
        t += dice.uniform(0.01, 0.4)
        engine = dice.choice(engines)
        _one_act(engine, dice, t)
        if dice.random() < 0.4 or t - swept > 1.0:
            swept = t
            for each in engines:
                each.sweep(t + 0.001)
        if dice.random() < 0.1:
            engine.sample(t + 0.002)
        if dice.random() < 0.2:
            words.append(engine.word(t + 0.003, later_s=dice.uniform(0.0, 0.9)))
        t += 0.005
    for engine in engines:
        engine.sweep(t + LIFE_S)
    return history_of(*engines, t=t + LIFE_S + 0.1, words=words)


def _one_act(engine: Engine, dice: random.Random, t: float) -> None:
    owner, ordinal, lost = engine.buyer(dice.randrange(4)), dice.randrange(SEATS), dice.random() < 0.1
    own = [h for h in engine.holds.values() if h.user_id is not None and h.created_at < t - 0.4]
    session = f"s{dice.randrange(3)}"
    choice = dice.randrange(10)
    if choice == 9:
        engine.reserve_several(owner, tuple(sorted(dice.sample(range(SEATS), dice.randint(2, 3)))), t)
    elif choice <= 2 or not own:
        engine.reserve(owner, ordinal, t, lost=lost)
    elif choice == 3:
        engine.reserve_places(owner, dice.randint(1, 4), t)
    elif choice in (4, 5):
        hold = dice.choice(own[-4:])
        (engine.release if choice == 4 else engine.extend)(hold.owner, hold.hold_id, t)
    elif choice == 6:
        engine.lock(session, ordinal, t)
    elif choice == 7:
        engine.sell(session, ordinal, t, lost=lost)
    else:
        engine.revert(session, ordinal, t)
