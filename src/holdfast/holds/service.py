"""Holds: placing, releasing, moving, extending and listing them."""

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from holdfast.accounts.principal import Call, require_staff
from holdfast.holds.claims import Held, HoldRequest, SeatWanted, seconds_between, taken_seat
from holdfast.holds.combiner import Combiner
from holdfast.holds.lifecycle import Actor, HoldStatus
from holdfast.holds.lifetime import NATIVE_RESERVE_TTL_S
from holdfast.holds.plan import HoldsAsked, asks_whitelist, find_ordinals, hold_ttl_s, plan_hold
from holdfast.holds.recent import RecentHolds
from holdfast.insight.refusals import RefusalAudit
from holdfast.kernel.counting import PlainCounter
from holdfast.kernel.errors import (
    EventNotAvailable,
    EventNotFound,
    EventSalesClosed,
    EventUnavailable,
    Forbidden,
    HoldAtMaximum,
    HoldEnded,
    HoldExpired,
    HoldNotFound,
    InvalidRequest,
    LayoutChanged,
    Refusal,
    ReleaseForbidden,
    ZoneNotFound,
)
from holdfast.kernel.ids import new_id
from holdfast.seating.event import check_saleable
from holdfast.seating.view import EventView
from holdfast.settings import Settings
from holdfast.store.catalogue import Catalogue
from holdfast.store.feed import Feed
from holdfast.store.hot.event import owner_key
from holdfast.store.postgres import holds as store
from holdfast.store.postgres.database import Database, Row, Transaction
from holdfast.store.postgres.idempotency import run_once
from holdfast.store.registry import Gate, Registry, Taken

BULK_RELEASE_MAX = 100_000
GATES_MAX = 1_000

Deliver = Callable[[EventView, Held | Refusal], None]


class HoldView(msgspec.Struct, frozen=True, kw_only=True):
    """A hold as its owner or the organiser may see it."""

    hold_id: UUID
    event_id: UUID
    seat_id: UUID | None
    seat_label: str | None
    zone_id: str
    block_name: str
    row: str | None
    seat_number: int | None
    quantity: int
    status: str
    hold_type: str
    held_until: datetime | None
    held_until_unix: int | None
    expires_in_seconds: int | None
    created_at: datetime | None = None
    user_id: UUID | None = None
    session_id: str | None = None
    source: str | None = None


class Placement(msgspec.Struct, frozen=True):
    created: bool
    holds: list[HoldView]


class Released(msgspec.Struct, frozen=True):
    released: int
    expired: int
    hold_ids: list[UUID]


class SeatMove(msgspec.Struct, frozen=True, order=True):
    hold_id: UUID
    seat: UUID


class HoldFilter(msgspec.Struct, frozen=True, kw_only=True):
    hold_type: str | None = None
    user_id: UUID | None = None
    zone: str | None = None
    expiring_within_s: float | None = None


class HoldPage(msgspec.Struct, frozen=True):
    holds: list[HoldView]
    next_cursor: str | None


HOLDS = PlainCounter("holdfast_holds", "Holds placed", ("hold_type",))


