"""What an event changes of its layout: seats and zones it does not offer, zones it opens to others, areas it prices. Pure.

An overlay is known by its content. Two events with the same zone overrides share one layout, and no overlay copies a seat.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Any

import msgspec

from holdfast.kernel.problems import Problem, Problems, child, quoted
from holdfast.seating.layout import AccessMode, Layout, Zone, ZoneType
from holdfast.seating.policy import SeatingPolicy, zone_conflicts
from holdfast.seating.prices import (
    PricingZone,
    read_pricing_zones,
    read_seat_names,
    read_zone_name,
    read_zone_names,
)
from holdfast.seating.reading import (
    ROLE_CHARS,
    Object,
    check_choice,
    read_object,
    read_optional_text,
    read_roles,
    tier_field,
)

OVERLAY_FIELDS = ("blocked_seat_ids", "disabled_zones", "zone_overrides", "pricing_zones")
OVERLAY_REASON = "overlay: not offered at this event"
"""Why such a seat is blocked: by this text a seat of the overlay is told from one that somebody blocked by hand."""
RESERVED_REASON = "overlay:"
"""No reason of a person's may begin so."""
TEXT_CHARS = 200
_KEPT_LAYOUTS = 64


class ZoneOverride(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an event says of a zone instead of its layout; None: as the layout has it."""

    name: str | None = None
    zone_type: ZoneType | None = None
    access_mode: AccessMode | None = None
    required_tier: str | None = None
    allowed_roles: tuple[str, ...] | None = None


# `dict=True` gives the cached property somewhere to live.
class Overlay(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """Seats and zones by the organiser's own names. As stored, and as it is answered."""

    blocked_seat_ids: tuple[str, ...] = ()
    disabled_zones: tuple[str, ...] = ()
    zone_overrides: dict[str, ZoneOverride] = {}
    pricing_zones: dict[str, PricingZone] = {}

    @cached_property
    def zones_key(self) -> bytes:
        """Names what is said of the zones; empty where nothing is."""
        return msgspec.json.encode(self.zone_overrides) if self.zone_overrides else b""

    def is_disabled(self, zone: Zone) -> bool:
        return zone.zone_id in self.disabled_zones


NO_OVERLAY = Overlay()


# What it does -------------------------------------------------------------------------------------------------------
def effective_layout(layout: Layout, overlay: Overlay) -> Layout:
    """The layout as the event has it: the same seats, the zones as overridden."""
    key = overlay.zones_key
    if not key:
        return layout
    known = layout.overlaid.get(key)
    if known is None:
        if len(layout.overlaid) >= _KEPT_LAYOUTS:
            layout.overlaid.clear()
        known = layout.overlaid[key] = layout.with_zones(_overridden(layout.zones, overlay.zone_overrides))
    return known


def _overridden(zones: Iterable[Zone], overrides: Mapping[str, ZoneOverride]) -> tuple[Zone, ...]:
    return tuple(_override(zone, overrides[zone.zone_id]) if zone.zone_id in overrides else zone for zone in zones)


def _override(zone: Zone, said: ZoneOverride) -> Zone:
    changes = {field: getattr(said, field) for field in ZoneOverride.__struct_fields__}
    return msgspec.structs.replace(zone, **{field: value for field, value in changes.items() if value is not None})


def unoffered_seats(layout: Layout, overlay: Overlay) -> set[int]:
    """Ordinals of the seats that the overlay blocks, by name or with their zone."""
    found = {
        layout.ordinals_by_seat_id[name] for name in overlay.blocked_seat_ids if name in layout.ordinals_by_seat_id
    }
    for zone in layout.zones:
        if overlay.is_disabled(zone):
            found.update(zone.ordinals)
    return found


def disabled_pools(layout: Layout, overlay: Overlay) -> set[int]:
    """Numbers of the general-admission zones that the overlay takes out."""
    return {zone.zone_no for zone in layout.zones if zone.is_ga and overlay.is_disabled(zone)}


def overlay_within(layout: Layout, overlay: Overlay) -> Overlay:
    """The overlay without the seats and zones that this version of the layout lacks; of what a name in it means to another
    version nothing is left. The same one where it lacks none."""
    zone_ids = {zone.zone_id for zone in layout.zones}
    pricing: dict[str, PricingZone] = {}
    for name, area in overlay.pricing_zones.items():
        zones = tuple(zone for zone in area.zones if zone in zone_ids)
        seats = tuple(seat for seat in area.seat_ids if seat in layout.ordinals_by_seat_id)
        # An area whose zones are all gone must not become one of every zone.
        categories = () if area.zones and not zones else area.categories
        if zones or seats or categories:
            pricing[name] = msgspec.structs.replace(area, zones=zones, seat_ids=seats, categories=categories)
    within = Overlay(
        blocked_seat_ids=tuple(name for name in overlay.blocked_seat_ids if name in layout.ordinals_by_seat_id),
        disabled_zones=tuple(zone for zone in overlay.disabled_zones if zone in zone_ids),
        zone_overrides={zone: said for zone, said in overlay.zone_overrides.items() if zone in zone_ids},
        pricing_zones=pricing,
    )
    return overlay if within == overlay else within


def overlay_conflicts(policy: SeatingPolicy, layout: Layout, overlay: Overlay) -> list[Problem]:
    """Where the zones as the event has them are of a kind the policy does not allow. A disabled zone is none of them;
    what an override brought about is reported at the override."""
    zones = [zone for zone in effective_layout(layout, overlay).zones if not overlay.is_disabled(zone)]
    places = {f"/zones/{zone.zone_no}/zone_type": zone.zone_id for zone in zones}
    found: list[Problem] = []
    for problem in zone_conflicts(policy, zones):
        zone_id = places.get(problem.pointer)
        said = overlay.zone_overrides.get(zone_id) if zone_id is not None else None
        if zone_id is not None and said is not None and said.zone_type is not None:
            pointer = child(child("/zone_overrides", zone_id), "zone_type")
            problem = Problem(pointer, problem.code, problem.detail)
        found.append(problem)
    return found


# What an organiser says -----------------------------------------------------------------------------------------------
def read_overlay(problems: Problems, source: Object, layout: Layout | None) -> Overlay:
    """The overlay's fields of an event's document. Without a layout the names in it cannot be held against anything."""
    blocked = source.get("blocked_seat_ids")
    disabled = source.get("disabled_zones")
    return Overlay(
        blocked_seat_ids=()
        if blocked is None
        else tuple(read_seat_names(problems, "/blocked_seat_ids", blocked, layout)),
        disabled_zones=() if disabled is None else read_zone_names(problems, "/disabled_zones", disabled, layout),
        zone_overrides=_read_zone_overrides(problems, source.get("zone_overrides"), layout),
        pricing_zones=read_pricing_zones(problems, source.get("pricing_zones"), layout),
    )


def overlay_document(overlay: Overlay) -> dict[str, Any]:
    """The fields that say something, as an organiser would have sent them."""
    document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(overlay))
    return document


