"""The feed's messages as the warm tier writes them down, on a real server."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from holdfast.kernel.ids import new_id
from holdfast.store.embedded import ValkeyServer
from holdfast.store.redis.keys import iso, member, seat_value
from holdfast.store.redis.moves import BATCH_MAX
from holdfast.store.redis.warm import Warm
from holdfast.store.redis.warm_hold import WarmHold
from tests.conftest import ask_valkey
from tests.store.redis_ground import Hall, layout_of, opened, run

ENDS = ["SeatReleased", "SeatHoldExpired", "SeatSold", "SeatBlocked"]


async def raw(warm: Warm, *words: Any) -> Any:
    return await warm.connection.client.execute_command(*words)


async def keys_of(warm: Warm, hall: Hall) -> list[str]:
    """Everything but the bitmap."""
    found = await raw(warm, "KEYS", f"*{hall.organization_id}*")
    return sorted(key.decode() for key in found if not key.endswith(b"bitmap"))


async def members(warm: Warm, hall: Hall) -> list[str]:
    return [
        m.decode() for m in await raw(warm, "ZRANGE", warm.keys.seat_holds(hall.organization_id, hall.event_id), 0, -1)
    ]


async def meta(warm: Warm, hall: Hall, hold: UUID) -> dict[str, str]:
    found = await raw(warm, "HGETALL", warm.keys.meta(hall.organization_id, hold))
    return {name.decode(): value.decode() for name, value in found.items()}


def test_a_hold_is_written_into_every_key(valkey: str) -> None:
    hall, hold, user = Hall(), new_id(), new_id()

    async def work(warm: Warm) -> None:
        keys, org, seat = warm.keys, hall.organization_id, hall.seat(3)
        begun = hall.move("SeatReserved", [3], [hold], 1, lives_s=300, user_ids=[user])
        assert await hall.apply(warm, begun)
        until = begun.held_until
        assert await members(warm, hall) == [member(seat, hold, user, until)]
        assert await raw(warm, "ZSCORE", keys.seat_holds(org, hall.event_id), member(seat, hold, user, until)) == int(
            until.timestamp() if until else 0
        )
        assert (await raw(warm, "GET", keys.seat(org, seat))).decode() == seat_value(hold, user, until)
        assert await meta(warm, hall, hold) == {
            "seat_id": str(seat),
            "user_id": str(user),
            "event_id": str(hall.event_id),
            "held_until": iso(until),
            "created_at": iso(hall.now),
            "source": "web",
            "status": "active",
            "hold_type": "CART",
            "version": "1",
        }
        for key in (keys.seat(org, seat), keys.meta(org, hold)):
            assert 295_000 < await raw(warm, "PTTL", key) <= 300_000
        assert 86_000 < await raw(warm, "TTL", keys.bitmap(org, hall.event_id)) <= 86_400
        assert [await hall.bit(warm, ordinal) for ordinal in (2, 3, 4)] == [0, 1, 0]
        found = await warm.find_hold(org, hall.event_id, seat)
        assert found == WarmHold(
            hold_id=hold,
            event_id=hall.event_id,
            seat_id=seat,
            user_id=user,
            held_until=until,
            created_at=hall.now,
            source="web",
            hold_type="CART",
            version=1,
        )

    run(valkey, work)


@pytest.mark.parametrize("kind", ENDS)
def test_every_end_takes_the_hold_out_of_every_key(valkey: str, kind: str) -> None:
    hall, hold, other = Hall(), new_id(), new_id()

    async def work(warm: Warm) -> None:
        assert await hall.apply(warm, hall.move("SeatReserved", [3, 4], [hold, other], 1, lives_s=300))
        left = await keys_of(warm, hall)
        assert await hall.apply(warm, hall.move(kind, [3], [hold], 2))
        gone = [warm.keys.seat(hall.organization_id, hall.seat(3)), warm.keys.meta(hall.organization_id, hold)]
        assert await keys_of(warm, hall) == [key for key in left if key not in gone]
        assert len(await members(warm, hall)) == 1
        assert await hall.bit(warm, 3) == (1 if kind in ("SeatSold", "SeatBlocked") else 0)
        assert await hall.bit(warm, 4) == 1

    run(valkey, work)


@pytest.mark.parametrize(
    ("kind", "bit"), [("SeatSold", 1), ("SeatBlocked", 1), ("SaleReverted", 0), ("SeatUnblocked", 0)]
)
def test_a_move_without_a_hold_is_in_the_bitmap_alone(valkey: str, kind: str, bit: int) -> None:
    hall = Hall()

    async def work(warm: Warm) -> None:
        assert await warm.set_bitmap(hall.organization_id, hall.event_id, b"\xf0\xf0" if bit == 0 else b"")
        assert await hall.apply(warm, hall.move(kind, [9], [None], 2))
        assert await hall.bit(warm, 9) == bit
        assert await keys_of(warm, hall) == []

    run(valkey, work)


def test_a_hold_without_end_does_not_lapse(valkey: str) -> None:
    hall, hold = Hall(), new_id()

    async def work(warm: Warm) -> None:
        assert await hall.apply(warm, hall.move("SeatReserved", [0], [hold], 1))
        org, seat = hall.organization_id, hall.seat(0)
        assert await members(warm, hall) == [f"{seat}:{hold}::"]
        assert await raw(warm, "ZSCORE", warm.keys.seat_holds(org, hall.event_id), f"{seat}:{hold}::") == float("inf")
        assert await raw(warm, "GET", warm.keys.seat(org, seat)) == f"{hold}::0".encode()
        assert await raw(warm, "PTTL", warm.keys.seat(org, seat)) == -1
        assert await raw(warm, "PTTL", warm.keys.meta(org, hold)) == -1
        found = await warm.find_hold(org, hall.event_id, seat)
        assert found is not None
        assert found.held_until is None
        assert await hall.apply(warm, hall.move("SeatReleased", [0], [hold], 2))
        assert await keys_of(warm, hall) == []

    run(valkey, work)


def test_an_extension_replaces_the_old_end_and_keeps_the_beginning(valkey: str) -> None:
    hall, hold = Hall(), new_id()

    async def work(warm: Warm) -> None:
        began = hall.now
        assert await hall.apply(warm, hall.move("SeatReserved", [0], [hold], 1, lives_s=60))
        hall.now += timedelta(seconds=1)
        extended = hall.move("SeatHoldExtended", [0], [hold], 1, lives_s=600)
        assert await hall.apply(warm, extended)
        assert await members(warm, hall) == [member(hall.seat(0), hold, None, extended.held_until)]
        assert (await meta(warm, hall, hold))["created_at"] == iso(began)
        assert await raw(warm, "PTTL", warm.keys.seat(hall.organization_id, hall.seat(0))) > 590_000
        assert await raw(warm, "PTTL", warm.keys.meta(hall.organization_id, hold)) > 590_000

    run(valkey, work)


def test_a_hold_begun_and_extended_in_one_reading_knows_when_it_began(valkey: str) -> None:
    hall, hold = Hall(), new_id()

    async def work(warm: Warm) -> None:
        began = hall.now
        begun = hall.move("SeatReserved", [0], [hold], 1, lives_s=60)
        hall.now += timedelta(seconds=1)
        extended = hall.move("SeatHoldExtended", [0], [hold], 1, lives_s=600)
        for messages in ((begun, extended), (extended, begun)):
            await raw(warm, "FLUSHALL")
            assert await hall.apply(warm, *messages)
            assert (await meta(warm, hall, hold))["created_at"] == iso(began)
            assert await members(warm, hall) == [member(hall.seat(0), hold, None, extended.held_until)]

    run(valkey, work)


def test_a_repeated_message_changes_nothing(valkey: str) -> None:
    hall, hold = Hall(), new_id()

    async def work(warm: Warm) -> None:
        begun = hall.move("SeatReserved", [0], [hold], 1, lives_s=60)
        extended = hall.move("SeatHoldExtended", [0], [hold], 1, lives_s=600)
        ended = hall.move("SeatReleased", [0], [hold], 2)
        assert await hall.apply(warm, begun, begun)
        before = await members(warm, hall)
        assert await hall.apply(warm, begun)
        assert await members(warm, hall) == before
        assert await hall.apply(warm, extended)
        after = await members(warm, hall)
        assert await hall.apply(warm, begun), "older than what is there"
        assert await members(warm, hall) == after
        for _ in range(2):
            assert await hall.apply(warm, ended)
            assert await keys_of(warm, hall) == []

    run(valkey, work)


def test_of_one_reading_the_newest_version_counts_in_any_order(valkey: str) -> None:
    hall, first, second = Hall(), new_id(), new_id()
    moves = [
        hall.move("SeatReserved", [0], [first], 1, lives_s=60),
        hall.move("SeatHoldExpired", [0], [first], 2),
        hall.move("SeatReserved", [0], [second], 3, lives_s=90),
    ]

    async def work(warm: Warm) -> None:
        for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2), (2, 0, 1)):
            await raw(warm, "FLUSHALL")
            assert await hall.apply(warm, *(moves[n] for n in order))
            assert await members(warm, hall) == [member(hall.seat(0), second, None, moves[2].held_until)]
            assert len(await keys_of(warm, hall)) == 3
            assert await hall.bit(warm, 0) == 1
            assert await hall.apply(warm, hall.move("SeatReleased", [0], [second], 4), moves[0], moves[1])
            assert await keys_of(warm, hall) == []
            assert await hall.bit(warm, 0) == 0

    run(valkey, work)


def test_an_older_reading_does_not_write_over_a_newer_one(valkey: str) -> None:
    hall, first, second = Hall(), new_id(), new_id()

    async def work(warm: Warm) -> None:
        newest = hall.move("SeatReserved", [0], [second], 3, lives_s=90)
        assert await hall.apply(warm, newest)
        assert await hall.apply(warm, hall.move("SeatReserved", [0], [first], 1, lives_s=60))
        assert await hall.apply(warm, hall.move("SeatHoldExpired", [0], [first], 2))
        assert await members(warm, hall) == [member(hall.seat(0), second, None, newest.held_until)]
        assert await hall.bit(warm, 0) == 1
        found = await warm.find_hold(hall.organization_id, hall.event_id, hall.seat(0))
        assert found is not None
        assert found.hold_id == second

    run(valkey, work)


def test_a_hold_whose_end_was_missed_gives_way_to_the_next(valkey: str) -> None:
    hall, first, second = Hall(), new_id(), new_id()

    async def work(warm: Warm) -> None:
        assert await hall.apply(warm, hall.move("SeatReserved", [0], [first], 1, lives_s=60))
        assert await hall.apply(warm, hall.move("SeatReserved", [0], [second], 3, lives_s=60))
        assert [m.split(":")[1] for m in await members(warm, hall)] == [str(second)]
        assert await meta(warm, hall, first) == {}
        assert await hall.apply(warm, hall.move("SeatSold", [0], [None], 5)), "nor was this one's end told"
        assert await keys_of(warm, hall) == []

    run(valkey, work)


def test_keys_lapse_with_their_hold_and_the_sweepers_message_clears_the_rest(valkey: str) -> None:
    hall, hold, later = Hall(), new_id(), new_id()

    async def work(warm: Warm) -> None:
        assert await hall.apply(
            warm,
            hall.move("SeatReserved", [0], [hold], 1, lives_s=0.2),
            hall.move("SeatReserved", [1], [later], 1, lives_s=60),
        )
        assert len(await keys_of(warm, hall)) == 5
        await asyncio.sleep(0.25)
        assert await warm.find_hold(hall.organization_id, hall.event_id, hall.seat(0)) is None
        assert len(await members(warm, hall)) == 2
        hall.now += timedelta(seconds=0.21)
        assert await hall.apply(warm, hall.move("SeatHoldExpired", [0], [hold], 2))
        assert await members(warm, hall) == [member(hall.seat(1), later, None, hall.now + timedelta(seconds=60 - 0.21))]
        assert [await hall.bit(warm, ordinal) for ordinal in (0, 1)] == [0, 1]

    run(valkey, work)


def test_a_hold_that_is_over_when_it_is_told_is_not_written(valkey: str) -> None:
    hall, hold = Hall(), new_id()

    async def work(warm: Warm) -> None:
        assert await hall.apply(warm, hall.move("SeatReserved", [0], [hold], 1, lives_s=-1))
        assert await keys_of(warm, hall) == []
        assert await hall.bit(warm, 0) == 0

    run(valkey, work)


def test_two_events_of_one_layout_do_not_take_each_others_holds_away(valkey: str) -> None:
    one = Hall()
    other = Hall(layout=one.layout, organization_id=one.organization_id)
    first, second = new_id(), new_id()

    async def work(warm: Warm) -> None:
        assert await one.apply(warm, one.move("SeatReserved", [0], [first], 1, lives_s=60))
        assert await other.apply(warm, other.move("SeatReserved", [0], [second], 1, lives_s=60))
        org, seat = one.organization_id, one.seat(0)
        assert (len(await members(warm, one)), len(await members(warm, other))) == (1, 1)
        assert await warm.find_hold(org, one.event_id, seat) is None, "the seat's key is the other event's now"
        assert await warm.seats_elsewhere(org, one.event_id, [seat, one.seat(1)]) == {seat}
        assert await warm.seats_elsewhere(org, other.event_id, [seat, one.seat(1)]) == set()
        assert await one.apply(warm, one.move("SeatReleased", [0], [first], 2))
        found = await warm.find_hold(org, other.event_id, seat)
        assert found is not None
        assert found.hold_id == second
        assert (await members(warm, one), len(await members(warm, other))) == ([], 1)
        assert (await one.bit(warm, 0), await other.bit(warm, 0)) == (0, 1)

    run(valkey, work)


def test_places_in_a_zone_have_a_meta_and_nothing_else(valkey: str) -> None:
    hall, hold, other, user = Hall(), new_id(), new_id(), new_id()

    async def work(warm: Warm) -> None:
        begun = hall.places(
            "SeatReserved", [hold, other], [4, 1], lives_s=60, zone_no=1, zone_version=1, user_ids=[user, None]
        )
        assert await hall.apply(warm, begun)
        org = hall.organization_id
        assert await keys_of(warm, hall) == sorted(warm.keys.meta(org, h) for h in (hold, other))
        assert await meta(warm, hall, hold) == {
            "zone_no": "1",
            "quantity": "4",
            "user_id": str(user),
            "event_id": str(hall.event_id),
            "held_until": iso(begun.held_until),
            "created_at": iso(hall.now),
            "source": "web",
            "status": "active",
            "hold_type": "CART",
        }
        extended = hall.places("SeatHoldExtended", [hold], [4], lives_s=600, user_ids=[user])
        assert await hall.apply(warm, extended)
        known = await meta(warm, hall, hold)
        assert (known["held_until"], known["zone_no"]) == (iso(extended.held_until), "1")
        assert await raw(warm, "PTTL", warm.keys.meta(org, hold)) > 590_000
        sold = hall.places("SeatSold", [hold, None], [4, 2], zone_no=1, zone_version=2)
        assert await hall.apply(warm, sold, begun, extended)
        assert await keys_of(warm, hall) == [warm.keys.meta(org, other)]

    run(valkey, work)


def test_every_touched_events_occupancy_is_dropped_and_no_other(valkey: str) -> None:
    moved, sold, quiet = Hall(), Hall(), Hall()

    async def work(warm: Warm) -> None:
        for hall in (moved, sold, quiet):
            assert await warm.set_occupancy(hall.organization_id, hall.event_id, b"{}")
        layouts = {moved.event_id: moved.layout, sold.event_id: sold.layout}
        messages = [
            moved.move("SeatReserved", [0], [new_id()], 1, lives_s=60),
            sold.places("SeatSold", [None], [2], zone_no=1, zone_version=2),
            quiet.move("SeatBlocked", None, [], 0, payload={"name": "of something else"}),
        ]
        assert await warm.apply(messages, layouts, moved.now)
        left = [await warm.get_occupancy(hall.organization_id, hall.event_id) for hall in (moved, sold, quiet)]
        assert left == [None, None, b"{}"]

    run(valkey, work)


def test_organizations_are_written_apart(valkey: str) -> None:
    halls = [Hall() for _ in range(20)]

    async def work(warm: Warm) -> None:
        messages = [hall.move("SeatReserved", [0], [new_id()], 1, lives_s=60) for hall in halls]
        assert await warm.apply(messages, {hall.event_id: hall.layout for hall in halls}, halls[0].now)
        for hall in halls:
            assert len(await keys_of(warm, hall)) == 3

    run(valkey, work)


def test_without_its_layout_an_events_holds_end_all_the_same(valkey: str) -> None:
    hall, hold = Hall(), new_id()

    async def work(warm: Warm) -> None:
        assert await hall.apply(warm, hall.move("SeatReserved", [5], [hold], 1, lives_s=60))
        assert await warm.apply([hall.move("SeatReleased", [5], [hold], 2)], {}, hall.now)
        assert await keys_of(warm, hall) == []
        assert await hall.bit(warm, 5) == 0
        assert await warm.apply([hall.move("SeatReserved", [5], [new_id()], 3, lives_s=60)], {}, hall.now)
        assert await keys_of(warm, hall) == []

    run(valkey, work)


def test_many_seats_are_written_in_small_parts(valkey: str) -> None:
    seats = 10_000
    hall = Hall(layout=layout_of(seats))
    holds: list[UUID | None] = [new_id() for _ in range(seats)]

    async def work(warm: Warm) -> None:
        await raw(warm, "CONFIG", "RESETSTAT")
        assert await hall.apply(warm, hall.move("SeatReserved", list(range(seats)), holds, 1, lives_s=600))
        scripts = (await warm.connection.client.info("commandstats"))["cmdstat_evalsha"]
        assert scripts["calls"] >= seats / BATCH_MAX
        assert await raw(warm, "ZCARD", warm.keys.seat_holds(hall.organization_id, hall.event_id)) == seats
        found = await warm.holds_of_event(hall.organization_id, hall.event_id)
        assert found is not None
        assert {hold.hold_id for hold in found} == set(holds)
        assert {hold.seat_id for hold in found} == {hall.seat(ordinal) for ordinal in range(seats)}
        assert await warm.get_bitmap(hall.organization_id, hall.event_id) == b"\xff" * (seats // 8)
        assert await hall.apply(warm, hall.move("SeatReleased", list(range(seats)), holds, 2))
        assert await keys_of(warm, hall) == []
        assert set(await warm.get_bitmap(hall.organization_id, hall.event_id) or b"") == {0}

    run(valkey, work, timeout_s=5)


def test_a_server_that_forgot_the_scripts_gets_them_again(valkey: str, valkey_server: ValkeyServer) -> None:
    hall = Hall()

    async def work(warm: Warm) -> None:
        assert await hall.apply(warm, hall.move("SeatReserved", [0], [new_id()], 1, lives_s=60))
        assert ask_valkey(valkey_server.address, "SCRIPT FLUSH SYNC") == "+OK"
        assert await hall.apply(warm, hall.move("SeatReserved", [1], [new_id()], 1, lives_s=60))
        assert len(await members(warm, hall)) == 2
        assert warm.available

    run(valkey, work)


def test_keys_of_another_type_give_way(valkey: str) -> None:
    hall, hold = Hall(), new_id()

    async def work(warm: Warm) -> None:
        keys, org, event = warm.keys, hall.organization_id, hall.event_id
        await raw(warm, "SET", keys.seat_holds(org, event), "poison")
        await raw(warm, "LPUSH", keys.seat(org, hall.seat(0)), "poison")
        await raw(warm, "SET", keys.meta(org, hold), "poison")
        await raw(warm, "LPUSH", keys.bitmap(org, event), "poison")
        await raw(warm, "LPUSH", keys.occupancy(org, event), "poison")
        assert await warm.find_hold(org, event, hall.seat(0)) is None
        assert await warm.get_occupancy(org, event) is None
        assert await warm.get_bitmap(org, event) is None
        assert await warm.holds_of_event(org, event) == []
        await raw(warm, "SET", keys.seat_holds(org, event), "poison")
        await raw(warm, "LPUSH", keys.bitmap(org, event), "poison")
        extended = hall.move("SeatHoldExtended", [0], [hold], 1, lives_s=60)
        assert await hall.apply(warm, extended)
        assert len(await keys_of(warm, hall)) == 3
        assert await hall.bit(warm, 0) == 1
        assert warm.available

    run(valkey, work)


def test_members_that_are_none_of_ours_are_cleared_away(valkey: str) -> None:
    hall, hold = Hall(), new_id()

    async def work(warm: Warm) -> None:
        key = warm.keys.seat_holds(hall.organization_id, hall.event_id)
        assert await hall.apply(warm, hall.move("SeatReserved", [0], [hold], 1, lives_s=60))
        await raw(warm, "ZADD", key, 9_999_999_999, "poison", 1, b"\xff:\xff")
        found = await warm.holds_of_event(hall.organization_id, hall.event_id)
        assert found is not None
        assert [known.hold_id for known in found] == [hold]
        assert await raw(warm, "ZCARD", key) == 1

    run(valkey, work)


# For whoever compares with the database ------------------------------------------------------------------------------
def test_holds_are_put_where_they_belong_over_what_stands_there(valkey: str) -> None:
    hall, hold, wrong = Hall(), new_id(), new_id()

    async def work(warm: Warm) -> None:
        org, event, seat = hall.organization_id, hall.event_id, hall.seat(0)
        until = hall.now + timedelta(seconds=60)
        true = WarmHold(
            hold_id=hold,
            event_id=event,
            seat_id=seat,
            held_until=until,
            created_at=hall.now,
            source="web",
            hold_type="CART",
        )
        assert await hall.apply(warm, hall.move("SeatReserved", [0], [wrong], 9, lives_s=600))
        assert await hall.apply(warm, hall.move("SeatReserved", [1], [hold], 9, lives_s=600)), "and at another seat"
        places = WarmHold(hold_id=new_id(), event_id=event, held_until=until, zone_no=2, quantity=3)
        over = WarmHold(hold_id=new_id(), event_id=event, seat_id=hall.seat(2), held_until=hall.now)
        assert await warm.set_occupancy(org, event, b"{}")
        assert await warm.add(org, [true, places, over], hall.now)
        assert await warm.find_hold(org, event, seat) == true
        assert (await meta(warm, hall, places.hold_id))["quantity"] == "3"
        assert await meta(warm, hall, wrong) == {}
        assert await warm.get_occupancy(org, event) == b"{}"
        found = await warm.find_holds(org, event, [hall.seat(n) for n in range(4)])
        assert found is not None
        assert [known and known.hold_id for known in found] == [hold, None, None, None]

    run(valkey, work)


def test_holds_are_removed_only_as_described(valkey: str) -> None:
    hall, hold = Hall(), new_id()

    async def work(warm: Warm) -> None:
        org, event = hall.organization_id, hall.event_id
        assert await hall.apply(warm, hall.move("SeatReserved", [0], [hold], 1, lives_s=60))
        seen = await warm.holds_of_event(org, event)
        assert seen is not None
        assert await hall.apply(warm, hall.move("SeatHoldExtended", [0], [hold], 1, lives_s=600))
        assert await warm.remove(org, seen)
        now = await warm.holds_of_event(org, event)
        assert now is not None
        assert [known.hold_id for known in now] == [hold]
        assert await warm.find_hold(org, event, hall.seat(0)) is not None
        assert await warm.remove(org, now)
        assert await keys_of(warm, hall) == []
        assert await warm.remove(org, now)

    run(valkey, work)


def test_a_hold_somebody_made_up_is_removed_as_it_is_found(valkey: str) -> None:
    hall, hold = Hall(), new_id()

    async def work(warm: Warm) -> None:
        org, event, seat = hall.organization_id, hall.event_id, hall.seat(0)
        await raw(warm, "SET", warm.keys.seat(org, seat), f"{hold}:{new_id()}:9999999999")
        await raw(
            warm, "HSET", warm.keys.meta(org, hold), "event_id", str(event), "seat_id", str(seat), "held_until", ""
        )
        found = await warm.find_hold(org, event, seat)
        assert found is not None
        assert await warm.remove(org, [found])
        assert await keys_of(warm, hall) == []

    run(valkey, work)


def test_occupancy_and_layouts_are_kept_for_their_time(valkey: str) -> None:
    hall = Hall()

    async def work(warm: Warm) -> None:
        org, event, layout = hall.organization_id, hall.event_id, hall.layout.layout_id
        assert await warm.get_layout(org, layout) is None
        assert await warm.set_layout(org, layout, b'{"zones": []}')
        assert await warm.set_occupancy(org, event, b"{}")
        assert await warm.get_layout(org, layout) == b'{"zones": []}'
        assert 86_000 < await raw(warm, "TTL", warm.keys.layout(org, layout)) <= 86_400
        assert 9_000 < await raw(warm, "PTTL", warm.keys.occupancy(org, event)) <= 10_000
        assert await warm.drop_occupancy(org, event)
        assert await warm.get_occupancy(org, event) is None

    run(valkey, work)


def test_what_the_server_holds_of_one_namespace_another_does_not_see(valkey: str) -> None:
    hall = Hall()

    async def work() -> None:
        async with opened(valkey) as warm:
            assert await hall.apply(warm, hall.move("SeatReserved", [0], [new_id()], 1, lives_s=60))
            other = Warm(warm.connection, "other")
            assert await other.find_hold(hall.organization_id, hall.event_id, hall.seat(0)) is None

    asyncio.run(work())


async def everything(warm: Warm, hall: Hall) -> dict[str, Any]:
    """All keys of the organization, with what stands in them and how long they live, to the second."""
    found: dict[str, Any] = {}
    for key in await raw(warm, "KEYS", f"*{hall.organization_id}*"):
        kind = await raw(warm, "TYPE", key)
        read = {b"string": ["GET", key], b"hash": ["HGETALL", key], b"zset": ["ZRANGE", key, 0, -1, "WITHSCORES"]}[kind]
        found[key.decode()] = (await raw(warm, *read), round(await raw(warm, "PTTL", key) / 2000))
    return found


@pytest.mark.parametrize("lives_s", [300, None])
def test_a_server_without_the_newest_commands_gets_the_same(
    valkey: str, tmp_path_factory: pytest.TempPathFactory, lives_s: float | None
) -> None:
    """Holds that began together, by two messages; one of the seats is somebody's already, and one hold is known."""
    hall = Hall()
    holds, users = [new_id() for _ in range(8)], [new_id() for _ in range(8)]
    known = hall.move("SeatReserved", [5], [holds[5]], 2, lives_s=lives_s, user_ids=[users[5]])
    older = hall.move("SeatReserved", [2], [new_id()], 1, lives_s=lives_s, user_ids=[users[0]])
    first = hall.move("SeatReserved", [0, 1, 2, 3], [*holds[:4]], 2, lives_s=lives_s, user_ids=[*users[:4]])
    second = hall.move(
        "SeatReserved", [4, 5, 6, 7], [*holds[4:]], 2, lives_s=lives_s, user_ids=[*users[4:]], versions=[2, 2, 3, 4]
    )

    async def work(warm: Warm) -> dict[str, Any]:
        for messages in ((older,), (known,), (first, second)):
            assert await hall.apply(warm, *messages)
        for n in range(8):
            assert (await meta(warm, hall, holds[n]))["seat_id"] == str(hall.seat(n))
            assert (await meta(warm, hall, holds[n]))["version"] == str([2, 2, 2, 2, 2, 2, 3, 4][n])
            value = await raw(warm, "GET", warm.keys.seat(hall.organization_id, hall.seat(n)))
            assert value.decode() == seat_value(holds[n], users[n], first.held_until)
        assert len(await members(warm, hall)) == 8
        return await everything(warm, hall)

    new = run(valkey, work)
    with ValkeyServer(tmp_path_factory.mktemp("old"), {"rename-command": 'MSETEX ""'}) as old:
        assert "unknown command" in str(ask_valkey(old.address, "MSETEX"))
        assert run(old.address.url(), work) == new


def test_what_is_no_meta_gives_way_to_one(valkey: str) -> None:
    hall, hold, user = Hall(), new_id(), new_id()

    async def work(warm: Warm) -> None:
        await raw(warm, "SET", warm.keys.meta(hall.organization_id, hold), "somebody else's")
        assert await hall.apply(warm, hall.move("SeatReserved", [3], [hold], 1, lives_s=300, user_ids=[user]))
        assert (await meta(warm, hall, hold))["user_id"] == str(user)

    run(valkey, work)
