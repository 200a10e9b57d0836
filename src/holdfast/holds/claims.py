"""What a request to hold seats asks for, and what became of it. Pure: the facts come from the database."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from holdfast.holds.lifecycle import SeatState
from holdfast.kernel.errors import (
    EventNotAvailable,
    EventNotFound,
    EventSalesClosed,
    EventUnavailable,
    LayoutChanged,
    RateLimited,
    Refusal,
    SeatHeldByAnother,
    SeatNotAvailable,
    SeatNotFound,
    SeatNotOffered,
    ZoneAtCapacity,
    ZoneDisabled,
)
from holdfast.seating.accessibility import AccessibleTerms, CompanionRule, kept_words
from holdfast.seating.layout import SeatGroup

MAX_ATTEMPTS = 4  # of one request whose seats were freed and taken again while it asked


class SeatWanted(msgspec.Struct, frozen=True):
    ordinal: int
    zone_no: int
    hold_id: UUID  # chosen beforehand, so that a repeated try is recognised
    companion: CompanionRule | None = None  # where it is a companion's seat, and the policy keeps such


class PlacesWanted(msgspec.Struct, frozen=True):
    zone_no: int
    quantity: int
    hold_id: UUID


class AttendeeNamed(msgspec.Struct, frozen=True, kw_only=True):
    """Who will sit on a place of the request; nobody in particular where all three are none."""

    ordinal: int | None  # by which a hold that the buyer had from before is found
    hold_id: UUID
    user_id: UUID | None = None
    name: str | None = None
    membership_id: UUID | None = None


class HoldRequest(msgspec.Struct, frozen=True, kw_only=True):
    """All of it or nothing: these seats and places of one event, for one owner."""

    organization_id: UUID
    event_id: UUID
    layout_version: int | None  # in which ordinals and zone numbers are meant; none: the event has zones of its own
    seats: tuple[SeatWanted, ...]  # sorted by ordinal
    places: tuple[PlacesWanted, ...]  # sorted by zone
    user_id: UUID | None
    session_id: str | None
    actor: str
    source: str
    hold_type: str
    ttl_s: int | None
    any_time: bool  # not bound by the sale window
    user_limit: int | None  # holds a user may place in the window; none: no limit
    ip_limit: int | None
    ip: str | None
    user_agent: str | None
    request_id: str | None
    accessible: AccessibleTerms | None = None  # with a wheelchair seat or a companion's
    attendees: tuple[AttendeeNamed, ...] = ()
    tables: tuple[SeatGroup, ...] = ()  # that must be whole once this is held

    @property
    def alone(self) -> bool:
        """Needs a transaction of its own, because the batching writer knows nothing of these."""
        return bool(self.attendees or self.tables or self.accessible is not None)

    @property
    def hold_ids(self) -> list[UUID]:
        return [s.hold_id for s in self.seats] + [p.hold_id for p in self.places]

    @property
    def limited(self) -> bool:
        return self.user_limit is not None or self.ip_limit is not None


class PlacedHold(msgspec.Struct, frozen=True, kw_only=True):
    hold_id: UUID
    ordinal: int | None
    zone_no: int
    quantity: int
    hold_type: str
    held_until: datetime | None
    created: bool  # false: the caller had it already


class Held(msgspec.Struct, frozen=True):
    holds: list[PlacedHold]
    decided_at: datetime

    @property
    def created(self) -> bool:
        return True in [hold.created for hold in self.holds]  # half the price of any(), on the hottest path


class ClaimFacts(msgspec.Struct, frozen=True):
    """Why one claim was refused (the row type `hold_outcome`, in its order)."""

    n: int
    decided_at: datetime
    held_until: datetime | None = None
    state: str | None = None
    own_hold_id: UUID | None = None
    own_hold_type: str | None = None
    own_created_at: datetime | None = None
    room: int | None = None
    event_status: str | None = None
    on_sale: bool | None = None
    retry_after_s: int | None = None
    kept: bool | None = None
    layout_version: int | None = None


class Verdict(msgspec.Struct, frozen=True):
    """What the database said of one request. A claim (by its position: seats first, then places) that is not among the
    refused was granted, for the life it asked from the moment of the decision."""

    decided_at: datetime
    refused: Mapping[int, ClaimFacts]


class Unsettled(msgspec.Struct, frozen=True):
    """Not decided: ask again, for what is not already the caller's own."""

    remaining: HoldRequest
    kept: list[PlacedHold]


def seconds_between(now: datetime, until: datetime | None) -> int | None:
    """Whole seconds left, rounded up: a hold is never shown as over while it lives."""
    if until is None:
        return None
    left = (until - now).total_seconds()
    return max(0, int(left) + (left > int(left)))


