import uuid
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.seating.access import STAFF_ROLES, check_attendee_access, check_zone_access
from holdfast.seating.layout import AccessMode, Zone, ZoneType

PUBLIC = Zone(zone_no=0, id=uuid.uuid4(), zone_id="z", name="Balcony", zone_type=ZoneType.RESERVED_SEATING, capacity=1)
GOLD = msgspec.structs.replace(PUBLIC, access_mode=AccessMode.MEMBERSHIP_TIER, required_tier="gold")
PRESS = msgspec.structs.replace(PUBLIC, access_mode=AccessMode.ROLE_BASED, allowed_roles=("press", "crew"))
LISTED = msgspec.structs.replace(PUBLIC, access_mode=AccessMode.WHITELIST)

STRANGER: dict[str, Any] = {"role": "customer", "tiers": (), "membership_active": False, "whitelisted": False}


@pytest.mark.parametrize(
    ("zone", "user", "reason"),
    [
        (PUBLIC, {}, None),
        (GOLD, {}, "you do not have"),
        (GOLD, {"tiers": ("silver",), "membership_active": True}, "you do not have"),
        (GOLD, {"tiers": ("silver", "gold")}, "not active"),
        (GOLD, {"tiers": ("silver", "gold"), "membership_active": True}, None),
        (GOLD, {"whitelisted": True}, "you do not have"),
        (
            msgspec.structs.replace(GOLD, required_tier=None),
            {"tiers": ("gold",), "membership_active": True},
            "no tier",
        ),
        (PRESS, {}, "press, crew"),
        (PRESS, {"role": "crew"}, None),
        (PRESS, {"role": "press", "membership_active": False}, None),
        (msgspec.structs.replace(PRESS, allowed_roles=()), {"role": "crew"}, "staff"),
        (LISTED, {}, "not on it"),
        (LISTED, {"whitelisted": True}, None),
    ],
)
def test_a_zone_admits_those_its_mode_names(zone: Zone, user: dict[str, Any], reason: str | None) -> None:
    denied = check_zone_access(zone, **{**STRANGER, **user})
    if reason is None:
        assert denied is None
    else:
        assert denied is not None
        assert denied.mode is zone.access_mode
        assert denied.zone_id == zone.zone_id
        assert reason in denied.reason
        assert "Balcony" in denied.reason


@pytest.mark.parametrize("zone", [PUBLIC, GOLD, PRESS, LISTED])
@pytest.mark.parametrize("role", sorted(STAFF_ROLES))
def test_staff_pass_everywhere(zone: Zone, role: str) -> None:
    assert check_zone_access(zone, **{**STRANGER, "role": role}) is None


@pytest.mark.parametrize("zone", [PUBLIC, GOLD, PRESS, LISTED])
def test_an_attendee_on_the_events_list_may_be_booked_for_in_any_zone(zone: Zone) -> None:
    assert check_attendee_access(zone, **{**STRANGER, "whitelisted": True}) is None


@given(
    st.sampled_from([PUBLIC, GOLD, PRESS, LISTED]),
    st.sampled_from(["customer", "press", "crew", "admin"]),
    st.sets(st.sampled_from(["gold", "silver"])),
    st.booleans(),
)
def test_an_attendee_off_the_list_is_judged_like_anybody(zone: Zone, role: str, tiers: set[str], active: bool) -> None:
    user: dict[str, Any] = {"role": role, "tiers": tiers, "membership_active": active, "whitelisted": False}
    assert check_attendee_access(zone, **user) == check_zone_access(zone, **user)
