"""Which of the sales that were taken back had come from which holds. Pure."""

from collections.abc import Callable, Iterable
from datetime import datetime

import msgspec

from holdfast.holds.lifecycle import Verb


class SaleMove(msgspec.Struct, frozen=True, kw_only=True):
    """A seat was sold, or its sale taken back."""

    at: datetime
    seat: bytes
    zone: tuple[int, int]
    """Segment and number."""
    verb: str
    placed_at: datetime | None
    """When the hold was placed that was converted."""
    hold_type: str | None
    placed_zone: tuple[int, int] | None


class Traced(msgspec.Struct, frozen=True):
    of_holds: int
    """Seats sold from a hold that counts, and taken back since."""
    untraced: int
    """Sales taken back that the log has not under this seat: a migration put them there."""


def trace(
    moves: Iterable[SaleMove], hold_counts: Callable[[SaleMove], bool], revert_counts: Callable[[SaleMove], bool]
) -> Traced:
    """`moves` in the order of the log. Which holds count is said by their sale, which untraced ones by the taking back."""
    sold: dict[bytes, SaleMove] = {}
    of_holds = untraced = 0
    for move in moves:
        if move.verb != Verb.REVERT_SALE:
            sold[move.seat] = move
            continue
        sale = sold.pop(move.seat, None)
        if sale is None:
            untraced += revert_counts(move)
        else:
            of_holds += sale.placed_at is not None and hold_counts(sale)
    return Traced(of_holds, untraced)
