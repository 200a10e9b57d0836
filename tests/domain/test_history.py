"""The judge of a run's history: silent on every sound one, and never silent on a planted violation."""

from collections.abc import Callable
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.holds.lifecycle import SeatState, Verb
from holdfast.insight.history import PROMISE_OF, TITLES, Verdict, judge_history
from holdfast.insight.history_facts import (
    Act,
    Disturbance,
    EventRecord,
    History,
    Operation,
    Outcome,
    Word,
)
from holdfast.insight.invariants import judge
from tests.domain.engine import CAPACITY, LIFE_S, PIT, Engine, history_of, sound_run

T = 1_010.0
END = T + 60.0
replace = msgspec.structs.replace


def verdicts(history: History) -> dict[str, Verdict]:
    return {verdict.promise: verdict for verdict in judge_history(history)}


def broken(history: History) -> dict[str, str]:
    """The promises that are broken, with all that is said of it."""
    return {name: "; ".join(v.offenders) for name, v in verdicts(history).items() if not v.ok}


def with_operation(history: History, old: Operation, **changes: object) -> History:
    changed = [replace(o, **changes) if o is old else o for o in history.operations]
    assert changed != list(history.operations)
    return replace(history, operations=changed)


def with_event(history: History, change: Callable[[EventRecord], EventRecord]) -> History:
    return replace(history, events=[change(history.events[0]), *history.events[1:]])


def without_hold(hold_id: UUID) -> Callable[[EventRecord], EventRecord]:
    """As if the transaction of the only hold had never been: no hold, no rows, and the seat as before."""

    def change(record: EventRecord) -> EventRecord:
        moves = [move for move in record.last.moves if move.row.hold_id != hold_id]
        facts = record.last.facts
        seats = [
            replace(s, state=SeatState.AVAILABLE, version=0, hold_id=None, hold_type=None)
            if s.hold_id == hold_id
            else s
            for s in facts.seats
        ]
        active = [hold for hold in facts.active_holds if hold.hold_id != hold_id]
        facts = replace(facts, seats=seats, active_holds=active, log=[move.row for move in moves], occupancy=[])
        holds = [hold for hold in record.holds if hold.hold_id != hold_id]
        return replace(record, holds=holds, last=replace(record.last, moves=moves, facts=facts))

    return change


def asked(operation: Operation, t: float, **changes: object) -> Operation:
    """The same request at another time."""
    instants = {"began": t - 0.01, "ended": t + 0.01, "began_s": t - 1_000.01, "ended_s": t - 999.99}
    return replace(operation, **{**instants, **changes})


# Sound runs ------------------------------------------------------------------------------------------------------------
@given(st.integers(0, 2**32), st.integers(50, 300))
@settings(max_examples=100, deadline=None)
def test_a_sound_run_breaks_no_promise(seed: int, steps: int) -> None:
    assert broken(sound_run(seed, steps)) == {}


def test_every_promise_is_looked_into_in_a_sound_run() -> None:
    found = verdicts(sound_run(7, 400))
    assert list(found) == list(TITLES)
    assert all(verdict.ok and verdict.checked > 20 for verdict in found.values()), found


def test_every_invariant_of_an_event_belongs_to_a_promise() -> None:
    assert {invariant.name for invariant in judge(Engine().facts())} <= set(PROMISE_OF)


def test_a_detail_names_a_few_and_counts_all() -> None:
    engine = Engine()
    for n in range(6):
        engine.reserve(engine.buyer(n), n, T + n / 10)
    history = history_of(engine, t=T + 1)
    gone = replace(history.events[0], holds=[])
    verdict = verdicts(replace(history, events=[gone]))["I2"]
    assert (verdict.broken, len(verdict.offenders)) == (6, 5)


# I1: no seat held or sold twice ----------------------------------------------------------------------------------------
def test_a_seat_given_to_two_buyers_is_found_by_what_they_were_told() -> None:
    engine = Engine()
    first = engine.reserve(engine.buyer(1), 3, T)
    history = with_event(history_of(engine, t=END), without_hold(first.hold_ids[0]))
    second = asked(first, T + 1, owner=engine.buyer(2), hold_ids=(UUID(int=99),))
    found = broken(replace(history, operations=[first, second]))
    assert f"seat 3 was given to {engine.buyer(2)} while {engine.buyer(1)} had it" in found["I1"]


