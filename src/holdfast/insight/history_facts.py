"""What is known of a run: what clients did and were told, what the database wrote down, what caches said.

Instants are Unix seconds of one clock, the database's: clients whose history is to be judged run beside it. `began_s` and
`ended_s` are of the clients' monotonic clock, which orders what clients did among themselves.
"""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from uuid import UUID

import msgspec

from holdfast.holds.lifecycle import HoldStatus, LogRow, SeatState
from holdfast.insight.event_facts import EventFacts


class Act(StrEnum):
    RESERVE = "reserve"
    LOCK = "lock"
    EXTEND = "extend"
    RELEASE = "release"
    SELL = "sell"
    REVERT = "revert"


class Outcome(StrEnum):
    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    """The connection was lost, or the server failed: it may have been done, or be done later."""


class Places(msgspec.Struct, frozen=True):
    zone_no: int
    quantity: int


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One request of one client."""

    act: Act
    organization_id: UUID
    """Whose credential it was asked with."""
    event_id: UUID
    owner: str
    """The buyer's user id, or the session of booking v2."""
    began: float
    ended: float
    began_s: float
    ended_s: float
    outcome: Outcome
    code: str | None = None
    ordinals: tuple[int, ...] = ()
    places: tuple[Places, ...] = ()
    hold_ids: tuple[UUID, ...] = ()
    """What was given, or is to be extended or released: by seat, then by places. None in booking v2."""
    until: float | None = None
    refused_ordinal: int | None = None
    """The seat that was in the way."""
    process: str = ""


class LoggedMove(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the state log. Its move took effect between `at`, read by its transaction, and `committed_at`."""

    id: int
    at: float
    committed_at: float
    row: LogRow
    user_id: UUID | None = None
    session_id: str | None = None


class HoldRecord(msgspec.Struct, frozen=True, kw_only=True):
    hold_id: UUID
    ordinal: int | None
    zone_no: int
    quantity: int
    status: HoldStatus
    held_until: float | None
    created_at: float
    ended_at: float | None
    user_id: UUID | None = None
    session_id: str | None = None

    @property
    def owner(self) -> str:
        return self.session_id if self.session_id is not None else str(self.user_id)


class Sample(msgspec.Struct, frozen=True):
    """The log and the event as they were at one instant of the run."""

    read_at: float
    moves: Sequence[LoggedMove]
    facts: EventFacts


class EventRecord(msgspec.Struct, frozen=True, kw_only=True):
    """All that the database has of one event when the run is over."""

    organization_id: UUID
    event_id: UUID
    last: Sample
    holds: Sequence[HoldRecord]
    samples: Sequence[Sample] = ()
    """Earlier ones, oldest first."""


class Word(msgspec.Struct, frozen=True, kw_only=True):
    """What a cache said when it was asked. What it did not speak of stays empty."""

    source: str
    organization_id: UUID
    event_id: UUID
    began: float
    ended: float
    states: Mapping[int, SeatState] = {}
    """By ordinal."""
    holders: Mapping[int, UUID] | None = None
    """The hold in each seat that is said to be held: a seat not in it is said not to be."""
    taken: Collection[int] | None = None
    """The seats that are said not to be available: all others are said to be."""
    counts: Mapping[tuple[int, SeatState], int] = {}
    """Places by zone and state."""


class Disturbance(msgspec.Struct, frozen=True):
    """While it lasts, and a moment longer, caches may be behind."""

    name: str
    began: float
    ended: float


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """What the promises allow."""

    grace_s: float = 0.0
    converge_s: float = 1.0
    settle_s: float = 5.0
    """After a disturbance."""
    sweep_s: float = 5.0
    """A hold that nobody wants to take over is swept within this."""
    slack_s: float = 0.25
    """A commit is stamped before it is flushed, and is seen after."""


class History(msgspec.Struct, frozen=True, kw_only=True):
    operations: Sequence[Operation]
    events: Sequence[EventRecord]
    words: Sequence[Word] = ()
    disturbances: Sequence[Disturbance] = ()
    bounds: Bounds = Bounds()
