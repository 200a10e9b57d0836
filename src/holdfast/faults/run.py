"""One run: two organizations on sale, a crowd, the fault in the middle, and the judgement of the whole."""

import asyncio
import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence

import asyncpg
import msgspec
import uvloop

from holdfast.faults.caches import Caches
from holdfast.faults.client import Recorder
from holdfast.faults.crowd import Crowd
from holdfast.faults.ground import NAMESPACE, Ground, GroundFailed
from holdfast.faults.house import House, open_houses
from holdfast.faults.strikes import FAULTS, SHORT, STRUCK, Times
from holdfast.holds.lifecycle import SeatState
from holdfast.insight.history import Verdict, judge_history
from holdfast.insight.history_facts import (
    Act,
    Bounds,
    Disturbance,
    EventRecord,
    History,
    Operation,
    Outcome,
    Sample,
)
from holdfast.store.postgres.database import Database
from holdfast.store.postgres.history import read_record, read_sample

GO_HOME_S = 60.0
MOMENT_S = 0.1
WARM_UP = 0.3
"""The part of the time before the fault in which everybody connects, and caches are filled."""

Say = Callable[[str], None]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    seconds: float = 60.0
    """Of load, from the first buyer to the last."""
    strike_at: float = 1 / 3
    """As a part of it."""
    life_s: int = 4
    guests: int = 24
    """A house."""
    clerks: int = 4
    look_s: float = 1.0
    """Between two questions to the caches."""
    sample_s: float = 6.0
    attempts: int = 12
    """Free seats that are asked for of each process at the end."""
    times: Times = Times()


SHORT_PLAN = Plan(
    seconds=3.2,
    strike_at=0.2,
    life_s=2,
    guests=10,
    clerks=2,
    look_s=0.6,
    sample_s=1.2,
    attempts=6,
    times=SHORT,
)


class Result(msgspec.Struct, frozen=True, kw_only=True):
    fault: str
    seconds: float
    outcomes: dict[str, int]
    verdicts: list[Verdict]
    p95_before_ms: float | None
    p95_during_ms: float | None
    caches: list[str]
    samples: int

    @property
    def ok(self) -> bool:
        return all(verdict.ok for verdict in self.verdicts)

    @property
    def p95_ratio(self) -> float | None:
        if not self.p95_before_ms or self.p95_during_ms is None:
            return None
        return self.p95_during_ms / self.p95_before_ms


def run_fault(ground: Ground, fault: str, plan: Plan, say: Say = lambda _: None) -> Result:
    """Call it on the main thread: the crowd has one of its own, so that it goes on while servers are started again."""
    say("opening the sale")
    houses = uvloop.run(open_houses(ground.settings, plan.life_s, plan.guests))
    load = _Load(ground, houses, plan)
    load.start()
    try:
        say("buyers at work")
        began = time.time()
        load.wait(plan.seconds * plan.strike_at)
        struck = time.time()
        say(f"{fault}: now")
        FAULTS[fault](ground, houses, plan.times)
        mended = time.time()
        say("mended; buyers go on")
        load.wait(max(0.0, began + plan.seconds - mended))
    finally:
        load.stop()
    say("all quiet; looking at what is left")
    ground.require_alive()
    disturbances = [] if fault == "none" else [Disturbance(fault, struck, mended)]
    records = uvloop.run(load.close(disturbances))
    say("judging")
    history = History(
        operations=load.recorder.operations,
        events=records,
        words=load.caches.words,
        disturbances=disturbances,
        bounds=Bounds(grace_s=ground.settings.sweeper_grace_s),
    )
    standing = [operation for operation in history.operations if operation.process != STRUCK.get(fault)]
    return Result(
        fault=fault,
        seconds=round(time.time() - began, 1),
        outcomes=dict(Counter(f"{operation.act} {operation.outcome}" for operation in history.operations)),
        verdicts=judge_history(history),
        p95_before_ms=p95_ms(standing, began + WARM_UP * (struck - began), struck),
        p95_during_ms=p95_ms(standing, struck, mended),
        caches=load.caches.heard,
        samples=sum(len(record.samples) for record in records),
    )


def p95_ms(operations: Sequence[Operation], since: float, until: float) -> float | None:
    """Of the reserves of single seats that were answered in that time."""
    took = sorted(
        operation.ended_s - operation.began_s
        for operation in operations
        if operation.act is Act.RESERVE
        and len(operation.ordinals) == 1
        and operation.outcome is not Outcome.UNKNOWN
        and since <= operation.began <= until
    )
    return round(1000 * took[int(0.95 * (len(took) - 1))], 2) if took else None


