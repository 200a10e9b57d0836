"""The queue of webhook deliveries, kept by pgqueuer, and the place up to which the outbox has been fanned out.

A job names a delivery. It is put into the queue by the transaction that writes the delivery, and taken out, or put off,
by the one that writes down what came of an attempt: no crash can come between the two. Each endpoint is an entrypoint of
its own, so that pgqueuer's limit bounds how much goes to it at once, among all workers.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol, Self
from uuid import UUID

import msgspec
from pgqueuer.adapters.persistence.qb import QueryBuilderEnvironment, QueryQueueBuilder, QuerySchedulerBuilder
from pgqueuer.domain.models import Job
from pgqueuer.domain.settings import DBSettings, Durability
from pgqueuer.domain.types import Channel, QueueEntrypoint, QueueManagerId
from pgqueuer.ports.driver import NotifyCallback, TaskManagerPort
from pgqueuer.ports.repository import EntrypointExecutionParameter
from pgqueuer.queries import Queries

from holdfast.live.message import Message
from holdfast.store.postgres.database import Database, Row, Transaction
from holdfast.store.postgres.feed import Cursor, as_message

PREFIX = "webhook:"
FEED = "webhooks"

# In the engine's role: how far the outbox has been fanned out. A place that lies in the future was restored from another
# server's backup, where transactions had other numbers: then it begins anew.
TAKE_CURSOR = """
SELECT CASE WHEN pg_snapshot_xmax(cursor::pg_snapshot) > pg_snapshot_xmax(pg_current_snapshot())
    THEN pg_current_snapshot()::text ELSE cursor END AS cursor,
  moved_at < clock_timestamp() - make_interval(secs => $2) AS stale
FROM feed_cursors WHERE name = $1 FOR UPDATE SKIP LOCKED
"""
MOVE_CURSOR = "UPDATE feed_cursors SET cursor = $2, moved_at = clock_timestamp() WHERE name = $1"
LISTENERS = "SELECT DISTINCT organization_id FROM webhook_endpoints WHERE enabled"
BACKLOG = "SELECT count(*) FROM webhook_deliveries WHERE status = 'pending' AND next_attempt_at <= holdfast_now()"
# As the change feed, of some organizations and not too much at once: a transaction's messages stay together. The
# condition on the organization is written so that it cannot draw the planner to an organization's whole outbox.
NEWS_OF_LISTENERS = """
SELECT s.snapshot, o.*
FROM (SELECT pg_current_snapshot()::text AS snapshot) s
LEFT JOIN LATERAL (
  SELECT o.organization_id, o.id, o.xid::text::bigint AS xid, o.at, o.kind, o.event_id, o.actor, o.source,
    o.state::text AS state, o.hold_type, o.held_until, o.ordinals, o.versions, o.hold_ids, o.user_ids, o.quantities,
    o.zone_no, o.zone_version, o.zone_held, o.zone_sold, o.zone_blocked, o.payload
  FROM outbox o
  WHERE o.xid >= pg_snapshot_xmin($1::text::pg_snapshot) AND NOT pg_visible_in_snapshot(o.xid, $1::text::pg_snapshot)
    AND (o.organization_id = ANY ($2)) IS TRUE
  ORDER BY o.xid FETCH FIRST ($3) ROWS WITH TIES) o ON true
ORDER BY o.xid, o.id
"""
ENTER = "SELECT set_config('role', 'none', true), set_config('holdfast.organization_id', $1, true)"

# Endpoints with something to do, found by leaping from one to the next in the index, and those whose worker is gone.
READY = """
WITH RECURSIVE named AS (
  (SELECT p.entrypoint FROM pgqueuer p WHERE p.status = 'queued' AND p.entrypoint >= $1 ORDER BY p.entrypoint LIMIT 1)
  UNION ALL
  SELECT (SELECT p.entrypoint FROM pgqueuer p WHERE p.status = 'queued' AND p.entrypoint > n.entrypoint
          ORDER BY p.entrypoint LIMIT 1)
  FROM named n WHERE n.entrypoint IS NOT NULL)
SELECT n.entrypoint FROM named n
WHERE starts_with(n.entrypoint, $1) AND EXISTS (
  SELECT FROM pgqueuer p WHERE p.status = 'queued' AND p.entrypoint = n.entrypoint AND p.execute_after < now())
UNION
SELECT p.entrypoint FROM pgqueuer p
WHERE p.status = 'picked' AND p.heartbeat < now() - make_interval(secs => $2) AND starts_with(p.entrypoint, $1)
"""
# Held until the transaction ends, so that nobody takes it over in between.
HOLD_JOB = "SELECT FROM pgqueuer WHERE id = $1 AND queue_manager_id = $2 AND status = 'picked' FOR UPDATE"
FORGET_LOG = "DELETE FROM pgqueuer_log WHERE created < now() - interval '1 day'"

# Every name in full: left out, pgqueuer would take it from the environment, even from variables such as FUNCTION.
NAMES = DBSettings(
    prefix="",
    db_schema=None,
    channel=Channel("ch_pgqueuer"),
    function="fn_pgqueuer_changed",
    statistics_table="pgqueuer_statistics",
    queue_status_type="pgqueuer_status",
    queue_table="pgqueuer",
    queue_table_log="pgqueuer_log",
    trigger="tg_pgqueuer_changed",
    schedules_table="pgqueuer_schedules",
    durability=Durability.balanced,
)


class WebhookJob(msgspec.Struct, frozen=True):
    organization_id: UUID
    endpoint_id: UUID
    delivery_id: UUID
    run: int


class Picked(msgspec.Struct, frozen=True):
    """A job that is this worker's until its heartbeat stops."""

    job: Job
    work: WebhookJob


