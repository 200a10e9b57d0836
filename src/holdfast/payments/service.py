"""Paying for a checkout and completing it; payments and refunds for the people who look after them."""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from holdfast.accounts.principal import Call, require_staff
from holdfast.checkout.answers import CheckoutView
from holdfast.checkout.checkout import (
    Checkout,
    CheckoutStatus,
    Line,
    due_minor,
    kept,
    may_see,
    needs_payment,
    not_fresh,
)
from holdfast.checkout.reading import checkout_view
from holdfast.checkout.refusals import CheckoutExpired, CheckoutPaying, HoldsExpired, NoHolds
from holdfast.kernel.crash_points import reach
from holdfast.kernel.errors import CheckoutNotFound, InvalidRequest
from holdfast.kernel.ids import new_id
from holdfast.kernel.problems import Problem
from holdfast.payments.manual import MANUAL, require_may_state, require_statement, stated_amount_minor
from holdfast.payments.payment import (
    AMOUNT_MAX_MINOR,
    REFERENCE_CHARS,
    Payment,
    PaymentBegun,
    PaymentStatus,
    Refund,
    RefundStatus,
    unpriced,
)
from holdfast.payments.provider import (
    EventKind,
    ProviderKind,
    ProviderRecord,
    is_provider_name,
)
from holdfast.payments.providers_service import Providers
from holdfast.payments.receiving import PROVIDERS, Receiving
from holdfast.payments.refusals import (
    CheckoutCancelled,
    CheckoutCompleted,
    NoPrice,
    NotATestPayment,
    NothingToPay,
    PaymentNotFound,
    PaymentOrphaned,
    PaymentReceived,
    PaymentReferenceUsed,
    PaymentRequired,
    ProviderDisabled,
    ProviderNotFound,
    RefundDone,
    RefundNotFound,
)
from holdfast.payments.settlement import Settled, Settlement
from holdfast.payments.test_provider import simulated
from holdfast.seating.answers import Part, part_of
from holdfast.seating.event import EventStatus, check_saleable
from holdfast.seating.reading import text_fault
from holdfast.seating.view import EventView
from holdfast.store.catalogue import Catalogue
from holdfast.store.postgres import payment_providers as providers
from holdfast.store.postgres import payments as store
from holdfast.store.postgres.checkouts import find_checkout, find_lines, lock_checkout
from holdfast.store.postgres.database import Database, Transaction
from holdfast.store.postgres.idempotency import known_answer, run_once
from holdfast.store.postgres.trail import write_audit

HOW_TO_PAY = (
    "This checkout is to be paid for. Begin with POST /api/checkouts/{id}/pay; the provider's word completes it. "
    "Staff and API keys state money taken elsewhere as payment_reference."
)
BEING_PAID = "This checkout is being paid for; it is completed when the provider says that the money is there."
LATE_WORDS = "If the money has been taken already, say so with late: true: the same seats are sold if they are free."


class CompleteAsked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    payment_reference: str | None = None
    amount_minor: int | None = None
    late: bool = False
    """The money is there, although the holds may be over."""


