"""Wheelchair seats and their companions' seats: when a companion's seat is kept, and how that is said. Pure.

While a wheelchair seat is held or sold, its companion seats are for its owner alone; from a certain occupancy of the zone
on they are for everybody. What is decided is decided by the database (`functions/08_companions.sql`).
"""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

import msgspec

from holdfast.seating.layout import Layout
from holdfast.seating.policy import SeatingPolicy


class CompanionRule(msgspec.Struct, frozen=True):
    """What a claim for a companion's seat is held against."""

    wheelchairs: tuple[int, ...]
    """The wheelchair seats it belongs to, by ordinal."""
    free_from: int
    """Places held or sold in the zone, from which on the seat is for everybody."""
    percent: int
    binding: bool = True
    """False for an organiser's own holds: they may, and the log says so."""


class AccessibleTerms(msgspec.Struct, frozen=True, kw_only=True):
    """Of a request with a wheelchair seat or a companion's in it."""

    wheelchairs: tuple[int, ...]
    companions: tuple[int, ...]
    all_wheelchairs: frozenset[int]
    """Of the layout: those that a buyer's other holds are counted by."""
    wheelchairs_max: int | None
    """None: not limited."""
    audited: bool


class CompanionSeat(msgspec.Struct, frozen=True, kw_only=True):
    """The seat of a wheelchair user's companion, as the holder of the wheelchair seat is told of it."""

    seat_id: UUID
    label: str
    row: str
    number: int
    offered: bool
    """Whether the holder may still take it."""
    kept_until: datetime | None
    words: str


def places_to_free(capacity: int, percent: int) -> int:
    """The smallest number of places taken that is `percent` of the capacity or more."""
    return -(-percent * capacity // 100)


def companion_rule(
    layout: Layout, policy: SeatingPolicy, ordinal: int, *, binding: bool = True
) -> CompanionRule | None:
    wheelchairs = layout.companion_wheelchairs.get(ordinal)
    if wheelchairs is None or not policy.enforce_accessibility_rules:
        return None
    percent = policy.companion_release_occupancy_threshold
    return CompanionRule(wheelchairs, places_to_free(layout.zone_of(ordinal).capacity, percent), percent, binding)


def accessible_terms(
    layout: Layout, policy: SeatingPolicy, ordinals: Iterable[int], *, limited: bool
) -> AccessibleTerms | None:
    """None where no seat of the request is accessible, or the policy has no rules for it."""
    if not policy.enforce_accessibility_rules or layout.accessible_seats.isdisjoint(ordinals):
        return None
    wheelchairs = layout.wheelchair_seats
    return AccessibleTerms(
        wheelchairs=tuple(o for o in ordinals if o in wheelchairs),
        companions=tuple(o for o in ordinals if o in layout.companion_wheelchairs),
        all_wheelchairs=wheelchairs,
        wheelchairs_max=policy.max_wheelchair_seats_per_booking if limited else None,
        audited=policy.accessibility_audit_enabled,
    )


def kept_words(percent: int) -> str:
    return (
        "This seat is kept for the companion of a wheelchair user; "
        f"it is offered to everyone when the zone is {percent} % full."
    )


def too_many_wheelchairs_words(allowed: int, others: int) -> str:
    places = "wheelchair seat is" if allowed == 1 else "wheelchair seats are"
    said = f"At most {allowed} {places} allowed in one booking."
    return said + (f" You hold {others} already." if others else "")


def describe_companion(
    layout: Layout, ordinal: int, *, state: str, mine: bool, freed: bool, percent: int, kept_until: datetime | None
) -> CompanionSeat:
    """`state` is the companion seat's own; `freed`: the zone is full enough for it to be everybody's."""
    name = f"Seat {layout.seat_ids[ordinal]}"
    until = "" if kept_until is None else f" until {kept_until:%Y-%m-%d %H:%M:%S %Z}"
    kept = state == "available" and not freed
    if mine:
        words = f"{name}, for your companion, is yours already."
    elif state != "available":
        words = f"{name}, beside yours, is {state}."
    elif freed:
        words = f"{name}, for your companion, is offered to everyone now: the zone is {percent} % full."
    else:
        words = f"{name} is kept for your companion{until}."
    return CompanionSeat(
        seat_id=layout.seat_uuid(ordinal),
        label=layout.seat_ids[ordinal],
        row=layout.rows[ordinal],
        number=layout.numbers[ordinal],
        offered=state == "available",
        kept_until=kept_until if kept else None,
        words=words,
    )
