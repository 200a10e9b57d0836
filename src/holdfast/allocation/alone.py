"""How many seats of a house stand alone: free, with neighbours, and none of those free. Pure."""

import numpy as np
from numpy.typing import NDArray

from holdfast.allocation.floor import Floor


def seats_alone(floor: Floor, free: NDArray[np.bool_]) -> int:
    left, right = floor.left, floor.right
    has_left, has_right = left >= 0, right >= 0
    beside = (has_left & free[left]) | (has_right & free[right])
    return int((free & ~beside & (has_left | has_right)).sum())
