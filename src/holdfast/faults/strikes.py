"""The faults, by name. Each strikes, waits, and sees to it that what it struck stands again."""

import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import msgspec
import redis

from holdfast.faults.ground import NAMESPACE, Ground
from holdfast.faults.house import House
from holdfast.store.redis.keys import Keys

POISONED = 60
"""Seats a house whose keys are overwritten: free ones and held ones."""
POISON_S = 300.0
"""How long the wrong keys would live: longer than any run looks."""


class Times(msgspec.Struct, frozen=True):
    """How long a fault lasts."""

    away_s: float = 3.0
    stopped_s: float = 10.0
    flushes: int = 5


SHORT = Times(away_s=0.6, stopped_s=1.2, flushes=3)

Strike = Callable[[Ground, list[House], Times], None]


def nothing(ground: Ground, houses: list[House], times: Times) -> None:
    """The control."""
    time.sleep(times.away_s)


def valkey_killed(ground: Ground, houses: list[House], times: Times) -> None:
    """It comes back empty."""
    ground.kill_valkey()
    time.sleep(times.away_s)
    ground.start_valkey()


def valkey_flushed(ground: Ground, houses: list[House], times: Times) -> None:
    with redis.from_url(ground.redis_url) as client:
        for n in range(times.flushes):
            time.sleep(times.away_s / times.flushes if n else 0.0)
            client.flushall()


def valkey_stopped(ground: Ground, houses: list[House], times: Times) -> None:
    """It takes connections and answers nothing."""
    ground.stop_valkey()
    try:
        time.sleep(times.stopped_s)
    finally:
        ground.continue_valkey()


def valkey_poisoned(ground: Ground, houses: list[House], times: Times) -> None:
    """Somebody who never asked stands as the holder of seats, free and held ones, until the registry is reconciled."""
    with redis.from_url(ground.redis_url) as client:
        for house in houses:
            _poison(client, Keys(NAMESPACE), house)
    time.sleep(times.away_s)
    for house in houses:
        ground.reconcile(house.admin_token)


def _poison(client: "redis.Redis", keys: Keys, house: House) -> None:
    organization_id, event_id = house.organization_id, house.event_id
    until = time.time() + POISON_S
    life_ms = int(1000 * POISON_S)
    pipeline = client.pipeline(transaction=False)
    for seat in house.seats[:POISONED]:
        hold_id, user_id = uuid4(), uuid4()
        ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(until))
        meta: dict[str | bytes | bytearray | memoryview | int | float, Any] = {
            "seat_id": str(seat),
            "user_id": str(user_id),
            "event_id": str(event_id),
            "held_until": ends,
            "created_at": ends,
            "source": "web",
            "status": "active",
            "hold_type": "CART",
        }
        pipeline.set(keys.seat(organization_id, seat), f"{hold_id}:{user_id}:{int(until)}", px=life_ms)
        pipeline.hset(keys.meta(organization_id, hold_id), mapping=meta)
        pipeline.pexpire(keys.meta(organization_id, hold_id), life_ms)
        pipeline.zadd(keys.seat_holds(organization_id, event_id), {f"{seat}:{hold_id}:{user_id}:{ends}": int(until)})
    pipeline.execute()


def server_killed(ground: Ground, houses: list[House], times: Times) -> None:
    ground.kill_server(0)
    time.sleep(times.away_s)
    ground.start_server(0)


def postgres_killed(ground: Ground, houses: list[House], times: Times) -> None:
    ground.kill_postgres()
    time.sleep(times.away_s / 3)
    ground.start_postgres()


FAULTS: dict[str, Strike] = {
    "none": nothing,
    "valkey_killed": valkey_killed,
    "valkey_flushed": valkey_flushed,
    "valkey_stopped": valkey_stopped,
    "valkey_poisoned": valkey_poisoned,
    "server_killed": server_killed,
    "postgres_killed": postgres_killed,
}
STRUCK = {"server_killed": "process 1"}
"""Whose answers say nothing about those of the processes that stand."""
