"""Deliveries: signed, tried again, given up, taken over, and none in the way of another."""

import asyncio
import os
import signal
import sys
from datetime import datetime, timedelta
from typing import Any

import pytest

from holdfast.store.postgres.webhook_queue import queries
from holdfast.webhooks.records import DeliveryStatus, EndpointChange
from holdfast.webhooks.schedule import DELAYS_S
from holdfast.workers.deliver_webhooks import BACKLOG, DELIVERIES
from holdfast.workers.forget_webhooks import ForgetWebhooks
from holdfast.workers.loop import Duties
from tests.conftest import TestDatabase
from tests.domain.test_webhook_signature import verifies
from tests.workers.receiver import Received, Reply
from tests.workers.webhook_ground import WebhookGround, until, webhook_ground

DAY_S = 86_400


def outcomes(outcome: str) -> float:
    value: float = DELIVERIES.labels(outcome)._value.get()
    return value


async def audits(ground: WebhookGround, action: str) -> list[Any]:
    return await ground.sql("SELECT actor, entity_id, changes FROM audit_entries WHERE action = $1", action)


def test_a_delivery_is_signed_so_that_its_receiver_can_verify_it(database: TestDatabase) -> None:
    async def main() -> None:
        async with webhook_ground(database) as ground:
            endpoint = await ground.listen()
            await ground.reserve(0)
            await ground.spread()
            delivered = outcomes("delivered")
            await ground.deliver()
            (one,) = ground.receiver.received
            assert verifies(endpoint.secret, one.headers, one.body)
            assert one.headers["content-type"] == "application/json"
            seat = ground.made.seats[0]
            (told,) = one.data["seats"]
            assert (told["id"], told["seat_id"], told["zone"]) == (seat["id"], seat["seat_id"], seat["zone"])
            (delivery,) = await ground.deliveries(endpoint.id)
            assert delivery.webhook_id == one.headers["webhook-id"]
            assert (delivery.status, delivery.attempts, delivery.status_code) == (DeliveryStatus.DELIVERED, 1, 200)
            assert outcomes("delivered") == delivered + 1
            assert await ground.sql("SELECT FROM pgqueuer") == []

    asyncio.run(main())


def test_after_a_rotation_both_secrets_verify_for_a_day_and_then_only_the_new_one(database: TestDatabase) -> None:
    async def main() -> None:
        async with webhook_ground(database) as ground:
            old = await ground.listen()
            new = await ground.service.rotate_secret(ground.call, old.id)
            assert new.secret != old.secret
            await ground.service.test(ground.call, old.id)
            await ground.deliver()
            await database.advance_clock(DAY_S + 1)
            await ground.service.test(ground.call, old.id)
            await ground.deliver()
            during, after = ground.receiver.received
            assert len(during.headers["webhook-signature"].split(" ")) == 2
            assert verifies(old.secret, during.headers, during.body)
            assert verifies(new.secret, during.headers, during.body)
            assert len(after.headers["webhook-signature"].split(" ")) == 1
            assert verifies(new.secret, after.headers, after.body)
            assert not verifies(old.secret, after.headers, after.body)

    asyncio.run(main())


# Tried again ----------------------------------------------------------------------------------------------------------
def test_what_fails_is_tried_again_ever_later_and_after_the_tenth_time_given_up(database: TestDatabase) -> None:
    async def main() -> None:
        async with webhook_ground(database) as ground:
            endpoint = await ground.listen()
            ground.receiver.reply = lambda _: Reply(500, {}, b"broken")
            await ground.reserve(0)
            await ground.spread()
            waits: list[float] = []
            for tries in range(1, 11):
                await ground.deliver()
                (delivery,) = await ground.deliveries(endpoint.id)
                assert delivery.attempts == tries
                jobs = await ground.sql("SELECT extract(epoch FROM execute_after - updated) AS wait FROM pgqueuer")
                waits += [float(job["wait"]) for job in jobs]
                await ground.make_due()
            assert len(waits) == 9
            for wait, planned in zip(waits, DELAYS_S, strict=True):
                assert 0.9 * planned <= wait <= 1.1 * planned
            (delivery,) = await ground.deliveries(endpoint.id)
            assert (delivery.status, delivery.next_attempt_at) == (DeliveryStatus.FAILED, None)
            assert len(ground.receiver.received) == 10
            assert len({one.headers["webhook-id"] for one in ground.receiver.received}) == 1
            assert len({one.body for one in ground.receiver.received}) == 1
            log = (await ground.service.delivery(ground.call, delivery.id)).log
            assert [(one.n, one.status_code, one.answer) for one in log] == [(n, 500, "broken") for n in range(1, 11)]

    asyncio.run(main())


