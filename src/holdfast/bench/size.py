"""What a hold costs in a large event ÷ in small ones: processor time of server and PostgreSQL."""

import random

from holdfast.bench.drive import Driven, drive, reserve_heads, reserve_tails
from holdfast.bench.load import LoadPlan
from holdfast.bench.progress import Progress
from holdfast.bench.report import Measured, Quantity, Ratio, at_most
from holdfast.bench.scale import Scale
from holdfast.bench.stand import OnSale, Stand

GOAL = at_most(1.1)


def measure(stand: Stand, large: OnSale, scale: Scale, progress: Progress) -> Measured:
    progress.say("publishing the small events, issuing tokens")
    first = stand.publish(scale.small_seats)
    small = [first, *(stand.publish_again(first) for _ in range(scale.small_events - 1))]
    tails = reserve_tails(stand.members(scale.buyers))
    in_small = [head for event in small for head in reserve_heads(event, random.sample(event.seats, len(event.seats)))]
    sides: dict[str, list[Driven]] = {"large": [], "small": []}
    for n in range(scale.rounds):
        in_large = reserve_heads(large, random.sample(large.seats, len(in_small)))
        # Each begins every second round, so that neither always follows the other.
        for side in ("large", "small") if n % 2 == 0 else ("small", "large"):
            progress.say(f"round {n + 1}: {'one large event' if side == 'large' else 'small events'}")
            stand.refill()
            heads = in_large if side == "large" else in_small
            sides[side].append(drive(stand, _plan(stand, scale, heads, tails), "201"))
    costs = {side: [d.microseconds("server", "postgres") for d in driven] for side, driven in sides.items()}
    name = {"large": f"one event of {large_size(large):,} seats", "small": f"events of {scale.small_seats:,} seats"}
    return Measured(
        "Size of the event",
        [
            Ratio(
                f"CPU a hold at {large_size(large):,} seats ÷ at {scale.small_seats:,}",
                [large / small for large, small in zip(costs["large"], costs["small"], strict=True)],
                goal=GOAL,
            )
        ],
        [
            Quantity(f"{name[side]}: CPU of {process} a hold", [d.microseconds(process) for d in driven], "µs")
            for side, driven in sides.items()
            for process in ("server", "postgres")
        ],
        [d.spent.foreign_cores for driven in sides.values() for d in driven],
        [f"{len(in_small):,} holds a side and round; the small events are filled one by one, to the last seat."],
    )


def large_size(event: OnSale) -> int:
    return len(event.seats)


def _plan(stand: Stand, scale: Scale, heads: list[bytes], tails: list[bytes]) -> LoadPlan:
    """To the end of the list, however long it takes."""
    return LoadPlan(
        port=stand.port,
        connections=scale.connections,
        seconds=300.0,
        warm_up_s=0.0,
        heads=heads,
        tails=tails,
        again=False,
    )
