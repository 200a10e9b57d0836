"""Holds a buyer's pick against the orphan rule, by the seats as this process knows them."""

from collections import Counter
from uuid import UUID

import structlog

from holdfast.accounts.principal import Call
from holdfast.allocation.floor import floor_of
from holdfast.holds.claims import HoldRequest
from holdfast.holds.lifecycle import Actor
from holdfast.holds.orphan_rule import NOT_STRICT, Stranding, check_pick, stranded_beside
from holdfast.kernel.counting import PlainCounter
from holdfast.kernel.errors import OrphanSeat
from holdfast.seating.view import EventView
from holdfast.store.hot.event import HELD, HotEvent, owner_key
from holdfast.store.registry import Registry

log = structlog.get_logger(__name__)

STRANDED = PlainCounter(
    "holdfast_orphan_seats",
    "Picks that would leave single seats alone: refused, excused by the state of the row, allowed by the policy",
    ("outcome",),
)


class OrphanGuard:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.left_alone: Counter[tuple[UUID, UUID]] = Counter()
        """By organization and event: seats that were left alone on the short way since somebody looked."""

    def log_left_alone(self) -> None:
        """What `check` logs pick by pick is logged for the short way in sums: there may be thousands a second."""
        for (organization_id, event_id), seats in self.left_alone.items():
            ids = {"organization_id": str(organization_id), "event_id": str(event_id)}
            log.info("orphan_seats_left", **ids, count=seats, reason=NOT_STRICT)
        self.left_alone.clear()

    def passes_at_once(self, view: EventView, request: HoldRequest, event: HotEvent | None) -> bool:
        """For one seat, without a wait: nobody is stranded, or the policy does not mind. False: look closer (`check`)."""
        if request.actor != Actor.CUSTOMER:
            return True
        strict = view.effective_policy.orphan_avoidance_strict
        if event is None:
            return not strict
        now = self._registry.feed.database_now()
        stranded = stranded_beside(floor_of(view.layout), event.refused_until, request.seats[0].ordinal, now)
        if not stranded:
            return True
        if not strict:
            STRANDED.add("allowed")
            self.left_alone[view.organization_id, view.id] += len(stranded)
        return not strict

    async def check(self, call: Call, view: EventView, request: HoldRequest) -> None:
        """Raises OrphanSeat. Where the policy is not strict, or the row excuses it, what is left alone is counted."""
        if request.actor != Actor.CUSTOMER or not request.seats:
            return
        strict = view.effective_policy.orphan_avoidance_strict
        picked = [seat.ordinal for seat in request.seats]
        if not strict and not self._registry.hot.keeps_events:
            return
        event = await self._registry.seats(view, picked)
        try:
            stranding = check_pick(
                view.layout,
                floor_of(view.layout),
                self._registry.free_seats(event),
                picked,
                own_seats(event, request),
                strict=strict,
            )
        except OrphanSeat:
            STRANDED.add("refused")
            raise
        if stranding is not None:
            note_stranding(call, view, stranding, "allowed" if stranding.by_policy else "excused")


def own_seats(event: HotEvent, request: HoldRequest) -> set[int]:
    """What the buyer holds already."""
    if request.user_id is None:
        return set()
    mine = (event.owners == owner_key(request.user_id)) & (event.states == HELD)
    return set(mine.nonzero()[0].tolist())


def note_stranding(call: Call, view: EventView, stranding: Stranding, outcome: str) -> None:
    STRANDED.add(outcome)
    log.info(
        "orphan_seats_left",
        organization_id=str(view.organization_id),
        event_id=str(view.id),
        user_id=str(call.principal.user_id),
        seats=[view.layout.seat_ids[ordinal] for ordinal in stranding.stranded],
        reason=stranding.reason,
    )
