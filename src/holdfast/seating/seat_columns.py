"""Reading a config's seats into columns, and the checks that look across seats.

A hundred thousand seats arrive in one document, so a seat is first read by `_plain_seat`, which knows only
how a faultless one looks; whatever that declines is read again by `_explained_seat`, which can say why.
"""

from typing import Any

from holdfast.kernel.problems import Problems, child, quoted
from holdfast.seating.layout import SeatCategory
from holdfast.seating.reading import (
    COORDINATE_LIMIT,
    check_choice,
    read_integer,
    read_object,
    read_optional_text,
    read_point,
    read_text,
)

MAX_SEAT_NUMBER = 1_000_000
SEAT_ID_CHARS = 100
ROW_CHARS = 50

_FIELDS = frozenset(("seat_id", "row", "number", "category", "companion_seat_id", "coordinates"))
_CATEGORIES = {category.value: category for category in SeatCategory}
_NUMBERS = frozenset((int, float))

# seat_id, row, number, category, x, y, companion's seat_id
_Seat = tuple[str, str | None, int | None, SeatCategory, float | None, float | None, str | None]


class SeatColumns:
    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self.seat_ids: list[str] = []
        self.rows: list[str] = []
        self.numbers: list[int] = []
        self.zone_nos: list[int] = []
        self.categories: list[SeatCategory] = []
        self.xs: list[float | None] = []
        self.ys: list[float | None] = []
        self.companions: list[int] = []
        self.ordinals: dict[str, int] = {}
        self._places: list[int] = []
        self._named_companions: dict[int, str] = {}

    def read_zone(self, zone_no: int, pointer: str, raw_seats: list[Any]) -> set[str]:
        """Appends the seats of one zone, found at `pointer`; returns its rows."""
        problems = self._problems
        taken: dict[str, dict[int, int]] = {}
        for place, raw in enumerate(raw_seats):
            seat = _plain_seat(raw) or _explained_seat(problems, f"{pointer}/{place}", raw)
            if seat is None:
                # Its row is occupied all the same: row metadata for it is no second mistake.
                if isinstance(raw, dict) and isinstance(raw.get("row"), str):
                    taken.setdefault(raw["row"], {})
                continue
            seat_id, row, number, category, x, y, companion = seat
            ordinal = len(self.seat_ids)
            first = self.ordinals.setdefault(seat_id, ordinal)
            if first != ordinal:
                said = f"seat id {quoted(seat_id)} is already used at {self.pointer(first)}"
                problems.add(f"{pointer}/{place}/seat_id", "duplicate_seat_id", said)
            if row is not None:
                numbers = taken.get(row)
                if numbers is None:
                    numbers = taken[row] = {}
                if number is not None:
                    other = numbers.setdefault(number, place)
                    if other != place:
                        said = f"row {quoted(row)} number {number} is already taken by {pointer}/{other}"
                        problems.add(f"{pointer}/{place}", "duplicate_place", said)
            if companion is not None:
                self._named_companions[ordinal] = companion
            self.seat_ids.append(seat_id)
            self.rows.append(row or "")
            self.numbers.append(number or 0)
            self.zone_nos.append(zone_no)
            self.categories.append(category)
            self.xs.append(x)
            self.ys.append(y)
            self._places.append(place)
        return set(taken)

    def pointer(self, ordinal: int) -> str:
        return f"/zones/{self.zone_nos[ordinal]}/seats/{self._places[ordinal]}"

    def link_companions(self) -> None:
        """Resolves companions by name, once every zone has been read."""
        self.companions = [-1] * len(self.seat_ids)
        for seat, name in self._named_companions.items():
            fault = self._companion_fault(seat, name)
            if fault is None:
                self.companions[seat] = self.ordinals[name]
            else:
                self._problems.add(child(self.pointer(seat), "companion_seat_id"), *fault)
        self._refuse_cycles()

    def _companion_fault(self, seat: int, name: str) -> tuple[str, str] | None:
        other = self.ordinals.get(name)
        if other is None:
            return "unknown_companion", f"there is no seat {quoted(name)}"
        if name == self.seat_ids[seat]:
            return "own_companion", "a seat cannot be its own companion"
        if self.zone_nos[other] != self.zone_nos[seat]:
            return "companion_in_other_zone", f"seat {quoted(name)} is in another zone"
        return None

    def _refuse_cycles(self) -> None:
        # Each seat names at most one other, so following names from every start visits each link once.
        done: set[int] = set()
        for start in self._named_companions:
            path: dict[int, int] = {}
            seat = start
            while seat >= 0 and seat not in done and seat not in path:
                path[seat] = len(path)
                seat = self.companions[seat]
            if seat in path:
                self._refuse_cycle(list(path)[path[seat] :])
            done.update(path)

    def _refuse_cycle(self, cycle: list[int]) -> None:
        # A wheelchair seat and its companion may name each other; nothing else may come round again.
        wheelchairs = sum(self.categories[seat] is SeatCategory.WHEELCHAIR for seat in cycle)
        if len(cycle) == 2 and wheelchairs == 1:
            return
        start = min(cycle)
        turn = cycle.index(start)
        names = [self.seat_ids[seat] for seat in cycle[turn:] + cycle[:turn]]
        shown = " → ".join(names[:5]) + (" → …" if len(names) > 5 else f" → {names[0]}")
        said = f"companions name each other in a circle: {shown}"
        self._problems.add(child(self.pointer(start), "companion_seat_id"), "companion_cycle", said)


