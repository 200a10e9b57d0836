"""The occupancy of an event in three tiers: never older than a change this process has been told of."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from holdfast.insight import occupancy_service
from holdfast.insight.occupancy_service import OccupancyService
from holdfast.kernel.errors import EventNotFound, Forbidden
from holdfast.seating.event import EventStatus
from holdfast.store.embedded import running_valkey
from holdfast.store.lookups import LOOKUPS
from holdfast.store.postgres.feed import cursor_now, read_news
from holdfast.store.postgres.occupancy import read_counted
from holdfast.store.redis.warm import Warm
from holdfast.workers.fold_occupancy import FoldOccupancy
from tests.conftest import TestDatabase
from tests.factories import buyer_call, make_organization, staff_call, theatre_config
from tests.race.ground import Ground, ground

HALL = theatre_config(2, 10, ga_capacity=50)


def run(database: TestDatabase, test: Callable[[Ground], Awaitable[None]], instances: int = 1) -> None:
    async def main() -> None:
        async with ground(database, HALL, instances=instances, policy={"max_holds_per_user": None}) as g:
            await test(g)

    asyncio.run(main())


def service(g: Ground, warm: Any = None, n: int = 0) -> OccupancyService:
    """One process's: its own memory."""
    return OccupancyService(g.apps[n].database, g.apps[n].catalogue, warm)


async def held(g: Ground, asked: OccupancyService) -> int:
    return (await asked.occupancy(g.admin, g.event.id)).held


def lookups() -> dict[tuple[str, str], float]:
    return {
        (sample.labels["tier"], sample.labels["outcome"]): sample.value
        for family in LOOKUPS.collect()
        for sample in family.samples
        if sample.name.endswith("_total") and sample.labels["what"] == "occupancy"
    }


async def looked_up(work: Awaitable[Any]) -> set[tuple[str, str]]:
    """Which lookups were made meanwhile."""
    before = lookups()
    await work
    return {key for key, value in lookups().items() if value != before.get(key, 0.0)}


class Shelf:
    """A warm tier whose every answer can be made to wait."""

    def __init__(self) -> None:
        self.bodies: dict[tuple[UUID, UUID], bytes] = {}
        self.reached = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()
        self.drops = 0

    async def get_occupancy(self, organization_id: UUID, event_id: UUID) -> bytes | None:
        return self.bodies.get((organization_id, event_id))

    async def set_occupancy(self, organization_id: UUID, event_id: UUID, body: bytes) -> bool:
        self.reached.set()
        await self.gate.wait()
        self.bodies[organization_id, event_id] = body
        return True

    async def drop_occupancy(self, organization_id: UUID, event_id: UUID) -> bool:
        self.drops += 1
        return self.bodies.pop((organization_id, event_id), None) is not None


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


# In one process -------------------------------------------------------------------------------------------------------
def test_a_value_is_remembered_until_a_change_is_told(database: TestDatabase) -> None:
    async def test(g: Ground) -> None:
        asked = service(g)
        assert await looked_up(held(g, asked)) == {("hot", "miss"), ("cold", "hit")}
        first = await asked.occupancy(g.admin, g.event.id)
        await g.hold(g.apps[0], g.buyer(), [0, 1], 5)
        assert await looked_up(held(g, asked)) == {("hot", "hit")}
        assert await asked.occupancy(g.admin, g.event.id) is first
        asked.forget(g.event.id)
        told = await asked.occupancy(g.admin, g.event.id)
        assert (told.held, told.by_hold_type, told.by_zone[1].held) == (7, {"CART": 7}, 5)
        assert told.timestamp > first.timestamp

    run(database, test)


