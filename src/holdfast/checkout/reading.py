"""A checkout out of the database, as the API shows it."""

from uuid import UUID

from holdfast.checkout.answers import CheckoutView, LineView
from holdfast.checkout.checkout import Line, due_minor, kept, needs_payment
from holdfast.store.catalogue import Catalogue
from holdfast.store.postgres.checkouts import find_checkout, find_lines
from holdfast.store.postgres.database import Transaction

TICKETS = "SELECT t.id FROM tickets t WHERE t.organization_id = $1 AND t.checkout_id = $2 ORDER BY t.id"
REFUND_DUE = """
SELECT EXISTS (SELECT FROM refunds r WHERE r.organization_id = $1 AND r.checkout_id = $2 AND r.status = 'due')
"""


async def checkout_view(
    tx: Transaction, catalogue: Catalogue, organization_id: UUID, checkout_id: UUID
) -> CheckoutView | None:
    checkout = await find_checkout(tx, organization_id, checkout_id)
    if checkout is None:
        return None
    lines = kept(await find_lines(tx, organization_id, checkout_id))
    left_s = (checkout.expires_at - checkout.now).total_seconds()
    return CheckoutView(
        id=checkout.id,
        event_id=checkout.event_id,
        status="expired" if checkout.is_over else checkout.status.value,
        refund_due=await tx.fetchval(REFUND_DUE, organization_id, checkout_id),
        expires_at=checkout.expires_at,
        expires_at_unix=int(checkout.expires_at.timestamp()),
        expires_in_seconds=max(0, int(left_s)),
        heartbeat=None,
        currency=checkout.currency,
        total_minor=due_minor(lines),
        payment_required=needs_payment(lines),
        lines=[_line(line) for line in lines],
        tickets=[row["id"] for row in await tx.fetch(TICKETS, organization_id, checkout_id)],
        payment_id=checkout.payment_id,
        created_at=checkout.created_at,
        ended_at=checkout.ended_at,
    )


def _line(line: Line) -> LineView:
    return LineView(
        hold_id=line.hold_id,
        seat=None,
        zone=str(line.zone_no),
        quantity=line.quantity,
        hold_type=line.hold_type,
        status=line.status.value,
        held_until=line.held_until,
        price_minor=line.price_minor,
        due_minor=line.due_minor,
    )
