"""From an organiser's config to a layout, or to every problem it has."""

import uuid
from typing import Any

from holdfast.kernel.problems import DocumentInvalid, Problem, Problems, child, listing, quoted, type_name
from holdfast.seating.layout import (
    AccessMode,
    GroupType,
    Layout,
    RowInfo,
    SeatGroup,
    Zone,
    ZoneType,
    seat_uuid_column,
    zone_uuid,
)
from holdfast.seating.reading import (
    ROLE_CHARS,
    Object,
    check_choice,
    check_integer,
    check_text,
    integer_fault,
    read_integer,
    read_list,
    read_metadata,
    read_object,
    read_optional_text,
    read_point,
    read_roles,
    read_text,
    tier_field,
)
from holdfast.seating.seat_columns import MAX_SEAT_NUMBER, SEAT_ID_CHARS, SeatColumns

__all__ = ["MAX_SEATS", "MAX_ZONES", "LayoutInvalid", "Problem", "parse_ga_zones", "parse_layout"]

MAX_SEATS = 250_000
MAX_ZONES = 1_000
MAX_GROUPS = 50_000
MAX_CAPACITY = 1_000_000
ID_CHARS = 100
NAME_CHARS = 200
BACKGROUND_SVG_CHARS = 2_000_000

_LAYOUT_FIELDS = frozenset(("zones", "groups", "focal_point", "background_svg", "total_capacity"))
_ZONE_FIELDS = frozenset(
    (
        "zone_id",
        "name",
        "zone_type",
        "capacity",
        "access_mode",
        "required_tier",
        "membership_tier",
        "allowed_roles",
        "focal_point",
        "rows",
        "seats",
        "metadata",
    )
)
_GROUP_FIELDS = frozenset(("group_id", "group_type", "seat_ids", "metadata"))


class LayoutInvalid(DocumentInvalid):
    """The config breaks the rules of a layout; `problems` says where."""


def parse_layout(layout_id: uuid.UUID, config: object) -> Layout:
    """The layout of a decoded JSON config. Raises LayoutInvalid with every problem found."""
    problems = Problems()
    source = read_object(problems, "", config, _LAYOUT_FIELDS) or {}
    reader = _Reader(layout_id, problems)
    focal_point = read_point(problems, "/focal_point", source.get("focal_point"))
    background_svg = _read_background(problems, source.get("background_svg"))
    if isinstance(config, dict):
        reader.read_zones("/zones", source)
        reader.seats.link_companions()
        reader.check_total(source.get("total_capacity"))
    groups = reader.read_groups(source.get("groups")) if reader.walked else ()
    if problems:
        raise LayoutInvalid(problems.listed())
    seats = reader.seats
    return Layout(
        layout_id=layout_id,
        zones=tuple(reader.zones),
        seat_uuids=seat_uuid_column(layout_id, seats.seat_ids),
        seat_ids=seats.seat_ids,
        rows=seats.rows,
        numbers=seats.numbers,
        zone_nos=seats.zone_nos,
        categories=seats.categories,
        xs=seats.xs,
        ys=seats.ys,
        companions=seats.companions,
        groups=groups,
        focal_point=focal_point,
        background_svg=background_svg,
        total_capacity=sum(zone.capacity for zone in reader.zones),
    )


def parse_ga_zones(event_id: uuid.UUID, zones: object, *, pointer: str = "/zones") -> Layout:
    """The layout, without seats, of an event that lists its general-admission zones itself.

    `pointer` is where the list stands in the caller's document. The event takes the layout's place
    in derived ids.
    """
    problems = Problems()
    reader = _Reader(event_id, problems, ga_only=True)
    reader.read_zone_list(pointer, zones)
    if problems:
        raise LayoutInvalid(problems.listed())
    total = sum(zone.capacity for zone in reader.zones)
    return Layout(layout_id=event_id, zones=tuple(reader.zones), total_capacity=total)


