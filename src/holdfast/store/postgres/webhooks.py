"""Endpoints, messages and deliveries of webhooks; all within the transaction of one organization."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from holdfast.kernel.ids import new_id
from holdfast.store.postgres.database import Row, Transaction
from holdfast.store.postgres.webhook_queue import WebhookJob, enqueue
from holdfast.webhooks.message import Occupancy, Wanted, WebhookMessage
from holdfast.webhooks.records import (
    Attempt,
    Delivery,
    DeliveryInFull,
    DeliveryStatus,
    Endpoint,
    EndpointChange,
    NewEndpoint,
    webhook_id,
)

_ENDPOINT = """
id, url, description, kinds, event_id, enabled, disabled_reason, failing_since,
CASE WHEN old_secret_until > holdfast_now() THEN old_secret_until END AS old_secret_until, created_at, updated_at
"""
INSERT_ENDPOINT = f"""
INSERT INTO webhook_endpoints (organization_id, id, url, description, kinds, event_id, enabled, secret, created_at,
  updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, holdfast_now(), holdfast_now())
RETURNING {_ENDPOINT}
"""
FIND_ENDPOINT = f"SELECT {_ENDPOINT} FROM webhook_endpoints WHERE organization_id = $1 AND id = $2"
# Before any of its deliveries is locked, so that no two wait for each other. Fan-out is not kept waiting by it.
LOCK_ENDPOINT = f"{FIND_ENDPOINT} FOR NO KEY UPDATE"
LIST_ENDPOINTS = f"""
SELECT {_ENDPOINT} FROM webhook_endpoints
WHERE organization_id = $1 AND ($2::uuid IS NULL OR id > $2) ORDER BY id LIMIT $3
"""
COUNT_ENDPOINTS = "SELECT count(*) FROM webhook_endpoints WHERE organization_id = $1"
# An endpoint that is enabled again begins anew.
CHANGE_ENDPOINT = f"""
UPDATE webhook_endpoints SET url = $3, description = $4, kinds = $5, event_id = $6, enabled = $7,
  disabled_reason = CASE WHEN $7 THEN NULL ELSE disabled_reason END,
  failing_since = CASE WHEN $7 AND NOT enabled THEN NULL ELSE failing_since END, updated_at = holdfast_now()
WHERE organization_id = $1 AND id = $2
RETURNING {_ENDPOINT}
"""
DELETE_ENDPOINT = "DELETE FROM webhook_endpoints WHERE organization_id = $1 AND id = $2 RETURNING id"
FIND_KEY = "SELECT secret FROM webhook_endpoints WHERE organization_id = $1 AND id = $2"
ROTATE_SECRET = f"""
UPDATE webhook_endpoints SET old_secret = secret, old_secret_until = holdfast_now() + make_interval(secs => $4),
  secret = $3, updated_at = holdfast_now()
WHERE organization_id = $1 AND id = $2
RETURNING {_ENDPOINT}
"""
EVENT_EXISTS = "SELECT EXISTS (SELECT FROM events WHERE organization_id = $1 AND id = $2)"

_DELIVERY = """
d.id, d.endpoint_id, m.kind, m.event_id, d.status, d.attempts, d.status_code, d.error, d.next_attempt_at, d.created_at,
d.ended_at
"""
_MESSAGES = """
FROM webhook_deliveries d
JOIN webhook_messages m ON m.organization_id = d.organization_id AND m.id = d.message_id
"""
FIND_DELIVERY = f"SELECT {_DELIVERY} {_MESSAGES} WHERE d.organization_id = $1 AND d.id = $2"
FIND_DELIVERY_IN_FULL = f"SELECT {_DELIVERY}, m.body {_MESSAGES} WHERE d.organization_id = $1 AND d.id = $2"
LIST_DELIVERIES = f"""SELECT {_DELIVERY} {_MESSAGES}
WHERE d.organization_id = $1 AND d.endpoint_id = $2 AND ($3::uuid IS NULL OR d.id < $3)
  AND ($4::text IS NULL OR d.status = $4)
