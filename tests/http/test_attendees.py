"""Bookings for friends, and who is let into which zone: what is asked of whom, what is told, and what is kept."""

import asyncio
from contextlib import suppress
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import httpx

from holdfast.accounts.principal import Role
from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.http.client import bearer
from tests.http.contents import contents, hold_row, member, user
from tests.http.test_reserve import held, refused, reserve_path, restricted_config, run, seats_by_zone, sell
from tests.stage import Stage

DENIED = "SELECT FROM audit_entries WHERE action = 'zone_access_denied'"
FREE = {"overrides": {"orphan_avoidance_strict": False}}


def house() -> dict[str, Any]:
    """A public zone, one for each other way of admitting people, and a counted zone for gold members."""
    config = restricted_config()
    gold = {"access_mode": "membership_tier", "required_tier": "gold", "zone_type": "ga_standing", "capacity": 5}
    config["zones"].append({"zone_id": "lounge", "name": "Lounge", **gold})
    config["zones"].append({"zone_id": "pit", "name": "Pit", "zone_type": "ga_standing", "capacity": 5})
    return config


async def person(made: Stage, **fields: Any) -> str:
    answer = await made.post("/api/users", fields)
    assert answer.status_code == 201, answer.text
    user_id: str = answer.json()["data"]["id"]
    return user_id


async def book(made: Stage, headers: dict[str, str], seats: list[str], **body: Any) -> httpx.Response:
    return await made.client.post(f"/api/events/{made.event_id}/holds", headers=headers, json={"seats": seats, **body})


async def membership_of(made: Stage, user_id: str) -> UUID:
    (row,) = await made.sql("SELECT id FROM memberships WHERE user_id = $1", UUID(user_id))
    membership: UUID = row["id"]
    return membership


