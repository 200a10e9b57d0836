"""Which machine the figures come from."""

import os
import platform
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Machine:
    processors: int
    model: str
    memory_gib: float
    kernel: str
    python: str
    postgres: str

    def described(self) -> str:
        return (
            f"{self.processors} processors ({self.model}), {self.memory_gib:.0f} GiB, {self.kernel}, "
            f"Python {self.python}, PostgreSQL {self.postgres}"
        )


def this_machine(postgres: str) -> Machine:
    return Machine(
        processors=len(os.sched_getaffinity(0)),
        model=_model(),
        memory_gib=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30,
        kernel=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        postgres=postgres,
    )


def _model() -> str:
    for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()
