"""An event's inventory: making it, reading it, blocking seats. The SQL functions called here alone change states."""

from typing import Any
from uuid import UUID

from holdfast.accounts.principal import Call
from holdfast.holds.claims import disabled_zone, full_zone
from holdfast.holds.lifecycle import Actor
from holdfast.kernel.errors import Refusal
from holdfast.seating.layout import Layout
from holdfast.store.postgres.database import Row, Transaction

MAKE_INVENTORY = "SELECT make_inventory($1, $2, $3::smallint[], $4::smallint[], $5::integer[])"
# Otherwise the seats are strangers to the planner until PostgreSQL's own housekeeping comes by: a minute in which holding
# thousands of them at once takes twenty times as long.
COUNT_SEATS = "ANALYZE event_seats"
BLOCK_SEATS = "SELECT block_seats($1, $2, $3::integer[], $4, $5, $6, $7, $8, $9, $10)"
UNBLOCK_SEATS = "SELECT unblock_seats($1, $2, $3::integer[], $4, $5, $6, $7, $8, $9)"

# A seat whose hold is over is free, whether or not the sweeper has been there: that is what a buyer would find.
_SEATS = """
WITH t AS MATERIALIZED (
  SELECT holdfast_now() AS now, (SELECT e.layout_version FROM events e WHERE e.organization_id = $1 AND e.id = $2) AS layout)
SELECT * FROM (
  SELECT t.layout AS layout_version, s.ordinal, s.booking_id, s.version, s.block_reason, f.state, f.hold_type,
    CASE WHEN f.state = 'held' THEN s.held_until END AS held_until
  FROM t CROSS JOIN event_seats s
  CROSS JOIN LATERAL (SELECT
    CASE WHEN s.state = 'held' AND s.held_until <= t.now THEN 'available' ELSE s.state::text END AS state,
    CASE WHEN s.state = 'held' AND s.held_until <= t.now THEN NULL ELSE s.hold_type END AS hold_type) f
"""
LIST_SEATS = f"""{_SEATS}
  WHERE s.organization_id = $1 AND s.event_id = $2 AND s.ordinal >= $3 AND s.ordinal < $4) seats
WHERE ($5::text IS NULL OR state = $5) AND ($6::text IS NULL OR hold_type = $6)
ORDER BY ordinal LIMIT $7
"""
FIND_SEAT = f"{_SEATS} WHERE s.organization_id = $1 AND s.event_id = $2 AND s.ordinal = $3) seats"
FIND_STATES = """
SELECT ordinal, state::text FROM event_seats
WHERE organization_id = $1 AND event_id = $2 AND ordinal = ANY ($3::integer[]) ORDER BY ordinal
"""
LIST_ZONES = """
WITH t AS MATERIALIZED (
  SELECT holdfast_now() AS now, (SELECT e.layout_version FROM events e WHERE e.organization_id = $1 AND e.id = $2) AS layout)
SELECT t.layout AS layout_version, z.zone_no, z.booking_id, z.capacity, z.sold, z.blocked, z.version, z.disabled,
  z.held - coalesce(l.lapsed, 0)::integer AS held
FROM t CROSS JOIN event_zones z
LEFT JOIN LATERAL (
  SELECT sum(h.quantity) AS lapsed FROM holds h
  WHERE h.organization_id = $1 AND h.event_id = $2 AND h.zone_no = z.zone_no AND h.ordinal IS NULL
    AND h.status = 'active' AND h.held_until <= t.now) l ON true
WHERE z.organization_id = $1 AND z.event_id = $2 ORDER BY z.zone_no
"""
# A sold seat that was blocked nevertheless keeps its sale.
FIND_SOLD_SEATS = """
SELECT ordinal FROM event_seats
WHERE organization_id = $1 AND event_id = $2 AND ordinal = ANY ($3::integer[]) AND sold_at IS NOT NULL ORDER BY ordinal
"""
FIND_SOLD_PLACES = """
SELECT zone_no, sold FROM event_zones
WHERE organization_id = $1 AND event_id = $2 AND zone_no = ANY ($3::smallint[]) AND sold > 0 ORDER BY zone_no
"""
FIND_BLOCKED_FOR = """
SELECT ordinal FROM event_seats
WHERE organization_id = $1 AND event_id = $2 AND ordinal = ANY ($3::integer[]) AND state = 'blocked' AND block_reason = $4
ORDER BY ordinal
"""
DISABLE_ZONES = "SELECT disable_zones($1, $2, $3::smallint[], $4, $5, $6, $7, $8, $9)"
ENABLE_ZONES = "SELECT enable_zones($1, $2, $3::smallint[], $4, $5, $6, $7, $8, $9)"
BLOCK_PLACES = "SELECT block_places($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
UNBLOCK_PLACES = "SELECT unblock_places($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
FIND_ZONE = """
SELECT disabled, held, sold, blocked, capacity FROM event_zones
WHERE organization_id = $1 AND event_id = $2 AND zone_no = $3
"""
FIND_ACTIVE_HOLDS = """
SELECT id FROM holds
WHERE organization_id = $1 AND event_id = $2 AND status = 'active' AND hold_type = ANY ($3::text[])
ORDER BY ordinal NULLS LAST, zone_no, id
"""
RELEASE_HOLDS = """
SELECT count(*) FROM release_holds($1, $2::uuid[], $3, NULL, NULL, $4, $5, $6, $7)
"""
CHUNK = 5_000


