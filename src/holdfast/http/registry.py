"""The registry's health over HTTP."""

from typing import Any

import msgspec
from litestar import Request, get, post
from litestar.params import FromQuery, JSONBody
from litestar.types import ControllerRouterHandler

from holdfast.http.auth import call_of, path_id
from holdfast.http.envelope import Data
from holdfast.http.services import services
from holdfast.insight.registry import RegistryStatus

AnyRequest = Request[Any, Any, Any]


class ReconcileBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    event_id: str | None = None


@get("/api/registry/status", summary="What each tier says of the events on sale")
async def registry_status(request: AnyRequest, event_id: FromQuery[str | None] = None) -> Data[RegistryStatus]:
    """Counts by tier (database, Redis, this process's memory), and where they differ. Of one event, or of all on sale."""
    call = await call_of(request)
    wanted = None if event_id is None else path_id("event_id", event_id)
    return Data(await services(request).registry.status(call, wanted))


@post("/api/registry/reconcile", status_code=200, summary="Put the registry's tiers right")
async def reconcile_registry(request: AnyRequest, data: JSONBody[ReconcileBody | None] = None) -> Data[RegistryStatus]:
    """Rebuilds what Redis and this process's memory say wrong, from the database. Answers what was found."""
    call = await call_of(request)
    wanted = None if data is None or data.event_id is None else path_id("event_id", data.event_id)
    return Data(await services(request).registry.reconcile(call, wanted))


ROUTES: list[ControllerRouterHandler] = [registry_status, reconcile_registry]
