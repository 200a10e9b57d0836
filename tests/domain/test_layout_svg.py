"""Layouts out of drawings and into them: where a shape lies, what it is, and what a drawing may not do."""

import contextlib
import math
import time
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, assume, example, given, settings

from holdfast.compat.layout_file import LayoutFormat, as_json
from holdfast.compat.layout_formats import read_layout
from holdfast.compat.layout_svg import read_svg
from holdfast.compat.layout_svg_writer import write_svg
from holdfast.seating.validate import LayoutInvalid
from tests.domain.configs import Config, layout_configs
from tests.factories import theatre_config


def svg(inside: str, **attributes: str) -> bytes:
    words = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"{words}>\n{inside}\n</svg>'
    ).encode()


def exact(config: object) -> bytes:
    return msgspec.json.encode(config, order="sorted")


def seats_of(content: bytes) -> dict[str, tuple[Any, ...]]:
    config = read_svg(content).config
    return {
        seat["seat_id"]: (
            zone["zone_id"],
            seat["row"],
            seat["number"],
            seat["coordinates"]["x"],
            seat["coordinates"]["y"],
        )
        for zone in config["zones"]
        for seat in zone["seats"]
    }


def problems_of(content: bytes) -> set[tuple[str, str]]:
    with pytest.raises(LayoutInvalid) as caught:
        read_layout(LayoutFormat.SVG, content)
    return {(problem.pointer, problem.code) for problem in caught.value.problems}


def codes(content: bytes) -> set[str]:
    return {note.code for note in read_svg(content).notes}


@given(layout_configs())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@example(theatre_config(2, 3, ga_capacity=10, aisle_after=2))
def test_every_layout_comes_back_from_its_drawing_exactly(config: Config) -> None:
    text = as_json(config)
    assume("\ufffe" not in text and "\uffff" not in text)  # no XML can say them
    read = read_svg(write_svg(config, "A <name> & more").content)
    assert exact(read.config) == exact(config)
    assert read.notes == ()


def test_what_xml_cannot_say_is_replaced_and_noted() -> None:
    config = theatre_config(1, 1)
    config["zones"][0]["name"] = "odd \uffff name"
    written = write_svg(config, "House")
    assert [note.code for note in written.notes] == ["not_carried"]
    assert read_svg(written.content).config["zones"][0]["name"] == "odd \ufffd name"


def test_people_can_read_the_drawing() -> None:
    text = write_svg(theatre_config(2, 3, ga_capacity=40), "City Theatre").content.decode()
    assert "<title>Stalls, row A, seat 1 (A-1)</title>" in text
    for words in (">City Theatre<", ">Stalls<", ">B<", ">Pit<", ">40 places<"):
        assert words in text


SEAT = 'data-seat-id="s" data-row="A" data-number="1"'


@pytest.mark.parametrize(
    ("inside", "point"),
    [
        (f'<circle cx="10" cy="20" r="5" {SEAT}/>', (10, 20)),
        (f'<circle cx="10px" cy="-2.5" r="5" {SEAT}/>', (10, -2.5)),
        (f'<ellipse cx="1e1" cy="20" rx="5" ry="2" {SEAT}/>', (10, 20)),
        (f'<rect x="10" y="20" width="8" height="4" {SEAT}/>', (14, 22)),
        (f'<polygon points="0,0 10,0 10 20 0,20" {SEAT}/>', (5, 10)),
        (f'<path d="M10 20h8v4h-8z" {SEAT}/>', (14, 22)),
        (f'<path d="M5,10 a5,5 0 1,0 10,0 a5 5 0 10-10 0z" {SEAT}/>', (10, 10)),
        (f'<path d="M 0 0 C 0 10 10 10 10 0 S 20 -10 20 0" {SEAT}/>', (10, 0)),
        (f'<g transform="translate(100 50)"><circle cx="10" cy="20" r="5" {SEAT}/></g>', (110, 70)),
        (
            f'<g transform="translate(100)"><g transform="scale(2,3)"><circle cx="10" cy="20" {SEAT}/></g></g>',
            (120, 60),
        ),
        (f'<g transform="rotate(90)"><circle cx="10" cy="20" r="5" {SEAT}/></g>', (-20, 10)),
        (f'<circle transform="rotate(180, 10, 10)" cx="0" cy="0" r="5" {SEAT}/>', (20, 20)),
        (f'<g transform="matrix(0 1 -1 0 5 6)"><circle cx="10" cy="20" r="5" {SEAT}/></g>', (-15, 16)),
        (f'<g transform="scale(2) translate(1,1)"><circle cx="10" cy="20" r="5" {SEAT}/></g>', (22, 42)),
        (f'<g transform="skewX(45)"><circle cx="10" cy="20" r="5" {SEAT}/></g>', (30, 20)),
        (
            f'<defs><circle id="c" cx="3" cy="4" transform="translate(1 1)"/></defs><use href="#c" x="10" y="20" {SEAT}/>',
            (14, 25),
        ),
        (
            f'<use xlink:href="#c" x="10" y="20" transform="scale(2)" {SEAT}/>'
            '<defs><g id="c"><rect width="4" height="2"/></g></defs>',
            (24, 42),
        ),
        (f'<g {SEAT}><circle cx="10" cy="20" r="5"/><circle cx="99" cy="99" r="1"/><text>1</text></g>', (10, 20)),
        (f'<svg x="100" y="50"><circle cx="10" cy="20" r="5" {SEAT}/></svg>', (110, 70)),
    ],
)
def test_a_seat_lies_in_the_middle_of_its_shape_with_every_transform_applied(
    inside: str, point: tuple[float, float]
) -> None:
    ((zone, row, number, x, y),) = seats_of(svg(inside)).values()
    assert (zone, row, number) == ("main", "A", 1)
    assert (x, y) == (pytest.approx(point[0]), pytest.approx(point[1]))


