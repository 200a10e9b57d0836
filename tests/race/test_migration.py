"""Everybody goes on while their event goes to another version of its layout: whoever gets a seat gets the one they asked
for, and what somebody has can be let go, extended and bought. With controls."""

import asyncio
from typing import Any
from uuid import UUID

import msgspec
import pytest

from holdfast.holds.answers import Placement
from holdfast.kernel.errors import LayoutChanged, Refusal
from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.http.migration_ground import without_rows
from tests.race.ground import Change, Ground, changed, ground, selection

ROWS, SEATS_A_ROW = 10, 20
HALL = theatre_config(ROWS, SEATS_A_ROW, ga_capacity=500)
POLICY: dict[str, Any] = {"max_holds_per_user": None, "orphan_avoidance_strict": False, "max_seats_per_booking": 20}
SOLD, EXTENDED, RELEASED = (range(n, n + 4) for n in (40, 60, 80))
"""Few of each: an instance has eight connections, and all are to wait for the event at once."""

# While it sleeps, everybody comes and waits for the event.
SLOWLY: Change = (
    "  -- Out of the old numbers.\n",
    "  PERFORM pg_sleep(0.4);\n  -- Out of the old numbers.\n",
)
OWNED = """
SELECT count(*) FROM pg_locks
WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


def turned(config: dict[str, Any]) -> dict[str, Any]:
    """Two rows gone, and the zones in another order: every number means another seat, or another zone."""
    stalls, pit = without_rows(config, "A", "B")["zones"]
    ring = {"zone_id": "ring", "name": "Ring", "zone_type": "ga_standing", "capacity": 7}
    return {**config, "zones": [pit, ring, stalls]}


async def everybody_meets_migration(g: Ground) -> list[str]:
    """What became otherwise than asked for, and whatever the examiner finds."""
    services = [app.services for app in g.apps]
    version = await g.parts.seating.create_version(g.admin, g.event.layout.id, msgspec.json.encode(turned(HALL)))
    assert await services[0].booking.lock(g.api, g.event.id, selection([*range(10), *SOLD]))
    buyer = g.buyer()
    mine = {n: await g.hold(g.apps[0], buyer, [n]) for n in (*EXTENDED, *RELEASED)}
    holds = {n: placed.holds[0].hold_id for n, placed in mine.items() if isinstance(placed, Placement)}
    assert len(holds) == 8
    planned = await services[0].migrations.plan(g.admin, g.event.id, version.version)
    assert (planned.one_to_one.held, planned.moving.held) == (12, 10)
    targets = {move.to_seat.id for move in planned.moves or () if move.to_seat is not None}
    free = [n for n in range(100, ROWS * SEATS_A_ROW) if g.event.seats[n] not in targets]
    wanted, to_block = free[:20], free[20:22]
    for app in g.apps:  # both instances know the event as it was before, and hear of the change a moment late
        app.feed.followers.remove(app.catalogue)
        await app.catalogue.event(g.organization_id, g.event.id)
    applied = asyncio.create_task(services[0].migrations.apply(g.admin, g.event.id, planned.id))
    while not (await g.sql(OWNED))[0]["count"]:
        await asyncio.sleep(0.005)

    async def extend(n: int) -> Any:
        return await services[n % 2].holds.extend_hold(buyer, holds[n])

    async def release(n: int) -> Any:
        return await services[n % 2].holds.release_hold(buyer, holds[n])

    async def block(n: int) -> Any:
        return await services[n % 2].seating.block_seats(g.admin, g.event.id, [g.event.seats[n]], "camera")

    work = {
        **{("buy", n): g.hold(g.apps[n % 2], g.buyer(), [n]) for n in wanted},
        **{("stand", n): g.hold(g.apps[n % 2], g.buyer(), places=2) for n in range(10)},
        **{("extend", n): extend(n) for n in EXTENDED},
        **{("release", n): release(n) for n in RELEASED},
        **{("sale", n): services[n % 2].booking.sale(g.api, g.event.id, selection([n])) for n in SOLD},
        **{("block", n): block(n) for n in to_block},
    }
    done = dict(zip(work, await asyncio.gather(*work.values(), return_exceptions=True), strict=True))
    assert (await applied).status == "applied"
    return [*await otherwise(g, done, holds), *await g.faults(holds.values())]


async def otherwise(g: Ground, done: dict[tuple[str, int], Any], holds: dict[int, UUID]) -> list[str]:
    """Who was told one thing and has another."""
    view = await g.apps[1].catalogue.fresh_event(g.organization_id, g.event.id)
    assert view is not None
    index = view.layout.seat_index
    rows = await g.sql("SELECT ordinal, state::text, hold_id FROM event_seats WHERE event_id = $1", g.event.id)
    seats = {row["ordinal"]: row for row in rows}
    statuses = await g.statuses()
    faults: list[str] = []
    for (what, n), answer in done.items():
        if isinstance(answer, BaseException) and not isinstance(answer, LayoutChanged):
            faults.append(f"{what} {n}: {answer!r}")
            continue
        seat = seats[index.get(g.event.seats[n].bytes) or 0]
        expected: tuple[str, UUID | None] | None = None
        if what == "buy" and isinstance(answer, Placement):
            expected = ("held", answer.holds[0].hold_id)
        elif what == "extend":
            expected = ("held", holds[n])
        elif what == "release":
            expected = ("available", None)
            if statuses[holds[n]] != "cancelled":
                faults.append(f"the release of {n} was answered, and the hold is {statuses[holds[n]]}")
        elif what == "sale":
            expected = ("sold", None) if answer is True else ("held", seat["hold_id"])
        elif what == "block":
            expected = ("available", None) if isinstance(answer, Refusal) else ("blocked", None)
        if expected is not None and (seat["state"], seat["hold_id"]) != expected:
            faults.append(f"{what} {n}: the seat is {seat['state']} in {seat['hold_id']}, and not {expected}")
    buyers = [answer for (what, _), answer in done.items() if what == "buy"]
    got = sum(isinstance(answer, Placement) for answer in buyers)
    stood = sum(isinstance(done["stand", n], Placement) for n in range(10))
    (zone,) = await g.sql("SELECT held FROM event_zones WHERE event_id = $1 AND zone_no = 0", g.event.id)
    if (got, stood, zone["held"]) != (len(buyers), 10, 20):
        faults.append(
            f"{got} of {len(buyers)} buyers got their seat, {stood} of 10 stand, {zone['held']} places are held"
        )
    return faults


def test_whoever_gets_a_seat_while_the_layout_changes_gets_the_one_they_asked_for(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, HALL, policy=POLICY, control=[changed("migrate_event", SLOWLY)]) as g:
            found = await everybody_meets_migration(g)
            assert found == [], "\n".join(found)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("function", "guard"),
    [
        ("hold_seats", "      AND e.layout_version IS NOT DISTINCT FROM c.layout\n"),
        ("hold_places", "      v_fits := v_fits AND v_layout[z] IS NOT DISTINCT FROM z_layout[z];\n"),
        (
            "extend_hold",
            "  PERFORM share_events(ARRAY("
            "SELECT h.event_id FROM holds h WHERE h.organization_id = p_org AND h.id = p_hold));\n",
        ),
        (
            "release_holds",
            "  PERFORM share_events(ARRAY(\n    SELECT DISTINCT h.event_id FROM holds h"
            " WHERE h.organization_id = p_org AND h.id = ANY (p_holds) AND h.status = 'active'));\n",
        ),
    ],
)
def test_without_its_guard_each_of_them_does_something_else(database: TestDatabase, function: str, guard: str) -> None:
    async def run() -> None:
        control = [changed("migrate_event", SLOWLY), changed(function, (guard, ""))]
        async with ground(database, HALL, policy=POLICY, control=control) as g:
            assert await everybody_meets_migration(g) != []

    asyncio.run(run())
