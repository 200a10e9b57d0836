"""Hold types: the open set of reasons a seat is taken, beside the closed set of states.

Three layers say what a type is: organization over tenant over platform, field by field. A layer that leaves
a field out inherits it; a layer that says null has said something.
"""

import re
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from holdfast.holds.lifecycle import Actor, BookingState
from holdfast.kernel.problems import DocumentInvalid, Problems, child, listing, quoted, type_name
from holdfast.seating.reading import check_integer, check_text, read_list, read_object

CART = "CART"
RESERVED = "RESERVED"

MAX_HOLD_TYPES = 200
MAX_TTL_S = 10 * 365 * 86_400
DISPLAY_CHARS = 100

HOLD_STATES = (BookingState.LOCKED, BookingState.SOLD)
"""The states a hold type can stand for; the other two are nobody's claim."""

_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_COLOUR = re.compile(r"#(?:[0-9A-Fa-f]{3}|[0-9A-Fa-f]{6})")


class Layer(StrEnum):
    ORGANIZATION = "organization"
    TENANT = "tenant"
    PLATFORM = "platform"
    DEFAULT = "default"


class ConfigInvalid(DocumentInvalid):
    """A tenant's or organization's config has fields that cannot stand; nothing of it is stored."""


class HoldType(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    valid_states: tuple[BookingState, ...]
    ttl_seconds: int | None
    """None: until released."""
    release_api: frozenset[Actor]
    payment_required: bool
    skip_locked_state: bool
    display_name: str
    display_color: str
    display_icon: str | None


class HoldTypeSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What one layer says of one type. UNSET fields are inherited."""

    valid_states: tuple[BookingState, ...] | UnsetType = UNSET
    ttl_seconds: int | UnsetType | None = UNSET
    release_api: str | UnsetType = UNSET
    """Actors with commas between, in the order of `Actor`."""
    payment_required: bool | UnsetType = UNSET
    skip_locked_state: bool | UnsetType = UNSET
    display_name: str | UnsetType = UNSET
    display_color: str | UnsetType = UNSET
    display_icon: str | UnsetType | None = UNSET


class HoldTypesConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One layer, as stored: encodes to the JSON that `parse_hold_types_config` reads."""

    hold_types: dict[str, HoldTypeSettings] = {}


class ResolvedHoldType(msgspec.Struct, frozen=True):
    hold_type: HoldType
    layers: dict[str, Layer]
    """Which layer each field came from, by the field's name in `HoldType`."""

    @property
    def name(self) -> str:
        return self.hold_type.name

    @property
    def ttl_seconds(self) -> int | None:
        return self.hold_type.ttl_seconds

    def values_json(self) -> dict[str, Any]:
        """The fields under their JSON names."""
        values = {FIELD_NAMES[field]: getattr(self.hold_type, field) for field in FIELD_NAMES}
        return {
            **values,
            "validStates": [state.value for state in self.hold_type.valid_states],
            "releaseApi": _joined(self.hold_type.release_api),
        }

    def layers_json(self) -> dict[str, str]:
        return {FIELD_NAMES[field]: layer.value for field, layer in self.layers.items()}


FIELD_NAMES: dict[str, str] = {field.name: field.encode_name for field in msgspec.structs.fields(HoldTypeSettings)}
"""Python name → JSON name of each field a config can set."""


def _joined(actors: frozenset[Actor]) -> str:
    return ",".join(actor for actor in Actor if actor in actors)


PLATFORM_CONFIG = HoldTypesConfig(
    hold_types={
        CART: HoldTypeSettings(
            valid_states=(BookingState.LOCKED,),
            ttl_seconds=900,
            release_api="CUSTOMER,ADMIN,SYSTEM",
            payment_required=True,
            skip_locked_state=False,
            display_name="Cart",
            display_color="#F5A623",
            display_icon=None,
        ),
        RESERVED: HoldTypeSettings(
            valid_states=(BookingState.LOCKED,),
            ttl_seconds=None,
            release_api="ADMIN",
            payment_required=False,
            skip_locked_state=False,
            display_name="Reserved",
            display_color="#4A6FA5",
            display_icon=None,
        ),
    }
)


def _defaults(name: str) -> HoldTypeSettings:
    """What a new name is where no layer says."""
    return HoldTypeSettings(
        valid_states=(BookingState.LOCKED,),
        ttl_seconds=None,
        release_api="ADMIN",
        payment_required=True,
        skip_locked_state=False,
        display_name=" ".join(word.capitalize() for word in name.split("_") if word) or name,
        display_color="#808080",
        display_icon=None,
    )


def resolve_hold_types(
    tenant_cfg: HoldTypesConfig | None, organization_cfg: HoldTypesConfig | None
) -> dict[str, ResolvedHoldType]:
    """Every hold type an organization has, by name: the platform's first, then its tenant's, then its own."""
    layers = [
        (Layer.ORGANIZATION, organization_cfg.hold_types if organization_cfg else {}),
        (Layer.TENANT, tenant_cfg.hold_types if tenant_cfg else {}),
        (Layer.PLATFORM, PLATFORM_CONFIG.hold_types),
    ]
    names = dict.fromkeys(name for _, types in reversed(layers) for name in types)
    resolved: dict[str, ResolvedHoldType] = {}
    for name in names:
        said = [(layer, types[name]) for layer, types in layers if name in types]
        resolved[name] = _resolved(name, [*said, (Layer.DEFAULT, _defaults(name))])
    return resolved


def _resolved(name: str, said: list[tuple[Layer, HoldTypeSettings]]) -> ResolvedHoldType:
    values: dict[str, Any] = {}
    layers: dict[str, Layer] = {}
    for field in FIELD_NAMES:
        for layer, settings in said:
            value = getattr(settings, field)
            if value is not UNSET:
                values[field] = value
                layers[field] = layer
                break
    values["release_api"] = frozenset(Actor(actor) for actor in values["release_api"].split(","))
    return ResolvedHoldType(HoldType(name=name, **values), layers)


def parse_hold_types_config(raw: object) -> HoldTypesConfig:
    """One layer from decoded JSON `{"holdTypes": {NAME: {…}}}`. Raises ConfigInvalid with every bad field."""
    problems = Problems()
    hold_types: dict[str, HoldTypeSettings] = {}
    source = read_object(problems, "", raw, ("holdTypes",)) or {}
    if "holdTypes" in source:
        named = read_object(problems, "/holdTypes", source["holdTypes"], None) or {}
        if len(named) > MAX_HOLD_TYPES:
            said = f"at most {MAX_HOLD_TYPES} hold types, not {len(named)}"
            problems.add("/holdTypes", "too_many_hold_types", said)
            named = {}
        for name, settings in named.items():
            pointer = child("/holdTypes", str(name))
            if not _NAME.fullmatch(name):
                said = "a hold type's name is 1 to 64 capital letters, digits and underscores, a letter first"
                problems.add(pointer, "bad_name", said)
            hold_types[name] = _read_settings(problems, pointer, settings)
    if problems:
        raise ConfigInvalid(problems.listed())
    return HoldTypesConfig(hold_types=hold_types)


def _read_settings(problems: Problems, pointer: str, raw: object) -> HoldTypeSettings:
    source = read_object(problems, pointer, raw, _READERS) or {}
    values: dict[str, Any] = {}
    for name, read in _READERS.items():
        if name in source:
            values[name] = read(problems, child(pointer, name), source[name])
    if problems:
        # Refused in the end whatever else is read; the values may hold stand-ins.
        return HoldTypeSettings()
    return msgspec.convert(values, HoldTypeSettings)


def _read_states(problems: Problems, pointer: str, value: object) -> tuple[BookingState, ...]:
    raw_states = read_list(problems, pointer, value)
    if raw_states is not None and not raw_states:
        problems.add(pointer, "empty", f"names no state: any of {listing(HOLD_STATES)}")
    states: list[BookingState] = []
    for place, raw in enumerate(raw_states or []):
        if not isinstance(raw, str):
            problems.add(child(pointer, place), "wrong_type", f"must be a string, not {type_name(raw)}")
        elif raw not in HOLD_STATES:
            said = f"{quoted(raw)} is none of {listing(HOLD_STATES)}"
            problems.add(child(pointer, place), "unknown_state", said)
        elif raw in states:
            problems.add(child(pointer, place), "duplicate", f"{quoted(raw)} is listed twice")
        else:
            states.append(BookingState(raw))
    return tuple(states)


def _read_ttl(problems: Problems, pointer: str, value: object) -> int | None:
    return None if value is None else check_integer(problems, pointer, value, 1, MAX_TTL_S)


def _read_actors(problems: Problems, pointer: str, value: object) -> str:
    if not isinstance(value, str):
        said = f"must be a string of actors with commas between, not {type_name(value)}"
        problems.add(pointer, "wrong_type", said)
        return ""
    if len(value) > 200:
        problems.add(pointer, "too_long", "must be at most 200 characters")
        return ""
    if not value.strip():
        problems.add(pointer, "empty", f"names no actor: any of {listing(Actor)}")
        return ""
    actors: set[Actor] = set()
    for word in value.split(","):
        try:
            actors.add(Actor(word.strip()))
        except ValueError:
            said = f"{quoted(word.strip())} is none of {listing(Actor)}"
            problems.add(pointer, "unknown_actor", said)
    return _joined(frozenset(actors))


def _read_boolean(problems: Problems, pointer: str, value: object) -> bool:
    if not isinstance(value, bool):
        problems.add(pointer, "wrong_type", f"must be true or false, not {type_name(value)}")
        return False
    return value


def _read_label(problems: Problems, pointer: str, value: object) -> str | None:
    return check_text(problems, pointer, value, DISPLAY_CHARS)


def _read_colour(problems: Problems, pointer: str, value: object) -> str | None:
    if not isinstance(value, str):
        problems.add(pointer, "wrong_type", f"must be a string, not {type_name(value)}")
    elif not _COLOUR.fullmatch(value):
        problems.add(pointer, "bad_colour", f"{quoted(value)} is no colour of the form #RGB or #RRGGBB")
    else:
        return value
    return None


def _read_icon(problems: Problems, pointer: str, value: object) -> str | None:
    return None if value is None else check_text(problems, pointer, value, DISPLAY_CHARS)


_READERS: dict[str, Any] = {
    "validStates": _read_states,
    "ttlSeconds": _read_ttl,
    "releaseApi": _read_actors,
    "paymentRequired": _read_boolean,
    "skipLockedState": _read_boolean,
    "displayName": _read_label,
    "displayColor": _read_colour,
    "displayIcon": _read_icon,
}
