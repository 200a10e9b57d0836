"""What the state log tells, beside what is so: random histories through the product's own doors, and the tables of holds,
seats and zones as the truth that the analyses never look at."""

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest

from holdfast.compat.booking_v2 import GroupRef, SeatRef, StateSelection
from holdfast.insight.analytics import Division, Ends, FunnelAnswer, HoldEnd
from holdfast.insight.analytics_service import Question
from holdfast.workers.expire_holds import ExpireHolds
from tests.conftest import TestDatabase
from tests.factories import staff_call, theatre_config, with_companions
from tests.http.migration_ground import add_version, apply, plan, without_rows
from tests.race.ground import api_call
from tests.stage import Stage, stage

HALL = with_companions(theatre_config(3, 8, ga_capacity=40), (0, 1), (16, 17))
TYPES = {
    "BOX_OFFICE": {"validStates": ["LOCKED", "SOLD"], "skipLockedState": True},
    "COMP": {"validStates": ["LOCKED"], "releaseApi": "ADMIN"},
}
SESSIONS = ("till-1", "till-2", "till-3")
STANDING = """
SELECT holdfast_now() AS at, s.held + z.held AS held, s.sold + z.sold AS sold, s.blocked + z.blocked AS blocked,
  z.held AS zone_held, z.sold AS zone_sold, s.seats + z.capacity AS total
FROM (SELECT count(*) AS seats, count(*) FILTER (WHERE state = 'held') AS held,
        count(*) FILTER (WHERE state = 'sold') AS sold,
        count(*) FILTER (WHERE state = 'blocked') AS blocked FROM event_seats WHERE event_id = $1) s,
  event_zones z WHERE z.event_id = $1
"""
HOLDS = """
SELECT h.hold_type, h.ordinal IS NULL AS counted, h.status::text, h.quantity, h.created_at, h.ended_at,
  EXISTS (SELECT FROM seat_state_events l WHERE l.hold_id = h.id AND l.verb = 'hold') AS whole,
  EXISTS (SELECT FROM seat_state_events l WHERE l.hold_id = h.id AND l.verb = 'block') AS blocked
FROM holds h WHERE h.event_id = $1
"""
STATUS = {"active": "held", "converted": "converted", "expired": "expired", "cancelled": "released"}


