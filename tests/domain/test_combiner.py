"""The batching writer against a store that is a script: what travels together, and what becomes of whom when it fails."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from holdfast.holds import combiner as writer
from holdfast.holds.claims import (
    MAX_ATTEMPTS,
    ClaimFacts,
    Held,
    HoldRequest,
    PlacedHold,
    PlacesWanted,
    SeatWanted,
    Verdict,
)
from holdfast.holds.combiner import BatchLost, BatchRejected, Combiner
from holdfast.kernel.errors import Overloaded, Refusal, ReservationFailed, SeatHeldByAnother, SeatNotAvailable
from holdfast.kernel.ids import new_id

ORGANIZATION = new_id()
EVENT = new_id()
NOW = datetime(2026, 3, 1, tzinfo=UTC)
TTL_S = 300


# The store -----------------------------------------------------------------------------------------------------------
class SeatStore:
    """Seats in memory. `script` says what is to happen to the next batches; where it is empty they go well."""

    def __init__(self) -> None:
        self.holds: dict[int, tuple[UUID, UUID | None]] = {}  # seat: hold, user
        self.places: dict[UUID, int] = {}
        self.sold: set[int] = set()
        self.script: deque[str] = deque()
        self.finding: deque[str] = deque()  # the same for the questions after a lost connection
        self.batches: list[list[HoldRequest]] = []
        self.poison: set[int] = set()  # seats whose batch the database rejects
        self.gate: asyncio.Event | None = None
        self.before_answer: Callable[[], object] | None = None

    async def hold(self, requests: Sequence[HoldRequest]) -> list[Verdict]:
        self.batches.append(list(requests))
        if self.gate is not None:
            await self.gate.wait()
        await asyncio.sleep(0)
        act = self.script.popleft() if self.script else "well"
        if act == "lost before":
            raise BatchLost
        if act == "reject" or any(s.ordinal in self.poison for r in requests for s in r.seats):
            raise BatchRejected
        if act == "late commit":  # decided after the question that follows the loss
            self.before_answer = lambda: self._decide_all(requests)
            raise BatchLost
        verdicts = self._decide_all(requests)
        if act == "lost after":
            raise BatchLost
        return verdicts

    async def find_placed(self, requests: Sequence[HoldRequest]) -> list[Held | None]:
        act = self.finding.popleft() if self.finding else "well"
        if act == "lost":
            raise BatchLost
        found = [self._found(request) for request in requests]
        if self.before_answer is not None:
            self.before_answer()
            self.before_answer = None
        return found

    def _decide_all(self, requests: Sequence[HoldRequest]) -> list[Verdict]:
        seats = [(r.event_id, s.ordinal) for r in requests for s in r.seats]
        assert len(set(seats)) == len(seats), "a seat twice in a batch"
        for request in requests:
            for wanted in request.places:
                if wanted.hold_id in self.places:
                    raise BatchRejected  # as a unique key would
        return [self._decide(request) for request in requests]

    def _decide(self, request: HoldRequest) -> Verdict:
        refused = {n: f for n, s in enumerate(request.seats) if (f := self._refusal(n, s, request)) is not None}
        if not refused:
            self.holds.update({s.ordinal: (s.hold_id, request.user_id) for s in request.seats})
            self.places.update({p.hold_id: p.quantity for p in request.places})
        elif len(request.seats) > len(refused):
            # As the database answers: with one seat refused the others of the request are given back.
            for n in range(len(request.seats)):
                refused.setdefault(n, facts(n, state="available"))
        return Verdict(NOW, refused)

    def _refusal(self, n: int, seat: SeatWanted, request: HoldRequest) -> ClaimFacts | None:
        if seat.ordinal in self.sold:
            return facts(n, state="sold")
        if seat.ordinal not in self.holds:
            return None
        hold_id, user_id = self.holds[seat.ordinal]
        mine = user_id is not None and user_id == request.user_id
        until = NOW + timedelta(seconds=TTL_S)
        return facts(n, state="held", held_until=until, own_hold_id=hold_id if mine else None, own_hold_type="CART")

    def _found(self, request: HoldRequest) -> Held | None:
        ids = {hold_id for hold_id, _ in self.holds.values()} | self.places.keys()
        if request.hold_ids[0] not in ids:
            return None
        return Held([placed(s.hold_id, s.ordinal) for s in request.seats], NOW)


def facts(n: int, **said: Any) -> ClaimFacts:
    return ClaimFacts(n=n, decided_at=NOW, event_status="published", on_sale=True, **said)


def placed(hold_id: UUID, ordinal: int | None) -> PlacedHold:
    until = NOW + timedelta(seconds=TTL_S)
    return PlacedHold(
        hold_id=hold_id, ordinal=ordinal, zone_no=0, quantity=1, hold_type="CART", held_until=until, created=True
    )


def request(
    *seats: int, user: UUID | None = None, limit: int | None = None, places: int = 0, organization: UUID = ORGANIZATION
) -> HoldRequest:
    return HoldRequest(
        organization_id=organization,
        event_id=EVENT,
        layout_version=None,
        seats=tuple(SeatWanted(n, 0, new_id()) for n in seats),
        places=(PlacesWanted(1, places, new_id()),) if places else (),
        user_id=user or new_id(),
        session_id=None,
        actor="CUSTOMER",
        source="web",
        hold_type="CART",
        ttl_s=TTL_S,
        any_time=False,
        user_limit=limit,
        ip_limit=None,
        ip=None,
        user_agent=None,
        request_id=None,
    )


def unowned(*seats: int) -> HoldRequest:
    """As an API key asks: nobody's in particular."""
    wanted = request(*seats)
    return HoldRequest(**{**{f: getattr(wanted, f) for f in wanted.__struct_fields__}, "user_id": None})


