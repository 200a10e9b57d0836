"""A server that fails, hangs or is away costs its callers nothing, and is used again soon after it is back."""

import asyncio
import os
import signal
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client import REGISTRY
from redis.exceptions import ConnectionError as RedisConnectionError

from holdfast.kernel.ids import new_id
from holdfast.store.redis.breaker import FAILURES_MAX, PAUSE_FIRST_S, PAUSE_LONGEST_S, Breaker
from holdfast.store.redis.warm import Warm
from tests.store.redis_ground import Hall, eventually, opened, own_server

PATIENCE_S = 0.2


async def fail() -> int:
    raise RedisConnectionError("refused")


async def succeed() -> int:
    return 7


async def hang() -> int:
    await asyncio.sleep(30)
    return 7


def counted(command: str, outcome: str) -> float:
    found = REGISTRY.get_sample_value("holdfast_warm_commands_total", {"command": command, "outcome": outcome})
    return found or 0.0


def gauge() -> float | None:
    return REGISTRY.get_sample_value("holdfast_warm_breaker_open")


def test_it_opens_after_failures_in_a_row_and_then_answers_at_once() -> None:
    async def work() -> None:
        breaker = Breaker(PATIENCE_S, clock=lambda: 0.0)  # the pause before the next try never ends
        for _ in range(FAILURES_MAX - 1):
            assert await breaker.call("few", fail) is None
        assert await breaker.call("few", succeed) == 7
        for _ in range(FAILURES_MAX - 1):
            await breaker.call("few", fail)
        assert not breaker.is_open
        await breaker.call("few", fail)
        assert breaker.is_open
        assert gauge() == 1
        refused = counted("few", "refused")
        assert await breaker.call("few", succeed) is None
        assert counted("few", "refused") == refused + 1
        assert counted("few", "failed") == 2 * FAILURES_MAX - 1
        assert counted("few", "ok") == 1

    asyncio.run(work())


def test_it_opens_after_one_timeout() -> None:
    async def work() -> None:
        breaker = Breaker(PATIENCE_S)
        begin = time.monotonic()
        assert await breaker.call("slow", hang) is None
        assert PATIENCE_S <= time.monotonic() - begin < PATIENCE_S + 5
        assert breaker.is_open
        assert counted("slow", "timeout") == 1

    asyncio.run(work())


def test_one_probe_is_let_through_after_a_pause_and_closes_it() -> None:
    async def work() -> None:
        breaker = Breaker(PATIENCE_S)
        await breaker.call("probe", hang)
        await asyncio.sleep(PAUSE_FIRST_S + 0.02)
        slow = asyncio.create_task(breaker.call("probe", lambda: asyncio.sleep(0.05, 7)))
        await asyncio.sleep(0.01)
        assert await breaker.call("probe", succeed) is None, "one at a time"
        assert await slow == 7
        assert not breaker.is_open
        assert gauge() == 0
        assert await breaker.call("probe", succeed) == 7

    asyncio.run(work())


def test_pauses_grow_but_never_beyond_a_second() -> None:
    now = 1_000.0

    async def work() -> list[float]:
        nonlocal now
        breaker = Breaker(PATIENCE_S, clock=lambda: now)
        for _ in range(FAILURES_MAX):
            await breaker.call("pause", fail)
        pauses = []
        for _ in range(8):
            began = now
            asked = counted("pause", "failed")
            while counted("pause", "failed") == asked:
                now += 0.01
                await breaker.call("pause", fail)
            pauses.append(now - began)
        return pauses

    pauses = asyncio.run(work())
    assert pauses[0] == pytest.approx(PAUSE_FIRST_S, abs=0.011)
    assert pauses == sorted(pauses)
    assert pauses[-1] == pytest.approx(PAUSE_LONGEST_S, abs=0.011)


def test_a_cancelled_probe_lets_the_next_one_through() -> None:
    async def work() -> None:
        breaker = Breaker(PATIENCE_S)
        await breaker.call("cancel", hang)
        await asyncio.sleep(PAUSE_FIRST_S + 0.02)
        probe = asyncio.create_task(breaker.call("cancel", hang))
        await asyncio.sleep(0.01)
        probe.cancel()
        with pytest.raises(asyncio.CancelledError):
            await probe
        assert await breaker.call("cancel", succeed) == 7

    asyncio.run(work())