class HoldsService:
    def __init__(
        self,
        database: Database,
        catalogue: Catalogue,
        combiner: Combiner,
        registry: Registry,
        refusals: RefusalAudit,
        settings: Settings,
    ) -> None:
        self._database = database
        self._catalogue = catalogue
        self._combiner = combiner
        self._registry = registry
        self._refusals = refusals
        self._settings = settings
        self._recent = RecentHolds(settings.hold_window_s)
        self._gates: dict[UUID, Gate] = {}

    # Placing -----------------------------------------------------------------------------------------------------
    async def hold_seats(self, call: Call, event_id: UUID, asked: HoldsAsked) -> Placement:
        """Seats and places for the caller, all or nothing; those already theirs come back as they are."""
        try:
            return await self._hold_seats(call, event_id, asked)
        except LayoutChanged:  # seats are asked for by id: by the layout as it is now they can be found again
            self._catalogue.forget(call.organization_id, event_id)
            return await self._hold_seats(call, event_id, asked)

    async def _hold_seats(self, call: Call, event_id: UUID, asked: HoldsAsked) -> Placement:
        view = self._catalogue.peek(call.organization_id, event_id)
        try:
            if view is None:
                view = await self._event(call, event_id)
            request = await self._plan(call, view, asked)
            if call.idempotency is None:
                await self._refuse_early(view, request)
            if call.idempotency is None and self._fits_a_batch(request):
                held = await self._combiner.submit(request)
                placement = placement_of(view, held)
            else:
                placement = await self._hold_alone(call, view, request)
        except Refusal as refusal:
            named = _named(refusal, view)
            self._refusals.note(call, event_id, named)
            raise named from refusal
        if placement.created:
            self._count(request, len(placement.holds))
        return placement

    def submit(self, call: Call, event_id: UUID, asked: HoldsAsked, deliver: Deliver) -> bool:
        """`hold_seats` without a wait, for the hottest route: `deliver` is called with what became of it. False where
        anything would have to be read first, or looked at afresh: nothing has been done then."""
        view = self._catalogue.peek(call.organization_id, event_id)
        if view is None or not view.on_sale() or not view.layout.all_public or call.idempotency is not None:
            return False
        try:
            self._require_own_event(call, view)
            request = plan_hold(view, call, asked, whitelisted=False, bulk_max=self._settings.bulk_seats_max)
            if not self._fits_a_batch(request):
                return False
            taken = self._registry.peek(view, request.seats[0].ordinal, request.user_id)
            if taken is not None and not self._over_limit(request.user_id, len(request.hold_ids), request.user_limit):
                raise _named(taken_seat(taken.ordinal, taken.state, taken.expires_in), view)

            def settled(outcome: Held | Refusal) -> None:
                if isinstance(outcome, LayoutChanged):
                    self._catalogue.forget(call.organization_id, event_id)
                if isinstance(outcome, Refusal):
                    outcome = _named(outcome, view)
                    self._refusals.note(call, event_id, outcome)
                elif outcome.created:
                    self._count(request, len(outcome.holds))
                deliver(view, outcome)

            self._combiner.enqueue(request, settled)
        except Refusal as refusal:
            self._refusals.note(call, event_id, refusal)
            raise
        return True

    def _count(self, request: HoldRequest, placed: int) -> None:
        HOLDS.add(request.hold_type, by=placed)
        if request.user_limit is not None:
            self._recent.note(owner_key(request.user_id), placed, time.monotonic())

    def _over_limit(self, user_id: UUID | None, more: int, limit: int | None) -> bool:
        """Whoever would be over the limit is told that before anything about the seat."""
        return self._recent.too_many(owner_key(user_id), more, limit, time.monotonic())

    # For a stampede: the same in pieces that can be kept ----------------------------------------------------------
    @property
    def clock(self) -> Feed:
        return self._registry.feed

    def gate(self, organization_id: UUID, event_id: UUID) -> Gate | None:
        gate = self._gates.get(event_id)
        if gate is None:
            gate = Gate(organization_id, event_id)
            if len(self._gates) >= GATES_MAX:
                self._gates.clear()
            self._gates[event_id] = gate
        now = time.monotonic()
        return gate if now < gate.until or self.reopen(gate, now) else None

    def reopen(self, gate: Gate, now: float) -> bool:
        """Whether what is taken in the event may still be refused by what is in memory."""
        view = self._catalogue.peek(gate.organization_id, gate.event_id)
        if view is None or not view.on_sale() or not view.layout.all_public:
            return False
        gate.limit = view.effective_policy.max_holds_per_user
        return self._registry.open_gate(gate, view, now)

    def over_limit(self, owner: int, limit: int | None, now: float) -> bool:
        return self._recent.too_many(owner, 1, limit, now)

    def note_taken(self, call: Call, view: EventView, taken: Taken) -> None:
        """For the audit, where the sample wants it."""
        self._refusals.keep(call, view.id, _named(taken_seat(taken.ordinal, taken.state, taken.expires_in), view))

    async def _refuse_early(self, view: EventView, request: HoldRequest) -> None:
        """What a tier above the database knows to be taken need not be asked for. Of several seats the first: that is the
        one which the database would name."""
        if request.seats and not self._over_limit(request.user_id, len(request.hold_ids), request.user_limit):
            taken = await self._registry.look_up(view, request.seats[0].ordinal, request.user_id)
            if taken is not None:
                raise taken_seat(taken.ordinal, taken.state, taken.expires_in)

    async def _event(self, call: Call, event_id: UUID) -> EventView:
        view = await self._catalogue.event(call.organization_id, event_id)
        if view is None:
            raise EventNotFound
        return view

    async def _plan(self, call: Call, view: EventView, asked: HoldsAsked) -> HoldRequest:
        self._require_own_event(call, view)
        try:
            self._require_saleable(call, view, asked, view.database_now())
        except (EventNotAvailable, EventUnavailable, EventSalesClosed):
            # What is remembered may be a moment old: nobody is turned away without a fresh look.
            fresh = await self._catalogue.fresh_event(call.organization_id, view.id)
            if fresh is None:
                raise EventNotFound from None
            view = fresh
            self._require_saleable(call, view, asked, view.database_now())
        whitelisted = (
            asks_whitelist(view, asked)
            and call.principal.user_id is not None
            and await self._catalogue.whitelisted(call.organization_id, view.id, call.principal.user_id)
        )
        return plan_hold(view, call, asked, whitelisted=whitelisted, bulk_max=self._settings.bulk_seats_max)

    @staticmethod
    def _require_own_event(call: Call, view: EventView) -> None:
        """A guest's token is good for one event; for it there is no other."""
        guest_of = call.principal.guest_event_id
        if guest_of is not None and guest_of != view.id:
            raise EventNotFound

    @staticmethod
    def _require_saleable(call: Call, view: EventView, asked: HoldsAsked, now: datetime) -> None:
        staff = call.principal.actor in (Actor.ADMIN, Actor.API)
        business = staff and asked.hold_type not in (None, "CART")
        check_saleable(view.status, view.sale_start, view.sale_end, now, any_time=business)

    def _fits_a_batch(self, request: HoldRequest) -> bool:
        mixed = bool(request.seats) and bool(request.places)
        return not mixed and len(request.seats) <= self._settings.batch_size

    async def _hold_alone(self, call: Call, view: EventView, request: HoldRequest) -> Placement:
        """In a transaction of its own: with an Idempotency-Key, seats and places together, or very many seats."""

        async def work(tx: Transaction) -> Placement:
            return placement_of(view, await store.hold_whole(tx, request, self._settings.hold_window_s))

        return await run_once(self._database, call, work, Placement)

    # Ending ------------------------------------------------------------------------------------------------------
    async def release_hold(self, call: Call, hold_id: UUID) -> HoldView:
        """Idempotent: a hold that has ended already is answered as it is."""

        async def work(tx: Transaction) -> HoldView:
            row, view = await self._own_row(tx, call, hold_id)
            self._require_release(call, view, [row])
            if row["status"] == HoldStatus.ACTIVE:
                await store.release_holds(tx, call, [hold_id], None)
                row, view = await self._own_row(tx, call, hold_id)
            tx.moved(row["event_id"], [row["ordinal"]])
            return hold_view(view, row, staff=call.principal.is_staff)

        return await run_once(self._database, call, work, HoldView)

    async def release_many(
        self, call: Call, event_id: UUID, hold_ids: Sequence[UUID] | None, chosen: HoldFilter | None
    ) -> Released:
        require_staff(call)
        view = await self._event(call, event_id)

        async def work(tx: Transaction) -> Released:
            if hold_ids is not None:
                rows = await self._named_rows(tx, call, event_id, hold_ids)
            else:
                rows = await self._filtered_rows(tx, call, view, chosen or HoldFilter(), None, BULK_RELEASE_MAX)
            self._require_release(call, view, rows)
            done = await store.release_holds(tx, call, [r["id"] for r in rows], "released by the organiser")
            tx.moved(event_id, [r["ordinal"] for r in rows])
            released = [h for h, verb in done.items() if verb == "release"]
            return Released(len(released), len(done) - len(released), released)

        return await run_once(self._database, call, work, Released)

    async def _named_rows(self, tx: Transaction, call: Call, event_id: UUID, hold_ids: Sequence[UUID]) -> list[Row]:
        rows = await store.get_holds(tx, call.organization_id, event_id, hold_ids)
        missing = {str(h) for h in hold_ids} - {str(r["id"]) for r in rows}
        if missing:
            refusal = HoldNotFound()
            refusal.facts["hold_ids"] = sorted(missing)
            raise refusal
        return rows

    def _require_release(self, call: Call, view: EventView, rows: Sequence[Row]) -> None:
        """The owner may; so may an actor whom the hold type names, though never one buyer another's."""
        who = call.principal
        for row in rows:
            if who.user_id is not None and row["user_id"] == who.user_id:
                continue
            resolved = view.hold_types.get(row["hold_type"])
            allowed = resolved.hold_type.release_api if resolved else frozenset({Actor.ADMIN})
            if who.actor is Actor.CUSTOMER or who.actor not in allowed:
                raise ReleaseForbidden(
                    f"A hold of type {row['hold_type']} may not be released with this credential.",
                    hold_type=row["hold_type"],
                )

    # Moving and extending ----------------------------------------------------------------------------------------
    async def move_holds(self, call: Call, event_id: UUID, moves: Sequence[SeatMove]) -> Placement:
        """Organisers move holds to other seats: owner, type and end stay; all or nothing."""
        require_staff(call)
        view = await self._event(call, event_id)
        ordinals = find_ordinals(view.layout, [m.seat for m in moves])
        if len(set(ordinals)) < len(moves) or len({m.hold_id for m in moves}) < len(moves):
            raise InvalidRequest("A hold or a seat is named twice.")

        async def work(tx: Transaction) -> Placement:
            rows = {r["id"]: r for r in await self._named_rows(tx, call, event_id, [m.hold_id for m in moves])}
            for row in rows.values():
                if row["status"] != HoldStatus.ACTIVE or row["ordinal"] is None:
                    raise HoldEnded("Only a live hold on a numbered seat can be moved.", hold_id=str(row["id"]))
            done = await store.release_holds(tx, call, list(rows), "moved by the organiser")
            tx.moved(event_id, [row["ordinal"] for row in rows.values()])
            if len(done) < len(rows) or "expire" in done.values():
                raise HoldExpired("One of these holds has just ended.")
            placed: list[HoldView] = []
            for ordinal, move in sorted(zip(ordinals, moves, strict=True)):
                request = moved_request(view, call, rows[move.hold_id], ordinal)
                placed += placement_of(view, await store.hold_whole(tx, request, self._settings.hold_window_s)).holds
            return Placement(True, placed)

        try:
            return await run_once(self._database, call, work, Placement)
        except Refusal as refusal:
            raise _named(refusal, view) from refusal

    async def extend_hold(self, call: Call, hold_id: UUID) -> HoldView:
        """A new life for the owner's hold, up to the policy's `max_hold_minutes` from its creation."""

        async def work(tx: Transaction) -> HoldView:
            row, view = await self._own_row(tx, call, hold_id)
            if call.principal.user_id is None or row["user_id"] != call.principal.user_id:
                raise Forbidden("Only its owner may extend a hold.")
            resolved = view.hold_types.get(row["hold_type"])
            ttl_s = None if resolved is None else hold_ttl_s(view, resolved, NATIVE_RESERVE_TTL_S)
            if row["status"] == HoldStatus.EXPIRED:
                raise HoldExpired("This hold has run out.")
            if row["status"] != HoldStatus.ACTIVE:
                raise HoldEnded(f"This hold is {row['status']}.", hold_status=row["status"])
            if row["held_until"] is None or ttl_s is None:
                raise HoldAtMaximum("This hold has no end: there is nothing to extend.")
            cap_s = view.effective_policy.max_hold_minutes * 60
            until = await store.extend_hold(tx, call, hold_id, ttl_s, cap_s)
            if until is None:
                row, view = await self._own_row(tx, call, hold_id)
                if row["status"] != HoldStatus.ACTIVE:
                    raise HoldExpired("This hold has run out.")
                if (row["held_until"] - row["created_at"]).total_seconds() >= cap_s - 1:
                    minutes = view.effective_policy.max_hold_minutes
                    raise HoldAtMaximum(f"A hold lasts {minutes} minutes at most, and this one already does.")
                return hold_view(view, row)  # it already lasts as long as an extension would give
            row, view = await self._own_row(tx, call, hold_id)
            return hold_view(view, row)

        return await run_once(self._database, call, work, HoldView)

    # Reading -----------------------------------------------------------------------------------------------------
    async def _own_row(self, tx: Transaction, call: Call, hold_id: UUID) -> tuple[Row, EventView]:
        row = await store.get_hold(tx, call.organization_id, hold_id)
        if row is None:
            raise HoldNotFound
        return row, await self._by_numbers_of(await self._event(call, row["event_id"]), row)

    async def _by_numbers_of(self, view: EventView, row: Row) -> EventView:
        """With the layout in which the hold's seat is meant: of one that is over, perhaps one that the event had earlier."""
        version = row["layout_version"]
        if version == view.layout_version or view.layout_id is None:
            return view
        layout = await self._catalogue.layout(view.organization_id, view.layout_id, version)
        assert layout is not None, "versions are never deleted"
        return msgspec.structs.replace(view, layout=layout, layout_version=version)

    async def get_hold(self, call: Call, hold_id: UUID) -> HoldView:
        async with self._database.transaction(call.organization_id) as tx:
            row, view = await self._own_row(tx, call, hold_id)
        who = call.principal
        if not who.is_staff and (who.user_id is None or row["user_id"] != who.user_id):
            raise HoldNotFound
        return hold_view(view, row, staff=who.is_staff)

    async def list_own(self, call: Call, event_id: UUID | None, after: UUID | None, limit: int) -> HoldPage:
        if call.principal.user_id is None:
            raise InvalidRequest("An API key owns no holds: list an event's instead.")
        async with self._database.transaction(call.organization_id) as tx:
            rows = await store.list_own_holds(
                tx, call.organization_id, call.principal.user_id, event_id, after, limit + 1
            )
        views = {event: await self._event(call, event) for event in {r["event_id"] for r in rows}}
        return _page([hold_view(await self._by_numbers_of(views[r["event_id"]], r), r) for r in rows], limit)

    async def list_of_event(
        self, call: Call, event_id: UUID, chosen: HoldFilter, after: UUID | None, limit: int
    ) -> HoldPage:
        require_staff(call)
        view = await self._event(call, event_id)
        async with self._database.transaction(call.organization_id) as tx:
            rows = await self._filtered_rows(tx, call, view, chosen, after, limit + 1)
        return _page([hold_view(await self._by_numbers_of(view, r), r, staff=True) for r in rows], limit)

    async def _filtered_rows(
        self, tx: Transaction, call: Call, view: EventView, chosen: HoldFilter, after: UUID | None, limit: int
    ) -> list[Row]:
        zone_no: int | None = None
        if chosen.zone is not None:
            zone = view.layout.zone(chosen.zone)
            if zone is None:
                raise ZoneNotFound(f"There is no zone {chosen.zone!r} in this event.", zone=chosen.zone)
            zone_no = zone.zone_no
        return await store.list_event_holds(
            tx,
            call.organization_id,
            view.id,
            hold_type=chosen.hold_type,
            user_id=chosen.user_id,
            zone_no=zone_no,
            expiring_within_s=chosen.expiring_within_s,
            after=after,
            limit=limit,
        )


