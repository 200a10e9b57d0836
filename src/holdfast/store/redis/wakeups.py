"""Calls between processes over a channel of Redis: there is news in the change feed. A call may be lost."""

import asyncio
import os
import time
from collections.abc import Callable

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from holdfast.store.redis.warm import Warm

log = structlog.get_logger(__name__)

PAUSE_FIRST_S, PAUSE_LONGEST_S = 0.05, 1.0
SILENCE_S = 2.0
"""A channel that was silent for so long is asked whether it is still there."""
ANSWER_S = 1.0


class RedisWakeups:
    def __init__(self, warm: Warm) -> None:
        self._warm = warm
        self._channel = warm.keys.changes
        self._me = os.urandom(8).hex()
        """Whoever calls has looked by itself."""
        self._subscribed = False

    async def call(self) -> bool | None:
        heard: int | None = await self._warm.call(
            "publish", lambda client: client.execute_command("PUBLISH", self._channel, self._me)
        )
        if heard is None:
            return None
        # The nodes of a cluster count their own listeners only.
        return self._warm.keys.cluster or heard > (1 if self._subscribed else 0)

    async def listen(self, wake: Callable[[], None]) -> None:
        """Until cancelled. Whoever was away may have missed calls, so each new connection counts as one."""
        attempt = 0
        pause_s = PAUSE_FIRST_S

        def connected() -> None:
            nonlocal pause_s
            pause_s = PAUSE_FIRST_S
            wake()

        while True:
            client = self._warm.connection.subscriber(attempt)
            try:
                await self._follow(client, connected, wake)
            except (RedisError, OSError, TimeoutError) as error:
                log.debug("warm_tier_channel_lost", error=str(error) or type(error).__name__)
            finally:
                self._subscribed = False
                await client.aclose()
            attempt += 1
            await asyncio.sleep(pause_s)
            pause_s = min(PAUSE_LONGEST_S, pause_s * 2)

    async def _follow(self, client: Redis, connected: Callable[[], None], wake: Callable[[], None]) -> None:
        """Until the connection is lost. The server says that it has subscribed us; only then no call is missed."""
        async with client.pubsub() as channel:
            async with asyncio.timeout(self._warm.connection.patience_s):
                await channel.subscribe(self._channel)
            heard = time.monotonic()
            asked = False
            while True:
                message = await channel.get_message(timeout=ANSWER_S)
                if message is not None:
                    heard, asked = time.monotonic(), False
                    if message["type"] == "subscribe":
                        self._subscribed = True
                        connected()
                    elif message["type"] == "message" and message["data"] != self._me.encode():
                        wake()
                elif asked and time.monotonic() - heard > SILENCE_S + ANSWER_S:
                    raise TimeoutError("the channel does not answer")
                elif not asked and time.monotonic() - heard > SILENCE_S:
                    asked = True
                    await channel.ping()
