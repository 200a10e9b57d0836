"""The hot tier: what is in memory equals the inventory, refuses what is taken, and is never trusted too long."""

import asyncio
import random
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.holds.lifecycle import SeatState
from holdfast.kernel.ids import new_id
from holdfast.live.message import Message
from holdfast.seating.layout import Layout, seat_uuid_column
from holdfast.store.hot.event import FOREVER, HotEvent
from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.stage import Stage, stage

SEATS = 6
NOW = datetime(2026, 5, 1, tzinfo=UTC)
EVENT, ORGANIZATION = new_id(), new_id()


def layout(seats: int = SEATS) -> Layout:
    ids = [f"A-{n}" for n in range(seats)]
    layout_id = new_id()
    return Layout(layout_id=layout_id, zones=(), seat_ids=ids, seat_uuids=seat_uuid_column(layout_id, ids))


def message(
    ordinal: int,
    version: int,
    state: SeatState,
    *,
    until_s: float | None = None,
    user: UUID | None = None,
    xid: int = 1,
    shortened: bool = False,
) -> Message:
    return Message(
        organization_id=ORGANIZATION,
        id=1,
        xid=xid,
        at=NOW,
        kind="x",
        event_id=EVENT,
        state=state,
        hold_type="CART" if state is SeatState.HELD else None,
        held_until=None if until_s is None else NOW + timedelta(seconds=until_s),
        ordinals=[ordinal],
        versions=[version],
        hold_ids=[None],
        user_ids=[user],
        payload={"shortened": True} if shortened else None,
    )


# One seat's life as the database would tell it: versions count up; a held seat may be extended at the same version.
STATES = st.sampled_from(list(SeatState))
LIVES = st.lists(st.tuples(STATES, st.integers(0, 2)), min_size=1, max_size=6)


@settings(max_examples=300, deadline=None)
@given(lives=st.lists(LIVES, min_size=1, max_size=SEATS), seed=st.integers(0, 2**32))
def test_messages_in_any_order_and_more_than_once_lead_to_the_newest_state(
    lives: list[list[tuple[SeatState, int]]], seed: int
) -> None:
    told: list[Message] = []
    last: dict[int, tuple[SeatState, int, float]] = {}
    for ordinal, life in enumerate(lives):
        for version, (state, extensions) in enumerate(life, 1):
            for n in range(1 + (extensions if state is SeatState.HELD else 0)):
                until_s = 100.0 * version + n
                told.append(message(ordinal, version, state, until_s=until_s))
                last[ordinal] = (state, version, until_s)
    chance = random.Random(seed)
    shuffled = told + chance.choices(told, k=len(told))
    chance.shuffle(shuffled)
    # Every message arrives at least once, whatever else does.
    event = HotEvent(ORGANIZATION, EVENT, layout())
    for each in shuffled:
        event.apply(each)
    for ordinal, (state, version, until_s) in last.items():
        assert event.states[ordinal] == list(SeatState).index(state)
        assert event.versions[ordinal] == version
        if state is SeatState.HELD:
            assert event.until[ordinal] == NOW.timestamp() + until_s
            assert event.refused_until[ordinal] == NOW.timestamp() + until_s
        else:
            assert event.refused_until[ordinal] == (0.0 if state is SeatState.AVAILABLE else FOREVER)


@settings(max_examples=300, deadline=None)
@given(
    begins=st.integers(1, 50),
    ends=st.lists(st.integers(0, 50), min_size=1, max_size=5),
    seed=st.integers(0, 2**32),
)
def test_of_a_hold_that_was_shortened_nobody_is_refused_past_its_true_end(
    begins: int, ends: list[int], seed: int
) -> None:
    """Whatever the order: memory may ask too early, and must never refuse too long."""
    told = [message(0, 1, SeatState.HELD, until_s=begins)]
    for before, until_s in zip([begins, *ends], ends, strict=False):
        told.append(message(0, 1, SeatState.HELD, until_s=until_s, shortened=until_s < before))
    chance = random.Random(seed)
    shuffled = told + chance.choices(told, k=len(told))
    chance.shuffle(shuffled)
    event = HotEvent(ORGANIZATION, EVENT, layout())
    for each in shuffled:
        event.apply(each)
    last = NOW.timestamp() + ends[-1]
    if any(each.shortened for each in told):
        assert event.refused_until[0] <= last
        assert event.unsure[0]
        event.apply(message(0, 2, SeatState.HELD, until_s=99))
        assert (event.refused_until[0], event.unsure[0]) == (NOW.timestamp() + 99, False)
    else:
        assert (event.refused_until[0], event.unsure[0]) == (NOW.timestamp() + max([begins, *ends]), False)


