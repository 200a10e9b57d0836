"""What places cost: prices by zone and category, named areas that cost differently, and which of them counts. Pure.

The narrowest counts: a seat named by a pricing zone, then a pricing zone that names categories, then one that names zones
alone, then the price of zone and category, then the price of the zone. Amounts are in minor units and never a client's.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from holdfast.kernel.problems import Problems, child, quoted
from holdfast.seating.layout import Layout, SeatCategory, Zone
from holdfast.seating.reading import Object, check_choice, check_text, integer_fault, read_list, read_object

MAX_PRICES = 10_000
MAX_PRICING_ZONES = 1_000
MAX_AMOUNT_MINOR = 10**12 - 1
NAME_CHARS = 200
NO_PRICE = -1

_KEPT_LISTS = 16
"""Price lists kept with one layout: as many as events of it are likely to be sold at once."""


class Price(msgspec.Struct, frozen=True):
    zone_id: str
    category: SeatCategory | None
    """None: every category of the zone that has no price of its own."""
    amount_minor: int


class PricingZone(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of the house with a price of its own: the seats it names, and those of its zones and categories."""

    amount_minor: int
    zones: tuple[str, ...] = ()
    """By zone_id; where there are none but categories are named: every zone."""
    categories: tuple[SeatCategory, ...] = ()
    """Of these zones, only seats of these; none: of all categories."""
    seat_ids: tuple[str, ...] = ()
    """These in any case."""

    @property
    def is_area(self) -> bool:
        return bool(self.zones or self.categories)

    def covers(self, zone_id: str, category: SeatCategory | None) -> bool:
        """By its zones and categories, whatever seats it names besides."""
        if not self.is_area or (self.zones and zone_id not in self.zones):
            return False
        return not self.categories or category in self.categories


PricingZones = Mapping[str, PricingZone]


class PriceList:
    """The prices of one event, worked out when they are first asked for."""

    def __init__(
        self, layout: Layout, prices: Iterable[Price], pricing_zones: Iterable[tuple[str, PricingZone]]
    ) -> None:
        self._layout = layout
        self._prices = {(price.zone_id, price.category): price.amount_minor for price in prices}
        self._pricing_zones = tuple(pricing_zones)

    def zone_price(self, zone_no: int, category: SeatCategory | None) -> int | None:
        """What a place of the zone costs that no pricing zone names as a seat."""
        zone_id = self._layout.zones[zone_no].zone_id
        areas = [area for _, area in self._pricing_zones if area.covers(zone_id, category)]
        if areas:
            return max(areas, key=lambda area: bool(area.categories)).amount_minor
        return self._prices.get((zone_id, category), self._prices.get((zone_id, None)))

    def column(self) -> NDArray[np.int64] | None:
        """By ordinal, -1 where there is no price; None where nothing has one. Not to be written to."""
        return self._column

    @cached_property
    def _column(self) -> NDArray[np.int64] | None:
        if not self._prices and not self._pricing_zones:
            return None
        layout = self._layout
        table = np.full((len(layout.zones), len(_CATEGORIES)), NO_PRICE, np.int64)
        for zone in layout.zones:
            for code, category in enumerate(_CATEGORIES):
                amount = self.zone_price(zone.zone_no, category)
                table[zone.zone_no, code] = NO_PRICE if amount is None else amount
        codes = np.fromiter(map(_CODES.__getitem__, layout.categories), np.int64, layout.seat_count)
        column = table[np.array(layout.zone_nos, np.int64), codes]
        for _, area in self._pricing_zones:
            named = [o for o in map(layout.ordinals_by_seat_id.get, area.seat_ids) if o is not None]
            column[named] = area.amount_minor
        column.flags.writeable = False
        return column


_CATEGORIES = tuple(SeatCategory)
_CODES = {category: code for code, category in enumerate(_CATEGORIES)}


def price_list(layout: Layout, prices: tuple[Price, ...], pricing_zones: PricingZones) -> PriceList:
    """Known by what it says, so that an event read twice a second has its columns worked out once."""
    key = (prices, tuple(pricing_zones.items()))
    kept = layout.price_lists
    found = kept.get(key)
    if found is None:
        if len(kept) >= _KEPT_LISTS:
            kept.clear()
        found = kept[key] = PriceList(layout, prices, key[1])
    return found


