"""From the outbox to deliveries: each message once for everyone who listens, whatever dies in between."""

import asyncio
import os
import signal
import sys
from typing import Any

import asyncpg
import pytest

from holdfast.store.postgres.trail import send_message
from holdfast.store.postgres.webhook_queue import bounded
from holdfast.workers.fan_out_webhooks import FanOutWebhooks
from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.workers.webhook_ground import WebhookGround, webhook_ground

COUNTS = """
SELECT e.url, m.kind, m.outbox_id, count(*) AS n FROM webhook_deliveries d
JOIN webhook_messages m ON m.organization_id = d.organization_id AND m.id = d.message_id
JOIN webhook_endpoints e ON e.organization_id = d.organization_id AND e.id = d.endpoint_id
GROUP BY 1, 2, 3
"""
OUTBOX = "SELECT id, kind FROM outbox WHERE at >= $1"


async def assert_each_once(ground: WebhookGround, endpoint: Any, kind: str | None = None) -> int:
    """Every message since the endpoint was made has exactly one delivery to it, and every delivery one job."""
    outbox = {
        (row["id"], row["kind"])
        for row in await ground.sql(OUTBOX, endpoint.created_at)
        if kind is None or row["kind"] == kind
    }
    rows = [row for row in await ground.sql(COUNTS) if row["url"] == endpoint.url and row["outbox_id"] is not None]
    assert {(row["outbox_id"], row["kind"]) for row in rows} == outbox
    assert {row["n"] for row in rows} <= {1}
    (jobs,) = await ground.sql("SELECT count(*) AS n, count(DISTINCT payload) AS payloads FROM pgqueuer")
    (deliveries,) = await ground.sql("SELECT count(*) AS n FROM webhook_deliveries WHERE status = 'pending'")
    assert jobs["n"] == jobs["payloads"] == deliveries["n"]
    return len(outbox)


def test_a_message_goes_to_everyone_who_listens_to_it_and_to_nobody_else(database: TestDatabase) -> None:
    async def main() -> None:
        async with webhook_ground(database) as ground:
            other_event = await ground.made.make_event()
            everything = await ground.listen("/everything")
            await ground.listen("/reserved", kinds=["SeatReserved"])
            await ground.listen("/sold", kinds=["SeatSold"])
            await ground.listen("/other", event_id=other_event)
            await ground.listen("/off", enabled=False)
            await ground.reserve(0, 1)
            await ground.made.client.patch(
                f"/api/events/{other_event}", headers=ground.made.admin, json={"name": "Renamed"}
            )
            await ground.spread()
            await ground.deliver()
            told = {path: [one.kind for one in ground.receiver.of_path(path)] for path in
                    ("/everything", "/reserved", "/sold", "/other", "/off")}  # fmt: skip
            assert sorted(told["/everything"]) == ["EventUpdated", "SeatReserved", "SeatReserved"]
            assert told["/reserved"] == ["SeatReserved", "SeatReserved"]
            assert (told["/sold"], told["/other"], told["/off"]) == ([], ["EventUpdated"], [])
            assert await assert_each_once(ground, everything) == 3

    asyncio.run(main())


DYING = """
import asyncio, os, signal, sys
from holdfast.settings import Settings
from holdfast.store.catalogue import Catalogue
from holdfast.store.postgres import webhook_queue, webhooks
from holdfast.store.postgres.database import Database
from holdfast.workers.fan_out_webhooks import FanOutWebhooks

PLACES = {"cursor": (webhook_queue, "move_cursor"), "deliveries": (webhooks, "enqueue"), "jobs": (webhooks, "send")}

def die_in(module, name, first):
    whole = getattr(module, name)
    async def fatal(*args):
        if not first:
            await whole(*args)
        os.kill(os.getpid(), signal.SIGKILL)
    setattr(module, name, fatal)

async def main(dsn, place):
    if place in PLACES:
        die_in(*PLACES[place], first=place == "deliveries")
    database = await Database.open(dsn, 4)
    await FanOutWebhooks(database, Catalogue(database, Settings())).once()
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main(*sys.argv[1:]))
"""
"""Dies after the cursor was moved, before the jobs of the deliveries are there, before the commit, or after it."""