def test_a_seat_sold_and_then_given_to_another_is_found() -> None:
    engine = Engine()
    engine.lock("s1", 2, T)
    sale = engine.sell("s1", 2, T + 1)
    again = asked(sale, T + 30, act=Act.RESERVE, owner=engine.buyer(1), hold_ids=(UUID(int=9),), until=T + 34)
    history = history_of(engine, t=END)
    found = broken(replace(history, operations=[*history.operations, again]))
    assert "seat 2" in found["I1"]
    assert "s1 had bought it" in found["I1"]


def test_a_hold_that_an_extension_prolonged_is_still_promised() -> None:
    engine = Engine()
    first = engine.reserve(engine.buyer(1), 0, T)
    engine.extend(engine.buyer(1), first.hold_ids[0], T + 3)
    second = asked(first, T + LIFE_S + 1.5, owner=engine.buyer(2), hold_ids=(UUID(int=99),))
    history = history_of(engine, t=T + 6)
    assert "seat 0" in broken(replace(history, operations=[*history.operations, second]))["I1"]


def test_an_extension_of_one_seat_of_a_request_promises_nothing_of_the_others() -> None:
    engine = Engine()
    both = engine.reserve_several(engine.buyer(1), (0, 1), T)
    engine.extend(engine.buyer(1), both.hold_ids[1], T + 3)
    engine.reserve(engine.buyer(2), 0, T + LIFE_S + 1)
    assert broken(history_of(engine, t=T + LIFE_S + 2)) == {}


def test_a_log_that_takes_a_taken_seat_is_found() -> None:
    engine = Engine()
    engine.reserve(engine.buyer(1), 4, T)
    engine.seats[4].state = SeatState.AVAILABLE
    engine.seats[4].hold = None
    engine.reserve(engine.buyer(2), 4, T + 1)
    found = broken(history_of(engine, t=T + 2))
    assert "seat 4" in found["I1"]
    assert {"I1", "I5"} <= set(found)


def test_a_seat_given_after_the_first_buyer_gave_it_back_is_nobodys_fault() -> None:
    engine = Engine()
    first = engine.reserve(engine.buyer(1), 3, T)
    engine.release(engine.buyer(1), first.hold_ids[0], T + 1)
    engine.reserve(engine.buyer(2), 3, T + 1.5)
    assert broken(history_of(engine, t=T + 2)) == {}


# I2: no acknowledged hold or sale lost ---------------------------------------------------------------------------------
def test_an_acknowledged_hold_that_is_not_there_is_found() -> None:
    engine = Engine()
    first = engine.reserve(engine.buyer(1), 5, T)
    found = broken(with_event(history_of(engine, t=T + 2), without_hold(first.hold_ids[0])))
    assert list(found) == ["I2"]
    assert f"seat 5: {engine.buyer(1)} was told to have it (hold {first.hold_ids[0]})" in found["I2"]


def test_an_acknowledged_sale_that_is_not_there_is_found() -> None:
    engine = Engine()
    engine.lock("s1", 1, T)
    sale = engine.sell("other", 1, T + 1)
    found = broken(with_operation(history_of(engine, t=T + 2), sale, outcome=Outcome.DONE, code=None, owner="s1"))
    assert "seat 1: s1 was told to have bought it" in found["I2"]


def test_a_hold_that_expired_before_its_end_is_found() -> None:
    engine = Engine()
    first = engine.reserve(engine.buyer(1), 2, T)
    engine._end(first.hold_ids[0], Verb.EXPIRE, T + 2)
    assert "seat 2" in broken(history_of(engine, t=T + 3))["I2"]


def test_a_hold_that_was_ended_though_nobody_asked_is_found() -> None:
    engine = Engine()
    first = engine.reserve(engine.buyer(1), 2, T)
    engine._end(first.hold_ids[0], Verb.RELEASE, T + 2)
    found = broken(history_of(engine, t=T + 3))
    assert "seat 2" in found["I2"]
    assert "nobody asked for" in found["I2"]


def test_an_extension_that_was_forgotten_is_found() -> None:
    engine = Engine()
    first = engine.reserve(engine.buyer(1), 0, T)
    engine.extend(engine.buyer(1), first.hold_ids[0], T + 2)
    history = history_of(engine, t=T + 3)
    shorter = [replace(hold, held_until=T + LIFE_S) for hold in history.events[0].holds]
    found = broken(with_event(history, lambda record: replace(record, holds=shorter)))
    assert "seat 0" in found["I2"]


