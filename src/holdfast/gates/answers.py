"""What the gates are answered. Pure."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from enum import StrEnum
from uuid import UUID

import msgspec

from holdfast.gates.scan import Direction, GateFacts, Reason, ScanOutcome, ScanRecord, Source, entries_left, message
from holdfast.seating.layout import Layout, ZoneType
from holdfast.tickets.answers import TicketAttendee, TicketSeat, TicketView, TicketZone, ticket_seat, ticket_zone


class ScannedTicket(msgspec.Struct, frozen=True, kw_only=True):
    """As much of a ticket as a gate needs; its code is none of it."""

    id: UUID
    status: str
    entitlement: str
    max_daily_entries: int | None
    valid_days: tuple[date, ...]
    hold_type: str | None


class AdmissionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    scan_id: UUID
    outcome: ScanOutcome
    reason: Reason | None
    message: str
    """To be read aloud."""
    direction: Direction
    day: date | None
    """The event's day that the scan counts for."""
    gate: str | None
    scanned_at: datetime
    ticket: ScannedTicket | None
    seat: TicketSeat | None
    zone: TicketZone | None
    attendee: TicketAttendee | None
    accessibility_note: str | None
    entries_today: int | None
    entries_left_today: int | None
    """Null: as many as wished, or no ticket."""
    inside: bool | None
    duplicate: bool = False
    """The scan was known already: this is what came of it then."""


class UploadResult(StrEnum):
    APPLIED = "applied"
    CONFLICT = "conflict"
    DUPLICATE = "duplicate"
    REFUSED = "refused"


class OtherScan(msgspec.Struct, frozen=True, kw_only=True):
    scan_id: UUID
    gate: str | None
    scanned_at: datetime
    source: Source


class UploadedScan(msgspec.Struct, frozen=True, kw_only=True):
    scan_id: UUID
    result: UploadResult
    first_result: UploadResult | None
    """Of a duplicate: what came of it the first time."""
    admission: AdmissionAnswer | None
    """Null where the scan's id belongs to another scan; `error` says so."""
    conflicts_with: OtherScan | None
    error: str | None = None


class UploadAnswer(msgspec.Struct, frozen=True, kw_only=True):
    applied: int
    conflicts: int
    duplicates: int
    refused: int
    scans: list[UploadedScan]
    """In the order in which they were sent."""


class AdmissionEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the log."""

    id: int
    scan_id: UUID
    ticket_id: UUID | None
    direction: Direction
    outcome: ScanOutcome
    reason: Reason | None
    conflict: bool
    prior_scan_id: UUID | None
    day: date | None
    seat: TicketSeat | None
    zone: TicketZone | None
    gate: str | None
    source: Source
    scanned_at: datetime
    at: datetime
    actor: str
    user_id: UUID | None
    entries: int | None
    inside: bool | None


class ZoneAttendance(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    zone_id: str
    name: str
    zone_type: ZoneType
    capacity: int
    present: int
    entered: int
    """Different tickets."""


class DayAttendance(msgspec.Struct, frozen=True, kw_only=True):
    day: date
    present: int
    entered: int
    zones: list[ZoneAttendance]


class AttendanceAnswer(msgspec.Struct, frozen=True, kw_only=True):
    event_id: UUID
    today: date
    present: int
    entered: int
    """Today."""
    days: list[DayAttendance]
    """Those on which somebody came, and today."""
    timestamp: datetime


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """People of one zone on one day."""

    day: date
    zone_no: int
    present: int
    entered: int


def describe_scan(
    scan: ScanRecord, prior: ScanRecord | None, facts: GateFacts, ticket: TicketView | None, *, duplicate: bool
) -> AdmissionAnswer:
    return AdmissionAnswer(
        scan_id=scan.scan_id,
        outcome=scan.outcome,
        reason=scan.reason,
        message=message(scan, prior, facts.admission, ticket),
        direction=scan.direction,
        day=scan.day,
        gate=scan.gate,
        scanned_at=scan.scanned_at,
        ticket=None if ticket is None else _scanned(ticket),
        seat=None if ticket is None else ticket.seat,
        zone=None if ticket is None else ticket.zone,
        attendee=None if ticket is None else ticket.attendee,
        accessibility_note=None if ticket is None else ticket.accessibility_note,
        entries_today=scan.entries,
        entries_left_today=None if ticket is None or scan.entries is None else entries_left(ticket, scan.entries),
        inside=scan.inside,
        duplicate=duplicate,
    )


def _scanned(ticket: TicketView) -> ScannedTicket:
    return ScannedTicket(
        id=ticket.id,
        status=ticket.status,
        entitlement=ticket.entitlement,
        max_daily_entries=ticket.max_daily_entries,
        valid_days=ticket.valid_days,
        hold_type=ticket.hold_type,
    )


def uploaded(scan: ScanRecord, prior: ScanRecord | None, answer: AdmissionAnswer) -> UploadedScan:
    if scan.conflict:
        result = UploadResult.CONFLICT
    else:
        result = UploadResult.APPLIED if scan.outcome is ScanOutcome.ADMIT else UploadResult.REFUSED
    other = None if prior is None else OtherScan(
        scan_id=prior.scan_id, gate=prior.gate, scanned_at=prior.scanned_at, source=prior.source
    )  # fmt: skip
    return UploadedScan(
        scan_id=scan.scan_id,
        result=UploadResult.DUPLICATE if answer.duplicate else result,
        first_result=result if answer.duplicate else None,
        admission=answer,
        conflicts_with=other if scan.conflict else None,
    )


def upload_answer(scans: list[UploadedScan]) -> UploadAnswer:
    counted = {result: sum(scan.result is result for scan in scans) for result in UploadResult}
    return UploadAnswer(
        applied=counted[UploadResult.APPLIED],
        conflicts=counted[UploadResult.CONFLICT],
        duplicates=counted[UploadResult.DUPLICATE],
        refused=counted[UploadResult.REFUSED],
        scans=scans,
    )


def describe_entry(scan: ScanRecord, layout: Layout) -> AdmissionEntry:
    fields = msgspec.structs.asdict(scan)
    for name in ("zone_no", "ordinal", "layout_version", "code_version"):
        del fields[name]
    return AdmissionEntry(
        **fields,
        seat=None if scan.ordinal is None else ticket_seat(layout, scan.ordinal),
        zone=None if scan.zone_no is None else ticket_zone(layout.zones[scan.zone_no]),
    )


def attendance(
    event_id: UUID, layout: Layout, today: date, now: datetime, counted: Sequence[Counted]
) -> AttendanceAnswer:
    by_day: dict[date, dict[int, Counted]] = {today: {}}
    for one in counted:
        by_day.setdefault(one.day, {})[one.zone_no] = one
    days = [_day(day, layout, zones) for day, zones in sorted(by_day.items())]
    current = next(day for day in days if day.day == today)
    return AttendanceAnswer(
        event_id=event_id, today=today, present=current.present, entered=current.entered, days=days, timestamp=now
    )


def _day(day: date, layout: Layout, counted: Mapping[int, Counted]) -> DayAttendance:
    zones = [
        ZoneAttendance(
            id=zone.id,
            zone_id=zone.zone_id,
            name=zone.name,
            zone_type=zone.zone_type,
            capacity=zone.capacity,
            present=counted[zone.zone_no].present if zone.zone_no in counted else 0,
            entered=counted[zone.zone_no].entered if zone.zone_no in counted else 0,
        )
        for zone in layout.zones
    ]
    return DayAttendance(
        day=day, present=sum(zone.present for zone in zones), entered=sum(zone.entered for zone in zones), zones=zones
    )