# By their texts: an event is read twice a second, and most have the same overlay, which is none.
@lru_cache(maxsize=1_000)
def stored_overlay(text: str) -> Overlay:
    return msgspec.json.decode(text, type=Overlay)


def _read_zone_overrides(problems: Problems, value: object, layout: Layout | None) -> dict[str, ZoneOverride]:
    if value is None:
        return {}
    found: dict[str, ZoneOverride] = {}
    for named, raw in (read_object(problems, "/zone_overrides", value, None) or {}).items():
        pointer = child("/zone_overrides", named)
        zone_id = read_zone_name(problems, pointer, named, layout)
        zone = None if layout is None or zone_id is None else layout.zone(zone_id)
        override = _read_zone_override(problems, pointer, raw, zone)
        if zone_id is None or override is None:
            continue
        if zone_id in found:
            problems.add(pointer, "duplicate_zone", f"zone {quoted(zone_id)} is named twice")
        found[zone_id] = override
    return found


_FIELDS = ("name", "zone_type", "access_mode", "required_tier", "membership_tier", "allowed_roles")


def _read_zone_override(problems: Problems, pointer: str, raw: object, zone: Zone | None) -> ZoneOverride | None:
    source = read_object(problems, pointer, raw, _FIELDS)
    if source is None:
        return None
    mode: AccessMode | None = None
    if source.get("access_mode") is not None:
        place = child(pointer, "access_mode")
        mode = check_choice(problems, place, source["access_mode"], AccessMode, "unknown_access_mode")
    field = tier_field(problems, pointer, source)
    override = ZoneOverride(
        name=read_optional_text(problems, pointer, source, "name", TEXT_CHARS),
        zone_type=_read_type(problems, pointer, source, zone),
        access_mode=mode,
        required_tier=read_optional_text(problems, pointer, source, field, ROLE_CHARS),
        allowed_roles=read_roles(problems, child(pointer, "allowed_roles"), source.get("allowed_roles")),
    )
    if zone is not None:
        _check_access(problems, pointer, source, _override(zone, override))
    return override


def _read_type(problems: Problems, pointer: str, source: Object, zone: Zone | None) -> ZoneType | None:
    if source.get("zone_type") is None:
        return None
    place = child(pointer, "zone_type")
    zone_type = check_choice(problems, place, source["zone_type"], ZoneType, "unknown_zone_type")
    if zone_type is None or zone is None or zone_type.is_ga == zone.is_ga:
        return zone_type
    if zone.is_ga:
        said = f"{quoted(zone.zone_id)} counts its places: without numbered seats it cannot become {zone_type}"
    else:
        said = f"{quoted(zone.zone_id)} has numbered seats, which are sold one by one: it cannot become {zone_type}"
    problems.add(place, "incompatible_zone_type", said)
    return None


def _check_access(problems: Problems, pointer: str, source: Object, zone: Zone) -> None:
    """Of the zone as it would be: restricted to nobody is a mistake, and so is a restriction that would never be asked."""
    said_tier = source.get("required_tier") is not None or source.get("membership_tier") is not None
    if zone.access_mode is AccessMode.MEMBERSHIP_TIER and zone.required_tier is None and not said_tier:
        said = "a zone for members needs the tier they must have"
        problems.add(child(pointer, "required_tier"), "tier_required", said)
    if zone.access_mode is AccessMode.ROLE_BASED and not zone.allowed_roles:
        said = "a zone for certain roles needs at least one role"
        problems.add(child(pointer, "allowed_roles"), "roles_required", said)
    asked = {
        "required_tier": AccessMode.MEMBERSHIP_TIER,
        "membership_tier": AccessMode.MEMBERSHIP_TIER,
        "allowed_roles": AccessMode.ROLE_BASED,
    }
    for field, mode in asked.items():
        if source.get(field) and zone.access_mode is not mode:
            said = (
                f"{field} counts only where access_mode is {mode}; that of {quoted(zone.zone_id)} is {zone.access_mode}"
            )
            problems.add(child(pointer, field), "ineffective_field", said)
