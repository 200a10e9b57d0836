"""A sale over the counter, before it is made: what is asked for, for whom, at what price, and whether it is paid. Pure."""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from holdfast.checkout.answers import CheckoutView
from holdfast.holds.attendees import Attendee, Person
from holdfast.holds.hold_types import ResolvedHoldType
from holdfast.holds.lifecycle import BookingState
from holdfast.holds.plan import PlacesAsked, find_hold_type
from holdfast.kernel.errors import InvalidRequest
from holdfast.kernel.problems import Problem
from holdfast.payments.refusals import PaymentRequired, WrongAmount
from holdfast.seating.layout import Zone
from holdfast.seating.view import EventView
from holdfast.tickets.places import SeatLabel
from holdfast.tickets.ticket import PlaceSold


class SaleAsked(msgspec.Struct, frozen=True, kw_only=True):
    seats: tuple[UUID, ...] = ()
    places: tuple[PlacesAsked, ...] = ()
    hold_type: str
    attendees: tuple[Attendee, ...] = ()
    payment_reference: str | None = None
    amount_minor: int | None = None
    buyer_id: UUID | None = None


class SoldTicket(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    seat: SeatLabel | None
    zone: str
    price_minor: int | None
    attendee_name: str | None


class SaleAnswer(msgspec.Struct, frozen=True, kw_only=True):
    checkout: CheckoutView
    total_minor: int | None
    """What was paid, or the sum of the prices where nothing had to be. Null: nobody here knows."""
    tickets: list[SoldTicket]


def direct_sale_type(view: EventView, name: str) -> ResolvedHoldType:
    """The named type, if a free seat may be sold with it without being held before."""
    resolved = find_hold_type(view, name, BookingState.SOLD)
    if not resolved.hold_type.skip_locked_state:
        raise InvalidRequest(
            f"The hold type {resolved.name} may not be sold directly: it lacks skipLockedState.",
            hold_type=resolved.name,
        )
    return resolved


def places_sold(
    view: EventView,
    ordinals: Sequence[int],
    places: Sequence[tuple[Zone, int]],
    hold_type: str,
    buyer_id: UUID | None,
    attendees: Sequence[tuple[Attendee, Person]],
) -> list[PlaceSold]:
    """With their prices; each attendee beside their place, in the order of the seats and then of the places. Who is named
    in a counted zone has a place of their own there."""

    def place(ordinal: int | None, zone_no: int, quantity: int, at: int) -> PlaceSold:
        asked, found = attendees[at] if at < len(attendees) else (Attendee(), Person())
        return PlaceSold(
            zone_no=zone_no,
            ordinal=ordinal,
            quantity=quantity,
            hold_type=hold_type,
            price_minor=view.zone_price(zone_no) if ordinal is None else view.price_of(ordinal),
            user_id=buyer_id,
            attendee_user_id=found.user_id,
            attendee_name=asked.name or asked.email,
            associated_membership_id=found.membership_id,
        )

    sold = [place(ordinal, view.layout.zone_nos[ordinal], 1, at) for at, ordinal in enumerate(ordinals)]
    at = len(ordinals)
    for zone, quantity in places:
        named = [n for n in range(at, min(at + quantity, len(attendees))) if not attendees[n][0].nameless]
        sold += [place(None, zone.zone_no, 1, n) for n in named]
        if quantity > len(named):
            sold.append(place(None, zone.zone_no, quantity - len(named), len(attendees)))
        at += quantity
    return sold


class Payment(msgspec.Struct, frozen=True):
    """Stated at the counter."""

    reference: str
    amount_minor: int | None
    """Null: the price list has no price for some of the places, and no amount was stated."""


def check_payment(
    sold: Sequence[PlaceSold], hold_type: ResolvedHoldType, asked: SaleAsked, currency: str | None
) -> Payment | None:
    """What was paid, or a refusal; None where nothing is to be paid. Money that is stated and not asked for is refused: it
    would be kept nowhere."""
    needed = hold_type.hold_type.payment_required and any(place.price_minor != 0 for place in sold)
    if not needed:
        if asked.payment_reference is not None or asked.amount_minor is not None:
            field = "payment_reference" if asked.payment_reference is not None else "amount_minor"
            said = f"nothing is to be paid for these places with the hold type {hold_type.name}"
            raise InvalidRequest(f"/{field}: {said}", [Problem(f"/{field}", "nothing_to_pay", said)])
        return None
    due = sum(place.quantity * (place.price_minor or 0) for place in sold)
    known = all(place.price_minor is not None for place in sold)
    if asked.payment_reference is None:
        raise PaymentRequired(
            f"The hold type {hold_type.name} asks for a payment: state its payment_reference.",
            due_minor=due if known else None,
            currency=currency,
        )
    stated = asked.amount_minor
    if stated is not None and (stated != due if known else stated < due):
        raise WrongAmount(due, currency)
    return Payment(asked.payment_reference, due if known else stated)


def total_minor(sold: Sequence[PlaceSold], paid: Payment | None) -> int | None:
    if paid is not None:
        return paid.amount_minor
    prices = [None if place.price_minor is None else place.quantity * place.price_minor for place in sold]
    return None if None in prices else sum(price or 0 for price in prices)
