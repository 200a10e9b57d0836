"""Seating plans of pretix: zones → rows → seats, each placed relative to what it is in.

Their `seat_guid` is our `seat_id`. Their categories are price classes with free names; only those with the name of one of
our categories mean the same. Their areas are drawings: they become the layout's background.
"""

import hashlib
import math
import uuid
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from holdfast.compat.layout_file import Config, Notes, Places, ReadFile, WrittenFile, as_json, integer_of
from holdfast.kernel.problems import Problems, child, quoted, type_name
from holdfast.seating.layout import SeatCategory, ZoneType
from holdfast.seating.reading import COORDINATE_LIMIT, read_list, read_object
from holdfast.seating.seat_columns import MAX_SEAT_NUMBER
from holdfast.seating.validate import MAX_SEATS, LayoutInvalid

COLOURS = {
    SeatCategory.STANDARD: "#3b6ea5",
    SeatCategory.WHEELCHAIR: "#0b8457",
    SeatCategory.COMPANION: "#74c69d",
    SeatCategory.RESTRICTED_VIEW: "#c9a227",
    SeatCategory.AISLE: "#7d7d7d",
}
MARGIN = 40
SPACING = 25
RADIUS = 10
PART_LIMIT = 4 * COORDINATE_LIMIT
"""Of a zone's, a row's or a seat's own offset; what they add up to is held to the limit of a coordinate."""

_PLAN = frozenset(("name", "zones", "categories", "size"))
_ZONE = frozenset(("name", "zone_id", "uuid", "position", "rows", "areas", "displayed"))
_ROW = frozenset(("row_number", "row_label", "seat_label", "uuid", "seats", "row_number_position", "position"))
_SEAT = frozenset(("seat_guid", "seat_number", "uuid", "start_direction", "radius", "position", "category"))
_NOT_KEPT = ("row_label", "seat_label", "start_direction", "radius", "row_number_position", "displayed")
"""Fields of theirs that say something and have no place with us; `uuid` says nothing beside the guid."""


# Reading --------------------------------------------------------------------------------------------------------------
def read_pretix(plan: object) -> ReadFile:
    """Raises LayoutInvalid with every problem, each with its pointer into the plan."""
    problems = Problems()
    reader = _Reader(problems)
    source = read_object(problems, "", plan, None)
    if source is not None:
        reader.read(source)
    if problems:
        raise LayoutInvalid(problems.listed())
    return reader.result(source or {})


