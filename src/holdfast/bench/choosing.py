"""Choosing seats from memory in a large house: empty, half sold and nearly full. Processor time of one process, no I/O."""

import time
from collections.abc import Callable
from uuid import UUID

import numpy as np

from holdfast.allocation.choose import Wish, choose
from holdfast.allocation.floor import Booleans, Floor
from holdfast.bench.progress import Progress
from holdfast.bench.report import Measured, Quantity, Ratio, at_most
from holdfast.bench.scale import Scale
from holdfast.seating.layout import Layout, Point, SeatCategory, Zone, ZoneType, zone_column

GOAL_MS = at_most(5)
QUANTITIES = (1, 2, 4, 8)
TAKEN_SHARES = (0.0, 0.5, 0.95)
SEATS = 100_000
SEATS_A_ROW = 100
_LAYOUT = UUID("00000000-0000-7000-8000-000000000000")


def measure(scale: Scale, progress: Progress) -> Measured:
    progress.say("laying out the house")
    began = time.process_time()
    floor = Floor(house(SEATS))
    built_s = time.process_time() - began
    states = np.zeros(SEATS, np.uint8)
    passes: list[float] = []
    spent: dict[tuple[int, float], list[float]] = {(q, share): [] for share in TAKEN_SHARES for q in QUANTITIES}
    for n in range(scale.rounds):
        progress.say(f"round {n + 1}")
        passes.append(_cpu_s(lambda: (states == 0).sum(), scale.choices))
        for share in TAKEN_SHARES:
            free = _free(SEATS, share, n)
            for quantity in QUANTITIES:
                spent[quantity, share].append(_cpu_s(_choosing(floor, free, quantity), scale.choices))
    slowest = [max(times[n] for times in spent.values()) for n in range(scale.rounds)]
    return Measured(
        "Choosing seats",
        [
            Ratio(
                f"slowest choice of 1 – {QUANTITIES[-1]} in {SEATS:,} seats (ms of CPU)",
                [1000 * seconds for seconds in slowest],
                goal=GOAL_MS,
            ),
            *(
                Ratio(f"choice of {quantity}, {share:.0%} taken ÷ one pass over the states (CPU)", _over(times, passes))
                for (quantity, share), times in spent.items()
            ),
        ],
        [
            Quantity("one pass over the states: CPU", [1000 * seconds for seconds in passes], "ms"),
            *(
                Quantity(f"choice of {quantity}, {share:.0%} taken: CPU", [1000 * seconds for seconds in times], "ms")
                for (quantity, share), times in spent.items()
            ),
            Quantity("rows, neighbours and qualities, once a layout: CPU", [1000 * built_s], "ms"),
        ],
        [],
        ["Seats are taken at random, which leaves the fewest neighbours; orphan rule strict, two groups at most."],
    )


def house(seats: int) -> Layout:
    """Rows of a hundred before a stage."""
    numbers = [n % SEATS_A_ROW + 1 for n in range(seats)]
    rows = [n // SEATS_A_ROW for n in range(seats)]
    zone = Zone(
        zone_no=0,
        id=_LAYOUT,
        zone_id="hall",
        name="Hall",
        zone_type=ZoneType.RESERVED_SEATING,
        capacity=seats,
        seat_count=seats,
    )
    return Layout(
        layout_id=_LAYOUT,
        zones=(zone,),
        seat_ids=[f"{row}-{number}" for row, number in zip(rows, numbers, strict=True)],
        rows=[str(row) for row in rows],
        numbers=numbers,
        zone_nos=zone_column((zone,)),
        categories=[SeatCategory.STANDARD] * seats,
        xs=[10.0 * number for number in numbers],
        ys=[12.0 * row for row in rows],
        companions=[-1] * seats,
        focal_point=Point(x=5.0 * SEATS_A_ROW, y=-20.0),
        total_capacity=seats,
    )


def _free(seats: int, taken_share: float, seed: int) -> Booleans:
    free: Booleans = np.random.default_rng(seed).random(seats) >= taken_share
    return free


def _choosing(floor: Floor, free: Booleans, quantity: int) -> Callable[[], object]:
    wish = Wish(quantity=quantity)
    return lambda: choose(floor, free, wish)


def _cpu_s(work: Callable[[], object], times: int) -> float:
    work()  # what is made once is not what a choice costs
    began = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - began) / times


def _over(these: list[float], those: list[float]) -> list[float]:
    return [one / other for one, other in zip(these, those, strict=True)]