def test_whoever_waits_for_a_place_when_it_opens_is_not_let_through() -> None:
    async def work() -> None:
        breaker = Breaker(PATIENCE_S, calls_at_once=1)
        tried = 0

        async def fail_late() -> int:
            nonlocal tried
            tried += 1
            await asyncio.sleep(0.02)
            raise RedisConnectionError("refused")

        await asyncio.gather(*(breaker.call("wait", fail_late) for _ in range(8)))
        assert tried == FAILURES_MAX
        assert counted("wait", "refused") == 8 - FAILURES_MAX

    asyncio.run(work())


def test_a_mistake_of_our_own_harms_no_caller() -> None:
    async def wrong() -> int:
        raise KeyError("a mistake")

    async def work() -> None:
        assert await Breaker(PATIENCE_S).call("wrong", wrong) is None
        assert counted("wrong", "failed") == 1

    asyncio.run(work())


async def everything(warm: Warm) -> list[object]:
    """Every call there is, one after the other."""
    hall = Hall()
    org, event, seat = hall.organization_id, hall.event_id, hall.seat(0)
    begun = hall.move("SeatReserved", [0], [new_id()], 1, lives_s=60)
    return [
        await warm.ping(),
        await warm.version(),
        await hall.apply(warm, begun),
        await warm.find_hold(org, event, seat),
        await warm.find_holds(org, event, [seat]),
        await warm.holds_of_event(org, event),
        await warm.set_bitmap(org, event, b"\1"),
        await warm.get_bitmap(org, event),
        await warm.set_occupancy(org, event, b"{}"),
        await warm.get_occupancy(org, event),
        await warm.drop_occupancy(org, event),
        await warm.set_layout(org, event, b"{}"),
        await warm.get_layout(org, event),
        await warm.lead("me", 1_000),
        await warm.advance("me", None, "1:1:"),
    ]


def test_a_server_that_is_away_from_the_start_is_no_error(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(f"unix://{tmp_path}/nobody.sock") as warm:
            assert warm.available
            assert all(not answer for answer in await everything(warm))
            assert not warm.available

    asyncio.run(work())


def test_a_stopped_server_costs_one_timeout_and_is_back_within_seconds_of_its_return(tmp_path: Path) -> None:
    timeout_s = 0.25

    async def work() -> None:
        with own_server(tmp_path) as server:
            assert server.pid is not None
            async with opened(server.address.url(), timeout_s) as warm:
                assert all(answer for answer in await everything(warm))
                os.kill(server.pid, signal.SIGSTOP)
                try:
                    begin = time.monotonic()
                    assert not await warm.ping()
                    assert time.monotonic() - begin < timeout_s + 2
                    assert not warm.available
                    begin = time.monotonic()
                    assert all(not answer for answer in await everything(warm))
                    assert time.monotonic() - begin < timeout_s + 2, "at most one of them was a probe"
                    await asyncio.sleep(1.5)
                finally:
                    os.kill(server.pid, signal.SIGCONT)
                begin = time.monotonic()
                assert await eventually(warm.ping, 5)
                assert time.monotonic() - begin < PAUSE_LONGEST_S + timeout_s + 3
                assert warm.available

    asyncio.run(work())


def test_a_server_killed_and_started_again_is_used_again(tmp_path: Path) -> None:
    async def work() -> None:
        with own_server(tmp_path) as server:
            async with opened(server.address.url()) as warm:
                assert await warm.ping()
                server.stop()
                assert all(not answer for answer in await everything(warm))
                assert not warm.available
                server.start()
                assert await eventually(warm.ping, 5)
                assert all(answer for answer in await everything(warm))

    asyncio.run(work())


def test_many_callers_at_once_wait_for_a_place_and_not_for_a_connection_each(valkey: str) -> None:
    async def work() -> None:
        hall = Hall()
        async with opened(valkey, 5.0) as warm:
            assert await warm.add(hall.organization_id, [], datetime.now(UTC))
            asked = [warm.find_hold(hall.organization_id, hall.event_id, hall.seat(n % 100)) for n in range(500)]
            assert await asyncio.gather(*asked) == [None] * 500
            assert warm.available
            clients = await warm.connection.client.info("clients")
            assert clients["connected_clients"] <= 20

    asyncio.run(work())
