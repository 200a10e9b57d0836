"""What the seating service answers, as its callers see it."""

from collections.abc import Callable
from datetime import date, datetime
from typing import Generic, TypeVar
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from holdfast.holds.lifecycle import SeatState
from holdfast.seating.event import EventStatus, Price
from holdfast.seating.layout import AccessMode, Layout, Point, SeatCategory, Zone, ZoneType
from holdfast.seating.policy import PolicyValue

T = TypeVar("T")


class Part(msgspec.Struct, Generic[T], frozen=True):
    """Some of a list, and the cursor that leads to the rest; None at its end."""

    items: list[T]
    next_cursor: str | None


def part_of(items: list[T], limit: int, cursor: Callable[[T], str]) -> Part[T]:
    """`items` has one more than the limit where there are more."""
    if len(items) <= limit:
        return Part(items, None)
    return Part(items[:limit], cursor(items[limit - 1]))


class VenueAnswer(msgspec.Struct, frozen=True):
    id: UUID
    name: str
    created_at: datetime


class LayoutAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    version: int
    latest_version: int
    name: str
    venue_id: UUID
    seat_count: int
    total_capacity: int
    status: str
    created_at: datetime
    config: msgspec.Raw | UnsetType = UNSET
    """To the letter as it was sent; only where one layout is asked for."""


class ZoneAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    zone_id: str
    name: str
    zone_type: ZoneType
    capacity: int
    seat_count: int
    access_mode: AccessMode
    required_tier: str | None


class EventAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    name: str
    status: EventStatus
    layout_id: UUID | None
    layout_version: int | None
    sale_start: datetime | None
    sale_end: datetime | None
    days: tuple[date, ...]
    currency: str | None
    prices: tuple[Price, ...]
    overrides: dict[str, PolicyValue]
    created_at: datetime
    updated_at: datetime
    published_at: datetime | None
    seat_count: int | UnsetType = UNSET
    total_capacity: int | UnsetType = UNSET
    zones: tuple[ZoneAnswer, ...] | UnsetType = UNSET
    """These three are left out of lists."""
    effective_policy: dict[str, PolicyValue] | UnsetType = UNSET
    """What binds buyers here: the organization's policy with the overrides that count. Where one event is asked for."""


class SeatAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    seat_id: str
    ordinal: int
    booking_id: int
    zone: str
    zone_name: str
    row: str
    number: int
    category: SeatCategory
    coordinates: Point | None
    state: SeatState
    hold_type: str | None
    version: int
    held_until: datetime | None
    offered: bool
    """Free, and not kept for the companion of somebody else than whoever asks."""
    not_offered_because: str | UnsetType = UNSET
    block_reason: str | UnsetType | None = UNSET
    """For staff only."""


class ZoneCounts(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    zone_id: str
    name: str
    zone_type: ZoneType
    access_mode: AccessMode
    booking_id: int
    capacity: int
    held: int
    sold: int
    available: int
    version: int


class BlockAnswer(msgspec.Struct, frozen=True):
    event_id: UUID
    blocked: list[UUID]
    already_blocked: list[UUID]


class UnblockAnswer(msgspec.Struct, frozen=True):
    event_id: UUID
    unblocked: list[UUID]


class WhitelistAnswer(msgspec.Struct, frozen=True):
    event_id: UUID
    added: int = 0
    removed: int = 0


class WhitelistedUser(msgspec.Struct, frozen=True):
    user_id: UUID
    added_at: datetime


def describe_zone(zone: Zone) -> ZoneAnswer:
    return ZoneAnswer(
        id=zone.id,
        zone_id=zone.zone_id,
        name=zone.name,
        zone_type=zone.zone_type,
        capacity=zone.capacity,
        seat_count=zone.seat_count,
        access_mode=zone.access_mode,
        required_tier=zone.required_tier,
    )


def seat_coordinates(layout: Layout, ordinal: int) -> Point | None:
    x, y = layout.xs[ordinal], layout.ys[ordinal]
    return None if x is None or y is None else Point(x, y)
