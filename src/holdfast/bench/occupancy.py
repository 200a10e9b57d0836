"""What the counters of occupancy cost: reading them ÷ a read by primary key, and keeping them ÷ not keeping them."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple
from uuid import UUID

import asyncpg

from holdfast.bench.batching import MANY_LANES
from holdfast.bench.batching import _rate as writer_rate
from holdfast.bench.progress import Progress
from holdfast.bench.report import Measured, Quantity, Ratio, at_most
from holdfast.bench.scale import Scale
from holdfast.bench.stand import DATABASE, OnSale, Stand
from holdfast.holds.lifecycle import SeatState
from holdfast.insight.occupancy import Counted, OccupancyAnswer, reckon
from holdfast.seating.layout import Layout
from holdfast.settings import Settings
from holdfast.store.catalogue import Catalogue
from holdfast.store.embedded import OWNER
from holdfast.store.postgres.database import Database
from holdfast.store.postgres.migrate import functions
from holdfast.store.postgres.occupancy import read_counted
from holdfast.workers.fold_occupancy import FoldOccupancy

GOAL = at_most(2)
PENDING = 300
"""Rows not folded yet: what a busy second leaves behind, at one row a batch."""
READS_A_SECOND = 400
SETTLE_S = 0.1
"""A server process that is just ending is counted neither among the living nor among the dead."""

_BY_KEY = """
SELECT ordinal, state::text, version, hold_type, held_until FROM event_seats
WHERE organization_id = $1 AND event_id = $2 AND ordinal = $3
"""
_SCAN = """
SELECT zone_no, state::text, hold_type, count(*) FROM event_seats
WHERE organization_id = $1 AND event_id = $2 GROUP BY 1, 2, 3
"""
_TAKE = """
UPDATE event_seats SET state = (CASE ordinal % 4 WHEN 0 THEN 'sold' ELSE 'blocked' END)::seat_state
WHERE event_id = $1 AND ordinal % 4 < 2
"""
_COUNT = """
INSERT INTO occupancy_changes (organization_id, event_id, zone_no, state, hold_type, change)
SELECT organization_id, event_id, zone_no, state, '', count(*) FROM event_seats
WHERE event_id = $1 AND state <> 'available' GROUP BY organization_id, event_id, zone_no, state
"""
# Pairs that change nothing in sum.
_LEAVE = """
INSERT INTO occupancy_changes (organization_id, event_id, zone_no, state, hold_type, change)
SELECT $1, $2, 0, 'held', 'CART', CASE n % 2 WHEN 0 THEN 1 ELSE -1 END FROM generate_series(1, $3::integer) n
"""

_COUNTED = re.compile(r"  \), counted AS \(\n    INSERT INTO occupancy_changes .*?\n  \)\n", re.DOTALL)
_ONE_ROW = """  ), counted AS (
    INSERT INTO occupancy_counts (organization_id, event_id, zone_no, state, hold_type, places)
    SELECT p_org, c.event_id, c.zone_no, 'held', c.hold_type, count(*) FROM c GROUP BY c.event_id, c.zone_no, c.hold_type
    ON CONFLICT (organization_id, event_id, zone_no, state, hold_type) DO UPDATE
      SET places = occupancy_counts.places + EXCLUDED.places
  )
"""
SIDES = {
    "batched": (True, "changes"),
    "batched, uncounted": (True, "none"),
    "single": (False, "changes"),
    "single, one row": (False, "one row"),
}
"""Whether requests travel in batches, and how they are counted."""


class _Written(NamedTuple):
    rate: float
    cpu_us: float
    """PostgreSQL's, a hold."""
    foreign_cores: float


def measure(stand: Stand, event: OnSale, scale: Scale, progress: Progress) -> Measured:
    written: dict[str, list[_Written]] = {side: [] for side in SIDES}
    reads: dict[str, list[float]] = {"key": [], "folded": [], "pending": [], "scan": []}
    try:
        for n in range(scale.rounds):
            # Each begins every second round, so that none always follows another.
            for side in SIDES if n % 2 == 0 else reversed(SIDES):
                progress.say(f"round {n + 1}: the writer, {side}")
                written[side].append(_write(stand, event, scale, side))
    finally:
        stand.run(_replace_writer(stand, "changes"))
    _empty(stand)
    progress.say(f"taking half of {len(event.seats):,} seats")
    stand.sql(_TAKE, UUID(event.id))
    stand.sql(_COUNT, UUID(event.id))
    for n in range(scale.rounds):
        progress.say(f"round {n + 1}: reading")
        for name, took in stand.run(_read(stand, event, scale)).items():
            reads[name].append(took)
    _empty(stand)
    return _measured(event, written, reads)


