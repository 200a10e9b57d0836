"""Holds of several places at once, giving back, extending, listing, and what organisers do in bulk."""

import asyncio
from typing import Any
from uuid import UUID

from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.http.client import bearer
from tests.http.contents import contents, hold_row, member, seat_log, seat_row, user
from tests.http.test_reserve import UNKNOWN, block, held, refused, run, sell
from tests.stage import Stage

BUSINESS = {
    "COMP": {"displayName": "Complimentary", "releaseApi": "ADMIN"},
    "PARTNER_HOLD": {"ttlSeconds": 3600, "releaseApi": "ADMIN,API"},
    "KIOSK": {"releaseApi": "CUSTOMER,ADMIN,API", "ttlSeconds": 120},
}


async def define_types(made: Stage, types: dict[str, Any] | None = None) -> None:
    answer = await made.post("/api/organizations/config", {"holdTypes": types or BUSINESS})
    assert answer.status_code == 200, answer.text


async def release(made: Stage, hold_id: str, headers: dict[str, str]) -> Any:
    return await made.client.delete(f"/api/holds/{hold_id}", headers=headers)


async def extend(made: Stage, hold_id: str, headers: dict[str, str]) -> Any:
    return await made.client.post(f"/api/holds/{hold_id}/extend", headers=headers)


