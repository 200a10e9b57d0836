"""A layout's geometry over HTTP: immutable at the address that names its version, so that it is loaded once."""

from typing import Any

from litestar import Request, Response, get
from litestar.params import FromPath, FromQuery
from litestar.types import ControllerRouterHandler

from holdfast.http.auth import call_of, path_id
from holdfast.http.envelope import Data
from holdfast.http.negotiation import BINARY, JSON, accepts_gzip, names_tag, prefers_binary
from holdfast.http.services import services
from holdfast.live.geometry_service import Form, HoldTypeShown

AnyRequest = Request[Any, Any, Any]

FOREVER = "private, max-age=31536000, immutable"
VARY = "Accept, Accept-Encoding, Authorization, X-API-Key, Cookie"


@get(
    "/api/events/{event_id:str}/geometry",
    summary="Where the event's seats are and what they are called",
    media_type=JSON,
)
async def geometry(
    request: AnyRequest, event_id: FromPath[str], version: FromQuery[str | None] = None
) -> Response[bytes | None]:
    """Without `version`, or with another than the event's, answers 307 to the address of the right one, which never
    changes. `Accept: application/octet-stream` gets the compact form, anything else JSON of the same content."""
    event = path_id("event_id", event_id)
    call = await call_of(request)
    found = services(request).geometry
    known = await found.of_event(call, event)
    if version != known.version:
        return Response(
            None, status_code=307, headers={"Location": f"/api/events/{event}/geometry?version={known.version}"}
        )
    form = Form.BINARY if prefers_binary(request.headers.get("accept", "")) else Form.JSON
    gzipped = accepts_gzip(request.headers.get("accept-encoding", ""))
    tag = f'"{known.version}-{form}{"-gz" if gzipped else ""}"'
    headers = {"ETag": tag, "Cache-Control": FOREVER, "Vary": VARY}
    if names_tag(request.headers.get("if-none-match", ""), tag):
        return Response(None, status_code=304, headers=headers)
    if gzipped:
        headers["Content-Encoding"] = "gzip"
    body = await found.body(known, form, gzipped=gzipped)
    return Response(body, media_type=BINARY if form is Form.BINARY else JSON, headers=headers)


@get("/api/events/{event_id:str}/hold-types", summary="How hold types are shown on the map")
async def hold_types(request: AnyRequest, event_id: FromPath[str]) -> Data[list[HoldTypeShown]]:
    """Name, colour and icon of each. The notice `EventHoldTypesChanged` of the live feed says when to ask again."""
    event = path_id("event_id", event_id)
    call = await call_of(request)
    return Data(await services(request).geometry.hold_types(call, event))


ROUTES: list[ControllerRouterHandler] = [geometry, hold_types]
