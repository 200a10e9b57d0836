"""Choosing seats: the ladder, in pictures and against its slow twin."""

from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from holdfast.allocation.choose import ASKED_FOR_ONLY, BLOCK, Choice, Rung, Strategy, Wish, choose
from holdfast.allocation.floor import Floor, floor_of
from holdfast.allocation.orphans import NO_ALTERNATIVE, judge
from holdfast.seating.validate import parse_layout
from tests.domain import allocation_twin as twin
from tests.domain.allocation_twin import Asked, Drawn, House
from tests.factories import theatre_config

LAYOUT = UUID("0198c0de-0000-7000-8000-000000000001")


def floor_for(house: House) -> Floor:
    return floor_of(parse_layout(LAYOUT, house.config()))


def flags(house: House, marks: str) -> NDArray[np.bool_]:
    column = np.zeros(len(house.seats), np.bool_)
    column[house.marked(marks)] = True
    return column


def drawn(*pictures: str, zone: str = "Stalls") -> House:
    return House([Drawn(zone, "ABCDEFG"[n], picture) for n, picture in enumerate(pictures)])


def chosen_in(house: House, quantity: int, **more: Any) -> Choice | None:
    if house.marked("-"):
        more["allowed"] = flags(house, ".")
    return choose(floor_for(house), flags(house, ".-"), Wish(quantity=quantity, **more))


def names(house: House, choice: Choice | None) -> list[str]:
    assert choice is not None
    return [f"{house.seats[n].row}{house.seats[n].number}" for n in choice.ordinals]


# In pictures ----------------------------------------------------------------------------------------------------------
def test_two_go_where_they_leave_nobody_alone() -> None:
    house = drawn(".x..x...x.")
    choice = chosen_in(house, 2)
    assert choice is not None
    assert names(house, choice) == ["A3", "A4"]
    assert (choice.rung, choice.stranded, choice.excuse) == (Rung.TOGETHER, (), None)
    assert choice.words == "2 seats together in Stalls, row A, seats 3–4."


def test_a_better_row_is_not_taken_at_the_price_of_a_lonely_seat() -> None:
    house = drawn("...xxxxx", "xx......")
    choice = chosen_in(house, 2)
    assert choice is not None
    assert names(house, choice) == ["B3", "B4"], "row A would leave one of three alone"
    assert choice.rung is Rung.TOGETHER


def test_where_every_choice_leaves_somebody_alone_it_is_excused_and_said() -> None:
    house = drawn("...xxxxx", "xx...xxx")
    choice = chosen_in(house, 2)
    assert choice is not None
    assert (choice.rung, choice.excuse) == (Rung.TOGETHER_STRANDING, NO_ALTERNATIVE)
    assert names(house, choice) == ["A2", "A3"], "nearer to the stage, which is at 3.3"
    assert (
        choice.words
        == "2 seats together in Stalls, row A, seats 2–3. This leaves row A seat 1 without a free neighbour."
    )


def test_one_left_alone_is_better_than_two() -> None:
    house = drawn("....xxxx", "x...xxxx")
    # Two in the middle of row A would leave both ends alone; at an end nobody is.
    assert names(house, chosen_in(house, 2)) == ["A3", "A4"]
    assert names(house, chosen_in(drawn("x-..-xxx", "xxxxx..."), 2)) == ["B6", "B7"], "not both sides of A3 and A4"
    only = House([Drawn("Stalls", "A", "-..-")])
    choice = chosen_in(only, 2)
    assert choice is not None
    assert (len(choice.stranded), choice.excuse) == (2, ASKED_FOR_ONLY)


def test_a_party_is_split_over_neighbouring_rows_and_nobody_sits_alone() -> None:
    house = drawn("...xx", "x..x.", "xxx..")
    choice = chosen_in(house, 5)
    assert choice is not None
    assert choice.rung is Rung.SPLIT
    assert names(house, choice) == ["A1", "A2", "A3", "B2", "B3"]
    assert choice.words == (
        "5 seats in two groups: 3 together in Stalls, row A, seats 1–3; 2 together in row B, seats 2–3, one row behind."
    )


