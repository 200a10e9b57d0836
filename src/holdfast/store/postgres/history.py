"""All that the database has of an event's past, for those who judge a run. The server must keep commit timestamps."""

from uuid import UUID

from holdfast.holds.lifecycle import HoldStatus
from holdfast.insight.history_facts import EventRecord, HoldRecord, LoggedMove, Sample
from holdfast.kernel.errors import EventNotFound
from holdfast.store.postgres.database import Database, Row
from holdfast.store.postgres.invariants import log_row, read_event_facts

_ONE_INSTANT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
_MOVES = """
SELECT id, at, pg_xact_commit_timestamp(xmin) AS committed_at, verb, ordinal, zone_no, quantity, old_state::text,
  new_state::text, version, hold_type, hold_id, session_id, user_id
FROM seat_state_events WHERE organization_id = $1 AND event_id = $2 ORDER BY id
"""
_HOLDS = """
SELECT id, ordinal, zone_no, quantity, status::text, held_until, created_at, ended_at, user_id, session_id
FROM holds WHERE organization_id = $1 AND event_id = $2 ORDER BY id
"""


async def read_sample(database: Database, organization_id: UUID, event_id: UUID) -> Sample:
    """The log as it is at one instant, and the event a moment later."""
    async with database.transaction(organization_id) as tx:
        await tx.execute(_ONE_INSTANT)
        read_at = (await tx.now()).timestamp()
        rows = await tx.fetch(_MOVES, organization_id, event_id)
    facts = await read_event_facts(database, organization_id, event_id)
    if facts is None:
        raise EventNotFound
    return Sample(read_at, [_move(row) for row in rows], facts)


async def read_record(database: Database, organization_id: UUID, event_id: UUID, samples: list[Sample]) -> EventRecord:
    """When the run is over and nothing moves any more; `samples` were taken on the way."""
    last = await read_sample(database, organization_id, event_id)
    async with database.transaction(organization_id) as tx:
        holds = await tx.fetch(_HOLDS, organization_id, event_id)
    return EventRecord(
        organization_id=organization_id,
        event_id=event_id,
        last=last,
        holds=[_hold(row) for row in holds],
        samples=samples,
    )


def _move(row: Row) -> LoggedMove:
    return LoggedMove(
        id=row["id"],
        at=row["at"].timestamp(),
        committed_at=row["committed_at"].timestamp(),
        row=log_row(row),
        user_id=row["user_id"],
        session_id=row["session_id"],
    )


def _hold(row: Row) -> HoldRecord:
    held_until, ended_at = row["held_until"], row["ended_at"]
    return HoldRecord(
        hold_id=row["id"],
        ordinal=row["ordinal"],
        zone_no=row["zone_no"],
        quantity=row["quantity"],
        status=HoldStatus(row["status"]),
        held_until=None if held_until is None else held_until.timestamp(),
        created_at=row["created_at"].timestamp(),
        ended_at=None if ended_at is None else ended_at.timestamp(),
        user_id=row["user_id"],
        session_id=row["session_id"],
    )
