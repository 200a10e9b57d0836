"""What the caches say: the snapshot, the live stream and the occupancy of each process, and the keys of the warm tier."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import msgspec
import redis.asyncio
from redis.exceptions import RedisError

from holdfast.faults.client import Recorder, RecordingClient, unix
from holdfast.faults.house import House
from holdfast.holds.lifecycle import SeatState
from holdfast.insight.history_facts import Word
from holdfast.live.codec import STATE_LETTERS, STATE_NAMES, Changes, ZoneLeft
from holdfast.store.redis.keys import Keys

LETTERS = {chr(letter): SeatState(name) for letter, name in zip(STATE_LETTERS, STATE_NAMES, strict=True)}
RECONNECT_S = 0.2
RESTLESS_S = 0.5
WARM_TIMEOUT_S = 2.0
STILL_S = 0.05
"""A warm key that is read twice so far apart and says the same was not read in the middle of a write."""


class Caches:
    """Asks; what is not there to be asked (an older server, no warm tier) says nothing."""

    def __init__(self, houses: list[House], urls: list[str], redis_url: str, namespace: str) -> None:
        self._houses = houses
        self._urls = urls
        self._redis_url = redis_url
        self._keys = Keys(namespace)
        self.words: list[Word] = []
        self.viewers = [
            LiveViewer(house, url, n + 1, stays_s)
            for n, url in enumerate(urls)
            for house in houses
            for stays_s in (None, RESTLESS_S)
        ]

    @property
    def heard(self) -> list[str]:
        """Who has said anything, processes taken together."""
        return sorted({word.source.split(" of ")[0] for word in self.words})

    async def watch(self) -> None:
        """Follows the live streams until it is cancelled."""
        await asyncio.gather(*(viewer.follow() for viewer in self.viewers))

    async def ask_all(self, *, at_last: bool = False) -> None:
        """`at_last`: what is not there then counts as said, too."""
        clients = Recorder().clients(self._urls)
        try:
            for house in self._houses:
                for client in clients:
                    await self._ask_process(house, client)
                await self._ask_warm(house, at_last)
        finally:
            for client in clients:
                client.close()
        self.words += [word for viewer in self.viewers if (word := viewer.word()) is not None]

    async def _ask_process(self, house: House, client: RecordingClient) -> None:
        token = house.guests[0].token
        began = time.time()
        answer = await client.get(f"/api/events/{house.event_id}/availability", token)
        if answer is not None and answer.ok:
            facts = snapshot_facts(answer.data)
            self.words.append(_word(f"availability of {client.process}", house, began, **facts))
        began = time.time()
        answer = await client.get(f"/api/events/{house.event_id}/occupancy", token)
        if answer is not None and answer.ok:
            counts = {
                (house.zone_nos[zone["zone_id"]], state): zone[state.value]
                for zone in answer.data["by_zone"]
                for state in SeatState
            }
            self.words.append(_word(f"occupancy of {client.process}", house, began, counts=counts))

    # The warm tier -----------------------------------------------------------------------------------------------
    async def _ask_warm(self, house: House, at_last: bool) -> None:
        client: redis.asyncio.Redis = redis.asyncio.from_url(
            self._redis_url, socket_timeout=WARM_TIMEOUT_S, decode_responses=True
        )
        try:
            async with asyncio.timeout(2 * WARM_TIMEOUT_S):
                if await client.get(self._keys.cursor) is None and not at_last:
                    return  # nobody writes it yet, or again
                for source, read in (("warm set", self._by_event), ("warm seat keys", self._by_seat)):
                    began = time.time()
                    holders = await read(client, house)
                    await asyncio.sleep(STILL_S)
                    if holders == await read(client, house):
                        self.words.append(_word(source, house, began, holders=holders))
                began = time.time()
                taken = await self._bits(client, house)
                self.words.append(_word("warm bitmap", house, began, taken=taken))
        except (RedisError, OSError, TimeoutError):
            if at_last:
                raise
        finally:
            with suppress(RedisError, OSError):
                await client.aclose()

    async def _by_event(self, client: "redis.asyncio.Redis", house: House) -> dict[int, UUID]:
        """Members are `{seat}:{hold}:{user}:{held_until}`; one that is over waits to be swept out."""
        key = self._keys.seat_holds(house.organization_id, house.event_id)
        holders: dict[int, UUID] = {}
        for member in await client.zrange(key, 0, -1):
            seat, hold_id, _, until = str(member).split(":", 3)
            if (unix(until or None) or float("inf")) > time.time():
                holders[house.ordinals[seat]] = UUID(hold_id)
        return holders

    async def _by_seat(self, client: "redis.asyncio.Redis", house: House) -> dict[int, UUID]:
        keys = [self._keys.seat(house.organization_id, seat) for seat in house.seats]
        values = await client.mget(keys)
        return {n: UUID(str(value).split(":")[0]) for n, value in enumerate(values) if value is not None}

    async def _bits(self, client: "redis.asyncio.Redis", house: House) -> set[int]:
        key = self._keys.bitmap(house.organization_id, house.event_id)
        pipeline = client.pipeline(transaction=True)
        for n in range(len(house.seats)):
            pipeline.getbit(key, n)
        return {n for n, bit in enumerate(await pipeline.execute()) if bit}


def _word(source: str, house: House, began: float, **facts: Any) -> Word:
    return Word(
        source=source,
        organization_id=house.organization_id,
        event_id=house.event_id,
        began=began,
        ended=time.time(),
        **facts,
    )


def snapshot_facts(data: dict[str, Any]) -> dict[str, Any]:
    """The states and counts of `GET …/availability`."""
    states = {n: LETTERS[letter] for n, letter in enumerate(data["states"])}
    counts = {key: n for zone in data["zones"] for key, n in zone_counts(msgspec.convert(zone, ZoneLeft)).items()}
    return {"states": states, "counts": counts}


def zone_counts(zone: ZoneLeft) -> dict[tuple[int, SeatState], int]:
    return {
        (zone.zone_no, SeatState.HELD): zone.held,
        (zone.zone_no, SeatState.SOLD): zone.sold,
        (zone.zone_no, SeatState.AVAILABLE): zone.capacity - zone.held - zone.sold - zone.blocked,
    }


class LiveViewer:
    """A browser that loads the snapshot once and from then on believes the stream."""

    def __init__(self, house: House, url: str, process: int, stays_s: float | None = None) -> None:
        """`stays_s`: it leaves after about so long, and comes back to where it was."""
        self._house = house
        self._url = url
        self._stays_s = stays_s
        self._source = f"{'live' if stays_s is None else 'resumed live'} of process {process}"
        self._states: dict[int, SeatState] = {}
        self._versions: dict[int, int] = {}
        self._zones: dict[int, ZoneLeft] = {}
        self._last_id: str | None = None
        self._there = False

    def word(self) -> Word | None:
        """What it shows now; nothing while it is cut off."""
        if not self._there or not self._states:
            return None
        counts = {key: n for zone in self._zones.values() for key, n in zone_counts(zone).items()}
        return _word(self._source, self._house, time.time(), states=dict(self._states), counts=counts)

    async def follow(self) -> None:
        while True:
            with suppress(OSError, asyncio.IncompleteReadError, ValueError):
                async with asyncio.timeout(None if self._stays_s is None else self._stays_s * random.uniform(0.2, 1.8)):
                    if self._last_id is not None or await self._load():
                        async for kind, sequence, data in self._stream():
                            await self._hear(kind, sequence, data)
            self._there = False
            await asyncio.sleep(RECONNECT_S)

    async def _load(self) -> bool:
        client = Recorder().clients([self._url])[0]
        try:
            answer = await client.get(f"/api/events/{self._house.event_id}/availability", self._house.guests[0].token)
        finally:
            client.close()
        if answer is None or not answer.ok:
            return False
        self._states = {n: LETTERS[letter] for n, letter in enumerate(answer.data["states"])}
        self._versions = {}
        self._zones = {zone["zone_no"]: msgspec.convert(zone, ZoneLeft) for zone in answer.data["zones"]}
        self._last_id = str(answer.data["sequence"])
        return True

    async def _hear(self, kind: str, sequence: str, data: bytes) -> None:
        if kind == "resync":
            self._there = False
            self._there = await self._load()
            return
        self._there = True
        self._last_id = sequence or self._last_id
        if kind != "seats":
            return
        changes = msgspec.json.decode(data, type=Changes)
        for ordinal, value, version in zip(changes.ordinals, changes.values, changes.versions, strict=True):
            if version >= self._versions.get(ordinal, 0):
                self._versions[ordinal] = version
                self._states[ordinal] = SeatState(STATE_NAMES[value & 0b11])
        for zone in changes.zones:
            if zone.version >= self._zones[zone.zone_no].version:
                self._zones[zone.zone_no] = zone

    async def _stream(self) -> AsyncIterator[tuple[str, str, bytes]]:
        """Server-sent events: kind, id and data of each message."""
        where = urlsplit(self._url)
        reader, writer = await asyncio.open_connection(where.hostname, where.port, limit=4 * 1024 * 1024)
        try:
            lines = [
                f"GET /api/events/{self._house.event_id}/live HTTP/1.1",
                f"host: {where.netloc}",
                f"authorization: Bearer {self._house.guests[0].token}",
                f"last-event-id: {self._last_id}",
            ]
            writer.write("\r\n".join([*lines, "", ""]).encode())
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                self._last_id = None
                return
            chunked = b"transfer-encoding: chunked" in head.lower()
            fields: dict[str, bytes] = {}
            async for line in _lines(reader, chunked):
                name, _, value = line.partition(b": ")
                if line:
                    fields[name.decode()] = value
                elif "event" in fields:
                    yield fields["event"].decode(), fields.get("id", b"").decode(), fields.get("data", b"")
                    fields = {}
        finally:
            writer.close()


async def _lines(reader: asyncio.StreamReader, chunked: bool) -> AsyncIterator[bytes]:
    """Without the end of line, however the server cuts its stream."""
    rest = b""
    while True:
        if chunked:
            size = int(await reader.readuntil(b"\r\n"), 16)
            if size == 0:
                return
            part = (await reader.readexactly(size + 2))[:-2]
        else:
            part = await reader.read(65536)
            if not part:
                return
        *whole, rest = (rest + part).split(b"\n")
        for line in whole:
            yield line
