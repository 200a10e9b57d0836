"""The states of a seat, the only legal moves between them, and a checker that replays a log of moves."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec


class SeatState(StrEnum):
    AVAILABLE = "available"
    HELD = "held"
    SOLD = "sold"
    BLOCKED = "blocked"


class BookingState(StrEnum):
    """The same four states in the words of booking v2."""

    ACTIVE = "ACTIVE"
    LOCKED = "LOCKED"
    SOLD = "SOLD"
    BLOCKED = "BLOCKED"


class HoldStatus(StrEnum):
    ACTIVE = "active"
    CONVERTED = "converted"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class Actor(StrEnum):
    CUSTOMER = "CUSTOMER"
    ADMIN = "ADMIN"
    SYSTEM = "SYSTEM"
    API = "API"


class Verb(StrEnum):
    HOLD = "hold"
    RELEASE = "release"
    EXPIRE = "expire"
    CONVERT = "convert"
    DIRECT_SALE = "direct_sale"
    REVERT_SALE = "revert_sale"
    BLOCK = "block"
    UNBLOCK = "unblock"
    MIGRATE = "migrate"
    """Out of a number of one version of the layout, and into one of another: see `LayoutChange`."""


BOOKING_STATES: dict[SeatState, BookingState] = {
    SeatState.AVAILABLE: BookingState.ACTIVE,
    SeatState.HELD: BookingState.LOCKED,
    SeatState.SOLD: BookingState.SOLD,
    SeatState.BLOCKED: BookingState.BLOCKED,
}
SEAT_STATES: dict[BookingState, SeatState] = {theirs: ours for ours, theirs in BOOKING_STATES.items()}


class Move(msgspec.Struct, frozen=True):
    old_state: SeatState
    new_state: SeatState
    verb: Verb
    actors: frozenset[Actor]
    """Who may ask for it at all. Hold type, ownership and sale window narrow it further."""


_EVERYONE = frozenset(Actor)
_BUYERS_AND_STAFF = frozenset((Actor.CUSTOMER, Actor.ADMIN, Actor.API))
_ADMIN = frozenset((Actor.ADMIN,))
_STAFF = frozenset((Actor.ADMIN, Actor.API))
_TAKEN = (SeatState.HELD, SeatState.SOLD, SeatState.BLOCKED)

LEGAL_MOVES: tuple[Move, ...] = (
    Move(SeatState.AVAILABLE, SeatState.HELD, Verb.HOLD, _BUYERS_AND_STAFF),
    Move(SeatState.HELD, SeatState.AVAILABLE, Verb.RELEASE, _EVERYONE),
    Move(SeatState.HELD, SeatState.AVAILABLE, Verb.EXPIRE, frozenset((Actor.SYSTEM,))),
    # A payment provider's word completes a checkout too, and then the engine itself is the one who asks.
    Move(SeatState.HELD, SeatState.SOLD, Verb.CONVERT, _EVERYONE),
    # The same, where the money came late and the seat was free again.
    Move(SeatState.AVAILABLE, SeatState.SOLD, Verb.DIRECT_SALE, _EVERYONE),
    Move(SeatState.SOLD, SeatState.AVAILABLE, Verb.REVERT_SALE, frozenset((Actor.ADMIN, Actor.API))),
    Move(SeatState.AVAILABLE, SeatState.BLOCKED, Verb.BLOCK, _ADMIN),
    Move(SeatState.HELD, SeatState.BLOCKED, Verb.BLOCK, _ADMIN),
    Move(SeatState.SOLD, SeatState.BLOCKED, Verb.BLOCK, _ADMIN),
    Move(SeatState.BLOCKED, SeatState.AVAILABLE, Verb.UNBLOCK, _ADMIN),
    Move(SeatState.BLOCKED, SeatState.SOLD, Verb.UNBLOCK, _ADMIN),
    *(Move(state, SeatState.AVAILABLE, Verb.MIGRATE, _STAFF) for state in _TAKEN),
    *(Move(SeatState.AVAILABLE, state, Verb.MIGRATE, _STAFF) for state in _TAKEN),
)

HOLD_ENDS_AS: dict[Verb, HoldStatus] = {
    Verb.RELEASE: HoldStatus.CANCELLED,
    Verb.EXPIRE: HoldStatus.EXPIRED,
    Verb.CONVERT: HoldStatus.CONVERTED,
    Verb.BLOCK: HoldStatus.CANCELLED,
}
"""What becomes of the hold on a seat that a move takes out of `held`. One that is migrated goes on with its new number."""

_MOVES = {(move.old_state, move.new_state, move.verb): move for move in LEGAL_MOVES}


def find_move(old_state: SeatState, new_state: SeatState, verb: Verb) -> Move | None:
    return _MOVES.get((old_state, new_state, verb))


def may_ask(verb: Verb, actor: Actor) -> bool:
    return any(actor in move.actors for move in LEGAL_MOVES if move.verb is verb)


class LogRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of an event's state log: of a seat, or (`ordinal` None) of some of a zone's counted places."""

    ordinal: int | None
    zone_no: int | None
    quantity: int = 1
    old_state: SeatState
    new_state: SeatState
    verb: Verb
    hold_id: uuid.UUID | None = None
    hold_type: str | None = None
    version: int = 0
    """The seat's version after the move."""


