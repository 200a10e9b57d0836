"""Holds as their owners and organisers see them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from holdfast.holds.claims import AttendeeNamed, Held, PlacedHold, seconds_between
from holdfast.holds.lifecycle import HoldStatus
from holdfast.kernel.errors import Refusal
from holdfast.seating.accessibility import CompanionSeat
from holdfast.seating.view import EventView


class HoldView(msgspec.Struct, frozen=True, kw_only=True):
    """A hold as its owner or the organiser may see it."""

    hold_id: UUID
    event_id: UUID
    seat_id: UUID | None
    seat_label: str | None
    zone_id: str
    block_name: str
    row: str | None
    seat_number: int | None
    quantity: int
    status: str
    hold_type: str
    held_until: datetime | None
    held_until_unix: int | None
    expires_in_seconds: int | None
    created_at: datetime | None = None
    user_id: UUID | None = None
    session_id: str | None = None
    source: str | None = None
    attendee_user_id: UUID | None = None
    attendee_name: str | None = None
    associated_membership_id: UUID | None = None
    checkout_id: UUID | None = None
    """The checkout that it lives and ends with."""
    companions: list[CompanionSeat] | UnsetType = UNSET
    """Of a wheelchair seat: the seats beside it that are kept for its holder's companions."""


class StoredHold(Protocol):
    """A row of holds, by column."""

    def __getitem__(self, column: str, /) -> Any: ...


class Placement(msgspec.Struct, frozen=True):
    created: bool
    holds: list[HoldView]


class Released(msgspec.Struct, frozen=True):
    released: int
    expired: int
    hold_ids: list[UUID]


class SeatMove(msgspec.Struct, frozen=True, order=True):
    hold_id: UUID
    seat: UUID


class HoldFilter(msgspec.Struct, frozen=True, kw_only=True):
    hold_type: str | None = None
    user_id: UUID | None = None
    zone: str | None = None
    expiring_within_s: float | None = None


class HoldPage(msgspec.Struct, frozen=True):
    holds: list[HoldView]
    next_cursor: str | None


def named_holds(holds: Sequence[PlacedHold], attendees: Sequence[AttendeeNamed]) -> list[AttendeeNamed]:
    """The attendees beside the holds that came of the request: a seat the buyer had from before has its old hold."""
    of_seat = {one.ordinal: one for one in attendees if one.ordinal is not None}
    of_hold = {one.hold_id: one for one in attendees}
    found: list[AttendeeNamed] = []
    for hold in holds:
        one = of_hold.get(hold.hold_id) if hold.ordinal is None else of_seat.get(hold.ordinal)
        if one is not None:
            found.append(msgspec.structs.replace(one, hold_id=hold.hold_id))
    return found


def placement_of(view: EventView, held: Held, named: Sequence[AttendeeNamed] = (), *, staff: bool = False) -> Placement:
    now = held.decided_at
    holds = [
        _view(view, h.hold_id, h.ordinal, h.zone_no, h.quantity, h.hold_type, h.held_until, now, "held")
        for h in held.holds
    ]
    if named:
        by_hold = {one.hold_id: _attendee(one.user_id, one.name, one.membership_id, staff=staff) for one in named}
        holds = [msgspec.structs.replace(hold, **by_hold.get(hold.hold_id, {})) for hold in holds]
    return Placement(held.created, holds)


def _view(
    view: EventView,
    hold_id: UUID,
    ordinal: int | None,
    zone_no: int,
    quantity: int,
    hold_type: str,
    held_until: datetime | None,
    now: datetime,
    status: str,
) -> HoldView:
    layout = view.layout
    zone = layout.zones[zone_no]
    return HoldView(
        hold_id=hold_id,
        event_id=view.id,
        seat_id=None if ordinal is None else layout.seat_uuid(ordinal),
        seat_label=None if ordinal is None else layout.seat_ids[ordinal],
        zone_id=zone.zone_id,
        block_name=zone.name,
        row=None if ordinal is None else layout.rows[ordinal],
        seat_number=None if ordinal is None else layout.numbers[ordinal],
        quantity=quantity,
        status=status,
        hold_type=hold_type,
        held_until=held_until,
        held_until_unix=None if held_until is None else int(held_until.timestamp()),
        expires_in_seconds=seconds_between(now, held_until),
    )


def hold_view(view: EventView, row: StoredHold, *, staff: bool = False) -> HoldView:
    """From a stored row. Only staff see whose it is, and whom an address belongs to."""
    seen = _view(
        view,
        row["id"],
        row["ordinal"],
        row["zone_no"],
        row["quantity"],
        row["hold_type"],
        row["held_until"],
        row["now"],
        row["status"],
    )
    return msgspec.structs.replace(
        seen,
        expires_in_seconds=seen.expires_in_seconds if row["status"] == HoldStatus.ACTIVE else 0,
        created_at=row["created_at"],
        source=row["source"],
        user_id=row["user_id"] if staff else None,
        session_id=row["session_id"] if staff else None,
        checkout_id=row["checkout_id"],
        **_attendee(row["attendee_user_id"], row["attendee_name"], row["associated_membership_id"], staff=staff),
    )


def _attendee(
    user_id: UUID | None, name: str | None, membership_id: UUID | None, *, staff: bool
) -> dict[str, UUID | str | None]:
    """A buyer sees what they said themselves: whom an address belongs to is for staff, and so are memberships."""
    return {
        "attendee_user_id": user_id if staff or name is None else None,
        "attendee_name": name,
        "associated_membership_id": membership_id if staff else None,
    }


def beside(hold: HoldView, companions: dict[UUID, list[CompanionSeat]]) -> HoldView:
    found = companions.get(hold.hold_id)
    return hold if found is None else msgspec.structs.replace(hold, companions=found)


def page_of(views: list[HoldView], limit: int) -> HoldPage:
    more = len(views) > limit
    return HoldPage(views[:limit], str(views[limit - 1].hold_id) if more else None)


def named_refusal(refusal: Refusal, view: EventView | None) -> Refusal:
    """The writer speaks of ordinals; the caller knows seats and zones by their ids."""
    facts = dict(refusal.facts)
    ordinal, zone_no = facts.pop("ordinal", None), facts.pop("zone_no", None)
    if view is None or (ordinal is None and zone_no is None):
        return refusal
    if ordinal is not None:
        facts["seat_id"] = str(view.layout.seat_uuid(ordinal))
    if zone_no is not None:
        facts["zone_id"] = view.layout.zones[zone_no].zone_id
    return type(refusal)(refusal.detail, **facts)
