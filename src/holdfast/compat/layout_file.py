"""What the layout formats have in common: what was read or written, and what is to be said about it.

A format that cannot carry everything says so in notes; a file that is wrong says so in problems. CSV and SVG carry the
whole config: what their own columns or attributes cannot say exactly goes into a small JSON object beside them.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from holdfast.kernel.problems import Problem, Problems, child, quoted, type_name

Config = dict[str, Any]

MAX_NOTES = 200
LEFT_OUT = "-"
"""In a remainder: the fields that the original does not have, though the format always says them."""


class LayoutFormat(StrEnum):
    NATIVE = "native"
    CSV = "csv"
    PRETIX = "pretix"
    SVG = "svg"


class Note(msgspec.Struct, frozen=True):
    """What a format could not carry, or what was assumed. No fault: the file was read or written all the same."""

    pointer: str
    code: str
    detail: str


class Notes:
    """A collector that says the same thing about many places once, with the first place and how many there are."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, str], str] = {}
        self._count: dict[tuple[str, str], int] = {}

    def add(self, pointer: str, code: str, detail: str) -> None:
        key = (code, detail)
        self._first.setdefault(key, pointer)
        self._count[key] = self._count.get(key, 0) + 1

    def listed(self) -> tuple[Note, ...]:
        notes = [
            Note(
                pointer, code, detail if self._count[code, detail] == 1 else f"{detail} ({self._count[code, detail]}×)"
            )
            for (code, detail), pointer in self._first.items()
        ]
        if len(notes) <= MAX_NOTES:
            return tuple(notes)
        more = f"{len(notes) - MAX_NOTES} more notes are not listed"
        return (*notes[:MAX_NOTES], Note("", "too_many_notes", more))


class Places:
    """From the pointers of a native config to the places of the file it was read from.

    The rules of a layout are checked on the config; whoever has only the file wants to know the line.
    """

    def __init__(self, seat_fields: Mapping[str, str], zone_fields: Mapping[str, str]) -> None:
        self._seat_fields = seat_fields
        self._zone_fields = zone_fields
        self.root = ""
        self.zones: list[str] = []
        self.seats: list[list[str]] = []

    def add_zone(self, place: str, seats: list[str]) -> None:
        self.zones.append(place)
        self.seats.append(seats)

    def of(self, pointer: str) -> str:
        found = _SEAT.match(pointer)
        if found is not None:
            place = self._seat(int(found[1]), int(found[2]))
            return pointer if place is None else place + _mapped(self._seat_fields, pointer[found.end() :])
        found = _ZONE.match(pointer)
        if found is not None and int(found[1]) < len(self.zones):
            return self.zones[int(found[1])] + _mapped(self._zone_fields, pointer[found.end() :])
        return self.root + pointer

    def _seat(self, zone_no: int, seat_no: int) -> str | None:
        if zone_no >= len(self.seats) or seat_no >= len(self.seats[zone_no]):
            return None
        return self.seats[zone_no][seat_no]

    def relocated(self, problems: Iterable[Problem]) -> tuple[Problem, ...]:
        return tuple(
            Problem(self.of(problem.pointer), problem.code, _SEAT.sub(lambda m: self.of(m[0]), problem.detail))
            for problem in problems
        )


_SEAT = re.compile(r"/zones/(\d+)/seats/(\d+)")
_ZONE = re.compile(r"/zones/(\d+)")


def _mapped(fields: Mapping[str, str], rest: str) -> str:
    for name, other in fields.items():
        if rest == name or rest.startswith(f"{name}/"):
            return other + rest[len(name) :]
    return rest


class ReadFile(msgspec.Struct, frozen=True, kw_only=True):
    config: Any
    """For `parse_layout`, which has the last word."""
    notes: tuple[Note, ...] = ()
    name: str | None = None
    """What the file calls the layout."""
    places: Places | None = None


class WrittenFile(msgspec.Struct, frozen=True, kw_only=True):
    content: bytes
    notes: tuple[Note, ...] = ()


# What is said beside columns and attributes ---------------------------------------------------------------------------
_SORTED = msgspec.json.Encoder(order="sorted")


def as_json(value: object) -> str:
    return _SORTED.encode(value).decode()