def test_groups_are_zones_and_rows_by_attribute_or_by_id() -> None:
    by_attribute = svg(
        '<g data-zone="stalls" data-zone-name="The stalls"><g data-row="A">'
        '<circle data-number="1" cx="1" cy="2" r="1"/><circle data-number="2" data-category="wheelchair" '
        'data-companion="stalls-A-1" cx="3" cy="2" r="1"/></g></g>'
        '<rect data-zone="pit" data-zone-type="ga_standing" data-capacity="300" width="9" height="9"/>'
    )
    stalls, pit = read_layout(LayoutFormat.SVG, by_attribute).layout.zones
    assert (stalls.zone_id, stalls.name, stalls.seat_count) == ("stalls", "The stalls", 2)
    assert (pit.zone_id, pit.capacity, pit.is_ga) == ("pit", 300, True)
    assert seats_of(svg('<g id="balcony"><g id="row-C"><circle id="x-7" cx="1" cy="2" r="1"/></g></g>')) == {
        "x-7": ("balcony", "C", 7, 1, 2)
    }
    assert seats_of(
        svg('<g id="box"><circle id="box-B-12" cx="1" cy="2" r="1"/><rect id="box_C_3" width="2" height="2"/></g>')
    ) == {
        "box-B-12": ("box", "B", 12, 1, 2),
        "box_C_3": ("box", "C", 3, 1, 1),
    }


def test_text_beside_seats_names_their_row_and_their_order_numbers_them() -> None:
    drawing = svg(
        '<g id="hall">'
        + "".join(
            f'<text x="0" y="{20 * line + 3}">{name}</text>'
            + "".join(
                f'<circle data-seat-id="{name}{at}" cx="{30 - 10 * at}" cy="{20 * line}" r="4"/>' for at in range(3)
            )
            for line, name in enumerate("AB", 1)
        )
        + "</g>"
    )
    found = seats_of(drawing)
    assert {seat: place[1] for seat, place in found.items()} == {
        f"{name}{at}": name for name in "AB" for at in range(3)
    }
    assert [found[f"A{at}"][2] for at in range(3)] == [3, 2, 1]  # from left to right
    assert {"row_by_label", "numbered_by_place"} <= codes(drawing)


def test_a_text_in_the_group_of_a_curved_row_names_it() -> None:
    seats = "".join(
        f'<circle data-seat-id="s{at}" data-number="{at}" cx="{50 * math.sin(at / 3)}" cy="{50 * math.cos(at / 3)}" r="4"/>'
        for at in range(-3, 0)
    ).replace('data-number="-', 'data-number="')
    found = seats_of(svg(f'<g id="arc"><g><text x="1" y="999"><tspan>K</tspan></text>{seats}</g></g>'))
    assert {place[1] for place in found.values()} == {"K"}


