"""How wheelchair seats and their companions' are used, as far as the log can tell. Pure."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from holdfast.holds.lifecycle import SeatState, Verb
from holdfast.insight.analytics import Asked, Conversion, HoldEnd, Tally
from holdfast.insight.numbers import Numbers

KEPT_SEAT_NOTE = "taken by the organiser while it was kept for the companion of a wheelchair user"
"""What the log says then (`kept_seat_note` in functions/08_companions.sql)."""

SAME_SEAT_NOTE = "the same seat"
"""How a migration begins to say that a seat is itself in another version (functions/60_migrate.sql)."""


class SeatMove(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime
    segment: int
    ordinal: int
    zone_no: int
    verb: str
    new_state: SeatState
    hold_id: UUID | None
    hold_type: str | None
    user_id: UUID | None
    session_id: str | None
    reason: str | None


class CompanionsTaken(msgspec.Struct, frozen=True, kw_only=True):
    """Companions' seats that were held or sold directly, by who took them."""

    by_owner: int = 0
    """Of the wheelchair seat beside."""
    by_public: int = 0
    """By somebody else, once the zone was full enough."""
    by_organiser: int = 0
    """While the seat was kept for somebody."""
    unaccompanied: int = 0
    """While no wheelchair seat beside it was taken."""
    unclear: int = 0
    """The log does not say whose the wheelchair seat was: a migration moved its sale."""


class SeatUse(Conversion, frozen=True, kw_only=True):
    seats: int
    """In the event's layout now."""
    direct_sales: int


class ZoneUse(msgspec.Struct, frozen=True, kw_only=True):
    zone_id: str
    name: str
    wheelchair: SeatUse
    companion: SeatUse
    companions_taken: CompanionsTaken


class AccessibilityAnswer(Asked, frozen=True, kw_only=True):
    wheelchair: SeatUse
    companion: SeatUse
    companions_taken: CompanionsTaken
    share_of_seats: float | None
    """Wheelchair seats and companions' of all places of the layout."""
    share_of_held: float | None
    """Their holds of all places held in the window."""
    share_of_converted: float | None
    zones: list[ZoneUse]
    """Those that have such seats."""


class _Owner(msgspec.Struct, frozen=True):
    user_id: UUID | None
    session_id: str | None
    known: bool = True

    def is_(self, other: "_Owner") -> bool:
        """As the database decides it: by user or by session."""
        same_user = self.user_id is not None and self.user_id == other.user_id
        return same_user or (self.session_id is not None and self.session_id == other.session_id)


_UNKNOWN = _Owner(None, None, known=False)


class _Zone:
    def __init__(self) -> None:
        self.tallies = {"wheelchair": Tally(), "companion": Tally()}
        self.direct = {"wheelchair": 0, "companion": 0}
        self.taken = dict.fromkeys(CompanionsTaken.__struct_fields__, 0)

    def add(self, other: "_Zone") -> None:
        for kind, tally in other.tallies.items():
            for end in HoldEnd:
                self.tallies[kind].add(end, tally.holds[end], tally.places[end])
            self.direct[kind] += other.direct[kind]
        for name, count in other.taken.items():
            self.taken[name] += count

    def use(self, kind: str, seats: int) -> SeatUse:
        found = self.tallies[kind].conversion()
        return SeatUse(
            holds=found.holds,
            places=found.places,
            rate=found.rate,
            rate_of_ended=found.rate_of_ended,
            seats=seats,
            direct_sales=self.direct[kind],
        )


class AccessibilityUse(msgspec.Struct, frozen=True):
    wheelchair: SeatUse
    companion: SeatUse
    companions_taken: CompanionsTaken
    zones: list[ZoneUse]