def _measured(event: OnSale, written: dict[str, list[_Written]], reads: dict[str, list[float]]) -> Measured:
    seats = f"{len(event.seats):,} seats"
    rates = {side: [one.rate for one in all_of] for side, all_of in written.items()}
    costs = {side: [one.cpu_us for one in all_of] for side, all_of in written.items()}
    single = f"one request a batch, {MANY_LANES} connections"
    return Measured(
        "Occupancy",
        [
            Ratio(f"occupancy of {seats} ÷ a read by primary key (seconds)", _each(reads, "folded", "key"), goal=GOAL),
            Ratio(f"the same with {PENDING} changes not folded yet", _each(reads, "pending", "key")),
            Ratio("CPU of PostgreSQL a hold with counters ÷ without", _each(costs, "batched", "batched, uncounted")),
            Ratio("batching writer with counters ÷ without (holds/s)", _each(rates, "batched", "batched, uncounted")),
            Ratio(
                f"counters as rows of changes ÷ one row a counter, {single} (holds/s)",
                _each(rates, "single", "single, one row"),
            ),
        ],
        [
            Quantity("a seat by primary key", [1e6 * s for s in reads["key"]], "µs"),
            Quantity(f"occupancy of {seats}", [1e6 * s for s in reads["folded"]], "µs"),
            Quantity(f"occupancy of {seats}, {PENDING} changes pending", [1e6 * s for s in reads["pending"]], "µs"),
            Quantity(f"counting {seats} (a scan)", [1e6 * s for s in reads["scan"]], "µs"),
            Quantity("batching writer with counters", rates["batched"], "holds/s"),
            Quantity("batching writer without counters", rates["batched, uncounted"], "holds/s"),
            Quantity(f"rows of changes, {single}", rates["single"], "holds/s"),
            Quantity(f"one row a counter, {single}", rates["single, one row"], "holds/s"),
        ],
        [one.foreign_cores for all_of in written.values() for one in all_of],
        ["Reads are transactions of the engine's own: BEGIN, the query, COMMIT, and the answer made of it."],
    )


def _each(values: dict[str, list[float]], side: str, other: str) -> list[float]:
    return [a / b for a, b in zip(values[side], values[other], strict=True)]


def _empty(stand: Stand) -> None:
    stand.refill()
    stand.sql("TRUNCATE occupancy_counts, occupancy_changes")


# The writer -------------------------------------------------------------------------------------------------------
def _write(stand: Stand, event: OnSale, scale: Scale, side: str) -> _Written:
    _empty(stand)
    batched, counting = SIDES[side]
    stand.run(_replace_writer(stand, counting))
    batch, lanes = (stand.settings.batch_size, stand.settings.writer_connections) if batched else (1, MANY_LANES)
    started = stand.meter.read()
    rate = stand.run(writer_rate(stand, event, scale, batch, lanes))
    time.sleep(SETTLE_S)
    spent = stand.meter.between(started, stand.meter.read())
    holds = rate * (scale.seconds + scale.warm_up_s)
    return _Written(rate, 1e6 * max(0.01, spent.ours["postgres"]) / holds, spent.foreign_cores)


async def _replace_writer(stand: Stand, counting: str) -> None:
    """In the bench's own database: the shipped function, the same without its counting, or counting in one row."""
    text, _ = functions()
    found = re.search(r"CREATE OR REPLACE FUNCTION hold_seats\(.*?\$\$;", text, re.DOTALL)
    assert found is not None
    shipped = found[0]
    assert len(_COUNTED.findall(shipped)) == 1, "the writer has changed, and this must follow"
    definition = {
        "changes": shipped,
        "none": _COUNTED.sub("  )\n", shipped),
        "one row": _COUNTED.sub(lambda _: _ONE_ROW, shipped),
    }[counting]
    connection = await asyncpg.connect(stand.address.dsn(OWNER, DATABASE))
    try:
        await connection.execute(definition)
    finally:
        await connection.close()


# Reading ----------------------------------------------------------------------------------------------------------
async def _read(stand: Stand, event: OnSale, scale: Scale) -> dict[str, float]:
    organization_id, event_id = stand.first.organization_id, UUID(event.id)
    database = await Database.open(str(stand.settings.database_url), 1)
    catalogue = Catalogue(database, Settings())
    owner = await asyncpg.connect(stand.address.dsn(OWNER, DATABASE))
    try:
        view = await catalogue.fresh_event(organization_id, event_id)
        assert view is not None
        layout: Layout = view.layout

        async def by_key() -> None:
            async with database.transaction(organization_id) as tx:
                assert await tx.fetchrow(_BY_KEY, organization_id, event_id, layout.seat_count // 2) is not None

        async def occupancy() -> OccupancyAnswer:
            async with database.transaction(organization_id) as tx:
                counted: Counted = await read_counted(tx, organization_id, event_id)
            return reckon(event_id, layout, counted)

        async def scan() -> None:
            async with database.transaction(organization_id) as tx:
                await tx.fetch(_SCAN, organization_id, event_id)

        await FoldOccupancy(database).once()
        answer = await occupancy()
        taken = {SeatState.SOLD: answer.sold, SeatState.BLOCKED: answer.blocked}
        assert taken == {SeatState.SOLD: layout.seat_count // 4, SeatState.BLOCKED: layout.seat_count // 4}
        count = max(20, int(READS_A_SECOND * scale.seconds))
        took = await _in_turns({"key": by_key, "folded": occupancy}, count)
        await owner.execute(_LEAVE, organization_id, event_id, PENDING)
        took |= await _in_turns({"pending": occupancy}, READS_A_SECOND // 4)
        return took | await _in_turns({"scan": scan}, 3)
    finally:
        await owner.close()
        await catalogue.close()
        await database.close()


async def _in_turns(sides: dict[str, Callable[[], Awaitable[object]]], count: int) -> dict[str, float]:
    """The median time of each, one after the other in turns, after a few that do not count."""
    took: dict[str, list[float]] = {name: [] for name in sides}
    for n in range(count + 5):
        for name, work in sides.items():
            began = time.perf_counter()
            await work()
            if n >= 5 or count < 5:
                took[name].append(time.perf_counter() - began)
        await asyncio.sleep(0)
    return {name: sorted(values)[len(values) // 2] for name, values in took.items()}
