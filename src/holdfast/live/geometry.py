"""A layout's geometry as clients load it: where every seat is and what it is called, in a few bits a seat. Pure.

The binary form is a small header, a block of JSON, and one column a fact by ordinal, each told as differences from the
seat before: neighbours differ by little, and always by the same, which is what makes it small once it is compressed.
`docs/geometry.md` describes it for those who write a client.
"""

import struct
import uuid
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from holdfast.seating.layout import AccessMode, GroupType, Layout, Point, SeatCategory, Zone, ZoneType

MAGIC = b"HFGM"
FORM = 1

Integers = NDArray[np.int64]
CATEGORIES = tuple(SeatCategory)
_HEADER = struct.Struct("<4sHHII")
"""Magic, form, nothing (0), seats, bytes of JSON."""
_WIDTHS: dict[str, tuple[str, int]] = {"int16": ("<i2", 2**15 - 1), "int32": ("<i4", 2**31 - 1), "uint8": ("u1", 255)}
_EXACT_SCALES = (1, 10, 100, 1000)
_STEPS_A_SEAT = 50
"""So many units between neighbours: a place is told to a hundredth of that distance."""
_EXACT_TO_SEATS = 5_000
_EXACT_BYTES_A_SEAT = 0.55
"""A larger layout is told to the last digit only where that stays small."""
_FARTHEST = 2**29


class GeometryInvalid(ValueError):
    """What was to be decoded is no geometry of this form."""


# What is told -----------------------------------------------------------------------------------------------------
class GeometryZone(msgspec.Struct, frozen=True, kw_only=True):
    id: uuid.UUID
    zone_id: str
    name: str
    zone_type: ZoneType
    capacity: int
    access_mode: AccessMode
    required_tier: str | None
    first_ordinal: int
    seat_count: int
    focal_point: Point | None
    seat_id_prefix: str
    seat_id_separator: str
    """A seat's id is prefix, row, separator, number, unless `seat_ids` says otherwise."""


class GeometryGroup(msgspec.Struct, frozen=True, kw_only=True):
    group_id: str
    group_type: GroupType
    zone_no: int
    ordinals: tuple[int, ...]


class GeometryColumns(msgspec.Struct, frozen=True, kw_only=True):
    """By ordinal."""

    x: list[float | None]
    """None, in both together, where a seat has no place on the plan."""
    y: list[float | None]
    row: list[int]
    """Index into `rows`."""
    number: list[int]
    category: list[int]
    """Index into `categories`."""


class Geometry(msgspec.Struct, frozen=True, kw_only=True):
    form: int
    layout_id: uuid.UUID
    seat_count: int
    total_capacity: int
    scale: int
    """Units on the plan are 1/scale: coordinates are multiples of it."""
    focal_point: Point | None
    zones: tuple[GeometryZone, ...]
    rows: list[str]
    aisles: dict[int, tuple[int, ...]]
    """By index of the row: numbers with an aisle behind them."""
    categories: list[SeatCategory]
    groups: tuple[GeometryGroup, ...]
    companions: list[tuple[int, int]]
    """A seat, and the seat it names as its companion."""
    seat_ids: dict[int, str]
    """By ordinal: those that are not made of prefix, row, separator and number."""
    columns: GeometryColumns

    def seat_id(self, ordinal: int) -> str:
        zone = next(z for z in self.zones if z.first_ordinal <= ordinal < z.first_ordinal + z.seat_count)
        regular = _regular_id(zone.seat_id_prefix, zone.seat_id_separator, *self._place(ordinal))
        return self.seat_ids.get(ordinal, regular)

    def seat_uuid(self, ordinal: int) -> uuid.UUID:
        return uuid.uuid5(self.layout_id, self.seat_id(ordinal))

    def _place(self, ordinal: int) -> tuple[str, int]:
        return self.rows[self.columns.row[ordinal]], self.columns.number[ordinal]


