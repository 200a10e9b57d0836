import copy
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.kernel.problems import MAX_PROBLEMS, Problems
from holdfast.seating.layout import AccessMode, GroupType, Layout, Point, RowInfo, SeatCategory, ZoneType
from holdfast.seating.seat_columns import _explained_seat, _plain_seat
from holdfast.seating.validate import (
    MAX_SEATS,
    MAX_ZONES,
    LayoutInvalid,
    parse_ga_zones,
    parse_layout,
)

LAYOUT_ID = uuid.UUID("6f2b1c1e-6b0e-4f0e-9a53-0a4f4d2f9d11")

THEATRE: dict[str, Any] = {
    "focal_point": {"x": 500, "y": 0},
    "total_capacity": 405,
    "zones": [
        {
            "zone_id": "stalls",
            "name": "Stalls",
            "zone_type": "reserved_seating",
            "capacity": 3,
            "access_mode": "public",
            "rows": {"A": {"aisles_after": [2]}},
            "seats": [
                {
                    "seat_id": "A-1",
                    "row": "A",
                    "number": 1,
                    "category": "wheelchair",
                    "companion_seat_id": "A-2",
                    "coordinates": {"x": 10, "y": 50},
                },
                {"seat_id": "A-2", "row": "A", "number": 2, "category": "companion"},
                {"seat_id": "A-3", "row": "A", "number": 3, "coordinates": {"x": 60, "y": 50.5}},
            ],
        },
        {
            "zone_id": "pit",
            "name": "Pit",
            "zone_type": "ga_standing",
            "capacity": 400,
            "access_mode": "public",
        },
        {
            "zone_id": "boxes",
            "name": "Boxes",
            "zone_type": "vip_reserved",
            "capacity": 2,
            "access_mode": "membership_tier",
            "required_tier": "gold",
            "metadata": {"floor": 2},
            "seats": [
                {"seat_id": "B-1", "row": "A", "number": 1, "companion_seat_id": None},
                {"seat_id": "B-2", "row": "A", "number": 2},
            ],
        },
    ],
    "groups": [{"group_id": "t1", "group_type": "vip_table", "seat_ids": ["A-3", "A-2"]}],
}

Edit = Callable[[dict[str, Any]], object]


def problems_of(config: object) -> set[tuple[str, str]]:
    with pytest.raises(LayoutInvalid) as caught:
        parse_layout(LAYOUT_ID, config)
    return {(problem.pointer, problem.code) for problem in caught.value.problems}


def edited(edit: Edit) -> dict[str, Any]:
    config = copy.deepcopy(THEATRE)
    edit(config)
    return config


def stalls(config: dict[str, Any]) -> dict[str, Any]:
    zone: dict[str, Any] = config["zones"][0]
    return zone


def seat(config: dict[str, Any], place: int) -> dict[str, Any]:
    found: dict[str, Any] = config["zones"][0]["seats"][place]
    return found


def test_a_sound_config_becomes_columns_in_its_own_order() -> None:
    layout = parse_layout(LAYOUT_ID, THEATRE)
    assert layout.seat_ids == ["A-1", "A-2", "A-3", "B-1", "B-2"]
    assert layout.rows == ["A"] * 5
    assert layout.numbers == [1, 2, 3, 1, 2]
    assert layout.zone_nos == [0, 0, 0, 2, 2]
    assert layout.categories[:3] == [SeatCategory.WHEELCHAIR, SeatCategory.COMPANION, SeatCategory.STANDARD]
    assert layout.xs == [10.0, None, 60.0, None, None]
    assert layout.ys == [50.0, None, 50.5, None, None]
    assert layout.companions == [1, -1, -1, -1, -1]
    assert layout.focal_point == Point(500.0, 0.0)
    assert layout.total_capacity == 405
    assert layout.seat_uuid(3) == uuid.uuid5(LAYOUT_ID, "B-1")
    [group] = layout.groups
    assert (group.group_type, group.zone_no, group.ordinals) == (GroupType.VIP_TABLE, 0, (2, 1))