async def no_pause(_: float) -> None:
    await asyncio.sleep(0)


@asynccontextmanager
async def combining(store: SeatStore, **options: Any) -> AsyncIterator[Combiner]:
    made = Combiner(store, **{"lanes": 1, "sleep": no_pause, **options})
    made.start()
    try:
        yield made
    finally:
        if store.gate is not None:
            store.gate.set()
        await asyncio.wait_for(made.close(), 5)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(scenario(), 10)

    asyncio.run(bounded())


async def outcomes(futures: Sequence["asyncio.Future[Held]"]) -> list[Held | BaseException]:
    return await asyncio.gather(*futures, return_exceptions=True)


async def under_way(store: SeatStore, batches: int = 1) -> None:
    """Until so many batches have reached the store."""
    while len(store.batches) < batches:
        await asyncio.sleep(0)


# Batching ------------------------------------------------------------------------------------------------------------
def test_what_arrives_in_one_turn_travels_together() -> None:
    async def scenario() -> None:
        store = SeatStore()
        async with combining(store) as combiner:
            held = await outcomes([combiner.submit(request(n)) for n in range(20)])
        assert all(isinstance(h, Held) and h.created for h in held)
        assert [len(batch) for batch in store.batches] == [20]

    run(scenario)


def test_a_batch_has_its_size_at_most() -> None:
    async def scenario() -> None:
        store = SeatStore()
        async with combining(store, batch_size=8) as combiner:
            await outcomes([combiner.submit(request(2 * n, 2 * n + 1)) for n in range(10)])
        assert [sum(len(r.seats) for r in batch) for batch in store.batches] == [8, 8, 4]

    run(scenario)


def test_what_gathers_while_a_batch_is_under_way_is_the_next_batch() -> None:
    async def scenario() -> None:
        store = SeatStore()
        store.gate = asyncio.Event()
        async with combining(store) as combiner:
            first = combiner.submit(request(0))
            await under_way(store)
            later = [combiner.submit(request(n)) for n in range(1, 6)]
            await asyncio.sleep(0)
            store.gate.set()
            await outcomes([first, *later])
        assert [len(batch) for batch in store.batches] == [1, 5]

    run(scenario)


