"""What organisers do with sales, over HTTP: sell over the counter, take a sale back, move a ticket to another place."""

from typing import Annotated, Any
from uuid import UUID

import msgspec
from litestar import Request, post
from litestar.params import FromPath, JSONBody
from litestar.types import ControllerRouterHandler

from holdfast.checkout.direct_sale import SaleAnswer, SaleAsked
from holdfast.holds.plan import PlacesAsked
from holdfast.http.auth import call_of, path_id
from holdfast.http.envelope import Data
from holdfast.http.holds import QUANTITY_MAX, AttendeeWanted, GaWanted, read_attendees
from holdfast.http.seating import BULK_BODY_BYTES, NAME_CHARS, REASON_CHARS, check_text
from holdfast.http.services import services
from holdfast.kernel.errors import InvalidRequest
from holdfast.kernel.ids import parse_id
from holdfast.kernel.problems import Problem, Problems
from holdfast.seating.prices import MAX_AMOUNT_MINOR
from holdfast.tickets.returns import PlaceAsked, ReturnedTicket, TicketExchanged, TicketsReverted
from holdfast.tickets.returns_service import REVERTED_MAX

AnyRequest = Request[Any, Any, Any]
SCOPE = {"scope": "checkout"}
REFERENCE_CHARS = 200


class BuyerNamed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    user_id: str


class SaleBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"hold_type": "holdType"}):
    hold_type: str
    seats: list[str] = []
    ga: list[GaWanted] = []
    attendees: list[AttendeeWanted | None] = []
    payment_reference: str | None = None
    amount_minor: Annotated[int, msgspec.Meta(ge=0, le=MAX_AMOUNT_MINOR)] | None = None
    buyer: BuyerNamed | None = None


class RevertBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    reason: str
    refund: bool = True


class RevertManyBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    ticket_ids: Annotated[list[str], msgspec.Meta(min_length=1, max_length=REVERTED_MAX)]
    reason: str
    refund: bool = True


class ExchangeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Either a seat or a zone."""

    seat: str | None = None
    zone_id: str | None = None
    reason: str | None = None


@post(
    "/api/events/{event_id:str}/sales",
    status_code=201,
    opt=SCOPE,
    request_max_body_size=BULK_BODY_BYTES,
    summary="Sell over the counter",
)
async def sell(request: AnyRequest, event_id: FromPath[str], data: JSONBody[SaleBody]) -> Data[SaleAnswer]:
    """Sell free seats and places directly, with a hold type that has skipLockedState and may be SOLD: all of them, or none.
    The answer has the completed checkout and the tickets. `payment_reference` says how it was paid, where the type asks for
    a payment; `amount_minor` is then the amount due, unless some place has no price. `attendees` are in the order of the
    seats, then of the places."""
    event = path_id("event_id", event_id)
    asked = _asked(data)
    return Data(await services(request).box_office.sell(await call_of(request), event, asked))


def _asked(data: SaleBody) -> SaleAsked:
    problems = Problems()
    if not data.seats and not data.ga:
        problems.add("/seats", "missing", "name at least one seat, or a quantity in ga")
    seats = _ids(problems, "/seats", data.seats)
    for n, places in enumerate(data.ga):
        if not 1 <= places.quantity <= QUANTITY_MAX:
            problems.add(f"/ga/{n}/quantity", "out_of_range", f"must be between 1 and {QUANTITY_MAX}")
    attendees, faults = read_attendees(data.attendees)
    for fault in faults:
        problems.add(fault.pointer, fault.code, fault.detail)
    buyer = None if data.buyer is None else parse_id(data.buyer.user_id)
    if data.buyer is not None and buyer is None:
        problems.add("/buyer/user_id", "not_an_id", "must be a UUID")
    _require_sound(problems)
    if data.payment_reference is not None:
        check_text("payment_reference", data.payment_reference, REFERENCE_CHARS)
    return SaleAsked(
        seats=seats,
        places=tuple(PlacesAsked(places.zone_id, places.quantity) for places in data.ga),
        hold_type=data.hold_type,
        attendees=attendees,
        payment_reference=data.payment_reference,
        amount_minor=data.amount_minor,
        buyer_id=buyer,
    )


def _ids(problems: Problems, pointer: str, texts: list[str]) -> tuple[UUID, ...]:
    """Each once."""
    found: dict[UUID, None] = {}
    for n, text in enumerate(texts):
        one = parse_id(text)
        if one is None:
            problems.add(f"{pointer}/{n}", "not_an_id", "must be a UUID")
        elif one in found:
            problems.add(f"{pointer}/{n}", "duplicate", "this is named twice")
        else:
            found[one] = None
    return tuple(found)


def _require_sound(problems: Problems) -> None:
    if problems:
        listed = list(problems.listed())
        raise InvalidRequest(f"{listed[0].pointer}: {listed[0].detail}", listed)


@post("/api/tickets/{ticket_id:str}/revert", status_code=200, opt=SCOPE, summary="Take a sale back")
async def revert_ticket(
    request: AnyRequest, ticket_id: FromPath[str], data: JSONBody[RevertBody]
) -> Data[ReturnedTicket]:
    """The ticket is void and its place is free again. What was paid for it is due back, unless `refund` is false. Repeating
    it changes nothing."""
    ticket = path_id("ticket_id", ticket_id)
    check_text("reason", data.reason, REASON_CHARS)
    call = await call_of(request)
    return Data(await services(request).returns.revert(call, ticket, data.reason, refund=data.refund))


@post(
    "/api/events/{event_id:str}/tickets/revert",
    status_code=200,
    opt=SCOPE,
    request_max_body_size=BULK_BODY_BYTES,
    summary="Take many sales back",
)
async def revert_tickets(
    request: AnyRequest, event_id: FromPath[str], data: JSONBody[RevertManyBody]
) -> Data[TicketsReverted]:
    """All of these tickets of the event, or none of them."""
    event = path_id("event_id", event_id)
    problems = Problems()
    tickets = _ids(problems, "/ticket_ids", data.ticket_ids)
    _require_sound(problems)
    check_text("reason", data.reason, REASON_CHARS)
    call = await call_of(request)
    return Data(await services(request).returns.revert_many(call, event, tickets, data.reason, refund=data.refund))


@post("/api/tickets/{ticket_id:str}/exchange", status_code=200, opt=SCOPE, summary="Move a ticket to another place")
async def exchange_ticket(
    request: AnyRequest, ticket_id: FromPath[str], data: JSONBody[ExchangeBody]
) -> Data[TicketExchanged]:
    """To another `seat` (by its id) or to a place of a general-admission zone (`zone_id`). The ticket stays the same with
    its terms and its price; codes made before are refused. `price_difference_minor` is what the new place costs more."""
    ticket = path_id("ticket_id", ticket_id)
    if (data.seat is None) == (data.zone_id is None):
        raise InvalidRequest("Send either seat or zone_id.", [Problem("", "one_of", "either seat or zone_id")])
    seat = None if data.seat is None else path_id("seat", data.seat)
    if data.zone_id is not None:
        check_text("zone_id", data.zone_id, NAME_CHARS)
    if data.reason is not None:
        check_text("reason", data.reason, REASON_CHARS)
    call = await call_of(request)
    return Data(await services(request).returns.exchange(call, ticket, PlaceAsked(seat, data.zone_id), data.reason))


ROUTES: list[ControllerRouterHandler] = [sell, revert_ticket, revert_tickets, exchange_ticket]