class PaymentsService:
    def __init__(self, database: Database, catalogue: Catalogue) -> None:
        self._database = database
        self._catalogue = catalogue
        self.settlement = Settlement(database, catalogue)
        self.receiving = Receiving(database, self.settlement)
        self.providers = Providers(database)

    # Paying ------------------------------------------------------------------------------------------------------
    async def pay(self, call: Call, checkout_id: UUID, provider: str) -> PaymentBegun:
        """The amount is fixed, and the session waits for the provider's word. Repeated: the same payment."""
        if provider == MANUAL or not is_provider_name(provider):
            said = "must be the name of a payment provider; what was paid by hand is stated when completing"
            raise InvalidRequest(f"/provider: {said}.", [Problem("/provider", "bad_provider", said)])

        async def work(tx: Transaction) -> PaymentBegun:
            checkout, lines = await self._locked(tx, call, checkout_id)
            self._require_payable(checkout, lines)
            known = await providers.find_provider(tx, call.organization_id, provider)
            if known is None:
                raise ProviderNotFound
            pending = await store.payments_of_checkout(tx, call.organization_id, checkout_id, PaymentStatus.PENDING)
            received = await store.payments_of_checkout(tx, call.organization_id, checkout_id, PaymentStatus.RECEIVED)
            if received:
                raise CheckoutPaying(BEING_PAID)
            others = [payment.provider for payment in pending if payment.provider != provider]
            if others:
                said = "This checkout is being paid for with another provider; cancel that payment first."
                raise CheckoutPaying(said, provider=others[0])
            if pending:
                return PaymentBegun(pending[0], PROVIDERS[known.kind].page(pending[0]))
            if not known.enabled:
                raise ProviderDisabled
            return await self._begin(tx, call, checkout, lines, known)

        return await run_once(self._database, call, work, PaymentBegun)

    async def _begin(
        self, tx: Transaction, call: Call, checkout: Checkout, lines: Sequence[Line], provider: ProviderRecord
    ) -> PaymentBegun:
        adapter = PROVIDERS[provider.kind]
        payment_id = new_id()
        made = self._new_payment(
            call, checkout, payment_id, provider.name, adapter.first_reference(payment_id), due_minor(lines)
        )
        if not await store.begin_paying(tx, call.organization_id, checkout.id):
            raise CheckoutExpired([line.hold_id for line in lines])
        await store.insert_payment(tx, call.organization_id, made, PaymentStatus.PENDING)
        payment = await self._payment(tx, call, payment_id)
        said = {"checkout_id": str(checkout.id), "provider": provider.name, "amount_minor": payment.amount_minor}
        await write_audit(tx, call, "payment_begun", "Payment", payment_id, event_id=checkout.event_id, changes=said)
        return PaymentBegun(payment, adapter.page(payment))

    @staticmethod
    def _require_payable(checkout: Checkout, lines: Sequence[Line]) -> None:
        if checkout.status is CheckoutStatus.COMPLETED:
            raise CheckoutCompleted
        _require_living(checkout, lines)
        if not needs_payment(lines):
            raise NothingToPay
        if unpriced(lines):
            raise NoPrice([line.hold_id for line in unpriced(lines)])

    async def cancel_payment(self, call: Call, checkout_id: UUID) -> CheckoutView:
        """Back to open. Money that has arrived is not sent away."""

        async def work(tx: Transaction) -> CheckoutView:
            checkout, lines = await self._locked(tx, call, checkout_id)
            if checkout.status is CheckoutStatus.COMPLETED:
                raise CheckoutCompleted
            if checkout.status is CheckoutStatus.CANCELLED:
                raise CheckoutCancelled
            if checkout.status is CheckoutStatus.EXPIRED or checkout.is_over:
                raise CheckoutExpired([line.hold_id for line in lines])
            if await store.payments_of_checkout(tx, call.organization_id, checkout_id, PaymentStatus.RECEIVED):
                raise PaymentReceived
            pending = await store.payments_of_checkout(tx, call.organization_id, checkout_id, PaymentStatus.PENDING)
            for payment in pending:
                await store.fail_payment(tx, call.organization_id, payment.id)
                said = {"checkout_id": str(checkout_id)}
                await write_audit(
                    tx, call, "payment_cancelled", "Payment", payment.id, event_id=payment.event_id, changes=said
                )
            await store.open_again(tx, call.organization_id, checkout_id)
            return await self._view(tx, call, checkout_id)

        return await run_once(self._database, call, work, CheckoutView)

    async def simulate(
        self, call: Call, payment_id: UUID, outcome: EventKind, amount_minor: int | None, currency: str | None
    ) -> Payment:
        """The test provider is told what to say; its message comes in through the same door as any other."""
        if amount_minor is not None and not 0 <= amount_minor <= AMOUNT_MAX_MINOR:
            said = f"must be between 0 and {AMOUNT_MAX_MINOR}"
            raise InvalidRequest(f"/amount_minor: {said}.", [Problem("/amount_minor", "out_of_range", said)])
        if currency is not None and not (len(currency) == 3 and currency.isascii() and currency.isalpha()):
            said = "must be three letters"
            raise InvalidRequest(f"/currency: {said}.", [Problem("/currency", "bad_currency", said)])
        async with self._database.transaction(call.organization_id) as tx:
            payment = await self._payment(tx, call, payment_id)
            checkout = await find_checkout(tx, call.organization_id, payment.checkout_id)
            if checkout is None or not may_see(call, checkout.user_id):
                raise PaymentNotFound
            known = await providers.find_secrets(tx, call.organization_id, payment.provider)
        if known is None or known.kind is not ProviderKind.TEST:
            raise NotATestPayment
        amount = payment.amount_minor if amount_minor is None else amount_minor
        signature, body = simulated(
            payment, outcome, amount, currency or payment.currency, known.secrets[0], int(known.now.timestamp())
        )
        await self.receiving.receive(call, payment.provider, signature, body)
        async with self._database.transaction(call.organization_id) as tx:
            return await self._payment(tx, call, payment_id)

    # Completing --------------------------------------------------------------------------------------------------
    async def complete(self, call: Call, checkout_id: UUID, asked: CompleteAsked) -> CheckoutView:
        require_statement(asked.payment_reference, asked.amount_minor)
        known = await known_answer(self._database, call, CheckoutView)
        if known is not None:
            return known
        async with self._database.transaction(call.organization_id) as tx:
            checkout = await find_checkout(tx, call.organization_id, checkout_id)
            if checkout is None or not may_see(call, checkout.user_id):
                raise CheckoutNotFound
            waiting = await store.payments_of_checkout(tx, call.organization_id, checkout_id, PaymentStatus.RECEIVED)
        if asked.payment_reference is not None:
            payment = await self._state(call, checkout, asked)
            reach("payment.recorded")
            return await self._settled(call, payment.id)
        if waiting:
            return await self._settled(call, waiting[0].id)

        async def free(view: EventView) -> CheckoutView:
            return await run_once(
                self._database, call, lambda tx: self._complete_free(tx, call, view, checkout_id), CheckoutView
            )

        return await self.settlement.on_current_layout(call.organization_id, checkout.event_id, free)

    async def _complete_free(self, tx: Transaction, call: Call, view: EventView, checkout_id: UUID) -> CheckoutView:
        checkout, lines = await self._locked(tx, call, checkout_id)
        if checkout.status is not CheckoutStatus.COMPLETED:
            await self._require_event(tx, call, checkout)
            _require_living(checkout, lines)
            if needs_payment(lines):
                raise PaymentRequired(
                    BEING_PAID if checkout.status is CheckoutStatus.PAYING else HOW_TO_PAY,
                    due_minor=None if unpriced(lines) else due_minor(lines),
                    currency=checkout.currency,
                )
            sold = await self.settlement.sell(tx, call, view, checkout, lines, late=False)
            if sold is None:  # one has ended since it was looked at
                lines = kept(await find_lines(tx, call.organization_id, checkout_id))
                raise HoldsExpired([line.hold_id for line in not_fresh(lines) or lines])
            await self.settlement.finish(tx, call, view, checkout, sold, None)
        return await self._view(tx, call, checkout_id)

    async def _state(self, call: Call, checkout: Checkout, asked: CompleteAsked) -> Payment:
        """Somebody says that they have taken the money. What can be refused at once is; the rest is recorded first."""
        assert asked.payment_reference is not None
        reference = asked.payment_reference
        view = await self._catalogue.event(call.organization_id, checkout.event_id)
        policy = None if view is None else view.effective_policy
        require_may_state(call.principal, policy is not None and policy.buyers_state_payment)

        async def work(tx: Transaction) -> Payment:
            checkout_id = checkout.id
            current, lines = await self._locked(tx, call, checkout_id)
            known = await store.find_payment_by_reference(tx, call.organization_id, MANUAL, reference)
            if known is not None:
                if known.checkout_id != checkout_id:
                    raise PaymentReferenceUsed
                return known
            if current.status is CheckoutStatus.COMPLETED:  # money for what is paid: recorded, and to be paid back
                amount: int | None = due_minor(lines) if asked.amount_minor is None else asked.amount_minor
            else:
                await self._require_event(tx, call, current)
                _require_living(current, lines, late=asked.late)
                amount = stated_amount_minor(lines, asked.amount_minor, current.currency)
            payment_id = new_id()
            made = self._new_payment(call, current, payment_id, MANUAL, reference, amount)
            if not await store.insert_payment(tx, call.organization_id, made, PaymentStatus.RECEIVED):
                raise PaymentReferenceUsed  # a moment ago, on another checkout: this one is locked
            said = {"checkout_id": str(checkout_id), "reference": reference, "amount_minor": amount}
            await write_audit(
                tx, call, "payment_received", "Payment", payment_id, event_id=current.event_id, changes=said
            )
            return await self._payment(tx, call, payment_id)

        return await self._database.run(call.organization_id, work)

    async def _settled(self, call: Call, payment_id: UUID) -> CheckoutView:
        settled = await self.settlement.settle(call, payment_id)

        async def work(tx: Transaction) -> CheckoutView:
            return await self._answer(tx, call, payment_id, settled)

        return await run_once(self._database, call, work, CheckoutView)

    async def _answer(self, tx: Transaction, call: Call, payment_id: UUID, settled: Settled) -> CheckoutView:
        view = await self._view(tx, call, settled.checkout_id)
        if settled.status is PaymentStatus.REFUND_DUE and view.status != CheckoutStatus.COMPLETED:
            raise PaymentOrphaned(
                "The money was recorded, but it bought nothing: it is to be paid back.",
                payment_id=str(payment_id),
                reason=settled.reason or await store.refund_reason(tx, call.organization_id, payment_id),
                hold_ids=[str(line.hold_id) for line in view.lines],
            )
        return view

    @staticmethod
    async def _require_event(tx: Transaction, call: Call, checkout: Checkout) -> None:
        """Not the sale window: the session was opened in it."""
        status, _ = await store.event_standing(tx, call.organization_id, checkout.event_id)
        check_saleable(EventStatus(status), None, None, checkout.now, any_time=True)

    # Reading -----------------------------------------------------------------------------------------------------
    async def payment(self, call: Call, payment_id: UUID) -> Payment:
        require_staff(call)
        async with self._database.transaction(call.organization_id) as tx:
            return await self._payment(tx, call, payment_id)

    async def refunds(
        self, call: Call, status: RefundStatus | None, event_id: UUID | None, after: UUID | None, limit: int
    ) -> Part[Refund]:
        require_staff(call)
        async with self._database.transaction(call.organization_id) as tx:
            found = await store.list_refunds(tx, call.organization_id, status, event_id, after, limit + 1)
        return part_of(found, limit, lambda refund: str(refund.id))

    async def refund_done(self, call: Call, refund_id: UUID, reference: str) -> Refund:
        require_staff(call)
        fault = text_fault(reference, REFERENCE_CHARS)
        if fault is not None:
            raise InvalidRequest(f"/reference: {fault[1]}.", [Problem("/reference", *fault)])

        async def work(tx: Transaction) -> Refund:
            done = await store.mark_refund_done(tx, call.organization_id, refund_id, call.principal.user_id, reference)
            refund = await store.find_refund(tx, call.organization_id, refund_id)
            if refund is None:
                raise RefundNotFound
            if not done and refund.reference != reference:
                raise RefundDone
            if done:
                said = {"reference": reference, "amount_minor": refund.amount_minor, "currency": refund.currency}
                await write_audit(tx, call, "refund_done", "Refund", refund_id, event_id=refund.event_id, changes=said)
            return refund

        return await run_once(self._database, call, work, Refund)

    # Within ------------------------------------------------------------------------------------------------------
    async def _locked(self, tx: Transaction, call: Call, checkout_id: UUID) -> tuple[Checkout, list[Line]]:
        """The caller's checkout, which nobody else decides about now, and what is kept in it."""
        checkout = await lock_checkout(tx, call.organization_id, checkout_id)
        if checkout is None or not may_see(call, checkout.user_id):
            raise CheckoutNotFound
        return checkout, kept(await find_lines(tx, call.organization_id, checkout_id))

    async def _view(self, tx: Transaction, call: Call, checkout_id: UUID) -> CheckoutView:
        view = await checkout_view(tx, self._catalogue, call.organization_id, checkout_id)
        if view is None:
            raise CheckoutNotFound
        return view

    async def _payment(self, tx: Transaction, call: Call, payment_id: UUID) -> Payment:
        found = await store.find_payment(tx, call.organization_id, payment_id)
        if found is None:
            raise PaymentNotFound
        return found

    @staticmethod
    def _new_payment(
        call: Call, checkout: Checkout, payment_id: UUID, provider: str, reference: str, amount_minor: int | None
    ) -> store.NewPayment:
        return store.NewPayment(
            id=payment_id,
            checkout_id=checkout.id,
            event_id=checkout.event_id,
            provider=provider,
            reference=reference,
            amount_minor=amount_minor,
            currency=checkout.currency,
            actor=call.principal.actor.value,
            user_id=call.principal.user_id,
        )


def _require_living(checkout: Checkout, lines: Sequence[Line], *, late: bool = False) -> None:
    """Every hold fresh and the session running; `late`: the money is there, so neither need be."""
    if checkout.status is CheckoutStatus.CANCELLED:
        raise CheckoutCancelled
    if not lines:
        raise NoHolds("There is nothing in this checkout.")
    if late:
        return
    ended = not_fresh(lines)
    if ended:
        raise HoldsExpired([line.hold_id for line in ended], LATE_WORDS if needs_payment(lines) else "")
    if checkout.status is CheckoutStatus.EXPIRED or checkout.is_over:
        raise CheckoutExpired([line.hold_id for line in lines])
