"""`holdfast report`: one page that stands alone, whatever an event is called."""

import asyncio
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from uuid import UUID

from typer.testing import CliRunner, Result

from holdfast.cli import build_app
from holdfast.compat.booking_v2 import GroupRef, SeatRef, StateSelection
from holdfast.insight.report import span_words
from tests.conftest import TestDatabase
from tests.factories import theatre_config, with_companions
from tests.http.test_reserve import held
from tests.race.ground import api_call
from tests.stage import SECRETS, Stage, stage

HOSTILE = "Tosca </title><script>alert('x')</script> & \"friends\""
EXTERNAL = re.compile(
    r"""(?:src|href|action|xlink:href)\s*=|url\(|@import|<(?:script|link|iframe|img|object|embed)\b"""
)


class Page(HTMLParser):
    """What a browser would read."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def hall(name: str) -> dict[str, object]:
    config = with_companions(theatre_config(3, 10, ga_capacity=40), (0, 1))
    config["zones"][0]["name"] = name
    return config


async def sell_some(made: Stage) -> None:
    booking, call, event = made.app.services.booking, api_call(made.first), UUID(made.event_id)
    wanted = StateSelection(
        "till", [SeatRef(made.seats[n]["booking_id"]) for n in (10, 11)], [GroupRef(made.zones[0]["booking_id"], 3)]
    )
    assert await booking.lock(call, event, wanted)
    assert await booking.sale(call, event, wanted)
    buyer = await made.buyer()
    held(await made.hold(buyer, 0, 1))
    hold = held(await made.reserve(20, buyer))
    assert (await made.client.delete(f"/api/holds/{hold['hold_id']}", headers=buyer)).status_code == 200


def test_the_page_stands_alone_and_names_are_text(database: TestDatabase, tmp_path: Path) -> None:
    async def main() -> str:
        async with stage(database, hall(HOSTILE), event={"name": HOSTILE}) as made:
            await sell_some(made)
            await made.make_event(hall("Stalls"), name="Twice")
            await made.make_event(hall("Stalls"), name="Twice")
            await made.make_event(hall("Stalls"), name="Quiet")
            return made.event_id

    event_id = asyncio.run(main())

    def report(*words: str) -> Result:
        addresses = {"HOLDFAST_DATABASE_URL": database.app, "HOLDFAST_ADMIN_DATABASE_URL": database.owner}
        return CliRunner().invoke(
            build_app("report"), ["report", *words], env={"HOLDFAST_JWT_SECRETS": SECRETS, **addresses}
        )

    out = tmp_path / "report.html"
    done = report(HOSTILE, "--out", str(out))
    assert done.exit_code == 0, done.output
    text = out.read_text()
    page = Page(text)
    assert EXTERNAL.findall(text) == []
    assert "script" not in page.tags
    assert page.tags.count("svg") >= 12
    said = " ".join(page.texts)
    assert HOSTILE in said
    for words in ("Occupancy over time", "Conversion by hold type", "Funnel", "How long holds live", "Seats left alone",
                  "Accessibility", "5 of 70 places were sold", "went to whoever had the wheelchair seat"):  # fmt: skip
        assert words in said, words

    by_id = report(event_id, "--out", "-")
    assert by_id.exit_code == 0, by_id.output
    assert "<!doctype html>" in by_id.stdout
    figures = report(event_id, "--json", "--from", "2020-01-01")
    found = json.loads(figures.stdout)
    assert found["conversion"]["places"] == {
        "placed": 8, "converted": 5, "expired": 0, "released": 1, "blocked": 0, "held": 2,
    }  # fmt: skip

    empty = report("Quiet", "--out", "-")
    assert "Nobody has held or bought anything" in empty.stdout
    assert "more than one event" in str(report("Twice").exception)
    assert "no such event" in str(report("Unheard of").exception)
    assert "no such event" in str(report("00000000-0000-7000-8000-000000000000").exception)
    assert "--from must be" in str(report("Quiet", "--from", "soon").exception)
    assert "before" in str(report("Quiet", "--from", "2999-01-01").exception)


def test_spans_are_said_in_their_own_unit() -> None:
    said = [span_words(seconds) for seconds in (None, 0, 59, 60, 90, 600, 3599, 5400, 86_400, 1_000_000)]
    assert said == ["–", "0 s", "59 s", "1 min", "1.5 min", "10 min", "60 min", "1.5 h", "1 d", "12 d"]
