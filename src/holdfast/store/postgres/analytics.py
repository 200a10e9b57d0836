"""What analyses read of an event's state log: sums, made where the rows are. Nothing here reads the table of holds.

The log has no index of its own for this: one would cost every hold. A window is found by the ids, which grow with time, and
the rows behind it are read once, in parallel where the server has workers to spare (docs/analytics.md).
Rows are told apart by the version of the layout they were written in: `segment` counts the changes before them.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from holdfast.insight.analytics import DrawnPart, EndedHolds, HoldEnd, Lived, PlacesHold, end_of
from holdfast.insight.window import Window
from holdfast.store.postgres.database import Row, Transaction

# One instant for everything an answer is made of. A plan for what was really asked: sizes differ a thousandfold. Compiling
# a query takes longer than running most of them.
OPEN = """
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET LOCAL plan_cache_mode = force_custom_plan;
SET LOCAL jit = off;
SET LOCAL work_mem = '32MB'
"""
NUMBERING = """
SELECT e.layout_version, c.log_id, c.from_version, c.at FROM events e
LEFT JOIN event_layout_changes c ON c.organization_id = $1 AND c.event_id = e.id
WHERE e.organization_id = $1 AND e.id = $2 ORDER BY c.log_id, c.outbox_id
"""
# A row before which all is older than $3: by halves, since ids grow with time.
FIRST_ID = """
WITH RECURSIVE search AS (
  SELECT (SELECT min(l.id) FROM seat_state_events l WHERE l.organization_id = $1 AND l.event_id = $2) AS low,
    (SELECT max(l.id) FROM seat_state_events l WHERE l.organization_id = $1 AND l.event_id = $2) AS high
  UNION ALL
  SELECT CASE WHEN m.at < $3 THEN m.id ELSE s.low END, CASE WHEN m.at < $3 THEN s.high ELSE (s.low + s.high) / 2 END
  FROM search s CROSS JOIN LATERAL (
    SELECT l.id, l.at FROM seat_state_events l
    WHERE l.organization_id = $1 AND l.event_id = $2 AND l.id > (s.low + s.high) / 2 ORDER BY l.id LIMIT 1) m
  WHERE s.high - s.low > 1
)
SELECT coalesce(max(low), 0) FROM search
"""
DISORDER = timedelta(hours=1)
"""No row is older than one before it by more: a transaction does not take so long, nor do two servers' clocks differ so."""

