"""Charts: round ticks, sums that are drawn true, names that stay text."""

import re
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.insight.charts import (
    Bar,
    Series,
    bars_across,
    columns,
    nice_ticks,
    short_number,
    stacked_area,
    time_ticks,
)

NOW = datetime(2030, 1, 31, 12, 34, tzinfo=UTC)
HOSTILE = "<script>alert('x')</script>&\""


@given(st.floats(0, 1e9))
def test_ticks_begin_at_nothing_reach_the_highest_and_are_few(highest: float) -> None:
    ticks = nice_ticks(highest)
    assert ticks[0] == 0
    assert ticks[-1] >= highest - 1e-9
    assert 2 <= len(ticks) <= 6
    assert all(tick == int(tick) for tick in ticks)


@pytest.mark.parametrize(
    ("highest", "ticks"), [(804, [0, 250, 500, 750, 1000]), (3, [0, 1, 2, 3]), (7, [0, 2, 4, 6, 8])]
)
def test_ticks_are_round(highest: float, ticks: list[float]) -> None:
    assert nice_ticks(highest) == ticks


@pytest.mark.parametrize("span", [timedelta(minutes=3), timedelta(hours=5), timedelta(days=2), timedelta(days=300)])
def test_ticks_of_time_lie_within_and_are_no_more_than_wanted(span: timedelta) -> None:
    found = time_ticks(NOW, NOW + span, 6)
    assert 1 <= len(found) <= 7
    assert all(NOW <= at <= NOW + span for at, _ in found)


def test_numbers_are_short() -> None:
    assert [short_number(n) for n in (0, 9_999, 10_000, 12_500, 2_000_000)] == ["0", "9,999", "10 k", "12.5 k", "2 M"]


def rects(svg: str, tone: str) -> list[dict[str, str]]:
    found = ElementTree.fromstring(svg).iter("rect")
    return [rect.attrib for rect in found if rect.get("class") == f"fill-{tone}"]


def test_bars_are_as_long_as_what_they_stand_for() -> None:
    svg = bars_across([Bar("a", [("held", 100)], ""), Bar("b", [("sold", 25)], "")], 400, "t", whole=100)
    held, sold = rects(svg, "held")[0], rects(svg, "sold")[0]
    assert float(sold["width"]) == pytest.approx(float(held["width"]) / 4, abs=0.1)
    svg = bars_across([Bar("a", [("held", 1), ("sold", 3)], "")], 400, "t")
    held, sold = rects(svg, "held")[0], rects(svg, "sold")[0]
    assert float(sold["width"]) == pytest.approx(3 * float(held["width"]), abs=0.3)
    assert float(sold["x"]) == pytest.approx(float(held["x"]) + float(held["width"]), abs=0.2)


def test_columns_stand_on_each_other() -> None:
    svg = columns(["0", "1"], [Series("x", "held", [4, 0]), Series("y", "sold", [4, 8])], 400, 200, "t")
    (held,), (low, high) = rects(svg, "held"), rects(svg, "sold")
    assert float(held["height"]) == float(low["height"]) == pytest.approx(float(high["height"]) / 2, abs=0.1)
    assert float(low["y"]) + float(low["height"]) == pytest.approx(float(held["y"]), abs=0.2)


def test_an_area_keeps_its_height_until_the_next_instant() -> None:
    at = [NOW, NOW + timedelta(hours=1), NOW + timedelta(hours=2)]
    svg = stacked_area(at, [Series("sold", "sold", [0, 10, 10])], 400, 200, "t", 10)
    (path,) = ElementTree.fromstring(svg).iter("path")
    points = [tuple(map(float, p.split())) for p in re.split("[MLZ]", path.attrib["d"]) if p]
    middle = sorted({y for x, y in points if x == points[1][0]})
    assert len(middle) == 2, "a step, not a slope"
    assert points[0][0] < points[1][0]


def test_names_are_text_and_never_markup() -> None:
    drawn = [
        bars_across([Bar(HOSTILE, [("held", 1)], HOSTILE)], 400, HOSTILE),
        columns([HOSTILE], [Series(HOSTILE, "held", [1])], 400, 200, HOSTILE),
        stacked_area([NOW, NOW + timedelta(hours=1)], [Series(HOSTILE, "held", [1, 2])], 400, 200, HOSTILE, 2),
    ]
    for svg in drawn:
        assert "<script" not in svg
        assert ElementTree.fromstring(svg).get("aria-label") == HOSTILE


@pytest.mark.parametrize("width", [320, 820])
def test_nothing_at_all_can_be_drawn(width: int) -> None:
    for svg in (bars_across([], width, "t"), columns([], [], width, 200, "t"),
                stacked_area([NOW, NOW], [Series("x", "held", [0, 0])], width, 200, "t", 0),
                bars_across([Bar("a", [("held", 0)], "0")], width, "t")):  # fmt: skip
        ElementTree.fromstring(svg)
