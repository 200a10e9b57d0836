"""An event: its states and the moves between them, what an organiser may say of it, and whether it is on sale."""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec

from holdfast.kernel.errors import (
    EventNotAvailable,
    EventSalesClosed,
    EventUnavailable,
    IllegalEventMove,
    OverrideNotPermitted,
)
from holdfast.kernel.ids import parse_id
from holdfast.kernel.problems import DocumentInvalid, Problems, child, listing, quoted, type_name
from holdfast.seating.layout import Layout, SeatCategory
from holdfast.seating.policy import (
    PolicyInvalid,
    PolicyOverrides,
    PolicyValue,
    SeatingPolicy,
    apply_overrides,
    forbidden_overrides,
    parse_overrides,
    zone_conflicts,
)
from holdfast.seating.reading import (
    Object,
    check_choice,
    check_text,
    integer_fault,
    read_list,
    read_object,
    read_text,
)
from holdfast.seating.refusals import EventFrozen
from holdfast.seating.validate import LayoutInvalid, parse_ga_zones

NAME_CHARS = 200
MAX_DAYS = 366
MAX_PRICES = 10_000
MAX_AMOUNT_MINOR = 10**12 - 1
MAX_VERSION = 2**31 - 1


class EventStatus(StrEnum):
    DRAFT = "draft"
    PUBLISHED = "published"
    LIVE = "live"
    CANCELLED = "cancelled"
    ARCHIVED = "archived"


ON_SALE = frozenset((EventStatus.PUBLISHED, EventStatus.LIVE))

EVENT_MOVES: dict[EventStatus, tuple[EventStatus, ...]] = {
    EventStatus.DRAFT: (EventStatus.PUBLISHED, EventStatus.CANCELLED),
    EventStatus.PUBLISHED: (EventStatus.LIVE, EventStatus.CANCELLED),
    EventStatus.LIVE: (EventStatus.ARCHIVED, EventStatus.CANCELLED),
    EventStatus.CANCELLED: (),
    EventStatus.ARCHIVED: (),
}


class EventInvalid(DocumentInvalid):
    """What was said of an event cannot stand; `problems` says where."""


class Price(msgspec.Struct, frozen=True):
    zone_id: str
    category: SeatCategory | None
    """None: every category of the zone that has no price of its own."""
    amount_minor: int


