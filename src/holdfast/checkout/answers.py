"""A checkout as the API shows it."""

from datetime import datetime
from uuid import UUID

import msgspec


class HeartbeatView(msgspec.Struct, frozen=True):
    every_seconds: int
    holds_expire_in_seconds: int | None


class SeatView(msgspec.Struct, frozen=True):
    id: UUID
    seat_id: str
    row: str
    number: int


class LineView(msgspec.Struct, frozen=True, kw_only=True):
    hold_id: UUID
    seat: SeatView | None
    zone: str
    quantity: int
    hold_type: str
    status: str
    held_until: datetime | None
    price_minor: int | None
    due_minor: int


class CheckoutView(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    event_id: UUID
    status: str
    refund_due: bool
    expires_at: datetime
    expires_at_unix: int
    expires_in_seconds: int
    heartbeat: HeartbeatView | None
    currency: str | None
    total_minor: int
    payment_required: bool
    lines: list[LineView]
    tickets: list[UUID]
    payment_id: UUID | None
    created_at: datetime
    ended_at: datetime | None
