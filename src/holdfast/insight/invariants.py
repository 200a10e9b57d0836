"""What must be true of an event at every instant, and the comparison that finds where it is not.

`judge` is pure; `check_event` reads the facts first. Each invariant looks at the facts by a way of its own, so that one
fault in the engine is seldom hidden by the same fault in its examiner.
"""

from collections.abc import Collection, Iterable
from uuid import UUID

from holdfast.holds.lifecycle import GaCounts, IllegalHistory, LogRow, Replayed, SeatState, replay
from holdfast.insight.event_facts import EventFacts
from holdfast.insight.ticket_invariants import (
    completed_checkouts_have_tickets,
    holds_end_with_their_checkout,
    money_is_settled,
    tickets_stand_on_sales,
)
from holdfast.insight.verdict import Invariant, verdict
from holdfast.kernel.errors import EventNotFound
from holdfast.store.postgres.database import Database
from holdfast.store.postgres.invariants import read_event_facts


async def check_event(
    database: Database, organization_id: UUID, event_id: UUID, acknowledged: Collection[UUID] = ()
) -> list[Invariant]:
    """Safe at any time, also under load. `acknowledged`: holds that clients were told they have, or had."""
    facts = await read_event_facts(database, organization_id, event_id, acknowledged)
    if facts is None:
        raise EventNotFound
    return judge(facts)


def judge(facts: EventFacts) -> list[Invariant]:
    """Every invariant, kept or broken, in a fixed order."""
    return [
        _no_seat_taken_twice(facts),
        _acknowledged_holds_exist(facts),
        _log_replays(facts),
        _counters_are_true(facts),
        _occupancy_is_true(facts),
        _one_active_hold_a_seat(facts),
        _holds_and_seats_agree(facts),
        tickets_stand_on_sales(facts),
        completed_checkouts_have_tickets(facts),
        holds_end_with_their_checkout(facts),
        money_is_settled(facts),
    ]


def _no_seat_taken_twice(facts: EventFacts) -> Invariant:
    taken: set[int] = set()
    faults: list[str] = []
    moves = 0
    for row in facts.log:
        if row.ordinal is None:
            continue
        moves += 1
        if row.old_state is SeatState.AVAILABLE and row.new_state is not SeatState.AVAILABLE:
            if row.ordinal in taken:
                faults.append(f"seat {row.ordinal} was taken by {row.verb} (version {row.version}) while it was taken")
            taken.add(row.ordinal)
        elif row.new_state is SeatState.AVAILABLE:
            taken.discard(row.ordinal)
    return verdict("no seat is held or sold twice", faults, f"{moves} moves of {len(facts.seats)} seats")


def _acknowledged_holds_exist(facts: EventFacts) -> Invariant:
    faults = [f"hold {hold_id} was acknowledged and is not there" for hold_id in facts.unknown_holds]
    kept = f"{facts.acknowledged} acknowledged holds" if facts.acknowledged else "none were given to look for"
    return verdict("every acknowledged hold exists", faults, kept)


def _log_replays(facts: EventFacts) -> Invariant:
    name = "the state log replays exactly to the inventory"
    capacities = {zone.zone_no: zone.capacity for zone in facts.zones}
    try:
        told = replay(facts.log, capacities=capacities, changes=facts.layout_changes)
    except IllegalHistory as error:
        return Invariant(name, False, str(error))
    faults = [*_seat_differences(facts, told), *_zone_differences(facts, told)]
    return verdict(name, faults, f"{len(facts.log)} rows")


def _seat_differences(facts: EventFacts, told: Replayed) -> list[str]:
    faults = [
        f"seat {ordinal} is in the log, not in the inventory"
        for ordinal in sorted(told.seats.keys() - {seat.ordinal for seat in facts.seats})
    ]
    for seat in facts.seats:
        state = told.seats.get(seat.ordinal, SeatState.AVAILABLE)
        version = told.versions.get(seat.ordinal, told.base_version)
        hold_id = told.holds.get(seat.ordinal)
        if (seat.state, seat.version, seat.hold_id) != (state, version, hold_id):
            faults.append(
                f"seat {seat.ordinal} is {_said(seat.state, seat.version, seat.hold_id)},"
                f" by the log {_said(state, version, hold_id)}"
            )
    return faults


def _said(state: SeatState, version: int, hold_id: UUID | None) -> str:
    return f"{state} at version {version}" + (f" in hold {hold_id}" if hold_id else "")


def _zone_differences(facts: EventFacts, told: Replayed) -> list[str]:
    faults: list[str] = []
    for zone in facts.zones:
        counts = told.zones.get(zone.zone_no, GaCounts())
        if (zone.held, zone.sold, zone.blocked) != (counts.held, counts.sold, counts.blocked):
            faults.append(
                f"zone {zone.zone_no} counts {zone.held} held, {zone.sold} sold and {zone.blocked} blocked,"
                f" by the log {counts.held}, {counts.sold} and {counts.blocked}"
            )
    return faults


