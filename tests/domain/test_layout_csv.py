"""Layouts as CSV: what one exports is what one imports, and what is wrong is said by line and column."""

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings

from holdfast.compat import layout_csv
from holdfast.compat.layout_csv import read_csv, write_csv
from holdfast.compat.layout_file import LayoutFormat
from holdfast.compat.layout_formats import read_layout
from holdfast.seating.validate import LayoutInvalid, parse_layout
from tests.domain.configs import LAYOUT_ID, Config, layout_configs
from tests.factories import theatre_config

SIX = b"zone,row,number,x,y,category\n"


def exact(config: object) -> bytes:
    return msgspec.json.encode(config, order="sorted")


def problems_of(content: bytes) -> set[tuple[str, str]]:
    with pytest.raises(LayoutInvalid) as caught:
        read_layout(LayoutFormat.CSV, content)
    return {(problem.pointer, problem.code) for problem in caught.value.problems}


@given(layout_configs())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@example(theatre_config(2, 3, ga_capacity=10, aisle_after=2))
def test_every_layout_comes_back_from_csv_exactly(config: Config) -> None:
    assert exact(read_csv(write_csv(config).content).config) == exact(config)


def test_six_columns_are_enough() -> None:
    read = read_csv(SIX + b"stalls,A,1,10,50,wheelchair\nstalls,A,2,30.5,50,\nbox,1,1,,,standard\n")
    assert read.notes == ()
    assert read.config == {
        "zones": [
            {
                "zone_id": "stalls",
                "name": "stalls",
                "zone_type": "reserved_seating",
                "capacity": 2,
                "seats": [
                    {
                        "seat_id": "stalls-A-1",
                        "row": "A",
                        "number": 1,
                        "category": "wheelchair",
                        "coordinates": {"x": 10, "y": 50},
                    },
                    {"seat_id": "stalls-A-2", "row": "A", "number": 2, "coordinates": {"x": 30.5, "y": 50}},
                ],
            },
            {
                "zone_id": "box",
                "name": "box",
                "zone_type": "reserved_seating",
                "capacity": 1,
                "seats": [{"seat_id": "box-1-1", "row": "1", "number": 1, "category": "standard"}],
            },
        ]
    }
    parse_layout(LAYOUT_ID, read.config)


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfzone,row,number,x,y,category\r\nstalls,A,1,1.5,2,\r\n\r\n",
        b"zone;row;number;x;y;category\nstalls;A;1;1,5;2;\n",
        b"Zone\tROW\tnumber\tx\ty\tcategory\nstalls\tA\t1\t1.5\t2\t\n",
        b'"zone","row","number","x","y","category"\n"stalls","A","1","1.5","2",""\n',
        "zone,row,number,x,y,category\nstalls,A,1,1.5,2,\n".encode("utf-16"),
        b"zone,row,number,x,y,category,,\nstalls,A, 1 , 1.5,2,,,\n",
    ],
)
def test_files_as_spreadsheets_write_them_are_read(content: bytes) -> None:
    (zone,) = read_csv(content).config["zones"]
    assert zone["seats"] == [{"seat_id": "stalls-A-1", "row": "A", "number": 1, "coordinates": {"x": 1.5, "y": 2}}]


def test_zones_can_be_described_on_a_line_of_their_own_or_beside_their_seats() -> None:
    header = b"zone,row,number,x,y,category,zone_name,zone_type,capacity,access_mode,required_tier,allowed_roles,"
    header += b"aisle_after\n"
    read = read_csv(
        header
        + b"pit,,,,,,The pit,ga_standing,400,,,,\n"
        + b"box,A,1,,,,Boxes,vip_reserved,,membership_tier,gold,,1\n"
        + b"box,A,2,,,,Boxes,,,,,,\n"
        + b"staff,A,1,,,,,,,role_based,,manager|scanner,\n"
    )
    pit, box, staff = read.config["zones"]
    assert pit == {"zone_id": "pit", "name": "The pit", "zone_type": "ga_standing", "capacity": 400}
    assert (box["name"], box["zone_type"], box["required_tier"]) == ("Boxes", "vip_reserved", "gold")
    assert box["rows"] == {"A": {"aisles_after": [1]}}
    assert staff["allowed_roles"] == ["manager", "scanner"]
    parse_layout(LAYOUT_ID, read.config)


