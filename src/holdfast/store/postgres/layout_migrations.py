"""Plans to take an event to another version of its layout, what they are made from, and carrying them out."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from holdfast.accounts.principal import Call
from holdfast.holds.lifecycle import SeatState
from holdfast.seating.event import Price
from holdfast.seating.migration import (
    MigrationStatus,
    Occupied,
    PlacesHeld,
    Plan,
    Renumbering,
    SeatTaken,
    ZoneTaken,
)
from holdfast.store.postgres.arrays import integers, texts
from holdfast.store.postgres.database import Row, Transaction

ONE_INSTANT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
FINGERPRINT = "SELECT inventory_fingerprint($1, $2)"
OWN_INVENTORY = "SELECT own_inventory($1, $2)"

# Of what was sold the ticket says whose it is; where there is none (booking v2), the hold that was converted: it ended the
# moment the sale began.
TAKEN_SEATS = """
SELECT s.ordinal, s.state::text AS state, s.sold_at IS NOT NULL AS sold, s.hold_type, h.id AS hold_id,
  CASE WHEN t.id IS NULL THEN h.user_id ELSE t.user_id END AS user_id, h.session_id, t.id AS ticket_id, t.attendee_user_id
FROM event_seats s
LEFT JOIN tickets t ON t.organization_id = $1 AND t.event_id = $2 AND t.ordinal = s.ordinal AND t.status = 'valid'
LEFT JOIN holds h ON h.organization_id = $1 AND h.event_id = $2 AND h.ordinal = s.ordinal AND h.layout_version IS NULL
  AND (h.id = s.hold_id OR (h.status = 'converted' AND h.ended_at = s.sold_at))
WHERE s.organization_id = $1 AND s.event_id = $2 AND s.state <> 'available' ORDER BY s.ordinal
"""
TAKEN_ZONES = """
SELECT zone_no, held, sold, blocked - overlay_blocked AS blocked FROM event_zones
WHERE organization_id = $1 AND event_id = $2 ORDER BY zone_no
"""
HELD_PLACES = """
SELECT id AS hold_id, zone_no, quantity, hold_type, user_id, session_id FROM holds
WHERE organization_id = $1 AND event_id = $2 AND ordinal IS NULL AND status = 'active' ORDER BY id
"""
INSERT = """
INSERT INTO layout_migrations (organization_id, id, event_id, layout_id, from_version, to_version, plan, fingerprint,
  created_at, created_by)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, holdfast_now(), $9) RETURNING *
"""
FIND = "SELECT * FROM layout_migrations WHERE organization_id = $1 AND event_id = $2 AND id = $3"
LIST = """
SELECT * FROM layout_migrations
WHERE organization_id = $1 AND event_id = $2 AND ($3::uuid IS NULL OR id < $3) ORDER BY id DESC LIMIT $4
"""
END = """
UPDATE layout_migrations SET status = $4, ended_at = holdfast_now()
WHERE organization_id = $1 AND event_id = $2 AND id = $3 AND status = 'planned' RETURNING *
"""
MIGRATE = """
SELECT migrate_event($1, $2, $3, $4, $5, $6::text::smallint[], $7::text::integer[], $8::text::integer[],
  $9::text::smallint[], $10::text::smallint[], $11::text::integer[], $12::text::integer[], $13::text::integer[],
  $14::text::text[], $15::uuid[], $16::jsonb, $17::jsonb, $18, $19, $20, $21, $22)