def test_a_delivery_that_succeeds_at_last_is_delivered(database: TestDatabase) -> None:
    async def main() -> None:
        async with webhook_ground(database) as ground:
            endpoint = await ground.listen()
            statuses = [500, 302, 204]
            ground.receiver.reply = lambda _: Reply(statuses.pop(0), {}, b"")
            await ground.reserve(0)
            await ground.spread()
            for _ in range(3):
                await ground.deliver()
                await ground.make_due()
            (delivery,) = await ground.deliveries(endpoint.id)
            assert (delivery.status, delivery.attempts, delivery.status_code) == (DeliveryStatus.DELIVERED, 3, 204)
            assert (await ground.service.get(ground.call, endpoint.id)).failing_since is None

    asyncio.run(main())


@pytest.mark.parametrize(("status", "longer"), [(429, True), (503, True), (500, False)])
def test_an_endpoint_that_asks_for_time_gets_it(database: TestDatabase, status: int, longer: bool) -> None:
    async def main() -> None:
        async with webhook_ground(database) as ground:
            endpoint = await ground.listen()
            ground.receiver.reply = lambda _: Reply(status, {"retry-after": "3600"}, b"")
            await ground.reserve(0)
            await ground.spread()
            await ground.deliver()
            (job,) = await ground.sql("SELECT extract(epoch FROM execute_after - updated) AS wait FROM pgqueuer")
            assert (3_600 <= job["wait"] <= 3_960) if longer else (4 <= job["wait"] <= 6)
            (delivery,) = await ground.deliveries(endpoint.id)
            assert delivery.next_attempt_at is not None
            assert delivery.next_attempt_at - delivery.created_at > timedelta(seconds=3_600 if longer else 4)

    asyncio.run(main())


# Given up -------------------------------------------------------------------------------------------------------------
def test_an_endpoint_that_is_gone_is_disabled_and_sent_nothing_more(database: TestDatabase) -> None:
    async def main() -> None:
        async with webhook_ground(database) as ground:
            endpoint = await ground.listen()
            ground.receiver.reply = lambda _: Reply(410, {}, b"")
            await ground.reserve(0)
            await ground.spread()
            await ground.deliver()
            found = await ground.service.get(ground.call, endpoint.id)
            assert (found.enabled, found.disabled_reason) == (False, "it answered 410 Gone")
            (entry,) = await audits(ground, "webhook_disabled")
            assert (entry["actor"], entry["entity_id"]) == ("SYSTEM", endpoint.id)
            await ground.reserve(1)
            await ground.spread()
            await ground.deliver()
            assert len(ground.receiver.received) == 1
            assert [one.status for one in await ground.deliveries(endpoint.id)] == [DeliveryStatus.FAILED]

    asyncio.run(main())


def test_what_waits_for_an_endpoint_that_is_disabled_fails_and_can_be_replayed(database: TestDatabase) -> None:
    async def main() -> None:
        async with webhook_ground(database) as ground:
            endpoint = await ground.listen()
            await ground.reserve(0)
            await ground.spread()
            await ground.service.change(ground.call, endpoint.id, EndpointChange(enabled=False))
            await ground.deliver()
            (delivery,) = await ground.deliveries(endpoint.id, DeliveryStatus.FAILED)
            assert (delivery.attempts, delivery.error) == (0, "the webhook is disabled")
            assert ground.receiver.received == []
            await ground.service.change(ground.call, endpoint.id, EndpointChange(enabled=True))
            await ground.service.replay(ground.call, delivery.id)
            await ground.deliver()
            assert len(ground.receiver.received) == 1

    asyncio.run(main())