def test_seats_and_places_and_organizations_do_not_mix_and_take_turns() -> None:
    async def scenario() -> None:
        store = SeatStore()
        other = new_id()
        async with combining(store, batch_size=2) as combiner:
            asked = [request(n) for n in range(4)] + [request(places=2), request(places=3)]
            asked += [request(n, organization=other) for n in range(10, 12)]
            await outcomes([combiner.submit(r) for r in asked])
        kinds = [{(r.organization_id, bool(r.seats)) for r in batch} for batch in store.batches]
        assert all(len(kind) == 1 for kind in kinds)
        assert kinds[0] == kinds[3] == {(ORGANIZATION, True)}  # the others came in between

    run(scenario)


def test_a_limited_user_is_once_in_a_batch_and_the_rest_is_not_held_up() -> None:
    async def scenario() -> None:
        store = SeatStore()
        me = new_id()
        async with combining(store) as combiner:
            mine = [combiner.submit(request(n, user=me, limit=10)) for n in range(3)]
            others = [combiner.submit(request(n, limit=10)) for n in range(10, 14)]
            await outcomes([*mine, *others])
        assert [[r.user_id for r in batch].count(me) for batch in store.batches] == [1, 1, 1]
        assert len(store.batches[0]) == 5

    run(scenario)


# Followers -----------------------------------------------------------------------------------------------------------
def test_followers_of_a_seat_are_refused_without_asking_the_store() -> None:
    async def scenario() -> None:
        store = SeatStore()
        async with combining(store) as combiner:
            first, *others = await outcomes([combiner.submit(request(7)) for _ in range(500)])
        assert isinstance(first, Held)
        assert all(isinstance(o, SeatHeldByAnother) and o.facts["expires_in"] == TTL_S for o in others)
        assert sum(len(batch) for batch in store.batches) == 1

    run(scenario)


def test_a_follower_that_came_while_the_batch_was_under_way_is_refused_by_its_new_hold() -> None:
    async def scenario() -> None:
        store = SeatStore()
        store.gate = asyncio.Event()
        async with combining(store, lanes=2) as combiner:
            first = combiner.submit(request(7))
            await under_way(store)
            second = combiner.submit(request(7))
            await asyncio.sleep(0.01)
            store.gate.set()
            _, refused = await outcomes([first, second])
        assert isinstance(refused, SeatHeldByAnother)
        assert len(store.batches) == 1

    run(scenario)


def test_a_follower_that_came_after_the_batch_was_sent_is_not_refused_by_an_older_hold() -> None:
    # The leader was refused because of a hold it found; that hold may have ended since.
    async def scenario() -> None:
        class Freed(SeatStore):
            async def hold(self, requests: Sequence[HoldRequest]) -> list[Verdict]:
                verdicts = await super().hold(requests)
                if len(self.batches) == 1:
                    self.holds.clear()
                return verdicts

        store = Freed()
        store.holds[7] = (new_id(), new_id())
        store.gate = asyncio.Event()
        async with combining(store) as combiner:
            first = combiner.submit(request(7))
            await under_way(store)
            second = combiner.submit(request(7))
            await asyncio.sleep(0.01)
            store.gate.set()
            refused, later = await outcomes([first, second])
        assert isinstance(refused, SeatHeldByAnother)
        assert isinstance(later, Held)

    run(scenario)


def test_followers_of_a_sold_seat_learn_that_it_is_sold() -> None:
    async def scenario() -> None:
        store = SeatStore()
        store.sold.add(7)
        async with combining(store) as combiner:
            answers = await outcomes([combiner.submit(request(7)) for _ in range(50)])
        assert all(isinstance(a, SeatNotAvailable) and a.facts["current_status"] == "sold" for a in answers)
        assert sum(len(batch) for batch in store.batches) == 1

    run(scenario)


