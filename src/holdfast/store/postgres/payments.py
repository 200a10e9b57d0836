"""Payments, providers' messages and refunds: their rows. Whoever changes a payment has locked its checkout."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from holdfast.payments.payment import Payment, PaymentStatus, Refund, RefundReason, RefundStatus
from holdfast.store.postgres.database import Row, Transaction

_COLUMNS = """p.id, p.checkout_id, p.event_id, p.provider, p.reference, p.amount_minor, p.currency, p.status, p.created_at,
  p.received_at, p.settled_at"""
FIND = f"SELECT {_COLUMNS} FROM payments p WHERE p.organization_id = $1 AND p.id = $2"
FIND_BY_REFERENCE = f"""
SELECT {_COLUMNS} FROM payments p WHERE p.organization_id = $1 AND p.provider = $2 AND p.reference = $3
"""
OF_CHECKOUT = f"""
SELECT {_COLUMNS} FROM payments p
WHERE p.organization_id = $1 AND p.checkout_id = $2 AND p.status = ANY ($3::text[]) ORDER BY p.id
"""
INSERT = """
INSERT INTO payments (organization_id, id, checkout_id, event_id, provider, reference, amount_minor, currency, status, actor,
  user_id, created_at, received_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, holdfast_now(), CASE WHEN $9 = 'received' THEN holdfast_now() END)
ON CONFLICT (organization_id, provider, reference) DO NOTHING
"""
# What arrived is what would have to be paid back, so it counts, and what was asked for is kept beside it.
RECEIVE = """
UPDATE payments SET status = 'received', received_at = holdfast_now(), reference = $3, amount_minor = $4, currency = $5,
  detail = detail || jsonb_build_object('asked_minor', amount_minor, 'asked_currency', currency, 'begun_as', reference)
WHERE organization_id = $1 AND id = $2 AND status IN ('pending', 'failed')
"""
FAIL = """
UPDATE payments SET status = 'failed', reference = coalesce($3, reference)
WHERE organization_id = $1 AND id = $2 AND status = 'pending'
"""
SETTLE = """
UPDATE payments SET status = $3, settled_at = holdfast_now()
WHERE organization_id = $1 AND id = $2 AND status = 'received' RETURNING id
"""
NOTE_MESSAGE = """
INSERT INTO payment_messages (organization_id, provider, signature, message_id, payment_id, at)
VALUES ($1, $2, $3, $4, $5, holdfast_now()) ON CONFLICT (organization_id, provider, signature) DO NOTHING
RETURNING message_id
"""
FORGET_MESSAGES = """
DELETE FROM payment_messages WHERE organization_id = $1 AND at < holdfast_now() - make_interval(days => $2)
"""
# Across organizations, as the engine's role.
UNSETTLED = """
SELECT p.organization_id, p.id FROM payments p
WHERE p.status = 'received' AND p.received_at <= holdfast_now() - make_interval(secs => $1) ORDER BY p.received_at LIMIT $2
"""
OWNER_OF_CHECKOUT = "SELECT c.organization_id FROM checkouts c WHERE c.id = $1 LIMIT 1"

# What is sold --------------------------------------------------------------------------------------------------------
LOCK_SEATS = (
    "SELECT lock_companions($1, $2::text::integer[], array_fill($3::uuid, ARRAY[cardinality($4::integer[])]), $4)"
)
LOCK_ZONES = """
SELECT FROM event_zones z WHERE z.organization_id = $1 AND z.event_id = $2 AND z.zone_no = ANY ($3::smallint[])
ORDER BY z.zone_no FOR UPDATE
"""
CONVERT = "SELECT convert_holds($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
SELL = "SELECT sell_seats_directly($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::text::integer[], $12)"
SELL_PLACES = "SELECT move_session_places($1, $2, $3, $4, 'direct_sale', $5, $6, $7, $8, $9, $10, $11, $12)"
HOLD_ACTORS = "SELECT h.id, h.actor FROM holds h WHERE h.organization_id = $1 AND h.id = ANY ($2::uuid[])"
EVENT_STANDING = (
    "SELECT e.status::text AS status, e.layout_version FROM events e WHERE e.organization_id = $1 AND e.id = $2"
)

# The checkout --------------------------------------------------------------------------------------------------------
BEGIN_PAYING = """
UPDATE checkouts SET status = 'paying'
WHERE organization_id = $1 AND id = $2 AND status = 'open' AND expires_at > holdfast_now()
"""
# Only where no other payment is under way. One that is over is left to the sweeper.
OPEN_AGAIN = """
UPDATE checkouts c SET status = 'open'
WHERE c.organization_id = $1 AND c.id = $2 AND c.status = 'paying' AND NOT EXISTS (
  SELECT FROM payments p WHERE p.organization_id = $1 AND p.checkout_id = $2 AND p.status IN ('pending', 'received'))
