"""The third rung: a party in a few groups of neighbours. Pure.

A group is a piece of one run (a longest stretch of neighbouring free seats), no two groups are of the same run, and all are
in one zone: in different rows, or in one row with an aisle or a taken seat between them. Of all such splits the one with
1. the fewest people alone,
2. the fewest groups,
3. the fewest rows from the first to the last,
4. the fewest seats left alone,
5. the best worth (price where it is asked for, then quality), and the first in the house.
Nobody is left alone without excuse then: what would do better in the same row would be a better split.
"""

from collections.abc import Iterator
from functools import cache
from typing import Final

import msgspec
import numpy as np

from holdfast.allocation.floor import Booleans, Floor, Integers
from holdfast.allocation.wish import House, Wish

WORTH_BITS: Final = 56
"""Of the worth of a choice: what is above them counts seats left alone."""
STRANDED: Final = 1 << WORTH_BITS
"""Added to the worth of a group for every seat it leaves alone: more than any worth."""
NEVER: Final = 1 << 61
GROUPS_MAX: Final = 15
"""Whatever the policy says: the seats that more of them leave alone could not be counted above the worth."""
LOOKED_INTO: Final = 48
"""Of three groups and more: so many neighbourhoods are looked into, the most promising first."""


class _Runs(msgspec.Struct, frozen=True):
    """The runs with usable seats, in the order of the line."""

    starts: Integers
    rows: Integers
    longest: Integers
    """The most neighbours of each that may be chosen."""


class _Shape(msgspec.Struct, frozen=True):
    groups: int
    alone: int
    """So many of the groups are one person."""


def split(floor: Floor, house: House, wish: Wish, before: Integers) -> list[list[int]] | None:
    """The groups as places. There are no `quantity` neighbours anywhere, or nobody would ask."""
    if wish.quantity < 2 or wish.max_group_split < 2:
        return None
    runs = _runs(floor, house)
    rows = len(floor.rows)
    counts = _counts(runs, wish.quantity, rows)
    ends = np.searchsorted(floor.zone_of_row, floor.zone_of_row, side="right")
    for shape in _shapes(wish):
        span = _least_span(counts, ends, shape, wish.quantity)
        if span is not None:
            firsts = np.flatnonzero(_feasible(counts, ends, shape, wish.quantity, span))
            break
    else:
        return None
    edges = np.zeros(rows + 1, np.int64)
    np.add.at(edges, firsts, 1)
    np.subtract.at(edges, np.minimum(firsts + span + 1, ends[firsts]), 1)
    concerned = np.cumsum(edges[:-1]) > 0
    here = concerned[runs.rows]
    runs = _Runs(runs.starts[here], runs.rows[here], runs.longest[here])
    worths = _Worths(floor, house, runs, before, concerned)
    if shape.groups == 2:
        first = _best_pair(worths, firsts, shape, wish.quantity, span)
        return worths.within(first, min(first + span + 1, int(ends[first])), shape, wish.quantity)[1]
    return _best_of(floor, house, worths, firsts, ends, shape, wish.quantity, span, before)


def _shapes(wish: Wish) -> Iterator[_Shape]:
    """Possible ones, the best first."""
    size = wish.quantity
    most = min(wish.max_group_split, size, GROUPS_MAX)
    for alone in range(most + 1):
        for groups in range(max(2, alone), most + 1):
            together = groups - alone
            if (together and size - alone >= 2 * together) or (not together and size == alone):
                yield _Shape(groups, alone)


def _runs(floor: Floor, house: House) -> _Runs:
    begins = house.free.copy()
    begins[1:] &= ~house.pairs
    starts = np.flatnonzero(begins)
    if house.usable is house.free:
        ends = house.free.copy()
        ends[:-1] &= ~house.pairs
        return _Runs(starts, floor.rows_in_line[starts].astype(np.int64), np.flatnonzero(ends) - starts + 1)
    begins, ends = house.usable.copy(), house.usable.copy()
    begins[1:] &= ~house.usable_pairs
    ends[:-1] &= ~house.usable_pairs
    first, last = np.flatnonzero(begins), np.flatnonzero(ends)
    of_run = np.searchsorted(starts, first, side="right") - 1
    used, groups = np.unique(of_run, return_index=True)
    longest = np.maximum.reduceat(last - first + 1, groups) if len(groups) else np.empty(0, np.int64)
    starts = starts[used]
    return _Runs(starts, floor.rows_in_line[starts].astype(np.int64), longest)


