"""Venues, layouts, events, seats: parse, call the service, render."""

from collections.abc import Awaitable
from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

import msgspec
from litestar import Request, delete, get, patch, post, put
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from litestar.types import ControllerRouterHandler

from holdfast.holds.lifecycle import SeatState
from holdfast.http.api import LARGE_BODY
from holdfast.http.auth import call_of, path_id
from holdfast.http.envelope import Data, Page
from holdfast.http.problem import invalid_body
from holdfast.http.services import services
from holdfast.kernel.errors import InvalidRequest, LayoutNotFound, Unprocessable
from holdfast.kernel.ids import parse_id
from holdfast.kernel.problems import Problem
from holdfast.seating.answers import (
    BlockAnswer,
    EventAnswer,
    LayoutAnswer,
    Part,
    SeatAnswer,
    UnblockAnswer,
    VenueAnswer,
    WhitelistAnswer,
    WhitelistedUser,
    ZoneCounts,
)
from holdfast.seating.event import EventInvalid, EventStatus
from holdfast.seating.groups import GroupAnswer
from holdfast.seating.reading import text_fault
from holdfast.seating.service import SeatingService

AnyRequest = Request[Any, Any, Any]
Answer = TypeVar("Answer")
Limit = Annotated[int, QueryParameter(ge=1, le=1000, description="Rows at most.")]
Cursor = Annotated[str | None, QueryParameter(description="The next_cursor of the part before.")]

WRITES = {"scope": "seating"}
LARGE_WRITES = {**WRITES, LARGE_BODY: True}
NAME_CHARS = 200
VERSION_MAX = 2**31 - 1
REASON_CHARS = 500
BULK_BODY_BYTES = 2 * 1024 * 1024
"""Room for ten thousand ids, or for an event with as many prices."""


# Bodies -----------------------------------------------------------------------------------------------------------
class _Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class VenueBody(_Body, frozen=True):
    name: str


class LayoutBody(_Body, frozen=True):
    name: str
    config: msgspec.Raw


class VersionBody(_Body, frozen=True):
    config: msgspec.Raw


class VersionStatusBody(_Body, frozen=True):
    status: Literal["archived", "active"]


class StatusBody(_Body, frozen=True):
    status: EventStatus


class BlockBody(_Body, frozen=True):
    seats: list[UUID]
    reason: str
    force: bool = False


class UnblockBody(_Body, frozen=True):
    seats: list[UUID]
    reason: str | None = None


class WhitelistBody(_Body, frozen=True):
    user_ids: list[UUID]


# Venues and layouts -------------------------------------------------------------------------------------------------
@post("/api/venues", opt=WRITES, summary="Add a venue")
async def create_venue(request: AnyRequest, data: JSONBody[VenueBody]) -> Data[VenueAnswer]:
    call = await call_of(request)
    check_text("name", data.name, NAME_CHARS)
    return Data(await _seating(request).create_venue(call, data.name))


@get("/api/venues", summary="List venues, newest first")
async def list_venues(request: AnyRequest, cursor: Cursor = None, limit: Limit = 200) -> Page[VenueAnswer]:
    call = await call_of(request)
    return page_of(await _seating(request).list_venues(call, id_cursor(cursor), limit))


@post("/api/venues/{venue_id:str}/layouts", opt=LARGE_WRITES, summary="Add a layout to a venue")
async def create_layout(request: AnyRequest, venue_id: FromPath[str]) -> Data[LayoutAnswer]:
    """Body: `{"name": …, "config": {"zones": […]}}`. A config that cannot stand is refused with every problem."""
    venue = path_id("venue_id", venue_id)
    await _authenticate(request)
    call = await call_of(request)
    body = _decoded(await request.body(), LayoutBody)
    check_text("name", body.name, NAME_CHARS)
    return Data(await _seating(request).create_layout(call, venue, body.name, bytes(body.config)))


