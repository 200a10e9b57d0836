"""Live: who watches an event hears of every change of its seats, in order and without a gap.

Changes gather for a moment and go out as one message, made once for all viewers. A viewer who does not read is dropped:
nothing is kept for anybody beyond a bounded buffer, because whoever comes back is told what changed in between.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol
from uuid import UUID

import msgspec
import numpy as np
import structlog
from numpy.typing import NDArray
from prometheus_client import Counter, Gauge

from holdfast.kernel.errors import Overloaded
from holdfast.kernel.tasks import end_tasks
from holdfast.live import codec
from holdfast.live.codec import Frame, Place, ZoneLeft
from holdfast.live.message import Message
from holdfast.seating.view import EventView
from holdfast.store.feed import Feed
from holdfast.store.hot.event import HotEvent
from holdfast.store.hot.tier import EventKey, HotTier
from holdfast.store.postgres.database import Database
from holdfast.store.postgres.feed import News, changed_since, high_mark, low_mark

log = structlog.get_logger(__name__)

AT_ONCE = 200
"""Viewers written to in one turn of the loop: requests are answered in between."""
SHARE = 4.0
"""A message that took long to write is followed by a pause of so many times that: viewers get a fifth of a process."""
LONGEST_PAUSE_S = 1.0
OCCUPANCY_GAP_S = 1.0
TERMS_GAP_S = 0.5
"""Between two looks at the policy of a watched event that keeps seats for companions."""
RESUME_S = 3600
RESUME_ROWS = 5_000

CLIENTS = Gauge("holdfast_live_clients", "Live connections of this process")
SENT = Counter("holdfast_live_messages_total", "Messages sent to viewers, by kind", ["kind"])
DROPPED = Counter("holdfast_live_dropped_total", "Viewers dropped because they did not read")
JOINED = Counter("holdfast_live_joined_total", "Viewers who came, by how they were brought up to date", ["how"])


class Sink(Protocol):
    """A viewer's connection."""

    def write(self, frame: Frame) -> bool:
        """Never waits. False: too much has piled up, or nobody is there any more."""
        ...

    def close(self) -> None: ...


class Topic:
    """An event that somebody watches."""

    def __init__(self, view: EventView, event: HotEvent) -> None:
        self.view = view
        self.event = event
        self.sinks: set[Sink] = set()
        self.pending: set[int] = set()
        self.pools_changed = False
        self.notices: list[bytes] = []
        self.lost = False
        self.sent = 0
        self.writing_s = 0.0
        self.dirty = asyncio.Event()
        self.counted: Frame | None = None
        self.counted_at = 0.0
        self.counted_revision = -1
        self.zone_nos: NDArray[np.int64] = np.array(event.layout.zone_nos, np.int64)
        self.task: asyncio.Task[None] | None = None


