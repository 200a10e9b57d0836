"""Everything the invariants of one event are judged by, read at one instant."""

from bisect import bisect_right
from collections.abc import Collection, Sequence
from uuid import UUID

import msgspec

from holdfast.holds.lifecycle import LayoutChange, LogRow, SeatState, Verb
from holdfast.insight.event_facts import CheckoutFact, EventFacts, HoldFact, LineFact, SeatFact, TicketFact, ZoneFact
from holdfast.store.postgres.database import Database, Row
from holdfast.store.postgres.occupancy import read_counted

# One snapshot for all reads, so that a sale under way is seen whole or not at all.
_ONE_INSTANT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
_EXISTS = "SELECT true FROM events WHERE organization_id = $1 AND id = $2"
_SEATS = """
SELECT ordinal, state::text, version, hold_id, hold_type, held_until, zone_no, sold_at IS NOT NULL
FROM event_seats
WHERE organization_id = $1 AND event_id = $2 ORDER BY ordinal
"""
_ZONES = """
SELECT zone_no, capacity, held, sold, blocked FROM event_zones
WHERE organization_id = $1 AND event_id = $2 ORDER BY zone_no
"""
_ACTIVE_HOLDS = """
SELECT id, ordinal, zone_no, quantity, hold_type, held_until FROM holds
WHERE organization_id = $1 AND event_id = $2 AND status = 'active' ORDER BY id
"""
_LOG = """
SELECT id, ordinal, zone_no, quantity, old_state::text, new_state::text, verb, hold_id, hold_type, version
FROM seat_state_events WHERE organization_id = $1 AND event_id = $2 ORDER BY id
"""
_LAYOUT_CHANGES = """
SELECT log_id, base_version, capacities FROM event_layout_changes
WHERE organization_id = $1 AND event_id = $2 ORDER BY log_id, outbox_id
"""
_UNKNOWN_HOLDS = """
SELECT wanted.id FROM unnest($3::uuid[]) AS wanted (id)
WHERE NOT EXISTS (
  SELECT FROM holds h WHERE h.organization_id = $1 AND h.event_id = $2 AND h.id = wanted.id) ORDER BY wanted.id
"""
_TICKETS = """
SELECT id, ordinal, zone_no FROM tickets WHERE organization_id = $1 AND event_id = $2 AND status = 'valid' ORDER BY id
"""
# Sales over the counter have no lines: their tickets are issued by the statement that follows the sale, or not at all.
_COMPLETED = """
SELECT c.id, l.places, (
  SELECT count(*) FROM tickets t WHERE t.organization_id = $1 AND t.checkout_id = c.id)::integer AS tickets
FROM checkouts c
CROSS JOIN LATERAL (
  SELECT sum(l.quantity)::integer AS places FROM checkout_lines l
  WHERE l.organization_id = $1 AND l.checkout_id = c.id AND l.dropped_at IS NULL) l
WHERE c.organization_id = $1 AND c.event_id = $2 AND c.status = 'completed' AND l.places IS NOT NULL ORDER BY c.id
"""
_LINES = """
SELECT c.id, h.id, c.expires_at, h.held_until, c.heartbeat_s IS NOT NULL
FROM checkouts c
JOIN checkout_lines l ON l.organization_id = $1 AND l.checkout_id = c.id AND l.dropped_at IS NULL
JOIN holds h ON h.organization_id = $1 AND h.id = l.hold_id
WHERE c.organization_id = $1 AND c.event_id = $2 AND c.status IN ('open', 'paying') AND h.status = 'active'
  AND h.held_until IS NOT NULL ORDER BY c.id, h.id
"""
# Money is recorded first and settled after it, by whoever received it or by the next worker: not within the same instant.
_SETTLED_WITHIN_S = 60.0
_UNSETTLED = """
SELECT id FROM payments WHERE organization_id = $1 AND event_id = $2 AND status = 'received'
  AND received_at < holdfast_now() - make_interval(secs => $3) ORDER BY id
"""


async def read_event_facts(
    database: Database, organization_id: UUID, event_id: UUID, acknowledged: Collection[UUID] = ()
) -> EventFacts | None:
    """None: there is no such event. `acknowledged` are holds that clients were told they have, or had."""
    async with database.transaction(organization_id) as tx:
        await tx.execute(_ONE_INSTANT)
        if not await tx.fetchval(_EXISTS, organization_id, event_id):
            return None
        seats = await tx.fetch(_SEATS, organization_id, event_id)
        zones = await tx.fetch(_ZONES, organization_id, event_id)
        holds = await tx.fetch(_ACTIVE_HOLDS, organization_id, event_id)
        log = await tx.fetch(_LOG, organization_id, event_id)
        changes = await tx.fetch(_LAYOUT_CHANGES, organization_id, event_id)
        counted = await read_counted(tx, organization_id, event_id)
        tickets = await tx.fetch(_TICKETS, organization_id, event_id)
        completed = await tx.fetch(_COMPLETED, organization_id, event_id)
        lines = await tx.fetch(_LINES, organization_id, event_id)
        unsettled = await tx.fetch(_UNSETTLED, organization_id, event_id, _SETTLED_WITHIN_S)
        unknown = await tx.fetch(_UNKNOWN_HOLDS, organization_id, event_id, list(acknowledged))
    return EventFacts(
        seats=[SeatFact(row[0], SeatState(row[1]), *row[2:]) for row in map(tuple, seats)],
        zones=[ZoneFact(*row) for row in map(tuple, zones)],
        active_holds=[HoldFact(*row) for row in map(tuple, holds)],
        log=[log_row(row) for row in log],
        layout_changes=[_layout_change(row, log) for row in changes],
        occupancy=counted.counts,
        tickets=[TicketFact(*row) for row in map(tuple, tickets)],
        completed=[CheckoutFact(*row) for row in map(tuple, completed)],
        lines=[LineFact(*row) for row in map(tuple, lines)],
        unsettled=[row["id"] for row in unsettled],
        acknowledged=len(acknowledged),
        unknown_holds=[row["id"] for row in unknown],
    )


def _layout_change(row: Row, log: Sequence[Row]) -> LayoutChange:
    return LayoutChange(
        after_rows=bisect_right(log, row["log_id"], key=lambda logged: logged["id"]),
        base_version=row["base_version"],
        capacities=msgspec.json.decode(row["capacities"], type=dict[int, int]),
    )


def log_row(row: Row) -> LogRow:
    return LogRow(
        ordinal=row["ordinal"],
        zone_no=row["zone_no"],
        quantity=row["quantity"],
        old_state=SeatState(row["old_state"]),
        new_state=SeatState(row["new_state"]),
        verb=Verb(row["verb"]),
        hold_id=row["hold_id"],
        hold_type=row["hold_type"],
        version=row["version"],
    )
