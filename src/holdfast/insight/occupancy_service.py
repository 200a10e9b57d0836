"""How full an event is, now and over time: from memory, else from the warm tier, else from the counters.

What is remembered is at most ten seconds old, and is forgotten with every change of the event. A value that was read
before a change is never kept after it: neither here (whoever is told of a change while a value is being read does not
keep that value) nor from the warm tier (a value names the instant it was read at, and one that does not include a
transaction this process has been told of is passed over).
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Coroutine
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from holdfast.accounts.principal import Call, require_staff
from holdfast.insight.occupancy import (
    KeptOccupancy,
    OccupancyAnswer,
    OccupancyCache,
    PastOccupancy,
    includes,
    past,
    reckon,
    with_attendees,
)
from holdfast.kernel.errors import EventNotFound
from holdfast.seating.answers import Part, part_of
from holdfast.seating.sight import may_see
from holdfast.seating.view import EventView
from holdfast.store.catalogue import Catalogue
from holdfast.store.lookups import LOOKUPS
from holdfast.store.postgres.admissions import attendance
from holdfast.store.postgres.database import Database
from holdfast.store.postgres.feed import News
from holdfast.store.postgres.occupancy import list_snapshots, read_counted

KEEP_S = 10.0
ATTENDANCE_S = 1.0
"""Scans at the gates are in no feed: what other processes admitted shows within this time, what this one did at once."""
MAX_EVENTS = 5_000


class _Known:
    """What this process knows of one event's occupancy."""

    __slots__ = ("changes", "kept", "kept_at", "newest_xid", "reading", "told_without_xid", "warmed")

    def __init__(self, newest_xid: int, told_without_xid: bool) -> None:
        self.changes = 0
        """Counts what it was told: what was being read meanwhile is not kept."""
        self.kept: OccupancyAnswer | None = None
        self.kept_at = 0.0
        self.reading: asyncio.Task[OccupancyAnswer] | None = None
        self.newest_xid = newest_xid
        self.told_without_xid = told_without_xid
        """A change is known of which the transaction is not: only the counters themselves will do."""
        self.warmed = False
        """This process has put a value into the warm tier that is to be taken out at the next change."""


