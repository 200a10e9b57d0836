"""Choosing seats: as close together as there is, leaving nobody alone, and of those the best. Pure and deterministic.

The ladder, each rung only where the one before has nothing:
1. side by side in one row, nobody left alone;
2. side by side, as few left alone as possible. No row has a choice that leaves nobody alone then, so each is excused;
3. a few groups of neighbours (`splits.py`);
4. the nearest seats (`nearest.py`), unless the organiser insists on groups.
Within a rung: the price where it is asked for, the sum of the seats' quality, the order of the rows, the number.
"""

import numpy as np

from holdfast.allocation.floor import GRADES, Booleans, Floor, Integers
from holdfast.allocation.nearest import nearest
from holdfast.allocation.orphans import excuse_in_row, stranded_by
from holdfast.allocation.splits import NEVER, WORTH_BITS, split
from holdfast.allocation.wish import Choice, House, Rung, Strategy, Wish
from holdfast.allocation.words import described

__all__ = ["Choice", "Rung", "Strategy", "Wish", "choose"]

BLOCK = 4096
ASKED_FOR_ONLY = "No other of the seats that were asked for in the row leaves nobody alone."


def choose(floor: Floor, free: Booleans, wish: Wish) -> Choice | None:
    """The best choice for the wish, or None: fewer seats than wanted, or only seats apart from each other and
    `adjacency_strict`. `free`: available and offered, by ordinal."""
    if wish.quantity < 1:
        raise ValueError("a choice has at least one seat")
    if wish.quantity > floor.seats:
        return None
    open_to_all = floor.by_place(free)
    usable = open_to_all if wish.allowed is None else open_to_all & floor.by_place(wish.allowed)
    house = House(open_to_all, usable, floor.linked)
    before = _worth_before(floor, wish)
    found = _together(floor, house, wish, before)
    if found is not None:
        rung, place = found
        return _made(floor, free, wish, rung, [list(range(place, place + wish.quantity))])
    if np.count_nonzero(usable) < wish.quantity:
        return None
    clusters = split(floor, house, wish, before)
    if clusters is not None:
        return _made(floor, free, wish, Rung.SPLIT, clusters)
    if wish.adjacency_strict:
        return None
    return _made(floor, free, wish, Rung.NEAREST, nearest(floor, free, house, wish, before))


def _worth_before(floor: Floor, wish: Wish) -> Integers:
    """By place: the sum of what the seats before it are worth. Lower is better: quality, and above it the price where it
    is asked for. One number, so that the least of a hundred thousand windows is found in one pass; the sums may wrap
    around, their differences do not."""
    if wish.strategy is not Strategy.CHEAPEST or wish.prices is None or not floor.seats:
        return floor.grades_before
    prices = wish.prices if floor.in_line else wish.prices[floor.line]
    extra = prices - prices.min()
    grade_bits = (GRADES * wish.quantity).bit_length()
    price_bits = WORTH_BITS - grade_bits
    if int(extra.max()) * wish.quantity >> price_bits:
        extra = extra // max(1, int(np.gcd.reduce(extra)))
        # Prices so far apart that they do not fit are told apart by their leading digits.
        extra >>= max(0, (int(extra.max()) * wish.quantity).bit_length() - price_bits)
    return np.concatenate((np.zeros(1, np.int64), np.cumsum((extra << grade_bits) + floor.grades)))


def _together(floor: Floor, house: House, wish: Wish, before: Integers) -> tuple[Rung, int] | None:
    windows = house.windows(wish.quantity)
    left, right = house.strands_left[: len(windows)], house.strands_right[wish.quantity - 1 :]
    clean = windows > (left | right)
    if clean.any():
        return Rung.TOGETHER, _best(floor, clean, wish, before)
    if not windows.any():
        return None
    one_alone = windows & (left ^ right)
    which = one_alone if one_alone.any() else windows
    return Rung.TOGETHER_STRANDING, _best(floor, which, wish, before)


def _best(floor: Floor, which: Booleans, wish: Wish, before: Integers) -> int:
    """The first place of the window that is worth most, and of equal ones the first in the house, or as the seed says.

    Block by block, those that could hold the best first, until the rest cannot: what nobody looks at costs nothing.
    """
    size = wish.quantity
    least, equal = NEVER, [0]
    for bound, at in _blocks(floor, size, before):
        if bound > least:
            break
        some = which[at : at + BLOCK]
        if not some.any():
            continue
        end = at + len(some)
        worths = np.where(some, before[at + size : end + size] - before[at:end], NEVER)
        best = int(worths.argmin())
        if worths[best] > least:
            continue
        if worths[best] < least:
            least, equal = int(worths[best]), []
        equal += (at + np.flatnonzero(worths == least)).tolist() if wish.seed else [at + best]
    equal.sort()
    return equal[wish.seed % len(equal)] if wish.seed else equal[0]


def _blocks(floor: Floor, size: int, before: Integers) -> list[tuple[int, int]]:
    """Where blocks begin, each with the least that a window beginning in it could be worth; the least first."""
    begins = range(0, floor.seats, BLOCK)
    if before is not floor.grades_before or size > BLOCK:
        return [(0, at) for at in begins]
    bests = floor.best_grades(BLOCK)
    # A window may end in the next block.
    return sorted((size * min(bests[n : n + 2]), at) for n, at in enumerate(begins))


def _made(floor: Floor, free: Booleans, wish: Wish, rung: Rung, clusters: list[list[int]]) -> Choice:
    """`clusters` as places."""
    groups = tuple(tuple(floor.line[cluster].tolist()) for cluster in sorted(clusters))
    chosen = {ordinal for group in groups for ordinal in group}
    alone = stranded_by(floor, free, chosen)
    return Choice(
        ordinals=tuple(sorted(chosen)),
        rung=rung,
        clusters=groups,
        stranded=tuple(sorted(alone)),
        excuse=_excuse(floor, free, wish, chosen, alone),
        words=described(floor, groups, rung, alone),
    )


def _excuse(floor: Floor, free: Booleans, wish: Wish, chosen: set[int], alone: set[int]) -> str | None:
    if not alone:
        return None
    said = {excuse_in_row(floor, free, row_no, chosen) for row_no in {int(floor.row_of[seat]) for seat in alone}}
    if None in said:
        if wish.allowed is None:
            return None
        said = {ASKED_FOR_ONLY, *said} - {None}
    return " ".join(sorted(excuse for excuse in said if excuse is not None))
