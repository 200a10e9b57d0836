"""Following the change feed: nothing is missed, whatever order transactions end in, and whatever happens in between."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from holdfast.live.message import Message
from holdfast.store.feed import Feed, Wakeups
from holdfast.store.postgres.database import Database
from holdfast.store.postgres.feed import News
from holdfast.store.postgres.wakeups import PostgresWakeups
from tests.conftest import TestDatabase

ORGANIZATION = UUID("00000000-0000-7000-8000-000000000001")
SEND = "INSERT INTO outbox (organization_id, at, kind) VALUES ($1, holdfast_now(), $2)"


class Listener:
    def __init__(self) -> None:
        self.heard: list[Message] = []
        self.lost = 0

    def learn(self, news: News) -> None:
        self.heard += news.messages

    def lose(self) -> None:
        self.lost += 1

    @property
    def kinds(self) -> list[str]:
        return [message.kind for message in self.heard]


class Ground:
    def __init__(self, database: Database, feed: Feed, owner: Any, listener: Listener) -> None:
        self.database = database
        self.feed = feed
        self.owner = owner
        self.listener = listener

    async def send(self, kind: str, connection: Any = None) -> None:
        await (connection or self.owner).execute(SEND, ORGANIZATION, kind)


def run(
    test: TestDatabase, check: Callable[[Ground], Awaitable[None]], *, wakeups: bool = False, follow: bool = True
) -> None:
    async def main() -> None:
        database = await Database.open(test.app, 4)
        ways: list[Wakeups] = [PostgresWakeups(database, test.app)] if wakeups else []
        feed = Feed(database, ways)
        listener = Listener()
        feed.followers.append(listener)
        owner = await asyncpg.connect(test.owner)
        try:
            if follow:
                await feed.start()
            await check(Ground(database, feed, owner, listener))
        finally:
            await feed.close()
            await owner.close()
            await database.close()

    asyncio.run(main())


def test_a_message_is_heard_once(database: TestDatabase) -> None:
    async def check(ground: Ground) -> None:
        await ground.send("One")
        await ground.feed.caught_up()
        await ground.feed.caught_up()
        await ground.send("Two")
        await ground.feed.caught_up()
        assert ground.listener.kinds == ["One", "Two"]

    run(database, check)


def test_a_transaction_that_ends_late_is_heard_though_later_ones_were_heard_before(database: TestDatabase) -> None:
    """Its row has the lower id and the lower transaction number: a reader that goes on from either would miss it."""

    async def check(ground: Ground) -> None:
        slow = await asyncpg.connect(database.owner)
        late = slow.transaction()
        await late.start()
        await ground.send("Late", slow)
        for n in range(3):
            await ground.send(f"Quick {n}")
            await ground.feed.caught_up()
        assert ground.listener.kinds == ["Quick 0", "Quick 1", "Quick 2"]
        await late.commit()
        await ground.feed.caught_up()
        assert ground.listener.kinds == ["Quick 0", "Quick 1", "Quick 2", "Late"]
        assert ground.listener.heard[-1].xid < ground.listener.heard[0].xid
        await slow.close()

    run(database, check)


def test_what_is_rolled_back_is_never_heard(database: TestDatabase) -> None:
    async def check(ground: Ground) -> None:
        undone = ground.owner.transaction()
        await undone.start()
        await ground.send("Never")
        await undone.rollback()
        await ground.send("Once")
        await ground.feed.caught_up()
        assert ground.listener.kinds == ["Once"]

    run(database, check)


def test_many_writers_at_once_lose_nothing(database: TestDatabase) -> None:
    async def check(ground: Ground) -> None:
        async def write(writer: int) -> None:
            connection = await asyncpg.connect(database.owner)
            for n in range(30):
                async with connection.transaction():
                    await ground.send(f"{writer}-{n}", connection)
                    await asyncio.sleep(0.001 * ((writer * 7 + n * 3) % 5))
            await connection.close()

        await asyncio.gather(*(write(n) for n in range(8)))
        await ground.feed.caught_up()
        assert sorted(ground.listener.kinds) == sorted(f"{w}-{n}" for w in range(8) for n in range(30))

    run(database, check)


def test_another_process_is_called(database: TestDatabase) -> None:
    """Without a call it would look within half a second; a hundred in a row are heard in less than one look's pause."""

    async def check(ground: Ground) -> None:
        other = Feed(ground.database, [PostgresWakeups(ground.database, database.app)])
        listener = Listener()
        other.followers.append(listener)
        await other.start()
        await asyncio.sleep(0.2)
        took: list[float] = []
        for n in range(10):
            await asyncio.sleep(0.03)
            await ground.send(str(n))
            began = asyncio.get_running_loop().time()
            ground.feed.announce()
            while len(listener.heard) <= n:
                await asyncio.sleep(0.001)
            took.append(asyncio.get_running_loop().time() - began)
        await other.close()
        assert sorted(took)[5] < 0.3  # by itself it would look each half second

    run(database, check, wakeups=True)