@pytest.mark.parametrize("place", ["cursor", "deliveries", "jobs", "committed"])
def test_a_worker_killed_between_any_two_steps_loses_nothing_and_doubles_nothing(
    database: TestDatabase, place: str
) -> None:
    async def main() -> None:
        async with webhook_ground(database) as ground:
            endpoint = await ground.listen()
            await ground.reserve(0, 1, 2)
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", DYING, database.app, place, env={**os.environ, "PYTHONPATH": "src"}
            )
            assert await process.wait() == -signal.SIGKILL
            written = len(await ground.sql("SELECT FROM webhook_deliveries"))
            assert written == (3 if place == "committed" else 0)
            await ground.reserve(3)
            async with asyncio.timeout(20):  # the dead worker's lock goes when the server notices
                while len(await ground.sql("SELECT FROM webhook_deliveries")) < 4:
                    await ground.spread()
            assert await assert_each_once(ground, endpoint) == 4

    asyncio.run(main())


def test_any_number_of_workers_at_once_fan_out_each_message_once(database: TestDatabase) -> None:
    async def main() -> None:
        async with webhook_ground(database) as ground:
            endpoint = await ground.listen()
            workers = [FanOutWebhooks(ground.database, ground.made.app.catalogue, batch=3) for _ in range(3)]
            busy = True

            async def work(worker: FanOutWebhooks) -> None:
                while busy:
                    await worker.once()
                    await asyncio.sleep(0)

            tasks = [asyncio.create_task(work(worker)) for worker in workers]
            await asyncio.gather(*(ground.reserve(n) for n in range(30)))
            busy = False
            await asyncio.gather(*tasks)
            await ground.spread()
            assert await assert_each_once(ground, endpoint) >= 1

    asyncio.run(main())


def test_a_transaction_that_commits_late_is_not_passed_over(database: TestDatabase) -> None:
    async def main() -> None:
        async with webhook_ground(database) as ground:
            endpoint = await ground.listen()
            organization_id = ground.made.first.organization_id
            async with ground.database.transaction(organization_id) as slow:
                await send_message(slow, organization_id, "CheckoutExpired", None, {"checkout_id": "slow"})
                await ground.reserve(0)
                await ground.spread()
                assert len(await ground.sql("SELECT FROM webhook_deliveries")) == 1
            await ground.reserve(1)
            await ground.spread()
            await ground.spread()
            assert await assert_each_once(ground, endpoint) == 3

    asyncio.run(main())


def test_a_long_backlog_is_read_in_parts_past_a_transaction_that_is_still_open(database: TestDatabase) -> None:
    async def main() -> None:
        async with webhook_ground(database, batch=2) as ground:
            endpoint = await ground.listen()
            await ground.spread()
            organization_id = ground.made.first.organization_id
            await ground.reserve(0, 1, 2)
            async with ground.database.transaction(organization_id) as slow:
                await send_message(slow, organization_id, "CheckoutExpired", None, {"checkout_id": "slow"})
                await ground.reserve(3, 4, 5, 6)
                assert await ground.fan_out.once() == 0.0
                assert len(await ground.sql("SELECT FROM webhook_deliveries")) == 2
                await ground.spread()
                assert len(await ground.sql("SELECT FROM webhook_deliveries")) == 7
            await ground.spread()
            assert await assert_each_once(ground, endpoint) == 8

    asyncio.run(main())


@pytest.mark.parametrize(
    ("cursor", "below", "cut"),
    [
        ("10:20:10,15", 30, "10:20:10,15"),
        ("10:20:10,15", 16, "10:16:10,15"),
        ("10:20:10,15", 15, "10:15:10"),
        ("10:20:12,15", 11, "11:11:"),
        ("20:20:", 20, "20:20:"),
    ],
)
def test_a_cursor_cut_short_sees_what_lies_below_and_nothing_else(
    database: TestDatabase, cursor: str, below: int, cut: str
) -> None:
    async def main() -> None:
        connection = await asyncpg.connect(database.owner)
        sees = "SELECT pg_visible_in_snapshot($1::text::xid8, $2::text::pg_snapshot)"
        for number in range(1, 25):
            now = await connection.fetchval(sees, str(number), cut)
            assert now == (await connection.fetchval(sees, str(number), cursor) and number < below), number
        await connection.close()

    assert bounded(cursor, below) == cut
    asyncio.run(main())


