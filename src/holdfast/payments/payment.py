"""Payments and refunds, and whether a payment may buy what its checkout holds. Pure."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

import msgspec

from holdfast.checkout.checkout import Checkout, CheckoutStatus, Line, due_minor, needs_payment
from holdfast.seating.event import ON_SALE, EventStatus

AMOUNT_MAX_MINOR: Final = 10**15
"""More than anybody pays, and far below what the database can store."""
REFERENCE_CHARS: Final = 200


class PaymentStatus(StrEnum):
    PENDING = "pending"
    RECEIVED = "received"
    APPLIED = "applied"
    REFUND_DUE = "refund_due"
    FAILED = "failed"


class RefundReason(StrEnum):
    """Why money bought nothing."""

    SECOND_PAYMENT = "second_payment"
    CHECKOUT_CANCELLED = "checkout_cancelled"
    EVENT_CANCELLED = "event_cancelled"
    EVENT_CLOSED = "event_closed"
    NOTHING_LEFT = "nothing_left"
    NOTHING_TO_PAY = "nothing_to_pay"
    WRONG_AMOUNT = "wrong_amount"
    WRONG_CURRENCY = "wrong_currency"
    SEATS_GONE = "seats_gone"
    SEATS_TAKEN = "seats_taken"


class RefundStatus(StrEnum):
    DUE = "due"
    DONE = "done"


class Payment(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    checkout_id: UUID
    event_id: UUID
    provider: str
    reference: str
    amount_minor: int | None
    """None: stated by hand for places without a price."""
    currency: str | None
    status: PaymentStatus
    created_at: datetime
    received_at: datetime | None
    settled_at: datetime | None


class PaymentBegun(msgspec.Struct, frozen=True):
    payment: Payment
    page: dict[str, Any]
    """What the page hands to the provider."""


class Refund(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    payment_id: UUID | None
    checkout_id: UUID
    event_id: UUID
    ticket_id: UUID | None
    provider: str | None
    payment_reference: str | None
    amount_minor: int | None
    currency: str | None
    reason: str
    status: RefundStatus
    created_at: datetime
    done_at: datetime | None
    done_by: UUID | None
    reference: str | None


def unpriced(lines: Sequence[Line]) -> list[Line]:
    """Those that are to be paid for, at a price that is known elsewhere."""
    return [line for line in lines if line.needs_payment and line.price_minor is None]


def objection(
    payment: Payment,
    checkout: Checkout,
    lines: Sequence[Line],
    event_status: EventStatus,
    layout_version: int | None,
) -> RefundReason | None:
    """Why this money cannot buy what is kept in the checkout, whether or not the seats can be had; None: it can try."""
    if checkout.status is CheckoutStatus.COMPLETED:
        return RefundReason.SECOND_PAYMENT
    if checkout.status is CheckoutStatus.CANCELLED:
        return RefundReason.CHECKOUT_CANCELLED
    if event_status not in ON_SALE:
        cancelled = event_status is EventStatus.CANCELLED
        return RefundReason.EVENT_CANCELLED if cancelled else RefundReason.EVENT_CLOSED
    if not lines:
        return RefundReason.NOTHING_LEFT
    if not needs_payment(lines):
        return RefundReason.NOTHING_TO_PAY
    if payment.currency and checkout.currency and payment.currency.upper() != checkout.currency.upper():
        return RefundReason.WRONG_CURRENCY
    # Where a price is unknown here, whoever asked for the money knew it.
    if not unpriced(lines) and payment.amount_minor != due_minor(lines):
        return RefundReason.WRONG_AMOUNT
    if any(line.layout_version != layout_version for line in lines):
        return RefundReason.SEATS_GONE
    return None
