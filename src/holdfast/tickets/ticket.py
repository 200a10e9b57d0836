"""A ticket: the right to one place of an event, on certain days, so many times. Pure."""

from datetime import date
from enum import StrEnum
from uuid import UUID

import msgspec

from holdfast.kernel.ids import new_id


class Entitlement(StrEnum):
    SINGLE_ENTRY = "single_entry"
    LIMITED = "limited_reentry_per_day"
    UNLIMITED = "unlimited_multi_day"


class TicketStatus(StrEnum):
    VALID = "valid"
    VOID = "void"


class TicketTerms(msgspec.Struct, frozen=True):
    """On what terms a ticket lets in; fixed when it is issued."""

    entitlement: Entitlement
    max_daily_entries: int | None
    """Of a limited one."""
    valid_days: tuple[date, ...]
    """None: any day."""


class PlaceSold(msgspec.Struct, frozen=True, kw_only=True):
    """What was sold, as the hold or the direct sale has it: one seat, or a quantity of a zone."""

    zone_no: int
    ordinal: int | None = None
    quantity: int = 1
    hold_id: UUID | None = None
    hold_type: str | None = None
    price_minor: int | None = None
    """Of one place."""
    user_id: UUID | None = None
    attendee_user_id: UUID | None = None
    attendee_name: str | None = None
    associated_membership_id: UUID | None = None


class NewTicket(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    place: PlaceSold
    terms: TicketTerms
    currency: str | None


def tickets_for(place: PlaceSold, terms: TicketTerms, currency: str | None) -> list[NewTicket]:
    """One for each person: a seat is one, places of a zone are as many as were sold."""
    return [NewTicket(id=new_id(), place=place, terms=terms, currency=currency) for _ in range(place.quantity)]
