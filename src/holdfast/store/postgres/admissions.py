"""Scans at the gates, and who is inside."""

from datetime import date, datetime
from typing import Any
from uuid import UUID

from holdfast.accounts.principal import Call
from holdfast.gates.answers import Counted
from holdfast.gates.scan import Direction, GateFacts, Reason, ScanAsked, ScanOutcome, ScanRecord, Source
from holdfast.seating.admission import stored_admission
from holdfast.store.postgres.database import Row, Transaction

OPEN_GATE = "SELECT open_gate($1, $2, $3)"
GATE_FACTS = (
    "SELECT e.name, e.admission, holdfast_now() AS now FROM events e WHERE e.organization_id = $1 AND e.id = $2"
)
_COLUMNS = """a.id, a.scan_id, a.ticket_id, a.direction, a.outcome, a.reason, a.day, a.zone_no, a.ordinal, a.layout_version,
  a.gate, a.source, a.scanned_at, a.at, a.actor, a.user_id, a.code_version, a.entries, a.inside, a.conflict,
  a.prior_scan_id"""
ADMIT = f"""
SELECT {_COLUMNS} FROM admit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) a
"""
FIND_SCAN = f"""
SELECT {_COLUMNS} FROM admissions a WHERE a.organization_id = $1 AND a.event_id = $2 AND a.scan_id = $3
"""
LIST_SCANS = f"""
SELECT {_COLUMNS} FROM admissions a
WHERE a.organization_id = $1 AND a.event_id = $2 AND ($3::bigint IS NULL OR a.id < $3)
  AND ($4::uuid IS NULL OR a.ticket_id = $4) AND ($5::text IS NULL OR a.outcome = $5)
  AND ($6::boolean IS NULL OR a.conflict = $6)
ORDER BY a.id DESC LIMIT $7
"""
ATTENDANCE = """
SELECT day, zone_no, present, entered FROM zone_attendance
WHERE organization_id = $1 AND event_id = $2 AND ($3::date IS NULL OR day = $3) ORDER BY day, zone_no
"""


def _scan(row: Row) -> ScanRecord:
    fields: dict[str, Any] = dict(row)
    return ScanRecord(
        **{
            **fields,
            "direction": Direction(row["direction"]),
            "outcome": ScanOutcome(row["outcome"]),
            "reason": None if row["reason"] is None else Reason(row["reason"]),
            "source": Source(row["source"]),
        }
    )


async def open_gate(tx: Transaction, organization_id: UUID, event_id: UUID, scan_id: UUID) -> GateFacts | None:
    """Alone with the scan, beside others at the event. None: there is no such event."""
    await tx.execute(OPEN_GATE, organization_id, event_id, scan_id)
    return await gate_facts(tx, organization_id, event_id)


async def gate_facts(tx: Transaction, organization_id: UUID, event_id: UUID) -> GateFacts | None:
    row = await tx.fetchrow(GATE_FACTS, organization_id, event_id)
    if row is None:
        return None
    return GateFacts(name=row["name"], admission=stored_admission(row["admission"]), now=row["now"])


async def admit(
    tx: Transaction,
    call: Call,
    event_id: UUID,
    asked: ScanAsked,
    facts: GateFacts,
    *,
    ticket_id: UUID | None,
    code_version: int | None,
    refusal: Reason | None,
    scanned_at: datetime,
    source: Source,
) -> ScanRecord:
    """Decides the scan and writes it down. The caller has opened the gate and found that the scan is new."""
    row = await tx.fetchrow(
        ADMIT,
        call.organization_id,
        event_id,
        asked.scan_id,
        ticket_id,
        code_version,
        asked.direction.value,
        facts.admission.day_of(scanned_at),
        scanned_at,
        facts.now,
        facts.admission.exit_scans,
        asked.passed,
        None if refusal is None else refusal.value,
        asked.gate,
        source.value,
        call.principal.actor.value,
        call.principal.user_id,
    )
    assert row is not None
    return _scan(row)


async def find_scan(tx: Transaction, organization_id: UUID, event_id: UUID, scan_id: UUID) -> ScanRecord | None:
    row = await tx.fetchrow(FIND_SCAN, organization_id, event_id, scan_id)
    return None if row is None else _scan(row)


async def list_scans(
    tx: Transaction,
    organization_id: UUID,
    event_id: UUID,
    *,
    before: int | None,
    ticket_id: UUID | None,
    outcome: ScanOutcome | None,
    conflict: bool | None,
    limit: int,
) -> list[ScanRecord]:
    """Newest first."""
    said = None if outcome is None else outcome.value
    rows = await tx.fetch(LIST_SCANS, organization_id, event_id, before, ticket_id, said, conflict, limit)
    return [_scan(row) for row in rows]


async def attendance(tx: Transaction, organization_id: UUID, event_id: UUID, day: date | None = None) -> list[Counted]:
    """By day and zone; of one day where it is named."""
    return [Counted(**row) for row in await tx.fetch(ATTENDANCE, organization_id, event_id, day)]
