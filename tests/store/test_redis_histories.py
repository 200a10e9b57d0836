"""Random histories of an event, told in any order and more than once within a reading, always lead to what is true."""

import random
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from holdfast.kernel.ids import new_id
from holdfast.live.message import Message
from holdfast.store.redis.keys import member, seat_value
from holdfast.store.redis.warm import Warm
from tests.store.redis_ground import Hall, run

SEATS = 12
READINGS = 30
ENDS = ("SeatReleased", "SeatHoldExpired", "SeatSold", "SeatBlocked")


class Truth:
    """What the database would have: the hold and the state of each seat."""

    def __init__(self, hall: Hall, chance: random.Random) -> None:
        self._hall = hall
        self._chance = chance
        self._versions = [0] * SEATS
        self._taken = [False] * SEATS
        self._told = 0
        self.holds: dict[int, tuple[UUID, UUID | None, datetime | None]] = {}

    @property
    def bits(self) -> list[int]:
        return [int(taken) for taken in self._taken]

    def move(self) -> Message:
        """One more move of a seat, whichever is legal."""
        seat = self._chance.randrange(SEATS)
        if seat in self.holds:
            hold, user, until = self.holds[seat]
            if until is not None and self._chance.random() < 0.3:
                self._told += 1
                by_s = self._chance.choice((self._chance.randrange(1, 100), -self._chance.randrange(1, 50)))
                was, until = until, max(self._hall.now + timedelta(seconds=1), until + timedelta(seconds=by_s))
                shortened = until < was
                self.holds[seat] = (hold, user, until)
                at = self._hall.now + timedelta(microseconds=self._told)
                payload = {"shortened": True} if shortened else None
                return self._begins("SeatHoldExtended", seat, at=at, payload=payload)
            del self.holds[seat]
            return self._ends(self._chance.choice(ENDS), seat, hold)
        if self._taken[seat]:
            return self._ends("SaleReverted", seat, None)
        life_s = self._chance.choice((None, self._chance.uniform(100, 900)))
        until = None if life_s is None else self._hall.now + timedelta(seconds=life_s)
        self.holds[seat] = (new_id(), self._chance.choice((None, new_id())), until)
        self._versions[seat] += 1
        return self._begins("SeatReserved", seat)

    def _begins(self, kind: str, seat: int, **more: Any) -> Message:
        hold, user, until = self.holds[seat]
        self._taken[seat] = True
        return self._hall.move(kind, [seat], [hold], self._versions[seat], user_ids=[user], held_until=until, **more)

    def _ends(self, kind: str, seat: int, hold: UUID | None) -> Message:
        self._versions[seat] += 1
        self._taken[seat] = kind in ("SeatSold", "SeatBlocked")
        return self._hall.move(kind, [seat], [hold], self._versions[seat])


async def written(warm: Warm, hall: Hall) -> tuple[set[str], dict[int, str], set[UUID], list[int]]:
    """Members, the seats' keys by ordinal, the holds with a meta, the bits."""
    client, keys, org = warm.connection.client, warm.keys, hall.organization_id
    members = await client.execute_command("ZRANGE", keys.seat_holds(org, hall.event_id), 0, -1)
    seats = {n: await client.execute_command("GET", keys.seat(org, hall.seat(n))) for n in range(SEATS)}
    metas = await client.execute_command("KEYS", f"{keys.prefix(org)}:hold:*")
    bits = [await hall.bit(warm, n) for n in range(SEATS)]
    return (
        {m.decode() for m in members},
        {n: value.decode() for n, value in seats.items() if value is not None},
        {UUID(key.decode().split(":")[-2]) for key in metas},
        bits,
    )


@pytest.mark.parametrize("seed", range(6))
def test_any_history_leads_to_the_truth(valkey: str, seed: int) -> None:
    chance = random.Random(seed)
    hall = Hall(SEATS)
    truth = Truth(hall, chance)

    async def work(warm: Warm) -> None:
        for _ in range(READINGS):
            reading = [truth.move() for _ in range(chance.randrange(1, 40))]
            told = reading + chance.sample(reading, chance.randrange(len(reading)))
            chance.shuffle(told)
            for _ in range(chance.choice((1, 1, 2))):
                assert await hall.apply(warm, *told)
            held = truth.holds.items()
            assert await written(warm, hall) == (
                {member(hall.seat(n), *hold) for n, hold in held},
                {n: seat_value(*hold) for n, hold in held},
                {hold for _, (hold, _, _) in held},
                truth.bits,
            )

    run(valkey, work)
