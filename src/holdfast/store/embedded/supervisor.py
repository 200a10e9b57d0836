"""Starts a server as a child process, watches over it until it is ready, and stops it cleanly.

Linux only. What it counts on:

* The server is told by the kernel (`setpriv --pdeathsig INT`) when our process dies, however it dies. The
  kernel ties this to the thread which forked the server, so servers are started from the main thread only;
  nor may the process fork into the background after starting one.
* The server runs in a session of its own: a Ctrl-C in the terminal reaches our process alone, which can
  finish its work before it stops the server.
* The server's working folder is its data folder, entered before giving up root's rights, and the server knows
  it as /proc/self/cwd only. The account it runs under thus needs no way through the folders above.
* The server inherits the lock on its folder. The lock is free exactly when no process of the server lives.
"""

import os
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Generic, Self, TypeVar

from holdfast.store.embedded.accounts import Account, account_for, give_folder, supervised_prefix
from holdfast.store.embedded.errors import (
    AlreadyRunningError,
    EmbeddedServerError,
    NotMainThreadError,
    ServerExitedError,
    StartedByOtherMeansError,
    StartTimedOutError,
)
from holdfast.store.embedded.folder import ServerFolder, ServerState, not_own, not_writable
from holdfast.store.embedded.processes import ProcessIdentity

WORKING_FOLDER = "/proc/self/cwd"
_READY_POLL_SECONDS = 0.005
_LAST_RESORT_SECONDS = 10.0
_REMAINS_GRACE_SECONDS = 1.0
_PROBE_SECONDS = 5.0

_ATTACH_POLL_SECONDS = 0.02

Setting = str | int | float | bool
AddressT = TypeVar("AddressT")


class EmbeddedServer(ABC, Generic[AddressT]):
    """One server on one data folder. Not safe for use by several threads at once."""

    name: ClassVar[str]
    title: ClassVar[str]
    last_resort: ClassVar[signal.Signals]

    def __init__(
        self,
        data_dir: str | os.PathLike[str],
        settings: Mapping[str, Setting] | None = None,
        *,
        start_timeout: float = 120.0,
        stop_timeout: float = 60.0,
    ) -> None:
        self._folder = ServerFolder(data_dir, self.name)
        self._settings = dict(settings or {})
        self._starter = os.getpid()
        self._start_timeout = start_timeout
        self._stop_timeout = stop_timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._socket_dir: str | None = None
        self._log_start = 0

    @property
    def pid(self) -> int | None:
        """The server's main process, while it runs."""
        return self._process.pid if self._process is not None and self.alive else None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def address(self) -> AddressT:
        if self._socket_dir is None:
            raise RuntimeError(f"{self.title} has no address before it is started.")
        return self._address_at(self._socket_dir)

    @property
    def log_path(self) -> Path:
        return self._folder.log

    def find_running(self) -> AddressT | None:
        """Where the server running on the folder takes commands, whoever started it; None without one."""
        state = self._folder.read_state()
        if state is None or state.server is None or not self._is_ready(state.socket_dir, state.server.pid):
            return None
        return self._address_at(state.socket_dir)

    @contextmanager
    def attached_or_started(self) -> Iterator[AddressT]:
        """The server running on the folder, left running at exit; or one started for the duration."""
        address = self._attach_or_start(time.monotonic() + self._start_timeout)
        try:
            yield address
        finally:
            self.stop()

    def start(self) -> None:
        """Starts the server and returns once it accepts connections; call this from the main thread."""
        _require_main_thread(self.title)
        if self.alive:
            raise AlreadyRunningError(f"{self.title} is already running, as process {self.pid}.", self.pid)
        self._forget_process()
        self._starter = os.getpid()
        try:
            self._folder.create()
            lock = self._folder.take_lock(self._stop_timeout, _RemainsEnder(self._folder, self._remains))
            try:
                self._start_locked(lock)
            finally:
                os.close(lock)
        except PermissionError as error:
            raise not_writable(Path(error.filename or self._folder.root)) from error
        except OSError as error:
            raise EmbeddedServerError(f"{self.title} cannot be started on {self._folder.root}: {error}.") from error

    def stop(self) -> None:
        """Stops the server, if we started it, and waits for its end."""
        if self._starter != os.getpid():
            return  # we are a fork of the process which started it
        if self._process is not None and self.alive:
            self._end(self._process, self._stop_timeout)
        self._forget_process()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @abstractmethod
    def _prepare(self, account: Account | None, lock: int) -> None:
        """Makes the folder fit to start on."""

    @abstractmethod
    def _command(self, account: Account | None, socket_dir: str) -> Sequence[str]:
        """The server's command line."""

    @abstractmethod
    def _socket_name(self) -> str: ...

    @abstractmethod
    def _address_at(self, socket_dir: str) -> AddressT: ...

    @abstractmethod
    def _is_ready(self, socket_dir: str, pid: int) -> bool:
        """Whether the server with this pid takes commands now."""

    def _remains(self) -> list[int]:
        """Processes of an earlier server on this folder, whose main process is dead."""
        return []

    def _attach_or_start(self, deadline: float) -> AddressT:
        while True:
            address = self.find_running()
            if address is not None:
                return address
            try:
                self.start()
            except StartedByOtherMeansError:
                raise
            except AlreadyRunningError:
                # Another process is just starting or stopping a server: use it, or take over after it.
                if time.monotonic() > deadline:
                    raise
                time.sleep(_ATTACH_POLL_SECONDS)
            else:
                return self.address

    def _start_locked(self, lock: int) -> None:
        self._folder.forget_state()
        try:
            self._write_state(None)
            account = account_for(self._folder.home)
            self._require_own_home(account)
            self._prepare(account, lock)
            self._socket_dir = self._folder.choose_socket_folder(self._socket_name(), account)
            command = self._command(account, self._socket_dir)
            self._process = self._launch(command, self._folder.home, account, lock)
            self._write_state(ProcessIdentity.of(self._process.pid))
            self._await_ready(self._process, self._socket_dir)
        except BaseException:
            self.stop()
            raise

    def _environment(self) -> Mapping[str, str]:
        """Besides the bare one."""
        return {}

    def _launch(
        self, command: Sequence[str], home: Path, account: Account | None, lock: int
    ) -> subprocess.Popen[bytes]:
        log = self._folder.open_log()
        self._log_start = os.fstat(log).st_size
        try:
            return subprocess.Popen(  # noqa: S603 - a program of our own dependency, without a shell's parsing
                [*supervised_prefix(account), *command],
                cwd=home,
                env={**_bare_environment(), **self._environment()},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(lock,),
                start_new_session=True,
            )
        finally:
            os.close(log)

    def _run_to_end(self, command: Sequence[str], home: Path, account: Account | None, lock: int) -> None:
        """Runs a program which prepares the folder."""
        process = self._launch(command, home, account, lock)
        try:
            status = process.wait(self._start_timeout)
        except subprocess.TimeoutExpired:
            raise self._timed_out() from None
        finally:
            if process.poll() is None:
                self._end(process, _LAST_RESORT_SECONDS)
        if status != 0:
            raise self._exited(status)

    def _await_ready(self, process: subprocess.Popen[bytes], socket_dir: str) -> None:
        deadline = time.monotonic() + self._start_timeout
        while not self._is_ready(socket_dir, process.pid):
            status = process.poll()
            if status is not None:
                raise self._exited(status)
            if time.monotonic() > deadline:
                raise self._timed_out()
            time.sleep(_READY_POLL_SECONDS)

    def _end(self, process: subprocess.Popen[bytes], patience: float) -> None:
        steps = ((signal.SIGINT, patience), (self.last_resort, _LAST_RESORT_SECONDS))
        for step, seconds in steps:
            process.send_signal(step)
            with suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
                return
        process.kill()
        process.wait()

    def _write_state(self, server: ProcessIdentity | None) -> None:
        supervisor = ProcessIdentity.of(os.getpid())
        if supervisor is None:
            raise EmbeddedServerError("/proc does not show this process: mount /proc.")
        self._folder.write_state(ServerState(supervisor, server, self._socket_dir or str(self._folder.home)))

    def _forget_process(self) -> None:
        """Tidies up after our server, unless another process has taken the folder over in the meantime."""
        state = self._folder.read_state()
        if state is not None and state.supervisor.pid == os.getpid() and self._is_mine(state):
            self._folder.forget_state()
        if self._socket_dir is not None:
            self._folder.remove_socket_folder(self._socket_dir)
        self._process = self._socket_dir = None

    def _is_mine(self, state: ServerState) -> bool:
        if state.server is None:
            return True  # of a start which failed half-way
        return self._process is not None and state.server.pid == self._process.pid

    def _require_own_home(self, account: Account | None) -> None:
        home = self._folder.home
        if account is None and home.exists() and home.stat().st_uid != os.geteuid():
            raise not_own(home)

    def _exited(self, status: int) -> ServerExitedError:
        return ServerExitedError(
            f"{self.title} ended while starting (status {status}); mend what its log says: {self.log_path}, "
            f"which ends: {self._folder.log_tail(self._log_start) or 'empty'}"
        )

    def _timed_out(self) -> StartTimedOutError:
        return StartTimedOutError(
            f"{self.title} was not ready after {self._start_timeout:g} s; it may be recovering from a crash: "
            f"allow more time, or see its log {self.log_path}, "
            f"which ends: {self._folder.log_tail(self._log_start) or 'empty'}"
        )


