"""Whether this process can do its work: the database, the change feed it lives by, and the tier it could do without."""

import asyncio
import time

import asyncpg

from holdfast.store.feed import Feed
from holdfast.store.postgres.database import Database
from holdfast.store.postgres.migrate import pending
from holdfast.store.redis.warm import Warm

STALE_AFTER_S = 10.0
"""A process that has not heard from the feed for so long shows what is not so any more."""


class Health:
    """Asks the database each time. The schema is compared until it was found current once: it only moves forward,
    and a node must not turn itself off because a newer one has migrated."""

    def __init__(
        self, database: Database, feed: Feed | None = None, warm: Warm | None = None, *, patience_s: float = 2.0
    ) -> None:
        """`feed`, `warm`: None where the process has none."""
        self._database = database
        self._feed = feed
        self._warm = warm
        self._patience_s = patience_s
        self._current = False
        self._heard_at = time.monotonic()

    async def fault(self) -> str | None:
        """None: ready. Otherwise a sentence that says what is missing."""
        fault = await self._database_fault()
        if fault is not None:
            return fault
        silent_s = self._feed_silent_s()
        if silent_s > STALE_AFTER_S:
            return f"Nothing was heard from the change feed for {silent_s:.0f} s."
        return None

    def feed_state(self) -> str:
        if self._feed is None:
            return "none"
        return "fresh" if time.monotonic() < self._feed.trusted_until else "stale"

    def warm_state(self) -> str:
        if self._warm is None:
            return "none"
        return "ok" if self._warm.available else "away"

    def _feed_silent_s(self) -> float:
        """The feed forgets when it was last trusted once it is lost: what it said before that is remembered here."""
        if self._feed is None:
            return 0.0
        self._heard_at = max(self._heard_at, self._feed.trusted_until)
        return time.monotonic() - self._heard_at

    async def _database_fault(self) -> str | None:
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