class News(msgspec.Struct, frozen=True):
    cursor: Cursor
    messages: list[Message]
    more: bool


class _Statements(Protocol):
    async def fetch(self, query: str, *args: object) -> list[Row]: ...
    async def execute(self, query: str, *args: object) -> str: ...


class _Driver:
    """pgqueuer's statements within a transaction of ours. Nobody is notified: workers look for themselves."""

    def __init__(self, tx: _Statements) -> None:
        self._tx = tx

    async def fetch(self, query: str, *args: object) -> list[dict[str, object]]:
        return [dict(row) for row in await self._tx.fetch(query, *args)]

    async def execute(self, query: str, *args: object) -> str:
        return await self._tx.execute(query, *args)

    async def add_listener(self, channel: str, callback: NotifyCallback) -> None:
        raise NotImplementedError

    async def notify(self, channel: str, payload: str) -> None:
        raise NotImplementedError

    @property
    def shutdown(self) -> asyncio.Event:
        raise NotImplementedError

    @property
    def tm(self) -> TaskManagerPort:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None


_ENVIRONMENT = QueryBuilderEnvironment(NAMES)
_BUILDER = QueryQueueBuilder(NAMES)
_SCHEDULES = QuerySchedulerBuilder(NAMES)


def queries(tx: _Statements) -> Queries:
    return Queries(_Driver(tx), _ENVIRONMENT, _BUILDER, _SCHEDULES)


# Fan-out ----------------------------------------------------------------------------------------------------------
async def take_cursor(tx: Transaction, stale_s: float) -> tuple[Cursor, bool] | None:
    """Locked until this transaction ends, and whether it has not moved for long. None: somebody else has it."""
    row = await tx.fetchrow(TAKE_CURSOR, FEED, stale_s)
    return None if row is None else (row["cursor"], row["stale"])


async def move_cursor(tx: Transaction, cursor: Cursor) -> None:
    await tx.execute(MOVE_CURSOR, FEED, cursor)


async def listeners(tx: Transaction) -> list[UUID]:
    """Organizations with an endpoint that is enabled."""
    return [row["organization_id"] for row in await tx.fetch(LISTENERS)]


async def read_news_of(tx: Transaction, cursor: Cursor, organizations: list[UUID], limit: int) -> News:
    """What these organizations' transactions have committed since; the oldest where it is more than the limit."""
    rows = await tx.fetch(NEWS_OF_LISTENERS, cursor, organizations, limit)
    messages = [as_message(row) for row in rows if row["id"] is not None]
    more = len(messages) >= limit
    snapshot: Cursor = rows[0]["snapshot"]
    return News(bounded(snapshot, messages[-1].xid + 1) if more else snapshot, messages, more)


def bounded(cursor: Cursor, below: int) -> Cursor:
    """The cursor as if transactions from this number on were still to come."""
    _, end, running = cursor.split(":")
    last = min(int(end), below)
    open_ones = [number for number in map(int, filter(None, running.split(","))) if number < last]
    return f"{min(open_ones, default=last)}:{last}:{','.join(map(str, open_ones))}"


async def enter(tx: Transaction, organization_id: UUID) -> None:
    """Out of the engine's role, and into an organization, or from one into the next."""
    await tx.execute(ENTER, str(organization_id))


async def backlog(tx: Transaction) -> int:
    """As the engine: deliveries that are due."""
    count: int = await tx.fetchval(BACKLOG)
    return count


# Jobs -------------------------------------------------------------------------------------------------------------
async def enqueue(tx: Transaction, jobs: Sequence[WebhookJob]) -> None:
    """To be done at once. A job that is in the queue already is not put there twice."""
    if jobs:
        await queries(tx).enqueue(
            [f"{PREFIX}{job.endpoint_id}" for job in jobs],
            [msgspec.json.encode(job) for job in jobs],
            [0] * len(jobs),
            dedupe_key=[f"{PREFIX}{job.delivery_id}:{job.run}" for job in jobs],
            on_conflict="skip",
        )


async def pick(database: Database, worker_id: UUID, *, batch: int, per_endpoint: int, stale_s: float) -> list[Picked]:
    """Jobs that are due, of every endpoint as many as may go to it at once; and those of a worker that died."""
    async with database.transaction() as tx:
        ready = [row["entrypoint"] for row in await tx.fetch(READY, PREFIX, stale_s)]
        if not ready:
            return []
        limit = EntrypointExecutionParameter(concurrency_limit=per_endpoint)
        jobs = await queries(tx).dequeue(
            batch_size=batch,
            entrypoints={QueueEntrypoint(name): limit for name in ready},
            queue_manager_id=QueueManagerId(worker_id),
            global_concurrency_limit=None,
            heartbeat_timeout=timedelta(seconds=stale_s),
        )
    return [Picked(job, msgspec.json.decode(job.payload or b"", type=WebhookJob)) for job in jobs]


async def keep(database: Database, picked: Sequence[Picked]) -> None:
    """The heartbeat: these are still being worked on."""
    async with database.transaction() as tx:
        await queries(tx).update_heartbeat([one.job.id for one in picked])


async def still_mine(tx: Transaction, picked: Picked) -> bool:
    """False where this worker was thought dead, and another has taken over: the job is no longer its business."""
    return await tx.fetchrow(HOLD_JOB, picked.job.id, picked.job.queue_manager_id) is not None


async def finish(tx: Transaction, picked: Picked) -> None:
    await queries(tx).log_jobs([(picked.job, "successful", None)])


async def put_off(tx: Transaction, picked: Picked, delay_s: float) -> None:
    await queries(tx).retry_job(picked.job, timedelta(seconds=delay_s), None)


async def forget_log(tx: Transaction) -> None:
    await tx.execute(FORGET_LOG)
