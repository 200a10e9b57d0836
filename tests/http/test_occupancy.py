"""How full an event is, over HTTP."""

import asyncio
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import httpx
import pytest

from holdfast.workers.fold_occupancy import FoldOccupancy
from holdfast.workers.snapshot_occupancy import SnapshotOccupancy
from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.http.client import bearer
from tests.http.test_reserve import UNKNOWN, held, refused
from tests.stage import Stage, stage

HALL = theatre_config(2, 10, ga_capacity=50)
COMP = {"COMP": {"validStates": ["LOCKED"], "releaseApi": "ADMIN"}}


async def ask(made: Stage, headers: dict[str, str] | None = None, event_id: str | None = None) -> httpx.Response:
    """After what was done so far has gone round."""
    await made.app.feed.caught_up()
    path = f"/api/events/{event_id or made.event_id}/occupancy"
    return await made.client.get(path, headers=made.admin if headers is None else headers)


async def told(made: Stage, headers: dict[str, str] | None = None) -> dict[str, Any]:
    answer = await ask(made, headers)
    assert answer.status_code == 200, answer.text
    data: dict[str, Any] = answer.json()["data"]
    return data


async def past(made: Stage, **params: str) -> httpx.Response:
    return await made.client.get(f"/api/events/{made.event_id}/occupancy/history", headers=made.admin, params=params)


def test_every_kind_of_change_is_told_at_once_by_zone_and_hold_type(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, HALL) as made:
            assert (await made.post("/api/organizations/config", {"holdTypes": COMP})).status_code == 200
            first = await told(made)
            assert [first[name] for name in ("available", "held", "sold", "blocked", "total")] == [70, 0, 0, 0, 70]
            assert first["percents"] == {"available": 100.0, "held": 0.0, "sold": 0.0, "blocked": 0.0}
            assert [zone["zone_id"] for zone in first["by_zone"]] == ["stalls", "pit"]
            buyer = await made.buyer()
            hold = held(await made.hold(buyer, 0, 1, ga=[{"zone_id": "pit", "quantity": 5}]))
            held(await made.reserve(2, made.admin, holdType="COMP"))
            blocked = await made.post(
                f"/api/events/{made.event_id}/seats/block",
                {"seats": [made.seats[3]["id"], made.seats[4]["id"]], "reason": "camera"},
            )
            assert blocked.status_code == 200
            second = await told(made, buyer)
            assert [second[name] for name in ("available", "held", "sold", "blocked", "total")] == [60, 8, 0, 2, 70]
            assert second["by_hold_type"] == {"CART": 7, "COMP": 1}
            stalls, pit = second["by_zone"]
            assert (stalls["held"], stalls["blocked"], stalls["available"]) == (3, 2, 15)
            assert stalls["by_hold_type"] == {"CART": 2, "COMP": 1}
            assert (pit["held"], pit["available"], pit["total"]) == (5, 45, 50)
            assert pit["percents"] == {"available": 90.0, "held": 10.0, "sold": 0.0, "blocked": 0.0}
            assert second["percents"]["held"] == 11.43
            assert datetime.fromisoformat(second["timestamp"]) > datetime.fromisoformat(first["timestamp"])
            await FoldOccupancy(made.app.database).once()
            for one in hold["holds"]:
                released = await made.client.delete(f"/api/holds/{one['hold_id']}", headers=buyer)
                assert released.status_code == 200
            third = await told(made)
            assert (third["held"], third["by_hold_type"], third["by_zone"][1]["held"]) == (1, {"COMP": 1}, 0)

    asyncio.run(main())


