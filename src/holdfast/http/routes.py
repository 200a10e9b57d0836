"""Every route of the product."""

from litestar.types import ControllerRouterHandler

from holdfast.http import accounts, booking_v2, holds, insight, live, registry, seating, system

ROUTES: list[ControllerRouterHandler] = [
    *system.ROUTES,
    *accounts.ROUTES,
    *seating.ROUTES,
    *insight.ROUTES,
    *holds.ROUTES,
    *booking_v2.ROUTES,
    *live.ROUTES,
    *registry.ROUTES,
]