def test_zones_keep_their_rules_rows_and_ranges() -> None:
    first, pit, boxes = parse_layout(LAYOUT_ID, THEATRE).zones
    assert first.rows == {"A": RowInfo(aisles_after=(2,))}
    assert (pit.zone_type, pit.first_ordinal, pit.seat_count, pit.capacity) == (
        ZoneType.GA_STANDING,
        3,
        0,
        400,
    )
    assert (boxes.access_mode, boxes.required_tier) == (AccessMode.MEMBERSHIP_TIER, "gold")
    assert (boxes.first_ordinal, boxes.seat_count) == (3, 2)
    assert boxes.metadata == {"floor": 2}
    assert boxes.id == uuid.uuid5(LAYOUT_ID, "zone:boxes")


def test_a_seat_keeps_its_id_when_a_new_version_moves_it() -> None:
    moved = edited(lambda config: config["zones"].reverse())
    old, new = parse_layout(LAYOUT_ID, THEATRE), parse_layout(LAYOUT_ID, moved)
    assert new.seat_ids.index("A-1") != 0
    assert new.seat_uuid(new.seat_ids.index("A-1")) == old.seat_uuid(0)


def test_the_older_spelling_of_the_tier_is_read_too() -> None:
    config = edited(lambda c: c["zones"][2].update(membership_tier=c["zones"][2].pop("required_tier")))
    assert parse_layout(LAYOUT_ID, config).zones[2].required_tier == "gold"


def test_a_wheelchair_and_its_companion_may_name_each_other() -> None:
    layout = parse_layout(LAYOUT_ID, edited(lambda c: seat(c, 1).update(companion_seat_id="A-1")))
    assert layout.companions[:2] == [1, 0]