def test_the_same_user_following_gets_their_own_hold() -> None:
    async def scenario() -> None:
        store = SeatStore()
        me = new_id()
        async with combining(store) as combiner:
            futures = [combiner.submit(request(7, user=me)) for _ in range(3)]
            first, *again = await outcomes(futures)
        assert isinstance(first, Held)
        for answer in again:
            assert isinstance(answer, Held)
            assert not answer.created
            assert answer.holds[0].hold_id == first.holds[0].hold_id

    run(scenario)


def test_a_follower_is_asked_for_where_the_leader_failed_because_of_another_seat() -> None:
    async def scenario() -> None:
        store = SeatStore()
        store.sold.add(1)
        async with combining(store) as combiner:
            leader, follower = await outcomes([combiner.submit(request(0, 1)), combiner.submit(request(0))])
        assert isinstance(leader, SeatNotAvailable)
        assert isinstance(follower, Held)

    run(scenario)


def test_a_cart_keeps_what_is_its_owners_and_gets_the_rest() -> None:
    async def scenario() -> None:
        store = SeatStore()
        me = new_id()
        async with combining(store) as combiner:
            (first,) = await outcomes([combiner.submit(request(1, user=me))])
            (cart,) = await outcomes([combiner.submit(request(0, 1, 2, user=me))])
        assert isinstance(first, Held)
        assert isinstance(cart, Held)
        assert [(h.ordinal, h.created) for h in cart.holds] == [(0, True), (1, False), (2, True)]
        assert cart.holds[1].hold_id == first.holds[0].hold_id

    run(scenario)


# Failures ------------------------------------------------------------------------------------------------------------
def test_one_failure_never_harms_another() -> None:
    async def scenario() -> None:
        store = SeatStore()
        store.poison.add(3)
        async with combining(store) as combiner:
            answers = await outcomes([combiner.submit(request(n)) for n in range(8)])
        assert [isinstance(a, Held) for a in answers] == [n != 3 for n in range(8)]
        assert isinstance(answers[3], ReservationFailed)
        assert answers[3].code == "seat_reservation_failed"

    run(scenario)


def test_a_store_that_raises_anything_else_fails_its_batch_and_no_other() -> None:
    async def scenario() -> None:
        class Broken(SeatStore):
            async def hold(self, requests: Sequence[HoldRequest]) -> list[Verdict]:
                if requests[0].seats[0].ordinal == 0:
                    raise RuntimeError("a fault of the program")
                return await super().hold(requests)

        async with combining(Broken()) as combiner:
            (first,) = await outcomes([combiner.submit(request(0))])
            (second,) = await outcomes([combiner.submit(request(1))])
        assert isinstance(first, ReservationFailed)
        assert isinstance(second, Held)

    run(scenario)


def test_a_connection_lost_after_the_commit_answers_the_hold_and_does_not_double_it() -> None:
    async def scenario() -> None:
        store = SeatStore()
        store.script.append("lost after")
        async with combining(store) as combiner:
            wanted = [request(0), request(1, 2)]
            answers = await outcomes([combiner.submit(r) for r in wanted])
        for asked, answer in zip(wanted, answers, strict=True):
            assert isinstance(answer, Held)
            assert [h.hold_id for h in answer.holds] == asked.hold_ids
        assert len(store.batches) == 1

    run(scenario)


def test_a_connection_lost_before_the_commit_is_tried_again() -> None:
    async def scenario() -> None:
        store = SeatStore()
        store.script.extend(["lost before"] * 3)
        store.finding.append("lost")
        async with combining(store) as combiner:
            answers = await outcomes([combiner.submit(request(n)) for n in range(4)])
        assert all(isinstance(a, Held) and a.created for a in answers)
        assert len(store.batches) == 4

    run(scenario)


