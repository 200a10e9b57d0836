"""Named places where a process can be made to die, so that tests can see what the next one finds.

`HOLDFAST_CRASH_AT=<name>` in the environment of a process kills it, without a word to anybody, where it reaches that name.
"""

import os
import signal
from typing import Final

CRASH_POINTS: Final = (
    "webhook.verified",
    "payment.written",
    "payment.recorded",
    "settle.begun",
    "settle.locked",
    "settle.sold",
    "settle.tickets_issued",
    "settle.before_commit",
    "settle.committed",
)
"""From the provider's word to the answer, in the order in which a paid checkout reaches them."""

_crash_at: Final = os.environ.get("HOLDFAST_CRASH_AT")


def reach(name: str) -> None:
    if _crash_at is not None and name == _crash_at:
        os.kill(os.getpid(), signal.SIGKILL)
