"""A connection that has become a stream: messages are written to it and nothing is read any more.

Handed over by the request that asked for it, it costs no task and no queue: the same bytes are given to every viewer's
socket, and what piles up is the kernel's and the transport's, which is bounded.
"""

import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from holdfast.live.codec import Frame

SEND_BUFFER_BYTES: Final = 64 * 1024
RETRY: Final = b"retry: 1500\n\n"
"""Milliseconds before a viewer who was cut off comes back."""


class StreamSink:
    __slots__ = ("_buffer_max", "_transport", "on_close")

    def __init__(self, transport: Any, buffer_max: int) -> None:
        self._transport = transport
        self._buffer_max = buffer_max
        self.on_close: Callable[[], None] | None = None

    def write(self, frame: Frame) -> bool:
        transport = self._transport
        if transport.is_closing() or transport.get_write_buffer_size() > self._buffer_max:
            return False
        transport.write(frame.sse)
        return True

    def close(self) -> None:
        """At once: whoever does not read would not read the end either."""
        self._transport.abort()


class _StreamCycle:
    """Stands where the parent looks for a request under way: there is one, and it never completes."""

    response_complete: Final = False
    keep_alive = False
    disconnected = False


class LiveConnection(HttpToolsProtocol):
    _stream: StreamSink | None = None

    def begin_stream(self, headers: Sequence[tuple[bytes, bytes]], buffer_max: int) -> StreamSink:
        """Called by the request's own task, which ends then: the parent is told that it answered."""
        cycle: Any = self.cycle
        cycle.response_started = True
        cycle.response_complete = True
        self.cycle = _StreamCycle()  # type: ignore[assignment]
        bound = self.transport.get_extra_info("socket")
        if bound is not None:
            with suppress(OSError):
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, min(SEND_BUFFER_BYTES, buffer_max))
        sink = self._stream = StreamSink(self.transport, buffer_max)
        lines = [*self.server_state.default_headers, *headers, (b"connection", b"close")]
        head = b"".join(b"%b: %b\r\n" % line for line in lines)
        self.transport.write(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n" + RETRY)
        return sink

    def data_received(self, data: bytes) -> None:
        if self._stream is None:
            super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            self.cycle = None  # type: ignore[assignment]
            if stream.on_close is not None:
                stream.on_close()
                stream.on_close = None
        super().connection_lost(exc)

    def shutdown(self) -> None:
        if self._stream is not None:
            self.transport.close()
        else:
            super().shutdown()
