"""Checkouts: their rows and lines."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from holdfast.accounts.principal import Call
from holdfast.checkout.checkout import Checkout, CheckoutStatus, Line, PricedHold
from holdfast.holds.lifecycle import Actor, HoldStatus
from holdfast.store.postgres.database import Row, Transaction
from holdfast.store.postgres.holds import HOLD_COLUMNS

_COLUMNS = """c.id, c.event_id, c.user_id, c.session_id, c.status::text AS status, c.source, c.actor, c.expires_at,
  c.heartbeat_s, c.last_heartbeat_at, c.currency, c.payment_id, c.created_at, c.ended_at, holdfast_now() AS now"""
FIND = f"SELECT {_COLUMNS} FROM checkouts c WHERE c.organization_id = $1 AND c.id = $2"
LOCK = f"SELECT {_COLUMNS} FROM lock_checkout($1, $2) c WHERE c.organization_id = $1"
_SEEN_AS = """CASE WHEN c.status IN ('open', 'paying') AND c.expires_at <= holdfast_now() THEN 'expired'
  ELSE c.status::text END"""
"""One that is over is expired, swept or not."""
LIST_OWN = f"""
SELECT {_COLUMNS} FROM checkouts c
WHERE c.organization_id = $1 AND c.user_id = $2 AND ($3::uuid IS NULL OR c.id < $3) ORDER BY c.id DESC LIMIT $4
"""
LIST_OF_EVENT = f"""
SELECT {_COLUMNS} FROM checkouts c
WHERE c.organization_id = $1 AND c.event_id = $2 AND ($3::text IS NULL OR {_SEEN_AS} = $3)
  AND ($4::boolean IS NULL OR $4 = EXISTS (
    SELECT FROM refunds r WHERE r.organization_id = $1 AND r.checkout_id = c.id AND r.status = 'due'))
  AND ($5::uuid IS NULL OR c.id < $5)
ORDER BY c.id DESC LIMIT $6
"""
# The newest in which the owner has something alive: what a second click on the same button means.
OPEN_WITH = """
SELECT c.id FROM checkouts c
WHERE c.organization_id = $1 AND c.event_id = $2 AND c.user_id = $3 AND c.status = 'open' AND c.expires_at > holdfast_now()
  AND EXISTS (SELECT FROM holds h WHERE h.organization_id = $1 AND h.checkout_id = c.id AND h.status = 'active'
    AND (h.held_until IS NULL OR h.held_until > holdfast_now()))
ORDER BY c.id DESC LIMIT 1
"""
FREE_HOLDS = f"""
SELECT {HOLD_COLUMNS} FROM holds h
WHERE h.organization_id = $1 AND h.event_id = $2 AND h.user_id = $3 AND h.status = 'active' AND h.checkout_id IS NULL
  AND (h.held_until IS NULL OR h.held_until > holdfast_now())
ORDER BY h.id
"""
OPEN = "SELECT open_checkout($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
ADD = "SELECT add_to_checkout($1, $2, $3, $4, $5, $6, $7)"
BEAT = "SELECT beat_checkout($1, $2, $3)"
CANCEL = "SELECT cancel_checkouts($1, $2, $3, $4, $5, $6, $7, $8, $9)"
DETACH = "SELECT detach_holds($1, $2, $3)"
DETACH_OF_EVENT = """
SELECT detach_holds($1, $2, ARRAY(
  SELECT h.id FROM holds h
  WHERE h.organization_id = $1 AND h.event_id = $2 AND h.status = 'active' AND h.checkout_id IS NOT NULL))
"""
RELEASE = "SELECT hold_id FROM release_holds($1, $2, $3, $4, NULL, $5, $6, $7, $8)"
DROP = """
UPDATE checkout_lines l SET dropped_at = holdfast_now()
WHERE l.organization_id = $1 AND l.checkout_id = $2 AND l.hold_id = $3 AND l.dropped_at IS NULL
"""
ALIVE_IN = """
SELECT h.id, h.event_id, h.ordinal, h.hold_type, h.held_until, h.user_id FROM holds h
WHERE h.organization_id = $1 AND h.checkout_id = ANY ($2::uuid[]) AND h.status = 'active'
  AND (h.held_until IS NULL OR h.held_until > holdfast_now())
