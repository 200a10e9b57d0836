"""What an organiser asks of a ticket that was sold, and what became of it. Pure."""

from datetime import datetime
from uuid import UUID

import msgspec

from holdfast.tickets.places import SeatLabel, TicketPlace
from holdfast.tickets.ticket import TicketStatus


class PlaceAsked(msgspec.Struct, frozen=True):
    """Where a ticket is to go: one of the two."""

    seat: UUID | None = None
    zone: str | None = None
    """A counted zone, by its zone_id or its UUID."""


class RefundDue(msgspec.Struct, frozen=True):
    id: UUID
    amount_minor: int | None
    """Null: no price was known when it was sold."""
    currency: str | None
    status: str


class ReturnedTicket(msgspec.Struct, frozen=True, kw_only=True):
    ticket_id: UUID
    event_id: UUID
    seat: SeatLabel | None
    zone: str
    status: TicketStatus
    voided_at: datetime
    void_reason: str | None
    was_inside: bool
    """Whoever had it was let in and has not been seen leaving."""
    refund: RefundDue | None


class TicketsReverted(msgspec.Struct, frozen=True, kw_only=True):
    reverted: int
    already_void: int
    tickets: list[ReturnedTicket]
    """All that were named, in the order they were named in."""


class TicketExchanged(msgspec.Struct, frozen=True, kw_only=True, rename={"left": "from", "taken": "to"}):
    ticket_id: UUID
    event_id: UUID
    left: TicketPlace
    taken: TicketPlace
    code_version: int
    """Codes made before are refused."""
    price_minor: int | None
    """What it was sold for, which stays."""
    list_price_minor: int | None
    """Of the new place, now."""
    price_difference_minor: int | None
    """What the new place costs more (or less). Null: one of the two is not known."""
    currency: str | None
    notes: list[str]


def price_difference_minor(sold_for: int | None, list_price: int | None) -> int | None:
    return None if sold_for is None or list_price is None else list_price - sold_for
