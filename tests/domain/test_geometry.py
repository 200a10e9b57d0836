"""A layout's geometry there and back: whatever the layout, the decoder finds what the encoder was given."""

import gzip
import math
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.live.geometry import CATEGORIES, GeometryInvalid, decode, encode, geometry_of
from holdfast.seating.layout import Layout
from holdfast.seating.reading import COORDINATE_LIMIT
from holdfast.seating.validate import parse_layout
from tests.factories import theatre_config

LAYOUT = UUID("0198c0de-0000-7000-8000-000000000001")

names = st.text(st.characters(categories=("L", "N"), include_characters="- ."), min_size=1, max_size=6).filter(
    lambda text: not text.isspace() and text.isprintable()
)
anywhere = st.floats(-COORDINATE_LIMIT, COORDINATE_LIMIT, allow_nan=False)
decimals = st.integers(-500_000, 500_000).map(lambda n: n / 1000)
whole = st.integers(-20_000, 20_000).map(float)


@st.composite
def zones(draw: st.DrawFn, zone_no: int, coordinates: Any) -> dict[str, Any]:
    zone: dict[str, Any] = {"zone_id": f"z{zone_no}", "name": draw(names), "capacity": 7}
    if draw(st.booleans()) and draw(st.booleans()):
        return {**zone, "zone_type": "ga_standing"}
    seats: list[dict[str, Any]] = []
    aisles: dict[str, Any] = {}
    for row in draw(st.lists(names, min_size=1, max_size=4, unique=True)):
        numbers = draw(st.lists(st.integers(0, 1_000_000) | st.integers(0, 30), min_size=1, max_size=8, unique=True))
        for number in numbers:
            seat: dict[str, Any] = {"seat_id": f"z{zone_no}/{row}/{number}", "row": row, "number": number}
            if draw(st.integers(0, 9)) == 0:
                seat["seat_id"] = f"odd {zone_no} {len(seats)}"
            seat["category"] = draw(st.sampled_from([category.value for category in CATEGORIES]))
            if draw(st.integers(0, 3)) > 0:
                seat["coordinates"] = {"x": draw(coordinates), "y": draw(coordinates)}
            seats.append(seat)
        if draw(st.booleans()):
            aisles[row] = {"aisles_after": [min(numbers)]}
    if len(seats) > 1 and draw(st.booleans()):
        seats[0]["companion_seat_id"] = seats[-1]["seat_id"]
    return {**zone, "zone_type": "reserved_seating", "capacity": len(seats), "seats": seats, "rows": aisles}


@st.composite
def layouts(draw: st.DrawFn, coordinates: Any) -> Layout:
    count = draw(st.integers(1, 3))
    config: dict[str, Any] = {"zones": [draw(zones(n, coordinates)) for n in range(count)]}
    seats = [seat["seat_id"] for seat in config["zones"][0].get("seats", [])]
    if len(seats) > 1:
        config["groups"] = [{"group_id": "g", "group_type": "family_block", "seat_ids": seats[:2]}]
    if draw(st.booleans()):
        config["focal_point"] = {"x": draw(whole), "y": draw(whole)}
    return parse_layout(LAYOUT, config)


def check(layout: Layout) -> None:
    geometry = geometry_of(layout)
    body = encode(geometry)
    found = decode(body)
    assert found == geometry
    assert encode(found) == body
    ordinals = range(layout.seat_count)
    assert [found.seat_id(ordinal) for ordinal in ordinals] == layout.seat_ids
    assert [found.seat_uuid(ordinal) for ordinal in ordinals] == [layout.seat_uuid(ordinal) for ordinal in ordinals]
    assert [found.rows[row] for row in found.columns.row] == layout.rows
    assert found.columns.number == layout.numbers
    assert [found.categories[category] for category in found.columns.category] == layout.categories
    assert found.companions == [(seat, other) for seat, other in enumerate(layout.companions) if other >= 0]
    assert [(g.group_id, g.group_type, g.ordinals) for g in found.groups] == [
        (g.group_id, g.group_type, g.ordinals) for g in layout.groups
    ]
    assert found.focal_point == layout.focal_point
    for told, zone in zip(found.zones, layout.zones, strict=True):
        assert (told.id, told.zone_id, told.name, told.zone_type) == (zone.id, zone.zone_id, zone.name, zone.zone_type)
        assert (told.capacity, told.first_ordinal, told.seat_count) == (
            zone.capacity,
            zone.first_ordinal,
            zone.seat_count,
        )
    aisles = {(found.rows[index], numbers) for index, numbers in found.aisles.items()}
    assert aisles == {
        (row, info.aisles_after) for zone in layout.zones for row, info in zone.rows.items() if info.aisles_after
    }
    for told_column, column in ((found.columns.x, layout.xs), (found.columns.y, layout.ys)):
        for told_value, value in zip(told_column, column, strict=True):
            assert (told_value is None) == (value is None)
            if told_value is not None and value is not None:
                assert abs(told_value - value) <= 0.5 / found.scale + 1e-9


many = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@given(layouts(anywhere))
@many
def test_any_layout_comes_back(layout: Layout) -> None:
    check(layout)


