"""The demo's screen: a map of the theatre, its figures, and what happens in it. Draws what it is given; reads nothing."""

from collections.abc import Sequence
from datetime import datetime

import msgspec
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from holdfast.seating.layout import Layout
from holdfast.simulation.tally import Report

COLOURS = {"available": "#2e7d4f", "held": "#f2b632", "sold": "#c8443c", "blocked": "#6b6b6b"}
SIDE_COLUMNS = 46
MAP_COLUMNS_MAX = 72
MOVES_SHOWN = 8
EXPIRIES_SHOWN = 4
_BAR = "█"
_VERBS = {
    "hold": "held",
    "release": "let go",
    "expire": "ran out",
    "convert": "sold",
    "direct_sale": "sold",
    "revert_sale": "returned",
    "block": "blocked",
    "unblock": "unblocked",
}
_VERB_COLOURS = {"hold": "held", "convert": "sold", "direct_sale": "sold"}


class GaNow(msgspec.Struct, frozen=True):
    zone_no: int
    capacity: int
    held: int
    sold: int


class MoveSeen(msgspec.Struct, frozen=True):
    at: datetime
    verb: str
    ordinal: int | None
    zone_no: int
    quantity: int


class ExpirySeen(msgspec.Struct, frozen=True):
    ordinal: int | None
    zone_no: int
    quantity: int
    left_s: float


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """One moment of the demo."""

    states: Sequence[str]
    """By ordinal."""
    ga: Sequence[GaNow]
    moves: Sequence[MoveSeen]
    expiries: Sequence[ExpirySeen]
    report: Report | None
    holds_per_s: float
    running_s: float

    def totals(self) -> dict[str, int]:
        counts = dict.fromkeys(COLOURS, 0)
        for state in self.states:
            counts[state] += 1
        for zone in self.ga:
            counts["held"] += zone.held
            counts["sold"] += zone.sold
            counts["available"] += zone.capacity - zone.held - zone.sold
        return counts


def line(scene: Scene) -> str:
    """The scene in one line, where there is no terminal to draw on."""
    totals = scene.totals()
    parts = [f"{scene.running_s:6.1f} s", *(f"{name} {count}" for name, count in totals.items())]
    if scene.report is not None:
        refused = sum(scene.report.refused.values())
        parts.append(f"{scene.holds_per_s:.1f} holds/s")
        parts.append(f"p50 {scene.report.latency_ms_p50:.1f} ms")
        parts.append(f"p99 {scene.report.latency_ms_p99:.1f} ms")
        parts.append(f"refused {refused}")
        if scene.report.faults:
            parts.append(f"faults {scene.report.faults} ({scene.report.last_fault})")
    return " | ".join(parts)


