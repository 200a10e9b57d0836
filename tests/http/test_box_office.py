"""Sales over the counter: available → sold with tickets, all or nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import pytest

from tests.conftest import TestDatabase
from tests.http.box_office_ground import everything, exchange, faults, house, log, pit, sell, sold, ticket_row
from tests.http.client import bearer
from tests.http.contents import user
from tests.stage import Stage


def run(database: TestDatabase, test: Callable[[Stage], Awaitable[None]], **more: Any) -> None:
    async def main() -> None:
        async with house(database, **more) as made:
            await test(made)

    asyncio.run(main())


def test_a_sale_over_the_counter_sells_issues_tickets_and_records_the_payment(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        friend = (await made.post("/api/users", {"display_name": "Ada"})).json()["data"]["id"]
        answer = await sell(
            made,
            5,
            6,
            places=2,
            holdType="TILL",
            payment_reference="till 1, 17",
            buyer={"user_id": friend},
            attendees=[None, {"name": "Grace"}, {"user_id": friend}],
        )
        assert answer.status_code == 201, answer.text
        data = answer.json()["data"]
        assert (data["total_minor"], data["checkout"]["status"], data["checkout"]["user_id"]) == (
            22000,
            "completed",
            friend,
        )
        assert sorted(ticket["id"] for ticket in data["tickets"]) == data["checkout"]["tickets"]
        told = [
            (t["seat"] and t["seat"]["seat_id"], t["zone"], t["price_minor"], t["attendee_name"])
            for t in data["tickets"]
        ]
        assert told == [
            ("A-6", "stalls", 8000, None),
            ("A-7", "stalls", 8000, "Grace"),
            (None, "pit", 3000, None),
            (None, "pit", 3000, None),
        ]
        assert [(await made.seat(n))["state"] for n in (5, 6)] == ["sold", "sold"]
        assert await pit(made) == (0, 2)
        rows = [await ticket_row(made, ticket["id"]) for ticket in data["tickets"]]
        assert {str(row["user_id"]) for row in rows} == {friend}
        assert [row["attendee_user_id"] is not None for row in rows] == [False, False, True, False]
        assert {(row["entitlement"], row["status"], row["hold_id"]) for row in rows} == {
            ("single_entry", "valid", None)
        }
        (payment,) = await made.sql("SELECT * FROM payments")
        assert (payment["provider"], payment["reference"], payment["amount_minor"]) == ("manual", "till 1, 17", 22000)
        assert (payment["status"], payment["currency"]) == ("applied", "EUR")
        assert str(payment["id"]) == data["checkout"]["payment_id"]
        (checkout,) = await made.sql("SELECT source, status::text, ended_at IS NOT NULL AS ended FROM checkouts")
        assert tuple(checkout) == ("box_office", "completed", True)
        (audited,) = await made.sql("SELECT entity_id FROM audit_entries WHERE action = 'checkout_completed'")
        assert str(audited["entity_id"]) == data["checkout"]["id"]
        (told_to,) = await made.sql("SELECT payload::text FROM outbox WHERE kind = 'CheckoutCompleted'")
        assert all(ticket["id"] in told_to["payload"] for ticket in data["tickets"])
        assert friend not in told_to["payload"]
        assert "Grace" not in told_to["payload"]
        assert [verb for verb, _ in await log(made, 5)] == ["direct_sale"]
        assert await faults(made) == []

    run(database, test)


def test_a_type_that_asks_for_no_payment_gets_none(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        answer = await sell(made, 5, headers=made.api_key)
        assert answer.status_code == 201, answer.text
        assert answer.json()["data"]["checkout"]["payment_id"] is None
        assert await made.sql("SELECT FROM payments") == []
        assert (await made.seat(5))["hold_type"] == "COMP"

    run(database, test)


def test_what_cannot_be_sold_over_the_counter_is_refused_and_changes_nothing(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        buyer = await made.buyer()
        held = await made.reserve(8, buyer)
        assert (await made.hold(made.admin, ga=[{"zone_id": "pit", "quantity": 15}])).status_code == 201
        (ticket,) = await sold(made, 7, holdType="TILL", payment_reference="used")
        scanner = await made.member("scanner")
        before = await everything(made)
        seat = made.seats[5]["id"]
        others = uuid4()
        cases: list[tuple[dict[str, Any], int, str, Any]] = [
            ({"numbers": [5], "holdType": "CART"}, 400, "invalid_request", "not valid for the state SOLD"),
            ({"numbers": [5], "holdType": "SLOW"}, 400, "invalid_request", "skipLockedState"),
            ({"numbers": [5], "holdType": "NOPE"}, 400, "invalid_request", "no hold type"),
            ({"numbers": [5], "holdType": "TILL"}, 402, "payment_required", "payment_reference"),
            ({"numbers": [5], "holdType": "TILL", "amount_minor": 8000}, 402, "payment_required", "payment_reference"),
            ({"numbers": [5], "payment_reference": "x"}, 400, "invalid_request", "/payment_reference"),
            ({"numbers": [5], "amount_minor": 1}, 400, "invalid_request", "/amount_minor"),
            (
                {"numbers": [5], "holdType": "TILL", "payment_reference": "x", "amount_minor": 7999},
                409,
                "wrong_amount",
                8000,
            ),
            (
                {"numbers": [5], "holdType": "TILL", "payment_reference": "x", "amount_minor": 8001},
                409,
                "wrong_amount",
                8000,
            ),
            ({"numbers": [5], "holdType": "TILL", "payment_reference": "used"}, 409, "payment_reference_used", ""),
            (
                {"numbers": [5], "holdType": "TILL", "payment_reference": ""},
                400,
                "invalid_request",
                "/payment_reference",
            ),
            ({"numbers": [5], "holdType": "TILL", "payment_reference": "a\x00b"}, 400, "invalid_request", "control"),
            ({"numbers": [5], "amount_minor": -1}, 400, "invalid_request", "/amount_minor"),
            ({"numbers": [5], "amount_minor": 10**30}, 400, "invalid_request", "/amount_minor"),
            ({"numbers": [5], "amount_minor": "5"}, 400, "invalid_request", "/amount_minor"),
            ({}, 400, "invalid_request", "/seats"),
            ({"seats": [seat, seat]}, 400, "invalid_request", "/seats/1"),
            ({"seats": ["A-1"]}, 400, "invalid_request", "/seats/0"),
            ({"seats": [str(others)]}, 404, "seat_not_found", str(others)),
            ({"ga": [{"zone_id": "nope", "quantity": 1}]}, 404, "zone_not_found", "nope"),
            ({"ga": [{"zone_id": "stalls", "quantity": 1}]}, 400, "invalid_request", "numbered seats"),
            ({"ga": [{"zone_id": "pit", "quantity": 0}]}, 400, "invalid_request", "/ga/0/quantity"),
            ({"numbers": [5], "places": 6}, 409, "block_at_capacity", "only 5 places"),
            ({"numbers": [5], "places": 10_000}, 422, "max_seats_exceeded", "10000"),
            ({"numbers": [5, 7]}, 409, "seat_not_available", made.seats[7]["id"]),
            ({"numbers": [5, 8]}, 409, "seat_held_by_another_user", made.seats[8]["id"]),
            ({"numbers": [5], "buyer": {"user_id": str(others)}}, 400, "invalid_request", "/buyer/user_id"),
            ({"numbers": [5], "buyer": {"user_id": "me"}}, 400, "invalid_request", "/buyer/user_id"),
            ({"numbers": [5], "attendees": [None, None]}, 400, "invalid_request", "/attendees/1"),
            ({"numbers": [5], "attendees": [{"email": "who@example.org"}]}, 400, "invalid_request", "/attendees/0"),
            ({"numbers": [5], "attendees": [{}]}, 400, "invalid_request", "/attendees/0"),
            ({"numbers": [5], "colour": "red"}, 400, "invalid_request", "colour"),
        ]
        for body, status, code, said in cases:
            numbers = body.pop("numbers", ())
            answer = await sell(made, *numbers, **body)
            assert (answer.status_code, answer.json().get("error")) == (status, code), (body, answer.text)
            assert str(said) in answer.text, (body, answer.text)
        assert held.json()["data"]["hold_id"] not in answer.text
        assert (await sell(made, 5, headers=buyer)).status_code == 403
        assert (await sell(made, 5, headers=scanner)).status_code == 403
        assert await everything(made) == before
        assert (await exchange(made, ticket, 8)).status_code == 409

    run(database, test)


@pytest.mark.parametrize(
    ("status", "error"),
    [("draft", "event_not_available"), ("cancelled", "event_unavailable"), ("archived", "event_not_available")],
)
def test_only_an_event_on_sale_is_sold(database: TestDatabase, status: str, error: str) -> None:
    async def test(made: Stage) -> None:
        if status == "draft":
            made.event_id = await made.make_event(publish=False)
        else:
            for step in ("live", status):
                await made.post(f"/api/events/{made.event_id}/status", {"status": step})
        answer = await sell(made, ga=[{"zone_id": "pit", "quantity": 1}])
        assert (answer.status_code, answer.json()["error"]) == (400, error)
        assert await made.sql("SELECT FROM tickets") == []

    run(database, test)


def test_the_box_office_sells_before_and_after_the_sale_to_the_public(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        await sold(made, 5)
        assert (await made.reserve(6, await made.buyer())).json()["error"] == "event_sales_closed"

    event = {"sale_start": "2990-01-01T00:00:00Z", "overrides": {"orphan_avoidance_strict": False}}
    run(database, test, event=event)


def test_a_seat_whose_hold_is_over_can_be_sold_over_the_counter(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        await made.reserve(5, await made.buyer())
        assert (await sell(made, 5)).status_code == 409
        await made.advance_clock(3600)
        await sold(made, 5)
        assert [verb for verb, _ in await log(made, 5)] == ["hold", "expire", "direct_sale"]
        assert await faults(made) == []

    run(database, test)


def test_one_idempotency_key_sells_once(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        headers = {**made.admin, "Idempotency-Key": "sale-1"}
        first = await sell(made, 5, holdType="TILL", payment_reference="p", headers=headers)
        again = await sell(made, 5, holdType="TILL", payment_reference="p", headers=headers)
        assert (first.status_code, again.status_code) == (201, 201)
        assert first.json() == again.json()
        assert (await sell(made, 6, holdType="TILL", payment_reference="p", headers=headers)).status_code == 422
        assert len(await made.sql("SELECT FROM tickets")) == 1

    run(database, test)


def test_places_without_a_price_are_paid_for_by_what_the_counter_says(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        first = await sell(made, 5, holdType="TILL", payment_reference="a")
        assert first.json()["data"]["total_minor"] is None
        second = await sell(made, 6, holdType="TILL", payment_reference="b", amount_minor=1234)
        assert second.json()["data"]["total_minor"] == 1234
        rows = await made.sql("SELECT amount_minor FROM payments ORDER BY reference")
        assert [row["amount_minor"] for row in rows] == [None, 1234]

    run(database, test, event={"overrides": {"orphan_avoidance_strict": False}})


def test_an_organisers_sale_of_a_kept_companion_seat_is_noted_and_the_booking_audited(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        one, other = [(await made.post("/api/users", {})).json()["data"]["id"] for _ in range(2)]
        await sold(made, 0, buyer={"user_id": one})
        await sold(made, 1, buyer={"user_id": other})
        ((verb, reason),) = await log(made, 1)
        assert verb == "direct_sale"
        assert reason is not None
        assert "kept for the companion" in reason
        rows = await made.sql("SELECT changes::text AS c FROM audit_entries WHERE action = 'accessible_booking'")
        assert len(rows) == 1

    run(database, test)


def test_who_bought_a_wheelchair_seat_over_the_counter_may_take_the_companions_seat(database: TestDatabase) -> None:
    async def test(made: Stage) -> None:
        buyer = await user(made)
        await sold(made, 0, buyer={"user_id": str(buyer.user_id)})
        # The seller is named in the log's line, and is not the owner.
        seller = await made.reserve(1, made.admin)
        assert seller.json()["error"] == "seat_not_offered"
        assert (await made.reserve(1, await made.buyer())).json()["error"] == "seat_not_offered"
        own = await made.reserve(1, bearer(buyer.token))
        assert own.status_code == 201, own.text

    run(database, test)
