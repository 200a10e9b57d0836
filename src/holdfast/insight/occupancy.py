"""How full an event is: the counters laid beside the layout's capacity. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol
from uuid import UUID

import msgspec

from holdfast.holds.lifecycle import SeatState
from holdfast.seating.layout import Layout, Zone, ZoneType


class Count(msgspec.Struct, frozen=True):
    """Places of one zone in one state; `hold_type` is that of what is held, and empty otherwise."""

    zone_no: int
    state: SeatState
    hold_type: str
    places: int


class Counted(msgspec.Struct, frozen=True):
    """The counters of an event at one instant."""

    at: datetime
    snapshot: str
    """Which transactions were over then; see `includes`."""
    counts: list[Count]


class Percents(msgspec.Struct, frozen=True, kw_only=True):
    available: float
    held: float
    sold: float
    blocked: float


class ZoneOccupancy(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    zone_id: str
    name: str
    zone_type: ZoneType
    available: int
    held: int
    sold: int
    blocked: int
    total: int
    percents: Percents
    by_hold_type: dict[str, int]
    live_attendees: int = 0
    """Inside now, by the gates' scans."""


class OccupancyAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A hold that is over counts as held until it is swept or its seat is taken, a second later at most."""

    event_id: UUID
    available: int
    held: int
    sold: int
    blocked: int
    total: int
    percents: Percents
    by_zone: list[ZoneOccupancy]
    by_hold_type: dict[str, int]
    """Held places by hold type."""
    timestamp: datetime
    live_attendees: int = 0
    """Inside now, by the gates' scans of this day of the event."""


class KeptOccupancy(msgspec.Struct, frozen=True):
    """As it is kept in the warm tier: with the instant it was read at, by which a reader tells whether it is too old."""

    occupancy: OccupancyAnswer
    snapshot: str


class ZonePast(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    zone_id: str
    available: int
    held: int
    sold: int
    blocked: int
    total: int


class PastOccupancy(msgspec.Struct, frozen=True, kw_only=True):
    """How full an event was at one minute."""

    at: datetime
    available: int
    held: int
    sold: int
    blocked: int
    total: int
    percents: Percents
    by_zone: list[ZonePast]
    by_hold_type: dict[str, int]


class OccupancyCache(Protocol):
    """The warm tier, as far as occupancy goes. It forgets a body after ten seconds; a failure is a miss."""

    async def get_occupancy(self, organization_id: UUID, event_id: UUID) -> bytes | None: ...
    async def set_occupancy(self, organization_id: UUID, event_id: UUID, body: bytes) -> bool: ...
    async def drop_occupancy(self, organization_id: UUID, event_id: UUID) -> object: ...


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    held: int = 0
    sold: int = 0
    blocked: int = 0


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """How full an event was at one minute, as it is kept."""

    at: datetime
    available: int
    held: int
    sold: int
    blocked: int
    total: int
    by_zone: dict[int, Taken]
    """By `zone_no`; zones of which nothing was taken are left out."""
    by_hold_type: dict[str, int]


def reckon(event_id: UUID, layout: Layout, counted: Counted) -> OccupancyAnswer:
    counts: dict[int, list[Count]] = {}
    for count in counted.counts:
        counts.setdefault(count.zone_no, []).append(count)
    by_zone = [_zone_occupancy(zone, counts.pop(zone.zone_no, [])) for zone in layout.zones]
    assert not counts, f"the counters name zones {sorted(counts)}, which the layout does not have"
    held, sold, blocked = (sum(getattr(zone, state) for zone in by_zone) for state in ("held", "sold", "blocked"))
    total = layout.total_capacity
    return OccupancyAnswer(
        event_id=event_id,
        available=total - held - sold - blocked,
        held=held,
        sold=sold,
        blocked=blocked,
        total=total,
        percents=percents(held, sold, blocked, total),
        by_zone=by_zone,
        by_hold_type=_by_hold_type(counted.counts),
        timestamp=counted.at,
    )


def with_attendees(occupancy: OccupancyAnswer, layout: Layout, present: Mapping[int, int]) -> OccupancyAnswer:
    """`present`: people inside, by zone number."""
    inside = {layout.zones[zone_no].id: people for zone_no, people in present.items()}
    by_zone = [msgspec.structs.replace(zone, live_attendees=inside.get(zone.id, 0)) for zone in occupancy.by_zone]
    return msgspec.structs.replace(occupancy, by_zone=by_zone, live_attendees=sum(present.values()))


def _zone_occupancy(zone: Zone, counts: list[Count]) -> ZoneOccupancy:
    held, sold, blocked = (
        sum(count.places for count in counts if count.state is state)
        for state in (SeatState.HELD, SeatState.SOLD, SeatState.BLOCKED)
    )
    return ZoneOccupancy(
        id=zone.id,
        zone_id=zone.zone_id,
        name=zone.name,
        zone_type=zone.zone_type,
        available=zone.capacity - held - sold - blocked,
        held=held,
        sold=sold,
        blocked=blocked,
        total=zone.capacity,
        percents=percents(held, sold, blocked, zone.capacity),
        by_hold_type=_by_hold_type(counts),
    )


def _by_hold_type(counts: list[Count]) -> dict[str, int]:
    held: dict[str, int] = {}
    for count in counts:
        if count.state is SeatState.HELD:
            held[count.hold_type] = held.get(count.hold_type, 0) + count.places
    return dict(sorted(held.items()))


def percents(held: int, sold: int, blocked: int, total: int) -> Percents:
    """Of the total, to two decimals; the four need not add up to exactly a hundred."""

    def share(places: int) -> float:
        return round(100 * places / total, 2) if total else 0.0

    return Percents(
        available=share(total - held - sold - blocked), held=share(held), sold=share(sold), blocked=share(blocked)
    )


def past(layout: Layout, kept: Snapshot) -> PastOccupancy:
    """A kept minute, with the zones' names and capacities."""
    return PastOccupancy(
        at=kept.at,
        available=kept.available,
        held=kept.held,
        sold=kept.sold,
        blocked=kept.blocked,
        total=kept.total,
        percents=percents(kept.held, kept.sold, kept.blocked, kept.total),
        by_zone=[_zone_past(zone, kept.by_zone.get(zone.zone_no, Taken())) for zone in layout.zones],
        by_hold_type=dict(sorted(kept.by_hold_type.items())),
    )


def _zone_past(zone: Zone, taken: Taken) -> ZonePast:
    return ZonePast(
        id=zone.id,
        zone_id=zone.zone_id,
        available=zone.capacity - taken.held - taken.sold - taken.blocked,
        held=taken.held,
        sold=taken.sold,
        blocked=taken.blocked,
        total=zone.capacity,
    )


def includes(snapshot: str, xid: int) -> bool:
    """Whether what that transaction did was there to be seen at that instant (`pg_visible_in_snapshot`)."""
    first, end, under_way = snapshot.split(":")
    low, high = int(first), int(end)
    return xid < low or (xid < high and str(xid) not in under_way.split(","))
