"""Who writes to the warm tier, and how the writer learns that the server has lost what was written."""

import asyncio
import time
from pathlib import Path

from holdfast.kernel.ids import new_id
from holdfast.store.embedded import ValkeyServer
from holdfast.store.redis.warm import Lead, Warm
from tests.conftest import ask_valkey
from tests.store.redis_ground import Hall, eventually, opened, own_server, run


def test_the_lease_goes_to_one_and_to_the_next_when_it_is_over(valkey: str) -> None:
    async def work(warm: Warm) -> None:
        other = Warm(warm.connection, "test")
        assert await warm.lead("one", 300) == Lead(True, None)
        assert await other.lead("other", 300) == Lead(False, None)
        assert await warm.advance("one", None, "10:10:")
        assert await other.lead("other", 300) == Lead(False, "10:10:")
        assert await warm.lead("one", 300) == Lead(True, "10:10:")
        begin = time.monotonic()

        async def taken() -> bool:
            lead = await other.lead("other", 300)
            return lead is not None and lead.mine

        assert await eventually(taken, 2)
        assert time.monotonic() - begin > 0.25
        assert await warm.lead("one", 300) == Lead(False, "10:10:")

    run(valkey, work)


def test_the_cursor_moves_only_from_where_its_writer_left_it(valkey: str) -> None:
    async def work(warm: Warm) -> None:
        assert not await warm.advance("one", None, "10:10:"), "nobody leads"
        await warm.lead("one", 10_000)
        assert not await warm.advance("one", "9:9:", "10:10:"), "there is none yet"
        assert await warm.advance("one", None, "10:10:")
        assert not await warm.advance("one", None, "11:11:")
        assert not await warm.advance("other", "10:10:", "11:11:"), "somebody else leads"
        assert await warm.advance("one", "10:10:", "11:13:12")
        assert await warm.lead("one", 10_000) == Lead(True, "11:13:12")

    run(valkey, work)


def test_a_flush_is_noticed(valkey: str, valkey_server: ValkeyServer) -> None:
    async def work(warm: Warm) -> None:
        await warm.lead("one", 10_000)
        assert await warm.advance("one", None, "10:10:")
        ask_valkey(valkey_server.address, "FLUSHALL")
        assert not await warm.advance("one", "10:10:", "11:11:")
        assert await warm.lead("one", 10_000) == Lead(True, None)
        assert not await warm.advance("one", "10:10:", "11:11:"), "nor is it forgotten by taking the lease again"

    run(valkey, work)


def test_a_restart_is_noticed(tmp_path: Path) -> None:
    async def work() -> None:
        with own_server(tmp_path) as server:
            async with opened(server.address.url()) as warm:
                await warm.lead("one", 10_000)
                assert await warm.advance("one", None, "10:10:")
                server.stop()
                assert await warm.lead("one", 10_000) is None
                server.start()
                assert await eventually(warm.ping)
                assert not await warm.advance("one", "10:10:", "11:11:")
                assert await warm.lead("one", 10_000) == Lead(True, None)

    asyncio.run(work())


def test_a_server_that_went_back_to_an_older_state_is_noticed(valkey: str, valkey_server: ValkeyServer) -> None:
    """As after a failover that lost the last writes."""

    async def work(warm: Warm) -> None:
        await warm.lead("one", 10_000)
        assert await warm.advance("one", None, "10:10:")
        assert await warm.advance("one", "10:10:", "11:11:")
        ask_valkey(valkey_server.address, f"SET {warm.keys.cursor} 10:10:")
        assert not await warm.advance("one", "11:11:", "12:12:")

    run(valkey, work)


def test_a_writer_whose_lease_is_over_cannot_write_over_its_successors_work(valkey: str) -> None:
    hall, hold = Hall(), new_id()

    async def work(warm: Warm) -> None:
        late = Warm(warm.connection, "test")
        begun = hall.move("SeatReserved", [0], [hold], 1, lives_s=60)
        assert await late.lead("late", 150) == Lead(True, None)
        assert await hall.apply(late, begun)
        await asyncio.sleep(0.2)
        lead = await warm.lead("next", 10_000)
        assert lead is not None
        assert lead.mine
        assert await hall.apply(warm, begun, hall.move("SeatReleased", [0], [hold], 2))
        assert not await hall.apply(late, begun), "the server refuses it"
        assert await late.lead("late", 150) == Lead(False, None)
        assert not await hall.apply(late, begun)
        assert late.available
        assert await warm.holds_of_event(hall.organization_id, hall.event_id) == []

    run(valkey, work)


def test_registry_keys_of_another_type_give_way(valkey: str, valkey_server: ValkeyServer) -> None:
    async def work(warm: Warm) -> None:
        ask_valkey(valkey_server.address, f"LPUSH {warm.keys.writer} poison")
        ask_valkey(valkey_server.address, f"LPUSH {warm.keys.cursor} poison")
        assert await warm.lead("one", 10_000) == Lead(True, None)
        assert await warm.advance("one", None, "10:10:")

    run(valkey, work)
