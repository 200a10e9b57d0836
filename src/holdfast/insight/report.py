"""An event's report: one page of HTML that needs nothing else. Pure; everything that people named is escaped."""

from collections.abc import Sequence
from datetime import datetime
from html import escape
from importlib.resources import files
from uuid import UUID

import msgspec

from holdfast.insight.accessibility_use import AccessibilityAnswer
from holdfast.insight.analytics import (
    ConversionAnswer,
    ConversionGroup,
    Ends,
    ExpiryAnswer,
    FunnelAnswer,
    HoldEnd,
    Lives,
    OccupancySeries,
)
from holdfast.insight.charts import Bar, Series, bars_across, columns, stacked_area

WIDE, NARROW = 820, 320
ENDS = (HoldEnd.CONVERTED, HoldEnd.HELD, HoldEnd.RELEASED, HoldEnd.EXPIRED, HoldEnd.BLOCKED)
NAMES = {
    "converted": "sold",
    "held": "still held",
    "released": "given back",
    "expired": "expired",
    "blocked": "ended by a block",
}
STATES = ("sold", "held", "blocked")
ROWS_MAX = 16
"""Of a table over time."""


class ZoneAlone(msgspec.Struct, frozen=True):
    name: str
    seats: int
    free: int
    alone: int


class Report(msgspec.Struct, frozen=True, kw_only=True):
    event_id: UUID
    name: str
    status: str
    made_at: datetime
    moves: int
    conversion: ConversionAnswer
    by_zone: ConversionAnswer
    funnel: FunnelAnswer
    occupancy: OccupancySeries
    expiry: ExpiryAnswer
    accessibility: AccessibilityAnswer
    alone: list[ZoneAlone]
    """Of zones with numbered seats, now."""


def report_page(report: Report) -> str:
    style = files("holdfast.insight").joinpath("report.css").read_text("utf-8")
    if report.moves == 0:
        body = _card(
            "Nothing yet", "Nobody has held or bought anything of this event; its report begins with the first hold."
        )
    else:
        body = "".join(
            part(report)
            for part in (_tiles, _occupancy, _conversion, _zones, _funnel, _expiry, _orphans, _accessibility)
        )
    window = report.occupancy
    period = f"{_instant(window.since)} – {_instant(window.until)}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(report.name)} · report</title><style>{style}</style></head><body><main>"
        f'<header><p class="kind">Report</p><h1>{escape(report.name)}</h1>'
        f'<p class="sub"><span class="status">{escape(report.status)}</span> {period} UTC</p></header>'
        f"{body}"
        f"<footer><p>From {_count(report.moves, 'move')} of the event's state log. Made {_instant(report.made_at)} UTC"
        f" by Holdfast for event <code>{report.event_id}</code>.</p></footer></main></body></html>\n"
    )


# Words ---------------------------------------------------------------------------------------------------------------
def _instant(at: datetime) -> str:
    return f"{at.day} {at:%b %Y, %H:%M}"


def _short(at: datetime) -> str:
    return f"{at.day} {at:%b, %H:%M}"


def _percent(share: float | None) -> str:
    if share is None:
        return "–"
    return f"{100 * share:.0f} %" if share in (0, 1) or 0.1 <= share <= 0.995 else f"{100 * share:.1f} %"


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def span_words(seconds: int | None) -> str:
    if seconds is None:
        return "–"
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            whole = seconds / size
            return f"{whole:.0f} {unit}" if whole == int(whole) or whole >= 10 else f"{whole:.1f} {unit}"
    return f"{seconds} s"


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


# Parts of the page ---------------------------------------------------------------------------------------------------
def _card(title: str, words: str, *content: str) -> str:
    return f'<section class="card"><h2>{escape(title)}</h2><p class="words">{escape(words)}</p>{"".join(content)}</section>'


def _drawn(wide: str, narrow: str) -> str:
    return f'<div class="chart wide">{wide}</div><div class="chart narrow">{narrow}</div>'


