"""Reading the fields of decoded JSON: each reader returns the value, or notes the problem and returns None.

Callers go on with the None so that one fault does not hide the next; they refuse the document at the end.
A null in an optional field means the same as leaving the field out.
"""

import math
import unicodedata
from collections.abc import Collection
from enum import StrEnum
from typing import Any, TypeVar

from holdfast.kernel.problems import Problems, child, listing, quoted, type_name
from holdfast.seating.layout import Point

COORDINATE_LIMIT = 1_000_000.0
METADATA_DEPTH = 8
METADATA_VALUES = 2_000
METADATA_TEXT = 4_000
# Beyond this a browser reads another number than was written.
_SAFE_INTEGER = 2**53 - 1

Object = dict[str, Any]
Choice = TypeVar("Choice", bound=StrEnum)


def read_object(problems: Problems, pointer: str, value: object, known: Collection[str] | None) -> Object | None:
    """The value as an object; fields not in `known` are each named. `known=None` allows any."""
    if not isinstance(value, dict):
        problems.add(pointer, "wrong_type", f"must be an object, not {type_name(value)}")
        return None
    if known is not None:
        for field in value:
            if field not in known:
                problems.add(
                    child(pointer, str(field)),
                    "unknown_field",
                    f"there is no field {quoted(str(field))} here",
                )
    return value


def read_list(problems: Problems, pointer: str, value: object) -> list[Any] | None:
    if not isinstance(value, list):
        problems.add(pointer, "wrong_type", f"must be an array, not {type_name(value)}")
        return None
    return value


def text_fault(value: object, limit: int) -> tuple[str, str] | None:
    """Code and detail of what is wrong with a string, if anything."""
    if not isinstance(value, str):
        return "wrong_type", f"must be a string, not {type_name(value)}"
    if not value or value.isspace():
        return "empty", "must not be empty"
    if len(value) > limit:
        return "too_long", f"must be at most {limit} characters, not {len(value)}"
    # Joiners and other marks that scripts need are not “printable” either: only controls and halves of a pair
    # are refused, which no database column and no UTF-8 answer could carry.
    if not value.isprintable() and any(unicodedata.category(char) in ("Cc", "Cs") for char in value):
        return "bad_text", "must not contain control characters"
    return None


def check_text(problems: Problems, pointer: str, value: object, limit: int) -> str | None:
    fault = text_fault(value, limit)
    if fault is not None:
        problems.add(pointer, *fault)
        return None
    return str(value)


def read_text(problems: Problems, pointer: str, source: Object, field: str, limit: int) -> str | None:
    """A required string."""
    if field not in source:
        problems.add(child(pointer, field), "missing", f"{field} is missing")
        return None
    return check_text(problems, child(pointer, field), source[field], limit)


def read_optional_text(problems: Problems, pointer: str, source: Object, field: str, limit: int) -> str | None:
    value = source.get(field)
    return None if value is None else check_text(problems, child(pointer, field), value, limit)


def integer_fault(value: object, low: int, high: int) -> tuple[str, str] | None:
    """A boolean is no integer, nor is 3.0."""
    if isinstance(value, bool) or not isinstance(value, int):
        return "wrong_type", f"must be an integer, not {type_name(value)}"
    if not low <= value <= high:
        return "out_of_range", f"must be from {low} to {high}"
    return None


def check_integer(problems: Problems, pointer: str, value: object, low: int, high: int) -> int | None:
    fault = integer_fault(value, low, high)
    if fault is not None:
        problems.add(pointer, *fault)
        return None
    assert isinstance(value, int)
    return value


def read_integer(problems: Problems, pointer: str, source: Object, field: str, low: int, high: int) -> int | None:
    """A required integer."""
    if field not in source:
        problems.add(child(pointer, field), "missing", f"{field} is missing")
        return None
    return check_integer(problems, child(pointer, field), source[field], low, high)


def check_choice(problems: Problems, pointer: str, value: object, choices: type[Choice], code: str) -> Choice | None:
    if not isinstance(value, str):
        problems.add(pointer, "wrong_type", f"must be a string, not {type_name(value)}")
        return None
    try:
        return choices(value)
    except ValueError:
        problems.add(pointer, code, f"{quoted(value)} is none of {listing(choices)}")
        return None


