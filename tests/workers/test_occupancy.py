"""The duties that keep the counters of occupancy short and their minutes kept, however many of them run."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import asyncpg

from holdfast.seating.event import EventStatus
from holdfast.store.postgres.occupancy import fold, read_counted
from holdfast.workers.fold_occupancy import FoldOccupancy
from holdfast.workers.snapshot_occupancy import SnapshotOccupancy
from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.race.ground import Ground, ground
from tests.store.occupancy_truth import differences

HALL = theatre_config(2, 10, ga_capacity=50)


def run(database: TestDatabase, test: Callable[[Ground], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        async with ground(database, HALL, **options) as g:
            await test(g)

    asyncio.run(main())


async def pending(g: Ground) -> int:
    (row,) = await g.sql("SELECT count(*) FROM occupancy_changes")
    return int(row["count"])


async def counts(g: Ground) -> list[tuple[Any, ...]]:
    rows = await g.sql("SELECT zone_no, state::text, hold_type, places FROM occupancy_counts ORDER BY 1, 2, 3")
    return [tuple(row) for row in rows]


# Folding --------------------------------------------------------------------------------------------------------------
def test_folding_moves_every_change_into_the_counts_once(database: TestDatabase) -> None:
    async def test(g: Ground) -> None:
        await g.hold(g.apps[0], g.buyer(), [0, 1], 5)
        await g.hold(g.apps[1], g.buyer(), [2], 2)
        assert await pending(g) == 4
        assert await counts(g) == []
        assert 0 < await FoldOccupancy(g.apps[0].database).once() <= 1.0
        assert await pending(g) == 0
        assert await counts(g) == [(0, "held", "CART", 3), (1, "held", "CART", 7)]
        before = await g.sql("SELECT ctid, xmin::text, * FROM occupancy_counts ORDER BY zone_no")
        await FoldOccupancy(g.apps[0].database).once()
        assert await g.sql("SELECT ctid, xmin::text, * FROM occupancy_counts ORDER BY zone_no") == before
        await g.hold(g.apps[0], g.buyer(), [3])
        await FoldOccupancy(g.apps[0].database).once()
        assert await counts(g) == [(0, "held", "CART", 4), (1, "held", "CART", 7)]
        assert await differences(g.owner, g.event.id) == []

    run(database, test)


def test_many_folders_at_once_fold_each_change_once_and_in_bounded_steps(database: TestDatabase) -> None:
    async def test(g: Ground) -> None:
        for n in range(20):
            await g.hold(g.apps[0], g.buyer(), [n])
        assert await pending(g) == 20
        folders = [FoldOccupancy(app.database, batch=3) for app in g.apps for _ in range(3)]
        await asyncio.gather(*(folder.once() for folder in folders))
        assert await pending(g) == 0
        assert await counts(g) == [(0, "held", "CART", 20)]

    run(database, test)


def test_a_folder_leaves_alone_what_another_is_at(database: TestDatabase) -> None:
    async def test(g: Ground) -> None:
        await g.hold(g.apps[0], g.buyer(), [0])
        first, second = g.apps[0].database, g.apps[1].database
        async with first.transaction(g.organization_id) as tx:
            assert await fold(tx, g.organization_id, [g.event.id], 10) == 1
            async with second.transaction(g.organization_id) as other:
                assert await asyncio.wait_for(fold(other, g.organization_id, [g.event.id], 10), 5) is None
            await asyncio.wait_for(FoldOccupancy(second).once(), 5)
            async with second.transaction(g.organization_id) as other:
                seen = await read_counted(other, g.organization_id, g.event.id)
            assert [count.places for count in seen.counts] == [1]  # once, before the commit
        async with second.transaction(g.organization_id) as other:
            seen = await read_counted(other, g.organization_id, g.event.id)
        assert [count.places for count in seen.counts] == [1]  # and after it

    run(database, test)


def test_a_folder_that_dies_in_the_midst_loses_and_doubles_nothing(database: TestDatabase) -> None:
    async def test(g: Ground) -> None:
        await g.hold(g.apps[0], g.buyer(), [0, 1, 2], 4)
        connection = await asyncpg.connect(database.app)
        await connection.execute(f"BEGIN; SET LOCAL holdfast.organization_id = '{g.organization_id}'")
        assert await fold(connection, g.organization_id, [g.event.id], 10) == 2  # type: ignore[arg-type]
        connection.terminate()
        assert await differences(g.owner, g.event.id) == []
        for _ in range(100):  # until the server has noticed, and let go of its lock
            await FoldOccupancy(g.apps[0].database).once()
            if await pending(g) == 0:
                break
            await asyncio.sleep(0.02)
        assert await counts(g) == [(0, "held", "CART", 3), (1, "held", "CART", 4)]

    run(database, test)


def test_folding_goes_through_every_organization(database: TestDatabase) -> None:
    async def test(g: Ground) -> None:
        other = await g.apps[0].services.accounts.bootstrap("Another")
        await g.hold(g.apps[0], g.buyer(), [0])
        await g.owner.execute(
            "INSERT INTO events (organization_id, id, name, own_zones) VALUES ($1, $2, 'Night', '[]')",
            other.organization_id,
            g.event.id,
        )
        await g.owner.execute(
            "INSERT INTO occupancy_changes (organization_id, event_id, zone_no, state, hold_type, change)"
            " VALUES ($1, $2, 0, 'sold', '', 9)",
            other.organization_id,
            g.event.id,
        )
        await FoldOccupancy(g.apps[0].database).once()
        rows = await g.sql("SELECT organization_id, state::text, places FROM occupancy_counts ORDER BY places")
        assert [tuple(row) for row in rows] == [
            (g.organization_id, "held", 1),
            (other.organization_id, "sold", 9),
        ]

    run(database, test)


# Minutes --------------------------------------------------------------------------------------------------------------
async def minutes(g: Ground) -> list[asyncpg.Record]:
    return await g.sql("SELECT * FROM occupancy_snapshots ORDER BY at, event_id")


def test_a_minute_is_kept_once_by_however_many_workers(database: TestDatabase) -> None:
    async def test(g: Ground) -> None:
        await g.hold(g.apps[0], g.buyer(), [0, 1], 5)
        await FoldOccupancy(g.apps[0].database).once()
        await g.hold(g.apps[0], g.buyer(), [2])
        workers = [SnapshotOccupancy(app.database) for app in g.apps for _ in range(3)]
        pauses = await asyncio.gather(*(worker.once() for worker in workers))
        assert all(0 < pause <= 60 for pause in pauses)
        found = await minutes(g)
        assert len({row["at"] for row in found}) == len(found) <= 2  # the minute may have ended meanwhile
        row = found[0]
        assert (row["event_id"], row["at"].second, row["at"].microsecond) == (g.event.id, 0, 0)
        taken = (row["available"], row["held"], row["sold"], row["blocked"], row["total"])
        assert taken == (62, 8, 0, 0, 70)
        assert row["by_hold_type"] == '{"CART": 8}'
        assert await workers[0].once() <= 60
        await g.pass_time(60)
        await asyncio.gather(*(worker.once() for worker in workers))
        later = await minutes(g)
        assert len(later) == len(found) + 1
        assert later[-1]["at"] - found[-1]["at"] == timedelta(minutes=1)

    run(database, test)


def test_only_events_on_sale_are_kept_and_those_without_a_layout_too(database: TestDatabase) -> None:
    async def test(g: Ground) -> None:
        call, seating = g.admin, g.parts.seating
        zones = [{"zone_id": "lawn", "name": "Lawn", "zone_type": "ga_standing", "capacity": 300}]
        lawn = await seating.create_event(call, {"name": "Picnic", "zones": zones})
        draft = await seating.create_event(call, {"name": "Later", "layout_id": str(g.event.layout.id)})
        await SnapshotOccupancy(g.apps[0].database).once()
        assert {row["event_id"] for row in await minutes(g)} == {g.event.id}
        await seating.set_status(call, lawn.id, EventStatus.PUBLISHED)
        await SnapshotOccupancy(g.apps[0].database).once()
        totals = {row["event_id"]: row["total"] for row in await minutes(g)}
        assert totals == {g.event.id: 70, lawn.id: 300}
        assert draft.id not in totals

    run(database, test)
