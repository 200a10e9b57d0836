"""Groups of seats over HTTP: tables sold whole, the organiser's blocks, and groups that are only advice."""

import asyncio
from typing import Any

import httpx
import pytest

from holdfast.holds import service
from holdfast.store.postgres.seat_facts import free_among
from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.http.client import bearer
from tests.http.contents import contents, member, user
from tests.http.test_reserve import held, refused, run, sell
from tests.stage import Stage

FREE = {"overrides": {"orphan_avoidance_strict": False, "max_holds_per_user": None}}


def tables() -> dict[str, Any]:
    """Two rows of ten: a table A-1…A-4, the organiser's A-5 and A-6, a family's A-7 and A-8, a pair A-9 and A-10."""
    config = theatre_config(2, 10, ga_capacity=10)
    config["groups"] = [
        {"group_id": "t1", "group_type": "vip_table", "seat_ids": ["A-1", "A-2", "A-3", "A-4"]},
        {"group_id": "r1", "group_type": "reserved_block", "seat_ids": ["A-5", "A-6"]},
        {"group_id": "f1", "group_type": "family_block", "seat_ids": ["A-7", "A-8"]},
        {"group_id": "w1", "group_type": "wheelchair_pair", "seat_ids": ["A-9", "A-10"]},
    ]
    return config


async def book(made: Stage, headers: dict[str, str], **body: Any) -> httpx.Response:
    return await made.client.post(f"/api/events/{made.event_id}/holds", headers=headers, json=body)