# Which rows come into question ----------------------------------------------------------------------------------------
def _counts(runs: _Runs, size: int, rows: int) -> Integers:
    """For every length from 1 on: how many runs of at least that length are in the rows before each row."""
    lengths = min(size - 1, max(2, int(runs.longest.max())))
    counts = np.zeros((lengths, rows + 1), np.int64)
    for length in range(1, lengths + 1):
        per_row = np.bincount(runs.rows[runs.longest >= length], minlength=rows)
        np.cumsum(per_row, out=counts[length - 1, 1:])
    return counts


def _feasible(counts: Integers, ends: Integers, shape: _Shape, size: int, span: int) -> Booleans:
    """By row: whether a split of this shape fits into that row and the `span` behind it."""
    lasts = np.minimum(np.arange(len(ends)) + span + 1, ends)
    found = counts[:, lasts] - counts[:, :-1]
    fits: Booleans = found[0] >= shape.groups
    together = shape.groups - shape.alone
    if together:
        fits &= found[1] >= together
        # The longest so many runs have one seat each for all that are at least one long, one more for those of two, …
        fits &= np.minimum(found, together).sum(axis=0) >= size - shape.alone
    return fits


def _least_span(counts: Integers, ends: Integers, shape: _Shape, size: int) -> int | None:
    low, high = 0, len(ends)
    if not _feasible(counts, ends, shape, size, high).any():
        return None
    while low < high:
        middle = (low + high) // 2
        if _feasible(counts, ends, shape, size, middle).any():
            high = middle
        else:
            low = middle + 1
    return low


# Which of them is best ------------------------------------------------------------------------------------------------
class _Worths:
    """What a group of a size costs in every run at its best: seats left alone, then worth. Lower is better."""

    def __init__(self, floor: Floor, house: House, runs: _Runs, before: Integers, concerned: Booleans) -> None:
        self._floor = floor
        self._concerned = np.repeat(concerned, np.diff(floor.row_starts))
        self._house = house
        self._runs = runs
        self._before = before
        self.longest = int(runs.longest.max())
        self._of_runs: dict[int, Integers] = {}
        self._windows: dict[int, tuple[Integers, Integers]] = {}

    def of_windows(self, size: int) -> tuple[Integers, Integers]:
        """First places, and the worth of the group that begins there."""
        known = self._windows.get(size)
        if known is None:
            house = self._house
            windows = house.windows(size)
            starts = np.flatnonzero(windows & self._concerned[: len(windows)])
            alone = house.strands_left[starts].astype(np.int64) + house.strands_right[starts + size - 1]
            known = self._windows[size] = starts, self._before[starts + size] - self._before[starts] + alone * STRANDED
        return known

    def of_runs(self, size: int) -> Integers:
        known = self._of_runs.get(size)
        if known is None:
            starts, worths = self.of_windows(size)
            known = np.full(len(self._runs.starts), NEVER, np.int64)
            if len(starts):
                runs = np.searchsorted(self._runs.starts, starts, side="right") - 1
                groups = np.flatnonzero(np.diff(runs, prepend=-1))
                known[runs[groups]] = np.minimum.reduceat(worths, groups)
            self._of_runs[size] = known
        return known

    def two_best(self, size: int) -> tuple[Integers, Integers, Integers]:
        """By row: the worth in its best run, which run that is, and the worth in its second best."""
        rows = len(self._floor.rows)
        best, which, second = (
            np.full(rows, NEVER, np.int64),
            np.full(rows, -1, np.int64),
            np.full(rows, NEVER, np.int64),
        )
        worths, of_row = self.of_runs(size), self._runs.rows
        groups = np.flatnonzero(np.diff(of_row, prepend=-1))
        some = of_row[groups]
        best[some] = np.minimum.reduceat(worths, groups)
        candidates = np.flatnonzero(worths == best[of_row])[::-1]
        which[of_row[candidates]] = candidates  # backwards: the first of equals is written last
        others = worths.copy()
        others[which[some]] = NEVER
        second[some] = np.minimum.reduceat(others, groups)
        return best, which, second

    def within(self, first_row: int, end_row: int, shape: _Shape, size: int) -> tuple[int, list[list[int]] | None]:
        """The best split of this shape in these rows, and its worth."""
        low, high = (int(n) for n in np.searchsorted(self._runs.rows, (first_row, end_row)))
        options: list[list[tuple[int, int, int]]] = [[] for _ in range(low, high)]
        largest = min(size - shape.groups + 1, self.longest)
        sizes = ([1] if shape.alone else []) + list(range(2, largest + 1)) * (shape.groups > shape.alone)
        for length in sizes:
            starts, worths = self.of_windows(length)
            bests = self.of_runs(length)[low:high].tolist()
            edges = np.searchsorted(starts, np.append(self._runs.starts, self._floor.seats)[low : high + 1])
            for n, best in enumerate(bests):
                if best < NEVER:
                    at = edges[n] + int((worths[edges[n] : edges[n + 1]] == best).argmax())
                    options[n].append((length, best, int(starts[at])))
        options = [option for option in options if option]

        @cache
        def rest(n: int, groups: int, alone: int, seats: int) -> tuple[int, tuple[tuple[int, int], ...]]:
            """The least worth, and of equal ones the first in the house: at the first difference, the longer group or the
            earlier place."""
            if not groups:
                return (0, ()) if not seats and not alone else (NEVER, ())
            if n == len(options) or seats < groups:
                return NEVER, ()
            found = rest(n + 1, groups, alone, seats)
            for length, worth, start in options[n]:
                if length > seats or (length == 1 and not alone):
                    continue
                others, chosen = rest(n + 1, groups - 1, alone - (length == 1), seats - length)
                if others < NEVER:
                    found = min(found, (worth + others, ((start, -length), *chosen)))
            return found

        worth, chosen = rest(0, shape.groups, shape.alone, size)
        return worth, [list(range(start, start - length)) for start, length in chosen] if worth < NEVER else None


