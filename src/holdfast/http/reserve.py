"""The shape of `POST /api/events/{event}/seats/{seat}/reserve`: its body and its answer."""

from datetime import datetime
from functools import lru_cache
from typing import Final, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from holdfast.holds.answers import HoldView, Placement
from holdfast.holds.claims import Held, seconds_between
from holdfast.http.problem import invalid_body
from holdfast.seating.accessibility import CompanionSeat
from holdfast.seating.view import EventView


class ReserveBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    source: Literal["web", "scanner"] = "web"
    hold_type: str | None = None


class Reserved(msgspec.Struct, frozen=True, kw_only=True):
    hold_id: UUID
    seat_id: UUID
    seat_label: str
    event_id: UUID
    zone_id: str
    block_name: str
    row: str
    seat_number: int
    status: str
    held_until: datetime | None
    held_until_unix: int | None
    expires_in_seconds: int | None
    hold_type: str
    message: str
    companions: list[CompanionSeat] | UnsetType = UNSET
    """Of a wheelchair seat."""


_decoder = msgspec.json.Decoder(ReserveBody | None)
_DEFAULT: Final = ReserveBody()


def parse_reserve(body: bytes) -> ReserveBody:
    """No body, or null, asks for the defaults."""
    if not body:
        return _DEFAULT
    try:
        return _decoder.decode(body) or _DEFAULT
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise invalid_body(error) from error


def reserved(placement: Placement) -> Reserved:
    hold = placement.holds[0]
    assert hold.seat_id is not None
    assert hold.row is not None
    assert hold.seat_number is not None
    return Reserved(
        hold_id=hold.hold_id,
        seat_id=hold.seat_id,
        seat_label=hold.seat_label or "",
        event_id=hold.event_id,
        zone_id=hold.zone_id,
        block_name=hold.block_name,
        row=hold.row,
        seat_number=hold.seat_number,
        status=hold.status,
        held_until=hold.held_until,
        held_until_unix=hold.held_until_unix,
        expires_in_seconds=hold.expires_in_seconds,
        hold_type=hold.hold_type,
        message=" ".join([message_for(hold.expires_in_seconds, placement.created), *companion_words(hold)]),
        companions=hold.companions,
    )


def companion_words(hold: HoldView) -> list[str]:
    return [] if hold.companions is UNSET else [companion.words for companion in hold.companions]


def reserved_now(view: EventView, held: Held) -> Reserved:
    """The same straight from the writer's outcome, for the short way."""
    hold = held.holds[0]
    ordinal, held_until = hold.ordinal, hold.held_until
    assert ordinal is not None
    layout = view.layout
    zone = layout.zones[hold.zone_no]
    expires_in = seconds_between(held.decided_at, held_until)
    return Reserved(
        hold_id=hold.hold_id,
        seat_id=layout.seat_uuid(ordinal),
        seat_label=layout.seat_ids[ordinal],
        event_id=view.id,
        zone_id=zone.zone_id,
        block_name=zone.name,
        row=layout.rows[ordinal],
        seat_number=layout.numbers[ordinal],
        status="held",
        held_until=held_until,
        held_until_unix=None if held_until is None else int(held_until.timestamp()),
        expires_in_seconds=expires_in,
        hold_type=hold.hold_type,
        message=message_for(expires_in, hold.created),
    )


@lru_cache(maxsize=10_000)
def message_for(expires_in: int | None, created: bool) -> str:
    lasting = _lasting(expires_in)
    if not created:
        return f"You already hold this seat{lasting}."
    return f"Seat reserved{lasting}. Proceed to checkout."


def _lasting(seconds: int | None) -> str:
    if seconds is None:
        return " until it is released"
    if seconds % 60 == 0 and seconds >= 60:
        minutes = seconds // 60
        return f" for {minutes} minute{'s' if minutes != 1 else ''}"
    return f" for {seconds} second{'s' if seconds != 1 else ''}"
