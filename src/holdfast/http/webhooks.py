"""Webhooks over HTTP: endpoints, their secrets, deliveries and sending again."""

from datetime import datetime
from typing import Annotated, Any

import msgspec
from litestar import Request, delete, get, patch, post
from litestar.params import FromPath, JSONBody, QueryParameter
from litestar.types import ControllerRouterHandler

from holdfast.http.auth import call_of, cursor_id, path_id
from holdfast.http.envelope import Data, Page
from holdfast.http.seating import page_of
from holdfast.http.services import services
from holdfast.webhooks.records import (
    Delivery,
    DeliveryInFull,
    DeliveryStatus,
    Endpoint,
    EndpointChange,
    EndpointWithSecret,
    NewEndpoint,
    Replayed,
)
from holdfast.webhooks.service import WebhooksService

Asked = Request[Any, Any, Any]
Limit = Annotated[int, QueryParameter(ge=1, le=200, description="Items at most.")]
Cursor = Annotated[str | None, QueryParameter(description="`next_cursor` of the page before.")]
Status = Annotated[DeliveryStatus | None, QueryParameter(description="Only deliveries with this status.")]


class ReplayBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    since: datetime


# Endpoints --------------------------------------------------------------------------------------------------------
@post("/api/webhooks", summary="Add a webhook")
async def create_webhook(request: Asked, data: JSONBody[NewEndpoint]) -> Data[EndpointWithSecret]:
    """A URL to be told of what happens. The secret that signs is in this answer and cannot be read again."""
    call = await call_of(request)
    return Data(await _webhooks(request).create(call, data))


@get("/api/webhooks", summary="List webhooks, oldest first")
async def list_webhooks(request: Asked, cursor: Cursor = None, limit: Limit = 50) -> Page[Endpoint]:
    call = await call_of(request)
    return page_of(await _webhooks(request).endpoints(call, cursor_id(cursor), limit))


@get("/api/webhooks/{id:str}", summary="A webhook")
async def get_webhook(request: Asked, id: FromPath[str]) -> Data[Endpoint]:
    call = await call_of(request)
    return Data(await _webhooks(request).get(call, path_id("id", id)))


@patch("/api/webhooks/{id:str}", summary="Change a webhook")
async def change_webhook(request: Asked, id: FromPath[str], data: JSONBody[EndpointChange]) -> Data[Endpoint]:
    """Fields left out stay as they are. Enabling a webhook forgets how long it had been failing."""
    call = await call_of(request)
    return Data(await _webhooks(request).change(call, path_id("id", id), data))


@delete("/api/webhooks/{id:str}", status_code=204, summary="Remove a webhook")
async def delete_webhook(request: Asked, id: FromPath[str]) -> None:
    """With its deliveries; what was under way is not sent any more."""
    call = await call_of(request)
    await _webhooks(request).delete(call, path_id("id", id))


@post("/api/webhooks/{id:str}/rotate-secret", status_code=200, summary="Replace a webhook's secret")
async def rotate_webhook_secret(request: Asked, id: FromPath[str]) -> Data[EndpointWithSecret]:
    """The new secret is in this answer and cannot be read again. Until `old_secret_until` the old one signs too."""
    call = await call_of(request)
    return Data(await _webhooks(request).rotate_secret(call, path_id("id", id)))


@post("/api/webhooks/{id:str}/test", status_code=202, summary="Send a test message")
async def test_webhook(request: Asked, id: FromPath[str]) -> Data[Delivery]:
    """Sent at once, in the same way as any other message, and tried once. The answer has the delivery's id."""
    call = await call_of(request)
    return Data(await _webhooks(request).test(call, path_id("id", id)))


# Deliveries -------------------------------------------------------------------------------------------------------
@get("/api/webhooks/{id:str}/deliveries", summary="List a webhook's deliveries, newest first")
async def list_deliveries(
    request: Asked, id: FromPath[str], status: Status = None, cursor: Cursor = None, limit: Limit = 50
) -> Page[Delivery]:
    call = await call_of(request)
    endpoint = path_id("id", id)
    return page_of(await _webhooks(request).deliveries(call, endpoint, cursor_id(cursor), status, limit))


@get("/api/webhooks/deliveries/{id:str}", summary="A delivery with its message and every attempt")
async def get_delivery(request: Asked, id: FromPath[str]) -> Data[DeliveryInFull]:
    call = await call_of(request)
    return Data(await _webhooks(request).delivery(call, path_id("id", id)))


@post("/api/webhooks/deliveries/{id:str}/replay", status_code=202, summary="Send a delivery again")
async def replay_delivery(request: Asked, id: FromPath[str]) -> Data[Delivery]:
    """The same message with the same `webhook-id`, whatever came of it before."""
    call = await call_of(request)
    return Data(await _webhooks(request).replay(call, path_id("id", id)))


@post("/api/webhooks/{id:str}/replay", status_code=202, summary="Send again what failed")
async def replay_failed(request: Asked, id: FromPath[str], data: JSONBody[ReplayBody]) -> Data[Replayed]:
    """Every delivery made since then that failed. At most 10,000 a call, oldest first."""
    call = await call_of(request)
    return Data(await _webhooks(request).replay_failed(call, path_id("id", id), data.since))


def _webhooks(request: Asked) -> WebhooksService:
    return services(request).webhooks


ROUTES: list[ControllerRouterHandler] = [
    create_webhook,
    list_webhooks,
    get_webhook,
    change_webhook,
    delete_webhook,
    rotate_webhook_secret,
    test_webhook,
    list_deliveries,
    get_delivery,
    replay_delivery,
    replay_failed,
]