def _read_background(problems: Problems, value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        problems.add("/background_svg", "wrong_type", f"must be a string, not {type_name(value)}")
        return None
    if len(value) > BACKGROUND_SVG_CHARS:
        problems.add("/background_svg", "too_long", f"must be at most {BACKGROUND_SVG_CHARS} characters")
        return None
    # Line breaks are welcome here, unlike in names; what cannot be stored is not.
    if "\0" in value or value.encode("utf-8", "replace").decode("utf-8") != value:
        problems.add("/background_svg", "bad_text", "must not contain NUL characters or lone surrogates")
        return None
    return value


class _Reader:
    """Zones and groups. What is built after a problem holds stand-ins and goes the way of the document."""

    def __init__(self, layout_id: uuid.UUID, problems: Problems, *, ga_only: bool = False) -> None:
        self.layout_id = layout_id
        self.problems = problems
        self.ga_only = ga_only
        self.zones: list[Zone] = []
        self.walked = False
        """Whether the zones were read at all; if not, nothing is said about what refers to their seats."""
        self.seats = SeatColumns(problems)
        self._zone_pointers: dict[str, str] = {}
        self._capacity_sum: int | None = 0

    def read_zones(self, pointer: str, source: Object) -> None:
        if "zones" not in source:
            self.problems.add(pointer, "missing", "zones is missing")
            self._capacity_sum = None
            return
        self.read_zone_list(pointer, source["zones"])

    def read_zone_list(self, pointer: str, value: object) -> None:
        raw_zones = read_list(self.problems, pointer, value)
        if raw_zones is None:
            self._capacity_sum = None
            return
        if not raw_zones:
            self.problems.add(pointer, "no_zones", "a layout needs at least one zone")
        # Both limits come before the walk, so that an outsized document costs nothing.
        if len(raw_zones) > MAX_ZONES:
            self.problems.add(pointer, "too_many_zones", f"at most {MAX_ZONES} zones, not {len(raw_zones)}")
            self._capacity_sum = None
            return
        seat_count = sum(_seat_count(zone) for zone in raw_zones)
        if seat_count > MAX_SEATS:
            self.problems.add(pointer, "too_many_seats", f"at most {MAX_SEATS} seats, not {seat_count}")
            self._capacity_sum = None
            return
        self.walked = True
        for zone_no, raw in enumerate(raw_zones):
            self._read_zone(zone_no, child(pointer, zone_no), raw)

    def _read_zone(self, zone_no: int, pointer: str, raw: object) -> None:
        problems = self.problems
        source = read_object(problems, pointer, raw, _ZONE_FIELDS)
        if source is None:
            self._capacity_sum = None
            return
        zone_id = read_text(problems, pointer, source, "zone_id", ID_CHARS)
        if zone_id is not None:
            self._note_zone_id(zone_id, pointer)
        name = read_text(problems, pointer, source, "name", NAME_CHARS)
        zone_type = self._read_zone_type(pointer, source)
        capacity = read_integer(problems, pointer, source, "capacity", 1, MAX_CAPACITY)
        self._add_capacity(capacity)
        access_mode, tier, roles = self._read_access(pointer, source)
        first_ordinal = len(self.seats.seat_ids)
        rows_with_seats = self._read_seats(zone_no, pointer, source, zone_type, capacity)
        zone = Zone(
            zone_no=zone_no,
            id=zone_uuid(self.layout_id, zone_id or ""),
            zone_id=zone_id or "",
            name=name or "",
            zone_type=zone_type or ZoneType.RESERVED_SEATING,
            capacity=capacity or 0,
            access_mode=access_mode,
            required_tier=tier,
            allowed_roles=roles,
            first_ordinal=first_ordinal,
            seat_count=len(self.seats.seat_ids) - first_ordinal,
            focal_point=read_point(problems, child(pointer, "focal_point"), source.get("focal_point")),
            rows=self._read_rows(child(pointer, "rows"), source.get("rows"), rows_with_seats),
            metadata=read_metadata(problems, child(pointer, "metadata"), source.get("metadata")),
        )
        self.zones.append(zone)

    def _note_zone_id(self, zone_id: str, pointer: str) -> None:
        first = self._zone_pointers.setdefault(zone_id, pointer)
        if first != pointer:
            said = f"zone id {quoted(zone_id)} is already used at {first}"
            self.problems.add(child(pointer, "zone_id"), "duplicate_zone_id", said)

    def _add_capacity(self, capacity: int | None) -> None:
        if capacity is None or self._capacity_sum is None:
            self._capacity_sum = None
        else:
            self._capacity_sum += capacity

    def _read_zone_type(self, pointer: str, source: Object) -> ZoneType | None:
        place = child(pointer, "zone_type")
        if "zone_type" not in source:
            self.problems.add(place, "missing", "zone_type is missing")
            return None
        zone_type = check_choice(self.problems, place, source["zone_type"], ZoneType, "unknown_zone_type")
        if self.ga_only and zone_type is not None and not zone_type.is_ga:
            said = "a zone with numbered seats needs a layout; without one only general admission is possible"
            self.problems.add(place, "reserved_zone_without_layout", said)
        return zone_type

    def _read_access(self, pointer: str, source: Object) -> tuple[AccessMode, str | None, tuple[str, ...]]:
        problems = self.problems
        mode: AccessMode | None = AccessMode.PUBLIC
        if source.get("access_mode") is not None:
            place = child(pointer, "access_mode")
            mode = check_choice(problems, place, source["access_mode"], AccessMode, "unknown_access_mode")
        field = tier_field(problems, pointer, source)
        tier = read_optional_text(problems, pointer, source, field, ROLE_CHARS)
        roles = read_roles(problems, child(pointer, "allowed_roles"), source.get("allowed_roles")) or ()
        if mode is AccessMode.MEMBERSHIP_TIER and source.get(field) is None:
            said = "a zone for members needs the tier they must have"
            problems.add(child(pointer, "required_tier"), "tier_required", said)
        if mode is AccessMode.ROLE_BASED and not source.get("allowed_roles"):
            said = "a zone for certain roles needs at least one role"
            problems.add(child(pointer, "allowed_roles"), "roles_required", said)
        return mode or AccessMode.PUBLIC, tier, roles

    def _read_seats(
        self, zone_no: int, pointer: str, source: Object, zone_type: ZoneType | None, capacity: int | None
    ) -> set[str]:
        place = child(pointer, "seats")
        value = source.get("seats")
        raw_seats = [] if value is None else read_list(self.problems, place, value)
        if raw_seats is None:
            return set()
        if zone_type is not None and zone_type.is_ga:
            if raw_seats:
                said = f"a {zone_type} zone counts its places and has no numbered seats"
                self.problems.add(place, "seats_in_ga_zone", said)
        elif zone_type is not None and not self.ga_only:
            if not raw_seats:
                self.problems.add(place, "no_seats", f"a {zone_type} zone needs seats")
            elif capacity is not None and capacity != len(raw_seats):
                said = f"capacity is {capacity}, but the zone has {len(raw_seats)} seats"
                self.problems.add(child(pointer, "capacity"), "capacity_mismatch", said)
        return set() if self.ga_only else self.seats.read_zone(zone_no, place, raw_seats)

    def _read_rows(self, pointer: str, value: object, rows_with_seats: set[str]) -> dict[str, RowInfo]:
        if value is None:
            return {}
        rows: dict[str, RowInfo] = {}
        for name, raw in (read_object(self.problems, pointer, value, None) or {}).items():
            place = child(pointer, name)
            if name not in rows_with_seats:
                self.problems.add(place, "row_without_seats", f"no seat of this zone is in row {quoted(name)}")
            source = read_object(self.problems, place, raw, ("aisles_after",))
            if source is not None:
                aisles = self._read_aisles(child(place, "aisles_after"), source.get("aisles_after"))
                rows[name] = RowInfo(aisles_after=aisles)
        return rows

    def _read_aisles(self, pointer: str, value: object) -> tuple[int, ...]:
        if value is None:
            return ()
        found: set[int] = set()
        for place, raw in enumerate(read_list(self.problems, pointer, value) or []):
            number = check_integer(self.problems, child(pointer, place), raw, 0, MAX_SEAT_NUMBER)
            if number is not None:
                found.add(number)
        return tuple(sorted(found))

    def check_total(self, value: object) -> None:
        if value is None:
            return
        fault = integer_fault(value, 1, MAX_ZONES * MAX_CAPACITY)
        if fault is not None:
            self.problems.add("/total_capacity", *fault)
        elif self._capacity_sum is not None and value != self._capacity_sum:
            said = f"total_capacity is {value}, but the zones add up to {self._capacity_sum}"
            self.problems.add("/total_capacity", "total_mismatch", said)

    def read_groups(self, value: object) -> tuple[SeatGroup, ...]:
        if value is None:
            return ()
        raw_groups = read_list(self.problems, "/groups", value) or []
        if len(raw_groups) > MAX_GROUPS:
            said = f"at most {MAX_GROUPS} groups, not {len(raw_groups)}"
            self.problems.add("/groups", "too_many_groups", said)
            return ()
        groups: list[SeatGroup] = []
        seen: dict[str, str] = {}
        for place, raw in enumerate(raw_groups):
            pointer = child("/groups", place)
            source = read_object(self.problems, pointer, raw, _GROUP_FIELDS)
            if source is None:
                continue
            group_id = read_text(self.problems, pointer, source, "group_id", ID_CHARS)
            if group_id is not None and seen.setdefault(group_id, pointer) != pointer:
                said = f"group id {quoted(group_id)} is already used at {seen[group_id]}"
                self.problems.add(child(pointer, "group_id"), "duplicate_group_id", said)
            group = self._read_group(pointer, source, group_id or "")
            if group is not None:
                groups.append(group)
        return tuple(groups)

    def _read_group(self, pointer: str, source: Object, group_id: str) -> SeatGroup | None:
        metadata = read_metadata(self.problems, child(pointer, "metadata"), source.get("metadata"))
        group_type: GroupType | None = None
        if "group_type" in source:
            place = child(pointer, "group_type")
            group_type = check_choice(self.problems, place, source["group_type"], GroupType, "unknown_group_type")
        else:
            said = f"group_type is missing: one of {listing(GroupType)}"
            self.problems.add(child(pointer, "group_type"), "missing", said)
        ordinals = self._read_group_seats(child(pointer, "seat_ids"), source)
        if group_type is None or not ordinals:
            return None
        zone_nos = {self.seats.zone_nos[ordinal] for ordinal in ordinals}
        if len(zone_nos) > 1:
            said = f"the seats of a group must be in one zone, not {len(zone_nos)}"
            self.problems.add(child(pointer, "seat_ids"), "group_spans_zones", said)
        return SeatGroup(group_id, group_type, min(zone_nos), ordinals, metadata)

    def _read_group_seats(self, pointer: str, source: Object) -> tuple[int, ...]:
        if "seat_ids" not in source:
            self.problems.add(pointer, "missing", "seat_ids is missing")
            return ()
        raw_ids = read_list(self.problems, pointer, source["seat_ids"])
        if raw_ids is not None and not raw_ids:
            self.problems.add(pointer, "empty", "a group needs at least one seat")
        ordinals: dict[int, None] = {}
        for place, raw in enumerate(raw_ids or []):
            seat_id = check_text(self.problems, child(pointer, place), raw, SEAT_ID_CHARS)
            if seat_id is None:
                continue
            ordinal = self.seats.ordinals.get(seat_id)
            if ordinal is None:
                said = f"there is no seat {quoted(seat_id)}"
                self.problems.add(child(pointer, place), "unknown_seat", said)
            elif ordinal in ordinals:
                said = f"seat {quoted(seat_id)} is listed twice"
                self.problems.add(child(pointer, place), "duplicate_seat", said)
            else:
                ordinals[ordinal] = None
        return tuple(ordinals)


def _seat_count(zone: Any) -> int:
    seats = zone.get("seats") if isinstance(zone, dict) else None
    return len(seats) if isinstance(seats, list) else 0
