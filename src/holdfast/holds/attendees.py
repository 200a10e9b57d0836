"""Who will sit on what a buyer holds: friends are named place by place, and each is judged for the zone of their place.

A buyer answers for their own places only. Of a friend they learn whether that person may sit there, and nothing about why
not: somebody who is not known here is answered like somebody who does not qualify.
"""

from collections.abc import Sequence
from itertools import repeat
from typing import Any
from uuid import UUID

import msgspec

from holdfast.accounts.credentials import at_least
from holdfast.accounts.principal import Call, Role
from holdfast.holds.lifecycle import Actor
from holdfast.kernel.errors import InvalidRequest, ZoneAccessDenied
from holdfast.kernel.problems import Problem
from holdfast.seating.access import AccessDenied, check_attendee_access, check_zone_access
from holdfast.seating.layout import AccessMode, Zone


class Attendee(msgspec.Struct, frozen=True, kw_only=True):
    """As the buyer names them: by one of these, or by none where it is somebody without an account."""

    user_id: UUID | None = None
    membership_id: UUID | None = None
    email: str | None = None
    name: str | None = None

    @property
    def nameless(self) -> bool:
        return self.user_id is None and self.membership_id is None and self.email is None and self.name is None


SOMEBODY = Attendee()


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """How somebody stands with the organization and with the event, now."""

    user_id: UUID | None = None
    membership_id: UUID | None = None
    known: bool = False
    role: str = Role.CUSTOMER.value
    tiers: frozenset[str] = frozenset()
    active: bool = False  # the membership is, and the account is not closed
    whitelisted: bool = False


STRANGER = Person()


class People(msgspec.Struct, frozen=True):
    buyer: Person
    attendees: tuple[Person, ...] = ()
    """One for each attendee of the request, in their order."""


def require_access(
    call: Call,
    seat_zones: Sequence[Zone],
    places: Sequence[tuple[Zone, int]],
    attendees: Sequence[Attendee],
    people: People,
) -> None:
    """Refuses where anybody may not sit where they are to sit, and then names all of them. Zones of seats, then of
    places, in the order of the request, which is the attendees' order. Organisers seat whom they like."""
    if call.principal.actor is not Actor.CUSTOMER:
        return
    zones = [*seat_zones]
    for zone, quantity in places:
        zones += repeat(zone, quantity)
    denied: list[tuple[int, AccessDenied]] = []
    own: set[int] = set()  # zones that the buyer was judged for
    for index, zone in enumerate(zones):
        if zone.access_mode is AccessMode.PUBLIC:
            continue
        friend = attendees[index] if index < len(attendees) else None
        if friend is not None and not _is_buyer(call, friend):
            found = _judge_friend(zone, people.attendees[index])
        elif zone.zone_no not in own:
            own.add(zone.zone_no)
            found = judge_buyer(call, zone, people.buyer)
        else:
            continue
        if found is not None:
            denied.append((index, found))
    if denied:
        raise _refusal(denied, named=bool(attendees))


def _is_buyer(call: Call, friend: Attendee) -> bool:
    return friend.user_id is not None and friend.user_id == call.principal.user_id


def judge_buyer(call: Call, zone: Zone, buyer: Person) -> AccessDenied | None:
    """By what is true now, which may be less than when the credential was looked at last."""
    principal = call.principal
    role = principal.role if at_least(Role(buyer.role), principal.role) else Role(buyer.role)
    closed = buyer.membership_id is not None and not buyer.active
    return check_zone_access(
        zone,
        role="" if closed else role.value,
        tiers=frozenset() if principal.guest_event_id is not None else buyer.tiers,
        membership_active=buyer.active,
        whitelisted=buyer.whitelisted,
    )


def _judge_friend(zone: Zone, friend: Person) -> AccessDenied | None:
    denied = check_attendee_access(
        zone,
        role=friend.role if friend.active else "",
        tiers=friend.tiers,
        membership_active=friend.active,
        whitelisted=friend.whitelisted,
    )
    if denied is None:
        return None
    # One sentence whatever the cause, made of what everybody may know of the zone.
    asked = {
        AccessMode.MEMBERSHIP_TIER: f"is for members of the tier {zone.required_tier}",
        AccessMode.ROLE_BASED: f"is for these roles only: {', '.join(zone.allowed_roles) or 'staff'}",
    }.get(zone.access_mode, "is for people on the event’s list only")
    return AccessDenied(zone.zone_id, zone.access_mode, f"{zone.name} {asked}; this person does not qualify")


def _refusal(denied: Sequence[tuple[int, AccessDenied]], *, named: bool) -> ZoneAccessDenied:
    first = denied[0][1]
    facts: dict[str, Any] = {"access_mode": first.mode.value, "zone": first.zone_id}
    if named:
        facts["attendees"] = [
            {"index": index, "reason": one.reason, "access_mode": one.mode.value, "zone": one.zone_id}
            for index, one in denied
        ]
    detail = first.reason if len(denied) == 1 or not named else f"{len(denied)} of the places may not be taken so."
    return ZoneAccessDenied(detail, **facts)


def require_known(attendees: Sequence[Attendee], people: People) -> None:
    """For an organiser, who may know: whom they name by membership or address must be somebody."""
    problems = [
        Problem(f"/attendees/{index}", "unknown_user", "there is no such user of the organization")
        for index, (asked, found) in enumerate(zip(attendees, people.attendees, strict=True))
        if (asked.membership_id is not None or asked.email is not None) and not found.known
    ]
    if problems:
        raise InvalidRequest("; ".join(f"{p.pointer}: {p.detail}" for p in problems), problems)


def require_room_for(attendees: Sequence[Attendee], quantity: int) -> None:
    if len(attendees) > quantity:
        said = f"{len(attendees)} attendees for {quantity} {'place' if quantity == 1 else 'places'}"
        raise InvalidRequest(f"There are {said}.", [Problem(f"/attendees/{quantity}", "too_many_attendees", said)])