class _Reader:
    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._notes = Notes()
        self._places = Places(
            {
                "/seat_id": "/seat_guid",
                "/number": "/seat_number",
                "/coordinates": "/position",
                "/row": "/../../row_number",
            },
            {"/seats": "/rows", "/capacity": "/rows"},
        )
        self._zones: list[Config] = []
        self._zone_ids: set[str] = set()
        self._shapes: list[str] = []
        self._seat_count = 0

    def read(self, source: Config) -> None:
        self._note_unknown("", source, _PLAN)
        if "zones" not in source:
            self._problems.add("/zones", "missing", "zones is missing: this is no seating plan")
            return
        categories = self._categories(source.get("categories"))
        raw_zones = read_list(self._problems, "/zones", source["zones"]) or []
        for zone_no, raw in enumerate(raw_zones):
            zone = read_object(self._problems, child("/zones", zone_no), raw, None)
            if zone is not None and not self._zone(zone_no, child("/zones", zone_no), zone, categories):
                return
        if not self._zones and not self._problems:
            self._problems.add("/zones", "no_seats", "the plan has no seats")

    def _categories(self, value: object) -> set[str]:
        names: set[str] = set()
        for place, raw in enumerate(read_list(self._problems, "/categories", value or []) or []):
            pointer = child("/categories", place)
            source = read_object(self._problems, pointer, raw, None)
            if source is not None:
                name = self._text(pointer, source, "name")
                if name is not None:
                    names.add(name)
        return names

    def _zone(self, zone_no: int, pointer: str, source: Config, categories: set[str]) -> bool:
        self._note_unknown(pointer, source, _ZONE)
        x, y = self._position(pointer, source, needed=True)
        self._areas(child(pointer, "areas"), source.get("areas"), x, y)
        seats: list[Config] = []
        places: list[str] = []
        taken: set[tuple[str, int]] = set()
        if "rows" not in source:
            self._problems.add(child(pointer, "rows"), "missing", "rows is missing")
        for row_no, raw in enumerate(read_list(self._problems, child(pointer, "rows"), source.get("rows", [])) or []):
            place = f"{pointer}/rows/{row_no}"
            row = read_object(self._problems, place, raw, None)
            if row is None:
                continue
            found = self._row(row_no, place, row, x, y, categories)
            self._seat_count += len(found)
            if self._seat_count > MAX_SEATS:
                said = f"at most {MAX_SEATS} seats, and this plan has more"
                self._problems.add(child(place, "seats"), "too_many_seats", said)
                return False
            self._name_apart(place, found, taken)
            seats += found
            places += [f"{place}/seats/{seat_no}" for seat_no in range(len(found))]
        if not seats:
            if not self._problems:
                self._notes.add(pointer, "zone_without_seats", "a zone without seats was left out")
            return True
        name = self._optional_text(pointer, source, "name")
        zone_id = self._zone_id(
            pointer, self._optional_text(pointer, source, "zone_id") or name or f"zone-{zone_no + 1}"
        )
        self._zones.append(
            {
                "zone_id": zone_id,
                "name": name or zone_id,
                "zone_type": ZoneType.RESERVED_SEATING.value,
                "capacity": len(seats),
                "seats": seats,
            }
        )
        self._places.add_zone(pointer, places)
        return True

    def _zone_id(self, pointer: str, zone_id: str) -> str:
        count = 2
        unique = zone_id
        while unique in self._zone_ids:
            unique = f"{zone_id}-{count}"
            count += 1
        if unique != zone_id:
            said = f"another zone is called {quoted(zone_id)} too; this one became {quoted(unique)}"
            self._notes.add(child(pointer, "zone_id"), "zone_renamed", said)
        self._zone_ids.add(unique)
        return unique

    def _row(self, row_no: int, pointer: str, source: Config, x: float, y: float, categories: set[str]) -> list[Config]:
        self._note_unknown(pointer, source, _ROW)
        if source.get("row_number") != "":
            row = self._text(pointer, source, "row_number") or ""
        else:
            row = str(row_no + 1)
            self._notes.add(child(pointer, "row_number"), "row_named", "a row without a name got its place as one")
        dx, dy = self._position(pointer, source, needed=False)
        if "seats" not in source:
            self._problems.add(child(pointer, "seats"), "missing", "seats is missing")
        raw_seats = read_list(self._problems, child(pointer, "seats"), source.get("seats", [])) or []
        if len(raw_seats) > MAX_SEATS:
            return [{}] * len(raw_seats)  # the caller refuses them by their number
        labels: list[str] = []
        seats: list[Config] = []
        for seat_no, raw in enumerate(raw_seats):
            place = f"{pointer}/seats/{seat_no}"
            seat = read_object(self._problems, place, raw, None)
            if seat is None:
                continue
            self._note_unknown(place, seat, _SEAT)
            sx, sy = self._position(place, seat, needed=True)
            labels.append("" if seat.get("seat_number") == "" else self._text(place, seat, "seat_number") or "")
            built = {
                "seat_id": self._text(place, seat, "seat_guid") or "",
                "row": row,
                "number": 0,
                "coordinates": {"x": x + dx + sx, "y": y + dy + sy},
            }
            category = self._category(place, seat, categories)
            if category is not None:
                built["category"] = category.value
            seats.append(built)
        for seat, number in zip(seats, self._numbers(pointer, row, labels), strict=True):
            seat["number"] = number
        return seats

    def _numbers(self, pointer: str, row: str, labels: list[str]) -> list[int]:
        """Our numbers say who sits beside whom; theirs are names."""
        numbers = [integer_of(label) for label in labels]
        plain = [number for number in numbers if number is not None and 0 <= number <= MAX_SEAT_NUMBER]
        if len(plain) == len(labels) and len(set(plain)) == len(plain):
            return plain
        if labels:
            shown = ", ".join(labels[:5]) + (", …" if len(labels) > 5 else "")
            said = f"row {quoted(row)} does not number its seats by whole numbers, each once ({shown}): they became 1, 2, …"
            self._notes.add(f"{pointer}/seats", "numbered_anew", said)
        return list(range(1, len(labels) + 1))

    def _name_apart(self, pointer: str, seats: list[Config], taken: set[tuple[str, int]]) -> None:
        """Two rows of one name are one row to us, as long as no number comes twice."""
        if not seats:
            return
        row = seats[0]["row"]
        name, count = row, 2
        while any((name, seat["number"]) in taken for seat in seats):
            name, count = f"{row} ({count})", count + 1
        if name != row:
            said = f"another row {quoted(row)} of the zone has the same numbers; this one became {quoted(name)}"
            self._notes.add(child(pointer, "row_number"), "row_renamed", said)
        for seat in seats:
            seat["row"] = name
            taken.add((name, seat["number"]))

    def _category(self, pointer: str, seat: Config, categories: set[str]) -> SeatCategory | None:
        name = self._text(pointer, seat, "category")
        if name is None:
            return None
        if name not in categories:
            said = f"category {quoted(name)} is not among the plan's categories"
            self._problems.add(child(pointer, "category"), "unknown_category", said)
            return None
        ours = name.strip().lower().replace(" ", "_").replace("-", "_")
        if ours in set(SeatCategory):
            return SeatCategory(ours)
        said = f"seats of category {quoted(name)} became standard: a price class is said in an event's prices"
        self._notes.add(child(pointer, "category"), "category_not_kept", said)
        return None

    def _areas(self, pointer: str, value: object, x: float, y: float) -> None:
        for place, raw in enumerate(read_list(self._problems, pointer, [] if value is None else value) or []):
            area = raw if isinstance(raw, dict) else {}
            shape = _drawn_area(area, x, y)
            if shape is None:
                self._notes.add(child(pointer, place), "area_not_kept", "an area of no known shape was left out")
            else:
                self._shapes.append(shape)
                said = "an area became part of the background; if people stand there, add a zone with a capacity"
                self._notes.add(child(pointer, place), "area_to_background", said)

    def _position(self, pointer: str, source: Config, *, needed: bool) -> tuple[float, float]:
        place = child(pointer, "position")
        if source.get("position") is None:
            if needed:
                self._problems.add(place, "missing", "position is missing")
            return 0, 0
        point = read_object(self._problems, place, source["position"], None)
        if point is None:
            return 0, 0
        return self._coordinate(place, point, "x"), self._coordinate(place, point, "y")

    def _coordinate(self, pointer: str, point: Config, axis: str) -> float:
        value = point.get(axis)
        if isinstance(value, bool) or not isinstance(value, int | float):
            said = f"{axis} is missing" if value is None else f"must be a number, not {type_name(value)}"
            self._problems.add(child(pointer, axis), "wrong_type", said)
            return 0
        if not -PART_LIMIT <= value <= PART_LIMIT:
            limit = int(PART_LIMIT)
            self._problems.add(child(pointer, axis), "bad_coordinate", f"must be a number from -{limit} to {limit}")
            return 0
        return value

    def _text(self, pointer: str, source: Config, field: str) -> str | None:
        value = source.get(field)
        if isinstance(value, str) and value:
            return value
        said = f"{field} is missing" if not value else f"must be a string, not {type_name(value)}"
        self._problems.add(child(pointer, field), "missing" if not value else "wrong_type", said)
        return None

    def _optional_text(self, pointer: str, source: Config, field: str) -> str | None:
        return None if source.get(field) in (None, "") else self._text(pointer, source, field)

    def _note_unknown(self, pointer: str, source: Config, known: frozenset[str]) -> None:
        for field in source:
            if field not in known:
                self._notes.add(child(pointer, field), "unknown_field", f"field {quoted(field)} is not known")
            elif field in _NOT_KEPT and source[field] is not None:
                self._notes.add(child(pointer, field), "field_not_kept", f"{field} has no place in a layout")

    def result(self, source: Config) -> ReadFile:
        config: Config = {"zones": self._zones}
        if self._shapes:
            size = source.get("size") if isinstance(source.get("size"), dict) else {}
            assert isinstance(size, dict)
            box = " ".join(str(int(_number(size.get(side), 0))) for side in ("width", "height"))
            view = f' viewBox="0 0 {box}"' if "0" not in box.split() else ""
            config["background_svg"] = f'<svg xmlns="http://www.w3.org/2000/svg"{view}>{"".join(self._shapes)}</svg>'
        elif source.get("size") is not None:
            self._notes.add("/size", "size_not_kept", "the plan's size is not kept: a layout has no paper")
        name = source.get("name")
        return ReadFile(
            config=config,
            notes=self._notes.listed(),
            name=name if isinstance(name, str) and name.strip() else None,
            places=self._places,
        )