class Event(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    name: str
    status: EventStatus
    layout_id: UUID | None
    """None where the event lists its own general-admission zones."""
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


class EventContent(msgspec.Struct, frozen=True, kw_only=True):
    """What an organiser says of an event, read and found sound."""

    name: str
    layout_id: UUID | None
    layout_version: int | None
    own_zones: list[Any] | None
    """To the letter, where the event has no layout."""
    layout: Layout
    sale_start: datetime | None
    sale_end: datetime | None
    days: tuple[date, ...]
    currency: str | None
    prices: tuple[Price, ...]
    overrides: dict[str, PolicyValue]


class LayoutReference(msgspec.Struct, frozen=True):
    layout_id: UUID
    version: int | None
    """None: the latest."""


# States ---------------------------------------------------------------------------------------------------------
def check_event_move(old: EventStatus, new: EventStatus) -> None:
    allowed = EVENT_MOVES[old]
    if new in allowed:
        return
    way = f"from there it can become {' or '.join(allowed)}" if allowed else "that is final"
    raise IllegalEventMove(
        f"The event is {old} and cannot become {new}: {way}.",
        current_status=old.value,
        requested_status=new.value,
        allowed=[status.value for status in allowed],
    )


def check_saleable(
    status: EventStatus,
    sale_start: datetime | None,
    sale_end: datetime | None,
    now: datetime,
    any_time: bool,
) -> None:
    """Refuses where nothing can be held or sold. `now` is the database's; `any_time` is for those whom the
    sale window does not bind. The statement that writes asserts the same again."""
    if status is EventStatus.CANCELLED:
        raise EventUnavailable("The event was cancelled.", current_status=status.value)
    if status not in ON_SALE:
        why = "has not been published yet" if status is EventStatus.DRAFT else "is over"
        raise EventNotAvailable(f"The event {why}.", current_status=status.value)
    if any_time:
        return
    if sale_start is not None and now < sale_start:
        raise EventSalesClosed("The sale has not begun yet.", sale_start=sale_start, sale_end=sale_end)
    if sale_end is not None and now > sale_end:
        raise EventSalesClosed("The sale is over.", sale_start=sale_start, sale_end=sale_end)


def check_overrides(policy: SeatingPolicy | None, overrides: PolicyOverrides) -> None:
    forbidden = forbidden_overrides(policy, overrides) if policy is not None else []
    if forbidden:
        raise OverrideNotPermitted(
            f"The organization's seating policy does not let an event change {listing(forbidden)}.",
            fields=forbidden,
        )


def permitted_overrides(policy: SeatingPolicy | None, overrides: PolicyOverrides) -> dict[str, PolicyValue]:
    """What of them still counts: a field locked after the event had set it is the organization's again."""
    locked = policy.locked_fields if policy is not None else frozenset()
    return {name: value for name, value in overrides.items() if name not in locked}


def check_zones(policy: SeatingPolicy | None, overrides: PolicyOverrides, layout: Layout) -> None:
    """Refuses an event with zones of a kind that its policy does not allow. Only what was stated can forbid: where the
    organization has no policy, that is what the event says itself."""
    stated = SeatingPolicy(allow_vip_zones=True) if policy is None else policy
    conflicts = zone_conflicts(apply_overrides(stated, permitted_overrides(policy, overrides)), layout.zones)
    if conflicts:
        raise EventInvalid(conflicts)


# What an organiser says ------------------------------------------------------------------------------------------
EVENT_FIELDS = (
    "name",
    "layout_id",
    "layout_version",
    "zones",
    "sale_start",
    "sale_end",
    "days",
    "currency",
    "prices",
    "overrides",
)
CHANGEABLE_ON_SALE = frozenset(("name", "sale_start", "sale_end", "days", "prices", "overrides", "currency"))


def layout_reference(raw: object) -> LayoutReference | None:
    """The layout a document names, so that it can be fetched before the rest is read; None where it names none
    in a form that can be understood (`parse_event` then says what is wrong)."""
    if not isinstance(raw, dict) or not isinstance(raw.get("layout_id"), str):
        return None
    layout_id = parse_id(raw["layout_id"])
    version = raw.get("layout_version")
    if layout_id is None or (version is not None and integer_fault(version, 1, MAX_VERSION)):
        return None
    return LayoutReference(layout_id, version)


def parse_event(raw: object, event_id: UUID, layout: Layout | None, latest_version: int | None) -> EventContent:
    """An event from decoded JSON. Raises EventInvalid with every problem found.

    `layout` is what `layout_reference` led to, None where it led nowhere; `latest_version` stands in for a
    version the document does not name.
    """
    problems = Problems()
    source = read_object(problems, "", raw, EVENT_FIELDS) or {}
    name = read_text(problems, "", source, "name", NAME_CHARS) if isinstance(raw, dict) else None
    reference = _read_reference(problems, source, layout, latest_version)
    own_zones, own_layout = _read_own_zones(problems, source, event_id)
    sale_start = _read_instant(problems, "/sale_start", source.get("sale_start"))
    sale_end = _read_instant(problems, "/sale_end", source.get("sale_end"))
    if sale_start is not None and sale_end is not None and sale_start >= sale_end:
        problems.add("/sale_end", "empty_window", "the sale must end after it starts")
    days = _read_days(problems, source.get("days"))
    currency = _read_currency(problems, source.get("currency"))
    prices = _read_prices(problems, source.get("prices"), layout or own_layout)
    if source.get("prices") and source.get("currency") is None:
        problems.add("/currency", "currency_required", "prices need a currency")
    overrides = _read_overrides(problems, source.get("overrides"))
    if problems:
        raise EventInvalid(problems.listed())
    assert name is not None
    chosen = layout or own_layout
    assert chosen is not None
    return EventContent(
        name=name,
        layout_id=reference.layout_id if reference else None,
        layout_version=reference.version if reference else None,
        own_zones=own_zones,
        layout=chosen,
        sale_start=sale_start,
        sale_end=sale_end,
        days=days,
        currency=currency,
        prices=prices,
        overrides=overrides,
    )


def event_document(event: Event, own_zones: list[Any] | None) -> Object:
    """The event as its organiser would have sent it: `parse_event` of it gives the same event."""
    said = {
        "name": event.name,
        "layout_id": str(event.layout_id) if event.layout_id else None,
        "layout_version": event.layout_version,
        "zones": own_zones,
        "sale_start": event.sale_start.isoformat() if event.sale_start else None,
        "sale_end": event.sale_end.isoformat() if event.sale_end else None,
        "days": [day.isoformat() for day in event.days],
        "currency": event.currency,
        "prices": msgspec.to_builtins(list(event.prices)),
        "overrides": event.overrides,
    }
    return {field: value for field, value in said.items() if value is not None}


def patched_document(event: Event, own_zones: list[Any] | None, patch: object) -> Object:
    """The event's document with a patch over it. Raises EventFrozen where the event's state forbids a field."""
    problems = Problems()
    changes = read_object(problems, "", patch, EVENT_FIELDS)
    if changes is None or problems:
        raise EventInvalid(problems.listed())
    _check_changeable(event, changes)
    document = event_document(event, own_zones)
    if changes.get("layout_id") is not None:
        document.pop("zones", None)
        document.pop("layout_version", None)
    if changes.get("zones") is not None:
        document.pop("layout_id", None)
        document.pop("layout_version", None)
    return {**document, **changes}


def _check_changeable(event: Event, changes: Mapping[str, Any]) -> None:
    if event.status is EventStatus.DRAFT:
        return
    if event.status not in ON_SALE:
        raise EventFrozen(
            f"The event is {event.status}; nothing of it can be changed.",
            current_status=event.status.value,
            fields=sorted(changes),
        )
    frozen = sorted(set(changes) - CHANGEABLE_ON_SALE)
    # A currency can be added with the first prices; what has been asked in one cannot become another.
    if event.currency is not None and changes.get("currency", event.currency) != event.currency:
        frozen.append("currency")
    if frozen:
        raise EventFrozen(
            f"The event is {event.status}; {listing(frozen)} can be changed only while it is a draft.",
            current_status=event.status.value,
            fields=frozen,
        )


def _read_reference(
    problems: Problems, source: Object, layout: Layout | None, latest_version: int | None
) -> LayoutReference | None:
    named = source.get("layout_id")
    version = source.get("layout_version")
    if named is None:
        if version is not None:
            problems.add("/layout_version", "layout_required", "a layout_version needs a layout_id")
        elif source.get("zones") is None:
            said = "an event needs a layout_id, or zones of its own for general admission"
            problems.add("/layout_id", "missing", said)
        return None
    if source.get("zones") is not None:
        problems.add("/zones", "conflicting_fields", "give a layout_id or zones, not both")
    if version is not None:
        fault = integer_fault(version, 1, MAX_VERSION)
        if fault is not None:
            problems.add("/layout_version", *fault)
            return None
    layout_id = parse_id(named) if isinstance(named, str) else None
    if layout_id is None:
        problems.add("/layout_id", "bad_id", "must be a layout's id, a UUID")
        return None
    if layout is None:
        problems.add("/layout_id", "unknown_layout", "there is no such layout")
    return LayoutReference(layout_id, version if version is not None else latest_version)


def _read_own_zones(problems: Problems, source: Object, event_id: UUID) -> tuple[list[Any] | None, Layout | None]:
    zones = source.get("zones")
    if zones is None:
        return None, None
    try:
        layout = parse_ga_zones(event_id, zones)
    except LayoutInvalid as invalid:
        for problem in invalid.problems:
            problems.add(problem.pointer, problem.code, problem.detail)
        return None, None
    assert isinstance(zones, list)
    return zones, layout


_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d\d:?\d\d)", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_YEARS = range(1970, 9000)


