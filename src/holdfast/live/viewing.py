"""A viewer's side of the live stream: what a client does with the messages, and what it then knows. Pure.

The simulation, the measurements and the tests watch with it; a browser does the same.
"""

import msgspec

from holdfast.live.codec import SOFT_BIT, TYPE_MAX, TYPE_SHIFT, Changes, ZoneLeft, decode_snapshot

UNKNOWN = -1


class Watched:
    """What a viewer knows of an event: of each seat its byte, and the version where a message told one."""

    def __init__(self) -> None:
        self.values = bytearray()
        self.versions: dict[int, int] = {}
        self.hold_types: dict[int, str] = {}
        self.zones: dict[int, ZoneLeft] = {}
        self.last_id: str | None = None
        self.stale = True
        """Must load the snapshot: at first, and after a `resync`."""

    def load(self, body: bytes) -> None:
        """A snapshot in its binary form."""
        read = decode_snapshot(body)
        self.values = bytearray(read.values)
        self.versions.clear()
        self.zones = {zone.zone_no: zone for zone in read.zones}
        self.last_id = read.sequence
        self.stale = False

    def hear(self, kind: str, sequence: str | None, data: bytes) -> None:
        if sequence is not None:
            self.last_id = sequence
        if kind == "resync":
            self.stale = True
        elif kind == "seats":
            self._take_in(msgspec.json.decode(data, type=Changes))

    def _take_in(self, changes: Changes) -> None:
        if not self.values and changes.ordinals:
            return  # nothing to change yet: the snapshot will have it
        for ordinal, value, version in zip(changes.ordinals, changes.values, changes.versions, strict=True):
            if version >= self.versions.get(ordinal, UNKNOWN):
                self.values[ordinal] = value & ~(TYPE_MAX << TYPE_SHIFT)
                self.versions[ordinal] = version
                name = changes.hold_types[(value >> TYPE_SHIFT) & TYPE_MAX]
                if name is None:
                    self.hold_types.pop(ordinal, None)
                else:
                    self.hold_types[ordinal] = name
        for zone in changes.zones:
            known = self.zones.get(zone.zone_no)
            if known is None or zone.version >= known.version:
                self.zones[zone.zone_no] = zone

    @property
    def states(self) -> bytes:
        """One byte a seat: 0 available, 1 held, 2 sold, 3 blocked."""
        return bytes(value & 0b11 for value in self.values)

    @property
    def not_offered(self) -> list[int]:
        """Free seats that are softly kept for somebody's companion."""
        return [ordinal for ordinal, value in enumerate(self.values) if value & SOFT_BIT]


class EventStream:
    """Server-sent events out of a stream of bytes, in whatever pieces it comes."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> list[tuple[str, str | None, bytes]]:
        """Kind, id (where it has one) and data of every message that is complete."""
        *blocks, self._rest = (self._rest + piece).split(b"\n\n")
        found: list[tuple[str, str | None, bytes]] = []
        for block in blocks:
            fields = dict(line.partition(b": ")[::2] for line in block.split(b"\n") if line and line[:1] != b":")
            if b"event" in fields:
                sequence = fields.get(b"id")
                found.append(
                    (fields[b"event"].decode(), None if sequence is None else sequence.decode(), fields[b"data"])
                )
        return found
