"""A server process of several on one socket: `python -m holdfast.server_process`, started by `ServerProcesses` only.

It ends with its parent: the kernel sends it SIGTERM when the parent dies, however it dies.
"""

import argparse
import asyncio
import os
import socket
import threading
from contextlib import suppress
from pathlib import Path

import uvloop

from holdfast import metrics
from holdfast.logs import configure_logs
from holdfast.parent import die_with_parent
from holdfast.server import StopSignals, serve
from holdfast.settings import Settings, load_settings

ORPHAN_GRACE_S = 3.0


class _Stop(StopSignals):
    """An orphan's database is going away too: it does not wait for long."""

    def __init__(self, parent: int) -> None:
        super().__init__()
        self._parent = parent

    def ask(self) -> None:
        super().ask()
        if os.getppid() != self._parent:
            last = threading.Timer(ORPHAN_GRACE_S, os._exit, (1,))
            last.daemon = True
            last.start()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", type=int, required=True)
    parser.add_argument("--ready", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--number", type=int, required=True)
    parser.add_argument("--figures", type=Path, required=True)
    parser.add_argument("--no-work", action="store_true")
    options = parser.parse_args()
    die_with_parent(options.parent)
    settings = load_settings()
    configure_logs(settings.log_level)
    uvloop.run(_serve(settings, options))


async def _serve(settings: Settings, options: argparse.Namespace) -> None:
    def ready() -> None:
        os.write(options.ready, b"r")
        os.close(options.ready)

    bound = socket.socket(fileno=options.socket)
    figures = asyncio.create_task(metrics.share(options.figures, options.number).keep())
    try:
        await serve(settings, bound, work=not options.no_work, on_ready=ready, stop=_Stop(options.parent))
    finally:
        figures.cancel()
        with suppress(asyncio.CancelledError):
            await figures
        if os.getppid() != options.parent:  # who made the folder is not there to remove it; the last of us does
            with suppress(OSError):
                options.figures.rmdir()


if __name__ == "__main__":
    main()
