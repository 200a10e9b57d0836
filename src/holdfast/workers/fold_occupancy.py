"""Adds up what has changed in the counters of occupancy, so that a reader finds little to add up. Any number may run."""

from prometheus_client import Counter

from holdfast.store.postgres.database import Database
from holdfast.store.postgres.occupancy import changed_events, fold

FOLDED = Counter("holdfast_occupancy_changes_folded_total", "Changes of occupancy added to the counts")

PAUSE_S = 1.0


class FoldOccupancy:
    name = "fold_occupancy"

    def __init__(self, database: Database, batch: int = 10_000) -> None:
        self._database = database
        self._batch = batch

    async def once(self) -> float:
        async with self._database.transaction(engine=True) as tx:
            changed = await changed_events(tx)
        for organization_id, events in changed.items():
            folded: int | None = self._batch
            while folded == self._batch:
                async with self._database.transaction(organization_id) as tx:
                    folded = await fold(tx, organization_id, events, self._batch)
                FOLDED.inc(folded or 0)
        return PAUSE_S
