"""Background duties: each is an object with a name, a pause and `once()`. This file alone starts, paces and stops them."""

import asyncio
import random
import time
from typing import Protocol

import structlog
from prometheus_client import Counter, Histogram

log = structlog.get_logger(__name__)

RUNS = Counter("holdfast_duty_runs_total", "Runs of a background duty", ["duty", "outcome"])
SECONDS = Histogram("holdfast_duty_seconds", "Time a run of a background duty took", ["duty"])


class Duty(Protocol):
    name: str

    async def once(self) -> float:
        """Does what is due now; answers the seconds until it wants to be called again."""
        ...


class Duties:
    def __init__(self, duties: list[Duty]) -> None:
        self._duties = duties
        self._stopping = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._keep(duty), name=f"duty-{duty.name}") for duty in self._duties]

    async def stop(self) -> None:
        """Lets each finish the run it is in."""
        self._stopping.set()
        _, late = await asyncio.wait(self._tasks, timeout=10) if self._tasks else (set(), set())
        for task in late:
            task.cancel()

    async def _keep(self, duty: Duty) -> None:
        failures = 0
        while not self._stopping.is_set():
            started = time.monotonic()
            try:
                pause_s = await duty.once()
                failures = 0
                RUNS.labels(duty.name, "ok").inc()
            except Exception as error:
                failures += 1
                pause_s = min(30.0, 0.2 * 2 ** min(failures, 8))
                RUNS.labels(duty.name, "failed").inc()
                log.warning("duty_failed", duty=duty.name, error=repr(error), retry_in_s=pause_s)
            SECONDS.labels(duty.name).observe(time.monotonic() - started)
            if pause_s > 0:
                await self._pause(pause_s * random.uniform(0.9, 1.0))

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return