def test_somebody_sits_alone_only_if_it_cannot_be_avoided() -> None:
    assert names(drawn("....", "..xx"), chosen_in(drawn("....", "..xx"), 5)) == ["A2", "A3", "A4", "B1", "B2"]
    house = drawn("....", "x.xx")
    choice = chosen_in(house, 5)
    assert choice is not None
    assert choice.words == (
        "5 seats in two groups: 4 together in Stalls, row A, seats 1–4; 1 in row B, seat 2, one row behind."
    )


def test_a_group_may_go_on_across_the_aisle() -> None:
    house = drawn("...|..")
    choice = chosen_in(house, 5)
    assert choice is not None
    assert choice.rung is Rung.SPLIT
    assert choice.words == (
        "5 seats in two groups: 3 together in Stalls, row A, seats 1–3; 2 together in row A, seats 4–5, across the aisle."
    )


def test_groups_are_in_one_zone() -> None:
    house = House([Drawn("Stalls", "A", "..x"), Drawn("Circle", "A", "..x.."), Drawn("Circle", "B", "x..")])
    choice = chosen_in(house, 4)
    assert choice is not None
    assert {house.seats[n].zone for n in choice.ordinals} == {"Circle"}


def test_without_groups_the_nearest_seats_are_taken_unless_groups_are_insisted_on() -> None:
    house = drawn(".x.x.", "x.x.x", ".x.x.")
    choice = chosen_in(house, 3)
    assert choice is not None
    assert choice.rung is Rung.NEAREST
    assert choice.words == ("3 seats, spread: 1 in Stalls, row A (seat 3), 2 in Stalls, row B (seats 2, 4).")
    assert chosen_in(house, 3, adjacency_strict=True) is None
    assert chosen_in(house, 3, adjacency_strict=True, max_group_split=3) is not None


@pytest.mark.parametrize(
    ("pictures", "quantity"),
    [
        (("x.x..x..", "x..xx."), 4),
        (("..xxxxx.", ".xx.."), 4),
        ((".xxx..", "xxx..xx."), 3),
        ((".xxxxx..", "xxx.xx.."), 3),
    ],
)
def test_where_all_the_nearest_leave_somebody_alone_they_move_within_their_rows(
    pictures: tuple[str, ...], quantity: int
) -> None:
    house = drawn(*pictures)
    free = house.marked(".")
    asked = Asked(quantity, frozenset(free), frozenset(free), dict.fromkeys(range(len(house.seats)), (0, 0.0)))
    assert not any(twin.is_legal(house, free, seats) for _, seats in twin.about_each(house, asked))
    choice = chosen_in(house, quantity, max_group_split=1)
    assert choice is not None
    assert choice.rung is Rung.NEAREST
    assert twin.is_legal(house, free, choice.ordinals)
    loose = chosen_in(house, quantity, max_group_split=1, strict_orphans=False)
    assert loose is not None
    assert not twin.is_legal(house, free, loose.ordinals)


def test_too_few_seats_are_none() -> None:
    assert chosen_in(drawn("..x"), 3) is None
    assert chosen_in(drawn("..-"), 3) is None, "what was not asked for does not count"
    assert chosen_in(drawn("..x"), 4) is None
    with pytest.raises(ValueError, match="at least one"):
        chosen_in(drawn("..x"), 0)


def test_the_cheapest_go_before_the_best() -> None:
    house = drawn("....", "....")
    prices = np.array([900, 900, 900, 900, 500, 500, 400, 400])
    best = chosen_in(house, 2, prices=prices)
    assert names(house, best)[0].startswith("A")
    assert names(house, chosen_in(house, 2, prices=prices, strategy=Strategy.CHEAPEST)) == ["B3", "B4"]
    far_apart = prices * 10**14
    assert names(house, chosen_in(house, 2, prices=far_apart, strategy=Strategy.CHEAPEST)) == ["B3", "B4"]


def test_a_seed_goes_round_among_equals_only() -> None:
    house = House([Drawn("Stalls", "A", "......"), Drawn("Circle", "A", "......")], coordinates=False)
    answers = [names(house, chosen_in(house, 1, seed=seed)) for seed in range(4)]
    zones = [house.seats[choice.ordinals[0]].zone for seed in range(4) if (choice := chosen_in(house, 1, seed=seed))]
    assert answers[0] == ["A3"]
    assert set(map(tuple, answers)) == {("A3",), ("A4",)}
    assert set(zones) == {"Stalls", "Circle"}


