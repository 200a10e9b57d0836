"""What every request must know of its event, kept in memory: the event, its layout, its hold types, its policy.

An event is looked at again after half a second and never trusted for more than nine tenths of one, because a change
made on another node must count here within a second. A layout's version never changes and stays as long as there is
room. The cache answers reads; whatever writes asserts the event's state again in the database.
"""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from uuid import UUID

import msgspec

from holdfast.holds.hold_types import HoldTypesConfig, ResolvedHoldType, resolve_hold_types
from holdfast.live.message import EVENT_MIGRATED
from holdfast.seating.event import Event, permitted_overrides
from holdfast.seating.layout import Layout
from holdfast.seating.overlay import effective_layout
from holdfast.seating.policy import SeatingPolicy, apply_overrides, parse_policy
from holdfast.seating.view import EventView
from holdfast.settings import Settings
from holdfast.store.postgres import events, layouts
from holdfast.store.postgres.database import Database
from holdfast.store.postgres.feed import News

SOFT_AGE_S = 0.5
HARD_AGE_S = 0.9
MAX_EVENTS = 5_000
_THREAD_FROM_BYTES = 200_000
"""Layouts packed larger than this are unpacked in a thread: the loop has requests to answer."""

EventKey = tuple[UUID, UUID]
LayoutKey = tuple[UUID, UUID, int | bytes]


class _Entry:
    __slots__ = ("read_at", "view")

    def __init__(self, view: EventView, read_at: float) -> None:
        self.view = view
        self.read_at = read_at


class Catalogue:
    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._entries: OrderedDict[EventKey, _Entry] = OrderedDict()
        self._loading: dict[EventKey, asyncio.Task[EventView | None]] = {}
        self._tasks: set[asyncio.Task[EventView | None]] = set()
        self._forgotten = 0
        """Counts the calls of `forget`: what was being read while it was called is not kept."""
        self._layouts = _Layouts(settings.layout_cache_seats)
        self.on_read: list[Callable[[EventView], None]] = []
        """Called with every event that was read, newer than what was known of it."""
        self.pressure_of: Callable[[EventView], float] | None = None
        """How hard an event is being bought, of those whose policy wants to know."""

    def peek(self, organization_id: UUID, event_id: UUID) -> EventView | None:
        """The event if it is known and young enough to be trusted; never waits."""
        key = (organization_id, event_id)
        entry = self._entries.get(key)
        if entry is None:
            return None
        age_s = time.monotonic() - entry.read_at
        if age_s < SOFT_AGE_S:
            return entry.view
        if age_s < HARD_AGE_S:
            self._load_once(key)
            return entry.view
        return None

    async def event(self, organization_id: UUID, event_id: UUID) -> EventView | None:
        """The event as of at most nine tenths of a second ago; None where the organization has no such event."""
        key = (organization_id, event_id)
        view = self.peek(organization_id, event_id)
        if view is not None:
            self._entries.move_to_end(key)
            return view
        # Shielded: one caller who gives up must not take the reading from the others who wait for it.
        return await asyncio.shield(self._load_once(key))

    async def fresh_event(self, organization_id: UUID, event_id: UUID) -> EventView | None:
        """The event as it is now: read by this very call, never by one that began before it."""
        return await self._load((organization_id, event_id))

    async def layout(self, organization_id: UUID, layout_id: UUID, version: int) -> Layout | None:
        key = (organization_id, layout_id, version)
        known = self._layouts.get(key)
        if known is not None:
            return known
        async with self._database.transaction(organization_id) as tx:
            columns = await layouts.find_columns(tx, organization_id, layout_id, version)
        return None if columns is None else await self._layouts.unpack(key, columns)

    def forget(self, organization_id: UUID, event_id: UUID | None = None) -> None:
        """After a change made by this process: the event, or all of the organization's."""
        self._forgotten += 1
        if event_id is not None:
            self._entries.pop((organization_id, event_id), None)
            self._loading.pop((organization_id, event_id), None)
            return
        for key in [key for key in self._entries if key[0] == organization_id]:
            del self._entries[key]
        for key in [key for key in self._loading if key[0] == organization_id]:
            del self._loading[key]

    # The feed ------------------------------------------------------------------------------------------------
    def learn(self, news: News) -> None:
        """An event that was given another layout, here or elsewhere, is read anew at once: whoever asked for its seats by
        the old one would be refused."""
        for message in news.messages:
            if message.kind == EVENT_MIGRATED and message.event_id is not None:
                self.forget(message.organization_id, message.event_id)

    def lose(self) -> None:
        """Nothing is kept for longer than it may be trusted without the feed."""

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _load_once(self, key: EventKey) -> asyncio.Task[EventView | None]:
        """One reading at a time for all who want the same event."""
        task = self._loading.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._load(key))
            self._loading[key] = task
            self._tasks.add(task)
            task.add_done_callback(lambda done: self._loaded(key, done))
        return task

    def _loaded(self, key: EventKey, task: asyncio.Task[EventView | None]) -> None:
        self._tasks.discard(task)
        if self._loading.get(key) is task:
            del self._loading[key]
        if not task.cancelled():
            task.exception()  # whoever waits gets it; a reading in the background may fail and be tried again

    async def _load(self, key: EventKey) -> EventView | None:
        read_at = time.monotonic()  # before the reading: an age that is too high does no harm
        forgotten = self._forgotten
        view = await self._read(*key)
        if forgotten != self._forgotten:
            return view
        if view is None:
            self._entries.pop(key, None)
            return None
        known = self._entries.get(key)
        if known is None or known.read_at <= read_at:
            self._entries[key] = _Entry(view, read_at)
            self._entries.move_to_end(key)
            if len(self._entries) > MAX_EVENTS:
                self._entries.popitem(last=False)
            for tell in self.on_read:
                tell(view)
        return view

    async def _read(self, organization_id: UUID, event_id: UUID) -> EventView | None:
        async with self._database.transaction(organization_id) as tx:
            config = await events.find_organization(tx, organization_id)
            stored = await events.find_event(tx, organization_id, event_id)
            now = await tx.now()
            read_monotonic = time.monotonic()
        if config is None or stored is None:
            return None
        layout = await self._layout_of(organization_id, stored)
        view = make_view(organization_id, config, stored.event, layout, now, read_monotonic)
        if self.pressure_of is not None and view.effective_policy.adaptive_hold_life:
            view = msgspec.structs.replace(view, pressure=self.pressure_of(view))
        return view

    async def _layout_of(self, organization_id: UUID, stored: events.StoredEvent) -> Layout:
        event = stored.event
        if stored.own_columns is not None:
            # A draft's own zones may change: they are known by what they are, not by a version.
            key = (organization_id, event.id, hashlib.blake2b(stored.own_columns, digest_size=16).digest())
            return self._layouts.get(key) or await self._layouts.unpack(key, stored.own_columns)
        assert event.layout_id is not None
        assert event.layout_version is not None
        layout = await self.layout(organization_id, event.layout_id, event.layout_version)
        assert layout is not None, "an event refers to a version that exists: the database sees to it"
        return layout


