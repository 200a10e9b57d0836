"""From what a buyer asks to what the writer is given: every check that needs no lock, in the promised order. Pure."""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from holdfast.accounts.principal import Call
from holdfast.holds.attendees import Attendee, People, Person, require_access, require_known, require_room_for
from holdfast.holds.claims import AttendeeNamed, HoldRequest, PlacesWanted, SeatWanted, disabled_zone
from holdfast.holds.hold_types import CART, HoldType, ResolvedHoldType
from holdfast.holds.lifecycle import Actor, BookingState
from holdfast.holds.lifetime import resolve_ttl_s
from holdfast.holds.pressure import adaptive_ttl_s
from holdfast.kernel.errors import (
    HoldTypeNotPermitted,
    InvalidRequest,
    SeatNotFound,
    TooManySeats,
    TooManyWheelchairSeats,
    ZoneNotFound,
)
from holdfast.kernel.ids import new_id
from holdfast.seating.accessibility import (
    AccessibleTerms,
    accessible_terms,
    companion_rule,
    too_many_wheelchairs_words,
)
from holdfast.seating.groups import find_groups, require_together, tables_among
from holdfast.seating.layout import AccessMode, Layout, SeatGroup, Zone
from holdfast.seating.refusals import SelectionNotOffered
from holdfast.seating.view import EventView, HoldTerms

_NOBODY_ASKED = People(Person())


class PlacesAsked(msgspec.Struct, frozen=True):
    zone: str  # its zone_id, or its UUID
    quantity: int


class HoldsAsked(msgspec.Struct, frozen=True, kw_only=True):
    """A well-formed request for holds, not yet held against the event."""

    seats: tuple[UUID, ...] = ()
    places: tuple[PlacesAsked, ...] = ()
    hold_type: str | None = None
    source: str = "web"
    endpoint_ttl_s: int  # the platform's default of the endpoint that was called
    session_id: str | None = None
    groups: tuple[str, ...] = ()  # all seats of these, behind those named
    attendees: tuple[
        Attendee, ...
    ] = ()  # for the seats, those of the groups, then the places; the rest are the buyer's
    chosen_by_system: bool = False  # not picked by the buyer: what is asked of a buyer's own choice is not asked


def find_hold_type(view: EventView, name: str | None, target: BookingState) -> ResolvedHoldType:
    """The named type (CART where none is), if it is known and may bring a seat into the target state."""
    found = view.hold_types.get(name or CART)
    if found is None:
        known = ", ".join(sorted(view.hold_types))
        raise InvalidRequest(f"There is no hold type {name!r} here. Known are: {known}.", hold_type=name)
    if target not in found.hold_type.valid_states:
        raise InvalidRequest(
            f"The hold type {found.name} is not valid for the state {target.value}.", hold_type=found.name
        )
    return found


def any_time(call: Call, hold_type: HoldType) -> bool:
    """The sale window binds buyers, and carts whoever makes them; an organiser's own holds come before and after."""
    return call.principal.actor in (Actor.ADMIN, Actor.API) and hold_type.name != CART


def hold_terms(view: EventView, call: Call, name: str | None, endpoint_ttl_s: int) -> HoldTerms:
    """On what terms this caller may hold; the same for everyone alike, so it is worked out once for each view."""
    actor = call.principal.actor
    key = (name, actor, endpoint_ttl_s)
    known = view.terms.get(key)
    if known is not None:
        return known
    resolved = find_hold_type(view, name, BookingState.LOCKED)
    if actor is Actor.CUSTOMER and Actor.CUSTOMER not in resolved.hold_type.release_api:
        # Who could not let go of it again may not take it: business holds are the organiser's to place.
        raise HoldTypeNotPermitted(
            f"The hold type {resolved.name} is placed by organisers only.", hold_type=resolved.name
        )
    limited = actor is Actor.CUSTOMER
    policy = view.effective_policy
    terms = HoldTerms(
        hold_type=resolved.name,
        ttl_s=hold_ttl_s(view, resolved, endpoint_ttl_s),
        any_time=any_time(call, resolved.hold_type),
        user_limit=policy.max_holds_per_user if limited else None,
        ip_limit=policy.max_holds_per_ip if limited else None,
    )
    view.terms[key] = terms
    return terms