@pytest.mark.parametrize(
    "wanted", [request(5), unowned(5), request(places=2)], ids=["a user's seat", "an API key's seat", "places"]
)
def test_a_commit_that_came_after_the_question_is_recognised_too(wanted: HoldRequest) -> None:
    # The server was still at work when the connection broke: nothing was found, and then the batch was committed.
    async def scenario() -> None:
        store = SeatStore()
        store.script.append("late commit")
        async with combining(store) as combiner:
            another = request(9) if wanted.seats else request(places=1)
            answer, other = await outcomes([combiner.submit(wanted), combiner.submit(another)])
        assert isinstance(answer, Held), answer
        assert isinstance(other, Held), other
        assert len(store.holds) + len(store.places) == 2

    run(scenario)


def test_a_database_that_stays_away_is_answered_with_overload_after_the_deadline() -> None:
    async def scenario() -> None:
        store = SeatStore()
        store.script.extend(["lost before"] * 1_000)
        store.finding.extend(["lost"] * 1_000)
        async with combining(store, deadline_s=0.05, sleep=asyncio.sleep) as combiner:
            (answer,) = await outcomes([combiner.submit(request(0))])
            assert isinstance(answer, Overloaded)
            store.script.clear()
            store.finding.clear()
            (answer,) = await outcomes([combiner.submit(request(0))])
            assert isinstance(answer, Held)

    run(scenario)


def test_batches_that_are_lost_again_and_again_end_at_the_deadline_too() -> None:
    # The database answers questions, but every batch is cut off.
    async def scenario() -> None:
        store = SeatStore()
        store.script.extend(["lost before"] * 1_000)
        async with combining(store, deadline_s=0.05, sleep=asyncio.sleep) as combiner:
            (answer,) = await outcomes([combiner.submit(request(0))])
            assert isinstance(answer, Overloaded)
            store.script.clear()

    run(scenario)


@pytest.mark.parametrize("fate", ["lost after", "lost before"])
def test_a_database_that_was_away_is_asked_again_when_it_is_back(fate: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "PATIENCE_S", 0.01)

    async def scenario() -> None:
        store = SeatStore()
        store.script.extend([fate] * (100 if fate == "lost before" else 1))
        store.finding.extend(["lost"] * 100 if fate == "lost before" else [])
        async with combining(store, deadline_s=0.03, sleep=asyncio.sleep) as combiner:
            await outcomes([combiner.submit(request(0))])
            store.script.clear()
            store.finding.clear()
            await asyncio.sleep(0.05)
            (answer,) = await outcomes([combiner.submit(request(1))])
            assert isinstance(answer, Held)

    run(scenario)


def test_while_the_database_is_away_newcomers_are_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "PATIENCE_S", 0.01)

    async def scenario() -> None:
        store = SeatStore()
        store.script.extend(["lost before"] * 1_000)
        store.finding.extend(["lost"] * 1_000)
        async with combining(store, sleep=asyncio.sleep) as combiner:
            first = combiner.submit(request(0))
            await asyncio.sleep(0.1)
            with pytest.raises(Overloaded):
                combiner.submit(request(1))
            store.script.clear()
            store.finding.clear()
            assert isinstance((await outcomes([first]))[0], Held)
            assert isinstance((await outcomes([combiner.submit(request(1))]))[0], Held)

    run(scenario)


def test_a_request_that_is_never_settled_is_refused_in_the_end() -> None:
    async def scenario() -> None:
        class Restless(SeatStore):
            """Free whenever one looks, and never to be had."""

            def _decide(self, request: HoldRequest) -> Verdict:
                return Verdict(NOW, {n: facts(n, state="available") for n in range(len(request.seats))})

        store = Restless()
        async with combining(store) as combiner:
            (answer,) = await outcomes([combiner.submit(request(4))])
        assert isinstance(answer, SeatHeldByAnother)
        assert answer.facts["expires_in"] == 0
        assert len(store.batches) == MAX_ATTEMPTS

    run(scenario)


