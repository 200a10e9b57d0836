"""Forgets signed-in browsers whose time is over, and attempts to sign in that no longer count."""

from holdfast.store.postgres.database import Database
from holdfast.store.postgres.idempotency import every_organization
from holdfast.store.postgres.sign_ins import forget_failures, forget_sign_ins


class ForgetSignIns:
    name = "forget_sign_ins"

    def __init__(self, database: Database) -> None:
        self._database = database

    async def once(self) -> float:
        async with self._database.transaction(engine=True) as tx:
            organizations = await every_organization(tx)
        for organization_id in organizations:
            async with self._database.transaction(organization_id) as tx:
                await forget_sign_ins(tx, organization_id)
        async with self._database.transaction() as tx:
            await forget_failures(tx)
        return 600.0
