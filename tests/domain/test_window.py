"""The time an analysis looks at, its steps, quantiles."""

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.insight.window import (
    POINTS_MAX,
    STEPS_S,
    Window,
    floor_to,
    histogram,
    instants,
    quantile,
    step_for,
    window_of,
)
from holdfast.kernel.errors import InvalidRequest

NOW = datetime(2030, 1, 31, 12, 34, 56, tzinfo=UTC)


def test_left_out_it_is_the_last_seven_days() -> None:
    assert window_of(None, None, NOW) == Window(NOW - timedelta(days=7), NOW)
    end = NOW - timedelta(days=30)
    assert window_of(None, end, NOW) == Window(end - timedelta(days=7), end)
    assert window_of(end, None, NOW) == Window(end, NOW)


def test_its_end_is_not_in_it() -> None:
    window = Window(NOW, NOW + timedelta(seconds=1))
    assert NOW in window
    assert window.until not in window


@pytest.mark.parametrize("since", [NOW, NOW + timedelta(microseconds=1)])
def test_it_does_not_end_before_it_begins(since: datetime) -> None:
    with pytest.raises(InvalidRequest, match="before"):
        window_of(since, NOW, NOW)
    with pytest.raises(InvalidRequest, match="which is now"):
        window_of(since, None, NOW)


@pytest.mark.parametrize("span", [timedelta(seconds=1), timedelta(hours=8), timedelta(hours=9), timedelta(days=7),
                                  timedelta(days=20), timedelta(days=400), timedelta(days=40 * 365)])  # fmt: skip
def test_a_series_has_as_many_points_as_fit_and_no_more(span: timedelta) -> None:
    window = Window(NOW, NOW + span)
    step = step_for(window)
    assert len(instants(window, step)) <= POINTS_MAX
    if step > STEPS_S[0]:
        shorter = STEPS_S[STEPS_S.index(step) - 1]
        assert len(instants(window, shorter)) > POINTS_MAX - 3


def test_instants_are_the_ends_of_the_window_and_the_round_ones_between() -> None:
    window = Window(NOW, NOW + timedelta(hours=2))
    found = instants(window, 3600)
    assert found == [
        NOW,
        NOW.replace(hour=13, minute=0, second=0),
        NOW.replace(hour=14, minute=0, second=0),
        window.until,
    ]
    assert floor_to(NOW, 86_400) == datetime(2030, 1, 31, tzinfo=UTC)


def test_a_quantile_is_a_value_that_occurs() -> None:
    counts = [(1, 5), (10, 4), (100, 1)]
    assert [quantile(counts, share) for share in (0.1, 0.5, 0.51, 0.9, 0.91, 1.0)] == [1, 1, 10, 10, 100, 100]
    assert quantile([], 0.5) is None


def test_a_histogram_loses_nobody() -> None:
    assert histogram([(0, 1), (9, 2), (10, 3), (500, 4)], (0, 10, 60)) == [3, 3, 4]
