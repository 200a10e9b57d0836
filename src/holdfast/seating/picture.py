"""A layout as a drawing: where everything goes on the paper, and the SVG of it. `picture_png.py` paints the same scene.

Colours differ in lightness as well as in hue, so that a grey copy and a colour-blind reader tell them apart; wheelchair
seats are squares and their companions' diamonds, whatever the colour means.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from xml.sax.saxutils import escape

import msgspec
import numpy as np
from numpy.typing import NDArray

from holdfast.seating.layout import Layout, SeatCategory, Zone

Floats = NDArray[np.float64]

INK = "#1d1d28"
FAINT = "#6b6b78"
PAPER = "#ffffff"
SAMPLE = 200
"""Seats that are asked for their nearest neighbour; the size of all is taken from theirs."""
LABELLED_ROWS = 4_000
"""Beyond that many rows, names would only blacken the paper."""


class By(StrEnum):
    """What the colours mean."""

    STATE = "state"
    ZONE = "zone"
    HOLD_TYPE = "hold_type"
    CATEGORY = "category"


class Shape(StrEnum):
    CIRCLE = "circle"
    SQUARE = "square"
    DIAMOND = "diamond"


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How an event's seats stand, by ordinal, and its general-admission zones, by zone number."""

    states: list[str]
    hold_types: list[str | None]
    counts: Mapping[int, tuple[int, int]] = {}
    """Held and sold places of a zone."""


class Mark(msgspec.Struct, frozen=True):
    """A colour and what it means."""

    name: str
    fill: str
    outline: str
    count: int


class Label(msgspec.Struct, frozen=True, kw_only=True):
    x: float
    y: float
    text: str
    size: float
    anchor: str = "middle"
    bold: bool = False
    colour: str = INK
    halo: bool = False


class Box(msgspec.Struct, frozen=True, kw_only=True):
    x: float
    y: float
    width: float
    height: float
    fill: str
    outline: str
    rounding: float = 0.0


class Spot(msgspec.Struct, frozen=True):
    """A single sign, in the legend."""

    x: float
    y: float
    radius: float
    shape: Shape
    fill: str
    outline: str


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    left: float
    top: float
    width: float
    height: float
    xs: Floats
    ys: Floats
    radius: float
    marks: tuple[Mark, ...]
    mark_of: NDArray[np.intp]
    """By ordinal: which of the marks a seat has."""
    shapes: list[Shape]
    titles: list[str]
    boxes: tuple[Box, ...]
    labels: tuple[Label, ...]
    spots: tuple[Spot, ...]
    title: str


# Colours: (fill, outline), from light to dark as far as there is an order ----------------------------------------------
STATE_COLOURS = {
    "available": ("#c9ecc5", "#2e6b34"),
    "held": ("#f0a830", "#7a4b00"),
    "sold": ("#2f3b63", "#141a30"),
    "blocked": ("#8d8d94", "#3f3f45"),
}
CATEGORY_COLOURS = {
    SeatCategory.STANDARD: ("#cfdff2", "#2f5d92"),
    SeatCategory.WHEELCHAIR: ("#0b6b46", "#03301f"),
    SeatCategory.COMPANION: ("#7cc9a0", "#0b6b46"),
    SeatCategory.RESTRICTED_VIEW: ("#c4841d", "#6a4200"),
    SeatCategory.AISLE: ("#72727b", "#33333a"),
}
PALETTE = (
    ("#cfdff2", "#2f5d92"), ("#e58f3c", "#7a4100"), ("#3f7f5f", "#173626"), ("#f2d6e6", "#8a2f63"),
    ("#6a51a3", "#33245a"), ("#e8d24a", "#6e6000"), ("#9c3d3d", "#4a1515"), ("#9fd8dc", "#1d6a70"),
    ("#4a4a55", "#1d1d28"), ("#c5b8a5", "#64573f"), ("#2f6fb3", "#123456"), ("#d98ba0", "#7a2f45"),
)  # fmt: skip


