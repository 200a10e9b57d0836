"""The gates over HTTP: scans, uploads of those taken without a connection, the log, and who is inside."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec
from litestar import Request, get, post
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from litestar.types import ControllerRouterHandler

from holdfast.gates.answers import AdmissionAnswer, AdmissionEntry, AttendanceAnswer, UploadAnswer
from holdfast.gates.scan import UPLOAD_MAX, Direction, ScanAsked, ScanOutcome
from holdfast.http.auth import call_of, path_id
from holdfast.http.envelope import Data, Page
from holdfast.http.seating import Cursor, Limit, number_cursor, page_of
from holdfast.http.services import services
from holdfast.kernel.errors import InvalidRequest
from holdfast.kernel.ids import new_id, parse_id
from holdfast.kernel.problems import Problems, child
from holdfast.seating.reading import check_text

AnyRequest = Request[Any, Any, Any]
Outcome = Annotated[ScanOutcome | None, QueryParameter(description="Only scans with this outcome.")]
Conflict = Annotated[bool | None, QueryParameter(description="Only scans in conflict, or only the others.")]

UPLOAD_BYTES = 4 * 1024 * 1024
GATE_CHARS = 100
CODE_CHARS = 10_000
"""More is no QR code."""


class UploadScan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A scan that a gate without a connection took."""

    scan_id: str
    scanned_at: str
    """With its offset, such as 2030-01-31T19:30:00Z."""
    code: str | None = None
    ticket_id: str | None = None
    direction: Direction = Direction.IN
    gate: str | None = None
    outcome_at_gate: ScanOutcome = ScanOutcome.ADMIT


class AdmissionBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One scan (`code` or `ticket_id`); or, with `source: offline_sync`, up to a thousand in `scans`."""

    code: str | None = None
    ticket_id: str | None = None
    direction: Direction = Direction.IN
    gate: str | None = None
    scan_id: str | None = None
    scanned_at: str | None = None
    source: Literal["offline_sync"] | None = None
    scans: list[UploadScan] | None = None


@post(
    "/api/events/{event_id:str}/admissions",
    status_code=200,
    opt={"scope": "admissions"},
    request_max_body_size=UPLOAD_BYTES,
    summary="Scan a ticket at a gate, or upload scans taken without a connection",
)
async def admit(
    request: AnyRequest, event_id: FromPath[str], data: JSONBody[AdmissionBody]
) -> Data[AdmissionAnswer | UploadAnswer]:
    """Every scan that can be decided is answered with 200: `outcome` says admit or refuse, `reason` why, and `message` is to
    be read aloud. A gate that gets no answer asks again with the same `scan_id`: it counts once."""
    event = path_id("event_id", event_id)
    gates = services(request).gates
    if data.source is None and data.scans is None:
        asked = _single(data)
        return Data(await gates.scan(await call_of(request), event, asked))
    scans = _upload(data)
    return Data(await gates.upload(await call_of(request), event, scans))


@get("/api/events/{event_id:str}/admissions", summary="Every scan, newest first")
async def list_admissions(
    request: AnyRequest,
    event_id: FromPath[str],
    ticket_id: FromQuery[str | None] = None,
    outcome: Outcome = None,
    conflict: Conflict = None,
    cursor: Cursor = None,
    limit: Limit = 200,
) -> Page[AdmissionEntry]:
    """For organisers: admitted and refused, with what was wrong; `conflict=true` lists what gates without a connection let
    pass and should not have."""
    event = path_id("event_id", event_id)
    ticket = None if ticket_id is None else path_id("ticket_id", ticket_id)
    before = number_cursor("cursor", cursor)
    call = await call_of(request)
    part = await services(request).gates.log(
        call, event, before=before, ticket_id=ticket, outcome=outcome, conflict=conflict, limit=limit
    )
    return page_of(part)


@get("/api/events/{event_id:str}/attendance", summary="Who is inside, by zone and day")
async def attendance(request: AnyRequest, event_id: FromPath[str]) -> Data[AttendanceAnswer]:
    """For everybody at the gates. `present` are people inside, `entered` different tickets of the day."""
    event = path_id("event_id", event_id)
    call = await call_of(request)
    return Data(await services(request).gates.attendance(call, event))


# Reading the body -------------------------------------------------------------------------------------------------
def _single(data: AdmissionBody) -> ScanAsked:
    problems = Problems()
    # When it was scanned is now, by the database's clock: the gate's own time is checked, and not used.
    _instant(problems, "/scanned_at", data.scanned_at)
    asked = _asked(problems, "", data, data.scan_id or str(new_id()))
    _require_sound(problems)
    assert asked is not None
    return asked


def _upload(data: AdmissionBody) -> list[ScanAsked]:
    problems = Problems()
    if data.source is None:
        problems.add("/source", "missing", "an upload of scans says source: offline_sync")
    for field in ("code", "ticket_id", "gate", "scan_id", "scanned_at"):
        if getattr(data, field) is not None:
            problems.add(f"/{field}", "conflicting_fields", f"an upload has its {field} in each of the scans")
    scans = data.scans
    if not scans or len(scans) > UPLOAD_MAX:
        problems.add("/scans", "count", f"name 1 to {UPLOAD_MAX} scans, not {len(scans or ())}")
        scans = []
    found: list[ScanAsked] = []
    for place, scan in enumerate(scans):
        pointer = child("/scans", place)
        scanned_at = _instant(problems, f"{pointer}/scanned_at", scan.scanned_at)
        asked = _asked(problems, pointer, scan, scan.scan_id)
        passed = scan.outcome_at_gate is ScanOutcome.ADMIT
        if asked is not None:
            found.append(msgspec.structs.replace(asked, scanned_at=scanned_at, passed=passed))
    _require_sound(problems)
    return found


def _asked(problems: Problems, pointer: str, said: AdmissionBody | UploadScan, scan_id: str) -> ScanAsked | None:
    if (said.code is None) == (said.ticket_id is None):
        problems.add(f"{pointer}/code", "one_of", "give a code or a ticket_id, one of the two")
    if said.code is not None and len(said.code) > CODE_CHARS:
        problems.add(f"{pointer}/code", "too_long", f"must be at most {CODE_CHARS} characters, not {len(said.code)}")
    if said.gate is not None:
        check_text(problems, f"{pointer}/gate", said.gate, GATE_CHARS)
    scan = parse_id(scan_id)
    if scan is None:
        problems.add(f"{pointer}/scan_id", "not_an_id", "must be a UUID")
    ticket = None if said.ticket_id is None else parse_id(said.ticket_id)
    if said.ticket_id is not None and ticket is None:
        problems.add(f"{pointer}/ticket_id", "not_an_id", "must be a UUID")
    if scan is None:
        return None
    return ScanAsked(scan_id=scan, direction=said.direction, code=said.code, ticket_id=ticket, gate=said.gate)


def _instant(problems: Problems, pointer: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        instant = msgspec.convert(text, datetime)
        if instant.tzinfo is not None and 1970 <= instant.year < 9000:
            return instant.astimezone(UTC)
    except msgspec.ValidationError:
        pass
    problems.add(pointer, "not_an_instant", "must be an instant with its offset, such as 2030-01-31T19:30:00Z")
    return None


def _require_sound(problems: Problems) -> None:
    listed = problems.listed()
    if listed:
        raise InvalidRequest(f"{listed[0].pointer}: {listed[0].detail}.", list(listed))


ROUTES: list[ControllerRouterHandler] = [admit, list_admissions, attendance]
