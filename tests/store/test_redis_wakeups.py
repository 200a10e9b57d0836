"""Calls between processes over Redis, with a server that comes and goes."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from holdfast.kernel.tasks import end_tasks
from holdfast.store.redis.wakeups import RedisWakeups
from holdfast.store.redis.warm import Warm
from tests.store.redis_ground import eventually, opened, own_server, run


class Listener:
    def __init__(self) -> None:
        self.woken = 0

    def wake(self) -> None:
        self.woken += 1

    async def hears(self, more_than: int, seconds: float = 5.0) -> bool:
        async def heard() -> bool:
            return self.woken > more_than

        return await eventually(heard, seconds)


@asynccontextmanager
async def listening(warm: Warm) -> AsyncIterator[Listener]:
    listener = Listener()
    task = asyncio.create_task(RedisWakeups(warm).listen(listener.wake))
    try:
        yield listener
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def test_a_call_wakes_every_listener_of_the_namespace(valkey: str) -> None:
    async def work(warm: Warm) -> None:
        other = Warm(warm.connection, "other")
        async with listening(warm) as one, listening(warm) as two, listening(other) as stranger:
            for listener in (one, two, stranger):
                assert await listener.hears(0), "woken once when connected"
            assert (one.woken, two.woken, stranger.woken) == (1, 1, 1)
            await RedisWakeups(warm).call()
            assert await one.hears(1)
            assert await two.hears(1)
            await asyncio.sleep(0.05)
            assert stranger.woken == 1

    run(valkey, work)


def test_who_calls_is_not_woken_and_learns_whether_anybody_else_was(valkey: str) -> None:
    async def work(warm: Warm) -> None:
        me, mine = RedisWakeups(warm), Listener()
        assert await me.call() is False, "nobody is there"
        task = asyncio.create_task(me.listen(mine.wake))
        assert await mine.hears(0)
        assert await me.call() is False, "nobody but itself"
        async with listening(warm) as other:
            assert await other.hears(0)
            assert await me.call() is True
            assert await other.hears(1)
        assert mine.woken == 1
        await end_tasks([task])
        async with listening(warm) as other:
            assert await other.hears(0)
            assert await me.call() is True, "the only one who listens is another"

    run(valkey, work)


def test_a_call_to_a_server_that_is_away_is_lost_and_nothing_else(tmp_path: Path) -> None:
    async def work(warm: Warm) -> None:
        async with listening(warm) as listener:
            for _ in range(5):
                await RedisWakeups(warm).call()
            assert not warm.available
            assert listener.woken == 0

    run(f"unix://{tmp_path}/nobody.sock", work)


def test_a_listener_comes_back_by_itself_when_the_server_was_killed(tmp_path: Path) -> None:
    async def work() -> None:
        with own_server(tmp_path) as server:
            async with opened(server.address.url()) as warm, listening(warm) as listener:
                assert await listener.hears(0)
                assert server.pid is not None
                os.kill(server.pid, signal.SIGKILL)
                await asyncio.sleep(0.5)
                server.start()
                assert await listener.hears(1, 5), "it may have missed something, so it is woken"
                before = listener.woken
                assert await eventually(warm.ping)
                await RedisWakeups(warm).call()
                assert await listener.hears(before)

    asyncio.run(work())


def test_a_listener_notices_a_server_that_does_not_answer_any_more(tmp_path: Path) -> None:
    async def work() -> None:
        with own_server(tmp_path) as server:
            async with opened(server.address.url()) as warm, listening(warm) as listener:
                assert await listener.hears(0)
                assert server.pid is not None
                os.kill(server.pid, signal.SIGSTOP)
                try:
                    await asyncio.sleep(5)
                finally:
                    os.kill(server.pid, signal.SIGCONT)
                assert await listener.hears(1, 5), "a new connection"

    asyncio.run(work())


def test_a_silent_channel_is_not_given_up(valkey: str) -> None:
    async def work(warm: Warm) -> None:
        async with listening(warm) as listener:
            assert await listener.hears(0)
            await asyncio.sleep(6)
            assert listener.woken == 1
            await RedisWakeups(warm).call()
            assert await listener.hears(1, 1)

    run(valkey, work)
