"""Sentinel and Cluster, with real servers: the master dies and another takes over; an organization lies on one node."""

import asyncio
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from holdfast.kernel.ids import new_id
from holdfast.store.embedded.binaries import valkey_programs
from holdfast.store.redis.wakeups import RedisWakeups
from holdfast.store.redis.warm import Lead, Warm
from tests.store.redis_ground import Hall, eventually, opened
from tests.store.test_redis_wakeups import listening

SLOTS = 16384
PATIENCE_S = 20.0


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def ask(port: int, command: str) -> str:
    """The whole answer, as far as it comes at once."""
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        connection.sendall(command.encode() + b"\r\n")
        return connection.recv(65536).decode(errors="replace")


def await_answer(port: int, command: str, wanted: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    answer = ""
    while wanted not in answer:
        assert time.monotonic() < deadline, answer
        try:
            answer = ask(port, command)
        except OSError as error:
            answer = str(error)
        time.sleep(0.02)


@contextmanager
def process(folder: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    folder.mkdir()
    common = ("--bind", "127.0.0.1", "--dir", str(folder), "--save", "", "--logfile", str(folder / "log"))
    command = ["setpriv", "--pdeathsig", "KILL", str(valkey_programs().program_path), *options, *common]
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield started
    finally:
        started.kill()
        started.wait()


class Watched:
    """A master, its replica, and a Sentinel."""

    def __init__(self, url: str, master: subprocess.Popen[bytes], replica_port: int) -> None:
        self.url = url
        self.master = master
        self.replica_port = replica_port


@contextmanager
def watched(folder: Path) -> Iterator[Watched]:
    port, replica_port, sentinel_port = free_port(), free_port(), free_port()
    (folder / "sentinel.conf").write_text(
        f"port {sentinel_port}\n"
        f"sentinel monitor main 127.0.0.1 {port} 1\n"
        "sentinel auth-pass main secret\n"
        "sentinel down-after-milliseconds main 500\n"
        "sentinel failover-timeout main 2000\n"
    )
    secret = ("--requirepass", "secret", "--primaryauth", "secret")
    with ExitStack() as servers:
        master = servers.enter_context(process(folder / "one", "--port", str(port), *secret))
        replica = ("--port", str(replica_port), "--replicaof", "127.0.0.1", str(port), *secret)
        servers.enter_context(process(folder / "two", *replica))
        await_answer(replica_port, "AUTH secret\r\nINFO replication", "master_link_status:up")
        servers.enter_context(process(folder / "watch", str(folder / "sentinel.conf"), "--sentinel"))
        await_answer(sentinel_port, "SENTINEL replicas main", "127.0.0.1")
        nobody = free_port()
        yield Watched(
            f"redis+sentinel://:secret@127.0.0.1:{nobody},127.0.0.1:{sentinel_port}/main", master, replica_port
        )


def test_behind_sentinels_the_next_master_is_found_and_what_it_lacks_is_noticed(tmp_path: Path) -> None:
    hall, hold = Hall(), new_id()

    async def work(group: Watched) -> None:
        async with opened(group.url) as warm, listening(warm) as listener:
            assert await listener.hears(0)
            assert await warm.lead("one", 60_000) == Lead(True, None)
            assert await hall.apply(warm, hall.move("SeatReserved", [0], [hold], 1, lives_s=600))
            assert await warm.advance("one", None, "10:10:")
            await_answer(group.replica_port, f"AUTH secret\r\nGET {warm.keys.cursor}", "10:10:")
            group.master.kill()
            group.master.wait()
            assert not await warm.set_occupancy(hall.organization_id, hall.event_id, b"{}")
            heard = listener.woken

            async def writes() -> bool:
                return await warm.set_occupancy(hall.organization_id, hall.event_id, b"{}")

            assert await eventually(writes, PATIENCE_S)
            assert await listener.hears(heard, PATIENCE_S)
            found = await warm.find_hold(hall.organization_id, hall.event_id, hall.seat(0))
            assert found is not None
            assert found.hold_id == hold
            assert await warm.advance("one", "10:10:", "11:11:"), "it had everything"
            heard = listener.woken
            await RedisWakeups(warm).call()
            assert await listener.hears(heard)

    with watched(tmp_path) as group:
        asyncio.run(work(group))


class Cluster:
    def __init__(self, ports: Sequence[int], nodes: Sequence[subprocess.Popen[bytes]]) -> None:
        self.ports = ports
        self.nodes = nodes
        self.url = "redis+cluster://" + ",".join(f"127.0.0.1:{port}" for port in ports)


@contextmanager
def cluster(folder: Path, masters: int) -> Iterator[Cluster]:
    ports, buses = [free_port() for _ in range(masters)], [free_port() for _ in range(masters)]
    with ExitStack() as servers:
        nodes = [
            servers.enter_context(
                process(
                    folder / f"node-{port}",
                    *("--port", str(port), "--cluster-port", str(bus)),
                    *("--cluster-enabled", "yes", "--cluster-node-timeout", "2000"),
                    *("--cluster-require-full-coverage", "no", "--cluster-allow-replica-migration", "no"),
                )
            )
            for port, bus in zip(ports, buses, strict=True)
        ]
        for n, port in enumerate(ports):
            await_answer(port, "PING", "+PONG")
            first, last = n * SLOTS // masters, (n + 1) * SLOTS // masters - 1
            assert ask(port, f"CLUSTER ADDSLOTSRANGE {first} {last}") == "+OK\r\n"
        for port, bus in zip(ports[1:], buses[1:], strict=True):
            assert ask(ports[0], f"CLUSTER MEET 127.0.0.1 {port} {bus}") == "+OK\r\n"
        for port in ports:
            await_answer(port, "CLUSTER INFO", "cluster_state:ok")
            await_answer(port, "CLUSTER INFO", f"cluster_slots_assigned:{SLOTS}")
            await_answer(port, "CLUSTER INFO", f"cluster_known_nodes:{masters}")
        yield Cluster(ports, nodes)


@pytest.mark.parametrize("masters", [1, 3])
def test_on_a_cluster_every_organization_lies_on_one_node(tmp_path: Path, masters: int) -> None:
    halls = [Hall() for _ in range(12)]

    async def work(nodes: Cluster) -> None:
        async with opened(nodes.url) as warm, listening(warm) as listener:
            assert await warm.ping()
            assert await listener.hears(0)
            await fill(warm, halls)
            for hall in halls:
                where = [port for port in nodes.ports if str(hall.organization_id) in ask(port, "KEYS *")]
                assert len(where) == 1, "every key of it is on the same node"
            if masters > 1:
                assert sum("seat_holds" in ask(port, "KEYS *") for port in nodes.ports) > 1
            assert await warm.lead("one", 10_000) == Lead(True, None)
            assert await warm.advance("one", None, "10:10:")
            version = await warm.version()
            assert version is not None
            assert version.startswith("Valkey ")
            heard = listener.woken
            await RedisWakeups(warm).call()
            assert await listener.hears(heard)

    with cluster(tmp_path, masters) as nodes:
        asyncio.run(work(nodes))


async def fill(warm: Warm, halls: Sequence[Hall]) -> None:
    messages = [hall.move("SeatReserved", [0, 1], [new_id(), new_id()], 1, lives_s=600) for hall in halls]
    assert await warm.apply(messages, {hall.event_id: hall.layout for hall in halls}, halls[0].now)
    for hall in halls:
        org, event = hall.organization_id, hall.event_id
        assert await warm.find_hold(org, event, hall.seat(0)) is not None
        found = await warm.holds_of_event(org, event)
        assert found is not None
        assert len(found) == 2
        assert await hall.bit(warm, 1) == 1
        assert await warm.set_occupancy(org, event, b"{}")
        assert await warm.get_occupancy(org, event) == b"{}"


def test_a_cluster_that_lost_a_node_serves_the_organizations_on_the_others(tmp_path: Path) -> None:
    halls = [Hall() for _ in range(12)]

    async def work(nodes: Cluster) -> None:
        async with opened(nodes.url) as warm:
            await fill(warm, halls)
            lost = {
                hall.organization_id for hall in halls if str(hall.organization_id) in ask(nodes.ports[0], "KEYS *")
            }
            left = [hall for hall in halls if hall.organization_id not in lost]
            assert left
            nodes.nodes[0].kill()
            nodes.nodes[0].wait()
            await asyncio.sleep(2.5)  # until the others know

            for hall in left:

                async def served(hall: Hall = hall) -> bool:
                    await warm.set_occupancy(hall.organization_id, hall.event_id, b"{}")
                    return await warm.get_occupancy(hall.organization_id, hall.event_id) == b"{}"

                assert await eventually(served, 10)

    with cluster(tmp_path, 3) as nodes:
        asyncio.run(work(nodes))