def scene_of(layout: Layout, name: str, *, by: By = By.CATEGORY, standing: Standing | None = None) -> Scene:
    """`standing` is needed where the colours mean states or hold types."""
    xs, ys = seat_points(layout)
    radius = seat_radius(xs, ys)
    marks, mark_of = _marks(layout, by, standing)
    shapes = [_SHAPES.get(category, Shape.CIRCLE) for category in layout.categories]
    left, top, right, bottom = _extent(xs, ys, radius)
    unit = max(radius, (right - left) / 140)
    labels = [*_row_labels(layout, xs, ys, radius), *_zone_labels(layout, xs, ys, radius, unit)]
    boxes: list[Box] = []
    if layout.focal_point is not None:
        stage, word = _stage(layout.focal_point.x, layout.focal_point.y, xs, ys, radius, right - left)
        boxes.append(stage)
        labels.append(word)
        left, right = min(left, stage.x - 2 * radius), max(right, stage.x + stage.width + 2 * radius)
        top, bottom = min(top, stage.y - 2 * radius), max(bottom, stage.y + stage.height + 2 * radius)
    places, bottom = _ga_boxes(layout, standing, left, right, bottom, unit)
    boxes += [box for box, _ in places]
    labels += [label for _, said in places for label in said]
    right = max([right, *(box.x + box.width + unit for box, _ in places)])
    size = _fitting(name, 3.4 * unit, right - left)
    head = Label(x=(left + right) / 2, y=top - 2.5 * unit, text=name, size=size, bold=True)
    top -= 7 * unit
    spots, words, bottom = _legend(layout, marks, left, right, bottom, unit)
    return Scene(
        left=left - 2 * unit,
        top=top - unit,
        width=right - left + 4 * unit,
        height=bottom - top + 2 * unit,
        xs=xs,
        ys=ys,
        radius=radius,
        marks=marks,
        mark_of=mark_of,
        shapes=shapes,
        titles=_titles(layout, standing),
        boxes=tuple(boxes),
        labels=(*labels, head, *words),
        spots=tuple(spots),
        title=name,
    )


_SHAPES = {SeatCategory.WHEELCHAIR: Shape.SQUARE, SeatCategory.COMPANION: Shape.DIAMOND}


# Where things are -----------------------------------------------------------------------------------------------------
def seat_points(layout: Layout) -> tuple[Floats, Floats]:
    """Every seat's place; those that have none are set out in rows below the others."""
    xs = np.array(layout.xs, dtype=np.float64)  # None becomes NaN
    ys = np.array(layout.ys, dtype=np.float64)
    missing = np.flatnonzero(np.isnan(xs))
    if not len(missing):
        return xs, ys
    placed = ~np.isnan(xs)
    left = float(xs[placed].min()) if placed.any() else 0.0
    top = float(ys[placed].max()) if placed.any() else 0.0
    step = 2.4 * seat_radius(xs[placed], ys[placed])
    lines: dict[tuple[int, str], int] = {}
    lowest: dict[tuple[int, str], int] = {}
    for ordinal in missing.tolist():
        key = (layout.zone_nos[ordinal], layout.rows[ordinal])
        # A free line between zones, so that one sees where the next begins.
        lines.setdefault(key, len(lines) + 2 * key[0])
        lowest[key] = min(lowest.get(key, layout.numbers[ordinal]), layout.numbers[ordinal])
    for ordinal in missing.tolist():
        key = (layout.zone_nos[ordinal], layout.rows[ordinal])
        xs[ordinal] = left + step * (layout.numbers[ordinal] - lowest[key])
        ys[ordinal] = top + step * (lines[key] + 2)
    return xs, ys


def seat_radius(xs: Floats, ys: Floats) -> float:
    """So that neighbours nearly touch: from the distances of a sample to whoever is nearest."""
    if len(xs) < 2:
        return 8.0
    sample = np.unique(np.linspace(0, len(xs) - 1, min(SAMPLE, len(xs))).astype(np.intp))
    nearest: list[float] = []
    for ordinal in sample.tolist():
        square = (xs - xs[ordinal]) ** 2 + (ys - ys[ordinal]) ** 2
        apart = square[square > 0]
        if len(apart):
            nearest.append(float(apart.min()) ** 0.5)
    return 0.43 * float(np.percentile(nearest, 20)) if nearest else 8.0


def _extent(xs: Floats, ys: Floats, radius: float) -> tuple[float, float, float, float]:
    if not len(xs):
        return 0.0, 0.0, 800.0, 0.0
    room = 5 * radius
    return float(xs.min()) - room, float(ys.min()) - room, float(xs.max()) + room, float(ys.max()) + room


