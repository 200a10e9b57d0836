"""What happened, over HTTP: the state log and the audit."""

from typing import Any

from litestar import Request, get
from litestar.params import FromPath, FromQuery
from litestar.types import ControllerRouterHandler

from holdfast.http.auth import call_of, path_id
from holdfast.http.envelope import Page
from holdfast.http.seating import Cursor, Limit, number_cursor, page_of
from holdfast.http.services import services
from holdfast.insight.answers import AuditAnswer, MoveAnswer

AnyRequest = Request[Any, Any, Any]


@get("/api/events/{event_id:str}/state-log", summary="Every move of the event's seats, oldest first")
async def state_log(
    request: AnyRequest,
    event_id: FromPath[str],
    after: FromQuery[str | None] = None,
    cursor: Cursor = None,
    limit: Limit = 200,
) -> Page[MoveAnswer]:
    """`after` is the id of the last move already read; at the end, ask again with it for what has happened since."""
    event = path_id("event_id", event_id)
    last = number_cursor("after", after) if after is not None else number_cursor("cursor", cursor)
    call = await call_of(request)
    return page_of(await services(request).insight.state_log(call, event, last or 0, limit))


@get("/api/audit", summary="Who did what, newest first")
async def audit(
    request: AnyRequest,
    action: FromQuery[str | None] = None,
    event_id: FromQuery[str | None] = None,
    user_id: FromQuery[str | None] = None,
    entity_id: FromQuery[str | None] = None,
    after: FromQuery[str | None] = None,
    cursor: Cursor = None,
    limit: Limit = 200,
) -> Page[AuditAnswer]:
    """`after`, like `cursor`, is the id of the last entry already read; what follows is older."""
    last = number_cursor("after", after) if after is not None else number_cursor("cursor", cursor)
    event = None if event_id is None else path_id("event_id", event_id)
    user = None if user_id is None else path_id("user_id", user_id)
    entity = None if entity_id is None else path_id("entity_id", entity_id)
    call = await call_of(request)
    part = await services(request).insight.audit(
        call, before=last, action=action, event_id=event, user_id=user, entity_id=entity, limit=limit
    )
    return page_of(part)


ROUTES: list[ControllerRouterHandler] = [state_log, audit]
