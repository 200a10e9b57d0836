"""An event goes to another version of its layout: who stays, who must move and to where, and what has no place. Pure.

A seat that is in both versions (its `seat_id` says so) is the same seat: whoever has it keeps it. Who has a seat that the
new version lacks is moved by the allocator, to seats of the same price, those who sat side by side together.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec
import numpy as np
from numpy.typing import NDArray

from holdfast.allocation.choose import Wish, choose
from holdfast.allocation.floor import floor_of
from holdfast.holds.lifecycle import SeatState
from holdfast.kernel.problems import Problems, child, listing, quoted
from holdfast.seating.layout import Layout, SeatCategory, Zone
from holdfast.seating.overlay import NO_OVERLAY, Overlay, effective_layout, overlay_within, unoffered_seats
from holdfast.seating.prices import NO_PRICE, Price, price_list

TOGETHER_MAX = 20
"""Of more who sit side by side, parts are moved together: a whole row of nobody's in particular is no party."""
NAMED = 10
"""How many a sentence names."""


class MigrationStatus(StrEnum):
    PLANNED = "planned"
    APPLIED = "applied"
    DISCARDED = "discarded"


# What the plan is made from ---------------------------------------------------------------------------------------
class SeatTaken(msgspec.Struct, frozen=True, kw_only=True):
    """A seat that is not free, and who has it. Of what was sold directly without a ticket nobody knows whose it is."""

    ordinal: int
    state: SeatState
    sold: bool
    """Also of a seat that was blocked after it was sold."""
    hold_id: UUID | None = None
    hold_type: str | None = None
    user_id: UUID | None = None
    session_id: str | None = None
    ticket_id: UUID | None = None
    attendee_user_id: UUID | None = None
    """Who will sit there, of a ticket that says so."""


class ZoneTaken(msgspec.Struct, frozen=True, kw_only=True):
    """A counted zone. What the overlay takes out of it is not counted: that is taken out anew."""

    zone_no: int
    held: int
    sold: int
    blocked: int = 0

    @property
    def places(self) -> int:
        return self.held + self.sold + self.blocked


class PlacesHeld(msgspec.Struct, frozen=True, kw_only=True):
    hold_id: UUID
    zone_no: int
    quantity: int
    hold_type: str
    user_id: UUID | None = None
    session_id: str | None = None


class Replacement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The organiser's own choice for a seat that must move."""

    from_seat: UUID
    to_seat: UUID


class Occupied(msgspec.Struct, frozen=True, kw_only=True):
    seats: Sequence[SeatTaken]
    zones: Sequence[ZoneTaken]
    places: Sequence[PlacesHeld]


