"""Layouts as drawings that read back as the same layout: circles with data attributes, and labels for people."""

import base64
import uuid
from collections.abc import Mapping
from xml.sax.saxutils import quoteattr

from holdfast.compat.layout_file import (
    Config,
    Notes,
    WrittenFile,
    aisle_seats,
    as_json,
    built_zone,
    remainder,
    zone_facts,
)
from holdfast.compat.layout_svg import DRAWN, ZONE_WORDS, svg_seat
from holdfast.seating.layout import SeatCategory
from holdfast.seating.picture import CATEGORY_COLOURS, PAPER, By, Scene, scene_of, svg_box, svg_label, xml_text
from holdfast.seating.validate import parse_layout

_WORDS = {fact: word for word, fact in ZONE_WORDS.items()}
_UNSAYABLE = ("\ufffe", "\uffff")
"""The two characters of a name that XML cannot say in any way."""


def write_svg(config: Config, name: str) -> WrittenFile:
    """`config` is one that `parse_layout` accepts. Reads back as the same, but for characters that XML cannot carry."""
    notes = Notes()
    if any(char in as_json(config) for char in _UNSAYABLE):
        notes.add("", "not_carried", "the characters U+FFFE and U+FFFF are replaced: XML has no place for them")
        config = _replaced(config)
    layout = parse_layout(uuid.UUID(int=0), config)
    scene = scene_of(layout, name, by=By.CATEGORY)
    rest = {key: value for key, value in config.items() if key != "zones"}
    background = rest.pop("background_svg") if isinstance(rest.get("background_svg"), str) else None
    box = f"{scene.left:g} {scene.top:g} {scene.width:g} {scene.height:g}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" font-family="Helvetica, Arial, sans-serif"'
        + (f" data-layout={_attribute(as_json(rest))}>" if rest else ">"),
        f"<title>{xml_text(name)}</title>",
        f'<rect {DRAWN}="true" x="{scene.left:g}" y="{scene.top:g}" width="{scene.width:g}" height="{scene.height:g}"'
        f' fill="{PAPER}"/>',
    ]
    if background is not None:
        said = base64.b64encode(background.encode()).decode()
        place = f'x="{scene.left:g}" y="{scene.top:g}" width="{scene.width:g}" height="{scene.height:g}"'
        parts.append(f'<image {place} href="data:image/svg+xml;base64,{said}"/>')
        notes.add(
            "/background_svg", "placed", "the background is shown over the whole drawing; where it lies is not known"
        )
    ordinal = 0
    for zone_no, zone in enumerate(config["zones"]):
        parts += _zone(zone, f"/zones/{zone_no}", scene, ordinal, notes)
        ordinal += len(zone.get("seats") or ())
    parts.append(f'<g {DRAWN}="true">')
    parts += [svg_box(drawn) for drawn in scene.boxes]
    parts += [svg_label(label) for label in scene.labels if label.text]
    parts.append("</g>")
    parts.append("</svg>\n")
    return WrittenFile(content="\n".join(parts).encode(), notes=notes.listed())


def _zone(zone: Config, pointer: str, scene: Scene, first: int, notes: Notes) -> list[str]:
    seats: list[Config] = zone.get("seats") or []
    aisles = aisle_seats(zone)
    found: dict[str, list[int]] = {}
    drawn: list[str] = []
    for place, seat in enumerate(seats):
        x, y = float(scene.xs[first + place]), float(scene.ys[first + place])
        drawn.append(_seat(seat, x, y, scene, first + place, (seat["row"], seat["number"]) in aisles))
        if (seat["row"], seat["number"]) in aisles:
            found.setdefault(seat["row"], []).append(seat["number"])
        if seat.get("coordinates") is None:
            said = "seats without coordinates are drawn below the others, and marked so"
            notes.add(f"{pointer}/seats/{place}", "seat_placed", said)
    facts = zone_facts(zone)
    rest = remainder(built_zone(zone["zone_id"], facts, seats, found), zone)
    words = {"data-zone": zone["zone_id"], **{_WORDS[fact]: text for fact, text in facts.items()}}
    if rest:
        words["data-extra"] = as_json(rest)
    return [f"<g{_attributes(words)}>", *drawn, "</g>"]


def _seat(seat: Config, x: float, y: float, scene: Scene, ordinal: int, aisle: bool) -> str:
    point = seat.get("coordinates")
    words: dict[str, str] = {
        "data-seat-id": seat["seat_id"],
        "data-row": seat["row"],
        "data-number": str(seat["number"]),
    }
    if seat.get("category") is not None:
        words["data-category"] = seat["category"]
    if seat.get("companion_seat_id") is not None:
        words["data-companion"] = seat["companion_seat_id"]
    if aisle:
        words["data-aisle-after"] = "1"
    if point is None:
        words["data-unplaced"] = "true"
        cx, cy = x, y
    else:
        cx, cy = point["x"], point["y"]
    rest = remainder(svg_seat(seat["seat_id"], seat["row"], seat["number"], cx, cy, words), seat)
    if rest:
        words["data-extra"] = as_json(rest)
    fill, outline = CATEGORY_COLOURS[SeatCategory(seat.get("category") or "standard")]
    paint = f'fill="{fill}" stroke="{outline}" stroke-width="{0.14 * scene.radius:g}"'
    return (
        f'<circle cx="{cx!r}" cy="{cy!r}" r="{scene.radius:g}" {paint}{_attributes(words)}>'
        f"<title>{xml_text(scene.titles[ordinal])}</title></circle>"
    )


def _attributes(words: Mapping[str, str]) -> str:
    return "".join(f" {word}={_attribute(text)}" for word, text in words.items())


def _attribute(text: str) -> str:
    return quoteattr(text, {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


def _replaced(value: Config) -> Config:
    def mended(part: object) -> object:
        match part:
            case str():
                return part.replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")
            case list():
                return [mended(item) for item in part]
            case dict():
                return {mended(key): mended(item) for key, item in part.items()}
        return part

    whole = mended(value)
    assert isinstance(whole, dict)
    return whole
