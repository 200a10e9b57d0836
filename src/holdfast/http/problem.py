"""Every refusal as an RFC 9457 problem document: the one table from error to status.

An answer depends on the refusal alone (the request's id is in a header), so that an id of another organization and an
id that never existed are answered with the same bytes.
"""

import math
import re
from http import HTTPStatus
from typing import Any, Final

import asyncpg
import msgspec
import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException

from holdfast.holds.hold_types import ConfigInvalid
from holdfast.kernel import errors
from holdfast.kernel.errors import InvalidRequest, Refusal
from holdfast.kernel.ids import new_id
from holdfast.kernel.problems import DocumentInvalid, Problem
from holdfast.payments.refusals import PaymentRequired
from holdfast.seating.policy import PolicyInvalid
from holdfast.seating.validate import LayoutInvalid

Headers = list[tuple[bytes, bytes]]
Answer = tuple[int, Headers, bytes]

log = structlog.get_logger("holdfast.http")

STATUSES: Final[dict[type[Refusal], int]] = {
    errors.InvalidRequest: 400,
    errors.Unprocessable: 422,
    errors.Unauthorized: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.TooManySeats: 422,
    errors.TooManyWheelchairSeats: 422,
    errors.Overloaded: 503,
    errors.RateLimited: 429,
    errors.IdempotencyMismatch: 422,
    errors.IdempotencyInFlight: 409,
    errors.EventNotAvailable: 400,
    errors.EventUnavailable: 400,
    errors.EventSalesClosed: 400,
    errors.ReservationFailed: 500,
    PaymentRequired: 402,
    Refusal: 400,
}
DOCUMENTS: Final[dict[type[DocumentInvalid], tuple[int, str, str]]] = {
    LayoutInvalid: (422, "invalid_layout", "The layout cannot stand; every problem is listed."),
    ConfigInvalid: (400, "invalid_config", "The config cannot stand; every problem is listed and nothing was stored."),
    PolicyInvalid: (400, "invalid_policy", "The policy cannot stand; every problem is listed and nothing was stored."),
    DocumentInvalid: (400, "invalid_request", "The document cannot stand; every problem is listed."),
}
_HTTP_CODES: Final = {
    400: "invalid_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "body_too_large",
    415: "unsupported_media_type",
    429: "rate_limited",
    503: "unavailable",
}
_HTTP_DETAILS: Final = {
    404: "There is nothing at this address.",
    405: "This address does not take this method.",
    413: "The body is larger than is allowed here.",
}
_RETRY_AFTER_S: Final = 1
_BAD_TEXT = (asyncpg.CharacterNotInRepertoireError, asyncpg.UntranslatableCharacterError)
_DATABASE_AWAY = (
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.ReadOnlySQLTransactionError,  # connected to what is a standby now
    ConnectionError,
    TimeoutError,
)


def status_of(refusal: Refusal) -> int:
    return next(STATUSES[kind] for kind in type(refusal).__mro__ if kind in STATUSES)


def problem_answer(error: Exception, request_id: str | None = None) -> Answer:
    """Status, headers and body for any exception. What is not a refusal is logged and told to nobody."""
    if isinstance(error, Refusal):
        status = status_of(error)
        if status >= 500 and not isinstance(error, errors.Overloaded):
            log.error("request_failed", request_id=request_id, error=error.code, detail=error.detail)
        return _answer(status, error.code, error.detail, error.facts, _headers_of(error, status))
    if isinstance(error, DocumentInvalid):
        status, code, detail = next(DOCUMENTS[kind] for kind in type(error).__mro__ if kind in DOCUMENTS)
        return _answer(status, code, detail, {"errors": [msgspec.to_builtins(p) for p in error.problems]})
    if isinstance(error, msgspec.DecodeError):  # and ValidationError, which is one
        return problem_answer(invalid_body(error), request_id)
    if isinstance(error, HTTPException) and error.status_code < 500:
        return _litestar_answer(error)
    if _is_bad_text(error):
        detail = "A text contains characters that cannot be stored, such as NUL."
        return _answer(400, "invalid_request", detail, {})
    if isinstance(error, _DATABASE_AWAY) or (isinstance(error, asyncpg.InterfaceError) and "clos" in str(error)):
        log.error("database_away", request_id=request_id, error=type(error).__name__)
        detail = "The service cannot reach its database at the moment. Please try again."
        return _answer(503, "unavailable", detail, {}, _retry_after(_RETRY_AFTER_S))
    log.error("request_crashed", request_id=request_id, exc_info=error)
    return _answer(500, "internal_error", "Something went wrong on our side.", {})


