"""Somebody's server that webhooks are sent to: real sockets, and answers as a test wants them."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def kind(self) -> str:
        kind: str = self.document["type"]
        return kind

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(self.body)
        return found

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = self.document["data"]
        return found


@dataclass(frozen=True)
class Reply:
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"ok"
    after_s: float = 0.0


@dataclass
class Receiver:
    port: int = 0
    received: list[Received] = field(default_factory=list)
    reply: Callable[[Received], Reply] = lambda _: Reply()
    under_way: int = 0
    most_at_once: int = 0

    def url(self, path: str = "/hook", host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"

    def of_path(self, path: str) -> list[Received]:
        return [one for one in self.received if one.path == path]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:-2])}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            one = Received(head[0].split(" ")[1], headers, body)
            self.received.append(one)
            self.under_way += 1
            self.most_at_once = max(self.most_at_once, self.under_way)
            reply = self.reply(one)
            try:
                await asyncio.sleep(reply.after_s)
            finally:
                self.under_way -= 1
            more = "".join(f"{name}: {value}\r\n" for name, value in reply.headers.items())
            start = f"HTTP/1.1 {reply.status} X\r\ncontent-length: {len(reply.body)}\r\n{more}\r\n"
            writer.write(start.encode() + reply.body)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def receiving(tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    receiver = Receiver()
    server = await asyncio.start_server(receiver._serve, "127.0.0.1", 0, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
