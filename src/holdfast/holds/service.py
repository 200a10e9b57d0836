"""Holds: placing, releasing, moving, extending and listing them."""

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from holdfast.accounts.principal import Call, require_staff
from holdfast.checkout.checkout import LIVE
from holdfast.checkout.refusals import held_elsewhere, require_open
from holdfast.holds.answers import (
    HoldFilter,
    HoldPage,
    HoldView,
    Placement,
    Released,
    SeatMove,
    beside,
    hold_view,
    named_holds,
    named_refusal,
    page_of,
    placement_of,
)
from holdfast.holds.attendees import Attendee, People, Person
from holdfast.holds.claims import (
    Held,
    HoldRequest,
    seat_not_offered,
    taken_seat,
)
from holdfast.holds.combiner import Combiner
from holdfast.holds.companions import companion_seats
from holdfast.holds.hold_types import CART
from holdfast.holds.lifecycle import Actor, HoldStatus
from holdfast.holds.lifetime import NATIVE_RESERVE_TTL_S
from holdfast.holds.moving import moved_request
from holdfast.holds.orphan_guard import OrphanGuard
from holdfast.holds.plan import HoldsAsked, asks_people, find_ordinals, hold_ttl_s, plan_hold
from holdfast.holds.pressure import Demands
from holdfast.holds.recent import RecentHolds
from holdfast.insight.refusals import RefusalAudit
from holdfast.kernel.counting import LatestGauge, PlainCounter
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
    ZoneDisabled,
    ZoneNotFound,
)
from holdfast.seating.event import check_saleable
from holdfast.seating.groups import require_whole
from holdfast.seating.view import EventView
from holdfast.settings import Settings
from holdfast.store.catalogue import Catalogue
from holdfast.store.feed import Feed
from holdfast.store.hot.event import owner_key
from holdfast.store.postgres import holds as store
from holdfast.store.postgres.attendees import find_people, name_attendees
from holdfast.store.postgres.checkouts import drop_line, lock_checkout
from holdfast.store.postgres.database import Database, Row, Transaction
from holdfast.store.postgres.idempotency import run_once
from holdfast.store.postgres.seat_facts import free_among
from holdfast.store.registry import Gate, Registry, Taken

BULK_RELEASE_MAX = 100_000
GATES_MAX = 1_000
ATTEMPTS = 3

Deliver = Callable[[EventView, Held | Refusal], None]


