"""Following the change feed: one reader a process, which hands every message to whoever lives by it.

The outbox is the truth; calls from other processes only say that it is worth a look. Nobody who misses a call misses a
change: the reader looks by itself every half second, and a look begins where the last one ended.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

import structlog
from prometheus_client import Counter, Gauge, Histogram

from holdfast.kernel.tasks import end_tasks
from holdfast.store.postgres.database import Database
from holdfast.store.postgres.feed import Cursor, News, cursor_now, high_mark, low_mark, read_news

log = structlog.get_logger(__name__)

POLL_S = 0.5
GAP_S = 0.016
"""Between two looks: what is committed meanwhile is read together."""
CALL_GAP_S = 0.05
TRUSTED_S = 1.0
"""What was learned is good for so long after the look that brought it."""
LOST_AFTER_S = 30.0
"""Away from the feed for longer: whoever lives by it begins anew instead of catching up."""

MESSAGES = Counter("holdfast_feed_messages_total", "Messages of the change feed read by this process")
LAG = Histogram(
    "holdfast_feed_lag_seconds",
    "From the database's decision to this process knowing of it",
    buckets=(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5),
)
FRESH = Gauge("holdfast_feed_fresh", "Whether this process knows of what was committed a second ago (1) or not (0)")


class Wakeups(Protocol):
    """How processes call each other when there is news. A call may be lost."""

    async def call(self) -> bool | None:
        """Whether anybody else heard it, as far as one can tell; None: this way does not work now."""
        ...

    async def listen(self, wake: Callable[[], None]) -> None:
        """Until cancelled; connects again by itself."""
        ...


class Follower(Protocol):
    """Who lives by the feed."""

    def learn(self, news: News) -> None:
        """Everything new since the last call, in no particular order; quick, and never waits."""
        ...

    def lose(self) -> None:
        """The feed was lost: what was learned is worth nothing."""
        ...


class Feed:
    """`wakeups`: ways to call the other processes, the best first; all are listened to."""

    def __init__(self, database: Database, wakeups: Sequence[Wakeups]) -> None:
        self._database = database
        self._wakeups = wakeups
        self.followers: list[Follower] = []
        self.cursor: Cursor | None = None
        self.trusted_until = 0.0
        """By the monotonic clock: until then this process knows of everything committed `TRUSTED_S` before."""
        self.clock_ahead_s = 0.0
        """What to add to the monotonic clock to get the database's (`database_now`)."""
        self._news = asyncio.Event()
        self._to_call = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._looked = asyncio.Condition()
        self.looks_begun = 0
        """The number of the look that is under way, or was the last."""
        self.looks_done = 0

    # Time --------------------------------------------------------------------------------------------------------
    def database_now(self) -> float:
        """The database's clock (unix), reckoned from the last look: a little late rather than early, because a hold
        that seems over is asked about, and one that seems alive is not."""
        return time.monotonic() + self.clock_ahead_s

    # Life --------------------------------------------------------------------------------------------------------
    async def start(self) -> None:
        with suppress(Exception):  # a database that is away now is looked for by the reader
            await self._look(time.monotonic())
        self._tasks = [asyncio.create_task(self._read(), name="feed-read")]
        for wakeups in self._wakeups:
            self._tasks.append(asyncio.create_task(wakeups.listen(self._news.set), name="feed-listen"))
        if self._wakeups:
            self._tasks.append(asyncio.create_task(self._call(), name="feed-call"))

    async def close(self) -> None:
        await end_tasks(self._tasks)

    def announce(self) -> None:
        """This process has committed something: it looks, and tells the others to."""
        self._news.set()
        self._to_call.set()

    async def caught_up(self) -> None:
        """Waits for a look that began after this call."""
        wanted = self.looks_begun + 1
        self._news.set()
        async with self._looked:
            await self._looked.wait_for(lambda: self.looks_done >= wanted)

    async def _begin(self) -> None:
        async with self._database.connection() as connection:
            self.cursor = await cursor_now(connection)

    # Reading -----------------------------------------------------------------------------------------------------
    async def _read(self) -> None:
        failing_since: float | None = None
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_S):  # not wait_for, which may lose a cancellation (Python 3.11)
                    await self._news.wait()
            self._news.clear()
            began = time.monotonic()
            try:
                await self._look(began)
                failing_since = None
            except Exception as error:
                FRESH.set(0)
                failing_since = failing_since or began
                log.warning("feed_unreadable", error=repr(error))
                if self.cursor is not None and began - failing_since > LOST_AFTER_S:
                    self._lose()
                await asyncio.sleep(0.1)
            await asyncio.sleep(GAP_S)

    async def _look(self, began: float) -> None:
        self.looks_begun += 1
        number = self.looks_begun
        if self.cursor is None:
            await self._begin()
            assert self.cursor is not None
        async with self._database.connection() as connection:
            news = await read_news(connection, self.cursor)
        if low_mark(news.cursor) < low_mark(self.cursor) or high_mark(news.cursor) < high_mark(self.cursor):
            log.warning("feed_went_back", before=self.cursor, now=news.cursor)  # another database, or an older one
            self._lose()
            return
        self.cursor = news.cursor
        self.clock_ahead_s = news.now.timestamp() - began
        for follower in self.followers:
            try:
                follower.learn(news)
            except Exception:
                log.exception("feed_follower_failed", follower=type(follower).__name__)
                follower.lose()
        if news.messages:
            MESSAGES.inc(len(news.messages))
            now = self.database_now()
            for message in news.messages:
                LAG.observe(max(0.0, now - message.at.timestamp()))
        self.trusted_until = began + TRUSTED_S
        FRESH.set(1)
        self.looks_done = number
        async with self._looked:
            self._looked.notify_all()

    def _lose(self) -> None:
        self.cursor = None
        self.trusted_until = 0.0
        for follower in self.followers:
            follower.lose()

    # Calling -----------------------------------------------------------------------------------------------------
    async def _call(self) -> None:
        while True:
            await self._to_call.wait()
            self._to_call.clear()
            heard: bool | None = None
            for wakeups in self._wakeups:  # the first that works
                try:
                    heard = await wakeups.call()
                except Exception as error:
                    log.debug("feed_call_failed", error=repr(error))
                if heard is not None:
                    break
            # Whoever comes into a house where nobody listened looks by itself before the next call.
            await asyncio.sleep(POLL_S if heard is False else CALL_GAP_S)
