"""Companions' seats in a crowd: no stranger ever gets one while its wheelchair seat is taken and the zone is below the
threshold. With its controls.

The log's ids are in the order of the locks: whether a wheelchair seat was taken when its companion's was granted, and
whose it was, is read off them. How full the zone was is read as of the very instant of the decision: the test's database
writes down the snapshot of the statement that counted, and which transactions each move belongs to.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from holdfast.holds.answers import Placement
from holdfast.kernel.errors import Refusal, SeatHeldByAnother, SeatNotOffered, TooManyWheelchairSeats
from tests.conftest import TestDatabase
from tests.factories import theatre_config, with_companions
from tests.race.ground import Ground, changed, ground

SEATS = 40
PAIRS = {n + 1: n for n in range(0, 20, 2)}  # companion: wheelchair
CHAIRS, COMPANIONS, ORDINARY = list(PAIRS.values()), list(PAIRS), list(range(20, SEATS))
FREE_FROM = 20  # 50 % of the places
BUYERS, ACTS = 14, 40
EVENT = {
    "overrides": {
        "companion_release_occupancy_threshold": 50,
        "max_holds_per_user": None,
        "orphan_avoidance_strict": False,
    }
}

DECIDES = "  SELECT coalesce(array_agg(k.n) FILTER (WHERE k.binding), '{}')"
WITNESSED = """  WITH witnessed AS (
    INSERT INTO test_decisions
    SELECT c_ordinal[w], c_user[w], pg_current_xact_id(), pg_current_snapshot() FROM unnest(v_n) w)
"""
GUARD = "WHERE places_taken(p_org, c_event[k.n], c_zone[k.n]) < k.free_from"
LOCK = " FOR NO KEY UPDATE OF s"

# Who has logged a move lingers a moment before the commit: what was decided meanwhile was decided without it.
WITNESS = (
    "ALTER TABLE seat_state_events ADD COLUMN xid xid8 DEFAULT pg_current_xact_id()",
    "CREATE TABLE test_decisions (ordinal integer, user_id uuid, xid xid8, snapshot pg_snapshot)",
    "GRANT INSERT ON test_decisions TO holdfast_app",
    """
    CREATE FUNCTION test_linger() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN PERFORM pg_sleep(0.004); RETURN NULL; END $$;
    CREATE TRIGGER test_linger AFTER INSERT ON seat_state_events EXECUTE FUNCTION test_linger();
    """,
)
DECISIONS = """
SELECT d.ordinal, d.user_id, d.xid::text, (
  SELECT coalesce(sum(CASE WHEN l.new_state IN ('held', 'sold') THEN 1 ELSE 0 END
    - CASE WHEN l.old_state IN ('held', 'sold') THEN 1 ELSE 0 END), 0)
  FROM seat_state_events l WHERE pg_visible_in_snapshot(l.xid, d.snapshot))::integer AS places
FROM test_decisions d
"""
MOVES = "SELECT id, ordinal, verb, user_id, xid::text FROM seat_state_events WHERE event_id = $1 ORDER BY id"


class Move(msgspec.Struct, frozen=True):
    id: int
    ordinal: int
    verb: str
    user_id: UUID
    xid: str


def unlawful(moves: Sequence[Move], places: dict[tuple[int, UUID, str], int]) -> tuple[list[str], Counter[str]]:
    """What was granted and should not have been; and how the companions' seats that were granted came to be so.
    `places`: how full the zone was for each decision about a companion's seat of another's wheelchair seat."""
    faults: list[str] = []
    granted: Counter[str] = Counter()
    holder: dict[int, UUID | None] = {}
    of_cart = {(move.xid, move.user_id, move.ordinal) for move in moves if move.verb == "hold"}
    for move in moves:
        if move.verb != "hold":
            holder[move.ordinal] = None
            continue
        holder[move.ordinal] = move.user_id
        if move.ordinal not in PAIRS:
            continue
        chair = PAIRS[move.ordinal]
        owner = holder.get(chair)
        full = places.get((move.ordinal, move.user_id, move.xid))
        if owner == move.user_id or (move.xid, move.user_id, chair) in of_cart:
            granted["to the owner"] += 1
        elif owner is None:
            granted["while the wheelchair seat was free"] += 1
        elif full is None:
            faults.append(f"move {move.id} took a kept seat without a look at how full the zone is")
        elif full < FREE_FROM:
            faults.append(f"move {move.id} took a kept seat when {full} places were taken")
        else:
            granted["because the zone was full enough"] += 1
    return faults, granted


async def buyer(g: Ground, n: int, seen: Counter[str]) -> None:
    """Somebody who takes and gives back, without rest."""
    dice = random.Random(100 + n)
    call = g.buyer()
    mine: list[UUID] = []
    holds = g.apps[n % 2].services.holds
    for _ in range(ACTS):
        if len(mine) > 2 or (mine and dice.random() < 0.3):
            await holds.release_hold(call, mine.pop(dice.randrange(len(mine))))
            continue
        companion = dice.choice(COMPANIONS)
        wanted = dice.choice(
            (
                [companion],
                [PAIRS[companion]],
                [companion, PAIRS[companion]],
                [dice.choice(ORDINARY)],
                [dice.choice(ORDINARY)],
            )
        )
        answer = await g.hold(g.apps[n % 2], call, wanted)
        if isinstance(answer, Placement):
            mine += [hold.hold_id for hold in answer.holds if hold.hold_id not in mine]
        seen["held" if isinstance(answer, Placement) else type(answer).__name__] += 1
    for hold_id in mine:
        await holds.release_hold(call, hold_id)


async def together(g: Ground, rounds: int) -> None:
    """A wheelchair seat and its companion's, asked for at the same moment by two buyers on two instances."""
    for n in range(rounds):
        companion = COMPANIONS[n % len(COMPANIONS)]
        for app in g.apps:
            await app.feed.caught_up()  # else what the other has just given back may be refused from memory
        calls = (g.buyer(), g.buyer())
        answers = await asyncio.gather(
            g.hold(g.apps[0], calls[0], [PAIRS[companion]]), g.hold(g.apps[1], calls[1], [companion])
        )
        for call, answer in zip(calls, answers, strict=True):
            assert isinstance(answer, Placement | SeatNotOffered), answer
            if isinstance(answer, Placement):
                await g.apps[0].services.holds.release_hold(call, answer.holds[0].hold_id)