S = "/zones/0/seats"
FAULTS: list[tuple[str, Edit, str, str]] = [
    ("unknown layout field", lambda c: c.update(colour=1), "/colour", "unknown_field"),
    ("a field with a slash", lambda c: c.update({"a/b~c": 1}), "/a~1b~0c", "unknown_field"),
    ("zones missing", lambda c: (c.pop("zones"), c.pop("groups")), "/zones", "missing"),
    ("zones of a wrong type", lambda c: c.update(zones={}), "/zones", "wrong_type"),
    ("no zones", lambda c: c.update(zones=[], groups=[], total_capacity=None), "/zones", "no_zones"),
    ("a zone that is no object", lambda c: c["zones"].append(7), "/zones/3", "wrong_type"),
    ("focal point without y", lambda c: c.update(focal_point={"x": 1}), "/focal_point/y", "missing"),
    ("background of a wrong type", lambda c: c.update(background_svg=1), "/background_svg", "wrong_type"),
    ("background with NUL", lambda c: c.update(background_svg="\0"), "/background_svg", "bad_text"),
    ("total not the sum", lambda c: c.update(total_capacity=404), "/total_capacity", "total_mismatch"),
    ("total a boolean", lambda c: c.update(total_capacity=True), "/total_capacity", "wrong_type"),
    ("unknown zone field", lambda c: stalls(c).update(colour=1), "/zones/0/colour", "unknown_field"),
    ("zone name missing", lambda c: stalls(c).pop("name"), "/zones/0/name", "missing"),
    ("zone name empty", lambda c: stalls(c).update(name=" "), "/zones/0/name", "empty"),
    ("zone name too long", lambda c: stalls(c).update(name="x" * 201), "/zones/0/name", "too_long"),
    ("zone name with a control", lambda c: stalls(c).update(name="a\0"), "/zones/0/name", "bad_text"),
    ("zone id a number", lambda c: stalls(c).update(zone_id=5), "/zones/0/zone_id", "wrong_type"),
    ("zone id twice", lambda c: c["zones"][2].update(zone_id="pit"), "/zones/2/zone_id", "duplicate_zone_id"),
    (
        "unknown zone type",
        lambda c: stalls(c).update(zone_type="x"),
        "/zones/0/zone_type",
        "unknown_zone_type",
    ),
    ("zone type missing", lambda c: stalls(c).pop("zone_type"), "/zones/0/zone_type", "missing"),
    (
        "capacity not the seats",
        lambda c: stalls(c).update(capacity=4),
        "/zones/0/capacity",
        "capacity_mismatch",
    ),
    ("capacity zero", lambda c: c["zones"][1].update(capacity=0), "/zones/1/capacity", "out_of_range"),
    ("capacity negative", lambda c: c["zones"][1].update(capacity=-5), "/zones/1/capacity", "out_of_range"),
    ("capacity huge", lambda c: c["zones"][1].update(capacity=10**5000), "/zones/1/capacity", "out_of_range"),
    ("capacity a boolean", lambda c: c["zones"][1].update(capacity=True), "/zones/1/capacity", "wrong_type"),
    ("capacity a fraction", lambda c: c["zones"][1].update(capacity=4.0), "/zones/1/capacity", "wrong_type"),
    (
        "seats in a GA zone",
        lambda c: stalls(c).update(zone_type="ga_seated"),
        "/zones/0/seats",
        "seats_in_ga_zone",
    ),
    ("no seats", lambda c: c["zones"][2].update(seats=[]), "/zones/2/seats", "no_seats"),
    ("seats of a wrong type", lambda c: c["zones"][2].update(seats="x"), "/zones/2/seats", "wrong_type"),
    (
        "unknown access mode",
        lambda c: stalls(c).update(access_mode="x"),
        "/zones/0/access_mode",
        "unknown_access_mode",
    ),
    ("no tier", lambda c: c["zones"][2].pop("required_tier"), "/zones/2/required_tier", "tier_required"),
    (
        "tier said twice",
        lambda c: c["zones"][2].update(membership_tier="x"),
        "/zones/2/membership_tier",
        "conflicting_fields",
    ),
    (
        "no roles",
        lambda c: stalls(c).update(access_mode="role_based"),
        "/zones/0/allowed_roles",
        "roles_required",
    ),
    (
        "a role of a wrong type",
        lambda c: stalls(c).update(allowed_roles=[1]),
        "/zones/0/allowed_roles/0",
        "wrong_type",
    ),
    ("rows of a wrong type", lambda c: stalls(c).update(rows=[]), "/zones/0/rows", "wrong_type"),
    ("row without seats", lambda c: stalls(c)["rows"].update(Q={}), "/zones/0/rows/Q", "row_without_seats"),
    ("unknown row field", lambda c: stalls(c)["rows"]["A"].update(x=1), "/zones/0/rows/A/x", "unknown_field"),
    (
        "an aisle that is no number",
        lambda c: stalls(c)["rows"]["A"].update(aisles_after=[1, "2"]),
        "/zones/0/rows/A/aisles_after/1",
        "wrong_type",
    ),
    ("metadata of a wrong type", lambda c: stalls(c).update(metadata=[]), "/zones/0/metadata", "wrong_type"),
    (
        "metadata too deep",
        lambda c: stalls(c).update(metadata=nested(9)),
        "/zones/0/metadata",
        "bad_metadata",
    ),
    (
        "metadata too big",
        lambda c: stalls(c).update(metadata={"a": 2**70}),
        "/zones/0/metadata",
        "bad_metadata",
    ),
    ("seat that is no object", lambda c: stalls(c)["seats"].__setitem__(0, None), f"{S}/0", "wrong_type"),
    ("unknown seat field", lambda c: seat(c, 1).update(status="sold"), f"{S}/1/status", "unknown_field"),
    ("seat id missing", lambda c: seat(c, 2).pop("seat_id"), f"{S}/2/seat_id", "missing"),
    ("seat id empty", lambda c: seat(c, 2).update(seat_id=""), f"{S}/2/seat_id", "empty"),
    ("seat id half a pair", lambda c: seat(c, 2).update(seat_id="\ud800"), f"{S}/2/seat_id", "bad_text"),
    ("seat id too long", lambda c: seat(c, 2).update(seat_id="x" * 101), f"{S}/2/seat_id", "too_long"),
    ("seat id twice", lambda c: seat(c, 2).update(seat_id="A-1"), f"{S}/2/seat_id", "duplicate_seat_id"),
    (
        "seat id twice across zones",
        lambda c: c["zones"][2]["seats"][0].update(seat_id="A-3"),
        "/zones/2/seats/0/seat_id",
        "duplicate_seat_id",
    ),
    ("row missing", lambda c: seat(c, 2).pop("row"), f"{S}/2/row", "missing"),
    ("row a number", lambda c: seat(c, 2).update(row=3), f"{S}/2/row", "wrong_type"),
    ("number negative", lambda c: seat(c, 2).update(number=-1), f"{S}/2/number", "out_of_range"),
    ("number a boolean", lambda c: seat(c, 2).update(number=True), f"{S}/2/number", "wrong_type"),
    ("one place twice", lambda c: seat(c, 2).update(number=2), f"{S}/2", "duplicate_place"),
    ("unknown category", lambda c: seat(c, 2).update(category="x"), f"{S}/2/category", "unknown_category"),
    (
        "category of a wrong type",
        lambda c: seat(c, 2).update(category=["aisle"]),
        f"{S}/2/category",
        "wrong_type",
    ),
    (
        "coordinates a list",
        lambda c: seat(c, 2).update(coordinates=[1, 2]),
        f"{S}/2/coordinates",
        "wrong_type",
    ),
    (
        "coordinate not finite",
        lambda c: seat(c, 2).update(coordinates={"x": float("nan"), "y": 0}),
        f"{S}/2/coordinates/x",
        "bad_coordinate",
    ),
    (
        "coordinate absurd",
        lambda c: seat(c, 2).update(coordinates={"x": 0, "y": 10**400}),
        f"{S}/2/coordinates/y",
        "bad_coordinate",
    ),
    (
        "coordinate a boolean",
        lambda c: seat(c, 2).update(coordinates={"x": True, "y": 0}),
        f"{S}/2/coordinates/x",
        "wrong_type",
    ),
    (
        "companion unknown",
        lambda c: seat(c, 0).update(companion_seat_id="Z"),
        f"{S}/0/companion_seat_id",
        "unknown_companion",
    ),
    (
        "companion itself",
        lambda c: seat(c, 0).update(companion_seat_id="A-1"),
        f"{S}/0/companion_seat_id",
        "own_companion",
    ),
    (
        "companion elsewhere",
        lambda c: seat(c, 0).update(companion_seat_id="B-1"),
        f"{S}/0/companion_seat_id",
        "companion_in_other_zone",
    ),
    (
        "two companions of each other",
        lambda c: (seat(c, 1).update(companion_seat_id="A-3"), seat(c, 2).update(companion_seat_id="A-2")),
        f"{S}/1/companion_seat_id",
        "companion_cycle",
    ),
    (
        "a ring of companions",
        lambda c: (seat(c, 1).update(companion_seat_id="A-3"), seat(c, 2).update(companion_seat_id="A-1")),
        f"{S}/0/companion_seat_id",
        "companion_cycle",
    ),
    ("groups of a wrong type", lambda c: c.update(groups={}), "/groups", "wrong_type"),
    ("unknown group field", lambda c: c["groups"][0].update(x=1), "/groups/0/x", "unknown_field"),
    ("group id missing", lambda c: c["groups"][0].pop("group_id"), "/groups/0/group_id", "missing"),
    (
        "group id twice",
        lambda c: c["groups"].append(dict(c["groups"][0])),
        "/groups/1/group_id",
        "duplicate_group_id",
    ),
    (
        "unknown group type",
        lambda c: c["groups"][0].update(group_type="x"),
        "/groups/0/group_type",
        "unknown_group_type",
    ),
    ("group empty", lambda c: c["groups"][0].update(seat_ids=[]), "/groups/0/seat_ids", "empty"),
    ("group without seats", lambda c: c["groups"][0].pop("seat_ids"), "/groups/0/seat_ids", "missing"),
    (
        "group of unknown seats",
        lambda c: c["groups"][0].update(seat_ids=["A-1", "Q"]),
        "/groups/0/seat_ids/1",
        "unknown_seat",
    ),
    (
        "group with a seat twice",
        lambda c: c["groups"][0].update(seat_ids=["A-1", "A-1"]),
        "/groups/0/seat_ids/1",
        "duplicate_seat",
    ),
    (
        "group across zones",
        lambda c: c["groups"][0].update(seat_ids=["A-1", "B-1"]),
        "/groups/0/seat_ids",
        "group_spans_zones",
    ),
]


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize(("edit", "pointer", "code"), [fault[1:] for fault in FAULTS], ids=[f[0] for f in FAULTS])
def test_each_fault_is_named_where_it_is(edit: Edit, pointer: str, code: str) -> None:
    assert (pointer, code) in problems_of(edited(edit))


