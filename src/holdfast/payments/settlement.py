"""What becomes of money that has arrived: tickets, or a refund. And the sale of a whole checkout, which it shares with
checkouts that cost nothing."""

from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from typing import TypeVar
from uuid import UUID

import msgspec
import structlog
from prometheus_client import Counter

from holdfast.accounts.principal import Call, Principal, Role
from holdfast.checkout.checkout import Checkout, Line, kept
from holdfast.holds.hold_types import CART
from holdfast.holds.lifecycle import Actor, BookingState
from holdfast.kernel.crash_points import reach
from holdfast.kernel.errors import EventNotFound, LayoutChanged
from holdfast.kernel.ids import new_id
from holdfast.payments.payment import Payment, PaymentStatus, RefundReason, objection
from holdfast.payments.refusals import PaymentNotFound
from holdfast.seating.accessibility import CompanionRule, companion_rule
from holdfast.seating.event import EventStatus
from holdfast.seating.view import EventView
from holdfast.store.catalogue import Catalogue
from holdfast.store.postgres import payments as store
from holdfast.store.postgres.accessibility import companion_rows
from holdfast.store.postgres.checkouts import find_lines, lock_checkout
from holdfast.store.postgres.database import Database, Transaction
from holdfast.store.postgres.tickets import issue_tickets
from holdfast.store.postgres.trail import send_message, write_audit
from holdfast.tickets.terms import ticket_terms
from holdfast.tickets.ticket import NewTicket, PlaceSold, tickets_for

T = TypeVar("T")

log = structlog.get_logger("holdfast.payments")

SETTLED = Counter("holdfast_payments_settled_total", "Payments that bought tickets, by way", ["way"])
ORPHANED = Counter(
    "holdfast_payments_orphaned_total", "Payments that bought nothing and are to be refunded", ["reason"]
)

LATE = "late payment"
TRIES = 4


class Sold(msgspec.Struct, frozen=True):
    tickets: list[NewTicket]
    taken_again: int
    """Lines whose holds were over, and whose seats or places were free."""


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    checkout_id: UUID
    status: PaymentStatus
    reason: RefundReason | None = None
    newly: bool = False
    """It was this call that settled it."""


def engine_call(organization_id: UUID, subject: str, call: Call | None = None) -> Call:
    """The engine itself, at the word of a provider or in a worker."""
    principal = Principal(
        organization_id=organization_id, tenant_id=None, actor=Actor.SYSTEM, role=Role.CUSTOMER, subject=subject
    )
    return Call(principal=principal) if call is None else msgspec.structs.replace(call, principal=principal)


