"""Which companion seats of an event are softly kept, by what is in memory: free, while a wheelchair seat they belong to is
held or sold, and while their zone is not full enough. Only events whose layout has such seats have one of these."""

import numpy as np
from numpy.typing import NDArray
from prometheus_client import Counter, Gauge

from holdfast.seating.accessibility import places_to_free
from holdfast.seating.layout import Layout
from holdfast.seating.policy import SeatingPolicy

KEPT = Gauge("holdfast_companions_soft_reserved", "Companion seats softly kept, in the events in this process's memory")
OFFERED = Counter(
    "holdfast_companions_offered_total", "Companion seats that went to everyone because their zone is full enough"
)

MARGIN = 256
"""Places that may be taken before this process hears of it: so near to the threshold only the database knows."""

_TAKEN = np.array([False, True, True, False])
"""By the code of a seat's state: available, held, sold, blocked."""


class Keeping:
    def __init__(self, layout: Layout) -> None:
        pairs = [(companion, chair) for companion, chairs in layout.companion_wheelchairs.items() for chair in chairs]
        self.companions: NDArray[np.int64] = np.array(list(layout.companion_wheelchairs), np.int64)
        """In the order of their ordinals."""
        self.wheelchairs_of = layout.companion_wheelchairs
        self._capacities = np.array([zone.capacity for zone in layout.zones], np.int64)
        self._zones = np.array(layout.zone_nos, np.int64)
        self._of = np.searchsorted(self.companions, [companion for companion, _ in pairs])
        """Pair by pair: the companion's position among the companions."""
        self._chairs = np.array([chair for _, chair in pairs], np.int64)
        self._watched = np.zeros(layout.seat_count, np.bool_)
        self._watched[self.companions] = True
        self._watched[self._chairs] = True
        self._taken = np.zeros(len(layout.zones), np.int64)
        """Places held or sold, by zone."""
        self._free_from = np.zeros(len(layout.zones), np.int64)
        self._terms: tuple[bool, int] | None = None
        self.soft: NDArray[np.bool_] = np.zeros(layout.seat_count, np.bool_)

    @property
    def percent(self) -> int:
        return 0 if self._terms is None else self._terms[1]

    @property
    def kept(self) -> list[int]:
        listed: list[int] = np.nonzero(self.soft)[0].tolist()
        return listed

    def set_terms(self, policy: SeatingPolicy, states: NDArray[np.uint8]) -> NDArray[np.int64]:
        """By this policy from here on; answers the seats that are kept now and were not, or the other way."""
        terms = (policy.enforce_accessibility_rules, policy.companion_release_occupancy_threshold)
        if terms == self._terms:
            return self.companions[:0]
        self._terms = terms
        percent = terms[1] if terms[0] else 0
        self._free_from = np.array([places_to_free(int(capacity), percent) for capacity in self._capacities], np.int64)
        return self._judge(states)

    def follow(
        self,
        ordinals: NDArray[np.int64],
        before: NDArray[np.uint8],
        after: NDArray[np.uint8],
        states: NDArray[np.uint8],
    ) -> NDArray[np.int64]:
        """These seats moved; `states` are all seats' as they are now. Answers as `set_terms` does."""
        change = _TAKEN[after].astype(np.int64) - _TAKEN[before]
        full = self._taken >= self._free_from
        if change.any():
            np.add.at(self._taken, self._zones[ordinals], change)
        freed = self._taken >= self._free_from
        if not self._watched[ordinals].any() and (full == freed).all():
            return self.companions[:0]
        flipped = self._judge(states)
        newly = freed & ~full
        if newly.any():
            gone = flipped[~self.soft[flipped] & newly[self._zones[flipped]] & (states[flipped] == 0)]
            OFFERED.inc(len(gone))
        return flipped

    def _judge(self, states: NDArray[np.uint8]) -> NDArray[np.int64]:
        taken = np.bincount(self._of, _TAKEN[states[self._chairs]], len(self.companions)) > 0
        zones = self._zones[self.companions]
        kept = taken & (states[self.companions] == 0) & (self._taken[zones] < self._free_from[zones])
        flipped: NDArray[np.int64] = self.companions[kept != self.soft[self.companions]]
        self.soft[self.companions] = kept
        return flipped

    def is_far_from_free(self, ordinal: int) -> bool:
        """Whether the seat's zone lacks so many places that what is under way cannot free the seat."""
        zone = self._zones[ordinal]
        return bool(self._taken[zone] + MARGIN < self._free_from[zone])
