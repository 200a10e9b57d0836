"""What is asked for when seats are to be chosen, and what comes of it."""

from enum import StrEnum

import msgspec
import numpy as np
from numpy.typing import NDArray

from holdfast.allocation.floor import Booleans


class Strategy(StrEnum):
    BEST = "best"
    """The nearest to the stage."""
    CHEAPEST = "cheapest"
    """The lowest sum; among equals the best."""


class Rung(StrEnum):
    """How far down the ladder the choice was found."""

    TOGETHER = "together"
    """Side by side, and nobody is left alone."""
    TOGETHER_STRANDING = "together_stranding"
    """Side by side, and somebody is left alone, because it cannot be avoided."""
    SPLIT = "split"
    """In a few groups of neighbours."""
    NEAREST = "nearest"
    """As close to each other as there is."""


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    quantity: int
    allowed: NDArray[np.bool_] | None = None
    """The seats that may be chosen, by ordinal; None is every one. A free seat that may not be chosen can be left alone."""
    strict_orphans: bool = True
    max_group_split: int = 2
    adjacency_strict: bool = False
    strategy: Strategy = Strategy.BEST
    prices: NDArray[np.int64] | None = None
    """By ordinal, in minor units; what CHEAPEST goes by."""
    seed: int = 0
    """Which of several that are equally good, so that many who ask at once need not all be given the same."""


class Choice(msgspec.Struct, frozen=True):
    ordinals: tuple[int, ...]
    rung: Rung
    clusters: tuple[tuple[int, ...], ...]
    """Those who sit side by side, in the order of the rows."""
    stranded: tuple[int, ...]
    excuse: str | None
    words: str
    """What was done, for the buyer."""


class House:
    """The state of every place, and what can be read off it at once for all of them."""

    __slots__ = ("free", "pairs", "strands_left", "strands_right", "usable", "usable_pairs")

    def __init__(self, free: Booleans, usable: Booleans, linked: Booleans) -> None:
        seats = len(free)
        self.free = free
        self.usable = usable
        # Two places of nobody before and behind the house, so that every place can be asked about its neighbours.
        pairs = np.zeros(seats + 4, np.bool_)
        inner = pairs[2 : seats + 1]
        np.logical_and(free[:-1], free[1:], out=inner)
        np.logical_and(inner, linked, out=inner)
        self.pairs = inner
        """By place: it and the next are free neighbours."""
        self.strands_left: Booleans = pairs[1 : seats + 1] > pairs[:seats]
        """By place: whoever takes from here on leaves the one before alone."""
        self.strands_right: Booleans = pairs[2 : seats + 2] > pairs[3 : seats + 3]
        if usable is free:
            self.usable_pairs = inner
        else:
            self.usable_pairs = usable[:-1] & usable[1:] & linked

    def windows(self, size: int) -> Booleans:
        """By first place: so many usable neighbours."""
        if size == 1:
            return self.usable
        covered, found = 1, self.usable_pairs
        while covered < size - 1:
            step = min(covered, size - 1 - covered)
            found = found[: len(found) - step] & found[step:]
            covered += step
        return found
