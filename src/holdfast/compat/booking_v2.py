"""Booking v2: lock, unlock, sale, revertsale, directsale and state, in the words of the API it comes from.

Seats and GA zones are named by the inventory's integers. The session is the owner: another session cannot unlock or sell
what it locked. Each call applies to everything it names or to nothing, and answers true or false.

Its callers have tickets of their own: what is sold here gets none of ours. Where one of ours stands on a seat whose sale is
reverted here, it is voided; counted places that tickets of ours are for are not taken back, nor is anything touched that is
in a checkout.
"""

from collections.abc import Awaitable, Callable
from uuid import UUID

import msgspec

from holdfast.accounts.principal import Call
from holdfast.holds.claims import HoldRequest, PlacesWanted
from holdfast.holds.hold_types import CART, ResolvedHoldType
from holdfast.holds.lifecycle import BOOKING_STATES, BookingState, SeatState
from holdfast.holds.lifetime import BOOKING_V2_TTL_S
from holdfast.holds.plan import any_time, find_hold_type, hold_ttl_s, plan_accessible, wanted_seats
from holdfast.kernel.errors import (
    Conflict,
    EventNotAvailable,
    EventUnavailable,
    InvalidRequest,
    LayoutChanged,
    NotFound,
    Refusal,
    SeatHeldByAnother,
    SeatNotAvailable,
    SeatNotOffered,
    ZoneAtCapacity,
    ZoneDisabled,
)
from holdfast.kernel.ids import new_id
from holdfast.seating.accessibility import CompanionRule
from holdfast.seating.event import EventStatus
from holdfast.seating.view import EventView
from holdfast.store.catalogue import Catalogue
from holdfast.store.postgres import booking as store
from holdfast.store.postgres.accessibility import asker_of, audit_accessible, companion_rows
from holdfast.store.postgres.database import Database, Transaction
from holdfast.store.postgres.events import layout_version
from holdfast.store.postgres.holds import hold_whole
from holdfast.store.postgres.idempotency import run_once


class EntityNotFound(NotFound):
    code = "ENTITY_NOT_FOUND"


class EventArchived(Refusal):
    code = "EVENT_ARCHIVED"


class EventNotPublished(Refusal):
    code = "EVENT_NOT_PUBLISHED"


class NotInExpectedState(Conflict):
    """Inside only: rolls the transaction back; the caller of the API reads `false`."""