def test_an_endpoint_that_fails_for_three_days_in_a_row_is_disabled_and_one_that_works_between_is_not(
    database: TestDatabase,
) -> None:
    async def main() -> None:
        async with webhook_ground(database) as ground:
            dead, shaky = await ground.listen("/dead"), await ground.listen("/shaky")
            works = False

            def reply(one: Received) -> Reply:
                return Reply(200 if works and one.path == "/shaky" else 500)

            ground.receiver.reply = reply

            async def tell(n: int) -> None:
                await ground.reserve(n)
                await ground.spread()
                await ground.deliver()

            await tell(0)
            await database.advance_clock(2 * DAY_S)
            works = True
            await tell(1)
            works = False
            assert (await ground.service.get(ground.call, dead.id)).enabled
            await database.advance_clock(DAY_S + 60)
            await tell(2)
            found = await ground.service.get(ground.call, dead.id)
            assert (found.enabled, found.disabled_reason) == (False, "nothing was delivered to it for 3 days")
            assert (await ground.service.get(ground.call, shaky.id)).enabled
            (entry,) = await audits(ground, "webhook_disabled")
            assert (entry["actor"], entry["entity_id"]) == ("SYSTEM", dead.id)

    asyncio.run(main())


def test_a_test_that_fails_is_tried_once_and_counts_for_nothing(database: TestDatabase) -> None:
    async def main() -> None:
        async with webhook_ground(database) as ground:
            endpoint = await ground.listen(enabled=False)
            ground.receiver.reply = lambda _: Reply(500)
            delivery = await ground.service.test(ground.call, endpoint.id)
            await ground.deliver()
            assert [one.kind for one in ground.receiver.received] == ["WebhookTest"]
            assert (await ground.service.delivery(ground.call, delivery.id)).status is DeliveryStatus.FAILED
            assert (await ground.service.get(ground.call, endpoint.id)).failing_since is None
            assert await ground.sql("SELECT FROM pgqueuer") == []

    asyncio.run(main())


# Many at once ---------------------------------------------------------------------------------------------------------
def test_two_workers_at_once_deliver_each_message_once_and_no_endpoint_gets_too_many_at_a_time(
    database: TestDatabase,
) -> None:
    async def main() -> None:
        async with webhook_ground(database) as ground:
            endpoint = await ground.listen()
            ground.receiver.reply = lambda _: Reply(after_s=0.02)
            for _ in range(30):
                await ground.service.test(ground.call, endpoint.id)
            workers = [ground.second_worker(per_endpoint=3) for _ in range(2)]

            async def work(worker: Any) -> None:
                while await worker.once() == 0.0 or len(ground.receiver.received) < 30:
                    pass

            async with asyncio.timeout(60):
                await asyncio.gather(*(work(worker) for worker in workers))
            for worker in workers:
                await worker.close()
            ids = [one.headers["webhook-id"] for one in ground.receiver.received]
            assert len(ids) == len(set(ids)) == 30
            assert 1 < ground.receiver.most_at_once <= 3

    asyncio.run(main())


def test_a_slow_endpoint_does_not_hold_up_the_others(database: TestDatabase) -> None:
    async def main() -> None:
        async with webhook_ground(database) as ground:
            slow, fast = await ground.listen("/slow"), await ground.listen("/fast")

            def reply(one: Received) -> Reply:
                return Reply(after_s=0.0 if one.path == "/fast" else 8.0)

            ground.receiver.reply = reply
            for _ in range(40):  # the slow one's come first, and more than all that may be under way
                await ground.service.test(ground.call, slow.id)
            for _ in range(20):
                await ground.service.test(ground.call, fast.id)
            worker = ground.second_worker(total=8, per_endpoint=4)
            started = asyncio.get_running_loop().time()
            async with asyncio.timeout(60):
                while len(ground.receiver.of_path("/fast")) < 20:
                    await worker.once()
            assert asyncio.get_running_loop().time() - started < 8.0, "the fast one waited for the slow one"
            assert len(ground.receiver.of_path("/slow")) == 4
            await worker.close(0)
            # Without the bound they take all the room there is.
            await ground.sql("UPDATE pgqueuer SET status = 'queued', queue_manager_id = NULL")
            for _ in range(5):
                await ground.service.test(ground.call, fast.id)
            unbounded = ground.second_worker(total=8, per_endpoint=8)
            for _ in range(8):
                await unbounded.once()
            assert len(ground.receiver.of_path("/fast")) == 20
            await unbounded.close(0)

    asyncio.run(main())


