"""Live over HTTP: server-sent events, WebSocket, and the snapshot they continue from.

A stream of server-sent events is handed to its connection: from there on it costs no task, only the connection itself.
Where the server is not ours, and for WebSockets, a bounded queue stands between.
"""

import asyncio
from collections import deque
from typing import Any

from litestar import Request, WebSocket, get, websocket
from litestar.params import FromPath, FromQuery
from litestar.types import ASGIApp, ControllerRouterHandler, Receive, Scope, Send

from holdfast.accounts.principal import Call, Principal
from holdfast.http.api import SECURITY_HEADERS
from holdfast.http.auth import path_id, require_scope
from holdfast.http.live_connection import RETRY, LiveConnection
from holdfast.http.negotiation import BINARY, JSON, accepts_gzip, names_tag, prefers_binary
from holdfast.http.problem import problem_answer, request_id_of
from holdfast.http.services import SERVICES, Services, services
from holdfast.kernel.errors import EventNotAvailable, EventNotFound, Refusal, Unauthorized
from holdfast.live.codec import Frame
from holdfast.seating.event import EventStatus
from holdfast.seating.sight import may_see
from holdfast.seating.view import EventView

AnyRequest = Request[Any, Any, Any]
AnySocket = WebSocket[Any, Any, Any]

QUEUE_MAX = 256
STREAM_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    *SECURITY_HEADERS,
)


# Who may watch ----------------------------------------------------------------------------------------------------
async def viewer(connection: AnyRequest | AnySocket, access_token: str | None) -> Principal:
    """A browser's EventSource and WebSocket cannot send headers: their token may stand in the address instead."""
    found = _services(connection)
    headers = list(connection.scope["headers"])
    if access_token is not None:
        if any(name in (b"authorization", b"x-api-key") for name, _ in headers):
            raise Unauthorized("Send one credential: a header, or access_token.")
        headers.append((b"authorization", b"Bearer " + access_token.encode("latin-1", "replace")))
    principal = await found.authenticator.authenticate(headers, connection.scope, own_page=True)
    connection.scope["state"]["organization_id"] = principal.organization_id  # for the log
    require_scope(Call(principal=principal), "read")
    return principal


async def watched_event(found: Services, principal: Principal, event_id: str) -> EventView:
    """The event as this viewer may see it: one with an inventory, and a guest's own."""
    wanted = path_id("event_id", event_id)
    view = await found.catalogue.event(principal.organization_id, wanted)
    if view is None or not may_see(Call(principal=principal), view.id, view.status):
        raise EventNotFound
    if view.status is EventStatus.DRAFT:
        raise EventNotAvailable("The event has not been published yet.", current_status=view.status.value)
    return view


def _services(connection: AnyRequest | AnySocket) -> Services:
    found: Services = connection.scope[SERVICES]  # type: ignore[literal-required]
    return found


# Server-sent events -----------------------------------------------------------------------------------------------
class QueueSink:
    """A viewer behind a queue: what does not fit any more means that nobody reads."""

    def __init__(self) -> None:
        self._frames: deque[Frame] = deque()
        self._there = asyncio.Event()
        self.closed = False

    def write(self, frame: Frame) -> bool:
        if self.closed or len(self._frames) >= QUEUE_MAX:
            return False
        self._frames.append(frame)
        self._there.set()
        return True

    def close(self) -> None:
        self.closed = True
        self._there.set()

    async def next(self) -> Frame | None:
        """None: it is over."""
        while not self._frames:
            if self.closed:
                return None
            self._there.clear()
            await self._there.wait()
        return self._frames.popleft()


def stream(found: Services, view: EventView, last_id: str | None) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        connection = scope.get("holdfast.connection")
        if isinstance(connection, LiveConnection):
            await found.live.make_ready(view)  # whatever can be refused is refused before the stream begins
            sink = connection.begin_stream(_head(scope), found.settings.live_buffer_bytes)
            sink.on_close = lambda: found.live.leave(view, sink)
            try:
                await found.live.join(view, sink, last_id)
            except Exception:
                sink.close()
                raise
        else:
            await _stream_through(found, view, last_id, receive, send)

    return app


def _head(scope: Scope) -> list[tuple[bytes, bytes]]:
    return [*STREAM_HEADERS, (b"x-request-id", (request_id_of(scope) or "").encode())]