def test_no_cell_begins_a_formula_and_negative_numbers_stay_numbers() -> None:
    config = theatre_config(1, 2)
    zone = config["zones"][0]
    zone["zone_id"] = zone["name"] = '=HYPERLINK("http://x")'
    zone["seats"][0].update(seat_id="@cmd", row="-A", coordinates={"x": -5.5, "y": -1})
    zone["seats"][1].update(seat_id="'", row="+A")
    content = write_csv(config).content
    cells = [cell.strip('"') for line in content.decode().splitlines() for cell in line.split(",")]
    assert [
        cell for cell in cells if cell.startswith(("=", "+", "@", "-")) and cell not in ("-5.5", "-1", "-20.0")
    ] == []
    assert exact(read_csv(content).config) == exact(config)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", {("/lines/1", "empty")}),
        (b"\n\n", {("/lines/1", "empty")}),
        (SIX, {("", "no_zones")}),
        (b"zone,row,number\nA,1,1\n", {(f"/lines/1/{name}", "missing_column") for name in ("x", "y", "category")}),
        (b"zone,zone,row,number,x,y,category\n", {("/lines/1/zone", "duplicate_column")}),
        (b"{}", {(f"/lines/1/{name}", "missing_column") for name in ("zone", "row", "number", "x", "y", "category")}),
        (SIX + b"a,A,1,0,0\n", {("/lines/2", "ragged_line")}),
        (SIX + b"a,A,1,0,0,standard,what\n", {("/lines/2", "ragged_line")}),
        (SIX + b"a,A,one,0,0,\na,A,,0,0,\n", {("/lines/2/number", "wrong_type"), ("/lines/3/number", "missing")}),
        (SIX + b"a,A,1,left,0,\na,A,2,,0,\n", {("/lines/2/x", "wrong_type"), ("/lines/3/x", "missing")}),
        (SIX + b"a,A,1,1e9,0,\n", {("/lines/2/x", "bad_coordinate")}),
        (SIX + b"a,A,1,nan,inf,\n", {("/lines/2/x", "wrong_type"), ("/lines/2/y", "wrong_type")}),
        (SIX + b"a,A,1,0,0,sofa\n", {("/lines/2/category", "unknown_category")}),
        (SIX + b",A,1,0,0,\n", {("/lines/2/zone", "missing")}),
        (SIX + b"a,,1,0,0,\n", {("/lines/2/row", "empty")}),
        (
            SIX + b"a,A,1,0,0,\n\na,A,1,9,9,\n",
            {("/lines/4/seat_id", "duplicate_seat_id"), ("/lines/4", "duplicate_place")},
        ),
        (SIX + b"pit,,,,,\n", {("/lines/2/row", "no_seats"), ("/lines/2/capacity", "missing")}),
        (SIX + b'a,A,1,0,0,"standard\n', {("/lines/2", "bad_csv")}),
        (SIX + b"caf\xe9,A,1,0,0,\n", {("/lines/2", "bad_encoding")}),
        (SIX + b"a\0,A,1,0,0,\n", {("/lines/2", "bad_text")}),
        (
            b"zone,row,number,x,y,category,companion_seat_id\na,A,1,,,wheelchair,a-A-9\nb,A,1,,,wheelchair,a-A-1\n",
            {
                ("/lines/2/companion_seat_id", "unknown_companion"),
                ("/lines/3/companion_seat_id", "companion_in_other_zone"),
            },
        ),
        (
            b"zone,row,number,x,y,category,companion_seat_id\na,A,1,,,wheelchair,a-A-2\na,A,2,,,wheelchair,a-A-1\n",
            {("/lines/2/companion_seat_id", "companion_cycle")},
        ),
        (
            b"zone,row,number,x,y,category,zone_name\na,A,1,,,,One\na,A,2,,,,Two\n",
            {("/lines/3/zone_name", "contradiction")},
        ),
        (b"zone,row,number,x,y,category,extra\n,,,,,,{\n", {("/lines/2/extra", "not_json")}),
        (b'zone,row,number,x,y,category,extra\na,,,,,,"{""seats"": [1]}"\n', {("/lines/2/extra/seats", "misplaced")}),
        (b"zone,row,number,x,y,category,extra\n,,,,,,[1]\n", {("/lines/2/extra", "wrong_type")}),
        (b"zone,row,number,x,y,category,aisle_after\na,A,1,,,,maybe\n", {("/lines/2/aisle_after", "wrong_type")}),
        (
            b"zone,row,number,x,y,category,zone_type,capacity\na,A,1,,,,balcony,many\n",
            {("/lines/2/zone_type", "unknown_zone_type"), ("/lines/2/capacity", "wrong_type")},
        ),
    ],
)
def test_everything_wrong_with_a_file_is_said_by_line_and_column(
    content: bytes, expected: set[tuple[str, str]]
) -> None:
    assert problems_of(content) == expected


def test_a_place_named_in_a_sentence_is_a_line_too() -> None:
    with pytest.raises(LayoutInvalid) as caught:
        read_layout(LayoutFormat.CSV, SIX + b"a,A,1,0,0,\na,A,1,0,0,\n")
    assert "/lines/2" in caught.value.problems[0].detail


def test_a_wheelchair_seat_and_its_companion_may_name_each_other() -> None:
    header = b"zone,row,number,x,y,category,companion_seat_id\n"
    read = read_layout(LayoutFormat.CSV, header + b"a,A,1,,,wheelchair,a-A-2\na,A,2,,,companion,a-A-1\n")
    assert read.layout.companions == [1, 0]


def test_more_seats_than_a_layout_may_have_end_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_csv, "MAX_SEATS", 50)
    lines = b"".join(b"a,A,%d,,,\n" % number for number in range(60))
    assert problems_of(SIX + lines + b'unclosed "') == {("/lines/52", "too_many_seats")}


def test_what_is_not_known_or_was_assumed_is_noted() -> None:
    content = b"zone;row;number;x;y;category;colour\na; A;1;0,5;0;;red\na; A;2;1,5;0;;red\n"
    notes = {(note.pointer, note.code) for note in read_csv(content).notes}
    assert notes == {
        ("/lines/1/colour", "unknown_column"),
        ("/lines/2/x", "decimal_comma"),
        ("/lines/2/row", "outer_spaces"),
    }


def test_standard_seats_say_so_in_the_file_even_where_the_config_leaves_it_out() -> None:
    lines = write_csv(theatre_config(1, 2)).content.decode().splitlines()
    assert [line.split(",")[5] for line in lines if line.startswith("stalls,A,")] == ["standard", "standard"]
