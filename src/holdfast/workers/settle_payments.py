"""Settles money that was recorded by a process which did not live to settle it. Any number of workers may run: the lock on
the checkout lets one of them decide, and the others find it decided."""

import time
from uuid import UUID

import structlog
from prometheus_client import Gauge

from holdfast.payments.settlement import Settlement, engine_call
from holdfast.store.postgres.database import Database
from holdfast.store.postgres.idempotency import every_organization
from holdfast.store.postgres.payments import forget_old_messages, unsettled_payments

log = structlog.get_logger(__name__)

WAITING = Gauge("holdfast_payments_unsettled", "Payments whose money is there and that nobody has settled for seconds")

OLDER_THAN_S = 3.0
"""Whoever recorded it is settling it now, most likely."""
PAUSE_S = 1.0
BATCH = 500
LONGEST_WAIT_S = 300.0
MESSAGES_KEPT_DAYS = 30
"""Far longer than a signature is good for."""
FORGET_EVERY_S = 3_600.0


class SettlePayments:
    name = "settle_payments"

    def __init__(self, database: Database, settlement: Settlement, older_than_s: float = OLDER_THAN_S) -> None:
        self._database = database
        self._settlement = settlement
        self._older_than_s = older_than_s
        self._failures: dict[UUID, tuple[int, float]] = {}
        self._forget_at = 0.0

    async def once(self) -> float:
        async with self._database.transaction(engine=True) as tx:
            waiting = await unsettled_payments(tx, self._older_than_s, BATCH)
        WAITING.set(len(waiting))
        for organization_id, payment_id in waiting:
            await self._settle(organization_id, payment_id)
        known = {payment_id for _, payment_id in waiting}
        self._failures = {payment_id: failed for payment_id, failed in self._failures.items() if payment_id in known}
        if time.monotonic() >= self._forget_at:
            await self.forget_messages()
            self._forget_at = time.monotonic() + FORGET_EVERY_S
        return PAUSE_S

    async def _settle(self, organization_id: UUID, payment_id: UUID) -> None:
        """One that cannot be settled is tried ever more rarely, and keeps no other waiting."""
        failures, not_before = self._failures.get(payment_id, (0, 0.0))
        if time.monotonic() < not_before:
            return
        try:
            await self._settlement.settle(engine_call(organization_id, "worker:settle_payments"), payment_id)
        except Exception as error:
            wait_s = min(LONGEST_WAIT_S, 2.0 ** min(failures, 10))
            self._failures[payment_id] = (failures + 1, time.monotonic() + wait_s)
            log.error("payment_not_settled", payment_id=str(payment_id), error=repr(error), retry_in_s=wait_s)

    async def forget_messages(self) -> None:
        async with self._database.transaction(engine=True) as tx:
            organizations = await every_organization(tx)
        for organization_id in organizations:
            async with self._database.transaction(organization_id) as tx:
                await forget_old_messages(tx, organization_id, MESSAGES_KEPT_DAYS)
