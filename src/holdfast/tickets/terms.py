"""On what terms an event's tickets let in. Pure."""

from holdfast.seating.admission import ZoneAdmission
from holdfast.seating.view import EventView
from holdfast.tickets.ticket import Entitlement, TicketTerms

_AS_THE_EVENT = ZoneAdmission()


def ticket_terms(view: EventView, zone_no: int) -> TicketTerms:
    """For a place of the zone, as the event's `admission` says: of the zone, else of all. Where nothing is said, an event of
    several days lets in on each of them, as often as wished; any other once."""
    said = view.admission
    zone = said.zones.get(view.layout.zones[zone_no].zone_id, _AS_THE_EVENT)
    days = view.days if zone.valid_days is None else zone.valid_days
    usual = Entitlement.UNLIMITED if len(days) > 1 else Entitlement.SINGLE_ENTRY
    entitlement = zone.entitlement or said.entitlement or usual
    entries = zone.max_daily_entries or said.max_daily_entries
    return TicketTerms(entitlement, entries if entitlement is Entitlement.LIMITED else None, days)
