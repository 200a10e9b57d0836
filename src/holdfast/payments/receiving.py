"""The door for providers' messages: believed or not, and recorded before anything is made of them.

To the outside every message that is not believed gets the same answer. Why is in the log, in a metric, and in the audit of
the organization, where the message names a checkout of one.
"""

import time
from collections import OrderedDict
from uuid import UUID

import structlog
from prometheus_client import Counter

from holdfast.accounts.principal import Call
from holdfast.checkout.checkout import Checkout
from holdfast.kernel.crash_points import reach
from holdfast.kernel.ids import new_id
from holdfast.payments.payment import Payment, PaymentStatus
from holdfast.payments.provider import (
    EventKind,
    MessageRefused,
    Provider,
    ProviderEvent,
    ProviderKind,
    Unverified,
    is_provider_name,
)
from holdfast.payments.refusals import InvalidWebhook
from holdfast.payments.settlement import Settlement, engine_call
from holdfast.payments.signed_webhook import SignedWebhook
from holdfast.payments.test_provider import TestProvider
from holdfast.store.postgres import payments as store
from holdfast.store.postgres.checkouts import lock_checkout
from holdfast.store.postgres.database import Database, Transaction
from holdfast.store.postgres.payment_providers import find_secrets
from holdfast.store.postgres.trail import write_audit

log = structlog.get_logger("holdfast.payments")

MESSAGES = Counter("holdfast_payment_messages_total", "Messages of payment providers, by outcome", ["outcome"])
AUDITED_A_MINUTE = 30
"""Of refused messages, for each organization: whoever knows a checkout's id could otherwise fill its audit."""
ORGANIZATIONS_MAX = 1_000

PROVIDERS: dict[ProviderKind, Provider] = {
    ProviderKind.WEBHOOK: SignedWebhook(),
    ProviderKind.TEST: TestProvider(),
}


