"""Analyses of an event's state log, over HTTP. For staff."""

from datetime import datetime
from typing import Annotated, Any

from litestar import Request, get
from litestar.params import FromPath, QueryParameter
from litestar.types import ControllerRouterHandler

from holdfast.http.auth import call_of, path_id
from holdfast.http.envelope import Data
from holdfast.http.occupancy import instant
from holdfast.http.services import services
from holdfast.insight.accessibility_use import AccessibilityAnswer
from holdfast.insight.analytics import ConversionAnswer, Division, ExpiryAnswer, FunnelAnswer, OccupancySeries
from holdfast.insight.analytics_service import Question
from holdfast.kernel.errors import InvalidRequest
from holdfast.kernel.problems import Problem

AnyRequest = Request[Any, Any, Any]
Since = Annotated[str | None, QueryParameter(name="from", description="Seven days before `to`, where left out.")]
Until = Annotated[str | None, QueryParameter(name="to", description="Now, where left out; not included.")]
HoldType = Annotated[str | None, QueryParameter(name="hold_type", description="Holds of this type alone.")]
InZone = Annotated[str | None, QueryParameter(name="zone", description="A zone, by `zone_id` or id.")]


@get("/api/events/{event_id:str}/analytics/conversion", summary="How the holds placed in a time ended")
async def conversion(
    request: AnyRequest,
    event_id: FromPath[str],
    since: Since = None,
    until: Until = None,
    hold_type: HoldType = None,
    zone: InZone = None,
    by: Annotated[
        str | None, QueryParameter(name="by", description="hold_type (if left out), zone, hour or day.")
    ] = None,
) -> Data[ConversionAnswer]:
    """Holds and places, converted, expired, released, blocked and held still, in all and by hold type, zone, hour or day."""
    event, question = path_id("event_id", event_id), _question(since, until, hold_type, zone)
    division = _division(by, tuple(Division)) or Division.HOLD_TYPE
    call = await call_of(request)
    return Data(await services(request).analytics.conversion(call, event, question, division))


@get("/api/events/{event_id:str}/analytics/funnel", summary="From held to sold to taken back")
async def funnel(
    request: AnyRequest,
    event_id: FromPath[str],
    since: Since = None,
    until: Until = None,
    hold_type: HoldType = None,
    zone: InZone = None,
) -> Data[FunnelAnswer]:
    """Of the places held in the window: how many were sold, and how many of those sales taken back. Direct sales beside."""
    event, question = path_id("event_id", event_id), _question(since, until, hold_type, zone)
    call = await call_of(request)
    return Data(await services(request).analytics.funnel(call, event, question))


@get("/api/events/{event_id:str}/analytics/occupancy", summary="How full the event was over time")
async def occupancy(
    request: AnyRequest,
    event_id: FromPath[str],
    since: Since = None,
    until: Until = None,
    hold_type: HoldType = None,
    zone: InZone = None,
    by: Annotated[str | None, QueryParameter(name="by", description="zone: a series of each as well.")] = None,
) -> Data[OccupancySeries]:
    """At most 500 points, in steps from a minute upwards."""
    event, question = path_id("event_id", event_id), _question(since, until, hold_type, zone)
    division = _division(by, (Division.ZONE,))
    call = await call_of(request)
    return Data(await services(request).analytics.occupancy(call, event, question, division))


@get("/api/events/{event_id:str}/analytics/expiry", summary="How long holds live, by how they end")
async def expiry(
    request: AnyRequest,
    event_id: FromPath[str],
    since: Since = None,
    until: Until = None,
    hold_type: HoldType = None,
    zone: InZone = None,
) -> Data[ExpiryAnswer]:
    """Quantiles and a histogram, of all hold types and of each."""
    event, question = path_id("event_id", event_id), _question(since, until, hold_type, zone)
    call = await call_of(request)
    return Data(await services(request).analytics.expiry(call, event, question))


@get("/api/events/{event_id:str}/analytics/accessibility", summary="How wheelchair seats and companions' are used")
async def accessibility(
    request: AnyRequest,
    event_id: FromPath[str],
    since: Since = None,
    until: Until = None,
    hold_type: HoldType = None,
    zone: InZone = None,
) -> Data[AccessibilityAnswer]:
    """In all and by zone; and who took the companions' seats."""
    event, question = path_id("event_id", event_id), _question(since, until, hold_type, zone)
    call = await call_of(request)
    return Data(await services(request).analytics.accessibility(call, event, question))


def _question(since: str | None, until: str | None, hold_type: str | None, zone: str | None) -> Question:
    first: datetime | None = instant("from", since)
    end: datetime | None = instant("to", until)
    if first is not None and end is not None and first >= end:
        said = "must be before `to`"
        raise InvalidRequest(f"`from` {said}.", [Problem("/from", "not_before", said)])
    return Question(since=first, until=end, hold_type=hold_type, zone=zone)


def _division(text: str | None, allowed: tuple[Division, ...]) -> Division | None:
    if text is None:
        return None
    for division in allowed:
        if division == text:
            return division
    said = f"must be {' or '.join(allowed)}" if len(allowed) < 3 else f"must be one of {', '.join(allowed)}"
    raise InvalidRequest(f"`by` {said}.", [Problem("/by", "unknown_division", said)])


ROUTES: list[ControllerRouterHandler] = [conversion, funnel, occupancy, expiry, accessibility]
