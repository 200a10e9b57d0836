"""Who may see an event."""

from uuid import UUID

from holdfast.accounts.principal import Call, Role
from holdfast.seating.event import ON_SALE, EventStatus


def may_see(call: Call, event_id: UUID, status: EventStatus) -> bool:
    """A guest sees the one event of their token; buyers see what is on sale. What one may not see does not exist."""
    guest_of = call.principal.guest_event_id
    if guest_of is not None and guest_of != event_id:
        return False
    return status in ON_SALE or call.principal.role is not Role.CUSTOMER
