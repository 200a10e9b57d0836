"""An overlay that changes among buyers: what it takes out is out, whoever asked for it at that moment. With controls."""

import asyncio

from holdfast.holds.answers import Placement
from holdfast.kernel.errors import Refusal, SeatNotAvailable, ZoneDisabled
from holdfast.seating.refusals import PlacesSold
from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.race.ground import Ground, all_at_once, changed, ground, selection, until_seen, without_seat_state

HALL = theatre_config(4, 25, ga_capacity=500)
SEAT_IDS = [seat["seat_id"] for seat in HALL["zones"][0]["seats"]]
TAKEN_OUT = range(0, 100, 2)
OVERLAY = {"blocked_seat_ids": [SEAT_IDS[n] for n in TAKEN_OUT], "disabled_zones": ["pit"]}
LENIENT = {"orphan_avoidance_strict": False, "max_holds_per_user": None}
SMALL = theatre_config(1, 2)

LEFT = """
SELECT (SELECT count(*) FROM event_seats WHERE event_id = $1 AND ordinal = ANY ($2) AND state <> 'blocked') AS seats,
  (SELECT count(*) FROM holds
   WHERE event_id = $1 AND status = 'active' AND (ordinal IS NULL OR ordinal = ANY ($2))) AS holds,
  (SELECT sum(held) FROM event_zones WHERE event_id = $1) AS places
"""


async def overlay_among_buyers(g: Ground) -> list[str]:
    """A hundred buyers of a seat and a place each on two instances, half of whose seats and all of whose places are taken
    out among them. What was wrong afterwards."""
    event = await g.new_event(HALL, overrides=LENIENT)

    async def buy(n: int) -> list[Placement | Refusal]:
        await asyncio.sleep(0.0015 * (n * 37 % 100))
        buyer = g.buyer()
        return [
            await g.hold(g.apps[n % 2], buyer, [n], event=event),
            await g.hold(g.apps[n % 2], buyer, places=1, event=event),
        ]

    async def take_out() -> None:
        await asyncio.sleep(0.06)
        await g.parts.seating.patch_event(g.admin, event.id, OVERLAY)

    change = asyncio.create_task(take_out())
    bought = await asyncio.gather(*[buy(n) for n in range(100)])
    await change
    faults: list[str] = []
    for n, (seat, place) in enumerate(bought):
        if not isinstance(seat, Placement) and not (n in TAKEN_OUT and isinstance(seat, SeatNotAvailable)):
            faults.append(f"the buyer of seat {n} was answered {seat!r}")
        if not isinstance(place, Placement | ZoneDisabled):
            faults.append(f"a buyer of places was answered {place!r}")
    (left,) = await g.sql(LEFT, event.id, list(TAKEN_OUT))
    if any(left.values()):
        faults.append(f"still in use of what is taken out: {dict(left)}")
    return faults + await g.faults(event=event)


def test_what_an_overlay_takes_out_among_buyers_is_held_by_nobody(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, SMALL) as g:
            for _ in range(3):
                assert await overlay_among_buyers(g) == []

    asyncio.run(run())


def test_control_without_the_state_in_the_condition_what_is_taken_out_is_held(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, SMALL, control=without_seat_state()) as g:
            found = await until_seen(lambda: overlay_among_buyers(g))
            assert any("still in use" in fault for fault in found), found

    asyncio.run(run())


# Sales ----------------------------------------------------------------------------------------------------------------
SLOW = ("BEGIN\n  WITH blocked AS (", "BEGIN\n  PERFORM pg_sleep(0.2);\n  WITH blocked AS (")
"""Time between the look at what is sold and the blocking, for a sale to come between."""
WANTED = range(10)


async def overlay_among_sales(g: Ground) -> list[str]:
    """Ten seats are taken out while somebody sells them. What was wrong afterwards."""
    event = await g.new_event(HALL, overrides=LENIENT)

    async def sell(n: int) -> bool:
        await asyncio.sleep(0.05 + 0.01 * n)
        return await g.apps[n % 2].services.booking.direct_sale(g.api, event.id, selection([n], session=f"s{n}"))

    async def take_out() -> bool:
        try:
            await g.parts.seating.patch_event(g.admin, event.id, {"blocked_seat_ids": [SEAT_IDS[n] for n in WANTED]})
        except PlacesSold:
            return False
        return True

    *sold, taken_out = await all_at_once([*[sell(n) for n in WANTED], take_out()])
    rows = await g.sql("SELECT state::text FROM event_seats WHERE event_id = $1 AND ordinal < 10 ORDER BY 1", event.id)
    states = [row["state"] for row in rows]
    faults: list[str] = []
    if states != ["blocked" if taken_out else "sold"] * 10 or sold != [not taken_out] * 10:
        faults.append(f"taken out: {taken_out}, sold: {sold}, and the seats are {states}")
    return faults + await g.faults(event=event)


def test_a_seat_is_sold_or_taken_out_and_never_both(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, SMALL, control=[changed("block_seats", SLOW)]) as g:
            for _ in range(3):
                assert await overlay_among_sales(g) == []

    asyncio.run(run())


def test_control_without_the_events_lock_an_overlay_names_a_sold_seat(database: TestDatabase) -> None:
    async def run() -> None:
        lockless = changed("own_event", ("SELECT pg_advisory_xact_lock(event_lock_key(p_event))", "SELECT NULL::void"))
        async with ground(database, SMALL, control=[changed("block_seats", SLOW), lockless]) as g:
            found = await until_seen(lambda: overlay_among_sales(g))
            assert any("taken out: True" in fault for fault in found), found

    asyncio.run(run())