INDEPENDENT = [
    "unknown layout field",
    "zone name empty",
    "zone id twice",
    "capacity zero",
    "unknown seat field",
    "category of a wrong type",
    "an aisle that is no number",
    "companion elsewhere",
    "group empty",
]


def test_every_fault_is_reported_at_once_and_nothing_besides() -> None:
    config = copy.deepcopy(THEATRE)
    chosen = [fault for fault in FAULTS if fault[0] in INDEPENDENT]
    for _, edit, _, _ in chosen:
        edit(config)
    assert problems_of(config) == {(pointer, code) for _, _, pointer, code in chosen}


def test_one_faulty_seat_raises_no_false_alarm_about_those_that_refer_to_it() -> None:
    assert problems_of(edited(lambda c: seat(c, 1).update(number="two"))) == {(f"{S}/1/number", "wrong_type")}


@pytest.mark.parametrize("config", [None, [], "x", 1, True, 1.5])
def test_a_config_that_is_no_object_has_one_problem(config: object) -> None:
    assert problems_of(config) == {("", "wrong_type")}


def test_too_many_zones_are_refused_before_any_is_read() -> None:
    assert problems_of({"zones": [None] * (MAX_ZONES + 1)}) == {("/zones", "too_many_zones")}


def test_too_many_seats_are_refused_before_any_is_read() -> None:
    config = edited(lambda c: stalls(c).update(seats=[None] * (MAX_SEATS + 1)))
    assert problems_of(config) == {("/zones", "too_many_seats")}