def accessibility_use(
    numbers: Numbers,
    ended: Iterable[tuple[int, int, int, HoldEnd, int]],
    moves: Sequence[SeatMove],
    counts: Callable[[SeatMove], bool],
    shown: Callable[[str], bool] = lambda _: True,
) -> AccessibilityUse:
    """`ended`: segment, zone number, ordinal, end and holds, of those placed in the window. `moves`: all of these seats,
    in the order of the log; those that `counts` are counted, the others only say whose a seat was. `shown`: zones, by
    their zone_id."""
    zones = numbers.zones
    by_zone: dict[str, _Zone] = {}
    for segment, zone_no, ordinal, end, holds in ended:
        kind = _kind(numbers, segment, ordinal)
        by_zone.setdefault(zones[segment, zone_no].zone_id, _Zone()).tallies[kind].add(end, holds, holds)
    for move, who in _takings(numbers, moves):
        if not counts(move):
            continue
        zone = by_zone.setdefault(zones[move.segment, move.zone_no].zone_id, _Zone())
        if move.verb == Verb.DIRECT_SALE:
            zone.direct[_kind(numbers, move.segment, move.ordinal)] += 1
        if who is not None:
            zone.taken[who] += 1
    names = {zone.zone_id: zone.name for layout in numbers.layouts for zone in layout.zones}
    seats = _seats_now(numbers)
    every = _Zone()
    for zone in by_zone.values():
        every.add(zone)
    listed = [name for name in names if (name in by_zone or name in seats) and shown(name)]

    def use(zone: _Zone, kind: str, of: Iterable[str]) -> SeatUse:
        return zone.use(kind, sum(seats.get(name, {}).get(kind, 0) for name in of))

    return AccessibilityUse(
        wheelchair=use(every, "wheelchair", listed),
        companion=use(every, "companion", listed),
        companions_taken=CompanionsTaken(**every.taken),
        zones=[
            ZoneUse(
                zone_id=name,
                name=names[name],
                wheelchair=use(by_zone.get(name, _Zone()), "wheelchair", [name]),
                companion=use(by_zone.get(name, _Zone()), "companion", [name]),
                companions_taken=CompanionsTaken(**by_zone.get(name, _Zone()).taken),
            )
            for name in listed
        ],
    )


def _kind(numbers: Numbers, segment: int, ordinal: int) -> str:
    return "wheelchair" if ordinal in numbers.layouts[segment].wheelchair_seats else "companion"


def _seats_now(numbers: Numbers) -> dict[str, dict[str, int]]:
    layout = numbers.now
    found: dict[str, dict[str, int]] = {}
    for ordinal in layout.accessible_seats:
        of_zone = found.setdefault(layout.zone_of(ordinal).zone_id, {"wheelchair": 0, "companion": 0})
        of_zone[_kind(numbers, len(numbers.layouts) - 1, ordinal)] += 1
    return found


def _takings(numbers: Numbers, moves: Sequence[SeatMove]) -> Iterable[tuple[SeatMove, str | None]]:
    """Each hold and direct sale; of a companion's seat, with who took it."""
    taken: dict[bytes, _Owner] = {}
    """Seats that are held or sold, and whose they are."""
    before: dict[bytes, _Owner] = {}
    """Of those that were sold when they were blocked, or left their number: they come back to it."""
    holders: dict[UUID, _Owner] = {}
    together: dict[datetime, list[tuple[bytes, _Owner]]] = {}
    for move in moves:  # the seats of one request are in the order of their numbers, not wheelchairs first
        if _takes(move):
            seat = numbers.seat(move.segment, move.ordinal)
            together.setdefault(move.at, []).append((seat, _Owner(move.user_id, move.session_id)))
    for move in moves:
        seat = numbers.seat(move.segment, move.ordinal)
        who: str | None = None
        if _takes(move):
            owner = _Owner(move.user_id, move.session_id)
            if move.hold_id is not None:
                holders[move.hold_id] = owner
            layout = numbers.layouts[move.segment]
            chairs = [layout.seat_uuid_bytes(o) for o in layout.companion_wheelchairs.get(move.ordinal, ())]
            if chairs:
                who = _who(owner, move, chairs, taken, together[move.at])
            taken[seat] = owner
            yield move, who
        elif move.new_state in (SeatState.HELD, SeatState.SOLD):
            known = holders.get(move.hold_id) if move.hold_id is not None else None
            stayed = move.verb != Verb.MIGRATE or (move.reason or "").startswith(SAME_SEAT_NOTE)
            taken[seat] = known or (taken.get(seat) or before.get(seat) if stayed else None) or _UNKNOWN
        else:
            left = taken.pop(seat, None)
            if left is not None:
                before[seat] = left
            if move.verb not in (Verb.MIGRATE, Verb.BLOCK):
                before.pop(seat, None)


def _takes(move: SeatMove) -> bool:
    return move.verb in (Verb.HOLD, Verb.DIRECT_SALE)


def _who(
    owner: _Owner,
    move: SeatMove,
    chairs: Sequence[bytes],
    taken: dict[bytes, _Owner],
    together: Sequence[tuple[bytes, _Owner]],
) -> str:
    whose = [taken[chair] for chair in chairs if chair in taken]
    if any(owner.is_(other) for other in whose) or any(seat in chairs and owner.is_(o) for seat, o in together):
        return "by_owner"
    if not whose:
        return "unaccompanied"
    if move.reason is not None and move.reason.startswith(KEPT_SEAT_NOTE):
        return "by_organiser"
    return "by_public" if all(other.known for other in whose) else "unclear"