DYING = """
import asyncio, sys
from holdfast.store.postgres.database import Database
from holdfast.webhooks.courier import Courier
from holdfast.workers.deliver_webhooks import DeliverWebhooks

async def main(dsn):
    database = await Database.open(dsn, 4)
    worker = DeliverWebhooks(database, Courier(private_targets=True))
    while True:
        await worker.once()

asyncio.run(main(sys.argv[1]))
"""


def test_what_a_worker_was_sending_when_it_was_killed_is_sent_by_another(database: TestDatabase) -> None:
    async def main() -> None:
        async with webhook_ground(database, stale_s=1.0) as ground:
            endpoint = await ground.listen()
            ground.receiver.reply = lambda _: Reply(after_s=60)
            await ground.reserve(0)
            await ground.spread()
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", DYING, database.app, env={**os.environ, "PYTHONPATH": "src"}
            )
            await until(lambda: len(ground.receiver.received) == 1)
            process.send_signal(signal.SIGKILL)
            await process.wait()
            (job,) = await ground.sql("SELECT status::text, queue_manager_id FROM pgqueuer")
            assert (job["status"], job["queue_manager_id"] is None) == ("picked", False)
            ground.receiver.reply = lambda _: Reply()
            async with asyncio.timeout(20):
                while len(ground.receiver.received) < 2:
                    await asyncio.sleep(await ground.worker.once())
            await ground.deliver()
            first, second = ground.receiver.received
            assert first.headers["webhook-id"] == second.headers["webhook-id"]
            (delivery,) = await ground.deliveries(endpoint.id)
            assert (delivery.status, delivery.attempts) == (DeliveryStatus.DELIVERED, 1)

    asyncio.run(main())


def test_a_worker_that_was_thought_dead_and_comes_back_does_not_undo_what_another_did(
    database: TestDatabase,
) -> None:
    async def main() -> None:
        async with webhook_ground(database) as ground:
            endpoint = await ground.listen()
            ground.receiver.reply = lambda _: Reply(500, after_s=2 if len(ground.receiver.received) == 1 else 0)
            await ground.reserve(0)
            await ground.spread()
            await ground.worker.once()
            await until(lambda: len(ground.receiver.received) == 1)
            await ground.sql("UPDATE pgqueuer SET heartbeat = now() - interval '1 hour'")
            other = ground.second_worker()
            await ground.deliver(other)
            assert len(ground.receiver.received) == 2
            overtaken = outcomes("overtaken")
            await ground.worker.close()
            assert outcomes("overtaken") == overtaken + 1
            (delivery,) = await ground.deliveries(endpoint.id)
            assert (delivery.status, delivery.attempts) == (DeliveryStatus.PENDING, 1)
            ground.receiver.reply = lambda _: Reply()
            await ground.make_due()
            await ground.deliver(other)
            (delivery,) = await ground.deliveries(endpoint.id)
            assert (delivery.status, delivery.attempts) == (DeliveryStatus.DELIVERED, 2)

    asyncio.run(main())


def test_a_live_workers_heartbeat_keeps_others_from_taking_its_jobs(database: TestDatabase) -> None:
    async def main() -> None:
        async with webhook_ground(database, stale_s=1.0) as ground:
            endpoint = await ground.listen()
            ground.receiver.reply = lambda _: Reply(after_s=3)
            await ground.service.test(ground.call, endpoint.id)
            other = ground.second_worker(stale_s=1.0)
            await ground.worker.once()
            await until(lambda: len(ground.receiver.received) == 1)
            async with asyncio.timeout(20):
                while await ground.sql("SELECT FROM pgqueuer"):
                    await ground.worker.once()
                    await other.once()
            assert len(ground.receiver.received) == 1

    asyncio.run(main())


