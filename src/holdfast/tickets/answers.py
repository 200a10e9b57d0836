"""Tickets as their holders, and those at the gate, see them. Pure."""

from collections.abc import Mapping
from datetime import date, datetime
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from holdfast.seating.layout import Layout, SeatCategory, Zone
from holdfast.tickets.code import TicketPayload, day_spans, short_words
from holdfast.tickets.ticket import Entitlement, TicketStatus


class TicketRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A ticket as it is stored, and whose it is."""

    id: UUID
    event_id: UUID
    checkout_id: UUID
    ordinal: int | None
    zone_no: int
    layout_version: int | None
    """In which ordinal and zone number are meant; None: the event lists zones of its own."""
    hold_type: str | None
    user_id: UUID | None
    attendee_user_id: UUID | None
    attendee_name: str | None
    """As stated, or as the attendee's account has it."""
    associated_membership_id: UUID | None
    price_minor: int | None
    currency: str | None
    valid_days: tuple[date, ...]
    entitlement: Entitlement
    max_daily_entries: int | None
    status: TicketStatus
    code_version: int
    issued_at: datetime
    voided_at: datetime | None
    void_reason: str | None


class TicketSeat(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    seat_id: str
    row: str
    number: int


class TicketZone(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    zone_id: str
    name: str


class TicketEvent(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    name: str


class TicketAttendee(msgspec.Struct, frozen=True, kw_only=True):
    user_id: UUID | None
    name: str | None


class TicketView(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    event: TicketEvent
    checkout_id: UUID
    status: TicketStatus
    seat: TicketSeat | None
    zone: TicketZone
    attendee: TicketAttendee
    entitlement: Entitlement
    max_daily_entries: int | None
    valid_days: tuple[date, ...]
    """None: any day."""
    hold_type: str | None
    price_minor: int | None
    currency: str | None
    code_version: int
    accessibility_note: str | None
    issued_at: datetime
    voided_at: datetime | None
    void_reason: str | None
    links: dict[str, str]
    code: str | UnsetType | None = UNSET
    """What its QR code says; null: it is void. Left out of lists."""


class CompanionFact(msgspec.Struct, frozen=True):
    """Of a seat beside a ticket's: whether it is sold, and to whom."""

    sold: bool
    user_id: UUID | None
    checkout_id: UUID | None

    def is_with(self, ticket: TicketRecord) -> bool:
        return self.checkout_id == ticket.checkout_id or (self.user_id is not None and self.user_id == ticket.user_id)


def describe_ticket(
    ticket: TicketRecord, event_name: str, layout: Layout, beside: Mapping[int, CompanionFact]
) -> TicketView:
    """`beside`: what is known of the companions' and wheelchair seats that belong to the ticket's."""
    zone = layout.zones[ticket.zone_no]
    path = f"/api/tickets/{ticket.id}"
    return TicketView(
        id=ticket.id,
        event=TicketEvent(id=ticket.event_id, name=event_name),
        checkout_id=ticket.checkout_id,
        status=ticket.status,
        seat=None if ticket.ordinal is None else ticket_seat(layout, ticket.ordinal),
        zone=ticket_zone(zone),
        attendee=TicketAttendee(user_id=ticket.attendee_user_id, name=ticket.attendee_name),
        entitlement=ticket.entitlement,
        max_daily_entries=ticket.max_daily_entries,
        valid_days=ticket.valid_days,
        hold_type=ticket.hold_type,
        price_minor=ticket.price_minor,
        currency=ticket.currency,
        code_version=ticket.code_version,
        accessibility_note=accessibility_note(ticket, layout, beside),
        issued_at=ticket.issued_at,
        voided_at=ticket.voided_at,
        void_reason=ticket.void_reason,
        links={"self": path, "svg": f"{path}.svg", "png": f"{path}.png"},
    )


def ticket_seat(layout: Layout, ordinal: int) -> TicketSeat:
    return TicketSeat(
        id=layout.seat_uuid(ordinal),
        seat_id=layout.seat_ids[ordinal],
        row=layout.rows[ordinal],
        number=layout.numbers[ordinal],
    )


def ticket_zone(zone: Zone) -> TicketZone:
    return TicketZone(id=zone.id, zone_id=zone.zone_id, name=zone.name)


def seats_beside(layout: Layout, ordinal: int | None) -> tuple[int, ...]:
    """The companions' seats of a wheelchair seat, and the other way."""
    if ordinal is None:
        return ()
    return layout.wheelchair_companions.get(ordinal, ()) or layout.companion_wheelchairs.get(ordinal, ())


def accessibility_note(ticket: TicketRecord, layout: Layout, beside: Mapping[int, CompanionFact]) -> str | None:
    """What the people at the gate should know before they send somebody up the stairs."""
    ordinal = ticket.ordinal
    if ordinal is None:
        return None
    others = seats_beside(layout, ordinal)
    if layout.categories[ordinal] is SeatCategory.WHEELCHAIR:
        with_them = [o for o in others if o not in beside or not beside[o].sold or beside[o].is_with(ticket)]
        strangers = [o for o in others if o not in with_them]
        if with_them:
            return f"Wheelchair ticket, companion reserved: {_names(layout, with_them)}."
        if strangers:
            return f"Wheelchair ticket, the companion's seat {_names(layout, strangers)} is sold to somebody else."
        return "Wheelchair ticket."
    chairs = [o for o in others if o in beside and beside[o].sold and beside[o].is_with(ticket)]
    return f"Companion of the wheelchair user in {_names(layout, chairs)}." if chairs else None


def _names(layout: Layout, ordinals: list[int]) -> str:
    return ", ".join(layout.seat_ids[ordinal] for ordinal in ordinals)


def place_words(view: TicketView) -> str:
    """As it is read aloud."""
    if view.seat is None:
        return view.zone.name
    return f"{view.zone.name}, row {view.seat.row}, seat {view.seat.number}"


def ticket_payload(view: TicketView, organization_id: UUID, key_id: str) -> TicketPayload:
    return TicketPayload(
        k=key_id,
        t=view.id,
        e=view.event.id,
        o=organization_id,
        v=view.code_version,
        s="" if view.seat is None else short_words(f"Row {view.seat.row}, seat {view.seat.number}"),
        z=short_words(view.zone.name),
        d=day_spans(view.valid_days),
        n=view.entitlement,
        m=view.max_daily_entries,
    )


# Keys -------------------------------------------------------------------------------------------------------------
class Jwk(msgspec.Struct, frozen=True, kw_only=True):
    """A public key as RFC 8037 has it."""

    kid: str
    x: str
    kty: str = "OKP"
    crv: str = "Ed25519"
    use: str = "sig"


class Jwks(msgspec.Struct, frozen=True):
    keys: list[Jwk]
    """The last one signs; what the others signed stays good."""


class Rotated(msgspec.Struct, frozen=True, kw_only=True):
    key_id: str
    retired_key_id: str | None
