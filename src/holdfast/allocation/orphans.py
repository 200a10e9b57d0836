"""The orphan rule: a choice may not leave a free seat alone that had a free neighbour. Pure.

A *run* is a longest stretch of neighbouring free seats of a row, as it was before the choice. Seats that are sold, held or
blocked divide runs, and so do aisles. What a buyer has already counts as part of the choice: as if everything were chosen
now, together.

**Stranded** is a seat that stays free, lies beside a seat chosen now, and has no free neighbour afterwards.

A row's part of a choice is excused where
- more than nine tenths of the row were taken before, or
- nothing else of that size in the row leaves nobody alone. Looked at are all sets of free seats with the same sizes of their
  pieces (a piece: chosen seats that are neighbours), and all pieces of the whole size.
That only single seats remain in the row needs no excuse: whoever has no free neighbour cannot lose one.
"""

from collections.abc import Collection, Iterator, Sequence
from functools import cache, lru_cache
from itertools import islice
from typing import Final, Protocol

import msgspec

from holdfast.allocation.floor import Booleans, Floor

ALTERNATIVES: Final = 3
PIECES_MAX: Final = 12
"""Whoever picks more pieces than that in one row is only held against those who sit together."""
NEARLY_FULL: Final = "The row is over 90 % taken."
NO_ALTERNATIVE: Final = "No other choice of this size in the row leaves nobody alone."


class Flags(Protocol):
    """By ordinal, true where a seat is free: an array, or bytes."""

    def __getitem__(self, ordinal: int, /) -> object: ...


class Verdict(msgspec.Struct, frozen=True):
    stranded: tuple[int, ...] = ()
    """Whom the choice leaves alone, excused or not."""
    excuse: str | None = None
    """Why that is allowed, where it is."""
    alternatives: tuple[tuple[int, ...], ...] = ()
    """Where it is not allowed: the nearest choices of the same size that leave nobody alone."""

    @property
    def legal(self) -> bool:
        return not self.stranded or self.excuse is not None


_HARMLESS: Final = Verdict()


def strands_nobody(floor: Floor, free: Flags, ordinal: int) -> bool:
    """Whether taking this one seat leaves nobody alone. Quick: most of what is judged is one seat."""
    left_of, right_of = floor.left_of, floor.right_of
    beside = left_of[ordinal]
    if beside >= 0 and free[beside]:
        beyond = left_of[beside]
        if beyond < 0 or not free[beyond]:
            return False
    beside = right_of[ordinal]
    if beside >= 0 and free[beside]:
        beyond = right_of[beside]
        if beyond < 0 or not free[beyond]:
            return False
    return True


def stranded_by(floor: Floor, free: Flags, picked: Collection[int]) -> set[int]:
    """The free seats beside `picked` that have no free neighbour once `picked` are taken."""
    left_of, right_of = floor.left_of, floor.right_of
    alone: set[int] = set()
    for ordinal in picked:
        for toward in (left_of, right_of):
            beside = toward[ordinal]
            if beside >= 0 and free[beside] and beside not in picked:
                # Its neighbour on this side is taken now; the one on the other side decides.
                beyond = toward[beside]
                if beyond < 0 or not free[beyond] or beyond in picked:
                    alone.add(beside)
    return alone


def judge(floor: Floor, free: Booleans, picked: Sequence[int], own: Collection[int] = ()) -> Verdict:
    """`free`: available and offered, by ordinal. `own`: what the buyer has already; it is not free."""
    mine = set(own)
    new = set(picked) - mine
    if len(new) == 1 and strands_nobody(floor, free, *new):
        return _HARMLESS
    alone = stranded_by(floor, free, new)
    if not alone:
        return _HARMLESS
    rows = floor.row_of
    excuses: dict[int, str | None] = {}
    for seat in alone:
        row_no = int(rows[seat])
        if row_no not in excuses:
            excuses[row_no] = excuse_in_row(floor, free, row_no, new | mine)
    stranded = tuple(sorted(alone))
    guilty = {row_no for row_no, excuse in excuses.items() if excuse is None}
    if guilty:
        found = islice(_alternatives(floor, free, new, guilty), ALTERNATIVES)
        return Verdict(stranded, None, tuple(found))
    return Verdict(stranded, " ".join(sorted({excuse for excuse in excuses.values() if excuse is not None})))


