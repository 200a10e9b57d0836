"""The registry's health as operators and organisers ask for it: what each tier says of an event, and putting it right."""

from uuid import UUID

import msgspec

from holdfast.accounts.principal import Call, require_manager
from holdfast.kernel.errors import EventNotFound
from holdfast.seating.view import EventView
from holdfast.store.catalogue import Catalogue
from holdfast.store.postgres.database import Database
from holdfast.store.postgres.events import list_on_sale
from holdfast.store.reconcile import DRIFT, Reconciler, TierStatus

EVENTS_MAX = 200


class RegistryStatus(msgspec.Struct, frozen=True):
    consistent: bool
    drift: int
    events: list[TierStatus]


class RegistryService:
    def __init__(self, database: Database, catalogue: Catalogue, reconciler: Reconciler) -> None:
        self._database = database
        self._catalogue = catalogue
        self._reconciler = reconciler

    async def status(self, call: Call, event_id: UUID | None) -> RegistryStatus:
        """Of one event, or of all that are on sale. Changes nothing."""
        require_manager(call)
        views = await self._views(call.organization_id, event_id)
        return summed([await self._reconciler.status(view) for view in views])

    async def reconcile(self, call: Call, event_id: UUID | None) -> RegistryStatus:
        """Puts right what the tiers above the database say wrong; answers what was found. Safe under load."""
        require_manager(call)
        views = await self._views(call.organization_id, event_id)
        return summed([await self._reconciler.reconcile(view) for view in views])

    async def _views(self, organization_id: UUID, event_id: UUID | None) -> list[EventView]:
        if event_id is not None:
            view = await self._catalogue.event(organization_id, event_id)
            if view is None:
                raise EventNotFound
            return [view]
        async with self._database.transaction(organization_id) as tx:
            wanted = await list_on_sale(tx, organization_id, EVENTS_MAX)
        found = [await self._catalogue.event(organization_id, each) for each in wanted]
        return [view for view in found if view is not None]


def summed(statuses: list[TierStatus]) -> RegistryStatus:
    drift = sum(drift_of(status) for status in statuses)
    return RegistryStatus(drift == 0, drift, statuses)


def drift_of(status: TierStatus) -> int:
    return status.hot.drift + (0 if status.warm is None else status.warm.drift)


def show_drift(statuses: list[TierStatus]) -> None:
    """As the metric."""
    DRIFT.labels("hot").set(sum(status.hot.drift for status in statuses))
    DRIFT.labels("warm").set(sum(status.warm.drift for status in statuses if status.warm is not None))
