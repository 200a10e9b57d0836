"""One version of a layout: immutable geometry, held as columns.

A seat is its ordinal (0…n-1); every per-seat fact is a column indexed by it, because a hundred thousand small
objects cost more to load than the whole answer may take. The seats of one zone have contiguous ordinals,
zones and seats in the order of the config. The lists are never written to after construction.
"""

import hashlib
import struct
import uuid
from collections.abc import Iterable
from enum import StrEnum
from functools import cached_property
from typing import Any, Self

import msgspec
import numpy as np

from holdfast.kernel.ids import FastUUID


class SeatCategory(StrEnum):
    STANDARD = "standard"
    WHEELCHAIR = "wheelchair"
    COMPANION = "companion"
    RESTRICTED_VIEW = "restricted_view"
    AISLE = "aisle"


class ZoneType(StrEnum):
    RESERVED_SEATING = "reserved_seating"
    GA_SEATED = "ga_seated"
    GA_STANDING = "ga_standing"
    VIP_RESERVED = "vip_reserved"
    VIP_STANDING = "vip_standing"

    @property
    def is_ga(self) -> bool:
        """Places are counted, not numbered."""
        return self in (ZoneType.GA_SEATED, ZoneType.GA_STANDING, ZoneType.VIP_STANDING)

    @property
    def is_vip(self) -> bool:
        return self in (ZoneType.VIP_RESERVED, ZoneType.VIP_STANDING)


class AccessMode(StrEnum):
    PUBLIC = "public"
    MEMBERSHIP_TIER = "membership_tier"
    ROLE_BASED = "role_based"
    WHITELIST = "whitelist"


class GroupType(StrEnum):
    WHEELCHAIR_PAIR = "wheelchair_pair"
    FAMILY_BLOCK = "family_block"
    VIP_TABLE = "vip_table"
    RESERVED_BLOCK = "reserved_block"


class Point(msgspec.Struct, frozen=True):
    x: float
    y: float


class RowInfo(msgspec.Struct, frozen=True):
    aisles_after: tuple[int, ...] = ()
    """Seat numbers with an aisle behind them: the next number is no neighbour."""


class SeatGroup(msgspec.Struct, frozen=True):
    group_id: str
    group_type: GroupType
    zone_no: int
    ordinals: tuple[int, ...]
    metadata: dict[str, Any] = {}


class Zone(msgspec.Struct, frozen=True, kw_only=True):
    zone_no: int
    """Position in the layout."""
    id: uuid.UUID
    zone_id: str
    name: str
    zone_type: ZoneType
    capacity: int
    access_mode: AccessMode = AccessMode.PUBLIC
    required_tier: str | None = None
    allowed_roles: tuple[str, ...] = ()
    first_ordinal: int = 0
    seat_count: int = 0
    focal_point: Point | None = None
    rows: dict[str, RowInfo] = {}
    metadata: dict[str, Any] = {}

    @property
    def is_ga(self) -> bool:
        return self.zone_type.is_ga

    @property
    def ordinals(self) -> range:
        return range(self.first_ordinal, self.first_ordinal + self.seat_count)


class SeatIndex:
    """From a seat's sixteen raw id bytes to its ordinal."""

    __slots__ = ("_ordinals",)

    def __init__(self, seat_uuids: bytes) -> None:
        self._ordinals = {raw: ordinal for ordinal, (raw,) in enumerate(struct.iter_unpack("16s", seat_uuids))}

    def __len__(self) -> int:
        return len(self._ordinals)

    def get(self, raw: bytes) -> int | None:
        return self._ordinals.get(raw)

    def of(self, seat: uuid.UUID) -> int | None:
        return self._ordinals.get(seat.bytes)


