"""A series: sessions that are events of one layout, with the same overlay, the same prices and the same rules. Pure.

Its document is an event's without what each session has for itself: sale window, days, zones of its own.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from holdfast.kernel.ids import parse_id
from holdfast.kernel.problems import Problem
from holdfast.seating.event import (
    EventContent,
    EventInvalid,
    check_own_fields,
    parse_event,
)
from holdfast.seating.layout import Layout
from holdfast.seating.overlay import Overlay, overlay_document
from holdfast.seating.policy import PolicyValue
from holdfast.seating.prices import Price
from holdfast.seating.reading import Object


class Series(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    name: str
    layout_id: UUID
    layout_version: int
    currency: str | None
    prices: tuple[Price, ...]
    overrides: dict[str, PolicyValue]
    overlay: Overlay
    created_at: datetime
    updated_at: datetime


class SeriesContent(msgspec.Struct, frozen=True, kw_only=True):
    """What an organiser says of a series, read and found sound."""

    name: str
    layout_id: UUID
    layout_version: int
    currency: str | None
    prices: tuple[Price, ...]
    overrides: dict[str, PolicyValue]
    overlay: Overlay
    event: EventContent
    """The same as an event would have it: for checks that are the same for both."""


def parse_series(raw: object, series_id: UUID, layout: Layout | None, latest_version: int | None) -> SeriesContent:
    """A series from decoded JSON. Raises EventInvalid with every problem found; `layout` as for `parse_event`."""
    foreign = _foreign_fields(raw)
    try:
        event = parse_event(_known(raw), series_id, layout, latest_version)
    except EventInvalid as invalid:
        raise EventInvalid([*foreign, *invalid.problems]) from None
    if foreign:
        raise EventInvalid(foreign)
    assert event.layout_id is not None
    assert event.layout_version is not None
    return SeriesContent(
        name=event.name,
        layout_id=event.layout_id,
        layout_version=event.layout_version,
        currency=event.currency,
        prices=event.prices,
        overrides=event.overrides,
        overlay=event.overlay,
        event=event,
    )


def _foreign_fields(raw: object) -> list[Problem]:
    if not isinstance(raw, dict):
        return []
    said = "is no field of a series; each of its events has its own"
    return [Problem(f"/{field}", "unknown_field", said) for field in _NOT_SHARED if field in raw]


def _known(raw: object) -> object:
    if not isinstance(raw, dict):
        return raw
    return {field: value for field, value in raw.items() if field not in _NOT_SHARED}


_NOT_SHARED = ("zones", "sale_start", "sale_end", "days", "series_id")


def series_document(series: Series) -> Object:
    """The series as its organiser would have sent it."""
    return {"name": series.name, **shared_document(series)}


def shared_document(series: Series | SeriesContent) -> Object:
    """What the series has for all of its events, as a document of an event would say it."""
    said = {
        "layout_id": str(series.layout_id),
        "layout_version": series.layout_version,
        "currency": series.currency,
        "prices": msgspec.to_builtins(list(series.prices)),
        "overrides": series.overrides,
        **overlay_document(series.overlay),
    }
    return {field: value for field, value in said.items() if value is not None}


def patched_series(series: Series, patch: object) -> object:
    """The series' document with a patch over it; what is wrong with the patch is for `parse_series` to say."""
    if not isinstance(patch, dict):
        return patch
    document = series_document(series)
    if patch.get("layout_id") is not None:
        document.pop("layout_version")
    if "seating_overrides" in patch and "overrides" not in patch:
        document.pop("overrides")
    return {**document, **patch}


def changes_for_events(old: Series, new: SeriesContent) -> Object:
    """What of the series is not what it was: the patch that each of its events gets. A field that was emptied is null."""
    before, after = shared_document(old), shared_document(new)
    return {field: after.get(field) for field in before.keys() | after.keys() if before.get(field) != after.get(field)}


# Events of it -----------------------------------------------------------------------------------------------------------
def named_series(raw: object) -> UUID | None:
    """The series that an event's document names; None where it names none that can be understood."""
    named = raw.get("series_id") if isinstance(raw, dict) else None
    return parse_id(named) if isinstance(named, str) else None


def event_of_series(raw: Mapping[str, Any], series: Series) -> Object:
    """An event's document with what its series has. Raises SharedBySeries where it says any of that itself."""
    check_own_fields(field for field, value in raw.items() if value is not None)
    own = {field: value for field, value in raw.items() if value is not None}
    return {**own, **shared_document(series)}
