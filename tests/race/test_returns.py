"""Sales that are made, taken back and exchanged at the same moment: a place is one person's, and a ticket in one place.
With controls."""

import asyncio
from typing import Any
from uuid import UUID

from holdfast.checkout.direct_sale import SaleAnswer, SaleAsked
from holdfast.holds.answers import Placement
from holdfast.holds.plan import PlacesAsked
from holdfast.kernel.errors import Conflict, Refusal
from holdfast.tickets.refusals import TicketVoid
from holdfast.tickets.returns import PlaceAsked, ReturnedTicket, TicketExchanged
from tests.conftest import TestDatabase
from tests.factories import PublishedEvent, theatre_config
from tests.race.ground import Ground, all_at_once, changed, deadlocks, ground, selection, until_seen

ROWS, ROUNDS = 4, 10
HALL = theatre_config(ROWS, ROUNDS, ga_capacity=50)
SMALL = theatre_config(1, 2)
HOLD_TYPES = {"COMP": {"validStates": ["SOLD"], "skipLockedState": True, "paymentRequired": False}}
EVENT: dict[str, Any] = {"overrides": {"orphan_avoidance_strict": False, "max_holds_per_user": None}}

# Whoever has found out something lingers a moment before acting on it: so do all others, who then know the same.
LINGER = "PERFORM pg_sleep(0.02);"
LOCKS_SEATS = """  PERFORM FROM event_seats s
  WHERE s.organization_id = p_org AND s.event_id = p_event AND s.ordinal = ANY (p_ordinals)
  ORDER BY s.ordinal FOR NO KEY UPDATE;
"""
FREE_OR_OVER = """      AND (s.state = 'available' OR (s.state = 'held' AND s.held_until <= v_now))
    RETURNING new.ordinal, new.zone_no, new.version, old.hold_id AS old_hold"""


def without_seat_locks() -> list[str]:
    """Neither the lock before a seat is looked at, nor the state that the sale expects, nor the index behind both."""
    return [
        changed("lock_seats", (LOCKS_SEATS, ""), ("ORDER BY s.ordinal;\n", f"ORDER BY s.ordinal;\n  {LINGER}\n")),
        changed("sell_seats_directly", (FREE_OR_OVER, FREE_OR_OVER.split("\n", 1)[1])),
        "DROP INDEX tickets_one_valid_per_seat",
    ]


def without_ticket_locks() -> list[str]:
    """Tickets are read and not locked, and whoever writes them does not look again."""
    return [
        changed("lock_tickets", (" ORDER BY t.id FOR UPDATE;", f" ORDER BY t.id;\n  {LINGER}")),
        changed("void_tickets", ("t.id = ANY (p_tickets) AND t.status = 'valid'", "t.id = ANY (p_tickets)")),
        changed(
            "exchange_ticket",
            (
                "t.id = p_ticket AND t.status = 'valid'\n"
                "    AND t.ordinal IS NOT DISTINCT FROM p_from AND t.zone_no = p_from_zone;",
                "t.id = p_ticket;",
            ),
        ),
        changed("revert_tickets", (" < cardinality(v_ordinal) THEN", " < 0 THEN")),
        "DROP INDEX refunds_one_per_ticket",
    ]


async def sell(g: Ground, event: PublishedEvent, *seats: int, places: int = 0, app: int = 0) -> SaleAnswer | Refusal:
    asked = SaleAsked(
        seats=tuple(event.seats[n] for n in seats),
        places=(PlacesAsked("pit", places),) if places else (),
        hold_type="COMP",
    )
    try:
        return await g.apps[app].services.box_office.sell(g.api, event.id, asked)
    except Refusal as refusal:
        return refusal


async def sold(g: Ground, event: PublishedEvent, *seats: int, places: int = 0) -> list[UUID]:
    answer = await sell(g, event, *seats, places=places)
    assert isinstance(answer, SaleAnswer), answer
    return [ticket.id for ticket in answer.tickets]


async def exchange(g: Ground, event: PublishedEvent, ticket: UUID, seat: int, app: int) -> TicketExchanged | Refusal:
    try:
        return await g.apps[app].services.returns.exchange(g.api, ticket, PlaceAsked(event.seats[seat]), None)
    except Refusal as refusal:
        return refusal


async def revert(g: Ground, ticket: UUID, app: int) -> ReturnedTicket | Refusal:
    try:
        return await g.apps[app].services.returns.revert(g.api, ticket, "ill")
    except Refusal as refusal:
        return refusal


async def hold(g: Ground, event: PublishedEvent, seat: int, app: int) -> Placement | Refusal:
    return await g.hold(g.apps[app], g.buyer(), [seat], event=event)


def one_winner(what: str, answers: list[Any], winners: tuple[type, ...]) -> list[str]:
    won = [answer for answer in answers if isinstance(answer, winners)]
    lost = [answer for answer in answers if isinstance(answer, Conflict)]
    if len(won) == 1 and len(won) + len(lost) == len(answers):
        return []
    return [f"{what}: {len(won)} of {len(answers)} got it: {answers!r}"]


