"""An event's overlay without I/O: what an organiser may say, and what becomes of the layout."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from holdfast.seating.event import EventInvalid, parse_event
from holdfast.seating.layout import AccessMode, SeatCategory, ZoneType
from holdfast.seating.overlay import (
    NO_OVERLAY,
    Overlay,
    ZoneOverride,
    disabled_pools,
    effective_layout,
    overlay_conflicts,
    overlay_document,
    overlay_within,
    stored_overlay,
    unoffered_seats,
)
from holdfast.seating.policy import parse_policy
from holdfast.seating.prices import PriceList, PricingZone, price_list
from holdfast.seating.validate import parse_layout
from tests.factories import theatre_config

EVENT = UUID("00000000-0000-7000-8000-000000000001")


def hall() -> dict[str, Any]:
    config = theatre_config(2, 4, ga_capacity=50)
    config["zones"][0]["seats"][0]["category"] = "wheelchair"
    balcony = {
        "zone_id": "balcony",
        "name": "Balcony",
        "zone_type": "reserved_seating",
        "capacity": 2,
        "seats": [{"seat_id": f"Z-{n}", "row": "Z", "number": n} for n in (1, 2)],
    }
    config["zones"].insert(1, balcony)
    return config


LAYOUT = parse_layout(uuid4(), hall())


def read(**fields: Any) -> Overlay:
    document = {"name": "Evening", "layout_id": str(LAYOUT.layout_id), "currency": "EUR", **fields}
    return parse_event(document, EVENT, LAYOUT, 1).overlay


def faults(**fields: Any) -> dict[str, str]:
    with pytest.raises(EventInvalid) as caught:
        read(**fields)
    return {problem.pointer: problem.code for problem in caught.value.problems}


def test_seats_and_zones_are_named_either_way_and_kept_by_the_organisers_names() -> None:
    overlay = read(
        blocked_seat_ids=["A-2", str(LAYOUT.seat_uuid(5))],
        disabled_zones=[str(LAYOUT.zones[1].id), "pit"],
        zone_overrides={str(LAYOUT.zones[0].id): {"name": "Parquet"}},
    )
    assert overlay.blocked_seat_ids == ("A-2", "B-2")
    assert overlay.disabled_zones == ("balcony", "pit")
    assert overlay.zone_overrides == {"stalls": ZoneOverride(name="Parquet")}
    assert unoffered_seats(LAYOUT, overlay) == {1, 5, 8, 9}
    assert disabled_pools(LAYOUT, overlay) == {2}


def test_what_is_stored_reads_back_and_what_says_nothing_is_left_out() -> None:
    overlay = read(
        zone_overrides={"pit": {"access_mode": "role_based", "allowed_roles": ["scanner", "scanner"]}},
        pricing_zones={"Front": {"seat_ids": ["A-1"], "amount_minor": 100}},
    )
    document = overlay_document(overlay)
    assert document == {
        "zone_overrides": {"pit": {"access_mode": "role_based", "allowed_roles": ["scanner"]}},
        "pricing_zones": {"Front": {"seat_ids": ["A-1"], "amount_minor": 100}},
    }
    assert read(**document) == overlay
    assert stored_overlay("{}") == NO_OVERLAY == read()


def test_every_bad_reference_is_named_at_once() -> None:
    found = faults(
        blocked_seat_ids=["A-1", "X-9", str(uuid4()), 7, "A-1"],
        disabled_zones=["pit", "attic", "pit"],
        zone_overrides={"attic": {"name": "x"}, "pit": {"zone_type": "reserved_seating", "colour": "red"}},
        pricing_zones={"P": {"seat_ids": ["X-9"], "zones": ["attic"], "amount_minor": -1}, "Q": {"amount_minor": 1}},
    )
    assert found == {
        "/blocked_seat_ids/1": "unknown_seat",
        "/blocked_seat_ids/2": "unknown_seat",
        "/blocked_seat_ids/3": "wrong_type",
        "/blocked_seat_ids/4": "duplicate_seat",
        "/disabled_zones/1": "unknown_zone",
        "/disabled_zones/2": "duplicate_zone",
        "/zone_overrides/attic": "unknown_zone",
        "/zone_overrides/pit/colour": "unknown_field",
        "/zone_overrides/pit/zone_type": "incompatible_zone_type",
        "/pricing_zones/P/zones/0": "unknown_zone",
        "/pricing_zones/P/seat_ids/0": "unknown_seat",
        "/pricing_zones/P/amount_minor": "out_of_range",
        "/pricing_zones/Q": "empty",
    }


@pytest.mark.parametrize(
    ("override", "pointer", "code"),
    [
        ({"access_mode": "membership_tier"}, "required_tier", "tier_required"),
        ({"access_mode": "role_based"}, "allowed_roles", "roles_required"),
        ({"required_tier": "gold"}, "required_tier", "ineffective_field"),
        ({"access_mode": "whitelist", "allowed_roles": ["scanner"]}, "allowed_roles", "ineffective_field"),
        (
            {"access_mode": "membership_tier", "required_tier": "a", "membership_tier": "b"},
            "membership_tier",
            "conflicting_fields",
        ),
        ({"access_mode": "friends"}, "access_mode", "unknown_access_mode"),
        ({"zone_type": "ga_standing"}, "zone_type", "incompatible_zone_type"),
        ({"name": ""}, "name", "empty"),
    ],
)
def test_an_override_that_cannot_stand_says_where(override: dict[str, Any], pointer: str, code: str) -> None:
    assert faults(zone_overrides={"stalls": override}) == {f"/zone_overrides/stalls/{pointer}": code}


def test_one_zone_under_two_names_is_a_mistake() -> None:
    pit = LAYOUT.zones[2]
    assert faults(zone_overrides={"pit": {}, str(pit.id): {}}) == {f"/zone_overrides/{pit.id}": "duplicate_zone"}


def test_two_names_of_the_policys_overrides_are_one_content() -> None:
    document = {"name": "Evening", "layout_id": str(LAYOUT.layout_id), "seating_overrides": {"max_group_split": 3}}
    assert parse_event(document, EVENT, LAYOUT, 1).overrides == {"max_group_split": 3}
    assert faults(overrides={}, seating_overrides={}) == {"/seating_overrides": "conflicting_fields"}
    assert faults(seating_overrides={"max_group_split": 0}) == {"/seating_overrides/max_group_split": "out_of_range"}


def test_the_effective_layout_has_other_zones_and_the_same_seats() -> None:
    overlay = read(
        zone_overrides={
            "stalls": {"zone_type": "vip_reserved", "access_mode": "membership_tier", "membership_tier": "gold"},
            "pit": {"zone_type": "ga_seated", "name": "Benches"},
        }
    )
    effective = effective_layout(LAYOUT, overlay)
    stalls, balcony, pit = effective.zones
    assert (stalls.zone_type, stalls.access_mode, stalls.required_tier) == (
        ZoneType.VIP_RESERVED,
        AccessMode.MEMBERSHIP_TIER,
        "gold",
    )
    assert balcony is LAYOUT.zones[1]
    assert (pit.zone_type, pit.name, pit.capacity) == (ZoneType.GA_SEATED, "Benches", 50)
    assert effective.seat_ids is LAYOUT.seat_ids
    assert effective.seat_index is LAYOUT.seat_index
    assert (LAYOUT.all_public, effective.all_public) == (True, False)
    assert effective.zone("pit") is pit
    assert LAYOUT.zone("pit") is LAYOUT.zones[2]


def test_overlays_that_say_the_same_of_the_zones_share_one_layout() -> None:
    said = {"pit": {"name": "Benches"}}
    first, second = read(zone_overrides=said), read(zone_overrides=said, blocked_seat_ids=["A-1"])
    assert effective_layout(LAYOUT, first) is effective_layout(LAYOUT, second)
    assert effective_layout(LAYOUT, read(blocked_seat_ids=["A-1"])) is LAYOUT


def test_the_policy_is_asked_of_the_zones_as_they_are_overridden_and_not_of_disabled_ones() -> None:
    policy = parse_policy({"allow_vip_zones": False, "allow_hybrid_ga_reserved": False})
    vip = read(zone_overrides={"pit": {"zone_type": "vip_standing"}})
    found = {problem.pointer: problem.code for problem in overlay_conflicts(policy, LAYOUT, vip)}
    assert found == {"/zone_overrides/pit/zone_type": "vip_not_allowed", "/zones": "hybrid_not_allowed"}
    without_pit = read(zone_overrides={"pit": {"zone_type": "vip_standing"}}, disabled_zones=["pit"])
    assert overlay_conflicts(policy, LAYOUT, without_pit) == []


# Prices ---------------------------------------------------------------------------------------------------------------
def prices_of(**fields: Any) -> tuple[list[int] | None, PriceList]:
    document = {"name": "Evening", "layout_id": str(LAYOUT.layout_id), "currency": "EUR", **fields}
    content = parse_event(document, EVENT, LAYOUT, 1)
    found = price_list(LAYOUT, content.prices, content.overlay.pricing_zones)
    column = found.column()
    return None if column is None else column.tolist(), found


def test_the_narrowest_price_counts() -> None:
    column, found = prices_of(
        prices=[
            {"zone_id": "stalls", "amount_minor": 5000},
            {"zone_id": "stalls", "category": "wheelchair", "amount_minor": 2000},
            {"zone_id": "pit", "amount_minor": 1500},
        ],
        pricing_zones={
            "Front": {"seat_ids": ["A-2", "A-3"], "amount_minor": 9000},
            "Upstairs": {"zones": ["balcony"], "amount_minor": 3000},
            "Standing": {"zones": ["pit"], "amount_minor": 1200},
        },
    )
    assert column == [2000, 9000, 9000, 5000, 5000, 5000, 5000, 5000, 3000, 3000]
    assert found.zone_price(2, None) == 1200
    assert found.zone_price(0, SeatCategory.STANDARD) == 5000
    column, found = prices_of(
        prices=[{"zone_id": "stalls", "category": "wheelchair", "amount_minor": 2000}],
        pricing_zones={
            "Free": {"categories": ["wheelchair"], "amount_minor": 0},
            "Z": {"seat_ids": ["Z-2"], "amount_minor": 7},
        },
    )
    assert column == [0, -1, -1, -1, -1, -1, -1, -1, -1, 7]
    assert found.zone_price(2, None) is None
    assert prices_of()[0] is None


def test_a_price_list_is_worked_out_once_for_the_same_content() -> None:
    said = {"prices": [{"zone_id": "stalls", "amount_minor": 5000}]}
    assert prices_of(**said)[1] is prices_of(**said)[1]
    assert prices_of(**said)[1] is not prices_of()[1]
    column = prices_of(**said)[1].column()
    assert column is not None
    with pytest.raises(ValueError, match="read-only"):
        column[0] = 1


def test_two_areas_of_one_kind_that_price_the_same_seat_are_refused() -> None:
    assert faults(
        pricing_zones={
            "A": {"zones": ["stalls"], "amount_minor": 1},
            "B": {"zones": ["stalls", "pit"], "amount_minor": 2},
            "C": {"seat_ids": ["A-1", "A-2"], "amount_minor": 3},
            "D": {"seat_ids": ["A-2"], "amount_minor": 4},
        }
    ) == {"/pricing_zones/B": "overlapping_pricing_zones", "/pricing_zones/D/seat_ids/0": "overlapping_pricing_zones"}
    # A narrower one within a wider is what pricing zones are for.
    read(
        pricing_zones={
            "A": {"zones": ["stalls"], "amount_minor": 1},
            "B": {"zones": ["stalls"], "categories": ["wheelchair"], "amount_minor": 2},
        }
    )


def test_pricing_zones_need_a_currency() -> None:
    found = faults(currency=None, pricing_zones={"A": {"zones": ["stalls"], "amount_minor": 1}})
    assert found == {"/currency": "currency_required"}


def test_an_overlay_within_another_version_keeps_what_that_version_has() -> None:
    layout = parse_layout(uuid4(), theatre_config(2, 3))
    said = Overlay(
        blocked_seat_ids=("A-1", "Z-9"),
        disabled_zones=("pit", "stalls"),
        zone_overrides={"stalls": ZoneOverride(name="Floor"), "pit": ZoneOverride(name="Pit")},
        pricing_zones={
            "gone": PricingZone(zones=("pit",), categories=(SeatCategory.AISLE,), amount_minor=1),
            "part": PricingZone(zones=("pit", "stalls"), seat_ids=("Z-9",), amount_minor=2),
            "everywhere": PricingZone(categories=(SeatCategory.AISLE,), amount_minor=3),
        },
    )
    assert overlay_within(layout, said) == Overlay(
        blocked_seat_ids=("A-1",),
        disabled_zones=("stalls",),
        zone_overrides={"stalls": ZoneOverride(name="Floor")},
        pricing_zones={
            "part": PricingZone(zones=("stalls",), amount_minor=2),
            "everywhere": PricingZone(categories=(SeatCategory.AISLE,), amount_minor=3),
        },
    )
    kept = Overlay(blocked_seat_ids=("A-2",))
    assert overlay_within(layout, kept) is kept