def plan_hold(
    view: EventView, call: Call, asked: HoldsAsked, *, people: People = _NOBODY_ASKED, bulk_max: int
) -> HoldRequest:
    """The claims to make for this caller, or the refusal that comes before any seat is looked at. `people` are those
    that `asks_people` says the answer depends on."""
    terms = hold_terms(view, call, asked.hold_type, asked.endpoint_ttl_s)
    layout = view.layout
    ordinals = find_ordinals(layout, asked.seats)
    if asked.groups:
        named = [o for group in find_groups(layout, asked.groups) for o in group.ordinals]
        ordinals = list(dict.fromkeys(ordinals + named))
    places = find_places(layout, asked.places) if asked.places else []
    if view.overlay.disabled_zones:
        for zone, _ in places:
            if view.overlay.is_disabled(zone):
                raise disabled_zone(zone.zone_no)
    quantity = len(ordinals) + sum(q for _, q in places) if places else len(ordinals)
    buyer = call.principal.actor is Actor.CUSTOMER
    if asked.attendees:
        require_room_for(asked.attendees, quantity)
        if not buyer:
            require_known(asked.attendees, people)
    if not layout.all_public:
        require_access(call, [layout.zone_of(o) for o in ordinals], places, asked.attendees, people)
    if quantity > 1:
        require_few(call, quantity, view.effective_policy.max_seats_per_booking, bulk_max)
    tables = _require_choice(view, ordinals, asked) if buyer and ordinals else ()
    in_order = ordinals
    if quantity > 1:
        ordinals = sorted(ordinals)
    if layout.accessible_seats:
        accessible = plan_accessible(view, call, ordinals)
        seats = wanted_seats(view, call, ordinals, terms.hold_type)
    else:
        accessible = None
        seats = tuple([SeatWanted(o, layout.zone_nos[o], new_id()) for o in ordinals])
    if asked.attendees:
        wanted, attendees = _name_places(in_order, seats, places, asked.attendees, people)
    else:
        wanted = tuple([PlacesWanted(zone.zone_no, quantity, new_id()) for zone, quantity in places])
        attendees = ()
    principal = call.principal
    return HoldRequest(
        organization_id=principal.organization_id,
        event_id=view.id,
        layout_version=view.layout_version,
        seats=seats,
        places=wanted,
        user_id=principal.user_id,
        session_id=asked.session_id,
        actor=principal.actor.value,
        source=asked.source,
        hold_type=terms.hold_type,
        ttl_s=terms.ttl_s,
        any_time=terms.any_time,
        user_limit=terms.user_limit,
        ip_limit=terms.ip_limit,
        ip=call.ip,
        user_agent=call.user_agent,
        request_id=call.request_id,
        accessible=accessible,
        attendees=attendees,
        tables=tables,
    )


def _require_choice(view: EventView, ordinals: Sequence[int], asked: HoldsAsked) -> tuple[SeatGroup, ...]:
    """What the policy and the groups ask of a buyer's seats. Answers the tables that must then be whole."""
    policy = view.effective_policy
    if not asked.chosen_by_system:
        if policy.prefer_clustering_over_selection:
            raise SelectionNotOffered(
                "Here seats are not picked one by one: ask for the best available and they are chosen for you.",
                use=f"/api/events/{view.id}/best-available",
            )
        if policy.group_adjacency_strict and len(ordinals) > 1:
            require_together(view.layout, ordinals, policy.max_group_split)
    return tables_among(view.layout, ordinals) if view.layout.binding_groups else ()


def _name_places(
    ordinals: Sequence[int],
    seats: Sequence[SeatWanted],
    places: Sequence[tuple[Zone, int]],
    attendees: Sequence[Attendee],
    people: People,
) -> tuple[tuple[PlacesWanted, ...], tuple[AttendeeNamed, ...]]:
    """Each attendee beside the hold of their place. Somebody who is named in a counted zone gets a hold of their own
    there; the rest of the quantity stays one."""
    hold_ids = {seat.ordinal: seat.hold_id for seat in seats}
    named: list[AttendeeNamed] = []
    for ordinal, asked, found in zip(ordinals, attendees, people.attendees, strict=False):
        named.append(_named(asked, found, ordinal, hold_ids[ordinal]))
    wanted: list[PlacesWanted] = []
    at = len(ordinals)
    for zone, quantity in places:
        rest = quantity
        for asked, found in zip(attendees[at : at + quantity], people.attendees[at : at + quantity], strict=True):
            if not asked.nameless:
                one = PlacesWanted(zone.zone_no, 1, new_id())
                wanted.append(one)
                named.append(_named(asked, found, None, one.hold_id))
                rest -= 1
        if rest:
            wanted.append(PlacesWanted(zone.zone_no, rest, new_id()))
        at += quantity
    return tuple(wanted), tuple(named)


def _named(asked: Attendee, found: Person, ordinal: int | None, hold_id: UUID) -> AttendeeNamed:
    return AttendeeNamed(
        ordinal=ordinal,
        hold_id=hold_id,
        user_id=found.user_id,
        name=asked.name or asked.email,
        membership_id=found.membership_id,
    )


