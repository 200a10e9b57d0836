"""Reserving one seat: every check in its order, what success answers and writes, and how long a hold lasts."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx

from holdfast.accounts.principal import Role
from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.http.client import bearer
from tests.http.contents import contents, hold_row, member, seat_log, seat_row, user
from tests.stage import Stage, stage

UNKNOWN = "00000000-0000-7000-8000-000000000000"
PROMISED = {
    "hold_id",
    "seat_id",
    "event_id",
    "block_name",
    "row",
    "seat_number",
    "status",
    "held_until",
    "held_until_unix",
    "expires_in_seconds",
    "hold_type",
    "message",
}


def run(database: TestDatabase, test: Callable[[Stage], Coroutine[Any, Any, None]], **settings: Any) -> None:
    async def main() -> None:
        async with stage(database, **settings) as made:
            await test(made)

    asyncio.run(main())


def refused(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The problem document, after looking at what every one of them must have."""
    assert (answer.status_code, answer.json().get("error")) == (status, code), answer.text
    problem: dict[str, Any] = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-request-id"]
    assert problem["status"] == status
    assert problem["type"]
    assert problem["title"]
    assert problem["detail"]
    return problem


def held(answer: httpx.Response, status: int = 201) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    data: dict[str, Any] = answer.json()["data"]
    return data


def reserve_path(event_id: str, seat_id: str) -> str:
    return f"/api/events/{event_id}/seats/{seat_id}/reserve"


async def first_seat(made: Stage, event_id: str) -> str:
    answer = await made.client.get(f"/api/events/{event_id}/seats?limit=1", headers=made.admin)
    seat_id: str = answer.json()["data"][0]["id"]
    return seat_id


async def seats_by_zone(made: Stage, event_id: str) -> dict[str, list[str]]:
    answer = await made.client.get(f"/api/events/{event_id}/seats?limit=1000", headers=made.admin)
    found: dict[str, list[str]] = {}
    for seat in answer.json()["data"]:
        found.setdefault(seat["zone"], []).append(seat["id"])
    return found


async def sell(made: Stage, *numbers: int) -> None:
    body = {"sessionId": "till", "seats": [{"id": made.seats[n]["booking_id"]} for n in numbers]}
    path = f"/api/private/v2.0/booking/directsale?eventId={made.event_id}"
    assert (await made.post(path, body, made.api_key)).json() is True


async def block(made: Stage, *numbers: int) -> None:
    body = {"seats": [made.seats[n]["id"] for n in numbers], "reason": "camera"}
    assert (await made.post(f"/api/events/{made.event_id}/seats/block", body)).status_code == 200


def restricted_config() -> dict[str, Any]:
    """A public zone of ten seats, and one of two seats for each other way of admitting people."""
    config = theatre_config(rows=1, seats_per_row=12)
    ways: list[dict[str, Any]] = [
        {"zone_id": "gold", "access_mode": "membership_tier", "required_tier": "gold"},
        {"zone_id": "crew", "access_mode": "role_based", "allowed_roles": ["scanner"]},
        {"zone_id": "friends", "access_mode": "whitelist"},
    ]
    for at, way in enumerate(ways):
        seats = [
            {"seat_id": f"{way['zone_id']}-{n}", "row": "Z", "number": n, "coordinates": {"x": n, "y": 200 + at}}
            for n in (1, 2)
        ]
        config["zones"].append(
            {"name": way["zone_id"].title(), "zone_type": "reserved_seating", "capacity": 2, "seats": seats, **way}
        )
    return config


