"""`holdfast layout draw`: a seating plan as a picture, out of a file, a stored layout or an event."""

import asyncio
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from holdfast.commands.operator import operating
from holdfast.commands.options import Data, fail, id_of, settings_for
from holdfast.compat.layout_file import LayoutFormat
from holdfast.compat.layout_formats import guessed_format, read_layout
from holdfast.deployment import deployed
from holdfast.kernel.ids import parse_id
from holdfast.seating.picture import By, Scene, draw_svg, scene_of
from holdfast.seating.validate import LayoutInvalid
from holdfast.settings import Settings


def draw(
    layout: Annotated[
        str | None, typer.Argument(metavar="LAYOUT_ID|FILE", help="A stored layout or a file; not with --event.")
    ] = None,
    output: Annotated[Path, typer.Option(help="The picture: a file that ends in .svg or .png.")] = Path("plan.svg"),
    by: Annotated[
        By | None, typer.Option(help="What the colours mean; state for an event, else category where left out.")
    ] = None,
    event: Annotated[str | None, typer.Option(metavar="ID", help="Draw this event as its seats stand now.")] = None,
    organization: Annotated[
        str | None, typer.Option(metavar="ID", help="The organization's id; not needed for a file.")
    ] = None,
    version: Annotated[int | None, typer.Option(min=1, help="Of a stored layout; the latest where left out.")] = None,
    width: Annotated[int, typer.Option(min=100, max=10_000, help="Of the picture, in pixels.")] = 1600,
    layout_format: Annotated[
        LayoutFormat | None, typer.Option("--format", help="What the file is; guessed where left out.")
    ] = None,
    data: Data = None,
) -> None:
    """Draw a seating plan."""
    if output.suffix.lower() not in (".svg", ".png"):
        fail(f"--output must end in .svg or .png, not {output.name!r}")
    if (layout is None) == (event is None):
        fail("name a layout or a file, or an event with --event")
    stored = parse_id(layout) if layout is not None else None
    if layout is not None and stored is None:
        if by in (By.STATE, By.HOLD_TYPE):
            fail(f"a file has no {by.value}; name an event with --event")
        scene = _of_file(Path(layout), layout_format, by or By.CATEGORY)
    else:
        event_id = None if event is None else id_of("--event", event)
        if stored is not None and by in (By.STATE, By.HOLD_TYPE):
            fail(f"a layout has no {by.value}; name an event with --event")
        if organization is None:
            fail("what is stored belongs to an organization: --organization is needed")
        wanted = by or (By.CATEGORY if event_id is None else By.STATE)
        with deployed(settings_for(data)) as deployment:
            scene = asyncio.run(
                _of_store(deployment.settings, id_of("--organization", organization), stored, version, event_id, wanted)
            )
    if output.suffix.lower() == ".svg":
        content = draw_svg(scene, width)
    else:
        from holdfast.seating.picture_png import draw_png  # it takes a while to load, and few need it

        content = draw_png(scene, width)
    output.write_bytes(content)
    typer.echo(f"{output}: {scene.title}, {len(scene.xs)} numbered seats")


def _of_file(file: Path, layout_format: LayoutFormat | None, by: By) -> Scene:
    content = file.read_bytes()
    try:
        checked = read_layout(layout_format or guessed_format(file.name, content), content)
    except LayoutInvalid as error:
        fail(f"{file} cannot be drawn: {error}; holdfast layout validate lists every problem")
    return scene_of(checked.layout, checked.name or file.stem, by=by)


async def _of_store(
    settings: Settings,
    organization_id: UUID,
    layout_id: UUID | None,
    version: int | None,
    event_id: UUID | None,
    by: By,
) -> Scene:
    async with operating(settings, organization_id) as (application, call):
        files = application.services.layout_files
        if event_id is not None:
            return await files.event_scene(call, event_id, by)
        assert layout_id is not None
        return await files.layout_scene(call, layout_id, version, by)
