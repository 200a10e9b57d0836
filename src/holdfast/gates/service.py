"""At the gates: scans in and out, one by one or as a gate without a connection took them; and who is inside."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from holdfast.accounts.principal import Call, Role, require_staff
from holdfast.gates.answers import (
    AdmissionAnswer,
    AdmissionEntry,
    AttendanceAnswer,
    UploadAnswer,
    UploadedScan,
    UploadResult,
    attendance,
    describe_entry,
    describe_scan,
    upload_answer,
    uploaded,
)
from holdfast.gates.refusals import ScanIdReused
from holdfast.gates.scan import (
    SUSPECT,
    GateFacts,
    Reason,
    ScanAsked,
    ScanOutcome,
    ScanRecord,
    Source,
    same_scan,
    time_refusal,
)
from holdfast.holds.lifecycle import Actor
from holdfast.kernel.counting import PlainCounter
from holdfast.kernel.errors import EventNotFound, Forbidden
from holdfast.seating.answers import Part, part_of
from holdfast.store.catalogue import Catalogue
from holdfast.store.postgres import admissions as store
from holdfast.store.postgres import trail
from holdfast.store.postgres.database import Database, Transaction
from holdfast.store.postgres.idempotency import run_once
from holdfast.store.postgres.ticket_keys import find_public_key
from holdfast.store.postgres.ticket_reading import find_ticket
from holdfast.tickets.code import read_code
from holdfast.tickets.reading import layout_in, ticket_views

SCANS: Final = PlainCounter(
    "holdfast_admissions", "Scans at the gates, by what came of them", ("direction", "outcome", "reason", "source")
)
KEYS_KEPT: Final = 10_000
CODE_AUDITED: Final = 300
"""Characters of a forged code that are kept."""


class _Ticket(msgspec.Struct, frozen=True):
    """What a code, or an id, comes to."""

    ticket_id: UUID | None
    version: int | None
    refusal: Reason | None


class _Decided(msgspec.Struct, frozen=True):
    scan: ScanRecord
    prior: ScanRecord | None
    answer: AdmissionAnswer


class GatesService:
    def __init__(self, database: Database, catalogue: Catalogue) -> None:
        self._database = database
        self._catalogue = catalogue
        self._keys: dict[tuple[UUID, str], bytes] = {}
        """Public keys, which never change."""
        self.on_attendance: list[Callable[[UUID], None]] = []
        """Called with the event when somebody came or went."""

    # Scanning ------------------------------------------------------------------------------------------------
    async def scan(self, call: Call, event_id: UUID, asked: ScanAsked) -> AdmissionAnswer:
        """Of a gate that waits for the answer."""
        require_gate(call)
        source = _source(call)

        async def work(tx: Transaction) -> AdmissionAnswer:
            return (await self._decide(tx, call, event_id, asked, source)).answer

        return await run_once(self._database, call, work, AdmissionAnswer)

    async def upload(self, call: Call, event_id: UUID, scans: Sequence[ScanAsked]) -> UploadAnswer:
        """What gates without a connection did, in the order in which they did it. One transaction a scan: an upload that
        breaks off is sent again, and what was applied is known by its id."""
        require_gate(call)
        async with self._database.transaction(call.organization_id) as tx:
            if await store.gate_facts(tx, call.organization_id, event_id) is None:
                raise EventNotFound
        results: dict[int, UploadedScan] = {}
        for place in sorted(range(len(scans)), key=lambda n: (scans[n].scanned_at, scans[n].scan_id)):
            results[place] = await self._upload_one(call, event_id, scans[place])
        return upload_answer([results[place] for place in range(len(scans))])

    async def _upload_one(self, call: Call, event_id: UUID, asked: ScanAsked) -> UploadedScan:
        async def work(tx: Transaction) -> _Decided:
            return await self._decide(tx, call, event_id, asked, Source.OFFLINE)

        try:
            decided = await self._database.run(call.organization_id, work)
        except ScanIdReused as reused:
            return UploadedScan(
                scan_id=asked.scan_id,
                result=UploadResult.REFUSED,
                first_result=None,
                admission=None,
                conflicts_with=None,
                error=reused.code,
            )
        return uploaded(decided.scan, decided.prior, decided.answer)

    async def _decide(self, tx: Transaction, call: Call, event_id: UUID, asked: ScanAsked, source: Source) -> _Decided:
        facts = await store.open_gate(tx, call.organization_id, event_id, asked.scan_id)
        if facts is None:
            raise EventNotFound
        meant = await self._meant(tx, call, event_id, asked)
        known = await store.find_scan(tx, call.organization_id, event_id, asked.scan_id)
        if known is not None:
            if not same_scan(known, asked, meant.ticket_id, meant.version):
                raise ScanIdReused
            return await self._told(tx, call, event_id, known, facts, duplicate=True)
        scan = await self._admit(tx, call, event_id, asked, meant, facts, source)
        if scan.reason in SUSPECT:
            shown = {"reason": scan.reason, "gate": scan.gate, "code": (asked.code or "")[:CODE_AUDITED]}
            await trail.write_audit(tx, call, "ticket_code_forged", "Event", event_id, event_id=event_id, changes=shown)
        tx.after_commit(lambda: self._count(event_id, scan))
        return await self._told(tx, call, event_id, scan, facts, duplicate=False)

    async def _admit(
        self,
        tx: Transaction,
        call: Call,
        event_id: UUID,
        asked: ScanAsked,
        meant: _Ticket,
        facts: GateFacts,
        source: Source,
    ) -> ScanRecord:
        refusal, scanned_at = meant.refusal, facts.now
        if source is Source.OFFLINE:
            assert asked.scanned_at is not None
            scanned_at = min(asked.scanned_at, facts.now)  # a clock a little ahead: no scan is later than its upload
            too_far = time_refusal(asked, facts.now)
            if too_far is not None:
                # Not believed: neither when it was, nor that it was.
                scanned_at, refusal = asked.scanned_at, too_far
                asked = msgspec.structs.replace(asked, passed=None)
            elif asked.passed is False:
                refusal = Reason.REFUSED_AT_GATE
        return await store.admit(
            tx,
            call,
            event_id,
            asked,
            facts,
            ticket_id=meant.ticket_id,
            code_version=meant.version,
            refusal=refusal,
            scanned_at=scanned_at,
            source=source,
        )

    async def _meant(self, tx: Transaction, call: Call, event_id: UUID, asked: ScanAsked) -> _Ticket:
        """Which ticket is meant, by a code that is genuine; or what is wrong with it."""
        if asked.code is None:
            return _Ticket(asked.ticket_id, None, None)
        code = read_code(asked.code)
        if code is None:
            return _Ticket(None, None, Reason.UNREADABLE)
        if code.payload.o != call.organization_id:
            return _Ticket(None, None, Reason.OTHER_ORGANIZATION)
        key = await self._public_key(tx, call.organization_id, code.payload.k)
        if key is None:
            return _Ticket(None, None, Reason.UNKNOWN_KEY)
        if not code.is_signed_by(key):
            return _Ticket(None, None, Reason.FORGED)
        if code.payload.e != event_id:
            return _Ticket(None, None, Reason.OTHER_EVENT)
        return _Ticket(code.payload.t, code.payload.v, None)

    async def _public_key(self, tx: Transaction, organization_id: UUID, key_id: str) -> bytes | None:
        known = self._keys.get((organization_id, key_id))
        if known is None:
            known = await find_public_key(tx, organization_id, key_id)
            if known is not None:
                if len(self._keys) >= KEYS_KEPT:
                    self._keys.clear()
                self._keys[organization_id, key_id] = known
        return known

    async def _told(
        self, tx: Transaction, call: Call, event_id: UUID, scan: ScanRecord, facts: GateFacts, *, duplicate: bool
    ) -> _Decided:
        organization_id = call.organization_id
        prior = None
        if scan.prior_scan_id is not None:
            prior = await store.find_scan(tx, organization_id, event_id, scan.prior_scan_id)
        view = None
        if scan.ticket_id is not None:
            ticket = await find_ticket(tx, organization_id, scan.ticket_id)
            assert ticket is not None, "tickets are never deleted"
            (view,) = await ticket_views(tx, self._catalogue, organization_id, [ticket])
        return _Decided(scan, prior, describe_scan(scan, prior, facts, view, duplicate=duplicate))

    def _count(self, event_id: UUID, scan: ScanRecord) -> None:
        SCANS.add(scan.direction, scan.outcome, scan.reason or "", scan.source)
        if scan.outcome is ScanOutcome.ADMIT:
            for tell in self.on_attendance:
                tell(event_id)

    # Looking -------------------------------------------------------------------------------------------------
    async def log(
        self,
        call: Call,
        event_id: UUID,
        *,
        before: int | None = None,
        ticket_id: UUID | None = None,
        outcome: ScanOutcome | None = None,
        conflict: bool | None = None,
        limit: int = 200,
    ) -> Part[AdmissionEntry]:
        """Every scan, the newest first."""
        require_staff(call)
        view = await self._catalogue.event(call.organization_id, event_id)
        if view is None:
            raise EventNotFound
        async with self._database.transaction(call.organization_id) as tx:
            found = await store.list_scans(
                tx,
                call.organization_id,
                event_id,
                before=before,
                ticket_id=ticket_id,
                outcome=outcome,
                conflict=conflict,
                limit=limit + 1,
            )
        entries = [describe_entry(scan, await layout_in(self._catalogue, view, scan.layout_version)) for scan in found]
        return part_of(entries, limit, lambda entry: str(entry.id))

    async def attendance(self, call: Call, event_id: UUID) -> AttendanceAnswer:
        """Who is inside, by zone and day."""
        require_gate(call)
        view = await self._catalogue.event(call.organization_id, event_id)
        if view is None:
            raise EventNotFound
        async with self._database.transaction(call.organization_id) as tx:
            now: datetime = await tx.now()
            counted = await store.attendance(tx, call.organization_id, event_id)
        return attendance(event_id, view.layout, view.admission.day_of(now), now, counted)


def require_gate(call: Call) -> None:
    if call.principal.role is Role.CUSTOMER:
        raise Forbidden("This needs the credential of somebody at the gates.", required_role="scanner")


def _source(call: Call) -> Source:
    if call.principal.actor is Actor.API:
        return Source.API
    return Source.SCANNER if call.principal.role is Role.SCANNER else Source.WEB