def test_a_value_is_remembered_for_ten_seconds_at_most(database: TestDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    assert occupancy_service.KEEP_S == 10.0

    async def test(g: Ground) -> None:
        asked = service(g)
        assert await held(g, asked) == 0
        await g.hold(g.apps[0], g.buyer(), [0])
        assert await held(g, asked) == 0
        monkeypatch.setattr(occupancy_service, "KEEP_S", 0.05)
        await asyncio.sleep(0.06)
        assert await held(g, asked) == 1

    run(database, test)


def test_what_was_read_before_a_change_is_not_remembered_after_it(
    database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(g: Ground) -> None:
        asked = service(g)
        read, reached, gate = read_counted, asyncio.Event(), asyncio.Event()

        async def slow(*arguments: Any) -> Any:
            counted = await read(*arguments)
            reached.set()
            await gate.wait()
            return counted

        monkeypatch.setattr(occupancy_service, "read_counted", slow)
        early = asyncio.create_task(held(g, asked))
        await reached.wait()
        await g.hold(g.apps[0], g.buyer(), [0])
        asked.forget(g.event.id)
        monkeypatch.setattr(occupancy_service, "read_counted", read)
        assert await asyncio.wait_for(held(g, asked), 5) == 1  # and does not wait for what began before
        gate.set()
        assert await early == 0
        assert await held(g, asked) == 1

    run(database, test)


def test_many_who_ask_at_once_are_one_reading(database: TestDatabase) -> None:
    async def test(g: Ground) -> None:
        asked = service(g)
        before = lookups().get(("cold", "hit"), 0.0)
        answers = await asyncio.gather(*(held(g, asked) for _ in range(50)))
        assert answers == [0] * 50
        assert lookups()["cold", "hit"] - before == 1
        asked.forget(g.event.id)
        one = asyncio.create_task(held(g, asked))
        two = asyncio.create_task(held(g, asked))
        await asyncio.sleep(0)
        one.cancel()
        assert await two == 0  # whoever gives up takes it from nobody

    run(database, test)


def test_the_change_feed_makes_it_forget_and_its_loss_makes_it_forget_everything(database: TestDatabase) -> None:
    async def test(g: Ground) -> None:
        asked = service(g)
        other = await g.new_event(theatre_config(1, 4))
        async with g.apps[0].database.transaction(engine=True) as tx:
            cursor = await cursor_now(tx)
        assert await held(g, asked) == 0
        assert (await asked.occupancy(g.admin, other.id)).held == 0
        await g.hold(g.apps[0], g.buyer(), [0])
        async with g.apps[0].database.connection() as connection:
            asked.learn(await read_news(connection, cursor))
        assert await looked_up(held(g, asked)) == {("hot", "miss"), ("cold", "hit")}
        assert await looked_up(asked.occupancy(g.admin, other.id)) == {("hot", "hit")}
        asked.lose()
        assert await looked_up(asked.occupancy(g.admin, other.id)) == {("hot", "miss"), ("cold", "hit")}
        assert await looked_up(held(g, asked)) == {("hot", "miss"), ("cold", "hit")}

    run(database, test)


def test_memory_is_bounded(database: TestDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(g: Ground) -> None:
        monkeypatch.setattr(occupancy_service, "MAX_EVENTS", 2)
        asked = service(g)
        events = [g.event, *[await g.new_event(theatre_config(1, 4)) for _ in range(2)]]
        for event in events:
            await asked.occupancy(g.admin, event.id)
        assert await looked_up(asked.occupancy(g.admin, events[2].id)) == {("hot", "hit")}
        asked.forget(events[0].id)  # no longer known: nothing to do, and no harm
        assert await looked_up(asked.occupancy(g.admin, events[0].id)) == {("hot", "miss"), ("cold", "hit")}

    run(database, test)


def test_folding_changes_no_answer(database: TestDatabase) -> None:
    async def test(g: Ground) -> None:
        await g.hold(g.apps[0], g.buyer(), [0, 1], 5)
        asked = service(g)
        before = await asked.occupancy(g.admin, g.event.id)
        await FoldOccupancy(g.apps[0].database).once()
        asked.forget(g.event.id)
        after = await asked.occupancy(g.admin, g.event.id)
        assert (after.by_zone, after.by_hold_type) == (before.by_zone, before.by_hold_type)

    run(database, test)


# Who may ask ----------------------------------------------------------------------------------------------------------
def test_who_may_see_the_event_may_see_how_full_it_is(database: TestDatabase) -> None:
    async def test(g: Ground) -> None:
        asked = service(g)
        organization = g.event.organization
        assert (await asked.occupancy(buyer_call(organization), g.event.id)).total == 70
        assert (await asked.occupancy(buyer_call(organization, guest_event_id=g.event.id), g.event.id)).total == 70
        other = await g.new_event(theatre_config(1, 4))
        draft = await g.new_event(theatre_config(1, 4), status=EventStatus.DRAFT)
        stranger = await make_organization(g.parts, "Another")
        for call, event in (
            (buyer_call(organization, guest_event_id=g.event.id), other),
            (buyer_call(organization), draft),
            (buyer_call(stranger), g.event),
            (staff_call(stranger), g.event),
        ):
            with pytest.raises(EventNotFound):
                await asked.occupancy(call, event.id)
        assert (await asked.occupancy(g.admin, draft.id)).total == 4
        with pytest.raises(Forbidden):
            await asked.history(buyer_call(organization), g.event.id, None, None, 10)

    run(database, test)


# Between processes ----------------------------------------------------------------------------------------------------
def test_processes_share_a_value_over_the_warm_tier(database: TestDatabase, tmp_path: Path) -> None:
    async def test(g: Ground) -> None:
        with running_valkey(tmp_path) as address:
            warm = Warm.open(address.url(), "tests", 1.0)
            try:
                first, second = service(g, warm), service(g, warm, 1)
                seats = await g.hold(g.apps[0], g.buyer(), [0, 1])
                assert seats is not None
                assert await held(g, first) == 2
                while await warm.get_occupancy(g.organization_id, g.event.id) is None:
                    await asyncio.sleep(0.005)
                assert await looked_up(held(g, second)) == {("hot", "miss"), ("warm", "hit")}
                assert await second.occupancy(g.admin, g.event.id) == await first.occupancy(g.admin, g.event.id)
                await g.hold(g.apps[0], g.buyer(), [2])
                first.forget(g.event.id)  # takes its value out again
                while await warm.get_occupancy(g.organization_id, g.event.id) is not None:
                    await asyncio.sleep(0.005)
                assert await held(g, first) == 3
            finally:
                await warm.close()

    run(database, test, instances=2)


def test_a_value_from_before_a_change_that_is_known_here_is_passed_over(database: TestDatabase) -> None:
    async def test(g: Ground) -> None:
        shelf = Shelf()
        first, second, third = service(g, shelf), service(g, shelf, 1), service(g, shelf, 1)
        assert await held(g, first) == 0
        await settle()
        await g.hold(g.apps[0], g.buyer(), [0])
        (row,) = await g.sql("SELECT max(xid)::text::bigint AS xid FROM outbox")
        await held(g, second)
        second.forget(g.event.id, row["xid"])
        assert await looked_up(held(g, second)) == {("hot", "miss"), ("warm", "stale"), ("cold", "hit")}
        await settle()
        # What the second read is good enough for who has heard of the same change, asked before or not.
        third.forget(g.event.id, row["xid"])
        assert await looked_up(held(g, third)) == {("hot", "miss"), ("warm", "hit")}
        assert await held(g, third) == 1

    run(database, test, instances=2)


def test_a_change_told_before_anybody_asked_counts_too(database: TestDatabase) -> None:
    async def test(g: Ground) -> None:
        shelf = Shelf()
        assert await held(g, service(g, shelf)) == 0
        await settle()
        await g.hold(g.apps[0], g.buyer(), [0])
        (row,) = await g.sql("SELECT max(xid)::text::bigint AS xid FROM outbox")
        fresh = service(g, shelf)
        fresh.forget(g.event.id, row["xid"])
        assert await looked_up(held(g, fresh)) == {("hot", "miss"), ("warm", "stale"), ("cold", "hit")}
        assert await held(g, fresh) == 1

    run(database, test)


def test_a_change_of_unknown_number_needs_the_counters_themselves(database: TestDatabase) -> None:
    async def test(g: Ground) -> None:
        shelf = Shelf()
        first, second, third = service(g, shelf), service(g, shelf, 1), service(g, shelf, 1)
        assert await held(g, first) == 0
        assert await held(g, second) == 0
        await settle()
        await g.hold(g.apps[1], g.buyer(), [0])
        second.forget(g.event.id)
        third.forget(g.event.id)
        shelf.bodies.setdefault((g.organization_id, g.event.id), b"{}")
        assert await looked_up(held(g, second)) == {("hot", "miss"), ("cold", "hit")}
        assert await looked_up(held(g, third)) == {("hot", "miss"), ("cold", "hit")}
        assert (await held(g, second), await held(g, third)) == (1, 1)

    run(database, test, instances=2)


def test_a_value_on_its_way_to_the_warm_tier_when_a_change_is_told_does_not_stay_there(database: TestDatabase) -> None:
    async def test(g: Ground) -> None:
        shelf = Shelf()
        shelf.gate.clear()
        asked = service(g, shelf)
        assert await held(g, asked) == 0  # and does not wait for the warm tier
        await shelf.reached.wait()
        await g.hold(g.apps[0], g.buyer(), [0])
        asked.forget(g.event.id)
        await settle()
        shelf.gate.set()
        await settle()
        assert shelf.bodies == {}
        assert shelf.drops >= 1
        assert await held(g, asked) == 1

    run(database, test)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"{}",
        b"\xff\x00",
        b'{"occupancy":{"held":0},"snapshot":"1:1:"}',
    ],
)
def test_rubbish_in_the_warm_tier_is_a_miss(database: TestDatabase, body: bytes) -> None:
    async def test(g: Ground) -> None:
        shelf = Shelf()
        shelf.bodies[g.organization_id, g.event.id] = body
        assert await looked_up(held(g, service(g, shelf))) == {("hot", "miss"), ("warm", "miss"), ("cold", "hit")}

    run(database, test)


def test_another_events_value_and_a_bad_snapshot_in_the_warm_tier_are_a_miss(database: TestDatabase) -> None:
    async def test(g: Ground) -> None:
        shelf = Shelf()
        other = await g.new_event(HALL)
        await service(g, shelf).occupancy(g.admin, other.id)
        await settle()
        (body,) = shelf.bodies.values()
        mine = body.replace(str(other.id).encode(), str(g.event.id).encode())
        assert b'"snapshot":"' in mine
        head, _, _ = mine.partition(b'"snapshot":"')
        for wrong in (body, head + b'"snapshot":"soon"}', head + b'"snapshot":"1:x:"}'):
            shelf.bodies[g.organization_id, g.event.id] = wrong
            assert ("warm", "miss") in await looked_up(held(g, service(g, shelf)))
            await settle()
        shelf.bodies[g.organization_id, g.event.id] = mine
        assert ("warm", "hit") in await looked_up(held(g, service(g, shelf)))

    run(database, test)
