"""How much is measured: everything, what fits in a minute, or as little as shows that the machinery works."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class Scale:
    rounds: int
    seconds: float
    """Of one side in one round."""
    warm_up_s: float
    buyers: int
    """Different buyers; each holds a few seats a round, as in life, where the limit per user is about ten."""
    seats: int
    """In the large event."""
    small_events: int
    """Events of `small_seats` seats each, filled one after the other."""
    small_seats: int
    contested_buyers: int
    contested_seats: int
    connections: int
    """For throughput."""
    fewer_connections: tuple[int, ...]
    """For latency."""
    plain_clients: tuple[int, ...]
    expiring: int
    expiry_rounds: int
    publication_rounds: int
    callers: int
    viewers: int
    live_holds: int
    live_seconds: float
    sell_out_seats: int
    sell_out_buyers: int
    choices: int
    """Of each kind in one round."""
    log_moves: int
    """In the state log of one event."""


FULL: Final = Scale(
    rounds=5,
    seconds=4.0,
    warm_up_s=0.7,
    buyers=6_000,
    seats=100_000,
    small_events=16,
    small_seats=1_000,
    contested_buyers=1_000,
    contested_seats=100,
    connections=256,
    fewer_connections=(128, 8),
    plain_clients=(8, 32),
    expiring=100_000,
    expiry_rounds=3,
    publication_rounds=3,
    callers=128,
    viewers=5_000,
    live_holds=40,
    live_seconds=8.0,
    sell_out_seats=5_000,
    sell_out_buyers=2_000,
    choices=100,
    log_moves=1_000_000,
)
QUICK: Final = Scale(
    rounds=2,
    seconds=1.2,
    warm_up_s=0.3,
    buyers=2_000,
    seats=30_000,
    small_events=5,
    small_seats=1_000,
    contested_buyers=400,
    contested_seats=40,
    connections=256,
    fewer_connections=(8,),
    plain_clients=(8, 32),
    expiring=15_000,
    expiry_rounds=1,
    publication_rounds=1,
    callers=128,
    viewers=500,
    live_holds=15,
    live_seconds=2.0,
    sell_out_seats=1_000,
    sell_out_buyers=400,
    choices=30,
    log_moves=1_000_000,
)
TINY: Final = Scale(
    rounds=1,
    seconds=0.3,
    warm_up_s=0.1,
    buyers=20,
    seats=4_000,
    small_events=2,
    small_seats=100,
    contested_buyers=20,
    contested_seats=5,
    connections=8,
    fewer_connections=(2,),
    plain_clients=(2,),
    expiring=500,
    expiry_rounds=1,
    publication_rounds=1,
    callers=16,
    viewers=20,
    live_holds=3,
    live_seconds=0.4,
    sell_out_seats=100,
    sell_out_buyers=40,
    choices=3,
    log_moves=20_000,
)