class LayoutChange(msgspec.Struct, frozen=True, kw_only=True):
    """Where in a log ordinals and zone numbers begin to mean those of another version of the layout."""

    after_rows: int
    """How many rows of the log come before it."""
    base_version: int
    """The version that every seat has then."""
    capacities: Mapping[int, int] = {}
    """Of the counted zones before it."""


class GaCounts(msgspec.Struct, frozen=True):
    held: int = 0
    sold: int = 0
    blocked: int = 0

    @property
    def taken(self) -> int:
        return self.held + self.sold + self.blocked


class Replayed(msgspec.Struct, frozen=True):
    """Where a log leads. Seats and zones no row speaks of are not in it."""

    seats: dict[int, SeatState]
    versions: dict[int, int]
    holds: dict[int, uuid.UUID]
    """The hold on each seat that ends up held, where the log names it."""
    zones: dict[int, GaCounts]
    base_version: int = 0
    """Of seats no row speaks of."""


class IllegalHistory(Exception):
    """The log tells of something that cannot have happened."""

    def __init__(self, position: int, row: LogRow, reason: str) -> None:
        self.position = position
        self.row = row
        self.reason = reason
        where = f"zone {row.zone_no}" if row.ordinal is None else f"seat {row.ordinal}"
        super().__init__(f"row {position}, {where}, {row.verb}: {reason}")


def replay(
    log_rows: Iterable[LogRow],
    *,
    initial: Mapping[int, SeatState] | None = None,
    initial_version: int = 0,
    capacities: Mapping[int, int] | None = None,
    changes: Sequence[LayoutChange] = (),
) -> Replayed:
    """Folds an event's log, in its order, into final states. Raises IllegalHistory at an impossible row.

    Seats begin available unless `initial` says otherwise, and at `initial_version`; each row adds one. With
    `capacities` (by zone number) a counted zone may never be over its own. At each of the `changes` everything must have
    left its old number: the log goes on in other numbers, all of them free.
    """
    ahead = list(changes)
    fold = _Fold(initial or {}, initial_version, ahead[0].capacities if ahead else capacities or {})
    position, row = 0, None
    for position, row in enumerate(log_rows):
        while ahead and ahead[0].after_rows <= position:
            reason = _pass(fold, ahead, capacities or {})
            if reason is not None:
                raise IllegalHistory(position, row, reason)
        reason = fold.step(row)
        if reason is not None:
            raise IllegalHistory(position, row, reason)
    while ahead:
        reason = _pass(fold, ahead, capacities or {})
        if reason is not None:
            assert row is not None, "in an empty log nothing can be left behind"
            raise IllegalHistory(position, row, reason)
    zones = {
        zone_no: GaCounts(counts[SeatState.HELD], counts[SeatState.SOLD], counts[SeatState.BLOCKED])
        for zone_no, counts in fold.zones.items()
    }
    return Replayed(fold.seats, fold.versions, fold.holds, zones, fold.base_version)


