"""Tickets of an event that goes to another version of its layout: each stays with its sale."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest

from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.http.box_office_ground import everything, exchange, faults, house, revert, sold, ticket_row
from tests.http.contents import user
from tests.http.migration_ground import add_version, apply, inventory, path, plan, without_rows
from tests.http.test_returns import attendance, inside
from tests.stage import Stage

HALL = theatre_config(4, 10, ga_capacity=20)
PIT, RING, STALLS = 0, 1, 2
"""Zone numbers afterwards."""


def turned() -> dict[str, Any]:
    """Row A gone, and the zones in another order: every number means another seat, or another zone."""
    stalls, pit_zone = without_rows(HALL, "A")["zones"]
    ring = {"zone_id": "ring", "name": "Ring", "zone_type": "ga_standing", "capacity": 7}
    return {**HALL, "zones": [pit_zone, ring, stalls]}


def run(database: TestDatabase, test: Callable[[Stage], Awaitable[None]]) -> None:
    async def main() -> None:
        async with house(database, HALL) as made:
            await test(made)

    asyncio.run(main())


def test_a_ticket_goes_with_its_sale_and_a_void_one_stays_with_its_seat(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        stays, moves, was_here, was_there = await sold(made, 15, 5, 25, 6)
        (stands,) = await sold(made, places=1)
        (left,) = await sold(made, places=1)
        for ticket in (was_here, was_there, left):
            await revert(made, ticket)
        (blocked,) = await sold(made, 7)
        await made.post(
            f"/api/events/{made.event_id}/seats/block",
            {"seats": [made.seats[7]["id"]], "reason": "broken", "force": True},
        )
        planned = await plan(made, await add_version(made, turned()))
        done = await apply(made, planned["id"])
        assert done.status_code == 200, done.text
        seats = await inventory(made)
        by_ordinal = {seat["ordinal"]: seat for seat in seats.values()}
        row = await ticket_row(made, stays)
        assert (by_ordinal[row["ordinal"]]["seat_id"], row["zone_no"], row["code_version"]) == ("B-6", STALLS, 1)
        row = await ticket_row(made, moves)
        (move,) = [m for m in planned["moves"] if m["from_seat"]["seat_id"] == "A-6"]
        assert by_ordinal[row["ordinal"]]["seat_id"] == move["to_seat"]["seat_id"]
        assert (by_ordinal[row["ordinal"]]["state"], row["zone_no"], row["status"]) == ("sold", STALLS, "valid")
        assert move["ticket_id"] == moves
        row = await ticket_row(made, was_here)
        assert (by_ordinal[row["ordinal"]]["seat_id"], row["zone_no"], row["layout_version"]) == ("C-6", STALLS, None)
        row = await ticket_row(made, was_there)
        assert (row["ordinal"], row["zone_no"], row["layout_version"]) == (6, 0, 1)
        assert [(await ticket_row(made, t))["zone_no"] for t in (stands, left)] == [PIT, PIT]
        row = await ticket_row(made, blocked)
        assert (by_ordinal[row["ordinal"]]["state"], row["status"]) == ("blocked", "valid")
        assert await faults(made) == []
        # What was voided before is still named as it was, and what is valid can be taken back.
        again = (await revert(made, was_there)).json()["data"]
        assert (again["seat"]["seat_id"], again["zone"]) == ("A-7", "stalls")
        for ticket in (stays, moves, stands, blocked):
            assert (await revert(made, ticket)).status_code == 200
        assert await faults(made) == []

    run(database, test)


def test_the_owner_and_the_attendee_of_a_ticket_are_told_of_their_new_seat(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        buyer, friend = await user(made), await user(made)
        named: dict[str, Any] = {
            "buyer": {"user_id": str(buyer.user_id)},
            "attendees": [{"user_id": str(friend.user_id)}],
        }
        (ticket,) = await sold(made, 15, **named)
        assert (await exchange(made, ticket, 5)).status_code == 200
        planned = await plan(made, await add_version(made, turned()))
        answer = await made.client.get(path(made, planned["id"], "/notifications"), headers=made.admin)
        (told,) = answer.json()["data"]
        assert (told["ticket_id"], told["from_seat"]["seat_id"]) == (ticket, "A-6")
        assert (told["user_id"], told["attendee_user_id"]) == (str(buyer.user_id), str(friend.user_id))

    run(database, test)


def test_an_exchange_outdates_a_plan_and_a_new_code_does_not(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        ticket, other = await sold(made, 5, 6)
        version = await add_version(made, turned())
        first = await plan(made, version)
        await exchange(made, ticket, 15)
        before = await everything(made)
        assert (await apply(made, first["id"])).json()["error"] == "migration_outdated"
        second = await plan(made, version)
        await made.sql("UPDATE tickets SET attendee_user_id = gen_random_uuid() WHERE id = $1", UUID(other))
        assert (await apply(made, second["id"])).json()["error"] == "migration_outdated"
        third = await plan(made, version)
        await made.sql("UPDATE tickets SET code_version = code_version + 1")
        assert (await apply(made, third["id"])).status_code == 200
        assert before["tickets"] != (await everything(made))["tickets"]

    run(database, test)


def test_who_is_inside_is_counted_by_the_zones_of_the_new_version(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        seated, moved, gone = await sold(made, 15, 5, 6)
        (stands,) = await sold(made, places=1)
        for ticket in (seated, moved, gone, stands):
            await inside(made, ticket)
        await inside(made, seated, "2030-01-02")
        await revert(made, gone)
        planned = await plan(made, await add_version(made, turned()))
        assert (await apply(made, planned["id"])).status_code == 200
        rows = await made.sql(
            "SELECT day::text, zone_no, present, entered FROM zone_attendance WHERE entered > 0 ORDER BY 1, 2"
        )
        assert [tuple(row) for row in rows] == [
            ("2030-01-01", PIT, 1, 1),
            ("2030-01-01", STALLS, 2, 2),
            ("2030-01-02", STALLS, 1, 1),
        ]
        await exchange(made, stands, 20)
        assert (await attendance(made))[PIT] == (0, 0)

    run(database, test)


def test_who_sells_or_exchanges_as_the_layout_changes_gets_the_seat_they_named(
    database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(made: Stage) -> None:
        (ticket,) = await sold(made, 15)
        catalogue = made.app.catalogue
        before = await catalogue.fresh_event(made.first.organization_id, UUID(made.event_id))
        planned = await plan(made, await add_version(made, turned()))
        assert (await apply(made, planned["id"])).status_code == 200
        fresh = catalogue.fresh_event
        looks: list[bool] = []

        async def late(organization_id: UUID, event_id: UUID) -> Any:
            """What was read is the version before, once."""
            looks.append(True)
            return before if len(looks) % 2 else await fresh(organization_id, event_id)

        monkeypatch.setattr(catalogue, "fresh_event", late)
        assert (await exchange(made, ticket, 25)).json()["data"]["to"]["seat"]["seat_id"] == "C-6"
        (other,) = await sold(made, 16)
        assert len(looks) == 4
        seats = {seat["ordinal"]: name for name, seat in (await inventory(made)).items()}
        rows = [await ticket_row(made, one) for one in (ticket, other)]
        assert [seats[row["ordinal"]] for row in rows] == ["C-6", "B-7"]
        assert await faults(made) == []

    run(database, test)
