"""Keeps how full every event on sale is, once a minute, for the trends. Any number may run: a minute is kept once."""

from datetime import datetime

from prometheus_client import Counter

from holdfast.store.postgres.database import Database
from holdfast.store.postgres.occupancy import events_on_sale, keep_snapshots, minute_now

KEPT = Counter("holdfast_occupancy_snapshots_total", "Minutes of events kept for the trends")

SHORTEST_PAUSE_S = 0.05
EVENTS_AT_ONCE = 500


class SnapshotOccupancy:
    name = "snapshot_occupancy"

    def __init__(self, database: Database) -> None:
        self._database = database
        self._done: datetime | None = None

    async def once(self) -> float:
        """Just after the minute has begun; a start in its midst counts for the minute too, where nobody was there."""
        async with self._database.transaction(engine=True) as tx:
            minute, left_s = await minute_now(tx)
            if minute == self._done:
                return max(SHORTEST_PAUSE_S, left_s)
            on_sale = await events_on_sale(tx)
        for organization_id, events in on_sale.items():
            for start in range(0, len(events), EVENTS_AT_ONCE):
                async with self._database.transaction(organization_id) as tx:
                    some = events[start : start + EVENTS_AT_ONCE]
                    KEPT.inc(await keep_snapshots(tx, organization_id, some, minute))
        self._done = minute
        return SHORTEST_PAUSE_S
