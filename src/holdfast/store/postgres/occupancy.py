"""The counters of occupancy: what stands in the counts and what has changed since, always read together.

A writer adds a row of changes and waits for nobody; `fold` adds such rows up. Whoever reads both in one statement sees
each change exactly once, folded or not.
"""

from datetime import datetime
from uuid import UUID

import msgspec

from holdfast.holds.lifecycle import SeatState
from holdfast.insight.occupancy import Count, Counted, Snapshot, Taken
from holdfast.store.postgres.database import Row, Transaction

READ = """
SELECT t.at, t.snapshot, c.zone_no, c.state::text AS state, c.hold_type, c.places
FROM (SELECT holdfast_now() AS at, pg_current_snapshot()::text AS snapshot) t
LEFT JOIN (
  SELECT zone_no, state, hold_type, sum(places)::integer AS places FROM (
    SELECT zone_no, state, hold_type, places FROM occupancy_counts WHERE organization_id = $1 AND event_id = $2
    UNION ALL
    SELECT zone_no, state, hold_type, change FROM occupancy_changes WHERE organization_id = $1 AND event_id = $2) both_parts
  GROUP BY zone_no, state, hold_type HAVING sum(places) <> 0) c ON true
ORDER BY c.zone_no, c.state, c.hold_type
"""

# Across organizations, as the engine's role: whose changes are to be added up.
CHANGED_EVENTS = "SELECT DISTINCT organization_id, event_id FROM occupancy_changes"
# One worker at a time an organization; the others have something else to do meanwhile.
LOCK_FOLDING = "SELECT pg_try_advisory_xact_lock(hashtextextended('fold_occupancy:' || $1::uuid::text, 0))"
FOLD = """
WITH taken AS (
  DELETE FROM occupancy_changes c USING (
    SELECT event_id, id FROM occupancy_changes
    WHERE organization_id = $1 AND event_id = ANY ($2::uuid[]) ORDER BY event_id, id LIMIT $3) w
  WHERE c.organization_id = $1 AND c.event_id = w.event_id AND c.id = w.id
  RETURNING c.event_id, c.zone_no, c.state, c.hold_type, c.change
), added AS (
  INSERT INTO occupancy_counts (organization_id, event_id, zone_no, state, hold_type, places)
  SELECT $1, event_id, zone_no, state, hold_type, sum(change) FROM taken
  GROUP BY event_id, zone_no, state, hold_type HAVING sum(change) <> 0
  ON CONFLICT (organization_id, event_id, zone_no, state, hold_type) DO UPDATE
    SET places = occupancy_counts.places + EXCLUDED.places
)
SELECT count(*) FROM taken
"""

MINUTE = """
SELECT date_trunc('minute', t.now) AS minute,
  extract(epoch FROM date_trunc('minute', t.now) + interval '1 minute' - t.now)::float8 AS left_s
FROM (SELECT holdfast_now() AS now) t
"""
# Across organizations, as the engine's role: what is on sale.
EVENTS_ON_SALE = "SELECT organization_id, id FROM events WHERE status IN ('published', 'live')"
KEEP = """
WITH wanted AS (
  SELECT e.id, e.layout_id, e.layout_version FROM events e
  WHERE e.organization_id = $1 AND e.id = ANY ($2::uuid[]) AND NOT EXISTS (
    SELECT FROM occupancy_snapshots s WHERE s.organization_id = $1 AND s.event_id = e.id AND s.at = $3)
), counts AS (
  SELECT event_id, zone_no, state, hold_type, sum(places)::integer AS places FROM (
    SELECT k.event_id, k.zone_no, k.state, k.hold_type, k.places FROM wanted w
    JOIN occupancy_counts k ON k.organization_id = $1 AND k.event_id = w.id
    UNION ALL
    SELECT c.event_id, c.zone_no, c.state, c.hold_type, c.change FROM wanted w
    JOIN occupancy_changes c ON c.organization_id = $1 AND c.event_id = w.id) both_parts
  GROUP BY event_id, zone_no, state, hold_type
), zones AS (
  SELECT event_id, zone_no, coalesce(sum(places) FILTER (WHERE state = 'held'), 0) AS held,
    coalesce(sum(places) FILTER (WHERE state = 'sold'), 0) AS sold,
    coalesce(sum(places) FILTER (WHERE state = 'blocked'), 0) AS blocked
  FROM counts GROUP BY event_id, zone_no HAVING bool_or(places <> 0)
), types AS (
  SELECT event_id, hold_type, sum(places) AS places FROM counts
  WHERE state = 'held' GROUP BY event_id, hold_type HAVING sum(places) <> 0
), events_now AS (
  SELECT w.id, coalesce(z.held, 0) AS held, coalesce(z.sold, 0) AS sold, coalesce(z.blocked, 0) AS blocked,
    coalesce(v.seat_count, 0) + coalesce(p.capacity, 0) AS total, coalesce(z.by_zone, '{}') AS by_zone,
    coalesce(y.by_hold_type, '{}') AS by_hold_type
  FROM wanted w
  LEFT JOIN layout_versions v ON v.organization_id = $1 AND v.layout_id = w.layout_id AND v.version = w.layout_version
  LEFT JOIN LATERAL (
    SELECT sum(held) AS held, sum(sold) AS sold, sum(blocked) AS blocked,
      jsonb_object_agg(zone_no, jsonb_build_object('held', held, 'sold', sold, 'blocked', blocked)) AS by_zone
    FROM zones z WHERE z.event_id = w.id) z ON true
  LEFT JOIN LATERAL (
    SELECT jsonb_object_agg(hold_type, places) AS by_hold_type FROM types y WHERE y.event_id = w.id) y ON true
  LEFT JOIN LATERAL (
    SELECT sum(p.capacity) AS capacity FROM event_zones p WHERE p.organization_id = $1 AND p.event_id = w.id) p ON true
), kept AS (
  INSERT INTO occupancy_snapshots (organization_id, event_id, at, available, held, sold, blocked, total, by_zone,
    by_hold_type)
  SELECT $1, id, $3, total - held - sold - blocked, held, sold, blocked, total, by_zone, by_hold_type FROM events_now
  ON CONFLICT (organization_id, event_id, at) DO NOTHING
  RETURNING event_id
)
SELECT count(*) FROM kept
"""
LIST_SNAPSHOTS = """
SELECT at, available, held, sold, blocked, total, by_zone, by_hold_type FROM occupancy_snapshots
WHERE organization_id = $1 AND event_id = $2 AND at < coalesce($4::timestamptz, 'infinity')
  AND at >= (SELECT coalesce($3::timestamptz, coalesce($4::timestamptz, holdfast_now()) - interval '1 day'))
ORDER BY at LIMIT $5
"""