def rows_of(layout: Layout) -> dict[tuple[int, str], list[int]]:
    """Ordinals of each row of each zone, by seat number."""
    rows: dict[tuple[int, str], list[int]] = {}
    for ordinal, key in enumerate(zip(layout.zone_nos, layout.rows, strict=True)):
        rows.setdefault(key, []).append(ordinal)
    for ordinals in rows.values():
        ordinals.sort(key=layout.numbers.__getitem__)
    return rows


def _row_labels(layout: Layout, xs: Floats, ys: Floats, radius: float) -> Iterator[Label]:
    rows = rows_of(layout)
    if len(rows) > LABELLED_ROWS:
        return
    for (_, name), ordinals in rows.items():
        ends = [(ordinals[0], ordinals[1] if len(ordinals) > 1 else None)]
        if len(ordinals) > 1:
            ends.append((ordinals[-1], ordinals[-2]))
        for end, before in ends:
            dx, dy = (-1.0, 0.0) if before is None else (xs[end] - xs[before], ys[end] - ys[before])
            length = float(np.hypot(dx, dy)) or 1.0
            # Outward along the row, by which a curved row's name follows its curve.
            x, y = float(xs[end]) + 2.3 * radius * dx / length, float(ys[end]) + 2.3 * radius * dy / length
            yield Label(x=x, y=y + 0.55 * radius, text=name, size=1.6 * radius, colour=FAINT)


def _zone_labels(layout: Layout, xs: Floats, ys: Floats, radius: float, unit: float) -> Iterator[Label]:
    for zone in layout.zones:
        if zone.seat_count:
            part = slice(zone.first_ordinal, zone.first_ordinal + zone.seat_count)
            if unit > 1.5 * radius:  # a plan so large that the name is no longer than the zone is wide
                x, y = float(xs[part].mean()), float(ys[part].mean())
                yield Label(x=x, y=y, text=zone.name, size=unit, bold=True, halo=True)
                continue
            x = float(xs[part].min() + xs[part].max()) / 2
            near = np.abs(xs[part] - x) <= 6 * radius
            top = float(ys[part][near].min() if near.any() else ys[part].min())
            yield Label(x=x, y=top - 2 * radius, text=zone.name, size=max(2.2 * radius, unit), bold=True, halo=True)


def _stage(x: float, y: float, xs: Floats, ys: Floats, radius: float, width: float) -> tuple[Box, Label]:
    """Where the audience looks: a stage as wide as there is room for before it reaches a seat."""
    clear = float(np.hypot(xs - x, ys - y).min()) if len(xs) else width / 3
    half = max(3 * radius, min(0.22 * width, 0.9 * clear))
    high = max(1.5 * radius, min(max(3 * radius, 0.03 * width), 0.4 * clear))
    box = Box(
        x=x - half, y=y - high, width=2 * half, height=2 * high, fill="#e9e6f2", outline=FAINT, rounding=0.5 * high
    )
    size = min(max(2.2 * radius, 0.02 * width), 1.1 * high)
    return box, Label(x=x, y=y + 0.35 * size, text="Stage", size=size, bold=True, colour=FAINT)


