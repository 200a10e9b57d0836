"""Blocking counted places by hand: parse, call the service, render."""

from typing import Any

import msgspec
from litestar import Request, post
from litestar.params import FromPath, JSONBody
from litestar.types import ControllerRouterHandler

from holdfast.http.auth import call_of, path_id
from holdfast.http.envelope import Data
from holdfast.http.seating import REASON_CHARS, WRITES, check_text
from holdfast.http.services import services
from holdfast.seating.answers import PlacesAnswer

AnyRequest = Request[Any, Any, Any]


class BlockPlacesBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    quantity: int
    reason: str


class UnblockPlacesBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    quantity: int
    reason: str | None = None


@post(
    "/api/events/{event_id:str}/zones/{zone:str}/block",
    opt=WRITES,
    status_code=200,
    summary="Take free places out of a general-admission zone",
)
async def block_places(
    request: AnyRequest, event_id: FromPath[str], zone: FromPath[str], data: JSONBody[BlockPlacesBody]
) -> Data[PlacesAnswer]:
    """`zone` is its zone_id or its id. All of the quantity or none."""
    event = path_id("event_id", event_id)
    call = await call_of(request)
    check_text("reason", data.reason, REASON_CHARS)
    return Data(await services(request).places.block_places(call, event, zone, data.quantity, data.reason))


@post(
    "/api/events/{event_id:str}/zones/{zone:str}/unblock",
    opt=WRITES,
    status_code=200,
    summary="Offer places of a general-admission zone again",
)
async def unblock_places(
    request: AnyRequest, event_id: FromPath[str], zone: FromPath[str], data: JSONBody[UnblockPlacesBody]
) -> Data[PlacesAnswer]:
    event = path_id("event_id", event_id)
    call = await call_of(request)
    if data.reason is not None:
        check_text("reason", data.reason, REASON_CHARS)
    return Data(await services(request).places.unblock_places(call, event, zone, data.quantity, data.reason))


ROUTES: list[ControllerRouterHandler] = [block_places, unblock_places]
