"""Layouts out of drawings: shapes become seats, groups zones and rows, and a label beside seats names their row.

A shape is a seat if it says so in data attributes (`data-seat-id`, `data-row`, `data-number`). In a drawing without any,
shapes whose id ends in a number (`A-12`) are the seats. A seat's coordinates are the middle of its shape, with every
transform around it applied. Nothing of the drawing is run, fetched or kept but what is named here.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.etree.ElementTree import ParseError

from defusedxml import DTDForbidden, EntitiesForbidden, ExternalReferenceForbidden
from defusedxml.ElementTree import DefusedXMLParser

from holdfast.compat.layout_file import (
    Config,
    Notes,
    Places,
    ReadFile,
    built_zone,
    integer_of,
    read_remainder,
    restored,
)
from holdfast.compat.svg_geometry import (
    IDENTITY,
    SHAPES,
    BadGeometry,
    Matrix,
    Point,
    length_of,
    middle_of,
    moved,
    times,
    transform_of,
)
from holdfast.compat.svg_rows import Drawn, TextLabel, name_rows
from holdfast.kernel.problems import Problems, quoted
from holdfast.seating.seat_columns import SEAT_ID_CHARS
from holdfast.seating.validate import MAX_SEATS, MAX_ZONES, LayoutInvalid

MAX_ELEMENTS = 4 * MAX_SEATS
MAX_SHAPES = MAX_SEATS + 100_000
MAX_LABELS = 20_000
MAX_DEPTH = 200
LABEL_CHARS = 200
MAIN = "main"

ACTIVE = frozenset(("script", "foreignObject", "handler", "listener", "iframe", "object", "embed", "audio", "video"))
DEFINITIONS = frozenset(("defs", "symbol", "clipPath", "mask", "marker", "pattern"))
SEAT_WORDS = ("data-seat-id", "data-row", "data-number")
ZONE_WORDS = {
    "data-zone-name": "zone_name",
    "data-zone-type": "zone_type",
    "data-capacity": "capacity",
    "data-access-mode": "access_mode",
    "data-required-tier": "required_tier",
    "data-allowed-roles": "allowed_roles",
}
DRAWN = "data-drawn"
"""What is only there for people to see: titles, labels, legends of a drawing that was exported."""
_SVG = "http://www.w3.org/2000/svg"
_HREFS = ("href", "{http://www.w3.org/1999/xlink}href", "src")
_NAMED = "{http://www.inkscape.org/namespaces/inkscape}label"
_ID = re.compile(r"(?:seat[-_ ]*)?(?P<row>.*?)[-_ :.]*(?P<number>[0-9]{1,7})", re.IGNORECASE)
_BY_PROGRAM = re.compile(
    r"(?:circle|ellipse|rect|path|use|polygon|polyline|line|image|g|text|tspan|svg|layer)[-_]?[0-9]+(?:[-_][0-9]+)*",
    re.IGNORECASE,
)
"""Ids that drawing programs give by themselves."""
_URL = re.compile(r"url\(", re.IGNORECASE)


def _fetches(style: str) -> bool:
    """Refers to something outside the drawing."""
    if "@import" in style.lower():
        return True
    return any(
        not style[found.end() : found.end() + 100].lstrip(" \t\r\n'\"").startswith("#")
        for found in _URL.finditer(style)
    )


@dataclass
class _Zone:
    zone_id: str
    place: str
    facts: dict[str, str] = field(default_factory=dict)
    rest: Config = field(default_factory=dict)
    said: bool = False
    """By a data attribute, not only by a group's id."""
    seats: list[Config] = field(default_factory=list)
    seat_places: list[str] = field(default_factory=list)
    aisles: dict[str, list[int]] = field(default_factory=dict)


@dataclass(slots=True)
class _Frame:
    """An open element."""

    tag: str
    matrix: Matrix
    attributes: dict[str, str]
    zone: str | None
    row: str | None
    group_ids: tuple[str, ...]
    group: int
    silent: bool
    """Inside definitions, or drawn for people only."""
    seat_words: dict[str, str] = field(default_factory=dict)
    text: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Shape:
    tag: str
    attributes: dict[str, str]
    matrix: Matrix
    zone: str | None
    row: str | None
    group_ids: tuple[str, ...]
    group: int
    place: str


