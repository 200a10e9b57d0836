"""The hot tier: the seats of the events that are asked for, in this process's memory. It may refuse, never grant.

An event is read once from the database, while the feed's messages about it are taken in already; from then on the feed
keeps it true. When the feed is lost everything is dropped, and what is asked for is read anew.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from uuid import UUID

import numpy as np
import structlog
from prometheus_client import Counter, Gauge

from holdfast.kernel.errors import LayoutChanged
from holdfast.kernel.tasks import end_tasks
from holdfast.live.message import EVENT_MIGRATED
from holdfast.seating.layout import Zone
from holdfast.seating.view import EventView
from holdfast.store.feed import Feed
from holdfast.store.hot.event import FOREVER, HotEvent
from holdfast.store.hot.keeping import KEPT
from holdfast.store.postgres.database import Database
from holdfast.store.postgres.feed import News, high_mark, low_mark
from holdfast.store.postgres.seat_facts import SeatColumns, begin_instant, layout_now, seat_columns, zone_rows

log = structlog.get_logger(__name__)

EVENTS = Gauge("holdfast_hot_events", "Events whose seats are in this process's memory")
BYTES = Gauge("holdfast_hot_bytes", "Memory that they take")
DROPPED = Counter("holdfast_hot_dropped_total", "Events dropped from memory", ["reason"])

LOADS_MAX = 5
"""Of one event in a row, whose layout changed each time."""

EventKey = tuple[UUID, UUID]
Watcher = Callable[[HotEvent, Sequence[int]], None]
"""Is told of every message about an event in memory, with the seats whose look it changed."""


class HotTier:
    def __init__(self, database: Database, feed: Feed, *, events_max: int, bytes_max: int) -> None:
        self._database = database
        self._feed = feed
        self._events_max = events_max
        self._bytes_max = bytes_max
        self._events: OrderedDict[EventKey, HotEvent] = OrderedDict()
        self._loading: dict[EventKey, asyncio.Task[HotEvent]] = {}
        self._bytes = 0
        self.watchers: list[Watcher] = []
        self.in_use: Callable[[EventKey], bool] = lambda key: False
        """Whether an event is being watched, and must stay."""
        self.on_drop: Callable[[EventKey], None] = lambda key: None
        self.current_view: Callable[[UUID, UUID], Awaitable[EventView | None]] | None = None
        """The event as it is now, for when its layout turns out to be another than that of the view at hand."""
        feed.followers.append(self)

    # Asking ------------------------------------------------------------------------------------------------------
    def peek(self, organization_id: UUID, event_id: UUID) -> HotEvent | None:
        """The event's seats where they are known and the feed is heard; never waits."""
        event = self._events.get((organization_id, event_id))
        if event is None or not event.loaded or self._feed.trusted_until < time.monotonic():
            return None
        return event

    def want(self, view: EventView) -> None:
        """The event is being asked for: its seats are read in the background, unless they are here."""
        key = (view.organization_id, view.id)
        known = self._events.get(key)
        if known is None:
            if self._events_max > 0 and key not in self._loading:
                self._load_once(view)
        elif not known.layout.numbers_as(view.layout):
            self.drop(key, "layout")

    @property
    def keeps_events(self) -> bool:
        return self._events_max > 0

    def is_loading(self, view: EventView) -> bool:
        return (view.organization_id, view.id) in self._loading

    async def event(self, view: EventView) -> HotEvent:
        """The event's seats, read first where they are not here."""
        key = (view.organization_id, view.id)
        known = self._events.get(key)
        if known is not None and known.layout.numbers_as(view.layout):
            self._events.move_to_end(key)
            if known.loaded:
                return known
        return await asyncio.shield(self._load_once(view))

    def doubt(self, organization_id: UUID, event_id: UUID, ordinals: Iterable[int]) -> None:
        """This process has just moved these seats: until the feed says how, nobody is refused because of them."""
        event = self._events.get((organization_id, event_id))
        if event is not None:
            event.doubt(ordinals, self._feed.looks_begun)

    def events(self) -> list[HotEvent]:
        return [event for event in self._events.values() if event.loaded]

    def known(self, organization_id: UUID, event_id: UUID) -> HotEvent | None:
        """Whether or not the feed is heard at this moment."""
        event = self._events.get((organization_id, event_id))
        return event if event is not None and event.loaded else None

    # The feed ----------------------------------------------------------------------------------------------------
    def learn(self, news: News) -> None:
        for message in news.messages:
            if message.event_id is None:
                continue
            event = self._events.get((message.organization_id, message.event_id))
            if event is not None and message.kind == EVENT_MIGRATED:
                if message.xid > event.layout_since:  # otherwise it was read after that already
                    self.drop((message.organization_id, message.event_id), "migrated")
            elif event is not None:
                before = event.revision
                seen = event.apply(message)
                if event.revision != before or message.ordinals is None:
                    self._tell(event, seen)
        for event in self._events.values():
            if event.doubts:
                event.settle_doubts(self._feed.looks_begun)

    def take_terms(self, view: EventView) -> None:
        """The event was read again: what is kept in it for companions follows its policy."""
        event = self._events.get((view.organization_id, view.id))
        if event is None or event.keeping is None:
            return
        cursor = self._feed.cursor
        seen = event.keep_by(view.effective_policy, 0 if cursor is None else high_mark(cursor))
        if seen:
            self._tell(event, seen)

    def _tell(self, event: HotEvent, seen: Sequence[int]) -> None:
        if event.keeping is not None:
            self._count_kept()
        for watcher in self.watchers:
            watcher(event, seen)

    def _count_kept(self) -> None:
        KEPT.set(sum(int(e.keeping.soft.sum()) for e in self._events.values() if e.keeping is not None))

    def lose(self) -> None:
        for key in list(self._events):
            self.drop(key, "feed lost")

    # Room --------------------------------------------------------------------------------------------------------
    def drop(self, key: EventKey, reason: str) -> None:
        event = self._events.pop(key, None)
        if event is not None:
            event.loaded = False  # whoever still has it in hand must not go by it
            self._bytes -= event.size_bytes
            self._count_kept()
            DROPPED.labels(reason).inc()
            self.on_drop(key)
        EVENTS.set(len(self._events))
        BYTES.set(self._bytes)

    def _make_room(self) -> None:
        for key in list(self._events):
            if len(self._events) <= self._events_max and self._bytes <= self._bytes_max:
                return
            if not self.in_use(key) and self._events[key].loaded:
                self.drop(key, "room")

    # Loading -----------------------------------------------------------------------------------------------------
    def _load_once(self, view: EventView) -> asyncio.Task[HotEvent]:
        key = (view.organization_id, view.id)
        task = self._loading.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._load(view), name="hot-load")
            self._loading[key] = task
            task.add_done_callback(lambda done: self._loaded(key, done))
        return task

    def _loaded(self, key: EventKey, task: "asyncio.Task[HotEvent]") -> None:
        if self._loading.get(key) is task:
            del self._loading[key]
        if not task.cancelled() and task.exception() is not None:
            log.warning("hot_load_failed", event_id=str(key[1]), error=repr(task.exception()))
            self.drop(key, "failed")

    async def _load(self, view: EventView) -> HotEvent:
        """The event is among those that learn before anything of it is read, so that nothing falls between. If meanwhile it
        was given another layout, or was dropped, it is read again."""
        key = (view.organization_id, view.id)
        for _ in range(LOADS_MAX):
            self.drop(key, "anew")
            event = HotEvent(view.organization_id, view.id, view.layout)
            event.keep_by(view.effective_policy, 0)
            self._events[key] = event
            self._bytes += event.size_bytes
            await self._feed.caught_up()
            layout_version = await self._read(event)
            if layout_version == view.layout_version and self._events.get(key) is event:
                break
            fresh = None if self.current_view is None else await self.current_view(*key)
            view = fresh or view
        else:
            self.drop(key, "failed")
            raise LayoutChanged
        event.loaded = True
        self._count_kept()
        self._make_room()
        EVENTS.set(len(self._events))
        BYTES.set(self._bytes)
        return event

    async def read_into(self, event: HotEvent) -> None:
        """What the database says now."""
        await self._read(event)

    async def _read(self, event: HotEvent) -> int | None:
        """Answers the version of the layout in which the database says it: of another than the event's it is worthless."""
        organization_id, event_id = event.organization_id, event.event_id
        async with self._database.transaction(organization_id) as tx:
            cursor = await begin_instant(tx)
            mark = low_mark(cursor)
            layout_version, event.layout_since = await layout_now(tx, organization_id, event_id)
            if not event.loaded:
                event.base = mark
                event.versions[event.versions < 0] = 0
            async for columns in seat_columns(tx, organization_id, event_id, range(len(event.states))):
                _note(event, columns, mark)
            for row in await zone_rows(tx, organization_id, event_id):
                zone = event.zones.get(row["zone_no"])
                if zone is not None and row["version"] >= zone.version:
                    counts = row["held"], row["sold"], row["blocked"]
                    if (zone.held, zone.sold, zone.blocked) != counts:
                        zone.changed = mark
                        event.revision += 1
                    zone.version = row["version"]
                    zone.held, zone.sold, zone.blocked = counts
        return layout_version

    async def read_zones(self, view: EventView, zones: Sequence[Zone]) -> HotEvent:
        """The seats of these zones as they are now, for one use; all others look taken."""
        event = HotEvent(view.organization_id, view.id, view.layout)
        event.keep_by(view.effective_policy, 0)
        event.taken[:] = FOREVER
        async with self._database.transaction(view.organization_id) as tx:
            for zone in zones:
                event.taken[zone.ordinals.start : zone.ordinals.stop] = 0.0
                async for columns in seat_columns(tx, view.organization_id, view.id, zone.ordinals):
                    _note(event, columns, 0)
        return event

    async def close(self) -> None:
        await end_tasks(list(self._loading.values()))


def _note(event: HotEvent, columns: SeatColumns, xid: int) -> Sequence[int]:
    indices = {name: event.type_index(name) for name in set(columns.hold_types)}
    return event.note(
        np.array(columns.ordinals, np.int64),
        np.array(columns.versions, np.int32),
        np.array(columns.states, np.uint8),
        np.fromiter((indices[name] for name in columns.hold_types), np.uint8, len(columns.hold_types)),
        np.array(columns.until, np.float64),
        np.array(columns.owners, np.int64).view(np.uint64),
        xid,
    )