async def judged(g: Ground) -> tuple[list[str], Counter[str]]:
    moves = [Move(*row) for row in await g.sql(MOVES, g.event.id)]
    places = {(row["ordinal"], row["user_id"], row["xid"]): row["places"] for row in await g.sql(DECISIONS)}
    return unlawful(moves, places)


def house(database: TestDatabase, *control: str) -> Any:
    kept = (
        []
        if any("kept_companions(" in text for text in control)
        else [changed("kept_companions", (DECIDES, WITNESSED + DECIDES))]
    )
    config = with_companions(theatre_config(1, SEATS), *[(chair, companion) for companion, chair in PAIRS.items()])
    return ground(database, config, control=[*WITNESS, *kept, *control], event=EVENT)


EXPECTED = {"held", SeatNotOffered.__name__, SeatHeldByAnother.__name__, TooManyWheelchairSeats.__name__}


def test_in_a_crowd_no_stranger_gets_a_seat_that_is_kept(database: TestDatabase) -> None:
    async def run() -> None:
        async with house(database) as g:
            seen: Counter[str] = Counter()
            await asyncio.gather(*[buyer(g, n, seen) for n in range(BUYERS)])
            await together(g, 8)
            faults, granted = await judged(g)
            assert faults == []
            assert set(seen) <= EXPECTED, seen
            assert seen[SeatNotOffered.__name__] > 0, seen
            assert len(granted) == 3, granted  # every way to such a seat was gone
            assert await g.faults() == []

    asyncio.run(run())


def test_control_without_the_threshold_in_the_condition_strangers_get_kept_seats(database: TestDatabase) -> None:
    async def run() -> None:
        control = changed("kept_companions", (DECIDES, WITNESSED + DECIDES), (GUARD, "WHERE false"))
        async with house(database, control) as g:
            seen: Counter[str] = Counter()
            await asyncio.gather(*[buyer(g, n, seen) for n in range(BUYERS)])
            faults, _ = await judged(g)
            assert any("took a kept seat when" in fault for fault in faults), seen

    asyncio.run(run())


def test_control_without_the_lock_a_seat_is_taken_while_its_wheelchair_seat_is(database: TestDatabase) -> None:
    async def run() -> None:
        async with house(database, changed("lock_companions", (LOCK, ""))) as g:
            for _ in range(10):  # whether the two meet is chance
                await together(g, 12)
                faults, _ = await judged(g)
                if any("without a look" in fault for fault in faults):
                    return
            raise AssertionError("nobody got a seat while its wheelchair seat was being taken")

    asyncio.run(run())


def test_a_grant_that_breaks_the_rule_is_found_in_a_log() -> None:
    a, b = UUID(int=1), UUID(int=2)
    chair, stranger = Move(1, 0, "hold", a, "10"), Move(2, 1, "hold", b, "11")
    assert unlawful([chair, stranger], {})[0] == ["move 2 took a kept seat without a look at how full the zone is"]
    assert unlawful([chair, stranger], {(1, b, "11"): 19})[0] == ["move 2 took a kept seat when 19 places were taken"]
    assert unlawful([chair, stranger], {(1, b, "11"): 20})[0] == []
    assert unlawful([stranger, chair], {})[0] == []
    assert unlawful([chair, Move(2, 0, "release", a, "12"), stranger], {})[0] == []
    assert unlawful([Move(1, 1, "hold", a, "10"), Move(2, 0, "hold", a, "10")], {})[0] == []
    assert isinstance(SeatNotOffered(""), Refusal)
