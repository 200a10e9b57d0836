"""Rows and numbers that a drawing leaves to the eye: a label beside seats names their row, their order numbers them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.compat.layout_file import Notes, integer_of
from holdfast.kernel.problems import Problems, quoted
from holdfast.seating.seat_columns import ROW_CHARS


@dataclass
class Drawn:
    """A seat as far as the drawing says it."""

    zone: str | None
    row: str | None
    number: int | None
    x: float
    y: float
    group: int
    source: Any
    place: str


@dataclass(frozen=True)
class TextLabel:
    x: float
    y: float
    words: str
    group: int


def name_rows(problems: Problems, notes: Notes, seats: list[Drawn], labels: list[TextLabel]) -> None:
    """Fills in rows and numbers, or says of which seats they cannot be found."""
    _number_by_own_label(seats, labels)
    nameless = [seat for seat in seats if not seat.row]
    if nameless:
        _name_by_group(nameless, labels)
        _name_by_height(problems, [seat for seat in nameless if not seat.row], labels)
        for seat in nameless:
            if seat.row:
                notes.add(seat.place, "row_by_label", "rows were named after the text beside their seats")
    _number_by_order(notes, seats)


def _number_by_own_label(seats: list[Drawn], labels: list[TextLabel]) -> None:
    """A group of one seat and one text is a seat with its number written on it."""
    by_group: dict[int, list[Drawn]] = {}
    for seat in seats:
        by_group.setdefault(seat.group, []).append(seat)
    for group, said in _texts(labels).items():
        inside = by_group.get(group, [])
        if len(inside) == 1 and len(said) == 1 and inside[0].number is None:
            inside[0].number = integer_of(said[0])


def _name_by_group(nameless: list[Drawn], labels: list[TextLabel]) -> None:
    """A text in the same group as several seats is their row's name."""
    texts = _texts(labels)
    for seat in nameless:
        said = {words for words in texts.get(seat.group, ()) if len(words) <= ROW_CHARS}
        if len(said) == 1 and integer_of(next(iter(said))) != seat.number:
            seat.row = next(iter(said))


def _texts(labels: list[TextLabel]) -> dict[int, list[str]]:
    texts: dict[int, list[str]] = {}
    for label in labels:
        texts.setdefault(label.group, []).append(label.words)
    return texts


def _name_by_height(problems: Problems, nameless: list[Drawn], labels: list[TextLabel]) -> None:
    """The text at about the height of the seats, nearest to them, names the row they form."""
    short = [label for label in labels if len(label.words) <= ROW_CHARS]
    heights = np.array([label.y for label in short], dtype=np.float64)
    across = np.array([label.x for label in short], dtype=np.float64)
    by_zone: dict[str | None, list[Drawn]] = {}
    for seat in nameless:
        by_zone.setdefault(seat.zone, []).append(seat)
    for seats in by_zone.values():
        tolerance = _row_distance(seats)
        for line in _lines(seats, tolerance):
            label = None
            if len(short):
                middle = sum(seat.y for seat in line) / len(line)
                off = np.abs(heights - middle)
                near = np.flatnonzero(off <= tolerance)
                if len(near):
                    left, right = min(seat.x for seat in line), max(seat.x for seat in line)
                    aside = np.maximum(0, np.maximum(left - across[near], across[near] - right))
                    label = short[int(near[int(np.argmin(aside + off[near]))])]
            for seat in line:
                if label is not None:
                    seat.row = label.words
                else:
                    said = "has no row: give data-row, a group with data-row, or a text beside the row"
                    problems.add(f"{seat.place}/data-row", "missing", f"the seat {said}")


def _row_distance(seats: list[Drawn]) -> float:
    """Half of what lies between two rows, by the gaps between the heights of the seats."""
    heights = np.unique(np.round([seat.y for seat in seats], 3))
    xs = np.unique(np.round([seat.x for seat in seats], 3))
    gaps = np.diff(heights)
    across = np.diff(xs)
    if len(gaps):
        return 0.5 * float(np.median(gaps))
    return 0.5 * float(np.median(across)) if len(across) else 10.0


def _lines(seats: list[Drawn], tolerance: float) -> list[list[Drawn]]:
    lines: list[list[Drawn]] = []
    for seat in sorted(seats, key=lambda seat: seat.y):
        if lines and seat.y - lines[-1][-1].y < tolerance:
            lines[-1].append(seat)
        else:
            lines.append([seat])
    return lines


def _number_by_order(notes: Notes, seats: list[Drawn]) -> None:
    rows: dict[tuple[str | None, str], list[Drawn]] = {}
    for seat in seats:
        if seat.row:
            rows.setdefault((seat.zone, seat.row), []).append(seat)
    for (_, row), line in rows.items():
        if all(seat.number is not None for seat in line):
            continue
        taken = {seat.number for seat in line}
        number = 0
        for seat in sorted((seat for seat in line if seat.number is None), key=lambda seat: (seat.x, seat.y)):
            number += 1
            while number in taken:
                number += 1
            seat.number = number
            notes.add(seat.place, "numbered_by_place", f"seats of row {quoted(row)} were numbered from left to right")
