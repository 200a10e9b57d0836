"""The only way to PostgreSQL: a pool of connections, and transactions that belong to one organization.

A transaction names its organization with a setting that lives exactly as long as it does. Without it row-level security
shows no rows, so a forgotten scope finds nothing instead of everything. Nothing is kept on a connection between
transactions, which also makes the pool safe behind a transaction-pooling proxy.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, TypeAlias, TypeVar
from uuid import UUID

import asyncpg

T = TypeVar("T")
Row = asyncpg.Record
Connection: TypeAlias = "asyncpg.pool.PoolConnectionProxy[asyncpg.Record]"

OnMoved = Callable[[UUID, UUID, list[int]], None]

RETRIES = 3
RETRYABLE = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)


class _Connection(asyncpg.Connection):
    def get_reset_query(self) -> str:
        return ""  # every setting is transaction-local: nothing to reset


class Transaction:
    """What a service passes on: queries within one transaction, and what is to happen once it has committed."""

    def __init__(
        self, connection: Connection, organization_id: UUID | None = None, on_moved: "OnMoved | None" = None
    ) -> None:
        self._connection = connection
        self._organization_id = organization_id
        self._on_moved = on_moved
        self._after_commit: list[Callable[[], None]] = []

    async def fetch(self, query: str, *args: Any) -> list[Row]:
        return await self._connection.fetch(query, *args)

    async def fetchrow(self, query: str, *args: Any) -> Row | None:
        return await self._connection.fetchrow(query, *args)

    async def fetchval(self, query: str, *args: Any) -> Any:
        return await self._connection.fetchval(query, *args)

    async def execute(self, query: str, *args: Any) -> str:
        return await self._connection.execute(query, *args)

    async def now(self) -> datetime:
        """The database's clock, which decides everywhere."""
        now: datetime = await self._connection.fetchval("SELECT holdfast_now()")
        return now

    def after_commit(self, action: Callable[[], None]) -> None:
        """Caches and messages follow the commit, never precede it."""
        self._after_commit.append(action)

    def moved(self, event_id: UUID, ordinals: Iterable[int | None]) -> None:
        """These seats are not what they were, once this has committed: what is remembered of them is in doubt."""
        seats = [ordinal for ordinal in ordinals if ordinal is not None]
        if self._on_moved is not None and self._organization_id is not None and seats:
            on_moved, organization_id = self._on_moved, self._organization_id
            self.after_commit(lambda: on_moved(organization_id, event_id, seats))

    def committed(self) -> None:
        for action in self._after_commit:
            action()


class Database:
    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self.on_write: Callable[[], None] | None = None
        """Called when something was committed that others may want to know of."""
        self.on_moved: OnMoved | None = None
        """Called with the seats that a transaction moved (`Transaction.moved`), once it has committed."""

    def wrote(self) -> None:
        if self.on_write is not None:
            self.on_write()

    @classmethod
    async def open(cls, dsn: str, connections: int, timeout_s: float = 60.0) -> "Database":
        """`timeout_s`: a statement that takes longer is given up."""
        pool = await asyncpg.create_pool(
            dsn,
            min_size=min(2, connections),
            max_size=connections,
            connection_class=_Connection,
            command_timeout=timeout_s,
            server_settings={"application_name": "holdfast"},
        )
        return cls(pool)

    async def close(self) -> None:
        try:
            await asyncio.wait_for(self._pool.close(), 5)
        except TimeoutError:
            self._pool.terminate()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A bare connection, for single calls that enter their organization themselves (the batching writer)."""
        async with self._pool.acquire() as connection:
            yield connection

    @asynccontextmanager
    async def transaction(
        self, organization_id: UUID | None = None, *, tenant_id: UUID | None = None, engine: bool = False
    ) -> AsyncIterator[Transaction]:
        """One transaction, one try. Most writers want `run`, which retries."""
        async with self._pool.acquire() as connection:
            # The settings travel with BEGIN in one round trip; ids are UUID objects, so their text is safe to embed.
            opening = "BEGIN;"
            if organization_id is not None:
                opening += f"SET LOCAL holdfast.organization_id = '{UUID(str(organization_id))}';"
            if tenant_id is not None:
                opening += f"SET LOCAL holdfast.tenant_id = '{UUID(str(tenant_id))}';"
            if engine:
                opening += "SET LOCAL ROLE holdfast_engine;"
            await connection.execute(opening)
            transaction = Transaction(connection, organization_id, self.on_moved)
            try:
                yield transaction
            except BaseException:
                if not connection.is_closed():
                    await connection.execute("ROLLBACK")
                raise
            await connection.execute("COMMIT")
        transaction.committed()

    async def run(self, organization_id: UUID, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Runs `work` in a transaction of this organization; a deadlock or serialization failure is tried again."""
        for attempt in range(RETRIES + 1):
            try:
                async with self.transaction(organization_id) as transaction:
                    done = await work(transaction)
                self.wrote()
                return done
            except RETRYABLE:
                if attempt == RETRIES:
                    raise
                await asyncio.sleep(retry_delay_s(attempt))
        raise AssertionError("unreachable")


def retry_delay_s(attempt: int) -> float:
    """10, 20, 40 ms, with jitter so that two losers do not meet again."""
    return float(0.010 * 2**attempt * random.uniform(0.5, 1.5))