def read_point(problems: Problems, pointer: str, value: object) -> Point | None:
    """An object of x and y; null reads as no point."""
    if value is None:
        return None
    source = read_object(problems, pointer, value, ("x", "y"))
    if source is None:
        return None
    x = _read_coordinate(problems, pointer, source, "x")
    y = _read_coordinate(problems, pointer, source, "y")
    return None if x is None or y is None else Point(x, y)


def _read_coordinate(problems: Problems, pointer: str, source: Object, axis: str) -> float | None:
    if axis not in source:
        problems.add(child(pointer, axis), "missing", f"{axis} is missing")
        return None
    value = source[axis]
    if isinstance(value, bool) or not isinstance(value, int | float):
        problems.add(child(pointer, axis), "wrong_type", f"must be a number, not {type_name(value)}")
        return None
    # Written so that NaN fails it too, and before float(), which a huge integer would overflow.
    if not -COORDINATE_LIMIT <= value <= COORDINATE_LIMIT:
        limit = int(COORDINATE_LIMIT)
        problems.add(child(pointer, axis), "bad_coordinate", f"must be a number from -{limit} to {limit}")
        return None
    return float(value)


def read_metadata(problems: Problems, pointer: str, value: object) -> Object:
    """Free-form, yet bounded and storable; null reads as empty."""
    if value is None:
        return {}
    source = read_object(problems, pointer, value, None)
    if source is None:
        return {}
    fault = _metadata_fault(source)
    if fault is not None:
        problems.add(pointer, "bad_metadata", fault)
        return {}
    return source


def _metadata_fault(source: Object) -> str | None:
    waiting: list[tuple[object, int]] = [(source, 1)]
    seen = 0
    while waiting:
        value, depth = waiting.pop()
        seen += 1
        if seen > METADATA_VALUES:
            return f"must hold at most {METADATA_VALUES} values"
        if depth > METADATA_DEPTH:
            return f"must not be nested deeper than {METADATA_DEPTH}"
        match value:
            case None | bool():
                pass
            case int():
                if not -_SAFE_INTEGER <= value <= _SAFE_INTEGER:
                    return "must not hold integers beyond 2^53"
            case float():
                if not math.isfinite(value):
                    return "must not hold non-finite numbers"
            case str():
                if len(value) > METADATA_TEXT:
                    return f"must not hold strings over {METADATA_TEXT} characters"
                if "\0" in value or not _encodable(value):
                    return "must not hold NUL characters or lone surrogates"
            case list():
                waiting += [(item, depth + 1) for item in value[: METADATA_VALUES + 1]]
            case dict():
                if len(value) > METADATA_VALUES:
                    return f"must hold at most {METADATA_VALUES} values"
                waiting += [(item, depth + 1) for pair in value.items() for item in pair]
            case _:
                return f"must not hold {type_name(value)}"
    return None


def _encodable(text: str) -> bool:
    return text.isascii() or not any(0xD800 <= ord(char) <= 0xDFFF for char in text)


# Who may enter a zone, as a layout and as an event's overlay say it ----------------------------------------------
MAX_ROLES = 50
ROLE_CHARS = 100
"""Of a role's name, and of a tier's."""


def tier_field(problems: Problems, pointer: str, source: Object) -> str:
    """The field that names the tier: `membership_tier` is an older spelling; either is read, both at once is a mistake."""
    if source.get("membership_tier") is None:
        return "required_tier"
    if source.get("required_tier") is None:
        return "membership_tier"
    place = child(pointer, "membership_tier")
    problems.add(place, "conflicting_fields", "give required_tier or membership_tier, not both")
    return "required_tier"


def read_roles(problems: Problems, pointer: str, value: object) -> tuple[str, ...] | None:
    """Each once; None where nothing is said, or too much."""
    if value is None:
        return None
    raw_roles = read_list(problems, pointer, value) or []
    if len(raw_roles) > MAX_ROLES:
        problems.add(pointer, "too_many_roles", f"at most {MAX_ROLES} roles, not {len(raw_roles)}")
        return None
    roles = [check_text(problems, child(pointer, place), role, ROLE_CHARS) for place, role in enumerate(raw_roles)]
    return tuple(dict.fromkeys(role for role in roles if role is not None))
