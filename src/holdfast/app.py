"""The composition root: the only place that wires the parts together.

`Application.open` connects and starts what the process needs; `.asgi` is what a server serves; `.close` ends it in order.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
from litestar.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from holdfast.accounts.credentials import SecretsInvalid, TokenKeys, parse_secrets
from holdfast.accounts.service import AccountsService
from holdfast.accounts.sign_in_service import SignInService
from holdfast.checkout.box_office import BoxOffice
from holdfast.checkout.service import CheckoutService
from holdfast.compat.booking_v2 import BookingV2
from holdfast.gates.service import GatesService
from holdfast.holds.best_available import BestAvailable
from holdfast.holds.combiner import Combiner
from holdfast.holds.service import HoldsService
from holdfast.http.api import build_api
from holdfast.http.auth import Authenticator
from holdfast.http.reserve_protocol import reserve_protocol
from holdfast.http.services import Services
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
from holdfast.settings import Settings
from holdfast.store.catalogue import Catalogue
from holdfast.store.feed import Feed, Wakeups
from holdfast.store.hot.tier import HotTier
from holdfast.store.postgres.database import Database
from holdfast.store.postgres.hold_batches import PostgresBatches
from holdfast.store.postgres.wakeups import PostgresWakeups
from holdfast.store.reconcile import Reconciler
from holdfast.store.redis.wakeups import RedisWakeups
from holdfast.store.redis.warm import Warm
from holdfast.store.registry import Registry
from holdfast.store.warm_writer import WarmWriter
from holdfast.tickets.returns_service import ReturnsService
from holdfast.tickets.service import TicketsService
from holdfast.webhooks.courier import Courier
from holdfast.webhooks.service import WebhooksService
from holdfast.workers.audit_isolation import AuditIsolation
from holdfast.workers.deliver_webhooks import DeliverWebhooks
from holdfast.workers.expire_checkouts import ExpireCheckouts
from holdfast.workers.expire_holds import ExpireHolds
from holdfast.workers.fan_out_webhooks import FanOutWebhooks
from holdfast.workers.fold_occupancy import FoldOccupancy
from holdfast.workers.forget_idempotency import ForgetIdempotency
from holdfast.workers.forget_messages import ForgetMessages
from holdfast.workers.forget_sign_ins import ForgetSignIns
from holdfast.workers.forget_webhooks import ForgetWebhooks
from holdfast.workers.loop import Duties, Duty
from holdfast.workers.measure_orphans import MeasureOrphans
from holdfast.workers.measure_sales import MeasureSales
from holdfast.workers.reconcile_registry import ReconcileRegistry
from holdfast.workers.settle_payments import SettlePayments
from holdfast.workers.snapshot_occupancy import SnapshotOccupancy
from holdfast.workers.write_refusals import WriteRefusals

CATALOGUE_CONNECTIONS = 2


def token_keys(settings: Settings) -> TokenKeys:
    """The keys that sign and verify tokens, out of the settings and the identity provider's file."""
    if settings.jwt_secrets is None:
        raise SecretsInvalid("no secret to sign tokens with: write kid:secret in HOLDFAST_JWT_SECRETS")
    jwks = None
    if settings.jwks_file is not None:
        try:
            jwks = msgspec.json.decode(Path(settings.jwks_file).read_bytes(), type=dict[str, Any])
        except (OSError, msgspec.DecodeError) as error:
            raise SecretsInvalid(f"HOLDFAST_JWKS_FILE={settings.jwks_file}: {error}") from error
    return TokenKeys(
        parse_secrets(settings.jwt_secrets), issuer=settings.jwt_issuer, audience=settings.jwt_audience, jwks=jwks
    )


def _warm_tier(settings: Settings) -> Warm | None:
    if settings.redis_url is None or settings.redis_url in ("none", "embedded"):
        return None  # `embedded` is the caller's to start, and to give the address of
    return Warm.open(settings.redis_url, settings.redis_namespace, settings.redis_timeout_s)


