"""The registry of holds: who needs not ask the database, because somebody else has the seat. The only file that knows the
order of the tiers: hot (this process's memory) → warm (Redis) → cold (PostgreSQL).

A tier may refuse, never grant. The hot tier is fed by the database's own change feed and refuses by itself. The warm tier
can be flushed, or written to by anybody: its word is checked against the one hold it names before it counts, and what
turns out wrong is mended.
"""

import math
from collections.abc import Sequence
from uuid import UUID

import msgspec
import numpy as np
from numpy.typing import NDArray

from holdfast.kernel.errors import LayoutChanged
from holdfast.seating.view import EventView
from holdfast.store.feed import Feed
from holdfast.store.hot.event import BLOCKED, FOREVER, HELD, SOLD, STATES, HotEvent
from holdfast.store.hot.tier import HotTier
from holdfast.store.lookups import LOOKUPS
from holdfast.store.postgres.database import Database
from holdfast.store.postgres.seat_facts import HeldNow, find_live_hold
from holdfast.store.redis.warm import Warm
from holdfast.store.redis.warm_hold import WarmHold

GATE_S = 0.05


class Taken(msgspec.Struct, frozen=True):
    """A seat that somebody else has."""

    ordinal: int
    state: str
    expires_in: int | None


class Gate:
    """An event that was found on sale a moment ago, with its seats in memory: what is taken in it may be refused without
    another look, until then."""

    __slots__ = ("event", "event_id", "limit", "organization_id", "refused", "until", "view")

    def __init__(self, organization_id: UUID, event_id: UUID) -> None:
        self.organization_id = organization_id
        self.event_id = event_id
        self.until = 0.0
        """By the monotonic clock."""
        self.limit: int | None = None
        self.refused = 0
        """How many were refused at it, ever."""
        self.event: HotEvent
        self.view: EventView


class Registry:
    def __init__(self, database: Database, feed: Feed, hot: HotTier, warm: Warm | None) -> None:
        self._database = database
        self.feed = feed
        self.hot = hot
        self.warm = warm

    def _event(self, view: EventView) -> HotEvent | None:
        """The event's seats where they are known, by the same numbers as in the view."""
        event = self.hot.peek(view.organization_id, view.id)
        return event if event is not None and event.layout.numbers_as(view.layout) else None

    def seats_at_once(self, view: EventView) -> HotEvent | None:
        """Every seat of the event as it is known in memory; never waits. None: the database must be asked."""
        event = self._event(view)
        if event is None:
            LOOKUPS.add("hot", "seat", "miss")
            self.hot.want(view)
        return event

    def taken_share(self, view: EventView) -> float:
        """Of the places that can be had at all, how many are held or sold, by what is in memory. An event that is not there
        looks empty, and is read."""
        event = self._event(view)
        if event is None:
            self.hot.want(view)
            return 0.0
        counts = np.bincount(event.states, minlength=len(STATES)).tolist()
        zones = event.zones.values()
        taken = counts[HELD] + counts[SOLD] + sum(zone.held + zone.sold for zone in zones)
        offered = sum(counts) - counts[BLOCKED] + sum(zone.capacity - zone.blocked for zone in zones)
        return float(taken / offered) if offered > 0 else 0.0

    async def seats(self, view: EventView, near: Sequence[int] = ()) -> HotEvent:
        """Every seat of the event, read where it is not in memory. A process that keeps no events reads only the zones of
        the seats in `near`, where some are given: the others look taken."""
        if self.hot.keeps_events or not near:
            event = await self.hot.event(view)
            if not event.layout.numbers_as(view.layout):
                raise LayoutChanged
            return event
        zones = {view.layout.zone_nos[ordinal] for ordinal in near}
        return await self.hot.read_zones(view, [view.layout.zones[zone_no] for zone_no in sorted(zones)])

    def free_seats(self, event: HotEvent) -> NDArray[np.bool_]:
        """Those that nobody has, or whose hold is over. What this process moved a moment ago is not among them, nor what is
        kept for somebody's companion."""
        free = event.taken <= self.feed.database_now()
        free &= ~event.unsure
        if event.soft is not None:
            free &= ~event.soft
        if event.doubts:
            free[list(event.doubts)] = False
        return free

    def taken_in(self, event: HotEvent, ordinal: int, user_id: UUID | None) -> Taken | None:
        """By what is in memory. None: the database must be asked."""
        left_s = event.refusal(ordinal, user_id, self.feed.database_now())
        if left_s <= 0.0:
            LOOKUPS.add("hot", "seat", "free")
            return None
        LOOKUPS.add("hot", "seat", "taken")
        expires_in = None if left_s == FOREVER else math.ceil(left_s)
        return Taken(ordinal, STATES[event.states[ordinal]].value, expires_in)

    def keeps(self, view: EventView, ordinal: int, user_id: UUID | None) -> bool:
        """Whether this companion's seat is kept for another, by what is in memory. False: the database must be asked."""
        event = self._event(view)
        return event is not None and event.keeps(ordinal, user_id, self.feed.database_now())

    def open_gate(self, gate: Gate, view: EventView, now: float) -> bool:
        event = self._event(view)
        if event is None:
            return False
        gate.event, gate.view = event, view
        gate.until = min(now + GATE_S, view.closes, self.feed.trusted_until)
        return True

    async def look_up(self, view: EventView, ordinal: int, user_id: UUID | None) -> Taken | None:
        """The same, and the warm tier where the event is not in memory. None says only: ask the database."""
        event = self._event(view)
        if event is not None:
            return self.taken_in(event, ordinal, user_id)
        LOOKUPS.add("hot", "seat", "miss")
        self.hot.want(view)
        if self.warm is None or not self.warm.available or self.hot.is_loading(view):
            return (
                None  # in a moment it is in memory, and a crowd that all asks Redis meanwhile is slower than the writer
            )
        return await self._by_warm_tier(self.warm, view, ordinal, user_id)

    async def _by_warm_tier(self, warm: Warm, view: EventView, ordinal: int, user_id: UUID | None) -> Taken | None:
        seat_id = view.layout.seat_uuid(ordinal)
        claimed = await warm.find_hold(view.organization_id, view.id, seat_id)
        if claimed is None:
            LOOKUPS.add("warm", "seat", "miss")
            return None
        async with self._database.transaction(view.organization_id) as tx:
            now, held = await find_live_hold(tx, view.organization_id, view.id, claimed.hold_id)
        if held is None or held.ordinal != ordinal or held.user_id != claimed.user_id:
            LOOKUPS.add("warm", "seat", "wrong")
            await warm.remove(view.organization_id, [claimed])
            if held is not None and held.ordinal is not None:
                await warm.add(view.organization_id, [warm_hold(view, held)], now)
            return None
        LOOKUPS.add("warm", "seat", "taken")
        if user_id is not None and held.user_id == user_id:
            return None
        left_s = None if held.held_until is None else math.ceil((held.held_until - now).total_seconds())
        return Taken(ordinal, "held", left_s)


def warm_hold(view: EventView, held: HeldNow) -> WarmHold:
    """A hold as the warm tier keeps it."""
    return WarmHold(
        event_id=view.id,
        hold_id=held.hold_id,
        user_id=held.user_id,
        held_until=held.held_until,
        seat_id=None if held.ordinal is None else view.layout.seat_uuid(held.ordinal),
        zone_no=held.zone_no if held.ordinal is None else None,
        quantity=held.quantity if held.ordinal is None else None,
        created_at=held.created_at,
        source=held.source,
        hold_type=held.hold_type,
    )
