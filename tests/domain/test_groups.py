"""Seats that belong together: what a buyer must take whole, what is not for buyers, and which seats are side by side."""

import uuid
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.seating.groups import (
    clusters_of,
    describe_group,
    find_groups,
    kept_from_choice,
    require_together,
    require_whole,
    tables_among,
)
from holdfast.seating.layout import GroupType, Layout
from holdfast.seating.refusals import GroupIncomplete, GroupNotFound, GroupReserved, SeatsNotTogether
from holdfast.seating.validate import parse_layout
from tests.factories import theatre_config


def hall(**more: Any) -> Layout:
    """Two rows of ten: a table A-1…A-4, the organiser's A-5 and A-6, a family's A-7 and A-8."""
    config = theatre_config(2, 10, **more)
    config["groups"] = [
        {"group_id": "t1", "group_type": "vip_table", "seat_ids": ["A-1", "A-2", "A-3", "A-4"]},
        {"group_id": "r1", "group_type": "reserved_block", "seat_ids": ["A-5", "A-6"]},
        {"group_id": "f1", "group_type": "family_block", "seat_ids": ["A-7", "A-8"]},
    ]
    return parse_layout(uuid.UUID(int=7), config)


def test_a_layout_without_groups_binds_nobody() -> None:
    layout = parse_layout(uuid.UUID(int=7), theatre_config())
    assert layout.binding_groups == {}
    assert tables_among(layout, [0, 1]) == ()
    assert kept_from_choice(layout) == frozenset()


def test_only_tables_and_the_organisers_blocks_bind_buyers() -> None:
    layout = hall()
    assert set(layout.binding_groups) == set(range(6)) == kept_from_choice(layout)
    assert [table.group_id for table in tables_among(layout, [0, 3, 6, 12])] == ["t1"]
    assert tables_among(layout, [6, 7, 12]) == ()
    with pytest.raises(GroupReserved) as caught:
        tables_among(layout, [0, 5, 12])
    assert caught.value.facts == {"groups": ["r1"], "seats": [str(layout.seat_uuid(5))]}


def test_a_seat_of_two_groups_is_bound_by_both() -> None:
    config = theatre_config(1, 4)
    config["groups"] = [
        {"group_id": "t1", "group_type": "vip_table", "seat_ids": ["A-1", "A-2"]},
        {"group_id": "t2", "group_type": "vip_table", "seat_ids": ["A-2", "A-3"]},
    ]
    layout = parse_layout(uuid.UUID(int=7), config)
    assert [table.group_id for table in tables_among(layout, [1])] == ["t1", "t2"]


@pytest.mark.parametrize(
    ("taken", "free", "missing"),
    [
        ({0, 1, 2, 3}, {0, 1, 2, 3}, None),
        ({0}, {0, 1, 2, 3}, ["A-2", "A-3", "A-4"]),
        ({0, 1}, {0, 1}, None),  # the others are somebody's, or the buyer's own from before
        ({0, 1}, {0, 1, 3}, ["A-4"]),
        ({0, 12}, {0}, None),
    ],
)
def test_a_table_is_whole_when_nothing_free_is_left_at_it(
    taken: set[int], free: set[int], missing: list[str] | None
) -> None:
    layout = hall()
    tables = tables_among(layout, sorted(taken))
    if missing is None:
        require_whole(layout, tables, taken, free)
        return
    with pytest.raises(GroupIncomplete) as caught:
        require_whole(layout, tables, taken, free)
    assert caught.value.facts["group"] == "t1"
    assert caught.value.facts["missing_seat_ids"] == missing


def test_groups_are_found_by_name_and_unknown_ones_named() -> None:
    layout = hall()
    assert [group.group_type for group in find_groups(layout, ["f1", "t1"])] == [
        GroupType.FAMILY_BLOCK,
        GroupType.VIP_TABLE,
    ]
    with pytest.raises(GroupNotFound) as caught:
        find_groups(layout, ["t1", "t9"])
    assert caught.value.facts == {"groups": ["t9"]}


def test_a_group_says_what_it_asks() -> None:
    layout = hall()
    table, block, family = [describe_group(layout, group) for group in layout.groups]
    assert (table.zone, table.sold_whole, table.for_buyers) == ("stalls", True, True)
    assert [seat.seat_id for seat in table.seats] == ["A-1", "A-2", "A-3", "A-4"]
    assert (block.sold_whole, block.for_buyers) == (False, False)
    assert (family.sold_whole, family.for_buyers) == (False, True)


def test_neighbours_are_consecutive_numbers_of_a_row_without_an_aisle_between() -> None:
    assert clusters_of(hall(), [12, 0, 1, 9, 10, 3]) == [[0, 1], [3], [9], [10], [12]]
    assert clusters_of(hall(aisle_after=5), [3, 4, 5, 6]) == [[3, 4], [5, 6]]
    assert clusters_of(hall(), []) == []


def test_seats_apart_are_refused_with_their_parts() -> None:
    layout = hall()
    require_together(layout, [0, 1, 10, 11], 2)
    with pytest.raises(SeatsNotTogether) as caught:
        require_together(layout, [11, 0, 5, 1], 2)
    parts = [[str(layout.seat_uuid(o)) for o in part] for part in ([0, 1], [5], [11])]
    assert caught.value.facts == {"max_group_split": 2, "clusters": parts}
    assert "A-1, A-2; A-6; B-2" in caught.value.detail


@given(st.sets(st.integers(0, 19), min_size=1), st.integers(1, 9) | st.none())
def test_clusters_are_the_connected_parts_of_the_neighbourhood(picked: set[int], aisle: int | None) -> None:
    layout = hall(aisle_after=aisle) if aisle else hall()
    clusters = clusters_of(layout, picked)
    assert sorted(o for cluster in clusters for o in cluster) == sorted(picked)
    edges = {(o, o + 1) for o in range(19) if o != 9 and layout.numbers[o] != aisle}
    joined = {pair for cluster in clusters for pair in pairwise(cluster)}
    assert joined == {(a, b) for a, b in edges if a in picked and b in picked}
