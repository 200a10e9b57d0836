"""Ending tasks for certain."""

import asyncio
from collections.abc import Iterable
from typing import Any

AGAIN_S = 0.2
LONGEST_S = 10.0


async def end_tasks(tasks: Iterable["asyncio.Task[Any]"]) -> None:
    """Cancels them until they are over: a library in the middle of its own timeout may lose a cancellation."""
    left = {task for task in tasks if not task.done()}
    tries = int(LONGEST_S / AGAIN_S)
    while left and tries:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN_S)
        tries -= 1
