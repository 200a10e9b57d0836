"""Forgets Idempotency-Keys older than their promise."""

from holdfast.store.postgres.database import Database
from holdfast.store.postgres.idempotency import every_organization, forget_old_keys


class ForgetIdempotency:
    name = "forget_idempotency"

    def __init__(self, database: Database) -> None:
        self._database = database

    async def once(self) -> float:
        async with self._database.transaction(engine=True) as tx:
            organizations = await every_organization(tx)
        for organization_id in organizations:
            async with self._database.transaction(organization_id) as tx:
                await forget_old_keys(tx, organization_id)
        return 600.0