@dataclass
class Application:
    settings: Settings
    database: Database
    writer_database: Database
    catalogue_database: Database
    catalogue: Catalogue
    combiner: Combiner
    services: Services
    refusals: RefusalAudit
    feed: Feed
    hot: HotTier
    live: LiveService
    warm: Warm | None
    warm_writer: WarmWriter | None  # of a process with background duties
    reconciler: Reconciler
    duties: Duties
    courier: Courier
    deliver_webhooks: DeliverWebhooks | None

    @cached_property
    def asgi(self) -> ASGIApp:
        """Made when it is first served: commands and workers have no use for the routes."""
        return build_api(self.services)

    @cached_property
    def protocol(self) -> type[HttpToolsProtocol]:
        """The connection class for the server."""
        return reserve_protocol(self.services)

    @classmethod
    async def open(cls, settings: Settings, *, work: bool = True, serve: bool = True) -> "Application":
        """Connects with `settings.database_url`, the application's role. `work`: runs the background duties too."""
        if settings.database_url is None:
            raise ValueError("database_url must be set: the caller starts the embedded server where none is given")
        database = await Database.open(settings.database_url, settings.database_pool)
        writer_database = await Database.open(
            settings.database_url, settings.writer_connections, settings.writer_deadline_s
        )
        # Of its own, because transactions ask the catalogue: if these had all the connections, it could never answer.
        catalogue_database = await Database.open(settings.database_url, CATALOGUE_CONNECTIONS)
        catalogue = Catalogue(catalogue_database, settings)
        warm = _warm_tier(settings)
        wakeups: list[Wakeups] = [] if warm is None else [RedisWakeups(warm)]
        wakeups.append(PostgresWakeups(database, settings.database_url))
        feed = Feed(database, wakeups)
        feed.followers.append(catalogue)  # before those who ask it for what the feed tells of
        hot = HotTier(database, feed, events_max=settings.hot_events, bytes_max=settings.hot_bytes)
        catalogue.on_read.append(hot.take_terms)
        hot.current_view = catalogue.fresh_event
        live = LiveService(
            database,
            feed,
            hot,
            read_again=catalogue.event,
            coalesce_s=settings.live_coalesce_ms / 1000,
            clients_max=settings.live_clients,
            heartbeat_s=settings.live_heartbeat_s,
        )
        reconciler = Reconciler(database, feed, hot, warm)
        warm_writer = None if warm is None or not work else WarmWriter(database, catalogue, feed, warm, reconciler)
        registry = Registry(database, feed, hot, warm)
        database.on_write = writer_database.on_write = feed.announce
        database.on_moved = hot.doubt
        combiner = Combiner(
            PostgresBatches(writer_database, settings.hold_window_s),
            lanes=settings.writer_connections,
            batch_size=settings.batch_size,
            queue_limit=settings.writer_queue,
            deadline_s=settings.writer_deadline_s,
        )
        refusals = RefusalAudit(database, settings.failure_audit_sample)
        accounts = AccountsService(database, token_keys(settings))
        accounts.on_config_change.append(catalogue.forget)
        sign_ins = SignInService(database, accounts)
        occupancy = OccupancyService(database, catalogue, warm)
        feed.followers.append(occupancy)
        gates = GatesService(database, catalogue)
        gates.on_attendance.append(occupancy.forget_attendance)
        seating = SeatingService(database, catalogue, settings)
        courier = Courier(private_targets=settings.webhook_private_targets)
        payments = PaymentsService(database, catalogue)
        holds = HoldsService(database, catalogue, combiner, registry, refusals, settings)
        catalogue.pressure_of = holds.pressure_of
        services = Services(
            settings=settings,
            database=database,
            accounts=accounts,
            sign_ins=sign_ins,
            seating=seating,
            layout_files=LayoutFiles(database, catalogue, seating),
            series=SeriesService(database, catalogue),
            places=PlacesService(database, catalogue),
            migrations=MigrationService(database, catalogue),
            holds=holds,
            best=BestAvailable(holds, catalogue, registry, settings),
            booking=BookingV2(database, catalogue, settings.hold_window_s, settings.bulk_seats_max),
            checkouts=CheckoutService(database, catalogue, settings),
            box_office=BoxOffice(database, catalogue, settings.bulk_seats_max),
            returns=ReturnsService(database, catalogue),
            insight=InsightService(database, catalogue),
            analytics=AnalyticsService(database, catalogue),
            authenticator=Authenticator(accounts, sign_ins, trusted_proxies=settings.trusted_proxies),
            refusals=refusals,
            catalogue=catalogue,
            live=live,
            availability=Availability(hot, live),
            registry=RegistryService(database, catalogue, reconciler),
            occupancy=occupancy,
            public_events=PublicEvents(database, catalogue, occupancy),
            feed=feed,
            warm=warm,
            geometry=GeometryService(catalogue),
            payments=payments,
            tickets=TicketsService(database, catalogue),
            gates=gates,
            webhooks=WebhooksService(database, courier, overlap_s=settings.webhook_secret_overlap_s),
        )
        housekeeping: list[Duty] = [WriteRefusals(refusals), MeasureOrphans(registry, holds.orphans)] if serve else []
        if serve or work:
            housekeeping.append(ReconcileRegistry(database, catalogue, hot, reconciler, all_events=work))
        deliver: DeliverWebhooks | None = None
        if work:
            housekeeping.append(ExpireHolds(database, settings.sweeper_grace_s, settings.sweeper_batch))
            housekeeping += [ExpireCheckouts(database), ForgetIdempotency(database), ForgetMessages(database)]
            housekeeping.append(SettlePayments(database, payments.settlement))
            housekeeping.append(ForgetSignIns(database))
            housekeeping += [FoldOccupancy(database), SnapshotOccupancy(database)]
            housekeeping += [MeasureSales(database, catalogue), AuditIsolation(database, warm)]
            deliver = DeliverWebhooks(
                database,
                courier,
                total=settings.webhook_concurrency,
                per_endpoint=settings.webhook_endpoint_concurrency,
            )
            housekeeping += [FanOutWebhooks(database, catalogue), deliver, ForgetWebhooks(database)]
        duties = Duties(housekeeping)
        await feed.start()
        live.start()
        if warm_writer is not None:
            warm_writer.start()
        combiner.start()
        duties.start()
        return cls(
            settings=settings,
            database=database,
            writer_database=writer_database,
            catalogue_database=catalogue_database,
            catalogue=catalogue,
            combiner=combiner,
            services=services,
            refusals=refusals,
            feed=feed,
            hot=hot,
            live=live,
            warm=warm,
            warm_writer=warm_writer,
            reconciler=reconciler,
            duties=duties,
            courier=courier,
            deliver_webhooks=deliver,
        )

    async def close(self) -> None:
        """Answers what was accepted, then lets go."""
        await self.combiner.close()
        await self.duties.stop()
        if self.deliver_webhooks is not None:
            await self.deliver_webhooks.close()
        await self.courier.close()
        await self.services.public_events.close()
        await self.services.occupancy.close()
        self.services.sign_ins.close()
        await self.live.close()
        if self.warm_writer is not None:
            await self.warm_writer.close()
        await self.feed.close()
        await self.hot.close()
        if self.warm is not None:
            await self.warm.close()
        await self.refusals.write()
        await self.catalogue.close()
        await self.catalogue_database.close()
        await self.writer_database.close()
        await self.database.close()
