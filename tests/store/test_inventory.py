"""An event's inventory against a real PostgreSQL: made, read, blocked, given back when the event is cancelled."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any
from uuid import UUID

import asyncpg
import msgspec
import pytest

from holdfast.accounts.principal import Call, Idempotency, Role
from holdfast.holds.claims import HoldRequest, PlacesWanted, SeatWanted
from holdfast.holds.lifecycle import Actor, HoldStatus, LogRow, SeatState, Verb, replay
from holdfast.kernel.errors import (
    EventNotAvailable,
    EventNotFound,
    EventUnavailable,
    Forbidden,
    IdempotencyMismatch,
    IllegalEventMove,
    LayoutNotFound,
    OverrideNotPermitted,
    SeatNotFound,
    SeatSold,
    VenueNotFound,
    ZoneNotFound,
)
from holdfast.kernel.ids import new_id
from holdfast.seating.event import EventInvalid, EventStatus
from holdfast.seating.refusals import SeatNotBlocked
from holdfast.seating.validate import LayoutInvalid
from holdfast.store.postgres.holds import hold_whole
from tests.conftest import TestDatabase
from tests.factories import (
    Parts,
    PublishedEvent,
    buyer_call,
    make_layout,
    make_organization,
    make_published_event,
    open_parts,
    staff_call,
    theatre_config,
)


def run(database: TestDatabase, test: Callable[[Parts], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with open_parts(database.app) as parts:
            await test(parts)

    asyncio.run(main())


async def look(database: TestDatabase, query: str, *args: Any) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(database.owner)
    try:
        return await connection.fetch(query, *args)
    finally:
        await connection.close()


async def hold(
    parts: Parts,
    made: PublishedEvent,
    ordinals: list[int],
    *,
    places: int = 0,
    hold_type: str = "CART",
    ttl_s: int | None = 300,
) -> list[UUID]:
    request = HoldRequest(
        organization_id=made.organization.organization_id,
        event_id=made.id,
        layout_version=made.event.layout_version,
        seats=tuple(SeatWanted(ordinal, 0, new_id()) for ordinal in ordinals),
        places=(PlacesWanted(1, places, new_id()),) if places else (),
        user_id=new_id(),
        session_id=None,
        actor="CUSTOMER",
        source="web",
        hold_type=hold_type,
        ttl_s=ttl_s,
        any_time=False,
        user_limit=None,
        ip_limit=None,
        ip=None,
        user_agent=None,
        request_id=None,
    )
    async with parts.database.transaction(request.organization_id) as tx:
        held = await hold_whole(tx, request, 300)
    return [placed.hold_id for placed in held.holds]


async def sell(database: TestDatabase, parts: Parts, made: PublishedEvent, ordinals: list[int]) -> None:
    org = made.organization.organization_id
    async with parts.database.transaction(org) as tx:
        sold = await tx.fetchval(
            "SELECT sell_seats_directly($1, $2, $3::integer[], 'CART', 's-1', 'API', NULL, NULL, NULL, NULL)",
            org,
            made.id,
            ordinals,
        )
    assert sold == len(ordinals)


async def states(parts: Parts, made: PublishedEvent) -> list[str]:
    part = await parts.seating.list_seats(staff_call(made.organization), made.id, limit=1000)
    return [seat.state.value for seat in part.items]


async def log_of(parts: Parts, made: PublishedEvent) -> list[LogRow]:
    part = await parts.insight.state_log(staff_call(made.organization), made.id, 0, 1000)
    return [
        LogRow(
            ordinal=move.ordinal,
            zone_no=0 if move.zone == "stalls" else 1,
            quantity=move.quantity,
            old_state=SeatState(move.old_state),
            new_state=SeatState(move.new_state),
            verb=Verb(move.verb),
            hold_id=move.hold_id,
            hold_type=move.hold_type,
            version=move.version,
        )
        for move in part.items
    ]


async def log_leads_to_now(parts: Parts, made: PublishedEvent) -> bool:
    """Whether the log is possible and ends where the inventory stands."""
    replayed = replay(await log_of(parts, made))
    now = await states(parts, made)
    return all(now[ordinal] == replayed.seats.get(ordinal, "available") for ordinal in range(len(now)))


# Publishing ---------------------------------------------------------------------------------------------------------
def test_publishing_makes_one_row_a_seat_and_one_a_zone(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        made = await make_published_event(parts, config=theatre_config(2, 3, ga_capacity=50))
        rows = await look(database, "SELECT * FROM event_seats ORDER BY ordinal")
        assert [(row["ordinal"], row["booking_id"], row["state"]) for row in rows] == [
            (n, n + 1, "available") for n in range(6)
        ]
        zones = await parts.seating.list_zones(buyer_call(made.organization), made.id)
        assert [(z.zone_id, z.booking_id, z.capacity, z.held, z.sold, z.available) for z in zones] == [
            ("pit", 7, 50, 0, 0, 50)
        ]
        assert made.event.published_at is not None
        audited = await look(database, "SELECT action FROM audit_entries WHERE event_id = $1 ORDER BY id", made.id)
        assert [row["action"] for row in audited] == ["event_created", "event_published"]
        sent = await look(database, "SELECT kind FROM outbox WHERE event_id = $1 ORDER BY id", made.id)
        assert [row["kind"] for row in sent] == ["EventCreated", "EventPublished"]
        (version,) = await look(database, "SELECT status FROM layout_versions")
        assert version["status"] == "active"

    run(database, test)


def test_a_draft_has_no_inventory_and_buyers_do_not_see_it(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        made = await make_published_event(parts, status=EventStatus.DRAFT)
        assert await states(parts, made) == []
        for call in (buyer_call(made.organization), buyer_call(made.organization, guest_event_id=made.id)):
            with pytest.raises(EventNotFound):
                await parts.seating.get_event(call, made.id)
            with pytest.raises(EventNotFound):
                await parts.seating.list_seats(call, made.id)
            assert (await parts.seating.list_events(call, None, None, 10)).items == []
        with pytest.raises(EventNotAvailable):
            await parts.seating.block_seats(staff_call(made.organization), made.id, made.seats[:1], "no")

    run(database, test)


def test_two_who_publish_at_once_make_one_inventory(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        made = await make_published_event(parts, status=EventStatus.DRAFT)
        call = staff_call(made.organization)
        answers = await asyncio.gather(
            *(parts.seating.set_status(call, made.id, EventStatus.PUBLISHED) for _ in range(4)), return_exceptions=True
        )
        refused = [answer for answer in answers if isinstance(answer, IllegalEventMove)]
        assert len(refused) == 3
        assert len(await states(parts, made)) == 40

    run(database, test)


def test_an_illegal_move_changes_nothing(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        made = await make_published_event(parts)
        call = staff_call(made.organization)
        before = await look(database, "SELECT count(*) FROM audit_entries")
        for status in (EventStatus.DRAFT, EventStatus.PUBLISHED, EventStatus.ARCHIVED):
            with pytest.raises(IllegalEventMove):
                await parts.seating.set_status(call, made.id, status)
        assert (await parts.seating.get_event(call, made.id)).status is EventStatus.PUBLISHED
        assert await look(database, "SELECT count(*) FROM audit_entries") == before

    run(database, test)


def test_publishing_again_with_the_same_key_answers_the_same(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        made = await make_published_event(parts, status=EventStatus.DRAFT)
        call = staff_call(made.organization, idempotency=Idempotency("publish-1", b"a"))
        first = await parts.seating.set_status(call, made.id, EventStatus.PUBLISHED)
        assert await parts.seating.set_status(call, made.id, EventStatus.PUBLISHED) == first
        other = staff_call(made.organization, idempotency=Idempotency("publish-1", b"b"))
        with pytest.raises(IdempotencyMismatch):
            await parts.seating.set_status(other, made.id, EventStatus.LIVE)
        layout_call = staff_call(made.organization, idempotency=Idempotency("layout-1", b"a"))
        venue = await parts.seating.create_venue(staff_call(made.organization), "Annex")
        config = msgspec.json.encode(theatre_config(1, 2))
        layout = await parts.seating.create_layout(layout_call, venue.id, "Small", config)
        assert await parts.seating.create_layout(layout_call, venue.id, "Small", config) == layout

    run(database, test)


def test_a_hundred_thousand_seats_are_stored_and_published_in_seconds(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        async with asyncio.timeout(30):
            made = await make_published_event(parts, config=theatre_config(500, 200, ga_capacity=10_000))
        (row,) = await look(database, "SELECT count(*), count(DISTINCT booking_id) AS ids FROM event_seats")
        assert (row["count"], row["ids"]) == (100_000, 100_000)
        part = await parts.seating.list_seats(staff_call(made.organization), made.id, after=99_997, limit=10)
        assert [seat.ordinal for seat in part.items] == [99_998, 99_999]

    run(database, test)


# Layouts ------------------------------------------------------------------------------------------------------------
def test_a_layout_is_kept_to_the_letter_and_versions_follow_each_other(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        organization = await make_organization(parts)
        call = staff_call(organization)
        venue = await parts.seating.create_venue(call, "Playhouse")
        spaced = msgspec.json.format(msgspec.json.encode(theatre_config(1, 2)), indent=3)
        layout = await parts.seating.create_layout(call, venue.id, "House", spaced)
        assert (layout.version, layout.seat_count, layout.total_capacity, layout.status) == (1, 2, 2, "draft")
        made = await asyncio.gather(
            *(
                parts.seating.create_version(call, layout.id, msgspec.json.encode(theatre_config(1, n)))
                for n in range(3, 8)
            )
        )
        assert sorted(answer.version for answer in made) == [2, 3, 4, 5, 6]
        first = await parts.seating.get_layout(call, layout.id, 1)
        assert isinstance(first.config, msgspec.Raw)
        assert bytes(first.config) == spaced
        assert (await parts.seating.get_layout(call, layout.id, None)).version == 6
        with pytest.raises(LayoutNotFound):
            await parts.seating.get_layout(call, layout.id, 7)

    run(database, test)


def test_a_seat_keeps_its_id_across_versions(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        organization = await make_organization(parts)
        call = staff_call(organization)
        layout = await make_layout(parts, call, theatre_config(1, 3))
        await parts.seating.create_version(call, layout.id, msgspec.json.encode(theatre_config(2, 3)))
        old = await parts.catalogue.layout(call.organization_id, layout.id, 1)
        new = await parts.catalogue.layout(call.organization_id, layout.id, 2)
        assert old is not None
        assert new is not None
        assert [old.seat_uuid(n) for n in range(3)] == [new.seat_uuid(n) for n in range(3)]

    run(database, test)


def test_a_bad_layout_or_an_unknown_venue_stores_nothing(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        organization, other = await make_organization(parts), await make_organization(parts, "Rival")
        call = staff_call(organization)
        venue = await parts.seating.create_venue(call, "Playhouse")
        bad = theatre_config(1, 2)
        bad["zones"][0]["capacity"] = 3
        with pytest.raises(LayoutInvalid):
            await parts.seating.create_layout(call, venue.id, "House", msgspec.json.encode(bad))
        good = msgspec.json.encode(theatre_config(1, 2))
        for asker, venue_id in ((call, new_id()), (staff_call(other), venue.id)):
            with pytest.raises(VenueNotFound):
                await parts.seating.create_layout(asker, venue_id, "House", good)
            with pytest.raises(LayoutNotFound):
                await parts.seating.create_version(asker, venue_id, good)
        assert await look(database, "SELECT FROM layouts") == []
        assert await look(database, "SELECT FROM layout_versions") == []

    run(database, test)


def test_a_stated_policy_forbids_kinds_of_zones(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        organization = await make_organization(parts)
        call = staff_call(organization)
        layout = await make_layout(parts, call, theatre_config(1, 2, ga_capacity=5))
        await look(database, """UPDATE organizations SET policy = '{"allow_ga_seating": false}'""")
        with pytest.raises(LayoutInvalid):
            await make_layout(parts, call, theatre_config(1, 2, ga_capacity=5))
        said = {"name": "First night", "layout_id": str(layout.id)}
        with pytest.raises(EventInvalid):
            await parts.seating.create_event(call, said)
        await parts.seating.create_event(call, {**said, "overrides": {"allow_ga_seating": True}})

    run(database, test)


# Events -------------------------------------------------------------------------------------------------------------
def test_a_locked_field_cannot_be_overridden_when_made_or_changed(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        made = await make_published_event(parts)
        call = staff_call(made.organization)
        await look(database, """UPDATE organizations SET policy = '{"locked_fields": ["max_group_split"]}'""")
        said = {"name": "x", "layout_id": str(made.layout.id), "overrides": {"max_group_split": 3}}
        with pytest.raises(OverrideNotPermitted):
            await parts.seating.create_event(call, said)
        with pytest.raises(OverrideNotPermitted):
            await parts.seating.patch_event(call, made.id, {"overrides": {"max_group_split": 3}})
        changed = await parts.seating.patch_event(call, made.id, {"overrides": {"max_seats_per_booking": 3}})
        assert changed.overrides == {"max_seats_per_booking": 3}

    run(database, test)


def test_patches_at_the_same_moment_all_count(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        made = await make_published_event(parts)
        call = staff_call(made.organization)
        patches: list[dict[str, Any]] = [
            {"name": "Second night"},
            {"days": ["2026-06-02"]},
            {"currency": "EUR", "prices": [{"zone_id": "stalls", "amount_minor": 5}]},
            {"overrides": {"max_group_split": 3}},
        ]
        await asyncio.gather(*(parts.seating.patch_event(call, made.id, patch) for patch in patches))
        event = await parts.seating.get_event(call, made.id)
        assert event.name == "Second night"
        assert len(event.days) == 1
        assert event.prices[0].amount_minor == 5
        assert event.overrides == {"max_group_split": 3}

    run(database, test)


def test_an_event_names_a_layout_and_version_of_its_own_organization(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        organization, other = await make_organization(parts), await make_organization(parts, "Rival")
        layout = await make_layout(parts, staff_call(organization))
        for call, layout_id in ((staff_call(other), layout.id), (staff_call(organization), new_id())):
            with pytest.raises(LayoutNotFound):
                await parts.seating.create_event(call, {"name": "x", "layout_id": str(layout_id)})
        said = {"name": "x", "layout_id": str(layout.id), "layout_version": 2}
        with pytest.raises(EventInvalid) as caught:
            await parts.seating.create_event(staff_call(organization), said)
        assert caught.value.problems[0].pointer == "/layout_version"
        assert await look(database, "SELECT FROM events") == []

    run(database, test)


def test_an_event_with_its_own_zones_is_published_with_a_counted_pool(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        organization = await make_organization(parts)
        call = staff_call(organization)
        zones = [{"zone_id": "field", "name": "Field", "zone_type": "ga_standing", "capacity": 900}]
        event = await parts.seating.create_event(call, {"name": "Festival", "zones": zones})
        await parts.seating.set_status(call, event.id, EventStatus.PUBLISHED)
        (zone,) = await parts.seating.list_zones(call, event.id)
        assert (zone.zone_id, zone.booking_id, zone.available) == ("field", 1, 900)
        assert (await parts.seating.list_seats(call, event.id)).items == []

    run(database, test)


# Cancelling ---------------------------------------------------------------------------------------------------------
def test_cancelling_gives_back_what_the_engine_may_and_nothing_else(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        made = await make_published_event(parts, config=theatre_config(2, 5, ga_capacity=50))
        call = staff_call(made.organization)
        await hold(parts, made, [0, 1], places=7)
        await hold(parts, made, [2], hold_type="RESERVED", ttl_s=None)
        await sell(database, parts, made, [3])
        event = await parts.seating.set_status(call, made.id, EventStatus.CANCELLED)
        assert event.status is EventStatus.CANCELLED
        assert (await states(parts, made))[:4] == ["available", "available", "held", "sold"]
        (zone,) = await parts.seating.list_zones(call, made.id)
        assert zone.held == 0
        holds = await look(database, "SELECT hold_type, status, count(*) AS n FROM holds GROUP BY 1, 2 ORDER BY 1")
        assert [(row["hold_type"], row["status"], row["n"]) for row in holds] == [
            ("CART", HoldStatus.CANCELLED, 3),
            ("RESERVED", HoldStatus.ACTIVE, 1),
        ]
        released = await look(database, "SELECT actor, reason FROM seat_state_events WHERE verb = 'release'")
        assert {(row["actor"], row["reason"]) for row in released} == {("SYSTEM", "event cancelled")}
        assert await log_leads_to_now(parts, made)
        with pytest.raises(EventUnavailable):
            await parts.seating.block_seats(call, made.id, made.seats[:1], "too late")

    run(database, test)


def test_a_cancel_that_comes_first_wins_over_every_hold_after_it(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        made = await make_published_event(parts, config=theatre_config(4, 10))
        call = staff_call(made.organization)
        tries = [hold(parts, made, [n]) for n in range(40)]
        cancel = parts.seating.set_status(call, made.id, EventStatus.CANCELLED)
        results = await asyncio.gather(*tries[:20], cancel, *tries[20:], return_exceptions=True)
        unexpected = [r for r in results if isinstance(r, Exception) and not isinstance(r, EventUnavailable)]
        assert unexpected == []
        assert set(await states(parts, made)) == {"available"}
        assert await look(database, "SELECT FROM holds WHERE status = 'active'") == []

    run(database, test)


# Seats --------------------------------------------------------------------------------------------------------------
def test_seats_are_listed_in_parts_and_by_filters(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        config = theatre_config(2, 5, ga_capacity=3)
        config["zones"].append(
            {
                "zone_id": "box",
                "name": "Box",
                "zone_type": "reserved_seating",
                "capacity": 2,
                "seats": [{"seat_id": f"B{n}", "row": "B", "number": n} for n in (1, 2)],
            }
        )
        made = await make_published_event(parts, config=config)
        call = buyer_call(made.organization)
        seen: list[int] = []
        after: int | None = None
        while True:
            part = await parts.seating.list_seats(call, made.id, after=after, limit=5)
            seen += [seat.ordinal for seat in part.items]
            if part.next_cursor is None:
                break
            after = int(part.next_cursor)
        assert seen == list(range(12))
        for name in ("box", str(made.zone("box"))):
            part = await parts.seating.list_seats(call, made.id, zone=name)
            assert [(seat.seat_id, seat.coordinates) for seat in part.items] == [("B1", None), ("B2", None)]
        assert (await parts.seating.list_seats(call, made.id, zone="pit")).items == []
        with pytest.raises(ZoneNotFound):
            await parts.seating.list_seats(call, made.id, zone="attic")
        await hold(parts, made, [1, 4])
        await hold(parts, made, [6], hold_type="RESERVED", ttl_s=None)
        held = await parts.seating.list_seats(call, made.id, state=SeatState.HELD)
        assert [seat.ordinal for seat in held.items] == [1, 4, 6]
        reserved = await parts.seating.list_seats(call, made.id, hold_type="RESERVED")
        assert [(seat.ordinal, seat.held_until) for seat in reserved.items] == [(6, None)]

    run(database, test)


def test_a_lapsed_hold_shows_as_available_before_the_sweeper_has_run(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        made = await make_published_event(parts, config=theatre_config(1, 3, ga_capacity=10))
        call = buyer_call(made.organization)
        await hold(parts, made, [1], places=4, ttl_s=60)
        seat = await parts.seating.get_seat(call, made.id, made.seats[1])
        assert (seat.state, seat.hold_type, seat.version) == (SeatState.HELD, "CART", 1)
        assert seat.held_until is not None
        assert (await parts.seating.list_zones(call, made.id))[0].available == 6
        await database.advance_clock(61)
        seat = await parts.seating.get_seat(call, made.id, made.seats[1])
        assert (seat.state, seat.hold_type, seat.held_until) == (SeatState.AVAILABLE, None, None)
        assert (await parts.seating.list_zones(call, made.id))[0].available == 10
        free = await parts.seating.list_seats(call, made.id, state=SeatState.AVAILABLE)
        assert len(free.items) == 3
        assert (await parts.seating.list_seats(call, made.id, state=SeatState.HELD)).items == []
        assert (await parts.seating.list_seats(call, made.id, hold_type="CART")).items == []

    run(database, test)


def test_an_unknown_seat_is_not_found(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        made = await make_published_event(parts)
        with pytest.raises(SeatNotFound):
            await parts.seating.get_seat(buyer_call(made.organization), made.id, new_id())

    run(database, test)


# Blocking -----------------------------------------------------------------------------------------------------------
def test_blocking_cancels_the_hold_and_unblocking_frees_the_seat(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        made = await make_published_event(parts)
        call = staff_call(made.organization)
        await hold(parts, made, [1])
        answer = await parts.seating.block_seats(call, made.id, made.seats[:3], "broken chairs")
        assert answer.blocked == made.seats[:3]
        assert (await states(parts, made))[:4] == ["blocked"] * 3 + ["available"]
        (row,) = await look(database, "SELECT status FROM holds")
        assert row["status"] == "cancelled"
        seat = await parts.seating.get_seat(call, made.id, made.seats[0])
        assert seat.block_reason == "broken chairs"
        unseen = await parts.seating.get_seat(buyer_call(made.organization), made.id, made.seats[0])
        assert unseen.block_reason is msgspec.UNSET
        again = await parts.seating.block_seats(call, made.id, made.seats[2:4], "more")
        assert (again.blocked, again.already_blocked) == ([made.seats[3]], [made.seats[2]])
        assert (await parts.seating.get_seat(call, made.id, made.seats[2])).block_reason == "broken chairs"
        await parts.seating.unblock_seats(call, made.id, made.seats[:4], "mended")
        assert set(await states(parts, made)) == {"available"}
        assert await log_leads_to_now(parts, made)

    run(database, test)


def test_a_sold_seat_is_blocked_only_by_force_and_comes_back_sold(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        made = await make_published_event(parts)
        call = staff_call(made.organization)
        await sell(database, parts, made, [1])
        with pytest.raises(SeatSold) as caught:
            await parts.seating.block_seats(call, made.id, made.seats[:3], "broken")
        assert caught.value.facts["seats"] == [str(made.seats[1])]
        assert (await states(parts, made))[:3] == ["available", "sold", "available"]
        await parts.seating.block_seats(call, made.id, made.seats[:3], "broken", force=True)
        await parts.seating.unblock_seats(call, made.id, made.seats[:3])
        assert (await states(parts, made))[:3] == ["available", "sold", "available"]

    run(database, test)


def test_blocking_and_unblocking_are_all_or_nothing(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        made = await make_published_event(parts)
        call = staff_call(made.organization)
        unknown = new_id()
        with pytest.raises(SeatNotFound) as missing:
            await parts.seating.block_seats(call, made.id, [made.seats[0], unknown], "broken")
        assert missing.value.facts["seats"] == [str(unknown)]
        await parts.seating.block_seats(call, made.id, made.seats[:2], "broken")
        with pytest.raises(SeatNotBlocked) as caught:
            await parts.seating.unblock_seats(call, made.id, made.seats[:3])
        assert caught.value.facts["seats"] == [str(made.seats[2])]
        assert (await states(parts, made))[:3] == ["blocked", "blocked", "available"]

    run(database, test)


def test_only_an_organisers_person_blocks_seats(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        made = await make_published_event(parts)
        staff = staff_call(made.organization)
        by_key = msgspec.structs.replace(staff.principal, actor=Actor.API, user_id=None)
        for call in (
            buyer_call(made.organization),
            staff_call(made.organization, Role.SCANNER),
            Call(principal=by_key),
        ):
            with pytest.raises(Forbidden):
                await parts.seating.block_seats(call, made.id, made.seats[:1], "mine")
        assert set(await states(parts, made)) == {"available"}

    run(database, test)


def test_holding_and_blocking_at_once_never_leave_a_hold_on_a_blocked_seat(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        made = await make_published_event(parts, config=theatre_config(4, 5))
        call = staff_call(made.organization)
        await asyncio.gather(
            *(hold(parts, made, [n]) for n in range(20)),
            *(parts.seating.block_seats(call, made.id, made.seats[n : n + 5], "wet paint") for n in range(0, 20, 2)),
            return_exceptions=True,
        )
        assert set(await states(parts, made)) == {"blocked"}
        assert await look(database, "SELECT FROM holds WHERE status = 'active'") == []
        assert await log_leads_to_now(parts, made)

    run(database, test)


# Whose ---------------------------------------------------------------------------------------------------------------
def test_nothing_of_another_organization_can_be_seen_or_done(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        made = await make_published_event(parts, config=theatre_config(1, 3, ga_capacity=5))
        other = await make_organization(parts, "Rival")
        call, seating = staff_call(other), parts.seating
        seat = made.seats[0]
        attempts: list[Coroutine[Any, Any, object]] = [
            seating.get_event(call, made.id),
            seating.list_seats(call, made.id),
            seating.get_seat(call, made.id, seat),
            seating.list_zones(call, made.id),
            seating.block_seats(call, made.id, [seat], "mine"),
            seating.unblock_seats(call, made.id, [seat]),
            seating.patch_event(call, made.id, {"name": "Mine"}),
            seating.set_status(call, made.id, EventStatus.CANCELLED),
            seating.add_to_whitelist(call, made.id, [new_id()]),
            seating.remove_from_whitelist(call, made.id, [new_id()]),
            seating.list_whitelist(call, made.id, None, 10),
            parts.insight.state_log(call, made.id, 0, 10),
        ]
        for attempt in attempts:
            with pytest.raises(EventNotFound):
                await attempt
        with pytest.raises(LayoutNotFound):
            await seating.get_layout(call, made.layout.id, None)
        assert (await seating.list_events(call, None, None, 10)).items == []
        assert (await seating.list_layouts(call, None, None, 10)).items == []
        assert (await seating.list_venues(call, None, 10)).items == []
        assert (await parts.insight.audit(call, event_id=made.id)).items == []
        assert await states(parts, made) == ["available"] * 3

    run(database, test)


def test_a_guest_sees_its_own_event_alone(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        organization = await make_organization(parts)
        a, b = [await make_published_event(parts, organization) for _ in range(2)]
        guest = buyer_call(organization, guest_event_id=a.id)
        assert (await parts.seating.get_event(guest, a.id)).id == a.id
        with pytest.raises(EventNotFound):
            await parts.seating.get_event(guest, b.id)
        assert [event.id for event in (await parts.seating.list_events(guest, None, None, 10)).items] == [a.id]

    run(database, test)


def test_the_state_log_and_the_audit_page_by_cursor(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        made = await make_published_event(parts)
        call = staff_call(made.organization)
        await parts.seating.block_seats(call, made.id, made.seats[:5], "broken")
        first = await parts.insight.state_log(call, made.id, 0, 3)
        assert first.next_cursor is not None
        rest = await parts.insight.state_log(call, made.id, int(first.next_cursor), 3)
        moves = [*first.items, *rest.items]
        assert sorted(move.seat_id or "" for move in moves) == ["A-1", "A-2", "A-3", "A-4", "A-5"]
        assert {move.reason for move in moves} == {"broken"}
        assert rest.next_cursor is None
        assert (await parts.insight.state_log(call, made.id, moves[-1].id, 3)).items == []
        newest = await parts.insight.audit(call, limit=4)
        assert [entry.action for entry in newest.items] == ["seat_blocked"] * 4
        assert newest.next_cursor is not None
        older = await parts.insight.audit(call, before=int(newest.next_cursor), event_id=made.id)
        assert [entry.action for entry in older.items] == ["seat_blocked", "event_published", "event_created"]
        assert [e.entity_id for e in (await parts.insight.audit(call, action="event_published")).items] == [made.id]
        with pytest.raises(Forbidden):
            await parts.insight.audit(staff_call(made.organization, Role.ORGANIZER))
        with pytest.raises(Forbidden):
            await parts.insight.state_log(buyer_call(made.organization), made.id, 0, 3)

    run(database, test)


def test_the_planner_knows_the_seats_as_soon_as_they_are_published(database: TestDatabase) -> None:
    """Otherwise a bulk hold in the first minute takes twenty times as long as one after it."""

    async def check(parts: Parts) -> None:
        await make_published_event(parts, config=theatre_config(rows=30, seats_per_row=40))
        (known,) = await look(database, "SELECT reltuples FROM pg_class WHERE relname = 'event_seats'")
        (columns,) = await look(database, "SELECT count(*) AS n FROM pg_stats WHERE tablename = 'event_seats'")
        assert known["reltuples"] >= 1_200
        assert columns["n"] > 0

    run(database, check)
