"""The measuring machinery works: every measurement in its smallest form, with no word about how fast."""

from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from holdfast.bench.load import LoadPlan, LoadResult
from holdfast.bench.machine import this_machine
from holdfast.bench.main import NAMES, measure, run
from holdfast.bench.progress import Progress
from holdfast.bench.report import Goal, Measured, Quantity, Ratio, Report, Sense, at_least, at_most
from holdfast.bench.scale import TINY


@pytest.fixture(scope="module")
def report() -> Report:
    with Progress(Console(quiet=True)) as progress:
        return measure(TINY, progress, "holdfast bench")


def test_every_measurement_brings_its_ratios(report: Report) -> None:
    assert len(report.measured) == len(NAMES)
    for part in report.measured:
        for quantity in (*part.ratios, *part.figures):
            assert quantity.values, quantity.name
            may_be_none = part.title in (
                "Live",
                "Selling out by best-available",
            )  # viewers who are wrong, seats left alone
            least = 0 if "CPU" in quantity.name or may_be_none else 1e-9
            assert all(value >= least for value in quantity.values), quantity.name


def test_goals_are_those_that_were_set(report: Report) -> None:
    goals = {ratio.name.split(" ÷")[0]: str(ratio.goal) for p in report.measured for ratio in p.ratios if ratio.goal}
    every = {ratio.name: str(ratio.goal) for p in report.measured for ratio in p.ratios}
    assert goals["HTTP reserve"] == "≥ 1.5"
    assert every["refusals ÷ hello of the same server (answers/s)"] == "≥ 0.6"
    assert every["refusals ÷ refusals without the hot tier (answers/s)"] == "≥ 3"
    assert every["reserves with both tiers ÷ without (holds/s)"] == "≥ 0.9"
    assert every["snapshot of the large event, compressed (kB)"] == "≤ 15"
    assert goals["CPU a hold at 4,000 seats"] == "≤ 1.1"
    assert goals["reserves while 500 holds expire"] == "≥ 0.8"
    assert goals["batching writer"] == "≥ 5"
    assert goals["occupancy of 4,000 seats"] == "≤ 2"
    assert every["seats left alone when 90 % are taken (% of the house)"] == "≤ 5"
    assert every["slowest choice of 1 – 8 in 100,000 seats (ms of CPU)"] == "≤ 5"


def test_the_report_is_shown_as_table_json_and_markdown(report: Report, tmp_path: Path) -> None:
    console = Console(record=True, width=200, file=(tmp_path / "out").open("w"))
    report.print(console)
    shown = console.export_text()
    page = report.markdown()
    for part in report.measured:
        assert f"## {part.title}" in page
        for ratio in part.ratios:
            assert ratio.name in shown
            assert ratio.name in page
    decoded = msgspec.json.decode(msgspec.json.encode(report.as_json()))
    assert [part["title"] for part in decoded["measurements"]] == [part.title for part in report.measured]


def test_a_missed_goal_is_said() -> None:
    missed = Ratio("a ÷ b", [0.5, 0.7, 0.6], goal=at_least(1))
    assert (missed.median, missed.met) == (0.6, False)
    assert Ratio("a ÷ b", [0.5], goal=at_most(1)).met is True
    assert Goal(Sense.AT_MOST, 1.1).met_by(1.2) is False
    report = Report(this_machine("18"), "holdfast bench", [Measured("A", [missed], [Quantity("a", [1.0])])], 1.0)
    assert not report.all_met
    assert "**missed**" in report.markdown()


def test_unexpected_answers_are_seen() -> None:
    result = LoadResult(
        seconds=1.0,
        statuses={"201": 5, "503": 1},
        warm_up_statuses={"201": 2, "409": 1},
        p50_ms=1.0,
        p99_ms=1.0,
        cpu_s=0.1,
        began_at=0.0,
        per_tenth=[6],
    )
    assert result.others("201") == {"503": 1, "409": 1}
    assert result.answers == 6


def test_an_unknown_measurement_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(only=("speed",)) == 2
    assert "speed" in capsys.readouterr().err


def test_a_plan_survives_the_way_to_the_client() -> None:
    plan = LoadPlan(port=1, connections=1, seconds=1.0, warm_up_s=0.0, heads=[b"a"], tails=[b"b"], again=True)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(plan), type=LoadPlan) == plan
