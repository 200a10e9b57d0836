"""`holdfast report`."""

import asyncio
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from holdfast.commands.operator import opened, operator_call
from holdfast.commands.options import Data, Json, fail, print_json, settings_for
from holdfast.deployment import deployed
from holdfast.insight.report import Report, report_page
from holdfast.kernel.errors import EventNotFound
from holdfast.kernel.ids import parse_id
from holdfast.settings import Settings
from holdfast.store.postgres.analytics import events_named
from holdfast.store.postgres.isolation import organizations

if TYPE_CHECKING:
    from holdfast.app import Application


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: holdfast report 'Evening at the Globe' --out report.html --from 2030-01-01")(report)


def report(
    event: Annotated[str, typer.Argument(metavar="EVENT", help="The event's id, or its exact name.")],
    out: Annotated[
        str | None, typer.Option("--out", metavar="FILE", help="Where to write the page; - for standard output.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--from", metavar="INSTANT", help="From when on; left out: the event's first move.")
    ] = None,
    until: Annotated[str | None, typer.Option("--to", metavar="INSTANT", help="Before when; left out: now.")] = None,
    json: Json = False,
    data: Data = None,
) -> None:
    """Write a page on how an event sells: occupancy, conversion, funnel, lives of holds, accessibility.

    One HTML file that needs nothing else: open it, send it, print it. Instants are in UTC unless they say otherwise; with
    --json the figures are printed instead.
    """
    begin, end = _instant("--from", since), _instant("--to", until)

    async def read(settings: Settings) -> Report:
        async with opened(settings) as application:
            organization_id, event_id = await _find(application, event)
            call = await operator_call(application, organization_id)
            return await application.services.analytics.report(call, event_id, begin, end)

    with deployed(settings_for(data)) as deployment:
        found = asyncio.run(read(deployment.settings))
    if json:
        print_json(found)
        return
    page = report_page(found)
    if out == "-":
        typer.echo(page, nl=False)
        return
    path = Path(out or _file_name(found))
    path.write_text(page, "utf-8")
    typer.echo(f"{path}: {found.moves:,} moves of {found.name!r}")


async def _find(application: "Application", wanted: str) -> tuple[UUID, UUID]:
    """The organization and the event."""
    event_id = parse_id(wanted)
    found: list[tuple[UUID, UUID]] = []
    async with application.database.transaction(engine=True) as tx:
        everybody = await organizations(tx)
    for organization_id in everybody:
        if event_id is not None:
            if await application.catalogue.event(organization_id, event_id) is not None:
                return organization_id, event_id
        else:
            async with application.database.transaction(organization_id) as tx:
                found += [(organization_id, each) for each in await events_named(tx, organization_id, wanted)]
    if event_id is not None or not found:
        raise EventNotFound
    if len(found) > 1:
        fail(f"more than one event is called {wanted!r}: give an id, such as {found[0][1]}")
    return found[0]


def _instant(name: str, text: str | None) -> datetime | None:
    """A day, or an instant, as ISO writes them."""
    if text is None:
        return None
    said = f"{name} must be a day or an instant, such as 2030-01-31 or 2030-01-31T19:30:00Z, not {text!r}"
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        fail(said)
    if not 1 < instant.year < 9999:
        fail(said)
    return instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)


def _file_name(report: Report) -> str:
    """After the event, in letters that every file system has."""
    plain = re.sub(r"[^a-z0-9]+", "-", report.name.lower()).strip("-")[:60]
    return f"report-{plain or report.event_id}.html"
