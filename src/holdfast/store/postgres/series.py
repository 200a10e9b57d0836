"""Series: what several events share, in one place."""

from typing import Any
from uuid import UUID

import msgspec

from holdfast.seating.overlay import stored_overlay
from holdfast.seating.series import Series, SeriesContent
from holdfast.store.postgres.database import Row, Transaction

INSERT_SERIES = """
INSERT INTO series (organization_id, id, name, layout_id, layout_version, currency, prices, overrides, overlay, created_at,
  updated_at)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, t.now, t.now FROM (SELECT holdfast_now() AS now) t
RETURNING *
"""
UPDATE_SERIES = """
UPDATE series SET name = $3, layout_id = $4, layout_version = $5, currency = $6, prices = $7, overrides = $8, overlay = $9,
  updated_at = holdfast_now()
WHERE organization_id = $1 AND id = $2
RETURNING *
"""
FIND_SERIES = "SELECT * FROM series WHERE organization_id = $1 AND id = $2"
SHARE_SERIES = "SELECT * FROM series WHERE organization_id = $1 AND id = $2 FOR SHARE"
OWN_SERIES = "SELECT * FROM series WHERE organization_id = $1 AND id = $2 FOR UPDATE"
LIST_SERIES = """
SELECT * FROM series WHERE organization_id = $1 AND ($2::uuid IS NULL OR id < $2) ORDER BY id DESC LIMIT $3
"""
LIST_EVENT_IDS = """
SELECT id FROM events
WHERE organization_id = $1 AND series_id = $2 AND status IN ('draft', 'published', 'live') ORDER BY id
"""


async def insert_series(tx: Transaction, organization_id: UUID, series_id: UUID, content: SeriesContent) -> Series:
    row = await tx.fetchrow(INSERT_SERIES, organization_id, series_id, *_values(content))
    assert row is not None
    return _read(row)


async def update_series(tx: Transaction, organization_id: UUID, series_id: UUID, content: SeriesContent) -> Series:
    """The caller owns the series."""
    row = await tx.fetchrow(UPDATE_SERIES, organization_id, series_id, *_values(content))
    assert row is not None
    return _read(row)


async def find_series(tx: Transaction, organization_id: UUID, series_id: UUID) -> Series | None:
    return _found(await tx.fetchrow(FIND_SERIES, organization_id, series_id))


async def share_series(tx: Transaction, organization_id: UUID, series_id: UUID) -> Series | None:
    """It stays as it is until the commit: an event that is made of it now has what the others have."""
    return _found(await tx.fetchrow(SHARE_SERIES, organization_id, series_id))


async def own_series(tx: Transaction, organization_id: UUID, series_id: UUID) -> Series | None:
    """Before any of its events: whoever changes a series comes first to the series, then to its events by id."""
    return _found(await tx.fetchrow(OWN_SERIES, organization_id, series_id))


async def list_series(tx: Transaction, organization_id: UUID, before: UUID | None, limit: int) -> list[Series]:
    """Newest first."""
    return [_read(row) for row in await tx.fetch(LIST_SERIES, organization_id, before, limit)]


async def events_not_over(tx: Transaction, organization_id: UUID, series_id: UUID) -> list[UUID]:
    """By id, which is the order in which they are owned."""
    return [row["id"] for row in await tx.fetch(LIST_EVENT_IDS, organization_id, series_id)]


def _found(row: Row | None) -> Series | None:
    return None if row is None else _read(row)


def _read(row: Row) -> Series:
    read = {
        "prices": msgspec.json.decode(row["prices"]),
        "overrides": msgspec.json.decode(row["overrides"]),
        "overlay": stored_overlay(row["overlay"]),
    }
    return msgspec.convert({**row, **read}, Series, strict=True)


def _values(content: SeriesContent) -> tuple[Any, ...]:
    return (
        content.name,
        content.layout_id,
        content.layout_version,
        content.currency,
        _json(content.prices),
        _json(content.overrides),
        _json(content.overlay),
    )


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
