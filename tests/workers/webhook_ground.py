"""The product with somebody listening: an organization, a receiver on a real socket, and the workers under a test's hand."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg

from holdfast.accounts.principal import Call
from holdfast.accounts.records import Bootstrap
from holdfast.store.postgres.database import Database
from holdfast.webhooks.courier import Courier
from holdfast.webhooks.records import Delivery, DeliveryStatus, EndpointWithSecret, NewEndpoint
from holdfast.webhooks.service import WebhooksService
from holdfast.workers.deliver_webhooks import DeliverWebhooks
from holdfast.workers.fan_out_webhooks import FanOutWebhooks
from tests.conftest import TestDatabase
from tests.factories import staff_call
from tests.stage import Stage, stage
from tests.workers.receiver import Receiver, receiving


@dataclass
class WebhookGround:
    made: Stage
    receiver: Receiver
    courier: Courier
    service: WebhooksService
    fan_out: FanOutWebhooks
    worker: DeliverWebhooks

    @property
    def call(self) -> Call:
        return staff_call(self.made.first)

    @property
    def database(self) -> Database:
        return self.made.app.database

    async def listen(self, path: str = "/hook", call: Call | None = None, **fields: Any) -> EndpointWithSecret:
        return await self.service.create(call or self.call, NewEndpoint(url=self.receiver.url(path), **fields))

    async def reserve(self, *numbers: int) -> None:
        """Each in a transaction, and a message, of its own."""
        for n in numbers:
            answer = await self.made.reserve(n, self.made.admin)
            assert answer.status_code == 201, answer.text

    async def spread(self) -> None:
        """Everything that has been committed becomes deliveries."""
        while await self.fan_out.once() == 0.0:
            pass

    async def deliver(self, *workers: DeliverWebhooks) -> None:
        """Until nothing is due any more and nothing under way."""
        for _ in range(2_000):
            pauses = [await worker.once() for worker in workers or (self.worker,)]
            if all(pauses):
                return
        raise AssertionError("deliveries do not come to an end")

    async def deliveries(self, endpoint_id: UUID, status: DeliveryStatus | None = None) -> list[Delivery]:
        return (await self.service.deliveries(self.call, endpoint_id, None, status, 1_000)).items

    async def sql(self, query: str, *args: Any) -> list[asyncpg.Record]:
        return await self.made.sql(query, *args)

    async def make_due(self) -> None:
        """What waits for its next try need not wait any longer."""
        await self.sql("UPDATE pgqueuer SET execute_after = now() - interval '1 second' WHERE status = 'queued'")

    def second_worker(self, **options: Any) -> DeliverWebhooks:
        return DeliverWebhooks(self.database, self.courier, **options)

    async def second_organization(self) -> tuple[Bootstrap, Stage]:
        second = await self.made.app.services.accounts.bootstrap("Second")
        other = Stage(self.made.client, self.made.app, self.made.database, second, "", [], [])
        other.event_id = await other.make_event()
        path = f"/api/events/{other.event_id}/seats"
        other.seats = (await other.client.get(path, headers=other.admin)).json()["data"]
        return second, other


@asynccontextmanager
async def webhook_ground(
    database: TestDatabase, *, timeout_s: float = 10.0, stale_s: float = 30.0, batch: int = 500, **settings: Any
) -> AsyncIterator[WebhookGround]:
    async with stage(database, **settings) as made, receiving() as receiver:
        courier = Courier(private_targets=True, timeout_s=timeout_s)
        worker = DeliverWebhooks(made.app.database, courier, stale_s=stale_s)
        try:
            yield WebhookGround(
                made,
                receiver,
                courier,
                WebhooksService(made.app.database, courier),
                FanOutWebhooks(made.app.database, made.app.catalogue, batch),
                worker,
            )
        finally:
            await worker.close()
            await courier.close()


async def until(true: Callable[[], bool], seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while not true():
            await asyncio.sleep(0.01)
