"""What is on sale, for everybody: no credential, and for ten seconds from any cache."""

from typing import Annotated, Any

from litestar import Request, Response, get
from litestar.params import FromPath, QueryParameter
from litestar.types import ControllerRouterHandler

from holdfast.http.auth import cursor_id, path_id
from holdfast.http.envelope import Data, Page
from holdfast.http.services import services
from holdfast.insight.public_service import PublicEvent, PublicEventDetail

AnyRequest = Request[Any, Any, Any]

PAGE_MAX = 50
CACHED = {"Cache-Control": "public, max-age=10"}

Limit = Annotated[int, QueryParameter(ge=1, le=PAGE_MAX, description="Events at most.")]
Cursor = Annotated[str | None, QueryParameter(description="`next_cursor` of the page before.")]
OrganizationId = Annotated[str, QueryParameter(name="organization_id", description="Whose events.")]


@get("/api/public/events", security=[], summary="What an organization has on sale")
async def list_public_events(
    request: AnyRequest, organization_id: OrganizationId, limit: Limit = PAGE_MAX, cursor: Cursor = None
) -> Response[Page[PublicEvent]]:
    """Events that are published and whose sale is not over, in the order they were made. Needs no credential."""
    organization = path_id("organization_id", organization_id)
    part = await services(request).public_events.on_sale(organization, cursor_id(cursor), limit)
    return Response(Page(part.items, part.next_cursor), headers=CACHED)


@get("/api/public/events/{event_id:str}", security=[], summary="An event that is on sale")
async def show_public_event(request: AnyRequest, event_id: FromPath[str]) -> Response[Data[PublicEventDetail]]:
    """What its poster would say, and its zones. A draft, a cancelled or an archived event is not found."""
    event = path_id("event_id", event_id)
    return Response(Data(await services(request).public_events.event(event)), headers=CACHED)


ROUTES: list[ControllerRouterHandler] = [list_public_events, show_public_event]
