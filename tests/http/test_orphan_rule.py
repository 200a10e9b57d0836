"""The orphan rule for seats that buyers pick, through HTTP."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import httpx
import pytest
from structlog.testing import capture_logs

from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.stage import Stage, stage

STRICT = {"overrides": {"orphan_avoidance_strict": True}}
ROW_B = 10


def run(database: TestDatabase, check: Callable[[Stage], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        options.setdefault("event", STRICT)
        async with stage(database, options.pop("config", theatre_config()), **options) as made:
            await check(made)

    asyncio.run(main())


def labels(seats: list[dict[str, Any]]) -> list[str]:
    return [seat["seat_id"] for seat in seats]


async def held(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()["data"]
    return found


@pytest.mark.parametrize("tiers", ["in memory", "from the database"])
def test_a_pick_that_leaves_one_seat_alone_is_refused_with_what_is_free_instead(
    database: TestDatabase, tiers: str
) -> None:
    async def check(made: Stage) -> None:
        buyer = await made.buyer()
        answer = await made.reserve(1, buyer)
        assert answer.status_code == 409, answer.text
        problem = answer.json()
        assert problem["error"] == "orphan_seat"
        assert labels(problem["stranded"]) == ["A-1"]
        assert "row A, seat 1" in problem["detail"]
        offered = problem["alternatives"]
        assert offered
        assert "A-1" in [labels(one["seats"])[0] for one in offered]
        assert (await made.seat(1))["state"] == "available"
        instead = [seat["id"] for seat in offered[0]["seats"]]
        await held(await made.post(f"/api/events/{made.event_id}/holds", {"seats": instead}, buyer))

    run(database, check, hot_events=64 if tiers == "in memory" else 0)


def test_two_seats_with_a_gap_between_them_are_refused(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        buyer = await made.buyer()
        answer = await made.hold(buyer, 2, 4)
        assert answer.status_code == 409
        assert labels(answer.json()["stranded"]) == ["A-4"]
        await held(await made.hold(buyer, 2, 3))

    run(database, check)


def test_asking_again_for_ones_own_seats_strands_nobody(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        buyer = await made.buyer()
        first = await held(await made.reserve(0, buyer))
        await made.app.feed.caught_up()
        again = await made.reserve(0, buyer)
        assert again.status_code == 200
        assert again.json()["data"]["hold_id"] == first["hold_id"]

    run(database, check)


def test_the_same_request_with_its_key_is_answered_as_before_whatever_the_row_has_become(
    database: TestDatabase,
) -> None:
    async def check(made: Stage) -> None:
        buyer, other = await made.buyer(), await made.buyer()
        keyed = {**buyer, "Idempotency-Key": "the-same-key-again"}
        first = await made.hold(keyed, 0, 1)
        await held(first)
        await held(await made.hold(other, 4, 5))
        await made.app.feed.caught_up()
        again = await made.hold(keyed, 0, 1)
        assert again.json() == first.json()

    run(database, check)


def test_aisles_and_blocked_seats_are_walls(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        buyer = await made.buyer()
        answer = await made.reserve(3, buyer)  # A-4 beside A-5, which the aisle divides from A-6
        assert labels(answer.json()["stranded"]) == ["A-5"]
        blocked = await made.post(
            f"/api/events/{made.event_id}/seats/block", {"seats": [made.seats[8]["id"]], "reason": "camera"}
        )
        assert blocked.status_code == 200
        await made.app.feed.caught_up()
        answer = await made.reserve(6, buyer)  # A-6 has the aisle on its other side, A-8 the camera
        assert labels(answer.json()["stranded"]) == ["A-6", "A-8"]

    run(database, check, config=theatre_config(aisle_after=5))


def test_a_row_with_only_single_seats_left_may_be_picked_from(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        box_office = {"holdType": "RESERVED"}
        taken = [n for n in range(10) if n not in (0, 2, 3, 5)]
        await held(await made.hold(made.admin, *taken, **box_office))
        buyer = await made.buyer()
        await made.app.feed.caught_up()
        refused = await made.reserve(2, buyer)  # 3 would be alone, and 1 is free instead
        assert refused.status_code == 409, refused.text
        await held(await made.hold(buyer, 2, 3))
        await made.app.feed.caught_up()
        await held(await made.reserve(5, buyer))

    run(database, check)


def test_where_every_choice_of_that_size_strands_somebody_it_is_allowed(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        await held(await made.hold(made.admin, *range(3, 10), holdType="RESERVED"))
        await made.app.feed.caught_up()
        await held(await made.hold(await made.buyer(), 0, 1))  # of three seats two: one is left whatever they take

    run(database, check)


def test_organisers_are_not_bound_by_it(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        await held(await made.hold(made.admin, 1, holdType="RESERVED"))
        await held(await made.hold(made.api_key, 4, holdType="RESERVED"))

    run(database, check)


def test_a_place_for_a_wheelchair_is_taken_alone_and_its_companions_seat_is_no_orphan(database: TestDatabase) -> None:
    config = theatre_config()
    seats = config["zones"][0]["seats"]
    seats[0] |= {"category": "wheelchair", "companion_seat_id": "A-2"}
    seats[1] |= {"category": "companion"}

    async def check(made: Stage) -> None:
        await held(await made.hold(made.admin, 2, 3, holdType="RESERVED"))
        await made.app.feed.caught_up()
        buyer = await made.buyer()
        await held(await made.reserve(0, buyer))
        await made.app.feed.caught_up()
        await held(await made.reserve(1, buyer))

    run(database, check, config=config)


def test_where_the_policy_is_not_strict_it_is_allowed_and_counted(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        before = await counted(made, "allowed")
        await held(await made.reserve(1, await made.buyer()))
        await held(await made.hold(await made.buyer(), ROW_B + 1, ROW_B + 3))
        assert await counted(made, "allowed") == before + 2

    run(database, check, event={"overrides": {"orphan_avoidance_strict": False}})


def test_what_is_left_alone_on_the_short_way_is_logged_in_sums(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        guard = made.app.services.holds.orphans
        event = (made.first.organization_id, UUID(made.event_id))
        guard.left_alone[event] += 3
        with capture_logs() as logged:
            guard.log_left_alone()
            guard.log_left_alone()
        (line,) = logged
        assert (line["event"], line["event_id"], line["count"]) == ("orphan_seats_left", made.event_id, 3)

    run(database, check)


def test_whoever_is_over_the_limit_is_told_that_and_not_about_seats(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        buyer = await made.buyer()
        await held(await made.hold(buyer, 0, 1))
        await made.app.feed.caught_up()
        refused = await made.reserve(3, buyer)  # A-3 would be alone
        assert (refused.status_code, refused.json()["error"]) == (429, "rate_limited"), refused.text

    run(database, check, event={"overrides": {"orphan_avoidance_strict": True, "max_holds_per_user": 2}})


def test_a_locked_rule_cannot_be_switched_off_by_an_event(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        policy = {"orphan_avoidance_strict": True, "locked_fields": ["orphan_avoidance_strict"]}
        answer = await made.client.put("/api/policy", headers=made.admin, json=policy)
        assert answer.status_code == 200, answer.text
        refused = await made.client.patch(
            f"/api/events/{made.event_id}", headers=made.admin, json={"overrides": {"orphan_avoidance_strict": False}}
        )
        assert refused.status_code == 409
        assert refused.json()["error"] == "override_not_permitted"
        assert refused.json()["fields"] == ["orphan_avoidance_strict"]
        # The event had switched it off before it was locked: that no longer counts.
        assert (await made.reserve(1, await made.buyer())).json()["error"] == "orphan_seat"

    run(database, check, event={"overrides": {"orphan_avoidance_strict": False}})


async def counted(made: Stage, outcome: str) -> float:
    text = (await made.client.get("/metrics")).text
    return sum(
        float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if line.startswith("holdfast_orphan_seats") and f'outcome="{outcome}"' in line
    )
