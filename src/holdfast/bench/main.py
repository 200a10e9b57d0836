"""`holdfast bench`: starts the product, measures it, shows what came out."""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec
from rich.console import Console

from holdfast.bench import (
    analytics,
    batching,
    choosing,
    contested,
    expiry,
    live,
    occupancy,
    publication,
    reserve,
    selling_out,
    size,
    snapshot,
    tiers,
)
from holdfast.bench.machine import this_machine
from holdfast.bench.progress import Progress
from holdfast.bench.report import Measured, Report, spelled
from holdfast.bench.scale import FULL, QUICK, Scale
from holdfast.bench.stand import OnSale, Stand, StandFailed, standing
from holdfast.store.embedded import EmbeddedServerError

NAMES = (
    "publication",
    "reserve",
    "tiers",
    "contested",
    "size",
    "expiry",
    "batching",
    "occupancy",
    "snapshot",
    "live",
    "selling_out",
    "choosing",
    "analytics",
)


def run(
    quick: bool = False,
    json: bool = False,
    *,
    check: bool = False,
    write: str | None = None,
    only: Sequence[str] = (),
) -> int:
    """0 when the measuring itself worked, 1 when it did not; with `check` also 3 when a goal was missed."""
    out, err = Console(), Console(stderr=True)
    unknown = [name for name in only if name not in NAMES]
    if unknown:
        err.print(f"There is no measurement {', '.join(unknown)}: those are {', '.join(NAMES)}.")
        return 2
    if not sys.platform.startswith("linux"):
        err.print("The measurements read /proc and use epoll: they run on Linux only.")
        return 1
    options = [
        ("--quick", quick),
        (" ".join(f"--only {name}" for name in only), bool(only)),
        (f"--write {write}", write is not None),
    ]
    command = " ".join(["holdfast bench", *(text for text, given in options if given)])
    try:
        with Progress(err) as progress:
            report = measure(QUICK if quick else FULL, progress, command, only or NAMES)
    except (StandFailed, EmbeddedServerError) as error:
        err.print(f"Could not be measured: {error}", highlight=False, markup=False)
        return 1
    if json:
        print(msgspec.json.format(msgspec.json.encode(report.as_json())).decode())
    else:
        report.print(out)
    if write is not None:
        Path(write).write_text(report.markdown())
    return 3 if check and not report.all_met else 0


def measure(scale: Scale, progress: Progress, command: str, only: Sequence[str] = NAMES) -> Report:
    began = time.perf_counter()
    with standing() as stand:
        measured = list(_each(stand, scale, progress, only))
        machine = this_machine(stand.sql("SELECT current_setting('server_version') AS version")[0]["version"])
    return Report(machine, command, measured, time.perf_counter() - began)


def _each(stand: Stand, scale: Scale, progress: Progress, only: Sequence[str]) -> "list[Measured]":
    done: list[Measured] = []
    progress.part("publication")
    if "publication" in only:
        published, events = publication.measure(stand, scale, progress)
        _keep(done, published, progress)
    else:
        progress.say("publishing the events")
        events = [stand.publish(scale.seats) for _ in range(2)]
    for name, work in _measurements(stand, events, scale, progress).items():
        if name in only:
            progress.part(name)
            _keep(done, work(), progress)
    return done


def _measurements(
    stand: Stand, events: Sequence[OnSale], scale: Scale, progress: Progress
) -> dict[str, Callable[[], Measured]]:
    first, second = events[:2]
    return {
        "reserve": partial(reserve.measure, stand, first, scale, progress),
        "tiers": partial(tiers.measure, stand, first, scale, progress),
        "contested": partial(contested.measure, stand, scale, progress),
        "size": partial(size.measure, stand, first, scale, progress),
        "expiry": partial(expiry.measure, stand, second, first, scale, progress),
        "batching": partial(batching.measure, stand, first, scale, progress),
        "occupancy": partial(occupancy.measure, stand, first, scale, progress),
        "snapshot": partial(snapshot.measure, stand, first, scale, progress),
        "live": partial(live.measure, stand, first, scale, progress),
        "selling_out": partial(selling_out.measure, stand, scale, progress),
        "choosing": partial(choosing.measure, scale, progress),
        "analytics": partial(analytics.measure, stand, first, scale, progress),
    }


def _keep(done: "list[Measured]", measured: Measured, progress: Progress) -> None:
    done.append(measured)
    for ratio in measured.ratios:
        goal = "" if ratio.goal is None else f" (goal {ratio.goal})"
        progress.note(f"{ratio.name}: {spelled(ratio.median)}{goal}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="holdfast bench", description="Measures what the engine costs here.")
    parser.add_argument("--quick", action="store_true", help="about a minute, with smaller counts")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--check", action="store_true", help="exit with 3 when a goal is missed")
    parser.add_argument("--write", metavar="FILE", help="also write a page of markdown")
    parser.add_argument("--only", metavar="NAME,…", default="", help=f"some of {', '.join(NAMES)}")
    given = parser.parse_args(arguments)
    only = tuple(name for name in given.only.split(",") if name)
    return run(given.quick, given.json, check=given.check, write=given.write, only=only)
