"""What can be refused, as facts. Nothing here knows of HTTP: `http/problem.py` gives each its status."""

from typing import Any, ClassVar

import msgspec

from holdfast.kernel.problems import Problem


class Refusal(Exception):
    """A request that is answered with no. `facts` go into the answer beside the code and the sentence."""

    code: ClassVar[str] = "refused"

    def __init__(self, detail: str, **facts: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.facts = facts


# The request itself ---------------------------------------------------------------------------------------------
class InvalidRequest(Refusal):
    code = "invalid_request"

    def __init__(self, detail: str, problems: list[Problem] | None = None, **facts: Any) -> None:
        if problems:
            facts["errors"] = [msgspec.to_builtins(p) for p in problems]
        super().__init__(detail, **facts)


class Unprocessable(InvalidRequest):
    """Well-formed, but its content cannot stand: every problem is listed with its pointer."""

    code = "invalid_content"


class Unauthorized(Refusal):
    code = "unauthorized"


class Forbidden(Refusal):
    code = "forbidden"


class NotFound(Refusal):
    """`code` says of what. An id of another organization is answered exactly like one that never existed."""

    code = "not_found"


class Conflict(Refusal):
    code = "conflict"


class Overloaded(Refusal):
    code = "overloaded"


class RateLimited(Refusal):
    code = "rate_limited"


class IdempotencyMismatch(Refusal):
    code = "idempotency_key_reused"


class IdempotencyInFlight(Refusal):
    code = "idempotency_key_in_flight"


# Events ---------------------------------------------------------------------------------------------------------
class EventNotFound(NotFound):
    code = "event_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such event.")


class LayoutNotFound(NotFound):
    code = "layout_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such layout.")


class VenueNotFound(NotFound):
    code = "venue_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such venue.")


class EventNotAvailable(Refusal):
    """Not published, or no longer."""

    code = "event_not_available"


class EventUnavailable(Refusal):
    """Cancelled."""

    code = "event_unavailable"


class EventSalesClosed(Refusal):
    code = "event_sales_closed"


class IllegalEventMove(Conflict):
    code = "illegal_event_move"


class LayoutChanged(Conflict):
    """Asked for in terms of a version of the layout that the event has just left."""

    code = "layout_changed"

    def __init__(self) -> None:
        super().__init__(
            "The seats of this event were rearranged at this very moment; nothing was done. Please try again."
        )


class OverrideNotPermitted(Conflict):
    code = "override_not_permitted"


# Seats and holds ------------------------------------------------------------------------------------------------
class SeatNotFound(NotFound):
    code = "seat_not_found"


class ZoneNotFound(NotFound):
    code = "zone_not_found"


class ZoneAccessDenied(Forbidden):
    code = "zone_access_denied"


class HoldTypeNotPermitted(Forbidden):
    code = "hold_type_not_permitted"


class TooManySeats(Refusal):
    code = "max_seats_exceeded"


class TooManyWheelchairSeats(Refusal):
    code = "max_wheelchair_exceeded"


class SeatNotAvailable(Conflict):
    code = "seat_not_available"


class SeatHeldByAnother(Conflict):
    code = "seat_held_by_another_user"


class OrphanSeat(Conflict):
    """A pick that would leave a single seat alone; `alternatives` would not."""

    code = "orphan_seat"


class NoSeatsLeft(Conflict):
    """Nothing that fits what was wished for is free."""

    code = "no_seats_available"


class SeatNotOffered(Conflict):
    """Free, but kept for the companion of a wheelchair user; who that is decides, so it is one caller's answer only."""

    code = "seat_not_offered"


class ZoneAtCapacity(Conflict):
    code = "block_at_capacity"


class ZoneDisabled(Conflict):
    """The event does not offer this zone."""

    code = "zone_disabled"


class SeatSold(Conflict):
    """Blocking a sold seat needs `force`."""

    code = "seat_sold"


class HoldNotFound(NotFound):
    code = "hold_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such hold.")


class ReleaseForbidden(Forbidden):
    code = "release_forbidden"


class HoldExpired(Conflict):
    code = "hold_expired"


class HoldEnded(Conflict):
    code = "hold_not_active"


class HoldAtMaximum(Conflict):
    code = "max_hold_reached"


class ReservationFailed(Refusal):
    """The database could not decide after every retry; nothing was changed."""

    code = "seat_reservation_failed"


class HoldInCheckout(Conflict):
    """Its life is the checkout's, and so is what becomes of it."""

    code = "hold_in_checkout"


# Checkouts and tickets ------------------------------------------------------------------------------------------
class CheckoutNotFound(NotFound):
    code = "checkout_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such checkout.")


class TicketNotFound(NotFound):
    code = "ticket_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such ticket.")
