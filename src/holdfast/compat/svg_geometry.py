"""The geometry of SVG that a seat needs: transforms, and the middle of a shape."""

import math
import re
from collections.abc import Mapping

from holdfast.compat.layout_file import number_of

Matrix = tuple[float, float, float, float, float, float]
"""As in `matrix(a b c d e f)`."""
Point = tuple[float, float]

IDENTITY: Matrix = (1, 0, 0, 1, 0, 0)
PATH_CHARS = 100_000


class BadGeometry(Exception):
    """An attribute that cannot be understood: its name, and why."""

    def __init__(self, attribute: str, detail: str) -> None:
        super().__init__(detail)
        self.attribute = attribute
        self.detail = detail


# Transforms -----------------------------------------------------------------------------------------------------------
_FUNCTION = re.compile(r"\s*,?\s*([A-Za-z]+)\s*\(([^()]*)\)")
# Written so that there is one way to match: a long row of digits must not cost its square.
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_COUNTS = {
    "translate": (1, 2),
    "scale": (1, 2),
    "rotate": (1, 3),
    "matrix": (6,),
    "skewX": (1,),
    "skewY": (1,),
}


def times(one: Matrix, other: Matrix) -> Matrix:
    """`other` is applied first."""
    if one == IDENTITY:
        return other
    if other == IDENTITY:
        return one
    a, b, c, d, e, f = one
    g, h, i, j, k, m = other
    return a * g + c * h, b * g + d * h, a * i + c * j, b * i + d * j, a * k + c * m + e, b * k + d * m + f


def moved(matrix: Matrix, point: Point) -> Point:
    if matrix == IDENTITY:
        return point  # to the digit as it was written
    a, b, c, d, e, f = matrix
    x, y = point
    return a * x + c * y + e, b * x + d * y + f


def transform_of(text: str) -> Matrix:
    matrix: Matrix = IDENTITY
    end = 0
    while end < len(text.rstrip()):
        found = _FUNCTION.match(text, end)
        if found is None:
            raise BadGeometry("transform", f"cannot be understood from “{text[end : end + 40].strip()}” on")
        matrix = times(matrix, _single(found[1], found[2]))
        end = found.end()
    return matrix


def _single(name: str, arguments: str) -> Matrix:
    if name not in _COUNTS:
        raise BadGeometry("transform", f"there is no transform “{name}”")
    numbers = numbers_of("transform", arguments)
    if len(numbers) not in _COUNTS[name]:
        raise BadGeometry("transform", f"{name} does not take {len(numbers)} numbers")
    if name == "matrix":
        a, b, c, d, e, f = numbers
        return a, b, c, d, e, f
    if name == "translate":
        return 1, 0, 0, 1, numbers[0], numbers[1] if len(numbers) > 1 else 0
    if name == "scale":
        return numbers[0], 0, 0, numbers[-1], 0, 0
    angle = math.radians(numbers[0])
    if name == "skewX":
        return 1, 0, math.tan(angle), 1, 0, 0
    if name == "skewY":
        return 1, math.tan(angle), 0, 1, 0, 0
    turn: Matrix = (math.cos(angle), math.sin(angle), -math.sin(angle), math.cos(angle), 0, 0)
    if len(numbers) == 1:
        return turn
    _, x, y = numbers
    return times(times((1, 0, 0, 1, x, y), turn), (1, 0, 0, 1, -x, -y))


def numbers_of(attribute: str, text: str) -> list[float]:
    rest = _NUMBER.sub("", text).replace(",", " ")
    if rest.strip():
        raise BadGeometry(attribute, f"“{text.strip()[:40]}” is no list of numbers")
    return [_finite(attribute, found) for found in _NUMBER.findall(text)]


def _finite(attribute: str, text: str) -> float:
    value = number_of(text)
    if value is None or not math.isfinite(value):
        raise BadGeometry(attribute, f"“{text[:40]}” cannot be read as a number")
    return value


# Shapes ---------------------------------------------------------------------------------------------------------------
SHAPES = frozenset(("circle", "ellipse", "rect", "path", "polygon", "polyline", "line", "image"))