# Bounds --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("same_seat", [False, True], ids=["in the queue", "behind a seat"])
def test_one_more_than_the_queue_takes_is_refused_at_once(same_seat: bool) -> None:
    async def scenario() -> None:
        store = SeatStore()
        store.gate = asyncio.Event()
        async with combining(store, lanes=2, batch_size=1, queue_limit=10) as combiner:
            # One lane stays free to find those who want a seat that is under way.
            busy = [combiner.submit(request(100 + n)) for n in range(1 if same_seat else 2)]
            await under_way(store, len(busy))
            waiting: list[asyncio.Future[Held]] = []
            for n in range(10):
                waiting.append(combiner.submit(request(100 if same_seat else n)))
                await asyncio.sleep(0.002)
            with pytest.raises(Overloaded) as refused:
                combiner.submit(request(100))
            assert refused.value.facts["retry_after_s"] == 1
            store.gate.set()
            assert all(isinstance(a, Held) for a in await outcomes(busy))
            expected = SeatHeldByAnother if same_seat else Held
            assert all(isinstance(a, expected) for a in await outcomes(waiting))
            assert isinstance((await outcomes([combiner.submit(request(50))]))[0], Held)  # there is room again

    run(scenario)


def test_who_waited_longer_than_the_deadline_is_refused_and_not_held() -> None:
    async def scenario() -> None:
        store = SeatStore()
        store.gate = asyncio.Event()
        async with combining(store, batch_size=1, deadline_s=0.02) as combiner:
            first = combiner.submit(request(0))
            await under_way(store)
            late = combiner.submit(request(1))
            await asyncio.sleep(0.05)
            store.gate.set()
            answers = await outcomes([first, late])
        assert isinstance(answers[0], Held)
        assert isinstance(answers[1], Overloaded)
        assert 1 not in store.holds

    run(scenario)


def test_a_caller_who_went_away_before_the_batch_is_not_asked_for() -> None:
    async def scenario() -> None:
        store = SeatStore()
        store.gate = asyncio.Event()
        async with combining(store) as combiner:
            first = combiner.submit(request(0))
            await under_way(store)
            gone = combiner.submit(request(1))
            stays = combiner.submit(request(2))
            gone.cancel()
            store.gate.set()
            await outcomes([first, stays])
        assert set(store.holds) == {0, 2}

    run(scenario)


def test_a_caller_who_goes_away_with_the_batch_under_way_harms_nobody() -> None:
    async def scenario() -> None:
        store = SeatStore()
        store.gate = asyncio.Event()
        async with combining(store) as combiner:
            gone, other = combiner.submit(request(0)), combiner.submit(request(1))
            await under_way(store)
            follower = combiner.submit(request(0))
            await asyncio.sleep(0)
            gone.cancel()
            store.gate.set()
            answers = await outcomes([other, follower])
        assert isinstance(answers[0], Held)
        assert isinstance(answers[1], SeatHeldByAnother)  # the seat was taken for the one who went; it lapses

    run(scenario)


def test_closing_finishes_what_was_accepted_and_takes_no_more() -> None:
    async def scenario() -> None:
        store = SeatStore()
        combiner = Combiner(store, lanes=2, batch_size=4)
        combiner.start()
        me = new_id()
        futures = [combiner.submit(request(n)) for n in range(20)]
        futures += [combiner.submit(request(0, user=me)), combiner.submit(request(30, 31, user=me))]
        closing = asyncio.create_task(combiner.close())
        await asyncio.sleep(0)
        with pytest.raises(Overloaded):
            combiner.submit(request(99))
        await closing
        assert all(future.done() for future in futures)
        answers = await outcomes(futures)
        assert [isinstance(a, Held) for a in answers] == [True] * 20 + [False, True]
        assert isinstance(answers[20], Refusal)

    run(scenario)