"""
COMPLETE = """
UPDATE checkouts SET status = 'completed', payment_id = $3, ended_at = holdfast_now()
WHERE organization_id = $1 AND id = $2 AND status IN ('open', 'paying', 'expired') RETURNING id
"""

# Refunds -------------------------------------------------------------------------------------------------------------
_REFUND = """r.id, r.payment_id, r.checkout_id, r.event_id, r.ticket_id, p.provider, p.reference AS payment_reference,
  r.amount_minor, r.currency, r.reason, r.status, r.created_at, r.done_at, r.done_by, r.reference"""
INSERT_REFUND = """
INSERT INTO refunds (organization_id, id, payment_id, checkout_id, event_id, amount_minor, currency, reason, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, holdfast_now())
"""
FIND_REFUND = f"""
SELECT {_REFUND} FROM refunds r LEFT JOIN payments p ON p.organization_id = $1 AND p.id = r.payment_id
WHERE r.organization_id = $1 AND r.id = $2
"""
REFUND_REASON = """
SELECT r.reason FROM refunds r WHERE r.organization_id = $1 AND r.payment_id = $2 AND r.ticket_id IS NULL
"""
LIST_REFUNDS = f"""
SELECT {_REFUND} FROM refunds r LEFT JOIN payments p ON p.organization_id = $1 AND p.id = r.payment_id
WHERE r.organization_id = $1 AND ($2::text IS NULL OR r.status = $2) AND ($3::uuid IS NULL OR r.event_id = $3)
  AND ($4::uuid IS NULL OR r.id > $4)
ORDER BY r.id LIMIT $5
"""
REFUND_DONE = """
UPDATE refunds SET status = 'done', done_at = holdfast_now(), done_by = $3, reference = $4
WHERE organization_id = $1 AND id = $2 AND status = 'due' RETURNING id
"""


def _payment(row: Row) -> Payment:
    fields: dict[str, Any] = dict(row)
    return Payment(**{**fields, "status": PaymentStatus(row["status"])})


def _refund(row: Row) -> Refund:
    fields: dict[str, Any] = dict(row)
    return Refund(**{**fields, "status": RefundStatus(row["status"])})


async def find_payment(tx: Transaction, organization_id: UUID, payment_id: UUID) -> Payment | None:
    row = await tx.fetchrow(FIND, organization_id, payment_id)
    return None if row is None else _payment(row)


async def find_payment_by_reference(
    tx: Transaction, organization_id: UUID, provider: str, reference: str
) -> Payment | None:
    row = await tx.fetchrow(FIND_BY_REFERENCE, organization_id, provider, reference)
    return None if row is None else _payment(row)


async def payments_of_checkout(
    tx: Transaction, organization_id: UUID, checkout_id: UUID, *statuses: PaymentStatus
) -> list[Payment]:
    """Oldest first."""
    rows = await tx.fetch(OF_CHECKOUT, organization_id, checkout_id, [status.value for status in statuses])
    return [_payment(row) for row in rows]


async def insert_payment(tx: Transaction, organization_id: UUID, payment: "NewPayment", status: PaymentStatus) -> bool:
    """False: the provider's reference is known already."""
    done = await tx.execute(
        INSERT,
        organization_id,
        payment.id,
        payment.checkout_id,
        payment.event_id,
        payment.provider,
        payment.reference,
        payment.amount_minor,
        payment.currency,
        status.value,
        payment.actor,
        payment.user_id,
    )
    return done == "INSERT 0 1"


