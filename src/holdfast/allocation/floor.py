"""What choosing seats needs to know about a layout: rows, neighbours, and which seats are better. Pure.

The seats stand in one line: row after row in the order of the layout, by number within a row. A seat's position in that
line is its *place*; neighbours are next to each other in it, so a run of neighbours is a slice, and a question about every
run of the house is a handful of operations on whole columns.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from holdfast.seating.layout import Layout

Booleans = NDArray[np.bool_]
Integers = NDArray[np.int64]
Places = NDArray[np.int32]
Floats = NDArray[np.float64]

GRADES: Final = 2**20
"""Steps of quality. A step is a power of two, so that the sums of many seats are exact and equal ones compare as equal."""
_KEPT: Final = "_floor"
_ZONE_GAP_ROWS: Final = 10
"""Between two zones of a house without coordinates, when somebody asks how far seats are from each other."""


class Row(msgspec.Struct, frozen=True):
    zone_no: int
    name: str
    ordinals: tuple[int, ...]
    """In order of seat number."""


class Floor:
    """Derived once from a layout, and never written to."""

    def __init__(self, layout: Layout) -> None:
        self.layout: Final = layout
        self.seats: Final = len(layout.seat_ids)
        row_nos, names = _rows(layout)
        numbers = np.array(layout.numbers, np.int64)
        line = np.lexsort((numbers, row_nos)).astype(np.int32)
        self.line: Final[Places] = line
        """Ordinals by place."""
        self.in_line: Final = bool((line == np.arange(self.seats, dtype=np.int32)).all())
        """Ordinals are places: nearly every layout lists its seats as they stand."""
        self.place: Final[Places] = np.empty(self.seats, np.int32)
        """Places by ordinal."""
        self.place[line] = np.arange(self.seats, dtype=np.int32)
        self.row_of: Final[Places] = row_nos
        self.rows_in_line: Final[Places] = row_nos[line]
        self.row_starts: Final[Integers] = np.searchsorted(self.rows_in_line, np.arange(len(names) + 1))
        """The first place of every row, and the end of the last."""
        starts, ordinals = self.row_starts.tolist(), line.tolist()
        self.rows: Final = tuple(
            Row(zone_no, name, tuple(ordinals[starts[n] : starts[n + 1]])) for n, (zone_no, name) in enumerate(names)
        )
        self.zone_of_row: Final[Places] = np.array([row.zone_no for row in self.rows], np.int32)
        self.linked: Final = self._links(numbers[line])
        """By place: the next place is this one's neighbour."""
        self.left: Final[Places] = np.full(self.seats, -1, np.int32)
        self.right: Final[Places] = np.full(self.seats, -1, np.int32)
        self.right[line[:-1]] = np.where(self.linked, line[1:], -1)
        self.left[line[1:]] = np.where(self.linked, line[:-1], -1)
        self.left_of: Final[list[int]] = self.left.tolist()
        """As `left`, for those who ask about one seat."""
        self.right_of: Final[list[int]] = self.right.tolist()
        xs, ys = np.array(layout.xs, np.float64), np.array(layout.ys, np.float64)
        self.grade_unit = 1.0
        self.quality: Final[Floats] = self._qualities(xs, ys)
        self.xs, self.ys = self._plan(xs, ys)
        self._best_grades: dict[int, list[int]] = {}

    def _links(self, numbers: Integers) -> Booleans:
        linked: Booleans = (np.diff(self.rows_in_line) == 0) & (np.diff(numbers) == 1)
        starts = self.row_starts
        for n, row in enumerate(self.rows):
            info = self.layout.zones[row.zone_no].rows.get(row.name)
            if info is None or not info.aisles_after:
                continue
            first, end = int(starts[n]), int(starts[n + 1])
            for place in (first + np.searchsorted(numbers[first:end], info.aisles_after)).tolist():
                if place < end - 1 and numbers[place] in info.aisles_after:
                    linked[place] = False
        return linked

    def _from_middle(self) -> Floats:
        """By ordinal: how far from the middle of its row a seat is, in seats."""
        lengths = np.diff(self.row_starts)
        along = np.arange(self.seats) - self.row_starts[self.rows_in_line]
        middles: Floats = along - (lengths[self.rows_in_line] - 1) / 2
        return middles[self.place]

    def _rows_in_zones(self) -> Integers:
        """By row: how many rows of its zone come before it."""
        _, firsts, zones = np.unique(self.zone_of_row, return_index=True, return_inverse=True)
        behind: Integers = np.arange(len(self.rows)) - firsts[zones]
        return behind

    def _qualities(self, xs: Floats, ys: Floats) -> Floats:
        layout = self.layout
        focal = [zone.focal_point or layout.focal_point for zone in layout.zones]
        focal_xs = np.array([np.nan if point is None else point.x for point in focal], np.float64)
        focal_ys = np.array([np.nan if point is None else point.y for point in focal], np.float64)
        zones = np.array(layout.zone_nos, np.int32)
        if not self.seats:
            return np.empty(0, np.float64)
        quality: Floats = np.hypot(xs - focal_xs[zones], ys - focal_ys[zones])
        unknown = np.isnan(quality)
        if unknown.any():
            # Those that are on no plan come behind those that are: front rows first, the middle of a row first.
            lengths = np.diff(self.row_starts)
            plain = self._rows_in_zones()[self.row_of] + np.abs(self._from_middle()) / lengths[self.row_of]
            behind = 0.0 if unknown.all() else float(np.nanmax(quality)) + 1
            quality = np.where(unknown, plain + behind, quality)
        greatest = float(quality.max())
        self.grade_unit = 2.0 ** np.ceil(np.log2(max(greatest, 1e-300) / GRADES))
        graded: Floats = np.round(quality / self.grade_unit) * self.grade_unit
        return graded

    def _plan(self, xs: Floats, ys: Floats) -> tuple[Floats, Floats]:
        """Where seats are, to tell how far they are from each other. One measure for all: either the organiser's, or rows
        and seats."""
        if not (np.isnan(xs).any() or np.isnan(ys).any()):
            return xs, ys
        gaps = _ZONE_GAP_ROWS * np.cumsum(np.diff(self.zone_of_row, prepend=self.zone_of_row[:1]) != 0)
        return self._from_middle(), (np.arange(len(self.rows)) + gaps)[self.row_of].astype(np.float64)

    @cached_property
    def grades(self) -> Integers:
        """By place: quality in whole steps; lower is better."""
        return (
            np.round(self.quality[self.line] / self.grade_unit).astype(np.int64)
            if self.seats
            else np.empty(0, np.int64)
        )

    @cached_property
    def grades_before(self) -> Integers:
        """By place: the sum of the grades of all places before it; one longer than the house."""
        return np.concatenate((np.zeros(1, np.int64), np.cumsum(self.grades)))

    def best_grades(self, block: int) -> list[int]:
        """The best grade in every block of so many places."""
        known = self._best_grades.get(block)
        if known is None:
            known = np.minimum.reduceat(self.grades, np.arange(0, self.seats, block)).tolist()
            self._best_grades[block] = known
        return known

    def by_place(self, column: Booleans) -> Booleans:
        return column if self.in_line else column[self.line]

    def ordinals_at(self, places: Sequence[int]) -> tuple[int, ...]:
        return tuple(sorted(places)) if self.in_line else tuple(sorted(self.line[list(places)].tolist()))


def floor_of(layout: Layout) -> Floor:
    """The layout's floor, made when it is first asked for and kept with it."""
    kept = layout.__dict__.get(_KEPT)
    if kept is None:
        kept = layout.__dict__[_KEPT] = Floor(layout)
    return kept


def _rows(layout: Layout) -> tuple[Places, list[tuple[int, str]]]:
    """The row of every seat, as an index into the rows in the order of the layout."""
    known: dict[tuple[int, str], int] = {}
    row_nos = [known.setdefault(row, len(known)) for row in zip(layout.zone_nos, layout.rows, strict=True)]
    return np.array(row_nos, np.int32), list(known)
