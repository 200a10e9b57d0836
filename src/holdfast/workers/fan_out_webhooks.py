"""Out of the outbox, to every webhook that listens: each message exactly once, by whichever worker comes first."""

import asyncio
from collections import defaultdict
from uuid import UUID

from holdfast.live.message import Message
from holdfast.seating.view import EventView
from holdfast.store.catalogue import Catalogue
from holdfast.store.postgres import webhook_queue as queue
from holdfast.store.postgres import webhooks as store
from holdfast.store.postgres.database import Database, Transaction
from holdfast.store.postgres.feed import cursor_now
from holdfast.store.postgres.layout_migrations import NumbersChanged, changes_of
from holdfast.webhooks.message import (
    SOLD_OUT,
    Wanted,
    WebhookMessage,
    messages_of,
    moves_places,
    sold_out_message,
    total_places,
)

PAUSE_S = 0.5
IDLE_CURSOR_S = 5.0
"""Where there is nothing to send the cursor is moved this often, so that it need not be written each time."""
BATCH = 500
THREAD_FROM_SEATS = 500
"""Messages about more seats than this are put into words in a thread: the loop has requests to answer."""


class FanOutWebhooks:
    name = "fan_out_webhooks"

    def __init__(self, database: Database, catalogue: Catalogue, batch: int = BATCH) -> None:
        """`batch`: messages in one transaction, about."""
        self._database = database
        self._catalogue = catalogue
        self._batch = batch

    async def once(self) -> float:
        """In one transaction: the cursor moved, and all that lies between written as deliveries and jobs."""
        async with self._database.transaction(engine=True) as tx:
            taken = await queue.take_cursor(tx, IDLE_CURSOR_S)
            if taken is None:
                return PAUSE_S
            cursor, stale = taken
            organizations = await queue.listeners(tx)
            if not organizations:
                if stale:
                    await queue.move_cursor(tx, await cursor_now(tx))
                return PAUSE_S
            news = await queue.read_news_of(tx, cursor, organizations, self._batch)
            if news.messages or stale:
                await queue.move_cursor(tx, news.cursor)
            by_organization: dict[UUID, list[Message]] = defaultdict(list)
            for message in news.messages:
                by_organization[message.organization_id].append(message)
            for organization_id, messages in by_organization.items():
                await queue.enter(tx, organization_id)
                await self._fan_out(tx, organization_id, messages)
        return 0.0 if news.more else PAUSE_S

    async def _fan_out(self, tx: Transaction, organization_id: UUID, messages: list[Message]) -> None:
        listening = await store.listening(tx, organization_id)
        changes = await changes_of(tx, organization_id, [m.event_id for m in messages if m.event_id is not None])
        sent: list[tuple[WebhookMessage, list[UUID]]] = []
        for message in messages:
            endpoints = _who_wants(listening, message.kind, message)
            if endpoints:
                sent += [(part, endpoints) for part in await self._in_words(message, changes)]
        # The newest move of each event: by then the last place may be gone.
        moves = {message.event_id: message for message in messages if moves_places(message)}
        for event_id, message in moves.items():
            endpoints = _who_wants(listening, SOLD_OUT, message)
            view = await self._view(organization_id, event_id) if endpoints else None
            told = None if view is None else await self._sold_out(tx, view)
            sent += [] if told is None else [(told, endpoints)]
        await store.send(tx, organization_id, sent)

    async def _in_words(self, message: Message, changes: list[NumbersChanged]) -> list[WebhookMessage]:
        view = await self._view(message.organization_id, message.event_id)
        name, layout = (None, None) if view is None else (view.name, view.layout)
        if view is not None and view.layout_id is not None:
            meant = _version_of(message, changes) or view.layout_version
            if meant is not None and meant != view.layout_version:
                layout = await self._catalogue.layout(view.organization_id, view.layout_id, meant)
        if len(message.ordinals or message.quantities) < THREAD_FROM_SEATS:
            await asyncio.sleep(0)
            return messages_of(message, name, layout)
        return await asyncio.to_thread(messages_of, message, name, layout)

    async def _sold_out(self, tx: Transaction, view: EventView) -> WebhookMessage | None:
        """Once each time the last place goes; told again only after one had come free."""
        occupancy = await store.occupancy(tx, view.organization_id, view.id, total_places(view.layout))
        if not await store.mark_sold_out(tx, view.organization_id, view.id, occupancy.available <= 0):
            return None
        return sold_out_message(view.id, view.name, await tx.now(), occupancy)

    async def _view(self, organization_id: UUID, event_id: UUID | None) -> EventView | None:
        return None if event_id is None else await self._catalogue.event(organization_id, event_id)


def _version_of(message: Message, changes: list[NumbersChanged]) -> int | None:
    """In which version of the layout the message is meant; None: in that which the event has now."""
    later = [c for c in changes if c.event_id == message.event_id and message.id < c.outbox_id]
    return later[0].from_version if later else None


def _who_wants(listening: list[Wanted], kind: str, message: Message) -> list[UUID]:
    return [one.endpoint_id for one in listening if one.wants(kind, message.event_id, message.at)]