def test_words_for_one_seat() -> None:
    choice = chosen_in(drawn("x.x"), 1)
    assert choice is not None
    assert choice.words == "1 seat in Stalls, row A, seat 2."


def test_words_for_groups_in_one_row_and_far_apart() -> None:
    choice = chosen_in(drawn("..x..", "xxxxx"), 4)
    assert choice is not None
    assert choice.words.endswith("2 together in row A, seats 4–5, one seat away.")
    choice = chosen_in(drawn("..xxx", "xxxxx", "..xxx"), 4)
    assert choice is not None
    assert choice.words.endswith("2 together in row C, seats 1–2, two rows behind.")
    choice = chosen_in(drawn("..xxx", "xxxxx", "...xx"), 5)
    assert choice is not None
    assert choice.words.endswith("2 together in row A, seats 1–2, two rows in front.")


# Against the twin -----------------------------------------------------------------------------------------------------
@st.composite
def houses(draw: st.DrawFn, rows: int, row_chars: int, seats_max: int) -> House:
    marks = draw(st.sampled_from(["..x|", ".x", "...x|- ", "..-x"]))
    pictures = draw(st.lists(st.text(marks, min_size=1, max_size=row_chars), min_size=1, max_size=rows))
    second = draw(st.integers(1, 6))
    lines = [
        Drawn("Stalls" if n < second else "Circle", "ABCDEF"[n], picture)
        for n, picture in enumerate(pictures)
        if set(picture) & set(".-x")
    ]
    house = House(lines or [Drawn("Stalls", "A", ".")], backwards=draw(st.booleans()))
    usable = house.marked(".")
    if len(usable) <= seats_max:
        return house
    return House([Drawn(line.zone, line.row, line.picture[:4]) for line in lines[:3]])


@st.composite
def wishes(draw: st.DrawFn, house: House) -> Wish:
    prices = draw(st.lists(st.sampled_from([500, 700]), min_size=len(house.seats), max_size=len(house.seats)))
    longest = max((len(run) for run in house.pieces(house.marked("."))), default=1)
    return Wish(
        # Often a little more than fits in one place, since the lower rungs are where it is easy to go wrong.
        quantity=draw(st.integers(1, 6) | st.integers(longest + 1, longest + 3)),
        allowed=flags(house, ".") if bool(house.marked("-")) or draw(st.booleans()) else None,
        strict_orphans=draw(st.booleans()),
        max_group_split=draw(st.integers(1, 4)),
        adjacency_strict=draw(st.booleans()),
        strategy=draw(st.sampled_from(Strategy)),
        prices=np.array(prices, np.int64),
    )


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_every_choice_is_the_twins_best_of_the_right_rung(data: st.DataObject) -> None:
    house = data.draw(houses(rows=4, row_chars=9, seats_max=13))
    wish = data.draw(wishes(house))
    floor, free = floor_for(house), flags(house, ".-")
    choice = choose(floor, free, wish)
    assert choice == choose(floor, free, wish), "the same question has the same answer"
    asked = _asked(house, floor, wish)
    if len(asked.usable) < wish.quantity:
        assert choice is None
        return
    _check_rung(house, floor, wish, asked, choice)
    if choice is not None:
        _check_parts(house, floor, wish, asked, choice)


@st.composite
def scraps(draw: st.DrawFn) -> House:
    """Short runs only, so that a party has to be split, and can be in many ways."""
    runs = st.sampled_from([".", "..", "..", "...", ".-.", "-..", "..-..", "...-"])
    lines: list[Drawn] = []
    for n in range(draw(st.integers(1, 4))):
        parts = draw(st.lists(runs, min_size=1, max_size=3))
        lines.append(Drawn(draw(st.sampled_from("SC")), "ABCD"[n], draw(st.sampled_from("x|")).join(parts)))
    return House(lines, coordinates=draw(st.booleans()), backwards=draw(st.booleans()))