def same(one: object, other: object) -> bool:
    """As JSON: 1 is not 1.0 and true is not 1."""
    return one is other or (one == other and _SORTED.encode(one) == _SORTED.encode(other))


def remainder(built: Config, original: Config) -> Config:
    """What has to be said beside `built` for `restored` to give back `original`."""
    rest = {key: value for key, value in original.items() if key not in built or not same(built[key], value)}
    left_out = [key for key in built if key not in original]
    return {**rest, LEFT_OUT: left_out} if left_out else rest


def restored(built: Config, rest: Config) -> Config:
    left_out = rest.get(LEFT_OUT, ())
    kept = {key: value for key, value in built.items() if key not in left_out}
    return kept | {key: value for key, value in rest.items() if key != LEFT_OUT}


def read_remainder(problems: Problems, pointer: str, text: str, *, never: Iterable[str] = ()) -> Config:
    """The JSON object of a remainder; `never` are fields it may not replace."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        problems.add(pointer, "not_json", f"must be JSON: {error}")
        return {}
    if not isinstance(value, dict):
        problems.add(pointer, "wrong_type", f"must be an object, not {type_name(value)}")
        return {}
    left_out = value.get(LEFT_OUT, [])
    if not isinstance(left_out, list) or not all(isinstance(name, str) for name in left_out):
        problems.add(child(pointer, LEFT_OUT), "wrong_type", "must be a list of field names")
        return {}
    for field in never:
        if value.get(field) or field in left_out:
            problems.add(child(pointer, field), "misplaced", f"{quoted(field)} cannot be said here")
            return {}
    return value


# Zones out of single facts --------------------------------------------------------------------------------------------
ROLE_SEPARATOR = "|"


def built_zone(zone_id: str, facts: Mapping[str, str], seats: list[Config], aisles: Mapping[str, list[int]]) -> Config:
    """A zone of the config out of texts; what is not said gets the plainest value."""
    zone: Config = {
        "zone_id": zone_id,
        "name": facts.get("zone_name", zone_id),
        "zone_type": facts.get("zone_type", "reserved_seating"),
    }
    if "capacity" in facts:
        capacity = integer_of(facts["capacity"])
        zone["capacity"] = facts["capacity"] if capacity is None else capacity
    elif seats:
        zone["capacity"] = len(seats)
    for field in ("access_mode", "required_tier"):
        if field in facts:
            zone[field] = facts[field]
    if "allowed_roles" in facts:
        zone["allowed_roles"] = [role for role in facts["allowed_roles"].split(ROLE_SEPARATOR) if role]
    if aisles:
        zone["rows"] = {row: {"aisles_after": sorted(numbers)} for row, numbers in aisles.items()}
    if seats:
        zone["seats"] = seats
    return zone


def zone_facts(zone: Config) -> dict[str, str]:
    """The other way: what `built_zone` reads. Fields it would read differently are in the remainder."""
    facts = {"zone_name": zone["name"], "zone_type": zone["zone_type"], "capacity": str(zone["capacity"])}
    for field in ("access_mode", "required_tier"):
        if isinstance(zone.get(field), str):
            facts[field] = zone[field]
    roles = zone.get("allowed_roles")
    if roles and not any(ROLE_SEPARATOR in role for role in roles):
        facts["allowed_roles"] = ROLE_SEPARATOR.join(roles)
    return facts


def aisle_seats(zone: Config) -> set[tuple[str, int]]:
    """Row and number of the seats with an aisle behind them."""
    return {
        (row, number)
        for row, said in (zone.get("rows") or {}).items()
        for number in (said or {}).get("aisles_after") or ()
    }


# Numbers --------------------------------------------------------------------------------------------------------------
_INTEGER = re.compile(r"[+-]?[0-9]{1,15}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,15}\.?[0-9]{0,30}|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?")


def integer_of(text: str) -> int | None:
    return int(text) if _INTEGER.fullmatch(text) else None


def number_of(text: str) -> int | float | None:
    """A whole number stays one, so that what is written again is the same."""
    whole = integer_of(text)
    if whole is not None:
        return whole
    return float(text) if _NUMBER.fullmatch(text) else None
