"""Very many holds ending in the same second: how long until their seats are free, and what reserves feel of it."""

import random
import time
from dataclasses import dataclass

from holdfast.bench.drive import Driven, drive, loading, reserve_heads, reserve_tails
from holdfast.bench.load import LoadPlan, LoadResult
from holdfast.bench.progress import Progress
from holdfast.bench.report import Measured, Quantity, Ratio, at_least
from holdfast.bench.scale import Scale
from holdfast.bench.stand import OnSale, Stand, StandFailed

GOAL = at_least(0.8)
LONGEST_S = 90.0
POLL_S = 0.05

_HOLD_ALL = """
WITH held AS (
  UPDATE event_seats SET state = 'held', hold_id = uuidv7(), hold_type = 'CART', version = version + 1,
    locked_at = clock_timestamp(), held_until = clock_timestamp() + interval '1 hour'
  WHERE event_id = $1 AND ordinal < $2 RETURNING *
)
INSERT INTO holds (organization_id, id, event_id, ordinal, zone_no, user_id, hold_type, actor, source, held_until,
  created_at)
SELECT organization_id, hold_id, event_id, ordinal, zone_no, uuidv7(), 'CART', 'CUSTOMER', 'web', held_until, locked_at
FROM held
"""
# In one transaction: the sweeper sees none of them due before all are.
_MAKE_DUE = """
WITH due AS (SELECT clock_timestamp() AS at), seats AS (
  UPDATE event_seats SET held_until = due.at FROM due WHERE event_id = $1 AND state = 'held')
UPDATE holds SET held_until = due.at FROM due WHERE event_id = $1 AND status = 'active'
"""
_ANY_LEFT = """
SELECT EXISTS (SELECT FROM holds WHERE status = 'active' AND held_until <= clock_timestamp() AND event_id = $1) AS left
"""


@dataclass(frozen=True)
class Swept:
    began: float
    ended: float

    @property
    def seconds(self) -> float:
        return self.ended - self.began


def measure(stand: Stand, expiring: OnSale, wanted: OnSale, scale: Scale, progress: Progress) -> Measured:
    """The holds of `expiring` end while seats of `wanted` are reserved."""
    count = min(scale.expiring, len(expiring.seats))
    progress.say("issuing tokens")
    tails = reserve_tails(stand.guests(wanted, scale.buyers))
    alone: list[Swept] = []
    beside: list[Swept] = []
    undisturbed: list[Driven] = []
    disturbed: list[float] = []
    foreign: list[float] = []
    for n in range(scale.expiry_rounds):
        progress.say(f"round {n + 1}: {count:,} holds end, nobody reserves")
        _hold(stand, expiring, count)
        _make_due(stand, expiring)
        alone.append(_await_swept(stand, expiring))
        progress.say(f"round {n + 1}: reserves, undisturbed")
        stand.refill()
        undisturbed.append(drive(stand, _plan(stand, wanted, tails, scale, scale.seconds), "201"))
        progress.say(f"round {n + 1}: {count:,} holds end while others reserve")
        _hold(stand, expiring, count)
        with loading(stand, _plan(stand, wanted, tails, scale, LONGEST_S)) as load:
            _make_due(stand, expiring)
            swept = _await_swept(stand, expiring)
            driven = load.finish("201", early=True)
        beside.append(swept)
        disturbed.append(_rate_between(driven.result, swept))
        foreign += [undisturbed[-1].spent.foreign_cores, driven.spent.foreign_cores]
        stand.refill()
    return Measured(
        "Expiry",
        [
            Ratio(
                f"reserves while {count:,} holds expire ÷ undisturbed (holds/s)",
                [rate / before.rate for rate, before in zip(disturbed, undisturbed, strict=True)],
                goal=GOAL,
            )
        ],
        [
            Quantity(f"{count:,} holds expired, nobody reserving", [s.seconds for s in alone], "s"),
            Quantity("expired, nobody reserving", [count / s.seconds for s in alone], "holds/s"),
            Quantity(f"{count:,} holds expired beside reserves", [s.seconds for s in beside], "s"),
            Quantity("expired beside reserves", [count / s.seconds for s in beside], "holds/s"),
            Quantity("reserves undisturbed", [d.rate for d in undisturbed], "holds/s"),
            Quantity("reserves beside expiry", disturbed, "holds/s"),
        ],
        foreign,
        ["The holds are made by SQL and fall due in one transaction; the server's own sweeper finds and ends them."],
    )


def _hold(stand: Stand, event: OnSale, count: int) -> None:
    stand.refill()
    stand.sql(_HOLD_ALL, event.id, count)
    stand.sql("VACUUM (ANALYZE) holds; VACUUM (ANALYZE) event_seats")


def _make_due(stand: Stand, event: OnSale) -> None:
    stand.sql(_MAKE_DUE, event.id)


def _await_swept(stand: Stand, event: OnSale) -> Swept:
    began = time.perf_counter()
    while stand.sql(_ANY_LEFT, event.id)[0]["left"]:
        if time.perf_counter() - began > LONGEST_S:
            raise StandFailed(f"holds that are over were still there after {LONGEST_S:g} s")
        time.sleep(POLL_S)
    return Swept(began, time.perf_counter())


def _rate_between(result: LoadResult, swept: Swept) -> float:
    """Reserves a second while holds were being ended and seats were left; both clocks are the machine's."""
    first = int((swept.began - result.began_at) * 10)
    last = min(max(first + 1, int((swept.ended - result.began_at) * 10)), len(result.per_tenth) - 1)
    answers = result.per_tenth[first:last]
    if not answers:
        raise StandFailed("the seats were used up before the first hold had expired: the load was too fast")
    return sum(answers) / len(answers) * 10


def _plan(stand: Stand, event: OnSale, tails: list[bytes], scale: Scale, seconds: float) -> LoadPlan:
    return LoadPlan(
        port=stand.port,
        connections=scale.connections,
        seconds=seconds,
        warm_up_s=scale.warm_up_s,
        heads=reserve_heads(event, random.sample(event.seats, len(event.seats))),
        tails=tails,
        again=False,
    )