async def _stream_through(found: Services, view: EventView, last_id: str | None, receive: Receive, send: Send) -> None:
    sink = QueueSink()
    await found.live.join(view, sink, last_id)
    gone = asyncio.create_task(_until_gone(receive, sink))
    try:
        await send({"type": "http.response.start", "status": 200, "headers": list(STREAM_HEADERS)})
        await send({"type": "http.response.body", "body": RETRY, "more_body": True})
        while (frame := await sink.next()) is not None:
            await send({"type": "http.response.body", "body": frame.sse, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
    finally:
        gone.cancel()
        found.live.leave(view, sink)


async def _until_gone(receive: Receive, sink: QueueSink) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    sink.close()


@get("/api/events/{event_id:str}/live", summary="Watch an event's seats", media_type="text/event-stream")
async def live(
    request: AnyRequest,
    event_id: FromPath[str],
    access_token: FromQuery[str | None] = None,
    last_event_id: FromQuery[str | None] = None,
) -> ASGIApp:
    """Server-sent events: `seats` (what changed), `occupancy`, `notice` (the event itself), `resync` (load the snapshot
    again). `Last-Event-ID`, or last_event_id, resumes without a gap."""
    found = services(request)
    view = await watched_event(found, await viewer(request, access_token), event_id)
    return stream(found, view, request.headers.get("last-event-id") or last_event_id)


# WebSocket --------------------------------------------------------------------------------------------------------
@websocket("/api/events/{event_id:str}/ws")
async def live_socket(
    socket: AnySocket,
    event_id: FromPath[str],
    access_token: FromQuery[str | None] = None,
    last_event_id: FromQuery[str | None] = None,
) -> None:
    """The same messages as text frames of JSON. A refusal is sent as a problem document, then the socket is closed."""
    found = _services(socket)
    await socket.accept()
    sink = QueueSink()
    try:
        view = await watched_event(found, await viewer(socket, access_token), event_id)
        await found.live.join(view, sink, last_event_id)
    except Refusal as refusal:
        status, _, body = problem_answer(refusal, request_id_of(socket.scope))
        await socket.send_text(body.decode())
        await socket.close(4000 + status, refusal.code)
        return
    gone = asyncio.create_task(_until_left(socket, sink))
    try:
        while (frame := await sink.next()) is not None:
            await socket.send_text(frame.text.decode())
    finally:
        gone.cancel()
        found.live.leave(view, sink)


async def _until_left(socket: AnySocket, sink: QueueSink) -> None:
    """What a viewer sends is not heard; that it left is."""
    try:
        while (await socket.receive())["type"] != "websocket.disconnect":
            pass
    finally:
        sink.close()


# The snapshot -----------------------------------------------------------------------------------------------------
@get("/api/events/{event_id:str}/availability", summary="The state of every seat")
async def availability(
    request: AnyRequest, event_id: FromPath[str], access_token: FromQuery[str | None] = None
) -> ASGIApp:
    """JSON, or with `Accept: application/octet-stream` one byte a seat. `sequence` is what the live stream resumes from."""
    found = services(request)
    view = await watched_event(found, await viewer(request, access_token), event_id)
    taken = await found.availability.snapshot(view)
    binary = prefers_binary(request.headers.get("accept", ""))
    body = taken.binary if binary else taken.json
    tag = f'"{taken.tag}-{"b" if binary else "j"}"'
    headers = [
        (b"etag", b"W/" + tag.encode()),
        (b"cache-control", b"private, no-cache"),
        (b"vary", b"accept, accept-encoding, authorization, x-api-key, cookie"),
    ]
    if names_tag(request.headers.get("if-none-match", ""), tag):
        return _bytes(304, headers, b"")
    headers.append((b"content-type", (BINARY if binary else JSON).encode()))
    if accepts_gzip(request.headers.get("accept-encoding", "")):
        return _bytes(200, [*headers, (b"content-encoding", b"gzip")], body.gzipped)
    return _bytes(200, headers, body.plain)


def _bytes(status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> ASGIApp:
    length = [(b"content-length", str(len(body)).encode())] if status != 304 else []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": [*headers, *length]})
        await send({"type": "http.response.body", "body": body, "more_body": False})

    return app


ROUTES: list[ControllerRouterHandler] = [live, live_socket, availability]
