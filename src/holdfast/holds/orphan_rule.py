"""The orphan rule for seats that a buyer picks: nobody may leave a single free seat behind where that can be avoided. Pure.

It is a rule of good order, not of ownership: it is held against the seats as this process knows them, a moment old at most,
and two buyers in the same instant can together leave what neither would have been allowed to.
"""

from collections.abc import Collection, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from holdfast.allocation.floor import Floor
from holdfast.allocation.orphans import judge
from holdfast.allocation.words import seat_numbers
from holdfast.kernel.errors import OrphanSeat
from holdfast.seating.layout import Layout

Mask = NDArray[np.bool_]
NOT_STRICT = "the policy is not strict"


class Stranding(msgspec.Struct, frozen=True):
    """Seats that a pick leaves alone, and why that is allowed."""

    stranded: tuple[int, ...]
    reason: str
    by_policy: bool


def stranded_beside(floor: Floor, taken: Sequence[float], ordinal: int, now: float) -> tuple[int, ...]:
    """The free neighbours of this one seat that are without one when it is taken; `taken`: until when each seat is (unix).
    Under a microsecond, for the hottest path. Nothing is said about excuses."""
    left, right = floor.left_of, floor.right_of
    stranded: tuple[int, ...] = ()
    beside = left[ordinal]
    if beside >= 0 and taken[beside] <= now:
        beyond = left[beside]
        if beyond < 0 or taken[beyond] > now:
            stranded = (beside,)
    beside = right[ordinal]
    if beside >= 0 and taken[beside] <= now:
        beyond = right[beside]
        if beyond < 0 or taken[beyond] > now:
            stranded += (beside,)
    return stranded


def check_pick(
    layout: Layout, floor: Floor, free: Mask, picked: Sequence[int], own: Collection[int], *, strict: bool
) -> Stranding | None:
    """None: nobody is stranded. Raises OrphanSeat where the policy is strict and nothing excuses it."""
    new = [ordinal for ordinal in picked if ordinal not in own]
    if not new or not free[new].all():
        return None  # what is taken is refused for that, by whoever decides it
    if layout.wheelchair_companions:
        free = _without_companions(layout, free, new)
    verdict = judge(floor, free, new, own)
    if not verdict.stranded:
        return None
    if verdict.excuse is not None:
        return Stranding(verdict.stranded, verdict.excuse, False)
    if not strict:
        return Stranding(verdict.stranded, NOT_STRICT, True)
    raise orphan_refusal(layout, verdict.stranded, verdict.alternatives)


def _without_companions(layout: Layout, free: Mask, picked: Sequence[int]) -> Mask:
    """Who takes a place for a wheelchair alone leaves nobody's seat alone: the ones beside it are kept for a companion."""
    beside = {seat for place in picked for seat in layout.wheelchair_companions.get(place, ())}.difference(picked)
    if beside:
        free = free.copy()
        free[sorted(beside)] = False
    return free


def orphan_refusal(layout: Layout, stranded: Sequence[int], alternatives: Sequence[Sequence[int]]) -> OrphanSeat:
    alone = describe_seats(layout, stranded)
    one = len(stranded) == 1
    detail = f"This would leave {alone} alone, with no free seat beside {'it' if one else 'them'}."
    if alternatives:
        detail += f" Free instead: {'; or '.join(describe_seats(layout, seats) for seats in alternatives)}."
    return OrphanSeat(
        detail,
        stranded=[seat_facts(layout, ordinal) for ordinal in stranded],
        alternatives=[
            {"seats": [seat_facts(layout, ordinal) for ordinal in seats], "words": describe_seats(layout, seats)}
            for seats in alternatives
        ],
    )


def seat_facts(layout: Layout, ordinal: int) -> dict[str, Any]:
    zone = layout.zone_of(ordinal)
    return {
        "id": str(layout.seat_uuid(ordinal)),
        "seat_id": layout.seat_ids[ordinal],
        "zone_id": zone.zone_id,
        "row": layout.rows[ordinal],
        "number": layout.numbers[ordinal],
    }


def describe_seats(layout: Layout, ordinals: Sequence[int]) -> str:
    """`row A, seats 3–4 and row B, seat 1`; the zone is said where there are several in the layout."""
    rows: dict[tuple[int, str], list[int]] = {}
    for ordinal in sorted(ordinals):
        rows.setdefault((layout.zone_nos[ordinal], layout.rows[ordinal]), []).append(ordinal)
    said: list[str] = []
    for (zone_no, row), seats in rows.items():
        zone = f"{layout.zones[zone_no].name}, " if len(layout.zones) > 1 else ""
        said.append(f"{zone}row {row}, {seat_numbers(layout, seats)}")
    return " and ".join(said)
