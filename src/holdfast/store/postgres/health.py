"""Whether this database can be worked with."""

import asyncio

import asyncpg

from holdfast.store.postgres.database import Database
from holdfast.store.postgres.migrate import pending


class Health:
    """Asks the database each time. The schema is compared until it was found current once: it only moves forward,
    and a node must not turn itself off because a newer one has migrated."""

    def __init__(self, database: Database, patience_s: float = 2.0) -> None:
        self._database = database
        self._patience_s = patience_s
        self._current = False

    async def fault(self) -> str | None:
        """None: ready. Otherwise a sentence that says what is missing."""
        try:
            async with asyncio.timeout(self._patience_s), self._database.connection() as connection:
                if self._current:
                    await connection.fetchval("SELECT 1")
                    return None
                missing = await pending(connection)
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            return f"The database does not answer ({type(error).__name__})."
        self._current = not missing
        return None if self._current else "The schema is behind; run: holdfast migrate"