@dataclass
class History:
    """Somebody doing anything at all, and what they remember of it."""

    made: Stage
    rng: random.Random
    buyers: list[dict[str, str]] = field(default_factory=list)
    standing: list[dict[str, Any]] = field(default_factory=list)
    sales: dict[str, datetime | None] = field(default_factory=dict)
    """Seats that are sold, by name, with when their hold was placed."""
    reverted: list[datetime | None] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)

    @property
    def event(self) -> UUID:
        return UUID(self.made.event_id)

    async def step(self) -> None:
        await self.made.advance_clock(self.rng.choice([1, 1, 1, 1, 1, 1, 60, 400]))
        await self.made.sql("SELECT pg_sleep(0.001)")  # no two moves at one instant
        act = self.rng.choice(
            [self.hold, self.hold, self.comp, self.release, self.lock, self.lock, self.sell, self.sell, self.unlock,
             self.direct, self.revert, self.block, self.sweep]
        )  # fmt: skip
        if await act():
            self.done[act.__name__] += 1
        row = (await self.made.sql(STANDING, self.event))[0]
        self.standing.append(dict(row))

    async def hold(self) -> bool:
        places = self.rng.choice([0, 0, 2, 5])
        seats = self.rng.sample(range(len(self.made.seats)), self.rng.randint(0 if places else 1, 2))
        ga = [{"zone_id": "pit", "quantity": places}] if places else []
        answer = await self.made.hold(self.rng.choice(self.buyers), *seats, ga=ga)
        return answer.status_code == 201

    async def comp(self) -> bool:
        seat = self.rng.randrange(len(self.made.seats))
        return (await self.made.reserve(seat, self.made.admin, holdType="COMP")).status_code == 201

    async def release(self) -> bool:
        rows = await self.made.sql(
            "SELECT id FROM holds WHERE event_id = $1 AND status = 'active' ORDER BY id", self.event
        )
        if not rows:
            return False
        hold = self.rng.choice(rows)["id"]
        return (await self.made.client.delete(f"/api/holds/{hold}", headers=self.made.admin)).status_code == 200

    def selection(
        self, session: str, seats: list[dict[str, Any]], places: int, hold_type: str | None = None
    ) -> StateSelection:
        groups = [GroupRef(self.made.zones[0]["booking_id"], places)] if places else []
        return StateSelection(session, [SeatRef(seat["booking_id"]) for seat in seats], groups, hold_type)

    async def booking(self, verb: str, chosen: StateSelection) -> bool:
        if not chosen.seats and not chosen.group_of_seats:
            return False
        call = api_call(self.made.first)
        done: bool = await getattr(self.made.app.services.booking, verb)(call, self.event, chosen)
        return done

    async def lock(self) -> bool:
        seats = self.rng.sample(self.made.seats, self.rng.choice([0, 0, 1]))
        return await self.booking("lock", self.selection(self.rng.choice(SESSIONS), seats, self.rng.choice([0, 3, 6])))

    async def held_by(self, session: str) -> tuple[list[dict[str, Any]], int]:
        rows = await self.made.sql(
            "SELECT h.ordinal, h.quantity, h.created_at FROM holds h WHERE h.event_id = $1 AND h.session_id = $2"
            " AND h.status = 'active' AND (h.held_until IS NULL OR h.held_until > holdfast_now()) ORDER BY h.id",
            self.event,
            session,
        )
        seats = [{**self.made.seats[r["ordinal"]], "at": r["created_at"]} for r in rows if r["ordinal"] is not None]
        return seats, sum(row["quantity"] for row in rows if row["ordinal"] is None)

    async def sell(self) -> bool:
        """Some of what a session has: out of a larger hold as well."""
        session = self.rng.choice(SESSIONS)
        seats, places = await self.held_by(session)
        seats = seats[:1]
        done = await self.booking("sale", self.selection(session, seats, self.rng.randint(0, places)))
        if done:
            self.sales |= {seat["seat_id"]: seat["at"] for seat in seats}
        return done

    async def unlock(self) -> bool:
        session = self.rng.choice(SESSIONS)
        seats, places = await self.held_by(session)
        return await self.booking("unlock", self.selection(session, seats[:1], self.rng.randint(0, places)))

    async def direct(self) -> bool:
        seats = [s for s in self.rng.sample(self.made.seats, 1) if (await self.state(s)) == "available"]
        chosen = self.selection("till-1", seats, self.rng.choice([0, 1]), "BOX_OFFICE")
        done = await self.booking("direct_sale", chosen)
        if done:
            self.sales |= {seat["seat_id"]: None for seat in seats}
        return done

    async def revert(self) -> bool:
        sold = [s for s in self.made.seats if s["seat_id"] in self.sales and (await self.state(s)) == "sold"][:1]
        done = await self.booking("revert_sale", self.selection("till-1", sold, self.rng.choice([0, 0, 1])))
        if done:
            self.reverted += [self.sales.pop(seat["seat_id"]) for seat in sold]
        return done

    async def state(self, seat: dict[str, Any]) -> str:
        rows = await self.made.sql(
            "SELECT state::text FROM event_seats WHERE event_id = $1 AND booking_id = $2",
            self.event,
            seat["booking_id"],
        )
        return str(rows[0]["state"])

    async def block(self) -> bool:
        seat = self.rng.choice(self.made.seats)
        verb = "unblock" if (await self.state(seat)) == "blocked" else "block"
        body = {"seats": [seat["id"]], **({"reason": "camera"} if verb == "block" else {})}
        return (await self.made.post(f"/api/events/{self.event}/seats/{verb}", body)).status_code == 200

    async def sweep(self) -> bool:
        await ExpireHolds(self.made.app.database, grace_s=0).once()
        return True

    async def migrate(self) -> None:
        """A zone more before the others, which gives each of them another number; and a row less."""
        config = without_rows(HALL, "B")
        box = {"zone_id": "box", "name": "Box", "zone_type": "reserved_seating", "capacity": 4, "seats": [
            {"seat_id": f"X-{n}", "row": "X", "number": n} for n in range(1, 5)]}  # fmt: skip
        config["zones"].insert(0, box)
        planned = await plan(self.made, await add_version(self.made, config))
        answer = await apply(self.made, planned["id"])
        assert answer.status_code == 200, answer.text
        for move in planned["moves"]:  # a sale that sits elsewhere now is not in the log under its new seat
            self.sales.pop(move["from_seat"]["seat_id"], None)
        seats = await self.made.client.get(f"/api/events/{self.event}/seats?limit=1000", headers=self.made.admin)
        self.made.seats = seats.json()["data"]


async def history(made: Stage, seed: int, steps: int) -> History:
    answer = await made.post("/api/organizations/config", {"holdTypes": TYPES})
    assert answer.status_code == 200, answer.text
    told = History(made, random.Random(seed))
    told.buyers = [await made.buyer() for _ in range(6)]
    for n in range(steps):
        await told.step()
        if n == steps // 2:
            await told.migrate()
    return told


@pytest.mark.parametrize("seed", [2, 4])
def test_a_random_history_is_told_as_it_was(database: TestDatabase, seed: int) -> None:
    async def main() -> None:
        overrides = {"orphan_avoidance_strict": False, "max_holds_per_user": 1000}
        async with stage(database, HALL, event={"overrides": overrides}) as made:
            told = await history(made, seed, 110)
            assert min(told.done[act] for act in ("hold", "lock", "sell", "unlock", "direct", "revert", "block")) > 0, (
                told.done
            )
            rows = [dict(row) for row in await made.sql(HOLDS, told.event)]
            assert any(not row["whole"] and row["status"] == "converted" for row in rows), (
                "nothing was drawn from a hold"
            )
            middle = told.standing[40]["at"]
            for since, until in ((None, None), (middle, None), (None, middle)):
                await _compare(told, rows, Question(since=since, until=until))
            await _compare_occupancy(told)

    asyncio.run(main())