ORDER BY d.id DESC LIMIT $5
"""
LIST_ATTEMPTS = """
SELECT n, at, duration_ms, status_code, error, answer FROM webhook_attempts
WHERE organization_id = $1 AND delivery_id = $2 ORDER BY n
"""
_REPLAY = """
UPDATE webhook_deliveries d
SET status = 'pending', run = d.run + 1, tries = 0, next_attempt_at = holdfast_now(), ended_at = NULL
"""
REPLAY_ONE = f"{_REPLAY} WHERE d.organization_id = $1 AND d.id = $2 RETURNING d.id, d.endpoint_id, d.run"
REPLAY_FAILED = f"""{_REPLAY}
WHERE d.organization_id = $1 AND d.status = 'failed' AND d.id IN (
  SELECT f.id FROM webhook_deliveries f
  WHERE f.organization_id = $1 AND f.endpoint_id = $2 AND f.status = 'failed' AND f.created_at >= $3
  ORDER BY f.created_at LIMIT $4)
RETURNING d.id, d.endpoint_id, d.run
"""
COUNT_FAILED = """
SELECT count(*) FROM webhook_deliveries
WHERE organization_id = $1 AND endpoint_id = $2 AND status = 'failed' AND created_at >= $3
"""

# Whoever listens is kept from being deleted until its deliveries are written.
LISTENING = """
SELECT id, kinds, event_id, created_at FROM webhook_endpoints
WHERE organization_id = $1 AND enabled ORDER BY id FOR KEY SHARE
"""
INSERT_MESSAGES = """
INSERT INTO webhook_messages (organization_id, id, kind, event_id, body, outbox_id, part, created_at)
SELECT $1, m.id, m.kind, m.event_id, m.body, m.outbox_id, m.part, holdfast_now()
FROM unnest($2::uuid[], $3::text[], $4::uuid[], $5::bytea[], $6::bigint[], $7::smallint[])
  AS m (id, kind, event_id, body, outbox_id, part)
ON CONFLICT (organization_id, outbox_id, part) DO NOTHING
RETURNING id
"""
INSERT_DELIVERIES = """
INSERT INTO webhook_deliveries (organization_id, id, endpoint_id, message_id, next_attempt_at, created_at)
SELECT $1, d.id, d.endpoint_id, d.message_id, holdfast_now(), holdfast_now()
FROM unnest($2::uuid[], $3::uuid[], $4::uuid[]) AS d (id, endpoint_id, message_id)
"""
OCCUPANCY = """
SELECT coalesce(sum(c.places) FILTER (WHERE c.state = 'held'), 0)::integer AS held,
  coalesce(sum(c.places) FILTER (WHERE c.state = 'sold'), 0)::integer AS sold,
  coalesce(sum(c.places) FILTER (WHERE c.state = 'blocked'), 0)::integer AS blocked
FROM (
  SELECT state, places FROM occupancy_counts WHERE organization_id = $1 AND event_id = $2
  UNION ALL
  SELECT state, change FROM occupancy_changes WHERE organization_id = $1 AND event_id = $2) c
"""
MARK_SOLD_OUT = """
INSERT INTO sold_out_events (organization_id, event_id, at) VALUES ($1, $2, holdfast_now())
ON CONFLICT DO NOTHING RETURNING event_id
"""
UNMARK_SOLD_OUT = "DELETE FROM sold_out_events WHERE organization_id = $1 AND event_id = $2"

FIND_OUTGOING = """
SELECT d.id, d.run, d.tries, d.attempts, d.status, holdfast_now() AS now, d.next_attempt_at, m.kind, m.body,
  e.id AS endpoint_id, e.url, e.enabled, e.secret,
  CASE WHEN e.old_secret_until > holdfast_now() THEN e.old_secret END AS old_secret
FROM webhook_deliveries d
JOIN webhook_messages m ON m.organization_id = d.organization_id AND m.id = d.message_id
JOIN webhook_endpoints e ON e.organization_id = d.organization_id AND e.id = d.endpoint_id
WHERE d.organization_id = $1 AND d.id = $2
"""
RECORD_OUTCOME = """
UPDATE webhook_deliveries
SET status = $5, attempts = attempts + 1, tries = tries + 1, status_code = $6, error = $7,
  next_attempt_at = holdfast_now() + make_interval(secs => $8),
  ended_at = CASE WHEN $5 <> 'pending' THEN holdfast_now() END
