"""Every half minute: how many seats of the events in this process's memory stand alone, and how many picks left some.

Wherever an event is asked for it is in memory, so every event that is being sold is measured somewhere.
"""

from holdfast.allocation.alone import seats_alone
from holdfast.allocation.floor import floor_of
from holdfast.holds.orphan_guard import OrphanGuard
from holdfast.kernel.counting import Labels, PlainGauge
from holdfast.store.registry import Registry

ORPHANS = PlainGauge(
    "holdfast_event_orphan_ratio",
    "Share of an event's numbered seats that are free with no free neighbour, of the events in this process's memory",
    ("organization_id", "event_id"),
)

PAUSE_S = 30.0
EVENTS_MAX = 200


class MeasureOrphans:
    name = "measure_orphans"

    def __init__(self, registry: Registry, guard: OrphanGuard) -> None:
        self._registry = registry
        self._guard = guard

    async def once(self) -> float:
        self._guard.log_left_alone()
        ratios: dict[Labels, float] = {}
        for event in self._registry.hot.events()[-EVENTS_MAX:]:
            seats = event.layout.seat_count
            if seats:
                alone = seats_alone(floor_of(event.layout), self._registry.free_seats(event))
                ratios[str(event.organization_id), str(event.event_id)] = alone / seats
        ORPHANS.replace(ratios)
        return PAUSE_S
