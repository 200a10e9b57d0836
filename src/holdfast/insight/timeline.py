"""An event's log as a line of time: which state each seat, and each zone's counters, can have been in at an instant.

A move took effect at some instant between its `at` and its commit. A state was therefore possible from its own `at` until
the commit of the move after it, and certain from its own commit until the `at` of that move.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Generic, TypeVar
from uuid import UUID

import msgspec

from holdfast.holds.lifecycle import SeatState, Verb
from holdfast.insight.history_facts import EventRecord, HoldRecord, LoggedMove


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """A seat's state from one version to the next."""

    state: SeatState
    hold_id: UUID | None
    until: float | None
    """The end of the hold, as it was at last."""
    at: float
    committed_at: float
    next_at: float
    next_committed_at: float

    def lapsed_by(self, instant: float) -> bool:
        return self.state is SeatState.HELD and self.until is not None and self.until < instant

    def certain(self, since: float, until: float) -> bool:
        return self.committed_at <= since and until <= self.next_at


class ZoneStep(msgspec.Struct, frozen=True, kw_only=True):
    """A zone's counters from one version to the next."""

    held: int
    sold: int
    at: float
    next_committed_at: float


State = TypeVar("State", Span, ZoneStep)
Target = int | tuple[str, int]
"""A seat by its ordinal, or a zone's places."""


class _Line(Generic[State]):
    """The states one after another."""

    def __init__(self, states: Sequence[State]) -> None:
        self._states: Sequence[State] = states
        # `at` may go back a little from one version to the next: the earliest of all that follow bounds a search.
        self._floors = list(accumulate((state.at for state in reversed(states)), min))[::-1]

    def between(self, since: float, until: float) -> list[State]:
        found: list[State] = []
        for n in range(bisect_left(self._states, since, key=lambda s: s.next_committed_at), len(self._states)):
            if self._floors[n] > until:
                break
            if self._states[n].at <= until:
                found.append(self._states[n])
        return found


class Timeline:
    def __init__(self, record: EventRecord, slack_s: float) -> None:
        self.record = record
        self.zone_nos = {seat.ordinal: seat.zone_no for seat in record.last.facts.seats}
        self.holds: dict[UUID, HoldRecord] = {hold.hold_id: hold for hold in record.holds}
        self.begins: dict[UUID, LoggedMove] = {}
        self.ends: dict[UUID, LoggedMove] = {}
        self.renumbered: set[UUID] = set()
        """Holds whose seat or zone has had another number since."""
        self._slack_s = slack_s
        moves: dict[Target, list[LoggedMove]] = {}
        for move in record.last.moves:
            moves.setdefault(target_of(move), []).append(move)
            if move.row.verb is Verb.MIGRATE:  # a hold neither begins nor ends with it
                if move.row.hold_id is not None:
                    self.renumbered.add(move.row.hold_id)
            elif move.row.hold_id is not None:
                known = self.begins if move.row.new_state is SeatState.HELD else self.ends
                known[move.row.hold_id] = move
        self.moves = {target: _by_version(of_target) for target, of_target in moves.items()}
        self._seats = {n: _Line(self._spans_of(self.moves.get(n, ()))) for n in self.zone_nos}
        zones = [zone.zone_no for zone in record.last.facts.zones]
        self._zones = {zone_no: _Line(_steps(self.moves.get(("zone", zone_no), ()))) for zone_no in zones}

    def _spans_of(self, moves: Sequence[LoggedMove]) -> list[Span]:
        states = [(SeatState.AVAILABLE, None), *((move.row.new_state, move.row.hold_id) for move in moves)]
        instants = [(-math.inf, -math.inf), *((move.at, move.committed_at) for move in moves), (math.inf, math.inf)]
        spans: list[Span] = []
        for n, (state, hold_id) in enumerate(states):
            hold = self.holds.get(hold_id) if state is SeatState.HELD and hold_id is not None else None
            spans.append(
                Span(
                    state=state,
                    hold_id=hold_id if state is SeatState.HELD else None,
                    until=None if hold is None else hold.held_until,
                    at=instants[n][0],
                    committed_at=instants[n][1],
                    next_at=instants[n + 1][0],
                    next_committed_at=instants[n + 1][1],
                )
            )
        return spans

    def possible(self, ordinal: int, since: float, until: float) -> list[Span]:
        """Every state the seat can have been seen in between two instants. Empty: there is no such seat."""
        line = self._seats.get(ordinal)
        return [] if line is None else line.between(since - self._slack_s, until + self._slack_s)

    def zone_possible(self, zone_no: int, since: float, until: float) -> list[ZoneStep]:
        line = self._zones.get(zone_no)
        return [] if line is None else line.between(since - self._slack_s, until + self._slack_s)


def target_of(move: LoggedMove) -> Target:
    return move.row.ordinal if move.row.ordinal is not None else ("zone", move.row.zone_no or 0)


def _by_version(moves: Iterable[LoggedMove]) -> list[LoggedMove]:
    return sorted(moves, key=lambda move: (move.row.version, move.id))


def _steps(moves: Iterable[LoggedMove]) -> list[ZoneStep]:
    held = sold = 0
    at = -math.inf
    steps: list[ZoneStep] = []
    for move in moves:
        steps.append(ZoneStep(held=held, sold=sold, at=at, next_committed_at=move.committed_at))
        row = move.row
        held += row.quantity * ((row.new_state is SeatState.HELD) - (row.old_state is SeatState.HELD))
        sold += row.quantity * ((row.new_state is SeatState.SOLD) - (row.old_state is SeatState.SOLD))
        at = move.at
    return [*steps, ZoneStep(held=held, sold=sold, at=at, next_committed_at=math.inf)]


def of_hold(hold_id: UUID | None) -> str:
    return "" if hold_id is None else f" (hold {hold_id})"


def were(spans: Sequence[Span]) -> str:
    return " or ".join(dict.fromkeys(f"{span.state}{of_hold(span.hold_id)}" for span in spans)) or "not there"
