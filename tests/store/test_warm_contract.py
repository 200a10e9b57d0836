"""The warm tier as an outside reader finds it: keys, members, values and lifetimes in a real Valkey, after each act."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest
import redis.asyncio as redis

from holdfast.holds.lifecycle import SeatState
from holdfast.kernel.ids import new_id
from holdfast.live.message import Message
from holdfast.store import warm_writer
from holdfast.store.postgres.feed import News
from holdfast.store.redis.warm import Warm
from holdfast.store.warm_writer import REBUILT
from tests.conftest import TestDatabase
from tests.stage import Stage, stage

NAMESPACE = "voelgoed"
SOON_S = 5.0


class Reader:
    """Somebody else's program, which knows the keys and nothing of this one."""

    def __init__(self, made: Stage, client: Any) -> None:
        self._made = made
        self.client = client
        self._prefix = f"{NAMESPACE}:org:{made.first.organization_id}"

    def key(self, rest: str) -> str:
        return f"{self._prefix}:{rest}"

    @property
    def seat_holds(self) -> str:
        return self.key(f"event:{self._made.event_id}:seat_holds")

    def seat(self, n: int) -> str:
        return self.key(f"seat:{self._made.seats[n]['id']}:hold")

    async def bit(self, n: int) -> int:
        return int(await self.client.getbit(self.key(f"event:{self._made.event_id}:seats:bitmap"), n))

    async def soon_bits(self, count: int, *, taken: int = 1) -> list[int]:
        """Of the first seats, once as many are taken: where everything is written anew, the bitmap comes after the holds."""
        bits: list[int] = []

        async def complete() -> bool:
            bits[:] = [await self.bit(n) for n in range(count)]
            return sum(bits) == taken

        await soon(complete)
        return bits

    async def holds(self) -> dict[str, float]:
        return {m.decode(): s for m, s in await self.client.zrange(self.seat_holds, 0, -1, withscores=True)}

    async def meta(self, hold_id: str) -> dict[str, str]:
        found = await self.client.hgetall(self.key(f"hold:{hold_id}:meta"))
        return {name.decode(): value.decode() for name, value in found.items()}


async def soon(found: Callable[[], Awaitable[Any]]) -> Any:
    """What a program sees that looks until there is something to see."""
    until = time.monotonic() + SOON_S
    while True:
        seen = await found()
        if seen or time.monotonic() > until:
            return seen
        await asyncio.sleep(0.01)


def run(database: TestDatabase, valkey: str, check: Callable[[Stage, Reader], Awaitable[None]]) -> None:
    async def main() -> None:
        async with stage(database, redis_url=valkey, redis_namespace=NAMESPACE, work=True) as made:
            client = redis.Redis.from_url(valkey)
            try:
                await check(made, Reader(made, client))
            finally:
                await client.aclose()

    asyncio.run(main())


async def held(made: Stage, n: int, headers: dict[str, str], **body: Any) -> dict[str, Any]:
    answer = await made.reserve(n, headers, **body)
    assert answer.status_code == 201, answer.text
    data: dict[str, Any] = answer.json()["data"]
    return data


async def owner(made: Stage, headers: dict[str, str]) -> str:
    answer = await made.client.get("/api/me", headers=headers)
    return str(answer.json()["data"]["user_id"])


def iso(text: str) -> str:
    """An instant of our answers in the form that the keys have."""
    instant = datetime.fromisoformat(text).astimezone(UTC)
    form = "%Y-%m-%dT%H:%M:%S" + (".%f" if instant.microsecond else "")
    return instant.strftime(form) + "Z"


def test_a_reserve_writes_every_key_of_the_contract(database: TestDatabase, valkey: str) -> None:
    async def check(made: Stage, reader: Reader) -> None:
        buyer = await made.buyer()
        hold = await held(made, 3, buyer)
        user_id, until = await owner(made, buyer), iso(hold["held_until"])
        member = f"{made.seats[3]['id']}:{hold['hold_id']}:{user_id}:{until}"
        assert await soon(reader.holds) == {member: float(hold["held_until_unix"])}
        value = await reader.client.get(reader.seat(3))
        assert value.decode() == f"{hold['hold_id']}:{user_id}:{hold['held_until_unix']}"
        meta = await reader.meta(hold["hold_id"])
        assert meta["seat_id"] == made.seats[3]["id"]
        assert meta["user_id"] == user_id
        assert meta["event_id"] == made.event_id
        assert meta["held_until"] == until
        assert meta["source"] == "web"
        assert meta["status"] == "active"
        assert meta["hold_type"] == "CART"
        left_s = hold["held_until_unix"] + 1 - time.time()
        for key in (reader.seat(3), reader.key(f"hold:{hold['hold_id']}:meta")):
            assert left_s - 3 < await reader.client.pttl(key) / 1000 <= left_s
        assert await reader.soon_bits(5) == [0, 0, 0, 1, 0]
        allowed = {reader.seat_holds, reader.seat(3), reader.key(f"hold:{hold['hold_id']}:meta")}
        allowed |= {reader.key(f"event:{made.event_id}:seats:bitmap")}
        event = (await made.client.get(f"/api/events/{made.event_id}", headers=made.admin)).json()["data"]
        layout = reader.key(f"layout:{event['layout_id']}:config")
        allowed |= {layout}

        async def drawn() -> Any:
            return await reader.client.get(layout)

        config = msgspec.json.decode(await soon(drawn))
        assert [zone["zone_id"] for zone in config["zones"]] == ["stalls", "pit"]
        assert 0 < await reader.client.ttl(layout) <= 24 * 3600
        found = {key.decode() async for key in reader.client.scan_iter(f"{NAMESPACE}:org:*")}
        assert found == allowed

    run(database, valkey, check)


