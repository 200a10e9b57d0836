"""Reserving a seat straight from the connection: the one route that thousands press in the same second.

A connection of this server parses with the same parser as ever. Where a request is a plain reserve (a credential verified
a moment ago, an event in memory, nothing that needs a wait before the writer), it is planned at once, handed to the
batching writer, and answered with one write when its batch comes back: no task, no framework, no second system call.
Anything else about the route goes the ordinary way through the framework, which is what decides in every doubtful case.
Measured against the ordinary way in docs/decisions/0006.
"""

from functools import lru_cache
from http import HTTPStatus
from typing import Any, ClassVar, Final
from uuid import UUID

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from holdfast.accounts.principal import Call, Principal
from holdfast.holds.claims import Held, taken_seat
from holdfast.holds.lifetime import NATIVE_RESERVE_TTL_S
from holdfast.holds.plan import HoldsAsked
from holdfast.http.api import SECURITY_HEADERS
from holdfast.http.auth import client_ip, user_agent_text
from holdfast.http.envelope import Data
from holdfast.http.live_connection import LiveConnection
from holdfast.http.problem import chosen_request_id, problem_answer
from holdfast.http.reserve import parse_reserve, reserved_now
from holdfast.http.services import Services
from holdfast.kernel.errors import Refusal
from holdfast.kernel.ids import parse_id
from holdfast.seating.view import EventView

PREFIX: Final = b"/api/events/"
MIDDLE: Final = b"/seats/"
SUFFIX: Final = b"/reserve"
_ID: Final = 36
_EVENT: Final = slice(len(PREFIX), len(PREFIX) + _ID)
_MIDDLE: Final = slice(_EVENT.stop, _EVENT.stop + len(MIDDLE))
_SEAT: Final = slice(_MIDDLE.stop, _MIDDLE.stop + _ID)
_LENGTH: Final = _SEAT.stop + len(SUFFIX)
BODY_LIMIT: Final = 4096
START: Final = b"POST " + PREFIX
VERSION: Final = b" HTTP/1.1\r\n"
_URL: Final = slice(len(b"POST "), len(b"POST ") + _LENGTH)
_VERSION: Final = slice(_URL.stop, _URL.stop + len(VERSION))
_REST: Final = slice(_VERSION.stop, None)
REST_LIMIT: Final = 4096
RESTS_MAX: Final = 20_000

# Headers that ask for more than the short way does.
# (An API key, with its scopes, is one of them: only people's tokens come this way.)
_SLOW_HEADERS: Final = frozenset((b"idempotency-key", b"x-api-key", b"expect", b"upgrade", b"transfer-encoding"))

_encoder = msgspec.json.Encoder()
_STATUS: Final = {s.value: f"HTTP/1.1 {s.value} {s.phrase}\r\n".encode() for s in HTTPStatus}


def _lines(headers: Any) -> bytes:
    return b"".join(b"%b: %b\r\n" % (name, value) for name, value in headers)


_FIXED: Final = _lines(((b"content-type", b"application/json"), (b"cache-control", b"no-store"), *SECURITY_HEADERS))
_SECURITY: Final = _lines(SECURITY_HEADERS)


_BUSY: Final = float("inf")


class _NoEvent:
    """Stands where the parent signals a waiting ASGI task; nobody waits here."""

    def set(self) -> None:
        pass


class _KnownRest:
    """What follows the request line, as one connection or another has sent it before: its parsed form.

    The same bytes mean the same whoever sends them, so they are parsed once. Only whole requests are kept: headers and
    body, with nothing before or behind them.
    """

    __slots__ = ("body", "headers", "keep_alive", "known")

    def __init__(
        self, headers: list[tuple[bytes, bytes]], known: dict[bytes, bytes], body: bytes, keep_alive: bool
    ) -> None:
        self.headers = headers
        self.known = known
        self.body = body
        self.keep_alive = keep_alive


class _ShortCycle:
    """A request on the short way, as far as the parent looks at it."""

    __slots__ = ("body", "disconnected", "keep_alive", "message_event", "more_body", "response_complete")

    def __init__(self, keep_alive: bool, body: bytes = b"") -> None:
        self.body = bytearray(body)
        self.more_body = True
        self.disconnected = False
        self.response_complete = False
        self.keep_alive = keep_alive
        self.message_event = _NoEvent()


@lru_cache(maxsize=65_536)
def _ids_of(url: bytes) -> tuple[UUID, UUID] | None:
    """Event and seat."""
    event_id, seat_id = parse_id(url[_EVENT].decode("latin-1")), parse_id(url[_SEAT].decode("latin-1"))
    return None if event_id is None or seat_id is None else (event_id, seat_id)


