from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.holds.hold_types import (
    FIELD_NAMES,
    ConfigInvalid,
    HoldTypesConfig,
    Layer,
    parse_hold_types_config,
    resolve_hold_types,
)
from holdfast.holds.lifecycle import Actor, BookingState


def config(**hold_types: dict[str, Any]) -> HoldTypesConfig:
    return parse_hold_types_config({"holdTypes": hold_types})


def test_the_platform_ships_cart_and_reserved() -> None:
    resolved = resolve_hold_types(None, None)
    assert list(resolved) == ["CART", "RESERVED"]
    cart, reserved = resolved["CART"].hold_type, resolved["RESERVED"].hold_type
    assert (cart.valid_states, cart.ttl_seconds) == ((BookingState.LOCKED,), 900)
    assert cart.release_api == {Actor.CUSTOMER, Actor.ADMIN, Actor.SYSTEM}
    assert (cart.payment_required, cart.skip_locked_state) == (True, False)
    assert reserved.ttl_seconds is None
    assert reserved.release_api == {Actor.ADMIN}
    assert reserved.payment_required is False
    assert set(resolved["CART"].layers.values()) == {Layer.PLATFORM}


def test_a_new_name_that_says_nothing_takes_the_documented_defaults() -> None:
    resolved = resolve_hold_types(None, config(PARTNER_HOLD={}))["PARTNER_HOLD"]
    assert resolved.values_json() == {
        "validStates": ["LOCKED"],
        "ttlSeconds": None,
        "releaseApi": "ADMIN",
        "paymentRequired": True,
        "skipLockedState": False,
        "displayName": "Partner Hold",
        "displayColor": "#808080",
        "displayIcon": None,
    }
    assert set(resolved.layers_json().values()) == {"default"}


def test_each_field_comes_from_the_nearest_layer_that_sets_it() -> None:
    tenant = config(CART={"ttlSeconds": 600, "displayName": "Basket"}, COMP={"paymentRequired": False})
    organization = config(CART={"ttlSeconds": 120}, COMP={"displayColor": "#FFD700"})
    resolved = resolve_hold_types(tenant, organization)
    cart = resolved["CART"]
    assert (cart.ttl_seconds, cart.hold_type.display_name) == (120, "Basket")
    assert cart.layers["ttl_seconds"] is Layer.ORGANIZATION
    assert cart.layers["display_name"] is Layer.TENANT
    assert cart.layers["release_api"] is Layer.PLATFORM
    comp = resolved["COMP"]
    assert comp.layers_json() == {
        **dict.fromkeys(FIELD_NAMES.values(), "default"),
        "paymentRequired": "tenant",
        "displayColor": "organization",
    }


def test_an_explicit_null_overrides_an_inherited_number() -> None:
    resolved = resolve_hold_types(config(CART={"ttlSeconds": 600}), config(CART={"ttlSeconds": None}))["CART"]
    assert resolved.ttl_seconds is None
    assert resolved.layers["ttl_seconds"] is Layer.ORGANIZATION


def test_null_and_absent_stay_apart_in_the_stored_form() -> None:
    stored = msgspec.json.encode(config(CART={"ttlSeconds": None}, COMP={}))
    assert msgspec.json.decode(stored) == {"holdTypes": {"CART": {"ttlSeconds": None}, "COMP": {}}}
    assert msgspec.json.decode(stored, type=HoldTypesConfig) == config(CART={"ttlSeconds": None}, COMP={})


def test_actors_are_read_with_spaces_and_stored_in_order() -> None:
    parsed = config(X={"releaseApi": " API , ADMIN,ADMIN"}).hold_types["X"]
    assert parsed.release_api == "ADMIN,API"


@pytest.mark.parametrize("raw", [{}, {"holdTypes": {}}])
def test_a_config_may_be_empty(raw: object) -> None:
    assert parse_hold_types_config(raw).hold_types == {}


