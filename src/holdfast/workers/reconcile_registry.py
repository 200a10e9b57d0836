"""Every five minutes: whether the tiers above the database say what it says; what does not is put right and counted."""

from holdfast.insight.registry import drift_of, show_drift
from holdfast.seating.view import EventView
from holdfast.store.catalogue import Catalogue
from holdfast.store.hot.tier import HotTier
from holdfast.store.postgres.database import Database
from holdfast.store.postgres.occupancy import events_on_sale
from holdfast.store.reconcile import Reconciler, TierStatus

PAUSE_S = 300.0


class ReconcileRegistry:
    """In every process, because each has a memory of its own. `all_events`: also those that only the warm tier knows."""

    name = "reconcile_registry"

    def __init__(
        self, database: Database, catalogue: Catalogue, hot: HotTier, reconciler: Reconciler, *, all_events: bool
    ) -> None:
        self._database = database
        self._catalogue = catalogue
        self._hot = hot
        self._reconciler = reconciler
        self._all_events = all_events
        self._started = False

    async def once(self) -> float:
        if not self._started:  # a process that has just begun has nothing to look at yet
            self._started = True
            return PAUSE_S
        found: list[TierStatus] = []
        for view in await self._views():
            found.append(await self._reconciler.reconcile(view))
        show_drift(found)
        # What was wrong may be wrong again soon: look sooner than usual.
        return PAUSE_S if not any(map(drift_of, found)) else PAUSE_S / 10

    async def _views(self) -> list[EventView]:
        wanted = {(event.organization_id, event.event_id) for event in self._hot.events()}
        if self._all_events:
            async with self._database.transaction(engine=True) as tx:
                on_sale = await events_on_sale(tx)
            wanted |= {(organization_id, event_id) for organization_id, ids in on_sale.items() for event_id in ids}
        found = [await self._catalogue.event(*key) for key in sorted(wanted)]
        return [view for view in found if view is not None]
