"""Looks after an organization's webhooks: where they go, what they say, how it went, and sending again."""

from datetime import datetime
from uuid import UUID

import msgspec
from msgspec import UNSET

from holdfast.accounts.principal import Call
from holdfast.accounts.standing import require_administrator
from holdfast.kernel.errors import EventNotFound, InvalidRequest
from holdfast.kernel.ids import new_id
from holdfast.kernel.problems import Problem
from holdfast.seating.answers import Part, part_of
from holdfast.store.postgres import webhooks as store
from holdfast.store.postgres.database import Database, Transaction
from holdfast.store.postgres.idempotency import lock_key, run_once
from holdfast.store.postgres.trail import write_audit
from holdfast.webhooks.courier import Courier
from holdfast.webhooks.inputs import description_problems, kind_problems, refuse
from holdfast.webhooks.message import message_of_test
from holdfast.webhooks.records import (
    Delivery,
    DeliveryInFull,
    DeliveryStatus,
    Endpoint,
    EndpointChange,
    EndpointWithSecret,
    NewEndpoint,
    Replayed,
)
from holdfast.webhooks.refusals import DeliveryNotFound, TooManyWebhooks, WebhookDisabled, WebhookNotFound
from holdfast.webhooks.signature import new_secret, secret_text
from holdfast.webhooks.target import TargetRefused, parse_target

OVERLAP_S = 86_400.0
ENDPOINTS_MAX = 50
REPLAY_MAX = 10_000
_ENTITY = "Webhook"