class SeatRef(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: int


class GroupRef(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: int
    capacity: int


class StateSelection(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    session_id: str
    seats: list[SeatRef] = []
    group_of_seats: list[GroupRef] = []
    hold_type: str | None = None


class SeatStateOut(msgspec.Struct, frozen=True, rename="camel"):
    id: int
    seat_id: str
    section: str
    row: str
    number: int
    state: BookingState
    hold_type: str | None


class GroupStateOut(msgspec.Struct, frozen=True, rename="camel"):
    id: int
    zone_id: str
    name: str
    capacity: int
    locked: int
    sold: int
    available: int


class InventoryState(msgspec.Struct, frozen=True, rename="camel"):
    event_id: UUID
    seats: list[SeatStateOut]
    group_of_seats: list[GroupStateOut]


class _Selection(msgspec.Struct, frozen=True):
    """A selection found in the inventory."""

    session_id: str
    ordinals: list[int]
    groups: list[tuple[int, int]]  # zone, quantity; sorted by zone


class BookingV2:
    def __init__(self, database: Database, catalogue: Catalogue, hold_window_s: int, seats_max: int) -> None:
        self._database = database
        self._catalogue = catalogue
        self._window_s = hold_window_s
        self._seats_max = seats_max

    async def lock(self, call: Call, event_id: UUID, wanted: StateSelection) -> bool:
        view = await self._event(call, event_id)
        resolved = find_hold_type(view, wanted.hold_type, BookingState.LOCKED)

        async def work(tx: Transaction) -> bool:
            chosen = await self._find(tx, call, view, wanted)
            await hold_whole(tx, _lock_request(view, call, chosen, resolved), self._window_s)
            return True

        return await self._apply(call, work)

    async def unlock(self, call: Call, event_id: UUID, wanted: StateSelection) -> bool:
        return await self._move(call, event_id, wanted, "release")

    async def sale(self, call: Call, event_id: UUID, wanted: StateSelection) -> bool:
        return await self._move(call, event_id, wanted, "convert")

    async def direct_sale(self, call: Call, event_id: UUID, wanted: StateSelection) -> bool:
        return await self._move(call, event_id, wanted, "direct_sale")

    async def revert_sale(self, call: Call, event_id: UUID, wanted: StateSelection) -> bool:
        return await self._move(call, event_id, wanted, "revert_sale")

    async def _move(self, call: Call, event_id: UUID, wanted: StateSelection, verb: str) -> bool:
        view = await self._event(call, event_id)
        hold_type = self._hold_type_for(view, wanted, verb)
        types_when_sold = [n for n, t in view.hold_types.items() if BookingState.SOLD in t.hold_type.valid_states]

        def rules(chosen: _Selection) -> list[tuple[int, CompanionRule | None]]:
            """A direct sale takes free seats: it is bound as a cart is, unless it is for a purpose of the organiser's."""
            if verb != "direct_sale":
                return []
            seats = wanted_seats(view, call, chosen.ordinals, hold_type or CART)
            return [(seat.ordinal, seat.companion) for seat in seats]

        async def work(tx: Transaction) -> bool:
            chosen = await self._find(tx, call, view, wanted)
            moved = await store.move_selection(
                tx,
                call,
                view.id,
                verb,
                chosen.session_id,
                chosen.ordinals,
                chosen.groups,
                hold_type,
                types_when_sold,
                companion_rows((n, rule) for n, (_, rule) in enumerate(rules(chosen), 1)),
            )
            if not moved:
                raise NotInExpectedState("not in the expected state")
            terms = plan_accessible(view, call, chosen.ordinals) if verb == "direct_sale" else None
            if terms is not None:
                await audit_accessible(tx, asker_of(call, chosen.session_id), view.id, terms, rules(chosen), [])
            tx.moved(view.id, chosen.ordinals)
            return True

        return await self._apply(call, work)

    @staticmethod
    def _hold_type_for(view: EventView, wanted: StateSelection, verb: str) -> str | None:
        if wanted.hold_type is None:
            return None
        if verb in ("release", "revert_sale"):
            raise InvalidRequest("This call takes no holdType: going back to ACTIVE clears it.", pointer="/holdType")
        resolved = find_hold_type(view, wanted.hold_type, BookingState.SOLD)
        if verb == "direct_sale" and not resolved.hold_type.skip_locked_state:
            raise InvalidRequest(
                f"The hold type {resolved.name} may not be sold directly: it lacks skipLockedState.",
                hold_type=resolved.name,
            )
        return resolved.name

    async def _apply(self, call: Call, work: Callable[[Transaction], Awaitable[bool]]) -> bool:
        """True, or false where any seat was not in the expected state; then nothing was applied."""
        try:
            return await run_once(self._database, call, work, bool)
        except (
            NotInExpectedState,
            SeatHeldByAnother,
            SeatNotAvailable,
            SeatNotOffered,
            ZoneAtCapacity,
            ZoneDisabled,
            LayoutChanged,
        ):
            return False
        except (EventNotAvailable, EventUnavailable) as refusal:  # it was on sale a moment ago
            raise EventNotPublished(refusal.detail) from None

    async def _event(self, call: Call, event_id: UUID) -> EventView:
        view = await self._catalogue.fresh_event(call.organization_id, event_id)
        if view is None:
            raise EntityNotFound("There is no such event.")
        if view.status is EventStatus.ARCHIVED:
            raise EventArchived("This event is archived.")
        if view.status not in (EventStatus.PUBLISHED, EventStatus.LIVE):
            raise EventNotPublished(f"This event is {view.status.value}.")
        return view

    async def _find(self, tx: Transaction, call: Call, view: EventView, wanted: StateSelection) -> _Selection:
        _require_shape(wanted, self._seats_max)
        await store.share_event(tx, view.id)  # from here on an id names the same seat until the commit
        seat_ids = [s.id for s in wanted.seats]
        group_ids = [g.id for g in wanted.group_of_seats]
        ordinals = await store.find_seats(tx, call.organization_id, view.id, seat_ids)
        zones = await store.find_zones(tx, call.organization_id, view.id, group_ids)
        unknown = [i for i in seat_ids if i not in ordinals] + [i for i in group_ids if i not in zones]
        if unknown:
            raise EntityNotFound("There are no such seats or groups in this event.", ids=unknown)
        groups = sorted((zones[g.id], g.capacity) for g in wanted.group_of_seats)
        return _Selection(wanted.session_id, sorted(ordinals[i] for i in seat_ids), groups)

    async def state(self, call: Call, event_id: UUID) -> InventoryState:
        view = await self._event(call, event_id)
        layout = view.layout
        async with self._database.transaction(call.organization_id) as tx:
            await store.share_event(tx, event_id)
            if await layout_version(tx, call.organization_id, event_id) != view.layout_version:
                raise LayoutChanged
            seats = await store.seat_states(tx, call.organization_id, event_id)
            zones = await store.zone_counts(tx, call.organization_id, event_id)
        return InventoryState(
            event_id=event_id,
            seats=[
                SeatStateOut(
                    id=row["booking_id"],
                    seat_id=layout.seat_ids[row["ordinal"]],
                    section=layout.zones[row["zone_no"]].name,
                    row=layout.rows[row["ordinal"]],
                    number=layout.numbers[row["ordinal"]],
                    state=BOOKING_STATES[SeatState(row["state"])],
                    hold_type=row["hold_type"],
                )
                for row in seats
            ],
            group_of_seats=[
                GroupStateOut(
                    id=row["booking_id"],
                    zone_id=layout.zones[row["zone_no"]].zone_id,
                    name=layout.zones[row["zone_no"]].name,
                    capacity=row["capacity"],
                    locked=row["held"],
                    sold=row["sold"],
                    available=row["capacity"] - row["held"] - row["sold"] - row["blocked"],
                )
                for row in zones
            ],
        )


def _require_shape(wanted: StateSelection, seats_max: int) -> None:
    if not 1 <= len(wanted.session_id) <= 200 or "\x00" in wanted.session_id:
        raise InvalidRequest("sessionId must have 1 to 200 characters.", pointer="/sessionId")
    if not wanted.seats and not wanted.group_of_seats:
        raise InvalidRequest("Name at least one seat or group.", pointer="/seats")
    if len(wanted.seats) + len(wanted.group_of_seats) > seats_max:
        raise InvalidRequest(f"At most {seats_max} seats in one call.", pointer="/seats")
    for field, ids in (
        ("seats", [s.id for s in wanted.seats]),
        ("groupOfSeats", [g.id for g in wanted.group_of_seats]),
    ):
        if len(set(ids)) < len(ids):
            raise InvalidRequest("The same id is named twice.", pointer=f"/{field}")
        if any(not 0 < i < 2**31 for i in ids):
            raise InvalidRequest("An id is a positive integer.", pointer=f"/{field}")
    if any(not 1 <= g.capacity <= 1_000_000 for g in wanted.group_of_seats):
        raise InvalidRequest("A group's capacity is at least 1.", pointer="/groupOfSeats")


def _lock_request(view: EventView, call: Call, chosen: _Selection, resolved: ResolvedHoldType) -> HoldRequest:
    return HoldRequest(
        organization_id=call.organization_id,
        event_id=view.id,
        layout_version=view.layout_version,
        seats=wanted_seats(view, call, chosen.ordinals, resolved.name),
        places=tuple(PlacesWanted(zone_no, quantity, new_id()) for zone_no, quantity in chosen.groups),
        user_id=None,
        session_id=chosen.session_id,
        actor=call.principal.actor.value,
        source="api",
        hold_type=resolved.name,
        ttl_s=hold_ttl_s(view, resolved, BOOKING_V2_TTL_S),
        any_time=any_time(call, resolved.hold_type),
        user_limit=None,
        ip_limit=None,
        ip=call.ip,
        user_agent=call.user_agent,
        request_id=call.request_id,
        accessible=plan_accessible(view, call, chosen.ordinals),
    )