class Settlement:
    def __init__(self, database: Database, catalogue: Catalogue) -> None:
        self._database = database
        self._catalogue = catalogue

    # Money -------------------------------------------------------------------------------------------------------
    async def settle(self, call: Call, payment_id: UUID) -> Settled:
        """Whoever calls it, and however often: once. What is not `received` is answered as it stands."""
        reach("settle.begun")
        organization_id = call.organization_id
        async with self._database.transaction(organization_id) as tx:
            payment = await self._payment(tx, organization_id, payment_id)

        async def in_one_transaction(view: EventView) -> Settled:
            return await self._database.run(organization_id, lambda tx: self._settle(tx, call, view, payment_id))

        settled = await self.on_current_layout(organization_id, payment.event_id, in_one_transaction)
        reach("settle.committed")
        if settled.newly and settled.status is PaymentStatus.REFUND_DUE:
            ORPHANED.labels(settled.reason or "unknown").inc()
            log.warning("payment_orphaned", payment_id=str(payment_id), reason=settled.reason)
        return settled

    async def on_current_layout(
        self, organization_id: UUID, event_id: UUID, work: Callable[[EventView], Awaitable[T]]
    ) -> T:
        """With the event as it is; again, where its seats were rearranged before `work` shared its lock."""
        for attempt in range(TRIES):
            view = await self._catalogue.fresh_event(organization_id, event_id)
            if view is None:
                raise EventNotFound
            try:
                return await work(view)
            except LayoutChanged:
                self._catalogue.forget(organization_id, event_id)
                if attempt == TRIES - 1:
                    raise
        raise AssertionError("unreachable")

    async def _settle(self, tx: Transaction, call: Call, view: EventView, payment_id: UUID) -> Settled:
        organization_id = call.organization_id
        known = await self._payment(tx, organization_id, payment_id)
        checkout = await lock_checkout(tx, organization_id, known.checkout_id)
        assert checkout is not None, "a payment's checkout is never deleted"
        payment = await self._payment(tx, organization_id, payment_id)  # as it is now that nobody else decides
        if payment.status is not PaymentStatus.RECEIVED:
            return Settled(checkout_id=checkout.id, status=payment.status)
        reach("settle.locked")
        status, layout_version = await store.event_standing(tx, organization_id, checkout.event_id)
        if layout_version != view.layout_version:
            raise LayoutChanged
        lines = kept(await find_lines(tx, organization_id, checkout.id))
        reason = objection(payment, checkout, lines, EventStatus(status), layout_version)
        if reason is None:
            await tx.execute("SAVEPOINT before_sale")
            sold = await self.sell(tx, call, view, checkout, lines, late=True)
            if sold is not None:
                await self.finish(tx, call, view, checkout, sold, payment)
                return Settled(checkout_id=checkout.id, status=PaymentStatus.APPLIED, newly=True)
            await tx.execute("ROLLBACK TO SAVEPOINT before_sale")
            reason = RefundReason.SEATS_TAKEN
        await self._owe_back(tx, call, checkout, payment, reason)
        reach("settle.before_commit")
        return Settled(checkout_id=checkout.id, status=PaymentStatus.REFUND_DUE, reason=reason, newly=True)

    async def _owe_back(
        self, tx: Transaction, call: Call, checkout: Checkout, payment: Payment, reason: RefundReason
    ) -> None:
        """The buyer may try again where the session still runs; one that is over is ended by the sweeper, as always."""
        organization_id = call.organization_id
        refund_id = new_id()
        await store.settle_payment(tx, organization_id, payment.id, PaymentStatus.REFUND_DUE)
        await store.insert_refund(tx, organization_id, refund_id, payment, reason)
        if not checkout.is_over:
            await store.open_again(tx, organization_id, checkout.id)
        said = {
            "checkout_id": str(checkout.id),
            "payment_id": str(payment.id),
            "refund_id": str(refund_id),
            "provider": payment.provider,
            "reason": reason.value,
            "amount_minor": payment.amount_minor,
            "currency": payment.currency,
        }
        await write_audit(
            tx, call, "payment_orphaned", "Payment", payment.id, event_id=payment.event_id, reason=reason, changes=said
        )
        await send_message(tx, organization_id, "PaymentOrphaned", payment.event_id, said)

    @staticmethod
    async def _payment(tx: Transaction, organization_id: UUID, payment_id: UUID) -> Payment:
        found = await store.find_payment(tx, organization_id, payment_id)
        if found is None:
            raise PaymentNotFound
        return found

    # Seats -------------------------------------------------------------------------------------------------------
    async def sell(
        self, tx: Transaction, call: Call, view: EventView, checkout: Checkout, lines: Sequence[Line], *, late: bool
    ) -> Sold | None:
        """Everything that is kept in the checkout, or None (the caller takes back what was done). `late`: what is held no
        more is sold too, if it is free. The caller has locked the checkout and knows that the view is current."""
        ordinals = [line.ordinal for line in lines if line.ordinal is not None]
        rules = await self._rules(tx, view, lines)
        rows = companion_rows((n, rules[line.hold_id]) for n, line in enumerate(_seats(lines), 1)) if late else None
        zones = [line.zone_no for line in lines if line.ordinal is None]
        await store.lock_places(tx, call.organization_id, view.id, ordinals, rows, zones)
        types_when_sold = [n for n, t in view.hold_types.items() if BookingState.SOLD in t.hold_type.valid_states]
        seller = _seller(call, checkout)
        converted = await store.convert_holds(
            tx, seller, checkout.id, [line.hold_id for line in lines], types_when_sold
        )
        rest = [line for line in lines if line.hold_id not in converted]
        if rest and not (late and await self._take_again(tx, seller, checkout, rest, rules, types_when_sold)):
            return None
        reach("settle.sold")
        tx.moved(view.id, ordinals)
        tickets = [
            ticket
            for line in lines
            for ticket in tickets_for(_place(line, converted), ticket_terms(view, line.zone_no), checkout.currency)
        ]
        return Sold(tickets, len(rest))

    async def _take_again(
        self,
        tx: Transaction,
        seller: store.Seller,
        checkout: Checkout,
        rest: Sequence[Line],
        rules: Mapping[UUID, CompanionRule | None],
        types_when_sold: Sequence[str],
    ) -> bool:
        """Seats first, then places, by zone: the seats are locked already, so the order among types does not matter."""
        for hold_type in dict.fromkeys(line.hold_type for line in rest):
            seats = [line for line in _seats(rest) if line.hold_type == hold_type]
            if not seats:
                continue
            sold = await store.sell_free_seats(
                tx,
                seller,
                checkout.user_id,
                [line.ordinal for line in seats if line.ordinal is not None],
                hold_type if hold_type in types_when_sold else None,
                companion_rows((n, rules[line.hold_id]) for n, line in enumerate(seats, 1)),
                LATE,
            )
            if not sold:
                return False
        for line in sorted((line for line in rest if line.ordinal is None), key=lambda line: line.zone_no):
            kept_type = line.hold_type if line.hold_type in types_when_sold else None
            if not await store.sell_free_places(
                tx, seller, checkout.user_id, line.zone_no, line.quantity, kept_type, LATE
            ):
                return False
        return True

    @staticmethod
    async def _rules(tx: Transaction, view: EventView, lines: Sequence[Line]) -> dict[UUID, CompanionRule | None]:
        """The rules for companions' seats, binding whom they bound when the hold was placed."""
        seats = _seats(lines)
        if not any(line.ordinal in view.layout.companion_wheelchairs for line in seats):
            return dict.fromkeys(line.hold_id for line in seats)
        actors = await store.hold_actors(tx, view.organization_id, [line.hold_id for line in seats])
        return {
            line.hold_id: companion_rule(
                view.layout,
                view.effective_policy,
                line.ordinal,
                binding=line.hold_type == CART or actors[line.hold_id] not in (Actor.ADMIN, Actor.API),
            )
            for line in seats
            if line.ordinal is not None
        }

    async def finish(
        self, tx: Transaction, call: Call, view: EventView, checkout: Checkout, sold: Sold, payment: Payment | None
    ) -> None:
        """Tickets, the session's end, and the word of it: in the transaction that sold the places."""
        organization_id = call.organization_id
        await issue_tickets(tx, organization_id, view.id, checkout.id, await tx.now(), sold.tickets)
        reach("settle.tickets_issued")
        await store.complete_checkout(tx, organization_id, checkout.id, None if payment is None else payment.id)
        if payment is not None:
            await store.settle_payment(tx, organization_id, payment.id, PaymentStatus.APPLIED)
        way = "late" if sold.taken_again else "in_time" if payment is not None else "free"
        said = {
            "checkout_id": str(checkout.id),
            "ticket_ids": [str(ticket.id) for ticket in sold.tickets],
            "payment_id": None if payment is None else str(payment.id),
            "late": bool(sold.taken_again),
        }
        await write_audit(tx, call, "checkout_completed", "Checkout", checkout.id, event_id=view.id, changes=said)
        await send_message(tx, organization_id, "CheckoutCompleted", view.id, said)
        tx.after_commit(lambda: SETTLED.labels(way).inc())
        reach("settle.before_commit")


def _seats(lines: Sequence[Line]) -> list[Line]:
    return [line for line in lines if line.ordinal is not None]


def _seller(call: Call, checkout: Checkout) -> store.Seller:
    return store.Seller(
        organization_id=call.organization_id,
        event_id=checkout.event_id,
        session_id=checkout.session_id,
        actor=call.principal.actor.value,
        user_id=call.principal.user_id,
        ip=call.ip,
        user_agent=call.user_agent,
        request_id=call.request_id,
    )


def _place(line: Line, converted: Set[UUID]) -> PlaceSold:
    return PlaceSold(
        zone_no=line.zone_no,
        ordinal=line.ordinal,
        quantity=line.quantity,
        hold_id=line.hold_id if line.hold_id in converted else None,
        hold_type=line.hold_type,
        price_minor=line.price_minor,
        user_id=line.user_id,
        attendee_user_id=line.attendee_user_id,
        attendee_name=line.attendee_name,
        associated_membership_id=line.associated_membership_id,
    )
