"""Paying for a checkout and completing it, as people and systems do it over HTTP."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holdfast.insight.invariants import check_event
from holdfast.kernel.ids import new_id
from holdfast.payments.settlement import engine_call
from holdfast.workers.expire_checkouts import ExpireCheckouts
from holdfast.workers.expire_holds import ExpireHolds
from holdfast.workers.settle_payments import SettlePayments
from tests.checkouts import checkout_of
from tests.conftest import TestDatabase
from tests.factories import theatre_config, with_companions
from tests.http.payment_ground import add_provider, message, money, status_of, tell, tickets
from tests.stage import Stage, stage

ANOTHER_VERSION = """
INSERT INTO layout_versions SELECT (jsonb_populate_record(v, '{"version": 2}')).* FROM layout_versions v
JOIN events e ON e.layout_id = v.layout_id WHERE e.id = $1::uuid
"""
RECORDED = """
INSERT INTO payments (organization_id, id, checkout_id, event_id, provider, reference, amount_minor, currency, status, actor,
  created_at, received_at)
SELECT organization_id, uuidv7(), id, event_id, 'stripe', 'pi_1', 2500, 'EUR', 'received', 'SYSTEM', holdfast_now(),
  holdfast_now()
FROM checkouts WHERE id = $1::uuid
"""
Scene = Callable[[Stage], Awaitable[None]]


def play(database: TestDatabase, scene: Scene, **terms: Any) -> None:
    async def run() -> None:
        async with stage(database, **terms) as made:
            await scene(made)
            found = await check_event(made.app.database, made.first.organization_id, await _event(made), [])
            assert [i for i in found if not i.ok] == []

    asyncio.run(run())


async def _event(made: Stage) -> Any:
    (row,) = await made.sql("SELECT id FROM events WHERE id = $1::uuid", made.event_id)
    return row["id"]


async def complete(made: Stage, checkout_id: str, headers: dict[str, str], **body: Any) -> tuple[int, Any]:
    answer = await made.client.post(f"/api/checkouts/{checkout_id}/complete", headers=headers, json=body)
    return answer.status_code, answer.json().get("data") or answer.json()


async def pay(made: Stage, checkout_id: str, headers: dict[str, str], provider: str = "stripe") -> tuple[int, Any]:
    path = f"/api/checkouts/{checkout_id}/pay"
    answer = await made.client.post(path, headers=headers, json={"provider": provider})
    return answer.status_code, answer.json().get("data") or answer.json()


# Nothing to pay ---------------------------------------------------------------------------------------------------
def test_a_checkout_that_costs_nothing_is_completed_once_with_a_ticket_for_each_place(database: TestDatabase) -> None:
    async def scene(made: Stage) -> None:
        buyer = await made.buyer()
        checkout = await checkout_of(made, buyer, 0, 1, places=3, payment_required=False)
        status, first = await complete(made, checkout, buyer)
        assert (status, first["status"], len(first["tickets"])) == (200, "completed", 5)
        assert await tickets(made, checkout) == [(0, 0), (1, 0), (None, 1), (None, 1), (None, 1)]
        status, again = await complete(made, checkout, buyer)
        assert (status, again["tickets"]) == (200, first["tickets"])
        assert (await made.seat(0))["state"] == "sold"
        (row,) = await made.sql("SELECT payload FROM outbox WHERE kind = 'CheckoutCompleted'")
        assert first["tickets"][0] in row["payload"]
        assert len(await made.sql("SELECT 1 FROM audit_entries WHERE action = 'checkout_completed'")) == 1
        refused = await pay(made, checkout, buyer)
        assert (refused[0], refused[1]["error"]) == (409, "checkout_completed")

    play(database, scene)


def test_one_ended_hold_stops_all_and_is_named(database: TestDatabase) -> None:
    async def scene(made: Stage) -> None:
        await add_provider(made)
        buyer = await made.buyer()
        checkout = await checkout_of(made, buyer, 0, 1, payment_required=False)
        (row,) = await made.sql("SELECT id::text FROM holds WHERE ordinal = 1")
        released = await made.post(f"/api/events/{made.event_id}/holds/release", {"hold_ids": [row["id"]]})
        assert released.status_code == 200
        status, refused = await complete(made, checkout, buyer)
        assert (status, refused["error"], refused["hold_ids"]) == (409, "holds_expired", [row["id"]])
        assert (await made.seat(0))["state"] == "held"
        assert await tickets(made, checkout) == []
        assert await status_of(made, checkout) == "open"

    play(database, scene)


def test_a_checkout_past_its_end_is_not_completed_without_money(database: TestDatabase) -> None:
    async def scene(made: Stage) -> None:
        buyer = await made.buyer()
        checkout = await checkout_of(made, buyer, 0, payment_required=False, life_s=60)
        await made.advance_clock(61)
        status, refused = await complete(made, checkout, buyer)
        assert (status, refused["error"], len(refused["hold_ids"])) == (409, "holds_expired", 1)
        await made.sql("UPDATE checkouts SET status = 'cancelled'")
        assert (await complete(made, checkout, buyer))[1]["error"] == "checkout_cancelled"
        await made.sql("UPDATE checkout_lines SET dropped_at = now()")
        await made.sql("UPDATE checkouts SET status = 'open'")
        assert (await complete(made, checkout, buyer))[1]["error"] == "no_holds"

    play(database, scene)


def test_a_checkout_is_its_owners_and_the_staffs(database: TestDatabase) -> None:
    async def scene(made: Stage) -> None:
        await add_provider(made)
        buyer = await made.buyer()
        checkout = await checkout_of(made, buyer, 0)
        stranger = await made.buyer()
        unknown = str(new_id())
        for path, body in (("complete", {}), ("pay", {"provider": "stripe"}), ("pay/cancel", None)):
            foreign = await made.client.post(f"/api/checkouts/{checkout}/{path}", headers=stranger, json=body)
            missing = await made.client.post(f"/api/checkouts/{unknown}/{path}", headers=stranger, json=body)
            assert (foreign.status_code, foreign.content) == (404, missing.content)
        status, _ = await pay(made, checkout, made.admin)
        assert status == 200

    play(database, scene)


# Stated by hand ---------------------------------------------------------------------------------------------------
def test_staff_state_a_payment_and_the_checkout_is_completed_with_it(database: TestDatabase) -> None:
    async def scene(made: Stage) -> None:
        buyer = await made.buyer()
        checkout = await checkout_of(made, buyer, 0, 1)
        status, refused = await complete(made, checkout, buyer)
        assert (status, refused["error"], refused["due_minor"]) == (402, "payment_required", 5_000)
        status, refused = await complete(made, checkout, buyer, payment_reference="till-1")
        assert (status, refused["error"]) == (403, "payment_reference_forbidden")
        status, refused = await complete(made, checkout, made.admin, payment_reference="till-1", amount_minor=4_999)
        assert (status, refused["error"], refused["due_minor"]) == (409, "wrong_amount", 5_000)
        assert await money(made) == []
        status, done = await complete(made, checkout, made.api_key, payment_reference="till-1")
        assert (status, done["status"], len(done["tickets"])) == (200, "completed", 2)
        assert await money(made) == [("till-1", "applied", None)]
        shown = await made.client.get(f"/api/payments/{done['payment_id']}", headers=made.admin)
        assert shown.json()["data"]["amount_minor"] == 5_000
        assert (await made.client.get(f"/api/payments/{done['payment_id']}", headers=buyer)).status_code == 403
        for headers in (buyer, made.admin):
            status, again = await complete(made, checkout, headers)
            assert (status, again["tickets"]) == (200, done["tickets"])
        status, again = await complete(made, checkout, made.admin, payment_reference="till-1")
        assert (status, again["tickets"], again["refund_due"]) == (200, done["tickets"], False)
        assert await money(made) == [("till-1", "applied", None)]

    play(database, scene)


def test_a_reference_is_good_for_one_checkout(database: TestDatabase) -> None:
    async def scene(made: Stage) -> None:
        first = await checkout_of(made, await made.buyer(), 0)
        second = await checkout_of(made, await made.buyer(), 1)
        assert (await complete(made, first, made.admin, payment_reference="till-1"))[0] == 200
        status, refused = await complete(made, second, made.admin, payment_reference="till-1")
        assert (status, refused["error"]) == (409, "payment_reference_used")
        assert await status_of(made, second) == "open"
        assert await money(made) == [("till-1", "applied", None)]

    play(database, scene)


def test_other_money_for_what_is_paid_is_recorded_and_due_back(database: TestDatabase) -> None:
    async def scene(made: Stage) -> None:
        checkout = await checkout_of(made, await made.buyer(), 0)
        _, done = await complete(made, checkout, made.admin, payment_reference="till-1")
        status, again = await complete(made, checkout, made.admin, payment_reference="till-2")
        assert (status, again["tickets"], again["refund_due"]) == (200, done["tickets"], True)
        assert await money(made) == [("till-1", "applied", None), ("till-2", "refund_due", "second_payment")]

    play(database, scene)


def test_places_without_a_price_are_paid_for_by_what_is_stated(database: TestDatabase) -> None:
    async def scene(made: Stage) -> None:
        await add_provider(made)
        buyer = await made.buyer()
        checkout = await checkout_of(made, buyer, 0, price_minor=None, currency=None)
        status, refused = await pay(made, checkout, buyer)
        assert (status, refused["error"]) == (409, "no_price")
        status, refused = await complete(made, checkout, buyer)
        assert (status, refused["due_minor"]) == (402, None)
        status, done = await complete(made, checkout, made.admin, payment_reference="x")
        assert (status, done["status"]) == (200, "completed")
        free = await checkout_of(made, await made.buyer(), 1, price_minor=0)
        status, refused = await complete(made, free, made.admin, payment_reference="y")
        assert (status, refused["error"]) == (409, "nothing_to_pay")
        assert (await pay(made, free, made.admin))[1]["error"] == "nothing_to_pay"
        assert (await complete(made, free, made.admin))[0] == 200

    play(database, scene)


def test_money_stated_after_the_end_needs_a_word_and_then_buys_what_is_free(database: TestDatabase) -> None:
    async def scene(made: Stage) -> None:
        checkout = await checkout_of(made, await made.buyer(), 0, life_s=60)
        taken = await checkout_of(made, await made.buyer(), 1, life_s=60)
        await made.advance_clock(61)
        assert (await made.reserve(1, await made.buyer())).status_code == 201
        status, refused = await complete(made, checkout, made.admin, payment_reference="a")
        assert (status, refused["error"]) == (409, "holds_expired")
        assert await money(made) == []
        status, done = await complete(made, checkout, made.admin, payment_reference="a", late=True)
        assert (status, done["status"], len(done["tickets"])) == (200, "completed", 1)
        for _ in range(2):
            status, refused = await complete(made, taken, made.admin, payment_reference="b", late=True)
            assert (status, refused["error"], refused["reason"]) == (409, "refund_due", "seats_taken")
        assert await money(made) == [("a", "applied", None), ("b", "refund_due", "seats_taken")]

    play(database, scene)


def test_an_idempotency_key_is_good_for_one_statement(database: TestDatabase) -> None:
    async def scene(made: Stage) -> None:
        checkout = await checkout_of(made, await made.buyer(), 0)
        headers = {**made.admin, "Idempotency-Key": "k-1"}
        _, done = await complete(made, checkout, headers, payment_reference="till-1")
        assert await complete(made, checkout, headers, payment_reference="till-1") == (200, done)
        status, refused = await complete(made, checkout, headers, payment_reference="till-2")
        assert (status, refused["error"]) == (422, "idempotency_key_reused")
        assert await money(made) == [("till-1", "applied", None)]

    play(database, scene)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"payment_reference": ""}, "/payment_reference"),
        ({"payment_reference": "x" * 201}, "/payment_reference"),
        ({"payment_reference": "a\x00b"}, "/payment_reference"),
        ({"payment_reference": 7}, "/payment_reference"),
        ({"payment_reference": "x", "amount_minor": -1}, "/amount_minor"),
        ({"payment_reference": "x", "amount_minor": 10**30}, "/amount_minor"),
        ({"payment_reference": "x", "amount_minor": "25"}, "/amount_minor"),
        ({"amount_minor": 5}, "/amount_minor"),
        ({"late": "yes"}, "/late"),
        ({"paid": True}, "/paid"),
    ],
)
def test_a_bad_statement_is_refused_by_its_field(
    shared_database: TestDatabase, body: dict[str, Any], pointer: str
) -> None:
    async def scene(made: Stage) -> None:
        checkout = await checkout_of(made, await made.buyer(), 0)
        status, refused = await complete(made, checkout, made.admin, **body)
        assert (status, refused["errors"][0]["pointer"]) == (400, pointer)
        assert await status_of(made, checkout) == "open"

    play(shared_database, scene)


# Begun with a provider --------------------------------------------------------------------------------------------
def test_paying_fixes_the_amount_and_the_providers_word_completes_it(database: TestDatabase) -> None:
    async def scene(made: Stage) -> None:
        await add_provider(made)
        buyer = await made.buyer()
        checkout = await checkout_of(made, buyer, 0, 1)
        status, begun = await pay(made, checkout, buyer)
        assert (status, begun["payment"]["amount_minor"], begun["payment"]["status"]) == (200, 5_000, "pending")
        assert begun["page"] == {"amount": 5_000, "currency": "EUR", "metadata": {"checkout_id": checkout}}
        assert (await pay(made, checkout, buyer))[1] == begun
        assert await status_of(made, checkout) == "paying"
        status, refused = await complete(made, checkout, buyer)
        assert (status, refused["error"]) == (402, "payment_required")
        answer = await tell(made, message(checkout, "pi_9", amount=5_000))
        assert (answer.status_code, answer.json()) == (200, {"data": {"received": True}})
        assert await money(made) == [("pi_9", "applied", None)]
        assert len(await tickets(made, checkout)) == 2
        status, done = await complete(made, checkout, buyer)
        assert (status, len(done["tickets"]), done["payment_id"]) == (200, 2, begun["payment"]["id"])
        log = await made.sql("SELECT DISTINCT verb, actor FROM seat_state_events WHERE new_state = 'sold'")
        assert [tuple(row) for row in log] == [("convert", "SYSTEM")]

    play(database, scene)


def test_a_payment_that_failed_or_was_cancelled_opens_the_checkout_again(database: TestDatabase) -> None:
    async def scene(made: Stage) -> None:
        await add_provider(made)
        await add_provider(made, "other")
        buyer = await made.buyer()
        checkout = await checkout_of(made, buyer, 0)
        await pay(made, checkout, buyer)
        status, refused = await pay(made, checkout, buyer, "other")
        assert (status, refused["error"]) == (409, "checkout_paying")
        failed = message(checkout, "pi_1", kind="payment_intent.payment_failed")
        assert (await tell(made, failed)).status_code == 200
        assert await status_of(made, checkout) == "open"
        await pay(made, checkout, buyer)
        cancelled = await made.client.post(f"/api/checkouts/{checkout}/pay/cancel", headers=buyer)
        assert (cancelled.status_code, cancelled.json()["data"]["status"]) == (200, "open")
        assert [status for _, status, _ in await money(made)] == ["failed", "failed"]
        # The card was tried once more at the provider: the money is there after all.
        assert (await tell(made, message(checkout, "pi_1"))).status_code == 200
        assert await status_of(made, checkout) == "completed"
        # Of a failure is told too late.
        assert (await tell(made, failed, ago_s=9)).status_code == 200
        assert sorted(status for _, status, _ in await money(made)) == ["applied", "failed"]
        cancelled = await made.client.post(f"/api/checkouts/{checkout}/pay/cancel", headers=buyer)
        assert (cancelled.status_code, cancelled.json()["error"]) == (409, "checkout_completed")

    play(database, scene)


def test_what_cannot_be_paid_for_is_refused_and_nothing_begins(database: TestDatabase) -> None:
    async def scene(made: Stage) -> None:
        await add_provider(made)
        await add_provider(made, "off", enabled=False)
        buyer = await made.buyer()
        checkout = await checkout_of(made, buyer, 0, life_s=60)
        for provider, expected in (
            ("nobody", (404, "payment_provider_not_found")),
            ("off", (409, "provider_disabled")),
            ("manual", (400, "invalid_request")),
            ("Ä\x00", (400, "invalid_request")),
        ):
            status, refused = await pay(made, checkout, buyer, provider)
            assert (status, refused["error"]) == expected
        await made.advance_clock(60)
        status, refused = await pay(made, checkout, buyer)
        assert (status, refused["error"], len(refused["hold_ids"])) == (409, "holds_expired", 1)
        assert await money(made) == []
        cancelled = await made.client.post(f"/api/checkouts/{checkout}/pay/cancel", headers=buyer)
        assert (cancelled.status_code, cancelled.json()["error"]) == (409, "checkout_expired")

    play(database, scene)


def test_the_test_provider_says_what_it_is_told_through_the_same_door(database: TestDatabase) -> None:
    async def scene(made: Stage) -> None:
        await add_provider(made)
        await add_provider(made, "trial", kind="test")
        await add_provider(made)
        buyer = await made.buyer()
        checkout = await checkout_of(made, buyer, 0)
        _, begun = await pay(made, checkout, buyer, "trial")
        simulate = begun["page"]["simulate"]
        stranger = await made.client.post(simulate, headers=await made.buyer())
        assert (stranger.status_code, stranger.json()["error"]) == (404, "payment_not_found")
        answer = await made.client.post(simulate, headers=buyer, json={"outcome": "failed"})
        assert answer.json()["data"]["status"] == "failed"
        for _ in range(2):
            answer = await made.client.post(simulate, headers=buyer)
            assert answer.json()["data"]["status"] == "applied"
        assert len(await made.sql("SELECT 1 FROM payment_messages")) == 3
        other = await checkout_of(made, buyer, 1)
        _, begun = await pay(made, other, buyer)
        refused = await made.client.post(f"/api/payments/{begun['payment']['id']}/simulate", headers=buyer)
        assert (refused.status_code, refused.json()["error"]) == (409, "not_a_test_payment")
        for body in ({"amount_minor": -1}, {"amount_minor": 10**20}, {"currency": "euro"}, {"outcome": "perhaps"}):
            assert (await made.client.post(simulate, headers=buyer, json=body)).status_code == 400

    play(database, scene)


# Money that comes late, or for nothing ----------------------------------------------------------------------------
def test_late_money_buys_the_same_seats_and_places_if_they_are_free(database: TestDatabase) -> None:
    async def scene(made: Stage) -> None:
        await add_provider(made)
        buyer = await made.buyer()
        swept = await checkout_of(made, buyer, 0, 1, places=2, life_s=60)
        unswept = await checkout_of(made, buyer, 2, places=1, life_s=60)
        await made.advance_clock(61)
        await ExpireHolds(made.app.database).sweep(made.first.organization_id)
        (row,) = await made.sql("UPDATE checkouts SET status = 'expired' WHERE id = $1::uuid RETURNING 1", swept)
        assert (await tell(made, message(swept, amount=10_000))).status_code == 200
        assert (await tell(made, message(unswept, "pi_2", amount=5_000))).status_code == 200
        assert await tickets(made, swept) == [(0, 0), (1, 0), (None, 1), (None, 1)]
        assert await tickets(made, unswept) == [(2, 0), (None, 1)]
        assert await status_of(made, swept) == await status_of(made, unswept) == "completed"
        log = await made.sql("SELECT DISTINCT verb, actor, reason FROM seat_state_events WHERE new_state = 'sold'")
        assert [tuple(row) for row in log] == [("direct_sale", "SYSTEM", "late payment")]
        (row,) = await made.sql("SELECT count(*) FROM tickets WHERE user_id IS NULL")
        assert row["count"] == 0

    play(database, scene)


def test_late_money_for_what_another_has_is_due_back_and_nothing_is_sold(database: TestDatabase) -> None:
    async def scene(made: Stage) -> None:
        await add_provider(made)
        buyer = await made.buyer()
        checkout = await checkout_of(made, buyer, 0, 1, places=1, life_s=60)
        await made.advance_clock(61)
        assert (await made.reserve(1, await made.buyer())).status_code == 201
        assert (await tell(made, message(checkout, amount=7_500))).status_code == 200
        assert await money(made) == [("pi_1", "refund_due", "seats_taken")]
        assert await tickets(made, checkout) == []
        states = await made.sql("SELECT state::text FROM event_seats WHERE state = 'sold'")
        assert states == []
        (row,) = await made.sql("SELECT payload FROM outbox WHERE kind = 'PaymentOrphaned'")
        assert '"reason": "seats_taken"' in row["payload"]
        page = (await made.client.get("/api/refunds?status=due", headers=made.admin)).json()
        assert [(r["reason"], r["amount_minor"], r["payment_reference"]) for r in page["data"]] == [
            ("seats_taken", 7_500, "pi_1")
        ]
        other = f"/api/refunds?event_id={new_id()}"
        assert (await made.client.get(other, headers=made.admin)).json()["data"] == []
        assert (await made.client.get("/api/refunds", headers=buyer)).status_code == 403
        done = f"/api/refunds/{page['data'][0]['id']}/done"
        for reference, expected in (("", 400), ("bank-7", 200), ("bank-7", 200), ("bank-8", 409)):
            answer = await made.client.post(done, headers=made.admin, json={"reference": reference})
            assert answer.status_code == expected, answer.text
        assert len(await made.sql("SELECT 1 FROM audit_entries WHERE action = 'refund_done'")) == 1
        assert (await made.client.get("/api/refunds?status=due", headers=made.admin)).json()["data"] == []

    play(database, scene)


def test_one_hold_that_ended_in_a_living_session_is_taken_again_beside_the_others(database: TestDatabase) -> None:
    async def scene(made: Stage) -> None:
        await add_provider(made)
        buyer = await made.buyer()
        checkout = await checkout_of(made, buyer, 0, 1)
        await pay(made, checkout, buyer)
        (row,) = await made.sql("SELECT id::text FROM holds WHERE ordinal = 1")
        await made.post(f"/api/events/{made.event_id}/holds/release", {"hold_ids": [row["id"]]})
        assert (await tell(made, message(checkout, amount=5_000))).status_code == 200
        log = await made.sql("SELECT verb FROM seat_state_events WHERE new_state = 'sold' ORDER BY ordinal")
        assert [row["verb"] for row in log] == ["convert", "direct_sale"]
        assert len(await tickets(made, checkout)) == 2

    play(database, scene)


@pytest.mark.parametrize(
    ("change", "told", "reason"),
    [
        ("", {"amount": 2_499}, "wrong_amount"),
        ("", {"amount": 2_501}, "wrong_amount"),
        ("", {"currency": "usd"}, "wrong_currency"),
        ("UPDATE checkouts SET status = 'cancelled'", {}, "checkout_cancelled"),
        ("UPDATE checkout_lines SET dropped_at = now()", {}, "nothing_left"),
        ("UPDATE checkout_lines SET payment_required = false", {}, "nothing_to_pay"),
        ("UPDATE events SET status = 'cancelled'", {}, "event_cancelled"),
        ("UPDATE events SET status = 'archived'", {}, "event_closed"),
        ("UPDATE holds SET layout_version = 1; UPDATE events SET layout_version = 2", {}, "seats_gone"),
    ],
)
def test_money_that_cannot_buy_says_why(database: TestDatabase, change: str, told: dict[str, Any], reason: str) -> None:
    async def run() -> None:
        async with stage(database) as made:
            await add_provider(made)
            checkout = await checkout_of(made, await made.buyer(), 0)
            if "layout_version" in change:
                await made.sql(ANOTHER_VERSION, made.event_id)
            for statement in filter(None, change.split(";")):
                await made.sql(statement)
            made.app.catalogue.forget(made.first.organization_id)
            assert (await tell(made, message(checkout, **told))).status_code == 200
            assert await money(made) == [("pi_1", "refund_due", reason)]
            assert await tickets(made, checkout) == []

    asyncio.run(run())


def test_after_a_wrong_amount_the_buyer_can_pay_again(database: TestDatabase) -> None:
    async def scene(made: Stage) -> None:
        await add_provider(made)
        buyer = await made.buyer()
        checkout = await checkout_of(made, buyer, 0)
        await pay(made, checkout, buyer)
        await tell(made, message(checkout, "pi_1", amount=1))
        assert await status_of(made, checkout) == "open"
        await pay(made, checkout, buyer)
        await tell(made, message(checkout, "pi_2"))
        await tell(made, message(checkout, "pi_3"))
        assert await money(made) == [
            ("pi_1", "refund_due", "wrong_amount"),
            ("pi_2", "applied", None),
            ("pi_3", "refund_due", "second_payment"),
        ]

    play(database, scene)


# Left behind ------------------------------------------------------------------------------------------------------
def test_money_that_was_only_recorded_is_settled_by_a_worker(database: TestDatabase) -> None:
    async def scene(made: Stage) -> None:
        checkout = await checkout_of(made, await made.buyer(), 0)
        await made.sql(RECORDED, checkout)
        settlement = made.app.services.payments.settlement
        workers = [SettlePayments(made.app.database, settlement) for _ in range(3)]
        await workers[0].once()
        assert await status_of(made, checkout) == "open"  # too fresh: somebody is at it
        await made.advance_clock(4)
        await asyncio.gather(*[worker.once() for worker in workers])
        assert await money(made) == [("pi_1", "applied", None)]
        assert len(await tickets(made, checkout)) == 1

    play(database, scene)


def test_messages_are_forgotten_after_a_month_and_one_bad_payment_keeps_no_other_waiting(
    database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(made: Stage) -> None:
        await add_provider(made)
        first = await checkout_of(made, await made.buyer(), 0)
        second = await checkout_of(made, await made.buyer(), 1)
        settlement = made.app.services.payments.settlement
        settle, stuck = settlement.settle, True

        async def failing(call: Any, payment_id: Any) -> Any:
            (row,) = await made.sql("SELECT checkout_id::text FROM payments WHERE id = $1", payment_id)
            if stuck and (row["checkout_id"] == first or call.principal.subject.startswith("provider")):
                raise RuntimeError("the database has hiccups")
            return await settle(call, payment_id)

        monkeypatch.setattr(settlement, "settle", failing)
        for number, checkout in enumerate((first, second)):
            assert (await tell(made, message(checkout, f"pi_{number}"))).status_code == 200  # recorded all the same
        await made.advance_clock(4)
        worker = SettlePayments(made.app.database, settlement)
        await worker.once()
        assert (await status_of(made, first), await status_of(made, second)) == ("open", "completed")
        stuck = False
        await SettlePayments(made.app.database, settlement).once()
        assert await status_of(made, first) == "completed"
        await made.advance_clock(29 * 86_400)
        await worker.forget_messages()
        assert len(await made.sql("SELECT 1 FROM payment_messages")) == 2
        await made.advance_clock(86_400)
        await worker.forget_messages()
        assert await made.sql("SELECT 1 FROM payment_messages") == []

    play(database, scene)


def test_settling_again_what_is_settled_changes_nothing(database: TestDatabase) -> None:
    async def scene(made: Stage) -> None:
        checkout = await checkout_of(made, await made.buyer(), 0)
        _, done = await complete(made, checkout, made.admin, payment_reference="a")
        (row,) = await made.sql("SELECT id FROM payments")
        call = engine_call(made.first.organization_id, "tests")
        settled = await made.app.services.payments.settlement.settle(call, row["id"])
        assert (settled.status, settled.newly) == ("applied", False)
        assert len(await tickets(made, checkout)) == len(done["tickets"]) == 1

    play(database, scene)


# Companions -------------------------------------------------------------------------------------------------------
def test_late_money_keeps_to_the_rule_for_companions_seats(database: TestDatabase) -> None:
    async def scene(made: Stage) -> None:
        await add_provider(made)
        both = await checkout_of(made, await made.buyer(), 0, 1, life_s=60)
        alone = await checkout_of(made, await made.buyer(), 3, life_s=60)
        await made.advance_clock(61)
        # The wheelchair seat beside it is somebody's now: the companion's seat is kept for them.
        assert (await made.reserve(2, await made.buyer())).status_code == 201
        assert (await tell(made, message(both, "pi_1", amount=5_000))).status_code == 200
        assert (await tell(made, message(alone, "pi_2"))).status_code == 200
        assert await money(made) == [("pi_1", "applied", None), ("pi_2", "refund_due", "seats_taken")]
        assert await tickets(made, both) == [(0, 0), (1, 0)]
        assert (await made.seat(3))["state"] == "available"

    play(database, scene, config=with_companions(theatre_config(4, 10), (0, 1), (2, 3)))


def test_a_checkout_says_with_whom_it_can_be_paid(database: TestDatabase) -> None:
    async def scene(made: Stage) -> None:
        await add_provider(made)
        await add_provider(made, "trial", kind="test")
        await add_provider(made, "old", enabled=False)
        buyer = await made.buyer()
        checkout = await checkout_of(made, buyer, 0)
        shown = (await made.client.get(f"/api/checkouts/{checkout}", headers=buyer)).json()["data"]
        assert shown["payment_providers"] == [{"name": "stripe", "kind": "webhook"}, {"name": "trial", "kind": "test"}]
        done = await made.post(f"/api/checkouts/{checkout}/complete", {"payment_reference": "till"})
        assert done.json()["data"]["payment_providers"] == []

    play(database, scene)


KEEP = {"KEEP": {"validStates": ["LOCKED"], "ttlSeconds": None, "releaseApi": "ADMIN,API", "paymentRequired": True}}


def test_late_money_does_not_buy_a_hold_that_is_in_another_checkout_by_now(database: TestDatabase) -> None:
    """Without an end it outlived the first one, and entered a second."""

    async def scene(made: Stage) -> None:
        await add_provider(made)
        assert (await made.post("/api/organizations/config", {"holdTypes": KEEP})).status_code == 200
        held = (await made.hold(made.admin, 0, holdType="KEEP")).json()["data"]["holds"][0]["hold_id"]
        path = f"/api/events/{made.event_id}/checkouts"
        first = (await made.post(path, {"hold_ids": [held]})).json()["data"]["id"]
        await made.sql("UPDATE checkout_lines SET price_minor = 2500")
        await made.advance_clock(1_801)
        await ExpireCheckouts(made.app.database).once()
        second = (await made.post(path, {"hold_ids": [held]})).json()["data"]
        assert second["lines"][0]["status"] == "active"
        assert (await tell(made, message(first))).status_code == 200
        assert await money(made) == [("pi_1", "refund_due", "seats_taken")]
        assert await status_of(made, first) == "expired"
        assert await status_of(made, second["id"]) == "open"
        shown = (await made.client.get(f"/api/checkouts/{second['id']}", headers=made.admin)).json()["data"]
        assert shown["lines"][0]["status"] == "active"

    play(database, scene)