async def make_inventory(tx: Transaction, organization_id: UUID, event_id: UUID, layout: Layout) -> None:
    """One row a seat and one a GA zone. The caller owns the event's lock."""
    ga = [zone for zone in layout.zones if zone.is_ga]
    await tx.execute(
        MAKE_INVENTORY,
        organization_id,
        event_id,
        layout.zone_nos,
        [zone.zone_no for zone in ga],
        [zone.capacity for zone in ga],
    )
    await tx.execute(COUNT_SEATS)


async def list_seats(
    tx: Transaction,
    organization_id: UUID,
    event_id: UUID,
    ordinals: range,
    *,
    state: str | None,
    hold_type: str | None,
    limit: int,
) -> list[Row]:
    return await tx.fetch(LIST_SEATS, organization_id, event_id, ordinals.start, ordinals.stop, state, hold_type, limit)


async def find_seat(tx: Transaction, organization_id: UUID, event_id: UUID, ordinal: int) -> Row | None:
    return await tx.fetchrow(FIND_SEAT, organization_id, event_id, ordinal)


async def find_states(tx: Transaction, organization_id: UUID, event_id: UUID, ordinals: list[int]) -> dict[int, str]:
    rows = await tx.fetch(FIND_STATES, organization_id, event_id, ordinals)
    return {row["ordinal"]: row["state"] for row in rows}


async def list_zones(tx: Transaction, organization_id: UUID, event_id: UUID) -> list[Row]:
    return await tx.fetch(LIST_ZONES, organization_id, event_id)


async def block_seats(
    tx: Transaction, call: Call, event_id: UUID, ordinals: list[int], reason: str, *, force: bool
) -> list[int]:
    """Answers the seats it blocked: not those blocked before, nor (without `force`) those sold.
    The caller shares the event's lock."""
    blocked: list[int] = await tx.fetchval(
        BLOCK_SEATS, call.organization_id, event_id, ordinals, force, *_asker(call), reason
    )
    return blocked


async def unblock_seats(
    tx: Transaction, call: Call, event_id: UUID, ordinals: list[int], reason: str | None
) -> list[int]:
    """Answers the seats it unblocked. The caller shares the event's lock."""
    unblocked: list[int] = await tx.fetchval(
        UNBLOCK_SEATS, call.organization_id, event_id, ordinals, *_asker(call), reason
    )
    return unblocked


