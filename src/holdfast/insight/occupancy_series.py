"""How full an event was over time, by adding up its log from the beginning. Pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from holdfast.insight.analytics import OccupancyPoint, ZoneSeries
from holdfast.insight.numbers import Numbers
from holdfast.insight.window import Window, floor_to, instants


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What one step of time added to a zone's places; `begin` None: all that came before the window."""

    segment: int
    zone_no: int
    begin: datetime | None
    held: int
    sold: int
    blocked: int


def series(
    numbers: Numbers, changes: Iterable[Change], window: Window, step_s: int, zone: UUID | None = None
) -> list[OccupancyPoint]:
    """At each instant, what the moves before it had led to; of one zone, or of all."""
    zone_ids = numbers.zone_ids
    added: dict[datetime | None, list[int]] = {}
    for change in changes:
        if zone is None or zone_ids[change.segment, change.zone_no] == zone:
            sums = added.setdefault(change.begin, [0, 0, 0])
            for n, count in enumerate((change.held, change.sold, change.blocked)):
                sums[n] += count
    taken = added.pop(None, [0, 0, 0])
    points: list[OccupancyPoint] = []
    begins = sorted(begin for begin in added if begin is not None)
    for at in instants(window, step_s):
        # Instants are the ends of steps, but for the first, where the window begins: what its step brings comes later.
        upto = at if at == window.until else floor_to(at, step_s)
        while begins and begins[0] < upto:
            taken = [before + count for before, count in zip(taken, added[begins.pop(0)], strict=True)]
        total = capacity_at(numbers, at, zone)
        held, sold, blocked = taken
        points.append(
            OccupancyPoint(
                at=at, available=total - held - sold - blocked, held=held, sold=sold, blocked=blocked, total=total
            )
        )
    return points


def capacity_at(numbers: Numbers, at: datetime, zone: UUID | None) -> int:
    layout = numbers.layout_at(at)
    return layout.total_capacity if zone is None else sum(z.capacity for z in layout.zones if z.id == zone)


def zone_series(
    numbers: Numbers, changes: Sequence[Change], window: Window, step_s: int, zone_ids: Sequence[UUID]
) -> list[ZoneSeries]:
    names = {zone.id: zone for layout in numbers.layouts for zone in layout.zones}
    return [
        ZoneSeries(
            zone_id=names[zone].zone_id, name=names[zone].name, points=series(numbers, changes, window, step_s, zone)
        )
        for zone in zone_ids
    ]
