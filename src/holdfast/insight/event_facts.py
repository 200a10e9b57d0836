"""What is known of one event at one instant, for those who examine it."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from holdfast.holds.lifecycle import LayoutChange, LogRow, SeatState
from holdfast.insight.occupancy import Count


class SeatFact(msgspec.Struct, frozen=True):
    ordinal: int
    state: SeatState
    version: int
    hold_id: UUID | None
    hold_type: str | None
    held_until: datetime | None
    zone_no: int
    sold: bool = False
    """Also of a seat that was blocked after it was sold."""


class ZoneFact(msgspec.Struct, frozen=True):
    zone_no: int
    capacity: int
    held: int
    sold: int
    blocked: int = 0


class HoldFact(msgspec.Struct, frozen=True):
    """An active hold; `ordinal` is null for places of a zone."""

    hold_id: UUID
    ordinal: int | None
    zone_no: int
    quantity: int
    hold_type: str
    held_until: datetime | None


class TicketFact(msgspec.Struct, frozen=True):
    """A valid ticket; `ordinal` is null for a place of a zone."""

    ticket_id: UUID
    ordinal: int | None
    zone_no: int


class CheckoutFact(msgspec.Struct, frozen=True):
    """A completed checkout that was made of holds."""

    checkout_id: UUID
    places: int
    """In the lines that were kept."""
    tickets: int
    """Issued for it, valid or not."""


class LineFact(msgspec.Struct, frozen=True):
    """An active hold with an end, kept in a checkout that is open or being paid for."""

    checkout_id: UUID
    hold_id: UUID
    expires_at: datetime
    held_until: datetime
    heartbeat: bool


class EventFacts(msgspec.Struct, frozen=True, kw_only=True):
    seats: Sequence[SeatFact]
    zones: Sequence[ZoneFact]
    active_holds: Sequence[HoldFact]
    log: Sequence[LogRow]
    layout_changes: Sequence[LayoutChange] = ()
    """Where in the log numbers begin to mean something else."""
    occupancy: Sequence[Count]
    """The counters, folded and not."""
    tickets: Sequence[TicketFact] = ()
    completed: Sequence[CheckoutFact] = ()
    lines: Sequence[LineFact] = ()
    unsettled: Sequence[UUID] = ()
    """Payments whose money has been there for a while and has neither bought anything nor is due back."""
    acknowledged: int = 0
    unknown_holds: Sequence[UUID] = ()
    """Those of the acknowledged holds of which there is no row."""
