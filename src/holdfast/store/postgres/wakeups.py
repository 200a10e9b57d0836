"""Calls between processes through PostgreSQL, where there is no Redis: a NOTIFY without content, from a connection that
does nothing else. Inside the transactions that move seats it would cost a third of their throughput."""

import asyncio
from collections.abc import Callable

import asyncpg
import structlog

from holdfast.store.postgres.database import Database

log = structlog.get_logger(__name__)

CHANNEL = "holdfast_news"
AGAIN_S = 0.5


class PostgresWakeups:
    def __init__(self, database: Database, dsn: str) -> None:
        self._database = database
        self._dsn = dsn

    async def call(self) -> bool:
        async with self._database.connection() as connection:
            await connection.execute("SELECT pg_notify($1, '')", CHANNEL)
        return True

    async def listen(self, wake: Callable[[], None]) -> None:
        while True:
            try:
                await self._listen_once(wake)
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError) as error:
                log.debug("news_unheard", error=repr(error))
            await asyncio.sleep(AGAIN_S)

    async def _listen_once(self, wake: Callable[[], None]) -> None:
        """Until the connection ends."""
        ended = asyncio.Event()
        settings = {"application_name": "holdfast-news"}
        connection = await asyncpg.connect(self._dsn, timeout=5, server_settings=settings)
        try:
            connection.add_termination_listener(lambda _: ended.set())
            await connection.add_listener(CHANNEL, lambda *_: wake())
            wake()  # whatever was called before it listened
            await ended.wait()
        finally:
            connection.terminate()
