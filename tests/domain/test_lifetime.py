from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.holds.hold_types import ResolvedHoldType, parse_hold_types_config, resolve_hold_types
from holdfast.holds.lifetime import BOOKING_V2_TTL_S, NATIVE_RESERVE_TTL_S, resolve_ttl_s
from holdfast.seating.policy import SeatingPolicy, parse_policy


def resolved(
    name: str, tenant: dict[str, Any] | None = None, organization: dict[str, Any] | None = None
) -> ResolvedHoldType:
    layers = [
        None if layer is None else parse_hold_types_config({"holdTypes": {name: layer}})
        for layer in (tenant, organization)
    ]
    return resolve_hold_types(*layers)[name]


SILENT = parse_policy({})
TWENTY = parse_policy({"default_hold_ttl_minutes": 20})


@pytest.mark.parametrize(
    ("cart", "event_minutes", "policy", "expected_s"),
    [
        (resolved("CART"), None, None, 300),
        (resolved("CART"), None, SILENT, 600),
        (resolved("CART"), None, TWENTY, 1_200),
        (resolved("CART", {"ttlSeconds": 77}), None, TWENTY, 77),
        (resolved("CART", None, {"ttlSeconds": 55}), None, TWENTY, 55),
        (resolved("CART", {"ttlSeconds": 77}, {"ttlSeconds": 55}), None, TWENTY, 55),
        (resolved("CART", {"ttlSeconds": 77}, {"displayName": "Basket"}), None, TWENTY, 77),
        (resolved("CART", {"ttlSeconds": 77}, {"ttlSeconds": None}), None, TWENTY, None),
        (resolved("CART", {"ttlSeconds": None}), None, None, None),
        (resolved("CART", None, {"displayName": "Basket"}), None, None, 300),
        (resolved("CART", None, {"ttlSeconds": 900}), None, TWENTY, 900),
        (resolved("CART"), 5, None, 300),
        (resolved("CART"), 7, TWENTY, 420),
        (resolved("CART", {"ttlSeconds": 77}, {"ttlSeconds": None}), 7, TWENTY, 420),
    ],
)
def test_a_cart_takes_the_first_length_that_is_set(
    cart: ResolvedHoldType, event_minutes: int | None, policy: SeatingPolicy | None, expected_s: int | None
) -> None:
    ttl_s = resolve_ttl_s(
        cart, event_override_minutes=event_minutes, policy=policy, endpoint_default_s=NATIVE_RESERVE_TTL_S
    )
    assert ttl_s == expected_s


def test_each_endpoint_has_its_own_last_resort() -> None:
    ttl_s = resolve_ttl_s(
        resolved("CART"), event_override_minutes=None, policy=None, endpoint_default_s=BOOKING_V2_TTL_S
    )
    assert ttl_s == 900


@given(
    st.none() | st.integers(1, 60),
    st.none() | st.sampled_from([SILENT, TWENTY]),
    st.none() | st.integers(1, 9_999),
)
def test_any_other_type_lasts_as_long_as_it_says_itself(
    event_minutes: int | None, policy: SeatingPolicy | None, ttl_seconds: int | None
) -> None:
    comp = resolved("COMP", None, {"ttlSeconds": ttl_seconds})
    ttl_s = resolve_ttl_s(
        comp, event_override_minutes=event_minutes, policy=policy, endpoint_default_s=NATIVE_RESERVE_TTL_S
    )
    assert ttl_s == ttl_seconds