# What an organiser says -----------------------------------------------------------------------------------------------
def read_prices(problems: Problems, value: object, layout: Layout | None) -> tuple[Price, ...]:
    if value is None:
        return ()
    raw_prices = read_list(problems, "/prices", value) or []
    if len(raw_prices) > MAX_PRICES:
        problems.add("/prices", "too_many_prices", f"at most {MAX_PRICES} prices, not {len(raw_prices)}")
        return ()
    prices: dict[tuple[str, SeatCategory | None], Price] = {}
    for place, raw in enumerate(raw_prices):
        pointer = child("/prices", place)
        price = _read_price(problems, pointer, raw, layout)
        if price is None:
            continue
        key = (price.zone_id, price.category)
        if key in prices:
            what = f"category {price.category}" if price.category else "all categories"
            said = f"zone {quoted(price.zone_id)} already has a price for {what}"
            problems.add(pointer, "duplicate_price", said)
        prices[key] = price
    return tuple(prices.values())


def _read_price(problems: Problems, pointer: str, raw: object, layout: Layout | None) -> Price | None:
    source = read_object(problems, pointer, raw, ("zone_id", "category", "amount_minor"))
    if source is None:
        return None
    zone_id = _read_zone(problems, pointer, source, layout)
    category: SeatCategory | None = None
    if source.get("category") is not None:
        place = child(pointer, "category")
        category = check_choice(problems, place, source["category"], SeatCategory, "unknown_category")
        if category is None:
            return None
    amount = _read_amount(problems, pointer, source)
    return None if zone_id is None or amount is None else Price(zone_id, category, amount)


def _read_amount(problems: Problems, pointer: str, source: Object) -> int | None:
    amount = source.get("amount_minor")
    fault = integer_fault(amount, 0, MAX_AMOUNT_MINOR)
    if "amount_minor" not in source:
        fault = ("missing", "amount_minor is missing")
    if fault is not None:
        problems.add(child(pointer, "amount_minor"), *fault)
        return None
    assert isinstance(amount, int)
    return amount


def _read_zone(problems: Problems, pointer: str, source: Object, layout: Layout | None) -> str | None:
    place = child(pointer, "zone_id")
    if "zone_id" not in source:
        problems.add(place, "missing", "zone_id is missing")
        return None
    return read_zone_name(problems, place, source["zone_id"], layout)


def read_zone_name(problems: Problems, pointer: str, value: object, layout: Layout | None) -> str | None:
    """The zone_id of the zone that is named, by its zone_id or its UUID. Without a layout: what was said."""
    named = check_text(problems, pointer, value, NAME_CHARS)
    if named is None or layout is None:
        return named
    zone = layout.zone(named)
    if zone is None:
        problems.add(pointer, "unknown_zone", f"there is no zone {quoted(named)}")
        return None
    return zone.zone_id


def read_seat_names(problems: Problems, pointer: str, value: object, layout: Layout | None) -> dict[str, str]:
    """Seats named by seat_id or UUID, once each: by seat_id, with the pointer of where each was named."""
    found: dict[str, str] = {}
    for place, raw in enumerate(read_list(problems, pointer, value) or []):
        here = child(pointer, place)
        named = check_text(problems, here, raw, NAME_CHARS)
        if named is None:
            continue
        if layout is not None:
            ordinal = layout.seat(named)
            if ordinal is None:
                problems.add(here, "unknown_seat", f"there is no seat {quoted(named)}")
                continue
            named = layout.seat_ids[ordinal]
        if named in found:
            problems.add(here, "duplicate_seat", f"seat {quoted(named)} is named twice")
        else:
            found[named] = here
    return found