# $3: the first id; $4, $5: the window; $6: hold type; $7: where the numbering changed; $8: zones (`zone_code`).
_PLACED = """
h.organization_id = $1 AND h.event_id = $2 AND h.id >= $3 AND h.verb = 'hold' AND h.at >= $4 AND h.at < $5
  AND ($6::text IS NULL OR h.hold_type = $6)
  AND ($8::integer[] IS NULL OR width_bucket(h.id, $7::bigint[]) * 32768 + h.zone_no = ANY ($8))
"""
# Every hold ends by one move at most, which names it and its type.
_END = """
e.organization_id = $1 AND e.event_id = $2 AND e.id >= $3 AND e.old_state = 'held' AND e.verb <> 'migrate'
  AND ($6::text IS NULL OR e.hold_type = $6) AND e.hold_id = h.hold_id
"""
# Most events were never migrated: then the plan has a constant where each row would be looked up.
ENDED = f"""
SELECT CASE WHEN cardinality($7::bigint[]) = 0 THEN 0 ELSE width_bucket(h.id, $7::bigint[]) END AS segment,
  h.zone_no, h.hold_type,
  CASE WHEN $9::interval IS NOT NULL THEN date_bin($9, h.at, 'epoch') END AS begin, e.verb, e.new_state::text AS new_state,
  count(*) AS holds, sum(h.quantity) AS placed, sum(coalesce(e.quantity, h.quantity)) AS left
FROM seat_state_events h LEFT JOIN seat_state_events e ON {_END}
WHERE {_PLACED}
GROUP BY 1, 2, 3, 4, e.verb, e.new_state
"""
# To the second; above an hour to the minute, above a day to ten: the number of groups stays small.
LIVED = f"""
SELECT t.hold_type, t.verb, t.new_state, t.life_s - t.life_s % CASE WHEN t.life_s < 3600 THEN 1 WHEN t.life_s < 86400 THEN 60
    ELSE 600 END AS life_s, count(*) AS holds
FROM (
  SELECT h.hold_type, e.verb, e.new_state::text AS new_state, greatest(0, extract(epoch FROM e.at - h.at)::bigint) AS life_s
  FROM seat_state_events h JOIN seat_state_events e ON {_END}
  WHERE {_PLACED}) t
GROUP BY 1, 2, 3, 4
"""
PARTS = """
SELECT e.id, width_bucket(e.id, $4::bigint[]) AS segment, e.zone_no, e.session_id, e.verb, e.new_state::text AS new_state,
  e.quantity
FROM seat_state_events e
WHERE e.organization_id = $1 AND e.event_id = $2 AND e.ordinal IS NULL AND e.old_state = 'held' AND e.verb <> 'migrate'
  AND ($3::text IS NULL OR e.hold_type = $3)
  AND NOT EXISTS (SELECT FROM seat_state_events h WHERE h.organization_id = $1 AND h.event_id = $2 AND h.ordinal IS NULL
                  AND h.verb = 'hold' AND h.hold_id = e.hold_id)
"""
PLACES_HELD = """
SELECT h.hold_id, width_bucket(h.id, $5::bigint[]) AS segment, h.zone_no, h.hold_type, h.session_id, h.at,
  CASE WHEN $6::interval IS NOT NULL THEN date_bin($6, h.at, 'epoch') END AS begin, h.quantity AS placed, e.quantity AS left
FROM seat_state_events h
LEFT JOIN seat_state_events e ON e.organization_id = $1 AND e.event_id = $2 AND e.ordinal IS NULL AND e.old_state = 'held'
  AND e.verb <> 'migrate' AND e.hold_id = h.hold_id
WHERE h.organization_id = $1 AND h.event_id = $2 AND h.ordinal IS NULL AND h.verb = 'hold'
  AND h.session_id = ANY ($4::text[]) AND ($3::text IS NULL OR h.hold_type = $3)
"""
SALES = """
SELECT width_bucket(l.id, $6::bigint[]) AS segment, l.zone_no, l.verb, l.ordinal IS NULL AS counted,
  sum(l.quantity)::bigint AS places
FROM seat_state_events l
WHERE l.organization_id = $1 AND l.event_id = $2 AND l.id >= $3 AND l.at >= $4 AND l.at < $5
  AND l.verb IN ('direct_sale', 'revert_sale') AND ($7::text IS NULL OR l.hold_type = $7 OR l.verb = 'revert_sale')
GROUP BY 1, 2, 3, 4
"""
REVERTED_SEATS = """
SELECT DISTINCT width_bucket(l.id, $4::bigint[]) AS segment, l.ordinal FROM seat_state_events l
WHERE l.organization_id = $1 AND l.event_id = $2 AND l.id >= $3 AND l.verb = 'revert_sale' AND l.ordinal IS NOT NULL
"""
SALES_OF_SEATS = """
SELECT l.id, l.at, w.segment, l.ordinal, l.zone_no, l.verb, h.at AS placed_at, h.hold_type,
  width_bucket(h.id, $3::bigint[]) AS placed_segment, h.zone_no AS placed_zone
FROM seat_state_events l
JOIN unnest($4::integer[], $5::integer[]) AS w (segment, ordinal) ON w.ordinal = l.ordinal
  AND w.segment = width_bucket(l.id, $3::bigint[])
LEFT JOIN seat_state_events h ON h.organization_id = $1 AND h.event_id = $2 AND h.verb = 'hold' AND h.hold_id = l.hold_id
WHERE l.organization_id = $1 AND l.event_id = $2 AND l.verb IN ('convert', 'direct_sale', 'revert_sale')
ORDER BY l.id
"""
# What stood before the window comes first, as one sum.
CHANGED = """
SELECT width_bucket(l.id, $5::bigint[]) AS segment, l.zone_no,
  CASE WHEN l.at >= $3 THEN date_bin($6, l.at, 'epoch') END AS begin,
  sum(CASE WHEN l.new_state = 'held' THEN l.quantity WHEN l.old_state = 'held' THEN -l.quantity ELSE 0 END)::bigint AS held,
  sum(CASE WHEN l.new_state = 'sold' THEN l.quantity WHEN l.old_state = 'sold' THEN -l.quantity ELSE 0 END)::bigint AS sold,
  sum(CASE WHEN l.new_state = 'blocked' THEN l.quantity WHEN l.old_state = 'blocked' THEN -l.quantity ELSE 0 END)::bigint
    AS blocked
FROM seat_state_events l
WHERE l.organization_id = $1 AND l.event_id = $2 AND l.at < $4
GROUP BY 1, 2, 3
"""
# $9, $10: seats, by segment and ordinal.
ENDED_ON_SEATS = f"""
SELECT width_bucket(h.id, $7::bigint[]) AS segment, h.zone_no, h.ordinal, e.verb, e.new_state::text AS new_state,
  count(*) AS holds
FROM seat_state_events h
JOIN unnest($9::integer[], $10::integer[]) AS w (segment, ordinal) ON w.ordinal = h.ordinal
  AND w.segment = width_bucket(h.id, $7::bigint[])
LEFT JOIN seat_state_events e ON {_END}
WHERE {_PLACED}
GROUP BY 1, 2, 3, 4, 5
"""
MOVES_OF_SEATS = """
SELECT l.at, w.segment, l.ordinal, l.zone_no, l.verb, l.new_state::text AS new_state, l.hold_id, l.hold_type,
  l.user_id, l.session_id, l.reason
FROM seat_state_events l
JOIN unnest($4::integer[], $5::integer[]) AS w (segment, ordinal) ON w.ordinal = l.ordinal
  AND w.segment = width_bucket(l.id, $3::bigint[])
WHERE l.organization_id = $1 AND l.event_id = $2
ORDER BY l.id
"""
KNOWS_TYPE = """
SELECT EXISTS (SELECT FROM seat_state_events l WHERE l.organization_id = $1 AND l.event_id = $2 AND l.hold_type = $3)
"""
SPAN = """
SELECT min(l.at) AS first, count(*) AS moves FROM seat_state_events l
WHERE l.organization_id = $1 AND l.event_id = $2
"""
NAMED = "SELECT id FROM events WHERE organization_id = $1 AND name = $2 ORDER BY id LIMIT 2"