WHERE organization_id = $1 AND id = $2 AND run = $3 AND attempts = $4 AND status = 'pending'
RETURNING attempts
"""
INSERT_ATTEMPT = """
INSERT INTO webhook_attempts (organization_id, delivery_id, n, at, duration_ms, status_code, error, answer)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
"""
GIVE_UP = """
UPDATE webhook_deliveries SET status = 'failed', error = $4, next_attempt_at = NULL, ended_at = holdfast_now()
WHERE organization_id = $1 AND id = $2 AND run = $3 AND status = 'pending'
"""
MARK_WORKING = """
UPDATE webhook_endpoints SET failing_since = NULL
WHERE organization_id = $1 AND id = $2 AND failing_since IS NOT NULL
"""
MARK_FAILING = """
UPDATE webhook_endpoints SET failing_since = $3 WHERE organization_id = $1 AND id = $2 AND failing_since IS NULL
"""
# $4: how long it must have failed; null: disabled at once.
DISABLE = """
UPDATE webhook_endpoints SET enabled = false, disabled_reason = $3, updated_at = holdfast_now()
WHERE organization_id = $1 AND id = $2 AND enabled AND ($4::interval IS NULL OR failing_since <= holdfast_now() - $4)
RETURNING id
"""
FORGET_OLD = """
DELETE FROM webhook_messages WHERE organization_id = $1 AND id IN (
  SELECT m.id FROM webhook_messages m
  WHERE m.organization_id = $1 AND m.created_at < holdfast_now() - make_interval(days => $2)
  ORDER BY m.created_at LIMIT $3)
"""


class Outgoing(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery with all that an attempt needs."""

    id: UUID
    run: int
    tries: int
    attempts: int
    status: DeliveryStatus
    now: datetime
    """The database's clock, when this was read."""
    next_attempt_at: datetime | None
    kind: str
    body: bytes
    endpoint_id: UUID
    url: str
    enabled: bool
    secrets: list[bytes]
    """The newest first."""


# Endpoints --------------------------------------------------------------------------------------------------------
async def insert_endpoint(
    tx: Transaction, organization_id: UUID, endpoint_id: UUID, wanted: NewEndpoint, secret: bytes
) -> Endpoint:
    row = await tx.fetchrow(
        INSERT_ENDPOINT,
        organization_id,
        endpoint_id,
        wanted.url,
        wanted.description,
        sorted(set(wanted.kinds or ())),
        wanted.event_id,
        wanted.enabled,
        secret,
    )
    assert row is not None
    return Endpoint(**row)


async def find_endpoint(
    tx: Transaction, organization_id: UUID, endpoint_id: UUID, *, lock: bool = False
) -> Endpoint | None:
    row = await tx.fetchrow(LOCK_ENDPOINT if lock else FIND_ENDPOINT, organization_id, endpoint_id)
    return None if row is None else Endpoint(**row)


async def list_endpoints(tx: Transaction, organization_id: UUID, after: UUID | None, limit: int) -> list[Endpoint]:
    return [Endpoint(**row) for row in await tx.fetch(LIST_ENDPOINTS, organization_id, after, limit)]


async def count_endpoints(tx: Transaction, organization_id: UUID) -> int:
    count: int = await tx.fetchval(COUNT_ENDPOINTS, organization_id)
    return count


async def change_endpoint(tx: Transaction, organization_id: UUID, known: Endpoint, change: EndpointChange) -> Endpoint:
    """The caller's transaction has locked it."""
    given = {name: value for name in change.__struct_fields__ if (value := getattr(change, name)) is not msgspec.UNSET}
    wanted = msgspec.structs.replace(known, **given)
    row = await tx.fetchrow(
        CHANGE_ENDPOINT,
        organization_id,
        known.id,
        wanted.url,
        wanted.description,
        sorted(set(wanted.kinds or ())),
        wanted.event_id,
        wanted.enabled,
    )
    assert row is not None
    return Endpoint(**row)