HOLDS = PlainCounter("holdfast_holds", "Holds placed", ("hold_type",))
LIFE = LatestGauge("holdfast_adaptive_hold_life_seconds", "How long new holds last, where that adapts", "event_id")


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
        self.orphans = OrphanGuard(registry)
        self._recent = RecentHolds(settings.hold_window_s)
        self._gates: dict[UUID, Gate] = {}
        self._demands = Demands()

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
            if call.idempotency is None and not request.tables:
                await self._refuse_early(view, request)
                if not asked.chosen_by_system and not self._is_over_limit(request):
                    await self.orphans.check(call, view, request)
            if call.idempotency is None and self._fits_a_batch(request):
                held = await self._combiner.submit(request)
                placement = placement_of(view, held)
            else:
                placement = await self._hold_alone(call, view, asked, request)
        except Refusal as refusal:
            named = named_refusal(refusal, view)
            self.note_refusal(call, event_id, named)
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
            request = plan_hold(view, call, asked, bulk_max=self._settings.bulk_seats_max)
            if not self._fits_a_batch(request):
                return False
            event = self._registry.seats_at_once(view)
            if event is not None:
                taken = self._registry.taken_in(event, request.seats[0].ordinal, request.user_id)
                if taken is not None and not self._is_over_limit(request):
                    raise named_refusal(taken_seat(taken.ordinal, taken.state, taken.expires_in), view)
            if not self.orphans.passes_at_once(view, request, event):
                return False

            def settled(outcome: Held | Refusal) -> None:
                if isinstance(outcome, LayoutChanged):
                    self._catalogue.forget(call.organization_id, event_id)
                if isinstance(outcome, Refusal):
                    outcome = named_refusal(outcome, view)
                    self.note_refusal(call, event_id, outcome)
                elif outcome.created:
                    self._count(request, len(outcome.holds))
                deliver(view, outcome)

            self._combiner.enqueue(request, settled)
        except Refusal as refusal:
            self.note_refusal(call, event_id, refusal)
            raise
        return True

    def _count(self, request: HoldRequest, placed: int) -> None:
        HOLDS.add(request.hold_type, by=placed)
        self._demands.granted(request.event_id, placed, time.monotonic)
        if request.user_limit is not None:
            self._recent.note(owner_key(request.user_id), placed, time.monotonic())

    def _is_over_limit(self, request: HoldRequest) -> bool:
        """Whoever would be over the limit is told that before anything about the seat."""
        owner = owner_key(request.user_id)
        return self._recent.too_many(owner, len(request.hold_ids), request.user_limit, time.monotonic())

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
        if view.effective_policy.prefer_clustering_over_selection:
            return False  # a picked seat is refused for that reason, whoever has it
        gate.limit = view.effective_policy.max_holds_per_user
        return self._registry.open_gate(gate, view, now)

    def over_limit(self, owner: int, limit: int | None, now: float) -> bool:
        return self._recent.too_many(owner, 1, limit, now)

    def note_refusal(self, call: Call, event_id: UUID, refusal: Refusal) -> None:
        """For the audit, and for how long the next holds last."""
        self._refusals.note(call, event_id, refusal)
        self._demands.refused(event_id, refusal.code, time.monotonic)

    def pressure_of(self, view: EventView) -> float:
        """How hard the event is being bought: how full it is, and how many were refused in the last minute."""
        gate = self._gates.get(view.id)
        refused_elsewhere = 0 if gate is None else gate.refused
        pressure = self._demands.pressure(
            view.id, lambda: self._registry.taken_share(view), refused_elsewhere, time.monotonic()
        )
        cart = view.hold_types.get(CART)
        if cart is not None:
            life_s = hold_ttl_s(msgspec.structs.replace(view, pressure=pressure), cart, NATIVE_RESERVE_TTL_S)
            LIFE.note(str(view.id), life_s)
        return pressure

    def note_taken(self, call: Call, view: EventView, taken: Taken) -> None:
        """For the audit, where the sample wants it."""
        self._refusals.keep(
            call, view.id, named_refusal(taken_seat(taken.ordinal, taken.state, taken.expires_in), view)
        )

    async def _refuse_early(self, view: EventView, request: HoldRequest) -> None:
        """What a tier above the database knows to be taken need not be asked for. Of several seats the first: that is the
        one which the database would name."""
        if request.seats and not self._is_over_limit(request):
            taken = await self._registry.look_up(view, request.seats[0].ordinal, request.user_id)
            if taken is not None:
                raise taken_seat(taken.ordinal, taken.state, taken.expires_in)
            rule = request.seats[0].companion
            alone = rule is not None and rule.binding and len(request.seats) == 1
            if alone and self._registry.keeps(view, request.seats[0].ordinal, request.user_id):
                raise seat_not_offered(request.seats[0])

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
        people = await self._people(call, view, asked.attendees) if asks_people(view, call, asked) else People(Person())
        try:
            return plan_hold(view, call, asked, people=people, bulk_max=self._settings.bulk_seats_max)
        except ZoneDisabled:
            # Offered again a moment ago, perhaps: as above.
            fresh = await self._catalogue.fresh_event(call.organization_id, view.id)
            if fresh is None:
                raise
            return plan_hold(fresh, call, asked, people=people, bulk_max=self._settings.bulk_seats_max)

    async def buyer_of(self, call: Call, view: EventView) -> Person:
        """The caller, as they stand now."""
        return (await self._people(call, view, ())).buyer

    async def _people(self, call: Call, view: EventView, named: Sequence[Attendee]) -> People:
        """The buyer and those they book for, as they stand now and not as a credential remembers them."""
        wanted = [Attendee(user_id=call.principal.user_id), *named]
        async with self._database.transaction(call.organization_id) as tx:
            buyer, *attendees = await find_people(tx, call.organization_id, view.id, wanted)
        return People(buyer, tuple(attendees))

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
        return not mixed and len(request.seats) <= self._settings.batch_size and not request.alone

    async def _hold_alone(self, call: Call, view: EventView, asked: HoldsAsked, request: HoldRequest) -> Placement:
        """In a transaction of its own: with an Idempotency-Key, seats and places together, very many seats, attendees, a
        table that must be taken whole, or seats for wheelchair users and their companions."""

        async def work(tx: Transaction) -> Placement:
            if call.idempotency is not None and not asked.chosen_by_system:  # not when it is answered as before
                await self.orphans.check(call, view, request)
            await self._require_whole_tables(tx, view, request)
            placement = await self._place(tx, call, view, request)
            await self._require_whole_tables(tx, view, request)
            return placement

        return await run_once(self._database, call, work, Placement)

    async def _place(self, tx: Transaction, call: Call, view: EventView, request: HoldRequest) -> Placement:
        held = await store.hold_whole(tx, request, self._settings.hold_window_s)
        named = named_holds(held.holds, request.attendees)
        if named:
            await name_attendees(tx, call.organization_id, named)
        placement = placement_of(view, held, named, staff=call.principal.is_staff)
        if request.accessible is None:
            return placement
        seats = [(hold.hold_id, hold.ordinal, hold.held_until) for hold in held.holds]
        kept = await companion_seats(tx, view, seats, request.user_id, request.session_id)
        return Placement(placement.created, [beside(hold, kept) for hold in placement.holds])

    async def _require_whole_tables(self, tx: Transaction, view: EventView, request: HoldRequest) -> None:
        """Before the seats are taken, because this is told before what is taken; and after, when it is decided: a seat of
        the table that came free meanwhile is wanted too."""
        if request.tables:
            at_tables = [ordinal for table in request.tables for ordinal in table.ordinals]
            free = await free_among(tx, request.organization_id, request.event_id, at_tables)
            require_whole(view.layout, request.tables, {seat.ordinal for seat in request.seats}, free)

    # Ending ------------------------------------------------------------------------------------------------------
    async def release_hold(self, call: Call, hold_id: UUID) -> HoldView:
        """Idempotent: a hold that has ended already is answered as it is."""

        async def work(tx: Transaction) -> HoldView:
            row, view = await self._own_row(tx, call, hold_id)
            self._require_release(call, view, [row])
            if row["status"] == HoldStatus.ACTIVE:
                checkout_id = row["checkout_id"]
                if checkout_id is not None:
                    await self._leave_checkout(tx, call, row)
                await store.release_holds(tx, call, [hold_id], None)
                row, view = await self._own_row(tx, call, hold_id)
                require_same(checkout_id, row["checkout_id"])
            tx.moved(row["event_id"], [row["ordinal"]])
            return hold_view(view, row, staff=call.principal.is_staff)

        for _ in range(ATTEMPTS):
            try:
                return await run_once(self._database, call, work, HoldView)
            except CheckoutEntered:
                continue  # now it is known which checkout to lock before the seat
        raise held_elsewhere([hold_id], "This hold entered a checkout at this very moment. Please try again.")

    @staticmethod
    async def _leave_checkout(tx: Transaction, call: Call, row: Row) -> None:
        """To give back a hold that is in a checkout is to drop it there. The checkout is locked before the seat."""
        checkout = await lock_checkout(tx, call.organization_id, row["checkout_id"])
        if checkout is not None and checkout.seen_as in LIVE:
            require_open(checkout)
            await drop_line(tx, call.organization_id, checkout.id, row["id"])

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
            _require_no_checkout(rows.values())
            done = await store.release_holds(tx, call, list(rows), "moved by the organiser")
            tx.moved(event_id, [row["ordinal"] for row in rows.values()])
            if len(done) < len(rows) or "expire" in done.values():
                raise HoldExpired("One of these holds has just ended.")
            # One may have entered a checkout before its seat was locked.
            _require_no_checkout(await self._named_rows(tx, call, event_id, list(rows)))
            placed: list[HoldView] = []
            for ordinal, move in sorted(zip(ordinals, moves, strict=True)):
                request = moved_request(view, call, rows[move.hold_id], ordinal)
                placed += (await self._place(tx, call, view, request)).holds
            return Placement(True, placed)

        try:
            return await run_once(self._database, call, work, Placement)
        except Refusal as refusal:
            raise named_refusal(refusal, view) from refusal

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
            _require_no_checkout([row])
            if row["held_until"] is None or ttl_s is None:
                raise HoldAtMaximum("This hold has no end: there is nothing to extend.")
            cap_s = view.effective_policy.max_hold_minutes * 60
            until = await store.extend_hold(tx, call, hold_id, ttl_s, cap_s)
            if until is None:
                row, view = await self._own_row(tx, call, hold_id)
                if row["status"] != HoldStatus.ACTIVE:
                    raise HoldExpired("This hold has run out.")
                _require_no_checkout([row])
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
            seat = (row["id"], row["ordinal"] if row["status"] == HoldStatus.ACTIVE else None, row["held_until"])
            kept = await companion_seats(tx, view, [seat], row["user_id"], row["session_id"])
        return beside(hold_view(view, row, staff=who.is_staff), kept)

    async def list_own(self, call: Call, event_id: UUID | None, after: UUID | None, limit: int) -> HoldPage:
        if call.principal.user_id is None:
            raise InvalidRequest("An API key owns no holds: list an event's instead.")
        async with self._database.transaction(call.organization_id) as tx:
            rows = await store.list_own_holds(
                tx, call.organization_id, call.principal.user_id, event_id, after, limit + 1
            )
        views = {event: await self._event(call, event) for event in {r["event_id"] for r in rows}}
        return page_of([hold_view(await self._by_numbers_of(views[r["event_id"]], r), r) for r in rows], limit)

    async def list_of_event(
        self, call: Call, event_id: UUID, chosen: HoldFilter, after: UUID | None, limit: int
    ) -> HoldPage:
        require_staff(call)
        view = await self._event(call, event_id)
        async with self._database.transaction(call.organization_id) as tx:
            rows = await self._filtered_rows(tx, call, view, chosen, after, limit + 1)
        return page_of([hold_view(await self._by_numbers_of(view, r), r, staff=True) for r in rows], limit)

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


class CheckoutEntered(Exception):
    """A hold entered a checkout, or left one, before its seat was locked: nothing was done, look again."""


def require_same(checkout_id: UUID | None, found: UUID | None) -> None:
    if found != checkout_id:
        raise CheckoutEntered


def _require_no_checkout(rows: Iterable[Row]) -> None:
    """What is in a checkout ends with it, and stays where it is."""
    inside = [row["id"] for row in rows if row["checkout_id"] is not None]
    if inside:
        raise held_elsewhere(inside, "What is in a checkout ends with it: it is neither extended nor moved.")
