"""`holdfast faults`: servers killed, stopped and lied to under load, and the proof that nothing was lost by it."""

from typing import Annotated

import typer

from holdfast.commands.options import Json, fail


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: holdfast faults --seconds 60 --only valkey_killed,server_killed")(faults)


def faults(
    seconds: Annotated[float, typer.Option(min=15.0, max=3600.0, help="Load for each fault.")] = 60.0,
    only: Annotated[str | None, typer.Option(metavar="NAME,…", help="These faults; where left out, all.")] = None,
    json: Json = False,
) -> None:
    """Break a deployment of its own under load, fault by fault, and check every promise after each."""
    from holdfast.faults.ground import GroundFailed
    from holdfast.faults.main import run
    from holdfast.faults.strikes import FAULTS

    names = [name.strip() for name in (only or "").split(",") if name.strip()]
    unknown = [name for name in names if name not in FAULTS]
    if unknown:
        fail(f"there is no fault {', '.join(unknown)}: those are {', '.join(FAULTS)}")
    try:
        status = run(seconds, names, json)
    except GroundFailed as error:
        fail(f"the faults could not be run: {error}")
    raise typer.Exit(status)