# The plan -----------------------------------------------------------------------------------------------------------
class SeatNamed(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    seat_id: str
    ordinal: int
    zone: str
    row: str
    number: int
    category: SeatCategory


class PlannedMove(msgspec.Struct, frozen=True, kw_only=True):
    """A seat that must move, and where to; `to_seat` null: there is no place for it."""

    from_seat: SeatNamed
    to_seat: SeatNamed | None
    state: SeatState
    sold: bool
    hold_id: UUID | None
    hold_type: str | None
    user_id: UUID | None
    session_id: str | None
    amount_minor: int | None
    """The price of the seat that is left."""
    why: str
    ticket_id: UUID | None = None
    attendee_user_id: UUID | None = None


class PlannedZone(msgspec.Struct, frozen=True, kw_only=True):
    """A counted zone; `to_capacity` null: the new version lacks it."""

    zone_id: str
    from_capacity: int
    to_capacity: int | None
    held: int
    sold: int


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    sold: int = 0
    held: int = 0
    blocked: int = 0


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    one_to_one: Tally
    """Taken seats that are in both versions."""
    moving: Tally
    unplaced: Tally
    """`blocked`: seats that are blocked, nobody's, and vanish."""
    seats_added: int
    seats_removed: int
    moves: list[PlannedMove]
    """Those with a place first, in the order of the old version."""
    zones: list[PlannedZone]
    cancelled_places: list[PlacesHeld]
    """Held places of zones that vanish."""
    dropped_prices: list[Price]
    """Of zones that vanish: they are taken off the event."""
    warnings: list[str]
    blockers: list[str]
    """Why it cannot be applied."""

    @property
    def placed(self) -> list[PlannedMove]:
        return [move for move in self.moves if move.to_seat is not None]

    @property
    def cancelled_holds(self) -> list[UUID]:
        """Held, and without a place in the new version."""
        seats = [m.hold_id for m in self.moves if m.to_seat is None and not m.sold and m.hold_id is not None]
        return [*seats, *(places.hold_id for places in self.cancelled_places)]


class Renumbering(msgspec.Struct, frozen=True, kw_only=True):
    """From the old numbers to the new ones, as the database applies it."""

    zone_nos: list[int]
    keep: list[int | None]
    """By new ordinal: the old ordinal of the same seat."""
    taken_from: list[int | None]
    """By new ordinal: the old ordinal whose state it takes over."""
    ga_zones: list[int]
    ga_keep: list[int | None]
    ga_capacities: list[int]


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who must hear of the migration."""

    what: str
    """`moved`, or `cancelled`: the hold was ended, because there is no place for it."""
    state: SeatState
    hold_id: UUID | None
    hold_type: str | None
    user_id: UUID | None
    session_id: str | None
    quantity: int
    zone: str
    from_seat: SeatNamed | None
    """Null: counted places."""
    to_seat: SeatNamed | None
    ticket_id: UUID | None = None
    attendee_user_id: UUID | None = None
    """Who will sit there, where that is somebody else than the buyer (`user_id`)."""


def make_plan(
    old: Layout,
    new: Layout,
    prices: Sequence[Price],
    occupied: Occupied,
    replacements: Mapping[int, int],
    overlay: Overlay = NO_OVERLAY,
) -> Plan:
    """`replacements`: old ordinal to new, as `check_replacements` let through. Nobody is moved to what the overlay takes
    out."""
    return _Planner(old, new, prices, occupied, overlay).plan(replacements)


def check_replacements(
    old: Layout, new: Layout, occupied: Occupied, wanted: Sequence[Replacement], problems: Problems
) -> dict[int, int]:
    """The organiser's own choices by ordinal; whatever is wrong with them goes to `problems`."""
    must_move = {seat.ordinal for seat in occupied.seats if _has_holder(seat) and _kept(old, new, seat.ordinal) is None}
    taken = {_kept(old, new, seat.ordinal) for seat in occupied.seats}
    found: dict[int, int] = {}
    for place, one in enumerate(wanted):
        pointer = child("/replacements", place)
        origin, target = old.seat_index.of(one.from_seat), new.seat_index.of(one.to_seat)
        if origin is None:
            problems.add(child(pointer, "from_seat"), "unknown_seat", "the event has no such seat")
        elif origin not in must_move:
            said = f"seat {quoted(old.seat_ids[origin])} need not move: it is free, or in both versions"
            problems.add(child(pointer, "from_seat"), "not_moving", said)
        elif origin in found:
            problems.add(child(pointer, "from_seat"), "duplicate_seat", "this seat is named twice")
        if target is None:
            problems.add(child(pointer, "to_seat"), "unknown_seat", "the new version has no such seat")
        elif target in taken:
            said = f"seat {quoted(new.seat_ids[target])} is not free"
            problems.add(child(pointer, "to_seat"), "seat_taken", said)
        elif target in found.values():
            problems.add(child(pointer, "to_seat"), "duplicate_seat", "two seats cannot move to the same one")
        if origin is not None and target is not None:
            found.setdefault(origin, target)
    return found


def renumber(old: Layout, new: Layout, plan: Plan) -> Renumbering:
    keep = [_kept(new, old, ordinal) for ordinal in range(new.seat_count)]
    taken_from = list(keep)
    for move in plan.placed:
        assert move.to_seat is not None
        taken_from[move.to_seat.ordinal] = move.from_seat.ordinal
    ga = [zone for zone in new.zones if zone.is_ga]
    counterparts = [_same_zone(old, zone) for zone in ga]
    return Renumbering(
        zone_nos=new.zone_nos,
        keep=keep,
        taken_from=taken_from,
        ga_zones=[zone.zone_no for zone in ga],
        ga_keep=[None if zone is None else zone.zone_no for zone in counterparts],
        ga_capacities=[zone.capacity for zone in ga],
    )


def notifications_of(plan: Plan, old: Layout) -> list[Notification]:
    """Everybody whose seat is another one, or whose hold was ended."""
    seats = [
        Notification(
            what="moved" if move.to_seat is not None else "cancelled",
            state=SeatState.SOLD if move.sold else move.state,
            hold_id=move.hold_id,
            hold_type=move.hold_type,
            user_id=move.user_id,
            session_id=move.session_id,
            quantity=1,
            zone=move.from_seat.zone,
            from_seat=move.from_seat,
            to_seat=move.to_seat,
            ticket_id=move.ticket_id,
            attendee_user_id=move.attendee_user_id,
        )
        for move in plan.moves
    ]
    places = [
        Notification(
            what="cancelled",
            state=SeatState.HELD,
            hold_id=held.hold_id,
            hold_type=held.hold_type,
            user_id=held.user_id,
            session_id=held.session_id,
            quantity=held.quantity,
            zone=old.zones[held.zone_no].zone_id,
            from_seat=None,
            to_seat=None,
        )
        for held in plan.cancelled_places
    ]
    return [*seats, *places]


def seat_named(layout: Layout, ordinal: int) -> SeatNamed:
    return SeatNamed(
        id=layout.seat_uuid(ordinal),
        seat_id=layout.seat_ids[ordinal],
        ordinal=ordinal,
        zone=layout.zone_of(ordinal).zone_id,
        row=layout.rows[ordinal],
        number=layout.numbers[ordinal],
        category=layout.categories[ordinal],
    )


# Making it ----------------------------------------------------------------------------------------------------------
_KINDS = {SeatCategory.WHEELCHAIR: 1, SeatCategory.COMPANION: 2}
"""Who sits in one of these keeps to the same kind, and nobody else is moved there."""


def _amounts(layout: Layout, prices: Sequence[Price], overlay: Overlay) -> list[int | None]:
    """What the seats of one version of the layout cost."""
    column = price_list(layout, tuple(prices), overlay.pricing_zones).column()
    if column is None:
        return [None] * layout.seat_count
    return [None if amount == NO_PRICE else amount for amount in column.tolist()]


class _Planner:
    def __init__(self, old: Layout, new: Layout, prices: Sequence[Price], occupied: Occupied, overlay: Overlay) -> None:
        old, new = effective_layout(old, overlay), effective_layout(new, overlay)
        self._old, self._new = old, new
        self._prices = prices
        self._overlay = overlay
        self._occupied = occupied
        self._old_amounts = _amounts(old, prices, overlay)
        self._new_amounts = _amounts(new, prices, overlay)
        self._amounts = np.array([-1 if amount is None else amount for amount in self._new_amounts], np.int64)
        self._zone_nos = np.array(new.zone_nos, np.int32)
        self._kinds = np.array([_KINDS.get(category, 0) for category in new.categories], np.int8)
        self._free: NDArray[np.bool_] = np.ones(new.seat_count, np.bool_)
        self._free[sorted(unoffered_seats(new, overlay))] = False
        self._warnings: list[str] = []
        self._blockers: list[str] = []

    def plan(self, replacements: Mapping[int, int]) -> Plan:
        old, new = self._old, self._new
        staying: list[SeatTaken] = []
        leaving: list[SeatTaken] = []
        for seat in self._occupied.seats:
            kept = _kept(old, new, seat.ordinal)
            if kept is None:
                leaving.append(seat)
            else:
                staying.append(seat)
                self._free[kept] = False
        moving = [seat for seat in leaving if _has_holder(seat)]
        targets: dict[int, tuple[int, str]] = {}
        for origin, target in replacements.items():
            targets[origin] = (target, "chosen by the organiser")
            self._free[target] = False
            if self._old_amounts[origin] != self._new_amounts[target]:
                self._warnings.append(
                    f"{old.seat_ids[origin]} moves to {new.seat_ids[target]}, which costs another price."
                )
        rest = [seat for seat in moving if seat.ordinal not in targets]
        for group in self._groups(rest):
            self._place(group, targets)
        moves = [self._move(seat, targets.get(seat.ordinal)) for seat in moving]
        moves.sort(key=lambda move: (move.to_seat is None, move.from_seat.ordinal))
        unplaced = [seat for seat in moving if seat.ordinal not in targets]
        self._speak_of_seats(staying, unplaced, [seat for seat in leaving if not _has_holder(seat)])
        if overlay_within(new, self._overlay) != self._overlay:
            self._warnings.append("The event's overlay loses what it says of seats and zones that vanish.")
        zones, cancelled = self._zones()
        kept_count = sum(_kept(old, new, ordinal) is not None for ordinal in range(old.seat_count))
        return Plan(
            one_to_one=_tally(staying),
            moving=_tally([seat for seat in moving if seat.ordinal in targets]),
            unplaced=_tally([*unplaced, *(seat for seat in leaving if not _has_holder(seat))]),
            seats_added=new.seat_count - kept_count,
            seats_removed=old.seat_count - kept_count,
            moves=moves,
            zones=zones,
            cancelled_places=cancelled,
            dropped_prices=self._dropped_prices(),
            warnings=self._warnings,
            blockers=self._blockers,
        )

    # Places ---------------------------------------------------------------------------------------------------------
    def _groups(self, seats: Sequence[SeatTaken]) -> list[list[SeatTaken]]:
        """Those of one holder who sit side by side and have paid the same: what is sold first, and the largest first."""
        if not seats:
            return []
        by_ordinal = {seat.ordinal: seat for seat in seats}
        right = floor_of(self._old).right
        grouped: list[list[SeatTaken]] = []
        done: set[int] = set()
        left_ends = sorted(by_ordinal, key=lambda o: (self._old.zone_nos[o], self._old.rows[o], self._old.numbers[o]))
        for first in left_ends:
            if first in done:
                continue
            group = [by_ordinal[first]]
            while len(group) < TOGETHER_MAX:
                following = by_ordinal.get(int(right[group[-1].ordinal]))
                if following is None or self._terms(following) != self._terms(group[0]):
                    break
                group.append(following)
            done.update(seat.ordinal for seat in group)
            grouped.append(group)
        return sorted(grouped, key=lambda group: (not group[0].sold, -len(group), group[0].ordinal))

    def _terms(self, seat: SeatTaken) -> tuple[Any, ...]:
        kind = _KINDS.get(self._old.categories[seat.ordinal], 0)
        return seat.user_id, seat.session_id, seat.sold, self._old_amounts[seat.ordinal], kind

    def _place(self, group: Sequence[SeatTaken], targets: dict[int, tuple[int, str]]) -> None:
        """Together where that can be, in parts where it cannot."""
        floor = floor_of(self._new)
        for allowed, where in self._allowed(group[0].ordinal):
            for strict in (True, False):
                wish = Wish(quantity=len(group), allowed=allowed, strict_orphans=strict)
                choice = choose(floor, self._free, wish)
                if choice is None:
                    continue
                if len(choice.clusters) > 1:
                    names = [self._old.seat_ids[seat.ordinal] for seat in group]
                    self._warnings.append(f"{_named(names)} cannot stay side by side.")
                for seat, target in zip(group, choice.ordinals, strict=True):
                    targets[seat.ordinal] = (target, f"{where}: {choice.words}")
                    self._free[target] = False
                return
        if len(group) > 1:
            half = len(group) // 2
            self._place(group[: len(group) - half], targets)
            self._place(group[len(group) - half :], targets)

    def _allowed(self, origin: int) -> list[tuple[NDArray[np.bool_], str]]:
        """Where somebody may be moved: the same price in the same zone, else in a zone that asks no more of a buyer."""
        zone, amount = self._old.zone_of(origin), self._old_amounts[origin]
        alike = (self._kinds == _KINDS.get(self._old.categories[origin], 0)) & self._free
        alike &= self._amounts == (-1 if amount is None else amount)
        same = [other.zone_no for other in self._new.zones if other.zone_id == zone.zone_id]
        found = [(alike & np.isin(self._zone_nos, same), "same zone and price")]
        if amount is not None:
            others = [other.zone_no for other in self._new.zones if _asks_alike(zone, other)]
            found.append((alike & np.isin(self._zone_nos, others), "same price in another zone"))
        return found

    def _move(self, seat: SeatTaken, target: tuple[int, str] | None) -> PlannedMove:
        return PlannedMove(
            from_seat=seat_named(self._old, seat.ordinal),
            to_seat=None if target is None else seat_named(self._new, target[0]),
            state=seat.state,
            sold=seat.sold,
            hold_id=seat.hold_id,
            hold_type=seat.hold_type,
            user_id=seat.user_id,
            session_id=seat.session_id,
            amount_minor=self._old_amounts[seat.ordinal],
            why="no free seat of the same price" if target is None else target[1],
            ticket_id=seat.ticket_id,
            attendee_user_id=seat.attendee_user_id,
        )

    # Words ----------------------------------------------------------------------------------------------------------
    def _speak_of_seats(
        self, staying: Sequence[SeatTaken], unplaced: Sequence[SeatTaken], blocked: Sequence[SeatTaken]
    ) -> None:
        old, new = self._old, self._new
        sold = [old.seat_ids[seat.ordinal] for seat in unplaced if seat.sold]
        if sold:
            self._blockers.append(
                f"{len(sold)} sold {_plural(sold, 'seat has', 'seats have')} no place in the new version: {_named(sold)}. "
                "Name replacements, or give the sales back first."
            )
        held = [old.seat_ids[seat.ordinal] for seat in unplaced if not seat.sold]
        if held:
            self._warnings.append(
                f"{len(held)} held {_plural(held, 'seat has', 'seats have')} no place in the new version; "
                f"the holds will be cancelled: {_named(held)}."
            )
        if blocked:
            names = [old.seat_ids[seat.ordinal] for seat in blocked]
            self._warnings.append(
                f"{len(names)} blocked {_plural(names, 'seat vanishes', 'seats vanish')}: {_named(names)}."
            )
        dearer = [
            old.seat_ids[seat.ordinal]
            for seat in staying
            if _has_holder(seat)
            and self._old_amounts[seat.ordinal] != self._new_amounts[_kept(old, new, seat.ordinal) or 0]
        ]
        if dearer:
            said = _plural(dearer, "seat costs", "seats cost")
            self._warnings.append(f"{len(dearer)} taken {said} another price in the new version: {_named(dearer)}.")

    def _zones(self) -> tuple[list[PlannedZone], list[PlacesHeld]]:
        planned: list[PlannedZone] = []
        cancelled: list[PlacesHeld] = []
        for taken in self._occupied.zones:
            zone = self._old.zones[taken.zone_no]
            other = _same_zone(self._new, zone)
            capacity = None if other is None else other.capacity
            planned.append(
                PlannedZone(
                    zone_id=zone.zone_id,
                    from_capacity=zone.capacity,
                    to_capacity=capacity,
                    held=taken.held,
                    sold=taken.sold,
                )
            )
            if capacity is None and taken.sold:
                self._blockers.append(f"The new version lacks {zone.name}, of which {taken.sold} places are sold.")
            elif capacity is None and taken.held:
                cancelled += [held for held in self._occupied.places if held.zone_no == taken.zone_no]
                self._warnings.append(
                    f"The new version lacks {zone.name}; its holds ({taken.held} places) will be cancelled."
                )
            elif capacity is not None and taken.places > capacity:
                self._blockers.append(
                    f"{zone.name} has {taken.places} places taken, and the new version only {capacity}."
                )
        return planned, cancelled

    def _dropped_prices(self) -> list[Price]:
        zone_ids = {zone.zone_id for zone in self._new.zones}
        dropped = [price for price in self._prices if price.zone_id not in zone_ids]
        if dropped:
            names = list(dict.fromkeys(price.zone_id for price in dropped))
            self._warnings.append(
                f"The prices of {listing(names)} are taken off the event: the new version lacks the zone."
            )
        if self._prices:
            priced = {price.zone_id for price in self._prices}
            without = [zone.zone_id for zone in self._new.zones if zone.zone_id not in priced]
            known = {zone.zone_id for zone in self._old.zones}
            fresh = [zone_id for zone_id in without if zone_id not in known]
            if fresh:
                self._warnings.append(f"The event has no price yet for {listing(fresh)}.")
        return dropped


def _kept(old: Layout, new: Layout, ordinal: int) -> int | None:
    return new.seat_index.get(old.seat_uuid_bytes(ordinal))


def _same_zone(layout: Layout, zone: Zone) -> Zone | None:
    """The counted zone of the same name in another version."""
    return next((other for other in layout.zones if other.zone_id == zone.zone_id and other.is_ga), None)


def _asks_alike(zone: Zone, other: Zone) -> bool:
    return (zone.access_mode, zone.required_tier, zone.allowed_roles) == (
        other.access_mode,
        other.required_tier,
        other.allowed_roles,
    )


def _has_holder(seat: SeatTaken) -> bool:
    return seat.sold or seat.state is SeatState.HELD


def _tally(seats: Sequence[SeatTaken]) -> Tally:
    sold = sum(seat.sold for seat in seats)
    held = sum(seat.state is SeatState.HELD for seat in seats)
    return Tally(sold=sold, held=held, blocked=len(seats) - sold - held)


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"


def _plural(names: Sequence[str], one: str, several: str) -> str:
    return one if len(names) == 1 else several
