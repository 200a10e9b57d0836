"""The sweeper: frees the seats of holds whose life is over. Any number of them may run at once."""

import asyncio
import time
from uuid import UUID

from prometheus_client import Counter, Gauge

from holdfast.store.postgres.database import Database
from holdfast.store.postgres.holds import (
    expire_due_holds,
    organizations_with_due_holds,
    seconds_to_next_expiry,
)
from holdfast.store.postgres.sales import longest_overdue_s

EXPIRED = Counter("holdfast_holds_expired_total", "Holds expired by the sweeper")
BACKLOG = Gauge("holdfast_sweeper_organizations_due", "Organizations with holds that are over and not yet swept")
LAG = Gauge("holdfast_sweeper_lag_seconds", "How long the hold that should have ended first has been over, unswept")

LONGEST_PAUSE_S = 1.0
SHORTEST_PAUSE_S = 0.02
# Between full batches, so many times a batch's duration: buyers come first, and may take these seats anyway.
YIELD = 2.0


class ExpireHolds:
    name = "expire_holds"

    def __init__(self, database: Database, grace_s: float = 0.0, batch: int = 1_000) -> None:
        self._database = database
        self._grace_s = grace_s
        self._batch = batch

    async def once(self) -> float:
        async with self._database.transaction(engine=True) as tx:
            due = await organizations_with_due_holds(tx, self._grace_s)
            LAG.set(await longest_overdue_s(tx))
        BACKLOG.set(len(due))
        expired = 0
        for organization_id in due:
            expired += await self.sweep(organization_id)
        async with self._database.transaction(engine=True) as tx:
            next_s = await seconds_to_next_expiry(tx)
        if next_s is None:
            return LONGEST_PAUSE_S
        # Woken by the next expiry. One already over is locked by somebody at this moment: look again soon.
        return min(LONGEST_PAUSE_S, max(SHORTEST_PAUSE_S, next_s + self._grace_s))

    async def sweep(self, organization_id: UUID) -> int:
        """Bounded batches, each a transaction, until one finds nothing left that nobody else is working on."""
        total = 0
        while True:
            started = time.monotonic()
            async with self._database.connection() as connection:
                expired = await expire_due_holds(connection, organization_id, self._grace_s, self._batch)
            total += expired
            EXPIRED.inc(expired)
            if expired:
                self._database.wrote()
            if expired == 0:
                return total
            if expired >= self._batch:
                await asyncio.sleep(YIELD * (time.monotonic() - started))
