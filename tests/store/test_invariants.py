"""The examiner of an event: silent on a sound one, and never silent on a planted fault."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import msgspec
import pytest

from holdfast.accounts.credentials import generate_secrets
from holdfast.app import Application
from holdfast.commands.operator import operator_call
from holdfast.compat.booking_v2 import GroupRef, SeatRef, StateSelection
from holdfast.holds.lifecycle import LogRow, SeatState, Verb
from holdfast.holds.plan import HoldsAsked, PlacesAsked
from holdfast.insight.event_facts import CheckoutFact, EventFacts, HoldFact, LineFact, SeatFact, TicketFact, ZoneFact
from holdfast.insight.invariants import check_event, judge
from holdfast.insight.occupancy import Count
from holdfast.insight.verdict import Invariant
from holdfast.kernel.errors import EventNotFound
from holdfast.seating.event import EventStatus
from holdfast.settings import Settings
from holdfast.simulation.theatre import theatre
from tests.conftest import TestDatabase

TWICE = "no seat is held or sold twice"
ACKNOWLEDGED = "every acknowledged hold exists"
REPLAY = "the state log replays exactly to the inventory"
COUNTERS = "counters equal live holds and sales, within capacity"
OCCUPANCY = "occupancy equals what is held, sold and blocked"
ONE_HOLD = "no seat has two active holds"
AGREE = "holds and seats agree"
TICKETS = "every valid ticket stands on a sale of its own"
COMPLETED = "a completed checkout has a ticket for each place"
TOGETHER = "holds end with the checkout they are in"
MONEY = "money that was received has bought tickets or is due back"

A, B, C, D = (UUID(int=n) for n in range(1, 5))
UNTIL = datetime(2030, 1, 1, tzinfo=UTC)


def move(ordinal: int | None, verb: Verb, old: str, new: str, version: int, hold: UUID | None, n: int = 1) -> LogRow:
    return LogRow(
        ordinal=ordinal,
        zone_no=0 if ordinal is not None else 1,
        quantity=n,
        old_state=SeatState(old),
        new_state=SeatState(new),
        verb=verb,
        hold_id=hold,
        version=version,
    )


def sound() -> EventFacts:
    """Seat 0 held, seat 1 sold, seat 2 free again; of ten places three held and two sold."""
    return EventFacts(
        seats=[
            SeatFact(0, SeatState.HELD, 1, A, "CART", UNTIL, 0),
            SeatFact(1, SeatState.SOLD, 2, None, None, None, 0),
            SeatFact(2, SeatState.AVAILABLE, 2, None, None, None, 0),
            SeatFact(3, SeatState.AVAILABLE, 0, None, None, None, 0),
        ],
        zones=[ZoneFact(1, 10, 3, 2)],
        active_holds=[HoldFact(A, 0, 0, 1, "CART", UNTIL), HoldFact(D, None, 1, 3, "CART", UNTIL)],
        log=[
            move(0, Verb.HOLD, "available", "held", 1, A),
            move(1, Verb.HOLD, "available", "held", 1, B),
            move(1, Verb.CONVERT, "held", "sold", 2, B),
            move(2, Verb.HOLD, "available", "held", 1, C),
            move(2, Verb.EXPIRE, "held", "available", 2, C),
            move(None, Verb.HOLD, "available", "held", 1, D, 3),
            move(None, Verb.DIRECT_SALE, "available", "sold", 2, None, 2),
        ],
        occupancy=[
            Count(0, SeatState.HELD, "CART", 1),
            Count(0, SeatState.SOLD, "", 1),
            Count(1, SeatState.HELD, "CART", 3),
            Count(1, SeatState.SOLD, "", 2),
        ],
        tickets=[TicketFact(B, 1, 0), TicketFact(C, None, 1), TicketFact(D, None, 1)],
        completed=[CheckoutFact(A, 3, 3)],
        lines=[LineFact(B, A, UNTIL, UNTIL, False), LineFact(C, D, UNTIL + timedelta(minutes=1), UNTIL, True)],
        acknowledged=4,
    )


def broken(facts: EventFacts) -> set[str]:
    return {invariant.name for invariant in judge(facts) if not invariant.ok}


def with_seat(ordinal: int, **changes: object) -> EventFacts:
    facts = sound()
    seats = [msgspec.structs.replace(s, **changes) if s.ordinal == ordinal else s for s in facts.seats]
    return msgspec.structs.replace(facts, seats=seats)


def test_a_sound_event_breaks_nothing() -> None:
    assert broken(sound()) == set()
    assert len(judge(sound())) == 11


def test_a_seat_held_while_it_is_held_is_found() -> None:
    facts = sound()
    again = [*facts.log, move(0, Verb.HOLD, "available", "held", 2, C)]
    assert {TWICE, REPLAY} <= broken(msgspec.structs.replace(facts, log=again))


def test_a_seat_sold_while_it_is_sold_is_found() -> None:
    facts = sound()
    again = [*facts.log, move(1, Verb.DIRECT_SALE, "available", "sold", 3, None)]
    assert {TWICE, REPLAY} <= broken(msgspec.structs.replace(facts, log=again))


def test_an_acknowledged_hold_that_is_gone_is_found() -> None:
    assert broken(msgspec.structs.replace(sound(), unknown_holds=[C])) == {ACKNOWLEDGED}


@pytest.mark.parametrize(
    ("changes", "found"),
    [({"state": SeatState.SOLD}, {REPLAY, OCCUPANCY}), ({"version": 7}, {REPLAY})],
    ids=["a move that is not in the log", "a version that is not in the log"],
)
def test_an_inventory_that_is_ahead_of_its_log_is_found(changes: dict[str, object], found: set[str]) -> None:
    assert broken(with_seat(3, **changes)) == found


def test_a_move_missing_in_the_log_is_found() -> None:
    facts = sound()
    assert broken(msgspec.structs.replace(facts, log=facts.log[1:])) == {REPLAY}


def test_a_counter_that_drifted_is_found() -> None:
    assert broken(msgspec.structs.replace(sound(), zones=[ZoneFact(1, 10, 4, 2)])) == {REPLAY, COUNTERS}


def test_places_given_beyond_capacity_are_found() -> None:
    assert COUNTERS in broken(msgspec.structs.replace(sound(), zones=[ZoneFact(1, 4, 3, 2)]))


def test_a_zone_without_a_counter_is_found() -> None:
    assert COUNTERS in broken(msgspec.structs.replace(sound(), zones=[]))


@pytest.mark.parametrize(
    "wrong",
    [
        Count(0, SeatState.HELD, "CART", 1),
        Count(0, SeatState.HELD, "CART", -1),
        Count(0, SeatState.HELD, "COMP", 1),
        Count(0, SeatState.BLOCKED, "", 1),
        Count(0, SeatState.SOLD, "CART", 1),
        Count(1, SeatState.HELD, "CART", 1),
        Count(1, SeatState.SOLD, "", -2),
        Count(2, SeatState.SOLD, "", 1),
    ],
)
def test_occupancy_that_is_off_by_anything_is_found(wrong: Count) -> None:
    facts = sound()
    assert broken(msgspec.structs.replace(facts, occupancy=[*facts.occupancy, wrong])) == {OCCUPANCY}


def test_occupancy_that_is_right_in_sum_and_wrong_by_zone_or_type_is_found() -> None:
    for shifted in (Count(1, SeatState.SOLD, "", 1), Count(0, SeatState.HELD, "COMP", 1)):
        away = Count(0, shifted.state, "CART" if shifted.state is SeatState.HELD else "", -1)
        facts = sound()
        assert broken(msgspec.structs.replace(facts, occupancy=[*facts.occupancy, shifted, away])) == {OCCUPANCY}
    assert broken(with_seat(0, zone_no=1)) == {OCCUPANCY}


def test_a_counter_in_two_parts_is_one_counter() -> None:
    facts = sound()
    parts = [*facts.occupancy, Count(1, SeatState.SOLD, "", 4), Count(1, SeatState.SOLD, "", -4)]
    assert broken(msgspec.structs.replace(facts, occupancy=parts)) == set()


def test_two_active_holds_of_one_seat_are_found() -> None:
    facts = sound()
    second = [*facts.active_holds, HoldFact(C, 0, 0, 1, "CART", UNTIL)]
    assert broken(msgspec.structs.replace(facts, active_holds=second)) == {ONE_HOLD, AGREE}


def test_a_held_seat_without_its_hold_is_found() -> None:
    facts = sound()
    assert broken(msgspec.structs.replace(facts, active_holds=facts.active_holds[1:])) == {AGREE}


def test_a_hold_whose_seat_is_free_is_found() -> None:
    facts = sound()
    more = [*facts.active_holds, HoldFact(C, 3, 0, 1, "CART", UNTIL)]
    assert broken(msgspec.structs.replace(facts, active_holds=more)) == {AGREE}


def test_a_hold_that_ends_at_another_time_than_its_seat_is_found() -> None:
    assert broken(with_seat(0, held_until=UNTIL + timedelta(seconds=1))) == {AGREE}


@pytest.mark.parametrize(
    "ticket",
    [
        TicketFact(A, 1, 0),  # a second one for the sold seat
        TicketFact(A, 0, 0),  # the seat is held
        TicketFact(A, 3, 0),  # free
        TicketFact(A, 9, 0),  # not there
        TicketFact(A, None, 1),  # a third one for two sold places
        TicketFact(A, None, 0),  # no counted zone
    ],
)
def test_a_ticket_for_what_was_not_sold_is_found(ticket: TicketFact) -> None:
    facts = sound()
    assert broken(msgspec.structs.replace(facts, tickets=[*facts.tickets, ticket])) == {TICKETS}


def test_a_ticket_in_another_zone_than_its_seat_is_found() -> None:
    assert broken(msgspec.structs.replace(sound(), tickets=[TicketFact(B, 1, 1)])) == {TICKETS}


def test_a_ticket_on_a_blocked_seat_is_sound_only_if_the_seat_was_sold() -> None:
    blocked = with_seat(1, state=SeatState.BLOCKED, sold=True)
    assert TICKETS not in broken(blocked)
    assert TICKETS in broken(with_seat(1, state=SeatState.BLOCKED))


@pytest.mark.parametrize("tickets", [2, 4])
def test_a_completed_checkout_with_too_few_or_too_many_tickets_is_found(tickets: int) -> None:
    assert broken(msgspec.structs.replace(sound(), completed=[CheckoutFact(A, 3, tickets)])) == {COMPLETED}


@pytest.mark.parametrize(
    ("seconds", "heartbeat", "ok"), [(1, False, False), (-1, False, False), (1, True, False), (-1, True, True)]
)
def test_a_hold_that_ends_at_another_time_than_its_checkout_is_found(seconds: int, heartbeat: bool, ok: bool) -> None:
    line = LineFact(B, A, UNTIL, UNTIL + timedelta(seconds=seconds), heartbeat)
    assert broken(msgspec.structs.replace(sound(), lines=[line])) == (set() if ok else {TOGETHER})


def test_money_that_waits_is_found() -> None:
    assert broken(msgspec.structs.replace(sound(), unsettled=[A])) == {MONEY}


def test_a_detail_names_a_few_offenders_and_counts_the_rest() -> None:
    report = judge(msgspec.structs.replace(sound(), unknown_holds=[uuid4() for _ in range(10)]))
    detail = next(invariant.detail for invariant in report if not invariant.ok)
    assert detail.count("was acknowledged") == 3
    assert detail.endswith("(and 7 more)")


# Against a real database -----------------------------------------------------------------------------------------
Scene = tuple[Application, UUID, UUID, list[UUID]]


def play(database: TestDatabase, then: Callable[[Scene], Awaitable[None]]) -> None:
    """A small sale through the services, then `then`."""

    async def work() -> None:
        settings = Settings(database_url=database.app, jwt_secrets=generate_secrets(), database_pool=2)
        application = await Application.open(settings, work=False, serve=False)
        try:
            await then(await _sale(application))
        finally:
            await application.close()

    asyncio.run(work())


async def _sale(application: Application) -> Scene:
    services = application.services
    made = await services.accounts.bootstrap("Theatre")
    call = await operator_call(application, made.organization_id)
    await services.accounts.store_policy(call, {"allow_vip_zones": True, "max_holds_per_user": None})
    venue = await services.seating.create_venue(call, "House")
    layout = await services.seating.create_layout(call, venue.id, "Hall", msgspec.json.encode(theatre(40)))
    event = await services.seating.create_event(call, {"name": "Night", "layout_id": str(layout.id)})
    await services.seating.set_status(call, event.id, EventStatus.PUBLISHED)
    view = await application.catalogue.fresh_event(made.organization_id, event.id)
    assert view is not None
    stalls = view.layout.zone("stalls")
    assert stalls is not None
    seats = tuple(view.layout.seat_uuid(ordinal) for ordinal in stalls.ordinals[:4])
    asked = HoldsAsked(seats=seats, places=(PlacesAsked("pit", 3),), endpoint_ttl_s=300)
    placed = await services.holds.hold_seats(call, event.id, asked)
    await services.holds.release_hold(call, placed.holds[0].hold_id)
    state = await services.booking.state(call, event.id)
    chosen = StateSelection("s1", [SeatRef(state.seats[-1].id)], [GroupRef(state.group_of_seats[0].id, 2)])
    assert await services.booking.lock(call, event.id, chosen)
    assert await services.booking.sale(call, event.id, chosen)
    return application, made.organization_id, event.id, [hold.hold_id for hold in placed.holds]


def faults(report: list[Invariant]) -> set[str]:
    return {invariant.name for invariant in report if not invariant.ok}


def test_a_real_sale_keeps_every_invariant(database: TestDatabase) -> None:
    async def then(scene: Scene) -> None:
        application, organization_id, event_id, holds = scene
        report = await check_event(application.database, organization_id, event_id, holds)
        assert faults(report) == set(), report
        assert "5 acknowledged holds" in report[1].detail

    play(database, then)


@pytest.mark.parametrize(
    ("sabotage", "found"),
    [
        ("UPDATE event_seats SET version = version + 1 WHERE ordinal = 0", {REPLAY}),
        ("UPDATE event_zones SET held = held + 1", {REPLAY, COUNTERS}),
        ("UPDATE holds SET status = 'cancelled' WHERE status = 'active' AND ordinal IS NOT NULL", {AGREE}),
        ("UPDATE holds SET quantity = quantity + 1 WHERE status = 'active' AND ordinal IS NULL", {COUNTERS, OCCUPANCY}),
        ("UPDATE event_seats SET state = 'available', hold_id = NULL WHERE state = 'held'", {REPLAY, AGREE, OCCUPANCY}),
        ("UPDATE occupancy_changes SET change = change + 1 WHERE state = 'sold' AND hold_type = ''", {OCCUPANCY}),
        ("DELETE FROM occupancy_changes", {OCCUPANCY}),
        (
            "INSERT INTO occupancy_counts SELECT organization_id, event_id, 0, 'blocked', '', 1 FROM event_zones",
            {OCCUPANCY},
        ),
        ("UPDATE event_seats SET hold_type = 'COMP' WHERE state = 'held'", {AGREE, OCCUPANCY}),
        ("DELETE FROM seat_state_events WHERE verb = 'release'", {REPLAY}),
    ],
)
def test_sabotage_in_the_database_is_found(database: TestDatabase, sabotage: str, found: set[str]) -> None:
    async def then(scene: Scene) -> None:
        application, organization_id, event_id, _ = scene
        owner = await asyncpg.connect(database.owner)
        await owner.execute(sabotage)
        await owner.close()
        assert faults(await check_event(application.database, organization_id, event_id)) == found

    play(database, then)


CHECKOUT = """
INSERT INTO checkouts (organization_id, id, event_id, status, source, actor, expires_at, created_at)
SELECT organization_id, $1, id, $2::text::checkout_status, 'web', 'CUSTOMER', holdfast_now() + interval '1 hour',
  holdfast_now() FROM events
