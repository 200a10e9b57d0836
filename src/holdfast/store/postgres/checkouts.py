"""Checkouts: their rows and lines."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from holdfast.checkout.checkout import Checkout, CheckoutStatus, Line
from holdfast.holds.lifecycle import HoldStatus
from holdfast.store.postgres.database import Row, Transaction

_COLUMNS = """c.id, c.event_id, c.user_id, c.session_id, c.status::text AS status, c.source, c.actor, c.expires_at,
  c.heartbeat_s, c.last_heartbeat_at, c.currency, c.payment_id, c.created_at, c.ended_at, holdfast_now() AS now"""
FIND = f"SELECT {_COLUMNS} FROM checkouts c WHERE c.organization_id = $1 AND c.id = $2"
LOCK = f"SELECT {_COLUMNS} FROM lock_checkout($1, $2) c WHERE c.organization_id = $1"
LINES = """
SELECT l.hold_id, l.quantity, l.price_minor, l.payment_required, l.dropped_at, h.zone_no, h.ordinal, h.hold_type,
  h.held_until, h.user_id, h.attendee_user_id, h.attendee_name, h.associated_membership_id,
  CASE WHEN h.status = 'active' AND h.held_until <= holdfast_now() THEN 'expired' ELSE h.status::text END AS status,
  coalesce(h.layout_version, e.layout_version) AS layout_version
FROM checkout_lines l
JOIN holds h ON h.organization_id = $1 AND h.id = l.hold_id
JOIN events e ON e.organization_id = $1 AND e.id = h.event_id
WHERE l.organization_id = $1 AND l.checkout_id = $2 ORDER BY h.ordinal NULLS LAST, h.zone_no, l.hold_id
"""


def _checkout(row: Row) -> Checkout:
    fields: dict[str, Any] = dict(row)
    return Checkout(**{**fields, "status": CheckoutStatus(row["status"])})


def _line(row: Row) -> Line:
    fields: dict[str, Any] = dict(row)
    return Line(**{**fields, "status": HoldStatus(row["status"])})


async def find_checkout(tx: Transaction, organization_id: UUID, checkout_id: UUID) -> Checkout | None:
    row = await tx.fetchrow(FIND, organization_id, checkout_id)
    return None if row is None else _checkout(row)


async def lock_checkout(tx: Transaction, organization_id: UUID, checkout_id: UUID) -> Checkout | None:
    """The same, and nobody else decides about it until this transaction ends. Shares the event."""
    row = await tx.fetchrow(LOCK, organization_id, checkout_id)
    return None if row is None else _checkout(row)


async def find_lines(tx: Transaction, organization_id: UUID, checkout_id: UUID) -> Sequence[Line]:
    """All that ever were in it, seats first."""
    return [_line(row) for row in await tx.fetch(LINES, organization_id, checkout_id)]