def read_zone_names(problems: Problems, pointer: str, value: object, layout: Layout | None) -> tuple[str, ...]:
    """Zones named by zone_id or UUID, once each."""
    found: dict[str, None] = {}
    for place, raw in enumerate(read_list(problems, pointer, value) or []):
        named = read_zone_name(problems, child(pointer, place), raw, layout)
        if named is None:
            continue
        if named in found:
            problems.add(child(pointer, place), "duplicate_zone", f"zone {quoted(named)} is named twice")
        found[named] = None
    return tuple(found)


_FIELDS = ("zones", "seat_ids", "categories", "amount_minor")


def read_pricing_zones(problems: Problems, value: object, layout: Layout | None) -> dict[str, PricingZone]:
    """`{"Front": {"seat_ids": […], "zones": […], "categories": […], "amount_minor": 9000}}`, whole or with every problem."""
    if value is None:
        return {}
    source = read_object(problems, "/pricing_zones", value, None) or {}
    if len(source) > MAX_PRICING_ZONES:
        said = f"at most {MAX_PRICING_ZONES} pricing zones, not {len(source)}"
        problems.add("/pricing_zones", "too_many_pricing_zones", said)
        return {}
    found: dict[str, PricingZone] = {}
    named_by: dict[str, str] = {}
    for name, raw in source.items():
        if check_text(problems, child("/pricing_zones", name), name, NAME_CHARS) is None:
            continue
        area = _read_pricing_zone(problems, name, raw, layout, named_by)
        if area is not None:
            found[name] = area
    if layout is not None:
        _report_overlaps(problems, found, layout.zones)
    return found


def _read_pricing_zone(
    problems: Problems, name: str, raw: object, layout: Layout | None, named_by: dict[str, str]
) -> PricingZone | None:
    """`named_by`: each seat named so far, with the pricing zone that names it."""
    pointer = child("/pricing_zones", name)
    source = read_object(problems, pointer, raw, _FIELDS)
    if source is None:
        return None
    fields: dict[str, Any] = {"zones": (), "seat_ids": (), "categories": ()}
    if source.get("zones") is not None:
        fields["zones"] = read_zone_names(problems, child(pointer, "zones"), source["zones"], layout)
    if source.get("categories") is not None:
        fields["categories"] = tuple(_read_categories(problems, child(pointer, "categories"), source["categories"]))
    if source.get("seat_ids") is not None:
        seats = read_seat_names(problems, child(pointer, "seat_ids"), source["seat_ids"], layout)
        for seat_id, here in seats.items():
            owner = named_by.setdefault(seat_id, name)
            if owner != name:
                said = f"seat {quoted(seat_id)} is named by the pricing zone {quoted(owner)} too"
                problems.add(here, "overlapping_pricing_zones", said)
        fields["seat_ids"] = tuple(seats)
    amount = _read_amount(problems, pointer, source)
    if not any(source.get(field) for field in ("zones", "seat_ids", "categories")):
        problems.add(pointer, "empty", "a pricing zone names zones, categories or seat_ids")
        return None
    return None if amount is None else PricingZone(amount_minor=amount, **fields)


def _read_categories(problems: Problems, pointer: str, value: object) -> Iterator[SeatCategory]:
    seen: set[SeatCategory] = set()
    for place, raw in enumerate(read_list(problems, pointer, value) or []):
        category = check_choice(problems, child(pointer, place), raw, SeatCategory, "unknown_category")
        if category is not None and category not in seen:
            seen.add(category)
            yield category


def _report_overlaps(problems: Problems, pricing_zones: PricingZones, zones: Iterable[Zone]) -> None:
    """Two areas of one kind that both price the same seats: nobody could say which counts."""
    known = list(zones)
    told: set[tuple[str, str]] = set()
    for zone in known:
        for category in _CATEGORIES:
            first: dict[bool, str] = {}
            for name, area in pricing_zones.items():
                if not area.covers(zone.zone_id, category):
                    continue
                other = first.setdefault(bool(area.categories), name)
                if other != name and (other, name) not in told:
                    told.add((other, name))
                    said = f"{quoted(other)} and {quoted(name)} both price {category} places of {quoted(zone.zone_id)}"
                    problems.add(child("/pricing_zones", name), "overlapping_pricing_zones", said)
