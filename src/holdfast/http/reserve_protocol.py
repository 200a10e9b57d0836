"""Reserving a seat straight from the connection: the one route that thousands press in the same second.

A connection of this server parses with the same parser as ever. Where a request is a plain reserve (a credential verified
a moment ago, an event in memory, nothing that needs a wait before the writer), it is planned at once, handed to the
batching writer, and answered with one write when its batch comes back: no task, no framework, no second system call.
Anything else about the route goes the ordinary way through the framework, which is what decides in every doubtful case.
Measured against the ordinary way in docs/decisions/0006.
"""

from time import perf_counter
from typing import Any, Final

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from holdfast.accounts.principal import Call, Principal
from holdfast.holds.claims import Held
from holdfast.holds.lifetime import NATIVE_RESERVE_TTL_S
from holdfast.holds.plan import HoldsAsked
from holdfast.http.api import RESERVE_SECONDS, SECURITY_HEADERS
from holdfast.http.auth import client_ip, user_agent_text
from holdfast.http.envelope import Data
from holdfast.http.live_connection import LiveConnection
from holdfast.http.problem import chosen_request_id, problem_answer
from holdfast.http.reserve import parse_reserve, reserved_now
from holdfast.http.reserve_wire import (
    REST,
    SECURITY_LINES,
    START,
    STATUS_LINES,
    URL,
    VERSION,
    asks_plainly,
    ids_of,
    is_reserve,
    lines,
)
from holdfast.http.services import Services
from holdfast.http.stampede import KnownRest, Stampede
from holdfast.kernel.errors import Refusal, SeatHeldByAnother, SeatNotAvailable
from holdfast.seating.view import EventView

BODY_LIMIT: Final = 4096

# Headers that ask for more than the short way does.
# (An API key, with its scopes, is one of them: only people's tokens come this way.)
_SLOW_HEADERS: Final = frozenset((b"idempotency-key", b"x-api-key", b"expect", b"upgrade", b"transfer-encoding"))

_encoder = msgspec.json.Encoder()
_FIXED: Final = lines(((b"content-type", b"application/json"), (b"cache-control", b"no-store"), *SECURITY_HEADERS))


_TIMED: Final = {status: RESERVE_SECONDS.series(str(status)) for status in STATUS_LINES}
"""Of what reaches the writer, or is refused on the way there; what a stampede is told at once is not worth a clock."""

_BUSY: Final = float("inf")


class _NoEvent:
    """Stands where the parent signals a waiting ASGI task; nobody waits here."""

    def set(self) -> None:
        pass


class _ShortCycle:
    """A request on the short way, as far as the parent looks at it."""

    __slots__ = ("began", "body", "disconnected", "keep_alive", "message_event", "more_body", "response_complete")

    def __init__(self, keep_alive: bool, body: bytes = b"") -> None:
        self.began = perf_counter()
        self.body = bytearray(body)
        self.more_body = True
        self.disconnected = False
        self.response_complete = False
        self.keep_alive = keep_alive
        self.message_event = _NoEvent()


def reserve_protocol(services: Services) -> type[HttpToolsProtocol]:
    """The connection class to give to the server."""

    class ReserveProtocol(_ReserveProtocol):
        _services = services
        _stampede = Stampede(services)

    return ReserveProtocol


class _ReserveProtocol(LiveConnection):
    _services: Services
    _stampede: Stampede
    """Of all connections of the process."""
    _raw: bytes | None = None
    """A request that came in one piece, as long as it is being parsed."""
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
        self._raw = None
        if self._between and data.startswith(START) and self._stream is None:
            cycle: Any = self.cycle
            if (cycle is None or cycle.response_complete) and self._is_known(data):
                return
            self._raw = data
        super().data_received(data)

    def _is_known(self, data: bytes) -> bool:
        """A whole request whose headers and body were parsed before: on its way without the parser."""
        stampede = self._stampede
        answer = stampede.answer(data, self._default_lines(), self._call_of)
        if answer is not None:
            self.transport.write(answer)
            self.server_state.total_requests += 1
            self._idle_from = self.loop.time()
            if self.timeout_keep_alive_task is None:
                self._look_again_in(self.timeout_keep_alive)
            return True
        rest = stampede.rests.get(data[REST])
        if rest is None or not is_reserve(data[URL]) or not data.startswith(VERSION, URL.stop):
            return False
        cycle, before = _ShortCycle(rest.keep_alive, rest.body), self.cycle
        self.cycle = cycle  # type: ignore[assignment]
        self.url, self.headers = data[URL], rest.headers
        self._unset_keepalive_if_required()
        try:
            if self._reserve(cycle, rest.known):
                return True
        except Exception as error:
            self._answer_problem(cycle, error, None)
            return True
        self.cycle = before
        return False

    def _call_of(self, principal: Principal, rest: KnownRest, request_id: str) -> Call:
        self.headers = rest.headers
        return self._call(principal, rest.known, request_id)

    def _learn(self, cycle: _ShortCycle, known: dict[bytes, bytes], principal: Principal) -> None:
        """After a request went the short way: the next with the same headers and body need not be parsed."""
        raw = self._raw
        if raw is None or len(raw) - raw.find(b"\r\n\r\n") - 4 != len(cycle.body):
            return  # it came in pieces, or something came behind it
        body = bytes(cycle.body)
        rest = KnownRest(
            self.headers, known, body, keep_alive=cycle.keep_alive, plain=asks_plainly(body), principal=principal
        )
        self._stampede.learn_rest(raw[REST], rest)

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
        if (
            is_reserve(self.url)
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
        if not short:
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
        ids = ids_of(self.url)
        if principal is None or ids is None:
            return False
        if self._raw is not None:
            self._learn(cycle, known, principal)
        event_id, seat_id = ids
        request_id = chosen_request_id(known.get(b"x-request-id"))

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
        except (SeatHeldByAnother, SeatNotAvailable) as refusal:
            if cycle.keep_alive and asks_plainly(cycle.body):
                self._stampede.learn_seat(b"POST " + self.url + VERSION, principal, event_id, seat_id)
            self._answer_problem(cycle, refusal, request_id)
            return True
        except Exception as error:
            self._answer_problem(cycle, error, request_id)
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
        self._write(cycle, status, lines(headers) + SECURITY_LINES, body, request_id)

    def _default_lines(self) -> bytes:
        """The server's own headers (the date), put together once for each time the server changes them."""
        shared = type(self)
        if shared._defaults is not self.server_state.default_headers:
            shared._defaults = self.server_state.default_headers
            shared._default_bytes = lines(shared._defaults)
        return shared._default_bytes

    def _write(self, cycle: _ShortCycle, status: int, head: bytes, body: bytes, request_id: str) -> None:
        _TIMED[status].observe(perf_counter() - cycle.began)
        closing = b"" if cycle.keep_alive else b"connection: close\r\n"
        self._send(
            cycle,
            b"%b%b%b%bcontent-length: %d\r\nx-request-id: %b\r\n\r\n%b"
            % (
                STATUS_LINES[status],
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