@lru_cache(maxsize=20_000)
def _refusal_lines(seat_id: bytes, state: str, expires_in: int | None) -> tuple[bytes, bytes]:
    """What comes before the request's own headers, and what comes behind them. A thousand buyers who want one seat in one
    second are told the same."""
    refusal = taken_seat(0, state, expires_in)
    facts = {**refusal.facts, "seat_id": str(UUID(bytes=seat_id))}
    del facts["ordinal"]
    status, headers, body = problem_answer(type(refusal)(refusal.detail, **facts))
    return b"%b%b%bcontent-length: %d\r\n" % (
        _STATUS[status],
        _lines(headers),
        _SECURITY,
        len(body),
    ), b"\r\n\r\n" + body


def _asks_plainly(body: bytearray) -> bool:
    """Without a hold type of its own, which would have to be looked up first."""
    try:
        return not body or body == b"{}" or parse_reserve(bytes(body)).hold_type is None
    except Refusal:
        return False


def reserve_protocol(services: Services) -> type[HttpToolsProtocol]:
    """The connection class to give to the server."""

    class ReserveProtocol(_ReserveProtocol):
        _services = services
        _rests: ClassVar[dict[bytes, _KnownRest]] = {}

    return ReserveProtocol


class _ReserveProtocol(LiveConnection):
    _services: Services
    _rests: ClassVar[dict[bytes, _KnownRest]]
    """Of all connections of the process."""
    _rest: bytes | None = None
    _between = True
    """No request has begun that the parser has not seen the end of."""
    _defaults: list[tuple[bytes, bytes]] | None = None
    _default_bytes = b""

    # Idle connections are closed by one timer each that looks, when it rings, whether there was anything in between.
    # The parent makes and cancels a timer for every request.
    _idle_from = _BUSY

    def _unset_keepalive_if_required(self) -> None:
        self._idle_from = _BUSY

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
            return
        self._idle_from = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._look_again_in(self.timeout_keep_alive)

    def _look_again_in(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        self.timeout_keep_alive_task = None
        if self.transport.is_closing():
            return
        left_s = self._idle_from + self.timeout_keep_alive - self.loop.time()
        if left_s > 0.001:
            self._look_again_in(min(left_s, self.timeout_keep_alive))
        else:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None

    def data_received(self, data: bytes) -> None:
        if self._between and data.startswith(START) and self._stream is None:
            if self._is_known(data):
                return
            self._rest = data[_REST.start :] if len(data) < REST_LIMIT else None
        else:
            self._rest = None
        super().data_received(data)

    def _is_known(self, data: bytes) -> bool:
        """A whole request whose headers and body were parsed before: on its way without the parser."""
        rest = self._rests.get(data[_REST])
        if rest is None or data[_VERSION] != VERSION or not (self.cycle is None or self.cycle.response_complete):
            return False
        url = data[_URL]
        if url[_MIDDLE] != MIDDLE or url[_SEAT.stop :] != SUFFIX:
            return False
        cycle = _ShortCycle(rest.keep_alive, rest.body)
        before = self.cycle
        self.cycle = cycle  # type: ignore[assignment]
        self.url, self.headers = url, rest.headers
        self._unset_keepalive_if_required()
        try:
            if self._reserve(cycle, rest.known):
                return True
        except Exception as error:
            self._answer_problem(cycle, error, None)
            return True
        self.cycle = before
        return False

    def _learn_rest(self, cycle: _ShortCycle, known: dict[bytes, bytes]) -> None:
        """After a request went the short way: the next with the same headers and body need not be parsed."""
        rest, self._rest = self._rest, None
        if rest is None or len(rest) - rest.find(b"\r\n\r\n") - 4 != len(cycle.body):
            return
        rests = self._rests
        if len(rests) >= RESTS_MAX:
            rests.clear()
        rests[rest] = _KnownRest(self.headers, known, bytes(cycle.body), cycle.keep_alive)

    def on_message_begin(self) -> None:
        self._between = False
        self.url = b""
        self.headers = []
        self.expect_100_continue = False
        self.scope = None  # type: ignore[assignment]  # made when the ordinary way needs it

    def _ordinary_headers_complete(self) -> None:
        url, headers, expected = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.scope["holdfast.connection"] = self  # type: ignore[typeddict-unknown-key]  # for a request that becomes a stream
        self.url, self.expect_100_continue = url, expected
        self.headers.extend(headers)  # the list that the new scope holds
        super().on_headers_complete()

    def on_headers_complete(self) -> None:
        url = self.url
        if (
            len(url) == _LENGTH
            and url[_SEAT.stop :] == SUFFIX
            and url.startswith(PREFIX)
            and url[_MIDDLE] == MIDDLE
            and self.parser.get_method() == b"POST"
            and (self.cycle is None or self.cycle.response_complete)
            and not self.parser.should_upgrade()
        ):
            keep_alive = self.parser.get_http_version() != "1.0" and self.parser.should_keep_alive()
            self.cycle = _ShortCycle(keep_alive)  # type: ignore[assignment]
            return
        self._ordinary_headers_complete()

    def on_body(self, body: bytes) -> None:
        cycle: Any = self.cycle
        if type(cycle) is not _ShortCycle:
            super().on_body(body)
            return
        cycle.body += body
        if len(cycle.body) > BODY_LIMIT:
            self._hand_over(cycle)  # no reserve is this long: the framework says so, and reads on within its limit

    def on_message_complete(self) -> None:
        self._between = True
        cycle: Any = self.cycle
        if type(cycle) is not _ShortCycle:
            super().on_message_complete()
            return
        known = dict(self.headers)
        try:
            short = self._reserve(cycle, known)
        except Exception as error:
            self._answer_problem(cycle, error, None)
            return
        if short:
            self._learn_rest(cycle, known)
        else:
            self._hand_over(cycle)
            super().on_message_complete()

    def _hand_over(self, cycle: _ShortCycle) -> None:
        """The ordinary way, with what has been read of the body."""
        self.cycle = None  # type: ignore[assignment]
        self._ordinary_headers_complete()
        super().on_body(bytes(cycle.body))

    def _reserve(self, cycle: _ShortCycle, known: dict[bytes, bytes]) -> bool:
        """Sends the request to the writer; false where it must go the ordinary way. Changes nothing in that case."""
        authorization = known.get(b"authorization")
        if authorization is None or not _SLOW_HEADERS.isdisjoint(known):
            return False
        principal = self._services.authenticator.known_at_once(authorization)
        ids = _ids_of(self.url)
        if principal is None or ids is None:
            return False
        event_id, seat_id = ids
        request_id = chosen_request_id(known.get(b"x-request-id"))
        if (
            cycle.keep_alive
            and _asks_plainly(cycle.body)
            and self._refused_at_once(cycle, principal, event_id, seat_id, known, request_id)
        ):
            return True

        def answer(view: EventView, outcome: Held | Refusal) -> None:
            if isinstance(outcome, Held):
                status, body = 201 if outcome.created else 200, _encoder.encode(Data(reserved_now(view, outcome)))
                self._write(cycle, status, _FIXED, body, request_id)
            else:
                self._answer_problem(cycle, outcome, request_id)

        try:
            wanted = parse_reserve(bytes(cycle.body))
            call = self._call(principal, known, request_id)
            asked = HoldsAsked(
                seats=(seat_id,), hold_type=wanted.hold_type, source=wanted.source, endpoint_ttl_s=NATIVE_RESERVE_TTL_S
            )
            return self._services.holds.submit(call, event_id, asked, answer)
        except Exception as error:
            self._answer_problem(cycle, error, request_id)
            return True

    def _refused_at_once(
        self,
        cycle: _ShortCycle,
        principal: Principal,
        event_id: UUID,
        seat_id: UUID,
        known: dict[bytes, bytes],
        request_id: str,
    ) -> bool:
        """The answer of a stampede: the seat is somebody else's, which this process knows already."""
        services = self._services
        found = services.holds.taken_at_once(principal, event_id, seat_id)
        if found is None:
            return False
        view, taken = found
        if services.refusals.count_taken(taken.state):
            services.holds.note_taken(self._call(principal, known, request_id), view, taken)
        before, behind = _refusal_lines(seat_id.bytes, taken.state, taken.expires_in)
        self._send(cycle, b"%b%bx-request-id: %b%b" % (before, self._default_lines(), request_id.encode(), behind))
        return True

    def _call(self, principal: Principal, known: dict[bytes, bytes], request_id: str) -> Call:
        proxies = self._services.settings.trusted_proxies
        ip = client_ip(self.client, self.headers, proxies) if proxies else (self.client[0] if self.client else None)
        agent = known.get(b"user-agent")
        return Call(
            principal=principal,
            ip=ip,
            user_agent=None if agent is None else user_agent_text(agent),
            request_id=request_id,
        )

    # Answers -----------------------------------------------------------------------------------------------------
    def _answer_problem(self, cycle: _ShortCycle, error: Exception, request_id: str | None) -> None:
        request_id = request_id or chosen_request_id(None)
        status, headers, body = problem_answer(error, request_id)
        self._write(cycle, status, _lines(headers) + _SECURITY, body, request_id)

    def _default_lines(self) -> bytes:
        """The server's own headers (the date), put together once for each time the server changes them."""
        shared = type(self)
        if shared._defaults is not self.server_state.default_headers:
            shared._defaults = self.server_state.default_headers
            shared._default_bytes = _lines(shared._defaults)
        return shared._default_bytes

    def _write(self, cycle: _ShortCycle, status: int, head: bytes, body: bytes, request_id: str) -> None:
        closing = b"" if cycle.keep_alive else b"connection: close\r\n"
        self._send(
            cycle,
            b"%b%b%b%bcontent-length: %d\r\nx-request-id: %b\r\n\r\n%b"
            % (
                _STATUS[status],
                self._default_lines(),
                closing,
                head,
                len(body),
                request_id.encode(),
                body,
            ),
        )

    def _send(self, cycle: _ShortCycle, answer: bytes) -> None:
        if cycle.disconnected or self.transport.is_closing():
            return
        self.transport.write(answer)
        cycle.response_complete = True
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()
