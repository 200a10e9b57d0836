"""A load client: keep-alive connections, one request at a time on each, sent as soon as the last was answered.

A process of its own (`python -m holdfast.bench.load PLAN`) with plain sockets and epoll, so that it takes as little as
possible of the processors it shares with what it measures. It says `ready`, waits for a line, warms up, says
`measuring`, and ends with its figures as JSON; one more line makes it end early.
"""

import gc
import select
import socket
import sys
import time
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import cycle
from operator import add
from pathlib import Path

import msgspec

TIMEOUT_S = 15.0
_LENGTH = b"\r\ncontent-length: "
_BIN_S = 0.1


class LoadPlan(msgspec.Struct, frozen=True, kw_only=True):
    port: int
    connections: int
    seconds: float
    warm_up_s: float
    heads: list[bytes]
    """A request is one of these and one of `tails`, each taken in turn."""
    tails: list[bytes]
    again: bool
    """Begins anew when all heads were sent; else it ends there."""


class LoadResult(msgspec.Struct, frozen=True, kw_only=True):
    seconds: float
    statuses: dict[str, int]
    warm_up_statuses: dict[str, int]
    p50_ms: float
    p99_ms: float
    cpu_s: float
    began_at: float
    """On the machine's monotonic clock."""
    per_tenth: list[int]
    """Answers in each tenth of a second since then."""

    @property
    def answers(self) -> int:
        return sum(self.statuses.values())

    def others(self, *expected: str) -> dict[str, int]:
        """Answers of any other status than these, the warm-up's included."""
        seen = Counter(self.statuses) + Counter(self.warm_up_statuses)
        return {status: count for status, count in seen.items() if status not in expected}


class ServerClosed(Exception):
    pass


class _Connections:
    """The open connections, and what each is waiting for."""

    def __init__(self, plan: LoadPlan) -> None:
        self.poll = select.epoll()
        self._sockets = [_connect(plan.port) for _ in range(plan.connections)]
        self.by_fd: Mapping[int, socket.socket] = {s.fileno(): s for s in self._sockets}
        for fd in self.by_fd:
            self.poll.register(fd, select.EPOLLIN)
        self.begun: dict[int, bytes] = {}
        self.sent: dict[int, float] = {}

    def send(self, fd: int, request: bytes) -> None:
        if self.by_fd[fd].send(request) != len(request):
            raise ServerClosed("the server takes no more")
        self.sent[fd] = time.perf_counter()

    def close(self) -> None:
        for each in self._sockets:
            each.close()
        self.poll.close()


def _connect(port: int) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.setblocking(False)
    return made


def _requests(plan: LoadPlan) -> Iterator[bytes]:
    heads = cycle(plan.heads) if plan.again else iter(plan.heads)
    return map(add, heads, cycle(plan.tails))


class _Phase:
    """Answers counted from its beginning on."""

    def __init__(self) -> None:
        self.statuses: Counter[bytes] = Counter()
        self.latencies = array("d")
        self.began = time.perf_counter()
        self.ended = self.began
        self.cpu = time.process_time()
        self.tenths: Counter[int] = Counter()


def _run(plan: LoadPlan, connections: _Connections) -> LoadResult:
    requests = _requests(plan)
    phase = warm_up = _Phase()
    until = warm_up.began + plan.warm_up_s
    measuring = False
    idle = set(connections.by_fd)
    for fd in list(idle):
        request = next(requests, None)
        if request is not None:
            connections.send(fd, request)
            idle.discard(fd)
    if plan.warm_up_s == 0:
        phase, until, measuring = _begin_measuring(plan)
    connections.poll.register(sys.stdin.fileno(), select.EPOLLIN)
    stdin = sys.stdin.fileno()
    by_fd, sent, begun, clock = connections.by_fd, connections.sent, connections.begun, time.perf_counter
    ending = False
    while len(idle) < len(by_fd):
        ready = connections.poll.poll(TIMEOUT_S)
        if not ready:
            raise ServerClosed(f"no answer for {TIMEOUT_S:g} s")
        for fd, _ in ready:
            if fd == stdin:
                connections.poll.unregister(stdin)
                ending = True
                continue
            data = by_fd[fd].recv(65536)
            if not data:
                raise ServerClosed("the server closed a connection")
            if fd in begun:
                data = begun.pop(fd) + data
            if not _complete(data):
                begun[fd] = data
                continue
            now = clock()
            phase.statuses[data[9:12]] += 1
            phase.latencies.append(now - sent[fd])
            phase.tenths[int((now - phase.began) / _BIN_S)] += 1
            phase.ended = now
            if now >= until:
                if measuring:
                    ending = True
                else:
                    phase, until, measuring = _begin_measuring(plan)
            request = None if ending else next(requests, None)
            if request is None:
                idle.add(fd)
            else:
                connections.send(fd, request)
    if not measuring:
        raise ServerClosed("there were fewer requests than the warm-up took")
    return _result(warm_up, phase)


def _begin_measuring(plan: LoadPlan) -> tuple[_Phase, float, bool]:
    print("measuring", flush=True)
    phase = _Phase()
    return phase, phase.began + plan.seconds, True


def _complete(data: bytes) -> bool:
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return False
    at = data.find(_LENGTH, 0, end + 2)
    if at < 0:
        raise ServerClosed(f"an answer without content-length: {data[:200]!r}")
    at += len(_LENGTH)
    return len(data) >= end + 4 + int(data[at : data.find(b"\r\n", at)])


def _result(warm_up: _Phase, phase: _Phase) -> LoadResult:
    latencies = sorted(phase.latencies)
    return LoadResult(
        seconds=phase.ended - phase.began,
        statuses={status.decode(): count for status, count in phase.statuses.items()},
        warm_up_statuses={} if warm_up is phase else {s.decode(): count for s, count in warm_up.statuses.items()},
        p50_ms=_at(latencies, 0.50) * 1000,
        p99_ms=_at(latencies, 0.99) * 1000,
        cpu_s=time.process_time() - phase.cpu,
        began_at=phase.began,
        per_tenth=[phase.tenths[n] for n in range(max(phase.tenths, default=-1) + 1)],
    )


def _at(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def main() -> None:
    plan = msgspec.msgpack.decode(Path(sys.argv[1]).read_bytes(), type=LoadPlan)
    connections = _Connections(plan)
    gc.disable()
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        result = _run(plan, connections)
    except (ServerClosed, OSError) as error:
        sys.exit(f"load client: {error}")
    finally:
        connections.close()
    print(msgspec.json.encode(result).decode(), flush=True)


if __name__ == "__main__":
    main()
