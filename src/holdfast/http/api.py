"""The HTTP application: Litestar for the routes, and one thin layer around it for what every answer carries."""

import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import structlog
from litestar import Litestar, Request, Router
from litestar.exceptions import NotFoundException
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.types import ASGIApp, ControllerRouterHandler, Message, Receive, Scope, Send

from holdfast.http.auth import proxy_networks
from holdfast.http.body import StrictBody
from holdfast.http.pages import PAGE_POLICY, missing_page
from holdfast.http.problem import chosen_request_id, handle_problem, problem_answer
from holdfast.http.services import SERVICES, Services
from holdfast.kernel.counting import PlainHistogram
from holdfast.logs import REQUEST

log = structlog.get_logger("holdfast.http")

SECONDS = PlainHistogram(
    "holdfast_http_request_seconds",
    "From a request's arrival to the beginning of its answer, but for reserves on the short way",
    ("method", "route", "status"),
)
RESERVE_SECONDS = PlainHistogram(
    "holdfast_reserve_seconds", "From a request's arrival to its answer, of reserves on the short way", ("status",)
)
SLOW_S = 0.5
"""A request that takes longer is logged, as is one that fails. The others are counted."""
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))

LARGE_BODY = "large_body"
"""A handler with opt={"large_body": True} takes bodies up to `layout_limit_bytes`."""


def build_api(
    services: Services,
    routes: Sequence[ControllerRouterHandler] | None = None,
    *,
    front: Callable[[ASGIApp], ASGIApp] | None = None,
) -> ASGIApp:
    """`front` puts plain ASGI handlers before the routes; they get the same request id, headers and problems."""
    if routes is None:
        # The full list imports every part of the product; a test of one part names its own routes.
        from holdfast.http.routes import ROUTES

        routes = ROUTES
    proxy_networks(services.settings.trusted_proxies)
    settings = services.settings
    app: ASGIApp = _litestar(tuple(routes), settings.body_limit_bytes, settings.layout_limit_bytes)
    return Answers(front(app) if front is not None else app, services)


@lru_cache(maxsize=8)
def _litestar(routes: tuple[ControllerRouterHandler, ...], body_limit: int, layout_limit: int) -> Litestar:
    """The routes alone, without anybody's services: they take a fifth of a second to arrange, and never differ."""
    large = [route for route in routes if (getattr(route, "opt", None) or {}).get(LARGE_BODY)]
    small = [route for route in routes if route not in large]
    if large:
        small.append(Router("/", route_handlers=large, request_max_body_size=layout_limit))
    return Litestar(
        route_handlers=small,
        dto=StrictBody,
        return_dto=None,
        exception_handlers={NotFoundException: _handle_missing, Exception: handle_problem},
        request_max_body_size=body_limit,
        openapi_config=_openapi(),
        logging_config=None,
    )


def _handle_missing(request: Request[Any, Any, Any], error: NotFoundException) -> Any:
    """No route has this address."""
    return missing_page(request) or handle_problem(request, error)


def _openapi() -> OpenAPIConfig:
    schemes: dict[str, Any] = {
        "token": SecurityScheme(type="http", scheme="bearer", bearer_format="JWT"),
        "apiKey": SecurityScheme(type="apiKey", name="X-API-Key", security_scheme_in="header"),
        "signIn": SecurityScheme(type="apiKey", name="holdfast_session", security_scheme_in="cookie"),
    }
    return OpenAPIConfig(
        title="Holdfast",
        version=version("holdfast"),
        description="A seat inventory engine: holds a seat for one buyer for a few minutes, and never sells it twice.",
        components=Components(security_schemes=schemes),
        security=[{"token": []}, {"apiKey": []}, {"signIn": []}],
        use_handler_docstrings=True,
        path="/docs/schema",  # Litestar's own place for it; /openapi.json and /docs are in system.py
        render_plugins=[JsonRenderPlugin()],
    )


SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
"""Of answers that are data; pages get `PAGE_POLICY`."""


class Answers:
    """Around everything: a request id, security headers, a problem document for whatever nobody caught, and the time."""

    def __init__(self, app: ASGIApp, services: Services) -> None:
        self._app = app
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind: str = scope["type"]
        if kind not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        asked = next((value for name, value in scope["headers"] if name == b"x-request-id"), None)
        request_id = chosen_request_id(asked)
        scope.setdefault("state", {})["request_id"] = request_id
        scope[SERVICES] = self._services  # type: ignore[literal-required]
        REQUEST.set(scope)  # each request is served by a task of its own, with a context of its own
        if kind != "http":
            await self._app(scope, receive, send)
            return
        own = (b"x-request-id", request_id.encode())
        began = time.perf_counter()
        started = False

        async def send_dressed(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                _note(scope, message["status"], time.perf_counter() - began)
                message["headers"] = _dressed(message["headers"], own)
            await send(message)

        try:
            await self._app(scope, receive, send_dressed)
        except Exception as error:
            if started:
                raise
            await send_problem(send_dressed, error, request_id)
        else:
            if not started:  # the connection has become a stream
                _note(scope, 200, time.perf_counter() - began)


def _note(scope: Scope, status: int, seconds: float) -> None:
    method = str(scope.get("method"))
    # By the route, not the path: there are as many paths as seats.
    route = scope.get("path_template") or "unknown"
    SECONDS.observe(seconds, method if method in METHODS else "other", route, str(status))
    if (seconds >= SLOW_S or status >= 500) and _LINES.one_more():
        write = log.error if status >= 500 else log.warning
        said = {"method": method, "route": route, "status": status, "duration_ms": round(seconds * 1000)}
        write("request_slow_or_failed", **said, **_LINES.left_out())


class _Lines:
    """When everything is slow, a line for each makes it slower: so many a second, and how many were left out."""

    def __init__(self, a_second: int) -> None:
        self._a_second = a_second
        self._second = 0
        self._written = 0
        self._unsaid = 0

    def one_more(self) -> bool:
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._written = second, 0
        self._written += 1
        if self._written > self._a_second:
            self._unsaid += 1
            return False
        return True

    def left_out(self) -> dict[str, int]:
        unsaid, self._unsaid = self._unsaid, 0
        return {"left_out": unsaid} if unsaid else {}


_LINES = _Lines(20)


def _dressed(headers: Any, own: tuple[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    dressed = [*headers, own, (b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer")]
    said = {name.lower(): value for name, value in headers}
    if b"cache-control" not in said:
        dressed.append((b"cache-control", b"no-store"))
    if b"content-security-policy" not in said:
        page = said.get(b"content-type", b"").startswith(b"text/html")
        policy = PAGE_POLICY if page else b"default-src 'none'; frame-ancestors 'none'"
        dressed.append((b"content-security-policy", policy))
    return dressed


async def send_problem(send: Any, error: Exception, request_id: str | None = None) -> None:
    """The problem document of an exception, from a plain ASGI handler."""
    status, headers, body = problem_answer(error, request_id)
    headers = [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