def _number(value: object, default: float) -> float:
    usable = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= COORDINATE_LIMIT
    return float(value) if usable else default  # type: ignore[arg-type]


def _point(value: object) -> tuple[float, float]:
    source = value if isinstance(value, dict) else {}
    return _number(source.get("x"), 0), _number(source.get("y"), 0)


def _drawn_area(area: Config, zone_x: float, zone_y: float) -> str | None:
    dx, dy = _point(area.get("position"))
    x, y = zone_x + dx, zone_y + dy
    kind = area.get("shape")
    said: Any = area.get(kind) if isinstance(kind, str) else None
    said = said if isinstance(said, dict) else {}
    if kind == "rectangle" or (kind is None and "width" in area):
        source = said or area
        width, height = _number(source.get("width"), 0), _number(source.get("height"), 0)
        drawn = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
    elif kind == "circle":
        drawn = f'<circle cx="{x:g}" cy="{y:g}" r="{_number(said.get("radius"), 0):g}"'
    elif kind == "ellipse":
        rx, ry = _point(said.get("radius"))
        drawn = f'<ellipse cx="{x:g}" cy="{y:g}" rx="{rx:g}" ry="{ry:g}"'
    elif kind == "polygon":
        raw = said.get("points")
        corners = [_point(point) for point in raw] if isinstance(raw, list) else []
        drawn = f'<polygon points="{" ".join(f"{x + px:g},{y + py:g}" for px, py in corners)}"'
    elif kind == "text":
        drawn = ""
    else:
        return None
    if drawn:
        turn = _number(area.get("rotation"), 0)
        drawn += f' transform="rotate({turn:g} {x:g} {y:g})"' if turn else ""
        drawn += f" fill={_colour(area.get('color'), 'none')} stroke={_colour(area.get('border_color'), 'none')}/>"
    return drawn + _drawn_text(area.get("text"), x, y)


