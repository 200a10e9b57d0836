"""Messages of the change feed as batches for the script that writes them down. Pure.

Of one seat only the newest message counts, whatever order they come in; but every hold that ended is taken out, for it may
have been written down by an earlier batch. A batch is small enough for the server to be busy with it for a few
milliseconds only: while a script runs nobody else is served.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import numpy as np

from holdfast.holds.lifecycle import SeatState
from holdfast.kernel.ids import FastUUID
from holdfast.live.message import Message
from holdfast.seating.layout import Layout
from holdfast.store.redis.keys import BITMAP_TTL_S, Keys, expiry_unix, iso, score
from holdfast.store.redis.together import HOLD, Holds, lines_of
from holdfast.store.redis.warm_hold import WarmHold

BATCH_MAX = 256
"""Holds that one call of the script writes or removes at most."""

BEGAN = "SeatReserved"
EXTENDED = "SeatHoldExtended"
BEGINS = frozenset((BEGAN, EXTENDED))

ENDED, SEATS, PLACES, TOGETHER = 1, 2, 3, 4
_WIDTHS = {ENDED: 5, SEATS: 5, PLACES: 3, TOGETHER: 1}
_MILLISECOND = timedelta(milliseconds=1)

Run = tuple[int, list[Any], Any]
"""Kind, header, and the values of its entries end to end; of holds that began together an array, and its last header is
their end."""


class Batch(msgspec.Struct, frozen=True):
    organization_id: UUID
    events: list[tuple[UUID, list[Run]]]


def batches_of(messages: Sequence[Message], layouts: Mapping[UUID, Layout], now: datetime) -> Iterator[Batch]:
    """Seats are named by the layouts, which are by event; without its layout an event's holds end but do not begin."""
    moved: dict[UUID, dict[UUID, _Moves]] = {}
    for message in messages:
        if message.event_id is None or (message.ordinals is None and not message.quantities):
            continue
        events = moved.setdefault(message.organization_id, {})
        moves = events.get(message.event_id)
        if moves is None:
            moves = events[message.event_id] = _Moves(layouts.get(message.event_id))
        moves.note(message)
    for organization_id, events in moved.items():
        for part in _divided([(event_id, moves.runs(now)) for event_id, moves in events.items()]):
            yield Batch(organization_id, part)


def batches_to_add(organization_id: UUID, holds: Sequence[WarmHold], now: datetime) -> Iterator[Batch]:
    """Holds that are over by now are left out."""
    events: dict[UUID, list[Run]] = {}
    for hold in holds:
        # As if extended: the hold may be written down already, with another end.
        header = _header(hold.held_until, hold.created_at, hold.source, hold.hold_type, now, extended=True)
        if header is None:
            continue
        runs = events.setdefault(hold.event_id, [])
        user = hold.user_id or ""
        if hold.seat_id is not None:
            runs.append((SEATS, header, [hold.hold_id, hold.seat_id, user, -1, hold.version]))
        else:
            zone_no = -1 if hold.zone_no is None else hold.zone_no
            runs.append((PLACES, [*header, zone_no], [hold.hold_id, user, hold.quantity or 1]))
    for part in _divided(list(events.items())):
        yield Batch(organization_id, part)


def pack(batch: Batch, keys: Keys, now: datetime, *, lease_end_ms: int = 0, moved: bool) -> bytes:
    events = [
        (event_id, [_packed(run, keys, batch.organization_id) for run in runs]) for event_id, runs in batch.events
    ]
    stated = [lease_end_ms, int(now.timestamp()), iso(now)[:-1], BITMAP_TTL_S, 1 if moved else 0, events]
    return _encoder.encode(stated)


def _packed(run: Run, keys: Keys, organization_id: UUID) -> Run:
    kind, header, holds = run
    if kind != TOGETHER:
        return run
    *stated, held_until = header
    lines, ends = lines_of(keys, organization_id, holds, held_until)
    return kind, [*stated, *ends], [lines, holds["ordinal"].tolist(), holds["version"].tolist()]


