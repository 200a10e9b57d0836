"""`holdfast registry status` and `holdfast registry reconcile`."""

import asyncio
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer
from rich.console import Console
from rich.table import Table

from holdfast.commands.operator import opened
from holdfast.commands.options import Data, Json, id_of, print_json, settings_for
from holdfast.deployment import deployed
from holdfast.insight.registry import RegistryStatus, summed
from holdfast.kernel.errors import EventNotFound
from holdfast.seating.view import EventView
from holdfast.settings import Settings
from holdfast.store.postgres.accounts import organization_of_event
from holdfast.store.postgres.occupancy import events_on_sale

if TYPE_CHECKING:
    from holdfast.app import Application

Event = Annotated[str | None, typer.Option("--event", metavar="ID", help="One event; without it, every event on sale.")]


def add_to(app: typer.Typer) -> None:
    group = typer.Typer(help="The registry of holds and its tiers.", no_args_is_help=True)
    group.command(epilog="Example: holdfast registry status --json")(status)
    group.command(epilog="Example: holdfast registry reconcile")(reconcile)
    group.callback()(_group)
    app.add_typer(group, name="registry", epilog="Example: holdfast registry status")


def _group() -> None:
    """The registry of holds and its tiers."""


def status(event: Event = None, data: Data = None, json: Json = False) -> None:
    """Compare what Redis says of the events on sale with the database. Exit status 1 where they differ.

    The memory of running servers is theirs: ask them with GET /api/registry/status.
    """
    _run(event, data, json, mend=False)


def reconcile(event: Event = None, data: Data = None, json: Json = False) -> None:
    """Put right what Redis says of the events on sale, from the database. Safe while tickets are sold."""
    _run(event, data, json, mend=True)


def _run(event: str | None, data: str | None, json: bool, *, mend: bool) -> None:
    event_id = None if event is None else id_of("--event", event)

    async def look(settings: Settings) -> RegistryStatus:
        async with opened(settings) as application:
            look_at = application.reconciler.reconcile if mend else application.reconciler.status
            return summed([await look_at(view) for view in await _views(application, event_id)])

    with deployed(settings_for(data)) as deployment:
        found = asyncio.run(look(deployment.settings))
    if json:
        print_json(found)
    else:
        _draw(found, mend=mend)
    if not found.consistent and not mend:
        raise typer.Exit(1)


async def _views(application: "Application", event_id: UUID | None) -> list[EventView]:
    async with application.database.transaction(engine=True) as tx:
        if event_id is None:
            on_sale = await events_on_sale(tx)
            wanted = [(organization_id, each) for organization_id, ids in on_sale.items() for each in ids]
        else:
            owner = await organization_of_event(tx, event_id)
            if owner is None:
                raise EventNotFound
            wanted = [(owner, event_id)]
    found = [await application.catalogue.event(*key) for key in wanted]
    return [view for view in found if view is not None]


def _draw(found: RegistryStatus, *, mend: bool) -> None:
    console = Console(highlight=False)
    table = Table()
    table.add_column("event")
    for column in ("held", "sold", "blocked", "live holds", "in Redis", "missing there", "wrong there"):
        table.add_column(column, justify="right")
    for each in found.events:
        warm = ["-", "-", "-"]
        if each.warm is not None:
            figures = (each.warm.holds, each.warm.missing, each.warm.wrong)
            warm = [str(figure) if each.warm.available else "away" for figure in figures]
        cold = (each.cold.held, each.cold.sold, each.cold.blocked, each.cold.holds)
        table.add_row(str(each.event_id), *map(str, cold), *warm)
    console.print(table)
    if not found.events:
        console.print("No event is on sale.")
    elif any(each.warm is None for each in found.events):
        console.print("There is no Redis here: the database alone is asked.")
    elif found.consistent:
        console.print("[green]consistent[/green]")
    else:
        done = "found and put right" if mend else "differ; put them right with: holdfast registry reconcile"
        console.print(f"[yellow]{found.drift} holds {done}[/yellow]")
