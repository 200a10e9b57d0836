"""How an event lets people in: on what terms its tickets are issued, and what its gates call a day. Pure.

What a ticket is good for is fixed on it when it is issued: changing this later changes no ticket that is out. What the gates
go by at the moment of a scan (time zone, end of the day, exit scans) counts from the next scan on.
"""

import re
from collections.abc import Collection
from datetime import date, datetime, timedelta
from functools import cache, lru_cache
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import msgspec

from holdfast.kernel.problems import Problems, child, quoted, type_name
from holdfast.seating.days import read_days
from holdfast.seating.layout import Layout
from holdfast.seating.prices import read_zone_name
from holdfast.seating.reading import Object, check_choice, check_integer, check_text, read_object
from holdfast.tickets.ticket import Entitlement

MAX_DAILY_ENTRIES = 1_000
ZONE_CHARS = 64


class ZoneAdmission(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What tickets of one zone are good for, where that differs; None: as the event says."""

    entitlement: Entitlement | None = None
    max_daily_entries: int | None = None
    valid_days: tuple[date, ...] | None = None


class Admission(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """As stored, and as it is answered."""

    entitlement: Entitlement | None = None
    """None: several days let in as often as wished, one day once."""
    max_daily_entries: int | None = None
    timezone: str = "UTC"
    day_ends_at: str = "00:00"
    """A scan before this time of day belongs to the day before."""
    exit_scans: bool = False
    """People are scanned on their way out too: whoever is inside cannot come in again."""
    zones: dict[str, ZoneAdmission] = {}

    def day_of(self, instant: datetime) -> date:
        """The day a scan at this instant belongs to."""
        return (self.local(instant) - timedelta(minutes=_minutes(self.day_ends_at))).date()

    def local(self, instant: datetime) -> datetime:
        """As the clocks at the gate show it. Without the zone: what is reckoned with it is wall-clock time."""
        return instant.astimezone(ZoneInfo(self.timezone)).replace(tzinfo=None)


DEFAULT_ADMISSION = Admission()

_FIELDS = ("entitlement", "max_daily_entries", "timezone", "day_ends_at", "exit_scans", "zones")
_ZONE_FIELDS = ("entitlement", "max_daily_entries", "valid_days")
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)", re.ASCII)


def read_admission(problems: Problems, value: object, layout: Layout | None, days: Collection[date]) -> Admission:
    """Without a layout the names of zones cannot be held against anything."""
    if value is None:
        return DEFAULT_ADMISSION
    source = read_object(problems, "/admission", value, _FIELDS)
    if source is None:
        return DEFAULT_ADMISSION
    entitlement, entries = _read_terms(problems, "/admission", source, None)
    return Admission(
        entitlement=entitlement,
        max_daily_entries=entries,
        timezone=_read_timezone(problems, source.get("timezone")),
        day_ends_at=_read_time(problems, source.get("day_ends_at")),
        exit_scans=_read_flag(problems, "/admission/exit_scans", source.get("exit_scans")),
        zones=_read_zones(problems, source.get("zones"), layout, days, entitlement),
    )


def admission_document(admission: Admission) -> dict[str, Any]:
    """What it says beyond the defaults, as an organiser would have sent it."""
    document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(admission))
    return document


@lru_cache(maxsize=1_000)
def stored_admission(text: str) -> Admission:
    return msgspec.json.decode(text, type=Admission)


def _read_zones(
    problems: Problems,
    value: object,
    layout: Layout | None,
    days: Collection[date],
    of_event: Entitlement | None,
) -> dict[str, ZoneAdmission]:
    if value is None:
        return {}
    found: dict[str, ZoneAdmission] = {}
    for named, raw in (read_object(problems, "/admission/zones", value, None) or {}).items():
        pointer = child("/admission/zones", named)
        zone_id = read_zone_name(problems, pointer, named, layout)
        source = read_object(problems, pointer, raw, _ZONE_FIELDS)
        if source is None:
            continue
        entitlement, entries = _read_terms(problems, pointer, source, of_event)
        said = source.get("valid_days")
        valid = None if said is None else read_days(problems, child(pointer, "valid_days"), said)
        for day in valid or ():
            if days and day not in days:
                place = child(pointer, "valid_days")
                problems.add(place, "not_a_day_of_the_event", f"{day} is none of the event's days")
        if zone_id in found:
            problems.add(pointer, "duplicate_zone", f"zone {quoted(zone_id)} is named twice")
        if zone_id is not None:
            found[zone_id] = ZoneAdmission(entitlement=entitlement, max_daily_entries=entries, valid_days=valid)
    return found


def _read_terms(
    problems: Problems, pointer: str, source: Object, of_event: Entitlement | None
) -> tuple[Entitlement | None, int | None]:
    """Entitlement and entries a day, which belong together."""
    entitlement: Entitlement | None = None
    if source.get("entitlement") is not None:
        place = child(pointer, "entitlement")
        entitlement = check_choice(problems, place, source["entitlement"], Entitlement, "unknown_entitlement")
        if entitlement is None:
            return None, None
    place = child(pointer, "max_daily_entries")
    said = source.get("max_daily_entries")
    entries = None if said is None else check_integer(problems, place, said, 1, MAX_DAILY_ENTRIES)
    if entitlement is Entitlement.LIMITED and said is None:
        problems.add(place, "missing", f"{Entitlement.LIMITED} needs max_daily_entries")
    if said is not None and (entitlement or of_event) is not Entitlement.LIMITED:
        problems.add(place, "ineffective_field", f"max_daily_entries counts only for {Entitlement.LIMITED}")
    return entitlement, entries


def _read_timezone(problems: Problems, value: object) -> str:
    if value is None:
        return DEFAULT_ADMISSION.timezone
    name = check_text(problems, "/admission/timezone", value, ZONE_CHARS)
    if name is None:
        return DEFAULT_ADMISSION.timezone
    if name not in _timezones():
        said = f"{quoted(name)} is no time zone such as Europe/Berlin"
        problems.add("/admission/timezone", "unknown_timezone", said)
        return DEFAULT_ADMISSION.timezone
    return name


@cache
def _timezones() -> frozenset[str]:
    """Those of places, and UTC; `localtime` and the like are the machine's own."""
    return frozenset(name for name in available_timezones() if "/" in name or name == "UTC")


def _read_time(problems: Problems, value: object) -> str:
    if value is None:
        return DEFAULT_ADMISSION.day_ends_at
    if not isinstance(value, str):
        problems.add("/admission/day_ends_at", "wrong_type", f"must be a string, not {type_name(value)}")
    elif not _TIME.fullmatch(value):
        problems.add("/admission/day_ends_at", "bad_time_of_day", f"{quoted(value)} is no time of day such as 05:00")
    else:
        return value
    return DEFAULT_ADMISSION.day_ends_at


def _read_flag(problems: Problems, pointer: str, value: object) -> bool:
    if value is not None and not isinstance(value, bool):
        problems.add(pointer, "wrong_type", f"must be true or false, not {type_name(value)}")
    return value is True


def _minutes(time_of_day: str) -> int:
    return 60 * int(time_of_day[:2]) + int(time_of_day[3:])