def _ga_boxes(
    layout: Layout, standing: Standing | None, left: float, right: float, bottom: float, unit: float
) -> tuple[list[tuple[Box, list[Label]]], float]:
    zones = [zone for zone in layout.zones if zone.is_ga]
    made: list[tuple[Box, list[Label]]] = []
    width, height, gap = 30 * unit, 10 * unit, 2 * unit
    across = max(1, int((right - left + gap) // (width + gap)))
    start = (left + right - min(across, len(zones)) * (width + gap) + gap) / 2
    for place, zone in enumerate(zones):
        line, column = divmod(place, across)
        x, y = start + column * (width + gap), bottom + gap + line * (height + gap)
        _, outline = PALETTE[zone.zone_no % len(PALETTE)]
        box = Box(x=x, y=y, width=width, height=height, fill="#f6f4ee", outline=outline, rounding=unit)
        middle = x + width / 2
        said = [
            Label(x=middle, y=y + 3.5 * unit, text=zone.name, size=_fitting(zone.name, 2.4 * unit, width), bold=True)
        ]
        for line_no, text in enumerate(_counts(zone, standing)):
            size = _fitting(text, 1.7 * unit, width)
            said.append(Label(x=middle, y=y + (6.2 + 2.3 * line_no) * unit, text=text, size=size, colour=FAINT))
        made.append((box, said))
    return made, bottom + (gap + height) * -(-len(zones) // across) + (gap if zones else 0)


def _counts(zone: Zone, standing: Standing | None) -> list[str]:
    if standing is None or zone.zone_no not in standing.counts:
        return [f"{zone.capacity} places"]
    held, sold = standing.counts[zone.zone_no]
    return [f"{zone.capacity} places", f"{zone.capacity - held - sold} left, {held} held, {sold} sold"]


def _fitting(text: str, size: float, width: float) -> float:
    """The size, or less where the words would not fit; a letter is little more than half as wide as it is high."""
    return min(size, 0.92 * width / (0.62 * max(1, len(text))))


def _legend(
    layout: Layout, marks: Iterable[Mark], left: float, right: float, bottom: float, unit: float
) -> tuple[list[Spot], list[Label], float]:
    own = {category.value: shape for category, shape in _SHAPES.items()}
    entries = [
        (own.get(mark.name, Shape.CIRCLE), mark.fill, mark.outline, f"{mark.name} ({mark.count})")
        for mark in marks
        if mark.count
    ]
    present = set(layout.categories)
    entries += [
        (shape, PAPER, INK, category.value.replace("_", " "))
        for category, shape in _SHAPES.items()
        if category in present and not any(entry[3].startswith(category.value) for entry in entries)
    ]
    spots: list[Spot] = []
    words: list[Label] = []
    x, y = left + unit, bottom + 3 * unit
    for shape, fill, outline, text in entries:
        width = (4.5 + 1.05 * len(text)) * unit
        if x > left + unit and x + width > right:
            x, y = left + unit, y + 3 * unit
        spots.append(Spot(x + unit, y, unit, shape, fill, outline))
        words.append(Label(x=x + 2.8 * unit, y=y + 0.6 * unit, text=text, size=1.8 * unit, anchor="start"))
        x += width
    return spots, words, y + 2 * unit if entries else bottom


# What things mean -----------------------------------------------------------------------------------------------------
def _marks(layout: Layout, by: By, standing: Standing | None) -> tuple[tuple[Mark, ...], NDArray[np.intp]]:
    names: list[str]
    colours: dict[str, tuple[str, str]]
    if by is By.ZONE:
        # By number, for two zones may bear one name.
        names = [str(zone_no) for zone_no in layout.zone_nos]
        colours = {str(zone.zone_no): PALETTE[zone.zone_no % len(PALETTE)] for zone in layout.zones}
    elif by is By.CATEGORY or standing is None:
        names = [category.value for category in layout.categories]
        colours = {category.value: colour for category, colour in CATEGORY_COLOURS.items()}
    elif by is By.STATE:
        names, colours = standing.states, STATE_COLOURS
    else:
        names = [hold or state for state, hold in zip(standing.states, standing.hold_types, strict=True)]
        held = sorted(set(names) - STATE_COLOURS.keys())
        colours = {**STATE_COLOURS, **{name: PALETTE[(1 + at) % len(PALETTE)] for at, name in enumerate(held)}}
    order = {name: at for at, name in enumerate(colours)}
    mark_of = np.array([order[name] for name in names], dtype=np.intp)
    counts = np.bincount(mark_of, minlength=len(order)).tolist() if len(names) else [0] * len(order)
    shown = {str(zone.zone_no): zone.name for zone in layout.zones} if by is By.ZONE else {}
    marks = tuple(
        Mark(shown.get(name, name.replace("_", " ") if name.islower() else name), fill, outline, counts[at])
        for at, (name, (fill, outline)) in enumerate(colours.items())
    )
    return marks, mark_of


def _titles(layout: Layout, standing: Standing | None) -> list[str]:
    zones = [zone.name for zone in layout.zones]
    titles: list[str] = []
    for ordinal, seat_id in enumerate(layout.seat_ids):
        category = layout.categories[ordinal]
        said = (
            f"{zones[layout.zone_nos[ordinal]]}, row {layout.rows[ordinal]}, seat {layout.numbers[ordinal]} ({seat_id})"
        )
        if category is not SeatCategory.STANDARD:
            said += f", {category.value.replace('_', ' ')}"
        if standing is not None:
            hold = standing.hold_types[ordinal]
            said += f": {standing.states[ordinal]}" + (f", {hold}" if hold else "")
        titles.append(said)
    return titles


# SVG ------------------------------------------------------------------------------------------------------------------
def draw_svg(scene: Scene, width: int | None = None) -> bytes:
    """`width` in pixels; without it, the drawing takes the room it is given."""
    size = f' width="{width}" height="{round(width * scene.height / scene.width)}"' if width else ""
    box = f"{_n(scene.left)} {_n(scene.top)} {_n(scene.width)} {_n(scene.height)}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg"{size} viewBox="{box}" role="img"'
        ' font-family="Helvetica, Arial, sans-serif">',
        f"<title>{xml_text(scene.title)}</title>",
        f'<rect x="{_n(scene.left)}" y="{_n(scene.top)}" width="{_n(scene.width)}" height="{_n(scene.height)}"'
        f' fill="{PAPER}"/>',
    ]
    stroke = _n(0.14 * scene.radius)
    for at, mark in enumerate(scene.marks):
        ordinals = np.flatnonzero(scene.mark_of == at).tolist()
        if ordinals:
            parts.append(f'<g fill="{mark.fill}" stroke="{mark.outline}" stroke-width="{stroke}">')
            for ordinal in ordinals:
                x, y = float(scene.xs[ordinal]), float(scene.ys[ordinal])
                drawn = svg_shape(scene.shapes[ordinal], x, y, scene.radius)
                parts.append(
                    f"{drawn}><title>{xml_text(scene.titles[ordinal])}</title>{_CLOSING[scene.shapes[ordinal]]}"
                )
            parts.append("</g>")
    parts += [svg_box(box) for box in scene.boxes]
    for spot in scene.spots:
        drawn = svg_shape(spot.shape, spot.x, spot.y, spot.radius)
        parts.append(f'{drawn} fill="{spot.fill}" stroke="{spot.outline}" stroke-width="{_n(0.14 * spot.radius)}"/>')
    parts += [svg_label(label) for label in scene.labels]
    parts.append("</svg>\n")
    return "\n".join(parts).encode()


_CLOSING = {Shape.CIRCLE: "</circle>", Shape.SQUARE: "</rect>", Shape.DIAMOND: "</path>"}


def svg_shape(shape: Shape, x: float, y: float, radius: float) -> str:
    """An open tag without its end, for attributes to follow."""
    if shape is Shape.CIRCLE:
        return f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}"'
    if shape is Shape.SQUARE:
        half = 0.92 * radius
        return f'<rect x="{_n(x - half)}" y="{_n(y - half)}" width="{_n(2 * half)}" height="{_n(2 * half)}"'
    half = 1.15 * radius
    return f'<path d="M{_n(x)} {_n(y - half)}l{_n(half)} {_n(half)}l{_n(-half)} {_n(half)}l{_n(-half)} {_n(-half)}z"'


def svg_box(box: Box) -> str:
    return (
        f'<rect x="{_n(box.x)}" y="{_n(box.y)}" width="{_n(box.width)}" height="{_n(box.height)}"'
        f' rx="{_n(box.rounding)}" fill="{box.fill}" stroke="{box.outline}" stroke-width="{_n(box.height / 60)}"/>'
    )


def svg_label(label: Label) -> str:
    weight = ' font-weight="bold"' if label.bold else ""
    halo = f' stroke="{PAPER}" stroke-width="{_n(0.25 * label.size)}" paint-order="stroke"' if label.halo else ""
    return (
        f'<text x="{_n(label.x)}" y="{_n(label.y)}" font-size="{_n(label.size)}" text-anchor="{label.anchor}"'
        f' fill="{label.colour}"{weight}{halo}>{xml_text(label.text)}</text>'
    )


def xml_text(text: str) -> str:
    # A few characters have no place in XML, not even as references; none of them is printable.
    if not text.isprintable():
        text = "".join(char for char in text if char >= " " and char not in "\ufffe\uffff")
    return escape(text)


def _n(value: float) -> str:
    return f"{round(value, 3):g}" if abs(value) < 100_000 else f"{value:.3f}"
