"""The figures of this process for Prometheus; and of several server processes on one port, those of all of them.

Whoever asks on that port reaches any one of the processes. So each writes its figures to a file in a folder they share,
every two seconds, and whoever is asked answers with its own, fresh, and the others' as they last wrote them. Each sample
says whose it is with the label `process`, the process's number: a process that was started again has the number of the
one it replaces. A file that has grown old belongs to a process that is no more, and is left out.
"""

import asyncio
import os
import re
import time
from contextlib import suppress
from pathlib import Path

import structlog
from prometheus_client import CONTENT_TYPE_LATEST, disable_created_metrics, generate_latest

log = structlog.get_logger(__name__)

CONTENT_TYPE = CONTENT_TYPE_LATEST
WRITE_EVERY_S = 2.0
OLD_AFTER_S = 10.0
SUFFIX = ".prom"

_FAMILY = re.compile(r"# (HELP|TYPE) (\S+)")
_SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(\{\}|\{)?")

disable_created_metrics()  # type: ignore[no-untyped-call]  # when a series began is of no use here, and doubles the text


class SharedFigures:
    """`number`: this process's among those that share the folder."""

    def __init__(self, folder: Path, number: int) -> None:
        self._folder = folder
        self._number = str(number)
        self._own = folder / f"{number}{SUFFIX}"

    async def keep(self) -> None:
        """Until cancelled. A folder that cannot be written to costs the others these figures, and nobody a request."""
        failed = False
        try:
            while True:
                try:
                    await asyncio.to_thread(self.write)
                    failed = False
                except OSError as error:
                    if not failed:
                        log.warning("metrics_not_shared", folder=str(self._folder), error=str(error))
                    failed = True
                await asyncio.sleep(WRITE_EVERY_S)
        finally:
            self.withdraw()

    def write(self) -> None:
        fresh = self._own.with_suffix(f".{os.getpid()}")
        fresh.write_bytes(generate_latest())
        fresh.replace(self._own)  # whoever reads finds the old or the new, and no half

    def withdraw(self) -> None:
        with suppress(OSError):
            self._own.unlink()

    def exposition(self) -> bytes:
        texts = {self._number: generate_latest().decode()}
        for path in sorted(self._folder.glob(f"*{SUFFIX}")):
            if path.stem == self._number:
                continue
            with suppress(OSError):  # it ended while we looked
                if time.time() - path.stat().st_mtime < OLD_AFTER_S:
                    texts[path.stem] = path.read_text()
        return merged(texts).encode()


def merged(texts: dict[str, str]) -> str:
    """One exposition out of several by process: each family once, with the samples of all, and whose each is."""
    heads: dict[str, dict[str, str]] = {}
    samples: dict[str, list[str]] = {}
    for process, text in texts.items():
        family = ""
        for line in text.splitlines():
            said = _FAMILY.match(line)
            if said is not None:
                family = said[2]
                heads.setdefault(family, {}).setdefault(said[1], line)
            elif line and not line.startswith("#"):
                samples.setdefault(family, []).append(_labelled(line, process))
    lines: list[str] = []
    for family, head in heads.items():
        lines += [*head.values(), *samples.get(family, ())]
    return "\n".join(lines) + "\n"


def _labelled(sample: str, process: str) -> str:
    found = _SAMPLE.match(sample)
    assert found is not None, f"not a sample: {sample!r}"
    rest = sample[found.end() :]
    end = "," if found[2] == "{" else "}"
    return f'{found[1]}{{process="{process}"{end}{rest}'


_shared: SharedFigures | None = None


def share(folder: Path, number: int) -> SharedFigures:
    """From here on this process is one of several. The caller runs `keep` of what it gets."""
    global _shared
    _shared = SharedFigures(folder, number)
    return _shared


def exposition() -> bytes:
    """What Prometheus is answered with."""
    return generate_latest() if _shared is None else _shared.exposition()