@given(layouts(decimals) | layouts(whole))
@many
def test_coordinates_of_a_small_layout_come_back_to_the_last_digit(layout: Layout) -> None:
    check(layout)
    geometry = geometry_of(layout)
    assert (geometry.columns.x, geometry.columns.y) == (layout.xs, layout.ys)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_a_damaged_body_is_refused_or_read_and_never_anything_else(data: st.DataObject) -> None:
    body = bytearray(encode(geometry_of(parse_layout(LAYOUT, theatre_config(2, 4, ga_capacity=3, aisle_after=2)))))
    match data.draw(st.integers(0, 2)):
        case 0:
            del body[data.draw(st.integers(0, len(body) - 1)) :]
        case 1:
            body[data.draw(st.integers(0, len(body) - 1))] ^= data.draw(st.integers(1, 255))
        case 2:
            body += data.draw(st.binary(min_size=1, max_size=9))
    try:
        decode(bytes(body))
    except GeometryInvalid:
        return


def test_what_is_no_geometry_is_refused() -> None:
    body = encode(geometry_of(parse_layout(LAYOUT, theatre_config(2, 4))))
    for wrong in (b"", b"HFGM", b"{}", body[:-4], body + b"\0\0\0\0", b"X" + body[1:], body[:4] + b"\x02" + body[5:]):
        with pytest.raises(GeometryInvalid):
            decode(wrong)


def test_a_layout_without_seats_and_one_without_places_are_told() -> None:
    ga = {"zones": [{"zone_id": "pit", "name": "Pit", "zone_type": "ga_standing", "capacity": 9}]}
    check(parse_layout(LAYOUT, ga))
    config = theatre_config(2, 4)
    for seat in config["zones"][0]["seats"]:
        del seat["coordinates"]
    check(parse_layout(LAYOUT, config))


def test_seat_ids_that_follow_their_zones_pattern_are_not_listed() -> None:
    config = theatre_config(3, 5)
    assert geometry_of(parse_layout(LAYOUT, config)).seat_ids == {}
    for seat in config["zones"][0]["seats"]:
        seat["seat_id"] = f"North/{seat['row']}.{seat['number']}"
    config["zones"][0]["seats"][7]["seat_id"] = "the box"
    geometry = geometry_of(parse_layout(LAYOUT, config))
    assert geometry.seat_ids == {7: "the box"}
    assert (geometry.zones[0].seat_id_prefix, geometry.zones[0].seat_id_separator) == ("North/", ".")


def far_apart(step: float) -> Layout:
    config = theatre_config(2, 4)
    for n, seat in enumerate(config["zones"][0]["seats"]):
        seat["coordinates"] = {"x": step * (-1) ** n, "y": 0.0}
    return parse_layout(LAYOUT, config)


def test_differences_that_do_not_fit_take_the_wider_form() -> None:
    for step, kind in ((16_000.0, b'"int16"'), (17_000.0, b'"int32"'), (COORDINATE_LIMIT, b'"int32"')):
        layout = far_apart(step)
        assert b'{"name":"x","type":' + kind in encode(geometry_of(layout))
        check(layout)


def bowl(seats: int, digits: int | None) -> Layout:
    """An oval stadium in eighty sections of curved rows, as an architect's file has it."""
    sections, rows = 80, 25
    across = seats // (sections * rows)
    zones: list[dict[str, Any]] = []
    for section in range(sections):
        listed: list[dict[str, Any]] = []
        for row in range(rows):
            radius = 13.3 * (1000 + section % 2 * 700 + row * 24)
            for n in range(across):
                angle = 2 * math.pi / sections * (section + 0.94 * (n + 0.5) / across)
                x, y = 1.4 * radius * math.cos(angle), radius * math.sin(angle)
                if digits is not None:
                    x, y = round(x, digits), round(y, digits)
                name = chr(ord("A") + row)
                listed.append(
                    {
                        "seat_id": f"S{section}-{name}-{n + 1}",
                        "row": name,
                        "number": n + 1,
                        "coordinates": {"x": x, "y": y},
                    }
                )
        zones.append(
            {
                "zone_id": f"S{section}",
                "name": f"Section {section}",
                "zone_type": "reserved_seating",
                "capacity": len(listed),
                "seats": listed,
            }
        )
    return parse_layout(LAYOUT, {"zones": zones})


@pytest.mark.parametrize("digits", [None, 0, 2])
def test_a_hundred_thousand_curved_seats_fit_in_seventy_kilobytes(digits: int | None) -> None:
    layout = bowl(100_000, digits)
    geometry = geometry_of(layout)
    body = encode(geometry)
    assert layout.seat_count == 100_000
    assert len(gzip.compress(body, 9)) <= 70_000
    assert decode(body) == geometry
    apart = np.hypot(np.diff(np.array(layout.xs[:50], float)), np.diff(np.array(layout.ys[:50], float)))
    wrong = np.hypot(
        np.array(geometry.columns.x, float) - np.array(layout.xs, float),
        np.array(geometry.columns.y, float) - np.array(layout.ys, float),
    )
    assert wrong.max() < np.median(apart) / 50
    if digits == 0:
        assert wrong.max() == 0