class _RemainsEnder:
    """Ends what is left of a server whose main process was killed.

    Such processes end by themselves as soon as they wait for anything; only busy ones need to be told.
    """

    def __init__(self, folder: ServerFolder, remains: Callable[[], list[int]]) -> None:
        self._folder = folder
        self._remains = remains
        self._begin = time.monotonic()
        self._next_signal = signal.SIGQUIT

    def __call__(self) -> None:
        state = self._folder.read_state()
        if state is not None and state.server is not None and state.server.alive():
            self._begin = time.monotonic()
        elif time.monotonic() - self._begin > _REMAINS_GRACE_SECONDS:
            self._signal_all()
            self._begin = time.monotonic()
            self._next_signal = signal.SIGKILL

    def _signal_all(self) -> None:
        for pid in self._remains():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, self._next_signal)


def make_home(home: Path, account: Account | None) -> None:
    """Creates a server's folder, or hands an existing one over to its account."""
    home.mkdir(mode=0o700, exist_ok=True)
    give_folder(home, account)


def remove_tree(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


def ask(socket_path: str, pid: int, question: bytes, answer_size: int) -> bytes | None:
    """Sends a question to the server with this pid; None unless it is this very process which listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection, suppress(OSError):
        connection.settimeout(_PROBE_SECONDS)
        connection.connect(socket_path)
        if _listening_pid(connection) == pid:
            connection.sendall(question)
            return connection.recv(answer_size)
    return None


def _listening_pid(connection: socket.socket) -> int:
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid: int = struct.unpack("3i", credentials)[0]
    return pid


def _bare_environment() -> dict[str, str]:
    """Our own environment could change the server's locale, time zone or port."""
    return {"PATH": os.defpath, "LC_ALL": "C"}


def _require_main_thread(title: str) -> None:
    if threading.current_thread() is not threading.main_thread():
        raise NotMainThreadError(
            f"{title} must be started from the main thread: it ends when the thread which started it does."
        )
