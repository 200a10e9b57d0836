"""Messages of the outbox are kept for a week and no longer."""

import asyncio

import asyncpg

from holdfast.kernel.ids import new_id
from holdfast.store.postgres.database import Database
from holdfast.workers.forget_messages import ForgetMessages
from tests.conftest import TestDatabase


def test_messages_are_forgotten_after_a_week_and_not_before(database: TestDatabase) -> None:
    async def check() -> None:
        owner = await asyncpg.connect(database.owner)
        for organization_id in (new_id(), new_id()):
            for age in ("8 days", "7 days 1 minute", "6 days 23 hours", "0"):
                await owner.execute(
                    "INSERT INTO outbox (organization_id, at, kind) VALUES ($1, now() - $2::text::interval, $3)",
                    organization_id,
                    age,
                    age,
                )
        pool = await Database.open(database.app, 2)
        await ForgetMessages(pool).once()
        await pool.close()
        left = await owner.fetch("SELECT kind, count(*) AS n FROM outbox GROUP BY 1 ORDER BY 1")
        await owner.close()
        assert [(row["kind"], row["n"]) for row in left] == [("0", 2), ("6 days 23 hours", 2)]

    asyncio.run(check())
