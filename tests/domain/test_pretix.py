"""Seating plans of pretix, in and out: places and ids stay, and what has no place over there is said."""

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings

from holdfast.compat.layout_file import LayoutFormat
from holdfast.compat.layout_formats import guessed_format, read_layout
from holdfast.compat.pretix import read_pretix, write_pretix
from holdfast.seating.validate import MAX_SEATS, LayoutInvalid
from tests.domain.configs import Config, layout_configs
from tests.factories import theatre_config


def seat(guid: str, number: str, x: float = 0, y: float = 0, category: str = "Stalls", **more: Any) -> Config:
    return {"seat_guid": guid, "seat_number": number, "position": {"x": x, "y": y}, "category": category, **more}


def plan(*rows: Config, **zone: Any) -> Config:
    """As the editor of pretix writes it, with its defaults."""
    return {
        "name": "Playhouse",
        "categories": [{"name": "Stalls", "color": "#ff0000"}, {"name": "Wheelchair", "color": "#00ff00"}],
        "zones": [
            {
                "name": "Ground floor",
                "zone_id": "ground",
                "uuid": "u",
                "position": {"x": 100, "y": 50},
                "areas": [],
                "rows": list(rows),
                **zone,
            }
        ],
        "size": {"width": 600, "height": 400},
    }


def row(name: str, *seats: Config, x: float = 0, y: float = 0, **more: Any) -> Config:
    return {"row_number": name, "position": {"x": x, "y": y}, "seats": list(seats), "uuid": "r", **more}


def seats_of(config: Config) -> dict[str, tuple[Any, ...]]:
    return {
        seat["seat_id"]: (
            zone["zone_id"],
            zone["name"],
            seat["row"],
            seat["number"],
            seat.get("category") or "standard",
            seat["coordinates"]["x"],
            seat["coordinates"]["y"],
        )
        for zone in config["zones"]
        for seat in zone.get("seats") or ()
        if seat.get("coordinates")
    }


def problems_of(document: object) -> set[tuple[str, str]]:
    with pytest.raises(LayoutInvalid) as caught:
        read_layout(LayoutFormat.PRETIX, msgspec.json.encode(document))
    return {(problem.pointer, problem.code) for problem in caught.value.problems}


def codes(notes: Any) -> set[str]:
    return {note.code for note in notes}


def test_a_seat_lies_where_zone_row_and_seat_add_up_to() -> None:
    read = read_pretix(plan(row("A", seat("g-1", "1", 5, 7), seat("g-2", "2", 30, 7, "Wheelchair"), x=10, y=20)))
    assert read.name == "Playhouse"
    (zone,) = read.config["zones"]
    assert (zone["zone_id"], zone["name"], zone["capacity"]) == ("ground", "Ground floor", 2)
    assert zone["seats"] == [
        {"seat_id": "g-1", "row": "A", "number": 1, "coordinates": {"x": 115, "y": 77}},
        {"seat_id": "g-2", "row": "A", "number": 2, "coordinates": {"x": 140, "y": 77}, "category": "wheelchair"},
    ]


@given(layout_configs())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_places_and_ids_come_back_from_a_plan(config: Config) -> None:
    assume(any(zone.get("seats") for zone in config["zones"]))
    read = read_layout(LayoutFormat.PRETIX, write_pretix(config, "House").content)
    back, sent = seats_of(msgspec.json.decode(read.config)), seats_of(config)
    assert {seat_id: back[seat_id] for seat_id in sent} == sent
    everybody = {seat["seat_id"] for zone in config["zones"] for seat in zone.get("seats") or ()}
    assert back.keys() == everybody


