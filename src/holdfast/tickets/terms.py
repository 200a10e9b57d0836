"""On what terms an event's tickets let in. Pure."""

from holdfast.seating.view import EventView
from holdfast.tickets.ticket import Entitlement, TicketTerms


def ticket_terms(view: EventView, zone_no: int) -> TicketTerms:
    """For a place of the zone. An event of several days lets in on each of them, as often as wished; any other once."""
    entitlement = Entitlement.UNLIMITED if len(view.days) > 1 else Entitlement.SINGLE_ENTRY
    return TicketTerms(entitlement, None, view.days)