def _plain_seat(raw: Any) -> _Seat | None:
    """The seat, if nothing about it calls for a second look."""
    if type(raw) is not dict or not raw.keys() <= _FIELDS:
        return None
    seat_id = raw.get("seat_id")
    if type(seat_id) is not str or not 0 < len(seat_id) <= SEAT_ID_CHARS:
        return None
    row = raw.get("row")
    if type(row) is not str or not 0 < len(row) <= ROW_CHARS:
        return None
    if not (seat_id.isprintable() and row.isprintable()) or seat_id.isspace() or row.isspace():
        return None
    number = raw.get("number")
    if type(number) is not int or not 0 <= number <= MAX_SEAT_NUMBER:
        return None
    named = raw.get("category", "standard")
    category = _CATEGORIES.get(named) if type(named) is str else None
    if category is None or raw.get("companion_seat_id") is not None:
        return None
    point = raw.get("coordinates")
    if point is None:
        return seat_id, row, number, category, None, None, None
    if type(point) is not dict or len(point) != 2:
        return None
    x: Any = point.get("x")
    y: Any = point.get("y")
    if type(x) not in _NUMBERS or type(y) not in _NUMBERS:
        return None
    if not (-COORDINATE_LIMIT <= x <= COORDINATE_LIMIT and -COORDINATE_LIMIT <= y <= COORDINATE_LIMIT):
        return None
    return seat_id, row, number, category, float(x), float(y), None


def _explained_seat(problems: Problems, pointer: str, raw: object) -> _Seat | None:
    """The seat as far as it can be read; None where it has no usable id to go by."""
    source = read_object(problems, pointer, raw, _FIELDS)
    if source is None:
        return None
    seat_id = read_text(problems, pointer, source, "seat_id", SEAT_ID_CHARS)
    row = read_text(problems, pointer, source, "row", ROW_CHARS)
    number = read_integer(problems, pointer, source, "number", 0, MAX_SEAT_NUMBER)
    category: SeatCategory | None = SeatCategory.STANDARD
    if source.get("category") is not None:
        category = check_choice(
            problems, child(pointer, "category"), source["category"], SeatCategory, "unknown_category"
        )
    companion = read_optional_text(problems, pointer, source, "companion_seat_id", SEAT_ID_CHARS)
    point = read_point(problems, child(pointer, "coordinates"), source.get("coordinates"))
    if seat_id is None:
        return None
    x, y = (None, None) if point is None else (point.x, point.y)
    return seat_id, row, number, category or SeatCategory.STANDARD, x, y, companion
