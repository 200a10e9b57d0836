"""The fourth rung: seats wherever they are, as close to each other as there is. Pure.

Every usable seat is asked for the seats nearest to it, itself among them: that is a choice, and as wide as the farthest of
them is away. The narrowest wins; then worth, then the first in the house. Where the orphan rule is strict, choices that
leave somebody alone without excuse do not count; should none be left, the narrowest is moved within its rows.
"""

from typing import Final

import numpy as np

from holdfast.allocation.floor import Booleans, Floor, Integers
from holdfast.allocation.wish import House, Wish

ALL_PAIRS: Final = 400
"""Up to so many usable seats, everybody is measured against everybody."""


def nearest(floor: Floor, free: Booleans, house: House, wish: Wish, before: Integers) -> list[list[int]]:
    places = np.flatnonzero(house.usable)
    xs, ys = floor.xs[floor.line[places]], floor.ys[floor.line[places]]
    squares = (xs[:, None] - xs[None, :]) ** 2 + (ys[:, None] - ys[None, :]) ** 2
    best = None
    for row in squares:
        order = np.lexsort((places, row))[: wish.quantity]
        chosen = sorted(places[order].tolist())
        key = (float(row[order[-1]]), int((before[np.array(chosen) + 1] - before[chosen]).sum()), chosen)
        if best is None or key < best:
            best = key
    assert best is not None
    return clusters_of(floor, best[2])


def clusters_of(floor: Floor, places: list[int]) -> list[list[int]]:
    """Neighbours among the places."""
    clusters: list[list[int]] = []
    for place in places:
        if clusters and clusters[-1][-1] == place - 1 and floor.linked[place - 1]:
            clusters[-1].append(place)
        else:
            clusters.append([place])
    return clusters
