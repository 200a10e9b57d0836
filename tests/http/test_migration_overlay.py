"""An event with an overlay goes to another version of its layout, and the overlay with it."""

import asyncio
from copy import deepcopy
from typing import Any

from tests.conftest import TestDatabase
from tests.http.migration_ground import HALL, ON_SALE, add_version, apply, faults, inventory, plan, sell, without_rows
from tests.stage import Stage, stage

OVERLAY: dict[str, Any] = {
    "blocked_seat_ids": ["A-1", "B-1"],
    "pricing_zones": {"front": {"seat_ids": ["A-5", "A-6", "C-5", "C-6"], "amount_minor": 12000}},
}


async def zone_of(made: Stage) -> dict[str, Any]:
    answer = await made.client.get(f"/api/events/{made.event_id}/zones", headers=made.admin)
    zone: dict[str, Any] = answer.json()["data"][0]
    return zone


def test_nobody_is_moved_to_what_the_overlay_takes_out_or_to_another_price(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, HALL, event={**ON_SALE, **OVERLAY}) as made:
            await sell(made, "party", 4, 5)  # of which the pricing zone names two more in row C
            await sell(made, "others", 6, 7)
            version = await add_version(made, without_rows(HALL, "A"))
            planned = await plan(made, version)
            assert planned["applicable"], planned["blockers"]
            moved = {m["from_seat"]["seat_id"]: m["to_seat"]["seat_id"] for m in planned["moves"]}
            assert {moved["A-5"], moved["A-6"]} == {"C-5", "C-6"}
            assert "B-1" not in moved.values()
            assert (await apply(made, planned["id"])).status_code == 200
            seats = await inventory(made)
            assert seats["B-1"]["state"] == "blocked"
            assert seats["C-5"]["state"] == seats["C-6"]["state"] == "sold"
            assert await faults(made) == []
            assert "overlay" in " ".join(planned["warnings"])
            event = (await made.client.get(f"/api/events/{made.event_id}", headers=made.admin)).json()["data"]
            assert event["blocked_seat_ids"] == ["B-1"]
            assert event["pricing_zones"]["front"]["seat_ids"] == ["C-5", "C-6"]
            renamed = await made.client.patch(
                f"/api/events/{made.event_id}", headers=made.admin, json={"name": "Late night"}
            )
            assert renamed.status_code == 200, renamed.text

    asyncio.run(main())


def test_a_zone_that_is_taken_out_stays_out_and_comes_back_with_its_new_size(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, HALL, event={**ON_SALE, "disabled_zones": ["pit"]}) as made:
            await sell(made, "party", 0, 1)
            smaller = deepcopy(without_rows(HALL, "D"))
            smaller["zones"][1]["capacity"] = 60
            planned = await plan(made, await add_version(made, smaller))
            assert (await apply(made, planned["id"])).status_code == 200
            zone = await zone_of(made)
            assert (zone["capacity"], zone["blocked"], zone["available"]) == (60, 60, 0)
            refused = await made.hold(await made.buyer(), ga=[{"zone_id": "pit", "quantity": 1}])
            assert refused.json()["error"] == "zone_disabled"
            assert await faults(made) == []
            offered = await made.client.patch(
                f"/api/events/{made.event_id}", headers=made.admin, json={"disabled_zones": []}
            )
            assert offered.status_code == 200, offered.text
            assert (await zone_of(made))["available"] == 60
            assert (await made.hold(await made.buyer(), ga=[{"zone_id": "pit", "quantity": 2}])).status_code == 201
            assert await faults(made) == []

    asyncio.run(main())


def test_places_blocked_by_hand_stay_blocked_and_count_against_the_new_size(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, HALL, event=ON_SALE) as made:
            where = f"/api/events/{made.event_id}/zones/pit/block"
            assert (await made.post(where, {"quantity": 30, "reason": "camera"})).status_code == 200
            tight = deepcopy(HALL)
            tight["zones"][1]["capacity"] = 20
            planned = await plan(made, await add_version(made, tight))
            assert not planned["applicable"]
            assert "30 places taken" in planned["blockers"][0]
            roomy = deepcopy(HALL)
            roomy["zones"][1]["capacity"] = 40
            planned = await plan(made, await add_version(made, roomy))
            assert (await apply(made, planned["id"])).status_code == 200
            zone = await zone_of(made)
            assert (zone["capacity"], zone["blocked"], zone["available"]) == (40, 30, 10)
            assert await faults(made) == []

    asyncio.run(main())


def test_an_event_of_a_series_stays_with_its_series(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, HALL, event=ON_SALE) as made:
            event = (await made.client.get(f"/api/events/{made.event_id}", headers=made.admin)).json()["data"]
            series = await made.post("/api/series", {"name": "Run", "layout_id": event["layout_id"]})
            assert series.status_code == 201, series.text
            one = await made.post("/api/events", {"name": "Matinée", "series_id": series.json()["data"]["id"]})
            assert one.status_code == 201, one.text
            event_id = one.json()["data"]["id"]
            await made.post(f"/api/events/{event_id}/status", {"status": "published"})
            await add_version(made, without_rows(HALL, "A"))
            answer = await made.post(f"/api/events/{event_id}/migrations", {"layout_version": 2})
            assert (answer.status_code, answer.json()["error"]) == (409, "event_not_migratable"), answer.text

    asyncio.run(main())
