"""Whether the tiers above the database say what the database says, event by event; and putting right what they say wrong.

Safe under load: what only seems wrong, because a change is on its way, is looked at again before it counts; what is
removed is named by its hold, which never comes back; what is added is looked at once more in the database afterwards.
"""

import asyncio
from datetime import datetime
from uuid import UUID

import msgspec
import numpy as np
import structlog
from prometheus_client import Counter, Gauge

from holdfast.seating.view import EventView
from holdfast.store.feed import Feed
from holdfast.store.hot.event import HotEvent
from holdfast.store.hot.tier import HotTier
from holdfast.store.postgres.database import Database
from holdfast.store.postgres.seat_facts import HeldNow, count_seats, live_holds, still_active
from holdfast.store.redis.warm import Warm
from holdfast.store.redis.warm_hold import WarmHold
from holdfast.store.registry import warm_hold

log = structlog.get_logger(__name__)

SETTLE_S = 0.6
"""What the warm tier has not heard of after so long, it has missed."""

DRIFT = Gauge("holdfast_registry_drift", "Seats or holds that a tier had wrong when last looked at", ["tier"])
MENDED = Counter("holdfast_registry_mended_total", "Seats or holds of a tier that were put right", ["tier"])


class ColdCounts(msgspec.Struct, frozen=True):
    held: int
    sold: int
    blocked: int
    holds: int


class HotCounts(msgspec.Struct, frozen=True):
    loaded: bool
    held: int = 0
    sold: int = 0
    blocked: int = 0
    drift: int = 0


class WarmCounts(msgspec.Struct, frozen=True):
    available: bool
    holds: int = 0
    missing: int = 0
    wrong: int = 0

    @property
    def drift(self) -> int:
        return self.missing + self.wrong


class TierStatus(msgspec.Struct, frozen=True):
    """An event's tiers. `warm` is none where there is no Redis."""

    event_id: UUID
    consistent: bool
    cold: ColdCounts
    hot: HotCounts
    warm: WarmCounts | None


class _WarmDifference(msgspec.Struct, frozen=True):
    known: int
    missing: list[HeldNow]
    wrong: list[WarmHold]
    now: datetime