def test_a_long_list_of_problems_is_cut_and_says_so() -> None:
    config = edited(lambda c: stalls(c).update(seats=[None] * 3_000, capacity=3_000, rows={}))
    with pytest.raises(LayoutInvalid) as caught:
        parse_layout(LAYOUT_ID, config)
    assert len(caught.value.problems) == MAX_PROBLEMS + 1
    assert caught.value.problems[-1].code == "too_many_problems"
    assert "more problems" in caught.value.problems[-1].detail


def test_every_problem_can_be_written_as_utf_8() -> None:
    with pytest.raises(LayoutInvalid) as caught:
        parse_layout(LAYOUT_ID, {"\ud800": 1, "zones": [{"zone_type": "\udfff"}]})
    for problem in caught.value.problems:
        assert (problem.pointer + problem.detail).encode()


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["A-1", "A-2", "public", "reserved_seating", "ga_standing"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["zones", "seats", "seat_id", "x", "rows"]) | st.text(), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(json_values)
def test_arbitrary_json_is_refused_and_never_crashes(value: object) -> None:
    with pytest.raises(LayoutInvalid):
        parse_layout(LAYOUT_ID, value)
    with pytest.raises(LayoutInvalid):
        parse_ga_zones(LAYOUT_ID, value)


def places_in(value: object) -> list[tuple[Any, Any]]:
    """Every (container, key) of a document."""
    found: list[tuple[Any, Any]] = []
    keys: list[Any] = []
    if isinstance(value, dict):
        keys = list(value)
    elif isinstance(value, list):
        keys = list(range(len(value)))
    for key in keys:
        found.append((value, key))
        found += places_in(value[key])  # type: ignore[index]
    return found


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_sound_config_with_anything_anywhere_is_read_or_refused(data: st.DataObject) -> None:
    config = copy.deepcopy(THEATRE)
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(places_in(config)))
        container[key] = data.draw(json_values)
    with suppress(LayoutInvalid):
        layout = parse_layout(LAYOUT_ID, config)
        assert Layout.unpack(layout.pack()) == layout


