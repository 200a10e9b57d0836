"""An event: its states and the moves between them, what an organiser may say of it, and whether it is on sale."""

import re
from collections.abc import Iterable, Mapping
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
from holdfast.kernel.problems import DocumentInvalid, Problem, Problems, listing, quoted, type_name
from holdfast.seating.admission import DEFAULT_ADMISSION, Admission, admission_document, read_admission
from holdfast.seating.days import MAX_DAYS as MAX_DAYS
from holdfast.seating.days import YEARS, read_days
from holdfast.seating.layout import Layout
from holdfast.seating.overlay import (
    NO_OVERLAY,
    OVERLAY_FIELDS,
    Overlay,
    overlay_conflicts,
    overlay_document,
    read_overlay,
)
from holdfast.seating.policy import (
    PolicyInvalid,
    PolicyOverrides,
    PolicyValue,
    SeatingPolicy,
    apply_overrides,
    forbidden_overrides,
    life_conflicts,
    parse_overrides,
)
from holdfast.seating.prices import Price as Price
from holdfast.seating.prices import read_prices
from holdfast.seating.reading import Object, integer_fault, read_object, read_text
from holdfast.seating.refusals import EventFrozen, SharedBySeries
from holdfast.seating.validate import LayoutInvalid, parse_ga_zones

NAME_CHARS = 200
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


class Event(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    name: str
    status: EventStatus
    layout_id: UUID | None
    """None where the event lists its own general-admission zones."""
    layout_version: int | None
    series_id: UUID | None = None
    """The series whose layout, overlay and prices it shares."""
    sale_start: datetime | None
    sale_end: datetime | None
    days: tuple[date, ...]
    currency: str | None
    prices: tuple[Price, ...]
    overrides: dict[str, PolicyValue]
    overlay: Overlay = NO_OVERLAY
    admission: Admission = DEFAULT_ADMISSION
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
    """As it was drawn; `overlay` is what the event changes of it."""
    series_id: UUID | None = None
    sale_start: datetime | None
    sale_end: datetime | None
    days: tuple[date, ...]
    currency: str | None
    prices: tuple[Price, ...]
    overrides: dict[str, PolicyValue]
    overlay: Overlay = NO_OVERLAY
    admission: Admission = DEFAULT_ADMISSION


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
    conflicts = life_conflicts(apply_overrides(policy or SeatingPolicy(), overrides))
    if conflicts:
        raise EventInvalid([Problem(f"/overrides{p.pointer}", p.code, p.detail) for p in conflicts])


def permitted_overrides(policy: SeatingPolicy | None, overrides: PolicyOverrides) -> dict[str, PolicyValue]:
    """What of them still counts: a field locked after the event had set it is the organization's again."""
    locked = policy.locked_fields if policy is not None else frozenset()
    return {name: value for name, value in overrides.items() if name not in locked}


def check_zones(
    policy: SeatingPolicy | None, overrides: PolicyOverrides, layout: Layout, overlay: Overlay = NO_OVERLAY
) -> None:
    """Refuses an event with zones of a kind that its policy does not allow. Only what was stated can forbid: where the
    organization has no policy, that is what the event says itself."""
    stated = SeatingPolicy(allow_vip_zones=True) if policy is None else policy
    effective = apply_overrides(stated, permitted_overrides(policy, overrides))
    conflicts = overlay_conflicts(effective, layout, overlay)
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
    "seating_overrides",
    "series_id",
    "admission",
    *OVERLAY_FIELDS,
)
CHANGEABLE_ON_SALE = frozenset(
    (
        "name",
        "sale_start",
        "sale_end",
        "days",
        "prices",
        "overrides",
        "seating_overrides",
        "currency",
        "admission",
        *OVERLAY_FIELDS,
    )
)
SHARED_BY_SERIES = (
    "layout_id",
    "layout_version",
    "zones",
    "currency",
    "prices",
    "overrides",
    "seating_overrides",
    *OVERLAY_FIELDS,
)
"""What all events of a series have in common, and none of them alone can say."""


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
    days = read_days(problems, "/days", source.get("days"))
    currency = _read_currency(problems, source.get("currency"))
    prices = read_prices(problems, source.get("prices"), layout or own_layout)
    if (source.get("prices") or source.get("pricing_zones")) and source.get("currency") is None:
        problems.add("/currency", "currency_required", "prices need a currency")
    overrides = _read_overrides(problems, source)
    overlay = read_overlay(problems, source, layout or own_layout)
    admission = read_admission(problems, source.get("admission"), layout or own_layout, days)
    series_id = _read_series(problems, source.get("series_id"))
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
        series_id=series_id,
        sale_start=sale_start,
        sale_end=sale_end,
        days=days,
        currency=currency,
        prices=prices,
        overrides=overrides,
        overlay=overlay,
        admission=admission,
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
        "series_id": str(event.series_id) if event.series_id else None,
        "admission": admission_document(event.admission) or None,
        **overlay_document(event.overlay),
    }
    return {field: value for field, value in said.items() if value is not None}


