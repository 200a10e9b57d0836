"""What seating refuses beyond the common refusals."""

from holdfast.kernel.errors import Conflict


class EventFrozen(Conflict):
    """A field that may no longer change in the event's present state."""

    code = "event_frozen"


class EventChanged(Conflict):
    """Somebody changed the event between its being read and its being owned."""

    code = "event_changed"

    def __init__(self) -> None:
        super().__init__("The event was changed at the same moment; try again.")


class SeatNotBlocked(Conflict):
    code = "seat_not_blocked"