class WebhooksService:
    def __init__(self, database: Database, courier: Courier, *, overlap_s: float = OVERLAP_S) -> None:
        """`overlap_s`: so long a secret that was replaced signs too."""
        self._database = database
        self._courier = courier
        self._overlap_s = overlap_s

    # Endpoints ----------------------------------------------------------------------------------------------
    async def create(self, call: Call, wanted: NewEndpoint) -> EndpointWithSecret:
        require_administrator(call.principal)
        problems = kind_problems(wanted.kinds or ()) + description_problems(wanted.description)
        refuse([*await self._url_problems(wanted.url), *problems])

        async def work(tx: Transaction) -> Endpoint:
            await tx.execute("SELECT pg_advisory_xact_lock($1)", lock_key("webhooks", call.organization_id))
            if await store.count_endpoints(tx, call.organization_id) >= ENDPOINTS_MAX:
                raise TooManyWebhooks(ENDPOINTS_MAX)
            await self._require_event(tx, call, wanted.event_id)
            made = await store.insert_endpoint(tx, call.organization_id, new_id(), wanted, new_secret())
            await write_audit(
                tx, call, "webhook_created", _ENTITY, made.id, event_id=made.event_id, changes=_said(made)
            )
            return made

        return await self._with_secret(call, await run_once(self._database, call, work, Endpoint))

    async def endpoints(self, call: Call, after: UUID | None, limit: int) -> Part[Endpoint]:
        require_administrator(call.principal)
        async with self._database.transaction(call.organization_id) as tx:
            found = await store.list_endpoints(tx, call.organization_id, after, limit + 1)
        return part_of(found, limit, lambda endpoint: str(endpoint.id))

    async def get(self, call: Call, endpoint_id: UUID) -> Endpoint:
        require_administrator(call.principal)
        async with self._database.transaction(call.organization_id) as tx:
            return await self._endpoint(tx, call, endpoint_id)

    async def change(self, call: Call, endpoint_id: UUID, change: EndpointChange) -> Endpoint:
        require_administrator(call.principal)
        await self.get(call, endpoint_id)  # before a name is looked up for somebody else's endpoint
        problems = [] if change.url is UNSET else await self._url_problems(change.url)
        problems += [] if change.kinds is UNSET else kind_problems(change.kinds or ())
        problems += [] if change.description is UNSET else description_problems(change.description)
        refuse(problems)

        async def work(tx: Transaction) -> Endpoint:
            known = await self._endpoint(tx, call, endpoint_id, lock=True)
            if change.event_id is not UNSET:
                await self._require_event(tx, call, change.event_id)
            changed = await store.change_endpoint(tx, call.organization_id, known, change)
            given = [name for name in change.__struct_fields__ if getattr(change, name) is not UNSET]
            said = {"fields": given, "before": _said(known), "after": _said(changed)}
            await write_audit(tx, call, "webhook_changed", _ENTITY, endpoint_id, event_id=known.event_id, changes=said)
            return changed

        return await run_once(self._database, call, work, Endpoint)

    async def delete(self, call: Call, endpoint_id: UUID) -> None:
        """With its deliveries; what was under way is not sent any more."""
        require_administrator(call.principal)

        async def work(tx: Transaction) -> None:
            known = await self._endpoint(tx, call, endpoint_id, lock=True)
            await store.delete_endpoint(tx, call.organization_id, endpoint_id)
            await write_audit(tx, call, "webhook_deleted", _ENTITY, endpoint_id, changes=_said(known))

        await self._database.run(call.organization_id, work)

    async def rotate_secret(self, call: Call, endpoint_id: UUID) -> EndpointWithSecret:
        """A new secret; the one before signs too for a while, the one before that no more."""
        require_administrator(call.principal)

        async def work(tx: Transaction) -> Endpoint:
            rotated = await store.rotate_secret(tx, call.organization_id, endpoint_id, new_secret(), self._overlap_s)
            if rotated is None:
                raise WebhookNotFound
            said = {"old_secret_until": rotated.old_secret_until}
            await write_audit(tx, call, "webhook_secret_rotated", _ENTITY, endpoint_id, changes=said)
            return rotated

        return await self._with_secret(call, await run_once(self._database, call, work, Endpoint))

    # Deliveries ---------------------------------------------------------------------------------------------
    async def test(self, call: Call, endpoint_id: UUID) -> Delivery:
        """Sends a message that says nothing happened: at once, once, and even where the endpoint is disabled."""
        require_administrator(call.principal)

        async def work(tx: Transaction) -> Delivery:
            await self._endpoint(tx, call, endpoint_id, lock=True)
            message = message_of_test(endpoint_id, await tx.now())
            (delivery_id,) = await store.send(tx, call.organization_id, [(message, [endpoint_id])])
            said = {"delivery_id": delivery_id}
            await write_audit(tx, call, "webhook_tested", _ENTITY, endpoint_id, changes=said)
            return await self._delivery(tx, call, delivery_id)

        return await run_once(self._database, call, work, Delivery)

    async def deliveries(
        self, call: Call, endpoint_id: UUID, before: UUID | None, status: DeliveryStatus | None, limit: int
    ) -> Part[Delivery]:
        """Newest first."""
        require_administrator(call.principal)
        async with self._database.transaction(call.organization_id) as tx:
            await self._endpoint(tx, call, endpoint_id)
            found = await store.list_deliveries(tx, call.organization_id, endpoint_id, before, status, limit + 1)
        return part_of(found, limit, lambda delivery: str(delivery.id))

    async def delivery(self, call: Call, delivery_id: UUID) -> DeliveryInFull:
        require_administrator(call.principal)
        async with self._database.transaction(call.organization_id) as tx:
            found = await store.find_delivery_in_full(tx, call.organization_id, delivery_id)
        if found is None:
            raise DeliveryNotFound
        return found

    async def replay(self, call: Call, delivery_id: UUID) -> Delivery:
        """The same message with the same id once more, whatever came of it before; tries are counted anew."""
        require_administrator(call.principal)

        async def work(tx: Transaction) -> Delivery:
            known = await self._delivery(tx, call, delivery_id)
            await self._require_enabled(tx, call, known.endpoint_id)
            await store.replay_delivery(tx, call.organization_id, delivery_id)
            said = {"delivery_id": delivery_id}
            await write_audit(tx, call, "webhook_replayed", _ENTITY, known.endpoint_id, changes=said)
            return await self._delivery(tx, call, delivery_id)

        return await run_once(self._database, call, work, Delivery)

    async def replay_failed(self, call: Call, endpoint_id: UUID, since: datetime) -> Replayed:
        """All that was made since and failed, oldest first."""
        require_administrator(call.principal)
        if since.tzinfo is None:
            problem = Problem("/since", "bad_time", "needs an offset from UTC, e.g. Z")
            raise InvalidRequest("since needs an offset from UTC.", [problem])

        async def work(tx: Transaction) -> Replayed:
            await self._require_enabled(tx, call, endpoint_id)
            replayed, remaining = await store.replay_failed(tx, call.organization_id, endpoint_id, since, REPLAY_MAX)
            said = {"since": since, "replayed": replayed}
            await write_audit(tx, call, "webhook_replayed", _ENTITY, endpoint_id, changes=said)
            return Replayed(replayed, remaining)

        return await run_once(self._database, call, work, Replayed)

    # Within ------------------------------------------------------------------------------------------------
    async def _url_problems(self, url: str) -> list[Problem]:
        try:
            await self._courier.check(url)
        except TargetRefused as refused:
            return [Problem("/url", refused.code, refused.detail)]
        return []

    async def _with_secret(self, call: Call, endpoint: Endpoint) -> EndpointWithSecret:
        """Read anew: the answer stored for an Idempotency-Key holds no secret."""
        async with self._database.transaction(call.organization_id) as tx:
            secret = await store.find_secret(tx, call.organization_id, endpoint.id)
        if secret is None:
            raise WebhookNotFound
        return EndpointWithSecret(**msgspec.structs.asdict(endpoint), secret=secret_text(secret))

    async def _endpoint(self, tx: Transaction, call: Call, endpoint_id: UUID, *, lock: bool = False) -> Endpoint:
        found = await store.find_endpoint(tx, call.organization_id, endpoint_id, lock=lock)
        if found is None:
            raise WebhookNotFound
        return found

    async def _require_enabled(self, tx: Transaction, call: Call, endpoint_id: UUID) -> None:
        if not (await self._endpoint(tx, call, endpoint_id, lock=True)).enabled:
            raise WebhookDisabled

    async def _require_event(self, tx: Transaction, call: Call, event_id: UUID | None) -> None:
        if event_id is not None and not await store.event_exists(tx, call.organization_id, event_id):
            raise EventNotFound

    async def _delivery(self, tx: Transaction, call: Call, delivery_id: UUID) -> Delivery:
        found = await store.find_delivery(tx, call.organization_id, delivery_id)
        if found is None:
            raise DeliveryNotFound
        return found


def _said(endpoint: Endpoint) -> dict[str, object]:
    """For the audit: a URL's path and query often hold a secret, its host does not."""
    return {
        "host": parse_target(endpoint.url, private=True).host,
        "kinds": endpoint.kinds,
        "event_id": endpoint.event_id,
        "enabled": endpoint.enabled,
    }
