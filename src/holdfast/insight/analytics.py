"""What the state log tells of an event, as it is answered; and the reckoning of how holds ended. Pure.

A hold belongs to the window in which it was placed; its end counts whenever it came.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from uuid import UUID

import msgspec

from holdfast.holds.lifecycle import SeatState, Verb
from holdfast.insight.window import histogram, quantile
from holdfast.seating.layout import Zone


class HoldEnd(StrEnum):
    CONVERTED = "converted"
    EXPIRED = "expired"
    RELEASED = "released"
    BLOCKED = "blocked"
    """The organiser blocked the seat under it."""
    HELD = "held"
    """It has not ended, as far as the log goes."""


class Division(StrEnum):
    HOLD_TYPE = "hold_type"
    ZONE = "zone"
    HOUR = "hour"
    DAY = "day"


def end_of(verb: str | None, new_state: str | None) -> HoldEnd:
    """By the move that took its seat or places out of `held`; none: it is held still."""
    if new_state is None:
        return HoldEnd.HELD
    if new_state == SeatState.SOLD:
        return HoldEnd.CONVERTED
    if new_state == SeatState.BLOCKED:
        return HoldEnd.BLOCKED
    return HoldEnd.EXPIRED if verb == Verb.EXPIRE else HoldEnd.RELEASED


# Facts of the log --------------------------------------------------------------------------------------------------
Group = tuple[int, int, str, datetime | None]
"""Where and when holds were placed: the version of the layout by its position, the zone's number in it, hold type, and the
beginning of the hour or day."""


class EndedHolds(msgspec.Struct, frozen=True):
    """Holds of one group that ended in one way."""

    group: Group
    end: HoldEnd
    holds: int
    placed: int
    """Places, when they were placed."""
    left: int
    """Places, when they ended (or still): what had not been drawn from them before."""


class PlacesHold(msgspec.Struct, frozen=True, kw_only=True):
    """A hold on counted places, with how many were left of it at its end (None: it has not ended)."""

    hold_id: UUID
    group: Group
    session_id: str | None
    at: datetime
    placed: int
    left: int | None


class DrawnPart(msgspec.Struct, frozen=True, kw_only=True):
    """Places that were sold or given back out of a larger hold: their move names a hold that was never placed."""

    id: int
    segment: int
    zone_no: int
    session_id: str | None
    end: HoldEnd
    places: int


# Answers -----------------------------------------------------------------------------------------------------------
class Ends(msgspec.Struct, frozen=True, kw_only=True):
    placed: int = 0
    converted: int = 0
    expired: int = 0
    released: int = 0
    blocked: int = 0
    held: int = 0


class Conversion(msgspec.Struct, frozen=True, kw_only=True):
    holds: Ends
    """Each by how what was left of it ended."""
    places: Ends
    rate: float | None
    """Places converted of places placed; null where none were."""
    rate_of_ended: float | None
    """The same without places that are held still."""


class ConversionGroup(Conversion, frozen=True, kw_only=True):
    key: str
    """A hold type, a zone's `zone_id`, or the instant an hour or day begins at."""
    name: str


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What was counted: every answer begins with it."""

    event_id: UUID
    since: datetime = msgspec.field(name="from")
    until: datetime = msgspec.field(name="to")
    counted: str
    hold_type: str | None = None
    zone: str | None = None


class ConversionAnswer(Asked, frozen=True, kw_only=True):
    holds: Ends
    places: Ends
    rate: float | None
    rate_of_ended: float | None
    by: Division
    groups: list[ConversionGroup]


class FunnelStep(msgspec.Struct, frozen=True, kw_only=True):
    step: str
    places: int
    share: float | None
    """Of the places held."""


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    step: str
    why: str


class FunnelBeside(msgspec.Struct, frozen=True, kw_only=True):
    """Moves within the window, whenever the hold was placed."""

    direct_sales: int
    reverted: int | None
    """Null where one hold type was asked for: a sale that is taken back does not name it."""
    reverted_untraced: int
    """Counted places, and seats whose sale a migration brought there: the log does not tell which hold they came from."""


class FunnelAnswer(Asked, frozen=True, kw_only=True):
    steps: list[FunnelStep]
    left_out: list[LeftOut]
    beside: FunnelBeside


class OccupancyPoint(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime
    available: int
    held: int
    sold: int
    blocked: int
    total: int


class ZoneSeries(msgspec.Struct, frozen=True, kw_only=True):
    zone_id: str
    name: str
    points: list[OccupancyPoint]


class OccupancySeries(Asked, frozen=True, kw_only=True):
    step_seconds: int
    points: list[OccupancyPoint]
    zones: list[ZoneSeries] | None
    """Where they were asked for."""


class LifeBar(msgspec.Struct, frozen=True, kw_only=True):
    """Holds that lived so long: `from_s` seconds and longer, and less than `to_s`."""

    from_s: int
    to_s: int | None
    holds: int


class Lives(msgspec.Struct, frozen=True, kw_only=True):
    hold_type: str | None
    """None: of every type."""
    end: HoldEnd
    holds: int
    p10_s: int | None
    p50_s: int | None
    p90_s: int | None
    p99_s: int | None
    longest_s: int | None
    histogram: list[LifeBar]


class ExpiryAnswer(Asked, frozen=True, kw_only=True):
    lives: list[Lives]


# Draws -------------------------------------------------------------------------------------------------------------
def attribute(
    holds: Iterable[PlacesHold], parts: Iterable[DrawnPart], zone_of: Mapping[tuple[int, int], UUID]
) -> list[tuple[PlacesHold, HoldEnd, int]]:
    """Which hold each part was drawn from: a session's holds in one zone are drawn on in the order they were placed in.

    What of a hold that has ended was not left at its end was drawn before; of one that has not, anything may have been.
    """
    room: dict[tuple[str | None, UUID], list[tuple[PlacesHold, int]]] = {}
    for hold in sorted(holds, key=lambda hold: (hold.at, hold.hold_id)):
        drawn = hold.placed if hold.left is None else hold.placed - hold.left
        if drawn:
            room.setdefault((hold.session_id, zone_of[hold.group[:2]]), []).append((hold, drawn))
    found: list[tuple[PlacesHold, HoldEnd, int]] = []
    for part in sorted(parts, key=lambda part: part.id):
        waiting = room.get((part.session_id, zone_of[part.segment, part.zone_no]), [])
        places = part.places
        while places and waiting:
            hold, drawn = waiting.pop(0)
            taken = min(places, drawn)
            found.append((hold, part.end, taken))
            places -= taken
            if drawn > taken:
                waiting.insert(0, (hold, drawn - taken))
    return found


# Conversion --------------------------------------------------------------------------------------------------------
class Tally:
    """Holds and places by how they ended."""

    def __init__(self) -> None:
        self.holds = dict.fromkeys(HoldEnd, 0)
        self.places = dict.fromkeys(HoldEnd, 0)

    def add(self, end: HoldEnd, holds: int, places: int) -> None:
        self.holds[end] += holds
        self.places[end] += places

    def conversion(self) -> Conversion:
        placed = sum(self.places.values())
        converted = self.places[HoldEnd.CONVERTED]
        return Conversion(
            holds=_ends(self.holds),
            places=_ends(self.places),
            rate=share_of(converted, placed),
            rate_of_ended=share_of(converted, placed - self.places[HoldEnd.HELD]),
        )


def _ends(by_end: Mapping[HoldEnd, int]) -> Ends:
    return Ends(placed=sum(by_end.values()), **{end.value: count for end, count in by_end.items()})


def share_of(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


Drawn = Sequence[tuple[PlacesHold, HoldEnd, int]]


def tallies(ended: Iterable[EndedHolds], drawn: Drawn) -> dict[Group, Tally]:
    """By group. `drawn` are those parts whose hold is one of those counted."""
    found: dict[Group, Tally] = {}
    for row in ended:
        found.setdefault(row.group, Tally()).add(row.end, row.holds, row.left)
    for hold, end, places in drawn:
        tally = found[hold.group]
        tally.add(end, 0, places)
        if hold.left is None:  # counted above as held, with all that it was placed with
            tally.places[HoldEnd.HELD] -= places
    return found


def total(by_group: Mapping[Group, Tally]) -> Tally:
    summed = Tally()
    for tally in by_group.values():
        for end in HoldEnd:
            summed.add(end, tally.holds[end], tally.places[end])
    return summed


def divided(
    by_group: Mapping[Group, Tally], by: Division, zones: Mapping[tuple[int, int], Zone]
) -> list[ConversionGroup]:
    summed: dict[str, Tally] = {}
    names: dict[str, str] = {}
    for (segment, zone_no, hold_type, begin), tally in by_group.items():
        key = name = hold_type
        if by is Division.ZONE:
            zone = zones[segment, zone_no]
            key, name = zone.zone_id, zone.name
        elif begin is not None:
            key = name = begin.isoformat().replace("+00:00", "Z")
        into = summed.setdefault(key, Tally())
        names[key] = name
        for end in HoldEnd:
            into.add(end, tally.holds[end], tally.places[end])
    return [
        ConversionGroup(
            key=key, name=names[key], holds=all_of.holds, places=all_of.places, rate=all_of.rate,
            rate_of_ended=all_of.rate_of_ended,
        )
        for key, all_of in ((key, summed[key].conversion()) for key in sorted(summed))
    ]  # fmt: skip


# How long holds live -----------------------------------------------------------------------------------------------
LIFE_EDGES_S = (
    0, 10, 30, 60, 120, 180, 300, 420, 600, 900, 1200, 1800, 3600, 7200, 4 * 3600, 12 * 3600, 86_400, 7 * 86_400,
)  # fmt: skip
Lived = tuple[str, HoldEnd, int, int]
"""Hold type, end, seconds, holds."""


def lives(lived: Iterable[Lived]) -> list[Lives]:
    """Of all types first, then of each; where something ended in that way."""
    counts: dict[tuple[str | None, HoldEnd], dict[int, int]] = {}
    for hold_type, end, life_s, holds in lived:
        for of_type in (None, hold_type):
            by_life = counts.setdefault((of_type, end), {})
            by_life[life_s] = by_life.get(life_s, 0) + holds
    order = list(HoldEnd)
    keys = sorted(counts, key=lambda key: (key[0] is not None, key[0] or "", order.index(key[1])))
    return [_lives(key[0], key[1], sorted(counts[key].items())) for key in keys]


def _lives(hold_type: str | None, end: HoldEnd, counts: list[tuple[int, int]]) -> Lives:
    bars = histogram(counts, LIFE_EDGES_S)
    last = max((n for n, holds in enumerate(bars) if holds), default=-1)
    uppers: list[int | None] = [*LIFE_EDGES_S[1:], None]
    return Lives(
        hold_type=hold_type,
        end=end,
        holds=sum(holds for _, holds in counts),
        p10_s=quantile(counts, 0.1),
        p50_s=quantile(counts, 0.5),
        p90_s=quantile(counts, 0.9),
        p99_s=quantile(counts, 0.99),
        longest_s=counts[-1][0] if counts else None,
        histogram=[LifeBar(from_s=LIFE_EDGES_S[n], to_s=uppers[n], holds=bars[n]) for n in range(last + 1)],
    )
