"""What seating refuses beyond the common refusals."""

from holdfast.kernel.errors import Conflict, Forbidden, NotFound


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


class GroupNotFound(NotFound):
    code = "group_not_found"


class GroupReserved(Forbidden):
    """Seats that the organiser keeps."""

    code = "group_reserved"


class GroupIncomplete(Conflict):
    """Part of what is sold whole."""

    code = "group_incomplete"


class SelectionNotOffered(Conflict):
    """Here the system chooses the seats."""

    code = "selection_not_offered"


class SeatsNotTogether(Conflict):
    code = "seats_not_together"


class BlockedByOverlay(Conflict):
    """A seat that the event's overlay takes out comes back when the overlay changes, and not before."""

    code = "blocked_by_overlay"


class PlacesNotBlocked(Conflict):
    code = "places_not_blocked"


class PlacesSold(Conflict):
    """An overlay cannot take out what somebody has a ticket for."""

    code = "places_sold"


class SharedBySeries(Conflict):
    """A field that the series has for all of its events."""

    code = "shared_by_series"


class SeriesNotFound(NotFound):
    code = "series_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such series.")


class SeriesChanged(Conflict):
    """Somebody changed the series between its being read and an event's being made of it."""

    code = "series_changed"

    def __init__(self) -> None:
        super().__init__("The series was changed at the same moment; try again.")


class MigrationNotFound(NotFound):
    code = "migration_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such migration of this event.")


class MigrationOutdated(Conflict):
    """Something of the event changed after the plan was made."""

    code = "migration_outdated"


class MigrationBlocked(Conflict):
    """The plan says why it cannot be applied."""

    code = "migration_blocked"


class MigrationEnded(Conflict):
    """Applied or discarded already."""

    code = "migration_ended"


class NotMigratable(Conflict):
    """A draft is simply changed; an event that is over, or has no layout, stays as it is."""

    code = "event_not_migratable"
