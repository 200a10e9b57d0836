"""Small charts as SVG: areas over time, bars beside each other, bars above each other. Pure; colours are the page's own.

Texts are escaped here. A chart is drawn for the width it is shown at, so that its letters keep their size.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from html import escape

import msgspec

WIDE_LETTERS = frozenset("%mMW")
NARROW_LETTERS = frozenset(" .,:;'|!()[]-ijltfr·")


class Series(msgspec.Struct, frozen=True):
    name: str
    tone: str
    """The end of a CSS class: `fill-…` says which colour."""
    values: Sequence[float]


class Bar(msgspec.Struct, frozen=True):
    """Parts one after the other, each with its tone."""

    name: str
    parts: Sequence[tuple[str, float]]
    note: str
    """Behind the bar."""


def text_width(text: str) -> float:
    """About how wide it is drawn, in pixels: rather too wide than too narrow."""
    return sum(map(_letter_width, text))


def _letter_width(letter: str) -> float:
    if letter in NARROW_LETTERS:
        return 4.6
    if letter in WIDE_LETTERS or ord(letter) > 0x2E7F:  # from there on, those as wide as they are high
        return 12.0
    return 8.8 if letter.isupper() else 7.2


def _widest(texts: Iterable[str]) -> float:
    return max(map(text_width, texts), default=0.0)


# Scales --------------------------------------------------------------------------------------------------------------
def nice_ticks(highest: float, wanted: int = 4) -> list[float]:
    """From 0 to the first round number that is not below the highest, in round steps of one or more."""
    if highest <= 1:
        return [0, 1]
    rough = highest / wanted
    power = 1.0
    while power * 10 <= rough:
        power *= 10
    step = next(power * n for n in (1, 2, 2.5, 5, 10) if power * n >= rough and (n != 2.5 or power >= 10))
    count = 0
    while count * step < highest - 1e-9:
        count += 1
    return [n * step for n in range(count + 1)]


TIME_STEPS = (
    timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=15), timedelta(minutes=30), timedelta(hours=1),
    timedelta(hours=3), timedelta(hours=6), timedelta(hours=12), timedelta(days=1), timedelta(days=2), timedelta(days=7),
    timedelta(days=14), timedelta(days=28), timedelta(days=91), timedelta(days=364),
)  # fmt: skip


def time_ticks(since: datetime, until: datetime, wanted: int) -> list[tuple[datetime, str]]:
    """Round instants within, with their labels: times of day within two days, else days."""
    span = until - since
    step = next((step for step in TIME_STEPS if span / step <= wanted), TIME_STEPS[-1])
    midnight = since.replace(hour=0, minute=0, second=0, microsecond=0)
    at = midnight + step * -((midnight - since) // step)
    found: list[tuple[datetime, str]] = []
    while at <= until:
        if step < timedelta(days=1):
            label = at.strftime("%H:%M") if at.hour or at.minute else f"{at.day} {at:%b}"
        else:
            label = f"{at.day} {at:%b}" if step < timedelta(days=364) else f"{at:%b %Y}"
        if at >= since:
            found.append((at, label))
        at += step
    return found


def number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def short_number(value: float) -> str:
    for unit, size in (("M", 1_000_000), ("k", 10_000)):
        if value >= size:
            text = f"{value / (1_000_000 if unit == 'M' else 1000):.1f}".removesuffix(".0")
            return f"{text} {unit}"
    return number(value)


def _at(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _text(x: float, y: float, text: str, anchor: str = "start", kind: str = "label") -> str:
    return f'<text class="{kind}" x="{_at(x)}" y="{_at(y)}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    body = "".join(parts)
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img"'
        f' aria-label="{escape(title)}">{body}</svg>'
    )


# Charts --------------------------------------------------------------------------------------------------------------
def stacked_area(
    instants: Sequence[datetime],
    series: Sequence[Series],
    width: int,
    height: int,
    title: str,
    highest: float,
    limit: float | None = None,
) -> str:
    """The first series lies lowest. What a series says at an instant holds until the next: steps, not slopes."""
    ticks = nice_ticks(highest)
    left = 10 + _widest(short_number(tick) for tick in ticks)
    right, top, bottom = width - 8.0, 18.0, height - 24.0
    since, until = instants[0], instants[-1]
    span_s = max(1e-9, (until - since).total_seconds())
    xs = [left + (right - left) * (at - since).total_seconds() / span_s for at in instants]

    def y_of(value: float) -> float:
        return bottom - (bottom - top) * value / ticks[-1]

    parts = [
        f'<line class="grid" x1="{_at(left)}" x2="{_at(right)}" y1="{_at(y_of(tick))}" y2="{_at(y_of(tick))}"/>'
        + _text(left - 6, y_of(tick) + 4, short_number(tick), "end")
        for tick in ticks
    ]
    below = [0.0] * len(instants)
    for one in series:
        above = [low + value for low, value in zip(below, one.values, strict=True)]
        if any(one.values):
            parts.append(f'<path class="fill-{one.tone}" d="{_band(xs, below, above, y_of)}"/>')
        below = above
    for at, label in time_ticks(since, until, max(2, int((right - left) // 90))):
        x = left + (right - left) * (at - since).total_seconds() / span_s
        parts.append(f'<line class="tick" x1="{_at(x)}" x2="{_at(x)}" y1="{_at(bottom)}" y2="{_at(bottom + 4)}"/>')
        half = text_width(label) / 2
        parts.append(_text(min(max(x, left + half), right - half), height - 6, label, "middle"))
    parts.append(f'<line class="axis" x1="{_at(left)}" x2="{_at(right)}" y1="{_at(bottom)}" y2="{_at(bottom)}"/>')
    if limit is not None and limit <= ticks[-1]:
        line = (
            f'<line class="limit" x1="{_at(left)}" x2="{_at(right)}" y1="{_at(y_of(limit))}" y2="{_at(y_of(limit))}"/>'
        )
        parts += [line, _text(right, y_of(limit) - 5, f"{number(limit)} places", "end")]
    return _svg(width, height, title, parts)


def _band(xs: Sequence[float], below: Sequence[float], above: Sequence[float], y_of: Callable[[float], float]) -> str:
    upper = [(xs[0], above[0])]
    lower = [(xs[0], below[0])]
    for n in range(1, len(xs)):
        for line, values in ((upper, above), (lower, below)):
            if values[n] != values[n - 1]:
                line.append((xs[n], values[n - 1]))
                line.append((xs[n], values[n]))
    upper.append((xs[-1], above[-1]))
    lower.append((xs[-1], below[-1]))
    points = [f"{_at(x)} {_at(y_of(value))}" for x, value in (*upper, *reversed(lower))]
    return "M" + "L".join(points) + "Z"


def bars_across(bars: Sequence[Bar], width: int, title: str, whole: float | None = None) -> str:
    """Lying bars, one below the other. `whole`: what the full width stands for; None: each bar is a whole of its own."""
    names = _widest(bar.name for bar in bars)
    above = names > width * 0.25  # no room beside the bars: names go above them
    left = 0.0 if above else 12 + names
    right = width - 12 - _widest(bar.note for bar in bars)
    step, thick = (48, 20) if above else (34, 22)
    parts: list[str] = []
    for n, bar in enumerate(bars):
        y = n * step + (18 if above else 4)
        parts.append(_text(0, y - 5, bar.name) if above else _text(left - 8, y + 15, bar.name, "end"))
        parts.append(
            f'<rect class="rail" x="{_at(left)}" y="{y}" width="{_at(right - left)}" height="{thick}" rx="4"/>'
        )
        full = sum(value for _, value in bar.parts) if whole is None else whole
        x = left
        for tone, value in bar.parts:
            long = (right - left) * value / full if full else 0.0
            if long > 0:
                said = f"<title>{escape(tone)}: {number(value)}</title>"
                place = f'x="{_at(x)}" y="{y}" width="{_at(long)}" height="{thick}"'
                parts.append(f'<rect class="fill-{escape(tone)}" {place}>{said}</rect>')
            x += long
        parts.append(_text(right + 8, y + 15, bar.note, kind="value"))
    return _svg(width, max(1, len(bars)) * step + 4, title, parts)


def columns(labels: Sequence[str], series: Sequence[Series], width: int, height: int, title: str) -> str:
    """Standing bars, the series above each other. Labels that have no room are left out."""
    sums = [sum(one.values[n] for one in series) for n in range(len(labels))]
    ticks = nice_ticks(max(sums, default=0))
    left = 10 + _widest(short_number(tick) for tick in ticks)
    right, top, bottom = width - 4.0, 10.0, height - 24.0
    parts: list[str] = []
    for tick in ticks:
        y = bottom - (bottom - top) * tick / ticks[-1]
        parts.append(f'<line class="grid" x1="{_at(left)}" x2="{_at(right)}" y1="{_at(y)}" y2="{_at(y)}"/>')
        parts.append(_text(left - 6, y + 4, short_number(tick), "end"))
    slot = (right - left) / max(1, len(labels))
    every = 1
    while slot * every < _widest(labels) + 6:
        every += 1
    for n, label in enumerate(labels):
        x, y = left + n * slot, bottom
        for one in series:
            tall = (bottom - top) * one.values[n] / ticks[-1]
            if tall > 0:
                y -= tall
                said = f"<title>{escape(label)}, {escape(one.name)}: {number(one.values[n])}</title>"
                parts.append(
                    f'<rect class="fill-{escape(one.tone)}" x="{_at(x + slot * 0.12)}" y="{_at(y)}"'
                    f' width="{_at(slot * 0.76)}" height="{_at(tall)}">{said}</rect>'
                )
        if n % every == 0:
            parts.append(_text(x + slot / 2, height - 6, label, "middle"))
    parts.append(f'<line class="axis" x1="{_at(left)}" x2="{_at(right)}" y1="{_at(bottom)}" y2="{_at(bottom)}"/>')
    return _svg(width, height, title, parts)
