"""What is left behind: audit entries and messages written beside a change, and the reading of audit and state log."""

from typing import Any
from uuid import UUID

import msgspec

from holdfast.accounts.principal import Call
from holdfast.store.postgres.database import Row, Transaction

WRITE_AUDIT = """
INSERT INTO audit_entries (organization_id, at, action, entity_type, entity_id, event_id, actor, user_id, ip,
  user_agent, request_id, reason, changes)
VALUES ($1, holdfast_now(), $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
"""
SEND_MESSAGE = """
INSERT INTO outbox (organization_id, at, kind, event_id, payload) VALUES ($1, holdfast_now(), $2, $3, $4)
"""
LIST_AUDIT = """
SELECT id, at, action, entity_type, entity_id, event_id, actor, user_id, ip, user_agent, request_id, reason, changes
FROM audit_entries
WHERE organization_id = $1
  AND ($2::bigint IS NULL OR id < $2)
  AND ($3::text IS NULL OR action = $3)
  AND ($4::uuid IS NULL OR event_id = $4)
  AND ($5::uuid IS NULL OR user_id = $5)
  AND ($6::uuid IS NULL OR entity_id = $6)
ORDER BY id DESC LIMIT $7
"""
# Ids are given before the commit, so a row may appear behind one already read: whoever must miss nothing reads the
# outbox, this is for people.
LIST_MOVES = """
SELECT id, at, verb, ordinal, zone_no, quantity, old_state::text, new_state::text, version, hold_type, hold_id,
  session_id, actor, user_id, reason
FROM seat_state_events
WHERE organization_id = $1 AND event_id = $2 AND id > $3
ORDER BY id LIMIT $4
"""


async def write_audit(
    tx: Transaction,
    call: Call,
    action: str,
    entity_type: str,
    entity_id: UUID,
    *,
    event_id: UUID | None = None,
    reason: str | None = None,
    changes: Any = None,
) -> None:
    """In the transaction that makes the change: both happened, or neither."""
    principal = call.principal
    await tx.execute(
        WRITE_AUDIT,
        call.organization_id,
        action,
        entity_type,
        entity_id,
        event_id,
        principal.actor.value,
        principal.user_id,
        call.ip,
        call.user_agent,
        call.request_id,
        reason,
        _json(changes),
    )


async def send_message(
    tx: Transaction, organization_id: UUID, kind: str, event_id: UUID | None, payload: Any = None
) -> None:
    """Into the outbox: sent on by a worker once this transaction has committed."""
    await tx.execute(SEND_MESSAGE, organization_id, kind, event_id, _json(payload))


async def list_audit(
    tx: Transaction,
    organization_id: UUID,
    *,
    before: int | None,
    action: str | None,
    event_id: UUID | None,
    user_id: UUID | None,
    entity_id: UUID | None,
    limit: int,
) -> list[Row]:
    """Newest first."""
    return await tx.fetch(LIST_AUDIT, organization_id, before, action, event_id, user_id, entity_id, limit)


async def list_moves(tx: Transaction, organization_id: UUID, event_id: UUID, after: int, limit: int) -> list[Row]:
    return await tx.fetch(LIST_MOVES, organization_id, event_id, after, limit)


def _json(value: Any) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()
