"""`holdfast faults`: every fault in turn on one ground, and the report."""

from collections.abc import Sequence

import msgspec
from rich.console import Console

from holdfast.bench.progress import Progress
from holdfast.faults.ground import standing_ground
from holdfast.faults.report import as_json, print_report
from holdfast.faults.run import Plan, Result, run_fault
from holdfast.faults.strikes import FAULTS


def run(seconds: float, only: Sequence[str], json: bool) -> int:
    """0 where every promise was kept after every fault, 1 where one was broken."""
    out, err = Console(highlight=False), Console(stderr=True)
    results: list[Result] = []
    with Progress(err) as progress:
        progress.say("starting PostgreSQL, Valkey and two API processes")
        with standing_ground() as ground:
            for fault in only or FAULTS:
                progress.part(fault)
                result = run_fault(ground, fault, Plan(seconds=seconds), progress.say)
                results.append(result)
                broken = [verdict.promise for verdict in result.verdicts if not verdict.ok]
                said = f"broken: {', '.join(broken)}" if broken else "every promise kept"
                progress.note(f"{sum(result.outcomes.values()):,} requests in {result.seconds:.0f} s; {said}")
    if json:
        out.print_json(msgspec.json.encode(as_json(results)).decode())
    else:
        print_report(out, results)
    return 0 if all(result.ok for result in results) else 1