# `dict=True` gives the cached properties below somewhere to live; they are no part of the value.
class Layout(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    layout_id: uuid.UUID
    zones: tuple[Zone, ...]
    seat_uuids: bytes = b""
    """Sixteen bytes a seat, in ordinal order."""
    seat_ids: list[str] = []
    rows: list[str] = []
    numbers: list[int] = []
    zone_nos: list[int] = []
    categories: list[SeatCategory] = []
    xs: list[float | None] = []
    """None, in both columns together, where a seat has no coordinates."""
    ys: list[float | None] = []
    companions: list[int] = []
    """The ordinal each seat names as its companion, or -1."""
    groups: tuple[SeatGroup, ...] = ()
    focal_point: Point | None = None
    background_svg: str | None = None
    """As the organiser sent it: show it only where scripts cannot run, such as in an <img>."""
    total_capacity: int = 0

    @property
    def seat_count(self) -> int:
        return len(self.seat_ids)

    @cached_property
    def seat_index(self) -> SeatIndex:
        return SeatIndex(self.seat_uuids)

    @cached_property
    def ordinals_by_seat_id(self) -> dict[str, int]:
        return {seat_id: ordinal for ordinal, seat_id in enumerate(self.seat_ids)}

    @cached_property
    def overlaid(self) -> "dict[bytes, Layout]":
        """This layout with the zones of events' overlays, by what those say; `seating/overlay.py` keeps it."""
        return {}

    @cached_property
    def price_lists(self) -> dict[Any, Any]:
        """Price lists for these seats, by what they say; `seating/prices.py` keeps it."""
        return {}

    def with_zones(self, zones: tuple[Zone, ...]) -> "Layout":
        """The same seats in zones that say something else of themselves. The columns are shared, and what has been worked
        out about the seats as well."""
        changed = msgspec.structs.replace(self, zones=zones)
        _ = self.seat_index
        for name, value in self.__dict__.items():
            if name not in _OF_ZONES:
                changed.__dict__[name] = value
        return changed

    @cached_property
    def all_public(self) -> bool:
        """No zone asks who the buyer is."""
        return all(zone.access_mode is AccessMode.PUBLIC for zone in self.zones)

    def numbers_as(self, other: "Layout") -> bool:
        """Whether ordinals and zone numbers mean the same in both."""
        return self is other or (self.seat_uuids == other.seat_uuids and self.zones == other.zones)

    def seat_uuid(self, ordinal: int) -> uuid.UUID:
        return FastUUID(self.seat_uuid_bytes(ordinal))

    def seat_uuid_bytes(self, ordinal: int) -> bytes:
        if not 0 <= ordinal < len(self.seat_ids):
            raise IndexError(f"no seat has ordinal {ordinal}")
        return self.seat_uuids[16 * ordinal : 16 * ordinal + 16]

    def zone_of(self, ordinal: int) -> Zone:
        if ordinal < 0:
            raise IndexError(f"no seat has ordinal {ordinal}")
        return self.zones[self.zone_nos[ordinal]]

    def zone(self, name_or_uuid: str) -> Zone | None:
        """The zone named by the organiser's `zone_id` or by its UUID in any spelling."""
        named = self._zones_by_name.get(name_or_uuid)
        if named is not None:
            return named
        try:
            return self._zones_by_name.get(str(uuid.UUID(name_or_uuid)))
        except ValueError:
            return None

    def seat(self, name_or_uuid: str) -> int | None:
        """The ordinal of the seat named by the organiser's `seat_id` or by its UUID in any spelling."""
        named = self.ordinals_by_seat_id.get(name_or_uuid)
        if named is not None:
            return named
        try:
            return self.seat_index.of(uuid.UUID(name_or_uuid))
        except ValueError:
            return None

    @cached_property
    def _zones_by_name(self) -> dict[str, Zone]:
        # The organiser's own strings are written last: they win, should one look like another zone's UUID.
        return {str(zone.id): zone for zone in self.zones} | {zone.zone_id: zone for zone in self.zones}

    @cached_property
    def binding_groups(self) -> dict[int, tuple[SeatGroup, ...]]:
        """The seats that a buyer cannot take one by one, with the groups that bind them; empty in most layouts."""
        found: dict[int, tuple[SeatGroup, ...]] = {}
        for group in self.groups:
            if group.group_type in (GroupType.VIP_TABLE, GroupType.RESERVED_BLOCK):
                found |= {ordinal: (*found.get(ordinal, ()), group) for ordinal in group.ordinals}
        return found

    @cached_property
    def wheelchair_companions(self) -> dict[int, tuple[int, ...]]:
        """Each wheelchair seat with its companion seats, in ordinal order: those it names, those that name it, and those
        that are in a wheelchair pair with it. A wheelchair seat is nobody's companion: whoever needs it may have it."""
        wheelchair = [category is SeatCategory.WHEELCHAIR for category in self.categories]
        found: dict[int, set[int]] = {}
        for seat, other in enumerate(self.companions):
            if other >= 0 and wheelchair[seat] is not wheelchair[other]:
                chair, companion = (seat, other) if wheelchair[seat] else (other, seat)
                found.setdefault(chair, set()).add(companion)
        for group in self.groups:
            if group.group_type is GroupType.WHEELCHAIR_PAIR:
                companions = {seat for seat in group.ordinals if not wheelchair[seat]}
                for seat in group.ordinals:
                    if wheelchair[seat] and companions:
                        found.setdefault(seat, set()).update(companions)
        return {seat: tuple(sorted(others)) for seat, others in sorted(found.items())}

    @cached_property
    def companion_wheelchairs(self) -> dict[int, tuple[int, ...]]:
        """The same the other way: each companion seat with the wheelchair seats it belongs to, in ordinal order."""
        found: dict[int, list[int]] = {}
        for seat, companions in self.wheelchair_companions.items():
            for companion in companions:
                found.setdefault(companion, []).append(seat)
        return {companion: tuple(seats) for companion, seats in sorted(found.items())}

    @cached_property
    def wheelchair_seats(self) -> frozenset[int]:
        """With a companion seat or without."""
        return frozenset(n for n, category in enumerate(self.categories) if category is SeatCategory.WHEELCHAIR)

    @cached_property
    def accessible_seats(self) -> frozenset[int]:
        """Wheelchair seats and their companions'."""
        return self.wheelchair_seats | frozenset(self.companion_wheelchairs)

    def pack(self) -> bytes:
        """The compact stored form; `unpack` reads it back equal."""
        row_codes: dict[str, int] = {}
        codes = [row_codes.setdefault(row, len(row_codes)) for row in self.rows]
        return _encoder.encode(
            _Packed(
                form=_FORM,
                layout_id=self.layout_id.bytes,
                zones=self.zones,
                seat_uuids=self.seat_uuids,
                seat_ids=self.seat_ids,
                row_names=list(row_codes),
                row_codes=np.array(codes, "<u4").tobytes(),
                numbers=np.array(self.numbers, "<u4").tobytes(),
                categories=bytes([_CATEGORY_CODES[category] for category in self.categories]),
                xs=np.array(self.xs, "<f8").tobytes(),
                ys=np.array(self.ys, "<f8").tobytes(),
                companions=np.array(self.companions, "<i4").tobytes(),
                groups=self.groups,
                focal_point=self.focal_point,
                background_svg=self.background_svg,
                total_capacity=self.total_capacity,
            )
        )

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        wire = _decoder.decode(packed)
        if wire.form != _FORM:
            raise ValueError(f"a packed layout of form {wire.form} cannot be read by this version")
        names = wire.row_names
        return cls(
            layout_id=uuid.UUID(bytes=wire.layout_id),
            zones=wire.zones,
            seat_uuids=wire.seat_uuids,
            seat_ids=wire.seat_ids,
            rows=[names[code] for code in np.frombuffer(wire.row_codes, "<u4").tolist()],
            numbers=np.frombuffer(wire.numbers, "<u4").tolist(),
            zone_nos=zone_column(wire.zones),
            categories=[_CATEGORIES[code] for code in wire.categories],
            xs=_coordinates(wire.xs),
            ys=_coordinates(wire.ys),
            companions=np.frombuffer(wire.companions, "<i4").tolist(),
            groups=wire.groups,
            focal_point=wire.focal_point,
            background_svg=wire.background_svg,
            total_capacity=wire.total_capacity,
        )


def zone_column(zones: Iterable[Zone]) -> list[int]:
    column: list[int] = []
    for zone in zones:
        column += [zone.zone_no] * zone.seat_count
    return column


def zone_uuid(layout_id: uuid.UUID, zone_id: str) -> uuid.UUID:
    return uuid.uuid5(layout_id, f"zone:{zone_id}")


def seat_uuid_column(layout_id: uuid.UUID, seat_ids: Iterable[str]) -> bytes:
    """`uuid5(layout_id, seat_id)` of every seat, end to end.

    By hand because uuid.UUID objects would be three quarters of the cost: the version and variant bits are
    set for the whole column in two strided writes.
    """
    namespace = layout_id.bytes
    sha1 = hashlib.sha1
    column = bytearray().join(
        [sha1(namespace + seat_id.encode(), usedforsecurity=False).digest()[:16] for seat_id in seat_ids]
    )
    column[6::16] = column[6::16].translate(_VERSION_5)
    column[8::16] = column[8::16].translate(_VARIANT_RFC)
    return bytes(column)


_OF_ZONES = frozenset(("all_public", "_zones_by_name", "overlaid", "price_lists"))
"""What has been worked out about a layout's zones, and does not hold once they are others."""

_VERSION_5 = bytes(byte & 0x0F | 0x50 for byte in range(256))
_VARIANT_RFC = bytes(byte & 0x3F | 0x80 for byte in range(256))

_FORM = 1
# A category is stored as its position here: append, never reorder.
_CATEGORIES = (
    SeatCategory.STANDARD,
    SeatCategory.WHEELCHAIR,
    SeatCategory.COMPANION,
    SeatCategory.RESTRICTED_VIEW,
    SeatCategory.AISLE,
)
_CATEGORY_CODES = {category: code for code, category in enumerate(_CATEGORIES)}


class _Packed(msgspec.Struct, array_like=True, kw_only=True):
    form: int
    layout_id: bytes
    zones: tuple[Zone, ...]
    seat_uuids: bytes
    seat_ids: list[str]
    row_names: list[str]
    row_codes: bytes
    numbers: bytes
    categories: bytes
    xs: bytes
    ys: bytes
    companions: bytes
    groups: tuple[SeatGroup, ...]
    focal_point: Point | None
    background_svg: str | None
    total_capacity: int


_encoder = msgspec.msgpack.Encoder(uuid_format="bytes")
_decoder = msgspec.msgpack.Decoder(_Packed)


def _coordinates(raw: bytes) -> list[float | None]:
    # Missing is NaN on the wire; no real coordinate is, the validator sees to that.
    column = np.frombuffer(raw, "<f8")
    values: list[float | None] = column.tolist()
    for missing in np.flatnonzero(np.isnan(column)).tolist():
        values[missing] = None
    return values