@post("/api/layouts/{layout_id:str}/versions", opt=LARGE_WRITES, summary="Add a layout's version")
async def create_version(request: AnyRequest, layout_id: FromPath[str]) -> Data[LayoutAnswer]:
    """Body: `{"config": …}`. Events keep the version they refer to."""
    layout = path_id("layout_id", layout_id)
    await _authenticate(request)
    call = await call_of(request)
    body = _decoded(await request.body(), VersionBody)
    return Data(await _seating(request).create_version(call, layout, bytes(body.config)))


@post(
    "/api/layouts/{layout_id:str}/versions/{version:int}/status",
    opt=WRITES,
    status_code=200,
    summary="Archive a layout's version, or bring it back",
)
async def set_version_status(
    request: AnyRequest, layout_id: FromPath[str], version: FromPath[int], data: JSONBody[VersionStatusBody]
) -> Data[LayoutAnswer]:
    """Nothing new may refer to an archived version; events that do already keep it."""
    layout = path_id("layout_id", layout_id)
    call = await call_of(request)
    if not 1 <= version <= VERSION_MAX:
        raise LayoutNotFound
    archived = data.status == "archived"
    return Data(await _seating(request).set_version_status(call, layout, version, archived=archived))


@get("/api/layouts", summary="List layouts, newest first")
async def list_layouts(
    request: AnyRequest, venue_id: FromQuery[str | None] = None, cursor: Cursor = None, limit: Limit = 200
) -> Page[LayoutAnswer]:
    call = await call_of(request)
    venue = None if venue_id is None else path_id("venue_id", venue_id)
    return page_of(await _seating(request).list_layouts(call, id_cursor(cursor), venue, limit))


@get("/api/layouts/{layout_id:str}", summary="A layout with its config")
async def get_layout(
    request: AnyRequest,
    layout_id: FromPath[str],
    version: Annotated[
        int | None, QueryParameter(ge=1, le=VERSION_MAX, description="The latest where left out.")
    ] = None,
) -> Data[LayoutAnswer]:
    layout = path_id("layout_id", layout_id)
    call = await call_of(request)
    return Data(await _seating(request).get_layout(call, layout, version))


# Events -------------------------------------------------------------------------------------------------------------
@post("/api/events", opt=WRITES, request_max_body_size=BULK_BODY_BYTES, summary="Add an event, as a draft")
async def create_event(request: AnyRequest, data: JSONBody[dict[str, Any]]) -> Data[EventAnswer]:
    """`name`, then `layout_id` (and `layout_version`; else the latest) or the event's own general-admission `zones`;
    `sale_start`, `sale_end`, `days`, `currency`, `prices`, `overrides` (or `seating_overrides`); the overlay:
    `blocked_seat_ids`, `disabled_zones`, `zone_overrides`, `pricing_zones`. With a `series_id` the layout, the overlay
    and the prices are the series'."""
    call = await call_of(request)
    return Data(await sound(_seating(request).create_event(call, data), "event"))


@get("/api/events", summary="List events, newest first")
async def list_events(
    request: AnyRequest,
    status: FromQuery[EventStatus | None] = None,
    series_id: FromQuery[str | None] = None,
    cursor: Cursor = None,
    limit: Limit = 200,
) -> Page[EventAnswer]:
    call = await call_of(request)
    series = None if series_id is None else path_id("series_id", series_id)
    return page_of(await _seating(request).list_events(call, id_cursor(cursor), status, limit, series))


@get("/api/events/{event_id:str}", summary="An event with its zones")
async def get_event(request: AnyRequest, event_id: FromPath[str]) -> Data[EventAnswer]:
    event = path_id("event_id", event_id)
    call = await call_of(request)
    return Data(await _seating(request).get_event(call, event))


