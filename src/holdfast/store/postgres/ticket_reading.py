"""Tickets as they are read: one, a buyer's, an event's; and the code's version, which makes the old ones worthless."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from holdfast.store.postgres.database import Row, Transaction
from holdfast.tickets.answers import CompanionFact, TicketRecord
from holdfast.tickets.ticket import Entitlement, TicketStatus

_TICKETS = """
SELECT t.id, t.event_id, t.checkout_id, t.ordinal, t.zone_no, coalesce(t.layout_version, e.layout_version) AS layout_version,
  t.hold_type, t.user_id, t.attendee_user_id, coalesce(t.attendee_name, u.display_name) AS attendee_name,
  t.associated_membership_id, t.price_minor, t.currency, t.valid_days, t.entitlement, t.max_daily_entries, t.status,
  t.code_version, t.issued_at, t.voided_at, t.void_reason
FROM tickets t
JOIN events e ON e.organization_id = $1 AND e.id = t.event_id
LEFT JOIN users u ON u.organization_id = $1 AND u.id = t.attendee_user_id
WHERE t.organization_id = $1
"""
FIND = f"{_TICKETS} AND t.id = $2"
# Twice, because each half has an index of its own.
OF_USER = f"""
{_TICKETS} AND t.id IN (
  SELECT o.id FROM tickets o WHERE o.organization_id = $1 AND o.user_id = $2
  UNION SELECT o.id FROM tickets o WHERE o.organization_id = $1 AND o.attendee_user_id = $2)
  AND ($3::uuid IS NULL OR t.event_id = $3) AND ($4::uuid IS NULL OR t.id < $4)
ORDER BY t.id DESC LIMIT $5
"""
OF_EVENT = f"""
{_TICKETS} AND t.event_id = $2 AND ($3::text IS NULL OR t.status = $3) AND ($4::uuid IS NULL OR t.id > $4)
ORDER BY t.id LIMIT $5
"""
BESIDE = """
SELECT s.ordinal, s.state = 'sold' AS sold, t.user_id, t.checkout_id
FROM event_seats s
LEFT JOIN tickets t ON t.organization_id = $1 AND t.event_id = $2 AND t.ordinal = s.ordinal AND t.status = 'valid'
WHERE s.organization_id = $1 AND s.event_id = $2 AND s.ordinal = ANY ($3::integer[])
"""
REISSUE = """
UPDATE tickets SET code_version = code_version + 1
WHERE organization_id = $1 AND id = $2 AND status = 'valid' RETURNING code_version
"""


def _ticket(row: Row) -> TicketRecord:
    fields: dict[str, Any] = dict(row)
    return TicketRecord(
        **{
            **fields,
            "valid_days": tuple(row["valid_days"]),
            "entitlement": Entitlement(row["entitlement"]),
            "status": TicketStatus(row["status"]),
        }
    )


async def find_ticket(tx: Transaction, organization_id: UUID, ticket_id: UUID) -> TicketRecord | None:
    row = await tx.fetchrow(FIND, organization_id, ticket_id)
    return None if row is None else _ticket(row)


async def tickets_of_user(
    tx: Transaction, organization_id: UUID, user_id: UUID, event_id: UUID | None, before: UUID | None, limit: int
) -> list[TicketRecord]:
    """Bought by them, or in their name; the newest first."""
    return [_ticket(row) for row in await tx.fetch(OF_USER, organization_id, user_id, event_id, before, limit)]


async def tickets_of_event(
    tx: Transaction, organization_id: UUID, event_id: UUID, status: TicketStatus | None, after: UUID | None, limit: int
) -> list[TicketRecord]:
    rows = await tx.fetch(OF_EVENT, organization_id, event_id, None if status is None else status.value, after, limit)
    return [_ticket(row) for row in rows]


async def seats_beside(
    tx: Transaction, organization_id: UUID, event_id: UUID, ordinals: Sequence[int]
) -> dict[int, CompanionFact]:
    rows = await tx.fetch(BESIDE, organization_id, event_id, list(ordinals))
    return {row["ordinal"]: CompanionFact(row["sold"], row["user_id"], row["checkout_id"]) for row in rows}


async def reissue_ticket(tx: Transaction, organization_id: UUID, ticket_id: UUID) -> int | None:
    """The code's new version; None: the ticket is void, or there is none. The caller shares the event."""
    version: int | None = await tx.fetchval(REISSUE, organization_id, ticket_id)
    return version
