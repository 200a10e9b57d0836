"""Ends the sessions that nobody completed. Any number of these may run at once: each takes what no other is working on."""

from prometheus_client import Counter

from holdfast.checkout.ending import expire_checkouts
from holdfast.store.postgres.checkouts import organizations_with_due_checkouts, seconds_to_next_due
from holdfast.store.postgres.database import Database, Transaction

EXPIRED = Counter("holdfast_checkouts_expired_total", "Checkout sessions that ended without being completed")

LONGEST_PAUSE_S = 10.0
SHORTEST_PAUSE_S = 0.1


class ExpireCheckouts:
    name = "expire_checkouts"

    def __init__(self, database: Database, batch: int = 200) -> None:
        self._database = database
        self._batch = batch

    async def once(self) -> float:
        async with self._database.transaction(engine=True) as tx:
            due = await organizations_with_due_checkouts(tx)

        async def step(tx: Transaction) -> int:
            return await expire_checkouts(tx, organization_id, self._batch)

        for organization_id in due:
            while True:
                ended = await self._database.run(organization_id, step)
                EXPIRED.inc(ended)
                if ended < self._batch:
                    break
        async with self._database.transaction(engine=True) as tx:
            next_s = await seconds_to_next_due(tx)
        # One already over is being worked on by somebody at this moment: look again soon.
        return LONGEST_PAUSE_S if next_s is None else min(LONGEST_PAUSE_S, max(SHORTEST_PAUSE_S, next_s))