# Out of a layout --------------------------------------------------------------------------------------------------
def geometry_of(layout: Layout) -> Geometry:
    scale = _scale(layout)
    rows: dict[tuple[int, str], int] = {}
    row_column = [rows.setdefault(key, len(rows)) for key in zip(layout.zone_nos, layout.rows, strict=True)]
    zones = tuple(_zone(layout, zone) for zone in layout.zones)
    category_codes = {category: code for code, category in enumerate(CATEGORIES)}
    return Geometry(
        form=FORM,
        layout_id=layout.layout_id,
        seat_count=layout.seat_count,
        total_capacity=layout.total_capacity,
        scale=scale,
        focal_point=layout.focal_point,
        zones=zones,
        rows=[name for _, name in rows],
        aisles={
            rows[zone.zone_no, name]: info.aisles_after
            for zone in layout.zones
            for name, info in zone.rows.items()
            if info.aisles_after and (zone.zone_no, name) in rows
        },
        categories=list(CATEGORIES),
        groups=tuple(
            GeometryGroup(group_id=g.group_id, group_type=g.group_type, zone_no=g.zone_no, ordinals=g.ordinals)
            for g in layout.groups
        ),
        companions=[(seat, other) for seat, other in enumerate(layout.companions) if other >= 0],
        seat_ids=_irregular_ids(layout, zones),
        columns=GeometryColumns(
            x=_placed(_units(layout.xs, scale), scale),
            y=_placed(_units(layout.ys, scale), scale),
            row=row_column,
            number=layout.numbers,
            category=[category_codes[category] for category in layout.categories],
        ),
    )


def _zone(layout: Layout, zone: Zone) -> GeometryZone:
    prefix, separator = _id_pattern(layout, zone)
    return GeometryZone(
        id=zone.id,
        zone_id=zone.zone_id,
        name=zone.name,
        zone_type=zone.zone_type,
        capacity=zone.capacity,
        access_mode=zone.access_mode,
        required_tier=zone.required_tier,
        first_ordinal=zone.first_ordinal,
        seat_count=zone.seat_count,
        focal_point=zone.focal_point,
        seat_id_prefix=prefix,
        seat_id_separator=separator,
    )


def _regular_id(prefix: str, separator: str, row: str, number: int) -> str:
    return f"{prefix}{row}{separator}{number}"


