"""A small HTTP/1.1 client: one connection kept alive, JSON in and out. Cheap, so that buyers do not starve the server."""

import asyncio
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import msgspec

TIMEOUT_S = 15.0
LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")


class ServerAway(Exception):
    """No answer came: the server is down, or cut the connection."""


class Answer(msgspec.Struct, frozen=True):
    status: int
    body: Any

    @property
    def ok(self) -> bool:
        return self.status < 300

    @property
    def data(self) -> Any:
        return self.body["data"]

    @property
    def reason(self) -> str:
        """The code of a refusal."""
        if isinstance(self.body, dict) and "error" in self.body:
            return str(self.body["error"])
        return f"http_{self.status}"


class Client:
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or parts.hostname is None:
            raise ValueError(f"the server's address must be like http://127.0.0.1:8080, not {url!r}")
        self._host = parts.hostname
        self._port = parts.port or 80
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(
        self, method: str, path: str, body: Any = None, *, token: str | None = None, api_key: str | None = None
    ) -> Answer:
        content = b"" if body is None else msgspec.json.encode(body)
        lines = [f"{method} {path} HTTP/1.1", f"host: {self._host}:{self._port}", f"content-length: {len(content)}"]
        if content:
            lines.append("content-type: application/json")
        if token is not None:
            lines.append(f"authorization: Bearer {token}")
        if api_key is not None:
            lines.append(f"x-api-key: {api_key}")
        request = "\r\n".join(lines).encode() + b"\r\n\r\n" + content
        fresh = self._streams is None
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await self._exchange(request)
        except (OSError, asyncio.IncompleteReadError, TimeoutError, ValueError) as error:
            self.close()
            # The server may close a connection it has kept for long; a request that can be repeated is, once.
            if method == "GET" and not fresh:
                return await self.send(method, path, body, token=token, api_key=api_key)
            raise ServerAway(f"{type(error).__name__}: {error}") from error
        except asyncio.CancelledError:
            self.close()  # an answer may be under way that nobody will read
            raise

    async def _exchange(self, request: bytes) -> Answer:
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port, limit=4 * 1024 * 1024)
        reader, writer = self._streams
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        status = int(head[9:12])
        length, close = 0, False
        for line in head.split("\r\n")[1:]:
            name, _, value = line.partition(":")
            if name == "content-length":
                length = int(value)
            elif name == "connection":
                close = value.strip() == "close"
        content = await reader.readexactly(length) if length else b""
        if close:
            self.close()
        try:
            return Answer(status, msgspec.json.decode(content) if content else None)
        except msgspec.DecodeError:
            return Answer(status, None)

    def close(self) -> None:
        if self._streams is not None:
            with suppress(OSError, RuntimeError):
                self._streams[1].close()
            self._streams = None


def is_local(url: str) -> bool:
    return urlsplit(url).hostname in LOCAL_HOSTS
