"""A layout's file, whatever its format: from bytes to a checked layout, and back."""

import uuid
from typing import Any

import msgspec

from holdfast.compat.layout_csv import read_csv, write_csv
from holdfast.compat.layout_file import LayoutFormat, Note, Places, ReadFile, WrittenFile
from holdfast.compat.layout_svg import read_svg
from holdfast.compat.layout_svg_writer import write_svg
from holdfast.compat.pretix import read_pretix, write_pretix
from holdfast.seating.layout import Layout
from holdfast.seating.validate import LayoutInvalid, Problem, parse_layout

MEDIA_TYPES = {
    LayoutFormat.NATIVE: "application/json",
    LayoutFormat.CSV: "text/csv; charset=utf-8; header=present",
    LayoutFormat.PRETIX: "application/json",
    LayoutFormat.SVG: "image/svg+xml",
}
ENDINGS = {
    LayoutFormat.NATIVE: ".json",
    LayoutFormat.CSV: ".csv",
    LayoutFormat.PRETIX: ".pretix.json",
    LayoutFormat.SVG: ".svg",
}
_ANY_LAYOUT = uuid.UUID(int=0)


class CheckedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file whose layout can stand."""

    config: bytes
    """Native JSON; of a native file, its own bytes."""
    layout: Layout
    """Its ids are of no layout in particular."""
    notes: tuple[Note, ...]
    name: str | None
    places: Places | None


def read_layout(layout_format: LayoutFormat, content: bytes) -> CheckedFile:
    """Raises LayoutInvalid with every problem, each with its place in the file."""
    read = _read(layout_format, content)
    try:
        layout = parse_layout(_ANY_LAYOUT, read.config)
    except LayoutInvalid as error:
        raise relocated(error, read.places) from None
    config = content if layout_format is LayoutFormat.NATIVE else msgspec.json.encode(read.config)
    return CheckedFile(config=config, layout=layout, notes=read.notes, name=read.name, places=read.places)


def relocated(error: LayoutInvalid, places: Places | None) -> LayoutInvalid:
    """The same problems, by their places in the file."""
    return error if places is None else LayoutInvalid(places.relocated(error.problems))


def write_layout(layout_format: LayoutFormat, config: bytes, name: str) -> WrittenFile:
    """`config` as it is stored: native JSON that was checked when it came."""
    if layout_format is LayoutFormat.NATIVE:
        return WrittenFile(content=config)
    decoded: Any = msgspec.json.decode(config)
    match layout_format:
        case LayoutFormat.CSV:
            return write_csv(decoded)
        case LayoutFormat.PRETIX:
            return write_pretix(decoded, name)
        case LayoutFormat.SVG:
            return write_svg(decoded, name)


def _read(layout_format: LayoutFormat, content: bytes) -> ReadFile:
    match layout_format:
        case LayoutFormat.CSV:
            return read_csv(content)
        case LayoutFormat.PRETIX:
            return read_pretix(decoded_json(content))
        case LayoutFormat.SVG:
            return read_svg(content)
        case LayoutFormat.NATIVE:
            return ReadFile(config=decoded_json(content))


def decoded_json(content: bytes) -> Any:
    try:
        decoded = msgspec.json.decode(content)
        content.decode()  # stored as text: an escape may hide what a reader of bytes lets through
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise LayoutInvalid([Problem("", "not_json", f"the file is not JSON: {error}")]) from None
    return decoded


def guessed_format(file_name: str, content: bytes) -> LayoutFormat:
    """By the file's ending; where that leaves a choice, by what the file begins with."""
    lowered = file_name.lower()
    if lowered.endswith((".csv", ".tsv", ".txt")):
        return LayoutFormat.CSV
    if lowered.endswith(".svg"):
        return LayoutFormat.SVG
    start = content[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"<"):
        return LayoutFormat.SVG
    if start.startswith((b"{", b"[")):
        return LayoutFormat.PRETIX if _looks_like_pretix(content) else LayoutFormat.NATIVE
    return LayoutFormat.NATIVE if lowered.endswith(".json") else LayoutFormat.CSV


class _Pretix(msgspec.Struct):
    """What a seating plan of theirs must have, and a config of ours may not."""

    name: msgspec.Raw
    categories: msgspec.Raw
    zones: msgspec.Raw


def _looks_like_pretix(content: bytes) -> bool:
    try:
        msgspec.json.decode(content, type=_Pretix)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
