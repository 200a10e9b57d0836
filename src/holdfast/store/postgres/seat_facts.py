"""An event's inventory as columns, for the tiers that keep it in memory: read in parts, as of one instant."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from holdfast.store.postgres.database import Row, Transaction
from holdfast.store.postgres.feed import Cursor, cursor_now

PART = 20_000
"""Seats read at once: a few milliseconds of this process's time."""

ONE_INSTANT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"

# Seats that never moved are left out: free, at version 0. A user's id is halved: enough to tell one from another.
SEATS = """
SELECT coalesce(array_agg(s.ordinal), '{}') AS ordinals, array_agg(s.version) AS versions,
  array_agg(array_position('{available,held,sold,blocked}'::seat_state[], s.state) - 1) AS states,
  array_agg(CASE WHEN s.state IN ('held', 'sold') THEN s.hold_type END) AS hold_types,
  array_agg(CASE WHEN s.state = 'held' THEN coalesce(extract(epoch FROM s.held_until)::float8, 'infinity') ELSE 0 END)
    AS until,
  array_agg(coalesce(('x' || right(replace(h.user_id::text, '-', ''), 16))::bit(64)::bigint, 0)) AS owners
FROM event_seats s
LEFT JOIN holds h ON h.organization_id = $1 AND h.id = s.hold_id
WHERE s.organization_id = $1 AND s.event_id = $2 AND s.ordinal >= $3 AND s.ordinal < $4 AND s.version > 0
"""
ZONES = """
SELECT zone_no, version, held, sold, blocked FROM event_zones WHERE organization_id = $1 AND event_id = $2
"""
HELD = """
SELECT h.id, h.ordinal, h.zone_no, h.quantity, h.user_id, h.hold_type, h.source, h.held_until, h.created_at
FROM holds h
WHERE h.organization_id = $1 AND h.event_id = $2 AND h.status = 'active'
  AND (h.held_until IS NULL OR h.held_until > holdfast_now())
ORDER BY h.id
"""
LAYOUT_NOW = """
SELECT e.layout_version, coalesce((
  SELECT max(c.xid::text::bigint) FROM event_layout_changes c WHERE c.organization_id = $1 AND c.event_id = $2), 0) AS since
FROM events e WHERE e.organization_id = $1 AND e.id = $2
"""
LIVE_HOLD = """
SELECT holdfast_now() AS now, h.id, h.ordinal, h.zone_no, h.quantity, h.user_id, h.hold_type, h.source, h.held_until,
  h.created_at
FROM (SELECT 1) one LEFT JOIN holds h
  ON h.organization_id = $1 AND h.event_id = $2 AND h.id = $3 AND h.status = 'active'
  AND (h.held_until IS NULL OR h.held_until > holdfast_now())
"""
STILL_ACTIVE = """
SELECT h.id FROM holds h
WHERE h.organization_id = $1 AND h.id = ANY ($2::uuid[]) AND h.status = 'active'
  AND (h.held_until IS NULL OR h.held_until > holdfast_now())
"""


COUNTS = """
SELECT coalesce(sum(places) FILTER (WHERE state = 'held'), 0)::integer,
  coalesce(sum(places) FILTER (WHERE state = 'sold'), 0)::integer,
  coalesce(sum(places) FILTER (WHERE state = 'blocked'), 0)::integer,
  (SELECT count(*) FROM holds h WHERE h.organization_id = $1 AND h.event_id = $2 AND h.status = 'active')::integer
FROM (
  SELECT state, places FROM occupancy_counts WHERE organization_id = $1 AND event_id = $2
  UNION ALL SELECT state, change FROM occupancy_changes WHERE organization_id = $1 AND event_id = $2) c
"""


class SeatColumns(msgspec.Struct, frozen=True):
    ordinals: list[int]
    versions: list[int]
    states: list[int]
    hold_types: list[str | None]
    until: list[float]
    owners: list[int]


class HeldNow(msgspec.Struct, frozen=True, kw_only=True):
    """A live hold."""

    hold_id: UUID
    ordinal: int | None
    zone_no: int
    quantity: int
    user_id: UUID | None
    hold_type: str
    source: str
    held_until: datetime | None
    created_at: datetime


async def begin_instant(tx: Transaction) -> Cursor:
    """What this transaction reads from here on is as of one instant: that of the cursor."""
    await tx.execute(ONE_INSTANT)
    return await cursor_now(tx)


async def layout_now(tx: Transaction, organization_id: UUID, event_id: UUID) -> tuple[int | None, int]:
    """The version of the layout in which the inventory is written, and the transaction since which it is."""
    row = await tx.fetchrow(LAYOUT_NOW, organization_id, event_id)
    return (None, 0) if row is None else (row["layout_version"], row["since"])


async def seat_columns(
    tx: Transaction, organization_id: UUID, event_id: UUID, ordinals: range
) -> AsyncIterator[SeatColumns]:
    for start in range(ordinals.start, ordinals.stop, PART):
        row = await tx.fetchrow(SEATS, organization_id, event_id, start, min(start + PART, ordinals.stop))
        assert row is not None
        if row["ordinals"]:
            yield SeatColumns(*row.values())


async def zone_rows(tx: Transaction, organization_id: UUID, event_id: UUID) -> list[Row]:
    return await tx.fetch(ZONES, organization_id, event_id)


async def live_holds(tx: Transaction, organization_id: UUID, event_id: UUID) -> list[HeldNow]:
    return [_held(row) for row in await tx.fetch(HELD, organization_id, event_id)]


async def count_seats(tx: Transaction, organization_id: UUID, event_id: UUID) -> tuple[int, int, int, int]:
    """Places held, sold and blocked, and how many holds are active."""
    row = await tx.fetchrow(COUNTS, organization_id, event_id)
    assert row is not None
    held, sold, blocked, holds = row.values()
    return held, sold, blocked, holds


async def find_live_hold(
    tx: Transaction, organization_id: UUID, event_id: UUID, hold_id: UUID
) -> tuple[datetime, HeldNow | None]:
    """The database's time, and the hold if it lives."""
    row = await tx.fetchrow(LIVE_HOLD, organization_id, event_id, hold_id)
    assert row is not None
    return row["now"], None if row["id"] is None else _held(row)


async def still_active(tx: Transaction, organization_id: UUID, hold_ids: list[UUID]) -> set[UUID]:
    return {row["id"] for row in await tx.fetch(STILL_ACTIVE, organization_id, hold_ids)}


def _held(row: Any) -> HeldNow:
    return HeldNow(
        hold_id=row["id"],
        ordinal=row["ordinal"],
        zone_no=row["zone_no"],
        quantity=row["quantity"],
        user_id=row["user_id"],
        hold_type=row["hold_type"],
        source=row["source"],
        held_until=row["held_until"],
        created_at=row["created_at"],
    )


FREE_AMONG = """
SELECT s.ordinal FROM event_seats s
WHERE s.organization_id = $1 AND s.event_id = $2 AND s.ordinal = ANY ($3)
  AND (s.state = 'available' OR (s.state = 'held' AND s.held_until <= holdfast_now()))
"""


async def free_among(tx: Transaction, organization_id: UUID, event_id: UUID, ordinals: Sequence[int]) -> set[int]:
    """Which of these seats anybody could take now."""
    rows = await tx.fetch(FREE_AMONG, organization_id, event_id, list(ordinals))
    return {row["ordinal"] for row in rows}