@patch("/api/events/{event_id:str}", opt=WRITES, request_max_body_size=BULK_BODY_BYTES, summary="Change an event")
async def patch_event(
    request: AnyRequest, event_id: FromPath[str], data: JSONBody[dict[str, Any]]
) -> Data[EventAnswer]:
    """A draft can change in everything; on sale all but its layout and currency. Seats that the overlay takes out are
    blocked at once and their holds end; if one of them is sold, nothing changes."""
    event = path_id("event_id", event_id)
    call = await call_of(request)
    return Data(await sound(_seating(request).patch_event(call, event, data), "event"))


@post("/api/events/{event_id:str}/status", opt=WRITES, status_code=200, summary="Publish, open, cancel or archive")
async def set_status(request: AnyRequest, event_id: FromPath[str], data: JSONBody[StatusBody]) -> Data[EventAnswer]:
    event = path_id("event_id", event_id)
    call = await call_of(request)
    return Data(await sound(_seating(request).set_status(call, event, data.status), "event"))


# Seats --------------------------------------------------------------------------------------------------------------
@get("/api/events/{event_id:str}/seats", summary="List an event's seats by ordinal")
async def list_seats(
    request: AnyRequest,
    event_id: FromPath[str],
    zone: FromQuery[str | None] = None,
    seat_state: Annotated[
        str | None, QueryParameter(name="state", description="available, held, sold, blocked")
    ] = None,
    hold_type: FromQuery[str | None] = None,
    cursor: Cursor = None,
    limit: Limit = 200,
) -> Page[SeatAnswer]:
    event = path_id("event_id", event_id)
    after = number_cursor("cursor", cursor)
    state = _seat_state(seat_state)
    call = await call_of(request)
    return page_of(
        await _seating(request).list_seats(
            call, event, zone=zone, state=state, hold_type=hold_type, after=after, limit=limit
        )
    )


@get("/api/events/{event_id:str}/seats/{seat:str}", summary="A seat")
async def get_seat(request: AnyRequest, event_id: FromPath[str], seat: FromPath[str]) -> Data[SeatAnswer]:
    event, seat_uuid = path_id("event_id", event_id), path_id("seat", seat)
    call = await call_of(request)
    return Data(await _seating(request).get_seat(call, event, seat_uuid))


@get("/api/events/{event_id:str}/zones", summary="An event's general-admission zones and what is left of them")
async def list_zones(request: AnyRequest, event_id: FromPath[str]) -> Data[list[ZoneCounts]]:
    event = path_id("event_id", event_id)
    call = await call_of(request)
    return Data(await _seating(request).list_zones(call, event))


@get("/api/events/{event_id:str}/groups", summary="An event's groups of seats: tables, blocks, pairs")
async def list_groups(request: AnyRequest, event_id: FromPath[str]) -> Data[list[GroupAnswer]]:
    """A table (`sold_whole`) is held with all its free seats at once; a reserved block is not `for_buyers`."""
    event = path_id("event_id", event_id)
    call = await call_of(request)
    return Data(await _seating(request).list_groups(call, event))


@post(
    "/api/events/{event_id:str}/seats/block",
    opt=WRITES,
    status_code=200,
    request_max_body_size=BULK_BODY_BYTES,
    summary="Block seats, all or none",
)
async def block_seats(request: AnyRequest, event_id: FromPath[str], data: JSONBody[BlockBody]) -> Data[BlockAnswer]:
    event = path_id("event_id", event_id)
    call = await call_of(request)
    check_text("reason", data.reason, REASON_CHARS)
    return Data(await _seating(request).block_seats(call, event, data.seats, data.reason, force=data.force))


@post(
    "/api/events/{event_id:str}/seats/unblock",
    opt=WRITES,
    status_code=200,
    request_max_body_size=BULK_BODY_BYTES,
    summary="Unblock seats, all or none",
)
async def unblock_seats(
    request: AnyRequest, event_id: FromPath[str], data: JSONBody[UnblockBody]
) -> Data[UnblockAnswer]:
    event = path_id("event_id", event_id)
    call = await call_of(request)
    if data.reason is not None:
        check_text("reason", data.reason, REASON_CHARS)
    return Data(await _seating(request).unblock_seats(call, event, data.seats, data.reason))


