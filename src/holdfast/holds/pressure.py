"""How hard an event is being bought, and how long new holds last because of it. Pure: time is the caller's."""

from collections.abc import Callable
from uuid import UUID

CROWDED_FROM, CROWDED_AT = 0.5, 0.95
"""Shares of an event's places that are held or sold: below the first nobody is in the way, at the second everybody is."""
REFUSED_AT = 0.5
"""The share of refused requests at which pressure is full, however empty the event: all want the same seats."""
FEW = 20
"""Requests in a minute that a share is reckoned of at least: one refusal on a quiet evening is no crowd."""
WINDOW_S = 60
_SLOT_S = 5
_SLOTS = WINDOW_S // _SLOT_S
FRESH_S = 1.0
EVENTS_MAX = 1_000

PRESSING = frozenset(("seat_held_by_another_user", "seat_not_available", "block_at_capacity", "no_seats_available"))
"""Refusals because somebody else was there first."""


def pressure_of(taken_share: float, refused_share: float) -> float:
    """From 0, nobody waits for anybody, to 1. Either cause is enough, and they add up."""
    crowded = _ramp(taken_share, CROWDED_FROM, CROWDED_AT)
    refused = _ramp(refused_share, 0.0, REFUSED_AT)
    return 1.0 - (1.0 - crowded) * (1.0 - refused)


def _ramp(value: float, low: float, high: float) -> float:
    return min(1.0, max(0.0, (value - low) / (high - low)))


def adaptive_ttl_s(life_s: int, pressure: float, *, low_s: int, high_s: int | None) -> int:
    """A hold's life: `high_s` (or the life it would have anyway) without pressure, `low_s` under full pressure."""
    longest = life_s if high_s is None else high_s
    shortest = min(low_s, longest)
    return longest - round((longest - shortest) * min(1.0, max(0.0, pressure)))


class Demand:
    """Requests for one event's places in the last minute: how many were granted, how many refused."""

    __slots__ = ("_granted", "_refused", "_slot", "pressure", "reckoned_at", "refused_elsewhere")

    def __init__(self) -> None:
        self._granted = [0] * _SLOTS
        self._refused = [0] * _SLOTS
        self._slot = 0
        self.pressure = 0.0
        self.reckoned_at = float("-inf")
        self.refused_elsewhere = 0
        """Of a count that somebody else keeps: how far it has been taken over."""

    def note(self, granted: int, refused: int, now: float) -> None:
        self._turn(now)
        at = self._slot % _SLOTS
        self._granted[at] += granted
        self._refused[at] += refused

    def refused_share(self, now: float) -> float:
        self._turn(now)
        refused = sum(self._refused)
        return refused / max(FEW, refused + sum(self._granted))

    def _turn(self, now: float) -> None:
        slot = int(now // _SLOT_S)
        for old in range(max(self._slot + 1, slot - _SLOTS + 1), slot + 1):
            self._granted[old % _SLOTS] = self._refused[old % _SLOTS] = 0
        self._slot = max(self._slot, slot)


class Demands:
    """Of the events whose holds last as long as the crowd lets them. Of all others nothing is counted."""

    def __init__(self) -> None:
        self._events: dict[UUID, Demand] = {}

    def granted(self, event_id: UUID, count: int, now: Callable[[], float]) -> None:
        demand = self._events.get(event_id)
        if demand is not None:
            demand.note(count, 0, now())

    def refused(self, event_id: UUID, code: str, now: Callable[[], float]) -> None:
        demand = self._events.get(event_id)
        if demand is not None and code in PRESSING:
            demand.note(0, 1, now())

    def pressure(self, event_id: UUID, taken_share: Callable[[], float], refused_elsewhere: int, now: float) -> float:
        """Reckoned at most once a second. `refused_elsewhere`: all that were ever refused without this being told."""
        demand = self._events.get(event_id)
        if demand is None:
            if len(self._events) >= EVENTS_MAX:
                self._events.clear()
            demand = self._events[event_id] = Demand()
            demand.refused_elsewhere = refused_elsewhere
        if now - demand.reckoned_at >= FRESH_S:
            demand.note(0, max(0, refused_elsewhere - demand.refused_elsewhere), now)
            demand.refused_elsewhere = refused_elsewhere
            demand.pressure = pressure_of(taken_share(), demand.refused_share(now))
            demand.reckoned_at = now
        return demand.pressure