def test_friends_who_qualify_are_booked_and_kept_with_the_hold(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        seats = await seats_by_zone(made, made.event_id)
        ada = await person(made, tiers=["gold"], email="ada@example.org")
        eve = await person(made, tiers=["gold"])
        of_ada, of_eve = await membership_of(made, ada), await membership_of(made, eve)
        buyer = await user(made)  # has no tier, and needs none for a seat that is somebody else's
        headers = bearer(buyer.token)
        wanted = [seats["gold"][1], seats["stalls"][3], seats["gold"][0], seats["stalls"][2], seats["stalls"][1]]
        attendees = [{"email": "ADA@example.org"}, {"name": "Uncle Bob"}, {"membership_id": str(of_eve)}, None]
        data = held(await book(made, headers, wanted, attendees=attendees))
        by_seat = {hold["seat_id"]: hold for hold in data["holds"]}
        rows = {seat: await hold_row(made, by_seat[seat]["hold_id"]) for seat in wanted}
        kept = [
            (rows[s]["attendee_user_id"], rows[s]["attendee_name"], rows[s]["associated_membership_id"]) for s in wanted
        ]
        assert kept == [
            (UUID(ada), "ADA@example.org", of_ada),
            (None, "Uncle Bob", None),
            (UUID(eve), None, of_eve),
            (None, None, None),
            (None, None, None),
        ]
        assert {row["user_id"] for row in rows.values()} == {buyer.user_id}
        # The buyer sees what they said; whose the address is, staff see.
        mine = (await made.client.get("/api/holds", headers=headers)).json()["data"]
        for holds in (data["holds"], mine):
            seen = {h["seat_id"]: (h["attendee_user_id"], h["attendee_name"]) for h in holds}
            assert [seen[s] for s in wanted[:3]] == [(None, "ADA@example.org"), (None, "Uncle Bob"), (eve, None)]
            assert {h["associated_membership_id"] for h in holds} == {None}
        path = f"/api/events/{made.event_id}/holds"
        staff = {h["seat_id"]: h for h in (await made.client.get(path, headers=made.admin)).json()["data"]}
        assert staff[wanted[0]]["attendee_user_id"] == ada
        assert staff[wanted[0]]["associated_membership_id"] == str(of_ada)
        # Asking again for one's own seats names somebody else, or nobody.
        again = held(await book(made, headers, wanted[:2], attendees=[{"user_id": eve}, None]), 200)
        assert {h["hold_id"] for h in again["holds"]} <= {h["hold_id"] for h in data["holds"]}
        row = await hold_row(made, by_seat[wanted[0]]["hold_id"])
        assert (row["attendee_user_id"], row["attendee_name"]) == (UUID(eve), None)
        assert (await hold_row(made, by_seat[wanted[1]]["hold_id"]))["attendee_name"] is None
        # An organiser who moves a hold moves the attendee with it.
        moves = [{"hold_id": by_seat[wanted[0]]["hold_id"], "seat": seats["friends"][0]}]
        (moved,) = held(await made.post(f"{path}/move", {"moves": moves}), 200)["holds"]
        row = await hold_row(made, moved["hold_id"])
        assert (row["attendee_user_id"], row["associated_membership_id"]) == (UUID(eve), of_eve)
        assert (moved["attendee_user_id"], moved["associated_membership_id"]) == (eve, str(of_eve))

    run(database, check, config=house(), event=FREE)


def test_all_who_do_not_qualify_are_listed_nothing_is_held_and_nothing_more_is_told(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        seats = await seats_by_zone(made, made.event_id)
        silver = await person(made, tiers=["silver"], email="silver@example.org")
        closed = await person(made, tiers=["gold"], email="closed@example.org")
        await made.client.patch(f"/api/users/{closed}", headers=made.admin, json={"active": False})
        gold = await person(made, tiers=["gold"])
        headers = await member(made)
        before = await contents(made)
        answers = []
        for who in (
            {"user_id": silver},
            {"email": "silver@example.org"},
            {"user_id": closed},
            {"email": "closed@example.org"},
            {"user_id": str(uuid4())},
            {"membership_id": str(uuid4())},
            {"email": "unknown@example.org"},
            {"name": "Ada"},
            None,
        ):
            answer = await book(made, headers, [seats["gold"][0]], attendees=[who])
            problem = refused(answer, 403, "zone_access_denied")
            assert problem["access_mode"] == "membership_tier"
            answers.append(answer.text)
        assert len(set(answers)) == 1  # the same to the letter, whoever it was and why
        for secret in ("silver", "closed", "example", "active"):
            assert secret not in answers[0]
        problem = refused(
            await book(
                made,
                headers,
                [seats["gold"][0], seats["friends"][0], seats["gold"][1], seats["stalls"][0], seats["crew"][0]],
                attendees=[{"user_id": gold}, {"user_id": gold}, {"user_id": silver}, {"user_id": silver}],
                ga=[{"zone_id": "lounge", "quantity": 2}],
            ),
            403,
            "zone_access_denied",
        )
        listed = [(entry["index"], entry["access_mode"], entry["zone"]) for entry in problem["attendees"]]
        assert listed == [
            (1, "whitelist", "friends"),
            (2, "membership_tier", "gold"),
            (4, "role_based", "crew"),  # this and the lounge are the buyer's own
            (5, "membership_tier", "lounge"),
        ]
        assert await contents(made) == before
        # Whoever is on the event's list sits anywhere.
        await made.client.put(
            f"/api/events/{made.event_id}/whitelist", headers=made.admin, json={"user_ids": [silver, gold]}
        )
        held(
            await book(
                made,
                headers,
                [seats["gold"][0], seats["friends"][0]],
                attendees=[{"user_id": silver}, {"email": "silver@example.org"}],
            )
        )

    run(database, check, config=house(), event=FREE)


def test_in_a_public_zone_a_known_address_is_answered_like_an_unknown_one(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        seats = (await seats_by_zone(made, made.event_id))["stalls"]
        await person(made, email="known@example.org")
        buyer = await member(made)
        known, unknown = [
            held(await book(made, buyer, [seat], attendees=[{"email": email}]))["holds"][0]
            for seat, email in ((seats[0], "known@example.org"), (seats[2], "other@example.org"))
        ]
        told = [(h["attendee_user_id"], h["associated_membership_id"]) for h in (known, unknown)]
        assert told == [(None, None), (None, None)]
        assert (await hold_row(made, known["hold_id"]))["attendee_user_id"] is not None
        assert (await hold_row(made, unknown["hold_id"]))["attendee_name"] == "other@example.org"
        # An organiser is told that there is nobody.
        problem = refused(
            await book(
                made, made.admin, seats[4:6], attendees=[{"email": "x@example.org"}, {"membership_id": str(uuid4())}]
            ),
            400,
            "invalid_request",
        )
        assert [e["pointer"] for e in problem["errors"]] == ["/attendees/0", "/attendees/1"]

    run(database, check, config=house(), event=FREE)


def test_attendees_of_counted_places_have_a_hold_each_and_the_rest_is_one(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        gold = await person(made, tiers=["gold"])
        buyer = await user(made)
        headers = bearer(buyer.token)
        both = [{"zone_id": "lounge", "quantity": 2}, {"zone_id": "pit", "quantity": 4}]
        attendees = [{"user_id": gold}, {"user_id": gold}, None, {"name": "Bob"}]
        data = held(await book(made, headers, [], ga=both, attendees=attendees))
        seen = sorted((h["zone_id"], h["quantity"], h["attendee_name"] or "") for h in data["holds"])
        assert seen == [("lounge", 1, ""), ("lounge", 1, ""), ("pit", 1, "Bob"), ("pit", 3, "")]
        zones = await made.sql("SELECT held, version FROM event_zones ORDER BY zone_no")
        assert [tuple(zone) for zone in zones] == [(2, 2), (4, 2)]
        # The zone has five places: two named people do not fit into the one that is left, and nobody gets in.
        other = await member(made)
        before = await contents(made)
        answer = await book(
            made, other, [], ga=[{"zone_id": "pit", "quantity": 2}], attendees=[{"name": "A"}, {"name": "B"}]
        )
        assert refused(answer, 409, "block_at_capacity")["available"] == 1
        assert await contents(made) == before
        held(await book(made, other, [], ga=[{"zone_id": "pit", "quantity": 1}], attendees=[{"name": "A"}]))

    run(database, check, config=house(), event=FREE)


def test_a_booking_for_friends_that_fails_leaves_nothing(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        gold = await person(made, tiers=["gold"])
        await sell(made, 1)
        headers = {**await member(made), "Idempotency-Key": "friends-1"}
        before = await contents(made)
        wanted = [made.seats[0]["id"], made.seats[1]["id"]]
        refused(await book(made, headers, wanted, attendees=[{"user_id": gold}]), 409, "seat_not_available")
        assert await contents(made) == before
        first = held(await book(made, headers, [made.seats[3]["id"]], attendees=[{"user_id": gold}]))
        again = held(await book(made, headers, [made.seats[3]["id"]], attendees=[{"user_id": gold}]))
        assert first == again
        refused(
            await book(made, headers, [made.seats[3]["id"]], attendees=[{"name": "Z"}]), 422, "idempotency_key_reused"
        )

    run(database, check, config=house(), event=FREE)


def test_bad_attendees_are_named_all_at_once_and_change_nothing(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        headers = await member(made)
        seats = [made.seats[n]["id"] for n in range(6)]
        before = await contents(made)
        attendees = [
            {"user_id": "me"},
            {},
            {"user_id": str(uuid4()), "name": "Ada"},
            {"email": "nobody"},
            {"name": " "},
            {"name": "n" * 321},
        ]
        problem = refused(await book(made, headers, seats, attendees=attendees), 400, "invalid_request")
        assert [(e["pointer"], e["code"]) for e in problem["errors"]] == [
            ("/attendees/0/user_id", "not_an_id"),
            ("/attendees/1", "one_of"),
            ("/attendees/2", "one_of"),
            ("/attendees/3/email", "not_an_email"),
            ("/attendees/4/name", "empty"),
            ("/attendees/5/name", "too_long"),
        ]
        problem = refused(await book(made, headers, seats[:1], attendees=[None, None]), 400, "invalid_request")
        assert problem["errors"][0]["pointer"] == "/attendees/1"
        for bad in ([{"phone": "1"}], {"user_id": "x"}, ["Ada"], [{"name": 5}], [{"name": "a\x00b"}]):
            refused(await book(made, headers, seats, attendees=bad), 400, "invalid_request")
        assert await contents(made) == before

    run(database, check, config=house(), event=FREE)


# Who is let in --------------------------------------------------------------------------------------------------------
def test_whoever_is_kept_out_is_in_the_audit_with_mode_zone_and_reason_however_little_is_sampled(
    database: TestDatabase,
) -> None:
    async def check(made: Stage) -> None:
        seats = await seats_by_zone(made, made.event_id)
        nobody = await user(made)
        headers = bearer(nobody.token)
        expected = [("membership_tier", "gold"), ("role_based", "crew"), ("whitelist", "friends")]
        reasons = []
        for mode, zone in expected:
            for answer in (
                await made.client.post(reserve_path(made.event_id, seats[zone][0]), headers=headers),
                await book(made, headers, [seats["stalls"][0], seats[zone][0]]),
            ):
                problem = refused(answer, 403, "zone_access_denied")
                assert (problem["access_mode"], problem["zone"]) == (mode, zone)
                reasons.append(problem["detail"])
        answer = await book(made, headers, [], ga=[{"zone_id": "lounge", "quantity": 1}])
        reasons.append(refused(answer, 403, "zone_access_denied")["detail"])
        refused(
            await made.client.post(reserve_path(made.event_id, str(uuid4())), headers=headers), 404, "seat_not_found"
        )
        await made.app.refusals.write()
        path = f"/api/audit?event_id={made.event_id}&user_id={nobody.user_id}"
        entries = (await made.client.get(path, headers=made.admin)).json()["data"][::-1]
        assert [entry["action"] for entry in entries] == ["zone_access_denied"] * 7
        assert [entry["reason"] for entry in entries] == reasons
        modes = [(entry["changes"]["access_mode"], entry["changes"]["zone"]) for entry in entries]
        assert modes == [pair for pair in expected for _ in range(2)] + [("membership_tier", "lounge")]
        assert {entry["entity_type"] for entry in entries} == {"Zone"}
        assert entries[0]["ip"] == "127.0.0.1"
        # Those who may do everything are not asked: organisers, and the API keys that booking v2 is called with.
        held(await made.client.post(reserve_path(made.event_id, seats["gold"][0]), headers=made.admin))
        held(await made.client.post(reserve_path(made.event_id, seats["crew"][0]), headers=made.api_key))
        by_id = {seat["id"]: seat["booking_id"] for seat in made.seats}
        for call, zone in (("lock", "friends"), ("directsale", "gold")):
            body = {"sessionId": "till", "seats": [{"id": by_id[seats[zone][1]]}]}
            booking = f"/api/private/v2.0/booking/{call}?eventId={made.event_id}"
            assert (await made.post(booking, body, made.api_key)).json() is True

    run(database, check, config=house(), event=FREE, failure_audit_sample=0.0)


def test_a_refusal_that_could_not_be_written_is_written_later(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        seats = await seats_by_zone(made, made.event_id)
        await made.sql("REVOKE INSERT ON audit_entries FROM holdfast_app")
        for n in (0, 1):
            answer = await made.client.post(reserve_path(made.event_id, seats["gold"][n]), headers=await made.buyer())
            refused(answer, 403, "zone_access_denied")
        with suppress(asyncpg.InsufficientPrivilegeError):  # or the background duty met it first
            await made.app.refusals.write()
        assert await made.sql(DENIED) == []
        await made.sql("GRANT INSERT ON audit_entries TO holdfast_app")
        async with asyncio.timeout(10):
            while len(await made.sql(DENIED)) < 2:
                await made.app.refusals.write()
                await asyncio.sleep(0.02)

    run(database, check, config=house(), event=FREE)


def test_what_is_taken_from_a_member_counts_at_once_even_where_the_credential_is_remembered(
    database: TestDatabase,
) -> None:
    async def check(made: Stage) -> None:
        seats = await seats_by_zone(made, made.event_id)
        gold, scanner, lapsed = (
            await user(made, tiers=("gold",)),
            await user(made, Role.SCANNER),
            await user(made, tiers=("gold",)),
        )
        for one in (gold, scanner, lapsed):  # each credential is remembered from here
            assert (await made.client.get("/api/me", headers=bearer(one.token))).status_code == 200
        # As another process would: this one hears nothing of it.
        await made.sql("UPDATE memberships SET tiers = '{silver}' WHERE user_id = $1", gold.user_id)
        await made.sql("UPDATE memberships SET role = 'customer' WHERE user_id = $1", scanner.user_id)
        await made.sql("UPDATE memberships SET active = false WHERE user_id = $1", lapsed.user_id)
        for one, zone in ((gold, "gold"), (scanner, "crew"), (lapsed, "gold")):
            answer = await made.client.post(reserve_path(made.event_id, seats[zone][0]), headers=bearer(one.token))
            refused(answer, 403, "zone_access_denied")
        await made.sql("UPDATE memberships SET tiers = '{gold}' WHERE user_id = $1", gold.user_id)
        held(await made.client.post(reserve_path(made.event_id, seats["gold"][0]), headers=bearer(gold.token)))
        # The token names its tiers too; they are not what counts.
        await made.client.patch(f"/api/users/{gold.user_id}", headers=made.admin, json={"tiers": []})
        answer = await made.client.post(reserve_path(made.event_id, seats["gold"][1]), headers=bearer(gold.token))
        refused(answer, 403, "zone_access_denied")
        await made.client.patch(f"/api/users/{gold.user_id}", headers=made.admin, json={"active": False})
        answer = await made.client.post(reserve_path(made.event_id, seats["gold"][1]), headers=bearer(gold.token))
        refused(answer, 401, "unauthorized")

    run(database, check, config=house(), event=FREE)


def test_naming_friends_costs_a_plain_booking_nothing(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        data = held(await made.hold(await made.buyer(), 0, 1))
        for hold in data["holds"]:
            row = await hold_row(made, hold["hold_id"])
            assert (row["attendee_user_id"], row["attendee_name"], row["associated_membership_id"]) == (None,) * 3

    run(database, check, config=theatre_config(), event=FREE)
