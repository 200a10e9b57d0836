"""The breaker before the warm tier: a server that fails is left alone for a moment instead of being waited for.

It opens after a timeout, or after a few failures in a row. While it is open every call is refused at once, but for one
that is let through after a pause to see whether the server is back. The pauses grow to a second and no further: whatever
waits for the server's return learns of it soon.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog
from prometheus_client import Counter, Gauge
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeout

log = structlog.get_logger(__name__)

OPEN = Gauge("holdfast_warm_breaker_open", "Whether the warm tier is left alone because it failed (1) or in use (0)")
COMMANDS = Counter("holdfast_warm_commands_total", "Calls to the warm tier", ["command", "outcome"])

FAILURES_MAX = 3
PAUSE_FIRST_S, PAUSE_LONGEST_S = 0.1, 1.0

T = TypeVar("T")


class Breaker:
    """One for each server and process; `call` is the only way to the server."""

    def __init__(
        self, patience_s: float, *, calls_at_once: int = 16, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._patience_s = patience_s
        self._clock = clock
        self._places = asyncio.Semaphore(calls_at_once)
        self._failures = 0
        self._pause_s = 0.0
        self._next_probe = 0.0
        self._open = False
        self._probing = False
        self.last_error = ""
        OPEN.set(0)

    @property
    def is_open(self) -> bool:
        return self._open

    async def call(self, command: str, work: Callable[[], Awaitable[T]]) -> T | None:
        """What `work` answers; None where it failed, took too long, or was not tried. Never raises, but if cancelled."""
        probing = self._open
        if probing:
            if self._probing or self._clock() < self._next_probe:
                COMMANDS.labels(command, "refused").inc()
                return None
            self._probing = True
        try:
            async with asyncio.timeout(self._patience_s), self._places:
                if self._open and not probing:  # since this call has waited for its place
                    COMMANDS.labels(command, "refused").inc()
                    return None
                answer = await work()
        except (TimeoutError, RedisTimeout):
            _heed_cancellation()
            self._failed(command, "timeout", "no answer in time", probing)
            return None
        except Exception as error:
            _heed_cancellation()
            if not isinstance(error, RedisError | OSError):
                log.exception("warm_tier_call_failed", command=command)  # not the server's fault: a mistake of ours
            self._failed(command, "failed", str(error) or type(error).__name__, probing)
            return None
        finally:
            if probing:
                self._probing = False
        COMMANDS.labels(command, "ok").inc()
        self._succeeded()
        return answer

    def _succeeded(self) -> None:
        self._failures = 0
        if self._open:
            self._open = False
            self._pause_s = 0.0
            OPEN.set(0)
            log.info("warm_tier_back")

    def _failed(self, command: str, outcome: str, error: str, probing: bool) -> None:
        COMMANDS.labels(command, outcome).inc()
        self._failures += 1
        self.last_error = error
        if self._open and not probing:
            return  # begun before it opened
        if not self._open:
            if outcome != "timeout" and self._failures < FAILURES_MAX:
                return
            log.warning("warm_tier_away", command=command, error=error)
            self._open = True
            OPEN.set(1)
        self._pause_s = min(PAUSE_LONGEST_S, self._pause_s * 2 or PAUSE_FIRST_S)
        self._next_probe = self._clock() + self._pause_s


def _heed_cancellation() -> None:
    """The client makes an error of its own out of a cancellation that comes in the middle of a command."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
