"""The promises I1 to I8, judged by the history of a run: per seat, exact, and silent wherever the facts leave a doubt.

Pure. What `judge` of `holdfast.insight.invariants` says of an event is taken over for the promise it belongs to; here it is
laid beside what clients were told, when, and what caches said.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from uuid import UUID

import msgspec

from holdfast.holds.lifecycle import SeatState, Verb
from holdfast.insight.hearing import Hearing
from holdfast.insight.history_facts import (
    Act,
    EventRecord,
    History,
    HoldRecord,
    LoggedMove,
    Operation,
    Outcome,
    Places,
    Sample,
)
from holdfast.insight.invariants import judge
from holdfast.insight.timeline import Span, Target, Timeline, of_hold, target_of

EXAMPLES = 5
MICROSECOND_S = 1e-6
TITLES = {
    "I1": "no seat held or sold twice",
    "I2": "no acknowledged hold or sale lost",
    "I3": "no seat held past its life",
    "I4": "counters equal truth",
    "I5": "the log is complete and append-only",
    "I6": "caches converge",
    "I7": "no effect across organizations",
    "I8": "no free seat refused",
}
PROMISE_OF = {
    "no seat is held or sold twice": "I1",
    "no seat has two active holds": "I1",
    "holds and seats agree": "I1",
    "every acknowledged hold exists": "I2",
    "counters equal live holds and sales, within capacity": "I4",
    "occupancy equals what is held, sold and blocked": "I4",
    "the state log replays exactly to the inventory": "I5",
    "every valid ticket stands on a sale of its own": "I1",
    "a completed checkout has a ticket for each place": "I2",
    "money that was received has bought tickets or is due back": "I2",
    "holds end with the checkout they are in": "I3",
}
"""To which promise each invariant of an event belongs."""

SEAT_REFUSALS = frozenset(("seat_held_by_another_user", "seat_not_available", "false"))
ZONE_REFUSALS = frozenset(("block_at_capacity", "false"))
HOLD_REFUSALS = frozenset(("hold_not_found", "hold_expired", "hold_not_active", "release_forbidden", "false"))
"""What the owner of a live hold must never hear of it."""
WALLS = frozenset(
    ("event_not_found", "hold_not_found", "seat_not_found", "forbidden", "unauthorized", "entity_not_found")
)
"""The only answers to whoever asks for something of another organization."""
GIVES = (Act.RESERVE, Act.LOCK)
ACTS_OF = {
    Verb.HOLD: GIVES,
    Verb.RELEASE: (Act.RELEASE,),
    Verb.CONVERT: (Act.SELL,),
    Verb.REVERT_SALE: (Act.REVERT,),
}
"""Whose doing a move may be; what is not here (expiry aside) no client of a run asks for."""


class Verdict(msgspec.Struct, frozen=True):
    promise: str
    title: str
    ok: bool
    checked: int
    broken: int
    offenders: list[str]
    """The first of them."""


class _Count:
    """What was looked at for one promise, and what was found."""

    def __init__(self) -> None:
        self.checked = 0
        self.faults: list[str] = []

    def look(self, fault: str | None = None) -> None:
        self.checked += 1
        if fault is not None:
            self.faults.append(fault)


def judge_history(history: History) -> list[Verdict]:
    """Every promise, kept or broken, in order."""
    court = _Court(history)
    counts = {
        "I1": court.nothing_given_twice(),
        "I2": court.nothing_acknowledged_lost(),
        "I3": court.nothing_held_past_its_life(),
        "I4": _Count(),
        "I5": court.log_complete(),
        "I6": court.caches_converge(),
        "I7": court.walls_hold(),
        "I8": court.nothing_free_refused(),
    }
    for record in history.events:
        for sample in (*record.samples, record.last):
            for invariant in judge(sample.facts):
                counts[PROMISE_OF[invariant.name]].look(
                    None if invariant.ok else f"{invariant.name}: {invariant.detail}"
                )
    return [
        Verdict(name, TITLES[name], not count.faults, count.checked, len(count.faults), count.faults[:EXAMPLES])
        for name, count in counts.items()
    ]


def clock_drift_s(operations: Iterable[Operation]) -> float:
    """How far the wall clock went from the monotonic one during the run: what compares them allows for it."""
    offsets = [operation.ended - operation.ended_s for operation in operations]
    return max(offsets) - min(offsets) if offsets else 0.0


class _Grant(msgspec.Struct, frozen=True):
    """What an owner was told to have: a seat, from the answer on, for so long, or until they gave it up."""

    owner: str
    hold_id: UUID | None
    operation: Operation
    since_s: float
    until: float
    given_up_s: float
    sold: bool = False


class _Court:
    def __init__(self, history: History) -> None:
        self._history = history
        self._bounds = history.bounds
        self._slack_s = history.bounds.slack_s + clock_drift_s(history.operations)
        self._lines = {record.event_id: Timeline(record, self._slack_s) for record in history.events}
        self._by_hold: dict[UUID, list[Operation]] = defaultdict(list)
        self._by_owner: dict[tuple[UUID, Target, str], list[Operation]] = defaultdict(list)
        self._by_act: dict[tuple[UUID, Target, Act], list[Operation]] = defaultdict(list)
        for operation in history.operations:
            for hold_id in operation.hold_ids:
                self._by_hold[hold_id].append(operation)
            for target in _targets(operation):
                self._by_owner[operation.event_id, target, operation.owner].append(operation)
                self._by_act[operation.event_id, target, operation.act].append(operation)

    def _own(self) -> Iterator[tuple[Timeline, Operation]]:
        """Operations on an event of the organization they were asked in."""
        for operation in self._history.operations:
            line = self._lines.get(operation.event_id)
            if line is not None and line.record.organization_id == operation.organization_id:
                yield line, operation

    def _disturbed(self, since: float, until: float) -> bool:
        settle_s = self._bounds.settle_s
        return any(d.began <= until and since <= d.ended + settle_s for d in self._history.disturbances)

    # I1 --------------------------------------------------------------------------------------------------------
    def nothing_given_twice(self) -> _Count:
        """By the clients alone: nobody is given a seat that somebody else was promised for that whole time."""
        count = _Count()
        for line in self._lines.values():
            for ordinal in line.zone_nos:
                open_: list[_Grant] = []
                for grant in sorted(self._grants(line.record.event_id, ordinal), key=lambda g: g.since_s):
                    open_ = [earlier for earlier in open_ if earlier.until > grant.operation.began]
                    count.look(_given_again(ordinal, grant, open_, self._slack_s))
                    open_.append(grant)
        return count

    def _grants(self, event_id: UUID, ordinal: int) -> Iterator[_Grant]:
        """What clients were told to have of one seat."""
        done = [o for act in (*GIVES, Act.SELL) for o in self._by_act.get((event_id, ordinal, act), ())]
        for operation in done:
            if operation.outcome is not Outcome.DONE:
                continue
            sold = operation.act is Act.SELL
            hold = None if sold else self._given(operation, ordinal)
            until = float("inf") if sold else self._promised_until(operation, ordinal, hold)
            if until is None:
                continue
            if sold:
                enders = self._by_act.get((event_id, ordinal, Act.REVERT), [])
            else:
                own = self._by_owner[event_id, ordinal, operation.owner]
                enders = [later for later in own if later.act in (Act.RELEASE, Act.SELL)]
            # One that was under way already when this was asked, or that nobody knows the end of, may come after it.
            late = [e for e in enders if e.ended_s >= operation.began_s or e.outcome is Outcome.UNKNOWN]
            given_up_s = min((ender.began_s for ender in late), default=float("inf"))
            hold_id = hold.hold_id if hold is not None else _hold_id_of(operation, ordinal)
            yield _Grant(operation.owner, hold_id, operation, operation.ended_s, until, given_up_s, sold)

    def _given(self, operation: Operation, target: Target) -> HoldRecord | None:
        """The hold an operation made: by its id, or, where the client was told none, by whose and when it is."""
        line = self._lines[operation.event_id]
        hold_id = _hold_id_of(operation, target)
        if hold_id is not None:
            return line.holds.get(hold_id)
        for move in line.moves.get(target, ()):
            if move.row.verb is Verb.HOLD and move.session_id == operation.owner and self._within(move, operation):
                return None if move.row.hold_id is None else line.holds.get(move.row.hold_id)
        return None

    def _within(self, move: LoggedMove, operation: Operation) -> bool:
        """Whether the move can have been made by the operation."""
        if operation.began > move.committed_at + self._slack_s:
            return False
        return operation.outcome is Outcome.UNKNOWN or move.at <= operation.ended + self._slack_s

    def _promised_until(self, operation: Operation, target: Target, hold: HoldRecord | None) -> float | None:
        """The latest end that the owner was told; of a lock, which tells none, the one that was written down."""
        told = [operation.until] if operation.until is not None else []
        hold_id = _hold_id_of(operation, target)
        told += [
            later.until
            for later in (self._by_hold[hold_id] if hold_id is not None else ())
            if later.act is Act.EXTEND and later.outcome is Outcome.DONE and later.until is not None
        ]
        if told:
            return max(told)
        return None if hold is None else hold.held_until

    # I2 --------------------------------------------------------------------------------------------------------
    def nothing_acknowledged_lost(self) -> _Count:
        count = _Count()
        for line, operation in self._own():
            if operation.outcome is Outcome.DONE and operation.act in (*GIVES, Act.EXTEND):
                for target in _targets(operation):
                    count.look(self._hold_lost(line, operation, target))
            elif operation.outcome is Outcome.DONE and operation.act is Act.SELL:
                for target in _targets(operation):
                    count.look(self._sale_lost(line, operation, target))
            elif operation.outcome is Outcome.REFUSED and operation.code in HOLD_REFUSALS:
                for target in _targets(operation):
                    count.look(self._owner_refused(line, operation, target))
        return count

    def _hold_lost(self, line: Timeline, operation: Operation, target: Target) -> str | None:
        hold = self._given(operation, target)
        seat, given = _named(target), of_hold(_hold_id_of(operation, target))
        if hold is None:
            return f"{seat}: {operation.owner} was told to have it{given}, and there is no such hold"
        elsewhere = hold.ordinal != (target if isinstance(target, int) else None)
        if (elsewhere and hold.hold_id not in line.renumbered) or hold.owner != operation.owner:
            return f"{seat}: {operation.owner} was told to have it{given}, which is another's or of another seat"
        told = operation.until
        if told is not None and (hold.held_until is None or hold.held_until < told - MICROSECOND_S):
            return f"{seat}: {operation.owner} was told to have it{given} until {told:.3f}, and it ended earlier"
        end = line.ends.get(hold.hold_id)
        if end is None:
            return None
        if end.row.verb is Verb.EXPIRE:
            early = hold.held_until is None or end.committed_at + self._slack_s < hold.held_until
            return f"{seat}: hold {hold.hold_id} of {operation.owner} expired before its end" if early else None
        if not self._asked(operation.event_id, target, end, hold.owner):
            return f"{seat}: hold {hold.hold_id} of {operation.owner} was ended by {end.row.verb} that nobody asked for"
        return None

    def _sale_lost(self, line: Timeline, operation: Operation, target: Target) -> str | None:
        moves = line.moves.get(target, [])
        sold = [
            (n, move)
            for n, move in enumerate(moves)
            if move.row.verb is Verb.CONVERT and move.session_id == operation.owner and self._within(move, operation)
        ]
        wanted = sum(places.quantity for places in operation.places if ("zone", places.zone_no) == target) or 1
        if sum(move.row.quantity for _, move in sold) < wanted:
            return f"{_named(target)}: {operation.owner} was told to have bought it, and the log has no such sale"
        later = moves[sold[0][0] + 1 :] if isinstance(target, int) else []
        if later and not self._asked(operation.event_id, target, later[0], None):
            return f"{_named(target)}: sold to {operation.owner}, then taken by {later[0].row.verb} unasked"
        return None

    def _asked(self, event_id: UUID, target: Target, move: LoggedMove, owner: str | None) -> bool:
        """Whether somebody (or the one named) asked for this move and may have caused it."""
        return any(
            operation.outcome is not Outcome.REFUSED
            and (owner is None or operation.owner == owner)
            and self._within(move, operation)
            for act in ACTS_OF.get(move.row.verb, ())
            for operation in self._by_act.get((event_id, target, act), ())
        )

    def _owner_refused(self, line: Timeline, operation: Operation, target: Target) -> str | None:
        if not isinstance(target, int) or operation.act not in (Act.EXTEND, Act.RELEASE, Act.SELL):
            return None
        since, until = operation.began - self._slack_s, operation.ended + self._slack_s
        for span in line.possible(target, operation.began, operation.ended):
            hold = None if span.hold_id is None else line.holds.get(span.hold_id)
            if hold is None or hold.owner != operation.owner or not span.certain(since, until):
                continue
            if operation.hold_ids and hold.hold_id not in operation.hold_ids:
                continue  # it was asked for an earlier one
            if hold.held_until is None or hold.held_until > until:
                return f"seat {target}: {operation.owner} was refused {operation.act} ({operation.code}) of a live hold"
        return None

    # I3 --------------------------------------------------------------------------------------------------------
    def nothing_held_past_its_life(self) -> _Count:
        count = _Count()
        for line, operation, ordinal in self._seat_refusals():
            over = operation.began - self._bounds.grace_s - self._slack_s
            spans = line.possible(ordinal, operation.began - self._bounds.converge_s, operation.ended)
            lapsed = [span for span in spans if span.lapsed_by(over)]
            free = all(span.state is SeatState.AVAILABLE or span.lapsed_by(over) for span in spans)
            held = lapsed and free
            count.look(f"seat {ordinal} was refused to {operation.owner} {_after(lapsed, operation)}" if held else None)
        for line, operation, places in self._room_refusals():
            count.look(self._room_kept(line, operation, places))
        for line in self._lines.values():
            for hold in line.record.holds:
                count.look(self._outlived(line, hold))
        return count

    def _room_kept(self, line: Timeline, operation: Operation, places: Places) -> str | None:
        """Whether only holds that were over can have stood in the way."""
        over = operation.began - self._bounds.grace_s - self._slack_s
        steps = line.zone_possible(places.zone_no, operation.began - self._bounds.converge_s, operation.ended)
        lapsed = alive = 0
        for hold in line.record.holds:
            if (
                hold.ordinal is None
                and hold.zone_no == places.zone_no
                and hold.created_at < operation.ended + self._slack_s
            ):
                end = line.ends.get(hold.hold_id)
                ended = hold.ended_at if end is None else end.committed_at
                if ended is None or ended + self._slack_s + self._bounds.converge_s > operation.began:
                    late = hold.held_until is not None and hold.held_until < over
                    lapsed, alive = (lapsed + hold.quantity, alive) if late else (lapsed, alive + hold.quantity)
        taken = alive + max((step.sold for step in steps), default=0)
        room = self._capacity(line, places.zone_no) - taken
        if lapsed == 0 or room < places.quantity:
            return None
        return (
            f"zone {places.zone_no} refused {places.quantity} to {operation.owner} for {lapsed} places that were over"
        )

    def _outlived(self, line: Timeline, hold: HoldRecord) -> str | None:
        if hold.held_until is None:
            return None
        where = _where(hold)
        end = line.ends.get(hold.hold_id)
        if end is not None and end.row.verb in (Verb.CONVERT, Verb.RELEASE) and end.at > hold.held_until:
            return f"{where}: hold {hold.hold_id} was ended by {end.row.verb} {end.at - hold.held_until:.3f} s after its end"
        ended = line.record.last.read_at if end is None else end.at
        due = hold.held_until + self._bounds.grace_s + self._bounds.sweep_s + self._slack_s
        if ended <= due or self._disturbed(hold.held_until, due):
            return None
        return f"{where}: hold {hold.hold_id} was kept {ended - hold.held_until:.1f} s after its end"

    def _seat_refusals(self) -> Iterator[tuple[Timeline, Operation, int]]:
        for line, operation in self._own():
            if operation.act in GIVES and operation.outcome is Outcome.REFUSED and operation.code in SEAT_REFUSALS:
                ordinal = operation.refused_ordinal
                if ordinal is None and len(operation.ordinals) == 1 and not operation.places:
                    ordinal = operation.ordinals[0]
                if ordinal is not None:
                    yield line, operation, ordinal

    # I5 --------------------------------------------------------------------------------------------------------
    def log_complete(self) -> _Count:
        count = _Count()
        for line in self._lines.values():
            record = line.record
            for earlier, later in pairwise((*record.samples, record.last)):
                for fault in self._rewritten(earlier, later):
                    count.look(fault)
            for hold in record.holds:
                missing = hold.hold_id not in line.begins and not _split_off(hold)
                where = _where(hold)
                count.look(f"{where}: hold {hold.hold_id} is not in the log" if missing else None)
        for line, operation in self._own():
            if operation.act is Act.RELEASE and operation.outcome is Outcome.DONE:
                for hold_id in operation.hold_ids:
                    count.look(self._release_missing(line, operation, hold_id))
        return count

    def _rewritten(self, earlier: Sample, later: Sample) -> Iterator[str | None]:
        """Each earlier row stands in the later sample as it was, and no row came in behind."""
        now = {move.id: move for move in later.moves}
        known = {move.id for move in earlier.moves}
        for move in earlier.moves:
            if move.id not in now:
                yield f"{_row(move)} is gone from the log"
            else:
                yield None if now[move.id] == move else f"{_row(move)} was changed in the log"
        for move in later.moves:
            if move.id not in known and move.committed_at + self._slack_s < earlier.read_at:
                yield f"{_row(move)} was slipped into the log"

    def _release_missing(self, line: Timeline, operation: Operation, hold_id: UUID) -> str | None:
        hold, end = line.holds.get(hold_id), line.ends.get(hold_id)
        if hold is None or (end is not None and end.at <= operation.ended + self._slack_s):
            return None  # that a hold is missing is said elsewhere
        where = _where(hold)
        return f"{where}: the release of hold {hold_id} was acknowledged and is not in the log"

    # I6 --------------------------------------------------------------------------------------------------------
    def caches_converge(self) -> _Count:
        count = _Count()
        converge_s = self._bounds.converge_s
        for word in self._history.words:
            line = self._lines.get(word.event_id)
            if line is None or self._disturbed(word.began - converge_s, word.ended):
                continue
            for fault in Hearing(line, word, converge_s, self._slack_s).faults():
                count.look(fault)
        return count

    # I7 --------------------------------------------------------------------------------------------------------
    def walls_hold(self) -> _Count:
        count = _Count()
        owners = {hold.hold_id: record for record in self._history.events for hold in record.holds}
        for operation in self._history.operations:
            line = self._lines.get(operation.event_id)
            if line is not None and line.record.organization_id != operation.organization_id:
                count.look(_wall_fault(operation))
        for line in self._lines.values():
            for move in line.record.last.moves:
                if move.row.verb not in (Verb.EXPIRE, Verb.MIGRATE):  # the engine's doing, and the organiser's
                    count.look(self._unexplained(line.record, move))
        for word in self._history.words:
            for ordinal, hold_id in (word.holders or {}).items():
                record = owners.get(hold_id)
                foreign = record is not None and record.organization_id != word.organization_id
                count.look(f"{word.source} has seat {ordinal} in another organization's hold" if foreign else None)
        return count

    def _unexplained(self, record: EventRecord, move: LoggedMove) -> str | None:
        """A move is some client's doing, who asked for it in this organization."""
        row, target = move.row, target_of(move)
        owner = move.session_id if move.session_id is not None else str(move.user_id)
        if row.verb is Verb.REVERT_SALE:
            asked = self._by_act.get((record.event_id, target, Act.REVERT), [])
        else:
            asked = self._by_owner.get((record.event_id, target, owner), [])
        for operation in asked:
            if (
                operation.act in ACTS_OF.get(row.verb, ())
                and operation.outcome is not Outcome.REFUSED
                and operation.organization_id == record.organization_id
                and self._within(move, operation)
                and (not operation.hold_ids or row.hold_id in operation.hold_ids)
            ):
                return None
        return f"{_row(move)} was asked for by nobody of its organization"

    # I8 --------------------------------------------------------------------------------------------------------
    def nothing_free_refused(self) -> _Count:
        count = _Count()
        for line, operation, ordinal in self._seat_refusals():
            since = operation.began - self._bounds.converge_s
            if self._disturbed(since, operation.ended):
                continue
            spans = line.possible(ordinal, since, operation.ended)
            free = bool(spans) and all(span.state is SeatState.AVAILABLE for span in spans)
            told = f"seat {ordinal} was free and was refused to {operation.owner} ({operation.code})"
            count.look(f"{told} by {operation.process or 'the server'}" if free else None)
        for line, operation, places in self._room_refusals():
            count.look(self._room_refused(line, operation, places))
        return count

    def _room_refusals(self) -> Iterator[tuple[Timeline, Operation, Places]]:
        for line, operation in self._own():
            if operation.act in GIVES and operation.outcome is Outcome.REFUSED and operation.code in ZONE_REFUSALS:
                for places in operation.places if not operation.ordinals else ():
                    yield line, operation, places

    @staticmethod
    def _capacity(line: Timeline, zone_no: int) -> int:
        return {zone.zone_no: zone.capacity for zone in line.record.last.facts.zones}.get(zone_no, 0)

    def _room_refused(self, line: Timeline, operation: Operation, places: Places) -> str | None:
        since = operation.began - self._bounds.converge_s
        if self._disturbed(since, operation.ended):
            return None
        capacity = self._capacity(line, places.zone_no)
        steps = line.zone_possible(places.zone_no, since, operation.ended)
        room = min((capacity - step.held - step.sold for step in steps), default=0)
        if room < places.quantity:
            return None
        return f"zone {places.zone_no} had room for {room} and refused {places.quantity} to {operation.owner}"


