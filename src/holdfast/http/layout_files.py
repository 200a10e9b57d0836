"""Layouts as files over HTTP: import, export, a check that stores nothing, and pictures."""

import asyncio
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from litestar import Request, Response, get, post
from litestar.params import FromPath, FromQuery, QueryParameter
from litestar.types import ControllerRouterHandler

from holdfast.compat.layout_file import LayoutFormat, Note
from holdfast.compat.layout_formats import ENDINGS, MEDIA_TYPES
from holdfast.http.auth import call_of, path_id
from holdfast.http.envelope import Data
from holdfast.http.seating import LARGE_WRITES
from holdfast.http.services import services
from holdfast.seating.files_service import ExportedFile, FileCheck, ImportedLayout, LayoutFiles
from holdfast.seating.picture import By, Scene, draw_svg

AnyRequest = Request[Any, Any, Any]
Format = Annotated[
    LayoutFormat | None,
    QueryParameter(description="native, csv, pretix or svg. Left out: by what the file begins with."),
]
Version = Annotated[int | None, QueryParameter(ge=1, le=2**31 - 1, description="The latest where left out.")]

SVG = "image/svg+xml"
NOTES = "X-Layout-Notes"
"""How many notes there are; `?notes=true` lists them."""


class ExportNotes(msgspec.Struct, frozen=True):
    format: LayoutFormat
    version: int
    bytes: int
    notes: tuple[Note, ...]


@post("/api/venues/{venue_id:str}/layouts/import", opt=LARGE_WRITES, summary="Add a layout out of a file")
async def import_layout(
    request: AnyRequest, venue_id: FromPath[str], format: Format = None, name: FromQuery[str | None] = None
) -> Data[ImportedLayout]:
    """The body is the file. Every problem is listed with its place in the file; `notes` say what was assumed."""
    venue = path_id("venue_id", venue_id)
    await _authenticate(request)
    call = await call_of(request)
    return Data(await _files(request).import_layout(call, venue, name, format, await request.body()))


@post("/api/layouts/{layout_id:str}/versions/import", opt=LARGE_WRITES, summary="Add a layout's version out of a file")
async def import_version(request: AnyRequest, layout_id: FromPath[str], format: Format = None) -> Data[ImportedLayout]:
    layout = path_id("layout_id", layout_id)
    await _authenticate(request)
    call = await call_of(request)
    return Data(await _files(request).import_version(call, layout, format, await request.body()))


@post("/api/layouts/check", opt=LARGE_WRITES, status_code=200, summary="Check a layout's file without storing it")
async def check_layout(request: AnyRequest, format: Format = None) -> Data[FileCheck]:
    await _authenticate(request)
    call = await call_of(request)
    return Data(await _files(request).check(call, format, await request.body()))


@get("/api/layouts/{layout_id:str}/export", summary="A layout as a file")
async def export_layout(
    request: AnyRequest,
    layout_id: FromPath[str],
    format: Format = None,
    version: Version = None,
    notes: FromQuery[bool] = False,
) -> Response[Any]:
    """`?notes=true` answers with what the format cannot carry instead of the file."""
    layout = path_id("layout_id", layout_id)
    call = await call_of(request)
    made = await _files(request).export(call, layout, version, format or LayoutFormat.NATIVE)
    if notes:
        return Response(Data(ExportNotes(made.format, made.version, len(made.content), made.notes)))
    headers = {"Content-Disposition": _disposition(made), NOTES: str(len(made.notes))}
    return Response(made.content, media_type=MEDIA_TYPES[made.format], headers=headers)


@get("/api/layouts/{layout_id:str}/picture.svg", summary="A picture of a layout", media_type=SVG)
async def layout_picture(
    request: AnyRequest, layout_id: FromPath[str], version: Version = None, by: FromQuery[By] = By.CATEGORY
) -> Response[bytes]:
    """`by` says what the colours mean: category or zone."""
    layout = path_id("layout_id", layout_id)
    call = await call_of(request)
    return await _drawn(await _files(request).layout_scene(call, layout, version, by))


@get("/api/events/{event_id:str}/picture.svg", summary="A picture of how an event's seats stand", media_type=SVG)
async def event_picture(request: AnyRequest, event_id: FromPath[str], by: FromQuery[By] = By.STATE) -> Response[bytes]:
    """For staff. `by` says what the colours mean: state, hold_type, zone or category."""
    event = path_id("event_id", event_id)
    call = await call_of(request)
    return await _drawn(await _files(request).event_scene(call, event, by))


ROUTES: list[ControllerRouterHandler] = [
    import_layout,
    import_version,
    check_layout,
    export_layout,
    layout_picture,
    event_picture,
]


def _files(request: AnyRequest) -> LayoutFiles:
    return services(request).layout_files


async def _authenticate(request: AnyRequest) -> None:
    """Before the body is read: only from somebody we know do we take tens of megabytes."""
    await services(request).authenticator.authenticate(request.scope["headers"], request.scope)


async def _drawn(scene: Scene) -> Response[bytes]:
    return Response(await asyncio.to_thread(draw_svg, scene), media_type=SVG)


def _disposition(made: ExportedFile) -> str:
    name = f"{made.name}-v{made.version}{ENDINGS[made.format]}"
    plain = "".join(char if char.isascii() and (char.isalnum() or char in " ._-") else "_" for char in name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
