"""Tickets for tests of what is done with them: sold directly, with a completed checkout, as a sale leaves them."""

from typing import Any
from uuid import UUID

from holdfast.app import Application
from holdfast.kernel.ids import new_id
from holdfast.seating.layout import Layout
from holdfast.store.postgres.database import Transaction
from holdfast.store.postgres.tickets import issue_tickets
from holdfast.tickets.terms import ticket_terms
from holdfast.tickets.ticket import PlaceSold, tickets_for

SELL_SEATS = "SELECT sell_seats_directly($1, $2, $3, NULL, 'box', 'ADMIN', NULL, NULL, NULL, NULL)"
SELL_PLACES = "SELECT move_session_places($1, $2, $3, $4, 'direct_sale', 'box', NULL, 'ADMIN', NULL, NULL, NULL, NULL)"
CHECKOUT = """
INSERT INTO checkouts (organization_id, id, event_id, user_id, status, source, actor, expires_at, created_at, ended_at)
SELECT $1, $2, $3, $4, 'completed', 'box_office', 'ADMIN', t.now, t.now, t.now FROM (SELECT holdfast_now() AS now) t
"""


async def issue(
    app: Application,
    organization_id: UUID,
    event_id: UUID | str,
    *ordinals: int,
    zone: str | None = None,
    quantity: int = 1,
    user_id: UUID | None = None,
    **named: Any,
) -> list[UUID]:
    """Of these seats, or so many places of the zone. `named`: attendee_user_id, attendee_name, associated_membership_id."""
    event = UUID(str(event_id))
    view = await app.catalogue.fresh_event(organization_id, event)
    assert view is not None
    layout: Layout = view.layout
    places = [PlaceSold(zone_no=layout.zone_nos[o], ordinal=o, user_id=user_id, **named) for o in ordinals]
    if zone is not None:
        found = layout.zone(zone)
        assert found is not None
        places = [PlaceSold(zone_no=found.zone_no, quantity=quantity, user_id=user_id, **named)]
    made = [t for place in places for t in tickets_for(place, ticket_terms(view, place.zone_no), "EUR")]

    async def work(tx: Transaction) -> None:
        if ordinals:
            assert await tx.fetchval(SELL_SEATS, organization_id, event, list(ordinals)) == len(ordinals)
        else:
            args = (organization_id, event, places[0].zone_no, quantity)
            assert await tx.fetchval(SELL_PLACES, *args)
        tx.moved(event, ordinals)
        checkout_id = new_id()
        await tx.execute(CHECKOUT, organization_id, checkout_id, event, user_id)
        await issue_tickets(tx, organization_id, event, checkout_id, await tx.now(), made)

    await app.database.run(organization_id, work)
    return [ticket.id for ticket in made]