async def sold_seats(tx: Transaction, organization_id: UUID, event_id: UUID, ordinals: list[int]) -> list[int]:
    """Those of them with a ticket, blocked or not."""
    rows = await tx.fetch(FIND_SOLD_SEATS, organization_id, event_id, ordinals)
    return [row["ordinal"] for row in rows]


async def sold_places(tx: Transaction, organization_id: UUID, event_id: UUID, zones: list[int]) -> dict[int, int]:
    """By zone number; zones of which nothing is sold are left out."""
    rows = await tx.fetch(FIND_SOLD_PLACES, organization_id, event_id, zones)
    return {row["zone_no"]: row["sold"] for row in rows}


async def seats_blocked_for(
    tx: Transaction, organization_id: UUID, event_id: UUID, ordinals: list[int], reason: str
) -> list[int]:
    rows = await tx.fetch(FIND_BLOCKED_FOR, organization_id, event_id, ordinals, reason)
    return [row["ordinal"] for row in rows]


async def disable_zones(tx: Transaction, call: Call, event_id: UUID, zones: list[int], reason: str) -> None:
    """General-admission zones: what is held of them is given back, and every free place is blocked.
    The caller owns the event's lock."""
    await tx.execute(DISABLE_ZONES, call.organization_id, event_id, zones, *_asker(call), reason)


async def enable_zones(tx: Transaction, call: Call, event_id: UUID, zones: list[int], reason: str) -> None:
    """What `disable_zones` blocked is available again; what somebody blocked by hand is not."""
    await tx.execute(ENABLE_ZONES, call.organization_id, event_id, zones, *_asker(call), reason)


async def block_places(
    tx: Transaction, call: Call, event_id: UUID, zone_no: int, quantity: int, reason: str | None
) -> bool:
    """Takes so many free places out of a general-admission zone; false where there are not as many.
    The caller shares the event's lock."""
    done: bool = await tx.fetchval(
        BLOCK_PLACES, call.organization_id, event_id, zone_no, quantity, *_asker(call), reason
    )
    return done


async def unblock_places(
    tx: Transaction, call: Call, event_id: UUID, zone_no: int, quantity: int, reason: str | None
) -> bool:
    done: bool = await tx.fetchval(
        UNBLOCK_PLACES, call.organization_id, event_id, zone_no, quantity, *_asker(call), reason
    )
    return done


async def find_zone(tx: Transaction, organization_id: UUID, event_id: UUID, zone_no: int) -> Row:
    row = await tx.fetchrow(FIND_ZONE, organization_id, event_id, zone_no)
    assert row is not None, "a published event has a row for each of its general-admission zones"
    return row


async def zone_refusal(tx: Transaction, organization_id: UUID, event_id: UUID, zone_no: int) -> Refusal:
    """Why so many places of the zone were not to be had, in the transaction that could not have them."""
    row = await find_zone(tx, organization_id, event_id, zone_no)
    if row["disabled"]:
        return disabled_zone(zone_no)
    return full_zone(zone_no, row["capacity"] - row["held"] - row["sold"] - row["blocked"])


async def release_event_holds(tx: Transaction, call: Call, event_id: UUID, hold_types: list[str], reason: str) -> int:
    """Gives back what is held under these types, in the engine's own name. The caller owns the event's lock."""
    rows = await tx.fetch(FIND_ACTIVE_HOLDS, call.organization_id, event_id, hold_types)
    hold_ids = [row["id"] for row in rows]
    released = 0
    for start in range(0, len(hold_ids), CHUNK):
        released += await tx.fetchval(
            RELEASE_HOLDS,
            call.organization_id,
            hold_ids[start : start + CHUNK],
            Actor.SYSTEM.value,
            call.ip,
            call.user_agent,
            call.request_id,
            reason,
        )
    return released


def _asker(call: Call) -> tuple[Any, ...]:
    principal = call.principal
    return principal.actor.value, principal.user_id, call.ip, call.user_agent, call.request_id
