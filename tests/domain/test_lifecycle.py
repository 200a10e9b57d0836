import uuid
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.holds.lifecycle import (
    BOOKING_STATES,
    HOLD_ENDS_AS,
    LEGAL_MOVES,
    SEAT_STATES,
    Actor,
    BookingState,
    GaCounts,
    HoldStatus,
    IllegalHistory,
    LayoutChange,
    LogRow,
    SeatState,
    Verb,
    find_move,
    may_ask,
    replay,
)

AVAILABLE, HELD, SOLD, BLOCKED = SeatState
ONE, TWO = uuid.UUID(int=1), uuid.UUID(int=2)


def move(verb: Verb, old: SeatState, new: SeatState, version: int, **fields: Any) -> LogRow:
    return LogRow(
        **{
            "ordinal": 0,
            "zone_no": 0,
            "old_state": old,
            "new_state": new,
            "verb": verb,
            "version": version,
            **fields,
        }
    )


def places(verb: Verb, old: SeatState, new: SeatState, quantity: int) -> LogRow:
    return LogRow(ordinal=None, zone_no=3, quantity=quantity, old_state=old, new_state=new, verb=verb)


def test_the_table_of_moves_is_exactly_the_documented_one() -> None:
    assert {(m.old_state, m.new_state, m.verb) for m in LEGAL_MOVES} == {
        (AVAILABLE, HELD, Verb.HOLD),
        (HELD, AVAILABLE, Verb.RELEASE),
        (HELD, AVAILABLE, Verb.EXPIRE),
        (HELD, SOLD, Verb.CONVERT),
        (AVAILABLE, SOLD, Verb.DIRECT_SALE),
        (SOLD, AVAILABLE, Verb.REVERT_SALE),
        (AVAILABLE, BLOCKED, Verb.BLOCK),
        (HELD, BLOCKED, Verb.BLOCK),
        (SOLD, BLOCKED, Verb.BLOCK),
        (BLOCKED, AVAILABLE, Verb.UNBLOCK),
        (BLOCKED, SOLD, Verb.UNBLOCK),
        (HELD, AVAILABLE, Verb.MIGRATE),
        (SOLD, AVAILABLE, Verb.MIGRATE),
        (BLOCKED, AVAILABLE, Verb.MIGRATE),
        (AVAILABLE, HELD, Verb.MIGRATE),
        (AVAILABLE, SOLD, Verb.MIGRATE),
        (AVAILABLE, BLOCKED, Verb.MIGRATE),
    }
    assert len({(m.old_state, m.new_state, m.verb) for m in LEGAL_MOVES}) == len(LEGAL_MOVES)


@pytest.mark.parametrize(
    ("verb", "actors"),
    [
        (Verb.HOLD, {Actor.CUSTOMER, Actor.ADMIN, Actor.API}),
        (Verb.RELEASE, set(Actor)),
        (Verb.EXPIRE, {Actor.SYSTEM}),
        (Verb.REVERT_SALE, {Actor.ADMIN, Actor.API}),
        (Verb.BLOCK, {Actor.ADMIN}),
        (Verb.UNBLOCK, {Actor.ADMIN}),
        (Verb.MIGRATE, {Actor.ADMIN, Actor.API}),
    ],
)
def test_each_verb_has_those_who_may_ask_for_it(verb: Verb, actors: set[Actor]) -> None:
    assert {actor for actor in Actor if may_ask(verb, actor)} == actors


def test_booking_v2_has_one_word_for_each_state() -> None:
    assert {ours: SEAT_STATES[theirs] for ours, theirs in BOOKING_STATES.items()} == {s: s for s in SeatState}
    assert set(SEAT_STATES) == set(BookingState)
    assert BOOKING_STATES[HELD] is BookingState.LOCKED


def test_every_move_out_of_held_ends_the_hold_unless_it_only_gets_another_number() -> None:
    assert set(HOLD_ENDS_AS) == {m.verb for m in LEGAL_MOVES if m.old_state is HELD} - {Verb.MIGRATE}
    assert set(HOLD_ENDS_AS.values()) == set(HoldStatus) - {HoldStatus.ACTIVE}


