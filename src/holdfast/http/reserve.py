"""`POST /api/events/{event}/seats/{seat}/reserve` as a plain ASGI handler in front of the framework.

It is the one route that thousands press in the same second, and the framework's share of it was most of its cost. It
does what every handler does, in the same order: shape, credential, service, answer. The framework still documents it.
"""

from typing import Any, Final, Literal
from uuid import UUID

import msgspec
from litestar.types import ASGIApp, Receive, Send

from holdfast.accounts.principal import Call, Principal
from holdfast.holds.lifetime import NATIVE_RESERVE_TTL_S
from holdfast.holds.plan import HoldsAsked
from holdfast.holds.service import HoldView, Placement
from holdfast.http.api import SECURITY_HEADERS
from holdfast.http.auth import client_ip, idempotency_of, path_id, require_scope, user_agent_of
from holdfast.http.envelope import Data
from holdfast.http.problem import chosen_request_id, invalid_body, problem_answer
from holdfast.http.services import Services
from holdfast.kernel.errors import InvalidRequest
from holdfast.kernel.ids import parse_id

PREFIX: Final = "/api/events/"
MIDDLE: Final = "/seats/"
SUFFIX: Final = "/reserve"
_ID: Final = 36
_EVENT_END: Final = len(PREFIX) + _ID
_SEAT_START: Final = _EVENT_END + len(MIDDLE)
_SEAT_END: Final = _SEAT_START + _ID
_LENGTH: Final = _SEAT_END + len(SUFFIX)
BODY_LIMIT: Final = 4096


class ReserveBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    source: Literal["web", "scanner"] = "web"
    hold_type: str | None = None


class Reserved(msgspec.Struct, frozen=True, kw_only=True):
    hold_id: UUID
    seat_id: UUID
    seat_label: str
    event_id: UUID
    zone_id: str
    block_name: str
    row: str
    seat_number: int
    status: str
    held_until: Any
    held_until_unix: int | None
    expires_in_seconds: int | None
    hold_type: str
    message: str


_decoder = msgspec.json.Decoder(ReserveBody)
_encoder = msgspec.json.Encoder()
_DEFAULT: Final = ReserveBody()
_HEADERS: Final = [(b"content-type", b"application/json"), (b"cache-control", b"no-store"), *SECURITY_HEADERS]


class ReserveFront:
    """Answers the reserve route and passes every other request on."""

    def __init__(self, services: Services, inner: ASGIApp) -> None:
        self._services = services
        self._inner = inner
        self._trusted_proxies = services.settings.trusted_proxies

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        path = scope["path"]
        if (
            len(path) != _LENGTH
            or scope["method"] != "POST"
            or not path.endswith(SUFFIX)
            or not path.startswith(PREFIX)
            or path[_EVENT_END:_SEAT_START] != MIDDLE
        ):
            await self._inner(scope, receive, send)
            return
        headers = scope["headers"]
        known: dict[bytes, bytes] = dict(headers)
        request_id = chosen_request_id(known.get(b"x-request-id"))
        try:
            event_id, seat_id = parse_id(path[len(PREFIX) : _EVENT_END]), parse_id(path[_SEAT_START:_SEAT_END])
            if event_id is None or seat_id is None:
                raise _not_an_id(event_id, path)
            body = await _read(receive)
            wanted = _parse(body)
            principal = await self._principal(known, headers)
            call = Call(
                principal=principal,
                ip=client_ip(scope.get("client"), headers, self._trusted_proxies) if self._trusted_proxies else _peer(scope),
                user_agent=user_agent_of(headers),
                request_id=request_id,
                idempotency=(
                    idempotency_of("POST", path, headers, body) if b"idempotency-key" in known else None
                ),
            )
            require_scope(call, "holds")
            asked = HoldsAsked(
                seats=(seat_id,),
                hold_type=wanted.hold_type,
                source=wanted.source,
                endpoint_ttl_s=NATIVE_RESERVE_TTL_S,
            )
            placement = await self._services.holds.hold_seats(call, event_id, asked)
            status = 201 if placement.created else 200
            answer = _encoder.encode(Data(reserved(placement)))
            answer_headers = list(_HEADERS)
        except Exception as error:
            status, answer_headers, answer = problem_answer(error, request_id)
            answer_headers += SECURITY_HEADERS
        answer_headers.append((b"content-length", str(len(answer)).encode()))
        answer_headers.append((b"x-request-id", request_id.encode()))
        await send({"type": "http.response.start", "status": status, "headers": answer_headers})
        await send({"type": "http.response.body", "body": answer, "more_body": False})

    async def _principal(self, known: dict[bytes, bytes], headers: Any) -> Principal:
        authorization = known.get(b"authorization")
        if authorization is not None and b"x-api-key" not in known:
            remembered = self._services.authenticator.remembered(authorization)
            if remembered is not None:
                return remembered
        return await self._services.authenticator.authenticate(headers)


def _peer(scope: Any) -> str | None:
    client = scope.get("client")
    return client[0] if client else None


def _not_an_id(event_id: UUID | None, path: str) -> Exception:
    name, text = ("event_id", path[len(PREFIX) : _EVENT_END]) if event_id is None else ("seat_id", path[_SEAT_START:])
    try:
        path_id(name, text)
    except InvalidRequest as error:
        return error
    return InvalidRequest(f"{name} must be a UUID.")


async def _read(receive: Receive) -> bytes:
    body: bytes = b""
    while True:
        message: Any = await receive()
        if message["type"] == "http.disconnect":
            raise InvalidRequest("The request was cut off.")
        body += message.get("body", b"")
        if len(body) > BODY_LIMIT:
            raise InvalidRequest("The body is larger than a request to reserve a seat can be.")
        if not message.get("more_body", False):
            return body


def _parse(body: bytes) -> ReserveBody:
    if not body or body == b"{}":
        return _DEFAULT
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise invalid_body(error) from error


def reserved(placement: Placement) -> Reserved:
    hold = placement.holds[0]
    assert hold.seat_id is not None
    assert hold.row is not None
    assert hold.seat_number is not None
    return Reserved(
        hold_id=hold.hold_id,
        seat_id=hold.seat_id,
        seat_label=hold.seat_label or "",
        event_id=hold.event_id,
        zone_id=hold.zone_id,
        block_name=hold.block_name,
        row=hold.row,
        seat_number=hold.seat_number,
        status=hold.status,
        held_until=hold.held_until,
        held_until_unix=hold.held_until_unix,
        expires_in_seconds=hold.expires_in_seconds,
        hold_type=hold.hold_type,
        message=message_for(hold, placement.created),
    )


def message_for(hold: HoldView, created: bool) -> str:
    lasting = _lasting(hold.expires_in_seconds)
    if not created:
        return f"You already hold this seat{lasting}."
    return f"Seat reserved{lasting}. Proceed to checkout."


def _lasting(seconds: int | None) -> str:
    if seconds is None:
        return " until it is released"
    if seconds % 60 == 0 and seconds >= 60:
        minutes = seconds // 60
        return f" for {minutes} minute{'s' if minutes != 1 else ''}"
    return f" for {seconds} second{'s' if seconds != 1 else ''}"
