"""How full an event is, over HTTP: now, and minute by minute."""

from datetime import datetime, timedelta
from typing import Annotated, Any

import msgspec
from litestar import Request, get
from litestar.params import FromPath, QueryParameter
from litestar.types import ControllerRouterHandler

from holdfast.http.auth import call_of, path_id
from holdfast.http.envelope import Data, Page
from holdfast.http.seating import Cursor, page_of
from holdfast.http.services import services
from holdfast.insight.occupancy import OccupancyAnswer, PastOccupancy
from holdfast.kernel.errors import InvalidRequest
from holdfast.kernel.problems import Problem

AnyRequest = Request[Any, Any, Any]
DAY_MINUTES = 1440
Minutes = Annotated[int, QueryParameter(ge=1, le=DAY_MINUTES, description="Minutes at most.")]


@get("/api/events/{event_id:str}/occupancy", summary="How full the event is")
async def occupancy(request: AnyRequest, event_id: FromPath[str]) -> Data[OccupancyAnswer]:
    """Places available, held, sold and blocked, in all, by zone and by hold type; general admission by quantity."""
    event = path_id("event_id", event_id)
    call = await call_of(request)
    return Data(await services(request).occupancy.occupancy(call, event))


@get("/api/events/{event_id:str}/occupancy/history", summary="How full the event was, minute by minute")
async def history(
    request: AnyRequest,
    event_id: FromPath[str],
    since: Annotated[str | None, QueryParameter(name="from", description="A day before `to`, where left out.")] = None,
    until: Annotated[str | None, QueryParameter(name="to", description="Now, where left out; not included.")] = None,
    cursor: Cursor = None,
    limit: Minutes = DAY_MINUTES,
) -> Page[PastOccupancy]:
    """For staff. A minute in which nobody kept count, or the event was not on sale, is left out."""
    event = path_id("event_id", event_id)
    first, end, last = instant("from", since), instant("to", until), instant("cursor", cursor)
    if first is not None and end is not None and first >= end:
        said = "must be before `to`"
        raise InvalidRequest(f"`from` {said}.", [Problem("/from", "not_before", said)])
    if last is not None:
        first = last + timedelta(microseconds=1)
    call = await call_of(request)
    return page_of(await services(request).occupancy.history(call, event, first, end, limit))


def instant(name: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        # A plus sign that was not escaped in the query arrives as a space.
        instant = msgspec.convert(text.replace(" ", "+"), datetime)
        if instant.tzinfo is not None and 1 < instant.year < 9999:
            return instant
    except msgspec.ValidationError:
        pass
    said = "must be an instant with its offset, such as 2030-01-31T19:30:00Z"
    raise InvalidRequest(f"`{name}` {said}.", [Problem(f"/{name}", "not_an_instant", said)])


ROUTES: list[ControllerRouterHandler] = [occupancy, history]