def _drawn_text(text: object, x: float, y: float) -> str:
    words = text.get("text") if isinstance(text, dict) else text
    if not isinstance(words, str) or not words.strip():
        return ""
    source: Config = text if isinstance(text, dict) else {}
    dx, dy = _point(source.get("position"))
    size = _number(source.get("size"), 16)
    place = f'x="{x + dx:g}" y="{y + dy:g}" font-size="{size:g}"'
    clean = "".join(char for char in words if char.isprintable())
    return f'<text {place} text-anchor="middle" fill={_colour(source.get("color"), "#333")}>{escape(clean)}</text>'


def _colour(value: object, default: str) -> str:
    # Only what can be nothing but a colour: the plan comes from elsewhere and is drawn in people's browsers.
    plain = isinstance(value, str) and len(value) < 40 and value.replace("#", "").isalnum()
    return quoteattr(str(value) if plain else default)


# Writing --------------------------------------------------------------------------------------------------------------
def write_pretix(config: Config, name: str) -> WrittenFile:
    """`config` is one that `parse_layout` accepts. What pretix has no place for is in the notes."""
    notes = Notes()
    used: dict[SeatCategory, None] = {}
    zones: list[Config] = []
    bottom = max((seat["coordinates"]["y"] for seat in _placed(config)), default=0) + 2 * SPACING
    right = max((seat["coordinates"]["x"] for seat in _placed(config)), default=0)
    for zone_no, zone in enumerate(config["zones"]):
        pointer = child("/zones", zone_no)
        _note_zone(notes, pointer, zone)
        if ZoneType(zone["zone_type"]).is_ga:
            zones.append(_area_zone(zone, bottom))
            said = "general admission is drawn as an area; pretix sells it as an ordinary product with a quota"
            notes.add(pointer, "ga_zone", said)
            bottom += 4 * SPACING
        else:
            zones.append(_written_zone(notes, pointer, zone, bottom, used))
            if any(seat.get("coordinates") is None for seat in zone["seats"]):
                bottom += SPACING * (len({seat["row"] for seat in zone["seats"]}) + 2)
    _note_layout(notes, config)
    if any(seat["coordinates"][axis] < 0 for seat in _placed(config) for axis in ("x", "y")):
        notes.add("", "negative_coordinates", "some seats lie left of or above the paper, where pretix does not draw")
    plan = {
        "name": name,
        "categories": [{"name": category.value, "color": COLOURS[category]} for category in used],
        "zones": zones,
        "size": {"width": max(1, math.ceil(right) + MARGIN), "height": max(1, math.ceil(bottom) + MARGIN)},
    }
    return WrittenFile(content=as_json(plan).encode(), notes=notes.listed())


