"""Valkey on a data folder, reached through a unix socket only.

It is a cache: nothing in it is worth a disk's time, for all of it can be made again out of the database. When its memory is
full, it lets go of what was not asked for the longest among the keys that lapse anyway (holds, occupancy, layouts); lists of
holds and the writer's cursor stay.
"""

import os
import shlex
import signal
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from ctypes.util import find_library
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import quote

from holdfast.store.embedded.accounts import Account
from holdfast.store.embedded.binaries import program_for, valkey_programs
from holdfast.store.embedded.supervisor import WORKING_FOLDER, EmbeddedServer, Setting, ask, make_home

_SOCKET_NAME = "valkey.sock"


DEFAULT_SETTINGS: Mapping[str, Setting] = {
    "appendonly": "no",
    "save": "",
    "maxmemory": "256mb",
    "maxmemory-policy": "volatile-lru",
}

FIXED_SETTINGS: Mapping[str, Setting] = {
    "port": 0,
    "unixsocketperm": "700",
    "daemonize": "no",
    "dir": WORKING_FOLDER,
    "logfile": "",
}


@dataclass(frozen=True)
class ValkeyAddress:
    socket_path: str

    def url(self) -> str:
        return f"unix://{quote(self.socket_path, safe='/')}"


class ValkeyServer(EmbeddedServer[ValkeyAddress]):
    """Settings given override `DEFAULT_SETTINGS`, but never `FIXED_SETTINGS`.

    A value is read like a line of a configuration file: words apart by spaces, quotes around what has some.
    """

    name: ClassVar[str] = "valkey"
    title: ClassVar[str] = "Valkey"
    last_resort: ClassVar[signal.Signals] = signal.SIGKILL

    def is_running(self) -> bool:
        """Whether a process of a server lives on the folder, whoever started it. Unlike `find_running` this never waits."""
        state = self._folder.read_state()
        return self.alive or (state is not None and state.server is not None and state.server.alive())

    def _prepare(self, account: Account | None, lock: int) -> None:
        make_home(self._folder.home, account)

    def _environment(self) -> Mapping[str, str]:
        """Valkey is made to run with jemalloc, but the wheel's is built without: where the system has the library, holds
        are written with a third less work."""
        jemalloc = find_library("jemalloc")
        return {} if jemalloc is None else {"LD_PRELOAD": jemalloc}

    def _command(self, account: Account | None, socket_dir: str) -> Sequence[str]:
        in_home = socket_dir == str(self._folder.home)
        path = _SOCKET_NAME if in_home else f"{socket_dir}/{_SOCKET_NAME}"
        chosen = {name.lower(): value for name, value in self._settings.items() if name.lower() != "unixsocket"}
        settings = {**DEFAULT_SETTINGS, **chosen, **FIXED_SETTINGS}
        options = [word for name, value in settings.items() for word in (f"--{name}", *_words(value))]
        return [str(program_for(account, valkey_programs())), *options, "--unixsocket", path]

    def _socket_name(self) -> str:
        return _SOCKET_NAME

    def _address_at(self, socket_dir: str) -> ValkeyAddress:
        return ValkeyAddress(f"{socket_dir}/{_SOCKET_NAME}")

    def _is_ready(self, socket_dir: str, pid: int) -> bool:
        answer = ask(f"{socket_dir}/{_SOCKET_NAME}", pid, b"PING\r\n", 64)
        # A server which wants a password is ready, too.
        return answer is not None and answer.startswith((b"+PONG", b"-NOAUTH"))


def find_running_valkey(data_dir: str | os.PathLike[str]) -> ValkeyAddress | None:
    """Where the server running on the folder can be reached, if one runs and takes commands."""
    return ValkeyServer(data_dir).find_running()


def running_valkey(
    data_dir: str | os.PathLike[str], settings: Mapping[str, Setting] | None = None
) -> AbstractContextManager[ValkeyAddress]:
    """The server running on the folder, left running at exit; or one started for the duration."""
    return ValkeyServer(data_dir, settings).attached_or_started()


def _words(value: Setting) -> list[str]:
    if isinstance(value, bool):
        return ["yes" if value else "no"]
    return shlex.split(str(value)) or [""]
