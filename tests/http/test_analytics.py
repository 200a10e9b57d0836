"""Analyses over HTTP: who may ask, what may be asked, and what a small history tells."""

import asyncio
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

import httpx
import pytest

from holdfast.compat.booking_v2 import GroupRef, SeatRef, StateSelection
from holdfast.workers.expire_holds import ExpireHolds
from tests.conftest import TestDatabase
from tests.factories import theatre_config, with_companions
from tests.http.client import bearer
from tests.http.migration_ground import add_version, apply, plan
from tests.http.test_reserve import UNKNOWN, held, refused
from tests.race.ground import api_call
from tests.stage import Stage, stage

HALL = with_companions(theatre_config(2, 10, ga_capacity=50), (0, 1), (4, 5))
WRONG_INSTANTS = (
    ("since", "yesterday"),
    ("since", "2030-01-01"),
    ("since", "2030-01-01T00:00:00"),
    ("since", ""),
    ("until", "0001-01-01T00:00:00Z"),
    ("until", "9999-12-31T23:59:59Z"),
    ("until", "2030-13-01T00:00:00Z"),
)
KINDS = ("conversion", "funnel", "occupancy", "expiry", "accessibility")
COMP = {"COMP": {"validStates": ["LOCKED"], "releaseApi": "ADMIN"}}


async def ask(made: Stage, kind: str, headers: dict[str, str] | None = None, **params: str) -> httpx.Response:
    named = {"from" if name == "since" else "to" if name == "until" else name: value for name, value in params.items()}
    path = f"/api/events/{made.event_id}/analytics/{kind}"
    return await made.client.get(path, headers=made.admin if headers is None else headers, params=named)


async def told(made: Stage, kind: str, **params: str) -> dict[str, Any]:
    answer = await ask(made, kind, None, **params)
    assert answer.status_code == 200, answer.text
    data: dict[str, Any] = answer.json()["data"]
    assert (data["event_id"], data["from"] < data["to"]) == (made.event_id, True)
    assert data["counted"]
    return data


def test_only_staff_may_ask_and_only_of_their_own_event(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, HALL) as made:
            guest, member = await made.buyer(), await made.member()
            second = await made.app.services.accounts.bootstrap("Another")
            for kind in KINDS:
                refused(await ask(made, kind, guest), 403, "forbidden")
                refused(await ask(made, kind, member), 403, "forbidden")
                refused(await ask(made, kind, {}), 401, "unauthorized")
                refused(await ask(made, kind, bearer(second.admin_token)), 404, "event_not_found")
                path = f"/api/events/{UNKNOWN}/analytics/{kind}"
                refused(await made.client.get(path, headers=made.admin), 404, "event_not_found")
                path = f"/api/events/A-1/analytics/{kind}"
                refused(await made.client.get(path, headers=made.admin), 400, "invalid_request")
                assert (await ask(made, kind, await made.member("organizer"))).status_code == 200
            assert (await ask(made, "weather")).status_code == 404

    asyncio.run(main())


@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_asked_is_refused_by_name(shared_database: TestDatabase, kind: str) -> None:
    async def main() -> None:
        async with stage(shared_database, HALL) as made:
            for name, value in WRONG_INSTANTS:
                answer = refused(await ask(made, kind, None, **{name: value}), 400, "invalid_request")
                assert answer["errors"][0]["pointer"] == ("/from" if name == "since" else "/to")
            for since, until in (("2030-01-02T00:00:00Z", "2030-01-01T00:00:00Z"), ("2030-01-01T00:00:00Z",) * 2):
                answer = refused(await ask(made, kind, since=since, until=until), 400, "invalid_request")
                assert answer["errors"][0]["code"] == "not_before"
            refused(await ask(made, kind, since="2999-01-01T00:00:00Z"), 400, "invalid_request")
            for zone in ("gallery", UNKNOWN, "", "\0", "x" * 5000):
                answer = refused(await ask(made, kind, zone=zone), 404, "zone_not_found")
            for hold_type in ("NOBODY", "", "\0", "x" * 5000, "cart"):
                answer = refused(await ask(made, kind, hold_type=hold_type), 400, "invalid_request")
                assert answer["errors"][0]["pointer"] == "/hold_type"
            if kind in ("conversion", "occupancy"):
                for by in ("", "minute", "user_id", "HOUR"):
                    answer = refused(await ask(made, kind, by=by), 400, "invalid_request")
                    assert answer["errors"][0]["pointer"] == "/by"

    asyncio.run(main())