def test_what_is_no_seat_is_noted_not_dropped_in_silence() -> None:
    drawing = svg(
        f'<rect id="wall" width="9" height="9"/><image href="data:image/png;base64,AAAA"/><circle {SEAT} r="1"/>'
        '<g data-zone="empty"/>'
    )
    assert codes(drawing) == {"shape_left_out", "picture_left_out", "zone_assumed", "zone_without_seats"}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", {("/lines/1/columns/1", "not_xml")}),
        (b"<svg><circle></svg>", {("/lines/1/columns/16", "not_xml")}),
        (b"<html/>", {("/lines/1/columns/1", "not_svg")}),
        (svg(""), {("", "no_seats")}),
        (svg('<circle id="circle12" r="1"/><path id="path9-3"/>'), {("", "no_seats")}),
        (b'<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://x/svg11.dtd"><svg/>', {("", "forbidden_dtd")}),
        (b'<!DOCTYPE svg [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><svg>&b;</svg>', {("", "forbidden_dtd")}),
        (b'<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]><svg>&x;</svg>', {("", "forbidden_dtd")}),
        (b'<?xml-stylesheet href="http://x/"?><svg/>', {("/lines/1/columns/1", "external_reference")}),
        (b'<?xml version="1.0" encoding="x-none"?><svg/>', {("", "bad_encoding")}),
        (svg("<script>alert(1)</script>"), {("/lines/2/columns/1", "active_content")}),
        (
            svg('<foreignObject><p xmlns="http://www.w3.org/1999/xhtml"/></foreignObject>'),
            {("/lines/2/columns/1", "active_content")},
        ),
        (svg(f'<circle {SEAT} onclick="x()" r="1"/>'), {("/lines/2/columns/1/onclick", "active_content")}),
        (svg('<image href="http://x/a.png"/>'), {("/lines/2/columns/1/href", "external_reference")}),
        (svg('<use xlink:href="other.svg#a"/>'), {("/lines/2/columns/1/href", "external_reference")}),
        (svg('<a href="javascript:alert(1)"/>'), {("/lines/2/columns/1/href", "external_reference")}),
        (svg('<use href="data:image/svg+xml,x"/>'), {("/lines/2/columns/1/href", "external_reference")}),
        (svg('<style>@import "http://x/";</style>'), {("/lines/2/columns/28", "external_reference")}),
        (svg('<rect style="fill:url(http://x/a)"/>'), {("/lines/2/columns/1/style", "external_reference")}),
        (svg(f'<circle {SEAT} cx="1cm" r="1"/>'), {("/lines/2/columns/1/cx", "bad_geometry")}),
        (svg(f'<circle {SEAT} cx="1e999" r="1"/>'), {("/lines/2/columns/1/cx", "bad_geometry")}),
        (svg(f'<g transform="spin(3)"><circle {SEAT} r="1"/></g>'), {("/lines/2/columns/1/transform", "bad_geometry")}),
        (
            svg(f'<g transform="rotate(1,2)"><circle {SEAT} r="1"/></g>'),
            {("/lines/2/columns/1/transform", "bad_geometry")},
        ),
        (svg(f'<path {SEAT} d="M 1 x"/>'), {("/lines/2/columns/1/d", "bad_geometry")}),
        (svg(f"<path {SEAT}/>"), {("/lines/2/columns/1/d", "bad_geometry")}),
        (svg(f'<use href="#none" {SEAT}/>'), {("/lines/2/columns/1/href", "bad_geometry")}),
        (
            svg('<circle data-seat-id="s" data-number="one" data-row="A" r="1"/>'),
            {("/lines/2/columns/1/data-number", "wrong_type")},
        ),
        (svg('<circle data-seat-id="s" data-number="1" r="1"/>'), {("/lines/2/columns/1/data-row", "missing")}),
        (
            svg(f'<circle {SEAT} r="1"/>\n<circle {SEAT} r="1"/>'),
            {("/lines/3/columns/1/data-seat-id", "duplicate_seat_id"), ("/lines/3/columns/1", "duplicate_place")},
        ),
        (
            svg(f'<circle {SEAT} data-category="sofa" cx="2000000" r="1"/>'),
            {("/lines/2/columns/1/data-category", "unknown_category"), ("/lines/2/columns/1/x", "bad_coordinate")},
        ),
        (
            svg(f'<circle {SEAT} r="1"/><g data-zone="pit" data-zone-type="ga_standing"/>'),
            {("/lines/2/columns/62/data-capacity", "missing")},
        ),
        (svg(f'<circle {SEAT} r="1"/>', data_layout="[1]"), {("/lines/1/columns/1/data-layout", "wrong_type")}),
        (svg("<g>" * 300 + "</g>" * 300), {("/lines/2/columns/598", "too_large")}),
    ],
)
def test_everything_wrong_with_a_drawing_is_said_with_its_place(content: bytes, expected: set[tuple[str, str]]) -> None:
    assert problems_of(content) == expected


@pytest.mark.parametrize(
    "attributes",
    [
        f'cx="{"1" * 200_000}x"',
        f'd="M0 0a{"1" * 90_000}"',
        f'd="M0 0{"1 " * 40_000}"',
        f'id="{"-" * 200_000}"',
        f'style="fill:url({" " * 200_000}#a)"',
        f'transform="translate({"," * 200_000})"',
    ],
)
def test_an_attribute_made_to_be_slow_is_not(attributes: str) -> None:
    began = time.process_time()
    with contextlib.suppress(LayoutInvalid):
        read_svg(svg(f"<path {SEAT} {attributes}/>"))
    with contextlib.suppress(LayoutInvalid):
        read_svg(svg(f"<circle {attributes}/>"))
    assert time.process_time() - began < 2


def test_a_drawing_with_too_many_seats_or_elements_ends_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.compat import layout_svg

    seats = "".join(f'<circle data-row="A" data-number="{at}" r="1"/>' for at in range(20))
    monkeypatch.setattr(layout_svg, "MAX_SEATS", 10)
    assert {code for _, code in problems_of(svg(seats))} == {"too_many_seats"}
    monkeypatch.setattr(layout_svg, "MAX_ELEMENTS", 15)
    assert {code for _, code in problems_of(svg(seats))} == {"too_large"}
