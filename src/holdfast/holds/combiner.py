"""The batching writer: concurrent requests of one process travel to PostgreSQL together.

Callers await a future. A lane takes whatever has gathered as soon as its connection is free, so an idle server adds no
delay and a busy one batches by itself. One batch is one call, one transaction, one organization; each request in it has
its own outcome, and one request's failure never harms another.

Within a batch no seat and no limited user appears twice. A request for a seat that is in a batch already *follows* it:
if the seat goes to somebody else, the follower is refused with that fact, without asking the database again; a process
under stampede therefore asks about a hot seat once, not a thousand times. That is a cache refusing, never granting: the
follower was here before the batch that took the seat came back. In every other case the follower is asked for real.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Protocol
from uuid import UUID

import structlog
from prometheus_client import Counter, Gauge, Histogram

from holdfast.holds.claims import (
    MAX_ATTEMPTS,
    Held,
    HoldRequest,
    PlacedHold,
    Unsettled,
    Verdict,
    held_by_another,
    seconds_between,
    settle,
)
from holdfast.kernel.errors import Overloaded, Refusal, ReservationFailed, SeatHeldByAnother, SeatNotAvailable

log = structlog.get_logger(__name__)

BATCHES = Histogram(
    "holdfast_batch_claims", "Claims in a batch of the writer", buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256)
)
WAITING = Gauge("holdfast_writer_waiting", "Requests waiting for the batching writer")
BATCH_FAILURES = Counter("holdfast_batch_failures_total", "Batches that failed as a whole", ["reason"])

PATIENCE_S = 2.0  # how long the database may be away before new requests are refused at once
SCAN_FACTOR = 8  # how far past the batch's size a lane looks for requests that do not collide


class BatchStore(Protocol):
    """What the combiner needs of the store."""

    async def hold(self, requests: Sequence[HoldRequest]) -> list[Verdict]:
        """One transaction for all; all seats, or all places. Raises `BatchLost` or `BatchRejected`."""
        ...

    async def find_placed(self, requests: Sequence[HoldRequest]) -> list[Held | None]:
        """After a lost connection: which of these requests had been committed all the same."""
        ...


class BatchLost(Exception):
    """The connection went away: whether the batch was committed is unknown."""


class BatchRejected(Exception):
    """The database refused the batch as a whole: nothing of it was done."""


Outcome = Held | Refusal
Deliver = Callable[[Outcome], None]


class _Waiting:
    __slots__ = (
        "arrived",
        "attempts",
        "deliver",
        "doubtful",
        "future",
        "kept",
        "outcome",
        "request",
        "sequence",
    )

    def __init__(
        self, request: HoldRequest, deliver: Deliver, sequence: int, future: "asyncio.Future[Held] | None"
    ) -> None:
        self.request = request
        self.deliver = deliver
        self.future = future  # of a caller who may give up waiting
        self.sequence = sequence
        self.arrived = time.monotonic()
        self.attempts = 0
        self.kept: list[PlacedHold] = []
        self.doubtful = False  # a try of it was broken off, and may have been committed
        self.outcome: Outcome | None = None

    @property
    def gone(self) -> bool:
        return self.future is not None and self.future.done()

    def settle(self, outcome: Outcome) -> None:
        """Once only: whatever comes later is not heard."""
        if self.outcome is not None:
            return
        self.outcome = outcome
        try:
            self.deliver(outcome)
        except Exception:  # the hold is made; that its answer cannot be written must not harm the batch's others
            log.exception("hold_not_delivered")


QueueKey = tuple[UUID, bool]  # organization, and whether the requests are for places instead of seats
SeatKey = tuple[UUID, int, int | None]
"""Event, ordinal, and the version of the layout in which the ordinal is meant."""


class _Batch:
    """Requests that travel together, and those that follow one of their seats."""

    __slots__ = ("claims", "followers", "members", "seats", "sequence", "users")

    def __init__(self, sequence: int) -> None:
        self.sequence = sequence  # requests numbered below were here before the batch was sent
        self.members: list[_Waiting] = []
        self.seats: dict[SeatKey, _Waiting] = {}
        self.users: set[object] = set()
        self.followers: dict[SeatKey, list[_Waiting]] = {}
        self.claims = 0


class Combiner:
    def __init__(
        self,
        store: BatchStore,
        *,
        lanes: int = 2,
        batch_size: int = 64,
        queue_limit: int = 10_000,
        deadline_s: float = 10.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self._lane_count = lanes
        self._batch_size = batch_size
        self._queue_limit = queue_limit
        self._deadline_s = deadline_s
        self._sleep = sleep
        self._queues: dict[QueueKey, deque[_Waiting]] = {}
        self._turns: deque[QueueKey] = deque()  # queues with something in them, in the order they are served
        self._waiting = 0
        self._sequence = 0
        self._in_flight: dict[SeatKey, _Batch] = {}
        self._wake = asyncio.Event()
        self._lanes: list[asyncio.Task[None]] = []
        self._closing = False
        self._lost_since: float | None = None

    def start(self) -> None:
        self._lanes = [asyncio.create_task(self._lane(), name=f"combiner-{n}") for n in range(self._lane_count)]

    async def close(self) -> None:
        """Finishes what was accepted, then stops."""
        self._closing = True
        self._wake.set()
        await asyncio.gather(*self._lanes, return_exceptions=True)

    def submit(self, request: HoldRequest) -> "asyncio.Future[Held]":
        """Queues a request of seats alone or of places alone; the future brings its holds or raises its refusal."""
        future: asyncio.Future[Held] = asyncio.get_running_loop().create_future()

        def deliver(outcome: Outcome) -> None:
            if future.done():
                return
            if isinstance(outcome, Held):
                future.set_result(outcome)
            else:
                future.set_exception(outcome)

        self.enqueue(request, deliver, future)
        return future

    def enqueue(self, request: HoldRequest, deliver: Deliver, future: "asyncio.Future[Held] | None" = None) -> None:
        """The same with a function to call, which costs less than a future."""
        if self._lost_since is not None and time.monotonic() - self._lost_since > PATIENCE_S:
            raise Overloaded("The database cannot be reached. Please try again in a moment.", retry_after_s=2)
        if self._closing or self._waiting >= self._queue_limit:
            raise Overloaded("Too many people are asking at once. Please try again in a moment.", retry_after_s=1)
        self._sequence += 1
        self._enqueue(_Waiting(request, deliver, self._sequence, future))

    # Queues ------------------------------------------------------------------------------------------------------
    def _enqueue(self, waiting: _Waiting, *, first: bool = False) -> None:
        key = (waiting.request.organization_id, not waiting.request.seats)
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = deque()
            self._turns.append(key)
        if first:
            queue.appendleft(waiting)
        else:
            queue.append(waiting)
        self._waiting += 1
        self._wake.set()

    def _next_batch(self) -> _Batch | None:
        """Up to a batch's worth from the queue whose turn it is."""
        for _ in range(len(self._turns)):
            key = self._turns.popleft()
            queue = self._queues[key]
            batch = self._gather(queue)
            if queue:
                self._turns.append(key)
            else:
                del self._queues[key]
            if batch.members:
                return batch
        return None

    def _gather(self, queue: deque[_Waiting]) -> _Batch:
        batch = _Batch(self._sequence)
        passed_over: list[_Waiting] = []
        now = time.monotonic()
        for _ in range(min(len(queue), self._batch_size * SCAN_FACTOR)):
            if batch.claims >= self._batch_size:
                break
            waiting = queue.popleft()
            if waiting.gone:
                self._waiting -= 1
            elif now - waiting.arrived > self._deadline_s:
                self._waiting -= 1
                waiting.settle(
                    Overloaded("This took too long because of the crowd. Please try again.", retry_after_s=1)
                )
            else:
                self._place(batch, waiting, passed_over)
        queue.extendleft(reversed(passed_over))
        return batch

    def _place(self, batch: _Batch, waiting: _Waiting, passed_over: list[_Waiting]) -> None:
        request = waiting.request
        event_id = request.event_id
        for seat in request.seats:
            key = (event_id, seat.ordinal, request.layout_version)
            leader = batch if key in batch.seats else self._in_flight.get(key)
            if leader is not None:
                leader.followers.setdefault(key, []).append(waiting)
                return
        if request.limited:
            mine: set[object] = {request.user_id} if request.ip_limit is None else {request.user_id, request.ip}
            if not batch.users.isdisjoint(mine):
                passed_over.append(waiting)
                return
            batch.users |= mine
        for seat in request.seats:
            batch.seats[(event_id, seat.ordinal, request.layout_version)] = waiting
        batch.members.append(waiting)
        batch.claims += len(request.seats) + len(request.places)
        self._waiting -= 1

    # Lanes -------------------------------------------------------------------------------------------------------
    async def _lane(self) -> None:
        while True:
            if not self._turns:
                if self._closing:
                    return
                self._wake.clear()
                await self._wake.wait()
                await asyncio.sleep(0)  # let everything that arrived in this turn of the loop join
            batch = self._next_batch()
            if batch is None:
                if self._turns:
                    await asyncio.sleep(0.001)  # only requests that must wait for another lane's batch
                continue
            WAITING.set(self._waiting)
            BATCHES.observe(batch.claims)
            for key in batch.seats:
                self._in_flight[key] = batch
            try:
                await self._carry(batch)
            except Exception:
                log.exception("combiner_lane_failed")
                self._fail(batch.members, "internal")
            finally:
                self._lost_since = None  # nobody is trying any more: the next request finds out how things stand
                for key in batch.seats:
                    if self._in_flight.get(key) is batch:
                        del self._in_flight[key]
                self._settle_followers(batch)

    async def _carry(self, batch: _Batch) -> None:
        """Brings a batch to its end: through lost connections, and one by one where the whole is rejected."""
        members = batch.members
        delay_s = 0.02
        while members:
            try:
                verdicts = await self._store.hold([w.request for w in members])
            except BatchLost:
                BATCH_FAILURES.labels("lost").inc()
                self._lost_since = self._lost_since or time.monotonic()
                for waiting in members:
                    waiting.doubtful = True
                members = await self._recover(members, delay_s)
                delay_s = min(1.0, delay_s * 2)
            except BatchRejected as rejected:
                BATCH_FAILURES.labels("rejected").inc()
                if len(members) == 1:
                    if await self._is_its_own(members[0]):
                        return
                    log.error("hold_rejected", error=str(rejected.__cause__ or rejected))
                    self._fail(members, "rejected")
                else:
                    for waiting in members:
                        await self._carry(_alone(waiting))
                return
            else:
                self._lost_since = None
                for waiting, verdict in zip(members, verdicts, strict=True):
                    outcome = settle(waiting.request, verdict)
                    if not (isinstance(outcome, Refusal) and await self._is_its_own(waiting)):
                        self._conclude(waiting, outcome)
                return

    async def _recover(self, members: list[_Waiting], delay_s: float) -> list[_Waiting]:
        """After a lost connection: those that were committed after all are answered, the rest go again in time."""
        await self._sleep(delay_s)
        found: list[Held | None] = [None] * len(members)
        with suppress(BatchLost):
            found = await self._store.find_placed([w.request for w in members])
        now = time.monotonic()
        for waiting, held in zip(members, found, strict=True):
            if held is not None:
                self._conclude(waiting, held)
            elif now - waiting.arrived > self._deadline_s:
                waiting.settle(Overloaded("The database cannot be reached. Please try again.", retry_after_s=2))
        return [w for w in members if w.outcome is None and not w.gone]

    async def _is_its_own(self, waiting: _Waiting) -> bool:
        """Whether what stands in a request's way is what an earlier, broken-off try of it placed; answers it if so."""
        if not waiting.doubtful:
            return False
        try:
            (held,) = await self._store.find_placed([waiting.request])
        except BatchLost:
            return False
        if held is not None:
            self._conclude(waiting, held)
        return held is not None

    # Outcomes ----------------------------------------------------------------------------------------------------
    def _conclude(self, waiting: _Waiting, outcome: Held | Unsettled | Refusal) -> None:
        if isinstance(outcome, Held):
            if waiting.kept:
                outcome = Held(sorted(waiting.kept + outcome.holds, key=lambda h: h.ordinal or 0), outcome.decided_at)
            waiting.settle(outcome)
        elif isinstance(outcome, Refusal):
            waiting.settle(outcome)
        else:
            waiting.attempts += 1
            if waiting.attempts >= MAX_ATTEMPTS:
                first = outcome.remaining.seats[0].ordinal if outcome.remaining.seats else 0
                waiting.settle(held_by_another(first, 0))
                return
            waiting.request = outcome.remaining
            waiting.kept += outcome.kept
            self._enqueue(waiting, first=True)

    def _settle_followers(self, batch: _Batch) -> None:
        requeue: list[_Waiting] = []
        for key, followers in batch.followers.items():
            leader = batch.seats[key]
            answer = _shared_answer(leader, key)
            self._waiting -= len(followers)
            for waiting in followers:
                mine = waiting.request.user_id is not None and waiting.request.user_id == leader.request.user_id
                known_in_time = answer is not None and (answer[1] or waiting.sequence <= batch.sequence)
                if answer is None or mine or not known_in_time:
                    requeue.append(waiting)
                else:
                    waiting.settle(_another(answer[0]))
        for waiting in sorted(requeue, key=lambda w: w.sequence, reverse=True):
            self._enqueue(waiting, first=True)

    def _fail(self, members: Sequence[_Waiting], reason: str) -> None:
        for waiting in members:
            waiting.settle(
                ReservationFailed("The reservation could not be made. Nothing was changed.", reason=reason),
            )


def _alone(waiting: _Waiting) -> _Batch:
    batch = _Batch(waiting.sequence)
    batch.members.append(waiting)
    return batch


def _shared_answer(leader: _Waiting, key: SeatKey) -> tuple[Refusal, bool] | None:
    """What the leader's outcome says about the seat for others, and whether it is the leader's own new hold."""
    outcome = leader.outcome
    if isinstance(outcome, Held):
        for hold in outcome.holds:
            if hold.ordinal == key[1] and hold.created:
                return held_by_another(key[1], seconds_between(outcome.decided_at, hold.held_until)), True
    elif isinstance(outcome, SeatHeldByAnother | SeatNotAvailable) and outcome.facts.get("ordinal") == key[1]:
        return outcome, False
    return None


def _another(refusal: Refusal) -> Refusal:
    """One for each: an exception is changed by being raised."""
    return type(refusal)(refusal.detail, **refusal.facts)
