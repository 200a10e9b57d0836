"""Thousands of viewers of one event, in a process of their own: `python -m holdfast.bench.viewers PLAN`.

Most count what they hear, some follow every change, some do not read at all. Speaks JSON lines with its parent: after
`reconnect` a third of the readers are thrown out and come back where they were; after `report` it says what everybody knows.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from holdfast.live.viewing import EventStream, Watched
from holdfast.server import raise_file_limit

CONNECT_AT_ONCE = 100


class ViewersPlan(msgspec.Struct, frozen=True):
    port: int
    event_id: str
    token: str
    readers: int
    followers: int
    """Of the readers, those who follow every change."""
    idle: int
    snapshot: bytes


class ViewersReport(msgspec.Struct, frozen=True):
    connected: int
    lost: int
    """Readers whose connection ended though nobody threw them out."""
    messages: int
    resyncs: int
    last_ids: int
    """How many different places the readers stand at."""
    followers_states: list[bytes]
    idle_open: int


class Viewer(asyncio.Protocol):
    def __init__(self, plan: ViewersPlan, *, follows: bool, reads: bool) -> None:
        self._plan = plan
        self.reads = reads
        self.watched: Watched | None = None
        self.last_id = b""
        self.transport: Any = None
        self.opened = False
        self.lost = False
        self.thrown_out = False
        self.messages = 0
        self.resyncs = 0
        if follows:
            self.watched = Watched()
            self.watched.load(plan.snapshot)
            self.last_id = str(self.watched.last_id).encode()
        self._stream = EventStream()

    async def connect(self) -> None:
        self.opened, self.lost, self._stream = False, False, EventStream()
        await asyncio.get_running_loop().create_connection(lambda: self, "127.0.0.1", self._plan.port)

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        last = b"last-event-id: %b\r\n" % self.last_id if self.last_id else b""
        line = f"GET /api/events/{self._plan.event_id}/live HTTP/1.1\r\nhost: x\r\n".encode()
        transport.write(line + f"authorization: Bearer {self._plan.token}\r\n".encode() + last + b"\r\n")
        if not self.reads:
            transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        if not self.opened:
            head, _, data = data.partition(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise SystemExit(f"a viewer was answered {head[:200]!r}")
            self.opened = True
        if self.watched is not None:
            for kind, sequence, body in self._stream.feed(data):
                self.messages += kind == "seats"
                self.resyncs += kind == "resync"
                self.watched.hear(kind, sequence, body)
            self.last_id = str(self.watched.last_id).encode()
            return
        self.messages += data.count(b"\nevent: seats\n")
        self.resyncs += data.count(b"\nevent: resync\n")
        at = data.rfind(b"id: ")
        if at >= 0:
            end = data.find(b"\n", at)
            if end > 0:
                self.last_id = data[at + 4 : end]

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = True


async def _connect(viewers: list[Viewer]) -> None:
    for start in range(0, len(viewers), CONNECT_AT_ONCE):
        await asyncio.gather(*(viewer.connect() for viewer in viewers[start : start + CONNECT_AT_ONCE]))


async def _watch(plan: ViewersPlan) -> None:
    readers = [Viewer(plan, follows=n < plan.followers, reads=True) for n in range(plan.readers)]
    idle = [Viewer(plan, follows=False, reads=False) for _ in range(plan.idle)]
    await _connect(readers + idle)
    while not all(viewer.opened for viewer in readers):  # noqa: ASYNC110 - thousands, and only at the start
        await asyncio.sleep(0.05)
    joined = sum(viewer.resyncs for viewer in readers)  # who came without a place was told to load the snapshot
    print("watching", flush=True)
    loop = asyncio.get_running_loop()
    while (word := (await loop.run_in_executor(None, sys.stdin.readline)).strip()) not in ("", "end"):
        if word == "reconnect":
            gone = readers[::3]
            for viewer in gone:
                viewer.thrown_out = True
                viewer.transport.abort()
            await asyncio.sleep(0.2)
            await _connect(gone)
            print("reconnected", flush=True)
        else:
            followers = [viewer.watched.states for viewer in readers if viewer.watched is not None]
            report = ViewersReport(
                sum(viewer.opened and not viewer.lost for viewer in readers),
                sum(viewer.lost for viewer in readers),
                sum(viewer.messages for viewer in readers),
                sum(viewer.resyncs for viewer in readers) - joined,
                len({viewer.last_id for viewer in readers}),
                followers,
                sum(not viewer.transport.is_closing() for viewer in idle),
            )
            print(msgspec.json.encode(report).decode(), flush=True)


def main() -> None:
    raise_file_limit()
    plan = msgspec.msgpack.decode(Path(sys.argv[1]).read_bytes(), type=ViewersPlan)
    uvloop.run(_watch(plan))


if __name__ == "__main__":
    main()
