"""The fourth rung: seats wherever they are, as close to each other as there is. Pure.

Every usable seat is asked for the seats nearest to it, itself among them (of equally near ones, the first in the house):
that is a choice, and its *reach* is how far the farthest of them is away. The least reach wins; of equal ones the choice
around the best seat, then around the first. Where the orphan rule is strict, choices that leave somebody alone without
excuse are passed over; should all be, the first of them chooses anew in the rows at fault.

In a large house not everybody can be asked. A grid finds a crowded corner, which says what reach is possible at least;
then only those are asked who have enough seats about them, and if that is still thousands, the most crowded and the best.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

import msgspec
import numpy as np

from holdfast.allocation.floor import Booleans, Floats, Floor, Integers
from holdfast.allocation.orphans import clean_in_row, excuse_in_row, stranded_by
from holdfast.allocation.wish import House, Wish

ALL_PAIRS: Final = 250
"""Up to so many usable seats, everybody is measured against everybody."""
CONSIDERED: Final = 12_000
"""Of more usable seats than that, so many of the best are looked at: they are never far apart."""
ASKED: Final = 2_000
"""So many of the most crowded and as many of the best are asked, at most."""
PASSED_OVER: Final = 40
"""So many choices are tried against the orphan rule before seats are moved instead."""
CELLS: Final = 1_000_000
"""A grid of so many cells is counted out; in a larger one seats are looked up."""
WIDER: Final = (1.0, 1.5, 2.5)


class _Near(msgspec.Struct, frozen=True):
    """For each of some seats, those about it: one row each, and nobody is infinitely far."""

    centres: Integers
    squares: Floats
    others: Integers


def nearest(floor: Floor, free: Booleans, house: House, wish: Wish, before: Integers) -> list[list[int]]:
    """The groups of neighbours in the choice, as places. There are at least `quantity` usable seats."""
    places = np.flatnonzero(house.usable)
    worths = before[places + 1] - before[places]
    most = max(CONSIDERED, wish.quantity)
    if len(places) > most:
        best = np.sort(np.argpartition(worths, most - 1)[:most])
        places, worths = places[best], worths[best]
    seats = floor.line[places]
    xs, ys = floor.xs[seats], floor.ys[seats]
    passed: set[int] = set()
    for chosen in islice(_choices(xs, ys, worths, wish.quantity), PASSED_OVER):
        ordinals = set(seats[chosen].tolist())
        if not wish.strict_orphans or not _guilty(floor, free, ordinals):
            return clusters_of(floor, sorted(places[chosen].tolist()))
        passed = passed or ordinals
    return clusters_of(floor, sorted(floor.place[_mended(floor, free, wish, passed)].tolist()))


def clusters_of(floor: Floor, places: list[int]) -> list[list[int]]:
    """Neighbours among the places."""
    clusters: list[list[int]] = []
    for place in places:
        if clusters and clusters[-1][-1] == place - 1 and floor.linked[place - 1]:
            clusters[-1].append(place)
        else:
            clusters.append([place])
    return clusters


def _guilty(floor: Floor, free: Booleans, chosen: set[int]) -> set[int]:
    """The rows in which somebody is left alone without excuse."""
    rows = {int(floor.row_of[seat]) for seat in stranded_by(floor, free, chosen)}
    return {row_no for row_no in rows if excuse_in_row(floor, free, row_no, chosen) is None}


def _mended(floor: Floor, free: Booleans, wish: Wish, chosen: set[int]) -> list[int]:
    """Each row at fault chooses the nearest seats that leave nobody alone; it has some, or it would be excused. They may
    be others than were asked for: then it stays."""
    for row_no in _guilty(floor, free, chosen):
        part = {seat for seat in chosen if floor.row_of[seat] == row_no}
        for instead in clean_in_row(floor, free, row_no, part):
            if wish.allowed is None or all(wish.allowed[seat] for seat in instead):
                chosen = chosen - part | instead
                break
    return sorted(chosen)


# Who is asked ---------------------------------------------------------------------------------------------------------
def _choices(xs: Floats, ys: Floats, worths: Integers, size: int) -> Iterator[Integers]:
    """The least reach first; each as indices of the usable seats."""
    count = len(xs)
    if count <= ALL_PAIRS:
        everybody = np.arange(count)
        squares = _squares(xs, ys, everybody)
        yield from _by_reach(_Near(everybody, squares, np.broadcast_to(everybody, squares.shape)), worths, size)
        return
    reach = _possible_reach(xs, ys, size)
    for wider in WIDER:
        yield from _by_reach(_within(xs, ys, worths, size, reach * wider), worths, size)


def _squares(xs: Floats, ys: Floats, which: Integers) -> Floats:
    """How far each of them is from each, squared."""
    across, along = xs[which], ys[which]
    squares: Floats = (across[:, None] - across) ** 2 + (along[:, None] - along) ** 2
    return squares


def _by_reach(near: _Near, worths: Integers, size: int) -> Iterator[Integers]:
    """The choices, the least reach first."""
    reaches = np.partition(near.squares, size - 1, axis=1)[:, size - 1]
    for n in np.lexsort((near.centres, worths[near.centres], reaches)).tolist():
        if np.isinf(reaches[n]):
            return
        yield near.others[n][np.lexsort((near.others[n], near.squares[n]))[:size]]


def _possible_reach(xs: Floats, ys: Floats, size: int) -> float:
    """The reach of some good choice: within the fullest block of the finest grid that has blocks of `size`."""
    left, low = float(xs.min()), float(ys.min())
    width, height = float(xs.max()) - left, float(ys.max()) - low
    extent = max(width, height)
    if extent == 0:
        return 0.0
    cells = max(1.0, 4 * len(xs) / size)
    finest = extent / 2**9
    side = max((max(width, extent / cells) * max(height, extent / cells) / cells) ** 0.5, finest)
    crowd = np.arange(len(xs))
    while True:
        columns, lines = ((xs - left) / side).astype(np.int64), ((ys - low) / side).astype(np.int64)
        across, along = int(columns.max()) + 2, int(lines.max()) + 2
        grid = np.bincount(columns * along + lines, minlength=across * along).reshape(across, along)
        blocks = grid[:-1, :-1] + grid[1:, :-1] + grid[:-1, 1:] + grid[1:, 1:]
        column, line = divmod(int(blocks.argmax()), along - 1)
        if blocks[column, line] < size:
            break
        crowd = np.flatnonzero(
            ((columns == column) | (columns == column + 1)) & ((lines == line) | (lines == line + 1))
        )
        if side <= finest:
            break
        side /= 2
    squares = _squares(xs, ys, crowd[: max(size, ALL_PAIRS)])
    return float(np.sqrt(np.partition(squares, size - 1, axis=1)[:, size - 1].min()))


def _within(xs: Floats, ys: Floats, worths: Integers, size: int, reach: float) -> _Near:
    """Those who have enough seats within reach, and who is about them."""
    left, low = float(xs.min()), float(ys.min())
    extent = max(float(xs.max()) - left, float(ys.max()) - low)
    side = max(reach / 2, extent * 1e-6) * (1 + 1e-9) or 1.0
    # Whoever is within reach is at most two cells away in each direction.
    columns, lines = ((xs - left) / side).astype(np.int64) + 2, ((ys - low) / side).astype(np.int64) + 2
    across = int(columns.max()) + 3
    keys = lines * across + columns
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    offsets = np.arange(-2, 3)[:, None] * across
    firsts, lasts = keys + offsets - 2, keys + offsets + 2
    cells = across * (int(lines.max()) + 3)
    if cells <= CELLS:
        before = np.concatenate((np.zeros(1, np.int64), np.cumsum(np.bincount(keys, minlength=cells))))
        begins, ends = before[firsts], before[lasts + 1]
    else:
        begins, ends = np.searchsorted(keys, firsts, side="left"), np.searchsorted(keys, lasts, side="right")
    crowd = (ends - begins).sum(axis=0)
    asked = np.flatnonzero(crowd >= size)
    if len(asked) > 2 * ASKED:
        crowded = np.argsort(-crowd[asked], kind="stable")[:ASKED]
        best = np.argsort(worths[order[asked]], kind="stable")[:ASKED]
        asked = asked[np.union1d(crowded, best)]
    begins, lengths = begins[:, asked].ravel(), (ends - begins)[:, asked].ravel()
    centres = np.repeat(np.tile(np.arange(len(asked)), 5), lengths)
    within = np.arange(len(centres)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    others = order[np.repeat(begins, lengths) + within]
    middles = order[asked]
    squares = (xs[others] - xs[middles[centres]]) ** 2 + (ys[others] - ys[middles[centres]]) ** 2
    close = squares <= reach * reach * (1 + 1e-9)
    enough = np.bincount(centres[close], minlength=len(asked)) >= size
    close &= enough[centres]
    return _gathered(middles, enough, centres[close], others[close], squares[close])


def _gathered(middles: Integers, enough: Booleans, centres: Integers, others: Integers, squares: Floats) -> _Near:
    """The pairs as one row for each centre."""
    asked = np.flatnonzero(enough)
    rows = (np.cumsum(enough) - 1)[centres]
    order = np.argsort(rows.astype(np.uint16), kind="stable")  # few enough for sixteen bits, which sort quickest
    rows, others, squares = rows[order], others[order], squares[order]
    counts = np.bincount(rows, minlength=len(asked))
    along = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    shape = (len(asked), int(counts.max()))
    near = _Near(middles[asked], np.full(shape, np.inf), np.zeros(shape, np.int64))
    near.squares[rows, along] = squares
    near.others[rows, along] = others
    return near
