"""The change feed: what has been committed since an earlier look, and nothing twice.

A cursor is a snapshot of the database (`pg_snapshot`): which transactions were over when it was taken. New is what is
visible now and was not then. Ids and transaction numbers alone would not do: they are given before the commit, and a
slow transaction's rows appear behind those already read.
"""

from typing import Any, Protocol
from uuid import UUID

import msgspec

from holdfast.holds.lifecycle import SeatState
from holdfast.live.message import Message
from holdfast.store.postgres.database import Row

Cursor = str

NOW = "SELECT pg_current_snapshot()::text"

# Across organizations, as the engine's role. $2: these events only.
NEWS = """
SELECT s.snapshot, o.organization_id, o.id, o.xid::text::bigint AS xid, o.at, o.kind, o.event_id, o.actor, o.source,
  o.state::text AS state, o.hold_type, o.held_until, o.ordinals, o.versions, o.hold_ids, o.user_ids, o.quantities,
  o.zone_no, o.zone_version, o.zone_held, o.zone_sold, o.payload
FROM (SELECT pg_current_snapshot()::text AS snapshot) s
LEFT JOIN LATERAL (
  SELECT * FROM outbox o
  WHERE o.xid >= pg_snapshot_xmin($1::text::pg_snapshot) AND NOT pg_visible_in_snapshot(o.xid, $1::text::pg_snapshot)
    AND ($2::uuid[] IS NULL OR o.event_id = ANY ($2))
  ORDER BY o.xid, o.id) o ON true
"""

# Of one event, from a transaction number on: what a reader that was away has missed.
CHANGED_SINCE = """
SELECT o.xid::text::bigint AS xid, o.ordinals, o.zone_no FROM outbox o
WHERE o.organization_id = $1 AND o.event_id = $2 AND o.xid >= $3::text::xid8 ORDER BY o.xid LIMIT $4
"""


class Queries(Protocol):
    async def fetch(self, query: str, *args: Any) -> list[Row]: ...
    async def fetchval(self, query: str, *args: Any) -> Any: ...


class News(msgspec.Struct, frozen=True):
    cursor: Cursor
    messages: list[Message]


async def cursor_now(tx: Queries) -> Cursor:
    cursor: Cursor = await tx.fetchval(NOW)
    return cursor


async def read_news(tx: Queries, cursor: Cursor, events: list[UUID] | None = None) -> News:
    """As the engine's role: everything committed since the cursor was taken, of all organizations."""
    rows = await tx.fetch(NEWS, cursor, events)
    return News(rows[0]["snapshot"], [as_message(row) for row in rows if row["id"] is not None])


def low_mark(cursor: Cursor) -> int:
    """Every transaction numbered below was over when the cursor was taken."""
    return int(cursor.partition(":")[0])


def as_message(row: Row) -> Message:
    state, payload = row["state"], row["payload"]
    return Message(
        organization_id=row["organization_id"],
        id=row["id"],
        xid=row["xid"],
        at=row["at"],
        kind=row["kind"],
        event_id=row["event_id"],
        actor=row["actor"],
        source=row["source"],
        state=None if state is None else SeatState(state),
        hold_type=row["hold_type"],
        held_until=row["held_until"],
        ordinals=row["ordinals"],
        versions=row["versions"] or [],
        hold_ids=row["hold_ids"] or [],
        user_ids=row["user_ids"] or [],
        quantities=row["quantities"] or [],
        zone_no=row["zone_no"],
        zone_version=row["zone_version"],
        zone_held=row["zone_held"],
        zone_sold=row["zone_sold"],
        payload=None if payload is None else msgspec.json.decode(payload),
    )
