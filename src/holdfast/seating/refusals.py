"""What seating refuses beyond the common refusals."""

from holdfast.kernel.errors import Conflict, NotFound


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
