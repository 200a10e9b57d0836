"""What an organization allows and limits: its seating policy, and what an event may change of it."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from holdfast.kernel.problems import DocumentInvalid, Problem, Problems, child, listing, quoted, type_name
from holdfast.seating.layout import Zone
from holdfast.seating.reading import check_text, integer_fault, read_list, read_object

PolicyValue = bool | int | None
PolicyOverrides = Mapping[str, PolicyValue]

MAX_HOLDS_WINDOW_S = 300
"""The window in which `max_holds_per_user` and `max_holds_per_ip` count."""


ZONE_FIELDS = frozenset(("allow_reserved_seating", "allow_ga_seating", "allow_hybrid_ga_reserved", "allow_vip_zones"))
"""What decides which kinds of zone there may be."""


class FieldKind(StrEnum):
    BOOLEAN = "boolean"
    INTEGER = "integer"


class PolicyField(msgspec.Struct, frozen=True):
    kind: FieldKind
    default: PolicyValue
    low: int = 0
    high: int = 0
    nullable: bool = False
    """Null is a value of its own: no limit."""


class PolicyInvalid(DocumentInvalid):
    """A policy, or an event's overrides of one, has fields that cannot stand."""


class SeatingPolicy(msgspec.Struct, frozen=True, kw_only=True):
    allow_reserved_seating: bool = True
    allow_ga_seating: bool = True
    allow_hybrid_ga_reserved: bool = True
    allow_vip_zones: bool = False
    enforce_accessibility_rules: bool = True
    companion_release_occupancy_threshold: int = 85
    max_wheelchair_seats_per_booking: int = 1
    accessibility_audit_enabled: bool = True
    max_seats_per_booking: int = 10
    orphan_avoidance_strict: bool = True
    group_adjacency_strict: bool = False
    max_group_split: int = 2
    prefer_clustering_over_selection: bool = False
    default_hold_ttl_minutes: int = 10
    max_hold_minutes: int = 30
    max_holds_per_user: int | None = 10
    max_holds_per_ip: int | None = None
    checkout_minutes: int = 30
    checkout_heartbeat: bool = False
    heartbeat_hold_minutes: int = 10
    buyers_state_payment: bool = False
    adaptive_hold_life: bool = False
    adaptive_hold_min_minutes: int = 2
    adaptive_hold_max_minutes: int | None = None
    locked_fields: frozenset[str] = frozenset()
    """What an event may not override."""
    explicit: frozenset[str] = frozenset()
    """What the organization said itself and did not leave at the default. Overrides do not add to it."""

    def values(self) -> dict[str, PolicyValue]:
        """Every field with its value, set or default."""
        return {name: getattr(self, name) for name in POLICY_FIELDS}

    def stored(self) -> dict[str, Any]:
        """Only what was said: `parse_policy` of it gives this policy again."""
        said: dict[str, Any] = {name: getattr(self, name) for name in POLICY_FIELDS if name in self.explicit}
        if self.locked_fields:
            said["locked_fields"] = sorted(self.locked_fields)
        return said


_RANGES: dict[str, tuple[int, int]] = {
    "companion_release_occupancy_threshold": (0, 100),
    "max_wheelchair_seats_per_booking": (0, 100),
    "max_seats_per_booking": (1, 1_000),
    "max_group_split": (1, 100),
    "default_hold_ttl_minutes": (1, 10_080),
    "max_hold_minutes": (1, 10_080),
    "max_holds_per_user": (1, 1_000_000),
    "max_holds_per_ip": (1, 1_000_000),
    "checkout_minutes": (1, 1_440),
    "heartbeat_hold_minutes": (1, 1_440),
    "adaptive_hold_min_minutes": (1, 10_080),
    "adaptive_hold_max_minutes": (1, 10_080),
}
_NULLABLE = frozenset(("max_holds_per_user", "max_holds_per_ip", "adaptive_hold_max_minutes"))


def _described() -> dict[str, PolicyField]:
    # Names and defaults are the struct's own, so that the two cannot drift apart.
    fields: dict[str, PolicyField] = {}
    for field in msgspec.structs.fields(SeatingPolicy):
        if field.name in ("locked_fields", "explicit"):
            continue
        if field.name in _RANGES:
            low, high = _RANGES[field.name]
            nullable = field.name in _NULLABLE
            fields[field.name] = PolicyField(FieldKind.INTEGER, field.default, low, high, nullable)
        else:
            fields[field.name] = PolicyField(FieldKind.BOOLEAN, field.default)
    return fields


POLICY_FIELDS: dict[str, PolicyField] = _described()


