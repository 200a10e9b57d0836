"""What an examiner says of one invariant. Pure."""

from collections.abc import Sequence

import msgspec

EXAMPLES = 3
"""How many offenders a detail names."""


class Invariant(msgspec.Struct, frozen=True):
    name: str
    ok: bool
    detail: str


def verdict(name: str, faults: Sequence[str], kept: str) -> Invariant:
    if not faults:
        return Invariant(name, True, kept)
    more = f" (and {len(faults) - EXAMPLES} more)" if len(faults) > EXAMPLES else ""
    return Invariant(name, False, "; ".join(faults[:EXAMPLES]) + more)
