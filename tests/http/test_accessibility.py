"""Wheelchair seats and their companions', as buyers, organisers and viewers find them."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import httpx

from holdfast.live.codec import decode_snapshot
from holdfast.live.viewing import Watched
from tests.conftest import TestDatabase
from tests.factories import theatre_config, with_companions
from tests.http.test_booking_v2 import Till
from tests.http.test_live import Viewer, viewer
from tests.stage import Stage, stage

CHAIR, COMPANION = 0, 1
OTHER_CHAIR, OTHER_COMPANION = 10, 11
KEPT = "This seat is kept for the companion of a wheelchair user; it is offered to everyone when the zone is 85 % full."
FREE_FROM = 17  # of 20 places
ORDINARY = [*range(2, 10), *range(12, 20)]
EASY = {"orphan_avoidance_strict": False, "max_holds_per_user": None}


@asynccontextmanager
async def hall(database: TestDatabase, **overrides: Any) -> AsyncIterator[Stage]:
    """Twenty seats, two of them for wheelchairs."""
    config = with_companions(theatre_config(2, 10), (CHAIR, COMPANION), (OTHER_CHAIR, OTHER_COMPANION))
    async with stage(database, config, event={"overrides": {**EASY, **overrides}}) as made:
        yield made


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


async def seen(made: Stage, n: int, headers: dict[str, str]) -> dict[str, Any]:
    answer = await made.client.get(f"/api/events/{made.event_id}/seats/{made.seats[n]['id']}", headers=headers)
    found: dict[str, Any] = answer.json()["data"]
    return found


def kept(answer: httpx.Response) -> bool:
    """Whether it is the refusal of a kept seat; anything but that or a hold is a fault."""
    if answer.status_code in (200, 201):
        return False
    assert (answer.status_code, answer.json()["error"]) == (409, "seat_not_offered"), answer.text
    return True


async def fill(made: Stage, count: int) -> list[str]:
    """So many ordinary seats held, from the last one on, by somebody else each time."""
    holds: list[str] = []
    for n in ORDINARY[: -count - 1 : -1]:
        answer = await made.reserve(n, await made.buyer())
        assert answer.status_code == 201, answer.text
        assert "companions" not in answer.json()["data"]
        holds.append(answer.json()["data"]["hold_id"])
    return holds


async def audited(made: Stage) -> list[dict[str, Any]]:
    page = await made.client.get("/api/audit?action=accessible_booking", headers=made.admin)
    found: list[dict[str, Any]] = page.json()["data"]
    return found


# Kept -----------------------------------------------------------------------------------------------------------------
def test_a_wheelchair_seat_is_bought_alone_and_its_companions_seat_is_kept_for_the_buyer(
    database: TestDatabase,
) -> None:
    async def check() -> None:
        async with hall(database) as made:
            owner, stranger = await made.buyer(), await made.buyer()
            answer = await made.reserve(CHAIR, owner)
            assert answer.status_code == 201, answer.text
            hold = answer.json()["data"]
            (beside,) = hold["companions"]
            assert beside["seat_id"] == made.seats[COMPANION]["id"]
            assert (beside["label"], beside["row"], beside["number"], beside["offered"]) == ("A-2", "A", 2, True)
            assert beside["kept_until"] == hold["held_until"]
            assert beside["words"].startswith("Seat A-2 is kept for your companion until 20")
            assert hold["message"].endswith(beside["words"])
            again = await made.client.get(f"/api/holds/{hold['hold_id']}", headers=owner)
            assert again.json()["data"]["companions"] == [beside]

            refused = await made.reserve(COMPANION, stranger)
            assert kept(refused)
            assert refused.json()["detail"] == KEPT
            assert refused.json()["seat_id"] == made.seats[COMPANION]["id"]
            assert kept(await made.hold(stranger, COMPANION, 5))
            assert (await seen(made, 5, stranger))["state"] == "available"
            theirs, mine = await seen(made, COMPANION, stranger), await seen(made, COMPANION, owner)
            assert (theirs["state"], theirs["offered"], theirs["not_offered_because"]) == ("available", False, KEPT)
            assert (mine["state"], mine["offered"]) == ("available", True)
            assert "not_offered_because" not in mine
            listed = (await made.client.get(f"/api/events/{made.event_id}/seats", headers=stranger)).json()["data"]
            assert [seat["ordinal"] for seat in listed if not seat["offered"]] == [CHAIR, COMPANION]

            taken = await made.reserve(COMPANION, owner)
            assert taken.status_code == 201
            assert "companions" not in taken.json()["data"]
            (beside,) = (await made.client.get(f"/api/holds/{hold['hold_id']}", headers=owner)).json()["data"][
                "companions"
            ]
            assert beside["words"] == "Seat A-2, for your companion, is yours already."
            other = await made.reserve(COMPANION, stranger)
            assert other.json()["error"] == "seat_held_by_another_user"

    run(check())


def test_both_seats_are_held_in_one_cart_and_a_repeated_key_is_answered_alike(database: TestDatabase) -> None:
    async def check() -> None:
        async with hall(database) as made:
            owner = {**await made.buyer(), "Idempotency-Key": "cart-of-two"}
            answer = await made.hold(owner, COMPANION, CHAIR, 2)
            assert answer.status_code == 201, answer.text
            assert (await made.hold(owner, COMPANION, CHAIR, 2)).json()["data"] == answer.json()["data"]
            holds = {hold["seat_label"]: hold for hold in answer.json()["data"]["holds"]}
            assert [c["words"] for c in holds["A-1"]["companions"]] == [
                "Seat A-2, for your companion, is yours already."
            ]
            assert "companions" not in holds["A-2"]

    run(check())


def test_a_companions_seat_is_anybodys_while_the_wheelchair_seat_is_free(database: TestDatabase) -> None:
    async def check() -> None:
        async with hall(database) as made:
            owner, stranger = await made.buyer(), await made.buyer()
            assert not kept(await made.reserve(COMPANION, stranger))
            answer = await made.reserve(CHAIR, owner)
            (beside,) = answer.json()["data"]["companions"]
            assert beside["words"] == "Seat A-2, beside yours, is held."
            assert (beside["offered"], beside["kept_until"]) == (False, None)

    run(check())


def test_release_and_expiry_of_the_wheelchair_seat_lift_it(database: TestDatabase) -> None:
    async def check() -> None:
        async with hall(database) as made:
            owner, stranger = await made.buyer(), await made.buyer()
            hold = (await made.reserve(CHAIR, owner)).json()["data"]
            await made.reserve(OTHER_CHAIR, owner := await made.buyer())
            assert kept(await made.reserve(COMPANION, stranger))
            released = await made.client.delete(f"/api/holds/{hold['hold_id']}", headers=made.admin)
            assert released.status_code == 200, released.text
            assert not kept(await made.reserve(COMPANION, stranger))
            assert kept(await made.reserve(OTHER_COMPANION, stranger))
            await made.advance_clock(3600)  # and no sweeper runs here
            assert (await seen(made, OTHER_COMPANION, stranger))["offered"] is True
            assert not kept(await made.reserve(OTHER_COMPANION, stranger))

    run(check())


def test_at_the_threshold_the_seat_is_everybodys_and_below_it_is_kept_again(database: TestDatabase) -> None:
    async def check() -> None:
        async with hall(database) as made:
            owner, stranger = await made.buyer(), await made.buyer()
            chair = (await made.reserve(CHAIR, owner)).json()["data"]["hold_id"]
            holds = await fill(made, FREE_FROM - 2)
            assert kept(await made.reserve(COMPANION, stranger)), "one place below the threshold"
            await made.client.delete(f"/api/holds/{holds[-1]}", headers=made.admin)
            last = [await made.reserve(n, await made.buyer()) for n in (2, 3)]
            assert [answer.status_code for answer in last] == [201, 201]
            (beside,) = (await made.client.get(f"/api/holds/{chair}", headers=owner)).json()["data"]["companions"]
            assert beside["words"] == "Seat A-2, for your companion, is offered to everyone now: the zone is 85 % full."
            assert (await seen(made, COMPANION, stranger))["offered"] is True
            await made.client.delete(f"/api/holds/{last[0].json()['data']['hold_id']}", headers=made.admin)
            assert kept(await made.reserve(COMPANION, stranger))
            assert (await made.reserve(2, await made.buyer())).status_code == 201
            assert not kept(await made.reserve(COMPANION, stranger))

    run(check())


def test_without_the_rules_nothing_is_kept_limited_or_audited(database: TestDatabase) -> None:
    async def check() -> None:
        async with hall(database, enforce_accessibility_rules=False) as made:
            owner, stranger = await made.buyer(), await made.buyer()
            answer = await made.hold(owner, CHAIR, OTHER_CHAIR)
            assert answer.status_code == 201, answer.text
            assert all("companions" not in hold for hold in answer.json()["data"]["holds"])
            assert not kept(await made.reserve(COMPANION, stranger))
            assert await audited(made) == []

    run(check())


# How many -------------------------------------------------------------------------------------------------------------
def test_a_buyer_has_no_more_wheelchair_seats_than_the_policy_says(database: TestDatabase) -> None:
    async def check() -> None:
        async with hall(database) as made:
            owner = await made.buyer()
            both = await made.hold(owner, CHAIR, OTHER_CHAIR)
            assert (both.status_code, both.json()["error"]) == (422, "max_wheelchair_exceeded")
            assert both.json()["detail"] == "At most 1 wheelchair seat is allowed in one booking."
            assert (await made.reserve(CHAIR, owner)).status_code == 201
            assert (await made.reserve(CHAIR, owner)).status_code == 200
            second = await made.reserve(OTHER_CHAIR, owner)
            assert (second.status_code, second.json()["error"]) == (422, "max_wheelchair_exceeded")
            assert second.json()["detail"].endswith("You hold 1 already.")
            assert (await seen(made, OTHER_CHAIR, owner))["state"] == "available"
            staff = await made.hold(made.admin, OTHER_CHAIR, CHAIR)
            assert staff.json()["error"] == "seat_held_by_another_user", "organisers are not limited"

    run(check())


def test_two_requests_at_once_do_not_get_round_the_limit(database: TestDatabase) -> None:
    async def check() -> None:
        async with hall(database) as made:
            for _ in range(4):
                owner = await made.buyer()
                answers = await asyncio.gather(made.reserve(CHAIR, owner), made.reserve(OTHER_CHAIR, owner))
                assert sorted(answer.status_code for answer in answers) == [201, 422]
                for answer in answers:
                    if answer.status_code == 201:
                        await made.client.delete(f"/api/holds/{answer.json()['data']['hold_id']}", headers=owner)

    run(check())


# Organisers and booking v2 --------------------------------------------------------------------------------------------
def test_an_organisers_hold_may_take_a_kept_seat_and_the_log_says_so(database: TestDatabase) -> None:
    async def check() -> None:
        async with hall(database) as made:
            await made.reserve(CHAIR, await made.buyer())
            cart = await made.hold(made.admin, COMPANION)
            assert kept(cart), "a cart is a cart, whoever makes it"
            types = {"holdTypes": {"HOUSE": {"validStates": ["LOCKED"], "releaseApi": "ADMIN"}}}
            assert (await made.post("/api/organizations/config/", types)).status_code in (200, 201)
            answer = await made.hold(made.admin, COMPANION, 5, holdType="HOUSE")
            assert answer.status_code == 201, answer.text
            await made.reserve(OTHER_CHAIR, await made.buyer())
            ordinary = (await made.reserve(7, await made.buyer())).json()["data"]["hold_id"]
            move = {"moves": [{"hold_id": ordinary, "seat": made.seats[OTHER_COMPANION]["id"]}]}
            moved = await made.post(f"/api/events/{made.event_id}/holds/move", move)
            assert moved.status_code == 200, moved.text
            rows = await made.sql("SELECT ordinal, reason FROM seat_state_events WHERE verb = 'hold' ORDER BY id")
            noted = {row["ordinal"] for row in rows if row["reason"] is not None}
            assert noted == {COMPANION, OTHER_COMPANION}
            assert "kept for the companion" in next(row["reason"] for row in rows if row["ordinal"] == COMPANION)

    run(check())


def test_in_booking_v2_the_session_is_the_owner_of_what_it_locked_or_bought(database: TestDatabase) -> None:
    async def check() -> None:
        async with hall(database) as made:
            mine, theirs = Till(made, "s-mine"), Till(made, "s-theirs")
            assert await mine.does("lock", CHAIR)
            assert not await theirs.does("lock", COMPANION)
            assert not await theirs.does("directsale", COMPANION)
            assert await mine.does("sale", CHAIR)
            assert not await theirs.does("lock", COMPANION), "sold: it stays kept"
            assert kept(await made.reserve(COMPANION, await made.buyer()))
            assert await mine.does("lock", COMPANION)
            assert await mine.does("sale", COMPANION)

            assert await theirs.does("directsale", OTHER_CHAIR)
            assert not await mine.does("lock", OTHER_COMPANION)
            assert not await mine.does("directsale", OTHER_COMPANION, 5), "all or nothing"
            assert (await seen(made, 5, made.admin))["state"] == "available"
            assert await theirs.does("directsale", OTHER_COMPANION)
            assert await theirs.does("revertsale", OTHER_CHAIR, OTHER_COMPANION)
            assert await mine.does("directsale", OTHER_COMPANION), "the wheelchair seat is free: nothing is kept"

    run(check())


def test_after_a_sale_was_reverted_its_buyer_is_no_longer_the_owner(database: TestDatabase) -> None:
    async def check() -> None:
        async with hall(database) as made:
            first, second = Till(made, "s-1"), Till(made, "s-2")
            assert await first.does("lock", CHAIR)
            assert await first.does("sale", CHAIR)
            assert await first.does("revertsale", CHAIR)
            assert await second.does("directsale", CHAIR)
            assert not await first.does("lock", COMPANION)
            assert await second.does("lock", COMPANION)

    run(check())


# Audit ----------------------------------------------------------------------------------------------------------------
def test_every_accessible_booking_is_audited(database: TestDatabase) -> None:
    async def check() -> None:
        async with hall(database) as made:
            owner, stranger = await made.buyer(), await made.buyer()
            assert not kept(await made.reserve(OTHER_COMPANION, stranger))  # no companion of anybody's
            assert await audited(made) == []
            hold = (await made.reserve(CHAIR, owner)).json()["data"]["hold_id"]
            assert (await made.reserve(CHAIR, owner)).status_code == 200  # nothing new
            assert kept(await made.reserve(COMPANION, stranger))
            (entry,) = await audited(made)
            assert (entry["entity_type"], entry["entity_id"], entry["event_id"]) == ("SeatHold", hold, made.event_id)
            assert entry["changes"]["wheelchair_ordinals"] == [CHAIR]
            assert entry["user_id"] is not None
            assert (await made.reserve(COMPANION, owner)).status_code == 201
            assert (await audited(made))[0]["changes"]["companion_ordinals"] == [COMPANION]
            assert await Till(made, "s-1").does("directsale", OTHER_CHAIR)
            assert (await audited(made))[0]["changes"]["session_id"] == "s-1"
            assert len(await audited(made)) == 3

    run(check())


def test_accessible_bookings_are_not_audited_where_the_policy_does_not_want_it(database: TestDatabase) -> None:
    async def check() -> None:
        async with hall(database, accessibility_audit_enabled=False) as made:
            assert (await made.hold(await made.buyer(), CHAIR, COMPANION)).status_code == 201
            assert await Till(made, "s-1").does("directsale", OTHER_CHAIR)
            assert await audited(made) == []

    run(check())


# Live -----------------------------------------------------------------------------------------------------------------
async def load(made: Stage, headers: dict[str, str]) -> Watched:
    said = {**headers, "Accept": "application/octet-stream"}
    answer = await made.client.get(f"/api/events/{made.event_id}/availability", headers=said)
    watched = Watched()
    watched.load(answer.content)
    return watched


async def hear(watched: Watched, watching: Viewer, until: list[int]) -> None:
    """Takes in what comes until these seats, and no others, are not offered."""
    async with asyncio.timeout(5):
        while watched.not_offered != until:
            message = await watching.next("seats")
            fields = {name: message.get(name, []) for name in ("ordinals", "values", "versions", "hold_types")}
            watched.hear("seats", message["id"], _json(fields))


def _json(fields: dict[str, Any]) -> bytes:
    return httpx.Request("POST", "http://x", json=fields).content


def test_viewers_see_what_is_kept_from_the_first_hold_over_the_threshold_and_back(database: TestDatabase) -> None:
    async def check() -> None:
        async with hall(database) as made:
            guest = await made.buyer()
            watched = await load(made, guest)
            assert watched.not_offered == []
            async with viewer(made.client, made.event_id, guest, last_event_id=watched.last_id or "") as watching:
                chair = (await made.reserve(CHAIR, await made.buyer())).json()["data"]["hold_id"]
                await hear(watched, watching, [COMPANION])
                assert watched.states[COMPANION] == 0
                holds = await fill(made, FREE_FROM - 2)
                assert (await load(made, guest)).not_offered == [COMPANION]
                last = (await made.reserve(2, await made.buyer())).json()["data"]["hold_id"]
                await hear(watched, watching, [])
                await made.client.delete(f"/api/holds/{last}", headers=made.admin)
                await hear(watched, watching, [COMPANION])
                await made.client.delete(f"/api/holds/{holds[0]}", headers=made.admin)
                await made.client.delete(f"/api/holds/{chair}", headers=made.admin)
                await hear(watched, watching, [])

    run(check())


def test_the_snapshot_says_in_words_why_a_seat_is_not_offered(database: TestDatabase) -> None:
    async def check() -> None:
        async with hall(database) as made:
            guest = await made.buyer()
            before = await made.client.get(f"/api/events/{made.event_id}/availability", headers=guest)
            assert (before.json()["data"]["not_offered"], before.json()["data"]["not_offered_because"]) == ([], None)
            await made.reserve(CHAIR, await made.buyer())
            await made.app.feed.caught_up()
            await asyncio.sleep(0.15)  # a snapshot is good for a tenth of a second
            after = await made.client.get(f"/api/events/{made.event_id}/availability", headers=guest)
            said = after.json()["data"]
            assert (said["not_offered"], said["not_offered_because"]) == ([COMPANION], KEPT)
            assert after.headers["etag"] != before.headers["etag"]
            raw = {**guest, "Accept": "application/octet-stream"}
            binary = await made.client.get(f"/api/events/{made.event_id}/availability", headers=raw)
            read = decode_snapshot(binary.content)
            assert read.not_offered_because == KEPT
            assert (read.not_offered(COMPANION), read.state(COMPANION)) == (True, "available")

    run(check())


def test_a_viewer_who_comes_back_hears_what_is_kept_by_now(database: TestDatabase) -> None:
    async def check() -> None:
        async with hall(database) as made:
            guest = await made.buyer()
            watched = await load(made, guest)
            await made.reserve(CHAIR, await made.buyer())
            await made.app.feed.caught_up()
            async with viewer(made.client, made.event_id, guest, last_event_id=watched.last_id or "") as watching:
                await hear(watched, watching, [COMPANION])

    run(check())


def test_a_change_of_policy_is_seen_by_those_who_only_watch(database: TestDatabase) -> None:
    async def check() -> None:
        async with hall(database) as made:
            guest = await made.buyer()
            await made.reserve(CHAIR, await made.buyer())
            await made.app.feed.caught_up()
            watched = await load(made, guest)
            assert watched.not_offered == [COMPANION]
            async with viewer(made.client, made.event_id, guest, last_event_id=watched.last_id or "") as watching:
                path = f"/api/events/{made.event_id}"
                for overrides, expected in (
                    ({**EASY, "companion_release_occupancy_threshold": 5}, []),
                    (EASY, [COMPANION]),
                    ({**EASY, "enforce_accessibility_rules": False}, []),
                ):
                    answer = await made.client.patch(path, json={"overrides": overrides}, headers=made.admin)
                    assert answer.status_code == 200, answer.text
                    await hear(watched, watching, expected)

    run(check())


def test_how_many_seats_are_kept_is_counted(database: TestDatabase) -> None:
    async def check() -> None:
        async with hall(database) as made:
            await load(made, await made.buyer())
            await made.reserve(CHAIR, await made.buyer())
            await made.app.feed.caught_up()
            figures = (await made.client.get("/metrics")).text
            assert "holdfast_companions_soft_reserved 1.0" in figures

    run(check())
