import uuid
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.seating.layout import Zone, ZoneType
from holdfast.seating.policy import (
    POLICY_FIELDS,
    FieldKind,
    PolicyInvalid,
    PolicyValue,
    SeatingPolicy,
    apply_overrides,
    forbidden_overrides,
    parse_overrides,
    parse_policy,
    zone_conflicts,
)


def test_an_empty_policy_has_the_documented_defaults() -> None:
    assert parse_policy({}).values() == {
        "allow_reserved_seating": True,
        "allow_ga_seating": True,
        "allow_hybrid_ga_reserved": True,
        "allow_vip_zones": False,
        "enforce_accessibility_rules": True,
        "companion_release_occupancy_threshold": 85,
        "max_wheelchair_seats_per_booking": 1,
        "accessibility_audit_enabled": True,
        "max_seats_per_booking": 10,
        "orphan_avoidance_strict": True,
        "group_adjacency_strict": False,
        "max_group_split": 2,
        "prefer_clustering_over_selection": False,
        "default_hold_ttl_minutes": 10,
        "max_hold_minutes": 30,
        "max_holds_per_user": 10,
        "max_holds_per_ip": None,
        "checkout_minutes": 30,
        "checkout_heartbeat": False,
        "heartbeat_hold_minutes": 10,
        "buyers_state_payment": False,
        "adaptive_hold_life": False,
        "adaptive_hold_min_minutes": 2,
        "adaptive_hold_max_minutes": None,
    }


def test_saying_the_default_is_not_the_same_as_saying_nothing() -> None:
    said, silent = parse_policy({"default_hold_ttl_minutes": 10}), parse_policy({})
    assert said.values() == silent.values()
    assert said.explicit == {"default_hold_ttl_minutes"}
    assert silent.explicit == frozenset()


@pytest.mark.parametrize(
    ("raw", "pointer", "code"),
    [
        (None, "", "wrong_type"),
        ([], "", "wrong_type"),
        ({"colour": 1}, "/colour", "unknown_field"),
        ({"explicit": []}, "/explicit", "unknown_field"),
        ({"allow_vip_zones": 1}, "/allow_vip_zones", "wrong_type"),
        ({"allow_vip_zones": None}, "/allow_vip_zones", "wrong_type"),
        ({"max_seats_per_booking": True}, "/max_seats_per_booking", "wrong_type"),
        ({"max_seats_per_booking": 10.0}, "/max_seats_per_booking", "wrong_type"),
        ({"max_seats_per_booking": 0}, "/max_seats_per_booking", "out_of_range"),
        ({"max_seats_per_booking": None}, "/max_seats_per_booking", "wrong_type"),
        (
            {"companion_release_occupancy_threshold": 101},
            "/companion_release_occupancy_threshold",
            "out_of_range",
        ),
        ({"default_hold_ttl_minutes": -1}, "/default_hold_ttl_minutes", "out_of_range"),
        ({"max_holds_per_ip": 0}, "/max_holds_per_ip", "out_of_range"),
        ({"locked_fields": "max_hold_minutes"}, "/locked_fields", "wrong_type"),
        ({"locked_fields": ["max_hold_minutes", "colour"]}, "/locked_fields/1", "unknown_field"),
        ({"locked_fields": [1]}, "/locked_fields/0", "wrong_type"),
    ],
)
def test_a_bad_field_is_named(raw: object, pointer: str, code: str) -> None:
    with pytest.raises(PolicyInvalid) as caught:
        parse_policy(raw)
    assert [(problem.pointer, problem.code) for problem in caught.value.problems] == [(pointer, code)]


def test_every_bad_field_is_named_at_once() -> None:
    with pytest.raises(PolicyInvalid) as caught:
        parse_policy({"a": 1, "max_group_split": "2", "allow_ga_seating": 0, "locked_fields": [""]})
    pointers = {problem.pointer for problem in caught.value.problems}
    assert pointers == {"/a", "/max_group_split", "/allow_ga_seating", "/locked_fields/0"}


def test_null_lifts_a_limit_that_can_be_lifted() -> None:
    policy = parse_policy({"max_holds_per_user": None, "max_holds_per_ip": 50})
    assert policy.max_holds_per_user is None
    assert policy.max_holds_per_ip == 50


def test_an_event_overrides_what_it_names_and_inherits_the_rest() -> None:
    policy = parse_policy({"max_seats_per_booking": 6})
    event = apply_overrides(policy, parse_overrides({"orphan_avoidance_strict": False}))
    assert event.orphan_avoidance_strict is False
    assert event.max_seats_per_booking == 6
    assert event.explicit == policy.explicit


def test_no_overrides_change_nothing() -> None:
    policy = parse_policy({"max_group_split": 3})
    assert apply_overrides(policy, parse_overrides(None)) == policy
    assert apply_overrides(policy, parse_overrides({})) == policy


