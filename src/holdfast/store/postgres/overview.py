"""An event at a glance: what stands where, what moved last, what ends next."""

from uuid import UUID

from holdfast.store.postgres.database import Row, Transaction

# A seat whose hold is over is free, whether or not the sweeper has been there.
SEAT_COUNTS = """
SELECT zone_no, state, count(*)::integer AS seats FROM (
  SELECT zone_no, CASE WHEN state = 'held' AND held_until <= holdfast_now() THEN 'available' ELSE state::text END AS state
  FROM event_seats WHERE organization_id = $1 AND event_id = $2) seats
GROUP BY zone_no, state
"""
SEAT_STATES = """
SELECT CASE WHEN state = 'held' AND held_until <= holdfast_now() THEN 'available' ELSE state::text END
FROM event_seats WHERE organization_id = $1 AND event_id = $2 ORDER BY ordinal
"""
LATEST_MOVES = """
SELECT at, verb, ordinal, zone_no, quantity, new_state::text AS new_state, hold_type FROM seat_state_events
WHERE organization_id = $1 AND event_id = $2 ORDER BY id DESC LIMIT $3
"""
NEXT_EXPIRIES = """
SELECT ordinal, zone_no, quantity, extract(epoch FROM held_until - holdfast_now())::float AS left_s FROM holds
WHERE organization_id = $1 AND event_id = $2 AND status = 'active' AND held_until > holdfast_now()
ORDER BY held_until LIMIT $3
"""


async def count_seats(tx: Transaction, organization_id: UUID, event_id: UUID) -> dict[tuple[int, str], int]:
    """Seats by zone number and state."""
    rows = await tx.fetch(SEAT_COUNTS, organization_id, event_id)
    return {(row["zone_no"], row["state"]): row["seats"] for row in rows}


async def seat_states(tx: Transaction, organization_id: UUID, event_id: UUID) -> list[str]:
    """By ordinal."""
    return [row[0] for row in await tx.fetch(SEAT_STATES, organization_id, event_id)]


async def latest_moves(tx: Transaction, organization_id: UUID, event_id: UUID, limit: int) -> list[Row]:
    return await tx.fetch(LATEST_MOVES, organization_id, event_id, limit)


async def next_expiries(tx: Transaction, organization_id: UUID, event_id: UUID, limit: int) -> list[Row]:
    return await tx.fetch(NEXT_EXPIRIES, organization_id, event_id, limit)