def _read_instant(problems: Problems, pointer: str, value: object) -> datetime | None:
    if value is None:
        return None
    if not isinstance(value, str):
        problems.add(pointer, "wrong_type", f"must be a string, not {type_name(value)}")
        return None
    instant: datetime | None = None
    if _INSTANT.fullmatch(value):
        try:
            instant = datetime.fromisoformat(value.upper())
        except ValueError:
            instant = None
    if instant is None or instant.year not in _YEARS:
        said = f"{quoted(value)} is no time like 2026-05-01T19:30:00+02:00 (the zone is needed)"
        problems.add(pointer, "bad_time", said)
        return None
    return instant.astimezone(UTC)


def _read_days(problems: Problems, value: object) -> tuple[date, ...]:
    if value is None:
        return ()
    raw_days = read_list(problems, "/days", value) or []
    if len(raw_days) > MAX_DAYS:
        problems.add("/days", "too_many_days", f"at most {MAX_DAYS} days, not {len(raw_days)}")
        return ()
    days: set[date] = set()
    for place, raw in enumerate(raw_days):
        pointer = child("/days", place)
        day = _day(raw)
        if day is None:
            said = f"{quoted(raw)} is no day like 2026-05-01"
            problems.add(pointer, "bad_day" if isinstance(raw, str) else "wrong_type", said)
        elif day in days:
            problems.add(pointer, "duplicate_day", f"{day} is listed twice")
        else:
            days.add(day)
    return tuple(sorted(days))