@settings(max_examples=350, deadline=None)
@given(scraps(), st.integers(1, 2), st.integers(2, 3), st.booleans())
def test_every_split_is_the_twins_best(house: House, more: int, max_group_split: int, only_dots: bool) -> None:
    usable = house.marked("." if only_dots else ".-")
    quantity = max(map(len, house.pieces(usable)), default=0) + more
    if len(usable) > 14 or quantity > 5:
        return
    floor, free = floor_for(house), flags(house, ".-")
    allowed = flags(house, ".") if only_dots else None
    choice = choose(floor, free, Wish(quantity=quantity, allowed=allowed, max_group_split=max_group_split))
    quality = dict(enumerate((0, float(quality)) for quality in floor.quality))
    asked = Asked(quantity, frozenset(usable), frozenset(house.marked(".-")), quality, max_group_split)
    best = min(twin.splits(house, asked), default=None, key=lambda found: found[0])
    if best is None:
        assert choice is None or choice.rung is Rung.NEAREST
    else:
        assert choice is not None
        assert set(choice.ordinals) == best[1]
        assert choice.rung is Rung.SPLIT


def _asked(house: House, floor: Floor, wish: Wish) -> Asked:
    assert wish.prices is not None
    prices = wish.prices if wish.strategy is Strategy.CHEAPEST else np.zeros(len(house.seats), np.int64)
    return Asked(
        quantity=wish.quantity,
        usable=frozenset(house.marked(".")),
        free=frozenset(house.marked(".-")),
        worth={n: (int(prices[n]), float(floor.quality[n])) for n in range(len(house.seats))},
        max_group_split=wish.max_group_split,
    )


def _check_rung(house: House, floor: Floor, wish: Wish, asked: Asked, choice: Choice | None) -> None:
    best = min(twin.together(house, asked), default=None, key=lambda found: found[0])
    if best is not None:
        assert choice is not None
        assert set(choice.ordinals) == best[1]
        assert choice.rung is (Rung.TOGETHER if best[0][0] == 0 else Rung.TOGETHER_STRANDING)
        return
    best = min(twin.splits(house, asked), default=None, key=lambda found: found[0])
    if best is not None:
        assert choice is not None
        assert choice.rung is Rung.SPLIT
        assert set(choice.ordinals) == best[1]
        return
    if wish.adjacency_strict:
        assert choice is None
        return
    assert choice is not None
    assert choice.rung is Rung.NEAREST
    in_order = [seats for _, seats in sorted(twin.about_each(house, asked), key=lambda found: found[0])]
    if wish.strict_orphans:
        in_order = [seats for seats in in_order if twin.is_legal(house, asked.free, seats)]
    if in_order:
        assert set(choice.ordinals) == in_order[0]


def _check_parts(house: House, floor: Floor, wish: Wish, asked: Asked, choice: Choice) -> None:
    assert list(choice.ordinals) == sorted(set(choice.ordinals))
    assert len(choice.ordinals) == wish.quantity
    assert set(choice.ordinals) <= asked.usable
    assert [list(cluster) for cluster in choice.clusters] == house.pieces(choice.ordinals)
    alone = twin.stranded(house, asked.free, choice.ordinals)
    assert set(choice.stranded) == alone
    legal = twin.is_legal(house, asked.free, choice.ordinals)
    if not house.marked("-") and (wish.strict_orphans or choice.rung is not Rung.NEAREST):
        assert legal, "nobody is left alone where an alternative exists"
        assert judge(floor, flags(house, ".-"), choice.ordinals).legal
    assert not (choice.excuse and not alone)
    if alone and legal:
        assert choice.excuse


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9), st.integers(2, 9), st.floats(0.02, 0.6))
def test_in_a_large_house_the_grid_finds_the_nearest_as_asking_everybody_does(
    chance: int, quantity: int, share: float
) -> None:
    rng = np.random.default_rng(chance)
    floor, free = _large(), rng.random(_LARGE_ROWS * _LARGE_COLUMNS * 2) < share
    choice = choose(floor, free & ~_EVERY_SECOND, Wish(quantity=quantity, strict_orphans=False, max_group_split=1))
    usable = np.flatnonzero(free & ~_EVERY_SECOND)
    if len(usable) < quantity:
        assert choice is None
        return
    assert choice is not None
    squares = (floor.xs[usable, None] - floor.xs[usable]) ** 2 + (floor.ys[usable, None] - floor.ys[usable]) ** 2
    order = np.argsort(squares, axis=1, kind="stable")[:, :quantity]
    reaches = np.take_along_axis(squares, order, axis=1)[:, -1]
    first = np.lexsort((floor.quality[usable], reaches))[0]
    if quantity > 1:
        assert choice.ordinals == tuple(sorted(usable[order[first]].tolist()))


