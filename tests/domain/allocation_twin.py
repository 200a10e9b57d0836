"""The rules of choosing seats once more, word for word and slowly: all subsets, plain loops, nothing of the product's code.

A house is drawn row by row: `.` is a free seat, `x` a taken one, `o` one the buyer has already, `-` a free one that is not
asked for, `|` an aisle and a space a missing number.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any


@dataclass(frozen=True)
class Drawn:
    zone: str
    row: str
    picture: str


@dataclass(frozen=True)
class Seat:
    zone: str
    row: str
    number: int
    mark: str
    x: float
    y: float
    order: tuple[int, int]
    """Row, then number: the order of the house."""


class House:
    def __init__(self, rows: Sequence[Drawn], *, coordinates: bool = True, backwards: bool = False) -> None:
        self.aisles: dict[tuple[str, str], list[int]] = {}
        self.seats: list[Seat] = []
        self.coordinates = coordinates
        self.backwards = backwards
        """The config lists the seats of each row from the last to the first."""
        zones = list(dict.fromkeys(row.zone for row in rows))
        rows = [row for zone in zones for row in rows if row.zone == zone]
        for y, row in enumerate(rows):
            number = 0
            aisles = self.aisles.setdefault((row.zone, row.row), [])
            for mark in row.picture:
                if mark == "|":
                    aisles.append(number)
                    continue
                number += 1
                if mark != " ":
                    seat = Seat(row.zone, row.row, number, mark, 10.0 * number, 12.0 * y, (y, number))
                    self.seats.append(seat)
        if backwards:
            # Rows keep their order, which is that of their first seats.
            self.seats.sort(key=lambda seat: (seat.order[0], -seat.order[1]))

    def config(self) -> dict[str, Any]:
        zones: dict[str, dict[str, Any]] = {}
        for seat in self.seats:
            zone = zones.setdefault(
                seat.zone,
                {"zone_id": seat.zone, "name": seat.zone, "zone_type": "reserved_seating", "seats": [], "rows": {}},
            )
            drawn: dict[str, Any] = {
                "seat_id": f"{seat.zone}-{seat.row}-{seat.number}",
                "row": seat.row,
                "number": seat.number,
            }
            if self.coordinates:
                drawn["coordinates"] = {"x": seat.x, "y": seat.y}
            zone["seats"].append(drawn)
            aisles = self.aisles[(seat.zone, seat.row)]
            if aisles:
                zone["rows"][seat.row] = {"aisles_after": sorted(set(aisles) - {0})}
        for zone in zones.values():
            zone["capacity"] = len(zone["seats"])
        return {"focal_point": {"x": 33.0, "y": -10.0}, "zones": list(zones.values())}

    def marked(self, marks: str) -> list[int]:
        return [ordinal for ordinal, seat in enumerate(self.seats) if seat.mark in marks]

    def in_row(self, ordinal: int) -> list[int]:
        seat = self.seats[ordinal]
        return [n for n, other in enumerate(self.seats) if (other.zone, other.row) == (seat.zone, seat.row)]

    def are_neighbours(self, one: int, other: int) -> bool:
        a, b = self.seats[one], self.seats[other]
        if (a.zone, a.row) != (b.zone, b.row) or abs(a.number - b.number) != 1:
            return False
        return min(a.number, b.number) not in self.aisles[(a.zone, a.row)]

    def has_neighbour(self, seat: int, among: Collection[int]) -> bool:
        return any(self.are_neighbours(seat, other) for other in among)

    def pieces(self, chosen: Iterable[int]) -> list[list[int]]:
        """Neighbours among the chosen."""
        found: list[list[int]] = []
        for ordinal in sorted(chosen, key=lambda n: self.seats[n].order):
            if found and self.are_neighbours(found[-1][-1], ordinal):
                found[-1].append(ordinal)
            else:
                found.append([ordinal])
        return found

    def places(self, chosen: Iterable[int]) -> list[tuple[int, int]]:
        return sorted(self.seats[ordinal].order for ordinal in chosen)


# The orphan rule ------------------------------------------------------------------------------------------------------
def stranded(house: House, free: Collection[int], picked: Collection[int], own: Collection[int] = ()) -> set[int]:
    before = set(free) | set(picked) | set(own)
    after = set(free) - set(picked) - set(own)
    new = set(picked) - set(own)
    return {
        seat
        for seat in after
        if house.has_neighbour(seat, before) and not house.has_neighbour(seat, after) and house.has_neighbour(seat, new)
    }


def excuse(house: House, free: Collection[int], row: Sequence[int], chosen: Collection[int]) -> str | None:
    """`full`, `none other` or nothing, for the chosen seats of one row."""
    before = {seat for seat in row if seat in free or seat in chosen}
    taken = len(row) - len(before)
    if taken / len(row) > 0.9:
        return "full"
    mine = [seat for seat in row if seat in chosen]
    shape = sorted(len(piece) for piece in house.pieces(mine))
    for other in combinations(sorted(before), len(mine)):
        pieces = sorted(len(piece) for piece in house.pieces(other))
        if (pieces == shape or len(pieces) == 1) and not stranded(house, before, other):
            return None
    return "none other"


def is_legal(house: House, free: Collection[int], picked: Collection[int], own: Collection[int] = ()) -> bool:
    chosen = set(picked) | set(own)
    return all(excuse(house, free, house.in_row(seat), chosen) for seat in stranded(house, free, picked, own))


# Choosing -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Asked:
    quantity: int
    usable: frozenset[int]
    free: frozenset[int]
    worth: dict[int, tuple[int, float]]
    """Price (or nothing, if it does not matter) and quality of each seat."""
    max_group_split: int = 2


def _worth(asked: Asked, chosen: Iterable[int]) -> tuple[int, float]:
    seats = list(chosen)
    return sum(asked.worth[seat][0] for seat in seats), sum(asked.worth[seat][1] for seat in seats)


def together(house: House, asked: Asked) -> Iterator[tuple[Any, set[int]]]:
    """Side by side; the least key is the best. It begins with how many are left alone."""
    for chosen in combinations(sorted(asked.usable), asked.quantity):
        if len(house.pieces(chosen)) == 1:
            alone = len(stranded(house, asked.free, chosen))
            yield (alone, _worth(asked, chosen), house.places(chosen)), set(chosen)


def splits(house: House, asked: Asked) -> Iterator[tuple[Any, set[int]]]:
    runs = house.pieces(asked.free)
    run_of = {seat: n for n, run in enumerate(runs) for seat in run}
    for chosen in combinations(sorted(asked.usable), asked.quantity):
        pieces = house.pieces(chosen)
        if not 2 <= len(pieces) <= asked.max_group_split:
            continue
        if len({house.seats[seat].zone for seat in chosen}) > 1:
            continue
        if len({run_of[piece[0]] for piece in pieces}) < len(pieces):
            continue
        rows = [house.seats[seat].order[0] for seat in chosen]
        key = (
            sum(len(piece) == 1 for piece in pieces),
            len(pieces),
            max(rows) - min(rows),
            len(stranded(house, asked.free, chosen)),
            _worth(asked, chosen),
            house.places(chosen),
        )
        yield key, set(chosen)


def about_each(house: House, asked: Asked) -> Iterator[tuple[Any, set[int]]]:
    """For every usable seat, itself and those nearest to it."""
    for centre in asked.usable:
        middle = house.seats[centre]

        def square(seat: int, middle: Seat = middle) -> float:
            return (house.seats[seat].x - middle.x) ** 2 + (house.seats[seat].y - middle.y) ** 2

        order = sorted(asked.usable, key=lambda seat: (square(seat), house.seats[seat].order))
        chosen = order[: asked.quantity]
        yield (square(chosen[-1]), asked.worth[centre], middle.order), set(chosen)