def test_an_extension_moves_member_value_and_lifetime(database: TestDatabase, valkey: str) -> None:
    async def check(made: Stage, reader: Reader) -> None:
        buyer = await made.buyer()
        hold = await held(made, 0, buyer)
        assert await soon(reader.holds)
        await asyncio.sleep(1.1)
        answer = await made.client.post(f"/api/holds/{hold['hold_id']}/extend", headers=buyer)
        longer = answer.json()["data"]
        assert longer["held_until_unix"] > hold["held_until_unix"]
        user_id = await owner(made, buyer)
        member = f"{made.seats[0]['id']}:{hold['hold_id']}:{user_id}:{iso(longer['held_until'])}"

        async def extended() -> bool:
            return await reader.holds() == {member: float(longer["held_until_unix"])}

        assert await soon(extended)
        value = await reader.client.get(reader.seat(0))
        assert value.decode() == f"{hold['hold_id']}:{user_id}:{longer['held_until_unix']}"
        assert (await reader.meta(hold["hold_id"]))["held_until"] == iso(longer["held_until"])
        left_s = longer["held_until_unix"] + 1 - time.time()
        for key in (reader.seat(0), reader.key(f"hold:{hold['hold_id']}:meta")):
            assert left_s - 3 < await reader.client.pttl(key) / 1000 <= left_s

    run(database, valkey, check)


async def gone(reader: Reader, n: int, hold_id: str) -> bool:
    keys = (reader.seat(n), reader.key(f"hold:{hold_id}:meta"))
    return not await reader.holds() and not await reader.client.exists(*keys)


def test_a_release_removes_every_trace(database: TestDatabase, valkey: str) -> None:
    async def check(made: Stage, reader: Reader) -> None:
        buyer = await made.buyer()
        hold = await held(made, 5, buyer)
        assert await soon(reader.holds)
        await made.client.delete(f"/api/holds/{hold['hold_id']}", headers=buyer)
        assert await soon(lambda: gone(reader, 5, hold["hold_id"]))
        assert await reader.bit(5) == 0

    run(database, valkey, check)


def test_an_expiry_removes_every_trace(database: TestDatabase, valkey: str) -> None:
    async def check(made: Stage, reader: Reader) -> None:
        answer = await made.post("/api/organizations/config/", {"holdTypes": {"CART": {"ttlSeconds": 1}}})
        assert answer.status_code in (200, 201), answer.text
        hold = await held(made, 5, await made.buyer())
        assert hold["expires_in_seconds"] == 1
        assert await soon(reader.holds)
        assert await soon(lambda: gone(reader, 5, hold["hold_id"]))

        async def free() -> bool:
            return await reader.bit(5) == 0

        assert await soon(free)

    run(database, valkey, check)


def test_a_sale_removes_the_hold_and_keeps_the_seat_taken(database: TestDatabase, valkey: str) -> None:
    async def check(made: Stage, reader: Reader) -> None:
        selection = {"sessionId": "s-1", "seats": [{"id": made.seats[7]["booking_id"]}], "groupOfSeats": []}
        path, query = "/api/private/v2.0/booking", f"?eventId={made.event_id}"
        locked = await made.client.post(f"{path}/lock{query}", json=selection, headers=made.api_key)
        assert locked.status_code == 200, locked.text
        (member,) = await soon(reader.holds)
        hold_id = member.split(":")[1]
        assert member.split(":")[2] == ""  # a session's, nobody's in particular
        sold = await made.client.post(f"{path}/sale{query}", json=selection, headers=made.api_key)
        assert sold.status_code == 200, sold.text
        assert await soon(lambda: gone(reader, 7, hold_id))
        assert await reader.bit(7) == 1

    run(database, valkey, check)


