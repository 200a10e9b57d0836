"""A house that sells out by `best-available` alone: parties of one to four, all at once, until nobody finds a seat.

What is drawn is the share of single seats that were left alone while the house filled.
"""

import asyncio
import random
import time
from collections.abc import Sequence
from uuid import UUID

import msgspec
import numpy as np

from holdfast.allocation.alone import seats_alone
from holdfast.allocation.floor import Floor, floor_of
from holdfast.bench.progress import Progress
from holdfast.bench.report import Measured, Quantity, Ratio, at_most
from holdfast.bench.scale import Scale
from holdfast.bench.stand import WHOLE, Stand, StandFailed, layout_config, on_sale
from holdfast.seating.validate import parse_layout
from holdfast.simulation.client import Client

GOAL = at_most(5)
SEATS_A_ROW = 25
ALMOST = 0.9
BAR = 40


class Point(msgspec.Struct, frozen=True):
    """The house at one moment of the sale."""

    taken: float  # of all seats
    alone: float  # free seats without a free neighbour, of all seats
    alone_of_free: float


def sale_curve(floor: Floor, taken_in_order: Sequence[int], points: int = 20) -> list[Point]:
    """How many seats stood alone while these were taken, one after the other."""
    seats = len(floor.left)
    free = np.ones(seats, bool)
    marks = {round(seats * n / points) for n in range(1, points + 1)} | {round(seats * ALMOST)}
    curve: list[Point] = []
    for done, ordinal in enumerate(taken_in_order, 1):
        free[ordinal] = False
        if done in marks:
            alone = seats_alone(floor, free)
            left = seats - done
            curve.append(Point(done / seats, alone / seats, alone / left if left else 0.0))
    return curve


def drawn(curve: Sequence[Point]) -> str:
    """A line a point: how full, and a bar for the share that stood alone."""
    most = max((point.alone for point in curve), default=0.0) or 1.0
    lines = [
        f"{point.taken:4.0%} taken  {'█' * round(BAR * point.alone / most):<{BAR}} {point.alone:6.2%} of the house alone"
        f" ({point.alone_of_free:.0%} of what is free)"
        for point in curve
    ]
    return "\n".join(lines)


def measure(stand: Stand, scale: Scale, progress: Progress) -> Measured:
    stand.use(WHOLE)
    seats = scale.sell_out_seats
    progress.say(f"a house of {seats} seats")
    config = layout_config(seats, SEATS_A_ROW)
    layout_answer = stand.post(f"/api/venues/{stand.venue}/layouts", {"name": "Plan", "config": config})
    overrides = {"max_holds_per_user": 1_000_000, "orphan_avoidance_strict": True}
    event = stand.post("/api/events", {"name": "Sold out", "layout_id": layout_answer["id"], "overrides": overrides})[
        "id"
    ]
    stand.post(f"/api/events/{event}/status", {"status": "published"})
    layout = parse_layout(UUID(layout_answer["id"]), config)
    tokens = stand.guests(on_sale(event, layout_answer["id"], 0), scale.sell_out_buyers)
    progress.say(f"{scale.sell_out_buyers} parties at once")
    began = time.perf_counter()
    sold, refused = stand.run(_sell_out(f"http://127.0.0.1:{stand.port}", event, tokens))
    seconds = time.perf_counter() - began
    rows = stand.sql(
        "SELECT ordinal FROM seat_state_events WHERE event_id = $1 AND verb = 'hold' ORDER BY at, id", UUID(event)
    )
    curve = sale_curve(floor_of(layout), [row["ordinal"] for row in rows])
    almost = next((point for point in curve if point.taken >= ALMOST), None)
    if len({row["ordinal"] for row in rows}) != len(rows):
        raise StandFailed("a seat was held twice")
    return Measured(
        "Selling out by best-available",
        [
            Ratio(
                "seats left alone when 90 % are taken (% of the house)",
                [100 * almost.alone if almost else 100.0],
                goal=GOAL,
            )
        ],
        [
            Quantity("parties served", [float(sold)], ""),
            Quantity("parties refused, when nothing fitted any more", [float(refused)], ""),
            Quantity("seats taken", [float(len(rows))], f"of {seats}"),
            Quantity("parties a second", [(sold + refused) / seconds], "1/s"),
        ],
        [],
        [
            "Parties of one to four, in random order, all waiting at once; then single buyers until the last seat is gone."
        ],
        drawing=drawn(curve),
    )


async def _sell_out(url: str, event: str, tokens: Sequence[str]) -> tuple[int, int]:
    dice = random.Random(7)
    parties = [dice.randint(1, 4) for _ in tokens]
    path = f"/api/events/{event}/best-available"

    async def ask(token: str, quantity: int) -> bool:
        client = Client(url)
        try:
            answer = await client.send("POST", path, {"quantity": quantity}, token=token)
        finally:
            client.close()
        if not answer.ok and answer.reason != "no_seats_available":
            raise StandFailed(f"best-available: {answer.status} {answer.reason}")
        return answer.ok

    done = await asyncio.gather(*(ask(*party) for party in zip(tokens, parties, strict=True)))
    sold = sum(done)
    refused = len(done) - sold
    while await ask(tokens[0], 1):
        sold += 1
    return sold, refused + 1