def _day(raw: object) -> date | None:
    if not isinstance(raw, str) or not _DAY.fullmatch(raw):
        return None
    try:
        day = date.fromisoformat(raw)
    except ValueError:
        return None
    return day if day.year in _YEARS else None


_CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)


def _read_currency(problems: Problems, value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        problems.add("/currency", "wrong_type", f"must be a string, not {type_name(value)}")
    elif not _CURRENCY.fullmatch(value):
        said = f"{quoted(value)} is no ISO 4217 code: three capital letters such as EUR"
        problems.add("/currency", "bad_currency", said)
    else:
        return value
    return None


def _read_prices(problems: Problems, value: object, layout: Layout | None) -> tuple[Price, ...]:
    if value is None:
        return ()
    raw_prices = read_list(problems, "/prices", value) or []
    if len(raw_prices) > MAX_PRICES:
        problems.add("/prices", "too_many_prices", f"at most {MAX_PRICES} prices, not {len(raw_prices)}")
        return ()
    prices: dict[tuple[str, SeatCategory | None], Price] = {}
    for place, raw in enumerate(raw_prices):
        pointer = child("/prices", place)
        price = _read_price(problems, pointer, raw, layout)
        if price is None:
            continue
        key = (price.zone_id, price.category)
        if key in prices:
            what = f"category {price.category}" if price.category else "all categories"
            said = f"zone {quoted(price.zone_id)} already has a price for {what}"
            problems.add(pointer, "duplicate_price", said)
        prices[key] = price
    return tuple(prices.values())


def _read_price(problems: Problems, pointer: str, raw: object, layout: Layout | None) -> Price | None:
    source = read_object(problems, pointer, raw, ("zone_id", "category", "amount_minor"))
    if source is None:
        return None
    zone_id = _read_zone(problems, pointer, source, layout)
    category: SeatCategory | None = None
    if source.get("category") is not None:
        place = child(pointer, "category")
        category = check_choice(problems, place, source["category"], SeatCategory, "unknown_category")
        if category is None:
            return None
    amount = source.get("amount_minor")
    fault = integer_fault(amount, 0, MAX_AMOUNT_MINOR)
    if "amount_minor" not in source:
        fault = ("missing", "amount_minor is missing")
    if fault is not None:
        problems.add(child(pointer, "amount_minor"), *fault)
    if zone_id is None or fault is not None:
        return None
    assert isinstance(amount, int)
    return Price(zone_id, category, amount)


def _read_zone(problems: Problems, pointer: str, source: Object, layout: Layout | None) -> str | None:
    place = child(pointer, "zone_id")
    if "zone_id" not in source:
        problems.add(place, "missing", "zone_id is missing")
        return None
    named = check_text(problems, place, source["zone_id"], NAME_CHARS)
    if named is None or layout is None:
        return named
    zone = layout.zone(named)
    if zone is None:
        problems.add(place, "unknown_zone", f"there is no zone {quoted(named)}")
        return None
    return zone.zone_id


def _read_overrides(problems: Problems, value: object) -> dict[str, PolicyValue]:
    try:
        return parse_overrides(value)
    except PolicyInvalid as invalid:
        for problem in invalid.problems:
            problems.add(f"/overrides{problem.pointer}", problem.code, problem.detail)
        return {}
