"""`holdfast layout validate | import | export`: seating plans in files."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn
from uuid import UUID

import msgspec
import typer

from holdfast.accounts.principal import Call
from holdfast.commands.operator import operating
from holdfast.commands.options import Data, Json, Organization, fail, id_of, print_json, settings_for
from holdfast.deployment import deployed
from holdfast.kernel.ids import new_id, parse_id
from holdfast.kernel.problems import DocumentInvalid
from holdfast.seating.answers import LayoutAnswer
from holdfast.seating.validate import LayoutInvalid, parse_layout
from holdfast.settings import Settings

if TYPE_CHECKING:
    from holdfast.app import Application

PAGE = 200

File = Annotated[Path, typer.Argument(metavar="FILE", help="The layout's config as JSON; - reads from the terminal.")]


def add_to(app: typer.Typer) -> None:
    group = typer.Typer(help="Seating plans in files.", no_args_is_help=True)
    group.command(epilog="Example: holdfast layout validate theatre.json")(validate)
    group.command(
        "import",
        epilog='Example: holdfast layout import theatre.json --venue "City Theatre" --name "Main hall"'
        " --organization 0198c0de-0000-7000-8000-000000000001",
    )(import_layout)
    group.command(
        epilog="Example: holdfast layout export 0198c0de-0000-7000-8000-00000000000a --version 2"
        " --organization 0198c0de-0000-7000-8000-000000000001 > theatre.json"
    )(export)
    app.add_typer(group, name="layout", epilog="Example: holdfast layout validate theatre.json")


def validate(file: File, data: Data = None, json: Json = False) -> None:
    """Say every problem of a layout, each with the JSON pointer of its place. Nothing is stored."""
    try:
        layout = parse_layout(new_id(), _decoded(file, _read(file)))
    except LayoutInvalid as error:
        _refuse(error, json)
    if json:
        print_json(
            {
                "valid": True,
                "seat_count": layout.seat_count,
                "total_capacity": layout.total_capacity,
                "zones": len(layout.zones),
                "problems": [],
            }
        )
    else:
        typer.echo(
            f"valid: {len(layout.zones)} zones, {layout.seat_count} numbered seats, {layout.total_capacity} places"
        )


def import_layout(
    file: File,
    organization: Organization,
    venue: Annotated[
        str | None, typer.Option(metavar="ID|NAME", help="The venue; a name not yet known makes a new one.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The layout's name.")] = None,
    layout: Annotated[
        str | None, typer.Option(metavar="ID", help="Add a version to this layout instead of making a new one.")
    ] = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Store a layout, or a new version of one."""
    organization_id = id_of("--organization", organization)
    layout_id = None if layout is None else id_of("--layout", layout)
    if layout_id is None and (venue is None or name is None):
        fail("a new layout needs --venue and --name; a new version of one needs --layout")
    config = _read(file)
    _decoded(file, config)

    async def store(settings: Settings) -> LayoutAnswer:
        async with operating(settings, organization_id) as (application, call):
            seating = application.services.seating
            if layout_id is not None:
                return await seating.create_version(call, layout_id, config)
            assert venue is not None
            assert name is not None
            parse_layout(new_id(), msgspec.json.decode(config))  # a faulty file shall not leave an empty venue behind
            return await seating.create_layout(call, await _venue(application, call, venue), name, config)

    with deployed(settings_for(data)) as deployment:
        try:
            stored = asyncio.run(store(deployment.settings))
        except DocumentInvalid as error:
            _refuse(error, json)
    if json:
        print_json(stored)
    else:
        typer.echo(
            f"layout {stored.id} version {stored.version}: {stored.name}, {stored.seat_count} numbered seats,"
            f" {stored.total_capacity} places, venue {stored.venue_id}"
        )


def export(
    layout: Annotated[str, typer.Argument(metavar="LAYOUT_ID", help="The layout's id.")],
    organization: Organization,
    version: Annotated[int | None, typer.Option(min=1, help="The latest where left out.")] = None,
    data: Data = None,
) -> None:
    """Print a layout's config, to the letter as it was stored."""
    organization_id, layout_id = id_of("--organization", organization), id_of("LAYOUT_ID", layout)

    async def read(settings: Settings) -> bytes:
        async with operating(settings, organization_id) as (application, call):
            found = await application.services.seating.get_layout(call, layout_id, version)
            assert isinstance(found.config, msgspec.Raw)
            return bytes(found.config)

    with deployed(settings_for(data)) as deployment:
        config = asyncio.run(read(deployment.settings))
    sys.stdout.buffer.write(config.rstrip() + b"\n")


async def _venue(application: "Application", call: Call, named: str) -> UUID:
    """The venue with this id or name; a new one where the name is not known."""
    venue_id = parse_id(named)
    if venue_id is not None:
        return venue_id
    seating = application.services.seating
    before: UUID | None = None
    while True:
        part = await seating.list_venues(call, before, PAGE)
        for venue in part.items:
            if venue.name == named:
                return venue.id
        if part.next_cursor is None:
            return (await seating.create_venue(call, named)).id
        before = part.items[-1].id


def _read(file: Path) -> bytes:
    return sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()


def _decoded(file: Path, content: bytes) -> object:
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        fail(f"{file} is not JSON: {error}")


def _refuse(error: DocumentInvalid, json: bool) -> NoReturn:
    """Every problem, then the end with status 1."""
    if json:
        print_json({"valid": False, "problems": error.problems})
    else:
        for problem in error.problems:
            typer.echo(f"{problem.pointer or '(document)'}: {problem.detail} [{problem.code}]", err=True)
    raise typer.Exit(1)