def test_an_owner_who_is_told_that_a_live_hold_is_not_there_is_found() -> None:
    engine = Engine()
    first = engine.reserve(engine.buyer(1), 3, T)
    refused = asked(first, T + 1, act=Act.EXTEND, outcome=Outcome.REFUSED, code="hold_not_found", until=None)
    history = history_of(engine, t=T + 2)
    found = broken(replace(history, operations=[*history.operations, refused]))
    assert "seat 3" in found["I2"]


def test_a_sale_taken_back_unasked_is_found() -> None:
    engine = Engine()
    engine.lock("s1", 4, T)
    engine.sell("s1", 4, T + 1)
    revert = engine.revert("s2", 4, T + 2)
    history = history_of(engine, t=T + 3)
    found = broken(replace(history, operations=[o for o in history.operations if o is not revert]))
    assert "seat 4: sold to s1, then taken by revert_sale unasked" in found["I2"]


# I3: no seat held past its life ----------------------------------------------------------------------------------------
def refuse(engine: Engine, ordinal: int, t: float, code: str = "seat_held_by_another_user") -> None:
    """Plants a refusal, whatever the seat's state."""
    engine.operations[-1:] = [asked(engine._tell(Act.RESERVE, engine.buyer(8), t, ordinals=(ordinal,), code=code), t)]


def test_a_buyer_refused_after_the_holds_end_is_found_though_nobody_swept() -> None:
    engine = Engine()
    engine.reserve(engine.buyer(1), 1, T)
    refuse(engine, 1, T + LIFE_S + 1.0)
    found = broken(history_of(engine, t=T + LIFE_S + 2))
    assert list(found) == ["I3"]
    assert "seat 1 was refused" in found["I3"]


def test_a_buyer_refused_while_the_hold_lives_is_nobodys_fault() -> None:
    engine = Engine()
    engine.reserve(engine.buyer(1), 1, T)
    refuse(engine, 1, T + LIFE_S - 0.5)
    assert broken(history_of(engine, t=T + LIFE_S + 2)) == {}


def test_a_hold_that_nobody_swept_for_long_is_found() -> None:
    engine = Engine()
    engine.reserve(engine.buyer(1), 2, T)
    found = broken(history_of(engine, t=T + LIFE_S + 20))
    assert list(found) == ["I3"]
    assert "seat 2" in found["I3"]


def test_room_refused_for_holds_that_are_over_is_found_though_nobody_swept() -> None:
    engine = Engine()
    engine.reserve_places(engine.buyer(1), CAPACITY, T)
    refused = engine.reserve_places(engine.buyer(2), 2, T + 1)
    assert broken(history_of(engine, t=T + LIFE_S)) == {}
    engine.operations.append(asked(refused, T + LIFE_S + 1))
    found = broken(history_of(engine, t=T + LIFE_S + 2))
    assert list(found) == ["I3"]
    assert f"zone {PIT} refused 2" in found["I3"]


def test_a_sale_of_a_hold_that_was_over_is_found() -> None:
    engine = Engine()
    engine.lock("s1", 0, T)
    hold_id = engine.seats[0].hold
    assert hold_id is not None
    engine._end(hold_id, Verb.CONVERT, T + LIFE_S + 1)
    engine._tell(Act.SELL, "s1", T + LIFE_S + 1, ordinals=(0,))
    found = broken(history_of(engine, t=T + LIFE_S + 2))
    assert list(found) == ["I3"]
    assert "seat 0" in found["I3"]


# I4: counters equal truth ----------------------------------------------------------------------------------------------
def test_a_counter_that_drifted_is_found_in_the_end_and_on_the_way() -> None:
    engine = Engine()
    engine.reserve_places(engine.buyer(1), 3, T)
    engine.pit_held += 1
    assert f"zone {PIT}" in broken(history_of(engine, t=T + 1))["I4"]
    engine.sample(T + 1)
    engine.pit_held -= 1
    assert f"zone {PIT}" in broken(history_of(engine, t=T + 1))["I4"]


def test_places_given_beyond_capacity_are_found() -> None:
    engine = Engine()
    engine.reserve_places(engine.buyer(1), CAPACITY, T)
    engine._begin(None, 2, T + 1, user_id=UUID(engine.buyer(2)))
    assert f"zone {PIT}" in broken(history_of(engine, t=T + 2))["I4"]


@pytest.mark.parametrize(("zone", "state"), [(0, SeatState.HELD), (0, SeatState.SOLD), (PIT, SeatState.HELD)])
def test_an_occupancy_that_differs_from_what_is_taken_is_found(zone: int, state: SeatState) -> None:
    engine = Engine()
    engine.reserve(engine.buyer(1), 3, T)
    engine.counted[zone, state, "CART" if state is SeatState.HELD else ""] += 1
    found = broken(history_of(engine, t=T + 1))
    assert list(found) == ["I4"]
    assert f"zone {zone}" in found["I4"]


