"""Checkouts: taking holds into one session with one clock, changing it, keeping it alive, ending it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar
from uuid import UUID

from holdfast.accounts.principal import Call, require_staff
from holdfast.checkout.answers import CheckoutPage, CheckoutView, Opened
from holdfast.checkout.checkout import Checkout, CheckoutStatus, Line, PricedHold, kept, may_see
from holdfast.checkout.ending import end_holds
from holdfast.checkout.reading import checkout_view, checkout_views
from holdfast.checkout.refusals import (
    CheckoutExpired,
    CheckoutPaying,
    HoldsExpired,
    NoHolds,
    SeveralOwners,
    held_elsewhere,
    require_open,
)
from holdfast.holds.lifecycle import Actor, HoldStatus
from holdfast.holds.plan import require_few
from holdfast.kernel.errors import (
    CheckoutNotFound,
    EventNotFound,
    HoldNotFound,
    InvalidRequest,
    ReleaseForbidden,
)
from holdfast.kernel.ids import new_id
from holdfast.kernel.problems import Problem
from holdfast.seating.event import check_saleable
from holdfast.seating.view import EventView
from holdfast.settings import Settings
from holdfast.store.catalogue import Catalogue
from holdfast.store.postgres import checkouts as store
from holdfast.store.postgres import trail
from holdfast.store.postgres.booking import share_event
from holdfast.store.postgres.database import Database, Row, Transaction
from holdfast.store.postgres.holds import get_holds
from holdfast.store.postgres.idempotency import run_once

T = TypeVar("T")

ATTEMPTS = 3
"""Of one request whose holds were taken elsewhere, or ended, while it asked."""


class _Overtaken(Exception):
    """Something of it was not as it had been read a moment before: look again."""


class CheckoutService:
    def __init__(self, database: Database, catalogue: Catalogue, settings: Settings) -> None:
        self._database = database
        self._catalogue = catalogue
        self._settings = settings

    # Opening and adding ------------------------------------------------------------------------------------------
    async def open(self, call: Call, event_id: UUID, hold_ids: Sequence[UUID] | None, source: str) -> Opened:
        """The caller's holds of the event, all that are in no checkout or those listed, into a session of their own. Staff
        may list anybody's, if they are one owner's: the checkout is the owner's then."""
        view = await self._catalogue.event(call.organization_id, event_id)
        guest_of = call.principal.guest_event_id
        if view is None or (guest_of is not None and guest_of != event_id):
            raise EventNotFound
        if hold_ids is None and call.principal.user_id is None:
            said = "an API key owns no holds: name those to check out"
            raise InvalidRequest(f"/hold_ids: {said}", [Problem("/hold_ids", "missing", said)])

        async def work(tx: Transaction) -> Opened:
            fresh = await self._owned_view(tx, call, event_id)
            check_saleable(fresh.status, None, None, fresh.database_now(), any_time=True)
            rows = await self._chosen(tx, call, event_id, hold_ids)
            again = await self._same_again(tx, call, event_id, rows)
            if again is not None:
                return Opened(False, await self._shown(tx, call, again))
            if not rows:
                raise NoHolds("You hold nothing in this event that could be checked out.")
            require_free(rows)
            owners = {(row["user_id"], row["session_id"]) for row in rows}
            if len(owners) > 1:
                raise SeveralOwners("These holds belong to several buyers: each has a checkout of their own.")
            ((user_id, session_id),) = owners
            self._require_few(call, fresh, sum(row["quantity"] for row in rows))
            policy = fresh.effective_policy
            priced = priced_holds(fresh, rows)
            checkout_id = new_id()
            done = await store.open_checkout(
                tx,
                call,
                event_id,
                checkout_id,
                user_id=user_id,
                session_id=session_id,
                source=source,
                life_s=policy.checkout_minutes * 60,
                heartbeat_s=policy.heartbeat_hold_minutes * 60 if policy.checkout_heartbeat else None,
                currency=fresh.currency,
                holds=priced,
            )
            if not done:
                raise _Overtaken
            tx.moved(event_id, [hold.ordinal for hold in priced])
            shown = await self._shown(tx, call, checkout_id)
            await self._audit(tx, call, "checkout_opened", shown, [hold.hold_id for hold in priced])
            return Opened(True, shown)

        return await self._write(call, work, Opened)

    async def add(self, call: Call, checkout_id: UUID, hold_ids: Sequence[UUID]) -> CheckoutView:
        """More of its owner's holds, which end with it from now on. Those that are in it already stay."""

        async def work(tx: Transaction) -> CheckoutView:
            checkout = await self._locked(tx, call, checkout_id)
            require_open(checkout)
            fresh = await self._owned_view(tx, call, checkout.event_id)
            check_saleable(fresh.status, None, None, fresh.database_now(), any_time=True)
            rows = await self._named(tx, call, checkout.event_id, hold_ids)
            if any((row["user_id"], row["session_id"]) != (checkout.user_id, checkout.session_id) for row in rows):
                raise SeveralOwners("A hold belongs to somebody else than this checkout.")
            new = [row for row in rows if row["checkout_id"] != checkout_id or row["status"] != HoldStatus.ACTIVE]
            require_free(new)
            lines = kept(await store.find_lines(tx, call.organization_id, checkout_id))
            self._require_few(call, fresh, sum(r["quantity"] for r in new) + sum(line.quantity for line in lines))
            priced = priced_holds(fresh, new)
            if priced and not await store.add_to_checkout(tx, call, checkout_id, priced, fresh.currency):
                raise _Overtaken
            tx.moved(checkout.event_id, [hold.ordinal for hold in priced])
            shown = await self._shown(tx, call, checkout_id)
            if priced:
                await self._audit(tx, call, "checkout_holds_added", shown, [hold.hold_id for hold in priced])
            return shown

        return await self._write(call, work, CheckoutView)

    async def _chosen(
        self, tx: Transaction, call: Call, event_id: UUID, hold_ids: Sequence[UUID] | None
    ) -> Sequence[Row]:
        if hold_ids is not None:
            return await self._named(tx, call, event_id, hold_ids)
        assert call.principal.user_id is not None
        return await store.free_holds(tx, call.organization_id, event_id, call.principal.user_id)

    async def _named(self, tx: Transaction, call: Call, event_id: UUID, hold_ids: Sequence[UUID]) -> list[Row]:
        """All of these, or the refusal that names what there is not: another buyer's hold is as unknown as none."""
        who = call.principal
        rows = await get_holds(tx, call.organization_id, event_id, hold_ids)
        rows = [row for row in rows if who.is_staff or (who.user_id is not None and row["user_id"] == who.user_id)]
        missing = {str(hold_id) for hold_id in hold_ids} - {str(row["id"]) for row in rows}
        if missing:
            refusal = HoldNotFound()
            refusal.facts["hold_ids"] = sorted(missing)
            raise refusal
        return rows

    async def _same_again(self, tx: Transaction, call: Call, event_id: UUID, rows: Sequence[Row]) -> UUID | None:
        """The open checkout that has all of it already: somebody clicked twice."""
        if not rows:
            user_id = call.principal.user_id
            if user_id is None:
                return None
            return await store.open_checkout_with_holds(tx, call.organization_id, event_id, user_id)
        found = {row["checkout_id"] for row in rows}
        if len(found) > 1 or None in found or any(row["status"] != HoldStatus.ACTIVE for row in rows):
            return None
        checkout = await store.find_checkout(tx, call.organization_id, found.pop())
        return None if checkout is None or checkout.seen_as is not CheckoutStatus.OPEN else checkout.id

    def _require_few(self, call: Call, view: EventView, quantity: int) -> None:
        require_few(call, quantity, view.effective_policy.max_seats_per_booking, self._settings.bulk_seats_max)

    async def _owned_view(self, tx: Transaction, call: Call, event_id: UUID) -> EventView:
        """The event as it is for as long as this transaction lasts: layout and prices cannot change under it."""
        await share_event(tx, event_id)
        view = await self._catalogue.fresh_event(call.organization_id, event_id)
        if view is None:
            raise EventNotFound
        return view

    # Changing ----------------------------------------------------------------------------------------------------
    async def drop(self, call: Call, checkout_id: UUID, hold_id: UUID) -> CheckoutView:
        """Gives a hold back. Repeating it changes nothing."""

        async def work(tx: Transaction) -> CheckoutView:
            checkout = await self._locked(tx, call, checkout_id)
            lines = await store.find_lines(tx, call.organization_id, checkout_id)
            line = next((line for line in lines if line.hold_id == hold_id), None)
            if line is None:
                raise HoldNotFound
            if line.dropped_at is not None:
                return await self._shown(tx, call, checkout_id)
            require_open(checkout)
            view = await self._view_of(call, checkout)
            _require_release(call, view, line)
            await store.drop_line(tx, call.organization_id, checkout_id, hold_id)
            actor = call.principal.actor
            await store.release_as(tx, call.organization_id, actor, [hold_id], "dropped from the checkout", call)
            tx.moved(checkout.event_id, [line.ordinal])
            shown = await self._shown(tx, call, checkout_id)
            await self._audit(tx, call, "checkout_hold_dropped", shown, [hold_id])
            return shown

        return await self._write(call, work, CheckoutView)

    async def heartbeat(self, call: Call, checkout_id: UUID) -> CheckoutView:
        """Keeps the holds of a session with heartbeats alive, up to its end; in any other changes nothing."""

        async def work(tx: Transaction) -> CheckoutView:
            checkout = await self._locked(tx, call, checkout_id)
            if checkout.seen_as is not CheckoutStatus.PAYING:
                require_open(checkout)
            if checkout.heartbeat_s is not None:
                beaten = await store.beat_checkout(tx, call, checkout_id)
                if beaten is None:  # it ended between the two looks at the clock
                    raise CheckoutExpired
            return await self._shown(tx, call, checkout_id)

        return await self._write(call, work, CheckoutView)

    async def cancel(self, call: Call, checkout_id: UUID) -> CheckoutView:
        """Gives back what may be given back; what may not goes on as it was before. Repeating it changes nothing."""

        async def work(tx: Transaction) -> CheckoutView:
            checkout = await self._locked(tx, call, checkout_id)
            if checkout.status is CheckoutStatus.CANCELLED:
                return await self._shown(tx, call, checkout_id)
            if checkout.seen_as is CheckoutStatus.PAYING:
                if not call.principal.is_staff:
                    raise CheckoutPaying
            else:
                require_open(checkout)
            rows = await store.live_holds(tx, call.organization_id, [checkout_id])
            if not await store.cancel_checkout(tx, call, checkout.event_id, checkout_id, "cancelled"):
                raise CheckoutExpired
            types = (await self._view_of(call, checkout)).hold_types
            await end_holds(tx, call.organization_id, types, rows, "checkout cancelled", call)
            tx.moved(checkout.event_id, [row["ordinal"] for row in rows])
            return await self._shown(tx, call, checkout_id)

        return await self._write(call, work, CheckoutView)

    # Reading -----------------------------------------------------------------------------------------------------
    async def get(self, call: Call, checkout_id: UUID) -> CheckoutView:
        async with self._database.transaction(call.organization_id) as tx:
            found = await checkout_view(tx, self._catalogue, call.organization_id, checkout_id)
        if found is None or not may_see(call, found.user_id):
            raise CheckoutNotFound
        return found

    async def list_own(self, call: Call, before: UUID | None, limit: int) -> CheckoutPage:
        """Newest first."""
        user_id = call.principal.user_id
        if user_id is None:
            raise InvalidRequest("An API key has no checkouts of its own: list an event's instead.")
        async with self._database.transaction(call.organization_id) as tx:
            found = await store.list_own_checkouts(tx, call.organization_id, user_id, before, limit + 1)
            return await self._page(tx, call, found, limit)

    async def list_of_event(
        self,
        call: Call,
        event_id: UUID,
        status: CheckoutStatus | None,
        refund_due: bool | None,
        before: UUID | None,
        limit: int,
    ) -> CheckoutPage:
        require_staff(call)
        if await self._catalogue.event(call.organization_id, event_id) is None:
            raise EventNotFound
        async with self._database.transaction(call.organization_id) as tx:
            found = await store.list_event_checkouts(
                tx,
                call.organization_id,
                event_id,
                status=status,
                refund_due=refund_due,
                before=before,
                limit=limit + 1,
            )
            return await self._page(tx, call, found, limit)

    async def _page(self, tx: Transaction, call: Call, found: Sequence[Checkout], limit: int) -> CheckoutPage:
        views = await checkout_views(tx, self._catalogue, call.organization_id, found[:limit])
        return CheckoutPage(views, str(found[limit - 1].id) if len(found) > limit else None)

    async def _locked(self, tx: Transaction, call: Call, checkout_id: UUID) -> Checkout:
        checkout = await store.lock_checkout(tx, call.organization_id, checkout_id)
        if checkout is None or not may_see(call, checkout.user_id):
            raise CheckoutNotFound
        return checkout

    async def _shown(self, tx: Transaction, call: Call, checkout_id: UUID) -> CheckoutView:
        found = await checkout_view(tx, self._catalogue, call.organization_id, checkout_id)
        if found is None:
            raise CheckoutNotFound
        return found

    async def _view_of(self, call: Call, checkout: Checkout) -> EventView:
        view = await self._catalogue.event(call.organization_id, checkout.event_id)
        if view is None:
            raise EventNotFound
        return view

    # Writing -----------------------------------------------------------------------------------------------------
    async def _write(self, call: Call, work: Callable[[Transaction], Awaitable[T]], result_type: type[T]) -> T:
        for attempt in range(ATTEMPTS):
            try:
                return await run_once(self._database, call, work, result_type)
            except _Overtaken:
                if attempt == ATTEMPTS - 1:
                    break
        raise NoHolds("These holds went elsewhere at this very moment; nothing was done. Please try again.")

    @staticmethod
    async def _audit(tx: Transaction, call: Call, action: str, shown: CheckoutView, hold_ids: Sequence[UUID]) -> None:
        changes = {
            "hold_ids": sorted(map(str, hold_ids)),
            "expires_at": shown.expires_at,
            "total_minor": shown.total_minor,
            "currency": shown.currency,
        }
        await trail.write_audit(tx, call, action, "Checkout", shown.id, event_id=shown.event_id, changes=changes)


