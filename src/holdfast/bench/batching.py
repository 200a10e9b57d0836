"""The batching writer ÷ the same writer with one request a batch, both without HTTP."""

import asyncio
import random
import time
from collections.abc import Iterator
from uuid import UUID

from holdfast.bench.cpu import Spent
from holdfast.bench.progress import Progress
from holdfast.bench.report import Measured, Quantity, Ratio, at_least
from holdfast.bench.scale import Scale
from holdfast.bench.stand import OnSale, Stand
from holdfast.holds.claims import HoldRequest, SeatWanted
from holdfast.holds.combiner import Combiner
from holdfast.kernel.ids import new_id
from holdfast.store.postgres.database import Database
from holdfast.store.postgres.hold_batches import PostgresBatches

GOAL = at_least(5)
MANY_LANES = 16
"""Without batches more connections help; so it is compared with that, too."""


def measure(stand: Stand, event: OnSale, scale: Scale, progress: Progress) -> Measured:
    lanes = stand.settings.writer_connections
    batch = stand.settings.batch_size
    sides = {"batched": (batch, lanes), "single": (1, lanes), "single_many": (1, MANY_LANES)}
    rates: dict[str, list[float]] = {side: [] for side in sides}
    foreign: list[float] = []
    for n in range(scale.rounds):
        for side, (batch_size, lane_count) in sides.items():
            progress.say(f"round {n + 1}: {batch_size} a batch, {lane_count} connections")
            stand.refill()
            started = stand.meter.read()
            rates[side].append(stand.run(_rate(stand, event, scale, batch_size, lane_count)))
            spent: Spent = stand.meter.between(started, stand.meter.read())
            foreign.append(spent.foreign_cores)
    return Measured(
        "Batching writer",
        [
            Ratio(
                f"batching writer ÷ one request a batch, {scale.callers} callers (holds/s)",
                [a / b for a, b in zip(rates["batched"], rates["single"], strict=True)],
                goal=GOAL,
            ),
            Ratio(
                f"batching writer ÷ one request a batch on {MANY_LANES} connections (holds/s)",
                [a / b for a, b in zip(rates["batched"], rates["single_many"], strict=True)],
            ),
        ],
        [
            Quantity(f"up to {batch} a batch, {lanes} connections", rates["batched"], "holds/s"),
            Quantity(f"one a batch, {lanes} connections", rates["single"], "holds/s"),
            Quantity(f"one a batch, {MANY_LANES} connections", rates["single_many"], "holds/s"),
        ],
        foreign,
        ["In one process with its callers: `Combiner` over `PostgresBatches`, limits checked, no HTTP."],
    )


async def _rate(stand: Stand, event: OnSale, scale: Scale, batch_size: int, lanes: int) -> float:
    database = await Database.open(str(stand.settings.database_url), lanes)
    combiner = Combiner(
        PostgresBatches(database, stand.settings.hold_window_s), lanes=lanes, batch_size=batch_size, deadline_s=60.0
    )
    combiner.start()
    try:
        requests = _requests(stand.first.organization_id, event, scale.buyers)
        await _hold_for(combiner, requests, scale, scale.warm_up_s)
        return await _hold_for(combiner, requests, scale, scale.seconds)
    finally:
        await combiner.close()
        await database.close()


async def _hold_for(combiner: Combiner, requests: Iterator[HoldRequest], scale: Scale, seconds: float) -> float:
    until = time.perf_counter() + seconds

    async def caller() -> int:
        held = 0
        while time.perf_counter() < until:
            request = next(requests, None)
            if request is None:
                break
            await combiner.submit(request)
            held += 1
        return held

    began = time.perf_counter()
    held = sum(await asyncio.gather(*(caller() for _ in range(scale.callers))))
    return held / (time.perf_counter() - began)


def _requests(organization_id: UUID, event: OnSale, buyers: int) -> Iterator[HoldRequest]:
    users = [new_id() for _ in range(buyers)]
    event_id = UUID(event.id)
    for n, ordinal in enumerate(random.sample(range(len(event.seats)), len(event.seats))):
        yield HoldRequest(
            organization_id=organization_id,
            event_id=event_id,
            layout_version=1,
            seats=(SeatWanted(ordinal, 0, new_id()),),
            places=(),
            user_id=users[n % buyers],
            session_id=None,
            actor="CUSTOMER",
            source="web",
            hold_type="CART",
            ttl_s=300,
            any_time=False,
            user_limit=1_000_000,
            ip_limit=None,
            ip="127.0.0.1",
            user_agent="holdfast-bench",
            request_id=None,
        )
