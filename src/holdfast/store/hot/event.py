"""One event's seats in memory, as columns by ordinal: what a buyer may see of them, and who need not ask for one.

Everything comes from the change feed, or from a reading of the inventory: of two facts about a seat the one with the
higher version stays, so they may arrive in any order and more than once.
"""

from array import array
from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from holdfast.holds.lifecycle import SeatState
from holdfast.live.message import Message
from holdfast.seating.layout import Layout
from holdfast.seating.policy import SeatingPolicy
from holdfast.store.hot.keeping import Keeping

STATES: tuple[SeatState, ...] = (SeatState.AVAILABLE, SeatState.HELD, SeatState.SOLD, SeatState.BLOCKED)
STATE_CODES: dict[SeatState, int] = {state: code for code, state in enumerate(STATES)}
AVAILABLE, HELD = STATE_CODES[SeatState.AVAILABLE], STATE_CODES[SeatState.HELD]
SOLD, BLOCKED = STATE_CODES[SeatState.SOLD], STATE_CODES[SeatState.BLOCKED]
FOREVER = float("inf")
BYTES_A_SEAT = 1 + 1 + 4 + 8 + 8 + 8 + 8
_LOW_64 = (1 << 64) - 1
_NOBODY = bytes(16)


class ZoneCount:
    """A general-admission zone."""

    __slots__ = ("blocked", "capacity", "changed", "held", "sold", "version")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.version = -1
        self.held = 0
        self.sold = 0
        self.blocked = 0
        self.changed = 0


def owner_key(user_id: UUID | None) -> int:
    """Half of a user's id is enough to tell that it is somebody else; 0 stands for nobody."""
    return 0 if user_id is None else user_id.int & _LOW_64


def owner_keys(user_ids: Iterable[UUID | None]) -> NDArray[np.uint64]:
    raw = b"".join([_NOBODY if user_id is None else user_id.bytes for user_id in user_ids])
    return np.frombuffer(raw, ">u8")[1::2].astype(np.uint64)


def unix(instant: datetime | None) -> float:
    return FOREVER if instant is None else instant.timestamp()


