"""When a companion's seat is kept, and what is said of it: arithmetic, relations, words, and the hot tier's view."""

from datetime import UTC, datetime
from uuid import UUID

import numpy as np
import pytest

from holdfast.holds.claims import ClaimFacts, HoldRequest, SeatWanted, Unsettled, Verdict, settle
from holdfast.kernel.errors import SeatHeldByAnother, SeatNotOffered
from holdfast.kernel.ids import new_id
from holdfast.seating.accessibility import accessible_terms, companion_rule, kept_words, places_to_free
from holdfast.seating.layout import Layout
from holdfast.seating.policy import SeatingPolicy
from holdfast.seating.validate import parse_layout
from holdfast.store.hot.event import AVAILABLE, HELD, SOLD, HotEvent, owner_key
from tests.factories import theatre_config, with_companions

NOW = datetime(2026, 5, 1, tzinfo=UTC)
FAR = 4e9


def layout_of(rows: int, seats: int, *pairs: tuple[int, int]) -> Layout:
    return parse_layout(new_id(), with_companions(theatre_config(rows, seats), *pairs))


# Arithmetic -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("capacity", "percent", "places"),
    [
        (20, 85, 17),
        (7, 85, 6),
        (100, 85, 85),
        (3, 85, 3),
        (1, 85, 1),
        (20, 100, 20),
        (20, 0, 0),
        (3, 1, 1),
        (40, 86, 35),
    ],
)
def test_companions_go_free_at_the_first_place_that_makes_the_percentage(
    capacity: int, percent: int, places: int
) -> None:
    assert places_to_free(capacity, percent) == places
    assert places * 100 >= percent * capacity
    assert places == 0 or (places - 1) * 100 < percent * capacity


# Relations ------------------------------------------------------------------------------------------------------------
def test_a_wheelchair_pair_is_the_same_relation_as_a_named_companion() -> None:
    pair = {"group_id": "g", "group_type": "wheelchair_pair", "seat_ids": ["A-4", "A-5", "A-6"]}
    config = with_companions(theatre_config(1, 10), (0, 1))
    config["zones"][0]["seats"][4]["category"] = "wheelchair"
    config["groups"] = [pair, {"group_id": "h", "group_type": "family_block", "seat_ids": ["A-5", "A-8"]}]
    layout = parse_layout(new_id(), config)
    assert layout.wheelchair_companions == {0: (1,), 4: (3, 5)}
    assert layout.companion_wheelchairs == {1: (0,), 3: (4,), 5: (4,)}
    assert layout.accessible_seats == {0, 1, 3, 4, 5}


def test_a_wheelchair_seat_is_never_kept_for_a_companion() -> None:
    config = with_companions(theatre_config(1, 4), (0, 1))
    config["zones"][0]["seats"][1]["category"] = "wheelchair"
    layout = parse_layout(new_id(), config)
    assert layout.companion_wheelchairs == {}
    assert layout.wheelchair_seats == {0, 1}


def test_rules_are_made_for_companion_seats_only_and_only_while_the_policy_has_them() -> None:
    layout, policy = layout_of(2, 10, (0, 1)), SeatingPolicy()
    rule = companion_rule(layout, policy, 1)
    assert rule is not None
    assert (rule.wheelchairs, rule.free_from, rule.percent, rule.binding) == ((0,), 17, 85, True)
    assert companion_rule(layout, policy, 0) is None
    assert companion_rule(layout, SeatingPolicy(enforce_accessibility_rules=False), 1) is None
    assert accessible_terms(layout, policy, [2, 3], limited=True) is None
    assert accessible_terms(layout, SeatingPolicy(enforce_accessibility_rules=False), [0, 1], limited=True) is None
    terms = accessible_terms(layout, policy, [0, 1, 2], limited=True)
    assert terms is not None
    assert (terms.wheelchairs, terms.companions, terms.wheelchairs_max) == ((0,), (1,), 1)


# Outcomes -------------------------------------------------------------------------------------------------------------
def request_for(layout: Layout, *ordinals: int) -> HoldRequest:
    policy = SeatingPolicy()
    return HoldRequest(
        organization_id=new_id(),
        event_id=new_id(),
        layout_version=None,
        seats=tuple(SeatWanted(o, 0, new_id(), companion_rule(layout, policy, o)) for o in ordinals),
        places=(),
        user_id=new_id(),
        session_id=None,
        actor="CUSTOMER",
        source="web",
        hold_type="CART",
        ttl_s=600,
        any_time=False,
        user_limit=None,
        ip_limit=None,
        ip=None,
        user_agent=None,
        request_id=None,
    )


def facts(n: int, state: str = "available", *, kept: bool = False) -> ClaimFacts:
    until = datetime(2026, 5, 2, tzinfo=UTC) if state == "held" else None
    return ClaimFacts(n, NOW, until, state, event_status="published", on_sale=True, kept=kept)


def test_a_kept_seat_is_refused_in_words() -> None:
    outcome = settle(request_for(layout_of(2, 10, (0, 1)), 1), Verdict(NOW, {0: facts(1, kept=True)}))
    assert isinstance(outcome, SeatNotOffered)
    assert outcome.detail == (
        "This seat is kept for the companion of a wheelchair user; it is offered to everyone when the zone is 85 % full."
    )
    assert outcome.facts["ordinal"] == 1