async def delete_endpoint(tx: Transaction, organization_id: UUID, endpoint_id: UUID) -> bool:
    """With its deliveries and their log."""
    return await tx.fetchval(DELETE_ENDPOINT, organization_id, endpoint_id) is not None


async def find_secret(tx: Transaction, organization_id: UUID, endpoint_id: UUID) -> bytes | None:
    secret: bytes | None = await tx.fetchval(FIND_KEY, organization_id, endpoint_id)
    return secret


async def rotate_secret(
    tx: Transaction, organization_id: UUID, endpoint_id: UUID, secret: bytes, overlap_s: float
) -> Endpoint | None:
    row = await tx.fetchrow(ROTATE_SECRET, organization_id, endpoint_id, secret, overlap_s)
    return None if row is None else Endpoint(**row)


async def event_exists(tx: Transaction, organization_id: UUID, event_id: UUID) -> bool:
    found: bool = await tx.fetchval(EVENT_EXISTS, organization_id, event_id)
    return found


# Deliveries -------------------------------------------------------------------------------------------------------
async def find_delivery(tx: Transaction, organization_id: UUID, delivery_id: UUID) -> Delivery | None:
    row = await tx.fetchrow(FIND_DELIVERY, organization_id, delivery_id)
    return None if row is None else Delivery(**_facts(row))


async def find_delivery_in_full(tx: Transaction, organization_id: UUID, delivery_id: UUID) -> DeliveryInFull | None:
    row = await tx.fetchrow(FIND_DELIVERY_IN_FULL, organization_id, delivery_id)
    if row is None:
        return None
    log = [Attempt(**attempt) for attempt in await tx.fetch(LIST_ATTEMPTS, organization_id, delivery_id)]
    return DeliveryInFull(**{**_facts(row), "body": msgspec.Raw(row["body"])}, log=log)


async def list_deliveries(
    tx: Transaction,
    organization_id: UUID,
    endpoint_id: UUID,
    before: UUID | None,
    status: DeliveryStatus | None,
    limit: int,
) -> list[Delivery]:
    """Newest first."""
    rows = await tx.fetch(LIST_DELIVERIES, organization_id, endpoint_id, before, status, limit)
    return [Delivery(**_facts(row)) for row in rows]


def _facts(row: Row) -> dict[str, Any]:
    return {**row, "status": DeliveryStatus(row["status"]), "webhook_id": webhook_id(row["id"])}


async def replay_delivery(tx: Transaction, organization_id: UUID, delivery_id: UUID) -> None:
    await _enqueue_runs(tx, organization_id, await tx.fetch(REPLAY_ONE, organization_id, delivery_id))


async def replay_failed(
    tx: Transaction, organization_id: UUID, endpoint_id: UUID, since: datetime, limit: int
) -> tuple[int, int]:
    """How many are sent again, oldest first, and how many more there are."""
    rows = await tx.fetch(REPLAY_FAILED, organization_id, endpoint_id, since, limit)
    await _enqueue_runs(tx, organization_id, rows)
    return len(rows), await tx.fetchval(COUNT_FAILED, organization_id, endpoint_id, since)


async def _enqueue_runs(tx: Transaction, organization_id: UUID, rows: Sequence[Row]) -> None:
    await enqueue(tx, [WebhookJob(organization_id, row["endpoint_id"], row["id"], row["run"]) for row in rows])


# Fan-out ----------------------------------------------------------------------------------------------------------
async def listening(tx: Transaction, organization_id: UUID) -> list[Wanted]:
    return [
        Wanted(
            endpoint_id=row["id"],
            kinds=frozenset(row["kinds"]),
            event_id=row["event_id"],
            since=row["created_at"],
        )
        for row in await tx.fetch(LISTENING, organization_id)
    ]