def read_svg(content: bytes) -> ReadFile:
    """Raises LayoutInvalid with every problem; a pointer is `/lines/12/columns/3`, where the element begins."""
    problems = Problems()
    reader = _Reader(problems)
    reader.parse(content)
    if problems:
        raise LayoutInvalid(problems.listed())
    read = reader.result()
    if problems:
        raise LayoutInvalid(problems.listed())
    return read


class _Stop(Exception):
    """There is no use in reading on."""


class _Reader:
    """The parser's target: elements as they come, so that a large drawing is never held as a tree."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._notes = Notes()
        self._parser: Any = None
        self._open: list[_Frame] = []
        self._elements = 0
        self._groups = 0
        self._shapes: list[_Shape] = []
        self._labels: list[TextLabel] = []
        self._defined: dict[str, tuple[str, dict[str, str], Matrix]] = {}
        self._zones: dict[str, _Zone] = {}
        self._layout: Config = {}

    def parse(self, content: bytes) -> None:
        self._parser = DefusedXMLParser(target=self, forbid_dtd=True)
        try:
            self._parser.feed(content)
            self._parser.close()
        except _Stop:
            return
        except (DTDForbidden, EntitiesForbidden, ExternalReferenceForbidden):
            said = "has a document type or entities; save it as plain SVG without a DOCTYPE"
            self._problems.add("", "forbidden_dtd", f"the drawing {said}")
        except ParseError as error:
            line, column = error.position
            self._problems.add(f"/lines/{line}/columns/{column + 1}", "not_xml", f"the file is not XML: {error.msg}")
        except (ValueError, LookupError) as error:  # an encoding nobody knows
            self._problems.add("", "bad_encoding", f"the file cannot be read: {error}")

    # What the parser calls ----------------------------------------------------------------------------------------
    def start(self, tag: str, attributes: dict[str, str]) -> None:
        place = self._place()
        self._elements += 1
        if self._elements > MAX_ELEMENTS or len(self._open) >= MAX_DEPTH:
            limit = f"{MAX_ELEMENTS} elements" if self._elements > MAX_ELEMENTS else f"{MAX_DEPTH} levels"
            self._problems.add(place, "too_large", f"a drawing may have at most {limit}")
            raise _Stop
        space, _, name = tag.rpartition("}")
        self._refuse_active(place, name, attributes)
        if not self._open and (name != "svg" or space not in ("", f"{{{_SVG}")):
            self._problems.add(place, "not_svg", f"the outermost element is {quoted(name)}, not svg")
            raise _Stop
        self._open.append(self._frame(place, name if space in ("", f"{{{_SVG}") else "", attributes))

    def end(self, tag: str) -> None:
        frame = self._open.pop()
        if frame.tag == "style" and _fetches("".join(frame.text)):
            self._problems.add(self._place(), "external_reference", "the style sheet fetches something from elsewhere")
        if frame.tag in ("text", "tspan"):
            words = " ".join("".join(frame.text).split())
            if frame.tag == "tspan" and self._open:
                self._open[-1].text.append(words)
                for axis in ("x", "y"):
                    if axis in frame.attributes:
                        self._open[-1].attributes.setdefault(axis, frame.attributes[axis])
            elif words and not frame.silent:
                self._label(frame, words)

    def data(self, text: str) -> None:
        if self._open and self._open[-1].tag in ("text", "tspan", "style"):
            self._open[-1].text.append(text)

    def pi(self, target: str, data: str | None = None) -> None:
        self._problems.add(self._place(), "external_reference", f"the instruction {quoted(target)} is not allowed here")

    def close(self) -> None:
        pass

    def _place(self) -> str:
        parser = self._parser.parser
        return f"/lines/{parser.CurrentLineNumber}/columns/{parser.CurrentColumnNumber + 1}"

    # Elements -----------------------------------------------------------------------------------------------------
    def _refuse_active(self, place: str, tag: str, attributes: Mapping[str, str]) -> None:
        """A drawing is only ever read; but what would run or fetch in a browser does not belong in a seating plan."""
        if tag in ACTIVE:
            self._problems.add(place, "active_content", f"{quoted(tag)} is not allowed in a seating plan")
        for name, value in attributes.items():
            local = name.rpartition("}")[2].lower()
            if local.startswith("on"):
                self._problems.add(
                    f"{place}/{local}", "active_content", f"the event handler {quoted(local)} is not allowed"
                )
            elif name in _HREFS and not value.strip().startswith("#"):
                if not (tag == "image" and value.strip().startswith("data:image/")):
                    said = (
                        f"refers to {quoted(value.strip()[:40])}; only parts of the drawing itself can be referred to"
                    )
                    self._problems.add(f"{place}/{local}", "external_reference", said)
            elif _fetches(value):
                self._problems.add(
                    f"{place}/{local}", "external_reference", f"{local} fetches something from elsewhere"
                )

    def _frame(self, place: str, tag: str, attributes: dict[str, str]) -> _Frame:
        above = self._open[-1] if self._open else _Frame("", IDENTITY, {}, None, None, (), 0, False)
        frame = _Frame(
            tag=tag,
            matrix=self._matrix(place, tag, attributes, above.matrix),
            attributes=attributes,
            zone=attributes.get("data-zone", above.zone),
            row=attributes.get("data-row", above.row) if tag in ("g", "svg", "a") else above.row,
            group_ids=above.group_ids,
            group=above.group,
            silent=above.silent or tag in DEFINITIONS or DRAWN in attributes or not tag,
            seat_words=above.seat_words,
        )
        if tag == "svg" and not self._open and "data-layout" in attributes:
            self._layout = read_remainder(
                self._problems, f"{place}/data-layout", attributes["data-layout"], never=("zones",)
            )
        if "data-zone" in attributes and not frame.silent:
            self._note_zone(place, attributes)
        if tag in ("g", "svg", "a"):
            self._groups += 1
            frame.group = self._groups
            if self._open and ("id" in attributes or _NAMED in attributes):
                frame.group_ids = (*above.group_ids, attributes.get(_NAMED) or attributes["id"])
            if "data-seat-id" in attributes:
                frame.seat_words = attributes
        if "id" in attributes and (tag in SHAPES or tag in ("g", "symbol")):
            # The transform of what is used counts; that of what it happens to lie in does not.
            own = self._matrix(place, tag, attributes, IDENTITY)
            self._defined.setdefault(attributes["id"], (tag, attributes, own))
        if tag in SHAPES:
            self._first_inside(tag, attributes)
        if (tag in SHAPES or tag == "use") and not frame.silent:
            self._shape(frame, place)
        return frame

    def _first_inside(self, tag: str, attributes: dict[str, str]) -> None:
        """Of a group or symbol that is used as a seat, its first shape is where the seat is."""
        for above in reversed(self._open):
            name = above.attributes.get("id")
            if above.tag in ("g", "symbol") and name is not None and self._defined.get(name, ("",))[0] == above.tag:
                own = times(self._defined[name][2], self._matrix("", tag, attributes, IDENTITY))
                self._defined[name] = (tag, attributes, own)
                return

    def _shape(self, frame: _Frame, place: str) -> None:
        attributes = frame.attributes
        if frame.tag == "image":
            self._picture(place, attributes)
            return
        if frame.seat_words and "data-seat-id" not in attributes:
            # A group that is a seat: its first shape stands for it, the rest is decoration.
            attributes = {**{k: v for k, v in frame.seat_words.items() if k.startswith("data-")}, **attributes}
            frame.seat_words.pop("data-seat-id", None)
            if "data-seat-id" not in attributes:
                return
        if len(self._shapes) >= MAX_SHAPES:
            said = f"at most {MAX_SEATS} seats and {MAX_SHAPES - MAX_SEATS} other shapes, and this drawing has more"
            self._problems.add(place, "too_many_seats", said)
            raise _Stop
        self._shapes.append(
            _Shape(frame.tag, attributes, frame.matrix, frame.zone, frame.row, frame.group_ids, frame.group, place)
        )

    def _picture(self, place: str, attributes: Mapping[str, str]) -> None:
        href = next((attributes[name] for name in _HREFS if name in attributes), "")
        head, _, body = href.partition(",")
        if head == "data:image/svg+xml;base64" and "background_svg" not in self._layout:
            try:
                self._layout["background_svg"] = base64.b64decode(body, validate=True).decode()
            except (binascii.Error, ValueError):
                self._problems.add(place, "bad_picture", "the embedded picture cannot be read")
        else:
            self._notes.add(place, "picture_left_out", "an embedded picture was left out")

    def _matrix(self, place: str, tag: str, attributes: Mapping[str, str], above: Matrix) -> Matrix:
        try:
            own = transform_of(attributes["transform"]) if "transform" in attributes else IDENTITY
            if self._open and tag == "svg":
                own = times(own, (1, 0, 0, 1, length_of(attributes, "x"), length_of(attributes, "y")))
                if "viewBox" in attributes:
                    raise BadGeometry("viewBox", "a drawing inside the drawing may not have a scale of its own")
            return times(above, own)
        except BadGeometry as bad:
            if place:
                self._problems.add(f"{place}/{bad.attribute}", "bad_geometry", bad.detail)
            return above

    def _note_zone(self, place: str, attributes: Mapping[str, str]) -> None:
        zone = self._zone(attributes["data-zone"], place)
        zone.said = True
        for word, fact in ZONE_WORDS.items():
            if word in attributes:
                zone.facts.setdefault(fact, attributes[word])
        if "data-extra" in attributes and "data-seat-id" not in attributes:
            zone.rest = read_remainder(
                self._problems, f"{place}/data-extra", attributes["data-extra"], never=("seats", "zone_id")
            )

    def _zone(self, zone_id: str, place: str) -> _Zone:
        zone = self._zones.get(zone_id)
        if zone is None:
            if len(self._zones) >= MAX_ZONES:
                self._problems.add(place, "too_many_zones", f"at most {MAX_ZONES} zones")
                raise _Stop
            zone = self._zones[zone_id] = _Zone(zone_id, place)
        return zone

    def _label(self, frame: _Frame, words: str) -> None:
        if len(self._labels) >= MAX_LABELS:
            self._notes.add("", "labels_left_out", f"texts beyond the first {MAX_LABELS} were left out")
            return
        try:
            point = length_of(frame.attributes, "x"), length_of(frame.attributes, "y")
        except BadGeometry:
            point = (0, 0)
        self._labels.append(TextLabel(*moved(frame.matrix, point), words[:LABEL_CHARS], self._open[-1].group))

    # Seats --------------------------------------------------------------------------------------------------------
    def result(self) -> ReadFile:
        explicit = any(word in shape.attributes for shape in self._shapes for word in SEAT_WORDS)
        drawn: list[Drawn] = []
        for shape in self._shapes:
            seat = self._said_seat(shape) if explicit else _named_seat(shape)
            if seat is None:
                if "data-zone" not in shape.attributes:
                    said = "a shape that is no seat was left out; a background can be given as background_svg"
                    self._notes.add(shape.place, "shape_left_out", said)
                continue
            if len(drawn) >= MAX_SEATS:
                self._problems.add(
                    shape.place, "too_many_seats", f"at most {MAX_SEATS} seats, and this drawing has more"
                )
                break
            point = self._middle(shape)
            drawn.append(
                Drawn(
                    zone=_zone_of(shape),
                    row=seat.row or shape.row or _group_row(shape) or seat.row_of_id,
                    number=seat.number,
                    x=point[0],
                    y=point[1],
                    group=shape.group,
                    source=shape,
                    place=shape.place,
                )
            )
        if not drawn and not self._zones and not self._problems:
            said = (
                "no shape has data-seat-id, data-row or data-number, and none an id that ends in a number, such as A-12"
            )
            self._problems.add("", "no_seats", said)
        name_rows(self._problems, self._notes, drawn, self._labels)
        if not self._problems:
            for seat_drawn in drawn:
                self._add(seat_drawn)
        return ReadFile(
            config={**self._layout, "zones": self._built_zones()}, notes=self._notes.listed(), places=self._places()
        )

    def _said_seat(self, shape: _Shape) -> "_Words | None":
        attributes = shape.attributes
        if not any(word in attributes for word in SEAT_WORDS):
            return None
        number: int | None = None
        if attributes.get("data-number", "").strip():
            number = integer_of(attributes["data-number"].strip())
            if number is None:
                said = f"must be a whole number, not {quoted(attributes['data-number'])}"
                self._problems.add(f"{shape.place}/data-number", "wrong_type", said)
                number = 0
        return _Words(attributes.get("data-row"), number, None)

    def _middle(self, shape: _Shape) -> Point:
        try:
            if shape.tag != "use":
                return moved(shape.matrix, middle_of(shape.tag, shape.attributes))
            href = next((shape.attributes[name] for name in _HREFS if name in shape.attributes), "").strip()
            target = self._defined.get(href[1:])
            if target is None or target[0] in ("g", "symbol"):
                raise BadGeometry("href", f"{quoted(href)} is no shape of this drawing")
            tag, attributes, own = target
            shift: Matrix = (1, 0, 0, 1, length_of(shape.attributes, "x"), length_of(shape.attributes, "y"))
            return moved(times(times(shape.matrix, shift), own), middle_of(tag, attributes))
        except BadGeometry as bad:
            self._problems.add(f"{shape.place}/{bad.attribute}", "bad_geometry", bad.detail)
            return 0, 0

    def _add(self, drawn: Drawn) -> None:
        attributes: dict[str, str] = drawn.source.attributes
        zone_id = drawn.zone
        if zone_id is None:
            zone_id = MAIN
            self._notes.add(
                drawn.place, "zone_assumed", f"seats in no group with a name became the zone {quoted(MAIN)}"
            )
        zone = self._zone(zone_id, drawn.place)
        row, number = drawn.row or "", drawn.number or 0
        named = attributes.get("data-seat-id") or attributes.get("id")
        seat = svg_seat(named or f"{zone_id}-{row}-{number}", row, number, drawn.x, drawn.y, attributes)
        if "data-extra" in attributes:
            seat = restored(seat, read_remainder(self._problems, f"{drawn.place}/data-extra", attributes["data-extra"]))
        if attributes.get("data-aisle-after", "").strip() in ("1", "true", "yes"):
            zone.aisles.setdefault(row, []).append(number)
        zone.seats.append(seat)
        zone.seat_places.append(drawn.place)

    def _built_zones(self) -> list[Config]:
        zones: list[Config] = []
        for zone_id, zone in list(self._zones.items()):
            if not zone.seats and "zone_type" not in zone.facts:
                said = f"the group {quoted(zone_id)} has no seats and was left out"
                self._notes.add(zone.place, "zone_without_seats", said)
                del self._zones[zone_id]
                continue
            zones.append(restored(built_zone(zone_id, zone.facts, zone.seats, zone.aisles), zone.rest))
        return zones

    def _places(self) -> Places:
        places = Places(_SEAT_ATTRIBUTES, _ZONE_ATTRIBUTES)
        for zone in self._zones.values():
            places.add_zone(zone.place, zone.seat_places)
        return places


@dataclass(frozen=True)
class _Words:
    row: str | None
    number: int | None
    row_of_id: str | None


def svg_seat(seat_id: str, row: str, number: int, x: float, y: float, attributes: Mapping[str, str]) -> Config:
    """The seat of the config, as a shape's attributes say it."""
    seat: Config = {"seat_id": seat_id, "row": row, "number": number}
    if "data-unplaced" not in attributes:
        seat["coordinates"] = {"x": x, "y": y}
    if "data-category" in attributes:
        seat["category"] = attributes["data-category"]
    companion = attributes.get("data-companion") or attributes.get("data-companion-seat-id")
    if companion:
        seat["companion_seat_id"] = companion
    return seat


