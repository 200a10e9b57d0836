"""`holdfast layout validate | import | export | draw`: seating plans in files and pictures."""

import asyncio
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn
from uuid import UUID

import typer

from holdfast.accounts.principal import Call
from holdfast.commands.layout_picture import draw
from holdfast.commands.operator import operating
from holdfast.commands.options import Data, Json, Organization, fail, id_of, print_json, settings_for
from holdfast.compat.layout_file import LayoutFormat, Note
from holdfast.compat.layout_formats import decoded_json, guessed_format, read_layout
from holdfast.deployment import deployed
from holdfast.kernel.ids import parse_id
from holdfast.kernel.problems import DocumentInvalid
from holdfast.seating.files_service import ExportedFile, ImportedLayout
from holdfast.seating.validate import LayoutInvalid
from holdfast.settings import Settings

if TYPE_CHECKING:
    from holdfast.app import Application

PAGE = 200

File = Annotated[Path, typer.Argument(metavar="FILE", help="The layout's file; - reads from the terminal.")]
Format = Annotated[
    LayoutFormat | None,
    typer.Option("--format", help="What the file is; by its ending and content where left out."),
]


def add_to(app: typer.Typer) -> None:
    group = typer.Typer(help="Seating plans in files.", no_args_is_help=True)
    group.command(epilog="Example: holdfast layout validate theatre.json")(validate)
    group.command(
        "import",
        epilog='Example: holdfast layout import theatre.json --venue "City Theatre" --name "Main hall"'
        " --organization 0198c0de-0000-7000-8000-000000000001",
    )(import_layout)
    group.command(
        epilog="Example: holdfast layout export 0198c0de-0000-7000-8000-00000000000a --format csv"
        " --organization 0198c0de-0000-7000-8000-000000000001 > theatre.csv"
    )(export)
    group.command(epilog="Example: holdfast layout draw theatre.json --by zone --output theatre.png")(draw)
    app.add_typer(group, name="layout", epilog="Example: holdfast layout validate theatre.json")


def validate(file: File, layout_format: Format = None, data: Data = None, json: Json = False) -> None:
    """Say every problem of a layout's file, each with its place. Nothing is stored."""
    content = read_file(file)
    found = layout_format or guessed_format(file.name, content)
    try:
        checked = read_layout(found, json_or_fail(file, found, content))
    except LayoutInvalid as error:
        _refuse(error, json)
    layout = checked.layout
    if json:
        print_json(
            {
                "valid": True,
                "format": found,
                "seat_count": layout.seat_count,
                "total_capacity": layout.total_capacity,
                "zones": len(layout.zones),
                "problems": [],
                "notes": checked.notes,
            }
        )
    else:
        _say_notes(checked.notes)
        typer.echo(
            f"valid: {len(layout.zones)} zones, {layout.seat_count} numbered seats, {layout.total_capacity} places"
        )


def import_layout(
    file: File,
    organization: Organization,
    venue: Annotated[
        str | None, typer.Option(metavar="ID|NAME", help="The venue; a name not yet known makes a new one.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The layout's name; a pretix plan may bring its own.")] = None,
    layout: Annotated[
        str | None, typer.Option(metavar="ID", help="Add a version to this layout instead of making a new one.")
    ] = None,
    layout_format: Format = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Store a layout, or a new version of one, out of JSON, CSV, a pretix seating plan or SVG."""
    organization_id = id_of("--organization", organization)
    layout_id = None if layout is None else id_of("--layout", layout)
    content = read_file(file)
    found = layout_format or guessed_format(file.name, content)
    json_or_fail(file, found, content)
    if layout_id is None and (venue is None or (name is None and found is not LayoutFormat.PRETIX)):
        fail("a new layout needs --venue and --name; a new version of one needs --layout")

    async def store(settings: Settings) -> ImportedLayout:
        async with operating(settings, organization_id) as (application, call):
            files = application.services.layout_files
            if layout_id is not None:
                return await files.import_version(call, layout_id, found, content)
            assert venue is not None
            await files.check(call, found, content)  # a faulty file shall not leave an empty venue behind
            return await files.import_layout(call, await _venue(application, call, venue), name, found, content)

    with deployed(settings_for(data)) as deployment:
        try:
            stored = asyncio.run(store(deployment.settings))
        except DocumentInvalid as error:
            _refuse(error, json)
    if json:
        print_json(stored)
    else:
        _say_notes(stored.notes)
        typer.echo(
            f"layout {stored.id} version {stored.version}: {stored.name}, {stored.seat_count} numbered seats,"
            f" {stored.total_capacity} places, venue {stored.venue_id}"
        )


def export(
    layout: Annotated[str, typer.Argument(metavar="LAYOUT_ID", help="The layout's id.")],
    organization: Organization,
    version: Annotated[int | None, typer.Option(min=1, help="The latest where left out.")] = None,
    layout_format: Annotated[
        LayoutFormat | None, typer.Option("--format", help="By --output's ending where left out, else native JSON.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="The file to write; the terminal where left out.")] = None,
    data: Data = None,
) -> None:
    """Write a layout's file. Native JSON is to the letter as it was stored; notes say what a format cannot carry."""
    organization_id, layout_id = id_of("--organization", organization), id_of("LAYOUT_ID", layout)
    found = layout_format or (LayoutFormat.NATIVE if output is None else guessed_format(output.name, b"{}"))

    async def read(settings: Settings) -> ExportedFile:
        async with operating(settings, organization_id) as (application, call):
            return await application.services.layout_files.export(call, layout_id, version, found)

    with deployed(settings_for(data)) as deployment:
        made = asyncio.run(read(deployment.settings))
    _say_notes(made.notes)
    content = made.content.rstrip() + b"\n" if found in (LayoutFormat.NATIVE, LayoutFormat.PRETIX) else made.content
    if output is None:
        sys.stdout.buffer.write(content)
    else:
        output.write_bytes(content)
        typer.echo(f"{output}: layout {layout_id} version {made.version} as {found}")


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


def read_file(file: Path) -> bytes:
    return sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()


def json_or_fail(file: Path, layout_format: LayoutFormat, content: bytes) -> bytes:
    """The content, unless it should be JSON and is not: that is one line."""
    if layout_format in (LayoutFormat.NATIVE, LayoutFormat.PRETIX):
        try:
            decoded_json(content)
        except LayoutInvalid as error:
            fail(f"{file} is not JSON: {error.problems[0].detail.removeprefix('the file is not JSON: ')}")
    return content


def _say_notes(notes: Iterable[Note]) -> None:
    for note in notes:
        typer.echo(f"note: {note.pointer or '(whole file)'}: {note.detail} [{note.code}]", err=True)


def _refuse(error: DocumentInvalid, json: bool) -> NoReturn:
    """Every problem, then the end with status 1."""
    if json:
        print_json({"valid": False, "problems": error.problems})
    else:
        for problem in error.problems:
            typer.echo(f"{problem.pointer or '(document)'}: {problem.detail} [{problem.code}]", err=True)
    raise typer.Exit(1)