def test_a_written_plan_has_what_their_schema_asks_for_and_nothing_else() -> None:
    written = msgspec.json.decode(write_pretix(theatre_config(2, 3, ga_capacity=5), "House").content)
    assert written.keys() == {"name", "categories", "zones", "size"}
    assert all(isinstance(written["size"][side], int) for side in ("width", "height"))
    uuids = []
    for zone in written["zones"]:
        assert zone.keys() <= {"name", "zone_id", "uuid", "position", "rows", "areas"}
        uuids.append(zone["uuid"])
        for line in zone["rows"]:
            assert line.keys() <= {"row_number", "row_number_position", "uuid", "seats", "position"}
            assert line["row_number_position"] in ("start", "end", "both")
            uuids.append(line["uuid"])
            for place in line["seats"]:
                assert place.keys() == {"seat_guid", "seat_number", "uuid", "position", "category", "radius"}
                assert place["category"] in {category["name"] for category in written["categories"]}
                uuids.append(place["uuid"])
    assert len(set(uuids)) == len(uuids)


def test_what_pretix_cannot_carry_is_listed_with_its_place() -> None:
    config = theatre_config(1, 3, ga_capacity=9, aisle_after=1)
    zone = config["zones"][0]
    zone.update(access_mode="membership_tier", required_tier="gold", metadata={"a": 1}, focal_point={"x": 0, "y": 0})
    zone["seats"][0].update(category="wheelchair", companion_seat_id="A-2")
    del zone["seats"][2]["coordinates"]
    config.update(
        background_svg="<svg/>", groups=[{"group_id": "g", "group_type": "family_block", "seat_ids": ["A-1", "A-2"]}]
    )
    places = {note.pointer for note in write_pretix(config, "House").notes}
    assert places >= {
        "/focal_point",
        "/background_svg",
        "/groups",
        "/zones/0/access_mode",
        "/zones/0/required_tier",
        "/zones/0/metadata",
        "/zones/0/focal_point",
        "/zones/0/rows/A/aisles_after",
        "/zones/0/seats/0/companion_seat_id",
        "/zones/0/seats/2",
        "/zones/1",
    }


def test_a_plain_theatre_needs_no_notes() -> None:
    config = theatre_config(2, 2)
    del config["focal_point"]
    assert write_pretix(config, "House").notes == ()


def test_price_classes_areas_and_other_fields_are_noted_not_dropped_in_silence() -> None:
    area = {
        "shape": "rectangle",
        "position": {"x": 10, "y": 0},
        "color": "#eee",
        "border_color": "url(javascript:1)",
        "rectangle": {"width": 90, "height": 30},
        "text": {"text": "<Stage> & more", "position": {"x": 0, "y": 0}},
    }
    read = read_pretix(
        plan(
            row("A", seat("1", "1", radius=12), seat("2", "2", 20), row_label="Row %s"), areas=[area, {"shape": "blob"}]
        )
    )
    assert codes(read.notes) == {"category_not_kept", "area_to_background", "area_not_kept", "field_not_kept"}
    background = read.config["background_svg"]
    assert '<rect x="110" y="50" width="90" height="30"' in background
    assert "&lt;Stage&gt; &amp; more" in background
    assert "javascript" not in background
    (said,) = [note for note in read.notes if note.code == "category_not_kept"]
    assert "“Stalls”" in said.detail
    assert said.detail.endswith("(2×)")


def test_rows_that_name_their_seats_are_numbered_and_rows_of_one_name_kept_apart() -> None:
    read = read_pretix(
        plan(
            row("A", seat("1", "1a"), seat("2", "1b", 20)),
            row("A", seat("3", "1", 100), seat("4", "2", 120)),
            row("B", seat("5", "1", 0, 20)),
            row("B", seat("6", "2", 20, 20)),
        )
    )
    seats = read.config["zones"][0]["seats"]
    places = [(seat["row"], seat["number"]) for seat in seats]
    assert places == [("A", 1), ("A", 2), ("A (2)", 1), ("A (2)", 2), ("B", 1), ("B", 2)]
    assert {"numbered_anew", "row_renamed"} <= codes(read.notes)


