"""When what failed is tried again."""

from datetime import UTC, datetime

import pytest

from holdfast.webhooks.schedule import DELAYS_S, asked_delay_s, delay_s

NOW = datetime(2031, 5, 6, 12, 0, tzinfo=UTC)


def test_tries_are_spread_over_about_three_days_and_then_it_is_given_up() -> None:
    planned = [delay_s(tries, None, 0.5) for tries in range(1, 11)]
    assert planned == [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400, None]
    assert 3 <= sum(DELAYS_S) / 86_400 <= 3.3


@pytest.mark.parametrize("tries", range(1, 10))
def test_what_failed_together_comes_back_spread_over_a_tenth_to_either_side(tries: int) -> None:
    planned = DELAYS_S[tries - 1]
    assert delay_s(tries, None, 0.0) == pytest.approx(0.9 * planned)
    assert delay_s(tries, None, 1.0) == pytest.approx(1.1 * planned)


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
def test_what_the_endpoint_asked_for_is_never_undercut_and_never_shortens_the_plan(chance: float) -> None:
    longer = delay_s(1, 120.0, chance)
    assert longer is not None
    assert 120 <= longer <= 132
    shorter = delay_s(3, 1.0, chance)
    assert shorter == delay_s(3, None, chance)


def test_an_endpoint_cannot_ask_for_more_than_a_day() -> None:
    asked = delay_s(1, 10**9, 1.0)
    assert asked is not None
    assert asked <= 1.1 * 86_400


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120.0),
        (" 7 ", 7.0),
        ("Tue, 06 May 2031 12:01:30 GMT", 90.0),
        ("Tue, 06 May 2031 11:00:00 GMT", 0.0),
        ("99999999999999999999", 86_400.0),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("", None),
        (None, None),
    ],
)
def test_a_wait_is_asked_for_in_seconds_or_as_a_date(header: str | None, seconds: float | None) -> None:
    assert asked_delay_s(header, NOW) == seconds
