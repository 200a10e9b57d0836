"""`holdfast layout` with files of every format, and its pictures."""

import asyncio
import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from holdfast.cli import build_app
from holdfast.commands.options import CommandFailed
from holdfast.compat.layout_csv import write_csv
from holdfast.compat.layout_svg_writer import write_svg
from holdfast.compat.pretix import write_pretix
from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.stage import SECRETS, stage

CONFIG = theatre_config(3, 4, ga_capacity=25, aisle_after=2)


def run(*words: str, **environment: str) -> Result:
    return CliRunner().invoke(build_app(), words, env={"NO_COLOR": "1", **environment})


def refused(*words: str) -> str:
    """The sentence a command fails with."""
    done = run(*words)
    assert isinstance(done.exception, CommandFailed), done.output
    return str(done.exception)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """One layout in every format."""
    contents = {
        "native": ("theatre.json", msgspec.json.encode(CONFIG)),
        "csv": ("theatre.csv", write_csv(CONFIG).content),
        "pretix": ("plan.json", write_pretix(CONFIG, "Theatre").content),
        "svg": ("theatre.svg", write_svg(CONFIG, "Theatre").content),
    }
    for name, content in contents.values():
        (tmp_path / name).write_bytes(content)
    return {name: tmp_path / file for name, (file, _) in contents.items()}


def test_a_file_is_known_by_its_ending_and_content(files: dict[str, Path]) -> None:
    for name, file in files.items():
        done = run("layout", "validate", str(file), "--json")
        assert done.exit_code == 0, done.output
        told = json.loads(done.stdout)
        assert (told["format"], told["seat_count"]) == (name, 12)
        assert told["total_capacity"] == (12 if name == "pretix" else 37)
        assert bool(told["notes"]) == (name == "pretix")


def test_problems_are_said_by_line_and_the_command_fails(tmp_path: Path) -> None:
    file = tmp_path / "broken.csv"
    file.write_text("zone,row,number,x,y,category\na,A,1,0,0,\na,A,1,left,0,sofa\n")
    done = run("layout", "validate", str(file))
    assert done.exit_code == 1
    assert "/lines/3/x: must be a number, not “left” [wrong_type]" in done.stderr


def test_a_wrong_format_is_refused(files: dict[str, Path]) -> None:
    done = run("layout", "validate", str(files["csv"]), "--format", "svg")
    assert (done.exit_code, "[not_xml]" in done.stderr) == (1, True)
    assert "is not JSON" in refused("layout", "validate", str(files["svg"]), "--format", "native")


def test_what_is_imported_comes_out_in_every_format_and_as_a_picture(
    database: TestDatabase, files: dict[str, Path], tmp_path: Path
) -> None:
    async def prepare() -> tuple[str, str, str]:
        async with stage(database, CONFIG, event={"overrides": {"orphan_avoidance_strict": False}}) as made:
            buyer = await made.buyer()
            assert (await made.reserve(0, buyer)).status_code == 201
            return str(made.first.organization_id), made.event_id, made.seats[0]["seat_id"]

    organization, event, held = asyncio.run(prepare())
    where = {"HOLDFAST_DATABASE_URL": database.app, "HOLDFAST_JWT_SECRETS": SECRETS}
    whose = ("--organization", organization)

    def ran(*words: str) -> Result:
        done = run("layout", *words, *whose, **where)
        assert done.exit_code == 0, (done.output, done.exception)
        return done

    stored = json.loads(ran("import", str(files["csv"]), "--venue", "House", "--name", "Hall", "--json").stdout)
    assert (stored["version"], stored["seat_count"], stored["notes"]) == (1, 12, [])
    again = json.loads(ran("import", str(files["svg"]), "--layout", stored["id"], "--json").stdout)
    assert again["version"] == 2
    named = json.loads(ran("import", str(files["pretix"]), "--venue", "House", "--json").stdout)
    assert (named["name"], named["venue_id"]) == ("Theatre", stored["venue_id"])

    native = json.loads(ran("export", stored["id"], "--version", "2").stdout)
    assert native == CONFIG
    assert ran("export", stored["id"], "--format", "csv").stdout_bytes == files["csv"].read_bytes()
    out = tmp_path / "out.svg"
    ran("export", stored["id"], "--output", str(out))
    assert json.loads(run("layout", "validate", str(out), "--json").stdout)["total_capacity"] == 37
    plan = ran("export", stored["id"], "--format", "pretix")
    assert "note: /zones/1: general admission is drawn as an area" in plan.stderr
    assert json.loads(plan.stdout)["name"] == "Hall"

    picture = tmp_path / "event.svg"
    ran("draw", "--event", event, "--output", str(picture))
    titles = [found.text or "" for found in ET.parse(picture).iter("{http://www.w3.org/2000/svg}title")]
    assert any(f"({held}): held" in title for title in titles)
    png = tmp_path / "layout.png"
    ran("draw", stored["id"], "--by", "zone", "--output", str(png), "--width", "500")
    with Image.open(png) as image:
        assert image.width == pytest.approx(500, abs=2)


def test_a_faulty_file_leaves_no_venue_behind(database: TestDatabase, tmp_path: Path) -> None:
    async def prepare() -> str:
        async with stage(database) as made:
            return str(made.first.organization_id)

    file = tmp_path / "broken.csv"
    file.write_text("zone,row,number,x,y,category\na,A,1,left,0,\n")
    where = {"HOLDFAST_DATABASE_URL": database.app, "HOLDFAST_JWT_SECRETS": SECRETS}
    whose = ("--organization", asyncio.run(prepare()))
    done = run("layout", "import", str(file), "--venue", "New house", "--name", "Hall", *whose, **where)
    assert (done.exit_code, "/lines/2/x" in done.stderr) == (1, True)

    async def venues() -> list[Any]:
        import asyncpg

        connection = await asyncpg.connect(database.owner)
        try:
            return await connection.fetch("SELECT 1 FROM venues WHERE name = 'New house'")
        finally:
            await connection.close()

    assert asyncio.run(venues()) == []


def test_a_file_is_drawn_without_a_database(files: dict[str, Path], tmp_path: Path) -> None:
    for name, file in files.items():
        svg, png = tmp_path / f"{name}.out.svg", tmp_path / f"{name}.out.png"
        assert run("layout", "draw", str(file), "--output", str(svg)).exit_code == 0
        assert svg.read_text().count("<circle") >= 12
        assert run("layout", "draw", str(file), "--by", "zone", "--output", str(png), "--width", "300").exit_code == 0
    with Image.open(tmp_path / "native.out.png") as image:
        colours = {colour for _, colour in image.convert("RGB").getcolors(100_000) or []}
    assert len(colours) > 10  # seats, their edges and letters, not an empty sheet


def test_drawing_says_in_one_line_what_it_needs(files: dict[str, Path], tmp_path: Path) -> None:
    theatre = str(files["native"])
    assert "must end in .svg or .png" in refused("layout", "draw", theatre, "--output", "plan.gif")
    assert "name a layout or a file" in refused("layout", "draw")
    assert "name an event with --event" in refused("layout", "draw", theatre, "--by", "state")
    unknown = "0198c0de-0000-7000-8000-00000000000a"
    assert "--organization is needed" in refused("layout", "draw", unknown)
    (tmp_path / "bad.csv").write_text("zone,row\n")
    assert "holdfast layout validate lists every problem" in refused("layout", "draw", str(tmp_path / "bad.csv"))