@pytest.mark.parametrize(
    ("settings", "pointer", "code"),
    [
        (5, "", "wrong_type"),
        ({"ttl_seconds": 5}, "/ttl_seconds", "unknown_field"),
        ({"validStates": "LOCKED"}, "/validStates", "wrong_type"),
        ({"validStates": []}, "/validStates", "empty"),
        ({"validStates": ["LOCKED", "ACTIVE"]}, "/validStates/1", "unknown_state"),
        ({"validStates": ["BLOCKED"]}, "/validStates/0", "unknown_state"),
        ({"validStates": ["SOLD", "SOLD"]}, "/validStates/1", "duplicate"),
        ({"validStates": [["SOLD"]]}, "/validStates/0", "wrong_type"),
        ({"ttlSeconds": -1}, "/ttlSeconds", "out_of_range"),
        ({"ttlSeconds": 0}, "/ttlSeconds", "out_of_range"),
        ({"ttlSeconds": 10**30}, "/ttlSeconds", "out_of_range"),
        ({"ttlSeconds": 1.5}, "/ttlSeconds", "wrong_type"),
        ({"ttlSeconds": True}, "/ttlSeconds", "wrong_type"),
        ({"ttlSeconds": "60"}, "/ttlSeconds", "wrong_type"),
        ({"releaseApi": ["ADMIN"]}, "/releaseApi", "wrong_type"),
        ({"releaseApi": ""}, "/releaseApi", "empty"),
        ({"releaseApi": "ADMIN,ROBOT"}, "/releaseApi", "unknown_actor"),
        ({"releaseApi": "ADMIN,"}, "/releaseApi", "unknown_actor"),
        ({"releaseApi": "admin"}, "/releaseApi", "unknown_actor"),
        ({"paymentRequired": 1}, "/paymentRequired", "wrong_type"),
        ({"paymentRequired": None}, "/paymentRequired", "wrong_type"),
        ({"skipLockedState": "no"}, "/skipLockedState", "wrong_type"),
        ({"displayName": ""}, "/displayName", "empty"),
        ({"displayName": None}, "/displayName", "wrong_type"),
        ({"displayName": "x" * 101}, "/displayName", "too_long"),
        ({"displayColor": "red"}, "/displayColor", "bad_colour"),
        ({"displayColor": "#FFFF"}, "/displayColor", "bad_colour"),
        ({"displayColor": "#FFF\n"}, "/displayColor", "bad_colour"),
        ({"displayColor": None}, "/displayColor", "wrong_type"),
        ({"displayIcon": 4}, "/displayIcon", "wrong_type"),
        ({"displayIcon": "x" * 101}, "/displayIcon", "too_long"),
    ],
)
def test_a_bad_field_is_named(settings: object, pointer: str, code: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        parse_hold_types_config({"holdTypes": {"COMP": settings}})
    found = [(problem.pointer, problem.code) for problem in caught.value.problems]
    assert found == [(f"/holdTypes/COMP{pointer}", code)]


@pytest.mark.parametrize("name", ["", "comp", "1A", "_A", "A-B", "A\n", "A" * 65, "Ä", "a/b"])
def test_a_bad_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        parse_hold_types_config({"holdTypes": {name: {}}})
    assert [problem.code for problem in caught.value.problems] == ["bad_name"]


def test_every_problem_is_named_at_once() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        parse_hold_types_config(
            {"webhooks": [], "holdTypes": {"a": {"x": 1}, "COMP": {"displayColor": "red", "ttlSeconds": -1}}}
        )
    assert {problem.pointer for problem in caught.value.problems} == {
        "/webhooks",
        "/holdTypes/a",
        "/holdTypes/a/x",
        "/holdTypes/COMP/displayColor",
        "/holdTypes/COMP/ttlSeconds",
    }


def test_a_config_has_a_limit_of_types() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        parse_hold_types_config({"holdTypes": {f"T{n}": {} for n in range(201)}})
    assert [problem.code for problem in caught.value.problems] == ["too_many_hold_types"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["LOCKED", "ADMIN", "#FFF"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*FIELD_NAMES.values(), "holdTypes", "CART"]) | st.text(), inner, max_size=5)
    ),
    max_leaves=15,
)


@given(json_values | st.fixed_dictionaries({"holdTypes": st.dictionaries(st.just("CART"), json_values)}))
def test_arbitrary_json_is_read_or_refused(value: object) -> None:
    with suppress(ConfigInvalid):
        parse_hold_types_config(value)


settings_of_one_type = st.fixed_dictionaries(
    {},
    optional={
        "validStates": st.sampled_from([["LOCKED"], ["SOLD"], ["LOCKED", "SOLD"]]),
        "ttlSeconds": st.none() | st.integers(1, 100_000),
        "releaseApi": st.sets(st.sampled_from(Actor), min_size=1).map(
            lambda chosen: ",".join(actor for actor in Actor if actor in chosen)
        ),
        "paymentRequired": st.booleans(),
        "skipLockedState": st.booleans(),
        "displayName": st.sampled_from(["One", "Two"]),
        "displayColor": st.sampled_from(["#123", "#aBcDeF"]),
        "displayIcon": st.none() | st.just("star"),
    },
)
layer_configs = st.dictionaries(st.sampled_from(["CART", "RESERVED", "COMP", "VIP"]), settings_of_one_type)


@given(layer_configs, layer_configs)
def test_overriding_one_field_inherits_the_rest(
    tenant: dict[str, dict[str, Any]], organization: dict[str, dict[str, Any]]
) -> None:
    inherited = resolve_hold_types(config(**tenant), None)
    resolved = resolve_hold_types(config(**tenant), config(**organization))
    assert set(resolved) == {"CART", "RESERVED", *tenant, *organization}
    for name, hold_type in resolved.items():
        own = organization.get(name, {})
        base = inherited.get(name) or resolve_hold_types(None, config(**{name: {}}))[name]
        assert hold_type.values_json() == {**base.values_json(), **own}
        assert hold_type.layers_json() == {**base.layers_json(), **dict.fromkeys(own, "organization")}


@given(layer_configs)
def test_a_stored_config_reads_back_equal(layer: dict[str, dict[str, Any]]) -> None:
    parsed = config(**layer)
    stored = msgspec.json.encode(parsed)
    assert parse_hold_types_config(msgspec.json.decode(stored)) == parsed
    assert msgspec.json.decode(stored, type=HoldTypesConfig) == parsed
