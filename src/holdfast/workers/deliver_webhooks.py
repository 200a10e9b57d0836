"""Delivers webhooks: takes what is due out of the queue, sends it, writes down what came of it. Any number may run."""

import asyncio
import random
import time
from uuid import UUID, uuid4

import structlog
from prometheus_client import Counter, Gauge

from holdfast.accounts.records import Origin
from holdfast.holds.lifecycle import Actor
from holdfast.store.postgres import webhook_queue as queue
from holdfast.store.postgres import webhooks as store
from holdfast.store.postgres.accounts import audit
from holdfast.store.postgres.database import Database, Transaction
from holdfast.store.postgres.webhook_queue import Picked
from holdfast.store.postgres.webhooks import Outgoing
from holdfast.webhooks.courier import Answer, Courier
from holdfast.webhooks.message import TEST
from holdfast.webhooks.records import Attempt, DeliveryStatus, webhook_id
from holdfast.webhooks.schedule import FAILING_FOR, asked_delay_s, delay_s
from holdfast.webhooks.signature import signed_headers

log = structlog.get_logger(__name__)

DELIVERIES = Counter("holdfast_webhook_deliveries_total", "Attempts to deliver a webhook", ["outcome"])
BACKLOG = Gauge("holdfast_webhook_backlog", "Webhook deliveries that are due and not yet sent")

ENGINE = Origin(actor=Actor.SYSTEM, subject="webhooks")
PAUSE_S = 0.25
BATCH = 32
BACKLOG_EVERY_S = 10.0
GATHER_S = 0.005
CONNECTIONS = 2
"""To the database, at once: requests come first."""
GONE = 410
ASKS_FOR_PATIENCE = (429, 503)
FIXED_HEADERS = {"content-type": "application/json", "user-agent": "Holdfast-Webhooks/1"}