class Numbering(msgspec.Struct, frozen=True):
    """In which versions of the layout an event's log was written, the first one first; the last is the event's own."""

    versions: tuple[int | None, ...]
    begins: tuple[int, ...]
    """The first id of each version but the first."""
    changed_at: tuple[datetime, ...]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """Which moves are wanted."""

    organization_id: UUID
    event_id: UUID
    window: Window
    hold_type: str | None
    begins: tuple[int, ...]
    zones: list[int] | None
    """By `zone_code`; None: every zone."""
    bucket: timedelta | None = None

    def placed(self, first_id: int) -> tuple[object, ...]:
        window = self.window
        return (
            self.organization_id,
            self.event_id,
            first_id,
            window.since,
            window.until,
            self.hold_type,
            list(self.begins),
            self.zones,
        )


def zone_code(segment: int, zone_no: int) -> int:
    return segment * 32768 + zone_no


async def begin_analysis(tx: Transaction) -> None:
    await tx.execute(OPEN)


async def numbering(tx: Transaction, organization_id: UUID, event_id: UUID) -> Numbering | None:
    rows = await tx.fetch(NUMBERING, organization_id, event_id)
    if not rows:
        return None
    changes = [row for row in rows if row["log_id"] is not None]
    return Numbering(
        versions=(*(row["from_version"] for row in changes), rows[0]["layout_version"]),
        begins=tuple(row["log_id"] + 1 for row in changes),
        changed_at=tuple(row["at"] for row in changes),
    )


async def first_id(tx: Transaction, asked: Asked) -> int:
    """No row of the window has a smaller one."""
    cut = asked.window.since - DISORDER
    found: int = await tx.fetchval(FIRST_ID, asked.organization_id, asked.event_id, cut)
    return found


async def ended_holds(tx: Transaction, asked: Asked, first: int) -> list[EndedHolds]:
    rows = await tx.fetch(ENDED, *asked.placed(first), asked.bucket)
    return [
        EndedHolds(
            (row["segment"], row["zone_no"], row["hold_type"], row["begin"]),
            end_of(row["verb"], row["new_state"]),
            row["holds"],
            int(row["placed"]),
            int(row["left"]),
        )
        for row in rows
    ]


