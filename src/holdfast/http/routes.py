"""Every route of the product."""

from litestar.types import ControllerRouterHandler

from holdfast.http import (
    accounts,
    booking_v2,
    geometry,
    holds,
    insight,
    live,
    migrations,
    occupancy,
    registry,
    seating,
    system,
    webhooks,
)

ROUTES: list[ControllerRouterHandler] = [
    *system.ROUTES,
    *accounts.ROUTES,
    *seating.ROUTES,
    *migrations.ROUTES,
    *insight.ROUTES,
    *holds.ROUTES,
    *booking_v2.ROUTES,
    *live.ROUTES,
    *geometry.ROUTES,
    *occupancy.ROUTES,
    *registry.ROUTES,
    *webhooks.ROUTES,
]
