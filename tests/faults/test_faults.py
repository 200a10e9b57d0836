"""Every fault under load, in its short form, on one deployment: two API processes, PostgreSQL and Valkey, all real."""

import asyncio
import io
from collections.abc import Iterator
from contextlib import redirect_stdout

import msgspec
import pytest
from rich.console import Console
from typer.testing import CliRunner

from holdfast.cli import build_app
from holdfast.deployment import DATABASE
from holdfast.faults import main
from holdfast.faults.ground import Ground, standing_ground
from holdfast.faults.report import as_json, print_report
from holdfast.faults.run import SHORT_PLAN, Result, p95_ms, run_fault
from holdfast.faults.strikes import FAULTS
from holdfast.insight.history import TITLES, Verdict
from holdfast.insight.history_facts import Act, Operation, Outcome
from tests.conftest import TestDatabase
from tests.domain.engine import Engine
from tests.race.ground import as_owner, without_seat_state

MUST_HAPPEN = ("reserve done", "reserve refused", "release done", "sell done")
CACHES = {"availability", "occupancy", "live", "resumed live", "warm set", "warm seat keys", "warm bitmap"}


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    with standing_ground() as ground:
        yield ground


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_under_load_breaks_no_promise(ground: Ground, fault: str) -> None:
    result = run_fault(ground, fault, SHORT_PLAN)
    if any(kind not in result.outcomes for kind in MUST_HAPPEN):  # a few seconds on a busy machine: once more
        result = run_fault(ground, fault, SHORT_PLAN)
    print_report(Console(width=100), [result])
    assert {verdict.promise: verdict.offenders for verdict in result.verdicts if not verdict.ok} == {}
    assert [verdict.promise for verdict in result.verdicts] == list(TITLES)
    assert all(verdict.checked for verdict in result.verdicts)
    assert [kind for kind in MUST_HAPPEN if kind not in result.outcomes] == []
    assert set(result.caches) >= CACHES
    assert result.samples >= 4
    lost = sum(count for kind, count in result.outcomes.items() if kind.endswith("unknown"))
    assert (lost > 0) == (fault in ("server_killed", "postgres_killed"))


# Comes last: the ground is not fit for anything afterwards.
def test_an_engine_that_gives_seats_twice_is_found_out(ground: Ground) -> None:
    """The control: the same run with the guard of the seat's state taken out of the database."""
    asyncio.run(as_owner(TestDatabase(ground.postgres.address, DATABASE), *without_seat_state()))
    result = run_fault(ground, "none", SHORT_PLAN)
    broken = {verdict.promise: " ".join(verdict.offenders) for verdict in result.verdicts if not verdict.ok}
    assert "seat " in broken["I1"]
    assert not result.ok


# The report and the command ------------------------------------------------------------------------------------------
def result(*, broken: int = 0, fault: str = "valkey_killed") -> Result:
    offenders = ["seat 3 was given to B while A had it"] if broken else []
    return Result(
        fault=fault,
        seconds=60.0,
        outcomes={"reserve done": 1_200},
        verdicts=[
            Verdict(name, title, not (broken and name == "I1"), 10, broken if name == "I1" else 0, offenders)
            for name, title in TITLES.items()
        ],
        p95_before_ms=10.0,
        p95_during_ms=15.0,
        caches=["live"],
        samples=3,
    )


def test_the_report_names_what_was_broken_and_where() -> None:
    console = Console(width=80, file=io.StringIO(), record=True)
    print_report(console, [result(), result(broken=7, fault="postgres_killed")])
    shown = console.export_text()
    assert next(line.split() for line in shown.splitlines() if line.split()[:1] == ["postgres_killed"]) == [
        *("postgres_killed", "1,200", "✗7"),
        *["ok"] * 7,
        "1.5×",
    ]
    assert "postgres_killed · I1 no seat held or sold twice: seat 3 was given to B" in shown
    told = msgspec.json.decode(msgspec.json.encode(as_json([result(), result(broken=7)])))
    assert (told["ok"], [run["ok"] for run in told["runs"]]) == (False, [True, False])
    assert told["runs"][0]["p95_ratio"] == 1.5


@pytest.mark.parametrize(("broken", "status"), [(0, 0), (2, 1)])
def test_a_broken_promise_is_the_exit_status(
    monkeypatch: pytest.MonkeyPatch, broken: int, status: int, ground: Ground
) -> None:
    monkeypatch.setattr(main, "standing_ground", lambda: _given(ground))
    monkeypatch.setattr(main, "run_fault", lambda *_: result(broken=broken))
    with redirect_stdout(io.StringIO()) as out:
        assert main.run(60, ["none"], True) == status
    assert msgspec.json.decode(out.getvalue())["ok"] is (status == 0)


class _given:
    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def __enter__(self) -> Ground:
        return self._ground

    def __exit__(self, *_: object) -> None:
        pass


def test_an_unknown_fault_is_refused_before_anything_is_started() -> None:
    answer = CliRunner().invoke(build_app("faults"), ["faults", "--only", "none,earthquake"])
    assert answer.exit_code == 1
    assert "there is no fault earthquake: those are none, valkey_killed" in str(answer.exception)


def test_the_p95_is_of_answered_reserves_of_one_seat_in_that_time() -> None:
    base = Engine().reserve(Engine().buyer(1), 0, 1_010.0)

    def took(seconds: float, **changes: object) -> Operation:
        instants = {"began": 1_010.0, "began_s": 10.0, "ended_s": 10.0 + seconds}
        return msgspec.structs.replace(base, **{**instants, **changes})

    many = [took(n / 1000) for n in range(1, 101)]
    others = [
        took(9.0, act=Act.EXTEND),
        took(9.0, outcome=Outcome.UNKNOWN),
        took(9.0, ordinals=(1, 2)),
        took(9.0, began=1_020.0),
    ]
    assert p95_ms([*many, *others], 1_005.0, 1_015.0) == 95.0
    assert p95_ms(others, 1_005.0, 1_015.0) is None
