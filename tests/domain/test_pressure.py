"""How long a hold lasts under pressure: never outside its bounds, never longer the harder an event is bought."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.holds.pressure import FEW, WINDOW_S, Demand, Demands, adaptive_ttl_s, pressure_of
from holdfast.kernel.ids import new_id

shares = st.floats(0, 1)
lives = st.integers(1, 600_000)


@given(shares, shares, shares, shares)
def test_more_taken_or_more_refused_is_never_less_pressure(a: float, b: float, c: float, d: float) -> None:
    assert 0 <= pressure_of(a, b) <= 1
    assert pressure_of(min(a, c), min(b, d)) <= pressure_of(max(a, c), max(b, d))


def test_an_empty_event_has_none_and_a_nearly_sold_one_all_of_it() -> None:
    assert pressure_of(0, 0) == 0
    assert pressure_of(0.5, 0) == 0
    assert 0 < pressure_of(0.7, 0) < 1
    assert pressure_of(0.95, 0) == 1
    assert 0 < pressure_of(0, 0.1) < pressure_of(0.7, 0.1) < 1
    assert pressure_of(0, 0.5) == 1


@given(lives, shares, shares, lives, st.none() | lives)
def test_a_life_lies_between_its_bounds_and_shrinks_with_pressure(
    life_s: int, less: float, more: float, low_s: int, high_s: int | None
) -> None:
    less, more = sorted((less, more))
    longest = life_s if high_s is None else high_s
    calm = adaptive_ttl_s(life_s, less, low_s=low_s, high_s=high_s)
    pressed = adaptive_ttl_s(life_s, more, low_s=low_s, high_s=high_s)
    assert min(low_s, longest) <= pressed <= calm <= longest
    assert adaptive_ttl_s(life_s, 0, low_s=low_s, high_s=high_s) == longest
    assert adaptive_ttl_s(life_s, 1, low_s=low_s, high_s=high_s) == min(low_s, longest)


def test_refusals_count_for_a_minute() -> None:
    demand = Demand()
    demand.note(30, 70, 1_000.0)
    assert demand.refused_share(1_030.0) == 0.7
    demand.note(100, 0, 1_030.0)
    assert demand.refused_share(1_031.0) == 0.35
    assert demand.refused_share(1_000.0 + WINDOW_S) == 0.0
    assert demand.refused_share(1_000_000.0) == 0.0


def test_one_refusal_on_a_quiet_evening_is_no_crowd() -> None:
    demand = Demand()
    demand.note(0, 1, 5.0)
    assert demand.refused_share(5.0) == 1 / FEW


def test_pressure_is_reckoned_once_a_second_and_only_of_events_that_adapt() -> None:
    demands, event, looked = Demands(), new_id(), 0

    def taken() -> float:
        nonlocal looked
        looked += 1
        return 0.0

    demands.refused(event, "seat_not_available", lambda: 9.0)  # nobody has asked for its pressure: not counted
    assert demands.pressure(event, taken, 500, 10.0) == 0
    for _ in range(100):
        demands.refused(event, "seat_held_by_another_user", lambda: 10.1)
        demands.refused(event, "orphan_seat", lambda: 10.1)
    assert demands.pressure(event, taken, 500, 10.9) == 0
    assert demands.pressure(event, taken, 500, 11.0) == 1
    assert looked == 2
    demands.granted(event, 100, lambda: 11.5)
    assert demands.pressure(event, taken, 500, 12.0) == 1
    demands.granted(event, 900, lambda: 12.5)
    assert 0 < demands.pressure(event, taken, 500, 13.0) < 1
    # What was refused at the gate, where nobody counts by event, comes as a sum.
    assert demands.pressure(event, taken, 5_000, 14.0) == 1
