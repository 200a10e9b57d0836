"""Holds over HTTP: placing several at once, releasing, moving, extending, listing."""

from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from litestar import Request, Response, delete, get, post
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter

from holdfast.holds.answers import HoldFilter, HoldView, Placement, Released, SeatMove
from holdfast.holds.attendees import SOMEBODY, Attendee, require_room_for
from holdfast.holds.lifetime import NATIVE_RESERVE_TTL_S
from holdfast.holds.plan import HoldsAsked, PlacesAsked
from holdfast.http.auth import call_of, path_id
from holdfast.http.envelope import Data, Page
from holdfast.http.reserve import ReserveBody, Reserved, companion_words, reserved
from holdfast.http.services import services
from holdfast.kernel.errors import InvalidRequest
from holdfast.kernel.ids import parse_id
from holdfast.kernel.problems import Problem, Problems
from holdfast.seating.reading import check_text

AnyRequest = Request[Any, Any, Any]
QUANTITY_MAX = 100_000
ATTENDEE_CHARS = 320
"""As long as an e-mail address can be."""
BULK_BODY_BYTES = 2 * 1024 * 1024
"""Room for an organiser's ten thousand seats, or as many moves."""

Limit = Annotated[int, QueryParameter(ge=1, le=1000, description="Rows in one answer")]


class GaWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    zone_id: str
    quantity: int


class AttendeeWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of these four."""

    user_id: str | None = None
    membership_id: str | None = None
    email: str | None = None
    name: str | None = None


class HoldsBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"hold_type": "holdType"}):
    seats: list[str] = []
    ga: list[GaWanted] = []
    hold_type: str | None = None
    source: Literal["web", "scanner"] = "web"
    groups: list[str] = []
    attendees: list[AttendeeWanted | None] = []


class PlacementOut(msgspec.Struct, frozen=True):
    holds: list[HoldView]
    expires_in_seconds: int | None
    message: str


class ReleaseFilter(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"hold_type": "holdType"}):
    hold_type: str | None = None
    user_id: str | None = None
    zone: str | None = None
    expiring_within_s: float | None = None


class ReleaseBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    hold_ids: list[str] | None = None
    filter: ReleaseFilter | None = None


class MoveWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    hold_id: str
    seat: str


class MoveBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    moves: list[MoveWanted]


def body_id(pointer: str, text: str) -> UUID:
    return path_id(pointer.removeprefix("/"), text)


@post(
    "/api/events/{event_id:str}/seats/{seat_id:str}/reserve",
    status_code=201,
    opt={"scope": "holds"},
    summary="Hold one seat",
)
async def reserve_seat(
    request: AnyRequest, event_id: FromPath[str], seat_id: FromPath[str], data: JSONBody[ReserveBody | None] = None
) -> Response[Data[Reserved]]:
    """Hold one seat for the caller. Asking again for one's own seat answers 200 with the same hold."""
    event, seat = path_id("event_id", event_id), path_id("seat_id", seat_id)
    wanted = data or ReserveBody()
    asked = HoldsAsked(
        seats=(seat,), hold_type=wanted.hold_type, source=wanted.source, endpoint_ttl_s=NATIVE_RESERVE_TTL_S
    )
    placement = await services(request).holds.hold_seats(await call_of(request), event, asked)
    return Response(Data(reserved(placement)), status_code=201 if placement.created else 200)


@post(
    "/api/events/{event_id:str}/holds",
    status_code=201,
    opt={"scope": "holds"},
    request_max_body_size=BULK_BODY_BYTES,
)
async def hold_seats(
    request: AnyRequest, event_id: FromPath[str], data: JSONBody[HoldsBody]
) -> Response[Data[PlacementOut]]:
    """Hold several seats and places at once: all of them, or none. `groups` names whole groups of seats. `attendees` says
    who will sit there, in the order of the seats, the groups' seats and the places; what is left is the caller's own."""
    event = path_id("event_id", event_id)
    asked = _asked(data)
    placement = await services(request).holds.hold_seats(await call_of(request), event, asked)
    return Response(Data(_placement(placement)), status_code=201 if placement.created else 200)


