"""An event on sale goes to another version of its layout: planned, confirmed, and everything accounted for."""

import asyncio
from typing import Any

from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.http.migration_ground import (
    ON_SALE,
    add_version,
    apply,
    everything,
    faults,
    inventory,
    owners,
    path,
    plan,
    sell,
    without_rows,
)
from tests.stage import Stage, stage


def test_five_hundred_sold_and_fifty_held_seats_go_to_a_version_that_lacks_two_rows(database: TestDatabase) -> None:
    config = theatre_config(30, 25, ga_capacity=100)

    async def main() -> None:
        async with stage(database, config, event=ON_SALE) as made:
            for party in range(100):
                await sell(made, f"party-{party}", *range(5 * party, 5 * party + 5))
            await sell(made, "standing", places=30)
            for buyer in range(10):
                wanted = range(500 + 5 * buyer, 505 + 5 * buyer)
                assert (await made.hold(await made.buyer(), *wanted)).status_code == 201
            assert (await made.hold(await made.buyer(), ga=[{"zone_id": "pit", "quantity": 4}])).status_code == 201
            before, owned = await inventory(made), await owners(made)
            version = await add_version(made, without_rows(config, "C", "U"))  # row C is sold, row U is held

            dry = await everything(made)
            planned = await plan(made, version)
            for table in ("event_seats", "event_zones", "holds", "seat_state_events", "outbox", "events"):
                assert (await everything(made))[table] == dry[table]
            assert planned["applicable"], planned["blockers"]
            assert planned["one_to_one"] == {"sold": 475, "held": 25, "blocked": 0}
            assert planned["moving"] == {"sold": 25, "held": 25, "blocked": 0}
            assert planned["unplaced"] == {"sold": 0, "held": 0, "blocked": 0}
            assert (planned["seats_added"], planned["seats_removed"]) == (0, 50)

            answer = await apply(made, planned["id"])
            assert (answer.status_code, answer.json()["data"]["status"]) == (200, "applied"), answer.text
            assert await faults(made) == []
            after, owned_after = await inventory(made), await owners(made)
            moves = {move["from_seat"]["seat_id"]: move["to_seat"]["seat_id"] for move in planned["moves"]}
            assert len(set(moves.values())) == len(moves) == 50
            assert {name[0] for name in moves} == {"C", "U"}
            taken = {name: seat for name, seat in before.items() if seat["state"] != "available"}
            mapped = {moves.get(name, name): seat for name, seat in taken.items()}
            assert len(mapped) == len(taken) == 550
            for name, seat in mapped.items():
                assert (after[name]["state"], after[name]["hold_type"]) == (seat["state"], seat["hold_type"])
                assert after[name]["held_until"] == seat["held_until"]
            assert sum(seat["state"] != "available" for seat in after.values()) == 550
            for name, seat in after.items():  # who asks in integers finds the same seats
                assert seat["booking_id"] == before[name]["booking_id"]
            ordinals = {seat["ordinal"]: name for name, seat in after.items()}
            was = {seat["ordinal"]: name for name, seat in before.items()}
            for hold_id, row in owned.items():
                now = owned_after[hold_id]
                assert now["status"] == row["status"]
                if row["ordinal"] is not None:
                    old_name = was[row["ordinal"]]
                    assert ordinals[now["ordinal"]] == moves.get(old_name, old_name)
            parties = [[move for move in planned["moves"] if move["session_id"] == f"party-{n}"] for n in range(10, 15)]
            for party in parties:  # those who sat together sit together
                rows = {move["to_seat"]["row"] for move in party}
                numbers = sorted(move["to_seat"]["number"] for move in party)
                assert (len(party), len(rows), numbers[-1] - numbers[0]) == (5, 1, 4)
            told = await made.client.get(path(made, planned["id"], "/notifications"), headers=made.admin)
            assert len(told.json()["data"]) == 50
            assert {n["what"] for n in told.json()["data"]} == {"moved"}
            layout_id = answer.json()["data"]["layout_id"]
            for kept in (1, 2):
                config_now = await made.client.get(f"/api/layouts/{layout_id}?version={kept}", headers=made.admin)
                assert config_now.status_code == 200
            event = (await made.client.get(f"/api/events/{made.event_id}", headers=made.admin)).json()["data"]
            assert (event["layout_version"], event["seat_count"]) == (2, 700)
            occupancy = (await made.client.get(f"/api/events/{made.event_id}/occupancy", headers=made.admin)).json()[
                "data"
            ]
            assert (occupancy["sold"], occupancy["held"], occupancy["total"]) == (530, 54, 800)
            zones = (await made.client.get(f"/api/events/{made.event_id}/zones", headers=made.admin)).json()["data"]
            assert (zones[0]["sold"], zones[0]["held"]) == (30, 4)

            # And it goes on: somebody buys, somebody lets go, and it is migrated once more, back to where it was.
            free = next(seat for seat in after.values() if seat["state"] == "available")
            buyer = await made.buyer()
            reserve = f"/api/events/{made.event_id}/seats/{free['id']}/reserve"
            held = await made.client.post(reserve, headers=buyer)
            assert (held.status_code, held.json()["data"]["seat_label"]) == (201, free["seat_id"])
            assert (
                await made.client.delete(f"/api/holds/{held.json()['data']['hold_id']}", headers=buyer)
            ).status_code == 200
            assert (await made.client.post(reserve, headers=buyer)).status_code == 201
            assert await faults(made) == []
            back = await plan(made, 1)
            assert back["one_to_one"]["sold"] == 500
            assert (await apply(made, back["id"])).status_code == 200
            assert await faults(made) == []
            log = await state_log(made)
            named = {row["seat_id"] for row in log if row["verb"] == "hold" and row["seat_id"] is not None}
            assert {name for name in before if before[name]["state"] == "held"} <= named

    asyncio.run(main())


async def state_log(made: Stage) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    while True:
        params = {"limit": "1000", "after": str(rows[-1]["id"])} if rows else {"limit": "1000"}
        page = await made.client.get(f"/api/events/{made.event_id}/state-log", headers=made.admin, params=params)
        assert page.status_code == 200, page.text
        rows += page.json()["data"]
        if page.json()["next_cursor"] is None:
            return rows