def test_who_may_not_see_the_event_finds_nothing(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, HALL) as made:
            other = await made.make_event(HALL)
            draft = await made.make_event(HALL, publish=False)
            guest, member = await made.buyer(), await made.member()
            assert (await ask(made, guest)).status_code == 200
            assert (await ask(made, member)).status_code == 200
            assert (await ask(made, made.api_key)).status_code == 200
            refused(await ask(made, guest, other), 404, "event_not_found")
            refused(await ask(made, member, draft), 404, "event_not_found")
            refused(await ask(made, made.admin, UNKNOWN), 404, "event_not_found")
            refused(await ask(made, made.admin, "A-1"), 400, "invalid_request")
            refused(await ask(made, {}), 401, "unauthorized")
            second = await made.app.services.accounts.bootstrap("Another")
            refused(await ask(made, bearer(second.admin_token)), 404, "event_not_found")
            path = f"/api/events/{made.event_id}/occupancy/history"
            refused(await made.client.get(path, headers=guest), 403, "forbidden")
            refused(await made.client.get(path, headers=bearer(second.admin_token)), 404, "event_not_found")

    asyncio.run(main())


def test_an_answer_names_nobody(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, HALL) as made:
            hold = held(await made.reserve(0, made.admin))
            text = (await ask(made)).text
            assert "user" not in text
            assert str(made.first.admin_user_id) not in text
            assert hold["hold_id"] not in text

    asyncio.run(main())


def test_the_minutes_of_an_event_are_told_in_order_and_in_parts(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, HALL) as made:
            await SnapshotOccupancy(made.app.database).once()
            held(await made.hold(await made.buyer(), 0, 1, ga=[{"zone_id": "pit", "quantity": 5}]))
            for _ in range(3):
                await made.database.advance_clock(60)
                await SnapshotOccupancy(made.app.database).once()
            minutes = (await past(made)).json()["data"]
            assert [minute["held"] for minute in minutes] == [0, 7, 7, 7]
            times = [datetime.fromisoformat(minute["at"]) for minute in minutes]
            assert [later - earlier for earlier, later in pairwise(times)] == [timedelta(minutes=1)] * 3
            last = minutes[-1]
            assert (last["available"], last["total"], last["by_hold_type"]) == (63, 70, {"CART": 7})
            assert [(z["zone_id"], z["held"], z["available"], z["total"]) for z in last["by_zone"]] == [
                ("stalls", 2, 18, 20),
                ("pit", 5, 45, 50),
            ]
            assert last["percents"]["held"] == 10.0

            some = (await past(made, **{"from": minutes[1]["at"], "to": minutes[3]["at"]})).json()
            assert [minute["at"] for minute in some["data"]] == [minutes[1]["at"], minutes[2]["at"]]
            read: list[str] = []
            cursor: dict[str, str] = {}
            for _ in range(10):
                page = (await past(made, limit="1", **cursor)).json()
                read += [minute["at"] for minute in page["data"]]
                if page["next_cursor"] is None:
                    break
                cursor = {"cursor": page["next_cursor"]}
            assert read == [minute["at"] for minute in minutes]
            assert (await past(made, **{"from": "2031-01-01T00:00:00Z", "to": "2031-01-02T00:00:00Z"})).json() == {
                "data": [],
                "next_cursor": None,
            }

    asyncio.run(main())


@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"from": "yesterday"}, "/from"),
        ({"from": "2030-01-31T19:30:00"}, "/from"),
        ({"to": "2030-13-31T19:30:00Z"}, "/to"),
        ({"to": "0001-01-01T00:00:00Z"}, "/to"),
        ({"from": "2030-01-02T00:00:00Z", "to": "2030-01-02T00:00:00Z"}, "/from"),
        ({"cursor": "7"}, "/cursor"),
    ],
)
def test_a_bad_interval_is_refused_by_name(database: TestDatabase, params: dict[str, str], named: str) -> None:
    async def main() -> None:
        async with stage(database, HALL) as made:
            answer = await past(made, **params)
            refused(answer, 400, "invalid_request")
            assert [error["pointer"] for error in answer.json()["errors"]] == [named]

    asyncio.run(main())


def test_an_offset_whose_plus_was_not_escaped_is_understood(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, HALL) as made:
            path = f"/api/events/{made.event_id}/occupancy/history?from=2030-01-31T19:30:00+02:00"
            answer = await made.client.get(path, headers=made.admin)
            assert answer.status_code == 200, answer.text
            for limit in ("0", "1441", "x"):
                refused(await past(made, limit=limit), 400, "invalid_request")

    asyncio.run(main())
