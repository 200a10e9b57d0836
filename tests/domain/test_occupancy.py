"""Counters laid beside a layout's capacity, and instants told apart."""

from datetime import UTC, datetime
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.holds.lifecycle import SeatState
from holdfast.insight.occupancy import Count, Counted, Percents, Snapshot, Taken, includes, past, percents, reckon
from holdfast.seating.layout import Layout
from holdfast.seating.validate import parse_layout
from tests.factories import theatre_config

EVENT = UUID(int=7)
NOW = datetime(2030, 1, 1, tzinfo=UTC)
HELD, SOLD, BLOCKED = SeatState.HELD, SeatState.SOLD, SeatState.BLOCKED


def hall() -> Layout:
    """Forty seats and a pit of a hundred places."""
    return parse_layout(UUID(int=1), theatre_config(4, 10, ga_capacity=100))


def counted(*counts: Count) -> Counted:
    return Counted(NOW, "1:1:", list(counts))


def test_an_untouched_event_is_wholly_available() -> None:
    answer = reckon(EVENT, hall(), counted())
    assert (answer.available, answer.held, answer.sold, answer.blocked, answer.total) == (140, 0, 0, 0, 140)
    assert answer.percents == Percents(available=100.0, held=0.0, sold=0.0, blocked=0.0)
    assert [(zone.zone_id, zone.available, zone.total) for zone in answer.by_zone] == [
        ("stalls", 40, 40),
        ("pit", 100, 100),
    ]
    assert (answer.by_hold_type, answer.timestamp, answer.event_id) == ({}, NOW, EVENT)


def test_what_is_taken_is_told_by_zone_and_hold_type() -> None:
    answer = reckon(
        EVENT,
        hall(),
        counted(
            Count(0, HELD, "CART", 3),
            Count(0, HELD, "COMP", 2),
            Count(0, SOLD, "", 10),
            Count(0, BLOCKED, "", 1),
            Count(1, HELD, "CART", 30),
            Count(1, SOLD, "", 7),
        ),
    )
    assert (answer.available, answer.held, answer.sold, answer.blocked, answer.total) == (87, 35, 17, 1, 140)
    assert answer.by_hold_type == {"CART": 33, "COMP": 2}
    stalls, pit = answer.by_zone
    assert (stalls.available, stalls.held, stalls.sold, stalls.blocked) == (24, 5, 10, 1)
    assert stalls.by_hold_type == {"CART": 3, "COMP": 2}
    assert (pit.available, pit.held, pit.sold, pit.blocked) == (63, 30, 7, 0)
    assert pit.percents == Percents(available=63.0, held=30.0, sold=7.0, blocked=0.0)
    assert answer.percents == Percents(available=62.14, held=25.0, sold=12.14, blocked=0.71)


def test_a_counter_of_a_zone_that_is_not_there_is_never_passed_over() -> None:
    with pytest.raises(AssertionError, match=r"\[5\]"):
        reckon(EVENT, hall(), counted(Count(5, SOLD, "", 1)))


def test_percents_of_nothing_are_nothing() -> None:
    assert percents(0, 0, 0, 0) == Percents(available=0.0, held=0.0, sold=0.0, blocked=0.0)


def test_a_kept_minute_is_told_with_its_zones() -> None:
    kept = Snapshot(
        at=NOW,
        available=134,
        held=2,
        sold=4,
        blocked=0,
        total=140,
        by_zone={1: Taken(held=2, sold=4)},
        by_hold_type={"CART": 2},
    )
    told = past(hall(), kept)
    assert [(zone.zone_id, zone.available, zone.held, zone.sold, zone.total) for zone in told.by_zone] == [
        ("stalls", 40, 0, 0, 40),
        ("pit", 94, 2, 4, 100),
    ]
    assert (told.at, told.available, told.percents.sold) == (NOW, 134, 2.86)


@pytest.mark.parametrize(
    ("snapshot", "xid", "seen"),
    [
        ("10:10:", 9, True),
        ("10:10:", 10, False),
        ("10:20:10,15", 9, True),
        ("10:20:10,15", 10, False),
        ("10:20:10,15", 11, True),
        ("10:20:10,15", 15, False),
        ("10:20:10,15", 19, True),
        ("10:20:10,15", 20, False),
        ("10:20:10,150", 15, True),
        ("10:20:10", 1, True),
    ],
)
def test_an_instant_includes_what_was_over_then(snapshot: str, xid: int, seen: bool) -> None:
    assert includes(snapshot, xid) is seen


@given(st.lists(st.tuples(st.sampled_from([0, 1]), st.sampled_from([HELD, SOLD]), st.integers(0, 9)), max_size=4))
def test_the_whole_is_the_sum_of_the_zones(drawn: list[tuple[int, SeatState, int]]) -> None:
    counts = [Count(zone_no, state, "CART" if state is HELD else "", places) for zone_no, state, places in drawn]
    answer = reckon(EVENT, hall(), counted(*counts))
    for name in ("available", "held", "sold", "blocked", "total"):
        assert getattr(answer, name) == sum(getattr(zone, name) for zone in answer.by_zone)
    assert answer.available + answer.held + answer.sold + answer.blocked == answer.total
    assert sum(answer.by_hold_type.values()) == answer.held
    assert msgspec.json.decode(msgspec.json.encode(answer), type=type(answer)) == answer
