"""Taking an event to another version of its layout, over HTTP: plan, look, confirm."""

from typing import Annotated, Any

import msgspec
from litestar import Request, delete, get, post
from litestar.params import FromPath, JSONBody
from litestar.types import ControllerRouterHandler

from holdfast.http.auth import call_of, cursor_id, path_id
from holdfast.http.envelope import Data, Page
from holdfast.http.seating import BULK_BODY_BYTES, WRITES, Cursor, Limit, number_cursor, page_of
from holdfast.http.services import services
from holdfast.seating.event import MAX_VERSION
from holdfast.seating.migration import Notification, Replacement
from holdfast.seating.migration_service import REPLACEMENTS_MAX, MigrationAnswer, MigrationService

AnyRequest = Request[Any, Any, Any]
PATH = "/api/events/{event_id:str}/migrations"
ONE = PATH + "/{migration_id:str}"


class MigrationBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    layout_version: Annotated[int, msgspec.Meta(ge=1, le=MAX_VERSION)]
    replacements: Annotated[list[Replacement], msgspec.Meta(max_length=REPLACEMENTS_MAX)] = []


@post(PATH, opt=WRITES, request_max_body_size=BULK_BODY_BYTES, summary="Plan an event's way to another layout version")
async def plan_migration(
    request: AnyRequest, event_id: FromPath[str], data: JSONBody[MigrationBody]
) -> Data[MigrationAnswer]:
    """Which taken seats stay, which move and to where, and which have no place. Changes nothing. `replacements` are the
    organiser's own choices, seat by seat, for seats that must move."""
    event = path_id("event_id", event_id)
    call = await call_of(request)
    return Data(await _migrations(request).plan(call, event, data.layout_version, data.replacements))


@get(PATH, summary="List an event's migrations, newest first")
async def list_migrations(
    request: AnyRequest, event_id: FromPath[str], cursor: Cursor = None, limit: Limit = 200
) -> Page[MigrationAnswer]:
    event = path_id("event_id", event_id)
    call = await call_of(request)
    return page_of(await _migrations(request).list_of_event(call, event, cursor_id(cursor), limit))


@get(ONE, summary="A migration with every move")
async def get_migration(
    request: AnyRequest, event_id: FromPath[str], migration_id: FromPath[str]
) -> Data[MigrationAnswer]:
    event, migration = path_id("event_id", event_id), path_id("migration_id", migration_id)
    call = await call_of(request)
    return Data(await _migrations(request).get(call, event, migration))


@post(ONE + "/apply", opt=WRITES, status_code=200, summary="Confirm a planned migration")
async def apply_migration(
    request: AnyRequest, event_id: FromPath[str], migration_id: FromPath[str]
) -> Data[MigrationAnswer]:
    """All of it in one transaction; 409 `migration_outdated`, and nothing, if anything changed since the plan."""
    event, migration = path_id("event_id", event_id), path_id("migration_id", migration_id)
    call = await call_of(request)
    return Data(await _migrations(request).apply(call, event, migration))


@delete(ONE, opt=WRITES, status_code=200, summary="Discard a planned migration")
async def discard_migration(
    request: AnyRequest, event_id: FromPath[str], migration_id: FromPath[str]
) -> Data[MigrationAnswer]:
    event, migration = path_id("event_id", event_id), path_id("migration_id", migration_id)
    call = await call_of(request)
    return Data(await _migrations(request).discard(call, event, migration))


@get(ONE + "/notifications", summary="Who must hear of a migration: from which seat to which")
async def list_notifications(
    request: AnyRequest,
    event_id: FromPath[str],
    migration_id: FromPath[str],
    cursor: Cursor = None,
    limit: Limit = 200,
) -> Page[Notification]:
    event, migration = path_id("event_id", event_id), path_id("migration_id", migration_id)
    after = number_cursor("cursor", cursor) or 0
    call = await call_of(request)
    return page_of(await _migrations(request).notifications(call, event, migration, after, limit))


def _migrations(request: AnyRequest) -> MigrationService:
    return services(request).migrations


ROUTES: list[ControllerRouterHandler] = [
    plan_migration,
    list_migrations,
    get_migration,
    apply_migration,
    discard_migration,
    list_notifications,
]
