"""What was measured, and how it is shown: a table in the terminal, JSON, or a page of markdown."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from rich.console import Console
from rich.table import Table

from holdfast.bench.machine import Machine


class Sense(Enum):
    AT_LEAST = "≥"
    AT_MOST = "≤"


@dataclass(frozen=True)
class Goal:
    sense: Sense
    value: float

    def met_by(self, value: float) -> bool:
        return value >= self.value if self.sense is Sense.AT_LEAST else value <= self.value

    def __str__(self) -> str:
        return f"{self.sense.value} {self.value:g}"


def at_least(value: float) -> Goal:
    return Goal(Sense.AT_LEAST, value)


def at_most(value: float) -> Goal:
    return Goal(Sense.AT_MOST, value)


@dataclass(frozen=True)
class Quantity:
    """One value a round; the median speaks for them."""

    name: str
    values: Sequence[float]
    unit: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def spread(self) -> str:
        return f"{spelled(min(self.values))} – {spelled(max(self.values))}"

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "unit": self.unit, "median": self.median, "rounds": list(self.values)}


@dataclass(frozen=True)
class Ratio(Quantity):
    goal: Goal | None = None

    @property
    def met(self) -> bool | None:
        return None if self.goal is None else self.goal.met_by(self.median)

    def as_json(self) -> dict[str, Any]:
        return super().as_json() | {"goal": None if self.goal is None else str(self.goal), "met": self.met}


@dataclass(frozen=True)
class Measured:
    """The outcome of one measurement."""

    title: str
    ratios: Sequence[Ratio]
    figures: Sequence[Quantity] = ()
    foreign_cores: Sequence[float] = ()
    notes: Sequence[str] = ()
    drawing: str = ""
    """In letters, for terminals."""

    def as_json(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "ratios": [r.as_json() for r in self.ratios],
            "figures": [f.as_json() for f in self.figures],
            "foreign_cores": list(self.foreign_cores),
            "notes": list(self.notes),
            "drawing": self.drawing.splitlines(),
        }


@dataclass(frozen=True)
class Report:
    machine: Machine
    command: str
    measured: Sequence[Measured]
    seconds: float
    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def all_met(self) -> bool:
        return all(ratio.met is not False for part in self.measured for ratio in part.ratios)

    def as_json(self) -> dict[str, Any]:
        return {
            "at": self.at.isoformat(timespec="seconds"),
            "command": self.command,
            "machine": vars(self.machine),
            "seconds": round(self.seconds, 1),
            "goals_met": self.all_met,
            "measurements": [part.as_json() for part in self.measured],
        }

    def print(self, console: Console) -> None:
        ratios = Table("Ratio", "Goal", "Median", "Range", "", "Others' CPU", title="Ratios", title_justify="left")
        figures = Table("Figure", "Median", "Range", title="Figures", title_justify="left")
        for table, columns in ((ratios, ("Goal", "Median", "Range", "Others' CPU")), (figures, ("Median", "Range"))):
            for column in table.columns:
                if column.header in columns:
                    column.justify = "right"
                    column.no_wrap = True
        for part in self.measured:
            for ratio in part.ratios:
                goal = "" if ratio.goal is None else str(ratio.goal)
                ratios.add_row(
                    ratio.name, goal, spelled(ratio.median), ratio.spread, _mark(ratio), _foreign(part.foreign_cores)
                )
            figures.add_section()
            for figure in part.figures:
                figures.add_row(figure.name, f"{spelled(figure.median)} {figure.unit}".strip(), figure.spread)
        console.print(figures)
        console.print(ratios)
        for part in self.measured:
            for note in part.notes:
                console.print(f"• {note}", style="dim")
            if part.drawing:
                console.print(part.drawing, highlight=False, markup=False)
        console.print(f"{self.machine.described()}; {self.seconds:.0f} s", style="dim")

    def markdown(self) -> str:
        rows = [
            f"| {r.name} | {r.goal or ''} | **{spelled(r.median)}** | {r.spread} | {_word(r)} |"
            f" {_foreign(p.foreign_cores)} |"
            for p in self.measured
            for r in p.ratios
        ]
        parts = [
            "# Measurements",
            "",
            f"Written by `{self.command}` on {self.at:%Y-%m-%d %H:%M} UTC, in {self.seconds:.0f} s.",
            f"Machine: {self.machine.described()}.",
            "Load, server and database share the processors; PostgreSQL runs with `fsync` and `synchronous_commit` on.",
            "",
            "Both sides of a ratio are taken in turns within one run. The median over the rounds speaks; the range is",
            "that of the rounds. *Others* is what processes that are not part of the measurement used meanwhile.",
            "",
            "| Ratio | Goal | Median | Range | | Others |",
            "| --- | --- | ---: | ---: | --- | ---: |",
            *rows,
        ]
        for part in self.measured:
            parts += ["", f"## {part.title}", ""]
            if part.figures:
                parts += ["| Figure | Median | Range |", "| --- | ---: | ---: |"]
                parts += [f"| {f.name} | {spelled(f.median)} {f.unit} | {f.spread} |" for f in part.figures]
            if part.notes:
                parts += ["", *(f"- {note}" for note in part.notes)]
            if part.drawing:
                parts += ["", "```text", *part.drawing.splitlines(), "```"]
        return "\n".join(parts) + "\n"


def spelled(value: float) -> str:
    """Three digits that matter, and no more."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _mark(ratio: Ratio) -> str:
    return {None: "", True: "[green]✔[/]", False: "[red]✘[/]"}[ratio.met]


def _word(ratio: Ratio) -> str:
    return {None: "", True: "met", False: "**missed**"}[ratio.met]


def _foreign(cores: Sequence[float]) -> str:
    return f"{statistics.median(cores):.2f} cores" if cores else ""