def test_left_to_themselves_the_duties_bring_a_reservation_to_its_receiver_within_seconds(
    database: TestDatabase,
) -> None:
    async def main() -> None:
        async with webhook_ground(database) as ground:
            await ground.listen()
            duties = Duties([ground.fan_out, ground.worker, ForgetWebhooks(ground.database)])
            duties.start()
            await ground.reserve(0, 1, 2)
            await until(lambda: len(ground.receiver.received) == 3, 10)
            await duties.stop()
            assert {one.kind for one in ground.receiver.received} == {"SeatReserved"}

    asyncio.run(main())


# Sent again, forgotten, counted ---------------------------------------------------------------------------------------
def test_a_replay_while_the_first_attempt_is_still_under_way_is_not_lost(database: TestDatabase) -> None:
    async def main() -> None:
        async with webhook_ground(database) as ground:
            endpoint = await ground.listen()
            ground.receiver.reply = lambda _: Reply(500, after_s=0.5)
            await ground.reserve(0)
            await ground.spread()
            await ground.worker.once()
            await until(lambda: len(ground.receiver.received) == 1)
            (delivery,) = await ground.deliveries(endpoint.id)
            ground.receiver.reply = lambda _: Reply()
            await ground.service.replay(ground.call, delivery.id)
            await ground.deliver()
            (after,) = await ground.deliveries(endpoint.id)
            assert after.status is DeliveryStatus.DELIVERED
            assert len(ground.receiver.received) == 2
            assert await ground.sql("SELECT FROM pgqueuer") == []

    asyncio.run(main())


def test_an_endpoint_that_is_deleted_takes_its_deliveries_along_and_nothing_more_is_sent(
    database: TestDatabase,
) -> None:
    async def main() -> None:
        async with webhook_ground(database) as ground:
            endpoint = await ground.listen()
            await ground.reserve(0, 1)
            await ground.spread()
            await ground.service.delete(ground.call, endpoint.id)
            await ground.deliver()
            assert ground.receiver.received == []
            assert await ground.sql("SELECT FROM webhook_deliveries") == []
            assert await ground.sql("SELECT FROM pgqueuer") == []

    asyncio.run(main())


def test_after_thirty_days_a_delivery_is_forgotten_and_not_a_day_before(database: TestDatabase) -> None:
    async def main() -> None:
        async with webhook_ground(database) as ground:
            endpoint = await ground.listen()
            forget = ForgetWebhooks(ground.database)
            await ground.service.test(ground.call, endpoint.id)
            await ground.deliver()
            await database.advance_clock(29 * DAY_S)
            await ground.service.test(ground.call, endpoint.id)
            await forget.once()
            assert len(await ground.deliveries(endpoint.id)) == 2
            await database.advance_clock(DAY_S + 60)
            await ground.sql("UPDATE pgqueuer_log SET created = now() - interval '2 days'")
            await forget.once()
            (kept,) = await ground.deliveries(endpoint.id)
            assert isinstance(kept.created_at, datetime)
            assert kept.status is DeliveryStatus.PENDING
            assert await ground.sql("SELECT FROM webhook_attempts") == []
            assert await ground.sql("SELECT FROM pgqueuer_log") == []

    asyncio.run(main())


def test_the_backlog_is_what_is_due_and_not_sent(database: TestDatabase) -> None:
    async def main() -> None:
        async with webhook_ground(database) as ground:
            endpoint = await ground.listen()
            for _ in range(5):
                await ground.service.test(ground.call, endpoint.id)
            ground.receiver.reply = lambda _: Reply(after_s=5)
            worker = ground.second_worker(total=1)
            await worker.once()
            assert BACKLOG._value.get() == 5
            await worker.close(0)

    asyncio.run(main())


def test_the_queues_schema_is_what_the_installed_pgqueuer_wants_but_for_its_notifications(
    database: TestDatabase,
) -> None:
    async def main() -> None:
        async with webhook_ground(database) as ground, ground.database.transaction() as tx:
            plan = await queries(tx).plan_upgrade()
            assert [statement.split()[:2] for statement in plan.statements] == [
                ["CREATE", "FUNCTION"],
                ["CREATE", "TRIGGER"],
            ]

    asyncio.run(main())