ORDER BY h.id
"""
TICKETS = """
SELECT t.checkout_id, t.id FROM tickets t
WHERE t.organization_id = $1 AND t.checkout_id = ANY ($2::uuid[]) ORDER BY t.id
"""
REFUNDS_DUE = """
SELECT DISTINCT r.checkout_id FROM refunds r
WHERE r.organization_id = $1 AND r.checkout_id = ANY ($2::uuid[]) AND r.status = 'due'
"""
DUE = """
SELECT DISTINCT d.organization_id FROM (
  SELECT c.organization_id FROM checkouts c
  WHERE c.status IN ('open', 'paying') AND c.expires_at <= holdfast_now() ORDER BY c.expires_at LIMIT 10000) d
"""
NEXT_DUE = """
SELECT extract(epoch FROM min(c.expires_at) - holdfast_now())::float8 FROM checkouts c
WHERE c.status IN ('open', 'paying')
"""
EXPIRE_DUE = "SELECT checkout_id, event_id FROM expire_due_checkouts($1, $2)"
LINES = """
SELECT l.checkout_id, l.hold_id, l.quantity, l.price_minor, l.payment_required, l.dropped_at, h.zone_no, h.ordinal,
  h.hold_type, h.held_until, h.user_id, h.attendee_user_id, h.attendee_name, h.associated_membership_id,
  CASE WHEN h.status = 'active' AND h.held_until <= holdfast_now() THEN 'expired' ELSE h.status::text END AS status,
  coalesce(h.layout_version, e.layout_version) AS layout_version
FROM checkout_lines l
JOIN holds h ON h.organization_id = $1 AND h.id = l.hold_id
JOIN events e ON e.organization_id = $1 AND e.id = h.event_id
WHERE l.organization_id = $1 AND l.checkout_id = ANY ($2::uuid[]) ORDER BY h.ordinal NULLS LAST, h.zone_no, l.hold_id
"""


def _checkout(row: Row) -> Checkout:
    fields: dict[str, Any] = dict(row)
    return Checkout(**{**fields, "status": CheckoutStatus(row["status"])})


def _line(row: Row) -> Line:
    fields: dict[str, Any] = dict(row)
    del fields["checkout_id"]
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
    return [_line(row) for row in await tx.fetch(LINES, organization_id, [checkout_id])]


async def lines_of(
    tx: Transaction, organization_id: UUID, checkout_ids: Sequence[UUID]
) -> Mapping[UUID, Sequence[Line]]:
    """The same for several at once."""
    found: dict[UUID, list[Line]] = {checkout_id: [] for checkout_id in checkout_ids}
    for row in await tx.fetch(LINES, organization_id, list(checkout_ids)):
        found[row["checkout_id"]].append(_line(row))
    return found


async def tickets_of(
    tx: Transaction, organization_id: UUID, checkout_ids: Sequence[UUID]
) -> Mapping[UUID, Sequence[UUID]]:
    """All that were ever issued for them."""
    found: dict[UUID, list[UUID]] = {checkout_id: [] for checkout_id in checkout_ids}
    for row in await tx.fetch(TICKETS, organization_id, list(checkout_ids)):
        found[row["checkout_id"]].append(row["id"])
    return found


async def refunds_due_of(tx: Transaction, organization_id: UUID, checkout_ids: Sequence[UUID]) -> set[UUID]:
    rows = await tx.fetch(REFUNDS_DUE, organization_id, list(checkout_ids))
    return {row["checkout_id"] for row in rows}


async def list_own_checkouts(
    tx: Transaction, organization_id: UUID, user_id: UUID, before: UUID | None, limit: int
) -> list[Checkout]:
    """Newest first."""
    return [_checkout(row) for row in await tx.fetch(LIST_OWN, organization_id, user_id, before, limit)]


async def list_event_checkouts(
    tx: Transaction,
    organization_id: UUID,
    event_id: UUID,
    *,
    status: str | None,
    refund_due: bool | None,
    before: UUID | None,
    limit: int,
) -> list[Checkout]:
    rows = await tx.fetch(LIST_OF_EVENT, organization_id, event_id, status, refund_due, before, limit)
    return [_checkout(row) for row in rows]


async def open_checkout_with_holds(
    tx: Transaction, organization_id: UUID, event_id: UUID, user_id: UUID
) -> UUID | None:
    found: UUID | None = await tx.fetchval(OPEN_WITH, organization_id, event_id, user_id)
    return found


async def free_holds(tx: Transaction, organization_id: UUID, event_id: UUID, user_id: UUID) -> list[Row]:
    """The user's live holds in the event that are in no checkout."""
    return await tx.fetch(FREE_HOLDS, organization_id, event_id, user_id)