class _Moves:
    """What became of one event's seats and places."""

    __slots__ = ("_created", "_ended", "_exact", "_messages", "_named", "_places", "_repeated", "_seat_uuids", "_seats")

    def __init__(self, layout: Layout | None) -> None:
        self._seat_uuids = b"" if layout is None else layout.seat_uuids
        self._messages: list[Message] = []
        """Of seats."""
        self._named: set[int] = set()
        self._repeated: set[int] = set()
        """Seats that more than one message names."""
        self._seats: dict[int, tuple[int, Message, int]] = {}
        """By ordinal: the newest version, its message, and the position there."""
        self._places: dict[UUID, tuple[Message, int]] = {}
        self._ended: dict[UUID, int] = {}
        """With the ordinal, -1 of places."""
        self._created: dict[UUID | None, datetime] = {}
        """When holds began that were extended since."""
        self._exact: set[UUID | None] = set()
        """Holds that were shortened: what is told of them counts, though another end is written down."""

    def note(self, message: Message) -> None:
        if message.ordinals is None:
            self._note_places(message, message.kind in BEGINS)
            return
        self._messages.append(message)
        self._repeated |= self._named.intersection(message.ordinals)
        self._named.update(message.ordinals)

    def _began_together(self, message: Message) -> Holds | None:
        """Seats of which nothing else is told but that these holds of known users began: most messages are of this kind."""
        ordinals = message.ordinals or []
        if message.kind != BEGAN or not self._repeated.isdisjoint(ordinals):
            return None
        hold_ids = [hold_id.bytes for hold_id in message.hold_ids if hold_id]
        user_ids = [user_id.bytes for user_id in message.user_ids if user_id]
        if not len(hold_ids) == len(user_ids) == len(ordinals):
            return None
        if 16 * max(ordinals, default=0) >= len(self._seat_uuids):
            return None
        holds = np.empty(len(ordinals), HOLD)
        holds["hold"] = np.frombuffer(b"".join(hold_ids), "V16")
        holds["seat"] = np.frombuffer(self._seat_uuids, "V16")[ordinals]
        holds["user"] = np.frombuffer(b"".join(user_ids), "V16")
        holds["ordinal"] = ordinals
        holds["version"] = message.versions
        return holds

    def _note_seats(self, message: Message) -> None:
        begins = message.kind in BEGINS
        ordinals = message.ordinals or []
        seats = self._seats
        for i, (ordinal, version) in enumerate(zip(ordinals, message.versions, strict=True)):
            known = seats.get(ordinal)
            if known is None or version > known[0]:
                seats[ordinal] = (version, message, i)
                self._note_shortened(message, message.hold_ids[i])
            elif version == known[0]:
                self._note_shortened(message, message.hold_ids[i])
                self._note_creation(message, message.hold_ids[i])
                self._note_creation(known[1], message.hold_ids[i])
                if _is_later(message, known[1]):
                    seats[ordinal] = (version, message, i)
        if not begins:
            for hold_id, ordinal in zip(message.hold_ids, ordinals, strict=False):
                if hold_id is not None:
                    self._ended[hold_id] = ordinal

    def _note_places(self, message: Message, begins: bool) -> None:
        for i, hold_id in enumerate(message.hold_ids):
            if hold_id is None:
                continue
            if not begins:
                self._ended[hold_id] = -1
                continue
            self._note_shortened(message, hold_id)
            known = self._places.get(hold_id)
            if known is not None:
                self._note_creation(message, hold_id)
                self._note_creation(known[0], hold_id)
            if known is None or _is_later(message, known[0]):
                self._places[hold_id] = (message, i)

    def _note_shortened(self, message: Message, hold_id: UUID | None) -> None:
        if message.kind == EXTENDED and message.shortened:
            self._exact.add(hold_id)

    def _note_creation(self, message: Message, hold_id: UUID | None) -> None:
        if message.kind in BEGINS and message.kind != EXTENDED:
            self._created[hold_id] = message.at

    def runs(self, now: datetime) -> list[Run]:
        together: list[Run] = []
        for message in self._messages:
            holds = self._began_together(message)
            header = None if holds is None else self._header(message, 0, now)
            if header is None:
                self._note_seats(message)
            else:
                together.append((TOGETHER, [*header, message.held_until], holds))
        return [*self._runs_of_seats(now), *together]

    def _runs_of_seats(self, now: datetime) -> list[Run]:
        headers: dict[Any, list[Any] | None] = {}
        begun: dict[Any, list[Any]] = {}
        ended: list[Any] = []
        for ordinal, (version, message, i) in self._seats.items():
            seat = self._seat(ordinal)
            hold_id = message.hold_ids[i] if message.hold_ids else None
            if message.kind not in BEGINS:
                bit = 0 if message.state is SeatState.AVAILABLE else 1
                self._ended.pop(hold_id, None)  # type: ignore[arg-type]
                ended += (hold_id or "", seat, ordinal, bit, version)
                continue
            group = id(message) if message.kind != EXTENDED else (id(message), i)
            if group not in headers:
                headers[group], begun[group] = self._header(message, i, now), []
            if headers[group] is None:  # over already: whoever comes next may take it
                ended += (hold_id or "", seat, ordinal, 0, version)
            elif seat:
                begun[group] += (hold_id, seat, message.user_ids[i] or "", ordinal, version)
        place_runs = self._place_runs(now)
        for hold_id, ordinal in self._ended.items():
            ended += (hold_id, self._seat(ordinal), -1, 0, 0)
        seat_runs = [(SEATS, header, begun[group]) for group, header in headers.items() if header and begun[group]]
        return [*([(ENDED, [], ended)] if ended else []), *seat_runs, *place_runs]

    def _place_runs(self, now: datetime) -> list[Run]:
        runs: list[Run] = []
        for hold_id, (message, i) in self._places.items():
            if hold_id in self._ended:
                continue
            header = self._header(message, i, now)
            if header is None:
                self._ended[hold_id] = -1
                continue
            zone_no = -1 if message.zone_no is None else message.zone_no
            user = (message.user_ids[i] if message.user_ids else None) or ""
            runs.append((PLACES, [*header, zone_no], [hold_id, user, message.quantities[i]]))
        return runs

    def _header(self, message: Message, i: int, now: datetime) -> list[Any] | None:
        created_at = self._created.get(message.hold_ids[i]) if message.kind == EXTENDED else message.at
        extended = message.kind == EXTENDED
        exact = extended and message.hold_ids[i] in self._exact
        return _header(
            message.held_until, created_at, message.source, message.hold_type, now, extended=extended, exact=exact
        )

    def _seat(self, ordinal: int) -> Any:
        raw = self._seat_uuids[16 * ordinal : 16 * ordinal + 16] if ordinal >= 0 else b""
        return FastUUID(raw) if len(raw) == 16 else ""


