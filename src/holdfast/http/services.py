"""What the handlers work with, and how they get at it."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from litestar import Request

from holdfast.accounts.service import AccountsService
from holdfast.accounts.sign_in_service import SignInService
from holdfast.settings import Settings
from holdfast.store.postgres.database import Database
from holdfast.store.postgres.health import Health

if TYPE_CHECKING:
    from holdfast.checkout.box_office import BoxOffice
    from holdfast.checkout.service import CheckoutService
    from holdfast.compat.booking_v2 import BookingV2
    from holdfast.gates.service import GatesService
    from holdfast.holds.best_available import BestAvailable
    from holdfast.holds.service import HoldsService
    from holdfast.http.auth import Authenticator
    from holdfast.insight.analytics_service import AnalyticsService
    from holdfast.insight.occupancy_service import OccupancyService
    from holdfast.insight.public_service import PublicEvents
    from holdfast.insight.refusals import RefusalAudit
    from holdfast.insight.registry import RegistryService
    from holdfast.insight.service import InsightService
    from holdfast.live.availability import Availability
    from holdfast.live.geometry_service import GeometryService
    from holdfast.live.service import LiveService
    from holdfast.payments.service import PaymentsService
    from holdfast.seating.files_service import LayoutFiles
    from holdfast.seating.migration_service import MigrationService
    from holdfast.seating.places_service import PlacesService
    from holdfast.seating.series_service import SeriesService
    from holdfast.seating.service import SeatingService
    from holdfast.store.catalogue import Catalogue
    from holdfast.store.feed import Feed
    from holdfast.store.redis.warm import Warm
    from holdfast.tickets.returns_service import ReturnsService
    from holdfast.tickets.service import TicketsService
    from holdfast.webhooks.service import WebhooksService


@dataclass(frozen=True, kw_only=True)
class Services:
    settings: Settings
    database: Database
    accounts: AccountsService
    sign_ins: SignInService
    authenticator: "Authenticator"
    seating: "SeatingService"
    series: "SeriesService"
    places: "PlacesService"
    layout_files: "LayoutFiles"
    migrations: "MigrationService"
    holds: "HoldsService"
    best: "BestAvailable"
    booking: "BookingV2"
    checkouts: "CheckoutService"
    box_office: "BoxOffice"
    returns: "ReturnsService"
    insight: "InsightService"
    analytics: "AnalyticsService"
    refusals: "RefusalAudit"
    catalogue: "Catalogue"
    live: "LiveService"
    availability: "Availability"
    registry: "RegistryService"
    webhooks: "WebhooksService"
    occupancy: "OccupancyService"
    geometry: "GeometryService"
    payments: "PaymentsService"
    tickets: "TicketsService"
    gates: "GatesService"
    public_events: "PublicEvents"
    feed: "Feed | None" = None
    warm: "Warm | None" = None
    health: Health = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "health", Health(self.database, self.feed, self.warm))


SERVICES = "holdfast.services"
"""Where a request finds them in its scope: the routes are the same for every application of a process."""


def services(request: Request[Any, Any, Any]) -> Services:
    found: Services = request.scope[SERVICES]  # type: ignore[literal-required]
    return found
