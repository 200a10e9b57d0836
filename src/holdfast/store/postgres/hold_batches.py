"""The batching writer's side of the store: one batch, one call, one transaction."""

import asyncio
from collections.abc import Sequence

import asyncpg

from holdfast.holds.claims import Held, HoldRequest, PlacedHold, Verdict
from holdfast.holds.combiner import BatchLost, BatchRejected
from holdfast.store.postgres import holds
from holdfast.store.postgres.database import RETRIES, RETRYABLE, Database, retry_delay_s

# The server, or the way to it, went away in the middle: the batch may or may not have been committed.
_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a connection whose server was killed in the middle of an answer
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.QueryCanceledError,
    OSError,
    TimeoutError,
)


class PostgresBatches:
    def __init__(self, database: Database, window_s: int) -> None:
        self._database = database
        self._window_s = window_s

    async def hold(self, requests: Sequence[HoldRequest]) -> list[Verdict]:
        call = holds.hold_seats if requests[0].seats else holds.hold_places
        for attempt in range(RETRIES + 1):
            try:
                async with self._database.connection() as connection:
                    verdicts = await call(connection, requests, self._window_s)
                self._database.wrote()
                return verdicts
            except RETRYABLE as error:
                if attempt == RETRIES:
                    raise BatchRejected from error
                await asyncio.sleep(retry_delay_s(attempt))
            except _LOST as error:
                raise BatchLost from error
            except asyncpg.PostgresError as error:
                raise BatchRejected from error
        raise AssertionError("unreachable")

    async def find_placed(self, requests: Sequence[HoldRequest]) -> list[Held | None]:
        organization_id = requests[0].organization_id
        wanted = [hold_id for r in requests for hold_id in r.hold_ids]
        try:
            async with self._database.transaction(organization_id) as tx:
                found = await holds.placed_among(tx, organization_id, wanted)
        except (*_LOST, asyncpg.PostgresError) as error:
            raise BatchLost from error
        return [_as_held(request, found) for request in requests]


def _as_held(request: HoldRequest, found: dict[object, asyncpg.Record]) -> Held | None:
    """A request is committed whole or not at all, so its first hold speaks for the rest."""
    rows = [found.get(hold_id) for hold_id in request.hold_ids]
    if rows[0] is None:
        return None
    placed = [
        PlacedHold(
            hold_id=row["id"],
            ordinal=row["ordinal"],
            zone_no=row["zone_no"],
            quantity=row["quantity"],
            hold_type=row["hold_type"],
            held_until=row["held_until"],
            created=True,
        )
        for row in rows
        if row is not None
    ]
    return Held(placed, rows[0]["created_at"])
