"""`holdfast bench`: the measurements themselves are `holdfast.bench`."""

import importlib
from typing import Annotated

import typer

from holdfast.commands.options import Data, Json, fail


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: holdfast bench --quick --json")(bench)


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Shorter runs, for a first impression.")] = False,
    check: Annotated[bool, typer.Option("--check", help="End with status 3 where a goal is missed.")] = False,
    only: Annotated[list[str] | None, typer.Option(metavar="NAME", help="This measurement; may be repeated.")] = None,
    write: Annotated[str | None, typer.Option(metavar="FILE", help="Also write the report to a file.")] = None,
    json: Json = False,
    data: Data = None,
) -> None:
    """Measure this machine's holds per second, as ratios of what its database can do."""
    try:
        measurements = importlib.import_module("holdfast.bench.main")
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("holdfast.bench"):
            raise
        fail("the measurements are not part of this installation")
    raise typer.Exit(int(measurements.run(quick, json, check=check, write=write, only=only or ())))