async def drawn_parts(tx: Transaction, asked: Asked) -> tuple[list[PlacesHold], list[DrawnPart]]:
    """Places that were taken out of larger holds, and the holds of their sessions; the latter whenever placed."""
    key = (asked.organization_id, asked.event_id, asked.hold_type)
    parts = await tx.fetch(PARTS, *key, list(asked.begins))
    if not parts:
        return [], []
    sessions = list({row["session_id"] for row in parts if row["session_id"] is not None})
    holds = await tx.fetch(PLACES_HELD, *key, sessions, list(asked.begins), asked.bucket)
    return [_places_hold(row) for row in holds], [
        DrawnPart(
            id=row["id"],
            segment=row["segment"],
            zone_no=row["zone_no"],
            session_id=row["session_id"],
            end=end_of(row["verb"], row["new_state"]),
            places=row["quantity"],
        )
        for row in parts
    ]


def _places_hold(row: Row) -> PlacesHold:
    return PlacesHold(
        hold_id=row["hold_id"],
        group=(row["segment"], row["zone_no"], row["hold_type"], row["begin"]),
        session_id=row["session_id"],
        at=row["at"],
        placed=row["placed"],
        left=row["left"],
    )


async def lived(tx: Transaction, asked: Asked, first: int) -> list[Lived]:
    rows = await tx.fetch(LIVED, *asked.placed(first))
    return [(row["hold_type"], end_of(row["verb"], row["new_state"]), row["life_s"], row["holds"]) for row in rows]


async def sales(tx: Transaction, asked: Asked, first: int) -> list[Row]:
    """Places sold directly, and places whose sale was taken back, within the window."""
    window = asked.window
    return await tx.fetch(
        SALES,
        asked.organization_id,
        asked.event_id,
        first,
        window.since,
        window.until,
        list(asked.begins),
        asked.hold_type,
    )


async def reverted_seats(tx: Transaction, asked: Asked, first: int) -> list[tuple[int, int]]:
    """By segment and ordinal."""
    rows = await tx.fetch(REVERTED_SEATS, asked.organization_id, asked.event_id, first, list(asked.begins))
    return [(row["segment"], row["ordinal"]) for row in rows]


async def sales_of_seats(tx: Transaction, asked: Asked, seats: Sequence[tuple[int, int]]) -> list[Row]:
    return await tx.fetch(SALES_OF_SEATS, asked.organization_id, asked.event_id, list(asked.begins), *_columns(seats))


async def changes(tx: Transaction, asked: Asked, step: timedelta) -> list[Row]:
    """What was added to held, sold and blocked, by zone and step; before the window, in one sum (`begin` null)."""
    window = asked.window
    return await tx.fetch(
        CHANGED, asked.organization_id, asked.event_id, window.since, window.until, list(asked.begins), step
    )


async def ended_on_seats(
    tx: Transaction, asked: Asked, first: int, seats: Sequence[tuple[int, int]]
) -> list[tuple[int, int, int, HoldEnd, int]]:
    """Segment, zone number, ordinal, end, holds."""
    rows = await tx.fetch(ENDED_ON_SEATS, *asked.placed(first), *_columns(seats))
    return [
        (row["segment"], row["zone_no"], row["ordinal"], end_of(row["verb"], row["new_state"]), row["holds"])
        for row in rows
    ]


async def moves_of_seats(tx: Transaction, asked: Asked, seats: Sequence[tuple[int, int]]) -> list[Row]:
    """All there ever were, in their order."""
    return await tx.fetch(MOVES_OF_SEATS, asked.organization_id, asked.event_id, list(asked.begins), *_columns(seats))


def _columns(seats: Sequence[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [segment for segment, _ in seats], [ordinal for _, ordinal in seats]


async def knows_type(tx: Transaction, organization_id: UUID, event_id: UUID, hold_type: str) -> bool:
    """Whether the log names it: a type may have been taken out of the configuration since."""
    known: bool = await tx.fetchval(KNOWS_TYPE, organization_id, event_id, hold_type)
    return known


async def span(tx: Transaction, organization_id: UUID, event_id: UUID) -> tuple[datetime | None, int]:
    """When the log begins, and how many moves it has."""
    row = await tx.fetchrow(SPAN, organization_id, event_id)
    assert row is not None
    return row["first"], row["moves"]


async def events_named(tx: Transaction, organization_id: UUID, name: str) -> list[UUID]:
    """Two at most: more than one is too many already."""
    return [row["id"] for row in await tx.fetch(NAMED, organization_id, name)]