class LiveService:
    def __init__(
        self,
        database: Database,
        feed: Feed,
        hot: HotTier,
        *,
        read_again: Callable[[UUID, UUID], Awaitable[EventView | None]],
        coalesce_s: float,
        clients_max: int,
        heartbeat_s: float,
    ) -> None:
        self._database = database
        self._feed = feed
        self._hot = hot
        self._read_again = read_again
        self._coalesce_s = coalesce_s
        self._clients_max = clients_max
        self._heartbeat_s = heartbeat_s
        self._topics: dict[EventKey, Topic] = {}
        self._clients = 0
        self._beating: asyncio.Task[None] | None = None
        self._minding: asyncio.Task[None] | None = None
        feed.followers.append(self)
        hot.watchers.append(self._changed)
        hot.on_drop = self._dropped
        hot.in_use = self._topics.__contains__

    def start(self) -> None:
        self._beating = asyncio.create_task(self._beat(), name="live-heartbeat")
        self._minding = asyncio.create_task(self._mind_terms(), name="live-terms")

    async def close(self) -> None:
        tasks = [t.task for t in self._topics.values() if t.task is not None]
        tasks += [task for task in (self._beating, self._minding) if task is not None]
        await end_tasks(tasks)
        for topic in self._topics.values():
            for sink in topic.sinks:
                sink.close()

    # Viewers -----------------------------------------------------------------------------------------------------
    async def make_ready(self, view: EventView) -> HotEvent:
        """Refuses where there is no room for one more viewer; reads the event's seats where they are not in memory."""
        if self._clients >= self._clients_max:
            raise Overloaded("Too many people are watching at once. Please try again in a moment.", retry_after_s=5)
        return await self._hot.event(view)

    async def join(self, view: EventView, sink: Sink, last_id: str | None) -> None:
        """From here on the viewer hears everything; first, what it missed since `last_id`, or that it must reload."""
        event = await self.make_ready(view)
        self._clients += 1
        CLIENTS.set(self._clients)
        try:
            since = await self._resumable(event, last_id)
            topic = self._topic(view, event)
            self._bring_up_to_date(topic, sink, since)
            topic.sinks.add(sink)
        except BaseException:
            self._clients -= 1
            CLIENTS.set(self._clients)
            raise

    def leave(self, view: EventView, sink: Sink) -> None:
        topic = self._topics.get((view.organization_id, view.id))
        if topic is not None and sink in topic.sinks:
            self._remove(topic, sink)

    def _remove(self, topic: Topic, sink: Sink) -> None:
        topic.sinks.discard(sink)
        self._clients -= 1
        CLIENTS.set(self._clients)
        if not topic.sinks:
            self._topics.pop((topic.view.organization_id, topic.view.id), None)
            if topic.task is not None:
                topic.task.cancel()

    def _topic(self, view: EventView, event: HotEvent) -> Topic:
        key = (view.organization_id, view.id)
        topic = self._topics.get(key)
        if topic is None:
            topic = self._topics[key] = Topic(view, event)
            topic.task = asyncio.create_task(self._pump(topic), name="live-topic")
        return topic

    async def _resumable(self, event: HotEvent, last_id: str | None) -> int | None:
        """The mark to resume from; none where too much lies between, or what was said cannot be understood."""
        place = None if last_id is None else codec.parse_place(last_id)
        cursor = self._feed.cursor
        if place is None or cursor is None or place.mark > high_mark(cursor) + 1_000_000:
            return None
        if not 0 <= self._feed.database_now() - place.unix_s + 5 < RESUME_S:
            return None
        if place.mark <= event.layout_since:
            return None  # what it knows is by the numbers of another layout
        if place.mark >= event.base or await self._reach_back(event, place.mark):
            return place.mark
        return None

    async def _reach_back(self, event: HotEvent, mark: int) -> bool:
        """Learns from the outbox which seats changed before this process began to watch. All who follow gain by it."""
        async with self._database.transaction(event.organization_id) as tx:
            rows = await changed_since(tx, event.organization_id, event.event_id, mark, RESUME_ROWS)
        if len(rows) >= RESUME_ROWS:
            return False
        for xid, ordinals, zone_no in rows:
            if ordinals:
                chosen = np.array([ordinal for ordinal in ordinals if ordinal < len(event.changed)], np.int64)
                event.changed[chosen] = np.maximum(event.changed[chosen], xid)
            if zone_no is not None and zone_no in event.zones:
                event.zones[zone_no].changed = max(event.zones[zone_no].changed, xid)
        event.base = min(event.base, mark)
        return True

    def _bring_up_to_date(self, topic: Topic, sink: Sink, since: int | None) -> None:
        event = topic.event
        if since is None:
            JOINED.labels("resync").inc()
            sink.write(codec.frame("resync", b"{}", self._place(topic)))
        else:
            JOINED.labels("resumed").inc()
            pools = [pool for pool in self.pools(event) if event.zones[pool.zone_no].changed >= since]
            sink.write(self._seats_frame(topic, event.changed_since(since), pools))
        sink.write(self._occupancy_frame(topic))

    # Changes -----------------------------------------------------------------------------------------------------
    def _changed(self, event: HotEvent, ordinals: Sequence[int]) -> None:
        topic = self._topics.get((event.organization_id, event.event_id))
        if topic is None or topic.event is not event:
            return
        topic.pending.update(ordinals)
        topic.pools_changed = topic.pools_changed or not ordinals
        topic.dirty.set()

    def learn(self, news: News) -> None:
        for message in news.messages:
            if message.event_id is None or not message.kind.startswith("Event"):
                continue  # only what is about the event itself is for everybody
            topic = self._topics.get((message.organization_id, message.event_id))
            if topic is not None:
                topic.notices.append(_notice(message))
                topic.dirty.set()

    def _dropped(self, key: EventKey) -> None:
        """What viewers were told from is gone: they load the snapshot again, which is made from what is read anew."""
        topic = self._topics.get(key)
        if topic is not None:
            topic.lost = True
            topic.dirty.set()

    def lose(self) -> None:
        for key in list(self._topics):
            self._dropped(key)

    async def _pump(self, topic: Topic) -> None:
        while True:
            left_s = None
            if topic.event.revision != topic.counted_revision:
                left_s = max(0.0, topic.counted_at + OCCUPANCY_GAP_S - time.monotonic())
            try:
                async with asyncio.timeout(left_s):
                    await topic.dirty.wait()
            except TimeoutError:
                pass
            else:
                await asyncio.sleep(self._coalesce_s)  # more of the same moment joins
            topic.dirty.clear()
            topic.writing_s = 0.0
            try:
                await self._send_news(topic)
            except Exception as error:
                log.warning("live_not_sent", event_id=str(topic.view.id), error=repr(error))
                topic.lost = True
                topic.dirty.set()
                await asyncio.sleep(0.5)
            await asyncio.sleep(min(LONGEST_PAUSE_S, SHARE * topic.writing_s))

    async def _send_news(self, topic: Topic) -> None:
        if topic.lost:
            if self._hot.current_view is not None:  # it may have another layout by now
                topic.view = await self._hot.current_view(topic.view.organization_id, topic.view.id) or topic.view
            topic.event = await self._hot.event(topic.view)
            topic.zone_nos = np.array(topic.event.layout.zone_nos, np.int64)
            topic.counted = None
            topic.lost = False
            topic.pending.clear()
            await self._send(topic, "resync", codec.frame("resync", b"{}", self._place(topic)))
        for notice in topic.notices[:]:
            topic.notices.remove(notice)
            await self._send(topic, "notice", codec.frame("notice", notice))
        if topic.pending or topic.pools_changed:
            pools = self.pools(topic.event) if topic.pools_changed else []
            frame = self._seats_frame(topic, sorted(topic.pending), pools)
            topic.pending.clear()
            topic.pools_changed = False
            await self._send(topic, "seats", frame)
        if topic.event.revision != topic.counted_revision and time.monotonic() - topic.counted_at >= OCCUPANCY_GAP_S:
            await self._send(topic, "occupancy", self._occupancy_frame(topic))

    async def _send(self, topic: Topic, kind: str, frame: Frame) -> None:
        sinks = list(topic.sinks)
        for start in range(0, len(sinks), AT_ONCE):
            began = time.monotonic()
            for sink in sinks[start : start + AT_ONCE]:
                if not sink.write(frame) and sink in topic.sinks:
                    DROPPED.inc()
                    sink.close()
                    self._remove(topic, sink)
            topic.writing_s += time.monotonic() - began
            await asyncio.sleep(0)
        SENT.labels(kind).inc(len(sinks))

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._heartbeat_s)
            for topic in list(self._topics.values()):
                await self._send(topic, "heartbeat", codec.HEARTBEAT)

    async def _mind_terms(self) -> None:
        """Nobody may be asking for seats of an event that is only watched: its policy is looked at all the same. Whatever is
        read is told to the hot tier."""
        while True:
            await asyncio.sleep(TERMS_GAP_S)
            for topic in list(self._topics.values()):
                if topic.event.keeping is not None:
                    try:
                        await self._read_again(topic.view.organization_id, topic.view.id)
                    except Exception as error:
                        log.warning("live_terms_unread", event_id=str(topic.view.id), error=repr(error))

    # Words -------------------------------------------------------------------------------------------------------
    def _place(self, topic: Topic) -> str:
        topic.sent += 1
        return str(self.place(topic.sent))

    def place(self, n: int = 0) -> Place:
        cursor = self._feed.cursor
        return Place(0 if cursor is None else low_mark(cursor), int(self._feed.database_now()), n)

    def _seats_frame(self, topic: Topic, ordinals: Sequence[int], pools: Sequence[ZoneLeft]) -> Frame:
        event = topic.event
        data = codec.encode_changes(
            ordinals, event.states, event.types, event.versions, event.hold_types, pools, event.soft
        )
        return codec.frame("seats", data, self._place(topic))

    def _occupancy_frame(self, topic: Topic) -> Frame:
        """Counted at most once a second, whoever asks."""
        now = time.monotonic()
        stale = topic.event.revision != topic.counted_revision and now - topic.counted_at >= OCCUPANCY_GAP_S
        if topic.counted is None or stale:
            topic.counted_revision, topic.counted_at = topic.event.revision, now
            counted = msgspec.json.encode(self.count(topic.event, topic.zone_nos))
            topic.counted = codec.frame("occupancy", counted)
        return topic.counted

    @staticmethod
    def pools(event: HotEvent) -> list[ZoneLeft]:
        return [
            ZoneLeft(no, zone.capacity, zone.held, zone.sold, zone.version, zone.blocked)
            for no, zone in event.zones.items()
        ]

    def count(self, event: HotEvent, zone_nos: NDArray[np.int64]) -> codec.OccupancyNow:
        zones = len(event.layout.zones)
        return codec.count_states(event.states, event.types, zone_nos, event.hold_types, zones, self.pools(event))

    def watched(self, organization_id: UUID, event_id: UUID) -> int:
        topic = self._topics.get((organization_id, event_id))
        return 0 if topic is None else len(topic.sinks)


def _notice(message: Message) -> bytes:
    """What became of the event itself: that it was changed, cancelled, put on sale."""
    return msgspec.json.encode({"kind": message.kind, **(message.payload or {})})
