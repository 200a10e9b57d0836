"""What the tiers above the database cost those who buy: reserves with both of them ÷ reserves without."""

import random

from holdfast.bench.drive import Driven, drive, reserve_heads, reserve_tails
from holdfast.bench.load import LoadPlan
from holdfast.bench.progress import Progress
from holdfast.bench.report import Measured, Quantity, Ratio, at_least
from holdfast.bench.scale import Scale
from holdfast.bench.stand import BARE, WHOLE, OnSale, Stand

GOAL = at_least(0.9)


def measure(stand: Stand, event: OnSale, scale: Scale, progress: Progress) -> Measured:
    progress.say("issuing tokens")
    tails = reserve_tails(stand.guests(event, scale.buyers))
    runs: dict[str, list[Driven]] = {WHOLE: [], BARE: []}
    for n in range(scale.rounds):
        order = (WHOLE, BARE) if n % 2 == 0 else (BARE, WHOLE)  # neither always follows the other
        for name in order:
            progress.say(f"round {n + 1}: reserves, {name}")
            stand.use(name)
            stand.refill()
            runs[name].append(drive(stand, _plan(stand, event, tails, scale), "201"))
    stand.use(WHOLE)
    whole, bare = runs[WHOLE], runs[BARE]
    return Measured(
        "Tiers",
        [
            Ratio(
                "reserves with both tiers ÷ without (holds/s)",
                [with_tiers.rate / without.rate for with_tiers, without in zip(whole, bare, strict=True)],
                goal=GOAL,
            )
        ],
        [
            Quantity("with both tiers", [d.rate for d in whole], "holds/s"),
            Quantity("with both tiers: CPU of the server a hold", [d.microseconds("server") for d in whole], "µs"),
            Quantity("with both tiers: CPU of PostgreSQL a hold", [d.microseconds("postgres") for d in whole], "µs"),
            Quantity("with both tiers: CPU of Valkey a hold", [d.microseconds("valkey") for d in whole], "µs"),
            Quantity("without", [d.rate for d in bare], "holds/s"),
            Quantity("without: CPU of the server a hold", [d.microseconds("server") for d in bare], "µs"),
            Quantity("without: CPU of PostgreSQL a hold", [d.microseconds("postgres") for d in bare], "µs"),
        ],
        [d.spent.foreign_cores for d in (*whole, *bare)],
        [
            "Both sides write the outbox and the counters of occupancy; *without* keeps no event in memory and no hold in"
            " Redis."
        ],
    )


def _plan(stand: Stand, event: OnSale, tails: list[bytes], scale: Scale) -> LoadPlan:
    return LoadPlan(
        port=stand.port,
        connections=scale.connections,
        seconds=scale.seconds,
        warm_up_s=scale.warm_up_s,
        heads=reserve_heads(event, random.sample(event.seats, len(event.seats))),
        tails=tails,
        again=False,
    )