class Reconciler:
    def __init__(self, database: Database, feed: Feed, hot: HotTier, warm: Warm | None) -> None:
        self._database = database
        self._feed = feed
        self._hot = hot
        self._warm = warm

    async def status(self, view: EventView) -> TierStatus:
        return await self._look(view, mend=False)

    async def reconcile(self, view: EventView) -> TierStatus:
        """Puts right what is wrong; answers what it found before that."""
        return await self._look(view, mend=True)

    async def _look(self, view: EventView, *, mend: bool) -> TierStatus:
        hot = await self._look_at_hot(view, mend=mend)
        warm = await self._look_at_warm(self._warm, view, mend=mend) if self._warm is not None else None
        async with self._database.transaction(view.organization_id) as tx:
            counted = await count_seats(tx, view.organization_id, view.id)
        drift = hot.drift + (0 if warm is None else warm.drift)
        if drift:
            log.warning(
                "registry_drift",
                organization_id=str(view.organization_id),
                event_id=str(view.id),
                hot=hot.drift,
                warm=None if warm is None else warm.drift,
                mended=mend,
            )
        return TierStatus(view.id, drift == 0, ColdCounts(*counted), hot, warm)

    # Hot ---------------------------------------------------------------------------------------------------------
    async def _look_at_hot(self, view: EventView, *, mend: bool) -> HotCounts:
        event = self._hot.known(view.organization_id, view.id)
        if event is None:
            return HotCounts(False)
        truth = HotEvent(view.organization_id, view.id, event.layout)
        truth.hold_types = list(event.hold_types)
        await self._hot.read_into(truth)
        await self._feed.caught_up()  # whatever was committed when the truth was read is known by now
        wrong = np.nonzero(
            (event.versions < truth.versions)
            | ((event.versions == truth.versions) & ((event.states != truth.states) | (event.until < truth.until)))
        )[0]
        if mend and len(wrong):
            self._hot.drop((view.organization_id, view.id), "drift")
            await self._hot.event(view)
            MENDED.labels("hot").inc(len(wrong))
        states = np.bincount(event.states, minlength=4)
        return HotCounts(True, int(states[1]), int(states[2]), int(states[3]), len(wrong))

    # Warm --------------------------------------------------------------------------------------------------------
    async def _look_at_warm(self, warm: Warm, view: EventView, *, mend: bool) -> WarmCounts:
        seats = _seats(view)
        found = await self._difference(warm, view, seats)
        if found is not None and (found.missing or found.wrong):
            await asyncio.sleep(SETTLE_S)  # for those that are on their way
            found = _in_both(found, await self._difference(warm, view, seats))
        if found is None:
            return WarmCounts(False)
        orphans = await warm.orphans(view.organization_id, seats, remove=mend)
        if mend:
            await self._mend(warm, view, found)
        return WarmCounts(True, found.known, len(found.missing), len(found.wrong) + (orphans or 0))

    async def _difference(self, warm: Warm, view: EventView, seats: list[UUID]) -> _WarmDifference | None:
        """The warm tier is read first: a hold that it names and the database does not was over, not yet to come."""
        organization_id = view.organization_id
        listed = await warm.holds_of_event(organization_id, view.id)
        claimed = await warm.find_holds(organization_id, view.id, seats)
        if listed is None or claimed is None:
            return None
        async with self._database.transaction(organization_id) as tx:
            now = await tx.now()
            held = await live_holds(tx, organization_id, view.id)
        true = {hold.hold_id: warm_hold(view, hold) for hold in held if hold.ordinal is not None}
        wrong = [hold for hold in listed if not _same(hold, true.get(hold.hold_id))]
        wrong += [hold for hold in claimed if hold is not None and not _same(hold, true.get(hold.hold_id))]
        named = {hold.hold_id for hold in claimed if hold is not None}
        unnamed = [hold.seat_id for hold in listed if hold.hold_id not in named and hold.seat_id is not None]
        # Two events of one layout share a seat's key: the later hold has it, and neither is wrong.
        elsewhere = await warm.seats_elsewhere(organization_id, view.id, unnamed) if unnamed else set()
        if elsewhere is None:
            return None
        named |= {hold.hold_id for hold in listed if hold.seat_id in elsewhere}
        right = {hold.hold_id for hold in listed} & named - {hold.hold_id for hold in wrong}
        missing = [hold for hold in held if hold.ordinal is not None and hold.hold_id not in right]
        return _WarmDifference(len(listed), missing, wrong, now)

    async def _mend(self, warm: Warm, view: EventView, found: _WarmDifference) -> None:
        organization_id = view.organization_id
        if found.wrong:
            await warm.remove(organization_id, found.wrong)
        if found.missing:
            added = [warm_hold(view, hold) for hold in found.missing]
            await warm.add(organization_id, added, found.now)
            async with self._database.transaction(organization_id) as tx:
                alive = await still_active(tx, organization_id, [hold.hold_id for hold in added])
            ended = [hold for hold in added if hold.hold_id not in alive]
            if ended:
                await warm.remove(organization_id, ended)
        if found.wrong or found.missing:
            MENDED.labels("warm").inc(len(found.wrong) + len(found.missing))
        event = await self._hot.event(view)
        await warm.set_bitmap(organization_id, view.id, bitmap(event))

    async def rebuild_warm(self, view: EventView) -> None:
        """After a flush, a restart or a failover: everything of this event anew, without looking twice."""
        if self._warm is None:
            return
        found = await self._difference(self._warm, view, _seats(view))
        if found is not None:
            await self._mend(self._warm, view, found)


def _seats(view: EventView) -> list[UUID]:
    return [view.layout.seat_uuid(ordinal) for ordinal in range(view.layout.seat_count)]


def bitmap(event: HotEvent) -> bytes:
    """Bit n is set while the seat with ordinal n is not available."""
    return np.packbits(event.states != 0).tobytes()


def _same(said: WarmHold, true: WarmHold | None) -> bool:
    return true is not None and (said.seat_id, said.user_id, said.held_until) == (
        true.seat_id,
        true.user_id,
        true.held_until,
    )


def _in_both(first: _WarmDifference, second: _WarmDifference | None) -> _WarmDifference | None:
    """What was wrong at both looks; a hold that ended in between is no fault."""
    if second is None:
        return None
    missed, wrong = {hold.hold_id for hold in first.missing}, {hold.hold_id for hold in first.wrong}
    return _WarmDifference(
        second.known,
        [hold for hold in second.missing if hold.hold_id in missed],
        [hold for hold in second.wrong if hold.hold_id in wrong],
        second.now,
    )
