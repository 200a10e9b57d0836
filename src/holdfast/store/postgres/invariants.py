"""Everything the invariants of one event are judged by, read at one instant."""

from bisect import bisect_right
from collections.abc import Collection, Sequence
from uuid import UUID

import msgspec

from holdfast.holds.lifecycle import LayoutChange, LogRow, SeatState, Verb
from holdfast.insight.event_facts import EventFacts, HoldFact, SeatFact, ZoneFact
from holdfast.store.postgres.database import Database, Row
from holdfast.store.postgres.occupancy import read_counted

# One snapshot for all reads, so that a sale under way is seen whole or not at all.
_ONE_INSTANT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
_EXISTS = "SELECT true FROM events WHERE organization_id = $1 AND id = $2"
_SEATS = """
SELECT ordinal, state::text, version, hold_id, hold_type, held_until, zone_no FROM event_seats
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
        unknown = await tx.fetch(_UNKNOWN_HOLDS, organization_id, event_id, list(acknowledged))
    return EventFacts(
        seats=[SeatFact(row[0], SeatState(row[1]), *row[2:]) for row in map(tuple, seats)],
        zones=[ZoneFact(*row) for row in map(tuple, zones)],
        active_holds=[HoldFact(*row) for row in map(tuple, holds)],
        log=[log_row(row) for row in log],
        layout_changes=[_layout_change(row, log) for row in changes],
        occupancy=counted.counts,
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
