"""What the state log of one event costs to analyse: a week's holds and their ends, beside a plain count of the same rows."""

import time
from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

import asyncpg

from holdfast.accounts.principal import Call, Principal, Role
from holdfast.bench.progress import Progress
from holdfast.bench.report import Measured, Quantity, Ratio, at_most
from holdfast.bench.scale import Scale
from holdfast.bench.stand import WHOLE, OnSale, Stand
from holdfast.holds.lifecycle import Actor
from holdfast.insight.analytics_service import AnalyticsService, Question
from holdfast.settings import Settings
from holdfast.store.catalogue import Catalogue
from holdfast.store.postgres.database import Database, Row

GOAL_MS = at_most(1000)
TRIES = 5
BY_HAND = (
    "SELECT hold_id, verb FROM seat_state_events WHERE organization_id = $1 AND event_id = $2 AND hold_type = 'CART'"
)
COUNT = "SELECT count(*) FROM seat_state_events WHERE organization_id = $1 AND event_id = $2"
# Holds placed one after the other all through the last week, three of five CART; of ten, four are converted, three expire,
# two are released, and one is held still. Both moves of a hold are where they would be: in the order of time.
FILL = """
WITH h AS (
  SELECT n, gen_random_uuid() AS id, (ARRAY['CART', 'CART', 'CART', 'VIP', 'PROMO'])[1 + n % 5] AS hold_type,
    holdfast_now() - interval '6.9 days' + n * (interval '6.8 days' / $3::integer) AS at, 1 + n % 600 * 7919 % 600 AS life_s
  FROM generate_series(1, $3::integer) AS n
)
INSERT INTO seat_state_events (organization_id, event_id, at, verb, ordinal, zone_no, quantity, old_state, new_state,
  version, hold_type, hold_id, actor, user_id)
SELECT $1, $2, m.at, m.verb, m.n % $4, 0, 1, m.was, m.is, 1, m.hold_type, m.id, 'CUSTOMER', m.id
FROM (
  SELECT h.n, h.id, h.hold_type, h.at, 'hold' AS verb, 'available'::seat_state AS was, 'held'::seat_state AS is FROM h
  UNION ALL
  SELECT h.n, h.id, h.hold_type, h.at + make_interval(secs => h.life_s),
    CASE WHEN h.n / 5 % 10 < 4 THEN 'convert' WHEN h.n / 5 % 10 < 7 THEN 'expire' ELSE 'release' END, 'held',
    CASE WHEN h.n / 5 % 10 < 4 THEN 'sold' ELSE 'available' END::seat_state
  FROM h WHERE h.n / 5 % 10 < 9) m
ORDER BY m.at
"""


async def fill_log(owner: asyncpg.Connection, organization_id: UUID, event_id: UUID, moves: int, seats: int) -> None:
    """About so many moves of a week; the seats themselves know nothing of it."""
    await owner.execute(FILL, organization_id, event_id, round(moves / 1.9), seats, timeout=300)
    await owner.execute("VACUUM ANALYZE seat_state_events", timeout=300)


def measure(stand: Stand, event: OnSale, scale: Scale, progress: Progress) -> Measured:
    progress.say(f"writing {scale.log_moves:,} moves")
    stand.refill()
    organization_id, event_id = stand.first.organization_id, UUID(event.id)
    stand.rest()  # their duties would find moves of holds that there never were
    stand.run(fill_log(stand.owner, organization_id, event_id, scale.log_moves, len(event.seats)))
    took: dict[str, list[float]] = {}
    for n in range(scale.rounds):
        progress.say(f"round {n + 1}")
        for name, seconds in stand.run(_ask(stand, event_id)).items():
            took.setdefault(name, []).append(seconds)
    moves = stand.sql(COUNT, organization_id, event_id)[0]["count"]
    progress.say("counting by hand")
    placed, converted = _by_hand(stand.sql(BY_HAND, organization_id, event_id))
    answered = stand.run(_conversion(stand, event_id))
    if answered != (placed, converted):
        raise AssertionError(f"conversion says {answered}, a count by hand {(placed, converted)}")
    stand.sql("TRUNCATE seat_state_events")
    stand.use(WHOLE)
    stand.refill()
    asked = f"conversion of a week's CART holds, {moves:,} moves"
    return Measured(
        "Analytics",
        [
            Ratio(f"{asked} (ms)", [1000 * s for s in took["conversion"]], goal=GOAL_MS),
            Ratio(
                f"{asked} ÷ a count of the same rows (seconds)",
                [a / b for a, b in zip(took["conversion"], took["count"], strict=True)],
            ),
        ],
        [Quantity(f"{name}: {moves:,} moves", [1000 * s for s in values], "ms") for name, values in took.items()],
        [],
        [
            f"The best of {TRIES} a round. Every move is within the week: nothing of the log could be passed over.",
            f"Equal to a count by hand of the same rows: {converted:,} of {placed:,} CART holds were converted.",
        ],
    )


def _by_hand(rows: Sequence[Row]) -> tuple[int, int]:
    """Holds placed, and those of them that were converted, without any cleverness."""
    placed = {row["hold_id"] for row in rows if row["verb"] == "hold"}
    return len(placed), len({row["hold_id"] for row in rows if row["verb"] == "convert"} & placed)


def _organiser(stand: Stand) -> Call:
    return Call(
        principal=Principal(
            organization_id=stand.first.organization_id,
            tenant_id=stand.first.tenant_id,
            actor=Actor.ADMIN,
            role=Role.ADMIN,
            subject="bench",
        )
    )


async def _conversion(stand: Stand, event_id: UUID) -> tuple[int, int]:
    database = await Database.open(str(stand.settings.database_url), 2)
    catalogue = Catalogue(database, Settings())
    try:
        service = AnalyticsService(database, catalogue)
        found = await service.conversion(_organiser(stand), event_id, Question(hold_type="CART"))
        return found.holds.placed, found.holds.converted
    finally:
        await catalogue.close()
        await database.close()


async def _ask(stand: Stand, event_id: UUID) -> dict[str, float]:
    """The best times, in turns."""
    organization_id = stand.first.organization_id
    database = await Database.open(str(stand.settings.database_url), 2)
    catalogue = Catalogue(database, Settings())
    service = AnalyticsService(database, catalogue)
    call = _organiser(stand)

    async def count() -> None:
        async with database.transaction(organization_id) as tx:
            await tx.fetchval(COUNT, organization_id, event_id)

    asked: dict[str, Callable[[], Awaitable[object]]] = {
        "count": count,
        "conversion": lambda: service.conversion(call, event_id, Question(hold_type="CART")),
        "conversion of every type": lambda: service.conversion(call, event_id, Question()),
        "occupancy": lambda: service.occupancy(call, event_id, Question()),
        "expiry": lambda: service.expiry(call, event_id, Question()),
    }
    best = dict.fromkeys(asked, float("inf"))
    try:
        for _ in range(TRIES):
            for name, work in asked.items():
                began = time.perf_counter()
                await work()
                best[name] = min(best[name], time.perf_counter() - began)
    finally:
        await catalogue.close()
        await database.close()
    return best