async def open_checkout(
    tx: Transaction,
    call: Call,
    event_id: UUID,
    checkout_id: UUID,
    *,
    user_id: UUID | None,
    session_id: str | None,
    source: str,
    life_s: int,
    heartbeat_s: int | None,
    currency: str | None,
    holds: Sequence[PricedHold],
) -> bool:
    """False: something of it cannot be had any more, and the caller rolls back. The caller shares the event."""
    done: bool = await tx.fetchval(
        OPEN,
        call.organization_id,
        event_id,
        checkout_id,
        user_id,
        session_id,
        source,
        call.principal.actor.value,
        life_s,
        heartbeat_s,
        currency,
        *_columns(holds),
    )
    return done


async def add_to_checkout(
    tx: Transaction, call: Call, checkout_id: UUID, holds: Sequence[PricedHold], currency: str | None
) -> bool:
    """The same, for one that the caller has locked."""
    done: bool = await tx.fetchval(
        ADD, call.organization_id, checkout_id, call.principal.actor.value, *_columns(holds), currency
    )
    return done


def _columns(holds: Sequence[PricedHold]) -> tuple[list[UUID], list[int | None], list[bool]]:
    return [h.hold_id for h in holds], [h.price_minor for h in holds], [h.payment_required for h in holds]


async def beat_checkout(tx: Transaction, call: Call, checkout_id: UUID) -> list[UUID] | None:
    """The holds that live on; none where the session is over, or its holds need no heartbeat. The caller has locked it."""
    beaten: list[UUID] | None = await tx.fetchval(BEAT, call.organization_id, checkout_id, call.principal.actor.value)
    return beaten


async def cancel_checkout(tx: Transaction, call: Call, event_id: UUID, checkout_id: UUID | None, reason: str) -> int:
    """One that the caller has locked; or (None) every live one of an event that the caller owns. How many that were."""
    who = call.principal
    ended = await tx.fetchval(
        CANCEL,
        call.organization_id,
        event_id,
        checkout_id,
        who.actor.value,
        who.user_id,
        call.ip,
        call.user_agent,
        call.request_id,
        reason,
    )
    return len(ended)


async def drop_line(tx: Transaction, organization_id: UUID, checkout_id: UUID, hold_id: UUID) -> None:
    """It stays for disputes and counts no more. The caller has locked the checkout."""
    await tx.execute(DROP, organization_id, checkout_id, hold_id)


async def live_holds(tx: Transaction, organization_id: UUID, checkout_ids: Sequence[UUID]) -> list[Row]:
    """What is alive in these checkouts: id, event_id, ordinal, hold_type, held_until, user_id."""
    return await tx.fetch(ALIVE_IN, organization_id, list(checkout_ids))


async def release_as(
    tx: Transaction,
    organization_id: UUID,
    actor: Actor,
    hold_ids: Sequence[UUID],
    reason: str,
    call: Call | None = None,
) -> None:
    """In the name of whoever may release them; without a call the engine acts by itself."""
    asker = (None,) * 4 if call is None else (call.principal.user_id, call.ip, call.user_agent, call.request_id)
    await tx.execute(RELEASE, organization_id, list(hold_ids), actor.value, *asker, reason)


async def detach_holds(tx: Transaction, organization_id: UUID, event_id: UUID, hold_ids: Sequence[UUID]) -> None:
    await tx.execute(DETACH, organization_id, event_id, list(hold_ids))


async def detach_event_holds(tx: Transaction, organization_id: UUID, event_id: UUID) -> None:
    """Whatever is still alive in a checkout of an event whose checkouts were cancelled."""
    await tx.execute(DETACH_OF_EVENT, organization_id, event_id)


# Sweeping ---------------------------------------------------------------------------------------------------------
async def organizations_with_due_checkouts(tx: Transaction) -> list[UUID]:
    """Across organizations, as the engine's role: whose sessions are over."""
    return [row["organization_id"] for row in await tx.fetch(DUE)]


async def seconds_to_next_due(tx: Transaction) -> float | None:
    seconds: float | None = await tx.fetchval(NEXT_DUE)
    return seconds


async def expire_due_checkouts(tx: Transaction, organization_id: UUID, limit: int) -> list[UUID]:
    """One bounded step: the sessions it ended, with audit and message. Shares their events."""
    rows = await tx.fetch(EXPIRE_DUE, organization_id, limit)
    return [row["checkout_id"] for row in rows]