def test_a_kept_seat_that_somebody_has_taken_meanwhile_is_refused_as_taken() -> None:
    outcome = settle(request_for(layout_of(2, 10, (0, 1)), 1), Verdict(NOW, {0: facts(1, "held", kept=True)}))
    assert isinstance(outcome, SeatHeldByAnother)


def test_a_claim_whose_wheelchair_seat_is_being_decided_asks_again() -> None:
    assert isinstance(settle(request_for(layout_of(2, 10, (0, 1)), 1), Verdict(NOW, {0: facts(1)})), Unsettled)


# In memory ------------------------------------------------------------------------------------------------------------
class Hall:
    """An event in memory, told of moves one by one."""

    def __init__(self, layout: Layout, policy: SeatingPolicy | None = None) -> None:
        self.event = HotEvent(new_id(), new_id(), layout)
        self.event.keep_by(policy or SeatingPolicy(), 1)
        self._xid = 10

    def tell(self, state: int, *ordinals: int, owner: UUID | None = None, until: float = FAR) -> list[int]:
        self._xid += 1
        chosen = np.array(ordinals, np.int64)
        return list(
            self.event.note(
                chosen,
                (self.event.versions[chosen] + 1).astype(np.int32),
                np.full(len(ordinals), state, np.uint8),
                np.zeros(len(ordinals), np.uint8),
                np.full(len(ordinals), until),
                np.full(len(ordinals), owner_key(owner), np.uint64),
                self._xid,
            )
        )

    @property
    def kept(self) -> list[int]:
        assert self.event.keeping is not None
        return self.event.keeping.kept


def test_memory_keeps_a_companions_seat_from_the_wheelchairs_hold_to_its_release() -> None:
    hall = Hall(layout_of(2, 10, (0, 1)))
    before = hall.event.revision
    assert hall.tell(HELD, 0) == [0, 1]
    assert (hall.kept, hall.event.revision) == ([1], before + 1)
    assert hall.tell(SOLD, 0) == [0]
    assert hall.kept == [1]
    assert hall.tell(AVAILABLE, 0) == [0, 1]
    assert hall.kept == []


@pytest.mark.parametrize(("seats", "free_from"), [(20, 17), (7, 6)])
def test_memory_lets_it_go_at_exactly_the_threshold_and_keeps_it_again_below(seats: int, free_from: int) -> None:
    hall = Hall(layout_of(1, seats, (0, 1)))
    hall.tell(HELD, 0)
    for n in range(2, free_from):
        assert hall.tell(HELD, n) == [n]
        assert hall.kept == [1]
    assert hall.tell(SOLD, free_from) == [1, free_from]
    assert hall.kept == []
    assert hall.tell(AVAILABLE, 3) == [1, 3]
    assert hall.kept == [1]


def test_memory_follows_the_policy() -> None:
    hall = Hall(layout_of(1, 20, (0, 1), (5, 6)))
    hall.tell(HELD, 0, 5)
    assert hall.kept == [1, 6]
    assert list(hall.event.keep_by(SeatingPolicy(companion_release_occupancy_threshold=10), 99)) == [1, 6]
    assert hall.event.changed_since(99) == [1, 6]
    assert list(hall.event.keep_by(SeatingPolicy(companion_release_occupancy_threshold=10), 100)) == []
    assert list(hall.event.keep_by(SeatingPolicy(), 101)) == [1, 6]
    assert list(hall.event.keep_by(SeatingPolicy(enforce_accessibility_rules=False), 102)) == [1, 6]
    assert hall.kept == []


def test_whoever_comes_back_is_told_of_every_companion_seat() -> None:
    hall = Hall(layout_of(1, 20, (0, 1)))
    hall.tell(HELD, 7)
    assert hall.event.changed_since(10**9) == [1]


def test_memory_refuses_only_whom_the_seat_is_kept_from_for_certain() -> None:
    chairs, owner, stranger = layout_of(10, 100, (0, 1)), new_id(), new_id()
    hall = Hall(chairs)
    assert not hall.event.keeps(1, stranger, 1e9)
    hall.tell(HELD, 0, owner=owner, until=2e9)
    assert hall.event.keeps(1, stranger, 1e9)
    assert not hall.event.keeps(1, owner, 1e9)
    assert not hall.event.keeps(1, stranger, 2e9 + 1), "the wheelchair seat's hold is over"
    hall.tell(SOLD, 0)
    assert hall.event.keeps(1, stranger, 3e9)
    assert not hall.event.keeps(1, owner, 3e9), "who bought it is who held it"
    hall.event.doubt([0], 1)
    assert not hall.event.keeps(1, stranger, 1e9)


def test_near_the_threshold_memory_leaves_it_to_the_database() -> None:
    hall = Hall(layout_of(2, 10, (0, 1)))
    hall.tell(HELD, 0, owner=new_id())
    assert hall.kept == [1]
    assert not hall.event.keeps(1, new_id(), 1e9)


def test_of_a_wheelchair_seat_with_an_unknown_owner_memory_says_nothing() -> None:
    hall = Hall(layout_of(10, 100, (0, 1)))
    hall.tell(SOLD, 0)
    assert hall.kept == [1]
    assert not hall.event.keeps(1, new_id(), 1e9)


def test_the_words_name_the_percentage() -> None:
    assert "70 % full" in kept_words(70)
