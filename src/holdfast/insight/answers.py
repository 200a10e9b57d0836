"""What is told of what happened."""

from datetime import datetime
from uuid import UUID

import msgspec

from holdfast.holds.lifecycle import SeatState


class MoveAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the state log: of a seat, or of a quantity of a zone's places."""

    id: int
    at: datetime
    verb: str
    seat: UUID | None
    seat_id: str | None
    ordinal: int | None
    zone: str
    quantity: int
    old_state: SeatState
    new_state: SeatState
    version: int
    hold_type: str | None
    hold_id: UUID | None
    session_id: str | None
    actor: str
    user_id: UUID | None
    reason: str | None


class AuditAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    at: datetime
    action: str
    entity_type: str
    entity_id: UUID | None
    event_id: UUID | None
    actor: str
    user_id: UUID | None
    ip: str | None
    user_agent: str | None
    request_id: str | None
    reason: str | None
    changes: msgspec.Raw