def excuse_in_row(floor: Floor, free: Flags, row_no: int, chosen: Collection[int]) -> str | None:
    """Why these seats of a row may leave somebody alone; `chosen` counts as free before."""
    ordinals = floor.rows[row_no].ordinals
    before = [bool(free[ordinal]) or ordinal in chosen for ordinal in ordinals]
    if 10 * before.count(False) > 9 * len(ordinals):
        return NEARLY_FULL
    runs = [len(run) for run in _stretches(floor, ordinals, before)]
    pieces = [len(piece) for piece in _stretches(floor, ordinals, [ordinal in chosen for ordinal in ordinals])]
    size = sum(pieces)
    if any(_fits_whole(run, size) for run in runs):
        return None
    if 1 < len(pieces) <= PIECES_MAX and placing(runs, pieces) is not None:
        return None
    return NO_ALTERNATIVE


def _stretches(floor: Floor, ordinals: Sequence[int], which: Sequence[bool]) -> list[list[int]]:
    """The neighbouring seats among those of a row."""
    found: list[list[int]] = []
    previous = -1
    for ordinal, wanted in zip(ordinals, which, strict=True):
        if not wanted:
            continue
        if previous >= 0 and floor.right_of[previous] == ordinal:
            found[-1].append(ordinal)
        else:
            found.append([ordinal])
        previous = ordinal
    return found


def _fits_whole(run: int, size: int) -> bool:
    """A piece of this size leaves nobody alone somewhere in the run: one seat left over would be."""
    return run >= size and run != size + 1


def placing(runs: Sequence[int], pieces: Sequence[int]) -> list[list[int]] | None:
    """The pieces for each run, so that nobody is left alone; None if there is no way.

    Several pieces in one run need two seats between them (with none they were one piece, with one that seat is alone).
    Whatever else is over can go there as well, so they fit if the run is long enough.
    """
    # Longer than all pieces need is as good as just that, and of equal runs no more than one a piece can matter.
    enough = sum(pieces) + 2 * len(pieces)
    alike: dict[int, list[int]] = {}
    for n, run in enumerate(runs):
        alike.setdefault(min(run, enough), []).append(n)
    kept = [n for length in sorted(alike) for n in alike[length][: len(pieces)]]
    found = _placed(tuple(min(runs[n], enough) for n in kept), tuple(sorted(pieces, reverse=True)))
    if found is None:
        return None
    placed: list[list[int]] = [[] for _ in runs]
    for n, taken in zip(kept, found, strict=False):
        placed[n] = list(taken)
    return placed


@lru_cache(maxsize=4096)
def _placed(runs: tuple[int, ...], pieces: tuple[int, ...]) -> tuple[tuple[int, ...], ...] | None:
    @cache
    def rest(index: int, remaining: tuple[int, ...]) -> tuple[tuple[int, ...], ...] | None:
        if not remaining:
            return ()
        if index == len(runs):
            return None
        for taken in _taken(runs[index], remaining):
            left = list(remaining)
            for piece in taken:
                left.remove(piece)
            others = rest(index + 1, tuple(left))
            if others is not None:
                return taken, *others
        return None

    return rest(0, pieces)