def settle(request: HoldRequest, verdict: Verdict) -> Held | Unsettled | Refusal:
    """The outcome of a whole request."""
    if not verdict.refused:
        return Held(_granted(request, verdict.decided_at), verdict.decided_at)
    refusal = _event_refusal(request, next(iter(verdict.refused.values())))
    if refusal is not None:
        return refusal
    kept: list[PlacedHold] = []
    for n, fact in sorted(verdict.refused.items()):
        if n >= len(request.seats):
            zone_no = request.places[n - len(request.seats)].zone_no
            if fact.state == SeatState.BLOCKED:
                return disabled_zone(zone_no)
            wanted = sum(places.quantity for places in request.places if places.zone_no == zone_no)
            if fact.room is not None and fact.room < wanted:
                return full_zone(zone_no, fact.room)
        elif fact.own_hold_id is not None:
            kept.append(_own(request, request.seats[n], fact))
        elif fact.kept and _free_again(fact):
            return seat_not_offered(request.seats[n])
        elif not _free_again(fact):
            return _seat_refusal(request.seats[n].ordinal, fact)
    own = {hold.ordinal for hold in kept}
    remaining = tuple(seat for seat in request.seats if seat.ordinal not in own)
    if not remaining and not request.places:
        return Held(kept, verdict.decided_at)
    return Unsettled(msgspec.structs.replace(request, seats=remaining), kept)


def _free_again(fact: ClaimFacts) -> bool:
    """Given back because another seat of the request failed, or freed a moment after it was refused."""
    if fact.state == SeatState.HELD:
        return fact.held_until is not None and fact.held_until <= fact.decided_at
    return fact.state == SeatState.AVAILABLE


def _own(request: HoldRequest, seat: SeatWanted, fact: ClaimFacts) -> PlacedHold:
    assert fact.own_hold_id is not None
    return PlacedHold(
        hold_id=fact.own_hold_id,
        ordinal=seat.ordinal,
        zone_no=seat.zone_no,
        quantity=1,
        hold_type=fact.own_hold_type or request.hold_type,
        held_until=fact.held_until,
        created=fact.own_hold_id == seat.hold_id,
    )


def _granted(request: HoldRequest, decided_at: datetime) -> list[PlacedHold]:
    held_until = None if request.ttl_s is None else decided_at + timedelta(seconds=request.ttl_s)
    holds = [
        PlacedHold(
            hold_id=seat.hold_id,
            ordinal=seat.ordinal,
            zone_no=seat.zone_no,
            quantity=1,
            hold_type=request.hold_type,
            held_until=held_until,
            created=True,
        )
        for seat in request.seats
    ]
    if request.places:
        holds += [
            PlacedHold(
                hold_id=places.hold_id,
                ordinal=None,
                zone_no=places.zone_no,
                quantity=places.quantity,
                hold_type=request.hold_type,
                held_until=held_until,
                created=True,
            )
            for places in request.places
        ]
    return holds


def _event_refusal(request: HoldRequest, fact: ClaimFacts) -> Refusal | None:
    """What holds for the whole request, in the order the checks are promised: event, sale window, layout, limit."""
    if fact.event_status is None:
        return EventNotFound()
    if fact.event_status == "cancelled":
        return EventUnavailable("This event was cancelled.", status_of_event=fact.event_status)
    if fact.event_status not in ("published", "live"):
        return EventNotAvailable("This event is not on sale.", status_of_event=fact.event_status)
    if fact.on_sale is False:
        return EventSalesClosed("Sales for this event are not open now.")
    if fact.layout_version != request.layout_version:
        return LayoutChanged()
    if fact.retry_after_s is not None:
        return RateLimited(
            "You have placed as many holds as are allowed in a few minutes. Please wait a moment.",
            retry_after_s=fact.retry_after_s,
            **({} if request.user_limit is None else {"limit": request.user_limit}),
        )
    return None


def _seat_refusal(ordinal: int, fact: ClaimFacts) -> Refusal:
    if fact.state is None:
        return SeatNotFound("There is no such seat in this event.", ordinal=ordinal)
    return taken_seat(ordinal, fact.state, seconds_between(fact.decided_at, fact.held_until))


def taken_seat(ordinal: int, state: str, expires_in: int | None) -> Refusal:
    if state == SeatState.HELD:
        return held_by_another(ordinal, expires_in)
    return SeatNotAvailable(f"This seat is {state}.", current_status=state, ordinal=ordinal)


def seat_not_offered(seat: SeatWanted) -> SeatNotOffered:
    assert seat.companion is not None
    percent = seat.companion.percent
    return SeatNotOffered(
        kept_words(percent), current_status="available", offered_at_percent=percent, ordinal=seat.ordinal
    )


def held_by_another(ordinal: int, expires_in: int | None) -> SeatHeldByAnother:
    detail = "Someone else is holding this seat."
    if expires_in is not None:
        detail += f" It may come free in {expires_in} seconds."
    return SeatHeldByAnother(detail, current_status="held", expires_in=expires_in, ordinal=ordinal)


def disabled_zone(zone_no: int) -> Refusal:
    return ZoneDisabled("This zone is not offered at this event.", zone_no=zone_no)


def full_zone(zone_no: int, room: int) -> Refusal:
    left = "no places are" if not room else f"only {room} {'place is' if room == 1 else 'places are'}"
    return ZoneAtCapacity(f"Not enough room: {left} left in this zone.", available=room, zone_no=zone_no)
