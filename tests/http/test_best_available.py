"""The best seats, proposed and held, through HTTP."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.stage import Stage, stage

PRICES = {
    "currency": "EUR",
    "prices": [{"zone_id": "stalls", "amount_minor": 5000}, {"zone_id": "pit", "amount_minor": 2000}],
}


def run(database: TestDatabase, check: Callable[[Stage], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        config = options.pop("config", None)
        event = {"overrides": {"orphan_avoidance_strict": True}, **options.pop("event", {})}
        async with stage(database, config or theatre_config(ga_capacity=20), event=event, **options) as made:
            await check(made)

    asyncio.run(main())


async def best(made: Stage, headers: dict[str, str], quantity: int = 2, *, status: int = 201, **body: Any) -> Any:
    answer = await made.post(f"/api/events/{made.event_id}/best-available", {"quantity": quantity, **body}, headers)
    assert answer.status_code == status, answer.text
    return answer.json()["data"] if status < 300 else answer.json()


async def preview(made: Stage, headers: dict[str, str], quantity: int = 2, *, status: int = 200, **body: Any) -> Any:
    where = f"/api/events/{made.event_id}/best-available/preview"
    answer = await made.post(where, {"quantity": quantity, **body}, headers)
    assert answer.status_code == status, answer.text
    return answer.json()["data"] if status < 300 else answer.json()


def labels(found: Any) -> list[str]:
    return [seat["seat_id"] for seat in found["seats"]]


@pytest.mark.parametrize("hot_events", [64, 0])
def test_the_best_seats_are_held_in_one_call_and_said_in_words(database: TestDatabase, hot_events: int) -> None:
    async def check(made: Stage) -> None:
        buyer = await made.buyer()
        proposed = await preview(made, buyer, 4)
        found = await best(made, buyer, 4)
        assert labels(found["proposal"]) == labels(proposed) == ["A-3", "A-4", "A-5", "A-6"]
        assert found["proposal"]["rung"] == "together"
        assert found["proposal"]["clusters"] == [["A-3", "A-4", "A-5", "A-6"]]
        assert "row A" in found["proposal"]["words"]
        assert [hold["seat_label"] for hold in found["holds"]] == ["A-3", "A-4", "A-5", "A-6"]
        assert 0 < found["expires_in_seconds"] <= 300
        assert [(await made.seat(n))["state"] for n in range(2, 6)] == ["held"] * 4
        next_found = await best(made, await made.buyer(), 4)
        assert not set(labels(next_found["proposal"])) & set(labels(proposed))

    run(database, check, hot_events=hot_events)


def test_a_preview_holds_nothing(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        buyer = await made.buyer()
        assert await preview(made, buyer, 3) == await preview(made, buyer, 3)
        states = await made.sql("SELECT DISTINCT state::text FROM event_seats")
        assert [row["state"] for row in states] == ["available"]

    run(database, check)


def test_the_same_key_gives_the_same_seats(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        keyed = {**await made.buyer(), "Idempotency-Key": "four-for-the-opening"}
        first, again = await best(made, keyed, 4), await best(made, keyed, 4)
        assert {h["hold_id"] for h in first["holds"]} == {h["hold_id"] for h in again["holds"]}
        assert labels(first["proposal"]) == labels(again["proposal"])
        held = await made.sql("SELECT count(*) AS n FROM event_seats WHERE state = 'held'")
        assert held[0]["n"] == 4

    run(database, check)


def test_a_group_that_finds_no_row_is_split_and_told_how(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        taken = [n for n in range(40) if n % 10 >= 3]  # three seats are left in each of four rows
        answer = await made.hold(made.admin, *taken, holdType="RESERVED")
        assert answer.status_code == 201, answer.text
        found = await best(made, await made.buyer(), 5)
        assert found["proposal"]["rung"] == "split"
        assert sorted(len(cluster) for cluster in found["proposal"]["clusters"]) == [2, 3]
        assert "row A" in found["proposal"]["words"]
        assert "row B" in found["proposal"]["words"]

    run(database, check)


def test_a_strict_policy_spreads_nobody(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        taken = [n for n in range(40) if n % 10 not in (0, 5)]
        assert (await made.hold(made.admin, *taken, holdType="RESERVED")).status_code == 201
        buyer = await made.buyer()
        refused = await best(made, buyer, 4, status=409)
        assert refused["error"] == "no_seats_available"
        assert "fewer seats" in refused["detail"]
        await best(made, buyer, 1)

    run(database, check, event={"overrides": {"group_adjacency_strict": True, "orphan_avoidance_strict": True}})


def test_nothing_left_is_said_as_such_and_changes_nothing(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        assert (await made.hold(made.admin, *range(39), holdType="RESERVED")).status_code == 201
        buyer = await made.buyer()
        refused = await best(made, buyer, 2, status=409)
        assert refused["error"] == "no_seats_available"
        assert refused["quantity"] == 2
        assert (await preview(made, buyer, 2, status=409))["error"] == "no_seats_available"
        found = await best(made, buyer, 1)
        assert labels(found["proposal"]) == ["D-10"]

    run(database, check)


def test_a_hold_that_has_run_out_is_offered_before_the_sweeper_comes(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        first = await best(made, await made.buyer(), 2)
        await made.advance_clock(301)
        again = await best(made, await made.buyer(), 2)
        assert labels(again["proposal"]) == labels(first["proposal"])

    run(database, check)


def test_zones_prices_and_categories_narrow_it(database: TestDatabase) -> None:
    config = theatre_config(ga_capacity=20)
    stalls = config["zones"][0]
    stalls["seats"][0] |= {"category": "restricted_view"}

    async def check(made: Stage) -> None:
        buyer = await made.buyer()
        found = await preview(made, buyer, 1, categories=["restricted_view"])
        assert labels(found) == ["A-1"]
        assert found["total_minor"] == 5000
        assert found["currency"] == "EUR"
        assert (await preview(made, buyer, 2, zones=["stalls"]))["total_minor"] == 10000
        assert (await preview(made, buyer, 1, price_max=4999, zones=["stalls"], status=409))["quantity"] == 1
        pit = await best(made, buyer, 3, zones=["pit"])
        assert pit["proposal"]["zone_id"] == "pit"
        assert pit["proposal"]["total_minor"] == 6000
        assert pit["holds"][0]["quantity"] == 3
        await best(made, buyer, 5, zones=["pit"])
        refused = await best(made, await made.member(), 10, zones=["pit"], status=201)
        assert refused["holds"][0]["quantity"] == 10
        assert (await best(made, await made.buyer(), 5, zones=["pit"], status=409))["error"] == "no_seats_available"

    run(database, check, config=config, event=PRICES)


def test_a_place_for_a_wheelchair_comes_with_the_seat_beside_it(database: TestDatabase) -> None:
    config = theatre_config()
    seats = config["zones"][0]["seats"]
    seats[4] |= {"category": "wheelchair", "companion_seat_id": "A-6"}
    seats[5] |= {"category": "companion"}

    async def check(made: Stage) -> None:
        buyer = await made.buyer()
        plain = await preview(made, buyer, 4)
        assert not {"A-5", "A-6"} & set(labels(plain))
        assert labels(await preview(made, buyer, 1, accessible=True)) == ["A-5"]
        found = await best(made, buyer, 2, accessible=True)
        assert labels(found["proposal"]) == ["A-5", "A-6"]
        refused = await best(made, await made.buyer(), 2, accessible=True, status=409)
        assert "wheelchair" in refused["detail"]

    run(database, check, config=config)


def test_closed_zones_are_left_out_and_refused_when_they_are_named(database: TestDatabase) -> None:
    config = theatre_config()
    boxes: dict[str, Any] = {
        "zone_id": "boxes",
        "name": "Boxes",
        "zone_type": "reserved_seating",
        "capacity": 2,
        "access_mode": "membership_tier",
        "required_tier": "gold",
        "seats": [
            {"seat_id": f"X-{n}", "row": "X", "number": n, "coordinates": {"x": 45.0 + 10 * n, "y": -10.0}}
            for n in (1, 2)
        ],
    }
    config["zones"].append(boxes)

    async def check(made: Stage) -> None:
        buyer, gold = await made.member(), await made.member(tiers=("gold",))
        assert set(labels(await preview(made, buyer, 2))) & {"X-1", "X-2"} == set()
        refused = await preview(made, buyer, 2, zones=["boxes"], status=403)
        assert refused["error"] == "zone_access_denied"
        assert refused["access_mode"] == "membership_tier"
        assert labels(await preview(made, gold, 2)) == ["X-1", "X-2"]
        await best(made, gold, 2, zones=["boxes"])

    run(database, check, config=config)


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        ({}, 400, "/quantity"),
        ({"quantity": 0}, 400, "/quantity"),
        ({"quantity": 1001}, 400, "/quantity"),
        ({"quantity": "2"}, 400, "/quantity"),
        ({"quantity": 2, "price_max": -1}, 400, "/price_max"),
        ({"quantity": 2, "price_max": 100}, 422, "/price_max"),
        ({"quantity": 2, "strategy": "luck"}, 400, "/strategy"),
        ({"quantity": 2, "categories": ["throne"]}, 400, "/categories/0"),
        ({"quantity": 2, "accessible": True, "categories": ["wheelchair"]}, 400, "/categories"),
        ({"quantity": 2, "colour": "red"}, 400, "/colour"),
    ],
)
def test_a_wish_that_cannot_be_understood_says_where(
    database: TestDatabase, body: dict[str, Any], status: int, pointer: str
) -> None:
    async def check(made: Stage) -> None:
        answer = await made.post(f"/api/events/{made.event_id}/best-available", body, await made.buyer())
        assert answer.status_code == status, answer.text
        assert answer.json()["errors"][0]["pointer"] == pointer

    run(database, check)


def test_unknown_zones_and_too_many_seats_are_refused(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        buyer = await made.buyer()
        unknown = await preview(made, buyer, 1, zones=["stalls", "moon"], status=404)
        assert unknown["zones"] == ["moon"]
        too_many = await best(made, buyer, 11, status=422)
        assert too_many["error"] == "max_seats_exceeded"
        await best(made, made.admin, 20, holdType="RESERVED")

    run(database, check)


def test_tables_and_the_organisers_blocks_are_not_broken_into_and_family_blocks_come_last(
    database: TestDatabase,
) -> None:
    config = theatre_config(1, 10)
    config["groups"] = [
        {"group_id": "t1", "group_type": "vip_table", "seat_ids": ["A-4", "A-5"]},
        {"group_id": "r1", "group_type": "reserved_block", "seat_ids": ["A-6"]},
        {"group_id": "f1", "group_type": "family_block", "seat_ids": ["A-1", "A-2", "A-3"]},
    ]

    async def check(made: Stage) -> None:
        assert labels(await preview(made, await made.buyer(), 3)) == ["A-1", "A-2", "A-3"]  # a family
        assert labels((await best(made, await made.buyer(), 2))["proposal"]) == ["A-7", "A-8"]
        assert labels((await best(made, await made.buyer(), 2))["proposal"]) == ["A-9", "A-10"]
        last = await best(made, await made.buyer(), 2)  # there is nothing else
        assert set(labels(last["proposal"])) < {"A-1", "A-2", "A-3"}
        await best(made, await made.buyer(), 1)
        assert (await best(made, await made.buyer(), 1, status=409))["error"] == "no_seats_available"

    run(database, check, config=config)


def test_cheapest_asks_for_the_lowest_price_before_the_best_place(database: TestDatabase) -> None:
    prices = {"currency": "EUR", "prices": [{"zone_id": "stalls", "amount_minor": 5000}]}
    cheap = {"pricing_zones": {"back": {"seat_ids": [f"D-{n}" for n in range(1, 11)], "amount_minor": 3000}}}

    async def check(made: Stage) -> None:
        buyer = await made.buyer()
        assert {seat["row"] for seat in (await preview(made, buyer, 2))["seats"]} == {"A"}
        found = await preview(made, buyer, 2, strategy="cheapest")
        assert {seat["row"] for seat in found["seats"]} == {"D"}
        assert found["total_minor"] == 6000
        limited = await preview(made, buyer, 2, price_max=4000)
        assert {seat["row"] for seat in limited["seats"]} == {"D"}

    run(database, check, event={**prices, **cheap})


def test_what_is_not_beside_the_wheelchair_is_not_said_to_be(database: TestDatabase) -> None:
    config = theatre_config(1, 10)
    seats = config["zones"][0]["seats"]
    seats[4] |= {"category": "wheelchair", "companion_seat_id": "A-6"}
    seats[5] |= {"category": "companion"}

    async def check(made: Stage) -> None:
        answer = await made.hold(made.admin, 3, 6, holdType="RESERVED")
        assert answer.status_code == 201, answer.text
        found = await preview(made, await made.buyer(), 3, accessible=True)
        assert labels(found) == ["A-3", "A-5", "A-6"]
        assert found["clusters"] == [["A-3"], ["A-5", "A-6"]]
        assert found["rung"] == "nearest"

    run(database, check, config=config)


def test_what_this_process_has_just_taken_or_blocked_is_not_proposed_again(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        buyer = await made.buyer()
        by_label = {seat["seat_id"]: seat["id"] for seat in made.seats}
        for _ in range(5):  # the feed has not told of it yet, most of the time
            held = await best(made, await made.buyer(), 2)
            proposed = labels(await preview(made, buyer, 2))
            assert not set(proposed) & set(labels(held["proposal"]))
            blocked = {"seats": [by_label[label] for label in proposed], "reason": "camera"}
            assert (await made.post(f"/api/events/{made.event_id}/seats/block", blocked)).status_code == 200
            assert not set(labels(await preview(made, buyer, 2))) & set(proposed)

    run(database, check)


def test_a_seat_that_is_kept_for_a_companion_is_not_proposed_to_others(database: TestDatabase) -> None:
    config = theatre_config(1, 10)
    seats = config["zones"][0]["seats"]
    seats[0] |= {"category": "wheelchair", "companion_seat_id": "A-2"}
    seats[1] |= {"category": "companion"}

    async def check(made: Stage) -> None:
        rest = {"seats": [seat["id"] for seat in made.seats[2:]], "reason": "closed"}
        assert (await made.post(f"/api/events/{made.event_id}/seats/block", rest)).status_code == 200
        assert labels(await preview(made, await made.buyer(), 1)) == ["A-2"]
        assert (await made.reserve(0, await made.buyer())).status_code == 201
        await made.app.feed.caught_up()
        refused = await preview(made, await made.buyer(), 1, status=409)
        assert refused["error"] == "no_seats_available"

    run(database, check, config=config)
