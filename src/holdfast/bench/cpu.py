"""Whose processor time: our processes one by one, and everybody else's in one sum (Linux: /proc)."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PARENT, _USER, _SYSTEM, _ENDED_USER, _ENDED_SYSTEM = 1, 11, 12, 13, 14


@dataclass(frozen=True)
class Reading:
    ours: Mapping[str, float]
    busy: float
    """Of all processes of the machine."""
    at: float


@dataclass(frozen=True)
class Spent:
    """Processor seconds between two readings."""

    ours: Mapping[str, float]
    foreign_cores: float
    """What others used meanwhile, in processors: 0.5 is half of one."""


class Meter:
    def __init__(self, postmaster: int) -> None:
        self._postmaster = postmaster
        self._watched: dict[str, tuple[int, ...]] = {"bench": (os.getpid(),)}

    def watch(self, name: str, *pids: int) -> None:
        self._watched[name] = pids

    def read(self) -> Reading:
        ours = {name: sum(map(_own_seconds, pids)) for name, pids in self._watched.items()}
        ours["postgres"] = _family_seconds(self._postmaster)
        return Reading(ours, _busy_seconds(), _uptime_s())

    @staticmethod
    def between(first: Reading, last: Reading, **more: float) -> Spent:
        """`more`: seconds of processes that lived only in between."""
        ours = {name: last.ours[name] - seconds for name, seconds in first.ours.items()} | more
        elapsed = max(last.at - first.at, _TICK_S)
        return Spent(ours, max(0.0, last.busy - first.busy - sum(ours.values())) / elapsed)


def _own_seconds(pid: int) -> float:
    stat = _stat(pid)
    return (int(stat[_USER]) + int(stat[_SYSTEM])) * _TICK_S if stat else 0.0


def _family_seconds(parent: int) -> float:
    """A process and its children: those that live, and those that have ended."""
    stat = _stat(parent)
    if stat is None:
        return 0.0
    ticks = sum(int(stat[n]) for n in (_USER, _SYSTEM, _ENDED_USER, _ENDED_SYSTEM))
    return ticks * _TICK_S + sum(_own_seconds(pid) for pid in _children(parent))


def _children(parent: int) -> Iterator[int]:
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            stat = _stat(int(entry))
            if stat is not None and int(stat[_PARENT]) == parent:
                yield int(entry)


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the state on: the name before them may hold spaces and brackets."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None


def _busy_seconds() -> float:
    user, nice, system = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:4]
    return (int(user) + int(nice) + int(system)) * _TICK_S


def _uptime_s() -> float:
    return float(Path("/proc/uptime").read_text().split()[0])
