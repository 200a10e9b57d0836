"""How the events on sale are doing, for the figures: few rows each, whatever the size of the inventory or the log."""

from collections.abc import Mapping, Sequence
from uuid import UUID

import msgspec

from holdfast.store.postgres.database import Transaction

# Across organizations, as the engine's role.
OVERDUE = """
SELECT coalesce(greatest(0, extract(epoch FROM holdfast_now() - min(h.held_until))), 0)::float8 FROM holds h
WHERE h.status = 'active' AND h.held_until IS NOT NULL
"""
TAKEN = """
SELECT event_id, zone_no, sum(places)::integer AS places FROM (
  SELECT event_id, zone_no, places FROM occupancy_counts
  WHERE organization_id = $1 AND event_id = ANY ($2::uuid[]) AND state IN ('held', 'sold')
  UNION ALL
  SELECT event_id, zone_no, change FROM occupancy_changes
  WHERE organization_id = $1 AND event_id = ANY ($2::uuid[]) AND state IN ('held', 'sold')) both_parts
GROUP BY event_id, zone_no HAVING sum(places) <> 0
"""
# The log has no index by time, but its ids grow with it: what was older than the hour the last time is not read again.
ENDED = """
SELECT w.event_id, m.hold_type, m.verb, m.within, count(*)::integer AS holds, max(m.id) AS last_id
FROM unnest($2::uuid[], $3::bigint[]) AS w (event_id, after)
CROSS JOIN LATERAL (
  SELECT s.id, s.hold_type, s.verb, s.at > holdfast_now() - interval '1 hour' AS within FROM seat_state_events s
  WHERE s.organization_id = $1 AND s.event_id = w.event_id AND s.id > w.after ORDER BY s.id DESC LIMIT $4) m
GROUP BY w.event_id, m.hold_type, m.verb, m.within
"""
OUTCOMES = {"convert": "converted", "expire": "expired", "release": "cancelled"}
"""How a hold ends, by the verb of its last move."""


class Ended(msgspec.Struct, frozen=True):
    """Holds of an event that ended within the last hour, and from where on the log need be read the next time."""

    holds: Mapping[tuple[str, str], int]
    """By hold type and outcome."""
    read_from: int


async def longest_overdue_s(tx: Transaction) -> float:
    """As the engine's role: for how long the hold that should have ended first has been over; 0 where none is."""
    seconds: float = await tx.fetchval(OVERDUE)
    return seconds


async def taken_places(tx: Transaction, organization_id: UUID, events: Sequence[UUID]) -> dict[tuple[UUID, int], int]:
    """Held or sold, by event and zone number; zones of which nothing is taken are left out."""
    rows = await tx.fetch(TAKEN, organization_id, list(events))
    return {(row["event_id"], row["zone_no"]): row["places"] for row in rows}


async def ended_holds(
    tx: Transaction, organization_id: UUID, read_from: Mapping[UUID, int], moves_max: int
) -> dict[UUID, Ended]:
    """By event. `read_from`: what the last answer said, 0 at first. Of an event's newest `moves_max` moves."""
    rows = await tx.fetch(ENDED, organization_id, list(read_from), list(read_from.values()), moves_max)
    found = {event_id: Ended({}, mark) for event_id, mark in read_from.items()}
    for row in rows:
        before = found[row["event_id"]]
        if not row["within"]:
            found[row["event_id"]] = Ended(before.holds, max(before.read_from, row["last_id"]))
        elif row["verb"] in OUTCOMES and row["hold_type"] is not None:
            key = (row["hold_type"], OUTCOMES[row["verb"]])
            holds = {**before.holds, key: before.holds.get(key, 0) + row["holds"]}
            found[row["event_id"]] = Ended(holds, before.read_from)
    return found
