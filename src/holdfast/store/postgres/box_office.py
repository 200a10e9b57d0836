"""Direct sales over the counter: the checkout that is completed as it is made, its payment, the places."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from holdfast.accounts.principal import Call
from holdfast.store.postgres.database import Transaction

INSERT_CHECKOUT = """
INSERT INTO checkouts (organization_id, id, event_id, user_id, status, source, actor, expires_at, currency, payment_id,
  created_at, ended_at)
VALUES ($1, $2, $3, $4, 'completed', 'box_office', $5, $6, $7, $8, $6, $6)
"""
# Waits for whoever is stating the same reference at this moment.
INSERT_PAYMENT = """
INSERT INTO payments (organization_id, id, checkout_id, event_id, provider, reference, amount_minor, currency, status, actor,
  user_id, created_at, received_at, settled_at)
VALUES ($1, $2, $3, $4, 'manual', $5, $6, $7, 'applied', $8, $9, $10, $10, $10)
ON CONFLICT (organization_id, provider, reference) DO NOTHING RETURNING true
"""
SELL_SEATS = """
SELECT sell_seats_directly($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::text::integer[], NULL, $12)
"""
SELL_PLACES = "SELECT move_session_places($1, $2, $3, $4, 'direct_sale', $5, $6, $7, $8, $9, $10, $11)"


async def insert_checkout(
    tx: Transaction,
    call: Call,
    checkout_id: UUID,
    event_id: UUID,
    user_id: UUID | None,
    at: datetime,
    currency: str | None,
    payment_id: UUID | None,
) -> None:
    actor = call.principal.actor.value
    await tx.execute(
        INSERT_CHECKOUT, call.organization_id, checkout_id, event_id, user_id, actor, at, currency, payment_id
    )


async def insert_payment(
    tx: Transaction,
    call: Call,
    payment_id: UUID,
    checkout_id: UUID,
    event_id: UUID,
    reference: str,
    amount_minor: int | None,
    currency: str | None,
    at: datetime,
) -> bool:
    """False: the reference was stated before."""
    who = call.principal
    done = await tx.fetchval(
        INSERT_PAYMENT,
        call.organization_id,
        payment_id,
        checkout_id,
        event_id,
        reference,
        amount_minor,
        currency,
        who.actor.value,
        who.user_id,
        at,
    )
    return bool(done)


async def sell_seats(
    tx: Transaction,
    call: Call,
    event_id: UUID,
    ordinals: Sequence[int],
    hold_type: str,
    checkout_id: UUID,
    owner_id: UUID | None,
    companions: str | None,
) -> bool:
    """All of them; false: not all were to be had, and the caller rolls back. The caller shares the event."""
    who = call.principal
    sold: int = await tx.fetchval(
        SELL_SEATS,
        call.organization_id,
        event_id,
        list(ordinals),
        hold_type,
        str(checkout_id),
        who.actor.value,
        who.user_id,
        call.ip,
        call.user_agent,
        call.request_id,
        companions,
        owner_id,
    )
    return sold == len(ordinals)


async def sell_places(
    tx: Transaction, call: Call, event_id: UUID, zone_no: int, quantity: int, hold_type: str, checkout_id: UUID
) -> bool:
    who = call.principal
    sold: bool = await tx.fetchval(
        SELL_PLACES,
        call.organization_id,
        event_id,
        zone_no,
        quantity,
        str(checkout_id),
        hold_type,
        who.actor.value,
        who.user_id,
        call.ip,
        call.user_agent,
        call.request_id,
    )
    return sold