async def read_counted(tx: Transaction, organization_id: UUID, event_id: UUID) -> Counted:
    rows = await tx.fetch(READ, organization_id, event_id)
    counts = [
        Count(row["zone_no"], SeatState(row["state"]), row["hold_type"], row["places"])
        for row in rows
        if row["zone_no"] is not None
    ]
    return Counted(rows[0]["at"], rows[0]["snapshot"], counts)


async def changed_events(tx: Transaction) -> dict[UUID, list[UUID]]:
    """As the engine's role: events with changes that are not folded yet, by organization."""
    return _by_organization(await tx.fetch(CHANGED_EVENTS), "event_id")


async def fold(tx: Transaction, organization_id: UUID, events: list[UUID], limit: int) -> int | None:
    """Moves at most `limit` changes into the counts, and answers how many; None where another is at it."""
    if not await tx.fetchval(LOCK_FOLDING, organization_id):
        return None
    folded: int = await tx.fetchval(FOLD, organization_id, events, limit)
    return folded


async def minute_now(tx: Transaction) -> tuple[datetime, float]:
    """The minute by the database's clock, and the seconds until the next."""
    row = await tx.fetchrow(MINUTE)
    assert row is not None
    return row["minute"], row["left_s"]


async def events_on_sale(tx: Transaction) -> dict[UUID, list[UUID]]:
    """As the engine's role, by organization."""
    return _by_organization(await tx.fetch(EVENTS_ON_SALE), "id")


async def keep_snapshots(tx: Transaction, organization_id: UUID, events: list[UUID], minute: datetime) -> int:
    """How full these events are, as of this minute, where nobody has kept that yet. Answers how many it kept."""
    kept: int = await tx.fetchval(KEEP, organization_id, events, minute)
    return kept


async def list_snapshots(
    tx: Transaction, organization_id: UUID, event_id: UUID, since: datetime | None, until: datetime | None, limit: int
) -> list[Snapshot]:
    """From `since` on (or for a day) and before `until` (or now), the oldest first."""
    rows = await tx.fetch(LIST_SNAPSHOTS, organization_id, event_id, since, until, limit)
    return [_snapshot(row) for row in rows]


def _snapshot(row: Row) -> Snapshot:
    facts = dict(row)
    facts["by_zone"] = msgspec.json.decode(row["by_zone"], type=dict[int, Taken])
    facts["by_hold_type"] = msgspec.json.decode(row["by_hold_type"], type=dict[str, int])
    return Snapshot(**facts)


def _by_organization(rows: list[Row], column: str) -> dict[UUID, list[UUID]]:
    found: dict[UUID, list[UUID]] = {}
    for row in rows:
        found.setdefault(row["organization_id"], []).append(row[column])
    return found
