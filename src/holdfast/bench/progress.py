"""What is being measured just now, on stderr: a live line on a terminal, plain lines elsewhere."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.status import Status


class Progress:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = console.status("starting") if console.is_terminal else None
        self._part = ""

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def part(self, title: str) -> None:
        self._part = title
        self._console.print(f"[bold]{title}[/]")

    def say(self, doing: str) -> None:
        if self._status is not None:
            self._status.update(f"{self._part}: {doing}")

    def note(self, line: str) -> None:
        self._console.print(f"  {line}", style="dim", highlight=False)
