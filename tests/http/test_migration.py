"""An event on sale goes to another version of its layout: planned, confirmed, and everything accounted for."""

import asyncio
import re
from copy import deepcopy
from typing import Any

import asyncpg

from holdfast.store.postgres.migrate import functions
from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.http.migration_ground import (
    HALL,
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
            for n in range(100):
                await sell(made, f"party-{n}", *range(5 * n, 5 * n + 5))
            await sell(made, "standing", places=30)
            for number in range(10):
                wanted = range(500 + 5 * number, 505 + 5 * number)
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


# What stands in the way ---------------------------------------------------------------------------------------------
async def price_change(made: Stage, held: dict[str, Any]) -> None:
    dearer = [{"zone_id": "stalls", "category": None, "amount_minor": 9000}]
    answer = await made.client.patch(f"/api/events/{made.event_id}", headers=made.admin, json={"prices": dearer})
    assert answer.status_code == 200, answer.text


async def another_hold(made: Stage, held: dict[str, Any]) -> None:
    assert (await made.reserve(30, await made.buyer())).status_code == 201


async def another_place(made: Stage, held: dict[str, Any]) -> None:
    assert (await made.hold(await made.buyer(), ga=[{"zone_id": "pit", "quantity": 1}])).status_code == 201


async def a_release(made: Stage, held: dict[str, Any]) -> None:
    assert (await made.client.delete(f"/api/holds/{held['hold_id']}", headers=made.admin)).status_code == 200


async def a_sale(made: Stage, held: dict[str, Any]) -> None:
    await sell(made, "late", 35)


async def a_blocked_seat(made: Stage, held: dict[str, Any]) -> None:
    wanted = {"seats": [made.seats[33]["id"]], "reason": "camera"}
    assert (await made.post(f"/api/events/{made.event_id}/seats/block", wanted)).status_code == 200


def test_a_plan_is_outdated_by_whatever_changes_after_it(database: TestDatabase) -> None:
    changes = (price_change, another_hold, another_place, a_release, a_sale, a_blocked_seat)

    async def main() -> None:
        async with stage(database, HALL, event=ON_SALE) as made:
            await sell(made, "party", 0, 1, 2)
            version = await add_version(made, without_rows(HALL, "A"))
            for change in changes:
                held = (await made.reserve(20, await made.buyer())).json()["data"]
                planned = await plan(made, version)
                await change(made, held)
                before = await everything(made)
                answer = await apply(made, planned["id"])
                assert (answer.status_code, answer.json()["error"]) == (409, "migration_outdated"), change.__name__
                assert await everything(made) == before, change.__name__
                await made.client.delete(f"/api/holds/{held['hold_id']}", headers=made.admin)
            assert (await apply(made, (await plan(made, version))["id"])).status_code == 200
            assert await faults(made) == []

    asyncio.run(main())


def test_a_hold_that_is_extended_does_not_outdate_the_plan_and_keeps_its_new_end(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, HALL, event=ON_SALE) as made:
            buyer = await made.buyer()
            held = (await made.reserve(3, buyer)).json()["data"]
            planned = await plan(made, await add_version(made, without_rows(HALL, "A")))
            await made.advance_clock(60)
            extended = await made.client.post(f"/api/holds/{held['hold_id']}/extend", headers=buyer)
            assert extended.status_code == 200, extended.text
            assert (await apply(made, planned["id"])).status_code == 200
            again = await made.client.post(f"/api/holds/{held['hold_id']}/extend", headers=buyer)
            told = (await made.client.get(f"/api/holds/{held['hold_id']}", headers=buyer)).json()["data"]
            assert again.status_code == 200
            assert told["held_until"] >= extended.json()["data"]["held_until"]
            assert told["seat_label"] == planned["moves"][0]["to_seat"]["seat_id"]
            assert await faults(made) == []

    asyncio.run(main())


def test_a_sold_seat_without_a_place_blocks_and_a_held_one_is_cancelled(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, theatre_config(2, 3, ga_capacity=10), event=ON_SALE) as made:
            await sell(made, "party", 0, 1)
            await sell(made, "full", 3, 4)
            buyer = await made.buyer()
            held = (await made.reserve(2, buyer)).json()["data"]
            version = await add_version(made, without_rows(theatre_config(2, 3, ga_capacity=10), "A"))
            planned = await plan(made, version)
            assert not planned["applicable"]
            assert planned["unplaced"] == {"sold": 1, "held": 1, "blocked": 0}
            assert "A-2" in planned["blockers"][0]
            before = await everything(made)
            answer = await apply(made, planned["id"])
            assert (answer.status_code, answer.json()["error"]) == (409, "migration_blocked")
            assert await everything(made) == before
            roomy = without_rows(theatre_config(3, 3, ga_capacity=10), "A")
            roomy["zones"][0]["seats"] = [s for s in roomy["zones"][0]["seats"] if s["seat_id"] not in ("C-2", "C-3")]
            roomy["zones"][0]["capacity"] = len(roomy["zones"][0]["seats"])
            planned = await plan(made, await add_version(made, roomy))
            assert planned["applicable"], planned
            assert "cancelled" in " ".join(planned["warnings"])
            assert (await apply(made, planned["id"])).status_code == 200
            told = (await made.client.get(f"/api/holds/{held['hold_id']}", headers=buyer)).json()["data"]
            assert (told["status"], told["seat_label"]) == ("cancelled", "A-3")  # as it was, in the version it was of
            listed = await made.client.get(path(made, planned["id"], "/notifications"), headers=made.admin)
            whats = {n["from_seat"]["seat_id"]: (n["what"], n["hold_id"]) for n in listed.json()["data"]}
            assert whats["A-3"] == ("cancelled", held["hold_id"])
            assert {name for name, (what, _) in whats.items() if what == "moved"} == {"A-1", "A-2"}
            log = await state_log(made)
            assert [row["seat_id"] for row in log if row["verb"] == "release"] == ["A-3"]
            assert await faults(made) == []

    asyncio.run(main())


def test_seats_move_within_their_price_and_wheelchairs_to_wheelchairs(database: TestDatabase) -> None:
    config = theatre_config(4, 6)
    for seat in config["zones"][0]["seats"]:
        if seat["seat_id"] in ("A-1", "C-1"):
            seat["category"] = "wheelchair"
        if seat["row"] == "D":
            seat["category"] = "restricted_view"
    prices = [
        {"zone_id": "stalls", "category": None, "amount_minor": 8000},
        {"zone_id": "stalls", "category": "restricted_view", "amount_minor": 3000},
    ]

    async def main() -> None:
        async with stage(database, config, event={**ON_SALE, "prices": prices}) as made:
            await sell(made, "party", 0, 1, 2)
            version = await add_version(made, without_rows(config, "A"))
            planned = await plan(made, version)
            moves = {m["from_seat"]["seat_id"]: m["to_seat"] for m in planned["moves"]}
            assert moves["A-1"]["seat_id"] == "C-1"
            assert {moves[name]["row"] for name in ("A-2", "A-3")} <= {"B", "C"}
            assert moves["A-2"]["category"] == "standard"
            wish = [{"from_seat": made.seats[1]["id"], "to_seat": made.seats[18]["id"]}]
            chosen = await plan(made, version, replacements=wish)
            moves = {m["from_seat"]["seat_id"]: m["to_seat"]["seat_id"] for m in chosen["moves"]}
            assert moves["A-2"] == "D-1"
            assert any("D-1" in said for said in chosen["warnings"])
            assert (await apply(made, chosen["id"])).status_code == 200
            assert (await inventory(made))["D-1"]["state"] == "sold"
            assert await faults(made) == []

    asyncio.run(main())


def test_blocked_seats_and_sales_under_a_block_go_along(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, HALL, event=ON_SALE) as made:
            await sell(made, "party", 0, 12)
            wanted = {"seats": [made.seats[n]["id"] for n in (0, 1, 12, 13)], "reason": "camera", "force": True}
            assert (await made.post(f"/api/events/{made.event_id}/seats/block", wanted)).status_code == 200
            planned = await plan(made, await add_version(made, without_rows(HALL, "A")))
            assert planned["moving"] == {"sold": 1, "held": 0, "blocked": 0}
            assert planned["unplaced"] == {"sold": 0, "held": 0, "blocked": 1}
            assert (await apply(made, planned["id"])).status_code == 200
            seats = await inventory(made)
            target = planned["moves"][0]["to_seat"]["seat_id"]
            assert {seats[name]["state"] for name in (target, "B-3", "B-4")} == {"blocked"}
            free = {"seats": [seats[name]["id"] for name in (target, "B-3", "B-4")]}
            assert (await made.post(f"/api/events/{made.event_id}/seats/unblock", free)).status_code == 200
            seats = await inventory(made)
            assert [seats[name]["state"] for name in (target, "B-3", "B-4")] == ["sold", "sold", "available"]
            assert await faults(made) == []

    asyncio.run(main())


def test_counted_zones_are_matched_by_name_and_must_have_room(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, HALL, event=ON_SALE) as made:
            await sell(made, "standing", places=30)
            buyer = await made.buyer()
            assert (await made.hold(buyer, ga=[{"zone_id": "pit", "quantity": 5}])).status_code == 201
            small = deepcopy(HALL)
            small["zones"][1]["capacity"] = 34
            planned = await plan(made, await add_version(made, small))
            assert "34" in planned["blockers"][0]
            gone = deepcopy(HALL)
            del gone["zones"][1]
            assert "30 places are sold" in (await plan(made, await add_version(made, gone)))["blockers"][0]
            turned = deepcopy(HALL)  # the zones change places, so that every zone has another number
            turned["zones"].reverse()
            turned["zones"][0]["capacity"] = 60
            turned["zones"].insert(1, {"zone_id": "ring", "name": "Ring", "zone_type": "ga_standing", "capacity": 7})
            planned = await plan(made, await add_version(made, turned))
            assert planned["applicable"], planned["blockers"]
            assert (await apply(made, planned["id"])).status_code == 200
            assert await faults(made) == []
            zones = (await made.client.get(f"/api/events/{made.event_id}/zones", headers=made.admin)).json()["data"]
            assert [(z["zone_id"], z["capacity"], z["held"], z["sold"]) for z in zones] == [
                ("pit", 60, 5, 30),
                ("ring", 7, 0, 0),
            ]
            assert zones[0]["booking_id"] == made.zones[0]["booking_id"] < zones[1]["booking_id"]
            assert (await made.hold(buyer, ga=[{"zone_id": "pit", "quantity": 10}])).status_code == 201
            assert (await made.hold(await made.buyer(), ga=[{"zone_id": "ring", "quantity": 7}])).status_code == 201
            full = await made.hold(await made.buyer(), ga=[{"zone_id": "ring", "quantity": 1}])
            assert full.json()["error"] == "block_at_capacity"
            await sell(made, "more", 3, places=2)
            assert await faults(made) == []

    asyncio.run(main())


def test_a_zone_that_vanishes_takes_its_price_along_and_cancels_what_was_only_held(database: TestDatabase) -> None:
    prices = [*ON_SALE["prices"], {"zone_id": "pit", "category": None, "amount_minor": 2000}]

    async def main() -> None:
        async with stage(database, HALL, event={**ON_SALE, "prices": prices}) as made:
            held = await made.hold(await made.buyer(), ga=[{"zone_id": "pit", "quantity": 5}])
            gone = deepcopy(HALL)
            del gone["zones"][1]
            planned = await plan(made, await add_version(made, gone))
            assert [p["quantity"] for p in planned["cancelled_places"]] == [5]
            assert (await apply(made, planned["id"])).status_code == 200
            event = (await made.client.get(f"/api/events/{made.event_id}", headers=made.admin)).json()["data"]
            assert [price["zone_id"] for price in event["prices"]] == ["stalls"]
            hold_id = held.json()["data"]["holds"][0]["hold_id"]
            told = (await made.client.get(f"/api/holds/{hold_id}", headers=made.admin)).json()["data"]
            assert (told["status"], told["zone_id"]) == ("cancelled", "pit")
            renamed = await made.client.patch(f"/api/events/{made.event_id}", headers=made.admin, json={"name": "New"})
            assert renamed.status_code == 200, renamed.text
            assert await faults(made) == []

    asyncio.run(main())


def test_a_migration_ends_once(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, HALL, event=ON_SALE) as made:
            version = await add_version(made, without_rows(HALL, "A"))
            first, second = await plan(made, version), await plan(made, version)
            thrown = await made.client.delete(path(made, first["id"]), headers=made.admin)
            assert (thrown.status_code, thrown.json()["data"]["status"]) == (200, "discarded")
            for answer in (
                await made.client.delete(path(made, first["id"]), headers=made.admin),
                await apply(made, first["id"]),
            ):
                assert (answer.status_code, answer.json()["error"]) == (409, "migration_ended")
            headers = {**made.admin, "Idempotency-Key": "once"}
            once = await made.client.post(path(made, second["id"], "/apply"), headers=headers)
            again = await made.client.post(path(made, second["id"], "/apply"), headers=headers)
            assert (once.status_code, again.status_code) == (200, 200)
            assert again.json() == once.json()
            assert (await apply(made, second["id"])).json()["error"] == "migration_ended"
            listed = (await made.client.get(path(made), headers=made.admin)).json()["data"]
            assert [(m["id"], m["status"]) for m in listed] == [(second["id"], "applied"), (first["id"], "discarded")]
            audit = (await made.client.get("/api/audit?action=event_migrated", headers=made.admin)).json()["data"]
            assert [entry["changes"]["layout_version"] for entry in audit] == [version]

    asyncio.run(main())


def test_what_cannot_be_planned_is_refused_with_what_is_wrong(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, HALL, event=ON_SALE) as made:
            await sell(made, "party", 0, 1, 15)
            version = await add_version(made, without_rows(HALL, "A"))
            before = await everything(made)
            stranger = "00000000-0000-7000-8000-000000000000"
            seats = [seat["id"] for seat in made.seats]
            cases: list[tuple[Any, int, str]] = [
                ({}, 400, "/layout_version"),
                ({"layout_version": "2"}, 400, "/layout_version"),
                ({"layout_version": 0}, 400, "/layout_version"),
                ({"layout_version": 2**40}, 400, "/layout_version"),
                ({"layout_version": 2, "more": 1}, 400, "/more"),
                ({"layout_version": 1}, 422, "/layout_version"),
                ({"layout_version": 99}, 422, "/layout_version"),
                (replaced(version, stranger, seats[20]), 422, "/replacements/0/from_seat"),
                (replaced(version, seats[2], seats[20]), 422, "/replacements/0/from_seat"),
                (replaced(version, seats[15], seats[20]), 422, "/replacements/0/from_seat"),
                (replaced(version, seats[0], seats[5]), 422, "/replacements/0/to_seat"),
                (replaced(version, seats[0], seats[15]), 422, "/replacements/0/to_seat"),
                (replaced(version, seats[0], seats[20], seats[0], seats[21]), 422, "/replacements/1/from_seat"),
                (replaced(version, seats[0], seats[20], seats[1], seats[20]), 422, "/replacements/1/to_seat"),
                (replaced(version, "A-1", seats[20]), 400, "/replacements/0/from_seat"),
            ]
            for body, status, pointer in cases:
                answer = await made.post(path(made), body)
                assert answer.status_code == status, (body, answer.text)
                assert pointer in [error["pointer"] for error in answer.json()["errors"]], (body, answer.text)
            buyer = await made.buyer()
            planned = await plan(made, version)
            for method, address in (
                ("POST", path(made)),
                ("GET", path(made)),
                ("GET", path(made, planned["id"])),
                ("POST", path(made, planned["id"], "/apply")),
                ("DELETE", path(made, planned["id"])),
                ("GET", path(made, planned["id"], "/notifications")),
            ):
                body = {"layout_version": version} if (method, address) == ("POST", path(made)) else None
                answer = await made.client.request(method, address, headers=buyer, json=body)
                assert answer.status_code == 403, (method, address)
            unknown = await apply(made, stranger)
            assert (unknown.status_code, unknown.json()["error"]) == (404, "migration_not_found")
            assert (await apply(made, "x")).status_code == 400
            after = await everything(made)
            assert {table for table in after if after[table] != before[table]} <= {"audit_entries", "layout_migrations"}
            frozen = await made.client.patch(
                f"/api/events/{made.event_id}", headers=made.admin, json={"layout_version": version}
            )
            assert (frozen.status_code, frozen.json()["error"]) == (409, "event_frozen")

    asyncio.run(main())


def replaced(version: int, *seats: str) -> dict[str, Any]:
    pairs = zip(seats[::2], seats[1::2], strict=True)
    return {"layout_version": version, "replacements": [{"from_seat": a, "to_seat": b} for a, b in pairs]}


def test_only_an_event_on_sale_with_a_layout_is_migrated(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, HALL, event=ON_SALE) as made:
            draft = await made.make_event(HALL, publish=False)
            own = await made.post("/api/events", {"name": "Own", "zones": HALL["zones"][1:]})
            over = await made.make_event(HALL)
            await made.post(f"/api/events/{over}/status", {"status": "cancelled"})
            for event_id in (draft, own.json()["data"]["id"], over):
                answer = await made.post(f"/api/events/{event_id}/migrations", {"layout_version": 2})
                assert (answer.status_code, answer.json()["error"]) == (409, "event_not_migratable"), answer.text

    asyncio.run(main())


def test_a_migration_carries_every_column_of_the_inventory(database: TestDatabase) -> None:
    """The inventory is written anew: a column that the function does not name would be lost."""
    text, _ = functions()
    written = {
        table: {name.strip() for name in names.split(",")}
        for table, names in re.findall(
            r"INSERT INTO (event_seats|event_zones) \(([^)]*)\)", text.split("migrate_event(")[1]
        )
    }

    async def main() -> None:
        connection = await asyncpg.connect(database.owner)
        try:
            for table, named in written.items():
                rows = await connection.fetch(
                    "SELECT column_name FROM information_schema.columns WHERE table_name = $1", table
                )
                again = {"disabled", "overlay_blocked"} if table == "event_zones" else set()  # with the overlay
                assert {row["column_name"] for row in rows} == named | again, table
        finally:
            await connection.close()

    assert written.keys() == {"event_seats", "event_zones"}
    asyncio.run(main())
