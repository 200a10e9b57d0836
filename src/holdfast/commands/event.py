"""`holdfast event show`."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from holdfast.accounts.principal import Call
from holdfast.commands.operator import operating
from holdfast.commands.options import Data, Json, Organization, id_of, print_json, settings_for
from holdfast.deployment import deployed
from holdfast.holds.lifecycle import SeatState
from holdfast.kernel.errors import EventNotFound
from holdfast.settings import Settings
from holdfast.store.postgres.overview import count_seats

if TYPE_CHECKING:
    from holdfast.app import Application

COLOURS = {"available": "green", "held": "yellow", "sold": "red", "blocked": "bright_black"}


def add_to(app: typer.Typer) -> None:
    group = typer.Typer(help="Events and their inventory.", no_args_is_help=True)
    group.command(
        epilog="Example: holdfast event show 0198c0de-0000-7000-8000-00000000000e"
        " --organization 0198c0de-0000-7000-8000-000000000001"
    )(show)
    group.callback()(_group)
    app.add_typer(group, name="event", epilog="Example: holdfast event show --help")


def _group() -> None:
    """Events and their inventory."""


class ZoneSummary(msgspec.Struct, frozen=True, kw_only=True):
    zone_id: str
    name: str
    zone_type: str
    capacity: int
    available: int
    held: int
    sold: int
    blocked: int


def show(
    event: Annotated[str, typer.Argument(metavar="EVENT_ID", help="The event's id.")],
    organization: Organization,
    data: Data = None,
    json: Json = False,
) -> None:
    """Show what an event is, and its places by zone and state."""
    organization_id, event_id = id_of("--organization", organization), id_of("EVENT_ID", event)

    async def read(settings: Settings) -> dict[str, Any]:
        async with operating(settings, organization_id) as (application, call):
            answer = await application.services.seating.get_event(call, event_id)
            described: dict[str, Any] = msgspec.to_builtins(answer)
            described["zones"] = await zone_summaries(application, call, event_id)
            return described

    with deployed(settings_for(data)) as deployment:
        described = asyncio.run(read(deployment.settings))
    if json:
        print_json(described)
    else:
        _draw(described)


async def zone_summaries(application: "Application", call: Call, event_id: UUID) -> list[ZoneSummary]:
    view = await application.catalogue.fresh_event(call.organization_id, event_id)
    if view is None:
        raise EventNotFound
    counted = {zone.zone_id: zone for zone in await application.services.seating.list_zones(call, event_id)}
    async with application.database.transaction(call.organization_id) as tx:
        seats = await count_seats(tx, call.organization_id, event_id)
    found: list[ZoneSummary] = []
    for zone in view.layout.zones:
        by_state = {state.value: seats.get((zone.zone_no, state.value), 0) for state in SeatState}
        if zone.zone_id in counted:
            places = counted[zone.zone_id]
            by_state |= {
                "available": places.available,
                "held": places.held,
                "sold": places.sold,
                "blocked": places.blocked,
            }
        found.append(
            ZoneSummary(
                zone_id=zone.zone_id,
                name=zone.name,
                zone_type=zone.zone_type.value,
                capacity=zone.capacity,
                **by_state,
            )
        )
    return found


def _draw(event: dict[str, Any]) -> None:
    console = Console(highlight=False)
    console.print(f"[bold]{escape(event['name'])}[/bold]  {event['status']}  [dim]{event['id']}[/dim]", soft_wrap=True)
    for label, name in (("on sale from", "sale_start"), ("until", "sale_end"), ("layout", "layout_id")):
        if event[name] is not None:
            console.print(f"{label:<13}{event[name]}", soft_wrap=True)
    table = Table()
    table.add_column("zone")
    table.add_column("kind")
    for column in ("places", *COLOURS):
        table.add_column(column, justify="right", style=COLOURS.get(column))
    zones: list[ZoneSummary] = event["zones"]
    for zone in zones:
        figures = (zone.capacity, zone.available, zone.held, zone.sold, zone.blocked)
        table.add_row(escape(zone.name), zone.zone_type.replace("_", " "), *map(str, figures))
    if len(zones) > 1:
        names = ("capacity", *COLOURS)
        totals = [str(sum(getattr(zone, name) for zone in zones)) for name in names]
        table.add_section()
        table.add_row("all", "", *totals)
    console.print(table)
    if event["published_at"] is None:
        console.print("A draft has no inventory yet; publishing makes it.")
