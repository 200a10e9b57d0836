"""Every route of the product."""

from litestar.types import ControllerRouterHandler

from holdfast.http import (
    accounts,
    best_available,
    booking_v2,
    geometry,
    holds,
    insight,
    layout_files,
    live,
    migrations,
    occupancy,
    pages,
    places,
    public,
    registry,
    seating,
    series,
    session,
    system,
    webhooks,
)

ROUTES: list[ControllerRouterHandler] = [
    *system.ROUTES,
    *accounts.ROUTES,
    *session.ROUTES,
    *seating.ROUTES,
    *series.ROUTES,
    *places.ROUTES,
    *layout_files.ROUTES,
    *migrations.ROUTES,
    *insight.ROUTES,
    *holds.ROUTES,
    *best_available.ROUTES,
    *booking_v2.ROUTES,
    *live.ROUTES,
    *geometry.ROUTES,
    *occupancy.ROUTES,
    *registry.ROUTES,
    *webhooks.ROUTES,
    *public.ROUTES,
    *pages.ROUTES,
]
