"""What must be true of an event's tickets, checkouts and money at every instant. Pure."""

from collections import Counter
from uuid import UUID

from holdfast.holds.lifecycle import SeatState
from holdfast.insight.event_facts import EventFacts
from holdfast.insight.verdict import Invariant, verdict


def tickets_stand_on_sales(facts: EventFacts) -> Invariant:
    """A seat may be sold without a ticket of ours (booking v2), never the other way round."""
    seats = {seat.ordinal: seat for seat in facts.seats}
    on: dict[int, UUID] = {}
    faults: list[str] = []
    for ticket in facts.tickets:
        if ticket.ordinal is None:
            continue
        first = on.setdefault(ticket.ordinal, ticket.ticket_id)
        if first != ticket.ticket_id:
            faults.append(f"seat {ticket.ordinal} has the valid tickets {first} and {ticket.ticket_id}")
        seat = seats.get(ticket.ordinal)
        blocked_after = seat is not None and seat.state is SeatState.BLOCKED and seat.sold
        if seat is None or not (seat.state is SeatState.SOLD or blocked_after):
            state = "not there" if seat is None else seat.state.value
            faults.append(f"ticket {ticket.ticket_id} is valid for seat {ticket.ordinal}, which is {state}")
        elif seat.zone_no != ticket.zone_no:
            faults.append(f"ticket {ticket.ticket_id} is for zone {ticket.zone_no}, its seat in zone {seat.zone_no}")
    standing = Counter(ticket.zone_no for ticket in facts.tickets if ticket.ordinal is None)
    for zone in facts.zones:
        valid = standing.pop(zone.zone_no, 0)
        if valid > zone.sold:
            faults.append(f"zone {zone.zone_no} has {valid} valid tickets and {zone.sold} sold places")
    faults += [
        f"{valid} valid tickets are for zone {zone_no}, which is no counted zone" for zone_no, valid in standing.items()
    ]
    return verdict("every valid ticket stands on a sale of its own", faults, f"{len(facts.tickets)} valid tickets")


def completed_checkouts_have_tickets(facts: EventFacts) -> Invariant:
    faults = [
        f"checkout {one.checkout_id} is completed with {one.places} places and {one.tickets} tickets"
        for one in facts.completed
        if one.places != one.tickets
    ]
    return verdict("a completed checkout has a ticket for each place", faults, f"{len(facts.completed)} checkouts")


def holds_end_with_their_checkout(facts: EventFacts) -> Invariant:
    """With heartbeats they may end before it; never after it."""
    faults = [
        f"hold {line.hold_id} ends at {line.held_until}, its checkout {line.checkout_id} at {line.expires_at}"
        for line in facts.lines
        if line.held_until > line.expires_at or (line.held_until < line.expires_at and not line.heartbeat)
    ]
    return verdict("holds end with the checkout they are in", faults, f"{len(facts.lines)} holds in checkouts")


def money_is_settled(facts: EventFacts) -> Invariant:
    faults = [f"payment {payment_id} was received and has not been settled" for payment_id in facts.unsettled]
    return verdict("money that was received has bought tickets or is due back", faults, "nothing waits")
