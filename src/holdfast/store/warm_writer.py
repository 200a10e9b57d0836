"""Keeps the warm tier: one process of all, whoever has the lease, writes down what the feed tells.

The cursor beside the keys says how far. It moves only after what lies before it was written, so whoever takes over (or
comes back to a server that was away) goes on from there; and if it is not where it was left, the server has lost writes,
and the holds of every event on sale are written anew.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from uuid import UUID

import structlog
from prometheus_client import Counter, Gauge

from holdfast.kernel.ids import new_id
from holdfast.kernel.tasks import end_tasks
from holdfast.live.message import EVENT_MIGRATED, Message
from holdfast.seating.layout import Layout
from holdfast.seating.view import EventView
from holdfast.store.catalogue import Catalogue
from holdfast.store.feed import Feed
from holdfast.store.postgres.database import Database
from holdfast.store.postgres.feed import Cursor, News, cursor_now, high_mark, low_mark, read_news
from holdfast.store.postgres.layouts import find_config
from holdfast.store.postgres.occupancy import events_on_sale
from holdfast.store.reconcile import Reconciler
from holdfast.store.redis.keys import LAYOUT_TTL_S
from holdfast.store.redis.warm import Warm

log = structlog.get_logger(__name__)

LEASE_MS = 1_500
RENEW_S = 0.4
REPLAY_MAX = 20_000
"""Transactions behind: more than these are not replayed, everything is written anew."""
QUEUE_MAX = 5_000
GAP_S = 0.1
"""Between two writes: a call costs as much as ten holds in it."""

LEADING = Gauge("holdfast_warm_writer", "Whether this process writes the warm tier (1) or another does (0)")
REBUILT = Counter("holdfast_warm_rebuilds_total", "Times the warm tier was written anew", ["reason"])


class WarmWriter:
    def __init__(
        self, database: Database, catalogue: Catalogue, feed: Feed, warm: Warm, reconciler: Reconciler
    ) -> None:
        self._database = database
        self._catalogue = catalogue
        self._feed = feed
        self._warm = warm
        self._reconciler = reconciler
        self._me = str(new_id())
        self._queue: deque[Message] = deque()
        self._seen: Cursor | None = None
        """How far the queue reaches."""
        self._written: Cursor | None = None
        self._layouts: dict[tuple[UUID, int], float] = {}
        """Layouts whose config was written, and when."""
        self._leading = False
        self._renewed_at = 0.0
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        feed.followers.append(self)

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep(), name="warm-writer")

    async def close(self) -> None:
        if self._task is not None:
            await end_tasks([self._task])

    # The feed ----------------------------------------------------------------------------------------------------
    def learn(self, news: News) -> None:
        if not self._leading:
            return
        self._queue.extend(news.messages)
        self._seen = news.cursor
        if len(self._queue) > QUEUE_MAX:
            self._step_down()
        elif news.messages:
            self._news.set()

    def lose(self) -> None:
        self._step_down()

    def _step_down(self) -> None:
        """Whoever leads next, perhaps this process, goes on from the cursor in the warm tier."""
        self._leading = False
        LEADING.set(0)
        self._queue.clear()
        self._seen = None

    # Writing -----------------------------------------------------------------------------------------------------
    async def _keep(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(RENEW_S):
                    await self._news.wait()
            self._news.clear()
            try:
                if time.monotonic() - self._renewed_at >= RENEW_S:
                    await self._renew()
                if self._leading and self._queue:
                    await self._write()
                    await asyncio.sleep(GAP_S)
            except Exception as error:
                log.warning("warm_writer_failed", error=repr(error))
                self._step_down()
                await asyncio.sleep(RENEW_S)

    async def _renew(self) -> None:
        lead = await self._warm.lead(self._me, LEASE_MS)
        self._renewed_at = time.monotonic()
        if lead is None or not lead.mine:
            if self._leading:
                self._step_down()
            return
        if self._leading and lead.cursor == self._written:
            return
        await self._take_over(lead.cursor)

    async def _take_over(self, cursor: Cursor | None) -> None:
        self._queue.clear()
        self._leading = True  # what the feed tells from here on is kept
        LEADING.set(1)
        async with self._database.connection() as connection:
            now = await cursor_now(connection)
        if cursor is None or not _within_reach(cursor, now):
            REBUILT.labels("lost" if cursor is None else "behind").inc()
            async with self._lease_kept():
                await self._rebuild()
        else:
            async with self._database.connection() as connection:
                news = await read_news(connection, cursor)
            now = news.cursor
            async with self._lease_kept():
                done = await self._apply(news.messages)
            if not done:
                self._step_down()
                return
        await self._advance(cursor, now)

    async def _rebuild(self) -> None:
        async with self._database.transaction(engine=True) as tx:
            found = await events_on_sale(tx)
        log.info("warm_tier_rebuilt", events=sum(map(len, found.values())))
        self._layouts.clear()
        for organization_id, event_id in ((org, event) for org, events in found.items() for event in events):
            view = await self._catalogue.event(organization_id, event_id)
            if view is not None:
                await self._reconciler.rebuild_warm(view)
                await self._show_layout(view)

    @asynccontextmanager
    async def _lease_kept(self) -> AsyncIterator[None]:
        """Around long work, which is worth nothing if the lease runs out before its end."""

        async def keep() -> None:
            while True:
                await asyncio.sleep(RENEW_S)
                await self._warm.lead(self._me, LEASE_MS)
                self._renewed_at = time.monotonic()

        keeping = asyncio.create_task(keep(), name="warm-writer-lease")
        try:
            yield
        finally:
            await end_tasks([keeping])

    async def _write(self) -> None:
        messages, upto = list(self._queue), self._seen
        self._queue.clear()
        async with self._lease_kept():
            done = await self._apply(messages)
        if not done:
            self._step_down()
            return
        assert upto is not None
        await self._advance(self._written, upto)

    async def _apply(self, messages: list[Message]) -> bool:
        # Of an event that was given another layout, what was told before is in other numbers than what is told after.
        migrated = {(m.organization_id, m.event_id) for m in messages if m.kind == EVENT_MIGRATED}
        if migrated:
            messages = [m for m in messages if (m.organization_id, m.event_id) not in migrated]
        layouts: dict[UUID, Layout] = {}
        views: list[EventView] = []
        for organization_id, event_id in {(m.organization_id, m.event_id) for m in messages if m.event_id is not None}:
            view = await self._catalogue.event(organization_id, event_id)
            if view is not None:
                layouts[event_id] = view.layout
                views.append(view)
        now = datetime.fromtimestamp(self._feed.database_now(), UTC)
        if not await self._warm.apply(messages, layouts, now):
            return False
        for of_organization, migrated_id in migrated:
            view = None if migrated_id is None else await self._catalogue.fresh_event(of_organization, migrated_id)
            if view is not None:
                REBUILT.labels("migrated").inc()
                await self._reconciler.rebuild_warm(view)
                views.append(view)
        for view in views:
            await self._show_layout(view)
        return True

    async def _show_layout(self, view: EventView) -> None:
        """The config of a layout whose event is being sold, for outside readers; written again twice in its lifetime."""
        if view.layout_id is None or view.layout_version is None:
            return
        known = self._layouts.get((view.layout_id, view.layout_version))
        if known is not None and time.monotonic() - known < LAYOUT_TTL_S / 2:
            return
        async with self._database.transaction(view.organization_id) as tx:
            config = await find_config(tx, view.organization_id, view.layout_id, view.layout_version)
        if config is not None and await self._warm.set_layout(view.organization_id, view.layout_id, config.encode()):
            self._layouts[view.layout_id, view.layout_version] = time.monotonic()

    async def _advance(self, old: Cursor | None, new: Cursor) -> None:
        if await self._warm.advance(self._me, old, new):
            self._written = new
        else:
            self._step_down()


def _within_reach(cursor: Cursor, now: Cursor) -> bool:
    try:
        return low_mark(cursor) <= low_mark(now) and high_mark(now) - low_mark(cursor) <= REPLAY_MAX
    except (ValueError, IndexError):
        return False  # written by somebody else