def test_a_log_folds_into_final_states() -> None:
    end = replay(
        [
            move(Verb.HOLD, AVAILABLE, HELD, 1, hold_id=ONE),
            move(Verb.HOLD, AVAILABLE, HELD, 1, ordinal=7, hold_id=TWO),
            move(Verb.EXPIRE, HELD, AVAILABLE, 2, hold_id=ONE),
            move(Verb.HOLD, AVAILABLE, HELD, 3, hold_id=TWO),
            move(Verb.CONVERT, HELD, SOLD, 4, hold_id=TWO),
            move(Verb.BLOCK, SOLD, BLOCKED, 5),
            move(Verb.UNBLOCK, BLOCKED, SOLD, 6),
        ]
    )
    assert end.seats == {0: SOLD, 7: HELD}
    assert end.versions == {0: 6, 7: 1}
    assert end.holds == {7: TWO}
    assert end.zones == {}


def test_counted_places_fold_into_counts() -> None:
    end = replay(
        [
            places(Verb.HOLD, AVAILABLE, HELD, 10),
            places(Verb.RELEASE, HELD, AVAILABLE, 2),
            places(Verb.CONVERT, HELD, SOLD, 5),
            places(Verb.EXPIRE, HELD, AVAILABLE, 1),
            places(Verb.DIRECT_SALE, AVAILABLE, SOLD, 4),
            places(Verb.REVERT_SALE, SOLD, AVAILABLE, 3),
            places(Verb.BLOCK, AVAILABLE, BLOCKED, 1),
        ],
        capacities={3: 12},
    )
    assert end.zones == {3: GaCounts(held=2, sold=6, blocked=1)}
    assert end.zones[3].taken == 9


@pytest.mark.parametrize(
    ("rows", "position", "reason"),
    [
        ([move(Verb.HOLD, AVAILABLE, SOLD, 1)], 0, "no hold goes from"),
        ([move(Verb.CONVERT, HELD, SOLD, 1)], 0, "it was available"),
        ([move(Verb.HOLD, AVAILABLE, HELD, 2)], 0, "1 comes next"),
        ([move(Verb.HOLD, AVAILABLE, HELD, 1), move(Verb.CONVERT, HELD, SOLD, 3)], 1, "2 comes next"),
        ([move(Verb.HOLD, AVAILABLE, HELD, 1), move(Verb.CONVERT, HELD, SOLD, 1)], 1, "2 comes next"),
        ([move(Verb.HOLD, AVAILABLE, HELD, 1), move(Verb.HOLD, AVAILABLE, HELD, 2)], 1, "it was held"),
        (
            [
                move(Verb.HOLD, AVAILABLE, HELD, 1, hold_id=ONE),
                move(Verb.CONVERT, HELD, SOLD, 2, hold_id=TWO),
            ],
            1,
            "was in hold",
        ),
        ([move(Verb.HOLD, AVAILABLE, HELD, 1, quantity=2)], 0, "2 times"),
        ([move(Verb.HOLD, AVAILABLE, HELD, 1, ordinal=None, zone_no=None)], 0, "neither"),
        ([places(Verb.HOLD, AVAILABLE, HELD, 0)], 0, "0 places"),
        ([places(Verb.HOLD, AVAILABLE, HELD, 2), places(Verb.CONVERT, HELD, SOLD, 3)], 1, "there were 2"),
        (
            [places(Verb.HOLD, AVAILABLE, HELD, 4), places(Verb.DIRECT_SALE, AVAILABLE, SOLD, 2)],
            1,
            "6 places of 5",
        ),
    ],
)
def test_an_impossible_row_is_refused_with_its_position(rows: list[LogRow], position: int, reason: str) -> None:
    with pytest.raises(IllegalHistory, match=reason) as caught:
        replay(rows, capacities={3: 5})
    assert caught.value.position == position
    assert caught.value.row is rows[position]


def test_seats_may_begin_blocked_and_at_another_version() -> None:
    end = replay([move(Verb.UNBLOCK, BLOCKED, AVAILABLE, 2)], initial={0: BLOCKED}, initial_version=1)
    assert end.seats == {0: AVAILABLE}


@st.composite
def histories(draw: st.DrawFn) -> list[LogRow]:
    """Legal walks of a few seats and one counted zone, interleaved."""
    states = dict.fromkeys(range(3), AVAILABLE)
    versions = dict.fromkeys(range(3), 0)
    counts = dict.fromkeys(SeatState, 0)
    rows: list[LogRow] = []
    for _ in range(draw(st.integers(0, 25))):
        if draw(st.booleans()):
            ordinal = draw(st.integers(0, 2))
            step = draw(st.sampled_from([m for m in LEGAL_MOVES if m.old_state is states[ordinal]]))
            states[ordinal], versions[ordinal] = step.new_state, versions[ordinal] + 1
            row = move(step.verb, step.old_state, step.new_state, versions[ordinal], ordinal=ordinal)
        else:
            choices = [m for m in LEGAL_MOVES if m.old_state is AVAILABLE or counts[m.old_state]]
            step = draw(st.sampled_from(choices))
            most = 9 if step.old_state is AVAILABLE else counts[step.old_state]
            quantity = draw(st.integers(1, most))
            counts[step.old_state] -= quantity
            counts[step.new_state] += quantity
            row = places(step.verb, step.old_state, step.new_state, quantity)
        rows.append(row)
    return rows


