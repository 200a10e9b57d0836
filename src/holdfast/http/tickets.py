"""Tickets over HTTP: reading them, their QR codes, issuing them anew, and the keys that sign them."""

import asyncio
from typing import Annotated, Any, cast

from litestar import Request, Response, get, post
from litestar.params import FromPath, FromQuery, QueryParameter
from litestar.types import ControllerRouterHandler

from holdfast.http.auth import call_of, cursor_id, path_id
from holdfast.http.envelope import Data, Page
from holdfast.http.seating import Cursor, Limit, page_of
from holdfast.http.services import services
from holdfast.tickets.answers import Jwks, Rotated, TicketView
from holdfast.tickets.picture import draw_png, draw_svg
from holdfast.tickets.service import TicketsService
from holdfast.tickets.ticket import TicketStatus

AnyRequest = Request[Any, Any, Any]
Status = Annotated[TicketStatus | None, QueryParameter(description="Only tickets with this status.")]

PRIVATE = {"cache-control": "no-store"}
"""Whoever has a ticket's code gets in with it: it stays in nobody's cache."""
PICTURES = {".svg": ("image/svg+xml", draw_svg), ".png": ("image/png", draw_png)}


@get("/api/tickets/{ticket_id:str}", summary="A ticket with its code; with .svg or .png at the end its QR code")
async def get_ticket(request: AnyRequest, ticket_id: FromPath[str]) -> Response[Data[TicketView]]:
    """For its owner, the attendee it names, and staff. `/api/tickets/{ticket_id}.svg` and `.png` answer with the QR code
    of a ticket that is not void."""
    for ending, (media_type, draw) in PICTURES.items():
        if ticket_id.endswith(ending):
            ticket = path_id("ticket_id", ticket_id.removesuffix(ending))
            code = await _tickets(request).code(await call_of(request), ticket)
            drawn = await asyncio.to_thread(draw, code)
            picture = Response(drawn, media_type=media_type, headers=PRIVATE)
            return cast("Response[Data[TicketView]]", picture)
    ticket = path_id("ticket_id", ticket_id)
    call = await call_of(request)
    return Response(Data(await _tickets(request).get(call, ticket)), headers=PRIVATE)


@get("/api/tickets", summary="The caller's tickets, newest first")
async def my_tickets(
    request: AnyRequest, event_id: FromQuery[str | None] = None, cursor: Cursor = None, limit: Limit = 200
) -> Page[TicketView]:
    """Bought by the caller, or in the caller's name. Without their codes."""
    event = None if event_id is None else path_id("event_id", event_id)
    call = await call_of(request)
    return page_of(await _tickets(request).mine(call, event, cursor_id(cursor), limit))


@get("/api/events/{event_id:str}/tickets", summary="An event's tickets, oldest first")
async def event_tickets(
    request: AnyRequest, event_id: FromPath[str], status: Status = None, cursor: Cursor = None, limit: Limit = 200
) -> Page[TicketView]:
    """For organisers. Without their codes."""
    event = path_id("event_id", event_id)
    call = await call_of(request)
    return page_of(await _tickets(request).of_event(call, event, status, cursor_id(cursor), limit))


@post(
    "/api/tickets/{ticket_id:str}/reissue",
    status_code=200,
    opt={"scope": "checkout"},
    summary="Another code for a ticket",
)
async def reissue_ticket(request: AnyRequest, ticket_id: FromPath[str]) -> Response[Data[TicketView]]:
    """The codes before are refused from now on by every gate with a connection. For its owner, and organisers."""
    ticket = path_id("ticket_id", ticket_id)
    call = await call_of(request)
    return Response(Data(await _tickets(request).reissue(call, ticket)), headers=PRIVATE)


@get("/api/ticket-keys", summary="The public keys that verify tickets")
async def list_ticket_keys(request: AnyRequest) -> Data[Jwks]:
    """A JSON Web Key Set (RFC 7517, RFC 8037): what a gate needs to verify codes without a connection."""
    call = await call_of(request)
    return Data(await _tickets(request).keys(call))


@post("/api/ticket-keys/rotate", status_code=200, summary="Sign tickets with a new key")
async def rotate_ticket_key(request: AnyRequest) -> Data[Rotated]:
    """For administrators. What older keys signed stays good; gates that work without a connection fetch the keys anew."""
    call = await call_of(request)
    return Data(await _tickets(request).rotate_key(call))


def _tickets(request: AnyRequest) -> TicketsService:
    return services(request).tickets


ROUTES: list[ControllerRouterHandler] = [
    get_ticket,
    my_tickets,
    event_tickets,
    reissue_ticket,
    list_ticket_keys,
    rotate_ticket_key,
]
