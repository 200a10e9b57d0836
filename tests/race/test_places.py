"""Places that are only counted: a crowd at a general-admission zone never gets more than there are. With its controls."""

import asyncio
import random
from collections import Counter

from holdfast.holds.answers import Placement
from holdfast.kernel.errors import ZoneAtCapacity
from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.race.ground import Ground, all_at_once, changed, ground

CAPACITY = 1_000
REQUESTS = 3_000
ROOM = "v_fits := v_fits AND coalesce(v_room[z] >= v_wanted[z], false)"
GUARD = "\n    AND p.capacity - p.held - p.sold - p.blocked >= w.taken;"
LOCK = "p.event_id = z_event[z] AND p.zone_no = z_zone[z] FOR UPDATE) p ON true;"

GIVEN = """
SELECT z.held + z.sold AS counted, coalesce(sum(h.quantity), 0)::integer AS held FROM event_zones z
LEFT JOIN holds h ON h.event_id = z.event_id AND h.zone_no = z.zone_no AND h.ordinal IS NULL AND h.status = 'active'
WHERE z.event_id = $1 GROUP BY z.held, z.sold
"""


async def crowd(g: Ground) -> list[str]:
    """Three thousand buyers of one to four places each, through two instances. What was wrong, at any time."""
    dice = random.Random(5)
    faults: Counter[str] = Counter()
    done = asyncio.Event()

    async def watch() -> int:
        looks = 0
        while not done.is_set():
            (row,) = await g.sql(GIVEN, g.event.id)
            looks += 1
            if max(row) > CAPACITY:
                faults["more places were given than there are"] += 1
            if row["counted"] != row["held"]:
                faults["the counter differs from the holds"] += 1
            await asyncio.sleep(0.005)
        return looks

    watching = asyncio.create_task(watch())
    wanted = [dice.choice((1, 1, 2, 3, 4)) for _ in range(REQUESTS)]
    answers = await all_at_once(g.hold(g.apps[n % 2], g.buyer(), places=wanted[n]) for n in range(REQUESTS))
    done.set()
    if await watching < 5:
        faults["nobody watched"] += 1
    given = [a.holds[0] for a in answers if isinstance(a, Placement)]
    if sum(hold.quantity for hold in given) != CAPACITY:
        faults[f"{sum(hold.quantity for hold in given)} of {CAPACITY} places were given"] += 1
    for answer in answers:
        if not isinstance(answer, Placement | ZoneAtCapacity):
            faults[f"a buyer was answered {answer!r}"] += 1
    (row,) = await g.sql(GIVEN, g.event.id)
    if tuple(row) != (CAPACITY, CAPACITY):
        faults[f"in the end {row['counted']} places are counted and {row['held']} held"] += 1
    return [*faults, *await g.faults(hold.hold_id for hold in given)]


def test_a_crowd_gets_exactly_the_places_there_are(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, theatre_config(1, 2, ga_capacity=CAPACITY)) as g:
            assert await crowd(g) == []

    asyncio.run(run())


def test_control_without_the_room_in_the_condition_the_zone_overflows(database: TestDatabase) -> None:
    async def run() -> None:
        control = [
            changed("hold_places", (ROOM, "v_fits := v_fits"), (GUARD, ";")),
            "ALTER TABLE event_zones DROP CONSTRAINT event_zones_check",
        ]
        async with ground(database, theatre_config(1, 2, ga_capacity=CAPACITY), control=control) as g:
            found = await crowd(g)
            assert "more places were given than there are" in found
            assert any("counters equal live holds" in fault for fault in found)

    asyncio.run(run())


def test_control_without_the_zones_lock_the_counter_is_wrong(database: TestDatabase) -> None:
    async def run() -> None:
        control = [changed("hold_places", (LOCK, LOCK.replace(" FOR UPDATE", "")))]
        async with ground(database, theatre_config(1, 2, ga_capacity=CAPACITY), control=control) as g:
            found = await crowd(g)
            assert any("differs from the holds" in fault for fault in found)

    asyncio.run(run())