def handle_problem(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Litestar's exception handler."""
    status, headers, body = problem_answer(error, request_id_of(request.scope))
    plain = {name.decode(): value.decode() for name, value in headers if name != b"content-type"}
    return Response(body, status_code=status, headers=plain, media_type="application/problem+json")


def request_id_of(scope: Any) -> str | None:
    found = scope.get("state", {}).get("request_id")
    return found if isinstance(found, str) else None


_SANE_ID = re.compile(rb"[A-Za-z0-9._:-]{8,128}")


def chosen_request_id(raw: bytes | None) -> str:
    """The caller's own id where it is one, else a new one."""
    return raw.decode() if raw is not None and _SANE_ID.fullmatch(raw) else str(new_id())


# Bodies and parameters ------------------------------------------------------------------------------------------
_AT = re.compile(r"(.*) - at `(\$.*)`$", re.DOTALL)
_FIELD = re.compile(r"Object (missing required|contains unknown) field `([^`]*)`")
_STEP = re.compile(r"\[(\d+)\]|\[\.\.\.\]|\.([^.\[]+)")


def invalid_body(error: Exception) -> InvalidRequest:
    """A body that is no JSON, or not of the shape it should have: which field, and why."""
    if not isinstance(error, msgspec.ValidationError):
        detail = f"The body is not valid JSON: {error}."
        return InvalidRequest(detail, [Problem("", "not_json", str(error))])
    found = _AT.match(str(error))
    said, path = (found[1], found[2]) if found else (str(error), "$")
    pointer = "".join(f"/{index or name or '-'}" for index, name in _STEP.findall(path))
    code = "invalid"
    field = _FIELD.match(said)
    if field is not None:
        pointer += f"/{field[2]}"
        code = "missing" if field[1].startswith("missing") else "unknown_field"
    said = said.replace("`", "")
    return InvalidRequest(f"{pointer or 'body'}: {said}", [Problem(pointer, code, said)])


def _litestar_answer(error: HTTPException) -> Answer:
    headers = [(name.lower().encode(), value.encode()) for name, value in (error.headers or {}).items()]
    if isinstance(error, ValidationException) and isinstance(error.extra, list) and error.extra:
        problems = [
            Problem(_pointer(str(item.get("key", ""))), "invalid", str(item.get("message", "")).replace("`", ""))
            for item in error.extra
            if isinstance(item, dict)
        ]
        detail = "; ".join(f"{problem.pointer}: {problem.detail}" for problem in problems)
        return problem_answer(InvalidRequest(detail, problems))
    code = _HTTP_CODES.get(error.status_code, "http_error")
    detail = _HTTP_DETAILS.get(error.status_code, "The request cannot be understood.")
    if error.status_code == 400 and error.detail.startswith("Missing required"):
        detail = error.detail.partition(" for ")[0] + "."
    return _answer(error.status_code, code, detail, {}, headers)


def _pointer(key: str) -> str:
    return "".join(f"/{index or name or '-'}" for index, name in _STEP.findall(f".{key}"))


def _is_bad_text(error: Exception) -> bool:
    if isinstance(error, (*_BAD_TEXT, UnicodeEncodeError)):
        return True
    # A lone surrogate never gets as far as the server: the driver cannot encode it.
    return isinstance(error, asyncpg.DataError) and isinstance(error.__cause__, UnicodeEncodeError)


# Rendering ------------------------------------------------------------------------------------------------------
def _headers_of(refusal: Refusal, status: int) -> Headers:
    if isinstance(refusal, errors.Unauthorized):
        return [(b"www-authenticate", b'Bearer realm="holdfast"')]
    if isinstance(refusal, errors.RateLimited):
        return _rate_limit_headers(refusal.facts)
    if status == 503:
        return _retry_after(refusal.facts.get("retry_after_s", _RETRY_AFTER_S))
    return []


def _retry_after(seconds: float) -> Headers:
    return [(b"retry-after", str(max(1, math.ceil(seconds))).encode())]


def _rate_limit_headers(facts: dict[str, Any]) -> Headers:
    """Facts: retry_after_s, and where known limit, remaining, window_s."""
    seconds = max(1, math.ceil(facts.get("retry_after_s", _RETRY_AFTER_S)))
    remaining = int(facts.get("remaining", 0))
    headers = _retry_after(seconds)
    headers.append((b"ratelimit", f'"default";r={remaining};t={seconds}'.encode()))
    headers.append((b"ratelimit-remaining", str(remaining).encode()))
    headers.append((b"ratelimit-reset", str(seconds).encode()))
    if facts.get("limit") is not None:
        window = f";w={int(facts['window_s'])}" if "window_s" in facts else ""
        headers.append((b"ratelimit-limit", str(int(facts["limit"])).encode()))
        headers.append((b"ratelimit-policy", f'"default";q={int(facts["limit"])}{window}'.encode()))
    return headers


def _answer(status: int, code: str, detail: str, facts: dict[str, Any], headers: Headers | None = None) -> Answer:
    document = {
        "type": f"urn:holdfast:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "error": code,
        **{name: value for name, value in facts.items() if name not in _OWN},
    }
    try:
        body = msgspec.json.encode(document, enc_hook=str)
    except UnicodeEncodeError:
        # Somebody's half of a surrogate pair was quoted in the sentence or the facts: the code alone can be said.
        plain = {name: document[name] for name in ("type", "title", "status", "error")}
        body = msgspec.json.encode({**plain, "detail": plain["title"]})
    fixed = [(b"content-type", b"application/problem+json"), (b"cache-control", b"no-store")]
    return status, [*fixed, *(headers or [])], body


_OWN: Final = frozenset(("type", "title", "status", "detail", "error"))