def test_who_is_refused_and_for_how_long() -> None:
    event = HotEvent(ORGANIZATION, EVENT, layout())
    owner, other = new_id(), new_id()
    now = NOW.timestamp()
    event.apply(message(0, 1, SeatState.HELD, until_s=60, user=owner))
    event.apply(message(1, 1, SeatState.SOLD))
    event.apply(message(2, 1, SeatState.HELD))
    assert event.refusal(0, other, now) == 60
    assert event.refusal(0, None, now) == 60
    assert event.refusal(0, owner, now) == 0  # may ask for it again
    assert event.refusal(0, other, now + 60) == 0  # over: the database decides, swept or not
    assert event.refusal(1, other, now) == FOREVER
    assert event.refusal(2, other, now) == FOREVER  # no end
    assert event.refusal(3, other, now) == 0
    event.doubt([0, 1, 99, -1], look=1)
    assert event.refusal(0, other, now) == 0
    assert event.refusal(1, other, now) == 0


def test_only_what_a_viewer_would_see_counts_as_a_change() -> None:
    event = HotEvent(ORGANIZATION, EVENT, layout())
    assert event.apply(message(0, 1, SeatState.HELD, until_s=60, xid=7)) == [0]
    assert event.apply(message(0, 1, SeatState.HELD, until_s=90, xid=8)) == ()
    assert event.revision == 1
    assert event.changed_since(7) == [0]
    assert event.changed_since(8) == []
    assert event.apply(message(0, 2, SeatState.AVAILABLE, xid=9)) == [0]
    assert event.changed_since(8) == [0]


async def truth(made: Stage) -> list[tuple[int, int, str | None]]:
    rows = await made.sql(
        """
        SELECT array_position('{available,held,sold,blocked}'::seat_state[], state) - 1, version,
          CASE WHEN state IN ('held', 'sold') THEN hold_type END
        FROM event_seats WHERE event_id = $1 ORDER BY ordinal
        """,
        UUID(made.event_id),
    )
    return [tuple(row) for row in rows]


def in_memory(made: Stage) -> list[tuple[int, int, str | None]]:
    event = made.app.hot.known(made.first.organization_id, UUID(made.event_id))
    assert event is not None
    names = [event.hold_types[n] for n in event.types]
    return list(zip(event.states.tolist(), event.versions.tolist(), names, strict=True))


def test_an_event_read_in_the_middle_of_a_sale_misses_nothing(database: TestDatabase) -> None:
    """Two processes; one sells while the other reads the event, drops it and reads it again."""

    async def check() -> None:
        config = theatre_config(10, 20)
        async with stage(database, config) as one, stage(database, config, organization=one.first) as two:
            two.event_id, two.seats = one.event_id, one.seats
            over = False

            async def buy(chance: random.Random) -> None:
                buyer = await one.member()
                while not over:
                    answer = await one.reserve(chance.randrange(len(one.seats)), buyer)
                    if answer.status_code == 201 and chance.random() < 0.5:
                        await one.client.delete(f"/api/holds/{answer.json()['data']['hold_id']}", headers=buyer)
                    if answer.status_code == 429:
                        buyer = await one.member()

            crowd = [asyncio.create_task(buy(random.Random(n))) for n in range(4)]
            view = await two.app.catalogue.event(one.first.organization_id, UUID(one.event_id))
            assert view is not None
            for _ in range(8):
                await two.app.hot.event(view)
                await asyncio.sleep(0.15)
                two.app.hot.drop((view.organization_id, view.id), "test")
            await two.app.hot.event(view)
            await asyncio.sleep(0.2)
            over = True
            await asyncio.gather(*crowd)
            await two.app.feed.caught_up()
            assert in_memory(two) == await truth(two)
            assert sum(version for _, version, _ in in_memory(two)) > 20

    asyncio.run(check())


def test_every_kind_of_move_reaches_the_memory_of_another_process(database: TestDatabase) -> None:
    async def check() -> None:
        async with stage(database) as one, stage(database, organization=one.first) as two:
            two.event_id = one.event_id
            view = await two.app.catalogue.event(one.first.organization_id, UUID(one.event_id))
            assert view is not None
            await two.app.hot.event(view)
            base, query = "/api/private/v2.0/booking", f"?eventId={one.event_id}"

            async def book(what: str, *numbers: int, **more: Any) -> None:
                seats = [{"id": one.seats[n]["booking_id"]} for n in numbers]
                body = {"sessionId": "s", "seats": seats, "groupOfSeats": [], **more}
                answer = await one.client.post(f"{base}/{what}{query}", json=body, headers=one.api_key)
                assert answer.json() is True, answer.text

            buyer = await one.buyer()
            await one.reserve(0, buyer)
            await book("lock", 1, 2, 3)
            await book("sale", 1)
            await book("unlock", 2)
            await book("directsale", 4, 5)
            await book("revertsale", 5)
            block = f"/api/events/{one.event_id}/seats/"
            await one.post(
                block + "block", {"seats": [one.seats[n]["id"] for n in (1, 6, 7)], "reason": "x", "force": True}
            )
            await one.post(block + "unblock", {"seats": [one.seats[n]["id"] for n in (1, 7)]})
            await one.reserve(8, one.admin, holdType="RESERVED")
            await one.hold(buyer, ga=[{"zone_id": "pit", "quantity": 4}])
            await two.app.feed.caught_up()
            assert in_memory(two) == await truth(two)
            event = two.app.hot.known(one.first.organization_id, UUID(one.event_id))
            assert event is not None
            assert [(zone.held, zone.sold) for zone in event.zones.values()] == [(4, 0)]
            assert np.bincount(event.states, minlength=4).tolist()[1:] == [3, 2, 1]

    asyncio.run(check())


