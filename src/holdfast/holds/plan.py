"""From what a buyer asks to what the writer is given: every check that needs no lock, in the promised order. Pure."""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from holdfast.accounts.principal import Call
from holdfast.holds.claims import HoldRequest, PlacesWanted, SeatWanted
from holdfast.holds.hold_types import CART, HoldType, ResolvedHoldType
from holdfast.holds.lifecycle import Actor, BookingState
from holdfast.holds.lifetime import resolve_ttl_s
from holdfast.kernel.errors import (
    HoldTypeNotPermitted,
    InvalidRequest,
    SeatNotFound,
    TooManySeats,
    ZoneAccessDenied,
    ZoneNotFound,
)
from holdfast.kernel.ids import new_id
from holdfast.seating.access import check_zone_access
from holdfast.seating.layout import AccessMode, Layout, Zone
from holdfast.seating.view import EventView, HoldTerms


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


def plan_hold(view: EventView, call: Call, asked: HoldsAsked, *, whitelisted: bool, bulk_max: int) -> HoldRequest:
    """The claims to make for this caller, or the refusal that comes before any seat is looked at."""
    terms = hold_terms(view, call, asked.hold_type, asked.endpoint_ttl_s)
    layout = view.layout
    ordinals = find_ordinals(layout, asked.seats)
    places = _find_places(layout, asked.places) if asked.places else []
    if not layout.all_public:
        zones = [layout.zone_of(o) for o in ordinals] + [zone for zone, _ in places]
        require_access(call, zones, whitelisted=whitelisted)
    quantity = len(ordinals) + sum(q for _, q in places) if places else len(ordinals)
    if quantity > 1:
        _require_few(call, quantity, view.effective_policy.max_seats_per_booking, bulk_max)
        ordinals.sort()
    principal = call.principal
    return HoldRequest(
        organization_id=principal.organization_id,
        event_id=view.id,
        layout_version=view.layout_version,
        seats=tuple([SeatWanted(o, layout.zone_nos[o], new_id()) for o in ordinals]),
        places=tuple([PlacesWanted(zone.zone_no, quantity, new_id()) for zone, quantity in places]),
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
    )


def hold_ttl_s(view: EventView, hold_type: ResolvedHoldType, endpoint_ttl_s: int) -> int | None:
    override = view.overrides.get("default_hold_ttl_minutes")
    return resolve_ttl_s(
        hold_type,
        event_override_minutes=override if isinstance(override, int) else None,
        policy=view.policy,
        endpoint_default_s=endpoint_ttl_s,
    )


def find_ordinals(layout: Layout, seats: Sequence[UUID]) -> list[int]:
    """Where these seats stand in the layout; any that do not are named."""
    found = list(map(layout.seat_index.get, [seat.bytes for seat in seats]))
    if None not in found:
        return found  # type: ignore[return-value]
    unknown = [str(seat) for seat, ordinal in zip(seats, found, strict=True) if ordinal is None]
    raise SeatNotFound("There is no such seat in this event.", seats=unknown)


def _find_places(layout: Layout, asked: Sequence[PlacesAsked]) -> list[tuple[Zone, int]]:
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


def asks_whitelist(view: EventView, asked: HoldsAsked) -> bool:
    """Whether the answer depends on the event's whitelist, which is read only then."""
    if view.layout.all_public:
        return False
    restricted = {z.zone_no for z in view.layout.zones if z.access_mode is AccessMode.WHITELIST}
    if not restricted:
        return False
    ordinals = (view.layout.seat_index.get(seat.bytes) for seat in asked.seats)
    named = {view.layout.zone_nos[o] for o in ordinals if o is not None}
    named |= {zone.zone_no for p in asked.places if (zone := view.layout.zone(p.zone)) is not None}
    return not restricted.isdisjoint(named)


def require_access(call: Call, zones: Sequence[Zone], *, whitelisted: bool) -> None:
    if call.principal.actor is not Actor.CUSTOMER:
        return
    for zone in zones:
        if zone.access_mode is AccessMode.PUBLIC:
            continue
        denied = check_zone_access(
            zone,
            role=call.principal.role.value,
            tiers=call.principal.tiers,
            membership_active=call.principal.membership_active,
            whitelisted=whitelisted,
        )
        if denied is not None:
            raise ZoneAccessDenied(denied.reason, access_mode=denied.mode.value, zone=denied.zone_id)


def _require_few(call: Call, quantity: int, per_booking: int, bulk_max: int) -> None:
    allowed = per_booking if call.principal.actor is Actor.CUSTOMER else bulk_max
    if quantity > allowed:
        raise TooManySeats(
            f"{quantity} seats were asked for; at most {allowed} are allowed in one booking.",
            max_seats=allowed,
        )