def _named_seat(shape: _Shape) -> _Words | None:
    name = shape.attributes.get("id", "")
    found = _ID.fullmatch(name) if len(name) <= SEAT_ID_CHARS else None
    if shape.tag in ("line", "polyline") or found is None or _BY_PROGRAM.fullmatch(name):
        return None
    row = found["row"]
    zone = _zone_of(shape)
    if zone is not None and row.lower().startswith(zone.lower()):
        row = row[len(zone) :].lstrip("-_ :.")
    return _Words(None, int(found["number"]), row or None)


def _zone_of(shape: _Shape) -> str | None:
    """The zone that was said; else the name of the outermost group."""
    return shape.zone or (shape.group_ids[0] if shape.group_ids else None)


def _group_row(shape: _Shape) -> str | None:
    """The name of the innermost group, where the outermost is another and names the zone."""
    inner = shape.group_ids if shape.zone is not None else shape.group_ids[1:]
    if not inner or inner[-1] == shape.zone or _BY_PROGRAM.fullmatch(inner[-1]):
        return None
    return re.sub(r"^(?:row|reihe)[-_ ]*", "", inner[-1], flags=re.IGNORECASE) or None


_SEAT_ATTRIBUTES = {
    "/seat_id": "/data-seat-id",
    "/row": "/data-row",
    "/number": "/data-number",
    "/category": "/data-category",
    "/companion_seat_id": "/data-companion",
    "/coordinates": "",
}
_ZONE_ATTRIBUTES = {
    "/zone_id": "/data-zone",
    "/name": "/data-zone-name",
    **{f"/{fact}": f"/{word}" for word, fact in ZONE_WORDS.items()},
}