def test_an_events_groups_are_shown_with_what_they_ask(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        for headers in (made.admin, await made.buyer()):
            answer = await made.client.get(f"/api/events/{made.event_id}/groups", headers=headers)
            assert answer.status_code == 200, answer.text
            shown = {group["group_id"]: group for group in answer.json()["data"]}
            assert {name: (g["group_type"], g["sold_whole"], g["for_buyers"]) for name, g in shown.items()} == {
                "t1": ("vip_table", True, True),
                "r1": ("reserved_block", False, False),
                "f1": ("family_block", False, True),
                "w1": ("wheelchair_pair", False, True),
            }
            assert shown["r1"]["zone"] == "stalls"
            assert [(s["seat_id"], s["id"], s["ordinal"]) for s in shown["r1"]["seats"]] == [
                ("A-5", made.seats[4]["id"], 4),
                ("A-6", made.seats[5]["id"], 5),
            ]
        draft = await made.make_event(tables(), publish=False)
        answer = await made.client.get(f"/api/events/{draft}/groups", headers=await member(made))
        refused(answer, 404, "event_not_found")

    run(database, check, config=tables(), event=FREE)


def test_a_table_is_held_whole_or_not_at_all(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        buyer, other = await made.buyer(), await member(made)
        before = await contents(made)
        for answer, missing in (
            (await made.reserve(0, buyer), ["A-2", "A-3", "A-4"]),
            (await made.hold(buyer, 1, 2, 3), ["A-1"]),
            (await made.hold(buyer, 12, 1), ["A-1", "A-3", "A-4"]),
            (await made.hold({**buyer, "Idempotency-Key": "part"}, 0), ["A-2", "A-3", "A-4"]),
        ):
            problem = refused(answer, 409, "group_incomplete")
            assert (problem["group"], problem["missing_seat_ids"]) == ("t1", missing)
            assert all(seat in {s["id"] for s in made.seats} for seat in problem["missing"])
        assert await contents(made) == before
        data = held(await made.hold(buyer, 3, 2, 1, 0, 12))
        assert [hold["seat_label"] for hold in data["holds"]] == ["A-1", "A-2", "A-3", "A-4", "B-3"]
        # What one has counts: one seat of one's own table is asked for again as any other is.
        held(await made.reserve(2, buyer), 200)
        refused(await made.reserve(2, other), 409, "seat_held_by_another_user")
        # Where the organiser has taken part of a table, the rest of it is what is sold.
        await made.client.delete(f"/api/holds/{data['holds'][0]['hold_id']}", headers=buyer)
        held(await made.reserve(0, other))

    run(database, check, config=tables(), event=FREE)


def test_what_is_left_of_a_table_must_be_taken_together(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        await sell(made, 0)
        held(await made.hold(made.admin, 1))  # no rule for organisers
        buyer = await made.buyer()
        assert refused(await made.reserve(2, buyer), 409, "group_incomplete")["missing_seat_ids"] == ["A-4"]
        # The hold of the second seat is over though nobody swept it: then it is wanted too.
        await made.advance_clock(301)
        fresh = await member(made)
        problem = refused(await made.hold(fresh, 2, 3), 409, "group_incomplete")
        assert problem["missing_seat_ids"] == ["A-2"]
        held(await made.hold(fresh, 1, 2, 3))

    run(database, check, config=tables(), event=FREE)


def test_the_organisers_block_is_not_for_buyers(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        buyer = await made.buyer()
        before = await contents(made)
        for answer in (
            await made.reserve(4, buyer),
            await made.hold(buyer, 12, 5, 4),
            await book(made, buyer, groups=["r1"]),
        ):
            problem = refused(answer, 403, "group_reserved")
            assert problem["groups"] == ["r1"]
        assert await contents(made) == before
        data = held(await book(made, made.admin, groups=["r1", "f1"]))
        assert [hold["seat_label"] for hold in data["holds"]] == ["A-5", "A-6", "A-7", "A-8"]
        refused(await made.reserve(4, buyer), 403, "group_reserved")  # said before what the seat is

    run(database, check, config=tables(), event=FREE)


def test_groups_are_held_by_name_with_their_attendees_behind_those_of_the_seats(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        buyer = await made.buyer()
        names = [{"name": name} for name in ("Twelve", "One", "Two", "Three", "Four", "Pit")]
        data = held(
            await book(
                made,
                buyer,
                seats=[made.seats[11]["id"]],
                groups=["t1"],
                ga=[{"zone_id": "pit", "quantity": 2}],
                attendees=names,
            )
        )
        seen = [(hold["seat_label"], hold["attendee_name"]) for hold in data["holds"]]
        assert seen == [
            ("A-1", "One"),
            ("A-2", "Two"),
            ("A-3", "Three"),
            ("A-4", "Four"),
            ("B-2", "Twelve"),
            (None, "Pit"),
            (None, None),
        ]
        before = await contents(made)
        assert refused(await book(made, buyer, groups=["t9", "f1"]), 404, "group_not_found")["groups"] == ["t9"]
        problem = refused(await book(made, buyer, groups=["f1", "f1"]), 400, "invalid_request")
        assert problem["errors"][0]["pointer"] == "/groups/1"
        problem = refused(await book(made, buyer, groups=["f1"], attendees=[None] * 3), 400, "invalid_request")
        assert problem["errors"][0]["pointer"] == "/attendees/2"
        refused(await book(made, buyer, groups=[5]), 400, "invalid_request")
        assert await contents(made) == before

    run(database, check, config=tables(), event=FREE)


def test_families_and_pairs_are_advice(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        buyer = await made.buyer()
        held(await made.reserve(6, buyer))
        held(await made.hold(buyer, 9))

    run(database, check, config=tables(), event=FREE)


# Under contention -----------------------------------------------------------------------------------------------------
async def halves(made: Stage) -> list[int]:
    """Twenty buyers at once, each for half of the table: the statuses of their answers."""
    buyers = [bearer((await user(made)).token) for _ in range(20)]
    wanted = [(0, 1) if n % 2 else (2, 3) for n in range(len(buyers))]
    answers = await asyncio.gather(*(made.hold(b, *w) for b, w in zip(buyers, wanted, strict=True)))
    return [answer.status_code for answer in answers]


async def owners(made: Stage) -> set[Any]:
    return {row["user_id"] for row in await made.sql("SELECT user_id FROM holds WHERE status = 'active'")}


def test_two_who_want_half_a_table_each_do_not_divide_it(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        assert set(await halves(made)) == {409}
        assert await owners(made) == set()
        buyers = [bearer((await user(made)).token) for _ in range(10)]
        answers = await asyncio.gather(*(made.hold(b, 0, 1, 2, 3) for b in buyers), halves(made))
        statuses = [answer.status_code for answer in answers[:-1] if isinstance(answer, httpx.Response)]
        assert sorted(statuses) == [201] + [409] * 9
        assert len(await owners(made)) == 1

    run(database, check, config=tables(), event=FREE)


def test_control_without_the_rule_a_table_is_divided(database: TestDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "require_whole", lambda *given: None)

    async def check(made: Stage) -> None:
        assert 201 in await halves(made)
        assert len(await owners(made)) == 2

    run(database, check, config=tables(), event=FREE)


def test_a_seat_of_the_table_that_comes_free_meanwhile_is_wanted_too(
    database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is looked at before the seats are taken may be over when they are."""

    async def check(made: Stage) -> None:
        hold = held(await made.hold(made.admin, 0))["holds"][0]["hold_id"]
        ask = free_among
        looks = 0

        async def then_released(*given: Any) -> set[int]:
            nonlocal looks
            looks += 1
            found = await ask(*given)
            if looks == 1:
                answer = await made.client.delete(f"/api/holds/{hold}", headers=made.admin)
                assert answer.status_code == 200
            return found

        monkeypatch.setattr(service, "free_among", then_released)
        problem = refused(await made.hold(await made.buyer(), 1, 2, 3), 409, "group_incomplete")
        assert problem["missing_seat_ids"] == ["A-1"]
        assert looks == 2
        assert await owners(made) == set()

    run(database, check, config=tables(), event=FREE)
