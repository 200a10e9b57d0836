"""Throws away messages of the outbox that are a week old: whoever follows the feed has long read them."""

from holdfast.store.postgres.database import Database
from holdfast.store.postgres.feed import forget_messages

PAUSE_S = 600.0
BATCH = 10_000


class ForgetMessages:
    name = "forget_messages"

    def __init__(self, database: Database) -> None:
        self._database = database

    async def once(self) -> float:
        async with self._database.transaction(engine=True) as tx:
            forgotten = await forget_messages(tx, BATCH)
        return PAUSE_S if forgotten < BATCH else 0.1