def moved_request(view: EventView, call: Call, row: Row, ordinal: int) -> HoldRequest:
    """The same hold on another seat: who moves it changes nothing about whose it is or when it ends."""
    seat = SeatWanted(ordinal, view.layout.zone_nos[ordinal], new_id())
    return HoldRequest(
        organization_id=call.organization_id,
        event_id=view.id,
        layout_version=view.layout_version,
        seats=(seat,),
        places=(),
        user_id=row["user_id"],
        session_id=row["session_id"],
        actor=call.principal.actor.value,
        source=row["source"],
        hold_type=row["hold_type"],
        ttl_s=seconds_between(row["now"], row["held_until"]),
        any_time=True,
        user_limit=None,
        ip_limit=None,
        ip=call.ip,
        user_agent=call.user_agent,
        request_id=call.request_id,
    )


def placement_of(view: EventView, held: Held) -> Placement:
    now = held.decided_at
    return Placement(
        held.created,
        [
            _view(view, h.hold_id, h.ordinal, h.zone_no, h.quantity, h.hold_type, h.held_until, now, "held")
            for h in held.holds
        ],
    )


def _view(
    view: EventView,
    hold_id: UUID,
    ordinal: int | None,
    zone_no: int,
    quantity: int,
    hold_type: str,
    held_until: datetime | None,
    now: datetime,
    status: str,
) -> HoldView:
    layout = view.layout
    zone = layout.zones[zone_no]
    return HoldView(
        hold_id=hold_id,
        event_id=view.id,
        seat_id=None if ordinal is None else layout.seat_uuid(ordinal),
        seat_label=None if ordinal is None else layout.seat_ids[ordinal],
        zone_id=zone.zone_id,
        block_name=zone.name,
        row=None if ordinal is None else layout.rows[ordinal],
        seat_number=None if ordinal is None else layout.numbers[ordinal],
        quantity=quantity,
        status=status,
        hold_type=hold_type,
        held_until=held_until,
        held_until_unix=None if held_until is None else int(held_until.timestamp()),
        expires_in_seconds=seconds_between(now, held_until),
    )