def test_a_hold_without_an_end_has_none_here_either(database: TestDatabase, valkey: str) -> None:
    async def check(made: Stage, reader: Reader) -> None:
        hold = await held(made, 9, made.admin, holdType="RESERVED")
        assert hold["held_until"] is None
        found = await soon(reader.holds)
        assert list(found.values()) == [float("inf")]
        value = (await reader.client.get(reader.seat(9))).decode()
        assert value.startswith(f"{hold['hold_id']}:")
        assert value.endswith(":0")
        assert await reader.client.pttl(reader.seat(9)) == -1

    run(database, valkey, check)


def test_a_flushed_server_is_written_anew_within_five_seconds(database: TestDatabase, valkey: str) -> None:
    async def check(made: Stage, reader: Reader) -> None:
        buyer = await made.buyer()
        for n in range(5):
            await held(made, n, buyer)

        async def complete() -> bool:
            return len(await reader.holds()) == 5

        assert await soon(complete)
        before = await reader.holds()
        await reader.client.flushall()
        assert await soon(complete)
        assert await reader.holds() == before
        assert all([await reader.client.exists(reader.seat(n)) for n in range(5)])
        assert await reader.soon_bits(6, taken=5) == [1, 1, 1, 1, 1, 0]

    run(database, valkey, check)


def test_the_occupancy_is_kept_for_ten_seconds_and_dropped_by_a_change(database: TestDatabase, valkey: str) -> None:
    async def check(made: Stage, reader: Reader) -> None:
        buyer = await made.buyer()
        path = f"/api/events/{made.event_id}/occupancy"
        key = reader.key(f"event:{made.event_id}:occupancy")

        async def kept() -> Any:
            await made.client.get(path, headers=buyer)
            return await reader.client.get(key)

        msgspec.json.decode(await soon(kept))
        assert 0 < await reader.client.pttl(key) <= 10_000
        await held(made, 2, buyer)

        async def dropped() -> bool:
            return not await reader.client.exists(key)

        assert await soon(dropped)
        assert (await made.client.get(path, headers=buyer)).json()["data"]["held"] == 1

    run(database, valkey, check)


def test_a_write_that_takes_longer_than_the_lease_is_kept(
    database: TestDatabase, valkey: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a long absence: without it the writer would lose the lease, begin again, and never come to an end."""
    monkeypatch.setattr(warm_writer, "LEASE_MS", 150)
    monkeypatch.setattr(warm_writer, "RENEW_S", 0.03)
    apply = Warm.apply

    async def slow(self: Warm, *facts: Any) -> bool:
        await asyncio.sleep(0.5)
        return await apply(self, *facts)

    monkeypatch.setattr(Warm, "apply", slow)

    async def check(made: Stage, reader: Reader) -> None:
        rebuilt = REBUILT.labels("lost")._value.get()
        await held(made, 3, await made.buyer())

        async def key() -> Any:
            return await reader.client.get(reader.seat(3))

        assert await soon(key)
        assert REBUILT.labels("lost")._value.get() <= rebuilt + 1

    run(database, valkey, check)


def test_of_many_messages_in_any_order_the_newest_of_a_seat_counts(database: TestDatabase, valkey: str) -> None:
    """A transaction may have its number long before its turn at a seat, and is told of in the order of the numbers."""

    async def check(made: Stage, reader: Reader) -> None:
        buyer = await made.buyer()
        await held(made, 0, buyer)
        assert await soon(reader.holds), "the writer leads"
        feed, writer = made.app.feed, made.app.warm_writer
        assert writer is not None
        assert feed.cursor is not None
        hold, now = new_id(), datetime.fromtimestamp(feed.database_now(), UTC)
        own: dict[str, Any] = {"organization_id": made.first.organization_id, "id": 1, "xid": 1, "at": now}
        own["event_id"] = UUID(made.event_id)
        begun = Message(
            **own, kind="SeatReserved", state=SeatState.HELD, hold_type="CART", held_until=now + timedelta(minutes=5),
            ordinals=[5], versions=[2], hold_ids=[hold], user_ids=[new_id()],
        )  # fmt: skip
        ended = Message(
            **own, kind="SeatReleased", state=SeatState.AVAILABLE, ordinals=[5], versions=[3], hold_ids=[hold]
        )
        others = [
            Message(**own, kind="SeatBlocked", state=SeatState.BLOCKED, ordinals=[6], versions=[n], hold_ids=[None])
            for n in range(1, 501)
        ]
        writer.learn(News(feed.cursor, now, [ended, *others, begun]))

        async def blocked() -> Any:
            return await reader.bit(6)

        assert await soon(blocked)
        await asyncio.sleep(0.2)
        assert await reader.client.get(reader.seat(5)) is None
        assert [member for member in await reader.holds() if str(hold) in member] == []
        assert await reader.bit(5) == 0

    run(database, valkey, check)