def _taken(run: int, remaining: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """What one run can take of the remaining pieces without leaving anybody alone."""

    def add(start: int, taken: tuple[int, ...], length: int) -> Iterator[tuple[int, ...]]:
        for n in range(start, len(remaining)):
            if n > start and remaining[n] == remaining[n - 1]:
                continue  # the same sizes again
            longer = length + remaining[n] + (2 if taken else 0)
            if longer <= run:
                yield from add(n + 1, (*taken, remaining[n]), longer)
        if len(taken) != 1 or _fits_whole(run, taken[0]):
            yield taken

    yield from add(0, (), 0)


# Alternatives ---------------------------------------------------------------------------------------------------------
def _alternatives(floor: Floor, free: Booleans, new: set[int], guilty: set[int]) -> Iterator[tuple[int, ...]]:
    """Choices of the same size that leave nobody alone, nearest first: in the same rows, then in others of the zone."""
    rows = floor.row_of
    kept = {seat for seat in new if int(rows[seat]) not in guilty}
    seen: set[tuple[int, ...]] = set()
    for sets in (_mended(floor, free, new, kept, guilty), _elsewhere(floor, free, new, guilty)):
        for seats in sets:
            chosen = tuple(sorted(seats))
            changed = seats - kept  # what is kept leaves nobody alone, or is excused
            if chosen not in seen and len(chosen) == len(new) and not stranded_by(floor, free, changed):
                seen.add(chosen)
                yield chosen


def _mended(floor: Floor, free: Booleans, new: set[int], kept: set[int], guilty: set[int]) -> Iterator[set[int]]:
    """Each row with somebody alone chooses anew; the first row offers several ways, the others their nearest."""
    first, *others = sorted(guilty)
    rest = set(kept)
    for row_no in others:
        nearest = next(clean_in_row(floor, free, row_no, {s for s in new if floor.row_of[s] == row_no}), None)
        if nearest is None:
            return
        rest |= nearest
    for seats in clean_in_row(floor, free, first, {s for s in new if floor.row_of[s] == first}):
        yield seats | rest


def clean_in_row(floor: Floor, free: Booleans, row_no: int, part: set[int]) -> Iterator[set[int]]:
    ordinals = floor.rows[row_no].ordinals
    runs = _stretches(floor, ordinals, [bool(free[ordinal]) for ordinal in ordinals])
    middle = _middle(floor, part)
    yield from sorted(_pieces(runs, len(part)), key=lambda seats: (_apart(floor, seats, middle), min(seats)))
    pieces = [len(piece) for piece in _stretches(floor, ordinals, [ordinal in part for ordinal in ordinals])]
    if 1 < len(pieces) <= PIECES_MAX:
        placed = placing([len(run) for run in runs], pieces)
        if placed is not None:
            yield {seat for run, taken in zip(runs, placed, strict=True) for seat in _spread(run, taken)}


def _elsewhere(floor: Floor, free: Booleans, new: set[int], guilty: set[int]) -> Iterator[set[int]]:
    """All together in another row of the zone: rows from near to far, and no farther than the answer needs."""
    home = min(guilty)
    zone_no = floor.rows[home].zone_no
    middle = _middle(floor, new)
    touched = {int(floor.row_of[seat]) for seat in new}
    others = [n for n, row in enumerate(floor.rows) if row.zone_no == zone_no and n not in touched]
    for row_no in sorted(others, key=lambda n: (abs(n - home), n)):
        ordinals = floor.rows[row_no].ordinals
        runs = _stretches(floor, ordinals, [bool(free[ordinal]) for ordinal in ordinals])
        found = list(_pieces(runs, len(new)))
        if found:
            yield min(found, key=lambda seats: (_apart(floor, seats, middle), min(seats)))


def _pieces(runs: Sequence[Sequence[int]], size: int) -> Iterator[set[int]]:
    """Neighbouring seats of that size that leave nobody in their run alone."""
    for run in runs:
        for start in range(len(run) - size + 1):
            if start != 1 and len(run) - start - size != 1:
                yield set(run[start : start + size])


def _spread(run: Sequence[int], pieces: Sequence[int]) -> Iterator[int]:
    at = 0
    for n, piece in enumerate(pieces):
        if n and n == len(pieces) - 1:
            at = len(run) - piece
        yield from run[at : at + piece]
        at += piece + 2


def _middle(floor: Floor, seats: Collection[int]) -> tuple[float, float]:
    return sum(floor.xs[s] for s in seats) / len(seats), sum(floor.ys[s] for s in seats) / len(seats)


def _apart(floor: Floor, seats: Collection[int], middle: tuple[float, float]) -> float:
    x, y = _middle(floor, seats)
    return float(round((x - middle[0]) ** 2 + (y - middle[1]) ** 2, 6))