class NewPayment(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    checkout_id: UUID
    event_id: UUID
    provider: str
    reference: str
    amount_minor: int | None
    currency: str | None
    actor: str
    user_id: UUID | None


async def receive_payment(
    tx: Transaction,
    organization_id: UUID,
    payment_id: UUID,
    reference: str,
    amount_minor: int | None,
    currency: str | None,
) -> None:
    await tx.execute(RECEIVE, organization_id, payment_id, reference, amount_minor, currency)


async def fail_payment(tx: Transaction, organization_id: UUID, payment_id: UUID, reference: str | None = None) -> None:
    await tx.execute(FAIL, organization_id, payment_id, reference)


async def settle_payment(tx: Transaction, organization_id: UUID, payment_id: UUID, status: PaymentStatus) -> None:
    done = await tx.fetchval(SETTLE, organization_id, payment_id, status.value)
    assert done is not None, "the caller has seen it received, under the checkout's lock"


async def note_message(
    tx: Transaction, organization_id: UUID, provider: str, digest: bytes, message_id: str, payment_id: UUID | None
) -> bool:
    """False: these very bytes were here before."""
    noted = await tx.fetchval(NOTE_MESSAGE, organization_id, provider, digest, message_id, payment_id)
    return noted is not None


async def forget_old_messages(tx: Transaction, organization_id: UUID, days: int) -> None:
    await tx.execute(FORGET_MESSAGES, organization_id, days)


async def unsettled_payments(engine_tx: Transaction, older_than_s: float, limit: int) -> list[tuple[UUID, UUID]]:
    """Organization and payment. Looks across organizations: in an engine's transaction."""
    return [(row["organization_id"], row["id"]) for row in await engine_tx.fetch(UNSETTLED, older_than_s, limit)]


async def organization_of_checkout(engine_tx: Transaction, checkout_id: UUID) -> UUID | None:
    """Looks across organizations: in an engine's transaction."""
    found: UUID | None = await engine_tx.fetchval(OWNER_OF_CHECKOUT, checkout_id)
    return found


# What is sold --------------------------------------------------------------------------------------------------------
class Seller(msgspec.Struct, frozen=True, kw_only=True):
    """Who sells, as the log and the audit keep it."""

    organization_id: UUID
    event_id: UUID
    session_id: str | None
    actor: str
    user_id: UUID | None
    ip: str | None
    user_agent: str | None
    request_id: str | None

    def trace(self, user_id: UUID | None) -> tuple[str, UUID | None, str | None, str | None, str | None]:
        return self.actor, user_id, self.ip, self.user_agent, self.request_id


async def lock_places(
    tx: Transaction,
    organization_id: UUID,
    event_id: UUID,
    ordinals: Sequence[int],
    companions: str | None,
    zones: Sequence[int],
) -> None:
    """In the order in which everybody locks: seats, with the wheelchair seats that companions' seats depend on; then the
    zones of counted places. Several statements follow that would each lock some of them."""
    if ordinals:
        await tx.execute(LOCK_SEATS, organization_id, companions, event_id, list(ordinals))
    if zones:
        await tx.execute(LOCK_ZONES, organization_id, event_id, list(zones))


async def convert_holds(
    tx: Transaction, seller: Seller, checkout_id: UUID, hold_ids: Sequence[UUID], types_when_sold: Sequence[str]
) -> set[UUID]:
    """Those that lived and are sold now."""
    done: list[UUID] = await tx.fetchval(
        CONVERT,
        seller.organization_id,
        seller.event_id,
        checkout_id,
        list(hold_ids),
        list(types_when_sold),
        seller.session_id,
        *seller.trace(seller.user_id),
    )
    return set(done)


async def sell_free_seats(
    tx: Transaction,
    seller: Seller,
    owner_id: UUID | None,
    ordinals: Sequence[int],
    hold_type: str | None,
    companions: str | None,
    reason: str,
) -> bool:
    """All of them, to their owner. False: not all were free; the caller rolls back."""
    sold = await tx.fetchval(
        SELL,
        seller.organization_id,
        seller.event_id,
        list(ordinals),
        hold_type,
        seller.session_id,
        *seller.trace(owner_id),
        companions,
        reason,
    )
    return bool(sold == len(ordinals))


async def sell_free_places(
    tx: Transaction,
    seller: Seller,
    owner_id: UUID | None,
    zone_no: int,
    quantity: int,
    hold_type: str | None,
    reason: str,
) -> bool:
    sold = await tx.fetchval(
        SELL_PLACES,
        seller.organization_id,
        seller.event_id,
        zone_no,
        quantity,
        seller.session_id,
        hold_type,
        *seller.trace(owner_id),
        reason,
    )
    return bool(sold)


async def hold_actors(tx: Transaction, organization_id: UUID, hold_ids: Sequence[UUID]) -> dict[UUID, str]:
    """Who placed each."""
    rows = await tx.fetch(HOLD_ACTORS, organization_id, list(hold_ids))
    return {row["id"]: row["actor"] for row in rows}


async def event_standing(tx: Transaction, organization_id: UUID, event_id: UUID) -> tuple[str, int | None]:
    """Status and layout version. The caller shares the event: both stay until it commits."""
    row = await tx.fetchrow(EVENT_STANDING, organization_id, event_id)
    assert row is not None, "a checkout's event is never deleted"
    return row["status"], row["layout_version"]


# The checkout --------------------------------------------------------------------------------------------------------
async def begin_paying(tx: Transaction, organization_id: UUID, checkout_id: UUID) -> bool:
    """False: it is over by now."""
    return await tx.execute(BEGIN_PAYING, organization_id, checkout_id) == "UPDATE 1"


async def open_again(tx: Transaction, organization_id: UUID, checkout_id: UUID) -> None:
    await tx.execute(OPEN_AGAIN, organization_id, checkout_id)


async def complete_checkout(tx: Transaction, organization_id: UUID, checkout_id: UUID, payment_id: UUID | None) -> None:
    done = await tx.fetchval(COMPLETE, organization_id, checkout_id, payment_id)
    assert done is not None, "the caller has seen that it can be completed, under its lock"


# Refunds -------------------------------------------------------------------------------------------------------------
async def insert_refund(
    tx: Transaction, organization_id: UUID, refund_id: UUID, payment: Payment, reason: RefundReason
) -> None:
    await tx.execute(
        INSERT_REFUND,
        organization_id,
        refund_id,
        payment.id,
        payment.checkout_id,
        payment.event_id,
        payment.amount_minor,
        payment.currency,
        reason.value,
    )


async def find_refund(tx: Transaction, organization_id: UUID, refund_id: UUID) -> Refund | None:
    row = await tx.fetchrow(FIND_REFUND, organization_id, refund_id)
    return None if row is None else _refund(row)


async def refund_reason(tx: Transaction, organization_id: UUID, payment_id: UUID) -> str | None:
    found: str | None = await tx.fetchval(REFUND_REASON, organization_id, payment_id)
    return found


async def list_refunds(
    tx: Transaction,
    organization_id: UUID,
    status: RefundStatus | None,
    event_id: UUID | None,
    after: UUID | None,
    limit: int,
) -> list[Refund]:
    """Oldest first: who has waited longest is paid back first."""
    wanted = None if status is None else status.value
    rows = await tx.fetch(LIST_REFUNDS, organization_id, wanted, event_id, after, limit)
    return [_refund(row) for row in rows]


async def mark_refund_done(
    tx: Transaction, organization_id: UUID, refund_id: UUID, user_id: UUID | None, reference: str
) -> bool:
    """False: it is done already, or there is none."""
    return await tx.fetchval(REFUND_DONE, organization_id, refund_id, user_id, reference) is not None
