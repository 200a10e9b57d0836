"""A hold that the organiser moves to another seat. Pure."""

from holdfast.accounts.principal import Call
from holdfast.holds.answers import StoredHold
from holdfast.holds.claims import AttendeeNamed, HoldRequest, SeatWanted, seconds_between
from holdfast.kernel.ids import new_id
from holdfast.seating.accessibility import companion_rule
from holdfast.seating.view import EventView


def moved_request(view: EventView, call: Call, row: StoredHold, ordinal: int) -> HoldRequest:
    """The same hold on another seat: who moves it changes nothing about whose it is or when it ends."""
    rule = companion_rule(view.layout, view.effective_policy, ordinal, binding=False)
    seat = SeatWanted(ordinal, view.layout.zone_nos[ordinal], new_id(), rule)
    return HoldRequest(
        organization_id=call.organization_id,
        event_id=view.id,
        layout_version=view.layout_version,
        seats=(seat,),
        places=(),
        user_id=row["user_id"],
        session_id=row["session_id"],
        actor=call.principal.actor.value,
        source=row["source"],
        hold_type=row["hold_type"],
        ttl_s=seconds_between(row["now"], row["held_until"]),
        any_time=True,
        user_limit=None,
        ip_limit=None,
        ip=call.ip,
        user_agent=call.user_agent,
        request_id=call.request_id,
        attendees=_attendee_of(row, seat),
    )


def _attendee_of(row: StoredHold, seat: SeatWanted) -> tuple[AttendeeNamed, ...]:
    user_id, name, membership_id = row["attendee_user_id"], row["attendee_name"], row["associated_membership_id"]
    if user_id is None and name is None:
        return ()
    return (
        AttendeeNamed(
            ordinal=seat.ordinal, hold_id=seat.hold_id, user_id=user_id, name=name, membership_id=membership_id
        ),
    )
