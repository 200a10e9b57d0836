"""The snapshot of an event's seats, served from memory: made once a change, at most every so often, for all who ask."""

import asyncio
import hashlib
import time
import zlib
from collections import OrderedDict
from uuid import UUID

import msgspec

from holdfast.live import codec
from holdfast.live.service import LiveService
from holdfast.seating.accessibility import kept_words
from holdfast.seating.view import EventView
from holdfast.store.hot.event import HotEvent
from holdfast.store.hot.tier import HotTier

KEPT = 64
YOUNG_S = 0.1
"""A snapshot younger than this is good enough: whoever has it hears of what changed since on the live stream."""
THREAD_FROM_SEATS = 10_000
GZIP_LEVEL = 6
STRATEGIES = (zlib.Z_DEFAULT_STRATEGY, zlib.Z_HUFFMAN_ONLY)
"""Parties that sit together repeat, and repetitions pack well; of seats scattered at random there are none to be found."""
SHARE = 10
"""And so many times as long as it took to make one: packing a hundred thousand seats takes a while, and is not repeated at
every change."""


class Body(msgspec.Struct, frozen=True):
    plain: bytes
    gzipped: bytes


class Taken(msgspec.Struct, frozen=True):
    """A snapshot in both its forms. The tag is that of the seats alone, so it is the same on every node."""

    tag: str
    revision: int
    good_until: float
    binary: Body
    json: Body


class Availability:
    def __init__(self, hot: HotTier, live: LiveService) -> None:
        self._hot = hot
        self._live = live
        self._taken: OrderedDict[UUID, tuple[HotEvent, Taken]] = OrderedDict()
        self._taking: dict[UUID, asyncio.Task[Taken]] = {}

    async def snapshot(self, view: EventView) -> Taken:
        event = await self._hot.event(view)
        known = self._taken.get(view.id)
        if known is not None and known[0] is event:
            taken = known[1]
            if taken.revision == event.revision or time.monotonic() < taken.good_until:
                return taken
        task = self._taking.get(view.id)
        if task is None:
            task = self._taking[view.id] = asyncio.create_task(self._take(event))
            task.add_done_callback(lambda _: self._taking.pop(view.id, None))
        return await asyncio.shield(task)

    async def _take(self, event: HotEvent) -> Taken:
        place, revision, began = self._live.place(), event.revision, time.monotonic()
        states, types = event.states.copy(), event.types.copy()
        hold_types, pools = list(event.hold_types), self._live.pools(event)
        keeping = event.keeping
        soft = None if keeping is None else keeping.soft.copy()
        because = None if keeping is None else kept_words(keeping.percent)

        def make() -> Taken:
            said = codec.seat_values(states, types, soft).tobytes() + msgspec.json.encode((hold_types, pools, because))
            tag = hashlib.blake2b(said, digest_size=12).hexdigest()
            seats = (states, types, hold_types, pools)
            binary = codec.encode_snapshot(place.mark, *seats, str(place), soft, because)
            json = codec.encode_json_snapshot(str(event.event_id), str(place), *seats, soft, because)
            bodies = _body(binary), _body(json)
            return Taken(tag, revision, began + YOUNG_S + SHARE * (time.monotonic() - began), *bodies)

        taken = make() if len(states) < THREAD_FROM_SEATS else await asyncio.to_thread(make)
        self._taken[event.event_id] = (event, taken)
        self._taken.move_to_end(event.event_id)
        while len(self._taken) > KEPT:
            self._taken.popitem(last=False)
        return taken


def _body(plain: bytes) -> Body:
    return Body(plain, min((_gzip(plain, strategy) for strategy in STRATEGIES), key=len))


def _gzip(plain: bytes, strategy: int) -> bytes:
    packer = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, 31, zlib.DEF_MEM_LEVEL, strategy)
    return packer.compress(plain) + packer.flush()