class _Layouts:
    """Unpacked layouts, as many as have room, the least recently used out first."""

    def __init__(self, seats_max: int) -> None:
        self._seats_max = seats_max
        self._seats = 0
        self._kept: OrderedDict[LayoutKey, Layout] = OrderedDict()
        self._unpacking: dict[LayoutKey, asyncio.Task[Layout]] = {}

    def get(self, key: LayoutKey) -> Layout | None:
        layout = self._kept.get(key)
        if layout is not None:
            self._kept.move_to_end(key)
        return layout

    async def unpack(self, key: LayoutKey, columns: bytes) -> Layout:
        task = self._unpacking.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._unpack(key, columns))
            self._unpacking[key] = task
            task.add_done_callback(lambda done: self._unpacking.pop(key, None))
        return await asyncio.shield(task)

    async def _unpack(self, key: LayoutKey, columns: bytes) -> Layout:
        if len(columns) < _THREAD_FROM_BYTES:
            layout = _unpacked(columns)
        else:
            layout = await asyncio.to_thread(_unpacked, columns)
        self._keep(key, layout)
        return layout

    def _keep(self, key: LayoutKey, layout: Layout) -> None:
        if key in self._kept:
            return
        self._kept[key] = layout
        self._seats += _weight(layout)
        while self._seats > self._seats_max and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._seats -= _weight(dropped)


def _unpacked(columns: bytes) -> Layout:
    layout = Layout.unpack(columns)
    _ = (
        layout.seat_index,
        layout.accessible_seats,
    )  # made here, where it may take its time, and not in the first request
    return layout


def _weight(layout: Layout) -> int:
    return layout.seat_count + 100 + 10 * len(layout.zones)  # a layout without seats takes room too


def make_view(
    organization_id: UUID,
    config: events.OrganizationConfig,
    event: Event,
    layout: Layout,
    read_at: datetime,
    read_monotonic: float,
) -> EventView:
    policy = read_policy(config.policy)
    overrides = permitted_overrides(policy, event.overrides)
    return EventView(
        organization_id=organization_id,
        tenant_id=config.tenant_id,
        id=event.id,
        name=event.name,
        status=event.status,
        layout_id=event.layout_id,
        layout_version=event.layout_version,
        sale_start=event.sale_start,
        sale_end=event.sale_end,
        days=event.days,
        currency=event.currency,
        prices=event.prices,
        overrides=overrides,
        overlay=event.overlay,
        series_id=event.series_id,
        admission=event.admission,
        layout=effective_layout(layout, event.overlay),
        hold_types=read_hold_types(config.tenant_config, config.config),
        policy=policy,
        effective_policy=apply_overrides(policy or SeatingPolicy(), overrides),
        read_at=read_at,
        read_monotonic=read_monotonic,
    ).with_window()


# By their texts, which many events share and which seldom change.
@lru_cache(maxsize=1_000)
def read_hold_types(tenant_config: str, organization_config: str) -> dict[str, ResolvedHoldType]:
    return resolve_hold_types(
        msgspec.json.decode(tenant_config, type=HoldTypesConfig),
        msgspec.json.decode(organization_config, type=HoldTypesConfig),
    )


@lru_cache(maxsize=1_000)
def read_policy(policy: str | None) -> SeatingPolicy | None:
    return None if policy is None else parse_policy(msgspec.json.decode(policy))