def _legend(items: Sequence[tuple[str, str]]) -> str:
    shown = "".join(f'<li><i class="dot fill-{tone}"></i>{escape(name)}</li>' for tone, name in items)
    return f'<ul class="legend">{shown}</ul>'


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The first column is what the row is about."""
    titles = "".join(f'<th scope="col">{escape(title)}</th>' for title in head)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:]) + "</tr>"
        for row in rows
    )
    return f'<div class="table"><table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>'


def _tiles(report: Report) -> str:
    last = report.occupancy.points[-1]
    found = report.conversion
    sold = [each for each in report.expiry.lives if each.hold_type is None and each.end is HoldEnd.CONVERTED]
    tiles = (
        ("Sold", f"{last.sold:,}", f"{_percent(_share(last.sold, last.total))} of {_count(last.total, 'place')}"),
        ("Held", f"{last.held:,}", f"{last.available:,} free, {last.blocked:,} blocked"),
        ("Conversion", _percent(found.rate), f"of {_count(found.places.placed, 'place')} held"),
        ("Time to sale", span_words(sold[0].p50_s if sold else None), "median, from hold to sale"),
    )
    shown = "".join(
        f'<div class="tile"><p class="name">{escape(name)}</p><p class="figure">{escape(figure)}</p>'
        f'<p class="note">{escape(note)}</p></div>'
        for name, figure, note in tiles
    )
    return f'<section class="tiles">{shown}</section>'


def _occupancy(report: Report) -> str:
    points = report.occupancy.points
    last, highest = points[-1], max(point.total for point in points)
    series = [Series(state, state, [getattr(point, state) for point in points]) for state in STATES]
    instants = [point.at for point in points]
    taken = max(point.held + point.sold + point.blocked for point in points)
    top = highest if taken > highest / 3 else taken * 1.25  # a few sales in a large house would be a line at the bottom
    peak = max(points, key=lambda point: point.held)
    words = (
        f"At the end {last.sold:,} of {_count(last.total, 'place')} were sold ({_percent(_share(last.sold, last.total))}), "
        f"{last.held:,} held, {last.blocked:,} blocked and {last.available:,} free. "
    )
    if peak.held:
        words += f"Most were held at once around {_instant(peak.at)}: {peak.held:,}."
    title = "Places sold, held and blocked over time"
    every = max(1, -(-len(points) // ROWS_MAX))
    shown = [point for n, point in enumerate(points) if n % every == 0 and point is not last] + [last]
    rows = [
        (_short(p.at), f"{p.sold:,}", f"{p.held:,}", f"{p.blocked:,}", f"{p.available:,}", f"{p.total:,}")
        for p in shown
    ]
    return _card(
        "Occupancy over time",
        words,
        _legend([(state, state) for state in STATES]),
        _drawn(
            stacked_area(instants, series, WIDE, 260, title, top, last.total),
            stacked_area(instants, series, NARROW, 220, title, top, last.total),
        ),
        _table(("at (UTC)", "sold", "held", "blocked", "free", "places"), rows),
    )


def _bar(group: ConversionGroup) -> Bar:
    parts = [(end.value, getattr(group.places, end.value)) for end in ENDS]
    return Bar(group.name, parts, _percent(group.rate))


def _ends_row(name: str, ends: Ends, rate: float | None) -> tuple[str, ...]:
    return (name, f"{ends.placed:,}", *(f"{getattr(ends, end.value):,}" for end in ENDS), _percent(rate))


def _ends_named(*counted: Ends) -> list[tuple[str, str]]:
    """Those that something came to."""
    return [(end.value, NAMES[end.value]) for end in ENDS if any(getattr(ends, end.value) for ends in counted)]


def _conversion_card(title: str, words: str, answer: ConversionAnswer, first: str) -> str:
    groups = sorted(answer.groups, key=lambda group: -group.places.placed)[:12]
    bars = [_bar(group) for group in groups]
    rows = [_ends_row(group.name, group.places, group.rate) for group in groups]
    if len(answer.groups) > 1:
        rows.append(_ends_row("all", answer.places, answer.rate))
    return _card(
        title,
        words,
        _legend(_ends_named(answer.places)),
        _drawn(bars_across(bars, WIDE, title), bars_across(bars, NARROW, title)),
        _table((first, "places held", *(NAMES[end.value] for end in ENDS), "conversion"), rows),
    )


def _conversion(report: Report) -> str:
    found = report.conversion
    if not found.places.placed:
        return _card("Conversion by hold type", "No place was held in this time.")
    best = max(found.groups, key=lambda group: (group.rate or 0, group.places.placed))
    words = (
        f"Of {_count(found.places.placed, 'place')} held in this time {found.places.converted:,} were sold"
        f" ({_percent(found.rate)}); of those no longer held, {_percent(found.rate_of_ended)}."
    )
    if len(found.groups) > 1:
        words += f" {best.name} converts best, at {_percent(best.rate)}."
    return _conversion_card("Conversion by hold type", words, found, "hold type")


def _zones(report: Report) -> str:
    if len(report.by_zone.groups) < 2:
        return ""
    busiest = max(report.by_zone.groups, key=lambda group: group.places.placed)
    placed = report.by_zone.places.placed
    words = f"{busiest.name} is asked for most: {_percent(_share(busiest.places.placed, placed))} of all places held."
    return _conversion_card("Conversion by zone", words, report.by_zone, "zone")


def _funnel(report: Report) -> str:
    funnel = report.funnel
    held = funnel.steps[0].places
    names = {"held": "held", "sold": "sold", "reverted": "taken back"}
    tones = {"held": "held", "sold": "converted", "reverted": "expired"}
    bars = [
        Bar(names[s.step], [(tones[s.step], s.places)], f"{s.places:,} · {_percent(s.share)}") for s in funnel.steps
    ]
    beside = funnel.beside
    words = f"From {_count(held, 'place')} held to {funnel.steps[1].places:,} sold"
    words += f", of which {funnel.steps[2].places:,} were taken back."
    words += f" Beside these, {_count(beside.direct_sales, 'place')} went straight to a sale."
    rows = [(names[s.step], f"{s.places:,}", _percent(s.share)) for s in funnel.steps]
    rows.append(("sold directly, beside", f"{beside.direct_sales:,}", ""))
    if beside.reverted is not None:
        rows.append(("sales taken back in this time, in all", f"{beside.reverted:,}", ""))
    title = "Funnel from held to sold"
    note = (
        "Longer lives and checkouts are no steps here: the state log has no move for either, since the seat stays held."
    )
    return _card(
        "Funnel",
        words,
        _drawn(bars_across(bars, WIDE, title, whole=held), bars_across(bars, NARROW, title, whole=held)),
        _table(("step", "places", "of those held"), rows),
        f'<p class="aside">{escape(note)}</p>',
    )


def _expiry(report: Report) -> str:
    every = [each for each in report.expiry.lives if each.hold_type is None]
    if not every:
        return _card("How long holds live", "No hold that was placed in this time has ended.")
    longest = max(len(each.histogram) for each in every)
    bars = max((each.histogram for each in every), key=len)
    series = [
        Series(NAMES[each.end.value], each.end.value, _padded([bar.holds for bar in each.histogram], longest))
        for each in every
    ]
    labels = [_from(bar.from_s) for bar in bars]
    words = " ".join(_lives_words(each) for each in every)
    title = "Holds by how long they lived and how they ended"
    rows = [
        (f"{each.hold_type or 'every type'}, {NAMES[each.end.value]}", f"{each.holds:,}", *(
            span_words(value) for value in (each.p10_s, each.p50_s, each.p90_s, each.p99_s, each.longest_s)))
        for each in (report.expiry.lives if len({each.hold_type for each in report.expiry.lives}) > 2 else every)
    ]  # fmt: skip
    return _card(
        "How long holds live",
        words,
        _legend([(each.end.value, NAMES[each.end.value]) for each in every]),
        _drawn(columns(labels, series, WIDE, 240, title), columns(labels, series, NARROW, 220, title)),
        f'<p class="aside">{escape("Each column begins at the time below it and ends where the next begins.")}</p>',
        _table(("holds", "count", "10 %", "half", "90 %", "99 %", "longest"), rows),
    )


def _padded(values: list[int], length: int) -> list[int]:
    return values + [0] * (length - len(values))


def _from(seconds: int) -> str:
    return "0" if seconds == 0 else span_words(seconds)


def _lives_words(each: Lives) -> str:
    verbs = {"converted": "sold", "expired": "expired", "released": "given back", "blocked": "ended by a block"}
    said = f"Half of those {verbs[each.end.value]} were so within {span_words(each.p50_s)}"
    return f"{said}, nine of ten within {span_words(each.p90_s)}." if each.end is HoldEnd.CONVERTED else f"{said}."


def _orphans(report: Report) -> str:
    seats = sum(zone.seats for zone in report.alone)
    if not seats:
        return ""
    alone, free = sum(zone.alone for zone in report.alone), sum(zone.free for zone in report.alone)
    words = (
        f"A seat stands alone when it is free and no seat beside it is. Now {alone:,} of {_count(seats, 'numbered seat')} do"
        f" ({_percent(_share(alone, seats))}); {free:,} are free."
    )
    bars = [
        Bar(
            zone.name,
            [("converted", zone.seats - zone.free), ("free", zone.free - zone.alone), ("expired", zone.alone)],
            f"{zone.alone:,}",
        )
        for zone in report.alone
    ]
    title = "Numbered seats that are taken, free, and free but alone"
    rows = [
        (z.name, f"{z.seats:,}", f"{z.free:,}", f"{z.alone:,}", _percent(_share(z.alone, z.seats)))
        for z in report.alone
    ]
    return _card(
        "Seats left alone",
        words,
        _legend([("converted", "taken"), ("free", "free"), ("expired", "free, but alone")]),
        _drawn(bars_across(bars, WIDE, title), bars_across(bars, NARROW, title)),
        _table(("zone", "seats", "free", "alone", "of all"), rows),
    )


def _accessibility(report: Report) -> str:
    found = report.accessibility
    seats = found.wheelchair.seats + found.companion.seats
    if not seats and not found.wheelchair.places.placed:
        return _card("Accessibility", "This event's layout has no wheelchair seats.")
    taken = found.companions_taken
    words = (
        f"{_count(found.wheelchair.seats, 'wheelchair seat')} and {_count(found.companion.seats, 'companion seat')}, "
        f"{_percent(found.share_of_seats)} of all places; they make up {_percent(found.share_of_held)} of what was held and "
        f"{_percent(found.share_of_converted)} of what was sold from holds. Of the companions' seats that were taken, "
        f"{taken.by_owner:,} went to whoever had the wheelchair seat beside, {taken.by_public:,} to others once they were"
        f" free for all, {taken.unaccompanied:,} to people with no wheelchair user beside them."
    )
    bars = [
        Bar(name, [(end.value, getattr(use.places, end.value)) for end in ENDS], f"{use.places.placed:,}")
        for name, use in (("wheelchair", found.wheelchair), ("companion", found.companion))
    ]
    title = "How holds on wheelchair and companions' seats ended"
    rows = [
        (f"{zone.name}, {name}", f"{use.seats:,}", f"{use.places.placed:,}", f"{use.places.converted:,}",
         f"{use.direct_sales:,}", _percent(use.rate))
        for zone in found.zones
        for name, use in (("wheelchair", zone.wheelchair), ("companion", zone.companion))
    ]  # fmt: skip
    drawn = _drawn(bars_across(bars, WIDE, title), bars_across(bars, NARROW, title))
    return _card(
        "Accessibility",
        words,
        *(
            (_legend(_ends_named(found.wheelchair.places, found.companion.places)), drawn)
            if found.wheelchair.places.placed
            else ()
        ),
        _table(("seats", "there are", "held", "sold from holds", "sold directly", "conversion"), rows),
        _table(
            ("companions' seats taken", "times"),
            [
                ("by the owner of the wheelchair seat", f"{taken.by_owner:,}"),
                ("by others, once free for all", f"{taken.by_public:,}"),
                ("by the organiser, while kept", f"{taken.by_organiser:,}"),
                ("with no wheelchair user beside", f"{taken.unaccompanied:,}"),
                ("not told by the log", f"{taken.unclear:,}"),
            ],
        ),
    )