class OccupancyService:
    def __init__(self, database: Database, catalogue: Catalogue, warm: OccupancyCache | None = None) -> None:
        self._database = database
        self._catalogue = catalogue
        self._warm = warm
        self._known: OrderedDict[tuple[UUID, UUID], _Known] = OrderedDict()
        self._organizations: dict[UUID, UUID] = {}
        """By event: whose it is."""
        # Of changes of events that nobody here has asked about yet: what the first to ask may not take from elsewhere.
        self._newest_xid = 0
        self._told_without_xid_at = -KEEP_S
        self._tasks: set[asyncio.Task[None]] = set()
        self._inside: dict[UUID, tuple[float, dict[int, int]]] = {}
        """By event: when it was read, and people inside by zone number."""

    # Asking --------------------------------------------------------------------------------------------------
    async def occupancy(self, call: Call, event_id: UUID) -> OccupancyAnswer:
        """For everybody who may see the event."""
        view = await self._seen_event(call, event_id)
        found = await self.of_event(view)
        present = await self._present(view)
        return with_attendees(found, view.layout, present) if any(present.values()) else found

    async def of_event(self, view: EventView) -> OccupancyAnswer:
        """The same for those who speak for the engine."""
        known = self._known_of(view)
        if known.kept is not None and time.monotonic() - known.kept_at < KEEP_S:
            LOOKUPS.add("hot", "occupancy", "hit")
            return known.kept
        LOOKUPS.add("hot", "occupancy", "miss")
        if known.reading is None:
            known.reading = asyncio.create_task(self._read(view, known))
        # Shielded: one caller who gives up must not take the reading from the others who wait for it.
        return await asyncio.shield(known.reading)

    async def history(
        self, call: Call, event_id: UUID, since: datetime | None, until: datetime | None, limit: int
    ) -> Part[PastOccupancy]:
        """Minute by minute, from `since` on (or for a day) and before `until` (or now), the oldest first."""
        require_staff(call)
        view = await self._seen_event(call, event_id)
        async with self._database.transaction(call.organization_id) as tx:
            kept = await list_snapshots(tx, call.organization_id, event_id, since, until, limit + 1)
        return part_of([past(view.layout, minute) for minute in kept], limit, lambda minute: minute.at.isoformat())

    # Being told ----------------------------------------------------------------------------------------------
    def forget(self, event_id: UUID, xid: int | None = None) -> None:
        """The event has changed, by the transaction of that number where it is known. Never waits."""
        organization_id = self._organizations.get(event_id)
        if organization_id is None:
            if xid is None:
                self._told_without_xid_at = time.monotonic()
            else:
                self._newest_xid = max(self._newest_xid, xid)
            return
        known = self._known[organization_id, event_id]
        known.changes += 1
        known.kept = None
        known.reading = None
        if xid is None:
            known.told_without_xid = True
        else:
            known.newest_xid = max(known.newest_xid, xid)
        if known.warmed and self._warm is not None:
            known.warmed = False
            self._soon(self._drop_warm(self._warm, organization_id, event_id))

    def forget_attendance(self, event_id: UUID) -> None:
        """Somebody came or went."""
        self._inside.pop(event_id, None)

    def learn(self, news: News) -> None:
        """What the change feed brings."""
        for message in news.messages:
            if message.event_id is not None:
                self.forget(message.event_id, message.xid)

    def lose(self) -> None:
        """The change feed was lost: changes may have gone by untold."""
        self._told_without_xid_at = time.monotonic()
        for event_id in self._organizations:
            self.forget(event_id)

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Reading -------------------------------------------------------------------------------------------------
    async def _seen_event(self, call: Call, event_id: UUID) -> EventView:
        view = await self._catalogue.event(call.organization_id, event_id)
        if view is None or not may_see(call, view.id, view.status):
            raise EventNotFound
        return view

    async def _present(self, view: EventView) -> dict[int, int]:
        read_at = time.monotonic()
        kept = self._inside.get(view.id)
        if kept is not None and read_at - kept[0] < ATTENDANCE_S:
            return kept[1]
        async with self._database.transaction(view.organization_id) as tx:
            today = view.admission.day_of(await tx.now())
            counted = await attendance(tx, view.organization_id, view.id, today)
        # A migration may have come between the view and the counts: whoever is in a zone the view lacks is left out.
        present = {one.zone_no: one.present for one in counted if one.zone_no < len(view.layout.zones)}
        if len(self._inside) >= MAX_EVENTS:
            self._inside.clear()
        self._inside[view.id] = (read_at, present)
        return present

    def _known_of(self, view: EventView) -> _Known:
        key = (view.organization_id, view.id)
        known = self._known.get(key)
        if known is not None:
            self._known.move_to_end(key)
            return known
        unsure = time.monotonic() - self._told_without_xid_at < KEEP_S
        known = self._known[key] = _Known(self._newest_xid, unsure)
        self._organizations[view.id] = view.organization_id
        if len(self._known) > MAX_EVENTS:
            (_, dropped), _ = self._known.popitem(last=False)
            del self._organizations[dropped]
        return known

    async def _read(self, view: EventView, known: _Known) -> OccupancyAnswer:
        me = asyncio.current_task()
        try:
            warm = await self._read_warm(view, known)
            return warm if warm is not None else await self._read_cold(view, known)
        finally:
            if known.reading is me:
                known.reading = None

    async def _read_warm(self, view: EventView, known: _Known) -> OccupancyAnswer | None:
        if self._warm is None or known.told_without_xid:
            return None
        changes, read_at = known.changes, time.monotonic()
        body = await self._warm.get_occupancy(view.organization_id, view.id)
        kept = None if body is None else _decoded(body, view)
        if kept is None or known.changes != changes:
            LOOKUPS.add("warm", "occupancy", "miss")
            return None
        age_s = (view.database_now() - kept.occupancy.timestamp).total_seconds()
        if age_s >= KEEP_S or not includes(kept.snapshot, known.newest_xid):
            LOOKUPS.add("warm", "occupancy", "stale")
            return None
        LOOKUPS.add("warm", "occupancy", "hit")
        known.kept, known.kept_at = kept.occupancy, read_at - max(0.0, age_s)
        return kept.occupancy

    async def _read_cold(self, view: EventView, known: _Known) -> OccupancyAnswer:
        changes, read_at = known.changes, time.monotonic()
        async with self._database.transaction(view.organization_id) as tx:
            counted = await read_counted(tx, view.organization_id, view.id)
        LOOKUPS.add("cold", "occupancy", "hit")
        answer = reckon(view.id, view.layout, counted)
        if known.changes != changes:
            return answer
        known.kept, known.kept_at, known.told_without_xid = answer, read_at, False
        if self._warm is not None:
            known.warmed = True
            self._soon(self._set_warm(self._warm, view, known, KeptOccupancy(answer, counted.snapshot)))
        return answer

    # The warm tier, off the path of the answer ---------------------------------------------------------------
    async def _set_warm(self, warm: OccupancyCache, view: EventView, known: _Known, kept: KeptOccupancy) -> None:
        if known.kept is not kept.occupancy:
            return
        await warm.set_occupancy(view.organization_id, view.id, msgspec.json.encode(kept))
        if known.kept is not kept.occupancy:  # told of a change while it was on its way there
            await warm.drop_occupancy(view.organization_id, view.id)

    async def _drop_warm(self, warm: OccupancyCache, organization_id: UUID, event_id: UUID) -> None:
        await warm.drop_occupancy(organization_id, event_id)

    def _soon(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # what is left there is passed over by who knows better, and gone in ten seconds


def _decoded(body: bytes, view: EventView) -> KeptOccupancy | None:
    """None for what this version did not write: anybody may write to the warm tier."""
    try:
        kept = msgspec.json.decode(body, type=KeptOccupancy)
        includes(kept.snapshot, 0)
    except (msgspec.DecodeError, ValueError):
        return None
    occupancy = kept.occupancy
    return kept if (occupancy.event_id, occupancy.total) == (view.id, view.layout.total_capacity) else None