def test_with_nobody_listening_nothing_is_written_and_whoever_comes_later_hears_of_nothing_before(
    database: TestDatabase,
) -> None:
    async def main() -> None:
        async with webhook_ground(database) as ground:
            (before,) = await ground.sql("SELECT cursor FROM feed_cursors")
            await ground.reserve(0, 1)
            await ground.sql("UPDATE feed_cursors SET moved_at = now() - interval '1 minute'")
            await ground.spread()
            (after,) = await ground.sql("SELECT cursor FROM feed_cursors")
            assert before["cursor"] != after["cursor"]
            await ground.reserve(2)
            endpoint = await ground.listen()
            await ground.reserve(3)
            await ground.spread()
            assert await assert_each_once(ground, endpoint) == 1
            assert await ground.sql("SELECT FROM webhook_messages") != []

    asyncio.run(main())


def test_each_organization_hears_of_its_own_and_of_nothing_else(database: TestDatabase) -> None:
    async def main() -> None:
        async with webhook_ground(database) as ground:
            _, other = await ground.second_organization()
            await ground.listen("/mine")
            theirs = WebhookGround(
                other, ground.receiver, ground.courier, ground.service, ground.fan_out, ground.worker
            )
            await theirs.listen("/theirs")
            await asyncio.gather(ground.reserve(0, 1, 2), theirs.reserve(0, 1))
            await ground.spread()
            await ground.deliver()
            mine = {one.data["event_id"] for one in ground.receiver.of_path("/mine")}
            assert mine == {ground.made.event_id}
            assert {one.data["event_id"] for one in ground.receiver.of_path("/theirs")} == {other.event_id}
            assert (len(ground.receiver.of_path("/mine")), len(ground.receiver.of_path("/theirs"))) == (3, 2)
            rows = await ground.sql(
                """
                SELECT d.organization_id = e.organization_id AND d.organization_id = m.organization_id AS same
                FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
                JOIN webhook_messages m ON m.id = d.message_id
                """
            )
            assert [row["same"] for row in rows] == [True] * 5

    asyncio.run(main())


def test_a_cursor_from_another_servers_backup_begins_anew(database: TestDatabase) -> None:
    async def main() -> None:
        async with webhook_ground(database) as ground:
            await ground.listen()
            await ground.sql(
                "UPDATE feed_cursors SET cursor = '900000000:900000000:', moved_at = now() - interval '1 h'"
            )
            await ground.spread()
            await ground.reserve(0)
            await ground.spread()
            assert len(await ground.sql("SELECT FROM webhook_deliveries")) == 1

    asyncio.run(main())


# Sold out -------------------------------------------------------------------------------------------------------------
def test_an_event_is_told_to_be_sold_out_once_each_time_its_last_place_goes(database: TestDatabase) -> None:
    async def main() -> None:
        async with webhook_ground(database, config=theatre_config(1, 3, ga_capacity=2)) as ground:
            await ground.listen(kinds=["EventSoldOut"])

            async def told() -> int:
                await ground.spread()
                await ground.deliver()
                return len(ground.receiver.received)

            hold = await ground.made.hold(ground.made.admin, 0, 1, ga=[{"zone_id": "pit", "quantity": 2}])
            assert hold.status_code == 201
            assert await told() == 0
            last = await ground.made.reserve(2, ground.made.admin)
            assert await told() == 1
            (said,) = ground.receiver.received
            assert (said.kind, said.data["event_id"]) == ("EventSoldOut", ground.made.event_id)
            assert {name: said.data[name] for name in ("held", "sold", "blocked", "total")} == {
                "held": 5,
                "sold": 0,
                "blocked": 0,
                "total": 5,
            }
            # Something else happens while it is sold out: that is no news.
            hold_id = last.json()["data"]["hold_id"]
            extended = await ground.made.client.post(f"/api/holds/{hold_id}/extend", headers=ground.made.admin)
            assert extended.status_code == 200, extended.text
            assert await told() == 1
            released = await ground.made.client.delete(f"/api/holds/{hold_id}", headers=ground.made.admin)
            assert released.status_code in (200, 204)
            assert await told() == 1
            await ground.reserve(2)
            assert await told() == 2

    asyncio.run(main())
