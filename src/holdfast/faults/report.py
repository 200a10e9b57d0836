"""What came of the runs, as a table and as JSON."""

from collections.abc import Sequence
from typing import Any

import msgspec
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from holdfast.faults.run import Result
from holdfast.insight.history import TITLES, Verdict


def as_json(results: Sequence[Result]) -> dict[str, Any]:
    runs = [
        {**msgspec.to_builtins(result), "ok": result.ok, "p95_ratio": rounded(result.p95_ratio)} for result in results
    ]
    return {"ok": all(result.ok for result in results), "runs": runs}


def rounded(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio, 2)


def print_report(console: Console, results: Sequence[Result]) -> None:
    """A row a fault; then each promise with how often it was checked, what broke it, and what was heard."""
    table = Table(box=SIMPLE, padding=(0, 1))
    table.add_column("fault", no_wrap=True)
    table.add_column("requests", justify="right", no_wrap=True)
    for promise in TITLES:
        table.add_column(promise, justify="center", no_wrap=True)
    table.add_column("p95", justify="right", no_wrap=True)
    for result in results:
        cells = [_verdict_cell(verdict) for verdict in result.verdicts]
        ratio = "-" if result.p95_ratio is None else f"{result.p95_ratio:.1f}×"
        table.add_row(result.fault, f"{sum(result.outcomes.values()):,}", *cells, ratio)
    console.print(table)
    for n, (promise, title) in enumerate(TITLES.items()):
        checked = sum(result.verdicts[n].checked for result in results)
        console.print(f"  {promise}   {title} ({checked:,} checks)", style="dim", highlight=False)
    console.print("  p95  of reserve during the fault, as a multiple of before it", style="dim", highlight=False)
    heard = sorted({cache for result in results for cache in result.caches})
    console.print(f"  asked: {', '.join(heard)}", style="dim", highlight=False)
    for result in results:
        for verdict in result.verdicts:
            for offender in verdict.offenders:
                where = f"{result.fault} · {verdict.promise} {verdict.title}: "
                console.print(Text(where, "bold red").append(offender, "default"), soft_wrap=True)


def _verdict_cell(verdict: Verdict) -> Text:
    """How often it was broken; nothing to check is no proof."""
    if not verdict.ok:
        return Text(f"✗{verdict.broken:,}", "bold red")
    return Text("ok", "green") if verdict.checked else Text("-", "yellow")
