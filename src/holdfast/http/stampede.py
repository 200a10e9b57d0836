"""The answers of a stampede: a thousand buyers want the seat that somebody else has, again and again.

Requests of this kind differ in little: the request line names a seat, and what follows it a buyer, and both come back a
thousand times. So each half is understood once, by the parser and the checks that every request passes, and then known by
its bytes. What remains is to look whether the seat is still taken, which is one number in memory.

Nothing is decided here that was not decided before: who the buyer is, for as long as that is remembered; that the event is
on sale and its seats are known, for a twentieth of a second; whose the seat is, by the change feed.
"""

import itertools
import math
import os
import time
from collections.abc import Callable
from typing import Final
from uuid import UUID

from holdfast.accounts.principal import Call, Principal
from holdfast.http.reserve_wire import LINE, REST, refusal_lines
from holdfast.http.services import Services
from holdfast.insight.refusals import REFUSALS
from holdfast.store.hot.event import FOREVER, STATES, owner_key
from holdfast.store.lookups import LOOKUPS
from holdfast.store.registry import Gate, Taken

KNOWN_MAX: Final = 20_000
REST_BYTES_MAX: Final = 4096

_TAKEN: Final = ("hot", "seat", "taken")
_HELD: Final = ("seat_held_by_another_user",)
_GONE: Final = ("seat_not_available",)


class KnownRest:
    """Headers and body of a request, parsed before: the same bytes mean the same, whoever sends them."""

    __slots__ = ("authorization", "body", "gates", "headers", "keep_alive", "known", "owner", "plain")

    def __init__(
        self,
        headers: list[tuple[bytes, bytes]],
        known: dict[bytes, bytes],
        body: bytes,
        *,
        keep_alive: bool,
        plain: bool,
        principal: Principal,
    ) -> None:
        self.headers = headers
        self.known = known
        self.body = body
        self.keep_alive = keep_alive
        self.plain = plain and keep_alive and b"x-request-id" not in known
        self.authorization = known[b"authorization"]
        self.owner = owner_key(principal.user_id)
        self.gates: set[Gate] = set()
        """Events that this buyer may ask for; looked at once each."""


class KnownSeat:
    """A request line that was refused before."""

    __slots__ = ("before", "behind", "expires_in", "gate", "layout", "ordinal", "seat_id", "state")

    def __init__(self, gate: Gate, ordinal: int, seat_id: UUID) -> None:
        self.gate = gate
        self.layout = gate.event.layout
        """In which the ordinal is meant."""
        self.ordinal = ordinal
        self.seat_id = seat_id
        self.expires_in: int | None = -1
        self.state = -1
        self.before = b""
        self.behind = b""


class Stampede:
    def __init__(self, services: Services) -> None:
        self._holds = services.holds
        self._refusals = services.refusals
        self._authenticator = services.authenticator
        self._clock = services.holds.clock
        self.rests: dict[bytes, KnownRest] = {}
        self._seats: dict[bytes, KnownSeat] = {}
        self._ids = itertools.count(1)
        self._id_prefix = f"{os.urandom(5).hex()}-".encode()

    # Learning ----------------------------------------------------------------------------------------------------
    def learn_rest(self, raw: bytes, rest: KnownRest) -> None:
        if len(raw) <= REST_BYTES_MAX:
            if len(self.rests) >= KNOWN_MAX:
                self.rests.clear()
            self.rests[raw] = rest

    def learn_seat(self, line: bytes, principal: Principal, event_id: UUID, seat_id: UUID) -> None:
        gate = self._holds.gate(principal.organization_id, event_id)
        ordinal = None if gate is None else gate.view.layout.seat_index.of(seat_id)
        if gate is not None and ordinal is not None:
            if len(self._seats) >= KNOWN_MAX:
                self._seats.clear()
            self._seats[line] = KnownSeat(gate, ordinal, seat_id)

    # Answering ---------------------------------------------------------------------------------------------------
    def answer(
        self, data: bytes, default_lines: bytes, call: Callable[[Principal, KnownRest, str], Call]
    ) -> bytes | None:
        """The whole answer to a whole request, where it is: somebody else has the seat. None: everything else."""
        rest = self.rests.get(data[REST])
        if rest is None or not rest.plain:
            return None
        seat = self._seats.get(data[LINE])
        if seat is None:
            return None
        gate = seat.gate
        now = time.monotonic()
        if (now >= gate.until or not gate.event.loaded) and not self._holds.reopen(gate, now):
            return None
        event, ordinal = gate.event, seat.ordinal
        if event.layout is not seat.layout:
            del self._seats[data[LINE]]
            return None
        left_s = event.refused_until[ordinal] - now - self._clock.clock_ahead_s
        if left_s <= 0.0 or event.owners_of[ordinal] == rest.owner:
            return None
        principal = self._authenticator.remembered(rest.authorization)
        if principal is None or not self._may_ask(rest, gate, principal):
            return None
        if self._holds.over_limit(rest.owner, gate.limit, now):
            return None
        expires_in = None if left_s == FOREVER else math.ceil(left_s)
        state = event.states_of[ordinal]
        if expires_in != seat.expires_in or state != seat.state:
            seat.expires_in, seat.state = expires_in, state
            seat.before, seat.behind = refusal_lines(seat.seat_id, STATES[state].value, expires_in)
        request_id = b"%b%x" % (self._id_prefix, next(self._ids))
        gate.refused += 1
        LOOKUPS.counts[_TAKEN] = LOOKUPS.counts.get(_TAKEN, 0) + 1
        reason = _HELD if state == 1 else _GONE
        REFUSALS.counts[reason] = REFUSALS.counts.get(reason, 0) + 1
        if self._refusals.sampled():
            taken = Taken(ordinal, STATES[state].value, expires_in)
            self._holds.note_taken(call(principal, rest, request_id.decode()), gate.view, taken)
        return b"%b%b\r\n%b%b" % (seat.before, request_id, default_lines, seat.behind[2:])

    @staticmethod
    def _may_ask(rest: KnownRest, gate: Gate, principal: Principal) -> bool:
        if gate in rest.gates:
            return True
        if principal.organization_id != gate.organization_id:
            return False
        if principal.guest_event_id is not None and principal.guest_event_id != gate.event_id:
            return False
        rest.gates.add(gate)
        return True