def _placed(config: Config) -> list[Config]:
    return [seat for zone in config["zones"] for seat in zone.get("seats") or () if seat.get("coordinates")]


def _note_zone(notes: Notes, pointer: str, zone: Config) -> None:
    for field, empty in (("required_tier", None), ("membership_tier", None), ("allowed_roles", []), ("metadata", {})):
        if zone.get(field) not in (None, empty):
            notes.add(child(pointer, field), "not_carried", f"a zone's {field} is not carried by pretix")
    if zone.get("access_mode") not in (None, "public"):
        notes.add(child(pointer, "access_mode"), "not_carried", "who may enter a zone is not carried by pretix")
    if zone.get("focal_point") is not None:
        notes.add(child(pointer, "focal_point"), "not_carried", "focal points are not carried by pretix")
    if ZoneType(zone["zone_type"]).is_vip:
        notes.add(child(pointer, "zone_type"), "not_carried", "that a zone is for VIPs is not carried by pretix")
    for row, said in (zone.get("rows") or {}).items():
        if (said or {}).get("aisles_after"):
            place = child(child(child(pointer, "rows"), row), "aisles_after")
            notes.add(place, "not_carried", "aisles are not carried by pretix, but for the gap in the drawing")
    for seat_no, seat in enumerate(zone.get("seats") or ()):
        if seat.get("companion_seat_id") is not None:
            place = f"{pointer}/seats/{seat_no}/companion_seat_id"
            notes.add(place, "not_carried", "which seat accompanies which is not carried by pretix")


def _note_layout(notes: Notes, config: Config) -> None:
    for field in ("groups", "focal_point", "background_svg"):
        if config.get(field):
            notes.add(child("", field), "not_carried", f"{field} is not carried by pretix")