# Guest list -----------------------------------------------------------------------------------------------------------
@put("/api/events/{event_id:str}/whitelist", opt=WRITES, request_max_body_size=BULK_BODY_BYTES, summary="Add users")
async def add_to_whitelist(
    request: AnyRequest, event_id: FromPath[str], data: JSONBody[WhitelistBody]
) -> Data[WhitelistAnswer]:
    event = path_id("event_id", event_id)
    call = await call_of(request)
    return Data(await _seating(request).add_to_whitelist(call, event, data.user_ids))


@delete(
    "/api/events/{event_id:str}/whitelist",
    opt=WRITES,
    status_code=200,
    request_max_body_size=BULK_BODY_BYTES,
    summary="Remove users from the event's list",
)
async def remove_from_whitelist(
    request: AnyRequest, event_id: FromPath[str], data: JSONBody[WhitelistBody]
) -> Data[WhitelistAnswer]:
    event = path_id("event_id", event_id)
    call = await call_of(request)
    return Data(await _seating(request).remove_from_whitelist(call, event, data.user_ids))


@get("/api/events/{event_id:str}/whitelist", summary="Who is on the event's list")
async def list_whitelist(
    request: AnyRequest, event_id: FromPath[str], cursor: Cursor = None, limit: Limit = 200
) -> Page[WhitelistedUser]:
    event = path_id("event_id", event_id)
    call = await call_of(request)
    return page_of(await _seating(request).list_whitelist(call, event, id_cursor(cursor), limit))


ROUTES: list[ControllerRouterHandler] = [
    create_venue,
    list_venues,
    create_layout,
    create_version,
    set_version_status,
    list_layouts,
    get_layout,
    create_event,
    list_events,
    get_event,
    patch_event,
    set_status,
    list_seats,
    get_seat,
    list_zones,
    list_groups,
    block_seats,
    unblock_seats,
    add_to_whitelist,
    remove_from_whitelist,
    list_whitelist,
]


# Parsing --------------------------------------------------------------------------------------------------------------
def _seating(request: AnyRequest) -> SeatingService:
    return services(request).seating


def page_of(part: Part[Any]) -> Page[Any]:
    return Page(part.items, part.next_cursor)


def check_text(field: str, value: str, limit: int) -> None:
    fault = text_fault(value, limit)
    if fault is not None:
        raise InvalidRequest(f"{field} {fault[1]}.", [Problem(f"/{field}", *fault)])


def _seat_state(text: str | None) -> SeatState | None:
    # By hand, because a handler's own `state` would be the application's.
    if text is None:
        return None
    if text in set(SeatState):
        return SeatState(text)
    said = f"must be one of {', '.join(SeatState)}"
    raise InvalidRequest(f"state {said}.", [Problem("/state", "unknown_state", said)])


def id_cursor(cursor: str | None) -> UUID | None:
    if cursor is None:
        return None
    found = parse_id(cursor)
    if found is None:
        raise _bad_cursor("cursor")
    return found


def number_cursor(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise _bad_cursor(name)
    return int(text)


def _bad_cursor(name: str) -> InvalidRequest:
    said = "must be a next_cursor of the same list"
    return InvalidRequest(f"{name} {said}.", [Problem(f"/{name}", "bad_cursor", said)])


async def sound(work: Awaitable[Answer], what: str) -> Answer:
    try:
        return await work
    except EventInvalid as invalid:
        problems = [Problem(p.pointer, p.code, p.detail) for p in invalid.problems]
        raise Unprocessable(f"The {what} cannot stand; every problem is listed.", problems) from None


async def _authenticate(request: AnyRequest) -> None:
    """Before the body is read: only from somebody we know do we take tens of megabytes."""
    await services(request).authenticator.authenticate(request.scope["headers"], request.scope)


def _decoded(body: bytes, shape: type[Any]) -> Any:
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise invalid_body(error) from None
