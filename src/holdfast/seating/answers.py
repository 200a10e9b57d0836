"""What the seating service answers, as its callers see it."""

from collections.abc import Callable, Collection
from datetime import date, datetime
from typing import Any, Generic, Protocol, TypeVar
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from holdfast.holds.lifecycle import SeatState
from holdfast.seating.accessibility import kept_words
from holdfast.seating.admission import Admission
from holdfast.seating.event import Event, EventStatus
from holdfast.seating.layout import AccessMode, Layout, Point, SeatCategory, Zone, ZoneType
from holdfast.seating.overlay import OVERLAY_FIELDS, Overlay, ZoneOverride
from holdfast.seating.policy import PolicyValue
from holdfast.seating.prices import Price, PricingZone
from holdfast.seating.view import EventView

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
    disabled: bool = False
    """The event does not offer it."""


class EventAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    name: str
    status: EventStatus
    layout_id: UUID | None
    layout_version: int | None
    series_id: UUID | None
    sale_start: datetime | None
    sale_end: datetime | None
    days: tuple[date, ...]
    currency: str | None
    prices: tuple[Price, ...]
    overrides: dict[str, PolicyValue]
    seating_overrides: dict[str, PolicyValue]
    """The same as `overrides`: two names, one content."""
    blocked_seat_ids: tuple[str, ...]
    disabled_zones: tuple[str, ...]
    zone_overrides: dict[str, ZoneOverride]
    pricing_zones: dict[str, PricingZone]
    admission: Admission
    """How its gates let people in. Fixed on a ticket when it is issued: a change counts for tickets issued from then on."""
    created_at: datetime
    updated_at: datetime
    published_at: datetime | None
    seat_count: int | UnsetType = UNSET
    total_capacity: int | UnsetType = UNSET
    zones: tuple[ZoneAnswer, ...] | UnsetType = UNSET
    """These three are left out of lists."""
    effective_policy: dict[str, PolicyValue] | UnsetType = UNSET
    """What binds buyers here: the organization's policy with the overrides that count. Where one event is asked for."""


class SeriesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    name: str
    layout_id: UUID
    layout_version: int
    currency: str | None
    prices: tuple[Price, ...]
    overrides: dict[str, PolicyValue]
    seating_overrides: dict[str, PolicyValue]
    blocked_seat_ids: tuple[str, ...]
    disabled_zones: tuple[str, ...]
    zone_overrides: dict[str, ZoneOverride]
    pricing_zones: dict[str, PricingZone]
    created_at: datetime
    updated_at: datetime
    events: list[EventAnswer] | UnsetType = UNSET
    """The newest first; left out of lists."""


class CategoryPrice(msgspec.Struct, frozen=True):
    category: SeatCategory
    amount_minor: int | None


class ZonePrices(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    zone_id: str
    name: str
    zone_type: ZoneType
    disabled: bool
    amount_minor: int | None
    """Of a place in the zone, where its category has no price of its own."""
    categories: list[CategoryPrice]
    """The categories that the zone's seats have; none in general admission."""


class PricingZoneAnswer(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    amount_minor: int
    zones: tuple[str, ...]
    categories: tuple[SeatCategory, ...]
    seat_ids: tuple[str, ...]


class PricesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    event_id: UUID
    currency: str | None
    zones: list[ZonePrices]
    pricing_zones: list[PricingZoneAnswer]
    """The seats these name cost what is said here, whatever their zone says."""


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
    blocked: int
    available: int
    version: int
    disabled: bool = False
    """The event does not offer it: what is not sold is blocked."""


class BlockAnswer(msgspec.Struct, frozen=True):
    event_id: UUID
    blocked: list[UUID]
    already_blocked: list[UUID]


class PlacesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Of a general-admission zone, after some of its places were blocked or unblocked."""

    event_id: UUID
    zone_id: str
    quantity: int
    blocked: int
    available: int


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


def describe_event(event: Event, layout: Layout | None) -> EventAnswer:
    """`layout` is the event's, with its overlay; None in lists."""
    said = msgspec.structs.asdict(event)
    overlay = said.pop("overlay")
    answer = EventAnswer(**said, seating_overrides=event.overrides, **describe_overlay(overlay))
    if layout is None:
        return answer
    return msgspec.structs.replace(
        answer,
        seat_count=layout.seat_count,
        total_capacity=layout.total_capacity,
        zones=tuple(describe_zone(zone, disabled=overlay.is_disabled(zone)) for zone in layout.zones),
    )


def describe_overlay(overlay: Overlay) -> dict[str, Any]:
    return {field: getattr(overlay, field) for field in OVERLAY_FIELDS}


def describe_prices(view: EventView) -> PricesAnswer:
    categories: dict[int, set[SeatCategory]] = {}
    for zone_no, category in set(zip(view.layout.zone_nos, view.layout.categories, strict=True)):
        categories.setdefault(zone_no, set()).add(category)
    return PricesAnswer(
        event_id=view.id,
        currency=view.currency,
        zones=[
            ZonePrices(
                id=zone.id,
                zone_id=zone.zone_id,
                name=zone.name,
                zone_type=zone.zone_type,
                disabled=view.overlay.is_disabled(zone),
                amount_minor=view.zone_price(zone.zone_no),
                categories=[
                    CategoryPrice(category, view.zone_price(zone.zone_no, category))
                    for category in sorted(categories.get(zone.zone_no, ()))
                ],
            )
            for zone in view.layout.zones
        ],
        pricing_zones=[
            PricingZoneAnswer(
                name=name,
                amount_minor=area.amount_minor,
                zones=area.zones,
                categories=area.categories,
                seat_ids=area.seat_ids,
            )
            for name, area in view.overlay.pricing_zones.items()
        ],
    )


def describe_zone(zone: Zone, *, disabled: bool = False) -> ZoneAnswer:
    return ZoneAnswer(
        id=zone.id,
        zone_id=zone.zone_id,
        name=zone.name,
        zone_type=zone.zone_type,
        capacity=zone.capacity,
        seat_count=zone.seat_count,
        access_mode=zone.access_mode,
        required_tier=zone.required_tier,
        disabled=disabled,
    )


def seat_coordinates(layout: Layout, ordinal: int) -> Point | None:
    x, y = layout.xs[ordinal], layout.ys[ordinal]
    return None if x is None or y is None else Point(x, y)


class InventoryRow(Protocol):
    """A row of the inventory, by column."""

    def __getitem__(self, column: str, /) -> Any: ...


def describe_seat(view: EventView, row: InventoryRow, kept: Collection[int], *, staff: bool) -> SeatAnswer:
    """`kept`: the seats that are kept for somebody's companion."""
    layout, ordinal = view.layout, row["ordinal"]
    because = kept_words(view.effective_policy.companion_release_occupancy_threshold)
    zone = layout.zone_of(ordinal)
    return SeatAnswer(
        id=layout.seat_uuid(ordinal),
        seat_id=layout.seat_ids[ordinal],
        ordinal=ordinal,
        booking_id=row["booking_id"],
        zone=zone.zone_id,
        zone_name=zone.name,
        row=layout.rows[ordinal],
        number=layout.numbers[ordinal],
        category=layout.categories[ordinal],
        coordinates=seat_coordinates(layout, ordinal),
        state=SeatState(row["state"]),
        hold_type=row["hold_type"],
        version=row["version"],
        held_until=row["held_until"],
        offered=row["state"] == SeatState.AVAILABLE and ordinal not in kept,
        not_offered_because=because if ordinal in kept else UNSET,
        block_reason=row["block_reason"] if staff else UNSET,
    )
