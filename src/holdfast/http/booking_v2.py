"""Booking v2 over HTTP, as its clients know it: bare `true` or `false`, codes in capitals."""

from typing import Any

from litestar import Request, get, post
from litestar.params import FromQuery, JSONBody

from holdfast.accounts.principal import Call
from holdfast.compat.booking_v2 import EventArchived, EventNotPublished, InventoryState, StateSelection
from holdfast.http.auth import call_of, path_id
from holdfast.http.problem import STATUSES
from holdfast.http.services import services
from holdfast.kernel.errors import Forbidden, Unauthorized

AnyRequest = Request[Any, Any, Any]
BASE = "/api/private/v2.0/booking"
SCOPE = {"scope": "booking"}
BULK_BODY_BYTES = 2 * 1024 * 1024

# This API alone has these two answers.
STATUSES.update({EventArchived: 410, EventNotPublished: 422})


async def _call(request: AnyRequest) -> Call:
    """With an API key. A wrong one is 403 here, as the clients of this API expect; none at all is 401."""
    try:
        call = await call_of(request)
    except Unauthorized as error:
        if "x-api-key" in request.headers:
            raise Forbidden("The API key is not valid.") from error
        raise
    if call.principal.user_id is not None:
        raise Forbidden("This API is called with an API key.")
    return call


@post(
    f"{BASE}/lock", status_code=200, opt=SCOPE, request_max_body_size=BULK_BODY_BYTES, summary="Lock: ACTIVE to LOCKED"
)
async def lock(request: AnyRequest, eventId: FromQuery[str], data: JSONBody[StateSelection]) -> bool:
    """ACTIVE → LOCKED for the session."""
    event = path_id("eventId", eventId)
    return await services(request).booking.lock(await _call(request), event, data)


@post(
    f"{BASE}/unlock",
    status_code=200,
    opt=SCOPE,
    request_max_body_size=BULK_BODY_BYTES,
    summary="Unlock: LOCKED to ACTIVE",
)
async def unlock(request: AnyRequest, eventId: FromQuery[str], data: JSONBody[StateSelection]) -> bool:
    """LOCKED → ACTIVE, by the session that locked."""
    event = path_id("eventId", eventId)
    return await services(request).booking.unlock(await _call(request), event, data)


@post(f"{BASE}/sale", status_code=200, opt=SCOPE, request_max_body_size=BULK_BODY_BYTES, summary="Sell: LOCKED to SOLD")
async def sale(request: AnyRequest, eventId: FromQuery[str], data: JSONBody[StateSelection]) -> bool:
    """LOCKED → SOLD, by the session that locked."""
    event = path_id("eventId", eventId)
    return await services(request).booking.sale(await _call(request), event, data)


@post(
    f"{BASE}/directsale",
    status_code=200,
    opt=SCOPE,
    request_max_body_size=BULK_BODY_BYTES,
    summary="Sell directly: ACTIVE to SOLD",
)
async def direct_sale(request: AnyRequest, eventId: FromQuery[str], data: JSONBody[StateSelection]) -> bool:
    """ACTIVE → SOLD, without a lock between."""
    event = path_id("eventId", eventId)
    return await services(request).booking.direct_sale(await _call(request), event, data)


@post(
    f"{BASE}/revertsale",
    status_code=200,
    opt=SCOPE,
    request_max_body_size=BULK_BODY_BYTES,
    summary="Revert a sale: SOLD to ACTIVE",
)
async def revert_sale(request: AnyRequest, eventId: FromQuery[str], data: JSONBody[StateSelection]) -> bool:
    """SOLD → ACTIVE."""
    event = path_id("eventId", eventId)
    return await services(request).booking.revert_sale(await _call(request), event, data)


@get(f"{BASE}/state", opt=SCOPE, summary="State of every seat and group")
async def state(request: AnyRequest, eventId: FromQuery[str]) -> InventoryState:
    """Every seat and group of the event, with the integers that name them in the other calls."""
    event = path_id("eventId", eventId)
    return await services(request).booking.state(await _call(request), event)


ROUTES = [lock, unlock, sale, direct_sale, revert_sale, state]