# I5: the log is complete and append-only -------------------------------------------------------------------------------
def busy() -> Engine:
    engine = Engine()
    first = engine.reserve(engine.buyer(1), 3, T)
    engine.reserve(engine.buyer(2), 4, T + 0.5)
    engine.sample(T + 1)
    engine.release(engine.buyer(1), first.hold_ids[0], T + 2)
    return engine


def test_a_row_that_is_gone_is_found() -> None:
    engine = busy()
    early = engine.samples[0]
    extra = replace(early.moves[1], id=77)
    engine.samples[0] = replace(early, moves=[*early.moves, extra])
    found = broken(history_of(engine, t=T + 3))
    assert list(found) == ["I5"]
    assert "row 77 (seat 4, hold, version 1) is gone" in found["I5"]


def test_a_row_that_was_changed_is_found() -> None:
    engine = busy()
    engine.moves[0] = replace(engine.moves[0], user_id=UUID(engine.buyer(1)), at=engine.moves[0].at - 0.1)
    found = broken(history_of(engine, t=T + 3))
    assert list(found) == ["I5"]
    assert "seat 3" in found["I5"]
    assert "was changed" in found["I5"]


def test_a_row_that_was_slipped_in_is_found() -> None:
    engine = busy()
    early = engine.samples[0]
    engine.samples[0] = replace(early, moves=early.moves[1:])
    found = broken(history_of(engine, t=T + 3))
    assert "row 1 (seat 3, hold, version 1) was slipped in" in found["I5"]


def test_a_version_without_its_row_is_found() -> None:
    engine = busy()
    del engine.moves[-1]
    found = broken(history_of(engine, t=T + 3))
    assert "seat 3" in found["I5"]


def test_a_hold_without_its_row_is_found() -> None:
    engine = busy()
    hold = engine.holds[UUID(int=1_000_000)]
    stray = replace(hold, hold_id=UUID(int=5), ordinal=5)
    history = history_of(engine, t=T + 3)
    found = broken(with_event(history, lambda record: replace(record, holds=[*record.holds, stray])))
    assert "seat 5: hold" in found["I5"]


def test_an_acknowledged_release_that_is_not_there_is_found() -> None:
    engine = Engine()
    first = engine.reserve(engine.buyer(1), 2, T)
    engine._tell(Act.RELEASE, engine.buyer(1), T + 1, ordinals=(2,), hold_ids=first.hold_ids)
    found = broken(history_of(engine, t=T + 2))
    assert "seat 2: the release of hold" in found["I5"]


# I6: caches converge ---------------------------------------------------------------------------------------------------
def told(change: Callable[[Word], Word], later_s: float = 3.0) -> dict[str, str]:
    engine = Engine()
    engine.reserve(engine.buyer(1), 3, T)
    engine.reserve_places(engine.buyer(1), 2, T)
    word = change(engine.word(T, later_s=later_s))
    return broken(history_of(engine, t=T + later_s + 0.1, words=[word]))


def test_a_cache_that_says_what_is_so_is_in_order() -> None:
    assert told(lambda word: word) == {}


def test_a_cache_that_shows_a_held_seat_as_free_is_found() -> None:
    found = told(lambda word: replace(word, states={**word.states, 3: SeatState.AVAILABLE}))
    assert list(found) == ["I6"]
    assert "process 1 says seat 3 is available" in found["I6"]


def test_a_cache_with_a_wrong_holder_is_found() -> None:
    found = told(lambda word: replace(word, holders={**(word.holders or {}), 3: UUID(int=66)}))
    assert "seat 3" in found["I6"]
    found = told(lambda word: replace(word, holders={**(word.holders or {}), 5: UUID(int=66)}))
    assert "seat 5" in found["I6"]


def test_a_cache_without_a_live_hold_is_found() -> None:
    assert "seat 3" in told(lambda word: replace(word, holders={}))["I6"]


def test_a_cache_whose_bits_are_wrong_is_found() -> None:
    assert "seat 3 free" in told(lambda word: replace(word, taken=set()))["I6"]
    assert "seat 5 taken" in told(lambda word: replace(word, taken={3, 5}))["I6"]


@pytest.mark.parametrize("zone", [0, PIT])
def test_a_cache_that_counts_wrong_is_found(zone: int) -> None:
    key = (zone, SeatState.HELD)
    found = told(lambda word: replace(word, counts={**word.counts, key: word.counts[key] + 1}))
    assert f"zone {zone}" in found["I6"]