def _counters_are_true(facts: EventFacts) -> Invariant:
    live: dict[int, int] = {}
    for hold in facts.active_holds:
        if hold.ordinal is None:
            live[hold.zone_no] = live.get(hold.zone_no, 0) + hold.quantity
    sold = _sold_places(facts.log)
    faults: list[str] = []
    for zone in facts.zones:
        if zone.held != live.pop(zone.zone_no, 0) or zone.sold != sold.pop(zone.zone_no, 0):
            faults.append(f"zone {zone.zone_no} counts {zone.held} held and {zone.sold} sold; holds and sales differ")
        if zone.held + zone.sold + zone.blocked > zone.capacity:
            given = zone.held + zone.sold + zone.blocked
            faults.append(f"zone {zone.zone_no} gave {given} of {zone.capacity} places")
    strays = sorted({zone_no for counts in (live, sold) for zone_no, count in counts.items() if count})
    faults += [f"zone {zone_no} has holds or sales but no counter" for zone_no in strays]
    return verdict("counters equal live holds and sales, within capacity", faults, f"{len(facts.zones)} zones")


def _sold_places(log: Iterable[LogRow]) -> dict[int, int]:
    sold: dict[int, int] = {}
    for row in log:
        if row.ordinal is None and row.zone_no is not None:
            change = (row.new_state is SeatState.SOLD) - (row.old_state is SeatState.SOLD)
            sold[row.zone_no] = sold.get(row.zone_no, 0) + change * row.quantity
    return sold


def _occupancy_is_true(facts: EventFacts) -> Invariant:
    """Every seat and place that is taken stands in the counters, by zone, state and hold type; and nothing else does."""
    truth: dict[tuple[int, SeatState, str], int] = {}

    def add(zone_no: int, state: SeatState, hold_type: str, places: int) -> None:
        truth[zone_no, state, hold_type] = truth.get((zone_no, state, hold_type), 0) + places

    for seat in facts.seats:
        if seat.state is not SeatState.AVAILABLE:
            add(seat.zone_no, seat.state, (seat.hold_type or "") if seat.state is SeatState.HELD else "", 1)
    for hold in facts.active_holds:
        if hold.ordinal is None:
            add(hold.zone_no, SeatState.HELD, hold.hold_type, hold.quantity)
    for zone in facts.zones:
        if zone.sold:
            add(zone.zone_no, SeatState.SOLD, "", zone.sold)
        if zone.blocked:
            add(zone.zone_no, SeatState.BLOCKED, "", zone.blocked)
    told: dict[tuple[int, SeatState, str], int] = {}
    for count in facts.occupancy:
        at = (count.zone_no, count.state, count.hold_type)
        told[at] = told.get(at, 0) + count.places
    faults = [
        f"occupancy of zone {zone_no} says {told.get((zone_no, state, hold_type), 0)} {state}"
        f"{f' as {hold_type}' if hold_type else ''}, there are {truth.get((zone_no, state, hold_type), 0)}"
        for zone_no, state, hold_type in sorted(truth.keys() | told.keys())
        if told.get((zone_no, state, hold_type), 0) != truth.get((zone_no, state, hold_type), 0)
    ]
    return verdict("occupancy equals what is held, sold and blocked", faults, f"{len(truth)} counters")


def _one_active_hold_a_seat(facts: EventFacts) -> Invariant:
    seen: dict[int, UUID] = {}
    faults: list[str] = []
    for hold in facts.active_holds:
        if hold.ordinal is None:
            continue
        first = seen.setdefault(hold.ordinal, hold.hold_id)
        if first != hold.hold_id:
            faults.append(f"seat {hold.ordinal} has the active holds {first} and {hold.hold_id}")
    return verdict("no seat has two active holds", faults, f"{len(seen)} seats with an active hold")


def _holds_and_seats_agree(facts: EventFacts) -> Invariant:
    holds = {hold.hold_id: hold for hold in facts.active_holds if hold.ordinal is not None}
    held = {seat.ordinal: seat for seat in facts.seats if seat.state is SeatState.HELD}
    faults: list[str] = []
    for seat in facts.seats:
        if (seat.state is SeatState.HELD) != (seat.hold_id is not None):
            faults.append(f"seat {seat.ordinal} is {seat.state} with hold {seat.hold_id}")
    for seat in held.values():
        hold = None if seat.hold_id is None else holds.get(seat.hold_id)
        if hold is None or hold.ordinal != seat.ordinal:
            faults.append(f"seat {seat.ordinal} is held by {seat.hold_id}, which is no active hold of it")
        elif (hold.hold_type, hold.held_until) != (seat.hold_type, seat.held_until):
            faults.append(f"seat {seat.ordinal} and its hold {hold.hold_id} differ in type or end")
    for hold in holds.values():
        assert hold.ordinal is not None
        if hold.ordinal not in held or held[hold.ordinal].hold_id != hold.hold_id:
            faults.append(f"hold {hold.hold_id} is active, and seat {hold.ordinal} is not in it")
    return verdict("holds and seats agree", faults, f"{len(held)} held seats")