def _pass(fold: "_Fold", ahead: list[LayoutChange], capacities: Mapping[int, int]) -> str | None:
    """Over to the next version of the layout, or why that cannot be."""
    change = ahead.pop(0)
    return fold.begin_anew(change.base_version, ahead[0].capacities if ahead else capacities)


class _Fold:
    def __init__(self, initial: Mapping[int, SeatState], initial_version: int, capacities: Mapping[int, int]) -> None:
        self.seats: dict[int, SeatState] = {}
        self.versions: dict[int, int] = {}
        self.holds: dict[int, uuid.UUID] = {}
        self.zones: dict[int, dict[SeatState, int]] = {}
        self._initial = initial
        self.base_version = initial_version
        self._capacities = capacities

    def begin_anew(self, base_version: int, capacities: Mapping[int, int]) -> str | None:
        """Other numbers from here on; or what was left behind in the old ones."""
        for ordinal, state in {**self._initial, **self.seats}.items():
            if state is not SeatState.AVAILABLE:
                return f"seat {ordinal} was still {state} when the layout changed"
        for zone_no, counts in self.zones.items():
            if counts[SeatState.AVAILABLE] != 0:
                return f"zone {zone_no} still had {-counts[SeatState.AVAILABLE]} places taken when the layout changed"
        highest = max(self.versions.values(), default=self.base_version)
        if base_version < highest:
            return f"versions went on from {base_version} after {highest}"
        self.seats, self.versions, self.holds, self.zones = {}, {}, {}, {}
        self._initial, self.base_version, self._capacities = {}, base_version, capacities
        return None

    def step(self, row: LogRow) -> str | None:
        """Applies the row, or returns why it cannot be."""
        if find_move(row.old_state, row.new_state, row.verb) is None:
            return f"no {row.verb} goes from {row.old_state} to {row.new_state}"
        if row.ordinal is not None:
            return self._step_seat(row, row.ordinal)
        if row.zone_no is not None:
            return self._step_zone(row, row.zone_no)
        return "names neither a seat nor a zone"

    def _step_seat(self, row: LogRow, ordinal: int) -> str | None:
        state = self.seats.get(ordinal, self._initial.get(ordinal, SeatState.AVAILABLE))
        if row.old_state is not state:
            return f"says the seat was {row.old_state}, but it was {state}"
        expected = self.versions.get(ordinal, self.base_version) + 1
        if row.version != expected:
            return f"has version {row.version}, but {expected} comes next"
        if row.quantity != 1:
            return f"moves a seat {row.quantity} times"
        holder = self.holds.get(ordinal)
        if state is SeatState.HELD and None not in (holder, row.hold_id) and row.hold_id != holder:
            return f"speaks of hold {row.hold_id}, but the seat was in hold {holder}"
        self.seats[ordinal] = row.new_state
        self.versions[ordinal] = row.version
        self.holds.pop(ordinal, None)
        if row.new_state is SeatState.HELD and row.hold_id is not None:
            self.holds[ordinal] = row.hold_id
        return None

    def _step_zone(self, row: LogRow, zone_no: int) -> str | None:
        # A zone's places have no version of their own: rows of different holds may be written in any order.
        if row.quantity < 1:
            return f"moves {row.quantity} places"
        counts = self.zones.setdefault(zone_no, dict.fromkeys(SeatState, 0))
        if row.old_state is not SeatState.AVAILABLE and counts[row.old_state] < row.quantity:
            return f"moves {row.quantity} {row.old_state} places, but there were {counts[row.old_state]}"
        counts[row.old_state] -= row.quantity
        counts[row.new_state] += row.quantity
        taken = -counts[SeatState.AVAILABLE]
        capacity = self._capacities.get(zone_no)
        if capacity is not None and taken > capacity:
            return f"fills {taken} places of {capacity}"
        return None
