"""Series of events, and what places of an event cost: parse, call the service, render."""

from typing import Any

from litestar import Request, get, patch, post
from litestar.params import FromPath, JSONBody
from litestar.types import ControllerRouterHandler

from holdfast.http.auth import call_of, path_id
from holdfast.http.envelope import Data, Page
from holdfast.http.seating import BULK_BODY_BYTES, WRITES, Cursor, Limit, id_cursor, page_of, sound
from holdfast.http.services import services
from holdfast.seating.answers import PricesAnswer, SeriesAnswer

AnyRequest = Request[Any, Any, Any]


@post("/api/series", opt=WRITES, request_max_body_size=BULK_BODY_BYTES, summary="Add a series of events")
async def create_series(request: AnyRequest, data: JSONBody[dict[str, Any]]) -> Data[SeriesAnswer]:
    """`name`, `layout_id` (and `layout_version`; else the latest), and what its events have in common: `currency`, `prices`,
    `overrides`, `blocked_seat_ids`, `disabled_zones`, `zone_overrides`, `pricing_zones`."""
    call = await call_of(request)
    return Data(await sound(services(request).series.create_series(call, data), "series"))


@get("/api/series", summary="List series, newest first")
async def list_series(request: AnyRequest, cursor: Cursor = None, limit: Limit = 200) -> Page[SeriesAnswer]:
    call = await call_of(request)
    return page_of(await services(request).series.list_series(call, id_cursor(cursor), limit))


@get("/api/series/{series_id:str}", summary="A series with its events")
async def get_series(request: AnyRequest, series_id: FromPath[str]) -> Data[SeriesAnswer]:
    series = path_id("series_id", series_id)
    call = await call_of(request)
    return Data(await services(request).series.get_series(call, series))


@patch(
    "/api/series/{series_id:str}",
    opt=WRITES,
    request_max_body_size=BULK_BODY_BYTES,
    summary="Change a series and all of its events that are not over",
)
async def patch_series(
    request: AnyRequest, series_id: FromPath[str], data: JSONBody[dict[str, Any]]
) -> Data[SeriesAnswer]:
    """All of them or none: a seat sold in one of them refuses the whole change, and is named."""
    series = path_id("series_id", series_id)
    call = await call_of(request)
    return Data(await sound(services(request).series.patch_series(call, series, data), "series"))


@get("/api/events/{event_id:str}/prices", summary="What places of an event cost")
async def get_prices(request: AnyRequest, event_id: FromPath[str]) -> Data[PricesAnswer]:
    """By zone and category, in minor units; then the pricing zones, whose seats cost what is said there."""
    event = path_id("event_id", event_id)
    call = await call_of(request)
    return Data(await services(request).seating.get_prices(call, event))


ROUTES: list[ControllerRouterHandler] = [create_series, list_series, get_series, patch_series, get_prices]
