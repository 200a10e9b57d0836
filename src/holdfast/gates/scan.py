"""A scan: what a gate asks, what can come of it, and what staff read aloud. Pure."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from enum import StrEnum
from uuid import UUID

import msgspec

from holdfast.seating.admission import Admission
from holdfast.tickets.answers import TicketView, place_words
from holdfast.tickets.ticket import Entitlement

FUTURE_S = 120
"""How far a gate's clock may be ahead of ours."""
OLDEST_DAYS = 30
UPLOAD_MAX = 1_000
_DAYS_SAID = 6


class Direction(StrEnum):
    IN = "in"
    OUT = "out"


class ScanOutcome(StrEnum):
    ADMIT = "admit"
    REFUSE = "refuse"


class Reason(StrEnum):
    """Why a scan was refused; of a scan without a connection, why it would have been."""

    UNREADABLE = "unreadable_code"
    UNKNOWN_KEY = "unknown_key"
    OTHER_ORGANIZATION = "other_organization"
    FORGED = "forged_code"
    OTHER_EVENT = "other_event"
    UNKNOWN_TICKET = "unknown_ticket"
    EVENT_CANCELLED = "event_cancelled"
    EVENT_OVER = "event_over"
    VOID = "void"
    REPLACED = "replaced_code"
    WRONG_DAY = "wrong_day"
    MEMBERSHIP = "membership_inactive"
    ALREADY_USED = "already_used"
    ALREADY_INSIDE = "already_inside"
    NO_ENTRIES_LEFT = "no_entries_left"
    ZONE_FULL = "zone_full"
    NOT_INSIDE = "not_inside"
    REFUSED_AT_GATE = "refused_at_gate"
    IN_FUTURE = "scanned_in_future"
    TOO_LONG_AGO = "scanned_too_long_ago"
    SUPERSEDED = "superseded"


SUSPECT = frozenset((Reason.FORGED, Reason.UNKNOWN_KEY))
"""Somebody made a code: that is audited."""


class Source(StrEnum):
    SCANNER = "scanner"
    WEB = "web"
    API = "api"
    OFFLINE = "offline_sync"


class ScanAsked(msgspec.Struct, frozen=True, kw_only=True):
    scan_id: UUID
    direction: Direction
    code: str | None = None
    ticket_id: UUID | None = None
    """One of the two."""
    gate: str | None = None
    scanned_at: datetime | None = None
    passed: bool | None = None
    """Of a gate without a connection: whether it let them pass. None: it waits for the answer."""


class ScanRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A scan as it was written down."""

    id: int
    scan_id: UUID
    ticket_id: UUID | None
    direction: Direction
    outcome: ScanOutcome
    reason: Reason | None
    day: date | None
    zone_no: int | None
    ordinal: int | None
    layout_version: int | None
    gate: str | None
    source: Source
    scanned_at: datetime
    at: datetime
    actor: str
    user_id: UUID | None
    code_version: int | None
    entries: int | None
    inside: bool | None
    conflict: bool
    prior_scan_id: UUID | None


class GateFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The event as the gate finds it, and the database's time."""

    name: str
    admission: Admission
    now: datetime


def time_refusal(asked: ScanAsked, now: datetime) -> Reason | None:
    """Of a scan taken without a connection."""
    assert asked.scanned_at is not None
    if asked.scanned_at > now + timedelta(seconds=FUTURE_S):
        return Reason.IN_FUTURE
    if asked.scanned_at < now - timedelta(days=OLDEST_DAYS):
        return Reason.TOO_LONG_AGO
    return None


def same_scan(known: ScanRecord, asked: ScanAsked, ticket_id: UUID | None, version: int | None) -> bool:
    """Whether a scan with a known id is a repetition of that one. What was refused for having no ticket may be anything."""
    if known.direction is not asked.direction:
        return False
    return known.ticket_id is None or (known.ticket_id == ticket_id and known.code_version == version)