"""
# In which version of the layout what was written down earlier is meant, the oldest change first.
CHANGES = """
SELECT event_id, log_id, outbox_id, from_version FROM event_layout_changes
WHERE organization_id = $1 AND event_id = ANY ($2::uuid[]) ORDER BY log_id, outbox_id
"""


class StoredMigration(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    event_id: UUID
    layout_id: UUID
    from_version: int
    to_version: int
    status: MigrationStatus
    plan: Plan
    fingerprint: str
    created_at: datetime
    created_by: UUID | None
    ended_at: datetime | None


class NumbersChanged(msgspec.Struct, frozen=True):
    """Rows of the log up to `log_id`, and messages before `outbox_id`, are in terms of an earlier version."""

    event_id: UUID
    log_id: int
    outbox_id: int
    from_version: int


async def begin_instant(tx: Transaction) -> None:
    await tx.execute(ONE_INSTANT)


async def fingerprint(tx: Transaction, organization_id: UUID, event_id: UUID) -> str:
    found: str = await tx.fetchval(FINGERPRINT, organization_id, event_id)
    return found


async def own_inventory(tx: Transaction, organization_id: UUID, event_id: UUID) -> None:
    """Alone with the event and everything in it until the commit."""
    await tx.execute(OWN_INVENTORY, organization_id, event_id)


async def occupied(tx: Transaction, organization_id: UUID, event_id: UUID) -> Occupied:
    seats = await tx.fetch(TAKEN_SEATS, organization_id, event_id)
    zones = await tx.fetch(TAKEN_ZONES, organization_id, event_id)
    places = await tx.fetch(HELD_PLACES, organization_id, event_id)
    return Occupied(
        seats=[SeatTaken(**{**row, "state": SeatState(row["state"])}) for row in seats],
        zones=[ZoneTaken(**row) for row in zones],
        places=[PlacesHeld(**row) for row in places],
    )


async def insert(
    tx: Transaction,
    call: Call,
    migration_id: UUID,
    event_id: UUID,
    layout_id: UUID,
    versions: tuple[int, int],
    plan: Plan,
    made_from: str,
) -> StoredMigration:
    row = await tx.fetchrow(
        INSERT,
        call.organization_id,
        migration_id,
        event_id,
        layout_id,
        *versions,
        _json(plan),
        made_from,
        call.principal.user_id,
    )
    assert row is not None
    return _stored(row)


async def find(tx: Transaction, organization_id: UUID, event_id: UUID, migration_id: UUID) -> StoredMigration | None:
    row = await tx.fetchrow(FIND, organization_id, event_id, migration_id)
    return None if row is None else _stored(row)


async def list_migrations(
    tx: Transaction, organization_id: UUID, event_id: UUID, before: UUID | None, limit: int
) -> list[StoredMigration]:
    """Newest first."""
    return [_stored(row) for row in await tx.fetch(LIST, organization_id, event_id, before, limit)]


async def end(
    tx: Transaction, organization_id: UUID, event_id: UUID, migration_id: UUID, status: MigrationStatus
) -> StoredMigration | None:
    """None: it had ended already."""
    row = await tx.fetchrow(END, organization_id, event_id, migration_id, status.value)
    return None if row is None else _stored(row)


async def migrate(
    tx: Transaction,
    call: Call,
    stored: StoredMigration,
    numbers: Renumbering,
    prices: Sequence[Price],
    told: Any,
) -> None:
    """The caller owns the inventory, and has found that nothing changed since the plan."""
    who = call.principal
    placed = [(move.from_seat, move.to_seat) for move in stored.plan.moves if move.to_seat is not None]
    await tx.execute(
        MIGRATE,
        call.organization_id,
        stored.event_id,
        stored.id,
        stored.from_version,
        stored.to_version,
        integers(numbers.zone_nos),
        integers(numbers.keep),
        integers(numbers.taken_from),
        integers(numbers.ga_zones),
        integers(numbers.ga_keep),
        integers(numbers.ga_capacities),
        integers([origin.ordinal for origin, _ in placed]),
        integers([target.ordinal for _, target in placed]),
        texts(
            [f"moved from {o.seat_id} to {t.seat_id} with version {stored.to_version} of the layout" for o, t in placed]
        ),
        stored.plan.cancelled_holds,
        _json(list(prices)),
        _json(told),
        who.actor.value,
        who.user_id,
        call.ip,
        call.user_agent,
        call.request_id,
    )


async def changes_of(tx: Transaction, organization_id: UUID, events: Sequence[UUID]) -> list[NumbersChanged]:
    """Of these events, the oldest first."""
    return [NumbersChanged(*row.values()) for row in await tx.fetch(CHANGES, organization_id, list(events))]


def _stored(row: Row) -> StoredMigration:
    facts = {name: row[name] for name in StoredMigration.__struct_fields__}
    facts["plan"] = msgspec.json.decode(row["plan"], type=Plan)
    facts["status"] = MigrationStatus(row["status"])
    return StoredMigration(**facts)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
