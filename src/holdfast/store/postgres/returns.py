"""Taking sales back and moving tickets, as calls of the SQL functions that alone move seats (`functions/34_returns.sql`)."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from holdfast.accounts.principal import Call
from holdfast.store.postgres.database import Row, Transaction

FIND_EVENT = "SELECT event_id FROM tickets WHERE organization_id = $1 AND id = $2"
LOCK_TICKETS = """
SELECT t.id, t.event_id, t.ordinal, t.zone_no, t.status, t.code_version, t.hold_type, t.price_minor, t.currency, t.user_id,
  t.void_reason
FROM lock_tickets($1, $2, $3) t WHERE t.organization_id = $1
"""
LOCK_SEATS = "SELECT ordinal, state, held_until, sold, now FROM lock_seats($1, $2, $3)"
REVERT = "SELECT revert_tickets($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
EXCHANGE = """
SELECT exchange_ticket($1, $2, $3, $4, $5, $6, $7, $8, $9::text::integer[], $10, $11, $12, $13, $14, $15, $16)
"""
RETURNED = """
SELECT t.id, t.event_id, t.ordinal, t.zone_no, coalesce(t.layout_version, e.layout_version) AS layout_version, t.status,
  t.voided_at, t.void_reason, r.id AS refund_id, r.amount_minor, r.currency, r.status AS refund_status,
  EXISTS (SELECT FROM ticket_days d WHERE d.organization_id = $1 AND d.ticket_id = t.id AND d.inside) AS inside
FROM tickets t
JOIN events e ON e.organization_id = $1 AND e.id = t.event_id
LEFT JOIN refunds r ON r.organization_id = $1 AND r.ticket_id = t.id
WHERE t.organization_id = $1 AND t.event_id = $2 AND t.id = ANY ($3::uuid[])
"""


class SeatStanding(msgspec.Struct, frozen=True):
    """A seat that this transaction has locked."""

    ordinal: int
    state: str
    """Free also where its hold is over."""
    held_until: datetime | None
    sold: bool
    """Also where it was blocked afterwards."""
    now: datetime


async def event_of(tx: Transaction, organization_id: UUID, ticket_id: UUID) -> UUID | None:
    found: UUID | None = await tx.fetchval(FIND_EVENT, organization_id, ticket_id)
    return found


async def lock_ticket(tx: Transaction, organization_id: UUID, event_id: UUID, ticket_id: UUID) -> Row | None:
    """Nobody else moves or voids it until this transaction ends. Shares the event."""
    return await tx.fetchrow(LOCK_TICKETS, organization_id, event_id, [ticket_id])


async def lock_seats(
    tx: Transaction, organization_id: UUID, event_id: UUID, ordinals: Sequence[int]
) -> dict[int, SeatStanding]:
    """By ordinal. The caller shares the event."""
    rows = await tx.fetch(LOCK_SEATS, organization_id, event_id, list(ordinals)) if ordinals else []
    return {row["ordinal"]: SeatStanding(*row) for row in rows}


async def revert_tickets(
    tx: Transaction, call: Call, event_id: UUID, ticket_ids: Sequence[UUID], reason: str, *, refund: bool
) -> list[UUID]:
    """Answers those that were valid until now."""
    voided: list[UUID] = await tx.fetchval(
        REVERT, call.organization_id, event_id, list(ticket_ids), refund, *_asker(call), reason
    )
    return voided


async def returned_tickets(
    tx: Transaction, organization_id: UUID, event_id: UUID, ticket_ids: Sequence[UUID]
) -> dict[UUID, Row]:
    rows = await tx.fetch(RETURNED, organization_id, event_id, list(ticket_ids))
    return {row["id"]: row for row in rows}


async def exchange_ticket(
    tx: Transaction,
    call: Call,
    ticket: Row,
    to_ordinal: int | None,
    to_zone: int,
    hold_type: str | None,
    companions: str | None,
    reason: str,
) -> bool:
    """The caller has locked the ticket and both seats. False: the new place is not to be had; the caller rolls back."""
    done: bool = await tx.fetchval(
        EXCHANGE,
        call.organization_id,
        ticket["event_id"],
        ticket["id"],
        ticket["ordinal"],
        ticket["zone_no"],
        to_ordinal,
        to_zone,
        hold_type,
        companions,
        ticket["user_id"],
        *_asker(call),
        reason,
    )
    return done


def _asker(call: Call) -> tuple[Any, ...]:
    who = call.principal
    return who.actor.value, who.user_id, call.ip, call.user_agent, call.request_id
