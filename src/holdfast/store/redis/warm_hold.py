"""A hold as the warm tier has it, and how it is read back. What cannot be read is none of ours."""

from datetime import datetime
from uuid import UUID

import msgspec

from holdfast.kernel.ids import parse_id
from holdfast.store.redis.keys import iso, member, parse_iso

_ID = 36


class WarmHold(msgspec.Struct, frozen=True, kw_only=True):
    """Of a seat, or (`seat_id` None) of places in a GA zone. Read from an event's list of holds it has the first five."""

    hold_id: UUID
    event_id: UUID
    seat_id: UUID | None = None
    user_id: UUID | None = None
    held_until: datetime | None = None
    """None: until it is released."""
    created_at: datetime | None = None
    source: str | None = None
    hold_type: str | None = None
    version: int = 0
    """The seat's, when the hold began. 0: not known."""
    zone_no: int | None = None
    quantity: int | None = None

    @property
    def member(self) -> str:
        """How it stands in the event's list of holds."""
        assert self.seat_id is not None
        return member(self.seat_id, self.hold_id, self.user_id, self.held_until)

    def as_removal(self) -> list[object]:
        """What the script that removes it compares with."""
        return [self.event_id, self.hold_id, self.seat_id or "", self.user_id or "", iso(self.held_until)]


def read_member(event_id: UUID, raw: bytes) -> WarmHold | None:
    """A member of an event's list of holds."""
    try:
        seat, hold, user, held_until = raw.decode().split(":", 3)
        return WarmHold(
            hold_id=_id(hold),
            event_id=event_id,
            seat_id=_id(seat),
            user_id=_id(user) if user else None,
            held_until=parse_iso(held_until),
        )
    except ValueError:
        return None


def read_meta(event_id: UUID, seat_id: UUID, held: bytes, meta: list[bytes | None]) -> WarmHold | None:
    """A seat's key with the meta of the hold in it, if both speak of this seat in this event."""
    try:
        event, seat, user, held_until, created_at, source, hold_type, version = (
            None if value is None else value.decode() for value in meta
        )
        if event != str(event_id) or seat != str(seat_id) or held_until is None:
            return None
        return WarmHold(
            hold_id=_id(held[:_ID].decode()),
            event_id=event_id,
            seat_id=seat_id,
            user_id=_id(user) if user else None,
            held_until=parse_iso(held_until),
            created_at=parse_iso(created_at or ""),
            source=source or None,
            hold_type=hold_type or None,
            version=int(version or 0),
        )
    except ValueError:
        return None


def _id(text: str) -> UUID:
    found = parse_id(text)
    if found is None:
        raise ValueError(f"not an id: {text!r}")
    return found
