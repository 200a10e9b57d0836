"""The change feed: what has been committed since an earlier look, and nothing twice.

A cursor is a snapshot of the database (`pg_snapshot`): which transactions were over when it was taken. New is what is
visible now and was not then. Ids and transaction numbers alone would not do: they are given before the commit, and a
slow transaction's rows appear behind those already read.
"""

from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

import msgspec

from holdfast.holds.lifecycle import SeatState
from holdfast.live.message import Message
from holdfast.store.postgres.database import Row

Cursor = str

NOW = "SELECT pg_current_snapshot()::text"
NEWS = "SELECT * FROM read_news($1)"

# Of one event, from a transaction number on: what a reader that was away has missed.
CHANGED_SINCE = """
SELECT o.xid::text::bigint AS xid, o.ordinals, o.zone_no FROM outbox o
WHERE o.organization_id = $1 AND o.event_id = $2 AND o.xid >= $3::text::xid8 ORDER BY o.xid LIMIT $4
"""

# Across organizations, as the engine's role, which may delete nothing younger. The oldest have the lowest numbers.
FORGET_OLD = """
WITH oldest AS (SELECT organization_id, id, at FROM outbox ORDER BY xid LIMIT $1)
DELETE FROM outbox o USING oldest f
WHERE o.organization_id = f.organization_id AND o.id = f.id AND f.at < now() - interval '7 days' RETURNING 1
"""


class Queries(Protocol):
    async def fetch(self, query: str, *args: Any) -> list[Row]: ...
    async def fetchval(self, query: str, *args: Any) -> Any: ...


class News(msgspec.Struct, frozen=True):
    cursor: Cursor
    now: datetime
    """The database's clock when it was asked."""
    messages: list[Message]


async def cursor_now(tx: Queries) -> Cursor:
    cursor: Cursor = await tx.fetchval(NOW)
    return cursor


async def read_news(tx: Queries, cursor: Cursor) -> News:
    """Everything committed since the cursor was taken, of all organizations."""
    rows = await tx.fetch(NEWS, cursor)
    first = rows[0]
    return News(first["snapshot"], first["now"], [as_message(row) for row in rows if row["id"] is not None])


async def changed_since(
    tx: Queries, organization_id: UUID, event_id: UUID, mark: int, limit: int
) -> list[tuple[int, list[int] | None, int | None]]:
    """Transaction number, seats and zone of what was done to an event since; more than `limit` are not read."""
    rows = await tx.fetch(CHANGED_SINCE, organization_id, event_id, str(mark), limit)
    return [(row["xid"], row["ordinals"], row["zone_no"]) for row in rows]


async def forget_messages(tx: Queries, limit: int) -> int:
    """How many were a week old, and are gone."""
    return len(await tx.fetch(FORGET_OLD, limit))


def low_mark(cursor: Cursor) -> int:
    """Every transaction numbered below was over when the cursor was taken."""
    return int(cursor.partition(":")[0])


def high_mark(cursor: Cursor) -> int:
    """No transaction numbered from here on had begun."""
    return int(cursor.split(":")[1])


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
        zone_blocked=row["zone_blocked"],
        payload=None if payload is None else msgspec.json.decode(payload),
    )
