"""Checkouts as they are shown, read in the transaction of whoever shows them."""

from collections.abc import Sequence
from uuid import UUID

from holdfast.checkout.answers import CheckoutView, PaidWith, describe_checkout
from holdfast.checkout.checkout import LIVE, Checkout, Line
from holdfast.seating.layout import Layout
from holdfast.seating.view import EventView
from holdfast.store.catalogue import Catalogue
from holdfast.store.postgres import checkouts as store
from holdfast.store.postgres.database import Transaction
from holdfast.store.postgres.payment_providers import list_providers


async def checkout_view(
    tx: Transaction, catalogue: Catalogue, organization_id: UUID, checkout_id: UUID
) -> CheckoutView | None:
    """As this transaction sees it; none where the organization has no such checkout."""
    checkout = await store.find_checkout(tx, organization_id, checkout_id)
    if checkout is None:
        return None
    (view,) = await checkout_views(tx, catalogue, organization_id, [checkout])
    return view


async def checkout_views(
    tx: Transaction, catalogue: Catalogue, organization_id: UUID, checkouts: Sequence[Checkout]
) -> list[CheckoutView]:
    """The same for several, which cost no more questions than one."""
    ids = [checkout.id for checkout in checkouts]
    lines = await store.lines_of(tx, organization_id, ids)
    tickets = await store.tickets_of(tx, organization_id, ids)
    refunds = await store.refunds_due_of(tx, organization_id, ids)
    # What is over is paid by nobody: lists of old checkouts need not know.
    payable = any(checkout.seen_as in LIVE for checkout in checkouts)
    providers = await list_providers(tx, organization_id) if payable else []
    enabled = [PaidWith(provider.name, provider.kind.value) for provider in providers if provider.enabled]
    layouts: dict[tuple[UUID, int | None], Layout] = {}
    for checkout in checkouts:
        for line in lines[checkout.id]:
            key = (checkout.event_id, line.layout_version)
            if key not in layouts:
                layouts[key] = await _layout(catalogue, organization_id, checkout.event_id, line)

    def described(checkout: Checkout) -> CheckoutView:
        return describe_checkout(
            checkout,
            lines[checkout.id],
            lambda line: layouts[checkout.event_id, line.layout_version],
            tickets=tickets[checkout.id],
            refund_due=checkout.id in refunds,
            providers=enabled,
        )

    return [described(checkout) for checkout in checkouts]


async def _layout(catalogue: Catalogue, organization_id: UUID, event_id: UUID, line: Line) -> Layout:
    """In which the line's numbers are meant: of a hold that is over, perhaps one that the event had earlier."""
    view = await event_of(catalogue, organization_id, event_id)
    if line.layout_version is None or line.layout_version == view.layout_version or view.layout_id is None:
        return view.layout
    layout = await catalogue.layout(organization_id, view.layout_id, line.layout_version)
    assert layout is not None, "versions are never deleted"
    return layout


async def event_of(catalogue: Catalogue, organization_id: UUID, event_id: UUID) -> EventView:
    view = await catalogue.event(organization_id, event_id)
    assert view is not None, "a checkout's event is never deleted: the database sees to it"
    return view
