"""What a webhook says: one message of the outbox, with the seats by their names instead of their ordinals."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import msgspec

from holdfast.holds.lifecycle import SeatState
from holdfast.live.message import Message
from holdfast.seating.layout import Layout

SOLD_OUT: Final = "EventSoldOut"
TEST: Final = "WebhookTest"
KINDS: Final = (
    "SeatReserved",
    "SeatHoldExtended",
    "SeatReleased",
    "SeatHoldExpired",
    "SeatSold",
    "SaleReverted",
    "SeatBlocked",
    "SeatUnblocked",
    "CheckoutCompleted",
    "CheckoutExpired",
    "CheckoutCancelled",
    "PaymentOrphaned",
    "TicketVoided",
    "TicketExchanged",
    "EventCreated",
    "EventUpdated",
    "EventPublished",
    "EventLive",
    "EventCancelled",
    "EventArchived",
    "EventMigrated",
    "HoldersMoved",
    SOLD_OUT,
)
"""All that can be listened to. What else is in the outbox is between the parts of this product."""

SEATS_MAX: Final = 1_000
"""Seats, or holds of places, in one message; what is more is sent in parts."""


class WebhookMessage(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    event_id: UUID | None
    body: bytes
    outbox_id: int | None = None
    part: int = 0


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What an endpoint listens to."""

    endpoint_id: UUID
    kinds: frozenset[str]
    """Empty: all."""
    event_id: UUID | None
    since: datetime
    """It was not there before."""

    def wants(self, kind: str, event_id: UUID | None, at: datetime) -> bool:
        return (
            kind in KINDS
            and (not self.kinds or kind in self.kinds)
            and (self.event_id is None or self.event_id == event_id)
            and at >= self.since
        )


class Occupancy(msgspec.Struct, frozen=True, kw_only=True):
    held: int
    sold: int
    blocked: int
    total: int

    @property
    def available(self) -> int:
        return self.total - self.held - self.sold - self.blocked


class _Body(msgspec.Struct, frozen=True):
    type: str
    timestamp: datetime
    data: dict[str, Any]


def messages_of(message: Message, event_name: str | None, layout: Layout | None) -> list[WebhookMessage]:
    """One, unless it is about more than a thousand seats or holds of places."""
    parts = list(_parts(message, layout))
    made: list[WebhookMessage] = []
    for part, content in enumerate(parts):
        data = {"event_id": message.event_id, "event_name": event_name, **content}
        if len(parts) > 1:
            data |= {"part": part + 1, "parts": len(parts)}
        made.append(
            WebhookMessage(
                kind=message.kind,
                event_id=message.event_id,
                body=encoded(message.kind, message.at, data),
                outbox_id=message.id,
                part=part,
            )
        )
    return made


def _parts(message: Message, layout: Layout | None) -> Iterator[dict[str, Any]]:
    if message.ordinals is not None:
        for first in range(0, max(1, len(message.ordinals)), SEATS_MAX):
            within = range(first, min(first + SEATS_MAX, len(message.ordinals)))
            yield {**_move(message), "seats": [_seat(message, layout, n) for n in within]}
    elif message.quantities:
        for first in range(0, len(message.quantities), SEATS_MAX):
            within = range(first, min(first + SEATS_MAX, len(message.quantities)))
            yield {**_move(message), **_places(message, layout, within)}
    else:
        payload = message.payload
        told = {"actor": message.actor} if message.actor is not None else {}
        yield {**(payload if isinstance(payload, dict) else {} if payload is None else {"payload": payload}), **told}


def _move(message: Message) -> dict[str, Any]:
    return {
        "state": message.state,
        "hold_type": message.hold_type,
        "held_until": message.held_until,
        "actor": message.actor,
        "source": message.source,
    }


def _seat(message: Message, layout: Layout | None, n: int) -> dict[str, Any]:
    assert message.ordinals is not None
    ordinal = message.ordinals[n]
    seat: dict[str, Any] = {"ordinal": ordinal}
    if layout is not None and ordinal < layout.seat_count:
        seat = {
            "id": layout.seat_uuid(ordinal),
            "seat_id": layout.seat_ids[ordinal],
            "ordinal": ordinal,
            "zone": layout.zone_of(ordinal).zone_id,
            "row": layout.rows[ordinal],
            "number": layout.numbers[ordinal],
        }
    return seat | {
        "version": _at(message.versions, n),
        "hold_id": _at(message.hold_ids, n),
        "user_id": _at(message.user_ids, n),
    }


def _places(message: Message, layout: Layout | None, within: range) -> dict[str, Any]:
    no = message.zone_no
    zone = layout.zones[no] if layout is not None and no is not None and no < len(layout.zones) else None
    return {
        "zone": None if zone is None else zone.zone_id,
        "quantity": sum(message.quantities[n] for n in within),
        "places": [
            {
                "quantity": message.quantities[n],
                "hold_id": _at(message.hold_ids, n),
                "user_id": _at(message.user_ids, n),
            }
            for n in within
        ],
    }


def _at(values: list[Any], n: int) -> Any:
    return values[n] if n < len(values) else None


def encoded(kind: str, at: datetime, data: dict[str, Any]) -> bytes:
    return msgspec.json.encode(_Body(kind, at, data))


def sold_out_message(event_id: UUID, event_name: str, at: datetime, occupancy: Occupancy) -> WebhookMessage:
    data = {"event_id": event_id, "event_name": event_name, **msgspec.to_builtins(occupancy)}
    return WebhookMessage(kind=SOLD_OUT, event_id=event_id, body=encoded(SOLD_OUT, at, data))


def message_of_test(endpoint_id: UUID, at: datetime) -> WebhookMessage:
    data = {"endpoint_id": endpoint_id, "note": "A test: nothing happened."}
    return WebhookMessage(kind=TEST, event_id=None, body=encoded(TEST, at, data))


def total_places(layout: Layout) -> int:
    return sum(zone.capacity if zone.is_ga else zone.seat_count for zone in layout.zones)


def moves_places(message: Message) -> bool:
    """Whether places may have been taken or come free by it."""
    return message.event_id is not None and isinstance(message.state, SeatState)