seats = st.fixed_dictionaries(
    {},
    optional={
        "seat_id": st.text(max_size=3) | st.just("A-1"),
        "row": st.text(max_size=3) | st.just("A"),
        "number": st.integers(-1, 3) | st.booleans() | st.floats(),
        "category": st.sampled_from([*SeatCategory, "x", None, 1]),
        "coordinates": st.none()
        | st.dictionaries(st.sampled_from("xyz"), st.integers(-2_000_000, 2_000_000) | st.floats(), max_size=3),
    },
)


@settings(max_examples=500)
@given(seats)
def test_the_quick_reader_takes_only_what_the_careful_one_would(raw: dict[str, Any]) -> None:
    quick = _plain_seat(raw)
    if quick is not None:
        problems = Problems()
        assert _explained_seat(problems, "", raw) == quick
        assert not problems


def test_an_event_without_a_layout_lists_its_own_counted_zones() -> None:
    event_id = uuid.uuid4()
    layout = parse_ga_zones(
        event_id,
        [
            {"zone_id": "field", "name": "Field", "zone_type": "ga_standing", "capacity": 40_000},
            {"zone_id": "deck", "name": "Deck", "zone_type": "vip_standing", "capacity": 200},
        ],
    )
    assert layout.seat_count == 0
    assert layout.total_capacity == 40_200
    field = layout.zone("field")
    assert field is not None
    assert field.id == uuid.uuid5(event_id, "zone:field")


def test_reserved_zones_are_refused_without_a_layout() -> None:
    with pytest.raises(LayoutInvalid) as caught:
        parse_ga_zones(LAYOUT_ID, [THEATRE["zones"][0], {"zone_id": "a"}], pointer="/event/zones")
    found = {(problem.pointer, problem.code) for problem in caught.value.problems}
    assert ("/event/zones/0/zone_type", "reserved_zone_without_layout") in found
    assert ("/event/zones/1/capacity", "missing") in found


def test_a_hundred_thousand_seats_are_read_in_a_second_or_so() -> None:
    zones = [
        {
            "zone_id": f"z{zone}",
            "name": f"Zone {zone}",
            "zone_type": "reserved_seating",
            "capacity": 5_000,
            "seats": [
                {
                    "seat_id": f"{zone}-{n}",
                    "row": f"R{n // 50}",
                    "number": n % 50,
                    "coordinates": {"x": n, "y": 1.5},
                }
                for n in range(5_000)
            ],
        }
        for zone in range(20)
    ]
    start = time.perf_counter()
    layout = parse_layout(LAYOUT_ID, {"zones": zones})
    took_s = time.perf_counter() - start
    assert layout.seat_count == 100_000
    # About 0.5 s on a laptop; the margin is for a busy machine.
    assert took_s < 3