# Words ------------------------------------------------------------------------------------------------------------
_PLAIN = {
    Reason.UNREADABLE: "This is not a ticket's code.",
    Reason.UNKNOWN_KEY: "Not a genuine ticket: the key that signed it is unknown.",
    Reason.OTHER_ORGANIZATION: "This ticket is from another organiser.",
    Reason.FORGED: "Not a genuine ticket: its signature is wrong.",
    Reason.OTHER_EVENT: "This ticket is for another event.",
    Reason.UNKNOWN_TICKET: "There is no such ticket.",
    Reason.EVENT_CANCELLED: "The event was cancelled.",
    Reason.EVENT_OVER: "The event is over.",
    Reason.VOID: "This ticket is void: it was returned or cancelled.",
    Reason.REPLACED: "This code was replaced by a newer one. Please show the newest.",
    Reason.MEMBERSHIP: "The membership this ticket belongs to is not active.",
    Reason.REFUSED_AT_GATE: "Refused at the gate.",
    Reason.IN_FUTURE: "The scan is from the future: the gate's clock is wrong.",
    Reason.TOO_LONG_AGO: f"The scan is more than {OLDEST_DAYS} days old.",
    Reason.SUPERSEDED: "Left, and has come in again since.",
}


def message(scan: ScanRecord, prior: ScanRecord | None, admission: Admission, ticket: TicketView | None) -> str:
    """What staff read aloud. Times are those of the event's time zone."""
    if scan.reason is None or ticket is None:
        if scan.reason is not None:
            return _let_pass(scan, _PLAIN[scan.reason])
        return "Goodbye." if scan.direction is Direction.OUT else f"Welcome. {_place(ticket)}"
    return _let_pass(scan, _refusal(scan, prior, admission, ticket))


def _let_pass(scan: ScanRecord, words: str) -> str:
    if not scan.conflict:
        return words
    done = "Let out" if scan.direction is Direction.OUT else "Let in"
    where = f" at gate {scan.gate}" if scan.gate else ""
    return f"{done}{where} without a connection, though: {words}"


def _place(ticket: TicketView | None) -> str:
    return "" if ticket is None else f"{place_words(ticket)}."


def _refusal(scan: ScanRecord, prior: ScanRecord | None, admission: Admission, ticket: TicketView) -> str:
    assert scan.reason is not None
    seen = "" if prior is None else _where_and_when(prior, scan, admission)
    match scan.reason:
        case Reason.ALREADY_USED:
            return f"Already used{seen}."
        case Reason.ALREADY_INSIDE:
            return f"Already inside: came in{seen or ' before'}."
        case Reason.NO_ENTRIES_LEFT:
            times = "entry" if ticket.max_daily_entries == 1 else "entries"
            return f"No entries left today: all {ticket.max_daily_entries} {times} used{seen and f', the last{seen}'}."
        case Reason.NOT_INSIDE:
            return f"Not inside{seen and f': left{seen}'}."
        case Reason.WRONG_DAY:
            return f"Not valid today. Valid on {days_in_words(ticket.valid_days)}."
        case Reason.ZONE_FULL:
            return f"{ticket.zone.name} is full. Please wait until somebody has left."
        case Reason.REPLACED if seen:
            return f"{_PLAIN[scan.reason]} The newest was used{seen}."
    return _PLAIN[scan.reason]


def _where_and_when(prior: ScanRecord, scan: ScanRecord, admission: Admission) -> str:
    then = admission.local(prior.scanned_at)
    day = "" if prior.day == scan.day else f" on {_day(then.date())}"
    where = f" at gate {prior.gate}" if prior.gate else ""
    return f"{where}{day} at {then:%H:%M}"


def days_in_words(days: Sequence[date]) -> str:
    said = [_day(day) for day in days[:_DAYS_SAID]]
    if len(days) > _DAYS_SAID:
        return f"{', '.join(said)} and {len(days) - _DAYS_SAID} more days"
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}"


_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
           "December")  # fmt: skip


def _day(day: date) -> str:
    """In words that do not depend on where the server stands."""
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def entries_left(ticket: TicketView, entries: int) -> int | None:
    """Of this day; None: as many as wished."""
    if ticket.entitlement is Entitlement.LIMITED and ticket.max_daily_entries is not None:
        return max(0, ticket.max_daily_entries - entries)
    return None