@pytest.mark.parametrize("raw", [{"locked_fields": []}, {"explicit": []}, {"x": 1}, {"max_group_split": None}, 3])
def test_bad_overrides_are_refused(raw: object) -> None:
    with pytest.raises(PolicyInvalid):
        parse_overrides(raw)


def test_an_unchecked_override_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(KeyError):
        apply_overrides(SeatingPolicy(), {"locked_fields": None})


def test_overrides_of_locked_fields_are_named() -> None:
    policy = parse_policy({"locked_fields": ["max_hold_minutes", "allow_vip_zones"]})
    overrides = parse_overrides({"max_hold_minutes": 30, "max_group_split": 1, "allow_vip_zones": True})
    assert forbidden_overrides(policy, overrides) == ["allow_vip_zones", "max_hold_minutes"]
    assert forbidden_overrides(policy, {"max_group_split": 1}) == []


def zone(zone_no: int, kind: ZoneType) -> Zone:
    return Zone(zone_no=zone_no, id=uuid.uuid4(), zone_id="z", name="Z", zone_type=kind, capacity=1)


@pytest.mark.parametrize(
    ("raw", "kinds", "expected"),
    [
        ({}, [ZoneType.RESERVED_SEATING, ZoneType.GA_SEATED], []),
        ({}, [ZoneType.GA_SEATED, ZoneType.VIP_STANDING], [("/zones/1/zone_type", "vip_not_allowed")]),
        ({"allow_vip_zones": True}, [ZoneType.VIP_RESERVED], []),
        ({"allow_ga_seating": False}, [ZoneType.GA_STANDING], [("/zones/0/zone_type", "ga_not_allowed")]),
        (
            {"allow_reserved_seating": False},
            [ZoneType.RESERVED_SEATING],
            [("/zones/0/zone_type", "reserved_not_allowed")],
        ),
        (
            {"allow_hybrid_ga_reserved": False},
            [ZoneType.RESERVED_SEATING, ZoneType.GA_STANDING],
            [("/zones", "hybrid_not_allowed")],
        ),
    ],
)
def test_zones_of_a_kind_the_policy_forbids_are_named(
    raw: dict[str, Any], kinds: list[ZoneType], expected: list[tuple[str, str]]
) -> None:
    zones = [zone(zone_no, kind) for zone_no, kind in enumerate(kinds)]
    assert [(p.pointer, p.code) for p in zone_conflicts(parse_policy(raw), zones)] == expected


def valid_value(name: str) -> st.SearchStrategy[PolicyValue]:
    field = POLICY_FIELDS[name]
    if field.kind is FieldKind.BOOLEAN:
        return st.booleans()
    numbers = st.integers(field.low, field.high)
    return st.none() | numbers if field.nullable else numbers


def leaves_room(fields: dict[str, Any]) -> bool:
    high = fields.get("adaptive_hold_max_minutes")
    return high is None or fields.get("adaptive_hold_min_minutes", 2) <= high


valid_fields = st.fixed_dictionaries({}, optional={name: valid_value(name) for name in POLICY_FIELDS}).filter(
    leaves_room
)


@pytest.mark.parametrize(
    ("low", "high", "stands"), [(2, None, True), (2, 2, True), (2, 30, True), (3, 2, False), (None, 1, False)]
)
def test_the_bounds_of_an_adaptive_life_leave_something_between_them(
    low: int | None, high: int | None, stands: bool
) -> None:
    said = {"adaptive_hold_max_minutes": high} | ({} if low is None else {"adaptive_hold_min_minutes": low})
    if stands:
        assert parse_policy(said).adaptive_hold_max_minutes == high
        return
    with pytest.raises(PolicyInvalid) as refused:
        parse_policy(said)
    assert [(p.pointer, p.code) for p in refused.value.problems] == [("/adaptive_hold_max_minutes", "below_minimum")]


@given(valid_fields, st.lists(st.sampled_from(sorted(POLICY_FIELDS)), max_size=3))
def test_a_policy_is_read_back_from_what_it_stores(fields: dict[str, Any], locked: list[str]) -> None:
    policy = parse_policy({**fields, "locked_fields": locked})
    assert parse_policy(policy.stored()) == policy
    assert policy.explicit == set(fields)


@given(valid_fields, valid_fields)
def test_each_field_of_an_event_is_its_override_or_else_the_policys(
    fields: dict[str, Any], overrides: dict[str, Any]
) -> None:
    policy = parse_policy(fields)
    event = apply_overrides(policy, parse_overrides(overrides))
    assert event.values() == {**policy.values(), **overrides}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*POLICY_FIELDS, "locked_fields"]) | st.text(), inner, max_size=6)
    ),
    max_leaves=12,
)


@given(json_values)
def test_arbitrary_json_is_read_or_refused(value: object) -> None:
    for parse in (parse_policy, parse_overrides):
        with suppress(PolicyInvalid):
            parse(value)


def test_the_field_table_covers_the_whole_struct() -> None:
    names = {field.name for field in msgspec.structs.fields(SeatingPolicy)}
    assert names == {*POLICY_FIELDS, "locked_fields", "explicit"}
