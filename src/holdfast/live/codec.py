"""What viewers are sent: the snapshot of an event's seats, and what changed since. Pure; free of anybody's id.

A seat is one byte: two bits of state, five of hold type (an index into the list of names that travels with it; 0 for
none), and one for seats softly kept for a companion.
"""

import struct
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

STATE_NAMES = ("available", "held", "sold", "blocked")
STATE_LETTERS = b"ahsb"
TYPE_SHIFT, TYPE_MAX, SOFT_BIT = 2, 31, 0x80
MAGIC = b"HFS1"
_HEAD = struct.Struct("<4sIQH")
"""Magic, number of seats, the mark to resume from, bytes of the JSON that follows; then the seats."""

_encoder = msgspec.json.Encoder()


class ZoneLeft(msgspec.Struct, frozen=True):
    """A general-admission zone as a buyer sees it."""

    zone_no: int
    capacity: int
    held: int
    sold: int
    version: int
    blocked: int = 0


class Changes(msgspec.Struct, frozen=True, omit_defaults=True):
    """`seats`: position by position the ordinal, the byte, the version. An older version never replaces a newer one."""

    ordinals: list[int] = []
    values: list[int] = []
    versions: list[int] = []
    hold_types: list[str | None] = []
    zones: list[ZoneLeft] = []


class Counts(msgspec.Struct, frozen=True):
    available: int
    held: int
    sold: int
    blocked: int
    total: int


class OccupancyNow(msgspec.Struct, frozen=True):
    """`occupancy`: the whole event, and by zone in the order of the layout."""

    event: Counts
    zones: list[Counts]
    held_by_type: dict[str, int]


class Snapshot(msgspec.Struct, frozen=True):
    """`GET …/availability` as JSON: one letter a seat (a, h, s, b), and the seats of each hold type."""

    event_id: str
    sequence: str
    seat_count: int
    states: str
    hold_types: dict[str, list[int]]
    zones: list[ZoneLeft]
    not_offered: list[int] = []
    """Free seats that are softly kept for a companion: only the holder of the wheelchair seat beside may take them."""
    not_offered_because: str | None = None


def seat_values(
    states: NDArray[np.uint8], types: NDArray[np.uint8], soft: NDArray[np.bool_] | None = None
) -> NDArray[np.uint8]:
    shown = np.where(types > TYPE_MAX, 0, types).astype(np.uint8)
    values = np.bitwise_or(states, np.left_shift(shown, np.uint8(TYPE_SHIFT))).astype(np.uint8)
    return values if soft is None else np.where(soft, values | np.uint8(SOFT_BIT), values)


def encode_changes(
    ordinals: Sequence[int],
    states: NDArray[np.uint8],
    types: NDArray[np.uint8],
    versions: NDArray[np.int32],
    hold_types: Sequence[str | None],
    zones: Sequence[ZoneLeft],
    soft: NDArray[np.bool_] | None = None,
) -> bytes:
    """Of these seats; the columns are the whole event's."""
    chosen = np.array(ordinals, np.int64)
    kept = None if soft is None else soft[chosen]
    return _encoder.encode(
        Changes(
            list(ordinals),
            seat_values(states[chosen], types[chosen], kept).tolist(),
            versions[chosen].tolist(),
            list(hold_types[: TYPE_MAX + 1]) if len(chosen) else [],
            list(zones),
        )
    )


def encode_snapshot(
    mark: int,
    states: NDArray[np.uint8],
    types: NDArray[np.uint8],
    hold_types: Sequence[str | None],
    zones: Sequence[ZoneLeft],
    sequence: str,
    soft: NDArray[np.bool_] | None = None,
    because: str | None = None,
) -> bytes:
    said: dict[str, object] = {
        "sequence": sequence,
        "hold_types": list(hold_types[: TYPE_MAX + 1]),
        "zones": list(zones),
    }
    if because is not None:
        said["not_offered_because"] = because
    words = _encoder.encode(said)
    return _HEAD.pack(MAGIC, len(states), mark, len(words)) + words + seat_values(states, types, soft).tobytes()