async def send(
    tx: Transaction, organization_id: UUID, messages: Sequence[tuple[WebhookMessage, Sequence[UUID]]]
) -> list[UUID]:
    """Each message to these endpoints: deliveries and jobs. A part of an outbox row that was sent before is skipped."""
    named = [(new_id(), message, endpoints) for message, endpoints in messages if endpoints]
    if not named:
        return []
    rows = await tx.fetch(
        INSERT_MESSAGES,
        organization_id,
        [message_id for message_id, _, _ in named],
        [message.kind for _, message, _ in named],
        [message.event_id for _, message, _ in named],
        [message.body for _, message, _ in named],
        [message.outbox_id for _, message, _ in named],
        [message.part for _, message, _ in named],
    )
    written = {row["id"] for row in rows}
    jobs: list[WebhookJob] = []
    of_message: list[UUID] = []
    for message_id, _, endpoints in named:
        if message_id in written:
            jobs += [WebhookJob(organization_id, endpoint_id, new_id(), 1) for endpoint_id in endpoints]
            of_message += [message_id] * len(endpoints)
    deliveries = [job.delivery_id for job in jobs]
    await tx.execute(INSERT_DELIVERIES, organization_id, deliveries, [job.endpoint_id for job in jobs], of_message)
    await enqueue(tx, jobs)
    return deliveries


async def occupancy(tx: Transaction, organization_id: UUID, event_id: UUID, total: int) -> Occupancy:
    row = await tx.fetchrow(OCCUPANCY, organization_id, event_id)
    assert row is not None
    return Occupancy(**row, total=total)


async def mark_sold_out(tx: Transaction, organization_id: UUID, event_id: UUID, sold_out: bool) -> bool:
    """Whether it was not known to be sold out before, and is now."""
    if sold_out:
        return await tx.fetchval(MARK_SOLD_OUT, organization_id, event_id) is not None
    await tx.execute(UNMARK_SOLD_OUT, organization_id, event_id)
    return False


# Attempts ---------------------------------------------------------------------------------------------------------
async def find_outgoing(tx: Transaction, organization_id: UUID, delivery_id: UUID) -> Outgoing | None:
    row = await tx.fetchrow(FIND_OUTGOING, organization_id, delivery_id)
    if row is None:
        return None
    facts = dict(row)
    secrets = [secret for secret in (facts.pop("secret"), facts.pop("old_secret")) if secret is not None]
    return Outgoing(**{**facts, "status": DeliveryStatus(row["status"])}, secrets=secrets)


async def record_outcome(
    tx: Transaction,
    organization_id: UUID,
    sent: Outgoing,
    attempt: Attempt,
    status: DeliveryStatus,
    next_s: float | None,
) -> bool:
    """False where the delivery has been replayed or deleted in the meantime: then nothing is written."""
    n = await tx.fetchval(
        RECORD_OUTCOME,
        organization_id,
        sent.id,
        sent.run,
        sent.attempts,
        status,
        attempt.status_code,
        attempt.error,
        next_s,
    )
    if n is None:
        return False
    await tx.execute(
        INSERT_ATTEMPT,
        organization_id,
        sent.id,
        n,
        attempt.at,
        attempt.duration_ms,
        attempt.status_code,
        attempt.error,
        attempt.answer,
    )
    return True


async def give_up(tx: Transaction, organization_id: UUID, outgoing: Outgoing, error: str) -> None:
    """Without an attempt."""
    await tx.execute(GIVE_UP, organization_id, outgoing.id, outgoing.run, error)


async def mark_working(tx: Transaction, organization_id: UUID, endpoint_id: UUID) -> None:
    await tx.execute(MARK_WORKING, organization_id, endpoint_id)


async def mark_failing(tx: Transaction, organization_id: UUID, endpoint_id: UUID, at: datetime) -> None:
    await tx.execute(MARK_FAILING, organization_id, endpoint_id, at)


async def disable(
    tx: Transaction, organization_id: UUID, endpoint_id: UUID, reason: str, failing_for: timedelta | None = None
) -> bool:
    """At once, or only if it has failed for so long. Whether this call disabled it."""
    return await tx.fetchval(DISABLE, organization_id, endpoint_id, reason, failing_for) is not None


async def forget_old(tx: Transaction, organization_id: UUID, days: int, limit: int) -> int:
    """Messages so old, with their deliveries and logs."""
    return int((await tx.execute(FORGET_OLD, organization_id, days, limit)).split()[-1])