# The checks, in their order -----------------------------------------------------------------------------------------
def test_a_request_of_a_wrong_shape_is_refused_before_anybody_asks_who_sent_it(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        good = made.seat_path(0)
        seat = made.seats[0]["id"]
        for path in (
            reserve_path("not-an-id", seat),
            reserve_path("z" * 36, seat),
            reserve_path(made.event_id.replace("-", ""), seat),
            reserve_path(made.event_id, "A-1"),
            reserve_path(made.event_id, "z" * 36),
            reserve_path(made.event_id, "0" * 36),
        ):
            refused(await made.client.post(path), 400, "invalid_request")
        for body in (
            b"{",
            b"[]",
            b"nonsense",
            b"\xff\xfe",
            b'{"source": "telegraph"}',
            b'{"source": 1}',
            b'{"holdType": 7}',
            b'{"holdType": ["CART"]}',
            b'{"hold_type": "CART"}',
            b'{"user_id": "x"}',
            b'{"holdType": "' + b"A" * 10_000 + b'"',
        ):
            answer = await made.client.post(good, content=body, headers={"Content-Type": "application/json"})
            refused(answer, 400, "invalid_request")
        refused(await made.client.post(good, content=b" " * 1_000_000), 413, "body_too_large")
        named = refused(await made.client.post(good, json={"seat": 1}), 400, "invalid_request")
        assert named["errors"][0]["pointer"] == "/seat"

    run(database, check)


def test_a_reserve_needs_a_credential_that_is_good_now(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        brief = await user(made, ttl_s=60)
        await made.advance_clock(61)
        for headers in (
            {},
            {"Authorization": "Bearer garbage"},
            {"Authorization": "Basic dXNlcjpwYXNz"},
            {"Authorization": made.admin["Authorization"] + "x"},
            bearer(brief.token),
            {"X-API-Key": "hf_nonsense"},
            {"X-API-Key": made.first.api_key[:-1] + ("a" if made.first.api_key[-1] != "a" else "b")},
            {**made.admin, **made.api_key},
        ):
            answer = await made.reserve(0, headers)
            refused(answer, 401, "unauthorized")
            assert answer.headers["www-authenticate"].startswith("Bearer")
        assert (await made.seat(0))["state"] == "available"

    run(database, check)


def test_only_a_published_or_live_event_can_be_reserved_in(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        buyer = await member(made)
        refused(
            await made.client.post(reserve_path(UNKNOWN, made.seats[0]["id"]), headers=buyer), 404, "event_not_found"
        )
        draft = await made.make_event(publish=False)
        answer = await made.client.post(reserve_path(draft, made.seats[0]["id"]), headers=buyer)
        assert refused(answer, 400, "event_not_available")["current_status"] == "draft"
        event = await made.make_event()
        seat = await first_seat(made, event)
        other_guest = await made.buyer()  # of the stage's event, and of no other
        refused(await made.client.post(reserve_path(event, seat), headers=other_guest), 404, "event_not_found")
        await made.post(f"/api/events/{event}/status", {"status": "live"})
        held(await made.client.post(reserve_path(event, seat), headers=buyer))
        await made.post(f"/api/events/{event}/status", {"status": "archived"})
        refused(await made.client.post(reserve_path(event, seat), headers=buyer), 400, "event_not_available")
        await made.post(f"/api/events/{made.event_id}/status", {"status": "cancelled"})
        refused(await made.reserve(0, buyer), 400, "event_unavailable")
        refused(await made.reserve(0, made.admin, holdType="RESERVED"), 400, "event_unavailable")

    run(database, check)


def test_the_sale_window_is_kept_by_the_databases_clock(database: TestDatabase) -> None:
    now = datetime.now(UTC)
    window = {
        "sale_start": (now + timedelta(hours=1)).isoformat(),
        "sale_end": (now + timedelta(hours=2)).isoformat(),
    }

    async def check(made: Stage) -> None:
        buyer = await member(made)
        refused(await made.reserve(0, buyer), 400, "event_sales_closed")
        refused(await made.reserve(0, made.admin), 400, "event_sales_closed")
        held(await made.reserve(9, made.admin, holdType="RESERVED"))  # an organiser's own holds come before the sale
        await made.advance_clock(3700)
        held(await made.reserve(0, await member(made)))
        await made.advance_clock(3600)  # what is remembered of the event says it is open; the writer knows better
        refused(await made.reserve(1, await member(made)), 400, "event_sales_closed")
        await asyncio.sleep(1)
        refused(await made.reserve(2, await member(made)), 400, "event_sales_closed")
        assert (await made.seat(1))["state"] == "available"

    run(database, check, event=window)


def test_each_way_of_admitting_people_refuses_and_admits(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        seats = await seats_by_zone(made, made.event_id)
        refused(
            await made.client.post(reserve_path(made.event_id, UNKNOWN), headers=await member(made)),
            404,
            "seat_not_found",
        )
        nobody = await member(made)
        for zone, mode in (("gold", "membership_tier"), ("crew", "role_based"), ("friends", "whitelist")):
            answer = await made.client.post(reserve_path(made.event_id, seats[zone][0]), headers=nobody)
            assert refused(answer, 403, "zone_access_denied")["access_mode"] == mode
        guest = await made.buyer()
        answer = await made.client.post(reserve_path(made.event_id, seats["gold"][0]), headers=guest)
        refused(answer, 403, "zone_access_denied")
        silver = await member(made, tiers=("silver",))
        answer = await made.client.post(reserve_path(made.event_id, seats["gold"][0]), headers=silver)
        refused(answer, 403, "zone_access_denied")
        gold, scanner = await member(made, tiers=("gold",)), await member(made, Role.SCANNER)
        held(await made.client.post(reserve_path(made.event_id, seats["gold"][0]), headers=gold))
        held(await made.client.post(reserve_path(made.event_id, seats["crew"][0]), headers=scanner))
        friend = await user(made)
        listed = f"/api/events/{made.event_id}/whitelist"
        await made.client.put(listed, headers=made.admin, json={"user_ids": [str(friend.user_id)]})
        held(await made.client.post(reserve_path(made.event_id, seats["friends"][0]), headers=bearer(friend.token)))
        await made.client.request("DELETE", listed, headers=made.admin, json={"user_ids": [str(friend.user_id)]})
        answer = await made.client.post(reserve_path(made.event_id, seats["friends"][1]), headers=bearer(friend.token))
        refused(answer, 403, "zone_access_denied")
        for zone in ("gold", "crew", "friends"):  # an organiser goes everywhere
            held(await made.client.post(reserve_path(made.event_id, seats[zone][1]), headers=made.admin))

    run(database, check, config=restricted_config())


def test_the_eleventh_hold_in_five_minutes_must_wait(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        buyer = await made.buyer()
        for n in range(10):
            held(await made.reserve(n, buyer))
        answer = await made.reserve(10, buyer)
        refused(answer, 429, "rate_limited")
        assert 1 <= int(answer.headers["retry-after"]) <= 300
        assert "r=0" in answer.headers["ratelimit"]
        assert answer.headers["ratelimit-remaining"] == "0"
        again = held(await made.reserve(3, buyer), 200)  # asking for one's own again places nothing
        assert again["seat_id"] == made.seats[3]["id"]
        held(await made.reserve(10, await made.buyer()))  # somebody else is not concerned
        for n in range(11, 25):
            held(await made.reserve(n, made.admin))  # nor is the organiser
        await made.advance_clock(int(answer.headers["retry-after"]) - 5)
        refused(await made.reserve(25, buyer), 429, "rate_limited")
        await made.advance_clock(6)
        held(await made.reserve(25, buyer))

    run(database, check)


def test_the_policy_says_how_many_holds_a_user_and_an_address_may_place(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        await made.client.put("/api/policy", headers=made.admin, json={"max_holds_per_user": 2})
        buyer = await made.buyer()
        held(await made.reserve(0, buyer))
        held(await made.reserve(1, buyer))
        refused(await made.reserve(2, buyer), 429, "rate_limited")
        refused(await made.hold(await made.buyer(), 3, 4, 5), 429, "rate_limited")
        await made.client.put(
            "/api/policy", headers=made.admin, json={"max_holds_per_ip": 2, "max_holds_per_user": None}
        )
        held(await made.reserve(2, await made.buyer()))
        held(await made.reserve(3, await made.buyer()))
        answer = await made.reserve(4, await made.buyer())
        refused(answer, 429, "rate_limited")
        assert 1 <= int(answer.headers["retry-after"]) <= 300
        held(await made.reserve(4, made.admin))
        await made.advance_clock(301)
        held(await made.reserve(5, await member(made)))

    run(database, check)


def test_a_taken_seat_says_what_it_is_and_when_it_may_come_free_but_never_whose(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        owner = await user(made)
        hold = held(await made.reserve(0, bearer(owner.token)))
        await sell(made, 1)
        await block(made, 2)
        await made.advance_clock(100)
        other = await member(made)
        problem = refused(await made.reserve(0, other), 409, "seat_held_by_another_user")
        assert 195 <= problem["expires_in"] <= 200
        assert problem["current_status"] == "held"
        assert problem["seat_id"] == made.seats[0]["id"]
        assert refused(await made.reserve(1, other), 409, "seat_not_available")["current_status"] == "sold"
        assert refused(await made.reserve(2, other), 409, "seat_not_available")["current_status"] == "blocked"
        await made.reserve(9, made.admin, holdType="RESERVED")
        assert refused(await made.reserve(9, other), 409, "seat_held_by_another_user")["expires_in"] is None

        seen = [
            await made.reserve(0, other),
            await made.hold(other, 0, 5),
            await made.client.get(f"/api/events/{made.event_id}/seats", headers=other),
            await made.client.get(f"/api/events/{made.event_id}/seats/{made.seats[0]['id']}", headers=other),
            await made.client.get(f"/api/holds/{hold['hold_id']}", headers=other),
            await made.client.delete(f"/api/holds/{hold['hold_id']}", headers=other),
            await made.client.post(f"/api/holds/{hold['hold_id']}/extend", headers=other),
        ]
        for answer in seen:
            assert str(owner.user_id) not in answer.text, answer.text
            assert "user_id" not in answer.text
        for answer in seen[:4]:
            assert hold["hold_id"] not in answer.text

    run(database, check)


def test_a_full_zone_says_how_many_places_are_left(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        held(await made.hold(await made.buyer(), ga=[{"zone_id": "pit", "quantity": 4}]))
        problem = refused(
            await made.hold(await made.buyer(), ga=[{"zone_id": "pit", "quantity": 2}]), 409, "block_at_capacity"
        )
        assert problem["available"] == 1
        held(await made.hold(await made.buyer(), ga=[{"zone_id": made.zones[0]["id"], "quantity": 1}]))
        problem = refused(
            await made.hold(await made.buyer(), ga=[{"zone_id": "pit", "quantity": 1}]), 409, "block_at_capacity"
        )
        assert (problem["available"], problem["zone_id"]) == (0, "pit")

    run(database, check, config=theatre_config(rows=1, ga_capacity=5))


def test_hold_types_must_be_known_valid_and_the_callers_to_place(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        config = {"holdTypes": {"GIFT": {"validStates": ["SOLD"]}, "FRIENDS": {"releaseApi": "CUSTOMER,ADMIN"}}}
        assert (await made.post("/api/organizations/config", config)).status_code == 200
        buyer = await made.buyer()
        assert "NOPE" in refused(await made.reserve(0, buyer, holdType="NOPE"), 400, "invalid_request")["detail"]
        refused(await made.reserve(0, made.admin, holdType="GIFT"), 400, "invalid_request")
        refused(await made.reserve(0, buyer, holdType="RESERVED"), 403, "hold_type_not_permitted")
        assert held(await made.reserve(0, buyer, holdType="FRIENDS"))["hold_type"] == "FRIENDS"
        assert (await made.seat(0))["hold_type"] == "FRIENDS"
        assert (
            held(await made.reserve(1, made.api_key, holdType="RESERVED", source="scanner"))["hold_type"] == "RESERVED"
        )

    run(database, check)


def test_where_several_checks_would_refuse_the_first_one_answers(database: TestDatabase) -> None:
    soon = (datetime.now(UTC) + timedelta(hours=1)).isoformat()

    async def check(made: Stage) -> None:
        client, nobody = made.client, await member(made)
        seats = await seats_by_zone(made, made.event_id)
        closed = await made.make_event(restricted_config(), sale_start=soon)
        closed_seats = await seats_by_zone(made, closed)
        draft = await made.make_event(publish=False, sale_start=soon)
        cancelled = await made.make_event(sale_start=soon)
        await made.post(f"/api/events/{cancelled}/status", {"status": "cancelled"})
        # shape · credential · event · its status · sale window · seat · zone access
        refused(await client.post(reserve_path("x", "y")), 400, "invalid_request")
        refused(await client.post(reserve_path(UNKNOWN, UNKNOWN), json={"nonsense": 1}), 400, "invalid_request")
        refused(await client.post(reserve_path(UNKNOWN, UNKNOWN)), 401, "unauthorized")
        refused(await client.post(reserve_path(UNKNOWN, UNKNOWN), headers=nobody), 404, "event_not_found")
        refused(await client.post(reserve_path(draft, UNKNOWN), headers=nobody), 400, "event_not_available")
        refused(await client.post(reserve_path(cancelled, UNKNOWN), headers=nobody), 400, "event_unavailable")
        refused(await client.post(reserve_path(closed, UNKNOWN), headers=nobody), 400, "event_sales_closed")
        answer = await client.post(reserve_path(closed, closed_seats["gold"][0]), headers=nobody)
        refused(answer, 400, "event_sales_closed")
        # zone access · rate limit · seat
        for n in range(10):
            held(await client.post(reserve_path(made.event_id, seats["stalls"][n]), headers=nobody))
        refused(
            await client.post(reserve_path(made.event_id, seats["gold"][0]), headers=nobody), 403, "zone_access_denied"
        )
        refused(await client.post(reserve_path(made.event_id, UNKNOWN), headers=nobody), 404, "seat_not_found")
        held(await client.post(reserve_path(made.event_id, seats["stalls"][10]), headers=made.admin))
        refused(
            await client.post(reserve_path(made.event_id, seats["stalls"][10]), headers=nobody), 429, "rate_limited"
        )
        # policy · seat
        answer = await made.hold(await member(made), *range(11))
        refused(answer, 422, "max_seats_exceeded")

    run(database, check, config=restricted_config())


# What success answers and writes --------------------------------------------------------------------------------------
def test_success_answers_everything_that_is_promised(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        buyer = await made.buyer()
        answer = await made.reserve(4, {**buyer, "X-Request-Id": "my-request-1"}, source="web", holdType="CART")
        hold = held(answer)
        assert set(hold) >= PROMISED
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-request-id"] == "my-request-1"
        seat = made.seats[4]
        assert (hold["seat_id"], hold["event_id"]) == (seat["id"], made.event_id)
        assert (hold["block_name"], hold["row"], hold["seat_number"]) == ("Stalls", seat["row"], seat["number"])
        assert (hold["status"], hold["hold_type"]) == ("held", "CART")
        until = datetime.fromisoformat(hold["held_until"])
        assert until.utcoffset() == timedelta(0)
        assert hold["held_until_unix"] == int(until.timestamp())
        assert hold["expires_in_seconds"] == 300
        assert "5 minutes" in hold["message"]

        await made.advance_clock(60)
        again = await made.reserve(4, buyer)
        assert again.headers["cache-control"] == "no-store"
        same = held(again, 200)
        assert (same["hold_id"], same["held_until"]) == (hold["hold_id"], hold["held_until"])
        assert 235 <= same["expires_in_seconds"] <= 240
        assert len(await made.sql("SELECT FROM holds")) == 1
        assert len(await seat_log(made, 4)) == 1

    run(database, check)


def test_one_success_writes_each_thing_once_and_a_refusal_only_its_own_audit_entry(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        issued = await user(made)
        before = await contents(made)
        headers = {**bearer(issued.token), "User-Agent": "picker/1.0", "X-Request-Id": "request-0001"}
        hold = held(await made.reserve(0, headers))
        after = await contents(made)
        grown = {table: len(after[table]) - len(rows) for table, rows in before.items()}
        assert grown == {
            "holds": 1,
            "event_seats": 0,
            "event_zones": 0,
            "seat_state_events": 1,
            "audit_entries": 1,
            "outbox": 1,
            "idempotency_keys": 0,
        }
        until = datetime.fromisoformat(hold["held_until"])
        row = await hold_row(made, hold["hold_id"])
        assert (row["status"], row["user_id"], row["held_until"]) == ("active", issued.user_id, until)
        assert (row["actor"], row["source"], row["hold_type"], row["quantity"]) == ("CUSTOMER", "web", "CART", 1)
        assert str(row["organization_id"]) == str(made.first.organization_id)
        seat = await seat_row(made, 0)
        assert (seat["state"], seat["version"], seat["held_until"]) == ("held", 1, until)
        assert (str(seat["hold_id"]), seat["locked_at"], seat["hold_type"]) == (
            hold["hold_id"],
            row["created_at"],
            "CART",
        )
        (move,) = await seat_log(made, 0)
        assert (move["verb"], move["old_state"], move["new_state"], move["version"]) == ("hold", "available", "held", 1)
        assert (move["actor"], move["user_id"], str(move["hold_id"])) == ("CUSTOMER", issued.user_id, hold["hold_id"])
        (entry,) = await made.sql("SELECT * FROM audit_entries WHERE action = 'seat_reserved'")
        assert (entry["ip"], entry["user_agent"], entry["request_id"]) == ("127.0.0.1", "picker/1.0", "request-0001")
        assert (str(entry["entity_id"]), entry["user_id"]) == (hold["hold_id"], issued.user_id)
        (message,) = await made.sql("SELECT * FROM outbox WHERE kind = 'SeatReserved'")
        assert (str(message["event_id"]), message["at"], message["payload"]) == (made.event_id, move["at"], None)
        assert (message["actor"], message["source"], message["state"]) == ("CUSTOMER", "web", "held")
        assert (message["hold_type"], message["held_until"]) == ("CART", until)
        assert (message["ordinals"], message["versions"]) == ([0], [1])
        assert (message["hold_ids"], message["user_ids"]) == ([row["id"]], [issued.user_id])
        assert (message["zone_no"], message["quantities"]) == (None, None)

        refused(await made.reserve(0, {**await made.buyer(), "User-Agent": "late/1"}), 409, "seat_held_by_another_user")
        refused(await made.client.post(reserve_path(made.event_id, UNKNOWN), headers=headers), 404, "seat_not_found")
        assert await contents(made) == after
        await made.app.refusals.write()
        entries = await made.sql("SELECT * FROM audit_entries WHERE action = 'seat_reserve_failed' ORDER BY id")
        assert [e["reason"] for e in entries] == ["seat_held_by_another_user", "seat_not_found"]
        assert (entries[0]["user_agent"], entries[0]["ip"]) == ("late/1", "127.0.0.1")
        assert (str(entries[1]["event_id"]), entries[1]["user_id"]) == (made.event_id, issued.user_id)

    run(database, check)


def test_of_many_who_want_one_seat_exactly_one_gets_it(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        buyers = [await made.buyer() for _ in range(40)]
        answers = await asyncio.gather(*(made.reserve(7, buyer) for buyer in buyers))
        won = [answer for answer in answers if answer.status_code == 201]
        assert len(won) == 1
        for answer in answers:
            if answer is not won[0]:
                refused(answer, 409, "seat_held_by_another_user")
        assert len(await seat_log(made, 7)) == 1
        twice = await asyncio.gather(*(made.reserve(8, buyers[0]) for _ in range(10)))
        assert sorted(answer.status_code for answer in twice) == [200] * 9 + [201]
        assert len({answer.json()["data"]["hold_id"] for answer in twice}) == 1

    run(database, check)


# How long a hold lasts ------------------------------------------------------------------------------------------------
def test_a_cart_lasts_as_long_as_the_first_that_says_so(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        numbers = iter(range(100))
        short = await made.make_event(overrides={"default_hold_ttl_minutes": 4})
        short_seats = (await seats_by_zone(made, short))["stalls"]

        async def native() -> int | None:
            seconds: int | None = held(await made.reserve(next(numbers), made.admin))["expires_in_seconds"]
            return seconds

        async def booking() -> int | None:
            session = str(uuid4())
            path = f"/api/private/v2.0/booking/lock?eventId={made.event_id}"
            body = {"sessionId": session, "seats": [{"id": made.seats[next(numbers)]["booking_id"]}]}
            assert (await made.post(path, body, made.api_key)).json() is True
            (row,) = await made.sql("SELECT held_until - created_at AS life FROM holds WHERE session_id = $1", session)
            return None if row["life"] is None else int(row["life"].total_seconds())

        async def overridden() -> int:
            path = reserve_path(short, short_seats[next(numbers)])
            seconds: int = held(await made.client.post(path, headers=made.admin))["expires_in_seconds"]
            return seconds

        assert (await native(), await booking(), await overridden()) == (300, 900, 240)
        assert (await made.client.put("/api/policy", headers=made.admin, json={})).status_code == 200
        assert (await native(), await booking(), await overridden()) == (600, 600, 240)
        await made.client.put("/api/policy", headers=made.admin, json={"default_hold_ttl_minutes": 7})
        assert (await native(), await booking(), await overridden()) == (420, 420, 240)
        tenant_key = {"X-API-Key": made.first.tenant_api_key or ""}
        carts = {"holdTypes": {"CART": {"ttlSeconds": 111}}}
        assert (await made.post("/api/tenants/config", carts, tenant_key)).status_code == 200
        assert (await native(), await booking(), await overridden()) == (111, 111, 240)
        await made.post("/api/organizations/config", {"holdTypes": {"CART": {"ttlSeconds": 77}}})
        assert (await native(), await booking(), await overridden()) == (77, 77, 240)
        await made.post("/api/organizations/config", {"holdTypes": {"CART": {"ttlSeconds": None}}})
        assert (await native(), await booking(), await overridden()) == (None, None, 240)
        await made.post("/api/organizations/config", {"holdTypes": {"CART": {"displayName": "Basket"}}})
        assert await native() == 111

    run(database, check)


def test_any_other_type_lasts_as_long_as_it_says_itself(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        types = {"COMP": {"ttlSeconds": 90}, "PARTNER_HOLD": {"ttlSeconds": None}, "PRESS": {}}
        await made.post("/api/organizations/config", {"holdTypes": types})
        await made.client.put("/api/policy", headers=made.admin, json={"default_hold_ttl_minutes": 7})
        assert held(await made.reserve(0, made.admin, holdType="COMP"))["expires_in_seconds"] == 90
        for n, name in enumerate(("PARTNER_HOLD", "PRESS", "RESERVED"), 1):
            hold = held(await made.reserve(n, made.admin, holdType=name))
            assert (hold["held_until"], hold["held_until_unix"], hold["expires_in_seconds"]) == (None, None, None)
            assert "until it is released" in hold["message"]
        await made.advance_clock(10 * 365 * 86_400)
        refused(await made.reserve(1, await member(made)), 409, "seat_held_by_another_user")
        held(await made.reserve(0, await member(made)))

    run(database, check)
