"""The load client from the measuring side: what it shall send, when it begins, and what came of it."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

import msgspec

from holdfast.bench.cpu import Meter, Reading, Spent
from holdfast.bench.load import LoadPlan, LoadResult
from holdfast.bench.stand import OnSale, Stand, StandFailed

_HEADERS = "host: 127.0.0.1\r\nuser-agent: holdfast-bench\r\naccept: application/json\r\n"
HELLO = b"GET /healthz HTTP/1.1\r\n"
HELLO_TAIL = f"{_HEADERS}\r\n".encode()


def reserve_heads(event: OnSale, seats: Sequence[str]) -> list[bytes]:
    start = f"POST /api/events/{event.id}/seats/"
    return [f"{start}{seat}".encode() for seat in seats]


def reserve_tails(tokens: Sequence[str]) -> list[bytes]:
    body = "content-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
    return [f"/reserve HTTP/1.1\r\n{_HEADERS}authorization: Bearer {token}\r\n{body}".encode() for token in tokens]


@dataclass(frozen=True)
class Driven:
    result: LoadResult
    spent: Spent

    @property
    def rate(self) -> float:
        return self.result.answers / self.result.seconds

    def microseconds(self, *processes: str) -> float:
        """Processor time an answer."""
        return 1e6 * sum(self.spent.ours[name] for name in processes) / max(1, self.result.answers)


class Load:
    """A load client under way."""

    def __init__(self, child: "subprocess.Popen[str]", meter: Meter, started: Reading) -> None:
        self._child = child
        self._meter = meter
        self._started = started

    def finish(self, *expected: str, early: bool = False) -> Driven:
        """Waits for the end; answers of another status than those expected fail the run."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        if early:
            with suppress(BrokenPipeError):  # it had come to the end of its list by itself
                self._child.stdin.write("enough\n")
                self._child.stdin.flush()
        said = self._child.stdout.readline()
        ended = self._meter.read()
        if not said:
            raise StandFailed("the load client failed; what it said is above")
        result = msgspec.json.decode(said, type=LoadResult)
        others = result.others(*expected)
        if others:
            raise StandFailed(f"unexpected answers, by status: {others} beside {result.statuses}")
        return Driven(result, self._meter.between(self._started, ended, client=result.cpu_s))


@contextmanager
def loading(stand: Stand, plan: LoadPlan) -> Iterator[Load]:
    """From the end of the warm-up on."""
    with NamedTemporaryFile(dir=stand.folder, suffix=".plan") as file:
        Path(file.name).write_bytes(msgspec.msgpack.encode(plan))
        child = subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-m", "holdfast.bench.load", file.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        try:
            assert child.stdin is not None
            assert child.stdout is not None
            _await_line(child.stdout.readline(), "ready")
            child.stdin.write("go\n")
            child.stdin.flush()
            _await_line(child.stdout.readline(), "measuring")
            yield Load(child, stand.meter, stand.meter.read())
        finally:
            child.kill()
            child.wait()


def drive(stand: Stand, plan: LoadPlan, *expected: str) -> Driven:
    with loading(stand, plan) as load:
        return load.finish(*expected)


def _await_line(line: str, word: str) -> None:
    if line.strip() != word:
        raise StandFailed("the load client failed; what it said is above")
