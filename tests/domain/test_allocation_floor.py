"""The floor: rows, neighbours and quality of a layout."""

import math
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from holdfast.allocation.floor import Floor, floor_of
from holdfast.seating.layout import Layout
from holdfast.seating.validate import parse_layout
from tests.factories import theatre_config

LAYOUT = UUID("0198c0de-0000-7000-8000-000000000001")


def layout_of(*zones: dict[str, Any], **more: Any) -> Layout:
    return parse_layout(LAYOUT, {**more, "zones": list(zones)})


def zone_of(name: str, *seats: tuple[str, int], rows: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "zone_id": name,
        "name": name,
        "zone_type": "reserved_seating",
        "capacity": len(seats),
        "seats": [{"seat_id": f"{name}-{row}-{number}", "row": row, "number": number} for row, number in seats],
        "rows": rows or {},
        **more,
    }


def neighbours(floor: Floor) -> set[tuple[str, str]]:
    ids = floor.layout.seat_ids
    pairs = {(ids[seat], ids[other]) for seat, other in enumerate(floor.right_of) if other >= 0}
    assert pairs == {(ids[other], ids[seat]) for seat, other in enumerate(floor.left_of) if other >= 0}
    assert floor.left.tolist() == floor.left_of
    assert floor.right.tolist() == floor.right_of
    return pairs


def test_neighbours_are_consecutive_numbers_of_one_row_in_one_zone() -> None:
    stalls = zone_of("s", ("A", 3), ("A", 1), ("B", 2), ("A", 2), ("A", 5), ("B", 1))
    floor = floor_of(layout_of(stalls, zone_of("c", ("A", 4), ("A", 6))))
    assert neighbours(floor) == {("s-A-1", "s-A-2"), ("s-A-2", "s-A-3"), ("s-B-1", "s-B-2")}


def test_an_aisle_divides_the_seats_beside_it_and_no_others() -> None:
    seats = [(row, number) for row in "AB" for number in range(1, 6)]
    floor = floor_of(layout_of(zone_of("s", *seats, rows={"A": {"aisles_after": [2, 5, 9]}})))
    row_a = {(f"s-A-{n}", f"s-A-{n + 1}") for n in (1, 3, 4)}
    assert neighbours(floor) == row_a | {(f"s-B-{n}", f"s-B-{n + 1}") for n in range(1, 5)}


def test_rows_come_in_the_order_of_the_layout_and_their_seats_by_number() -> None:
    ga = {"zone_id": "pit", "name": "Pit", "zone_type": "ga_standing", "capacity": 9}
    floor = floor_of(layout_of(zone_of("s", ("B", 2), ("A", 1), ("B", 1)), ga, zone_of("c", ("B", 1))))
    assert [(row.zone_no, row.name, row.ordinals) for row in floor.rows] == [
        (0, "B", (2, 0)),
        (0, "A", (1,)),
        (2, "B", (3,)),
    ]
    assert floor.row_of.tolist() == [0, 1, 0, 2]


def test_quality_is_the_distance_to_the_focal_point_of_the_zone_or_else_the_layout() -> None:
    stalls = zone_of("s", ("A", 1), ("A", 2))
    stalls["seats"][0]["coordinates"] = {"x": 3, "y": 4}
    stalls["seats"][1]["coordinates"] = {"x": 7, "y": 1}
    circle = zone_of("c", ("A", 1), focal_point={"x": 100, "y": 0})
    circle["seats"][0]["coordinates"] = {"x": 100, "y": 50}
    floor = floor_of(layout_of(stalls, circle, focal_point={"x": 0, "y": 0}))
    assert floor.quality.tolist() == pytest.approx([5.0, math.hypot(7, 1), 50.0], abs=1e-4)


def test_without_coordinates_front_rows_and_the_middle_are_better() -> None:
    seats = [(row, number) for row in "AB" for number in range(1, 6)]
    quality = floor_of(layout_of(zone_of("s", *seats))).quality
    assert np.isfinite(quality).all()
    assert quality[:5].argmin() == 2
    assert quality[0] == quality[4] > quality[1] == quality[3] > quality[2]
    assert quality[:5].max() < quality[5:].min()


def test_seats_that_are_on_no_plan_come_behind_those_that_are() -> None:
    stalls = zone_of("s", ("A", 1), ("A", 2))
    stalls["seats"][0]["coordinates"] = {"x": 300, "y": 400}
    quality = floor_of(layout_of(stalls, focal_point={"x": 0, "y": 0})).quality
    assert quality[0] < quality[1]


def test_qualities_add_up_exactly_in_any_order() -> None:
    quality = floor_of(parse_layout(LAYOUT, theatre_config(20, 30))).quality.tolist()
    assert sum(quality) == sum(reversed(quality)) == math.fsum(quality)


def test_a_floor_is_made_once_and_a_layout_without_seats_has_one() -> None:
    layout = parse_layout(LAYOUT, theatre_config(2, 3))
    assert floor_of(layout) is floor_of(layout)
    assert layout == parse_layout(LAYOUT, theatre_config(2, 3)), "what is kept is no part of the value"
    ga = {"zone_id": "pit", "name": "Pit", "zone_type": "ga_standing", "capacity": 9}
    assert floor_of(layout_of(ga)).rows == ()
