"""A thousand buyers on a hundred seats: how fast the engine says no, ÷ how fast it says anything at all."""

import random

from holdfast.bench.drive import HELLO, HELLO_TAIL, Driven, drive, reserve_heads, reserve_tails
from holdfast.bench.load import LoadPlan
from holdfast.bench.progress import Progress
from holdfast.bench.report import Measured, Quantity, Ratio, at_least
from holdfast.bench.scale import Scale
from holdfast.bench.stand import BARE, WHOLE, Stand

GOAL = at_least(0.6)
HOT_GOAL = at_least(3)
PAIRS = 20_011
"""Buyers and seats are paired anew until so many wishes are listed; a prime, so that the pairs do not repeat soon."""


def measure(stand: Stand, scale: Scale, progress: Progress) -> Measured:
    progress.say("publishing the event, issuing tokens")
    event = stand.publish(scale.contested_seats)
    tails = reserve_tails(stand.guests(event, scale.contested_buyers))
    wishes = reserve_heads(event, random.choices(event.seats, k=PAIRS))
    hello: list[Driven] = []
    contested: list[Driven] = []
    bare: list[Driven] = []
    for n in range(scale.rounds):
        progress.say(f"round {n + 1}: hello")
        hello.append(drive(stand, _plan(stand, scale, [HELLO], [HELLO_TAIL]), "200"))
        for name, runs in ((WHOLE, contested), (BARE, bare)):
            progress.say(f"round {n + 1}: {scale.contested_buyers} buyers, {scale.contested_seats} seats, {name}")
            stand.use(name)
            stand.refill()
            runs.append(drive(stand, _plan(stand, scale, wishes, tails), "201", "200", "409"))
        stand.use(WHOLE)
    refusals, alone = _refused(contested), _refused(bare)
    return Measured(
        "Contested",
        [
            Ratio(
                "refusals ÷ hello of the same server (answers/s)",
                [refused / greeted.rate for refused, greeted in zip(refusals, hello, strict=True)],
                goal=GOAL,
            ),
            Ratio(
                "refusals ÷ refusals without the hot tier (answers/s)",
                [refused / without for refused, without in zip(refusals, alone, strict=True)],
                goal=HOT_GOAL,
            ),
        ],
        [
            Quantity("hello (GET /healthz)", [d.rate for d in hello], "answers/s"),
            Quantity("hello: CPU of the server", [d.microseconds("server") for d in hello], "µs"),
            Quantity("contested: refusals", refusals, "answers/s"),
            Quantity("contested: p50", [d.result.p50_ms for d in contested], "ms"),
            Quantity("contested: p99", [d.result.p99_ms for d in contested], "ms"),
            Quantity("contested: CPU of the server an answer", [d.microseconds("server") for d in contested], "µs"),
            Quantity("contested: CPU of PostgreSQL an answer", [d.microseconds("postgres") for d in contested], "µs"),
            Quantity("contested, without the hot tier: refusals", alone, "answers/s"),
            Quantity(
                "contested, without the hot tier: CPU of the server", [d.microseconds("server") for d in bare], "µs"
            ),
            Quantity(
                "contested, without the hot tier: CPU of PostgreSQL", [d.microseconds("postgres") for d in bare], "µs"
            ),
        ],
        [d.spent.foreign_cores for d in (*hello, *contested, *bare)],
        [f"{scale.contested_buyers} buyers, {scale.contested_seats} seats, {scale.connections} connections."],
    )


def _refused(driven: list[Driven]) -> list[float]:
    return [d.result.statuses.get("409", 0) / d.result.seconds for d in driven]


def _plan(stand: Stand, scale: Scale, heads: list[bytes], tails: list[bytes]) -> LoadPlan:
    return LoadPlan(
        port=stand.port,
        connections=scale.connections,
        seconds=scale.seconds,
        warm_up_s=scale.warm_up_s,
        heads=heads,
        tails=tails,
        again=True,
    )