class SnapshotRead(msgspec.Struct, frozen=True):
    mark: int
    sequence: str
    hold_types: list[str | None]
    zones: list[ZoneLeft]
    values: bytes
    not_offered_because: str | None = None

    def not_offered(self, ordinal: int) -> bool:
        return bool(self.values[ordinal] & SOFT_BIT)

    def state(self, ordinal: int) -> str:
        return STATE_NAMES[self.values[ordinal] & 0b11]

    def hold_type(self, ordinal: int) -> str | None:
        return self.hold_types[(self.values[ordinal] >> TYPE_SHIFT) & TYPE_MAX]


def decode_snapshot(body: bytes) -> SnapshotRead:
    """What a client does with it."""
    magic, seats, mark, words = _HEAD.unpack_from(body)
    if magic != MAGIC:
        raise ValueError("no snapshot of seats")
    start = _HEAD.size + words
    said = msgspec.json.decode(body[_HEAD.size : start])
    values = body[start : start + seats]
    if len(values) != seats:
        raise ValueError("the snapshot is cut short")
    zones = msgspec.convert(said["zones"], list[ZoneLeft])
    because = said.get("not_offered_because")
    return SnapshotRead(mark, said["sequence"], said["hold_types"], zones, values, because)


def encode_json_snapshot(
    event_id: str,
    sequence: str,
    states: NDArray[np.uint8],
    types: NDArray[np.uint8],
    hold_types: Sequence[str | None],
    zones: Sequence[ZoneLeft],
    soft: NDArray[np.bool_] | None = None,
    because: str | None = None,
) -> bytes:
    kept = [] if soft is None else np.nonzero(soft)[0].tolist()
    letters = np.frombuffer(STATE_LETTERS, np.uint8)[states].tobytes().decode()
    by_type = {
        name: np.nonzero(types == index)[0].tolist()
        for index, name in enumerate(hold_types)
        if index and name is not None
    }
    found = {name: ordinals for name, ordinals in by_type.items() if ordinals}
    snapshot = Snapshot(event_id, sequence, len(states), letters, found, list(zones), kept, because if kept else None)
    return _encoder.encode({"data": snapshot})


def count_states(
    states: NDArray[np.uint8],
    types: NDArray[np.uint8],
    zone_nos: NDArray[np.int64],
    hold_types: Sequence[str | None],
    zones: int,
    pools: Sequence[ZoneLeft],
) -> OccupancyNow:
    """By zone; `pools` are the zones whose places are counted, not numbered."""
    table = np.bincount(zone_nos * 4 + states, minlength=zones * 4).reshape(zones, 4)
    for pool in pools:
        table[pool.zone_no] += (
            pool.capacity - pool.held - pool.sold - pool.blocked,
            pool.held,
            pool.sold,
            pool.blocked,
        )
    held = np.bincount(types[states == 1], minlength=len(hold_types))
    by_type = {name: int(held[n]) for n, name in enumerate(hold_types) if name is not None and held[n]}
    return OccupancyNow(_counts(table.sum(axis=0)), [_counts(row) for row in table], by_type)


def _counts(row: NDArray[np.int64]) -> Counts:
    available, held, sold, blocked = (int(n) for n in row)
    return Counts(available, held, sold, blocked, available + held + sold + blocked)


# The wire ---------------------------------------------------------------------------------------------------------
class Frame(msgspec.Struct, frozen=True):
    """One message, in the two forms it travels in."""

    sse: bytes
    text: bytes


def frame(kind: str, data: bytes, sequence: str | None = None) -> Frame:
    """`sequence` only where everything up to it has been sent: a viewer resumes from the last one it saw."""
    name = kind.encode()
    if sequence is None:
        return Frame(b"event: %b\ndata: %b\n\n" % (name, data), b'{"type":"%b","data":%b}' % (name, data))
    return Frame(
        b"id: %b\nevent: %b\ndata: %b\n\n" % (sequence.encode(), name, data),
        b'{"type":"%b","id":"%b","data":%b}' % (name, sequence.encode(), data),
    )


HEARTBEAT = Frame(b": \n\n", b'{"type":"heartbeat"}')


class Place(msgspec.Struct, frozen=True):
    """Where a stream stands: everything done by transactions numbered below `mark` has been sent."""

    mark: int
    unix_s: int
    n: int

    def __str__(self) -> str:
        return f"{self.mark}.{self.unix_s}.{self.n}"


def parse_place(text: str) -> Place | None:
    parts = text.split(".")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() and len(part) < 20 for part in parts):
        return None
    return Place(*map(int, parts))