class _Load:
    """The crowd, those who ask the caches, and those who read the log, in a thread of their own."""

    def __init__(self, ground: Ground, houses: list[House], plan: Plan) -> None:
        self.recorder = Recorder()
        self.caches = Caches(houses, ground.urls, ground.redis_url, NAMESPACE)
        self._ground = ground
        self._houses = houses
        self._plan = plan
        self._crowd = Crowd(houses, ground.urls, self.recorder, plan.clerks)
        self._samples: dict[int, list[Sample]] = {n: [] for n in range(len(houses))}
        self._error: BaseException | None = None
        self._beside: list[asyncio.Task[None]] = []
        self._thread = threading.Thread(target=self._work, name="crowd", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wait(self, seconds: float) -> None:
        self._thread.join(seconds)
        if not self._thread.is_alive() and self._error is not None:
            raise self._error

    def stop(self) -> None:
        self._crowd.go_home()
        self._thread.join(GO_HOME_S)
        if self._thread.is_alive():
            raise GroundFailed(f"the crowd did not go home: {[task for task in self._beside if not task.done()]}")
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        try:
            uvloop.run(self._all())
        except BaseException as error:
            self._error = error

    async def _all(self) -> None:
        works = (self.caches.watch(), self._look(), self._sample())
        self._beside = [asyncio.create_task(work) for work in works]
        try:
            await self._crowd.shop()
        finally:
            await _end(self._beside)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(self._plan.look_s)
            await self.caches.ask_all()

    async def _sample(self) -> None:
        """What cannot be read while the database is away is read the next time."""
        while True:
            await asyncio.sleep(self._plan.sample_s)
            with contextlib.suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                database = await self._database()
                try:
                    await self._take_samples(database)
                finally:
                    await database.close()

    async def _database(self) -> Database:
        assert self._ground.settings.database_url is not None
        return await Database.open(self._ground.settings.database_url, 1, 10.0)

    async def _take_samples(self, database: Database) -> None:
        for n, house in enumerate(self._houses):
            self._samples[n].append(await read_sample(database, house.organization_id, house.event_id))

    # The end -----------------------------------------------------------------------------------------------------
    async def close(self, disturbances: Sequence[Disturbance]) -> list[EventRecord]:
        """When all is to be in order again: whether what is free can be had, twice, and what the caches say in between of
        the first. Reads the record."""
        bounds = Bounds()
        settled = max((each.ended + bounds.settle_s for each in disturbances), default=0.0)
        settled = max(settled, time.time() + self._plan.life_s)
        watching = asyncio.create_task(self.caches.watch())
        database = await self._database()
        try:
            await _until(settled - bounds.slack_s - MOMENT_S)
            await self._have_what_is_free(database)
            await _until(max(settled, time.time()) + bounds.converge_s + MOMENT_S)
            await self.caches.ask_all(at_last=True)
            await self._have_what_is_free(database)
            return [
                await read_record(database, house.organization_id, house.event_id, self._samples[n])
                for n, house in enumerate(self._houses)
            ]
        finally:
            await _end([watching])
            await database.close()

    async def _have_what_is_free(self, database: Database) -> None:
        await self._take_samples(database)
        for n, house in enumerate(self._houses):
            await self._ask_for_free(house, self._samples[n][-1])

    async def _ask_for_free(self, house: House, sample: Sample) -> None:
        free = [seat.ordinal for seat in sample.facts.seats if seat.state is SeatState.AVAILABLE]
        guest = house.guests[0]
        for n, client in enumerate(self.recorder.clients(self._ground.urls)):
            for ordinal in free[n :: len(self._ground.urls)][: self._plan.attempts]:
                held = await client.reserve(house, guest.user_id, guest.token, ordinal)
                if held.outcome is Outcome.DONE and ordinal % 2:
                    await client.release(house, guest.token, held)
            client.close()


async def _until(instant: float) -> None:
    await asyncio.sleep(max(0.0, instant - time.time()))


async def _end(tasks: Sequence["asyncio.Task[None]"]) -> None:
    """A cancellation that meets a timeout at the same instant may be taken for it: it is repeated until it is heard."""
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=1.0)
    for task in tasks:
        if not task.cancelled():
            task.result()
