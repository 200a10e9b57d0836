"""A checkout as its owner and the organiser see it. Pure."""

from datetime import datetime
from uuid import UUID

import msgspec


class CheckoutView(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    event_id: UUID
    user_id: UUID | None
    status: str
    refund_due: bool
    expires_at: datetime
    currency: str | None
    tickets: list[UUID]
    payment_id: UUID | None
    created_at: datetime
    ended_at: datetime | None
