"""What somebody who does not pick wishes for, and which seats could serve it. Pure."""

from collections.abc import Collection, Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from holdfast.allocation.choose import Strategy
from holdfast.seating.groups import kept_from_choice
from holdfast.seating.layout import GroupType, Layout, SeatCategory, Zone

Mask = NDArray[np.bool_]

FAMILY = 3
"""From so many seats on a party is a family, and gets what is kept for one."""


class SeatsWished(msgspec.Struct, frozen=True, kw_only=True):
    quantity: int
    zones: tuple[str, ...] = ()  # ids or UUIDs; none: anywhere
    categories: tuple[SeatCategory, ...] = ()
    price_max: int | None = None  # for one seat, in minor units
    accessible: bool = False  # with a place for a wheelchair
    strategy: Strategy = Strategy.BEST
    hold_type: str | None = None
    source: str = "web"
    endpoint_ttl_s: int


def serving_seats(
    layout: Layout, wished: SeatsWished, zones: Iterable[Zone], prices: NDArray[np.int64] | None
) -> list[Mask]:
    """The seats that may be given, narrow first: a wider mask is for when the one before has nothing left.

    Places for wheelchairs are given to those who ask for one. Seats beside them, and blocks for families, only when there
    is nothing else.
    """
    allowed = np.zeros(layout.seat_count, bool)
    for zone in zones:
        allowed[zone.ordinals.start : zone.ordinals.stop] = True
    if wished.price_max is not None and prices is not None:
        allowed &= (prices >= 0) & (prices <= wished.price_max)
    allowed[list(kept_from_choice(layout))] = False
    if wished.categories:
        return [allowed & _of_categories(layout, wished.categories)]
    if wished.accessible:
        return [allowed]
    allowed &= ~_of_categories(layout, (SeatCategory.WHEELCHAIR,))
    narrow = allowed & ~_of_categories(layout, (SeatCategory.COMPANION,))
    if wished.quantity < FAMILY:
        for group in layout.groups:
            if group.group_type is GroupType.FAMILY_BLOCK:
                narrow[list(group.ordinals)] = False
    return [allowed] if (narrow == allowed).all() else [narrow, allowed]


def _of_categories(layout: Layout, categories: Collection[SeatCategory]) -> Mask:
    wanted = [code for code, category in enumerate(SeatCategory) if category in categories]
    return np.isin(category_codes(layout), wanted)


def category_codes(layout: Layout) -> NDArray[np.uint8]:
    """By ordinal, positions in SeatCategory; kept on the layout."""
    known: NDArray[np.uint8] | None = layout.__dict__.get("_category_codes")
    if known is None:
        codes = {category: code for code, category in enumerate(SeatCategory)}
        known = np.fromiter((codes[c] for c in layout.categories), np.uint8, layout.seat_count)
        layout.__dict__["_category_codes"] = known
    return known


def with_wheelchair(
    layout: Layout, free: Mask, allowed: Mask, quality: NDArray[np.float64], quantity: int
) -> list[int]:
    """A place for a wheelchair and, for the others of the party, the seats beside it; [] where there is none."""
    open_to = free & allowed
    places = np.flatnonzero(open_to & _of_categories(layout, (SeatCategory.WHEELCHAIR,)))
    best: tuple[tuple[int, float, int], list[int]] | None = None
    for place in places.tolist():
        beside = _beside(layout, open_to, place, quantity - 1)
        if beside is None:
            continue
        companions = layout.wheelchair_companions.get(place, ())
        rank = (-sum(seat in companions for seat in beside), float(quality[place]), place)
        if best is None or rank < best[0]:
            best = rank, sorted([place, *beside])
    return [] if best is None else best[1]


def _beside(layout: Layout, open_to: Mask, place: int, wanted: int) -> list[int] | None:
    """Companion seats first, then the nearest seats of the zone that are for anybody."""
    companions = [seat for seat in layout.wheelchair_companions.get(place, ()) if open_to[seat]][:wanted]
    if len(companions) == wanted:
        return companions
    zone = layout.zone_of(place)
    plain = open_to.copy()
    plain &= ~_of_categories(layout, (SeatCategory.WHEELCHAIR, SeatCategory.COMPANION))
    others = [int(seat) for seat in np.flatnonzero(plain[zone.first_ordinal :][: zone.seat_count]) + zone.first_ordinal]
    others.sort(key=lambda seat: (_distance(layout, place, seat), seat))
    found = companions + others[: wanted - len(companions)]
    return found if len(found) == wanted else None


def _distance(layout: Layout, one: int, other: int) -> float:
    x, y, to_x, to_y = layout.xs[one], layout.ys[one], layout.xs[other], layout.ys[other]
    if x is None or y is None or to_x is None or to_y is None:
        return float(abs(one - other))
    return (x - to_x) ** 2 + (y - to_y) ** 2


def zones_wished(layout: Layout, named: Sequence[str]) -> tuple[list[Zone], list[str]]:
    """The zones by their names, and the names that are none's."""
    if not named:
        return list(layout.zones), []
    found = [(name, layout.zone(name)) for name in named]
    zones = {zone.zone_no: zone for _, zone in found if zone is not None}
    return list(zones.values()), [name for name, zone in found if zone is None]