def require_free(rows: Sequence[Row]) -> None:
    """Alive, and in no checkout."""
    over = [row["id"] for row in rows if row["status"] != HoldStatus.ACTIVE]
    if over:
        raise HoldsExpired(over)
    elsewhere = [row["id"] for row in rows if row["checkout_id"] is not None]
    if elsewhere:
        raise held_elsewhere(elsewhere)


def priced_holds(view: EventView, rows: Sequence[Row]) -> list[PricedHold]:
    return [
        PricedHold(
            hold_id=row["id"],
            ordinal=row["ordinal"],
            price_minor=view.zone_price(row["zone_no"]) if row["ordinal"] is None else view.price_of(row["ordinal"]),
            payment_required=(known := view.hold_types.get(row["hold_type"])) is None
            or known.hold_type.payment_required,
        )
        for row in rows
    ]


def _require_release(call: Call, view: EventView, line: Line) -> None:
    """As for any hold: its owner may, and an actor whom its type names."""
    who = call.principal
    if line.status is not HoldStatus.ACTIVE or (who.user_id is not None and line.user_id == who.user_id):
        return
    resolved = view.hold_types.get(line.hold_type)
    allowed = resolved.hold_type.release_api if resolved else frozenset({Actor.ADMIN})
    if who.actor not in allowed:
        raise ReleaseForbidden(
            f"A hold of type {line.hold_type} may not be released with this credential.", hold_type=line.hold_type
        )