def test_rows_and_seats_without_names_are_named_by_their_place() -> None:
    read = read_pretix(plan(row("", seat("1", ""), seat("2", "", 20)), row("B", seat("3", "7"))))
    places = [(seat["row"], seat["number"]) for seat in read.config["zones"][0]["seats"]]
    assert places == [("1", 1), ("1", 2), ("B", 7)]
    assert {"row_named", "numbered_anew"} <= codes(read.notes)


def test_zones_of_one_name_are_kept_apart_and_empty_ones_left_out() -> None:
    document = plan(row("A", seat("1", "1")))
    document["zones"] += [
        {**document["zones"][0], "rows": [row("A", seat("2", "1"))]},
        {"position": {"x": 0, "y": 0}, "rows": []},
    ]
    read = read_pretix(document)
    assert [zone["zone_id"] for zone in read.config["zones"]] == ["ground", "ground-2"]
    assert {"zone_renamed", "zone_without_seats"} <= codes(read.notes)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ([], {("", "wrong_type")}),
        ({}, {("/zones", "missing")}),
        ({"zones": "many"}, {("/zones", "wrong_type")}),
        (plan(), {("/zones", "no_seats")}),
        (plan(position=None), {("/zones/0/position", "missing")}),
        (plan({"seats": []}), {("/zones/0/rows/0/row_number", "missing")}),
        (plan({"row_number": "A"}), {("/zones/0/rows/0/seats", "missing")}),
        (
            plan(row("A", {})),
            {
                (f"/zones/0/rows/0/seats/0/{name}", "missing")
                for name in ("position", "seat_number", "seat_guid", "category")
            },
        ),
        (plan(row("A", seat("1", "1", category="Box"))), {("/zones/0/rows/0/seats/0/category", "unknown_category")}),
        (
            plan(row("A", {**seat("1", "1"), "position": {"x": "left"}})),
            {
                ("/zones/0/rows/0/seats/0/position/x", "wrong_type"),
                ("/zones/0/rows/0/seats/0/position/y", "wrong_type"),
            },
        ),
        (plan(row("A", {**seat("1", "1"), "seat_number": 1})), {("/zones/0/rows/0/seats/0/seat_number", "wrong_type")}),
        (plan(row("A", seat("1", "1"), seat("1", "2"))), {("/zones/0/rows/0/seats/1/seat_guid", "duplicate_seat_id")}),
        (plan(row("A", seat("1", "1", 1e7))), {("/zones/0/rows/0/seats/0/position/x", "bad_coordinate")}),
        (plan(row("A", seat("1", "1", 1e6))), {("/zones/0/rows/0/seats/0/position/x", "bad_coordinate")}),
        (plan(row("A", seat("1", "1")), zone_id=7), {("/zones/0/zone_id", "wrong_type")}),
        (plan("A"), {("/zones/0/rows/0", "wrong_type")}),  # type: ignore[arg-type]
        (plan(row("A", seat("1\n", "1"))), {("/zones/0/rows/0/seats/0/seat_guid", "bad_text")}),
    ],
)
def test_everything_wrong_with_a_plan_is_said_with_its_pointer(
    document: object, expected: set[tuple[str, str]]
) -> None:
    assert problems_of(document) == expected


def test_more_seats_than_a_layout_may_have_are_refused_by_their_number() -> None:
    document = plan(row("A"))
    document["zones"][0]["rows"][0]["seats"] = [1] * (MAX_SEATS + 1)
    assert problems_of(document) == {("/zones/0/rows/0/seats", "too_many_seats")}


def test_a_plan_is_told_from_a_native_config_by_what_is_in_it() -> None:
    assert guessed_format("x.json", msgspec.json.encode(plan())) is LayoutFormat.PRETIX
    assert guessed_format("x.json", msgspec.json.encode(theatre_config())) is LayoutFormat.NATIVE
    assert guessed_format("", b"\xef\xbb\xbf<svg/>") is LayoutFormat.SVG
    assert guessed_format("", b"zone,row") is LayoutFormat.CSV
    assert guessed_format("a.CSV", b"{") is LayoutFormat.CSV