def wanted_seats(view: EventView, call: Call, ordinals: Sequence[int], hold_type: str) -> tuple[SeatWanted, ...]:
    """Claims with the rules for companions' seats in them. Those bind buyers, and carts whoever makes them; an organiser's
    own holds they do not."""
    layout, policy = view.layout, view.effective_policy
    binding = call.principal.actor not in (Actor.ADMIN, Actor.API) or hold_type == CART
    return tuple(
        [
            SeatWanted(o, layout.zone_nos[o], new_id(), companion_rule(layout, policy, o, binding=binding))
            for o in ordinals
        ]
    )


def plan_accessible(view: EventView, call: Call, ordinals: Sequence[int]) -> AccessibleTerms | None:
    """What is special about a request with accessible seats in it; none for all others."""
    limited = call.principal.actor is Actor.CUSTOMER
    terms = accessible_terms(view.layout, view.effective_policy, ordinals, limited=limited)
    if terms is not None:
        require_few_wheelchairs(terms, 0)
    return terms


def require_few_wheelchairs(terms: AccessibleTerms, others: int) -> None:
    """`others`: wheelchair seats that the buyer holds beside those of the request."""
    allowed = terms.wheelchairs_max
    if allowed is not None and terms.wheelchairs and len(terms.wheelchairs) + others > allowed:
        raise TooManyWheelchairSeats(
            too_many_wheelchairs_words(allowed, others), max_wheelchair_seats=allowed, wheelchair_seats_held=others
        )


def hold_ttl_s(view: EventView, hold_type: ResolvedHoldType, endpoint_ttl_s: int) -> int | None:
    override = view.overrides.get("default_hold_ttl_minutes")
    ttl_s = resolve_ttl_s(
        hold_type,
        event_override_minutes=override if isinstance(override, int) else None,
        policy=view.policy,
        endpoint_default_s=endpoint_ttl_s,
    )
    policy = view.effective_policy
    if ttl_s is None or hold_type.name != CART or not policy.adaptive_hold_life:
        return ttl_s
    longest = policy.adaptive_hold_max_minutes
    return adaptive_ttl_s(
        ttl_s,
        view.pressure,
        low_s=policy.adaptive_hold_min_minutes * 60,
        high_s=None if longest is None else longest * 60,
    )


def find_ordinals(layout: Layout, seats: Sequence[UUID]) -> list[int]:
    """Where these seats stand in the layout; any that do not are named."""
    found = list(map(layout.seat_index.get, [seat.bytes for seat in seats]))
    if None not in found:
        return found  # type: ignore[return-value]
    unknown = [str(seat) for seat, ordinal in zip(seats, found, strict=True) if ordinal is None]
    raise SeatNotFound("There is no such seat in this event.", seats=unknown)


def find_places(layout: Layout, asked: Sequence[PlacesAsked]) -> list[tuple[Zone, int]]:
    found: dict[int, tuple[Zone, int]] = {}
    for wanted in asked:
        zone = layout.zone(wanted.zone)
        if zone is None:
            raise ZoneNotFound(f"There is no zone {wanted.zone!r} in this event.", zone=wanted.zone)
        if not zone.is_ga:
            raise InvalidRequest(f"{zone.name} has numbered seats: ask for them by id.", zone=zone.zone_id)
        if zone.zone_no in found:
            raise InvalidRequest(f"{zone.name} is named twice: ask for the sum.", zone=zone.zone_id)
        found[zone.zone_no] = (zone, wanted.quantity)
    return [found[zone_no] for zone_no in sorted(found)]


def asks_people(view: EventView, call: Call, asked: HoldsAsked) -> bool:
    """Whether the answer depends on how somebody stands with the organization or the event, which is read only then."""
    if asked.attendees:
        return True
    layout = view.layout
    if layout.all_public or call.principal.actor is not Actor.CUSTOMER:
        return False
    restricted = {z.zone_no for z in layout.zones if z.access_mode is not AccessMode.PUBLIC}
    ordinals = (layout.seat_index.get(seat.bytes) for seat in asked.seats)
    named = {layout.zone_nos[o] for o in ordinals if o is not None}
    named |= {zone.zone_no for p in asked.places if (zone := layout.zone(p.zone)) is not None}
    named |= {group.zone_no for group in layout.groups if group.group_id in asked.groups}
    return not restricted.isdisjoint(named)


def require_few(call: Call, quantity: int, per_booking: int, bulk_max: int) -> None:
    allowed = per_booking if call.principal.actor is Actor.CUSTOMER else bulk_max
    if quantity > allowed:
        raise TooManySeats(
            f"{quantity} seats were asked for; at most {allowed} are allowed in one booking.",
            max_seats=allowed,
        )