def _asked(data: HoldsBody) -> HoldsAsked:
    problems: list[Problem] = []
    if not data.seats and not data.ga and not data.groups:
        problems.append(Problem("/seats", "missing", "name at least one seat or group, or a quantity in ga"))
    seats = tuple(body_id(f"/seats/{n}", text) for n, text in enumerate(data.seats))
    seen: set[UUID] = set()
    for n, seat in enumerate(seats):
        if seat in seen:
            problems.append(Problem(f"/seats/{n}", "duplicate", "this seat is named twice"))
        seen.add(seat)
    for n, places in enumerate(data.ga):
        if not 1 <= places.quantity <= QUANTITY_MAX:
            problems.append(Problem(f"/ga/{n}/quantity", "out_of_range", f"must be between 1 and {QUANTITY_MAX}"))
    for n, name in enumerate(data.groups):
        if name in data.groups[:n]:
            problems.append(Problem(f"/groups/{n}", "duplicate", "this group is named twice"))
    attendees, faults = read_attendees(data.attendees)
    problems += faults
    if problems:
        raise InvalidRequest("; ".join(f"{p.pointer}: {p.detail}" for p in problems), problems)
    if not data.groups:
        require_room_for(attendees, len(seats) + sum(places.quantity for places in data.ga))
    return HoldsAsked(
        seats=seats,
        groups=tuple(data.groups),
        attendees=attendees,
        places=tuple(PlacesAsked(p.zone_id, p.quantity) for p in data.ga),
        hold_type=data.hold_type,
        source=data.source,
        endpoint_ttl_s=NATIVE_RESERVE_TTL_S,
    )


def read_attendees(wanted: list[AttendeeWanted | None]) -> tuple[tuple[Attendee, ...], tuple[Problem, ...]]:
    problems = Problems()
    read: list[Attendee] = []
    for n, one in enumerate(wanted):
        pointer = f"/attendees/{n}"
        said = [] if one is None else [k for k, v in msgspec.structs.asdict(one).items() if v is not None]
        if one is None or len(said) != 1:
            if one is not None:
                problems.add(pointer, "one_of", "name one of user_id, membership_id, email, name, or send null")
            read.append(SOMEBODY)
            continue
        read.append(
            Attendee(
                user_id=_attendee_id(problems, f"{pointer}/user_id", one.user_id),
                membership_id=_attendee_id(problems, f"{pointer}/membership_id", one.membership_id),
                email=_attendee_text(problems, f"{pointer}/email", one.email),
                name=_attendee_text(problems, f"{pointer}/name", one.name),
            )
        )
        if one.email is not None and "@" not in one.email:
            problems.add(f"{pointer}/email", "not_an_email", "must be an e-mail address")
    return tuple(read), problems.listed()


def _attendee_id(problems: Problems, pointer: str, text: str | None) -> UUID | None:
    found = None if text is None else parse_id(text)
    if text is not None and found is None:
        problems.add(pointer, "not_an_id", "must be a UUID")
    return found


def _attendee_text(problems: Problems, pointer: str, text: str | None) -> str | None:
    return None if text is None else check_text(problems, pointer, text, ATTENDEE_CHARS)


def _placement(placement: Placement) -> PlacementOut:
    lives = [h.expires_in_seconds for h in placement.holds if h.expires_in_seconds is not None]
    count = sum(h.quantity for h in placement.holds)
    noun = "place" if count == 1 else "places"
    message = f"{count} {noun} reserved." if placement.created else f"You already hold these {count} {noun}."
    said = [message, *(words for hold in placement.holds for words in companion_words(hold))]
    return PlacementOut(placement.holds, min(lives) if lives else None, " ".join(said))


@delete("/api/holds/{hold_id:str}", status_code=200, opt={"scope": "holds"}, summary="Give a hold back")
async def release_hold(request: AnyRequest, hold_id: FromPath[str]) -> Data[HoldView]:
    """Give a hold back. Repeating it changes nothing."""
    hold = path_id("hold_id", hold_id)
    return Data(await services(request).holds.release_hold(await call_of(request), hold))


@get("/api/holds/{hold_id:str}", summary="A hold")
async def get_hold(request: AnyRequest, hold_id: FromPath[str]) -> Data[HoldView]:
    hold = path_id("hold_id", hold_id)
    return Data(await services(request).holds.get_hold(await call_of(request), hold))