async def for_one_seat(g: Ground) -> list[str]:
    """In each round two exchanges, a sale over the counter and a buyer's hold want one seat."""
    event = await g.new_event(HALL, **EVENT)
    faults: list[str] = []
    for n in range(ROUNDS):
        first, second = await sold(g, event, n, ROUNDS + n)
        target = 2 * ROUNDS + n
        answers = await all_at_once(
            [
                exchange(g, event, first, target, 0),
                exchange(g, event, second, target, 1),
                sell(g, event, target, app=n % 2),
                hold(g, event, target, (n + 1) % 2),
            ]
        )
        faults += one_winner(f"round {n}", answers, (TicketExchanged, SaleAnswer, Placement))
    return faults + await g.faults(event=event)


def test_of_all_who_want_a_seat_at_once_one_gets_it(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, SMALL, hold_types=HOLD_TYPES) as g:
            for _ in range(2):
                assert await for_one_seat(g) == []
        assert await deadlocks(database) == 0

    asyncio.run(run())


def test_without_the_seats_locks_it_is_given_twice(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, SMALL, hold_types=HOLD_TYPES, control=without_seat_locks()) as g:
            assert await until_seen(lambda: for_one_seat(g), 3) != []

    asyncio.run(run())


VOIDED = """
SELECT (SELECT count(*) FROM seat_state_events WHERE event_id = $1 AND ordinal = $2 AND verb = 'revert_sale') AS reverted,
  (SELECT count(*) FROM audit_entries WHERE event_id = $1 AND action = 'ticket_voided' AND entity_id = $3) AS voided
"""


async def of_one_ticket(g: Ground, rounds: int = ROUNDS) -> list[str]:
    """In each round a ticket is reverted twice and exchanged twice, to two seats."""
    event = await g.new_event(HALL, **EVENT)
    faults: list[str] = []
    for n in range(rounds):
        (ticket,) = await sold(g, event, n)
        targets = (ROUNDS + n, 2 * ROUNDS + n)
        answers = await all_at_once(
            [
                exchange(g, event, ticket, targets[0], 0),
                revert(g, ticket, 1),
                revert(g, ticket, 0),
                exchange(g, event, ticket, targets[1], 1),
            ]
        )
        faults += [
            f"round {n}: {answer!r}"
            for answer in answers
            if not isinstance(answer, TicketExchanged | ReturnedTicket | TicketVoid)
        ]
        rows = [await g.sql(VOIDED, event.id, seat, ticket) for seat in (n, *targets)]
        if rows[0][0]["voided"] != 1:
            faults.append(f"round {n}: the ticket was voided {rows[0][0]['voided']} times")
        if any(row[0]["reverted"] > 1 for row in rows) or rows[0][0]["reverted"] != 1:
            faults.append(f"round {n}: the log has {[row[0]['reverted'] for row in rows]} reverts")
    return faults + await g.faults(event=event)


def test_a_ticket_that_is_reverted_and_exchanged_at_once_ends_void_and_its_seats_free(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, SMALL, hold_types=HOLD_TYPES) as g:
            for _ in range(2):
                assert await of_one_ticket(g) == []
            (left,) = await g.sql("SELECT count(*) FROM event_seats WHERE state <> 'available'")
            assert left["count"] == 0
        assert await deadlocks(database) == 0

    asyncio.run(run())


def test_without_the_tickets_lock_it_is_voided_twice_or_moved_when_void(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, SMALL, hold_types=HOLD_TYPES, control=without_ticket_locks()) as g:
            assert await until_seen(lambda: of_one_ticket(g, 1), 5) != []

    asyncio.run(run())


async def against_booking_v2(g: Ground, *, also_revert: bool = True) -> list[str]:
    """Tickets are issued, exchanged and reverted while booking v2 takes back what is sold, seats and places."""
    event = await g.new_event(HALL, **EVENT)
    (seat_count,) = await g.sql("SELECT count(*) FROM event_seats WHERE event_id = $1", event.id)
    group = seat_count["count"] + 1
    booking = [app.services.booking for app in g.apps]
    for n in range(ROUNDS):
        (ticket,) = await sold(g, event, n)
        standing = await sold(g, event, places=2)
        await all_at_once(
            [
                sell(g, event, ROUNDS + n, places=1, app=0),
                booking[1].revert_sale(g.api, event.id, selection([ROUNDS + n])),
                booking[0].revert_sale(g.api, event.id, selection([n])),
                exchange(g, event, ticket, 2 * ROUNDS + n, 1),
                booking[1].revert_sale(g.api, event.id, selection([], group, 2)),
                *([revert(g, standing[0], 0)] if also_revert else []),
            ]
        )
    return await g.faults(event=event)


def test_booking_v2_never_takes_a_sale_away_under_a_valid_ticket(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, SMALL, hold_types=HOLD_TYPES) as g:
            for _ in range(2):
                assert await against_booking_v2(g) == []
        assert await deadlocks(database) == 0

    asyncio.run(run())


def test_without_looking_for_tickets_booking_v2_takes_sales_from_under_them(database: TestDatabase) -> None:
    look = changed(
        "move_session_places",
        ("IF v_zone.sold - p_quantity < (", "IF false AND v_zone.sold - p_quantity < ("),
    )

    async def run() -> None:
        async with ground(database, SMALL, hold_types=HOLD_TYPES, control=[look]) as g:
            assert await until_seen(lambda: against_booking_v2(g, also_revert=False), 3) != []

    asyncio.run(run())
