"""A checkout: a buyer's holds on their way to being sold, with one clock and fixed prices. Pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from uuid import UUID

import msgspec

from holdfast.accounts.principal import Call
from holdfast.holds.lifecycle import HoldStatus


class CheckoutStatus(StrEnum):
    OPEN = "open"
    PAYING = "paying"
    COMPLETED = "completed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


LIVE = frozenset((CheckoutStatus.OPEN, CheckoutStatus.PAYING))


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One hold of a checkout at the price it came in with, and how the hold stands now."""

    hold_id: UUID
    quantity: int
    price_minor: int | None
    """Of one place; None: the event's price list has none."""
    payment_required: bool
    dropped_at: datetime | None
    zone_no: int
    ordinal: int | None
    layout_version: int | None
    """In which ordinal and zone number are meant."""
    hold_type: str
    status: HoldStatus
    """Expired also where the hold is over and no sweeper has been there."""
    held_until: datetime | None
    user_id: UUID | None
    attendee_user_id: UUID | None = None
    attendee_name: str | None = None
    associated_membership_id: UUID | None = None

    @property
    def due_minor(self) -> int:
        """What is to be paid for it: nothing where its type asks for no payment."""
        return self.quantity * self.price_minor if self.payment_required and self.price_minor else 0

    @property
    def needs_payment(self) -> bool:
        """A place without a price needs one too: what it costs is known elsewhere. One for nothing does not."""
        return self.payment_required and self.price_minor != 0


class PricedHold(msgspec.Struct, frozen=True, kw_only=True):
    """A hold on its way into a checkout, at what it costs at this moment."""

    hold_id: UUID
    ordinal: int | None
    price_minor: int | None
    payment_required: bool


class Checkout(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    event_id: UUID
    user_id: UUID | None
    session_id: str | None
    status: CheckoutStatus
    """As stored. Whether it is over by the clock: `is_over`."""
    source: str
    actor: str
    expires_at: datetime
    heartbeat_s: int | None
    last_heartbeat_at: datetime | None
    currency: str | None
    payment_id: UUID | None
    created_at: datetime
    ended_at: datetime | None
    now: datetime
    """The database's time when this was read."""

    @property
    def is_over(self) -> bool:
        return self.status in LIVE and self.expires_at <= self.now

    @property
    def seen_as(self) -> CheckoutStatus:
        """One that is over is expired, swept or not."""
        return CheckoutStatus.EXPIRED if self.is_over else self.status


def kept(lines: Iterable[Line]) -> list[Line]:
    """Those that count: what was dropped stays for disputes only."""
    return [line for line in lines if line.dropped_at is None]


def due_minor(lines: Sequence[Line]) -> int:
    return sum(line.due_minor for line in lines)


def needs_payment(lines: Sequence[Line]) -> bool:
    return any(line.needs_payment for line in lines)


def not_fresh(lines: Sequence[Line]) -> list[Line]:
    """Those that cannot be converted."""
    return [line for line in lines if line.status is not HoldStatus.ACTIVE]


def may_see(call: Call, user_id: UUID | None) -> bool:
    """Whoever owns the checkout, and staff. To anybody else there is no such checkout."""
    who = call.principal
    return who.is_staff or (who.user_id is not None and who.user_id == user_id)