"""
LINE = """
INSERT INTO checkout_lines (organization_id, checkout_id, hold_id, quantity, payment_required, added_at)
SELECT organization_id, $1, id, quantity, true, holdfast_now() FROM holds WHERE status = 'active' AND quantity = 1 LIMIT 1
"""
TICKET = """
INSERT INTO tickets (organization_id, id, event_id, checkout_id, ordinal, zone_no, valid_days, entitlement, issued_at)
SELECT organization_id, gen_random_uuid(), event_id, $1, ordinal, zone_no, '{}', 'single_entry', now() FROM event_seats
WHERE state = $2::text::seat_state LIMIT 1
"""
PAYMENT = """
INSERT INTO payments (organization_id, id, checkout_id, event_id, provider, reference, status, actor, created_at,
  received_at)
SELECT organization_id, gen_random_uuid(), id, event_id, 'manual', 'x', 'received', 'API', now(),
  holdfast_now() - make_interval(secs => $1) FROM checkouts
"""


@pytest.mark.parametrize(
    ("statements", "found"),
    [
        ([(CHECKOUT, A, "completed"), (TICKET, A, "sold")], set()),
        ([(CHECKOUT, A, "completed"), (TICKET, A, "held")], {TICKETS}),
        ([(CHECKOUT, A, "completed"), (LINE, A)], {COMPLETED}),
        ([(CHECKOUT, A, "completed"), (LINE, A), (TICKET, A, "sold")], set()),
        ([(CHECKOUT, A, "open"), (LINE, A)], {TOGETHER}),
        ([(CHECKOUT, A, "expired"), (LINE, A)], set()),
        ([(CHECKOUT, A, "completed"), (PAYMENT, 50.0)], set()),
        ([(CHECKOUT, A, "completed"), (PAYMENT, 70.0)], {MONEY}),
    ],
)
def test_tickets_checkouts_and_money_are_read_from_the_database(
    database: TestDatabase, statements: list[tuple[Any, ...]], found: set[str]
) -> None:
    async def then(scene: Scene) -> None:
        application, organization_id, event_id, _ = scene
        owner = await asyncpg.connect(database.owner)
        for statement, *args in statements:
            await owner.execute(statement, *args)
        await owner.close()
        assert faults(await check_event(application.database, organization_id, event_id)) == found

    play(database, then)


def test_a_hold_nobody_has_heard_of_and_an_event_of_another_organization(database: TestDatabase) -> None:
    async def then(scene: Scene) -> None:
        application, organization_id, event_id, _ = scene
        assert faults(await check_event(application.database, organization_id, event_id, [uuid4()])) == {ACKNOWLEDGED}
        other = await application.services.accounts.bootstrap("Another")
        with pytest.raises(EventNotFound):
            await check_event(application.database, other.organization_id, event_id)

    play(database, then)
