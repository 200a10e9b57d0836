"""Layouts as CSV: one line a seat, in the order of the ordinals; one line a zone before its seats.

Six columns are enough: zone, row, number, x, y, category. A line without row and number speaks of its zone, one without
a zone of the whole layout. Cells that a spreadsheet would take for a formula are written with an apostrophe before them,
and read without it.
"""

import csv
import io
from collections.abc import Iterator
from typing import Any

from holdfast.compat.layout_file import (
    Config,
    Notes,
    Places,
    ReadFile,
    WrittenFile,
    aisle_seats,
    as_json,
    built_zone,
    integer_of,
    number_of,
    read_remainder,
    remainder,
    restored,
    zone_facts,
)
from holdfast.kernel.problems import Problems, quoted
from holdfast.seating.validate import BACKGROUND_SVG_CHARS, MAX_SEATS, MAX_ZONES, LayoutInvalid

NEEDED = ("zone", "row", "number", "x", "y", "category")
ZONE_COLUMNS = ("zone_name", "zone_type", "capacity", "access_mode", "required_tier", "allowed_roles")
COLUMNS = (*NEEDED, "seat_id", "companion_seat_id", "aisle_after", *ZONE_COLUMNS, "extra")
DELIMITERS = ",;\t"
FORMULA = tuple("=+-@'\t\r")
"""A cell that begins like this is written with an apostrophe before it, or a spreadsheet might compute it."""
STANDARD_UNSAID = "category_left_out"
"""In a zone's remainder: its standard seats do not name their category."""
YES = frozenset(("1", "true", "yes", "x"))
NO = frozenset(("", "0", "false", "no"))

# A picture in the layout's line is longer than the module's own limit for a cell.
csv.field_size_limit(8 * BACKGROUND_SVG_CHARS)


# Writing --------------------------------------------------------------------------------------------------------------
def write_csv(config: Config) -> WrittenFile:
    """`config` is one that `parse_layout` accepts. Reads back exactly: CSV leaves nothing out."""
    lines: list[dict[str, str]] = []
    rest = {key: value for key, value in config.items() if key != "zones"}
    if rest:
        lines.append({"extra": as_json(rest)})
    for zone in config["zones"]:
        lines += _zone_lines(zone)
    used = {column for line in lines for column, cell in line.items() if cell}
    columns = [column for column in COLUMNS if column in NEEDED or column in used]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([[line.get(column, "") for column in columns] for line in lines])
    return WrittenFile(content=out.getvalue().encode())


def _zone_lines(zone: Config) -> list[dict[str, str]]:
    aisles = aisle_seats(zone)
    seats: list[Config] = zone.get("seats") or []
    unsaid = any("category" not in seat for seat in seats)
    found: dict[str, list[int]] = {}
    lines: list[dict[str, str]] = []
    for seat in seats:
        row, number = seat["row"], seat["number"]
        line = _seat_line(zone["zone_id"], seat)
        if (row, number) in aisles:
            line["aisle_after"] = "1"
            found.setdefault(row, []).append(number)
        built = _built_seat(line["zone"], line)
        if unsaid and built["category"] == "standard":
            del built["category"]
        rest = remainder(built, seat)
        if rest:
            line["extra"] = as_json(rest)
        lines.append({column: cell if column in _PLAIN else _safe(cell) for column, cell in line.items()})
    facts = zone_facts(zone)
    rest = remainder(built_zone(zone["zone_id"], facts, seats, found), zone)
    if unsaid:
        rest[STANDARD_UNSAID] = True
    head = {"zone": _safe(zone["zone_id"]), **{column: _safe(cell) for column, cell in facts.items()}}
    if rest:
        head["extra"] = as_json(rest)
    return [head, *lines]


def _seat_line(zone_id: str, seat: Config) -> dict[str, str]:
    point = seat.get("coordinates")
    return {
        "zone": zone_id,
        "row": seat["row"],
        "number": str(seat["number"]),
        "x": "" if point is None else repr(point["x"]),
        "y": "" if point is None else repr(point["y"]),
        "category": seat.get("category") or "standard",
        "seat_id": seat["seat_id"],
        "companion_seat_id": seat.get("companion_seat_id") or "",
    }


_PLAIN = frozenset(("number", "x", "y", "category", "aisle_after", "extra"))
"""Numbers, words of ours and JSON objects: none can begin a formula, and a negative number must stay a number."""


def _safe(cell: str) -> str:
    return f"'{cell}" if cell.startswith(FORMULA) else cell


def _unsafe(cell: str) -> str:
    return cell[1:] if len(cell) > 1 and cell[0] == "'" and cell[1] in FORMULA else cell


# Reading --------------------------------------------------------------------------------------------------------------
def read_csv(content: bytes) -> ReadFile:
    """Raises LayoutInvalid with every problem; a pointer is `/lines/12/x`, of the line and the column."""
    problems = Problems()
    reader = _Reader(problems, Notes())
    lines = content.count(b"\n")
    if lines > 2 * MAX_SEATS:  # refused before it costs anything
        problems.add("", "too_many_seats", f"at most {MAX_SEATS} seats, and this file has {lines} lines")
        raise LayoutInvalid(problems.listed())
    text = _decoded(problems, content)
    if text is not None:
        reader.read(text)
    if problems:
        raise LayoutInvalid(problems.listed())
    return reader.result()


