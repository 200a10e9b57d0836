"""Which process is which, read from /proc (Linux only)."""

import os
from dataclasses import dataclass
from pathlib import Path

_DEAD_STATES = frozenset("ZXx")


@dataclass(frozen=True)
class ProcessIdentity:
    """A process for good: its pid alone may be given to another process later."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> "ProcessIdentity | None":
        """The live process with this pid; a zombie counts as dead, as no one may ever reap it."""
        stat = _stat_fields(pid)
        if stat is None or stat[0] in _DEAD_STATES:
            return None
        return cls(pid, int(stat[19]))

    def alive(self) -> bool:
        return ProcessIdentity.of(self.pid) == self


def program_name(pid: int) -> str | None:
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return None


def works_in(pid: int, folder: Path) -> bool | None:
    """Whether the folder is the process's working folder; None when we may not know."""
    try:
        return os.path.samefile(f"/proc/{pid}/cwd", folder)
    except PermissionError:
        return None
    except OSError:
        return False


def processes_titled(beginning: str, uid: int) -> list[int]:
    """The user's processes whose title, as `ps` shows it, begins like this."""
    pids = (int(entry) for entry in os.listdir("/proc") if entry.isdigit())
    return [pid for pid in pids if _title(pid).startswith(beginning) and _owner(pid) == uid]


def _title(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def _owner(pid: int) -> int | None:
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None


def _stat_fields(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the state on: the name before them may hold spaces and brackets."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