def _header(
    held_until: datetime | None,
    created_at: datetime | None,
    source: str | None,
    hold_type: str | None,
    now: datetime,
    *,
    extended: bool,
    exact: bool = False,
) -> list[Any] | None:
    """None: the hold is over. Keys live for whole milliseconds and never longer than the hold."""
    ttl_ms = 0 if held_until is None else (held_until - now) // _MILLISECOND
    if held_until is not None and ttl_ms <= 0:
        return None
    ends = (iso(held_until), score(held_until), expiry_unix(held_until), ttl_ms)
    return [*ends, iso(created_at), source or "", hold_type or "", 2 if exact else 1 if extended else 0]


def _is_later(message: Message, other: Message) -> bool:
    """Which end of one hold counts: the last that was told. A hold's beginning comes before all that is told of it later."""
    return _told(message) > _told(other)


def _told(message: Message) -> tuple[bool, datetime, bool, datetime]:
    until = message.held_until
    return message.kind == EXTENDED, message.at, until is None, until or message.at


def _divided(events: list[tuple[UUID, list[Run]]]) -> Iterator[list[tuple[UUID, list[Run]]]]:
    """The same runs in parts of at most BATCH_MAX entries; an event counts as one, too."""
    part: list[tuple[UUID, list[Run]]] = []
    room = BATCH_MAX
    for event_id, runs in events:
        fitting: list[Run] = []
        for kind, header, values in runs:
            width, at = _WIDTHS[kind], 0
            while at < len(values):
                if room <= 1:
                    yield [*part, (event_id, fitting)]
                    part, fitting, room = [], [], BATCH_MAX
                taken = values[at : at + (room - 1) * width]
                fitting.append((kind, header, taken))
                at += len(taken)
                room -= len(taken) // width
        part.append((event_id, fitting))
        room -= 1
        if room <= 1:
            yield part
            part, room = [], BATCH_MAX
    if part:
        yield part


_encoder = msgspec.msgpack.Encoder()