_LARGE_ROWS, _LARGE_COLUMNS = 60, 30
_EVERY_SECOND = np.arange(_LARGE_ROWS * _LARGE_COLUMNS * 2) % 2 == 1
_kept: list[Floor] = []


def _large() -> Floor:
    """No two usable seats are neighbours there, so the nearest are all there is."""
    if not _kept:
        _kept.append(floor_for(drawn_large()))
    return _kept[0]


def drawn_large() -> House:
    return House([Drawn("Stalls", f"R{n}", "." * (2 * _LARGE_COLUMNS)) for n in range(_LARGE_ROWS)])


# In a large house -----------------------------------------------------------------------------------------------------
_HALL_ROWS, _HALL_COLUMNS = 90, 100


def _hall() -> Floor:
    """The stage in the middle: the best seats are neither the first nor the last."""
    if len(_kept) < 2:
        _large()
        config = theatre_config(_HALL_ROWS, _HALL_COLUMNS)
        _kept.append(floor_of(parse_layout(LAYOUT, {**config, "focal_point": {"x": 505.0, "y": 900.0}})))
    return _kept[1]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 5), st.sampled_from([0.0, 0.5, 0.9]), st.integers(0, 5), st.booleans())
def test_in_a_large_house_the_best_window_is_found_wherever_it_is(
    chance: int, quantity: int, taken: float, seed: int, cheapest: bool
) -> None:
    rng = np.random.default_rng(chance)
    floor = _hall()
    free = rng.random(floor.seats) >= taken
    prices = rng.choice([400, 500, 900], floor.seats)
    strategy = Strategy.CHEAPEST if cheapest else Strategy.BEST
    choice = choose(floor, free, Wish(quantity=quantity, seed=seed, prices=prices, strategy=strategy))
    is_free, quality, price = free.tolist(), floor.quality.tolist(), prices.tolist()
    found: dict[tuple[int, float], list[int]] = {}
    for start in range(floor.seats - quantity + 1):
        row, column = divmod(start, _HALL_COLUMNS)
        if column + quantity > _HALL_COLUMNS or not all(is_free[start : start + quantity]):
            continue
        line = [False, False, *is_free[row * _HALL_COLUMNS : (row + 1) * _HALL_COLUMNS], False, False]
        if (line[column + 1] and not line[column]) or (line[column + quantity + 2] and not line[column + quantity + 3]):
            continue
        paid = sum(price[start : start + quantity]) if cheapest else 0
        found.setdefault((paid, sum(quality[start : start + quantity])), []).append(start)
    if not found:
        assert choice is None or choice.rung is not Rung.TOGETHER
        return
    equal = found[min(found)]
    start = equal[seed % len(equal)]
    assert choice is not None
    assert choice.ordinals == tuple(range(start, start + quantity))


def test_the_best_window_may_lie_across_two_blocks() -> None:
    """Seats are looked through in blocks; the one that begins before the edge is as good, and comes first."""
    columns = 120
    row, column = divmod(BLOCK + 1, columns)
    config = theatre_config(50, columns)
    focal = {"x": 10.0 * (column + 1), "y": 20.0 * row}
    floor = floor_of(parse_layout(LAYOUT, {**config, "focal_point": focal}))
    choice = choose(floor, np.ones(floor.seats, np.bool_), Wish(quantity=4))
    assert choice is not None
    assert choice.ordinals == tuple(range(BLOCK - 1, BLOCK + 3))


def test_a_seed_goes_round_in_the_whole_house() -> None:
    length = BLOCK - 96
    floor = floor_for(House([Drawn(zone, "A", "." * length) for zone in ("S", "T", "U")], coordinates=False))
    free = np.ones(floor.seats, np.bool_)
    found = [choice.ordinals[0] for seed in range(7) if (choice := choose(floor, free, Wish(quantity=1, seed=seed)))]
    middles = [zone * length + length // 2 - side for zone in range(3) for side in (1, 0)]
    assert found == [*middles, middles[0]]