def length_of(attributes: Mapping[str, str], name: str) -> float:
    """A length in the drawing's own units, which `px` is another word for."""
    text = attributes.get(name, "0").strip().removesuffix("px")
    if not _NUMBER.fullmatch(text):
        raise BadGeometry(name, f"“{text[:40]}” is no number; lengths must be in the drawing's own units")
    return _finite(name, text)


def middle_of(tag: str, attributes: Mapping[str, str]) -> Point:
    """The middle of a shape, before any transform."""
    match tag:
        case "circle" | "ellipse":
            return length_of(attributes, "cx"), length_of(attributes, "cy")
        case "rect" | "image":
            width, height = length_of(attributes, "width"), length_of(attributes, "height")
            return length_of(attributes, "x") + width / 2, length_of(attributes, "y") + height / 2
        case "line":
            xs = length_of(attributes, "x1"), length_of(attributes, "x2")
            ys = length_of(attributes, "y1"), length_of(attributes, "y2")
            return sum(xs) / 2, sum(ys) / 2
        case "polygon" | "polyline":
            numbers = numbers_of("points", attributes.get("points", ""))
            return _box_middle("points", list(zip(numbers[::2], numbers[1::2], strict=False)))
        case "path":
            return _box_middle("d", path_points(attributes.get("d", "")))
    raise BadGeometry("", f"a {tag} has no middle")


def _box_middle(attribute: str, points: list[Point]) -> Point:
    if not points:
        raise BadGeometry(attribute, "has no points")
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return (min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2


_COMMAND = re.compile(r"([MmLlHhVvCcSsQqTtAaZz])([^MmLlHhVvCcSsQqTtAaZz]*)")
_GAP = re.compile(r"[\s,]*")
_SIZES = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "S": 4, "Q": 4, "T": 2, "A": 7, "Z": 0}


def path_points(text: str) -> list[Point]:
    """Ends and control points of a path's pieces. Around them lies a box with the same middle as the shape's, where the
    shape is one that is used for seats: a ring of arcs, a rectangle, something symmetrical."""
    if len(text) > PATH_CHARS:
        raise BadGeometry("d", "is too long for a seat")
    points: list[Point] = []
    x = y = start_x = start_y = 0.0
    left = _COMMAND.sub("", text).strip(" ,\t\r\n")
    if left:
        raise BadGeometry("d", f"cannot be understood at “{left[:40]}”")
    for letter, arguments in _COMMAND.findall(text):
        command, relative = letter.upper(), letter.islower()
        if command == "Z":
            x, y = start_x, start_y
            continue
        numbers = _arcs(arguments) if command == "A" else numbers_of("d", arguments)
        size = _SIZES[command]
        if not numbers or len(numbers) % size:
            raise BadGeometry("d", f"{letter} does not take {len(numbers)} numbers")
        for at in range(0, len(numbers), size):
            part = numbers[at : at + size]
            base_x, base_y = (x, y) if relative else (0.0, 0.0)
            if command == "H":
                x = base_x + part[0]
            elif command == "V":
                y = base_y + part[0]
            else:
                pairs = [part[5:7]] if command == "A" else [part[i : i + 2] for i in range(0, size, 2)]
                found = [(base_x + px, base_y + py) for px, py in pairs]
                points += found
                x, y = found[-1]
            if command == "M" and at == 0:
                start_x, start_y = x, y
            points.append((x, y))
    return points


def _arcs(arguments: str) -> list[float]:
    """By hand: the two flags of an arc may be written without anything between them and the next number."""
    numbers: list[float] = []
    at = _after_gap(arguments, 0)
    while at < len(arguments):
        if len(numbers) % 7 in (3, 4):
            found = arguments[at] if arguments[at] in "01" else ""
        else:
            matched = _NUMBER.match(arguments, at)
            found = matched[0] if matched else ""
        if not found:
            raise BadGeometry("d", f"“{arguments[at : at + 40].strip()}” is no part of an arc")
        numbers.append(_finite("d", found))
        at = _after_gap(arguments, at + len(found))
    return numbers


def _after_gap(text: str, at: int) -> int:
    found = _GAP.match(text, at)
    return at if found is None else found.end()
