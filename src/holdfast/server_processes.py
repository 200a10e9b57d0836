"""Several server processes on one socket: started, restarted when one dies, stopped together."""

import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec
import structlog

from holdfast.settings import Settings

log = structlog.get_logger(__name__)

START_S = 60.0
STOP_S = 15.0
STEADY_S = 10.0
"""A process that lived so long and then died is started again at once."""
PAUSE_FIRST_S, PAUSE_LONGEST_S = 0.5, 10.0


class ServerProcessFailed(Exception):
    pass


@dataclass
class _Process:
    child: subprocess.Popen[bytes]
    ready: int
    """A pipe: one byte once it answers requests, its end where it died."""
    started: float = field(default_factory=time.monotonic)


class ServerProcesses:
    """Used from the main thread only: a process ends with the thread which started it."""

    def __init__(self, settings: Settings, bound: socket.socket, count: int, *, work: bool = True) -> None:
        self._environment = {**os.environ, **_spelled(settings)}
        self._bound = bound
        self._work = work
        self._slots: list[_Process | None] = [None] * count
        self._failures = [0] * count
        self._due = [0.0] * count
        self._figures = tempfile.TemporaryDirectory(prefix="holdfast-metrics-", ignore_cleanup_errors=True)
        """Where each leaves its metrics for whichever of them is asked."""

    @property
    def pids(self) -> list[int]:
        return [slot.child.pid for slot in self._slots if slot is not None]

    def start(self) -> None:
        """Returns once all answer; raises ServerProcessFailed, with none left running, where one does not."""
        try:
            for n in range(len(self._slots)):
                self._slots[n] = self._spawn(n)
            deadline = time.monotonic() + START_S
            for slot in self._slots:
                assert slot is not None
                if not _becomes_ready(slot, deadline):
                    raise ServerProcessFailed(
                        f"a server process did not start (status {slot.child.poll()}); what it logged is above"
                    )
        except BaseException:
            self.kill()
            raise

    def tend(self) -> None:
        """Starts again what has died. Call it a few times a second."""
        now = time.monotonic()
        for n, slot in enumerate(self._slots):
            if slot is not None and slot.child.poll() is not None:
                self._failures[n] = 0 if now - slot.started > STEADY_S else self._failures[n] + 1
                pause_s = min(PAUSE_LONGEST_S, PAUSE_FIRST_S * 2 ** (self._failures[n] - 1)) if self._failures[n] else 0
                log.warning("server_process_died", pid=slot.child.pid, status=slot.child.returncode, retry_in_s=pause_s)
                self._forget(n)
                self._due[n] = now + pause_s
            if self._slots[n] is None and now >= self._due[n]:
                self._slots[n] = self._spawn(n)

    def stop(self) -> None:
        """Lets them finish their requests."""
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_S
        for slot in self._slots:
            if slot is not None:
                with suppress(subprocess.TimeoutExpired):
                    slot.child.wait(max(0.0, deadline - time.monotonic()))
        self.kill()

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        for n, slot in enumerate(self._slots):
            if slot is not None:
                slot.child.wait()
                self._forget(n)
        self._figures.cleanup()

    def _spawn(self, number: int) -> _Process:
        ready, theirs = os.pipe()
        options = ["--socket", self._bound.fileno(), "--ready", theirs, "--parent", os.getpid()]
        options += ["--number", number, "--figures", self._figures.name]
        command = [sys.executable, "-m", "holdfast.server_process", *map(str, options)]
        try:
            child = subprocess.Popen(  # noqa: S603 - our own interpreter
                command if self._work else [*command, "--no-work"],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                pass_fds=(self._bound.fileno(), theirs),
                start_new_session=True,  # a Ctrl-C in the terminal reaches the parent alone
            )
        finally:
            os.close(theirs)
        return _Process(child, ready)

    def _signal(self, number: signal.Signals) -> None:
        for slot in self._slots:
            if slot is not None and slot.child.poll() is None:
                slot.child.send_signal(number)

    def _forget(self, n: int) -> None:
        slot = self._slots[n]
        assert slot is not None
        os.close(slot.ready)
        self._slots[n] = None


def _becomes_ready(slot: _Process, deadline: float) -> bool:
    readable, _, _ = select.select([slot.ready], [], [], max(0.0, deadline - time.monotonic()))
    return bool(readable) and os.read(slot.ready, 1) != b""


def _spelled(settings: Settings) -> dict[str, str]:
    """The settings as the environment that gives them."""
    values = msgspec.to_builtins(settings)
    return {f"HOLDFAST_{name.upper()}": str(value) for name, value in values.items() if value is not None}