# Several at once ------------------------------------------------------------------------------------------------------
def test_seats_and_places_are_held_together_or_not_at_all(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        buyer = await made.buyer()
        data = held(await made.hold(buyer, 3, 1, ga=[{"zone_id": "pit", "quantity": 4}]))
        assert [(h["seat_label"], h["zone_id"], h["quantity"]) for h in data["holds"]] == [
            ("A-2", "stalls", 1),
            ("A-4", "stalls", 1),
            (None, "pit", 4),
        ]
        assert data["expires_in_seconds"] == 300
        assert len({h["held_until"] for h in data["holds"]}) <= 2
        (zone,) = await made.sql("SELECT held, sold, version FROM event_zones")
        assert tuple(zone) == (4, 0, 1)
        moves = await made.sql("SELECT quantity, verb, version FROM seat_state_events WHERE ordinal IS NULL")
        assert [tuple(move) for move in moves] == [(4, "hold", 1)]

        await sell(made, 5)
        await block(made, 6)
        await made.hold(await made.buyer(), 7)
        await made.hold(await made.buyer(), 8)
        await made.advance_clock(301)  # the hold of 8 and those above are over now, though nobody swept them
        await made.hold(await member(made), 7)
        other = await member(made)
        before = await contents(made)
        for numbers, ga, status, code in (
            ((0, 2, 5), 0, 409, "seat_not_available"),
            ((0, 2, 6), 0, 409, "seat_not_available"),
            ((0, 8, 7), 0, 409, "seat_held_by_another_user"),
            ((0, 8, 7), 2, 409, "seat_held_by_another_user"),
        ):
            places = [{"zone_id": "pit", "quantity": ga}] if ga else []
            refused(await made.hold(other, *numbers, ga=places), status, code)
            assert await contents(made) == before
        assert (await seat_row(made, 8))["locked_at"] is not None

    run(database, check)


def test_a_full_zone_gives_back_the_seats_that_were_asked_for_with_it(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        before = await contents(made)
        problem = refused(
            await made.hold(await made.buyer(), 0, 1, ga=[{"zone_id": "pit", "quantity": 6}]), 409, "block_at_capacity"
        )
        assert problem["available"] == 5
        refused(await made.hold(await made.buyer(), 0, ga=[{"zone_id": "none", "quantity": 1}]), 404, "zone_not_found")
        refused(await made.hold(await made.buyer(), 0, seats=[UNKNOWN]), 404, "seat_not_found")
        assert await contents(made) == before

    run(database, check, config=theatre_config(rows=1, ga_capacity=5))


def test_ones_own_seats_come_back_beside_the_new_ones(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        buyer = await made.buyer()
        first = held(await made.hold(buyer, 0, 1))
        await made.advance_clock(100)
        both = held(await made.hold(buyer, 0, 1, 2))
        assert [h["hold_id"] for h in both["holds"][:2]] == [h["hold_id"] for h in first["holds"]]
        assert [h["expires_in_seconds"] for h in both["holds"]][2] == 300
        assert both["expires_in_seconds"] <= 200
        again = held(await made.hold(buyer, 0, 1, 2), 200)
        assert [h["hold_id"] for h in again["holds"]] == [h["hold_id"] for h in both["holds"]]
        assert len(await made.sql("SELECT FROM holds")) == 3
        # What one has does not count again: five more make eight, though ten are named.
        held(await made.hold(buyer, *range(8)))
        refused(await made.hold(buyer, *range(8), 9, 10, 11), 422, "max_seats_exceeded")
        refused(await made.hold(buyer, 8, 9, 10), 429, "rate_limited")
        held(await made.hold(buyer, *range(10)))
        other = await member(made)
        before = await contents(made)
        refused(await made.hold(other, 10, 9), 409, "seat_held_by_another_user")
        assert await contents(made) == before

    run(database, check)


def test_a_request_for_many_is_looked_at_closely(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        buyer = await made.buyer()
        path = f"/api/events/{made.event_id}/holds"
        seat = made.seats[0]["id"]
        bodies: list[dict[str, Any]] = [
            {},
            {"seats": [], "ga": []},
            {"seats": [seat, seat]},
            {"seats": ["A-1"]},
            {"seats": seat},
            {"seats": [seat], "colour": "red"},
            {"seats": [seat], "source": "fax"},
            {"ga": [{"zone_id": "pit", "quantity": 0}]},
            {"ga": [{"zone_id": "pit", "quantity": -1}]},
            {"ga": [{"zone_id": "pit", "quantity": "2"}]},
            {"ga": [{"zone_id": "pit", "quantity": 1}, {"zone_id": "pit", "quantity": 1}]},
            {"ga": [{"zone_id": "stalls", "quantity": 1}]},
            {"seats": [seat], "holdType": "NOPE"},
        ]
        for body in bodies:
            refused(await made.post(path, body, buyer), 400, "invalid_request")
        refused(await made.post(path, {"ga": [{"zone_id": "pit", "quantity": 11}]}, buyer), 422, "max_seats_exceeded")
        answer = await made.hold(buyer, *range(6), ga=[{"zone_id": "pit", "quantity": 5}])
        assert refused(answer, 422, "max_seats_exceeded")["max_seats"] == 10
        await made.client.put("/api/policy", headers=made.admin, json={"max_seats_per_booking": 3})
        refused(await made.hold(buyer, *range(4)), 422, "max_seats_exceeded")
        held(await made.hold(buyer, *range(3)))
        assert len(await made.sql("SELECT FROM holds")) == 3

    run(database, check)


# Giving back ----------------------------------------------------------------------------------------------------------
def test_a_hold_is_given_back_by_its_owner_or_by_whom_its_type_names(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        await define_types(made)
        buyer, other = await made.buyer(), await made.buyer()
        mine = held(await made.reserve(0, buyer))["hold_id"]
        refused(await release(made, mine, other), 403, "release_forbidden")
        refused(await release(made, mine, made.api_key), 403, "release_forbidden")  # CART does not name API
        refused(await release(made, UNKNOWN, buyer), 404, "hold_not_found")
        refused(await release(made, "x", buyer), 400, "invalid_request")
        assert (await made.seat(0))["state"] == "held"
        answer = await release(made, mine, buyer)
        assert (answer.status_code, answer.json()["data"]["status"]) == (200, "cancelled")
        before = await contents(made)
        again = await release(made, mine, buyer)
        assert (again.status_code, again.json()["data"]["status"]) == (200, "cancelled")
        assert await contents(made) == before
        seat = await seat_row(made, 0)
        assert (seat["state"], seat["version"], seat["hold_id"], seat["hold_type"]) == ("available", 2, None, None)
        assert (seat["held_until"], seat["locked_at"]) == (None, None)
        assert [move["verb"] for move in await seat_log(made, 0)] == ["hold", "release"]
        entries = await made.sql("SELECT action FROM audit_entries WHERE entity_id = $1 ORDER BY id", mine)
        assert [entry["action"] for entry in entries] == ["seat_reserved", "seat_released"]
        sent = await made.sql(
            "SELECT kind, state::text, ordinals, versions, hold_ids FROM outbox WHERE ordinals IS NOT NULL ORDER BY id"
        )
        assert [tuple(message) for message in sent] == [
            ("SeatReserved", "held", [0], [1], [UUID(mine)]),
            ("SeatReleased", "available", [0], [2], [UUID(mine)]),
        ]
        held(await made.reserve(0, other))

        for_admin = held(await made.reserve(1, buyer))["hold_id"]
        assert (await release(made, for_admin, made.admin)).json()["data"]["status"] == "cancelled"
        kiosk = held(await made.reserve(1, buyer, holdType="KIOSK"))["hold_id"]
        refused(await release(made, kiosk, other), 403, "release_forbidden")  # one buyer never another's
        assert (await release(made, kiosk, made.api_key)).status_code == 200
        comp = held(await made.reserve(1, made.admin, holdType="COMP"))["hold_id"]
        refused(await release(made, comp, made.api_key), 403, "release_forbidden")
        refused(await release(made, comp, buyer), 403, "release_forbidden")
        assert (await release(made, comp, made.admin)).status_code == 200
        places = held(await made.hold(buyer, ga=[{"zone_id": "pit", "quantity": 3}]))["holds"][0]["hold_id"]
        assert (await release(made, places, buyer)).json()["data"]["status"] == "cancelled"
        (zone,) = await made.sql("SELECT held, version FROM event_zones")
        assert tuple(zone) == (0, 2)

    run(database, check)


def test_a_hold_released_and_taken_again_many_times_at_once_stays_consistent(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        buyer = await made.buyer()
        mine = held(await made.reserve(0, buyer))["hold_id"]
        answers = await asyncio.gather(*(release(made, mine, buyer) for _ in range(12)))
        assert {answer.status_code for answer in answers} == {200}
        assert [move["verb"] for move in await seat_log(made, 0)] == ["hold", "release"]

    run(database, check)


# Extending ------------------------------------------------------------------------------------------------------------
def test_a_hold_is_extended_by_its_owner_up_to_the_maximum_from_its_creation(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        await define_types(made, {"KIOSK": {"releaseApi": "CUSTOMER,ADMIN"}})
        await made.client.put(
            "/api/policy", headers=made.admin, json={"default_hold_ttl_minutes": 5, "max_hold_minutes": 12}
        )
        buyer = await made.buyer()
        mine = held(await made.reserve(0, buyer))["hold_id"]
        created = (await hold_row(made, mine))["created_at"]
        refused(await extend(made, mine, await made.buyer()), 403, "forbidden")
        refused(await extend(made, mine, made.admin), 403, "forbidden")
        refused(await extend(made, UNKNOWN, buyer), 404, "hold_not_found")
        await made.advance_clock(240)
        longer = held(await extend(made, mine, buyer), 200)
        assert 299 <= longer["expires_in_seconds"] <= 300
        assert (await seat_row(made, 0))["held_until"] == (await hold_row(made, mine))["held_until"]
        assert (await seat_row(made, 0))["version"] == 1  # not a move
        assert len(await seat_log(made, 0)) == 1
        await made.advance_clock(240)
        longest = held(await extend(made, mine, buyer), 200)
        life = (await hold_row(made, mine))["held_until"] - created
        assert life.total_seconds() == 12 * 60
        assert longest["expires_in_seconds"] <= 240
        refused(await extend(made, mine, buyer), 409, "max_hold_reached")
        actions = await made.sql("SELECT count(*) FROM audit_entries WHERE action = 'seat_hold_extended'")
        assert actions[0]["count"] == 2
        await made.advance_clock(239)
        refused(await extend(made, mine, buyer), 409, "max_hold_reached")
        await made.advance_clock(5)
        refused(await extend(made, mine, buyer), 409, "hold_expired")

        gone = held(await made.reserve(1, buyer))["hold_id"]
        await release(made, gone, buyer)
        refused(await extend(made, gone, buyer), 409, "hold_not_active")
        endless = held(await made.reserve(1, buyer, holdType="KIOSK"))["hold_id"]
        refused(await extend(made, endless, buyer), 409, "max_hold_reached")
        places = held(await made.hold(buyer, ga=[{"zone_id": "pit", "quantity": 2}]))["holds"][0]["hold_id"]
        await made.advance_clock(100)
        assert held(await extend(made, places, buyer), 200)["expires_in_seconds"] >= 299

    run(database, check)


# Lists ----------------------------------------------------------------------------------------------------------------
def test_buyers_list_their_own_holds_and_organisers_those_of_an_event(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        await define_types(made)
        one, two = await user(made), await user(made)
        first, second = bearer(one.token), bearer(two.token)
        held(await made.hold(first, *range(5), ga=[{"zone_id": "pit", "quantity": 2}]))
        held(await made.hold(second, 5, 6))
        held(await made.hold(made.admin, 7, 8, holdType="COMP"))
        elsewhere = await made.make_event()
        seats = (await made.client.get(f"/api/events/{elsewhere}/seats?limit=1", headers=first)).json()["data"]
        held(await made.client.post(f"/api/events/{elsewhere}/seats/{seats[0]['id']}/reserve", headers=first))

        async def listed(path: str, headers: dict[str, str], **params: Any) -> list[dict[str, Any]]:
            answer = await made.client.get(path, headers=headers, params=params)
            assert answer.status_code == 200, answer.text
            rows: list[dict[str, Any]] = answer.json()["data"]
            return rows

        assert len(await listed("/api/holds", first)) == 7
        mine = await listed("/api/holds", first, event_id=made.event_id)
        assert len(mine) == 6
        assert all(hold["user_id"] is None for hold in mine)  # whose it is, is for the organiser
        assert {hold["seat_label"] for hold in mine} == {"A-1", "A-2", "A-3", "A-4", "A-5", None}
        pages: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            page = (await made.client.get("/api/holds", headers=first, params={"limit": 3, **cursor})).json()
            pages += [hold["hold_id"] for hold in page["data"]]
            assert len(page["data"]) <= 3
            if page["next_cursor"] is None:
                break
            cursor = {"cursor": page["next_cursor"]}
        assert len(pages) == len(set(pages)) == 7

        path = f"/api/events/{made.event_id}/holds"
        refused(await made.client.get(path, headers=first), 403, "forbidden")
        everything = await listed(path, made.admin)
        assert len(everything) == 10
        assert {hold["user_id"] for hold in everything} >= {str(one.user_id), str(two.user_id)}
        assert len(await listed(path, made.admin, hold_type="COMP")) == 2
        assert len(await listed(path, made.admin, user_id=str(two.user_id))) == 2
        assert [hold["quantity"] for hold in await listed(path, made.admin, zone="pit")] == [2]
        assert len(await listed(path, made.admin, zone=made.zones[0]["id"])) == 1
        assert await listed(path, made.admin, expiring_within=60) == []
        await made.advance_clock(250)
        assert len(await listed(path, made.admin, expiring_within=60)) == 8
        assert len(await listed(path, made.api_key, hold_type="CART", zone="stalls", limit=4)) == 4
        await made.advance_clock(60)  # over, though not swept
        assert {hold["hold_type"] for hold in await listed(path, made.admin)} == {"COMP"}
        assert await listed("/api/holds", first) == []
        refused(await made.client.get(path, headers=made.admin, params={"zone": "none"}), 404, "zone_not_found")
        for bad in ({"cursor": "x"}, {"limit": 0}, {"limit": 100_000}, {"user_id": "x"}, {"expiring_within": -1}):
            refused(await made.client.get(path, headers=made.admin, params=bad), 400, "invalid_request")

    run(database, check)


def test_one_hold_is_shown_to_its_owner_and_the_organiser(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        buyer = await member(made)
        mine = held(await made.reserve(0, buyer))["hold_id"]
        path = f"/api/holds/{mine}"
        assert held(await made.client.get(path, headers=buyer), 200)["status"] == "active"
        assert held(await made.client.get(path, headers=made.admin), 200)["user_id"] is not None
        refused(await made.client.get(path, headers=await member(made)), 404, "hold_not_found")
        await made.advance_clock(301)
        over = held(await made.client.get(path, headers=buyer), 200)
        assert (over["status"], over["expires_in_seconds"]) == ("expired", 0)

    run(database, check)


# In bulk --------------------------------------------------------------------------------------------------------------
def test_an_organiser_holds_moves_and_releases_thousands_of_seats_at_once(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        await define_types(made)
        data = held(await made.hold(made.admin, *range(5000), holdType="COMP"))
        assert len(data["holds"]) == 5000
        assert data["expires_in_seconds"] is None
        (counts,) = await made.sql(
            "SELECT count(*) AS seats, count(DISTINCT hold_id) AS holds, min(version) AS low, max(version) AS high"
            " FROM event_seats WHERE state = 'held' AND hold_type = 'COMP'"
        )
        assert tuple(counts) == (5000, 5000, 1, 1)
        assert (await made.seat(4999))["hold_type"] == "COMP"
        refused(await made.hold(await made.buyer(), 4999), 409, "seat_held_by_another_user")
        path = f"/api/events/{made.event_id}/holds/release"
        ids = [hold["hold_id"] for hold in data["holds"]]
        before = await contents(made, ("holds", "event_seats"))
        refused(await made.post(path, {"hold_ids": [*ids[:10], UNKNOWN]}), 404, "hold_not_found")
        refused(await made.post(path, {"hold_ids": ids[:10]}, made.api_key), 403, "release_forbidden")
        refused(await made.post(path, {"hold_ids": ids[:10]}, await made.buyer()), 403, "forbidden")
        for body in ({}, {"hold_ids": ids[:1], "filter": {}}, {"hold_ids": ["x"]}, {"filter": {"colour": "red"}}):
            refused(await made.post(path, body), 400, "invalid_request")
        assert await contents(made, ("holds", "event_seats")) == before
        assert held(await made.post(path, {"hold_ids": ids[:3000]}), 200)["released"] == 3000
        assert held(await made.post(path, {"hold_ids": ids[:3000]}), 200)["released"] == 0
        # Moving: owner, type and end stay.
        moves = [{"hold_id": ids[3000 + n], "seat": made.seats[n]["id"]} for n in range(3)]
        moved = held(await made.post(f"/api/events/{made.event_id}/holds/move", {"moves": moves}), 200)
        assert [hold["seat_label"] for hold in moved["holds"]] == [made.seats[n]["seat_id"] for n in range(3)]
        assert {hold["hold_type"] for hold in moved["holds"]} == {"COMP"}
        assert (await seat_row(made, 3000))["state"] == "available"
        held(await made.hold(made.admin, 100, holdType="PARTNER_HOLD"))
        gone = held(await made.post(path, {"filter": {"holdType": "COMP", "zone": "stalls"}}), 200)
        assert gone["released"] == 2000
        (left,) = await made.sql("SELECT hold_type FROM event_seats WHERE state = 'held'")
        assert left["hold_type"] == "PARTNER_HOLD"

    run(database, check, config=theatre_config(rows=50, seats_per_row=100))


def test_holds_are_moved_all_or_none_and_stay_whose_they_are(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        owner = await user(made)
        buyer = bearer(owner.token)
        ids = [hold["hold_id"] for hold in held(await made.hold(buyer, 0, 1, 2))["holds"]]
        places = held(await made.hold(buyer, ga=[{"zone_id": "pit", "quantity": 1}]))["holds"][0]["hold_id"]
        await made.reserve(9, await made.buyer())
        until = (await hold_row(made, ids[0]))["held_until"]
        await made.advance_clock(60)
        path = f"/api/events/{made.event_id}/holds/move"

        def to(*pairs: tuple[str, int]) -> dict[str, Any]:
            return {"moves": [{"hold_id": hold_id, "seat": made.seats[n]["id"]} for hold_id, n in pairs]}

        before = await contents(made)
        refused(await made.post(path, to((ids[0], 20)), buyer), 403, "forbidden")
        refused(await made.post(path, to((ids[0], 20), (ids[1], 9))), 409, "seat_held_by_another_user")
        refused(await made.post(path, to((ids[0], 20), (UNKNOWN, 21))), 404, "hold_not_found")
        refused(await made.post(path, to((ids[0], 20), (ids[1], 20))), 400, "invalid_request")
        refused(await made.post(path, to((ids[0], 20), (ids[0], 21))), 400, "invalid_request")
        refused(await made.post(path, to((places, 20))), 409, "hold_not_active")
        refused(await made.post(path, {"moves": []}), 400, "invalid_request")
        assert await contents(made) == before

        swapped = held(await made.post(path, to((ids[0], 1), (ids[1], 0), (ids[2], 22))), 200)["holds"]
        assert {hold["seat_label"] for hold in swapped} == {"A-1", "A-2", made.seats[22]["seat_id"]}
        for hold in swapped:
            row = await hold_row(made, hold["hold_id"])
            assert (row["user_id"], row["hold_type"], row["status"]) == (owner.user_id, "CART", "active")
            assert abs((row["held_until"] - until).total_seconds()) <= 1
        assert [move["verb"] for move in await seat_log(made, 0)] == ["hold", "release", "hold"]
        assert [move["version"] for move in await seat_log(made, 0)] == [1, 2, 3]

    run(database, check)