def test_a_hold_on_one_process_is_refused_by_the_memory_of_the_other(database: TestDatabase) -> None:
    async def check() -> None:
        async with stage(database) as one, stage(database, organization=one.first) as two:
            view = await two.app.catalogue.event(one.first.organization_id, UUID(one.event_id))
            assert view is not None
            event = await two.app.hot.event(view)
            assert (await one.reserve(0, await one.buyer())).status_code == 201
            began = time.monotonic()
            while event.refusal(0, None, two.app.feed.database_now()) == 0:
                await asyncio.sleep(0.002)
                assert time.monotonic() - began < 5
            refused = await two.client.post(one.seat_path(0), headers=await one.buyer())
            assert refused.status_code == 409
            body = refused.json()
            assert body["error"] == "seat_held_by_another_user"
            assert 290 <= body["expires_in"] <= 300
            assert body["seat_id"] == one.seats[0]["id"]

    asyncio.run(check())


def test_control_without_the_memory_the_database_is_asked(database: TestDatabase) -> None:
    async def check() -> None:
        async with stage(database, hot_events=0) as made:
            assert (await made.reserve(0, await made.buyer())).status_code == 201
            await made.app.feed.caught_up()
            assert (await made.reserve(0, await made.buyer())).status_code == 409
            assert made.app.hot.events() == []

    asyncio.run(check())


def test_a_released_seat_is_free_at_once_for_everybody_on_this_process(database: TestDatabase) -> None:
    async def check() -> None:
        async with stage(database) as made:
            await made.client.get(f"/api/events/{made.event_id}/availability", headers=made.admin)
            for n in range(30):
                one, other = await made.buyer(), await made.buyer()
                held = await made.reserve(0, one)
                assert held.status_code == 201, held.text
                if n % 3:
                    await made.app.feed.caught_up()
                    assert (await made.reserve(0, other)).status_code == 409
                hold = f"/api/holds/{held.json()['data']['hold_id']}"
                assert (await made.client.delete(hold, headers=one)).status_code == 200
                taken = await made.reserve(0, other)
                assert taken.status_code == 201, taken.text
                await made.client.delete(f"/api/holds/{taken.json()['data']['hold_id']}", headers=other)

    asyncio.run(check())


def test_a_look_that_was_under_way_does_not_settle_a_doubt() -> None:
    event = HotEvent(ORGANIZATION, EVENT, layout())
    now = NOW.timestamp()
    event.doubt([0], look=7)  # released by this process while look 7 was under way
    event.apply(message(0, 1, SeatState.HELD, until_s=60))  # which brings what was before
    event.settle_doubts(7)
    assert event.refusal(0, None, now) == 0
    event.apply(message(0, 3, SeatState.HELD, until_s=90))
    event.settle_doubts(8)
    assert event.refusal(0, None, now) == 90


def test_memory_is_bounded_by_events_and_by_bytes(database: TestDatabase) -> None:
    async def check() -> None:
        async with stage(database, hot_events=2) as made:
            events = [made.event_id] + [await made.make_event() for _ in range(3)]
            for event_id in events:
                await made.client.get(f"/api/events/{event_id}/availability", headers=made.admin)
            assert [str(event.event_id) for event in made.app.hot.events()] == events[-2:]
        async with stage(database, hot_bytes=20_000) as made:
            events = [made.event_id] + [await made.make_event(theatre_config(20, 20)) for _ in range(3)]
            for event_id in events:
                await made.client.get(f"/api/events/{event_id}/availability", headers=made.admin)
            assert sum(event.size_bytes for event in made.app.hot.events()) <= 20_000

    asyncio.run(check())


def test_when_the_feed_is_lost_everything_is_read_anew(database: TestDatabase) -> None:
    async def check() -> None:
        async with stage(database) as made:
            buyer = await made.buyer()
            await made.client.get(f"/api/events/{made.event_id}/availability", headers=buyer)
            assert made.app.hot.events() != []
            made.app.feed._lose()
            assert made.app.hot.events() == []
            assert (await made.reserve(0, buyer)).status_code == 201
            await made.app.feed.caught_up()
            answer = await made.client.get(f"/api/events/{made.event_id}/availability", headers=buyer)
            assert answer.json()["data"]["states"][0] == "h"

    asyncio.run(check())


def test_a_memory_that_hears_nothing_refuses_nobody(database: TestDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    async def check() -> None:
        async with stage(database) as made:
            await made.client.get(f"/api/events/{made.event_id}/availability", headers=made.admin)
            (event,) = made.app.hot.events()
            event.refused_until[0] = FOREVER
            assert (await made.reserve(0, await made.buyer())).status_code == 409

            async def fail(began: float) -> None:
                raise OSError("no way")

            monkeypatch.setattr(made.app.feed, "_look", fail)
            await asyncio.sleep(1.1)
            assert (await made.reserve(0, await made.buyer())).status_code == 201

    asyncio.run(check())