async def _compare(told: History, rows: list[dict[str, Any]], question: Question) -> None:
    analytics, call = told.made.app.services.analytics, staff_call(told.made.first)
    seated = Counter[str]()
    for name in ("stalls", "box"):
        asked = Question(since=question.since, until=question.until, zone=name)
        seated.update(msgspec.structs.asdict((await analytics.conversion(call, told.event, asked)).places))
    _same(Ends(**seated), Counter(), [row for row in _within(rows, question) if not row["counted"]], whole=False)
    for zone, counted in ((None, None), ("pit", True)):
        for hold_type in (None, "CART", "COMP"):
            asked = Question(since=question.since, until=question.until, hold_type=hold_type, zone=zone)
            wanted = [
                row
                for row in _within(rows, question)
                if hold_type in (None, row["hold_type"]) and counted in (None, row["counted"])
            ]
            found = await analytics.conversion(call, told.event, asked)
            _same(found.places, Counter(), wanted, whole=False)
            _same(found.holds, Counter(), wanted, whole=True)
            for by in Division:
                divided = await analytics.conversion(call, told.event, asked, by)
                assert divided.places == found.places
                summed = Counter[str]()
                for group in divided.groups:
                    summed.update({name: getattr(group.places, name) for name in Ends.__struct_fields__})
                assert {name: summed[name] for name in Ends.__struct_fields__} == msgspec.structs.asdict(found.places)
            lived = (await analytics.expiry(call, told.event, asked)).lives
            for end in (HoldEnd.CONVERTED, HoldEnd.EXPIRED, HoldEnd.RELEASED):
                spans = sorted(
                    int((row["ended_at"] - row["created_at"]).total_seconds() + 0.5)
                    for row in wanted
                    if row["whole"] and STATUS[row["status"]] == end and not row["blocked"]
                )
                here = [each for each in lived if each.hold_type is None and each.end is end]
                assert sum(each.holds for each in here) == len(spans)
                if spans:
                    assert here[0].p50_s is not None
                    middle = spans[(len(spans) + 1) // 2 - 1]
                    assert abs(here[0].p50_s - middle) <= (1 if middle < 3600 else 60)
                    assert sum(bar.holds for bar in here[0].histogram) == len(spans)
            funnel = await analytics.funnel(call, told.event, asked)
            steps = {step.step: step.places for step in funnel.steps}
            assert (steps["held"], steps["sold"]) == (found.places.placed, found.places.converted)
            if zone is None and hold_type is None:
                _same_reverts(told, question, funnel)


def _within(rows: list[dict[str, Any]], question: Question) -> list[dict[str, Any]]:
    return [
        row
        for row in rows
        if (question.since is None or row["created_at"] >= question.since)
        and (question.until is None or row["created_at"] < question.until)
    ]


def _same(found: Ends, truth: Counter[str], wanted: list[dict[str, Any]], *, whole: bool) -> None:
    for row in wanted:
        if row["whole"] or not whole:
            name = "blocked" if row["blocked"] else STATUS[row["status"]]
            truth[name] += 1 if whole else row["quantity"]
    assert {name: getattr(found, name) for name in truth} == dict(truth)
    assert found.placed == sum(truth.values())


def _same_reverts(told: History, question: Question, funnel: FunnelAnswer) -> None:
    expected = sum(
        placed is not None
        and (question.since is None or placed >= question.since)
        and (question.until is None or placed < question.until)
        for placed in told.reverted
    )
    assert {step.step: step.places for step in funnel.steps}["reverted"] == expected


async def _compare_occupancy(told: History) -> None:
    analytics, call = told.made.app.services.analytics, staff_call(told.made.first)
    for n in range(0, len(told.standing), 5):
        row = told.standing[n]
        asked = Question(until=row["at"])
        last = (await analytics.occupancy(call, told.event, asked)).points[-1]
        assert (last.at, last.held, last.sold, last.blocked, last.total) == (
            row["at"],
            row["held"],
            row["sold"],
            row["blocked"],
            row["total"],
        )
        pit = (await analytics.occupancy(call, told.event, Question(until=row["at"], zone="pit"))).points[-1]
        assert (pit.held, pit.sold, pit.total) == (row["zone_held"], row["zone_sold"], 40)
    whole = await analytics.occupancy(
        call, told.event, Question(since=told.standing[0]["at"] - timedelta(minutes=1)), Division.ZONE
    )
    assert whole.zones is not None
    assert {zone.zone_id for zone in whole.zones} == {"box", "stalls", "pit"}
    for n, point in enumerate(whole.points):
        before = [row for row in told.standing if row["at"] <= point.at]
        if before and all(abs((row["at"] - point.at).total_seconds()) > 1 for row in told.standing):
            assert (point.held, point.sold, point.blocked) == tuple(before[-1][s] for s in ("held", "sold", "blocked"))
        for state in ("held", "sold", "blocked", "available"):
            assert sum(getattr(zone.points[n], state) for zone in whole.zones) == getattr(point, state)
