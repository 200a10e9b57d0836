"""A message of the change feed: what one transaction did to one event in one way. Pure; read from the outbox."""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from holdfast.holds.lifecycle import SeatState

EVENT_MIGRATED = "EventMigrated"
"""Ordinals and zone numbers of the event mean those of another version of its layout from here on."""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """Of seats (`ordinals`), of a general-admission zone (`zone_no`), or of anything else (`payload`).

    Messages may arrive more than once and in any order; of one seat, or zone, the highest version is the newest. A hold
    that was extended keeps its seat's version and ends later; one that entered a checkout may end earlier (`shortened`).
    """

    organization_id: UUID
    id: int
    xid: int
    """The transaction's number."""
    at: datetime
    kind: str
    """SeatReserved, SeatReleased, SeatHoldExpired, SeatHoldExtended, SeatSold, SaleReverted, SeatBlocked, …"""
    event_id: UUID | None
    actor: str | None = None
    source: str | None = None
    state: SeatState | None = None
    hold_type: str | None = None
    held_until: datetime | None = None
    ordinals: list[int] | None = None
    versions: list[int] = []
    """By ordinal."""
    hold_ids: list[UUID | None] = []
    """By ordinal, or by quantity: the holds that began (SeatReserved, SeatHoldExtended) or ended."""
    user_ids: list[UUID | None] = []
    """Whose holds began; never sent to buyers."""
    quantities: list[int] = []
    zone_no: int | None = None
    zone_version: int | None = None
    zone_held: int | None = None
    zone_sold: int | None = None
    zone_blocked: int | None = None
    payload: Any = None

    @property
    def shortened(self) -> bool:
        """Whether the holds end earlier than was told before."""
        return isinstance(self.payload, dict) and self.payload.get("shortened") is True