@post("/api/holds/{hold_id:str}/extend", status_code=200, opt={"scope": "holds"}, summary="Extend a hold")
async def extend_hold(request: AnyRequest, hold_id: FromPath[str]) -> Data[HoldView]:
    """A new life for one's own hold, up to the policy's maximum from its creation."""
    hold = path_id("hold_id", hold_id)
    return Data(await services(request).holds.extend_hold(await call_of(request), hold))


@get("/api/holds", summary="The caller's live holds")
async def list_own_holds(
    request: AnyRequest,
    event_id: FromQuery[str | None] = None,
    cursor: FromQuery[str | None] = None,
    limit: Limit = 200,
) -> Page[HoldView]:
    """The caller's live holds."""
    event = None if event_id is None else path_id("event_id", event_id)
    after = None if cursor is None else path_id("cursor", cursor)
    page = await services(request).holds.list_own(await call_of(request), event, after, limit)
    return Page(page.holds, page.next_cursor)


@get("/api/events/{event_id:str}/holds", summary="An event's live holds")
async def list_event_holds(
    request: AnyRequest,
    event_id: FromPath[str],
    hold_type: FromQuery[str | None] = None,
    user_id: FromQuery[str | None] = None,
    zone: FromQuery[str | None] = None,
    expiring_within: Annotated[float | None, QueryParameter(ge=0, le=31_536_000, description="seconds")] = None,
    cursor: FromQuery[str | None] = None,
    limit: Limit = 200,
) -> Page[HoldView]:
    """An event's live holds, for its organiser."""
    event = path_id("event_id", event_id)
    chosen = HoldFilter(
        hold_type=hold_type,
        user_id=None if user_id is None else path_id("user_id", user_id),
        zone=zone,
        expiring_within_s=expiring_within,
    )
    after = None if cursor is None else path_id("cursor", cursor)
    page = await services(request).holds.list_of_event(await call_of(request), event, chosen, after, limit)
    return Page(page.holds, page.next_cursor)


@post(
    "/api/events/{event_id:str}/holds/release",
    status_code=200,
    opt={"scope": "holds"},
    request_max_body_size=BULK_BODY_BYTES,
)
async def release_many(request: AnyRequest, event_id: FromPath[str], data: JSONBody[ReleaseBody]) -> Data[Released]:
    """Release many holds of an event: those named, or those a filter finds. All of them, or none."""
    event = path_id("event_id", event_id)
    if (data.hold_ids is None) == (data.filter is None):
        raise InvalidRequest("Send either hold_ids or filter.", [Problem("", "invalid", "either hold_ids or filter")])
    ids = None if data.hold_ids is None else [body_id(f"/hold_ids/{n}", t) for n, t in enumerate(data.hold_ids)]
    chosen = None
    if data.filter is not None:
        wanted = data.filter
        chosen = HoldFilter(
            hold_type=wanted.hold_type,
            user_id=None if wanted.user_id is None else body_id("/filter/user_id", wanted.user_id),
            zone=wanted.zone,
            expiring_within_s=wanted.expiring_within_s,
        )
    return Data(await services(request).holds.release_many(await call_of(request), event, ids, chosen))


@post(
    "/api/events/{event_id:str}/holds/move",
    status_code=200,
    opt={"scope": "holds"},
    request_max_body_size=BULK_BODY_BYTES,
)
async def move_holds(request: AnyRequest, event_id: FromPath[str], data: JSONBody[MoveBody]) -> Data[Placement]:
    """Move holds to other seats of the event; owner, type and end stay. All of them, or none."""
    event = path_id("event_id", event_id)
    if not data.moves:
        raise InvalidRequest("Name at least one move.", [Problem("/moves", "missing", "name at least one move")])
    moves = [
        SeatMove(body_id(f"/moves/{n}/hold_id", m.hold_id), body_id(f"/moves/{n}/seat", m.seat))
        for n, m in enumerate(data.moves)
    ]
    return Data(await services(request).holds.move_holds(await call_of(request), event, moves))


ROUTES = [
    reserve_seat,
    hold_seats,
    release_hold,
    get_hold,
    extend_hold,
    list_own_holds,
    list_event_holds,
    release_many,
    move_holds,
]
