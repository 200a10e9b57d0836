"""HTTP reserve, the whole product, ÷ the plain reserve run by pgbench."""

import itertools
import random
import statistics

from holdfast.bench.drive import Driven, drive, reserve_heads, reserve_tails
from holdfast.bench.load import LoadPlan
from holdfast.bench.plain_reserve import PlainReserve, PlainRun
from holdfast.bench.progress import Progress
from holdfast.bench.report import Measured, Quantity, Ratio, at_least
from holdfast.bench.scale import Scale
from holdfast.bench.stand import OnSale, Stand

GOAL = at_least(1.5)


def measure(stand: Stand, event: OnSale, scale: Scale, progress: Progress) -> Measured:
    progress.say("issuing tokens")
    tokens = stand.guests(event, 2 * scale.buyers)
    tails, unseen = reserve_tails(tokens[: scale.buyers]), reserve_tails(tokens[scale.buyers :])
    plain = PlainReserve(stand, 2 * scale.seats)
    by_clients: dict[int, list[PlainRun]] = {clients: [] for clients in scale.plain_clients}
    many: list[Driven] = []
    fewer: dict[int, list[Driven]] = {connections: [] for connections in scale.fewer_connections}
    strangers: list[Driven] = []
    for n in range(scale.rounds):
        for clients, runs in by_clients.items():
            progress.say(f"round {n + 1}: pgbench, {clients} clients")
            plain.refill()
            runs.append(plain.run(clients, scale.seconds))
        for connections, driven in ((scale.connections, many), *fewer.items()):
            progress.say(f"round {n + 1}: HTTP, {connections} connections")
            stand.refill()
            driven.append(drive(stand, _plan(stand, event, tails, connections, scale), "201"))
        progress.say(f"round {n + 1}: HTTP, every request from a buyer not seen before")
        stand.refill()
        strangers.append(drive(stand, _once_each(stand, event, unseen, scale), "201"))
    best = max(by_clients, key=lambda clients: statistics.median(run.rate for run in by_clients[clients]))
    baseline = by_clients[best]
    ratios = [http.rate / run.rate for http, run in zip(many, baseline, strict=True)]
    cost = [
        http.microseconds("server", "postgres") / run.microseconds("postgres", "client")
        for http, run in zip(many, baseline, strict=True)
    ]
    spent = [
        *(d.spent for d in (*many, *itertools.chain(*fewer.values()), *strangers)),
        *(run.spent for run in baseline),
    ]
    return Measured(
        "Reserve over HTTP",
        [
            Ratio("HTTP reserve ÷ plain reserve by pgbench (holds/s)", ratios, goal=GOAL),
            Ratio("CPU a hold, server and PostgreSQL ÷ pgbench and PostgreSQL", cost),
        ],
        [
            *(
                Quantity(f"plain reserve, pgbench, {clients} clients", [run.rate for run in runs], "holds/s")
                for clients, runs in by_clients.items()
            ),
            Quantity(f"plain: CPU of PostgreSQL a hold, {best} clients", _cpu(baseline, "postgres"), "µs"),
            Quantity(f"plain: CPU of pgbench a hold, {best} clients", _cpu(baseline, "client"), "µs"),
            *_figures(many, scale.connections),
            *(figure for connections, driven in fewer.items() for figure in _figures(driven, connections)),
            Quantity("HTTP reserve, every buyer new: CPU of the server a hold", _cpu(strangers, "server"), "µs"),
            Quantity("HTTP reserve, every buyer new: CPU of PostgreSQL a hold", _cpu(strangers, "postgres"), "µs"),
        ],
        [each.foreign_cores for each in spent],
        [
            "The plain reserve checks no credential and no limit and writes no audit or message; "
            f"{best} clients were its best. The load client's share of the processors counts against HTTP.",
            f"{scale.buyers:,} buyers reserve again and again, so most credentials are remembered; *every buyer new* is "
            "the other extreme, where each credential is verified for one request.",
        ],
    )


def _plan(stand: Stand, event: OnSale, tails: list[bytes], connections: int, scale: Scale) -> LoadPlan:
    return LoadPlan(
        port=stand.port,
        connections=connections,
        seconds=scale.seconds,
        warm_up_s=scale.warm_up_s,
        heads=reserve_heads(event, random.sample(event.seats, len(event.seats))),
        tails=tails,
        again=False,
    )


def _once_each(stand: Stand, event: OnSale, tails: list[bytes], scale: Scale) -> LoadPlan:
    """To the end of the list. The rounds are longer apart than a credential is remembered."""
    return LoadPlan(
        port=stand.port,
        connections=scale.connections,
        seconds=300.0,
        warm_up_s=0.0,
        heads=reserve_heads(event, random.sample(event.seats, len(tails))),
        tails=tails,
        again=False,
    )


def _figures(driven: list[Driven], connections: int) -> list[Quantity]:
    name = f"HTTP reserve, {connections} connections"
    return [
        Quantity(name, [d.rate for d in driven], "holds/s"),
        Quantity(f"{name}: p50", [d.result.p50_ms for d in driven], "ms"),
        Quantity(f"{name}: p99", [d.result.p99_ms for d in driven], "ms"),
        Quantity(f"{name}: CPU of the server a hold", _cpu(driven, "server"), "µs"),
        Quantity(f"{name}: CPU of PostgreSQL a hold", _cpu(driven, "postgres"), "µs"),
        Quantity(f"{name}: CPU of the load client a hold", _cpu(driven, "client"), "µs"),
    ]


def _cpu(runs: list[Driven] | list[PlainRun], process: str) -> list[float]:
    return [run.microseconds(process) for run in runs]
