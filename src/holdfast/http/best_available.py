"""The best seats over HTTP: proposed, or held at once."""

from typing import Any, Literal

import msgspec
from litestar import Request, post
from litestar.params import FromPath, JSONBody
from litestar.types import ControllerRouterHandler

from holdfast.allocation.choose import Strategy
from holdfast.holds.best_available import Best, Proposal
from holdfast.holds.lifetime import NATIVE_RESERVE_TTL_S
from holdfast.holds.wish import SeatsWished
from holdfast.http.auth import call_of, path_id
from holdfast.http.envelope import Data
from holdfast.http.services import services
from holdfast.kernel.errors import InvalidRequest
from holdfast.kernel.problems import Problem
from holdfast.seating.layout import SeatCategory

AnyRequest = Request[Any, Any, Any]
QUANTITY_MAX = 1_000
ZONES_MAX = 200
PRICE_MAX = 10**12


class WishBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"hold_type": "holdType"}):
    quantity: int
    zones: list[str] = []
    categories: list[SeatCategory] = []
    price_max: int | None = None
    accessible: bool = False
    strategy: Strategy = Strategy.BEST
    hold_type: str | None = None
    source: Literal["web", "scanner"] = "web"


@post(
    "/api/events/{event_id:str}/best-available",
    status_code=201,
    opt={"scope": "holds"},
    summary="Hold the best seats that are free",
)
async def hold_best(request: AnyRequest, event_id: FromPath[str], data: JSONBody[WishBody]) -> Data[Best]:
    """Chooses and holds in one call: side by side where that can be, and says in words what was done.

    `price_max` is for one seat, in minor units. With `accessible` one of the seats is a place for a wheelchair and the
    others are beside it."""
    event = path_id("event_id", event_id)
    wished = _wished(data)
    return Data(await services(request).best.hold(await call_of(request), event, wished))


@post(
    "/api/events/{event_id:str}/best-available/preview",
    status_code=200,
    summary="The best seats that are free, without holding them",
)
async def preview_best(request: AnyRequest, event_id: FromPath[str], data: JSONBody[WishBody]) -> Data[Proposal]:
    """What the same request without `/preview` would take at this moment."""
    event = path_id("event_id", event_id)
    wished = _wished(data)
    return Data(await services(request).best.preview(await call_of(request), event, wished))


def _wished(data: WishBody) -> SeatsWished:
    problems: list[Problem] = []
    if not 1 <= data.quantity <= QUANTITY_MAX:
        problems.append(Problem("/quantity", "out_of_range", f"must be between 1 and {QUANTITY_MAX}"))
    if len(data.zones) > ZONES_MAX:
        problems.append(Problem("/zones", "too_many", f"at most {ZONES_MAX} zones"))
    if data.price_max is not None and not 0 <= data.price_max <= PRICE_MAX:
        problems.append(Problem("/price_max", "out_of_range", f"must be between 0 and {PRICE_MAX}"))
    if data.accessible and data.categories:
        said = "say accessible, or the categories, not both"
        problems.append(Problem("/categories", "conflicting_fields", said))
    if problems:
        raise InvalidRequest("; ".join(f"{p.pointer}: {p.detail}" for p in problems), problems)
    return SeatsWished(
        quantity=data.quantity,
        zones=tuple(data.zones),
        categories=tuple(data.categories),
        price_max=data.price_max,
        accessible=data.accessible,
        strategy=data.strategy,
        hold_type=data.hold_type,
        source=data.source,
        endpoint_ttl_s=NATIVE_RESERVE_TTL_S,
    )


ROUTES: list[ControllerRouterHandler] = [hold_best, preview_best]