def _written_zone(notes: Notes, pointer: str, zone: Config, bottom: float, used: dict[SeatCategory, None]) -> Config:
    seats = zone["seats"]
    by_row: dict[str, list[tuple[Config, float, float]]] = {}
    for seat_no, seat in enumerate(seats):
        row = by_row.setdefault(seat["row"], [])
        point = seat.get("coordinates")
        if point is None:
            x = min(MARGIN + SPACING * seat["number"], COORDINATE_LIMIT)
            y = min(bottom + SPACING * len(by_row), COORDINATE_LIMIT)
            said = "a seat without coordinates was placed below the plan, for pretix must draw it"
            notes.add(f"{pointer}/seats/{seat_no}", "seat_placed", said)
        else:
            x, y = point["x"], point["y"]
        row.append((seat, x, y))
    if [seat for row in by_row.values() for seat, _, _ in row] != seats:
        notes.add(child(pointer, "seats"), "order", "seats are listed row by row, so their ordinals will differ")
    everything = [(x, y) for row in by_row.values() for _, x, y in row]
    zone_x, zone_y = _origin(everything, 0, 0)
    return {
        "name": zone["name"],
        "zone_id": zone["zone_id"],
        "uuid": _uuid("zone", zone["zone_id"]),
        "position": {"x": zone_x, "y": zone_y},
        "rows": [_written_row(zone, name, row, zone_x, zone_y, used) for name, row in by_row.items()],
        "areas": [],
    }


def _written_row(
    zone: Config,
    name: str,
    row: list[tuple[Config, float, float]],
    zone_x: float,
    zone_y: float,
    used: dict[SeatCategory, None],
) -> Config:
    row_x, row_y = _origin([(x, y) for _, x, y in row], zone_x, zone_y)
    seats: list[Config] = []
    for seat, x, y in row:
        category = SeatCategory(seat.get("category") or SeatCategory.STANDARD)
        used[category] = None
        seats.append(
            {
                "seat_guid": seat["seat_id"],
                "seat_number": str(seat["number"]),
                "uuid": _uuid("seat", seat["seat_id"]),
                "position": {"x": x - (zone_x + row_x), "y": y - (zone_y + row_y)},
                "category": category.value,
                "radius": RADIUS,
            }
        )
    return {
        "row_number": name,
        "row_number_position": "both",
        "uuid": _uuid("row", f"{zone['zone_id']}\n{name}"),
        "position": {"x": row_x, "y": row_y},
        "seats": seats,
    }


def _area_zone(zone: Config, y: float) -> Config:
    words = f"{zone['name']} ({zone['capacity']} places)"
    return {
        "name": zone["name"],
        "zone_id": zone["zone_id"],
        "uuid": _uuid("zone", zone["zone_id"]),
        "position": {"x": MARGIN, "y": y},
        "rows": [],
        "areas": [
            {
                "shape": "rectangle",
                "uuid": _uuid("area", zone["zone_id"]),
                "position": {"x": 0, "y": 0},
                "rotation": 0,
                "color": "#eeeeee",
                "border_color": "#999999",
                "rectangle": {"width": 12 * SPACING, "height": 3 * SPACING},
                "text": {"position": {"x": 6 * SPACING, "y": 2 * SPACING}, "color": "#333333", "text": words},
            }
        ],
    }


def _origin(points: list[tuple[float, float]], base_x: float, base_y: float) -> tuple[float, float]:
    """Where a zone or row lies, in whole numbers; nowhere in particular where that would move a seat by a rounding."""
    x = math.floor(min(x for x, _ in points) - base_x)
    y = math.floor(min(y for _, y in points) - base_y)
    exact = all(
        (base_x + x) + (px - (base_x + x)) == px and (base_y + y) + (py - (base_y + y)) == py for px, py in points
    )
    return (x, y) if exact else (0, 0)


def _uuid(kind: str, name: str) -> str:
    """The same thing has the same one in every export."""
    digest = hashlib.sha256(f"{kind}\n{name}".encode()).digest()
    return str(uuid.UUID(bytes=digest[:16], version=4))
