"""The registry's tiers against the database: what is wrong is found, put right, and never believed."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import redis.asyncio as redis

from holdfast.holds.lifecycle import SeatState
from holdfast.kernel.ids import new_id
from holdfast.store.hot.event import STATE_CODES
from tests.conftest import TestDatabase
from tests.stage import Stage, stage

Check = Callable[[Stage, Any], Awaitable[None]]


def run(database: TestDatabase, valkey: str, check: Check, **settings: Any) -> None:
    async def main() -> None:
        async with stage(database, redis_url=valkey, redis_namespace="t", work=True, **settings) as made:
            client = redis.Redis.from_url(valkey)
            try:
                await check(made, client)
            finally:
                await client.aclose()

    asyncio.run(main())


async def status(made: Stage) -> dict[str, Any]:
    answer = await made.client.get(f"/api/registry/status?event_id={made.event_id}", headers=made.admin)
    assert answer.status_code == 200, answer.text
    data: dict[str, Any] = answer.json()["data"]
    return data


async def reconcile(made: Stage) -> dict[str, Any]:
    answer = await made.post("/api/registry/reconcile", {"event_id": made.event_id})
    assert answer.status_code == 200, answer.text
    data: dict[str, Any] = answer.json()["data"]
    return data


def seat_key(made: Stage, n: int) -> str:
    return f"t:org:{made.first.organization_id}:seat:{made.seats[n]['id']}:hold"


async def settled(made: Stage, client: Any, holds: int) -> None:
    """Until the warm tier knows of so many holds."""
    key = f"t:org:{made.first.organization_id}:event:{made.event_id}:seat_holds"
    async with asyncio.timeout(5):
        while await client.zcard(key) != holds:
            await asyncio.sleep(0.02)


def test_tiers_that_agree_are_consistent(database: TestDatabase, valkey: str) -> None:
    async def check(made: Stage, client: Any) -> None:
        buyer = await made.buyer()
        for n in range(3):
            assert (await made.reserve(n, buyer)).status_code == 201
        await made.client.get(f"/api/events/{made.event_id}/availability", headers=buyer)
        await settled(made, client, 3)
        found = await status(made)
        assert found["consistent"]
        (event,) = found["events"]
        assert event["cold"] == {"held": 3, "sold": 0, "blocked": 0, "holds": 3}
        assert event["hot"] == {"loaded": True, "held": 3, "sold": 0, "blocked": 0, "drift": 0}
        assert event["warm"] == {"available": True, "holds": 3, "missing": 0, "wrong": 0}

    run(database, valkey, check)


def test_what_the_warm_tier_lost_or_was_told_wrong_is_found_and_put_right(database: TestDatabase, valkey: str) -> None:
    async def check(made: Stage, client: Any) -> None:
        buyer = await made.buyer()
        for n in range(3):
            assert (await made.reserve(n, buyer)).status_code == 201
        await settled(made, client, 3)
        before = await client.get(seat_key(made, 1))
        await client.delete(seat_key(made, 0))
        await client.set(seat_key(made, 1), f"{new_id()}:{new_id()}:9999999999")
        zset = f"t:org:{made.first.organization_id}:event:{made.event_id}:seat_holds"
        ghost = f"{made.seats[9]['id']}:{new_id()}:{new_id()}:2099-01-01T00:00:00Z"
        await client.zadd(zset, {ghost: 4070908800})
        await client.set(seat_key(made, 8), f"{new_id()}:{new_id()}:9999999999")  # of a free seat
        found = await status(made)
        assert not found["consistent"]
        assert found["events"][0]["warm"] == {"available": True, "holds": 4, "missing": 2, "wrong": 3}
        assert (await reconcile(made))["drift"] == 5
        assert (await status(made))["consistent"]
        assert await client.get(seat_key(made, 1)) == before
        assert await client.exists(seat_key(made, 0))
        assert not await client.exists(seat_key(made, 8))
        assert await client.zscore(zset, ghost) is None

    run(database, valkey, check)


def test_two_events_of_one_layout_share_a_seats_key_and_neither_is_wrong(database: TestDatabase, valkey: str) -> None:
    async def check(made: Stage, client: Any) -> None:
        event = (await made.client.get(f"/api/events/{made.event_id}", headers=made.admin)).json()["data"]
        again = await made.post("/api/events", {"name": "Again", "layout_id": event["layout_id"]})
        second = again.json()["data"]["id"]
        await made.post(f"/api/events/{second}/status", {"status": "published"})
        member = await made.member()
        assert (await made.reserve(0, member)).status_code == 201
        await settled(made, client, 1)
        answer = await made.client.post(made.seat_path(0, second), headers=member)
        assert answer.status_code == 201, answer.text
        key = f"t:org:{made.first.organization_id}:event:{second}:seat_holds"
        async with asyncio.timeout(5):
            while not await client.zcard(key):
                await asyncio.sleep(0.02)
        found = (await made.client.get("/api/registry/status", headers=made.admin)).json()["data"]
        assert [each["warm"]["holds"] for each in found["events"]] == [1, 1]
        assert found["consistent"], found

    run(database, valkey, check)


def test_a_seat_that_is_wrong_in_memory_is_found_and_put_right(database: TestDatabase, valkey: str) -> None:
    async def check(made: Stage, client: Any) -> None:
        buyer = await made.buyer()
        assert (await made.reserve(0, buyer)).status_code == 201
        await made.client.get(f"/api/events/{made.event_id}/availability", headers=buyer)
        await settled(made, client, 1)
        (event,) = made.app.hot.events()
        event.states[5] = STATE_CODES[SeatState.SOLD]
        event.refused_until[5] = float("inf")
        assert (await made.reserve(5, buyer)).status_code == 409  # believed, as long as nobody looks
        found = await status(made)
        assert found["events"][0]["hot"]["drift"] == 1
        assert (await reconcile(made))["drift"] == 1
        assert (await status(made))["consistent"]
        assert (await made.reserve(5, buyer)).status_code == 201

    run(database, valkey, check)


def test_a_lie_in_the_warm_tier_refuses_nobody(database: TestDatabase, valkey: str) -> None:
    """A process that has not read the event asks the warm tier, and checks what it says."""

    async def check(made: Stage, client: Any) -> None:
        liar, user = new_id(), new_id()
        prefix = f"t:org:{made.first.organization_id}"
        await client.set(seat_key(made, 4), f"{liar}:{user}:9999999999")
        meta = {"seat_id": made.seats[4]["id"], "user_id": str(user), "event_id": made.event_id, "status": "active"}
        meta |= {"held_until": "2099-01-01T00:00:00Z", "created_at": "2026-01-01T00:00:00Z", "source": "web"}
        await client.hset(f"{prefix}:hold:{liar}:meta", mapping={**meta, "hold_type": "CART"})
        async with stage(
            database, redis_url=valkey, redis_namespace="t", organization=made.first, hot_events=0
        ) as other:
            answer = await other.client.post(
                made.seat_path(4), headers=await made.buyer(), json={"source": "web", "holdType": "CART"}
            )
            assert answer.status_code == 201, answer.text
        assert str(liar).encode() not in (await client.get(seat_key(made, 4)) or b"")

    run(database, valkey, check)


def test_the_registry_is_for_those_who_run_it(database: TestDatabase, valkey: str) -> None:
    async def check(made: Stage, client: Any) -> None:
        buyer = await made.buyer()
        assert (await made.client.get("/api/registry/status", headers=buyer)).status_code == 403
        assert (await made.client.post("/api/registry/reconcile", headers=buyer)).status_code == 403
        assert (await made.client.get("/api/registry/status?event_id=x", headers=made.admin)).status_code == 400
        assert (await made.post("/api/registry/reconcile", {"event": "x"})).status_code == 400
        missing = f"/api/registry/status?event_id={new_id()}"
        assert (await made.client.get(missing, headers=made.admin)).status_code == 404
        everything = (await made.client.get("/api/registry/status", headers=made.admin)).json()["data"]
        assert [event["event_id"] for event in everything["events"]] == [made.event_id]

    run(database, valkey, check)


def test_without_redis_the_registry_speaks_of_the_other_tiers(database: TestDatabase) -> None:
    async def check() -> None:
        async with stage(database) as made:
            (event,) = (await status(made))["events"]
            assert event["warm"] is None
            assert event["consistent"]

    asyncio.run(check())
