"""Sales taken back, and tickets moved to other places: the ticket, its place and its money change together."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.conftest import TestDatabase
from tests.http.box_office_ground import (
    ON_SALE,
    everything,
    exchange,
    faults,
    house,
    log,
    pit,
    revert,
    sold,
    ticket_row,
)
from tests.http.client import bearer
from tests.http.contents import user
from tests.stage import Stage

PAID: dict[str, Any] = {"holdType": "TILL"}


def run(database: TestDatabase, test: Callable[[Stage], Awaitable[None]], **more: Any) -> None:
    async def main() -> None:
        async with house(database, **more) as made:
            await test(made)

    asyncio.run(main())


async def refunds(made: Stage) -> list[tuple[str, int | None, str]]:
    rows = await made.sql("SELECT ticket_id, amount_minor, status FROM refunds ORDER BY id")
    return [(str(row["ticket_id"]), row["amount_minor"], row["status"]) for row in rows]


async def inside(made: Stage, ticket: str, day: str = "2030-01-01") -> None:
    """As the gate writes it: somebody was let in with the ticket."""
    where = "SELECT organization_id, id, event_id, $2::text::date, 1, true, now(), zone_no FROM tickets WHERE id = $1"
    await made.sql(
        "INSERT INTO ticket_days (organization_id, ticket_id, event_id, day, entries, inside, last_scan_at, zone_no) "
        + where,
        UUID(ticket),
        day,
    )
    counted = "SELECT organization_id, event_id, $2::text::date, zone_no, 1, 1 FROM tickets WHERE id = $1"
    await made.sql(
        f"""INSERT INTO zone_attendance (organization_id, event_id, day, zone_no, present, entered) {counted}
        ON CONFLICT (organization_id, event_id, day, zone_no) DO UPDATE
        SET present = zone_attendance.present + 1, entered = zone_attendance.entered + 1""",
        UUID(ticket),
        day,
    )


async def attendance(made: Stage) -> dict[int, tuple[int, int]]:
    rows = await made.sql("SELECT zone_no, present, entered FROM zone_attendance ORDER BY zone_no")
    return {row["zone_no"]: (row["present"], row["entered"]) for row in rows}


# Reverting ------------------------------------------------------------------------------------------------------------
def test_a_reverted_sale_voids_the_ticket_frees_the_seat_and_owes_the_money(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        first, second = await sold(made, 5, 6, payment_reference="p", **PAID)
        answer = await revert(made, first)
        assert answer.status_code == 200, answer.text
        data = answer.json()["data"]
        assert (data["status"], data["void_reason"], data["was_inside"]) == ("void", "ill", False)
        assert (data["seat"]["seat_id"], data["zone"]) == ("A-6", "stalls")
        assert (data["refund"]["amount_minor"], data["refund"]["currency"]) == (8000, "EUR")
        assert (await made.seat(5))["state"] == "available"
        assert (await made.seat(6))["state"] == "sold"
        assert await log(made, 5) == [("direct_sale", None), ("revert_sale", "ill")]
        assert await refunds(made) == [(first, 8000, "due")]
        (message,) = await made.sql("SELECT payload::text FROM outbox WHERE kind = 'TicketVoided'")
        assert first in message["payload"]
        assert second not in message["payload"]
        (audited,) = await made.sql("SELECT * FROM audit_entries WHERE action = 'ticket_voided'")
        assert (str(audited["entity_id"]), audited["reason"]) == (first, "ill")
        assert (await made.reserve(5, await made.buyer())).status_code == 201
        assert await faults(made) == []

    run(database, test)


def test_reverting_twice_changes_nothing_the_second_time(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        (ticket,) = await sold(made, 5, payment_reference="p", **PAID)
        first = await revert(made, ticket)
        before = await everything(made)
        again = await revert(made, ticket, reason="another reason")
        assert (again.status_code, again.json()) == (200, first.json())
        assert await everything(made) == before

    run(database, test)


def test_places_are_given_back_one_ticket_at_a_time(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        tickets = await sold(made, places=3, payment_reference="p", **PAID)
        data = (await revert(made, tickets[1], headers=made.api_key)).json()["data"]
        assert (data["seat"], data["zone"], data["refund"]["amount_minor"]) == (None, "pit", 3000)
        assert await pit(made) == (0, 2)
        assert await log(made, None) == [("direct_sale", None), ("revert_sale", "ill")]
        assert await faults(made) == []

    run(database, test)


def test_money_is_due_back_only_where_some_was_paid_and_it_is_wanted(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        (free,) = await sold(made, 5)
        (kept,) = await sold(made, 6, payment_reference="kept", **PAID)
        assert (await revert(made, free)).json()["data"]["refund"] is None
        assert (await revert(made, kept, refund=False)).json()["data"]["refund"] is None
        assert await refunds(made) == []

    run(database, test)


def test_what_was_paid_without_a_known_price_is_due_back_for_a_person_to_say_how_much(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        (ticket,) = await sold(made, 5, payment_reference="p", amount_minor=500, **PAID)
        assert (await revert(made, ticket)).json()["data"]["refund"]["amount_minor"] is None
        assert await refunds(made) == [(ticket, None, "due")]

    run(database, test, event={"overrides": {"orphan_avoidance_strict": False}})


def test_of_a_checkout_only_lines_that_had_to_be_paid_are_refunded(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        paid, free = await sold(made, 5, 6, payment_reference="p", **PAID)
        for ticket, required in ((paid, True), (free, False)):
            await made.sql(
                """WITH h AS (INSERT INTO holds (organization_id, id, event_id, ordinal, zone_no, quantity, hold_type,
                     status, actor, source, created_at, ended_at)
                   SELECT organization_id, gen_random_uuid(), event_id, ordinal, zone_no, 1, 'CART', 'converted', 'ADMIN',
                     'web', now(), now() FROM tickets WHERE id = $1 RETURNING *)
                 , l AS (INSERT INTO checkout_lines (organization_id, checkout_id, hold_id, quantity, price_minor,
                     payment_required, added_at)
                   SELECT h.organization_id, t.checkout_id, h.id, 1, 8000, $2, now() FROM h, tickets t WHERE t.id = $1)
                 UPDATE tickets SET hold_id = (SELECT id FROM h) WHERE id = $1""",
                UUID(ticket),
                required,
            )
            await revert(made, ticket)
        assert await refunds(made) == [(paid, 8000, "due")]

    run(database, test)


def test_a_blocked_seat_keeps_its_ticket_and_once_reverted_stays_blocked_for_good(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        kept, gone = await sold(made, 5, 6)
        for n in (5, 6):
            blocked = {"seats": [made.seats[n]["id"]], "reason": f"broken {n}", "force": True}
            assert (await made.post(f"/api/events/{made.event_id}/seats/block", blocked)).status_code == 200
        assert (await ticket_row(made, kept))["status"] == "valid"
        assert await faults(made) == []
        assert (await revert(made, gone)).status_code == 200
        rows = await made.sql("SELECT state::text, block_reason, sold_at FROM event_seats WHERE ordinal = 6")
        assert [tuple(row) for row in rows] == [("blocked", "broken 6", None)]
        verbs = [verb for verb, _ in await log(made, 6)]
        assert verbs == ["direct_sale", "block", "unblock", "revert_sale", "block"]
        again = {"seats": [made.seats[n]["id"] for n in (5, 6)]}
        await made.post(f"/api/events/{made.event_id}/seats/unblock", again)
        assert [(await made.seat(n))["state"] for n in (5, 6)] == ["sold", "available"]
        assert await faults(made) == []

    run(database, test)


def test_somebody_inside_can_be_reverted_and_it_is_noted(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        (ticket,) = await sold(made, 5)
        await inside(made, ticket)
        assert (await revert(made, ticket)).json()["data"]["was_inside"] is True
        (audited,) = await made.sql("SELECT changes->>'inside' AS i FROM audit_entries WHERE action = 'ticket_voided'")
        assert audited["i"] == "true"

    run(database, test)


def test_many_are_reverted_together_or_not_at_all(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        tickets = await sold(made, 5, 6, 7, places=2, payment_reference="p", **PAID)
        path = f"/api/events/{made.event_id}/tickets/revert"
        before = await everything(made)
        unknown = str(uuid4())
        answer = await made.post(path, {"ticket_ids": [*tickets, unknown], "reason": "x"})
        assert (answer.status_code, answer.json()["error"]) == (404, "ticket_not_found")
        assert answer.json()["ticket_ids"] == [unknown]
        other = await made.make_event()
        assert (
            await made.post(f"/api/events/{other}/tickets/revert", {"ticket_ids": tickets, "reason": "x"})
        ).status_code == 404
        for body in (
            {"ticket_ids": [], "reason": "x"},
            {"ticket_ids": [tickets[0], tickets[0]], "reason": "x"},
            {"ticket_ids": ["x"], "reason": "x"},
            {"ticket_ids": tickets},
            {"ticket_ids": tickets, "reason": ""},
            {"ticket_ids": tickets, "reason": "x", "refund": "no"},
        ):
            assert (await made.post(path, body)).status_code == 400, body
        changed = {t for t, rows in (await everything(made)).items() if rows != before[t]}
        assert changed <= {"event_seats", "audit_entries", "outbox"}  # of the other event, which was made
        await revert(made, tickets[0])
        answer = await made.post(path, {"ticket_ids": tickets, "reason": "all of it"})
        data = answer.json()["data"]
        assert (answer.status_code, data["reverted"], data["already_void"]) == (200, 4, 1)
        assert [ticket["ticket_id"] for ticket in data["tickets"]] == tickets
        assert await pit(made) == (0, 0)
        assert sum(amount or 0 for _, amount, _ in await refunds(made)) == 3 * 8000 + 2 * 3000
        assert await faults(made) == []

    run(database, test)


def test_returns_are_for_staff_and_for_tickets_that_exist(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        (ticket,) = await sold(made, 5)
        others = [await made.buyer(), await made.member("scanner"), await made.member()]
        before = await everything(made)
        for headers in others:
            assert (await revert(made, ticket, headers=headers)).status_code == 403
            assert (await exchange(made, ticket, 6, headers=headers)).status_code == 403
        for call in (revert(made, str(uuid4())), exchange(made, str(uuid4()), 6)):
            answer = await call
            assert (answer.status_code, answer.json()["error"]) == (404, "ticket_not_found")
        assert (await revert(made, "x")).status_code == 400
        assert (await revert(made, ticket, reason="a" * 501)).status_code == 400
        assert (await revert(made, ticket, reason=5)).status_code == 400
        assert await everything(made) == before

    run(database, test)


def test_tickets_of_a_cancelled_event_stay_and_can_still_be_reverted(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        one, other = await sold(made, 5, 6, payment_reference="p", **PAID)
        await made.post(f"/api/events/{made.event_id}/status", {"status": "cancelled"})
        assert (await ticket_row(made, one))["status"] == "valid"
        assert (await exchange(made, one, 7)).json()["error"] == "event_unavailable"
        assert (await revert(made, one)).status_code == 200
        assert (await ticket_row(made, other))["status"] == "valid"
        assert await refunds(made) == [(one, 8000, "due")]
        assert await faults(made) == []

    run(database, test)


# Exchanging -----------------------------------------------------------------------------------------------------------
def test_an_exchanged_ticket_is_the_same_ticket_for_another_seat(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        (ticket,) = await sold(made, 5, payment_reference="p", **PAID)
        before = await ticket_row(made, ticket)
        answer = await exchange(made, ticket, 15, reason="a pillar")
        assert answer.status_code == 200, answer.text
        data = answer.json()["data"]
        assert (data["from"]["seat"]["seat_id"], data["to"]["seat"]["seat_id"]) == ("A-6", "B-6")
        assert (data["price_minor"], data["list_price_minor"], data["price_difference_minor"]) == (8000, 8000, 0)
        after = await ticket_row(made, ticket)
        changed = {name for name in before.keys() if before[name] != after[name]}  # noqa: SIM118
        assert changed == {"ordinal", "code_version"}
        assert (after["ordinal"], after["code_version"], data["code_version"]) == (15, 2, 2)
        assert [(await made.seat(n))["state"] for n in (5, 15)] == ["available", "sold"]
        assert (await made.seat(15))["hold_type"] == "TILL"
        said = f"exchange of ticket {ticket} from A-6 to B-6: a pillar"
        assert (await log(made, 5))[1:] == [("revert_sale", said)]
        assert await log(made, 15) == [("direct_sale", said)]
        (audited,) = await made.sql("SELECT * FROM audit_entries WHERE action = 'ticket_exchanged'")
        assert (str(audited["entity_id"]), audited["reason"]) == (ticket, "a pillar")
        (message,) = await made.sql("SELECT payload::text FROM outbox WHERE kind = 'TicketExchanged'")
        assert ticket in message["payload"]
        assert await refunds(made) == []
        assert await faults(made) == []
        assert (await revert(made, ticket)).json()["data"]["refund"]["amount_minor"] == 8000
        assert (await made.seat(15))["state"] == "available"

    run(database, test)


def test_a_ticket_goes_from_a_seat_to_a_place_and_back(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        (ticket,) = await sold(made, 5, payment_reference="p", **PAID)
        data = (await exchange(made, ticket, zone_id="pit")).json()["data"]
        assert (data["to"], data["price_difference_minor"]) == ({"seat": None, "zone": "pit"}, -5000)
        assert ((await made.seat(5))["state"], await pit(made)) == ("available", (0, 1))
        assert await faults(made) == []
        data = (await exchange(made, ticket, 6)).json()["data"]
        assert (data["to"]["seat"]["seat_id"], data["price_difference_minor"], data["code_version"]) == ("A-7", 0, 3)
        assert ((await made.seat(6))["state"], await pit(made)) == ("sold", (0, 0))
        assert await faults(made) == []

    run(database, test)


def test_a_ticket_goes_from_one_counted_zone_to_another(database: TestDatabase) -> None:
    ring = {"zone_id": "ring", "name": "Ring", "zone_type": "ga_standing", "capacity": 1}
    config = {"focal_point": {"x": 0, "y": 0}, "zones": [
        {"zone_id": "pit", "name": "Pit", "zone_type": "ga_standing", "capacity": 5}, ring]}  # fmt: skip

    async def test(made: Stage) -> None:
        first, second = await sold(made, places=2)
        assert (await exchange(made, first, zone_id="ring")).status_code == 200
        full = await exchange(made, second, zone_id="ring")
        assert (full.status_code, full.json()["error"], full.json()["available"]) == (409, "block_at_capacity", 0)
        assert full.json()["zone_id"] == "ring"
        rows = await made.sql("SELECT sold FROM event_zones ORDER BY zone_no")
        assert [row["sold"] for row in rows] == [1, 1]
        assert (await ticket_row(made, second))["code_version"] == 1
        assert await faults(made) == []

    run(database, test, config=config, event={"overrides": {"orphan_avoidance_strict": False}})


def test_an_exchange_to_a_place_that_is_not_free_changes_nothing(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        ticket, other = await sold(made, 5, 6)
        await made.reserve(8, await made.buyer())
        await made.post(
            f"/api/events/{made.event_id}/seats/block", {"seats": [made.seats[9]["id"]], "reason": "camera"}
        )
        await sold(made, places=20)
        (void,) = await sold(made, 11)
        await revert(made, void)
        before = await everything(made)
        cases: list[tuple[str, dict[str, Any], int, str]] = [
            (ticket, {"seat": made.seats[6]["id"]}, 409, "seat_not_available"),
            (ticket, {"seat": made.seats[8]["id"]}, 409, "seat_held_by_another_user"),
            (ticket, {"seat": made.seats[9]["id"]}, 409, "seat_not_available"),
            (ticket, {"zone_id": "pit"}, 409, "block_at_capacity"),
            (ticket, {"seat": made.seats[5]["id"]}, 400, "invalid_request"),
            (ticket, {"zone_id": "stalls"}, 400, "invalid_request"),
            (ticket, {"zone_id": "nope"}, 404, "zone_not_found"),
            (ticket, {"seat": str(uuid4())}, 404, "seat_not_found"),
            (ticket, {"seat": "A-1"}, 400, "invalid_request"),
            (ticket, {"seat": 5}, 400, "invalid_request"),
            (ticket, {}, 400, "invalid_request"),
            (ticket, {"seat": made.seats[7]["id"], "zone_id": "pit"}, 400, "invalid_request"),
            (void, {"seat": made.seats[7]["id"]}, 409, "ticket_void"),
        ]
        for named, body, status, code in cases:
            answer = await made.post(f"/api/tickets/{named}/exchange", body)
            assert (answer.status_code, answer.json()["error"]) == (status, code), (body, answer.text)
        assert await everything(made) == before
        await made.advance_clock(3600)  # the hold is over, swept or not
        assert (await exchange(made, ticket, 8)).status_code == 200
        assert [verb for verb, _ in await log(made, 8)] == ["hold", "expire", "direct_sale"]
        assert (await ticket_row(made, other))["ordinal"] == 6
        assert await faults(made) == []

    run(database, test)


def test_from_a_blocked_seat_a_ticket_can_be_moved_and_the_seat_stays_blocked(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        (ticket,) = await sold(made, 5)
        blocked = {"seats": [made.seats[5]["id"]], "reason": "broken", "force": True}
        await made.post(f"/api/events/{made.event_id}/seats/block", blocked)
        assert (await exchange(made, ticket, 6)).status_code == 200
        assert [(await made.seat(n))["state"] for n in (5, 6)] == ["blocked", "sold"]
        await made.post(f"/api/events/{made.event_id}/seats/unblock", {"seats": [made.seats[5]["id"]]})
        assert (await made.seat(5))["state"] == "available"
        assert await faults(made) == []

    run(database, test)


def test_leaving_and_taking_accessible_seats_is_said_and_the_companions_seat_follows_the_ticket(
    database: TestDatabase,
) -> None:
    async def test(made: Stage) -> None:
        buyer = await user(made)
        (ticket,) = await sold(made, 5, buyer={"user_id": str(buyer.user_id)})
        there = (await exchange(made, ticket, 0)).json()["data"]
        assert there["notes"] == ["Seat A-1 is a wheelchair seat; A-2 beside it is kept for this ticket's companion."]
        assert (await made.reserve(1, await made.buyer())).json()["error"] == "seat_not_offered"
        own = await made.reserve(1, bearer(buyer.token))
        assert own.status_code == 201, own.text
        await made.client.delete(f"/api/holds/{own.json()['data']['hold_id']}", headers=bearer(buyer.token))
        away = (await exchange(made, ticket, 5)).json()["data"]
        assert away["notes"] == ["Seat A-1 is a wheelchair seat; A-2 beside it is no longer kept for a companion."]
        assert (await made.reserve(1, await made.buyer())).status_code == 201
        rows = await made.sql("SELECT FROM audit_entries WHERE action = 'accessible_booking'")
        assert len(rows) == 2  # of the exchange to the wheelchair seat, and of the companion's

    run(database, test)


def test_whoever_changed_zones_leaves_from_the_new_one(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        (ticket,) = await sold(made, 5)
        gate = f"/api/events/{made.event_id}/admissions"
        for scan in ({"ticket_id": ticket}, {"ticket_id": ticket, "direction": "out"}):
            assert (await made.post(gate, scan)).json()["data"]["outcome"] == "admit"
            if "direction" not in scan:
                await exchange(made, ticket, zone_id="pit")
                assert await attendance(made) == {0: (0, 0), 1: (1, 1)}
        assert await attendance(made) == {0: (0, 0), 1: (0, 1)}

    run(database, test)


def test_whoever_is_inside_counts_in_the_zone_of_their_new_place(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        first, second = await sold(made, 5, 6)
        await inside(made, first)
        await inside(made, second)
        assert await attendance(made) == {0: (2, 2)}
        await exchange(made, first, zone_id="pit")
        assert await attendance(made) == {0: (1, 1), 1: (1, 1)}
        await exchange(made, second, 7)
        assert await attendance(made) == {0: (1, 1), 1: (1, 1)}

    run(database, test)


def test_an_exchange_with_one_idempotency_key_happens_once(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        (ticket,) = await sold(made, 5)
        headers = {**made.admin, "Idempotency-Key": "x-1"}
        first = await exchange(made, ticket, 6, headers=headers)
        again = await exchange(made, ticket, 6, headers=headers)
        assert (first.status_code, again.status_code, first.json()) == (200, 200, again.json())
        assert (await ticket_row(made, ticket))["code_version"] == 2

    run(database, test)


# Booking v2 -------------------------------------------------------------------------------------------------------------
async def booked(made: Stage, call: str, seats: tuple[int, ...] = (), places: int = 0, session: str = "s") -> Any:
    body = {"sessionId": session, "seats": [{"id": made.seats[n]["booking_id"]} for n in seats]}
    if places:
        body["groupOfSeats"] = [{"id": made.zones[0]["booking_id"], "capacity": places}]
    answer = await made.client.post(
        f"/api/private/v2.0/booking/{call}", json=body, params={"eventId": made.event_id}, headers=made.api_key
    )
    return answer.json()


def test_booking_v2_issues_no_tickets_and_voids_those_on_seats_it_takes_back(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        assert await booked(made, "directsale", (7,)) is True
        assert await made.sql("SELECT FROM tickets") == []
        (ticket,) = await sold(made, 5, payment_reference="p", **PAID)
        assert await booked(made, "revertsale", (5, 8)) is False
        assert (await ticket_row(made, ticket))["status"] == "valid"
        assert await booked(made, "revertsale", (5, 7)) is True
        row = await ticket_row(made, ticket)
        assert (row["status"], row["void_reason"]) == ("void", "the sale was reverted through booking v2")
        assert await refunds(made) == [(ticket, 8000, "due")]
        assert await faults(made) == []

    run(database, test)


def test_booking_v2_takes_back_only_places_that_no_ticket_is_for(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        await sold(made, places=3)
        assert await booked(made, "directsale", places=2) is True
        assert await booked(made, "revertsale", places=3) is False
        assert await booked(made, "revertsale", places=2) is True
        assert await booked(made, "revertsale", places=1) is False
        assert await pit(made) == (0, 3)
        assert await faults(made) == []

    run(database, test)


@pytest.mark.parametrize("call", ["sale", "unlock"])
def test_booking_v2_does_not_touch_what_is_in_a_checkout(database: TestDatabase, call: str) -> None:
    async def test(made: Stage) -> None:
        assert await booked(made, "lock", (5,), places=2) is True
        await made.sql("UPDATE holds SET checkout_id = $1", uuid4())
        assert await booked(made, call, (5,)) is False
        assert await booked(made, call, places=2) is False
        await made.sql("UPDATE holds SET checkout_id = NULL")
        assert await booked(made, call, (5,), places=2) is True

    run(database, test)


def test_prices_that_are_not_known_have_no_difference(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        (ticket,) = await sold(made, 5)
        data = (await exchange(made, ticket, zone_id="pit")).json()["data"]
        assert (data["price_minor"], data["price_difference_minor"]) == (8000, None)

    prices = [{"zone_id": "stalls", "category": None, "amount_minor": 8000}]
    run(database, test, event={**ON_SALE, "prices": prices})
