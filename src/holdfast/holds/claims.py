"""What a request to hold seats asks for, and what became of it. Pure: the facts come from the database."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from holdfast.holds.lifecycle import SeatState
from holdfast.kernel.errors import (
    EventNotAvailable,
    EventNotFound,
    EventSalesClosed,
    EventUnavailable,
    RateLimited,
    Refusal,
    SeatHeldByAnother,
    SeatNotAvailable,
    SeatNotFound,
    ZoneAtCapacity,
)

MAX_ATTEMPTS = 4  # of one request whose seats were freed and taken again while it asked


class SeatWanted(msgspec.Struct, frozen=True):
    ordinal: int
    zone_no: int
    hold_id: UUID  # chosen beforehand, so that a repeated try is recognised


class PlacesWanted(msgspec.Struct, frozen=True):
    zone_no: int
    quantity: int
    hold_id: UUID


class HoldRequest(msgspec.Struct, frozen=True, kw_only=True):
    """All of it or nothing: these seats and places of one event, for one owner."""

    organization_id: UUID
    event_id: UUID
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
        return any(h.created for h in self.holds)


class ClaimFacts(msgspec.Struct, frozen=True):
    """What the database said of one claim (the row type `hold_outcome`, in its order)."""

    n: int
    granted: bool
    decided_at: datetime
    held_until: datetime | None
    version: int | None
    state: str | None
    own_hold_id: UUID | None
    own_hold_type: str | None
    own_created_at: datetime | None
    room: int | None
    event_status: str | None
    on_sale: bool | None
    retry_after_s: int | None


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


def settle(request: HoldRequest, facts: Sequence[ClaimFacts]) -> Held | Unsettled | Refusal:
    """The outcome of a whole request from the facts of its claims (seats first, then places)."""
    if all(f.granted for f in facts):
        return Held(_granted(request, facts), facts[0].decided_at)
    refused = [(i, f) for i, f in enumerate(facts) if not f.granted]
    refusal = _event_refusal(refused[0][1])
    if refusal is not None:
        return refusal
    kept: list[PlacedHold] = []
    blocked_by: Refusal | None = None
    settled_elsewhere = False
    for i, fact in refused:
        if i >= len(request.seats):
            if fact.room is not None and fact.room < request.places[i - len(request.seats)].quantity:
                blocked_by = blocked_by or _zone_refusal(request, i, fact)
            continue
        seat = request.seats[i]
        if fact.own_hold_id is not None:
            kept.append(
                PlacedHold(
                    hold_id=fact.own_hold_id,
                    ordinal=seat.ordinal,
                    zone_no=seat.zone_no,
                    quantity=1,
                    hold_type=fact.own_hold_type or request.hold_type,
                    held_until=fact.held_until,
                    created=fact.own_hold_id == seat.hold_id,
                )
            )
        elif fact.state == SeatState.AVAILABLE or (
            fact.state == SeatState.HELD
            and fact.held_until is not None
            and fact.held_until <= fact.decided_at
        ):
            settled_elsewhere = True  # taken together with another seat that failed, or freed a moment ago
        else:
            blocked_by = blocked_by or _seat_refusal(seat.ordinal, fact)
    if blocked_by is not None:
        return blocked_by
    own = {k.ordinal for k in kept}
    remaining = tuple(s for s in request.seats if s.ordinal not in own)
    if not remaining and not request.places:
        return Held(kept, facts[0].decided_at)
    if kept or settled_elsewhere or request.places:
        return Unsettled(msgspec.structs.replace(request, seats=remaining), kept)
    return _seat_refusal(request.seats[0].ordinal, refused[0][1])


def _granted(request: HoldRequest, facts: Sequence[ClaimFacts]) -> list[PlacedHold]:
    holds = [
        PlacedHold(
            hold_id=seat.hold_id,
            ordinal=seat.ordinal,
            zone_no=seat.zone_no,
            quantity=1,
            hold_type=request.hold_type,
            held_until=fact.held_until,
            created=True,
        )
        for seat, fact in zip(request.seats, facts, strict=False)
    ]
    holds += [
        PlacedHold(
            hold_id=places.hold_id,
            ordinal=None,
            zone_no=places.zone_no,
            quantity=places.quantity,
            hold_type=request.hold_type,
            held_until=fact.held_until,
            created=True,
        )
        for places, fact in zip(request.places, facts[len(request.seats) :], strict=True)
    ]
    return holds


def _event_refusal(fact: ClaimFacts) -> Refusal | None:
    """What holds for the whole request, in the order the checks are promised: event, sale window, limit."""
    if fact.event_status is None:
        return EventNotFound()
    if fact.event_status == "cancelled":
        return EventUnavailable("This event was cancelled.", status_of_event=fact.event_status)
    if fact.event_status not in ("published", "live"):
        return EventNotAvailable("This event is not on sale.", status_of_event=fact.event_status)
    if fact.on_sale is False:
        return EventSalesClosed("Sales for this event are not open now.")
    if fact.retry_after_s is not None:
        return rate_limited(fact.retry_after_s)
    return None


def rate_limited(retry_after_s: int) -> RateLimited:
    return RateLimited(
        "You have placed as many holds as are allowed in a few minutes. Please wait a moment.",
        retry_after_s=retry_after_s,
    )


def _seat_refusal(ordinal: int, fact: ClaimFacts) -> Refusal:
    if fact.state is None:
        return SeatNotFound("There is no such seat in this event.", ordinal=ordinal)
    if fact.state == SeatState.HELD:
        return held_by_another(ordinal, seconds_between(fact.decided_at, fact.held_until))
    if fact.state == SeatState.AVAILABLE:
        return held_by_another(ordinal, 0)
    return SeatNotAvailable(f"This seat is {fact.state}.", current_status=fact.state, ordinal=ordinal)


def held_by_another(ordinal: int, expires_in: int | None) -> SeatHeldByAnother:
    detail = "Someone else is holding this seat."
    if expires_in is not None:
        detail += f" It may come free in {expires_in} seconds."
    return SeatHeldByAnother(detail, current_status="held", expires_in=expires_in, ordinal=ordinal)


def _zone_refusal(request: HoldRequest, index: int, fact: ClaimFacts) -> Refusal:
    zone_no = request.places[index - len(request.seats)].zone_no
    left = (
        "no places are"
        if not fact.room
        else f"only {fact.room} {'place is' if fact.room == 1 else 'places are'}"
    )
    return ZoneAtCapacity(f"Not enough room: {left} left in this zone.", available=fact.room, zone_no=zone_no)
