"""Whether the service lives and is ready, its figures, and its description."""

from functools import cache
from importlib import resources
from typing import Any

import msgspec
from litestar import Request, Response, get
from litestar.params import FromPath
from litestar.types import ControllerRouterHandler

from holdfast.http.services import services
from holdfast.kernel.errors import NotFound, Overloaded
from holdfast.metrics import CONTENT_TYPE, exposition

Asked = Request[Any, Any, Any]

_KINDS = {
    "docs.html": "text/html",
    "docs.js": "text/javascript",
    "docs.css": "text/css",
}


class NotReady(Overloaded):
    code = "not_ready"


@get("/healthz", include_in_schema=False)
async def healthz() -> dict[str, str]:
    return {"status": "ok"}


@get("/readyz", include_in_schema=False)
async def readyz(request: Asked) -> dict[str, str]:
    """Not ready: the database is away or behind, or this process has not heard from it for too long."""
    health = services(request).health
    fault = await health.fault()
    if fault is not None:
        raise NotReady(fault)
    return {"status": "ready", "database": "ok", "feed": health.feed_state(), "warm": health.warm_state()}


@get("/metrics", include_in_schema=False, sync_to_thread=True)
def metrics() -> Response[bytes]:
    return Response(exposition(), media_type=CONTENT_TYPE)


@get("/openapi.json", include_in_schema=False)
async def openapi(request: Asked) -> Response[bytes]:
    known: bytes | None = request.app.state.get("openapi_json")
    if known is None:
        known = msgspec.json.encode(request.app.openapi_schema.to_schema(), enc_hook=str)
        request.app.state["openapi_json"] = known
    return Response(known, media_type="application/json", headers={"cache-control": "no-cache"})


@get("/docs", include_in_schema=False)
async def docs() -> Response[bytes]:
    return _static("docs.html")


@get("/docs/{name:str}", include_in_schema=False)
async def docs_file(name: FromPath[str]) -> Response[bytes]:
    return _static(name)


def _static(name: str) -> Response[bytes]:
    if name not in _KINDS:
        raise NotFound("There is nothing at this address.")
    return Response(_content(name), media_type=_KINDS[name], headers={"cache-control": "no-cache"})


@cache
def _content(name: str) -> bytes:
    return resources.files("holdfast.http").joinpath("static", name).read_bytes()


ROUTES: list[ControllerRouterHandler] = [healthz, readyz, metrics, openapi, docs, docs_file]
