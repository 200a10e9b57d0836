"""The orphan rule, in pictures and against its slow twin."""

from itertools import combinations
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from holdfast.allocation.floor import Floor, floor_of
from holdfast.allocation.orphans import NEARLY_FULL, NO_ALTERNATIVE, Verdict, judge, placing, strands_nobody
from holdfast.seating.validate import parse_layout
from tests.domain import allocation_twin as twin
from tests.domain.allocation_twin import Drawn, House

LAYOUT = UUID("0198c0de-0000-7000-8000-000000000001")


def floor_for(house: House) -> Floor:
    return floor_of(parse_layout(LAYOUT, house.config()))


def free_in(house: House) -> NDArray[np.bool_]:
    free = np.zeros(len(house.seats), np.bool_)
    free[house.marked(".-")] = True
    return free


def one_row(picture: str) -> House:
    return House([Drawn("Stalls", "A", picture)])


def verdict(picture: str, *numbers: int) -> Verdict:
    """On picking these numbers of a row. Alternatives and stranded seats come as numbers, too."""
    house = one_row(picture)
    by_number = {seat.number: ordinal for ordinal, seat in enumerate(house.seats)}
    found = judge(floor_for(house), free_in(house), [by_number[n] for n in numbers], house.marked("o"))

    def numbered(ordinals: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(house.seats[ordinal].number for ordinal in ordinals)

    return Verdict(numbered(found.stranded), found.excuse, tuple(map(numbered, found.alternatives)))


# In pictures ----------------------------------------------------------------------------------------------------------
def test_a_pick_that_leaves_one_seat_at_the_end_names_it_and_what_to_take_instead() -> None:
    found = verdict("......", 2)
    assert not found.legal
    assert found.stranded == (1,)
    assert found.excuse is None
    assert found.alternatives == ((1,), (3,), (4,))


def test_a_pick_at_the_end_or_two_seats_from_it_leaves_nobody_alone() -> None:
    assert verdict("......", 1).legal
    assert verdict("......", 3).legal
    assert verdict("......", 3, 4).legal


@pytest.mark.parametrize("picture", ["..x...", "..|...", ".. ..."])
def test_taken_seats_aisles_and_missing_numbers_are_walls(picture: str) -> None:
    row = "......" if picture[2] == "|" else picture
    assert verdict(row, 1).legal == (picture[2] == "|")
    assert verdict(picture, 1).stranded == (2,)


def test_a_seat_that_was_alone_before_cannot_be_stranded() -> None:
    assert verdict(".x....", 3) == Verdict()
    assert verdict(".x.x.x", 3) == Verdict(), "only single seats remain in the row"


def test_two_picks_that_close_in_on_a_seat_strand_it() -> None:
    found = verdict(".......", 3, 5)
    assert found.stranded == (4,)
    assert found.alternatives[0] in ((3, 4), (4, 5))


def test_a_row_that_is_over_nine_tenths_taken_is_excused() -> None:
    assert verdict("xxxxxxxxx...xxxxxxxxxxxxxxxxxxxx", 11).excuse == NEARLY_FULL  # 29 of 32
    exactly = verdict("x" * 27 + "...", 29)
    assert exactly.excuse is None, "exactly 90 % is not over 90 %"
    assert exactly.alternatives == ((28,), (30,))


def test_a_choice_without_an_alternative_of_its_size_is_excused() -> None:
    assert verdict("...x.x", 1, 2).excuse == NO_ALTERNATIVE
    assert verdict("...x..", 1, 2).excuse is None
    assert verdict("...x..", 1, 2).alternatives == ((5, 6),)
    assert verdict("...|.", 2).alternatives == ((1,), (3,), (4,))


def test_what_a_buyer_has_already_counts_as_part_of_the_choice() -> None:
    assert verdict(".o....", 3).legal
    assert verdict(".o....", 2).legal, "asking again for one's own seats strands nobody"
    assert verdict("o...xx", 2, 3).excuse == NO_ALTERNATIVE, "three of four seats, whichever, leave one alone"
    assert verdict("o..x...", 2).excuse == NO_ALTERNATIVE, "two seats together leave one of three alone in either part"
    assert verdict("x..x...", 2).alternatives == ((5,), (7,)), "one seat alone has better ones"


def test_several_rows_are_judged_one_by_one() -> None:
    house = House([Drawn("Stalls", "A", "...."), Drawn("Stalls", "B", "x..."), Drawn("Stalls", "C", "....")])
    floor, free = floor_for(house), free_in(house)
    found = judge(floor, free, [1, 5, 6])  # A-2, B-2 and B-3
    assert found.stranded == (0, 7)
    assert found.excuse is None, "row B has nothing better, but row A has"
    assert found.alternatives[0] == (0, 5, 6), "what is excused may stay; it is the same again, with row A put right"


# Against the twin -----------------------------------------------------------------------------------------------------
rows = st.text("...x|o ", min_size=1, max_size=9).filter(lambda text: set(text) & set(".o"))


@st.composite
def picks(draw: st.DrawFn) -> tuple[House, list[int], list[int]]:
    drawn = [Drawn("Stalls", name, draw(rows)) for name in "AB"[: draw(st.integers(1, 2))]]
    house = House(drawn, backwards=draw(st.booleans()))
    takeable = house.marked(".o")
    picked = draw(st.lists(st.sampled_from(takeable), min_size=1, max_size=4, unique=True))
    return house, house.marked("o"), picked


@settings(max_examples=500, deadline=None)
@given(picks())
def test_every_verdict_is_that_of_the_twin(given_pick: tuple[House, list[int], list[int]]) -> None:
    house, own, picked = given_pick
    floor, free = floor_for(house), free_in(house)
    found = judge(floor, free, picked, own)
    open_seats = house.marked(".")
    alone = twin.stranded(house, open_seats, picked, own)
    assert set(found.stranded) == alone
    assert list(found.stranded) == sorted(alone)
    assert found.legal == twin.is_legal(house, open_seats, picked, own)
    chosen = {*picked, *own}
    said = {twin.excuse(house, open_seats, house.in_row(seat), chosen) for seat in alone}
    assert (found.excuse is not None) == bool(alone and None not in said)
    if found.excuse is not None:
        assert (NEARLY_FULL in found.excuse, NO_ALTERNATIVE in found.excuse) == ("full" in said, "none other" in said)
    assert found == judge(floor, free, picked, own)
    _check_alternatives(house, open_seats, picked, own, found)
    new = set(picked) - set(own)
    if len(new) == 1:
        flags = bytes(free.astype(np.uint8))
        assert strands_nobody(floor, flags, *new) == (not alone)


def _check_alternatives(house: House, free: list[int], picked: list[int], own: list[int], found: Verdict) -> None:
    new = set(picked) - set(own)
    assert len(found.alternatives) <= 3
    assert len(set(found.alternatives)) == len(found.alternatives)
    for seats in found.alternatives:
        assert not found.legal
        assert list(seats) == sorted(set(seats))
        assert len(seats) == len(new)
        assert set(seats) <= set(free)
        assert twin.is_legal(house, free, seats, own)
    if not found.legal and not own:
        assert found.alternatives, "whoever is refused is told what would do"
    rows_of_pick = {house.seats[seat].row for seat in new}
    if found.legal or len(rows_of_pick) > 1:
        return
    # In the same row first, and there the nearest first.
    (row,) = rows_of_pick
    same = [seats for seats in found.alternatives if {house.seats[s].row for s in seats} == {row}]
    assert list(found.alternatives[: len(same)]) == same
    middle = sum(house.seats[s].x for s in new) / len(new)
    whole = [
        abs(sum(house.seats[s].x for s in seats) / len(seats) - middle)
        for seats in combinations([s for s in free if house.seats[s].row == row], len(new))
        if len(house.pieces(seats)) == 1 and not twin.stranded(house, free, seats)
    ]
    if whole:
        nearest = found.alternatives[0]
        assert abs(sum(house.seats[s].x for s in nearest) / len(nearest) - middle) == pytest.approx(min(whole))


short_runs = st.lists(st.integers(1, 7), max_size=4).filter(lambda runs: sum(runs) <= 13)


@settings(max_examples=150, deadline=None)
@given(short_runs, st.lists(st.integers(1, 3), min_size=1, max_size=4))
def test_pieces_find_their_runs_if_there_is_a_way(runs: list[int], pieces: list[int]) -> None:
    house = one_row("x".join("." * run for run in runs) or "x")
    free = house.marked(".")
    possible = any(
        sorted(map(len, house.pieces(seats))) == sorted(pieces) and not twin.stranded(house, free, seats)
        for seats in combinations(free, sum(pieces))
    )
    found = placing(runs, pieces)
    assert (found is not None) == possible
    if found is not None:
        assert len(found) == len(runs)
        assert sorted(piece for taken in found for piece in taken) == sorted(pieces)
