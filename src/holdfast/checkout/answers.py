"""A checkout as its owner and the organiser see it. Pure."""

from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from holdfast.checkout.checkout import LIVE, Checkout, Line, due_minor, kept, needs_payment
from holdfast.holds.claims import seconds_between
from holdfast.holds.lifecycle import HoldStatus
from holdfast.seating.layout import Layout


class SeatShown(msgspec.Struct, frozen=True):
    id: UUID
    seat_id: str
    row: str
    number: int


class LineView(msgspec.Struct, frozen=True, kw_only=True):
    """One hold of a checkout."""

    hold_id: UUID
    seat: SeatShown | None
    """Null: places of the zone."""
    zone: str
    quantity: int
    hold_type: str
    status: str
    """Of the hold. What is not active cannot be bought."""
    held_until: datetime | None
    price_minor: int | None
    """Of one place; null: the event's price list has none."""
    due_minor: int


class Heartbeat(msgspec.Struct, frozen=True):
    every_seconds: int
    """How often the page should call, at least."""
    holds_expire_in_seconds: int
    """When the first of the holds ends if it does not."""


class PaidWith(msgspec.Struct, frozen=True):
    """A payment provider that the buyer can choose."""

    name: str
    kind: str


class CheckoutView(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    event_id: UUID
    user_id: UUID | None
    status: str
    refund_due: bool
    expires_at: datetime
    expires_at_unix: int
    expires_in_seconds: int
    heartbeat: Heartbeat | None
    """Null: the holds live as long as the session."""
    currency: str | None
    total_minor: int
    payment_required: bool
    payment_providers: list[PaidWith]
    """With which it can be paid; of one that can be paid."""
    lines: list[LineView]
    tickets: list[UUID]
    payment_id: UUID | None
    created_at: datetime
    ended_at: datetime | None


class CheckoutPage(msgspec.Struct, frozen=True):
    checkouts: list[CheckoutView]
    next_cursor: str | None


class Opened(msgspec.Struct, frozen=True):
    created: bool
    checkout: CheckoutView


def describe_checkout(
    checkout: Checkout,
    lines: Sequence[Line],
    layout_of: Callable[[Line], Layout],
    *,
    tickets: Sequence[UUID] = (),
    refund_due: bool = False,
    providers: Sequence[PaidWith] = (),
) -> CheckoutView:
    counted = kept(lines)
    status = checkout.seen_as
    left_s = seconds_between(checkout.now, checkout.expires_at) or 0
    return CheckoutView(
        id=checkout.id,
        event_id=checkout.event_id,
        user_id=checkout.user_id,
        status=status.value,
        refund_due=refund_due,
        expires_at=checkout.expires_at,
        expires_at_unix=int(checkout.expires_at.timestamp()),
        expires_in_seconds=left_s if status in LIVE else 0,
        heartbeat=_heartbeat(checkout, counted) if status in LIVE else None,
        currency=checkout.currency,
        total_minor=due_minor(counted),
        payment_required=needs_payment(counted),
        payment_providers=list(providers) if status in LIVE and needs_payment(counted) else [],
        lines=[_line(line, layout_of(line)) for line in counted],
        tickets=list(tickets),
        payment_id=checkout.payment_id,
        created_at=checkout.created_at,
        ended_at=checkout.ended_at,
    )


def _heartbeat(checkout: Checkout, lines: Sequence[Line]) -> Heartbeat | None:
    if checkout.heartbeat_s is None:
        return None
    ends = [line.held_until for line in lines if line.status is HoldStatus.ACTIVE and line.held_until is not None]
    first = min(ends, default=None)
    # Twice in a hold's life: one that is lost on the way does not lose the seats.
    return Heartbeat(checkout.heartbeat_s // 2, 0 if first is None else seconds_between(checkout.now, first) or 0)


def _line(line: Line, layout: Layout) -> LineView:
    n = line.ordinal
    seat = None
    if n is not None:
        seat = SeatShown(layout.seat_uuid(n), layout.seat_ids[n], layout.rows[n], layout.numbers[n])
    return LineView(
        hold_id=line.hold_id,
        seat=seat,
        zone=layout.zones[line.zone_no].zone_id,
        quantity=line.quantity,
        hold_type=line.hold_type,
        status=line.status.value,
        held_until=line.held_until,
        price_minor=line.price_minor,
        due_minor=line.due_minor,
    )
