"""The reserve route as bytes: where event and seat stand in the request line, and how an answer is put together."""

from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final
from uuid import UUID

from holdfast.holds.claims import taken_seat
from holdfast.http.api import SECURITY_HEADERS
from holdfast.http.problem import problem_answer
from holdfast.http.reserve import parse_reserve
from holdfast.kernel.errors import Refusal
from holdfast.kernel.ids import parse_id

PREFIX: Final = b"/api/events/"
MIDDLE: Final = b"/seats/"
SUFFIX: Final = b"/reserve"
_ID: Final = 36
_EVENT: Final = slice(len(PREFIX), len(PREFIX) + _ID)
_MIDDLE: Final = slice(_EVENT.stop, _EVENT.stop + len(MIDDLE))
_SEAT: Final = slice(_MIDDLE.stop, _MIDDLE.stop + _ID)
URL_BYTES: Final = _SEAT.stop + len(SUFFIX)

START: Final = b"POST " + PREFIX
VERSION: Final = b" HTTP/1.1\r\n"
URL: Final = slice(len(b"POST "), len(b"POST ") + URL_BYTES)
LINE: Final = slice(0, URL.stop + len(VERSION))
REST: Final = slice(LINE.stop, None)

STATUS_LINES: Final = {s.value: f"HTTP/1.1 {s.value} {s.phrase}\r\n".encode() for s in HTTPStatus}


def lines(headers: Any) -> bytes:
    return b"".join(b"%b: %b\r\n" % (name, value) for name, value in headers)


SECURITY_LINES: Final = lines(SECURITY_HEADERS)


def is_reserve(url: bytes) -> bool:
    return len(url) == URL_BYTES and url[_SEAT.stop :] == SUFFIX and url.startswith(PREFIX) and url[_MIDDLE] == MIDDLE


@lru_cache(maxsize=65_536)
def ids_of(url: bytes) -> tuple[UUID, UUID] | None:
    """Event and seat."""
    event_id, seat_id = parse_id(url[_EVENT].decode("latin-1")), parse_id(url[_SEAT].decode("latin-1"))
    return None if event_id is None or seat_id is None else (event_id, seat_id)


@lru_cache(maxsize=20_000)
def refusal_lines(seat_id: UUID, state: str, expires_in: int | None) -> tuple[bytes, bytes]:
    """What comes before the request's own headers, and what comes behind them. A thousand buyers who want one seat in one
    second are told the same."""
    refusal = taken_seat(0, state, expires_in)
    facts = {**refusal.facts, "seat_id": str(seat_id)}
    del facts["ordinal"]
    status, headers, body = problem_answer(type(refusal)(refusal.detail, **facts))
    head = STATUS_LINES[status] + lines(headers) + SECURITY_LINES
    return b"%bcontent-length: %d\r\nx-request-id: " % (head, len(body)), b"\r\n\r\n" + body


def asks_plainly(body: bytes | bytearray) -> bool:
    """Without a hold type of its own, which would have to be looked up first."""
    try:
        return not body or body == b"{}" or parse_reserve(bytes(body)).hold_type is None
    except Refusal:
        return False