def test_a_cache_may_be_behind_for_a_second_and_for_five_after_a_disturbance() -> None:
    engine = Engine()
    before = engine.word(T)
    engine.reserve(engine.buyer(1), 3, T + 1)

    def at(later_s: float, *disturbances: Disturbance) -> set[str]:
        word = replace(before, began=T + 1 + later_s, ended=T + 1.01 + later_s)
        return set(broken(history_of(engine, t=T + 4.5, words=[word], disturbances=list(disturbances))))

    assert at(0.9) == set()
    assert at(2.0) == {"I6"}
    assert at(2.0, Disturbance("flush", T + 1, T + 1.1)) == set()
    assert at(2.0, Disturbance("flush", T - 9, T - 8)) == {"I6"}


# I7: no effect across organizations ------------------------------------------------------------------------------------
def test_a_move_that_nobody_of_the_organization_asked_for_is_found() -> None:
    engine, other = Engine(1), Engine(2)
    mine = engine.reserve(engine.buyer(1), 3, T)
    foreign = engine.reserve(other.buyer(1), 4, T + 1)
    history = history_of(engine, other, t=T + 2)
    found = broken(replace(history, operations=[mine]))
    assert list(found) == ["I7"]
    assert "seat 4" in found["I7"]
    assert "seat 3" not in found["I7"]
    found = broken(with_operation(history, foreign, organization_id=other.organization_id))
    assert "seat 4: reserve was done for" in found["I7"]


def test_a_stranger_who_learns_that_a_seat_is_held_is_found() -> None:
    engine, other = Engine(1), Engine(2)
    first = engine.reserve(engine.buyer(1), 3, T)
    history = history_of(engine, other, t=T + 2)
    stranger = asked(first, T + 1, owner=other.buyer(1), organization_id=other.organization_id, hold_ids=())
    told_of_it = replace(stranger, outcome=Outcome.REFUSED, code="seat_held_by_another_user")
    turned_away = replace(stranger, outcome=Outcome.REFUSED, code="event_not_found")
    assert broken(replace(history, operations=[first, turned_away])) == {}
    assert "seat 3" in broken(replace(history, operations=[first, told_of_it]))["I7"]


def test_a_cache_with_another_organizations_hold_is_found() -> None:
    engine, other = Engine(1), Engine(2)
    engine.reserve(engine.buyer(1), 3, T)
    theirs = other.reserve(other.buyer(1), 3, T)
    word = replace(engine.word(T, later_s=2), holders={3: theirs.hold_ids[0]})
    found = broken(history_of(engine, other, t=T + 3, words=[word]))
    assert "seat 3 in another organization's hold" in found["I7"]


# I8: no free seat refused ----------------------------------------------------------------------------------------------
def test_a_free_seat_that_is_refused_is_found() -> None:
    engine = Engine()
    refuse(engine, 5, T + 2)
    refuse(engine, 4, T + 2, "seat_not_available")
    found = broken(history_of(engine, t=T + 3))
    assert list(found) == ["I8"]
    assert "seat 5 was free" in found["I8"]
    assert "seat 4 was free" in found["I8"]


def test_a_seat_refused_long_after_its_release_is_found_and_shortly_after_it_is_not() -> None:
    for later_s, expected in ((0.5, set()), (2.5, {"I8"})):
        engine = Engine()
        first = engine.reserve(engine.buyer(1), 3, T)
        engine.release(engine.buyer(1), first.hold_ids[0], T + 1)
        refuse(engine, 3, T + 1 + later_s)
        assert set(broken(history_of(engine, t=T + 4))) == expected


def test_room_that_is_refused_is_found() -> None:
    engine = Engine()
    full = engine.reserve_places(engine.buyer(1), CAPACITY, T)
    refused = engine.reserve_places(engine.buyer(2), 2, T + 1)
    assert refused.outcome is Outcome.REFUSED
    assert broken(history_of(engine, t=T + 2)) == {}
    engine.release(engine.buyer(1), full.hold_ids[0], T + 2)
    engine.operations.append(asked(refused, T + 4))
    assert f"zone {PIT} had room" in broken(history_of(engine, t=T + 5))["I8"]


def test_a_refusal_during_a_disturbance_is_let_pass() -> None:
    engine = Engine()
    refuse(engine, 5, T + 2)
    assert broken(history_of(engine, t=T + 3, disturbances=[Disturbance("valkey", T, T + 1)])) == {}