class Receiving:
    def __init__(self, database: Database, settlement: Settlement) -> None:
        self._database = database
        self._settlement = settlement
        self._audited: OrderedDict[UUID, tuple[int, int]] = OrderedDict()

    async def receive(self, call: Call, provider: str, signature: str | None, body: bytes) -> None:
        """Returns once the money is recorded for good. `call` says where the message came from, and of nobody."""
        organization_id: UUID | None = None
        message: Unverified | None = None
        try:
            message = PROVIDERS[ProviderKind.WEBHOOK].read(signature, body)
            async with self._database.transaction(engine=True) as tx:
                organization_id = await store.organization_of_checkout(tx, message.event.checkout_id)
            if organization_id is None:
                raise MessageRefused("unknown_checkout")
            await self._verify(organization_id, provider, message)
            reach("webhook.verified")
            caller = engine_call(organization_id, f"provider:{provider}", call)
            payment = await self._record(caller, provider, message)
        except MessageRefused as refused:
            MESSAGES.labels(refused.reason).inc()
            log.warning("payment_message_refused", provider=provider[:40], reason=refused.reason)
            if organization_id is not None and message is not None and self._may_audit(organization_id):
                await self._audit_refused(
                    engine_call(organization_id, "provider:unknown", call), provider, message, refused.reason
                )
            raise InvalidWebhook from None
        MESSAGES.labels("accepted").inc()
        reach("payment.recorded")
        if payment is not None and payment.status is PaymentStatus.RECEIVED:
            try:
                await self._settlement.settle(caller, payment.id)
            except Exception as error:  # the money is recorded: a worker settles it
                log.error("payment_not_settled", payment_id=str(payment.id), error=repr(error))

    async def _verify(self, organization_id: UUID, provider: str, message: Unverified) -> None:
        known = None
        if is_provider_name(provider):
            async with self._database.transaction(organization_id) as tx:
                known = await find_secrets(tx, organization_id, provider)
        if known is None:
            raise MessageRefused("unknown_provider")
        PROVIDERS[known.kind].verify(message, known.secrets, known.now)

    async def _record(self, call: Call, provider: str, message: Unverified) -> Payment | None:
        """The payment it is about, if any. In one transaction with the message itself."""

        async def work(tx: Transaction) -> Payment | None:
            event = message.event
            checkout = await lock_checkout(tx, call.organization_id, event.checkout_id)
            assert checkout is not None, "checkouts are never deleted"
            payment = await self._payment_of(tx, call, provider, event, checkout)
            noted = await store.note_message(
                tx,
                call.organization_id,
                provider,
                message.digest,
                event.message_id,
                None if payment is None else payment.id,
            )
            if not noted:
                raise MessageRefused("replay")
            reach("payment.written")
            return payment

        return await self._database.run(call.organization_id, work)

    async def _payment_of(
        self, tx: Transaction, call: Call, provider: str, event: ProviderEvent, checkout: Checkout
    ) -> Payment | None:
        if event.kind is EventKind.OTHER:
            return None
        organization_id = call.organization_id
        known = await store.find_payment_by_reference(tx, organization_id, provider, event.reference)
        if known is not None and known.checkout_id != checkout.id:
            raise MessageRefused("payment_of_another_checkout")
        if known is None:
            # Begun here, before the provider had a name for it.
            pending = await store.payments_of_checkout(tx, organization_id, checkout.id, PaymentStatus.PENDING)
            known = next((payment for payment in pending if payment.provider == provider), None)
        if event.kind is EventKind.FAILED:
            return await self._failed(tx, call, known, event)
        if known is None:
            known_id = new_id()
            made = store.NewPayment(
                id=known_id,
                checkout_id=checkout.id,
                event_id=checkout.event_id,
                provider=provider,
                reference=event.reference,
                amount_minor=event.amount_minor,
                currency=event.currency,
                actor=call.principal.actor.value,
                user_id=None,
            )
            if not await store.insert_payment(tx, organization_id, made, PaymentStatus.RECEIVED):
                raise MessageRefused("payment_of_another_checkout")  # recorded there a moment ago
        elif known.status in (PaymentStatus.PENDING, PaymentStatus.FAILED):
            known_id = known.id
            await store.receive_payment(
                tx, organization_id, known.id, event.reference, event.amount_minor, event.currency
            )
        else:
            return known  # told again
        said = {"provider": provider, "reference": event.reference, "amount_minor": event.amount_minor}
        await write_audit(
            tx, call, "payment_received", "Payment", known_id, event_id=checkout.event_id,
            changes={**said, "currency": event.currency, "checkout_id": str(checkout.id)},
        )  # fmt: skip
        return await store.find_payment(tx, organization_id, known_id)

    @staticmethod
    async def _failed(tx: Transaction, call: Call, known: Payment | None, event: ProviderEvent) -> Payment | None:
        """The session is open again. Of money that is there already the word of a failure comes too late."""
        if known is None or known.status is not PaymentStatus.PENDING:
            return known
        await store.fail_payment(tx, call.organization_id, known.id, event.reference)
        await store.open_again(tx, call.organization_id, known.checkout_id)
        said = {"checkout_id": str(known.checkout_id), "reference": event.reference}
        await write_audit(tx, call, "payment_failed", "Payment", known.id, event_id=known.event_id, changes=said)
        return await store.find_payment(tx, call.organization_id, known.id)

    # What is not believed ----------------------------------------------------------------------------------------
    def _may_audit(self, organization_id: UUID) -> bool:
        minute = int(time.monotonic() // 60)
        since, count = self._audited.pop(organization_id, (minute, 0))
        count = count + 1 if since == minute else 1
        self._audited[organization_id] = (minute, count)
        if len(self._audited) > ORGANIZATIONS_MAX:
            self._audited.popitem(last=False)
        return count <= AUDITED_A_MINUTE

    async def _audit_refused(self, call: Call, provider: str, message: Unverified, reason: str) -> None:
        async def work(tx: Transaction) -> None:
            said = {"provider": _sayable(provider), "message_id": message.event.message_id}
            await write_audit(
                tx, call, "payment_message_refused", "Checkout", message.event.checkout_id, reason=reason, changes=said
            )

        await self._database.run(call.organization_id, work)


def _sayable(text: str) -> str:
    return text[:40].encode("ascii", "replace").decode().replace("\x00", "?")
