"""Checkouts over HTTP: opening, changing, keeping alive, cancelling, reading. Paying is in payments.py."""

from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from litestar import Request, Response, delete, get, post
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from litestar.types import ControllerRouterHandler

from holdfast.checkout.answers import CheckoutView
from holdfast.checkout.checkout import CheckoutStatus
from holdfast.http.auth import call_of, cursor_id, path_id
from holdfast.http.envelope import Data, Page
from holdfast.http.services import services
from holdfast.kernel.errors import InvalidRequest
from holdfast.kernel.ids import parse_id
from holdfast.kernel.problems import Problems

AnyRequest = Request[Any, Any, Any]
WRITES = {"scope": "checkout"}
HOLDS_MAX = 10_000
BULK_BODY_BYTES = 2 * 1024 * 1024
Limit = Annotated[int, QueryParameter(ge=1, le=200, description="Rows in one answer")]
Cursor = Annotated[str | None, QueryParameter(description="The next_cursor of the part before.")]


class OpenBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    hold_ids: list[str] | None = None
    source: Literal["web", "scanner", "api", "box_office"] | None = None


class AddBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    hold_ids: list[str]


def _hold_ids(texts: list[str]) -> list[UUID]:
    problems = Problems()
    found: dict[UUID, int] = {}
    if not texts:
        problems.add("/hold_ids", "missing", "name at least one hold")
    if len(texts) > HOLDS_MAX:
        problems.add("/hold_ids", "too_many", f"name at most {HOLDS_MAX} holds")
    for n, text in enumerate(texts[:HOLDS_MAX]):
        hold_id = parse_id(text)
        if hold_id is None:
            problems.add(f"/hold_ids/{n}", "not_an_id", "must be a UUID")
        elif hold_id in found:
            problems.add(f"/hold_ids/{n}", "duplicate", "this hold is named twice")
        else:
            found[hold_id] = n
    if problems:
        listed = problems.listed()
        raise InvalidRequest("; ".join(f"{p.pointer}: {p.detail}" for p in listed[:10]), list(listed))
    return list(found)


@post(
    "/api/events/{event_id:str}/checkouts",
    status_code=201,
    opt=WRITES,
    request_max_body_size=BULK_BODY_BYTES,
    summary="Take holds into a checkout",
)
async def open_checkout(
    request: AnyRequest, event_id: FromPath[str], data: JSONBody[OpenBody | None] = None
) -> Response[Data[CheckoutView]]:
    """The caller's live holds in the event, or those listed, into one session: from now on they all end with it. Asked again
    for what is in an open checkout already, it answers 200 with that one."""
    event = path_id("event_id", event_id)
    wanted = data or OpenBody()
    hold_ids = None if wanted.hold_ids is None else _hold_ids(wanted.hold_ids)
    call = await call_of(request)
    source = wanted.source or ("api" if call.principal.user_id is None else "web")
    opened = await services(request).checkouts.open(call, event, hold_ids, source)
    return Response(Data(opened.checkout), status_code=201 if opened.created else 200)


@post(
    "/api/checkouts/{checkout_id:str}/holds",
    status_code=200,
    opt=WRITES,
    request_max_body_size=BULK_BODY_BYTES,
    summary="Add holds to a checkout",
)
async def add_holds(request: AnyRequest, checkout_id: FromPath[str], data: JSONBody[AddBody]) -> Data[CheckoutView]:
    """All of them, or none. They end with the session, and cost what the event's price list says now."""
    checkout = path_id("checkout_id", checkout_id)
    hold_ids = _hold_ids(data.hold_ids)
    return Data(await services(request).checkouts.add(await call_of(request), checkout, hold_ids))


@delete(
    "/api/checkouts/{checkout_id:str}/holds/{hold_id:str}",
    status_code=200,
    opt=WRITES,
    summary="Drop a hold from a checkout",
)
async def drop_hold(request: AnyRequest, checkout_id: FromPath[str], hold_id: FromPath[str]) -> Data[CheckoutView]:
    """Gives the hold back. Repeating it changes nothing."""
    checkout, hold = path_id("checkout_id", checkout_id), path_id("hold_id", hold_id)
    return Data(await services(request).checkouts.drop(await call_of(request), checkout, hold))


@post(
    "/api/checkouts/{checkout_id:str}/heartbeat", status_code=200, opt=WRITES, summary="Keep a checkout's holds alive"
)
async def heartbeat(request: AnyRequest, checkout_id: FromPath[str]) -> Data[CheckoutView]:
    """For sessions with heartbeats: their living holds last a while longer, never past the session's end. In any other
    session nothing changes."""
    checkout = path_id("checkout_id", checkout_id)
    return Data(await services(request).checkouts.heartbeat(await call_of(request), checkout))


@post("/api/checkouts/{checkout_id:str}/cancel", status_code=200, opt=WRITES, summary="Cancel a checkout")
async def cancel_checkout(request: AnyRequest, checkout_id: FromPath[str]) -> Data[CheckoutView]:
    """Gives its holds back. Repeating it changes nothing."""
    checkout = path_id("checkout_id", checkout_id)
    return Data(await services(request).checkouts.cancel(await call_of(request), checkout))


@get("/api/checkouts/{checkout_id:str}", summary="A checkout")
async def get_checkout(request: AnyRequest, checkout_id: FromPath[str]) -> Data[CheckoutView]:
    """For its owner and for staff."""
    checkout = path_id("checkout_id", checkout_id)
    return Data(await services(request).checkouts.get(await call_of(request), checkout))


@get("/api/checkouts", summary="The caller's checkouts, newest first")
async def list_own_checkouts(request: AnyRequest, cursor: Cursor = None, limit: Limit = 50) -> Page[CheckoutView]:
    before = cursor_id(cursor)
    page = await services(request).checkouts.list_own(await call_of(request), before, limit)
    return Page(page.checkouts, page.next_cursor)


@get("/api/events/{event_id:str}/checkouts", summary="An event's checkouts, newest first")
async def list_event_checkouts(
    request: AnyRequest,
    event_id: FromPath[str],
    status: FromQuery[CheckoutStatus | None] = None,
    refund_due: FromQuery[bool | None] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[CheckoutView]:
    """For organisers. `status=expired` finds every session that is over, `refund_due=true` those whose money bought
    nothing."""
    event = path_id("event_id", event_id)
    before = cursor_id(cursor)
    call = await call_of(request)
    page = await services(request).checkouts.list_of_event(call, event, status, refund_due, before, limit)
    return Page(page.checkouts, page.next_cursor)


ROUTES: list[ControllerRouterHandler] = [
    open_checkout,
    list_event_checkouts,
    list_own_checkouts,
    get_checkout,
    add_holds,
    drop_hold,
    heartbeat,
    cancel_checkout,
]