def _targets(operation: Operation) -> list[Target]:
    return [*operation.ordinals, *(("zone", places.zone_no) for places in operation.places)]


def _hold_id_of(operation: Operation, target: Target) -> UUID | None:
    return dict(zip(_targets(operation), operation.hold_ids, strict=False)).get(target)


def _given_again(ordinal: int, grant: _Grant, open_: Sequence[_Grant], slack_s: float) -> str | None:
    for earlier in open_:
        if _promised_during(earlier, grant, slack_s):
            had = "had bought" if earlier.sold else "had"
            return f"seat {ordinal} was given to {grant.owner} while {earlier.owner} {had} it{of_hold(earlier.hold_id)}"
    return None


def _promised_during(earlier: _Grant, later: _Grant, slack_s: float) -> bool:
    """Whether the earlier one's promise covers all of the request that made the later one."""
    if earlier.hold_id is not None and earlier.hold_id == later.hold_id:
        return False
    request = later.operation
    return (
        earlier.since_s < request.began_s
        and request.ended_s < earlier.given_up_s
        and request.ended < earlier.until - slack_s
    )


def _split_off(hold: HoldRecord) -> bool:
    """Part of a session's places, taken out of a hold when some of it was sold or given back."""
    return hold.ordinal is None and hold.session_id is not None


def _wall_fault(operation: Operation) -> str | None:
    where = ", ".join(_named(target) for target in _targets(operation)) or f"event {operation.event_id}"
    if operation.outcome is Outcome.DONE:
        return f"{where}: {operation.act} was done for {operation.owner} of another organization"
    if operation.outcome is Outcome.REFUSED and (operation.code or "").lower() not in WALLS:
        return f"{where}: {operation.owner} of another organization was told {operation.code}"
    return None


def _named(target: Target) -> str:
    return f"seat {target}" if isinstance(target, int) else f"zone {target[1]}"


def _where(hold: HoldRecord) -> str:
    return _named(hold.ordinal if hold.ordinal is not None else ("zone", hold.zone_no))


def _row(move: LoggedMove) -> str:
    return f"row {move.id} ({_named(target_of(move))}, {move.row.verb}, version {move.row.version})"


def _after(lapsed: Sequence[Span], operation: Operation) -> str:
    span = lapsed[-1]
    assert span.until is not None
    return f"{operation.began - span.until:.3f} s after the end of hold {span.hold_id}"