def _id_pattern(layout: Layout, zone: Zone) -> tuple[str, str]:
    """What stands before the row and between row and number in most of a few ids of the zone."""
    seen: Counter[tuple[str, str]] = Counter()
    for ordinal in zone.ordinals[:: max(1, zone.seat_count // 20)]:
        number = str(layout.numbers[ordinal])
        seat_id, row = layout.seat_ids[ordinal], layout.rows[ordinal]
        before = seat_id[: len(seat_id) - len(number)]
        at = before.rfind(row)
        if seat_id.endswith(number) and at >= 0:
            seen[before[:at], before[at + len(row) :]] += 1
    return seen.most_common(1)[0][0] if seen else ("", "-")


def _irregular_ids(layout: Layout, zones: Iterable[GeometryZone]) -> dict[int, str]:
    found: dict[int, str] = {}
    for zone in zones:
        prefix, separator = zone.seat_id_prefix, zone.seat_id_separator
        for ordinal in range(zone.first_ordinal, zone.first_ordinal + zone.seat_count):
            seat_id = layout.seat_ids[ordinal]
            if seat_id != _regular_id(prefix, separator, layout.rows[ordinal], layout.numbers[ordinal]):
                found[ordinal] = seat_id
    return found


# Coordinates ------------------------------------------------------------------------------------------------------
def _scale(layout: Layout) -> int:
    """To the last digit where that is small, else to a hundredth of the distance between neighbours."""
    xs, ys = _floats(layout.xs), _floats(layout.ys)
    there = ~np.isnan(xs)
    if not there.any():
        return 1
    values = np.concatenate([xs[there], ys[there]])
    exact = next((s for s in _EXACT_SCALES if np.array_equal(np.rint(values * s) / s, values)), None)
    enough = _sufficient_scale(xs, ys, layout, float(np.abs(values).max()))
    if exact is None or exact <= enough or layout.seat_count <= _EXACT_TO_SEATS:
        return enough if exact is None else exact
    packed = sum(len(zlib.compress(_packed_units(layout, column, exact), 6)) for column in (layout.xs, layout.ys))
    return exact if packed <= _EXACT_BYTES_A_SEAT * layout.seat_count else enough


def _sufficient_scale(xs: NDArray[np.float64], ys: NDArray[np.float64], layout: Layout, farthest: float) -> int:
    """One of 1, 2, 5, 10, 20, 50, …"""
    steps = np.hypot(np.diff(xs), np.diff(ys))
    same_row = [a == b for a, b in zip(layout.rows, layout.rows[1:], strict=False)]
    near = steps[np.array(same_row, bool) & ~np.isnan(steps) & (steps > 0)]
    apart = float(np.median(near)) if near.size else _STEPS_A_SEAT / 1000
    scale = 1
    for step in (2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000):
        if apart * scale >= _STEPS_A_SEAT or farthest * step >= _FARTHEST:
            break
        scale = step
    return scale


def _floats(column: Sequence[float | None]) -> NDArray[np.float64]:
    return np.array(column, np.float64)


def _units(column: Sequence[float | None], scale: int) -> Sequence[int | None]:
    values = np.rint(_floats(column) * scale)
    return [None if value != value else int(value) for value in values.tolist()]


def _placed(units: Sequence[int | None], scale: int) -> list[float | None]:
    if scale <= 0:
        raise GeometryInvalid("the scale is not above 0")
    return [None if unit is None else unit / scale for unit in units]


def _packed_units(layout: Layout, column: Sequence[float | None], scale: int) -> bytes:
    spans = [(zone.first_ordinal, zone.seat_count) for zone in layout.zones]
    return _places_column("x", _units(column, scale), spans).body


# Columns ----------------------------------------------------------------------------------------------------------
class _Column(msgspec.Struct, frozen=True):
    """How a column is told: `order` is how often differences were taken; each zone begins at its origin."""

    name: str
    type: Literal["int16", "int32", "uint8"]
    order: int
    bytes: int
    origins: list[int] | None = None
    """By zone; where there are none the column begins at 0 and runs on through all zones."""


class _Told(msgspec.Struct, frozen=True):
    column: _Column
    body: bytes


def _places_column(name: str, units: Sequence[int | None], spans: Sequence[tuple[int, int]]) -> _Told:
    """Differences within each zone, of the first or second order, whichever is smaller; the lowest number is no place."""
    origins: list[int] = []
    differences: tuple[list[int | None], list[int | None]] = ([], [])
    for first, count in spans:
        there = [unit for unit in units[first : first + count] if unit is not None]
        origins.append(there[0] if there else 0)
        once = np.diff(np.array(there, np.int64), prepend=origins[-1])
        twice = np.diff(once, prepend=0)
        for column, values in zip(differences, (iter(once.tolist()), iter(twice.tolist())), strict=True):
            column += [None if unit is None else next(values) for unit in units[first : first + count]]
    told = [_told(name, column, order, origins) for order, column in enumerate(differences, 1)]
    return min((one for one in told if one is not None), key=lambda one: len(zlib.compress(one.body, 6)))


def _told(name: str, column: Sequence[int | None], order: int, origins: list[int] | None = None) -> _Told | None:
    """None where even the wider form is too narrow."""
    farthest = max((abs(value) for value in column if value is not None), default=0)
    for type_ in ("int16", "int32"):
        code, most = _WIDTHS[type_]
        if farthest <= most:
            missing = -most - 1
            body = np.array([missing if value is None else value for value in column], code).tobytes()
            return _Told(_Column(name, type_, order, len(body), origins), body)
    return None


def _running(name: str, values: Sequence[int]) -> _Told:
    told = _told(name, np.diff(np.array(values, np.int64), prepend=0).tolist(), 1)
    assert told is not None, f"{name} has a step that no seat can have"
    return told


class _Block(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The JSON of the binary form: everything but the columns, and how those are told."""

    layout_id: uuid.UUID
    total_capacity: int
    scale: int
    focal_point: Point | None
    zones: tuple[GeometryZone, ...]
    rows: list[str]
    aisles: dict[int, tuple[int, ...]]
    categories: list[SeatCategory]
    groups: tuple[GeometryGroup, ...]
    companions: list[tuple[int, int]]
    seat_ids: dict[int, str]
    columns: list[_Column]


def encode(geometry: Geometry) -> bytes:
    columns, scale = geometry.columns, geometry.scale
    spans = [(zone.first_ordinal, zone.seat_count) for zone in geometry.zones]
    told = [
        *(_places_column(name, _units(column, scale), spans) for name, column in (("x", columns.x), ("y", columns.y))),
        _running("row", columns.row),
        _running("number", columns.number),
        _Told(_Column("category", "uint8", 0, geometry.seat_count), bytes(columns.category)),
    ]
    shared = {f: getattr(geometry, f) for f in _Block.__struct_fields__ if f != "columns"}
    block = msgspec.json.encode(_Block(**shared, columns=[one.column for one in told]))
    block += b" " * (-len(block) % 4)
    header = _HEADER.pack(MAGIC, FORM, 0, geometry.seat_count, len(block))
    return b"".join([header, block, *(one.body + bytes(-len(one.body) % 4) for one in told)])


def decode(body: bytes) -> Geometry:
    """Raises GeometryInvalid."""
    try:
        return _decoded(body)
    except (struct.error, msgspec.DecodeError, ValueError, KeyError, IndexError, OverflowError) as error:
        raise error if isinstance(error, GeometryInvalid) else GeometryInvalid(str(error)) from error


def _decoded(body: bytes) -> Geometry:
    magic, form, _, seats, block_bytes = _HEADER.unpack_from(body)
    if (magic, form) != (MAGIC, FORM):
        raise GeometryInvalid(f"this is no geometry of form {FORM}")
    at = _HEADER.size + block_bytes
    block = msgspec.json.decode(body[_HEADER.size : at], type=_Block)
    told: dict[str, Any] = {}
    for column in block.columns:
        code, most = _WIDTHS[column.type]
        values = np.frombuffer(body[at : at + column.bytes], code).astype(np.int64)
        if len(values) != seats:
            raise GeometryInvalid(f"column {column.name} has {len(values)} seats of {seats}")
        told[column.name] = _undone(column, values, -most - 1, block.zones)
        at += column.bytes + -column.bytes % 4
    if at != len(body):
        raise GeometryInvalid(f"{len(body) - at} bytes too many")
    shared = {f: getattr(block, f) for f in _Block.__struct_fields__ if f != "columns"}
    return Geometry(
        form=form,
        seat_count=seats,
        **shared,
        columns=GeometryColumns(
            x=_placed(told["x"], block.scale),
            y=_placed(told["y"], block.scale),
            row=told["row"],
            number=told["number"],
            category=told["category"],
        ),
    )


def _undone(column: _Column, values: Integers, missing: int, zones: Sequence[GeometryZone]) -> list[int | None]:
    if column.origins is None:
        for _ in range(column.order):
            values = np.cumsum(values)
        whole: list[int | None] = values.tolist()
        return whole
    found: list[int | None] = [None] * len(values)
    for zone, origin in zip(zones, column.origins, strict=True):
        span = slice(zone.first_ordinal, zone.first_ordinal + zone.seat_count)
        there = np.flatnonzero(values[span] != missing)
        run = values[span][there]
        for _ in range(column.order):
            run = np.cumsum(run)
        for ordinal, value in zip((there + zone.first_ordinal).tolist(), (run + origin).tolist(), strict=True):
            found[ordinal] = value
    return found