def patched_document(event: Event, own_zones: list[Any] | None, patch: object, *, by_series: bool = False) -> Object:
    """The event's document with a patch over it. Raises EventFrozen where the event's state forbids a field, and
    SharedBySeries where the field is its series', unless it is the series that changes it."""
    problems = Problems()
    changes = read_object(problems, "", patch, EVENT_FIELDS)
    if changes is not None and changes.get("series_id", event.series_id) not in (event.series_id, str(event.series_id)):
        said = "an event is made within a series, and neither joins one nor leaves it later"
        problems.add("/series_id", "fixed_field", said)
    if changes is None or problems:
        raise EventInvalid(problems.listed())
    if event.series_id is not None and not by_series:
        check_own_fields(changes)
    _check_changeable(event, changes)
    document = event_document(event, own_zones)
    if "seating_overrides" in changes and "overrides" not in changes:
        document.pop("overrides")
    if changes.get("layout_id") is not None:
        document.pop("zones", None)
        document.pop("layout_version", None)
    if changes.get("zones") is not None:
        document.pop("layout_id", None)
        document.pop("layout_version", None)
    return {**document, **changes}


def check_own_fields(fields: Iterable[str]) -> None:
    """Of an event of a series: refuses what only the series can say."""
    shared = sorted(set(fields).intersection(SHARED_BY_SERIES))
    if shared:
        raise SharedBySeries(
            f"The event is one of a series, which has {listing(shared)} for all of its events: change the series.",
            fields=shared,
        )


def overrides_said(patch: Mapping[str, Any]) -> bool:
    """Whether a document says anything of the policy, under either name of the field."""
    return "overrides" in patch or "seating_overrides" in patch


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
    if instant is None or instant.year not in YEARS:
        said = f"{quoted(value)} is no time like 2026-05-01T19:30:00+02:00 (the zone is needed)"
        problems.add(pointer, "bad_time", said)
        return None
    return instant.astimezone(UTC)


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


def _read_overrides(problems: Problems, source: Object) -> dict[str, PolicyValue]:
    """Two names for one thing: `overrides`, and `seating_overrides` beside the other fields of the overlay."""
    field = "overrides"
    if source.get("seating_overrides") is not None:
        if source.get("overrides") is not None:
            said = "is another name of overrides: give one of them, not both"
            problems.add("/seating_overrides", "conflicting_fields", said)
            return {}
        field = "seating_overrides"
    try:
        return parse_overrides(source.get(field))
    except PolicyInvalid as invalid:
        for problem in invalid.problems:
            problems.add(f"/{field}{problem.pointer}", problem.code, problem.detail)
        return {}


def _read_series(problems: Problems, value: object) -> UUID | None:
    if value is None:
        return None
    series_id = parse_id(value) if isinstance(value, str) else None
    if series_id is None:
        problems.add("/series_id", "bad_id", "must be a series' id, a UUID")
    return series_id