def draw(layout: Layout, scene: Scene, pointers: Sequence[tuple[str, str]], columns: int, rows: int) -> RenderableType:
    """`pointers`: what to look at, and where."""
    foot = _foot(pointers)
    room = max(6, rows - len(pointers) - 6)
    side_by_side = columns >= 92
    wide = min(MAP_COLUMNS_MAX, columns - SIDE_COLUMNS - 6 if side_by_side else columns - 4)
    theatre = _theatre(layout, scene, wide, room if side_by_side else max(6, room // 2))
    side = _side(layout, scene, room)
    if side_by_side:
        body: RenderableType = Table.grid(padding=(0, 2))
        assert isinstance(body, Table)
        body.add_row(theatre, side)
    else:
        body = Group(theatre, side)
    content = Group(_totals_bar(scene, columns - 4), Text(), body, Text(), foot)
    title = "[bold]Holdfast[/bold] · a theatre on sale"
    return Panel(content, title=title, title_align="left", border_style="#5f6f86")


def _totals_bar(scene: Scene, width: int) -> RenderableType:
    totals = scene.totals()
    whole = max(1, sum(totals.values()))
    bar = Text()
    for name, cells in zip(totals, _shares(list(totals.values()), width), strict=True):
        bar.append(_BAR * cells, COLOURS[name])
    legend = Text()
    for name, count in totals.items():
        legend.append("■ ", COLOURS[name]).append(f"{name} ", "default")
        legend.append(f"{count:,}", "bold").append(f" {count / whole:.0%}    ", "dim")
    return Group(legend, bar)


def _shares(counts: list[int], width: int) -> list[int]:
    """Cells that add up to the width, the largest remainders rounded up; what exists shows at least one cell."""
    whole = max(1, sum(counts))
    exact = [count * width / whole for count in counts]
    cells = [max(int(share), 1 if count else 0) for share, count in zip(exact, counts, strict=True)]
    while sum(cells) > width:
        cells[cells.index(max(cells))] -= 1
    order = sorted(range(len(counts)), key=lambda n: exact[n] - cells[n], reverse=True)
    for n in range(width - sum(cells)):
        cells[order[n % len(order)]] += 1
    return cells


def _theatre(layout: Layout, scene: Scene, columns: int, lines: int) -> RenderableType:
    """Zone under zone, the stage on top; one cell is two seats, one above the other."""
    grids = [(zone.name, zone.zone_no, _grid(layout, scene.states, zone.zone_no)) for zone in layout.zones]
    every = _every([len(grid) for _, _, grid in grids], lines - len(grids) - 1)
    widest = max((len(row) for _, _, grid in grids for row in grid), default=columns)
    step = max(1, -(-widest // columns))
    width = min(columns, -(-widest // step))
    parts: list[Text] = [Text("─ stage ─".center(width, " "), "bold")]
    ga = {zone.zone_no: zone for zone in scene.ga}
    for name, zone_no, grid in grids:
        if zone_no in ga:
            parts.append(_pit(name, ga[zone_no], width))
            continue
        parts.append(Text(name.lower().center(width), "dim"))
        shown = [row[::step] for row in grid[::every]]
        for top in range(0, len(shown), 2):
            parts.append(_cells(shown[top], shown[top + 1] if top + 1 < len(shown) else [], width))
    return Group(*parts)


def _every(rows: list[int], lines: int) -> int:
    """Every n-th row of each zone is shown, for the smallest n with which all zones fit."""
    for every in range(1, max(rows, default=1)):
        if sum(-(-count // (2 * every)) for count in rows) <= lines:
            return every
    return max(rows, default=1)


def _grid(layout: Layout, states: Sequence[str], zone_no: int) -> list[list[str]]:
    rows: dict[str, list[str]] = {}
    for ordinal in layout.zones[zone_no].ordinals:
        rows.setdefault(layout.rows[ordinal], []).append(states[ordinal])
    return list(rows.values())


def _cells(upper: list[str], lower: list[str], width: int) -> Text:
    above, below = _centred(upper, width), _centred(lower, width)
    text = Text()
    for top, bottom in zip(above, below, strict=True):
        if top and bottom:
            text.append("▀", f"{COLOURS[top]} on {COLOURS[bottom]}")
        elif top:
            text.append("▀", COLOURS[top])
        elif bottom:
            text.append("▄", COLOURS[bottom])
        else:
            text.append(" ")
    return text


def _centred(row: list[str], width: int) -> list[str | None]:
    row = row[:width]
    left = (width - len(row)) // 2
    return [None] * left + list(row) + [None] * (width - left - len(row))


def _pit(name: str, zone: GaNow, width: int) -> Text:
    label = f"{name.lower()} {zone.held + zone.sold}/{zone.capacity} "
    inner = max(4, width * 2 // 3 - len(label))
    free = zone.capacity - zone.held - zone.sold
    bar = Text(" " * ((width - inner - len(label)) // 2)).append(label, "dim")
    for state, cells in zip(("sold", "held", "available"), _shares([zone.sold, zone.held, free], inner), strict=True):
        bar.append(_BAR * cells, COLOURS[state])
    return bar


def _side(layout: Layout, scene: Scene, room: int) -> RenderableType:
    figures = Table.grid(padding=(0, 2))
    if scene.report is not None:
        report = scene.report
        figures.add_row(Text("holds a second", "dim"), Text(f"{scene.holds_per_s:.1f}", "bold"))
        figures.add_row(Text("holds so far", "dim"), Text(f"{report.holds:,}"))
        bought, counter = report.done.get("buy", 0), report.done.get("sell", 0)
        figures.add_row(Text("sales", "dim"), Text(f"{bought:,} at checkouts, {counter:,} at the box office"))
        figures.add_row(Text("at the gate", "dim"), Text(f"{report.done.get('arrive', 0):,}"))
        latency = f"p50 {report.latency_ms_p50:.1f} ms · p99 {report.latency_ms_p99:.1f} ms"
        figures.add_row(Text("answers", "dim"), Text(latency))
        refused = sorted(report.refused.items(), key=lambda item: -item[1])[:2]
        said = ", ".join(f"{count} {_plain(reason)}" for reason, count in refused)
        figures.add_row(Text("refused", "dim"), Text(said or "none", overflow="ellipsis", no_wrap=True))
        if report.faults:
            figures.add_row(
                Text("faults", "bold red"), Text(f"{report.faults}: {report.last_fault}", overflow="ellipsis")
            )
    else:
        figures.add_row(Text("the buyers are on their way …", "dim"))
    moves = Table.grid(padding=(0, 1))
    for move in scene.moves[: max(3, min(MOVES_SHOWN, room - 12))]:
        colour = COLOURS[_VERB_COLOURS.get(move.verb, "available")]
        what = _what(layout, move.ordinal, move.zone_no, move.quantity)
        moves.add_row(Text(f"{move.at:%H:%M:%S}", "dim"), Text(_VERBS.get(move.verb, move.verb), colour), Text(what))
    expiries = Table.grid(padding=(0, 1))
    for expiry in scene.expiries[:EXPIRIES_SHOWN]:
        what = _what(layout, expiry.ordinal, expiry.zone_no, expiry.quantity)
        expiries.add_row(Text(f"{expiry.left_s:4.1f} s", COLOURS["held"]), Text(what))
    return Group(figures, Text(), Text("just now", "bold"), moves, Text(), Text("expiring soon", "bold"), expiries)


def _what(layout: Layout, ordinal: int | None, zone_no: int, quantity: int) -> str:
    zone = layout.zones[zone_no].name
    if ordinal is None:
        return f"{zone}, {quantity} {'place' if quantity == 1 else 'places'}"
    return f"{zone}, row {layout.rows[ordinal]} seat {layout.numbers[ordinal]}"


def _plain(reason: str) -> str:
    known = {
        "seat_held_by_another_user": "held by another",
        "seat_not_available": "already sold",
        "booking_false": "lost at the box office",
        "zone_access_denied": "not a member",
        "block_at_capacity": "pit full",
    }
    return known.get(reason, reason.replace("_", " "))


def _foot(pointers: Sequence[tuple[str, str]]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for name, where in pointers:
        table.add_row(Text(name, "dim"), Text(where, overflow="fold"))
    return table
