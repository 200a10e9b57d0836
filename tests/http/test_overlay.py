"""What an event changes of its layout, through HTTP: said, answered, and applied to an event on sale at once."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import httpx

from holdfast.insight.invariants import check_event
from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.stage import Stage, stage

LENIENT = {"orphan_avoidance_strict": False}


def house_config() -> dict[str, Any]:
    """Stalls of two rows A and B, a balcony of one row Z, and a pit of twenty places."""
    config = theatre_config(2, 5, ga_capacity=20)
    balcony = {
        "zone_id": "balcony",
        "name": "Balcony",
        "zone_type": "reserved_seating",
        "capacity": 4,
        "seats": [{"seat_id": f"Z-{n}", "row": "Z", "number": n} for n in range(1, 5)],
    }
    config["zones"].insert(1, balcony)
    return config


def run(database: TestDatabase, test: Callable[[Stage], Awaitable[None]], **event: Any) -> None:
    async def main() -> None:
        async with stage(database, house_config(), event={"overrides": LENIENT, **event}) as made:
            await test(made)
            assert await faults(made) == []

    asyncio.run(main())


async def faults(made: Stage, event_id: str | None = None) -> list[str]:
    found = await check_event(made.app.database, made.first.organization_id, UUID(event_id or made.event_id), set())
    return [f"{i.name}: {i.detail}" for i in found if not i.ok]


async def patch(made: Stage, headers: dict[str, str] | None = None, **fields: Any) -> httpx.Response:
    path = f"/api/events/{made.event_id}"
    return await made.client.patch(path, headers=headers or made.admin, json=fields)


async def states(made: Stage) -> dict[str, str]:
    """Of the seats that are not available."""
    listed = await made.client.get(f"/api/events/{made.event_id}/seats", headers=made.admin)
    return {seat["seat_id"]: seat["state"] for seat in listed.json()["data"] if seat["state"] != "available"}


async def pit(made: Stage) -> dict[str, Any]:
    (zone,) = (await made.client.get(f"/api/events/{made.event_id}/zones", headers=made.admin)).json()["data"]
    found: dict[str, Any] = zone
    return found


async def stand(made: Stage, headers: dict[str, str], quantity: int = 1, zone: str = "pit") -> httpx.Response:
    wanted = {"ga": [{"zone_id": zone, "quantity": quantity}]}
    return await made.client.post(f"/api/events/{made.event_id}/holds", headers=headers, json=wanted)


async def sell(made: Stage, *seat_ids: str, places: int = 0) -> bool:
    listed = await made.client.get(f"/api/events/{made.event_id}/seats", headers=made.admin)
    ids = {seat["seat_id"]: seat["booking_id"] for seat in listed.json()["data"]}
    body: dict[str, Any] = {"sessionId": "box-office", "seats": [{"id": ids[seat_id]} for seat_id in seat_ids]}
    if places:
        body["groupOfSeats"] = [{"id": (await pit(made))["booking_id"], "capacity": places}]
    answer = await made.client.post(
        "/api/private/v2.0/booking/directsale", params={"eventId": made.event_id}, json=body, headers=made.api_key
    )
    assert answer.status_code == 200, answer.text
    return bool(answer.json())


def number_of(made: Stage, seat_id: str) -> int:
    return next(n for n, seat in enumerate(made.seats) if seat["seat_id"] == seat_id)


# What is said ---------------------------------------------------------------------------------------------------------
def test_an_overlay_is_answered_as_it_was_said_and_its_seats_are_blocked_from_the_beginning(
    database: TestDatabase,
) -> None:
    async def test(made: Stage) -> None:
        event = (await made.client.get(f"/api/events/{made.event_id}", headers=made.admin)).json()["data"]
        assert event["blocked_seat_ids"] == ["A-1", "B-5"]
        assert event["disabled_zones"] == ["balcony"]
        assert event["zone_overrides"] == {"pit": {"name": "Arena", "zone_type": "ga_seated"}}
        assert event["pricing_zones"] == {"Front": {"amount_minor": 9000, "seat_ids": ["A-2"]}}
        assert event["overrides"] == event["seating_overrides"] == LENIENT
        assert event["series_id"] is None
        zones = {zone["zone_id"]: zone for zone in event["zones"]}
        assert {name: zone["disabled"] for name, zone in zones.items()} == {
            "stalls": False,
            "balcony": True,
            "pit": False,
        }
        assert (zones["pit"]["name"], zones["pit"]["zone_type"]) == ("Arena", "ga_seated")
        listed = (await made.client.get("/api/events", headers=made.admin)).json()["data"]
        assert listed[0]["disabled_zones"] == ["balcony"]
        unoffered = ("A-1", "B-5", "Z-1", "Z-2", "Z-3", "Z-4")
        assert await states(made) == dict.fromkeys(unoffered, "blocked")
        geometry = await made.client.get(
            f"/api/events/{made.event_id}/geometry", headers=made.admin, follow_redirects=True
        )
        assert geometry.json()["data"]["zones"][2]["name"] == "Arena"
        refused = await made.reserve(0, await made.buyer())
        assert (refused.status_code, refused.json()["current_status"]) == (409, "blocked")
        seat = await made.seat(0)
        assert seat["block_reason"] == "overlay: not offered at this event"

    run(
        database,
        test,
        blocked_seat_ids=["A-1", "B-5"],
        disabled_zones=["balcony"],
        zone_overrides={"pit": {"name": "Arena", "zone_type": "ga_seated"}},
        pricing_zones={"Front": {"seat_ids": ["A-2"], "amount_minor": 9000}},
        currency="EUR",
    )


def test_an_overlay_that_names_what_is_not_there_is_refused_whole(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        answer = await patch(
            made,
            name="Other",
            blocked_seat_ids=["A-1", "Q-7"],
            disabled_zones=["attic"],
            zone_overrides={"stalls": {"zone_type": "ga_standing"}, "pit": {"access_mode": "membership_tier"}},
        )
        assert answer.status_code == 422
        found = {problem["pointer"]: problem["code"] for problem in answer.json()["errors"]}
        assert found == {
            "/blocked_seat_ids/1": "unknown_seat",
            "/disabled_zones/0": "unknown_zone",
            "/zone_overrides/stalls/zone_type": "incompatible_zone_type",
            "/zone_overrides/pit/required_tier": "tier_required",
        }
        event = (await made.client.get(f"/api/events/{made.event_id}", headers=made.admin)).json()["data"]
        assert (event["name"], event["blocked_seat_ids"]) == ("Evening", [])
        assert await states(made) == {}
        both = await patch(made, overrides={}, seating_overrides={})
        assert both.json()["errors"][0]["code"] == "conflicting_fields"

    run(database, test)


def test_seating_overrides_are_overrides_under_another_name(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        answer = await patch(made, seating_overrides={"max_seats_per_booking": 2, **LENIENT})
        assert answer.json()["data"]["overrides"] == {"max_seats_per_booking": 2, **LENIENT}
        buyer = await made.buyer()
        assert (await made.hold(buyer, 0, 1, 2)).json()["error"] == "max_seats_exceeded"
        assert (await made.hold(buyer, 0, 1)).status_code == 201
        await made.client.put("/api/policy", headers=made.admin, json={"locked_fields": ["max_seats_per_booking"]})
        locked = await patch(made, seating_overrides={"max_seats_per_booking": 5})
        assert (locked.status_code, locked.json()["error"]) == (409, "override_not_permitted")

    run(database, test)


def test_the_policy_is_asked_of_the_zones_as_overridden(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        await made.client.put("/api/policy", headers=made.admin, json={"allow_vip_zones": False})
        answer = await patch(made, zone_overrides={"stalls": {"zone_type": "vip_reserved"}})
        assert answer.status_code == 422
        assert answer.json()["errors"] == [
            {
                "pointer": "/zone_overrides/stalls/zone_type",
                "code": "vip_not_allowed",
                "detail": "the seating policy allows no VIP zones",
            }
        ]

    run(database, test)


# On sale --------------------------------------------------------------------------------------------------------------
def test_seats_newly_taken_out_are_blocked_and_their_holds_end(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        buyer, other = await made.buyer(), await made.buyer()
        held = (await made.reserve(0, buyer)).json()["data"]["hold_id"]
        assert (await made.reserve(number_of(made, "Z-1"), other)).status_code == 201
        answer = await patch(made, blocked_seat_ids=["A-1", "A-2"], disabled_zones=["balcony"])
        assert answer.status_code == 200, answer.text
        assert await states(made) == dict.fromkeys(("A-1", "A-2", "Z-1", "Z-2", "Z-3", "Z-4"), "blocked")
        hold = (await made.client.get(f"/api/holds/{held}", headers=made.admin)).json()["data"]
        assert hold["status"] == "cancelled"
        log = (await made.client.get(f"/api/events/{made.event_id}/state-log", headers=made.admin)).json()["data"]
        blocks = [row for row in log if row["verb"] == "block"]
        assert len(blocks) == 6
        assert {row["reason"] for row in blocks} == {"overlay: not offered at this event"}
        kinds = await made.sql("SELECT kind, cardinality(ordinals) AS n FROM outbox WHERE kind = 'SeatBlocked'")
        assert [row["n"] for row in kinds] == [6]

    run(database, test)


def test_a_seat_stays_out_while_anything_takes_it_out_and_comes_back_with_the_last(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        await patch(made, blocked_seat_ids=["Z-1"], disabled_zones=["balcony"])
        await patch(made, disabled_zones=[])
        assert await states(made) == {"Z-1": "blocked"}
        await patch(made, disabled_zones=["balcony"], blocked_seat_ids=None)
        assert set(await states(made)) == {"Z-1", "Z-2", "Z-3", "Z-4"}
        await patch(made, disabled_zones=[])
        assert await states(made) == {}
        assert (await made.reserve(number_of(made, "Z-1"), await made.buyer())).status_code == 201

    run(database, test)


def test_what_somebody_blocked_by_hand_stays_blocked_and_the_overlays_is_not_unblocked_by_hand(
    database: TestDatabase,
) -> None:
    async def test(made: Stage) -> None:
        seats = f"/api/events/{made.event_id}/seats"
        by_hand = {"seats": [made.seats[0]["id"]], "reason": "broken"}
        assert (await made.post(f"{seats}/block", by_hand)).status_code == 200
        await patch(made, blocked_seat_ids=["A-1", "A-2"])
        refused = await made.post(f"{seats}/unblock", {"seats": [made.seats[1]["id"], made.seats[0]["id"]]})
        assert (refused.status_code, refused.json()["error"]) == (409, "blocked_by_overlay")
        assert "overlay" in refused.json()["detail"]
        assert set(refused.json()["seats"]) == {made.seats[0]["id"], made.seats[1]["id"]}
        await patch(made, blocked_seat_ids=[])
        assert await states(made) == {"A-1": "blocked"}
        assert (await made.post(f"{seats}/unblock", {"seats": [made.seats[0]["id"]]})).status_code == 200
        forged = await made.post(f"{seats}/block", {"seats": [made.seats[0]["id"]], "reason": "Overlay: mine"})
        assert (forged.status_code, forged.json()["errors"][0]["code"]) == (400, "reserved_text")

    run(database, test)


def test_a_sold_seat_refuses_the_whole_patch_and_is_named(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        assert await sell(made, "A-2", "Z-3")
        buyer = await made.buyer()
        await made.reserve(0, buyer)
        before = await made.sql("SELECT count(*) AS n FROM audit_entries")
        answer = await patch(made, name="New", blocked_seat_ids=["A-1", "A-2"], disabled_zones=["balcony"])
        assert (answer.status_code, answer.json()["error"]) == (409, "places_sold")
        assert answer.json()["seat_ids"] == ["A-2", "Z-3"]
        assert answer.json()["event_id"] == made.event_id
        assert await states(made) == {"A-1": "held", "A-2": "sold", "Z-3": "sold"}
        event = (await made.client.get(f"/api/events/{made.event_id}", headers=made.admin)).json()["data"]
        assert (event["name"], event["disabled_zones"]) == ("Evening", [])
        assert await made.sql("SELECT count(*) AS n FROM audit_entries") == before
        # A ticket stands though its seat is blocked.
        force = {"seats": [made.seats[1]["id"]], "reason": "pillar", "force": True}
        assert (await made.post(f"/api/events/{made.event_id}/seats/block", force)).status_code == 200
        assert (await patch(made, blocked_seat_ids=["A-2"])).json()["seat_ids"] == ["A-2"]

    run(database, test)


def test_an_api_key_may_describe_an_event_but_not_take_seats_from_under_its_buyers(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        assert (await patch(made, made.api_key, zone_overrides={"pit": {"name": "Arena"}})).status_code == 200
        refused = await patch(made, made.api_key, blocked_seat_ids=["A-1"])
        assert (refused.status_code, refused.json()["error"]) == (403, "forbidden")
        assert await states(made) == {}

    run(database, test)


# General admission ----------------------------------------------------------------------------------------------------
def test_a_disabled_pool_gives_back_what_is_held_and_refuses_everyone(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        buyer = await made.buyer()
        held = (await stand(made, buyer, 3)).json()["data"]["holds"][0]["hold_id"]
        assert (await patch(made, disabled_zones=["pit"])).status_code == 200
        zone = await pit(made)
        assert (zone["held"], zone["available"], zone["disabled"]) == (0, 0, True)
        hold = (await made.client.get(f"/api/holds/{held}", headers=made.admin)).json()["data"]
        assert hold["status"] == "cancelled"
        for headers in (buyer, made.admin, made.api_key):
            refused = await stand(made, headers)
            assert (refused.status_code, refused.json()["error"]) == (409, "zone_disabled"), refused.text
            assert refused.json()["zone_id"] == "pit"
        assert not await sell(made, places=1)
        assert (await patch(made, disabled_zones=[])).status_code == 200
        assert (await stand(made, buyer, 3)).status_code == 201
        assert await sell(made, places=2)
        sold = await patch(made, disabled_zones=["pit"])
        assert (sold.status_code, sold.json()["zones"]) == (409, [{"zone_id": "pit", "sold": 2}])
        assert (await pit(made))["held"] == 3

    run(database, test)


def test_the_database_refuses_a_disabled_pool_whatever_a_process_remembers(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        buyer = await made.buyer()
        # As another node would: this process has heard nothing of it.
        await made.sql("UPDATE event_zones SET disabled = true")
        refused = await stand(made, buyer)
        assert (refused.status_code, refused.json()["error"]) == (409, "zone_disabled"), refused.text
        mixed = {"seats": [made.seats[0]["id"]], "ga": [{"zone_id": "pit", "quantity": 1}]}
        refused = await made.client.post(f"/api/events/{made.event_id}/holds", headers=buyer, json=mixed)
        assert (refused.status_code, refused.json()["error"]) == (409, "zone_disabled"), refused.text
        assert not await sell(made, places=1)
        assert (await pit(made))["held"] == 0
        await made.sql("UPDATE event_zones SET disabled = false, overlay_blocked = 0")

    run(database, test)


def test_every_type_of_general_admission_counts_its_places_and_asks_who_comes(database: TestDatabase) -> None:
    zones = [
        {"zone_id": "benches", "name": "Benches", "zone_type": "ga_seated", "capacity": 3},
        {"zone_id": "floor", "name": "Floor", "zone_type": "ga_standing", "capacity": 3},
        {
            "zone_id": "deck",
            "name": "Deck",
            "zone_type": "vip_standing",
            "capacity": 3,
            "access_mode": "membership_tier",
            "required_tier": "gold",
        },
    ]

    async def main() -> None:
        async with stage(database) as made:
            event = await made.post(
                "/api/events", {"name": "Festival", "zones": zones, "days": ["2027-06-02", "2027-06-01"]}
            )
            assert event.status_code == 201, event.text
            assert event.json()["data"]["days"] == ["2027-06-01", "2027-06-02"]
            made.event_id = event.json()["data"]["id"]
            await made.post(f"/api/events/{made.event_id}/status", {"status": "published"})
            buyer, member = await made.buyer(), await made.member(tiers=("gold",))
            for zone in ("benches", "floor"):
                assert (await stand(made, buyer, 2, zone)).status_code == 201
                full = await stand(made, member, 2, zone)
                assert (full.status_code, full.json()["error"], full.json()["available"]) == (
                    409,
                    "block_at_capacity",
                    1,
                )
            denied = await stand(made, buyer, 1, "deck")
            assert (denied.status_code, denied.json()["access_mode"]) == (403, "membership_tier")
            assert (await stand(made, member, 1, "deck")).status_code == 201
            reserved = await patch(made, zone_overrides={"floor": {"zone_type": "vip_reserved"}})
            assert reserved.json()["errors"][0]["code"] == "incompatible_zone_type"
            opened = await patch(made, zone_overrides={"deck": {"access_mode": "public", "zone_type": "ga_standing"}})
            assert opened.status_code == 200, opened.text
            assert (await stand(made, buyer, 1, "deck")).status_code == 201
            assert await faults(made) == []

    asyncio.run(main())


def test_places_are_taken_out_of_a_pool_by_hand_and_given_back(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        path = f"/api/events/{made.event_id}/zones/pit"
        buyer = await made.buyer()
        assert (await stand(made, buyer, 3)).status_code == 201
        taken = await made.post(f"{path}/block", {"quantity": 15, "reason": "camera crew"})
        assert (taken.status_code, taken.json()["data"]["available"], taken.json()["data"]["blocked"]) == (200, 2, 15)
        full = await stand(made, buyer, 3)
        assert (full.json()["error"], full.json()["available"]) == ("block_at_capacity", 2)
        assert not await sell(made, places=3)
        more = await made.post(f"{path}/block", {"quantity": 3, "reason": "more"})
        assert (more.status_code, more.json()["error"], more.json()["available"]) == (409, "block_at_capacity", 2)
        occupancy = await made.client.get(f"/api/events/{made.event_id}/occupancy", headers=made.admin)
        found = occupancy.json()["data"]["by_zone"][2]
        assert (found["available"], found["held"], found["blocked"]) == (2, 3, 15)
        snapshot = await made.client.get(f"/api/events/{made.event_id}/availability", headers=made.admin)
        assert [(z["capacity"], z["held"], z["blocked"]) for z in snapshot.json()["data"]["zones"]] == [(20, 3, 15)]
        # The overlay takes what is left, and gives back just that.
        await patch(made, disabled_zones=["pit"])
        zone = await pit(made)
        assert (zone["blocked"], zone["held"], zone["available"]) == (20, 0, 0)
        for verb in ("block", "unblock"):
            refused = await made.post(f"{path}/{verb}", {"quantity": 1, "reason": "x"})
            assert (refused.status_code, refused.json()["error"]) == (409, "zone_disabled")
        await patch(made, disabled_zones=[])
        assert ((await pit(made))["blocked"], (await pit(made))["available"]) == (15, 5)
        back = await made.post(f"{path}/unblock", {"quantity": 16})
        assert (back.status_code, back.json()["error"]) == (409, "places_not_blocked")
        assert (await made.post(f"{path}/unblock", {"quantity": 15})).json()["data"]["available"] == 20
        for body in ({"quantity": 0, "reason": "x"}, {"quantity": 1, "reason": "overlay: x"}, {"quantity": 1}):
            assert (await made.post(f"{path}/block", body)).status_code == 400, body
        seats = await made.post(f"/api/events/{made.event_id}/zones/stalls/block", {"quantity": 1, "reason": "x"})
        assert (seats.status_code, "numbered" in seats.json()["detail"]) == (400, True)
        assert (await made.post(f"{path}/block", {"quantity": 1, "reason": "x"}, made.api_key)).status_code == 403
        assert (await made.post(f"{path}/block", {"quantity": 1, "reason": "x"}, buyer)).status_code == 403

    run(database, test)


# Access, tiers, prices ------------------------------------------------------------------------------------------------
def test_another_access_counts_at_once_for_whoever_comes_after(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        guest, member = await made.buyer(), await made.member(tiers=("gold",))
        assert (await made.reserve(0, guest)).status_code == 201
        said = {"stalls": {"access_mode": "membership_tier", "membership_tier": "gold"}}
        answer = await patch(made, zone_overrides=said)
        assert answer.json()["data"]["zone_overrides"]["stalls"]["required_tier"] == "gold"
        denied = await made.reserve(1, guest)
        assert (denied.status_code, denied.json()["access_mode"]) == (403, "membership_tier")
        assert (await made.reserve(1, member)).status_code == 201
        assert (await states(made)) == {"A-1": "held", "A-2": "held"}
        await patch(made, zone_overrides={})
        assert (await made.reserve(2, guest)).status_code == 201

    run(database, test)


def test_buyers_read_what_places_cost(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        listed = await made.client.get(f"/api/events/{made.event_id}/prices", headers=await made.buyer())
        assert listed.status_code == 200
        prices = listed.json()["data"]
        assert prices["currency"] == "EUR"
        found = {
            zone["zone_id"]: (zone["amount_minor"], zone["categories"], zone["disabled"]) for zone in prices["zones"]
        }
        assert found == {
            "stalls": (5000, [{"category": "standard", "amount_minor": 5000}], False),
            "balcony": (3000, [{"category": "standard", "amount_minor": 3000}], True),
            "pit": (None, [], False),
        }
        assert [(area["name"], area["amount_minor"], area["seat_ids"]) for area in prices["pricing_zones"]] == [
            ("Front", 9000, ["A-1"]),
            ("Upstairs", 3000, []),
        ]
        view = await made.app.catalogue.event(made.first.organization_id, UUID(made.event_id))
        assert view is not None
        assert (view.price_of(0), view.price_of(1), view.zone_price(2)) == (9000, 5000, None)
        column = view.price_column()
        assert column is not None
        assert column.tolist() == [9000, *[5000] * 9, *[3000] * 4]

    run(
        database,
        test,
        currency="EUR",
        prices=[{"zone_id": "stalls", "amount_minor": 5000}],
        pricing_zones={
            "Front": {"seat_ids": ["A-1"], "amount_minor": 9000},
            "Upstairs": {"zones": ["balcony"], "amount_minor": 3000},
        },
        disabled_zones=["balcony"],
    )