@given(histories())
def test_every_legal_walk_replays_to_where_it_ended(rows: list[LogRow]) -> None:
    end = replay(rows)
    for ordinal, state in end.seats.items():
        own = [row for row in rows if row.ordinal == ordinal]
        assert state is own[-1].new_state
        assert end.versions[ordinal] == len(own)
    for counts in end.zones.values():
        assert min(counts.held, counts.sold, counts.blocked) >= 0


@given(histories(), st.data())
def test_a_log_that_lost_a_seats_row_is_found_out(rows: list[LogRow], data: st.DataObject) -> None:
    last = {row.ordinal: position for position, row in enumerate(rows)}
    inner = [p for p, row in enumerate(rows) if row.ordinal is not None and last[row.ordinal] != p]
    if not inner:
        return
    lost = data.draw(st.sampled_from(inner))
    with pytest.raises(IllegalHistory):
        replay(rows[:lost] + rows[lost + 1 :])


@given(st.sampled_from(SeatState), st.sampled_from(SeatState), st.sampled_from(Verb))
def test_only_moves_of_the_table_can_be_replayed(old: SeatState, new: SeatState, verb: Verb) -> None:
    row = msgspec.structs.replace(move(verb, old, new, 1))
    if find_move(old, new, verb) is None:
        with pytest.raises(IllegalHistory):
            replay([row], initial={0: old})
    else:
        assert replay([row], initial={0: old}).seats == {0: new}


# Another version of the layout --------------------------------------------------------------------------------------
LEFT = [
    move(Verb.HOLD, AVAILABLE, HELD, 1, ordinal=5),
    move(Verb.MIGRATE, HELD, AVAILABLE, 2, ordinal=5),
]
CHANGE = LayoutChange(after_rows=2, base_version=7, capacities={3: 10})


def test_after_a_change_of_the_layout_every_number_begins_free_at_the_base_version() -> None:
    entered = move(Verb.MIGRATE, AVAILABLE, HELD, 8, ordinal=1)
    bought = move(Verb.CONVERT, HELD, SOLD, 9, ordinal=1)
    end = replay([*LEFT, entered, bought], changes=[CHANGE])
    assert (end.seats, end.versions, end.base_version) == ({1: SOLD}, {1: 9}, 7)
    assert replay(LEFT, changes=[CHANGE]).seats == {}
    assert replay([], changes=[LayoutChange(after_rows=0, base_version=1)]).base_version == 1


@pytest.mark.parametrize(
    ("rows", "changes", "said"),
    [
        (LEFT[:1], [LayoutChange(after_rows=1, base_version=7)], "still held"),
        ([*LEFT, move(Verb.MIGRATE, AVAILABLE, HELD, 3, ordinal=5)], [CHANGE], "8 comes next"),
        (LEFT, [LayoutChange(after_rows=2, base_version=1)], "went on from 1"),
        ([places(Verb.HOLD, AVAILABLE, HELD, 2)], [LayoutChange(after_rows=1, base_version=1)], "2 places taken"),
        ([places(Verb.HOLD, AVAILABLE, HELD, 11)], [CHANGE], "of 10"),
    ],
)  # fmt: skip
def test_what_was_left_behind_in_old_numbers_is_found(
    rows: list[LogRow], changes: list[LayoutChange], said: str
) -> None:
    with pytest.raises(IllegalHistory, match=said):
        replay(rows, changes=changes)


def test_capacities_count_for_their_own_version_of_the_layout() -> None:
    more = [places(Verb.MIGRATE, HELD, AVAILABLE, 9), places(Verb.MIGRATE, AVAILABLE, HELD, 9)]
    rows = [places(Verb.HOLD, AVAILABLE, HELD, 9), *more]
    change = LayoutChange(after_rows=2, base_version=1, capacities={3: 10})
    with pytest.raises(IllegalHistory, match="fills 9 places of 8"):
        replay(rows, changes=[change], capacities={3: 8})
    assert replay(rows, changes=[change], capacities={3: 9}).zones[3].held == 9
