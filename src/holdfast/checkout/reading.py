"""Checkouts as they are shown, read in the transaction of whoever shows them."""

from uuid import UUID

from holdfast.checkout.answers import CheckoutView
from holdfast.store.catalogue import Catalogue
from holdfast.store.postgres.checkouts import find_checkout
from holdfast.store.postgres.database import Transaction

TICKETS = "SELECT t.id FROM tickets t WHERE t.organization_id = $1 AND t.checkout_id = $2 ORDER BY t.id"
REFUND_DUE = """
SELECT EXISTS (SELECT FROM refunds r WHERE r.organization_id = $1 AND r.checkout_id = $2 AND r.status = 'due')
"""


async def checkout_view(
    tx: Transaction, catalogue: Catalogue, organization_id: UUID, checkout_id: UUID
) -> CheckoutView | None:
    """As this transaction sees it; none where the organization has no such checkout."""
    checkout = await find_checkout(tx, organization_id, checkout_id)
    if checkout is None:
        return None
    return CheckoutView(
        id=checkout.id,
        event_id=checkout.event_id,
        user_id=checkout.user_id,
        status=checkout.status.value,
        refund_due=await tx.fetchval(REFUND_DUE, organization_id, checkout_id),
        expires_at=checkout.expires_at,
        currency=checkout.currency,
        tickets=[row["id"] for row in await tx.fetch(TICKETS, organization_id, checkout_id)],
        payment_id=checkout.payment_id,
        created_at=checkout.created_at,
        ended_at=checkout.ended_at,
    )
