"""The warm tier: live holds, occupancy and layouts on Redis or Valkey, for all processes together.

Nothing here is ever decided by: what it says may be out of date, and it may be away. So no call raises, and none waits
longer than the timeout: while the server fails, the breaker answers at once with None, or False.

One process writes, whoever has the lease. It follows the change feed and notes in the cursor how far it has come; a
cursor that is not where its writer left it means that the server has lost writes, and everything is to be written anew.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import msgspec
import structlog
from redis.exceptions import ResponseError

from holdfast.live.message import Message
from holdfast.seating.layout import Layout
from holdfast.store.redis.breaker import Breaker
from holdfast.store.redis.connection import Client, RedisConnection
from holdfast.store.redis.keys import BITMAP_TTL_S, LAYOUT_TTL_S, OCCUPANCY_TTL_S, Keys
from holdfast.store.redis.moves import BATCH_MAX, Batch, batches_of, batches_to_add, pack
from holdfast.store.redis.scripts import ADVANCE, APPLY_MOVES, CLEAR_ORPHANS, FIND_HOLDS, LEAD, REMOVE_HOLDS, Script
from holdfast.store.redis.warm_hold import WarmHold, read_member, read_meta

log = structlog.get_logger(__name__)

ORGANIZATIONS_AT_ONCE = 8
THREAD_FROM_MESSAGES = 200
PAGE = 500
"""Holds, or seats, read with one call."""

T = TypeVar("T")


class Lead(msgspec.Struct, frozen=True):
    """Who asked for the lease has it (`mine`) or not, and how far the feed is written down."""

    mine: bool
    cursor: str | None


class Warm:
    def __init__(self, connection: RedisConnection, namespace: str) -> None:
        self.keys = Keys(namespace, connection.is_cluster)
        self.connection = connection
        self.breaker = Breaker(connection.patience_s)
        self._lease_end_ms: int | None = None
        """By the server's clock; None before the lease was ever asked for."""

    @classmethod
    def open(cls, url: str, namespace: str, timeout_s: float) -> "Warm":
        """Connects with the first call only. Raises RedisUrlInvalid."""
        return cls(RedisConnection.open(url, timeout_s), namespace)

    async def close(self) -> None:
        await self.connection.close()

    @property
    def available(self) -> bool:
        return not self.breaker.is_open

    async def ping(self) -> bool:
        return await self.call("ping", lambda client: client.ping()) is not None

    async def version(self) -> str | None:
        """The server's name and version."""
        info = await self.call("info", lambda client: client.info("server"))
        if not isinstance(info, dict):
            return None
        if "redis_version" not in info:  # of a cluster: by node
            info = next(iter(info.values()), {})
        if "valkey_version" in info:
            return f"Valkey {info['valkey_version']}"
        return f"Redis {info.get('redis_version', 'of unknown version')}"

    # Holds -------------------------------------------------------------------------------------------------------
    async def apply(self, messages: Sequence[Message], layouts: Mapping[UUID, Layout], now: datetime) -> bool:
        """Writes down what the feed told: `layouts` by event, `now` by the database's clock, after the reading.

        False: the server did not take all of it, or the lease of this process is over. It may be done again.
        """

        def sort_out() -> list[Batch]:  # all at once: which of two messages about a seat counts is told by both
            return list(batches_of(messages, layouts, now))

        batches = sort_out() if len(messages) < THREAD_FROM_MESSAGES else await asyncio.to_thread(sort_out)
        by_organization: dict[UUID, list[Batch]] = {}
        for batch in batches:
            by_organization.setdefault(batch.organization_id, []).append(batch)
        return await self._write_all(by_organization.values(), now, moved=True)

    async def add(self, organization_id: UUID, holds: Sequence[WarmHold], now: datetime) -> bool:
        """Puts holds where they belong, over what stands there. Leaves the bitmap as it is."""
        return await self._write_all([list(batches_to_add(organization_id, holds, now))], now, moved=False)

    async def remove(self, organization_id: UUID, holds: Sequence[WarmHold]) -> bool:
        """Removes holds exactly as described: one that was extended since stays."""
        for part in _parts(holds, BATCH_MAX):
            values = [value for hold in part for value in hold.as_removal()]
            if await self._run("remove", REMOVE_HOLDS, organization_id, _encoder.encode(values)) is None:
                return False
        return True

    async def find_hold(self, organization_id: UUID, event_id: UUID, seat_id: UUID) -> WarmHold | None:
        """The hold on a seat of this event, if the warm tier knows one."""
        found = await self._find("find_hold", organization_id, event_id, [seat_id])
        return None if found is None else found[0]

    async def find_holds(
        self, organization_id: UUID, event_id: UUID, seat_ids: Sequence[UUID]
    ) -> list[WarmHold | None] | None:
        """For each of the seats what `find_hold` says; None where the server did not answer for all."""
        found: list[WarmHold | None] = []
        for part in _parts(seat_ids, PAGE):
            more = await self._find("find_holds", organization_id, event_id, part)
            if more is None:
                return None
            found += more
        return found

    async def seats_elsewhere(
        self, organization_id: UUID, event_id: UUID, seat_ids: Sequence[UUID]
    ) -> set[UUID] | None:
        """Those of the seats whose key is taken by a hold of another event on the same layout.

        A hold of this event on such a seat stands in the event's list and has its meta, and that is all it can have.
        """
        found: set[UUID] = set()
        for part in _parts(seat_ids, PAGE):
            rows = await self._run("seats_elsewhere", FIND_HOLDS, organization_id, _encoder.encode(part))
            if rows is None:
                return None
            for seat_id, row in zip(part, rows, strict=True):
                if row is not None and row[1][0] not in (None, str(event_id).encode()):
                    found.add(seat_id)
        return found

    async def orphans(self, organization_id: UUID, seat_ids: Sequence[UUID], *, remove: bool) -> int | None:
        """How many of these seats' keys name a hold of which nothing else is known."""
        found = 0
        for part in _parts(seat_ids, PAGE):
            more = await self._run("orphans", CLEAR_ORPHANS, organization_id, _encoder.encode([remove, *part]))
            if more is None:
                return None
            found += more
        return found

    async def _find(
        self, command: str, organization_id: UUID, event_id: UUID, seat_ids: Sequence[UUID]
    ) -> list[WarmHold | None] | None:
        rows = await self._run(command, FIND_HOLDS, organization_id, _encoder.encode(seat_ids))
        if rows is None:
            return None
        return [
            None if row is None else read_meta(event_id, seat_id, row[0], row[1])
            for seat_id, row in zip(seat_ids, rows, strict=True)
        ]

    async def holds_of_event(self, organization_id: UUID, event_id: UUID) -> list[WarmHold] | None:
        """Everything in the event's list, also what is over and not yet cleared away. What is none of ours is removed."""
        key = self.keys.seat_holds(organization_id, event_id)
        holds: dict[bytes, WarmHold] = {}
        cursor = -1
        while cursor != 0:
            page = await self._read("holds_of_event", key, "ZSCAN", key, max(cursor, 0), "COUNT", PAGE, empty=(0, []))
            if page is None:
                return None
            cursor = page[0]
            foreign: list[bytes] = []
            for member, _ in page[1]:
                hold = read_member(event_id, member)
                if hold is None:
                    foreign.append(member)
                else:
                    holds[member] = hold
            if foreign:
                log.warning("warm_tier_cleaned", key=key, foreign=len(foreign))
                await self._command("remove", "ZREM", key, *foreign)
        return list(holds.values())

    async def get_bitmap(self, organization_id: UUID, event_id: UUID) -> bytes | None:
        """A bit a seat by ordinal, the highest of a byte first; bytes that are left out are zeros."""
        return await self._get("get_bitmap", self.keys.bitmap(organization_id, event_id))

    async def set_bitmap(self, organization_id: UUID, event_id: UUID, bits: bytes) -> bool:
        """As `get_bitmap` gives it, which is what numpy.packbits makes of `state != available`."""
        return await self._set("set_bitmap", self.keys.bitmap(organization_id, event_id), bits, BITMAP_TTL_S)

    # Occupancy and layouts ---------------------------------------------------------------------------------------
    async def get_occupancy(self, organization_id: UUID, event_id: UUID) -> bytes | None:
        return await self._get("get_occupancy", self.keys.occupancy(organization_id, event_id))

    async def set_occupancy(self, organization_id: UUID, event_id: UUID, body: bytes) -> bool:
        return await self._set("set_occupancy", self.keys.occupancy(organization_id, event_id), body, OCCUPANCY_TTL_S)

    async def drop_occupancy(self, organization_id: UUID, event_id: UUID) -> bool:
        key = self.keys.occupancy(organization_id, event_id)
        return await self._command("drop_occupancy", "DEL", key) is not None

    async def get_layout(self, organization_id: UUID, layout_id: UUID) -> bytes | None:
        return await self._get("get_layout", self.keys.layout(organization_id, layout_id))

    async def set_layout(self, organization_id: UUID, layout_id: UUID, config: bytes) -> bool:
        return await self._set("set_layout", self.keys.layout(organization_id, layout_id), config, LAYOUT_TTL_S)

    # The writer's lease ------------------------------------------------------------------------------------------
    async def lead(self, me: str, ttl_ms: int) -> Lead | None:
        """Takes or keeps the lease; None: the server is away.

        From the first call on `apply` does nothing once the lease is over: a writer that was held up cannot write over
        what its successor wrote.
        """
        answer = await self.call("lead", lambda client: LEAD.run(client, self._registry, me, ttl_ms))
        if answer is None:
            return None
        mine, cursor, lease_end_ms = answer
        self._lease_end_ms = lease_end_ms if mine else -1
        return Lead(bool(mine), None if cursor is None else cursor.decode())

    async def advance(self, me: str, old: str | None, new: str) -> bool:
        """Moves the cursor from where this writer left it.

        False: the server is away or has lost writes, or somebody else leads.
        """
        expected = (0, "") if old is None else (1, old)
        answer = await self.call("advance", lambda client: ADVANCE.run(client, self._registry, me, *expected, new))
        return answer == 1

    @property
    def _registry(self) -> list[str]:
        return [self.keys.writer, self.keys.cursor]

    # Calls -------------------------------------------------------------------------------------------------------
    async def _write_all(self, organizations: Iterable[Sequence[Batch]], now: datetime, *, moved: bool) -> bool:
        """What has moved is written by whoever leads; other holds by anybody."""

        async def write(batches: Sequence[Batch]) -> bool:
            for batch in batches:
                lease_end_ms = (self._lease_end_ms or 0) if moved else 0  # put off meanwhile, or lost
                if lease_end_ms < 0:
                    return False
                packed = pack(batch, self.keys, now, lease_end_ms=lease_end_ms, moved=moved)
                if await self._run("apply" if moved else "add", APPLY_MOVES, batch.organization_id, packed) != 1:
                    return False
            return True

        for part in _parts(list(organizations), ORGANIZATIONS_AT_ONCE):
            if not all(await asyncio.gather(*(write(batches) for batches in part))):
                return False
        return True

    async def _run(self, command: str, script: Script, organization_id: UUID, packed: bytes) -> Any:
        prefix = self.keys.prefix(organization_id)
        return await self.call(command, lambda client: script.run(client, [prefix], packed))

    async def _get(self, command: str, key: str) -> bytes | None:
        value: bytes | None = await self._read(command, key, "GET", key)
        return value

    async def _set(self, command: str, key: str, value: bytes, ttl_s: int) -> bool:
        return await self._command(command, "SET", key, value, "EX", ttl_s) is not None

    async def _read(self, command: str, key: str, *words: str | int, empty: Any = None) -> Any:
        """A key of another type than ours is in the way, and is deleted."""

        async def work(client: Client) -> Any:
            try:
                return await client.execute_command(*words)
            except ResponseError as error:
                if not str(error).startswith("WRONGTYPE"):
                    raise
                log.warning("warm_tier_cleaned", key=key, error=str(error))
                await client.execute_command("DEL", key)
                return empty

        return await self.call(command, work)

    async def _command(self, command: str, *words: str | bytes | int) -> Any:
        return await self.call(command, lambda client: client.execute_command(*words))

    async def call(self, command: str, work: Callable[[Client], Awaitable[T]]) -> T | None:
        """Any other command, behind the same breaker; `command` is its name among the metrics."""

        async def ask() -> T:
            return await work(await self.connection.ready())

        return await self.breaker.call(command, ask)


_encoder = msgspec.msgpack.Encoder()


def _parts(whole: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for at in range(0, len(whole), size):
        yield whole[at : at + size]