def test_a_feed_whose_connections_are_killed_goes_on_where_it_was(database: TestDatabase) -> None:
    async def check(ground: Ground) -> None:
        await ground.send("Before")
        await ground.feed.caught_up()
        kill = """
            SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()
        """
        assert await ground.owner.fetchval(kill) > 0
        await ground.send("After")
        async with asyncio.timeout(5):
            while ground.listener.kinds != ["Before", "After"]:
                await asyncio.sleep(0.02)
        assert ground.listener.lost == 0

    run(database, check, wakeups=True)


def test_a_database_that_went_back_is_noticed(database: TestDatabase) -> None:
    async def check(ground: Ground) -> None:
        await ground.feed.caught_up()
        ground.feed.cursor = "900000000:900000000:"
        async with asyncio.timeout(5):
            while ground.listener.lost == 0:
                await asyncio.sleep(0.01)
        await ground.send("Again")
        async with asyncio.timeout(5):
            while "Again" not in ground.listener.kinds:
                await ground.send("Again")
                await asyncio.sleep(0.05)

    run(database, check)


def test_a_follower_that_fails_loses_what_it_knew_and_harms_no_other(database: TestDatabase) -> None:
    class Broken(Listener):
        def learn(self, news: News) -> None:
            raise ValueError("broken")

    async def check(ground: Ground) -> None:
        broken = Broken()
        ground.feed.followers.insert(0, broken)
        await ground.send("One")
        await ground.feed.caught_up()
        assert broken.lost >= 1
        assert ground.listener.kinds == ["One"]

    run(database, check)


def test_nothing_is_trusted_that_was_not_looked_at_for_a_second(
    database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check(ground: Ground) -> None:
        loop = asyncio.get_running_loop()
        await ground.feed.caught_up()
        assert ground.feed.trusted_until > loop.time()
        broken = ground.feed._look

        async def fail(began: float) -> None:
            raise OSError("no way")

        monkeypatch.setattr(ground.feed, "_look", fail)
        await asyncio.sleep(1.1)
        assert ground.feed.trusted_until < loop.time()
        monkeypatch.setattr(ground.feed, "_look", broken)
        await ground.feed.caught_up()
        assert ground.feed.trusted_until > loop.time()

    run(database, check)


def test_a_feed_that_is_stopped_in_the_moment_of_news_stops(database: TestDatabase) -> None:
    """A timeout of Python 3.11 can lose a cancellation that comes in the same turn as what was waited for."""

    async def check(ground: Ground) -> None:
        for n in range(60):
            feed = Feed(ground.database, [PostgresWakeups(ground.database, database.app)])
            await feed.start()
            await asyncio.sleep(0.001 * (n % 5))
            feed.announce()
            async with asyncio.timeout(5):
                await feed.close()

    run(database, check, follow=False)