def hold_view(view: EventView, row: Row, *, staff: bool = False) -> HoldView:
    """From a stored row. Only staff see whose it is."""
    seen = _view(
        view,
        row["id"],
        row["ordinal"],
        row["zone_no"],
        row["quantity"],
        row["hold_type"],
        row["held_until"],
        row["now"],
        row["status"],
    )
    return msgspec.structs.replace(
        seen,
        expires_in_seconds=seen.expires_in_seconds if row["status"] == HoldStatus.ACTIVE else 0,
        created_at=row["created_at"],
        source=row["source"],
        user_id=row["user_id"] if staff else None,
        session_id=row["session_id"] if staff else None,
    )


def _page(views: list[HoldView], limit: int) -> HoldPage:
    more = len(views) > limit
    return HoldPage(views[:limit], str(views[limit - 1].hold_id) if more else None)


def _named(refusal: Refusal, view: EventView | None) -> Refusal:
    """The writer speaks of ordinals; the caller knows seats and zones by their ids."""
    facts = dict(refusal.facts)
    ordinal, zone_no = facts.pop("ordinal", None), facts.pop("zone_no", None)
    if view is None or (ordinal is None and zone_no is None):
        return refusal
    if ordinal is not None:
        facts["seat_id"] = str(view.layout.seat_uuid(ordinal))
    if zone_no is not None:
        facts["zone_id"] = view.layout.zones[zone_no].zone_id
    return type(refusal)(refusal.detail, **facts)
