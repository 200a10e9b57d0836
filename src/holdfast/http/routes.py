"""Every route of the product."""

from litestar.types import ControllerRouterHandler

from holdfast.http import (
    accounts,
    admissions,
    best_available,
    booking_v2,
    checkouts,
    geometry,
    holds,
    insight,
    layout_files,
    live,
    migrations,
    occupancy,
    payments,
    places,
    registry,
    seating,
    series,
    system,
    tickets,
    webhooks,
)

ROUTES: list[ControllerRouterHandler] = [
    *system.ROUTES,
    *accounts.ROUTES,
    *seating.ROUTES,
    *series.ROUTES,
    *places.ROUTES,
    *layout_files.ROUTES,
    *migrations.ROUTES,
    *insight.ROUTES,
    *holds.ROUTES,
    *best_available.ROUTES,
    *booking_v2.ROUTES,
    *checkouts.ROUTES,
    *live.ROUTES,
    *geometry.ROUTES,
    *occupancy.ROUTES,
    *registry.ROUTES,
    *webhooks.ROUTES,
    *payments.ROUTES,
    *tickets.ROUTES,
    *admissions.ROUTES,
]