def _decoded(problems: Problems, content: bytes) -> str | None:
    # UTF-16 is what spreadsheets call “Unicode text”; it always begins with its mark.
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        said = "is not UTF-8; save the file as “CSV UTF-8”"
        problems.add(f"/lines/{line}", "bad_encoding", f"{said} (byte {content[error.start] if content else 0:#04x})")
        return None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        problems.add(f"/lines/{line}", "bad_text", "contains a NUL character; this is no text file")
        return None
    return text


def _delimiter(header: str) -> str:
    def known(delimiter: str) -> int:
        return len({cell.strip().strip('"').lower() for cell in header.split(delimiter)} & set(COLUMNS))

    return max(DELIMITERS, key=known)


class _Zone:
    def __init__(self, zone_id: str, place: str) -> None:
        self.zone_id = zone_id
        self.place = place
        self.facts: dict[str, str] = {}
        self.seats: list[tuple[Config, Config]] = []
        """Each as its columns say it, and the remainder."""
        self.seat_places: list[str] = []
        self.aisles: dict[str, list[int]] = {}
        self.rest: Config = {}


class _Reader:
    def __init__(self, problems: Problems, notes: Notes) -> None:
        self._problems = problems
        self._notes = notes
        self._zones: dict[str, _Zone] = {}
        self._layout: Config = {}
        self._layout_place = ""
        self._seat_count = 0
        self._decimal_comma = False

    def read(self, text: str) -> None:
        header, _, _ = text.lstrip("\r\n").partition("\n")
        delimiter = _delimiter(header)
        self._decimal_comma = delimiter == ";"
        rows = self._rows(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
        first = next(rows, None)
        if first is None:
            if not self._problems:
                self._problems.add("/lines/1", "empty", "the file is empty; its first line must name the columns")
            return
        columns = self._header(*first)
        if columns is None:
            return
        for line_no, cells in rows:
            if not self._line(f"/lines/{line_no}", columns, cells):
                return
        if not self._zones and not self._problems:
            self._problems.add("", "no_zones", "the file has no seats and no zones")

    def _rows(self, reader: Any) -> Iterator[tuple[int, list[str]]]:
        """With the number of the line each begins in; empty ones are skipped."""
        began = 1
        while True:
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                self._problems.add(f"/lines/{began}", "bad_csv", f"cannot be read as CSV: {error}")
                return
            if any(cell.strip() for cell in cells):
                yield began, cells
            began = reader.line_num + 1

    def _header(self, line_no: int, cells: list[str]) -> list[str] | None:
        place = f"/lines/{line_no}"
        columns = [cell.strip().lower() for cell in cells]
        while columns and not columns[-1]:
            columns.pop()
        for column in NEEDED:
            if column not in columns:
                said = f"there is no column {quoted(column)}; the first line must name {', '.join(NEEDED)}"
                self._problems.add(f"{place}/{column}", "missing_column", said)
        for index, column in enumerate(columns):
            if column in columns[:index]:
                self._problems.add(f"{place}/{column}", "duplicate_column", f"column {quoted(column)} is there twice")
            elif column not in COLUMNS:
                said = f"column {quoted(column)} is not known and was left out"
                self._notes.add(f"{place}/{column}", "unknown_column", said)
        return None if self._problems else columns

    def _line(self, place: str, columns: list[str], cells: list[str]) -> bool:
        """False: there is no use in going on."""
        spare = cells[len(columns) :]
        if len(cells) < len(columns) or any(cell.strip() for cell in spare):
            said = f"has {len(cells)} cells, but the first line names {len(columns)} columns"
            self._problems.add(place, "ragged_line", said)
            return True
        line = {column: _unsafe(cell) for column, cell in zip(columns, cells, strict=False) if column in COLUMNS}
        if not line["zone"]:
            self._layout_line(place, line)
            return True
        zone = self._zone(place, line)
        if zone is None:
            return False
        if not line["row"] and not line["number"].strip():
            self._zone_line(zone, place, line)
            return True
        self._seat_count += 1
        if self._seat_count > MAX_SEATS:
            self._problems.add(place, "too_many_seats", f"at most {MAX_SEATS} seats, and this file has more")
            return False
        self._seat(zone, place, line)
        return True

    def _zone(self, place: str, line: dict[str, str]) -> _Zone | None:
        zone = self._zones.get(line["zone"])
        if zone is None:
            if len(self._zones) >= MAX_ZONES:
                self._problems.add(f"{place}/zone", "too_many_zones", f"at most {MAX_ZONES} zones")
                return None
            zone = self._zones[line["zone"]] = _Zone(line["zone"], place)
        for column in ZONE_COLUMNS:
            said = line.get(column, "")
            if not said.strip():
                continue
            if column not in ("zone_name", "required_tier", "allowed_roles"):
                said = said.strip()
            if zone.facts.setdefault(column, said) != said:
                detail = f"zone {quoted(zone.zone_id)} has {quoted(zone.facts[column])} as its {column} further up"
                self._problems.add(f"{place}/{column}", "contradiction", detail)
        return zone

    def _layout_line(self, place: str, line: dict[str, str]) -> None:
        if not line.get("extra", "").strip() or any(cell for column, cell in line.items() if column != "extra"):
            self._problems.add(f"{place}/zone", "missing", "zone is missing")
        elif self._layout_place:
            self._problems.add(place, "contradiction", "a second line speaks of the whole layout")
        else:
            self._layout_place = f"{place}/extra"
            self._layout = read_remainder(self._problems, self._layout_place, line["extra"], never=("zones",))

    def _zone_line(self, zone: _Zone, place: str, line: dict[str, str]) -> None:
        zone.place = place
        for column in ("x", "y", "category", "seat_id", "companion_seat_id", "aisle_after"):
            if line.get(column, "").strip():
                said = f"{column} is said of a zone: row and number are missing"
                self._problems.add(f"{place}/{column}", "misplaced", said)
        if line.get("extra", "").strip():
            never = ("seats", "zone_id")
            zone.rest = read_remainder(self._problems, f"{place}/extra", line["extra"], never=never)

    def _seat(self, zone: _Zone, place: str, line: dict[str, str]) -> None:
        for column in ("zone", "row", "seat_id"):
            if line.get(column, "") != line.get(column, "").strip():
                self._notes.add(f"{place}/{column}", "outer_spaces", f"spaces around a {column} belong to it")
        seat = _built_seat(zone.zone_id, self._cleaned(place, line))
        rest: Config = {}
        if line.get("extra", "").strip():
            rest = read_remainder(self._problems, f"{place}/extra", line["extra"])
        flag = line.get("aisle_after", "").strip().lower()
        if flag in YES:
            zone.aisles.setdefault(line["row"], []).append(seat["number"])
        elif flag not in NO:
            said = "must be 1 where an aisle lies between this number and the next, else empty"
            self._problems.add(f"{place}/aisle_after", "wrong_type", said)
        zone.seats.append((seat, rest))
        zone.seat_places.append(place)

    def _cleaned(self, place: str, line: dict[str, str]) -> dict[str, str]:
        clean = {**line, **{column: line[column].strip() for column in ("number", "x", "y", "category")}}
        if self._decimal_comma:
            for axis in ("x", "y"):
                if "," in clean[axis] and "." not in clean[axis]:
                    clean[axis] = clean[axis].replace(",", ".", 1)
                    self._notes.add(f"{place}/{axis}", "decimal_comma", "decimal commas were read as points")
        if integer_of(clean["number"]) is None:
            said = "is missing" if not clean["number"] else f"must be a whole number, not {quoted(clean['number'])}"
            code = "missing" if not clean["number"] else "wrong_type"
            self._problems.add(f"{place}/number", code, f"number {said}")
            clean["number"] = "0"
        for axis, other in (("x", "y"), ("y", "x")):
            if clean[axis] and number_of(clean[axis]) is None:
                self._problems.add(f"{place}/{axis}", "wrong_type", f"must be a number, not {quoted(clean[axis])}")
                clean[axis] = "0"
            elif clean[other] and not clean[axis]:
                self._problems.add(f"{place}/{axis}", "missing", f"{other} is given, but {axis} is not")
                clean[axis] = "0"
        return clean

    def result(self) -> ReadFile:
        places = Places(_SEAT_COLUMNS, _ZONE_COLUMNS)
        places.root = self._layout_place
        zones: list[Config] = []
        for zone in self._zones.values():
            if zone.rest.pop(STANDARD_UNSAID, None) is True:
                for seat, _ in zone.seats:
                    if seat.get("category") == "standard":
                        del seat["category"]
            seats = [restored(seat, rest) if rest else seat for seat, rest in zone.seats]
            zones.append(restored(built_zone(zone.zone_id, zone.facts, seats, zone.aisles), zone.rest))
            places.add_zone(zone.place, zone.seat_places)
        return ReadFile(config={**self._layout, "zones": zones}, notes=self._notes.listed(), places=places)


_SEAT_COLUMNS = {"/coordinates/x": "/x", "/coordinates/y": "/y", "/coordinates": "/x"}
_ZONE_COLUMNS = {
    "/zone_id": "/zone",
    "/name": "/zone_name",
    "/seats": "/row",
    **{f"/{field}": f"/extra/{field}" for field in ("rows", "focal_point", "metadata", "membership_tier")},
}


def _built_seat(zone_id: str, line: dict[str, str]) -> Config:
    seat: Config = {
        "seat_id": line.get("seat_id") or f"{zone_id}-{line['row']}-{line['number']}",
        "row": line["row"],
        "number": integer_of(line["number"]),
    }
    if line["x"] and line["y"]:
        seat["coordinates"] = {"x": number_of(line["x"]), "y": number_of(line["y"])}
    if line["category"]:
        seat["category"] = line["category"]
    if line.get("companion_seat_id"):
        seat["companion_seat_id"] = line["companion_seat_id"]
    return seat