class DeliverWebhooks:
    name = "deliver_webhooks"

    def __init__(
        self, database: Database, courier: Courier, *, total: int = 64, per_endpoint: int = 4, stale_s: float = 30.0
    ) -> None:
        """`total`: attempts under way in this process; `per_endpoint`: at one endpoint, among all processes.

        `stale_s`: a job without a heartbeat for so long is taken over, because its worker must be dead.
        """
        self._database = database
        self._courier = courier
        self._total = total
        self._per_endpoint = per_endpoint
        self._stale_s = stale_s
        self._worker_id = uuid4()
        self._turns = asyncio.Semaphore(CONNECTIONS)
        self._running: dict[asyncio.Task[None], Picked] = {}
        self._beaten_at = time.monotonic()
        self._counted_at = 0.0

    async def once(self) -> float:
        """Starts what is due and has room, and comes back when something has ended or a moment has passed."""
        await self._keep()
        room = min(BATCH, self._total - len(self._running))
        picked = await self._pick(room) if room > 0 else []
        for one in picked:
            task = asyncio.create_task(self._deliver(one), name=f"webhook-{one.work.delivery_id}")
            self._running[task] = one
            task.add_done_callback(self._done)
        await self._count()
        if not self._running:
            return PAUSE_S
        if len(picked) < room or room <= 0:
            await asyncio.wait(list(self._running), timeout=PAUSE_S, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(GATHER_S)  # those that end together are replaced together
        return 0.0

    async def close(self, timeout_s: float = 12.0) -> None:
        """Lets what is under way come to its end. What does not is taken over by another worker."""
        if self._running:
            await asyncio.wait(list(self._running), timeout=timeout_s)
        for task in list(self._running):
            task.cancel()

    async def _pick(self, room: int) -> list[Picked]:
        picked = await queue.pick(
            self._database, self._worker_id, batch=room, per_endpoint=self._per_endpoint, stale_s=self._stale_s
        )
        under_way = {one.job.id for one in self._running.values()}
        return [one for one in picked if one.job.id not in under_way]

    async def _keep(self) -> None:
        if self._running and time.monotonic() - self._beaten_at > self._stale_s / 4:
            self._beaten_at = time.monotonic()
            await queue.keep(self._database, list(self._running.values()))

    async def _count(self) -> None:
        if time.monotonic() - self._counted_at > BACKLOG_EVERY_S:
            self._counted_at = time.monotonic()
            async with self._database.transaction(engine=True) as tx:
                BACKLOG.set(await queue.backlog(tx))

    def _done(self, task: asyncio.Task[None]) -> None:
        picked = self._running.pop(task)
        if not task.cancelled() and task.exception() is not None:
            # The job stays picked without a heartbeat, and is tried again when that is noticed.
            log.warning("webhook_failed", delivery_id=str(picked.work.delivery_id), error=repr(task.exception()))

    # One delivery -------------------------------------------------------------------------------------------
    async def _deliver(self, picked: Picked) -> None:
        organization_id = picked.work.organization_id
        async with self._turns, self._database.transaction(organization_id) as tx:
            outgoing = await self._open(tx, picked)
        if outgoing is None:
            return
        headers = signed_headers(
            outgoing.secrets, webhook_id(outgoing.id), int(outgoing.now.timestamp()), outgoing.body
        )
        answer = await self._courier.post(outgoing.url, {**FIXED_HEADERS, **headers}, outgoing.body)
        async with self._turns, self._database.transaction(organization_id) as tx:
            outcome = await self._settle(tx, picked, outgoing, answer)
        DELIVERIES.labels(outcome).inc()

    async def _open(self, tx: Transaction, picked: Picked) -> Outgoing | None:
        """What is to be sent; None where there is nothing to do any more."""
        work = picked.work
        if not await queue.still_mine(tx, picked):
            return None
        found = await store.find_outgoing(tx, work.organization_id, work.delivery_id)
        if found is None or found.run != work.run or found.status is not DeliveryStatus.PENDING:
            await queue.finish(tx, picked)
            return None
        if not found.enabled and found.kind != TEST:
            await store.give_up(tx, work.organization_id, found, "the webhook is disabled")
            await queue.finish(tx, picked)
            DELIVERIES.labels("dropped").inc()
            return None
        return found

    async def _settle(self, tx: Transaction, picked: Picked, sent: Outgoing, answer: Answer) -> str:
        """What came of it, what follows, and the job's end or delay: all of it, or nothing."""
        organization_id = picked.work.organization_id
        if not await queue.still_mine(tx, picked):
            return "overtaken"
        wait_s = _wait_s(sent, answer)
        status, outcome = _fate(answer, wait_s)
        attempt = Attempt(
            n=0,
            at=sent.now,
            duration_ms=answer.duration_ms,
            status_code=answer.status_code,
            error=answer.error,
            answer=answer.body,
        )
        await store.find_endpoint(tx, organization_id, sent.endpoint_id, lock=True)
        if not await store.record_outcome(tx, organization_id, sent, attempt, status, wait_s):
            await queue.finish(tx, picked)
            return "dropped"
        if sent.kind != TEST:
            await self._judge(tx, organization_id, sent, answer)
        if wait_s is None:
            await queue.finish(tx, picked)
        else:
            await queue.put_off(tx, picked, wait_s)
        return outcome

    async def _judge(self, tx: Transaction, organization_id: UUID, sent: Outgoing, answer: Answer) -> None:
        """An endpoint that is gone, or at which nothing has succeeded for days, is not bothered any more."""
        if answer.succeeded:
            await store.mark_working(tx, organization_id, sent.endpoint_id)
            return
        await store.mark_failing(tx, organization_id, sent.endpoint_id, sent.now)
        if answer.status_code == GONE:
            reason = "it answered 410 Gone"
            disabled = await store.disable(tx, organization_id, sent.endpoint_id, reason)
        else:
            reason = f"nothing was delivered to it for {FAILING_FOR.days} days"
            disabled = await store.disable(tx, organization_id, sent.endpoint_id, reason, FAILING_FOR)
        if disabled:
            said = {"reason": reason, "delivery_id": sent.id}
            await audit(tx, organization_id, ENGINE, "webhook_disabled", "Webhook", sent.endpoint_id, said)


def _wait_s(sent: Outgoing, answer: Answer) -> float | None:
    """Until it is tried again; None: it is not."""
    if answer.succeeded or answer.status_code == GONE or sent.kind == TEST:
        return None
    asked = asked_delay_s(answer.retry_after, sent.now) if answer.status_code in ASKS_FOR_PATIENCE else None
    return delay_s(sent.tries + 1, asked, random.random())


def _fate(answer: Answer, wait_s: float | None) -> tuple[DeliveryStatus, str]:
    """The delivery's new status, and the outcome as the metric counts it."""
    if answer.succeeded:
        return DeliveryStatus.DELIVERED, "delivered"
    if wait_s is None:
        return DeliveryStatus.FAILED, "failed"
    return DeliveryStatus.PENDING, "retried"