class HotEvent:
    __slots__ = (
        "base",
        "changed",
        "doubts",
        "event_id",
        "hold_types",
        "keeping",
        "layout",
        "layout_since",
        "loaded",
        "organization_id",
        "owners",
        "owners_of",
        "refused_until",
        "revision",
        "states",
        "states_of",
        "taken",
        "types",
        "until",
        "versions",
        "zones",
    )

    def __init__(self, organization_id: UUID, event_id: UUID, layout: Layout) -> None:
        seats = layout.seat_count
        self.organization_id = organization_id
        self.event_id = event_id
        self.layout = layout
        self.states_of = bytearray(seats)
        """The same memory as `states`: one seat at a time is looked at in Python, many at once in numpy."""
        self.states: NDArray[np.uint8] = np.frombuffer(self.states_of, np.uint8)
        self.types: NDArray[np.uint8] = np.zeros(seats, np.uint8)
        """Index into `hold_types`; 0 for none."""
        self.versions: NDArray[np.int32] = np.full(seats, -1, np.int32)
        self.until: NDArray[np.float64] = np.zeros(seats, np.float64)
        self.owners_of = array("Q", bytes(8 * seats))
        self.owners: NDArray[np.uint64] = np.frombuffer(self.owners_of, np.uint64)
        self.changed: NDArray[np.int64] = np.zeros(seats, np.int64)
        """The number of the transaction that changed the seat last, where that was after `base`."""
        self.refused_until = array("d", bytes(8 * seats))
        """By the database's clock (unix): until then whoever is not the owner need not ask. 0: must ask."""
        self.taken: NDArray[np.float64] = np.frombuffer(self.refused_until, np.float64)
        self.zones = {zone.zone_no: ZoneCount(zone.capacity) for zone in layout.zones if zone.is_ga}
        self.hold_types: list[str | None] = [None]
        self.base = 0
        """Of what was changed by transactions numbered from here on, `changed` tells everything."""
        self.layout_since = 0
        """The number of the transaction that gave the event this layout, where it has had another before."""
        self.revision = 0
        """Grows with every change that a buyer can see."""
        self.doubts: dict[int, int] = {}
        """Seats that this process moved itself, with the number of the feed's look that was under way then."""
        self.loaded = False
        self.keeping = Keeping(layout) if layout.companion_wheelchairs else None

    @property
    def soft(self) -> NDArray[np.bool_] | None:
        """The seats softly kept for a companion; none where the layout has no such seats."""
        return None if self.keeping is None else self.keeping.soft

    @property
    def unsure(self) -> NDArray[np.bool_]:
        """Held seats whose end is not known any more: they may be free, and may not."""
        unsure: NDArray[np.bool_] = (self.until == FOREVER) & (self.taken < FOREVER)
        return unsure

    @property
    def size_bytes(self) -> int:
        return BYTES_A_SEAT * len(self.states) + 4096

    # Facts -------------------------------------------------------------------------------------------------------
    def apply(self, message: Message) -> Sequence[int]:
        """Takes in a message about this event; answers the seats that a buyer would see changed."""
        if message.zone_no is not None and message.zone_version is not None:
            self._count(message)
        if message.ordinals is None or message.state is None:
            return ()
        if max(message.ordinals, default=0) >= len(self.states):
            return ()  # of another version of the layout: there is, or will be, a message that says so
        ordinals = np.array(message.ordinals, np.int64)
        owners = owner_keys(message.user_ids) if message.user_ids else np.zeros(len(ordinals), np.uint64)
        return self.note(
            ordinals,
            np.array(message.versions, np.int32),
            np.full(len(ordinals), STATE_CODES[message.state], np.uint8),
            np.full(len(ordinals), self.type_index(message.hold_type), np.uint8),
            np.full(len(ordinals), unix(message.held_until), np.float64),
            owners,
            message.xid,
            shortened=message.shortened,
        )

    def note(
        self,
        ordinals: NDArray[np.int64],
        versions: NDArray[np.int32],
        states: NDArray[np.uint8],
        types: NDArray[np.uint8],
        until: NDArray[np.float64],
        owners: NDArray[np.uint64],
        xid: int,
        *,
        shortened: bool = False,
    ) -> Sequence[int]:
        """Those facts that are newer than what is known. An extended hold keeps its seat's version and ends later. Of one
        that was `shortened` nobody can tell which of two ends at one version is the last: it is refused until the earliest,
        and from then on the database is asked, until the seat moves (`until` without end, `taken` with one)."""
        known = self.versions[ordinals]
        if shortened:
            again = (versions == known) & (self.states[ordinals] == HELD)
            self.taken[ordinals[again]] = np.minimum(self.taken[ordinals[again]], until[again])
            self.until[ordinals[again]] = FOREVER
        newer = (versions > known) | ((versions == known) & (states == HELD) & (until > self.until[ordinals]))
        if not newer.all():
            ordinals, versions, states = ordinals[newer], versions[newer], states[newer]
            types, until, owners = types[newer], until[newer], owners[newer]
        if not len(ordinals):
            return ()
        before = self.states[ordinals]
        seen = (before != states) | (self.types[ordinals] != types)
        if self.keeping is not None:
            # Who bought a wheelchair seat is who held it: a message of a sale does not say.
            went_on = (states == SOLD) & (before == HELD) & (versions == self.versions[ordinals] + 1)
            owners = np.where(went_on, self.owners[ordinals], owners)
        self.states[ordinals] = states
        self.types[ordinals] = types
        self.versions[ordinals] = versions
        self.owners[ordinals] = owners
        held = states == HELD
        self.until[ordinals] = np.where(held, FOREVER if shortened else until, 0.0)
        self.taken[ordinals] = np.where(held, until, np.where(states == AVAILABLE, 0.0, FOREVER))
        visible = ordinals[seen]
        if self.keeping is not None:
            flipped = self.keeping.follow(ordinals, before, states, self.states)
            visible = np.union1d(visible, flipped) if len(flipped) else visible
        if not len(visible):
            return ()
        self.changed[visible] = xid
        self.revision += 1
        listed: list[int] = visible.tolist()
        return listed

    def keep_by(self, policy: SeatingPolicy, xid: int) -> Sequence[int]:
        """What is kept for companions follows this policy from here on; answers the seats whose look that changed."""
        flipped = () if self.keeping is None else self.keeping.set_terms(policy, self.states)
        if not len(flipped):
            return ()
        self.changed[flipped] = xid
        self.revision += 1
        return [int(ordinal) for ordinal in flipped]

    def _count(self, message: Message) -> None:
        zone = self.zones.get(message.zone_no or 0)
        if zone is None or message.zone_version is None or message.zone_version <= zone.version:
            return
        zone.version = message.zone_version
        zone.held, zone.sold = message.zone_held or 0, message.zone_sold or 0
        zone.blocked = message.zone_blocked or 0
        zone.changed = message.xid
        self.revision += 1

    def type_index(self, hold_type: str | None) -> int:
        if hold_type is None:
            return 0
        try:
            return self.hold_types.index(hold_type)
        except ValueError:
            pass
        if len(self.hold_types) > 255:
            return 0  # more names than an event ever has: shown without one
        self.hold_types.append(hold_type)
        return len(self.hold_types) - 1

    # Asking ------------------------------------------------------------------------------------------------------
    def refusal(self, ordinal: int, user_id: UUID | None, now: float) -> float:
        """How long (seconds; without end for what is sold or blocked) whoever is not the owner need not ask for the seat.
        0 or less: the database must be asked. `now` is the database's clock."""
        left = self.refused_until[ordinal] - now
        if left <= 0.0:
            return 0.0
        if user_id is not None and self.owners_of[ordinal] == owner_key(user_id):
            return 0.0
        return left

    def keeps(self, ordinal: int, user_id: UUID | None, now: float) -> bool:
        """Whether the seat is kept for somebody else's companion, for certain: whose each wheelchair seat is, is known."""
        keeping = self.keeping
        if keeping is None or not keeping.soft[ordinal] or not keeping.is_far_from_free(ordinal):
            return False
        sure = False
        for chair in keeping.wheelchairs_of[ordinal]:
            if self.states_of[chair] not in (HELD, SOLD):
                continue
            owner = self.owners_of[chair]
            if owner in (0, owner_key(user_id)):
                return False
            sure = sure or self.refused_until[chair] > now
        return sure

    def doubt(self, ordinals: Iterable[int], look: int) -> None:
        """This process has just moved these seats: until a later look says how, nobody is refused because of them."""
        for ordinal in ordinals:
            if 0 <= ordinal < len(self.refused_until):
                self.refused_until[ordinal] = 0.0
                self.doubts[ordinal] = look

    def settle_doubts(self, look: int) -> None:
        """After a look: what it said of a seat that was moved while it was under way may be what was before."""
        for ordinal, since in list(self.doubts.items()):
            if look <= since:
                self.refused_until[ordinal] = 0.0
            else:
                del self.doubts[ordinal]

    def changed_since(self, mark: int) -> list[int]:
        """The seats changed by transactions numbered from `mark` on; `mark` is not below `base`."""
        chosen = self.changed >= mark
        if self.keeping is not None:
            # What is kept may have changed with the policy, of which no transaction's number tells on another node.
            chosen[self.keeping.companions] = True
        listed: list[int] = np.nonzero(chosen)[0].tolist()
        return listed