def test_too_many_hours_are_refused(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, HALL) as made:
            answer = await ask(
                made, "conversion", by="hour", since="2020-01-01T00:00:00Z", until="2029-01-01T00:00:00Z"
            )
            refused(answer, 400, "invalid_request")
            answer = await ask(made, "conversion", by="day", since="1970-01-01T00:00:00Z", until="2999-01-01T00:00:00Z")
            assert answer.status_code == 200
            series = await told(made, "occupancy", since="1970-01-01T00:00:00Z", until="2999-01-01T00:00:00Z")
            assert len(series["points"]) <= 500
            assert series["to"] < "2998"

    asyncio.run(main())


def test_a_hold_belongs_to_the_time_it_was_placed_in_and_its_end_counts_whenever(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, HALL) as made:
            assert (await made.post("/api/organizations/config", {"holdTypes": COMP})).status_code == 200
            buyer, other = await made.buyer(), await made.buyer()
            begun = (await made.sql("SELECT holdfast_now() AS at"))[0]["at"]
            first = held(await made.hold(buyer, 12, 13, ga=[{"zone_id": "pit", "quantity": 5}]))
            held(await made.reserve(14, made.admin, holdType="COMP"))
            await made.advance_clock(3600)
            boundary = (await made.sql("SELECT holdfast_now() AS at"))[0]["at"]
            held(await made.reserve(12, other))  # taken over: the first hold expired
            await ExpireHolds(made.app.database).once()
            before = await told(made, "conversion", since=begun.isoformat(), until=boundary.isoformat())
            assert before["holds"] == {
                "placed": 4,
                "converted": 0,
                "expired": 3,
                "released": 0,
                "blocked": 0,
                "held": 1,
            }
            assert before["places"]["expired"] == 7
            assert (before["rate"], before["rate_of_ended"]) == (0.0, 0.0)
            after = await told(made, "conversion", since=boundary.isoformat())
            assert after["holds"]["placed"] == after["holds"]["held"] == 1
            assert after["rate_of_ended"] is None
            comp = await told(made, "conversion", hold_type="COMP")
            assert comp["holds"]["placed"] == 1
            pit = await told(made, "conversion", zone="pit")
            by_id = await told(made, "conversion", zone=made.zones[0]["id"])
            assert pit["places"] == by_id["places"]
            assert pit["places"]["placed"] == 5
            blocked = {"seats": [made.seats[12]["id"]], "reason": "camera"}
            assert (await made.post(f"/api/events/{made.event_id}/seats/block", blocked)).status_code == 200
            after = await told(made, "conversion", since=boundary.isoformat())
            assert after["holds"]["blocked"] == 1
            hours = await told(made, "conversion", by="hour")
            assert [group["holds"]["placed"] for group in hours["groups"]] == [4, 1]
            expiry = await told(made, "expiry")
            expired = next(each for each in expiry["lives"] if each["hold_type"] is None and each["end"] == "expired")
            assert (expired["holds"], expired["p50_s"] // 60) == (3, 60)
            assert len(first["holds"]) == 3

    asyncio.run(main())


def test_a_draft_and_an_event_without_a_move_are_told_as_empty(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, HALL) as made:
            for event in (made.event_id, await made.make_event(HALL, publish=False)):
                made.event_id = event
                empty = await told(made, "conversion")
                assert (empty["holds"]["placed"], empty["rate"], empty["groups"]) == (0, None, [])
                assert [step["places"] for step in (await told(made, "funnel"))["steps"]] == [0, 0, 0]
                points = (await told(made, "occupancy"))["points"]
                assert {point["available"] for point in points} == {70}
                assert (await told(made, "expiry"))["lives"] == []
                assert (await told(made, "accessibility"))["wheelchair"]["seats"] == 2

    asyncio.run(main())


def test_part_of_a_hold_that_is_sold_counts_with_the_hold_it_was_drawn_from(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, HALL) as made:
            booking, call, event = made.app.services.booking, api_call(made.first), UUID(made.event_id)

            def places(count: int) -> StateSelection:
                return StateSelection("till", [], [GroupRef(made.zones[0]["booking_id"], count)])

            begun = (await made.sql("SELECT holdfast_now() AS at"))[0]["at"]
            assert await booking.lock(call, event, places(6))
            await made.advance_clock(60)
            later = (await made.sql("SELECT holdfast_now() AS at"))[0]["at"]
            assert await booking.lock(call, event, places(4))
            assert await booking.sale(call, event, places(2))
            assert await booking.unlock(call, event, places(1))
            first = await told(made, "conversion", since=begun.isoformat(), until=later.isoformat())
            assert first["places"] == {
                "placed": 6,
                "converted": 2,
                "expired": 0,
                "released": 1,
                "blocked": 0,
                "held": 3,
            }
            assert first["holds"]["held"] == first["holds"]["placed"] == 1
            second = await told(made, "conversion", since=later.isoformat())
            assert second["places"]["held"] == second["places"]["placed"] == 4
            assert await booking.sale(call, event, places(5))  # three of the first, and two of the second
            first = await told(made, "conversion", since=begun.isoformat(), until=later.isoformat())
            assert (first["places"]["converted"], first["holds"]["converted"]) == (5, 1)
            second = await told(made, "conversion", since=later.isoformat())
            assert (second["places"]["converted"], second["places"]["held"]) == (2, 2)
            hours = await told(made, "conversion", by="zone")
            assert [(group["key"], group["name"]) for group in hours["groups"]] == [("pit", "Pit")]

    asyncio.run(main())


def test_a_sale_that_is_taken_back_is_the_last_step_and_direct_sales_stand_beside(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, HALL) as made:
            types = {"BOX": {"validStates": ["LOCKED", "SOLD"], "skipLockedState": True}}
            assert (await made.post("/api/organizations/config", {"holdTypes": types})).status_code == 200
            booking, call, event = made.app.services.booking, api_call(made.first), UUID(made.event_id)

            def seats(*numbers: int, kind: str | None = None, places: int = 0) -> StateSelection:
                groups = [GroupRef(made.zones[0]["booking_id"], places)] if places else []
                return StateSelection("till", [SeatRef(made.seats[n]["booking_id"]) for n in numbers], groups, kind)

            assert await booking.lock(call, event, seats(10, 11, 12))
            assert await booking.sale(call, event, seats(10, 11))
            assert await booking.direct_sale(call, event, seats(13, kind="BOX", places=2))
            assert await booking.revert_sale(call, event, seats(10, 13, places=1))
            assert await booking.direct_sale(call, event, seats(10, kind="BOX"))
            assert await booking.revert_sale(call, event, seats(10))  # this time it was no hold's
            funnel = await told(made, "funnel")
            assert [(s["step"], s["places"]) for s in funnel["steps"]] == [("held", 3), ("sold", 2), ("reverted", 1)]
            assert funnel["steps"][1]["share"] == 0.6667
            assert funnel["beside"] == {"direct_sales": 4, "reverted": 4, "reverted_untraced": 1}
            assert {each["step"] for each in funnel["left_out"]} == {"extended", "in_checkout"}
            assert (await told(made, "funnel", hold_type="BOX"))["beside"]["direct_sales"] == 4
            assert (await told(made, "funnel", hold_type="CART"))["beside"]["direct_sales"] == 0

    asyncio.run(main())


def test_who_took_the_companions_seats(database: TestDatabase) -> None:
    async def main() -> None:
        overrides = {"orphan_avoidance_strict": False, "companion_release_occupancy_threshold": 50}
        async with stage(database, HALL, event={"overrides": overrides}) as made:
            assert (await made.post("/api/organizations/config", {"holdTypes": COMP})).status_code == 200
            alone, pair, organiser, public = [await made.buyer() for _ in range(4)]
            held(await made.hold(pair, 1, 0))  # together, whichever is named first
            held(await made.reserve(5, alone))  # nobody has the wheelchair seat beside it
            use = await told(made, "accessibility")
            none = {"by_public": 0, "by_organiser": 0, "unclear": 0}
            assert use["companions_taken"] == {"by_owner": 1, "unaccompanied": 1, **none}
            assert (use["wheelchair"]["seats"], use["wheelchair"]["holds"]["placed"]) == (2, 1)
            assert (use["companion"]["seats"], use["companion"]["holds"]["placed"]) == (2, 2)
            assert use["share_of_held"] == 1.0
            assert use["share_of_seats"] == round(4 / 70, 4)

            await made.advance_clock(3600)
            await ExpireHolds(made.app.database).once()
            held(await made.reserve(0, organiser))
            held(await made.reserve(1, made.admin, holdType="COMP"))  # kept for the buyer before, but the organiser may
            held(await made.reserve(4, alone))
            held(await made.hold(public, 10, 11, 12, 13, 14, 15, 16, 17))
            held(await made.reserve(5, public))  # half of the zone is taken: for everybody
            taken = (await told(made, "accessibility"))["companions_taken"]
            assert taken == {"by_owner": 1, "by_public": 1, "by_organiser": 1, "unaccompanied": 1, "unclear": 0}
            zones = (await told(made, "accessibility"))["zones"]
            assert [zone["zone_id"] for zone in zones] == ["stalls"]
            assert (await told(made, "accessibility", zone="pit"))["zones"] == []

    asyncio.run(main())


def test_whose_a_wheelchair_seat_is_outlives_a_migration(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, HALL) as made:
            buyer = await made.buyer()
            held(await made.reserve(0, buyer))
            config = with_companions(theatre_config(2, 10, ga_capacity=50), (0, 1), (4, 5))
            box = {"zone_id": "box", "name": "Box", "zone_type": "reserved_seating", "capacity": 1,
                   "seats": [{"seat_id": "X-1", "row": "X", "number": 1}]}  # fmt: skip
            config["zones"].insert(0, box)
            planned = await plan(made, await add_version(made, config))
            assert (await apply(made, planned["id"])).status_code == 200
            held(await made.reserve(1, buyer))
            use = await told(made, "accessibility")
            assert use["companions_taken"]["by_owner"] == 1
            assert use["wheelchair"]["holds"]["held"] == 1
            total = await told(made, "conversion", by="zone")
            assert [(group["key"], group["holds"]["placed"]) for group in total["groups"]] == [("stalls", 2)]
            assert total["holds"]["held"] == 2, "a migration ends no hold, and begins none"
            points = (await told(made, "occupancy"))["points"]
            assert (points[0]["total"], points[-1]["total"], points[-1]["held"]) == (70, 71, 2)

    asyncio.run(main())


def test_a_series_goes_from_its_first_instant_to_its_last_in_even_steps(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, HALL) as made:
            buyer = await made.buyer()
            held(await made.hold(buyer, 10, 11, ga=[{"zone_id": "pit", "quantity": 3}]))
            await made.advance_clock(3 * 3600)
            await ExpireHolds(made.app.database).once()
            series = await told(made, "occupancy", by="zone")
            at = [datetime.fromisoformat(point["at"]) for point in series["points"]]
            assert at[-1] - at[0] == timedelta(days=7)
            assert {(b - a).total_seconds() for a, b in pairwise(at[1:-1])} == {series["step_seconds"]}
            assert max(point["held"] for point in series["points"]) == 5
            assert series["points"][-1]["held"] == series["points"][0]["held"] == 0
            assert [zone["zone_id"] for zone in series["zones"]] == ["stalls", "pit"]
            assert (await told(made, "occupancy"))["zones"] is None
            pit = await told(made, "occupancy", zone="pit")
            assert max(point["held"] for point in pit["points"]) == 3
            assert {point["total"] for point in pit["points"]} == {50}

    asyncio.run(main())