def parse_policy(raw: object) -> SeatingPolicy:
    """A policy from decoded JSON, defaults where it is silent. Raises PolicyInvalid with every bad field."""
    problems = Problems()
    source = read_object(problems, "", raw, (*POLICY_FIELDS, "locked_fields")) or {}
    said = _read_values(problems, source)
    locked = _read_locked(problems, source.get("locked_fields"))
    if problems:
        raise PolicyInvalid(problems.listed())
    policy = msgspec.convert({**said, "locked_fields": locked, "explicit": frozenset(said)}, SeatingPolicy)
    conflicts = life_conflicts(policy)
    if conflicts:
        raise PolicyInvalid(conflicts)
    return policy


def parse_overrides(raw: object) -> dict[str, PolicyValue]:
    """An event's overrides: the fields it sets and no others. Raises PolicyInvalid with every bad field.

    Whether the policy permits them is `forbidden_overrides`' question.
    """
    problems = Problems()
    source = {} if raw is None else read_object(problems, "", raw, POLICY_FIELDS) or {}
    said = _read_values(problems, source)
    if problems:
        raise PolicyInvalid(problems.listed())
    return said


def forbidden_overrides(policy: SeatingPolicy, overrides: PolicyOverrides) -> list[str]:
    """The locked fields that the overrides touch, even to say the same again."""
    return sorted(policy.locked_fields.intersection(overrides))


def apply_overrides(policy: SeatingPolicy, overrides: PolicyOverrides) -> SeatingPolicy:
    """The policy as an event sees it.

    The overrides are from `parse_overrides`; the caller has refused forbidden ones.
    """
    for name in overrides:
        if name not in POLICY_FIELDS:
            raise KeyError(name)
    return msgspec.structs.replace(policy, **overrides)


def life_conflicts(policy: SeatingPolicy) -> list[Problem]:
    """Bounds of a hold's life that leave nothing between them."""
    low, high = policy.adaptive_hold_min_minutes, policy.adaptive_hold_max_minutes
    if high is None or low <= high:
        return []
    said = f"must not be below adaptive_hold_min_minutes, which is {low}"
    return [Problem("/adaptive_hold_max_minutes", "below_minimum", said)]


def zone_conflicts(policy: SeatingPolicy, zones: Iterable[Zone]) -> list[Problem]:
    """Where the zones of a layout, or of an event's overlay, are of a kind the policy does not allow."""
    found: list[Problem] = []
    kinds: set[bool] = set()
    for zone in zones:
        pointer = f"/zones/{zone.zone_no}/zone_type"
        kinds.add(zone.is_ga)
        if zone.is_ga and not policy.allow_ga_seating:
            found.append(Problem(pointer, "ga_not_allowed", "the seating policy allows no general admission"))
        if not zone.is_ga and not policy.allow_reserved_seating:
            found.append(Problem(pointer, "reserved_not_allowed", "the seating policy allows no reserved seats"))
        if zone.zone_type.is_vip and not policy.allow_vip_zones:
            found.append(Problem(pointer, "vip_not_allowed", "the seating policy allows no VIP zones"))
    if len(kinds) == 2 and not policy.allow_hybrid_ga_reserved:
        said = "the seating policy does not allow reserved seats and general admission side by side"
        found.append(Problem("/zones", "hybrid_not_allowed", said))
    return found


def _read_values(problems: Problems, source: Mapping[str, object]) -> dict[str, PolicyValue]:
    said: dict[str, PolicyValue] = {}
    for name, field in POLICY_FIELDS.items():
        if name not in source:
            continue
        value = source[name]
        fault = _fault(field, value)
        if fault is not None:
            problems.add(child("", name), *fault)
        elif value is None or isinstance(value, int):
            said[name] = value
    return said


def _fault(field: PolicyField, value: object) -> tuple[str, str] | None:
    if value is None and field.nullable:
        return None
    if field.kind is FieldKind.INTEGER:
        return integer_fault(value, field.low, field.high)
    if not isinstance(value, bool):
        return "wrong_type", f"must be true or false, not {type_name(value)}"
    return None


def _read_locked(problems: Problems, value: object) -> frozenset[str]:
    if value is None:
        return frozenset()
    locked: set[str] = set()
    for place, raw in enumerate(read_list(problems, "/locked_fields", value) or []):
        name = check_text(problems, child("/locked_fields", place), raw, 100)
        if name is None:
            continue
        if name not in POLICY_FIELDS:
            said = f"{quoted(name)} is no field of a policy; those are {listing(POLICY_FIELDS)}"
            problems.add(child("/locked_fields", place), "unknown_field", said)
        locked.add(name)
    return frozenset(locked)