def _best_pair(worths: _Worths, firsts: Integers, shape: _Shape, size: int, span: int) -> int:
    """The first of the rows that hold the best two groups."""
    smaller = range(1, 2) if shape.alone else range(max(2, size - worths.longest), size // 2 + 1)
    total = np.full(len(firsts), NEVER, np.int64)
    for few in smaller:
        many = size - few
        best_few, run_few, second_few = worths.two_best(few)
        best_many, run_many, second_many = worths.two_best(many)
        if span == 0:
            apart = best_few[firsts] + best_many[firsts]
            same = run_few[firsts] == run_many[firsts]
            instead = np.minimum(best_few[firsts] + second_many[firsts], second_few[firsts] + best_many[firsts])
            total = np.minimum(total, np.where(same, instead, apart))
        else:
            seconds = firsts + span
            total = np.minimum(total, best_few[firsts] + best_many[seconds])
            total = np.minimum(total, best_many[firsts] + best_few[seconds])
    return int(firsts[total.argmin()])


def _best_of(
    floor: Floor,
    house: House,
    worths: _Worths,
    firsts: Integers,
    ends: Integers,
    shape: _Shape,
    size: int,
    span: int,
    before: Integers,
) -> list[list[int]] | None:
    """Neighbourhoods in the order of the least their seats could cost, until none can be better."""
    each = np.where(house.usable, np.diff(before), NEVER >> 8)
    by_row = np.minimum.reduceat(each, floor.row_starts[:-1])
    bounds = [(size * int(by_row[row : min(row + span + 1, int(ends[row]))].min()), row) for row in firsts.tolist()]
    best: tuple[int, int] = (NEVER, -1)
    chosen: list[list[int]] | None = None
    for bound, row in sorted(bounds)[:LOOKED_INTO]:
        if bound > best[0]:
            break
        worth, groups = worths.within(row, min(row + span + 1, int(ends[row])), shape, size)
        if groups is not None and (worth, row) < best:
            best, chosen = (worth, row), groups
    return chosen
