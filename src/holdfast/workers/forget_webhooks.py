"""Forgets what webhooks said, and how it went, after thirty days; and the queue's own log after one."""

from holdfast.store.postgres.database import Database
from holdfast.store.postgres.idempotency import every_organization
from holdfast.store.postgres.webhook_queue import forget_log
from holdfast.store.postgres.webhooks import forget_old

KEPT_DAYS = 30
BATCH = 1_000


class ForgetWebhooks:
    name = "forget_webhooks"

    def __init__(self, database: Database, kept_days: int = KEPT_DAYS) -> None:
        self._database = database
        self._kept_days = kept_days

    async def once(self) -> float:
        async with self._database.transaction(engine=True) as tx:
            organizations = await every_organization(tx)
        for organization_id in organizations:
            forgotten = BATCH
            while forgotten == BATCH:
                async with self._database.transaction(organization_id) as tx:
                    forgotten = await forget_old(tx, organization_id, self._kept_days, BATCH)
        async with self._database.transaction() as tx:
            await forget_log(tx)
        return 600.0
