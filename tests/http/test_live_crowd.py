"""Five hundred viewers on one process, a tenth of whom do not read: the others miss nothing, and nothing piles up."""

import asyncio
import random
import socket
from typing import Any
from uuid import UUID

import httpx

from holdfast.live.viewing import EventStream, Watched
from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.stage import Stage, stage

VIEWERS = 500
IDLE_SHARE = 10
BUFFER_BYTES = 16 * 1024
SALE_S = 5.0


class Viewer(asyncio.Protocol):
    """Reads everything, follows every change, comes back where it was when it is thrown out."""

    def __init__(self, made: Stage, headers: dict[str, str]) -> None:
        self._made = made
        self._headers = headers
        self.watched = Watched()
        self.stream = EventStream()
        self.head = True
        self.transport: Any = None
        self.lost = asyncio.Event()
        self.resyncs = 0
        self.messages = 0

    async def connect(self) -> None:
        self.stream, self.head, self.lost = EventStream(), True, asyncio.Event()
        url = self._made.client.base_url
        await asyncio.get_running_loop().create_connection(lambda: self, url.host, url.port or 80)

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        lines = {"Host": "x", **self._headers}
        if self.watched.last_id is not None:
            lines["Last-Event-ID"] = self.watched.last_id
        said = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        transport.write(f"GET /api/events/{self._made.event_id}/live HTTP/1.1\r\n{said}\r\n".encode())

    def data_received(self, data: bytes) -> None:
        if self.head:
            head, _, data = data.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            self.head = False
        for kind, sequence, body in self.stream.feed(data):
            self.messages += 1
            self.resyncs += kind == "resync"
            self.watched.hear(kind, sequence, body)

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.set()


async def snapshot(made: Stage, headers: dict[str, str]) -> bytes:
    answer = await made.client.get(
        f"/api/events/{made.event_id}/availability", headers={**headers, "Accept": "application/octet-stream"}
    )
    return answer.content


async def idle_viewer(made: Stage, headers: dict[str, str]) -> socket.socket:
    """Asks, and never reads."""
    url = made.client.base_url
    link = socket.socket()
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    link.connect((url.host, url.port))
    said = "".join(f"{name}: {value}\r\n" for name, value in {"Host": "x", **headers}.items())
    link.sendall(f"GET /api/events/{made.event_id}/live HTTP/1.1\r\n{said}\r\n".encode())
    link.setblocking(False)
    return link


async def sell(made: Stage, over: asyncio.Event) -> int:
    """Organisers place and release hundreds of seats at a time: much to tell in little time."""
    moves = 0
    chance = random.Random(7)
    while not over.is_set():
        chosen = chance.sample(range(len(made.seats)), 500)
        held = await made.hold(made.admin, *chosen, holdType="RESERVED")
        if held.status_code == 201:
            moves += len(chosen)
            await asyncio.sleep(0.06)
            ids = [hold["hold_id"] for hold in held.json()["data"]["holds"]]
            await made.post(f"/api/events/{made.event_id}/holds/release", {"hold_ids": ids[: chance.randrange(500)]})
            await made.post(f"/api/events/{made.event_id}/holds/release", {"filter": {"holdType": "RESERVED"}})
    return moves


def test_five_hundred_viewers_miss_nothing_though_a_tenth_do_not_read(database: TestDatabase) -> None:
    async def check() -> None:
        config = theatre_config(40, 100)
        async with stage(database, config, live_buffer_bytes=BUFFER_BYTES, live_heartbeat_s=0.5) as made:
            made.client.timeout = httpx.Timeout(60)
            buyer = await made.buyer()
            first = await snapshot(made, buyer)
            viewers = [Viewer(made, buyer) for _ in range(VIEWERS - VIEWERS // IDLE_SHARE)]
            for viewer in viewers:
                viewer.watched.load(first)
                await viewer.connect()
            idle = [await idle_viewer(made, buyer) for _ in range(VIEWERS // IDLE_SHARE)]
            async with asyncio.timeout(20):
                while made.app.live.watched(made.first.organization_id, UUID(made.event_id)) < VIEWERS:
                    await asyncio.sleep(0.05)

            over = asyncio.Event()
            selling = asyncio.create_task(sell(made, over))
            await asyncio.sleep(SALE_S / 2)
            thrown_out = viewers[::3]
            for viewer in thrown_out:
                viewer.transport.abort()
            await asyncio.sleep(0.3)
            for viewer in thrown_out:
                await viewer.connect()
            await asyncio.sleep(SALE_S / 2)
            over.set()
            assert await selling > 1_000
            await made.app.feed.caught_up()
            await asyncio.sleep(0.15)  # a snapshot may be so old
            truth = Watched()
            truth.load(await snapshot(made, buyer))
            await settle(viewers, truth)
            assert [n for n, viewer in enumerate(viewers) if viewer.watched.states != truth.states] == []
            assert sum(viewer.resyncs for viewer in viewers) == 0  # all came back without a gap
            assert {viewer.messages > 8 for viewer in viewers} == {True}
            # Whoever does not read is gone once more than the buffer has piled up; nothing more was kept for them.
            left = made.app.live.watched(made.first.organization_id, UUID(made.event_id))
            assert left == len(viewers)
            for link in idle:
                link.close()
            for viewer in viewers:
                viewer.transport.abort()

    asyncio.run(check())


async def settle(viewers: list[Viewer], truth: Watched) -> None:
    """Until everybody knows what is true, or nothing more arrives."""
    quiet_since = asyncio.get_running_loop().time()
    before = -1
    while any(viewer.watched.states != truth.states for viewer in viewers):
        await asyncio.sleep(0.2)
        now = sum(viewer.messages for viewer in viewers)
        if now != before:
            before, quiet_since = now, asyncio.get_running_loop().time()
        elif asyncio.get_running_loop().time() - quiet_since > 5:
            return
