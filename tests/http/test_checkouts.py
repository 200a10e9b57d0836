"""Checkouts over HTTP: what enters them, at what price, for whom, and every way in and out."""

import asyncio
from datetime import datetime
from typing import Any

import pytest

from tests.conftest import TestDatabase
from tests.http.checkouts import (
    PRICED,
    TYPES,
    UNKNOWN,
    act,
    drop,
    ends,
    hold,
    open_,
    opened,
    overrides,
    pay,
    post,
    refused,
    shown,
)
from tests.stage import Stage, stage


def test_a_checkout_takes_the_callers_holds_and_all_end_at_one_instant(database: TestDatabase) -> None:
    async def work(made: Stage) -> None:
        buyer = await made.buyer()
        holds = await hold(made, buyer, 0, 1, ga=[{"zone_id": "pit", "quantity": 3}])
        checkout = await opened(made, buyer)
        assert (checkout["status"], checkout["total_minor"], checkout["currency"]) == (
            "open",
            2 * 4500 + 3 * 2000,
            "EUR",
        )
        assert (checkout["payment_required"], checkout["refund_due"], checkout["heartbeat"]) == (True, False, None)
        assert 1795 <= checkout["expires_in_seconds"] <= 1800
        assert sorted(line["hold_id"] for line in checkout["lines"]) == sorted(holds)
        assert [(line["zone"], line["quantity"], line["due_minor"]) for line in checkout["lines"]] == [
            ("stalls", 1, 4500),
            ("stalls", 1, 4500),
            ("pit", 3, 6000),
        ]
        assert checkout["lines"][0]["seat"] == {
            "id": made.seats[0]["id"], "seat_id": "A-1", "row": "A", "number": 1
        }  # fmt: skip
        assert checkout["lines"][2]["seat"] is None
        for status, until, seat, expires_at, _ in await ends(made):
            assert status == "active"
            assert until == expires_at == datetime.fromisoformat(checkout["expires_at"])
            assert seat in (until, None)
        for hold_id in holds:
            seen = (await made.client.get(f"/api/holds/{hold_id}", headers=buyer)).json()["data"]
            assert (seen["checkout_id"], seen["held_until"]) == (checkout["id"], checkout["expires_at"])

    act(database, work)


def test_prices_stay_as_they_were_when_a_hold_came_in(database: TestDatabase) -> None:
    async def work(made: Stage) -> None:
        buyer = await made.buyer()
        await hold(made, buyer, 0)
        checkout = await opened(made, buyer)
        dearer = {"prices": [{"zone_id": "stalls", "amount_minor": 9900}]}
        answer = await made.client.patch(f"/api/events/{made.event_id}", headers=made.admin, json=dearer)
        assert answer.status_code == 200, answer.text
        more = await hold(made, buyer, 5, ga=[{"zone_id": "pit", "quantity": 1}])
        changed = (await post(made, checkout, "holds", buyer, {"hold_ids": more})).json()["data"]
        # The price list of the moment of adding, at once; and what it does not name has no price and is to be paid.
        assert [line["price_minor"] for line in changed["lines"]] == [4500, 9900, None]
        assert (changed["total_minor"], changed["payment_required"]) == (14400, True)
        assert changed["expires_at"] == checkout["expires_at"]

    act(database, work)


def test_a_price_changed_by_another_process_counts_from_its_commit_on(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, event=PRICED) as one, stage(database, organization=one.first) as two:
            buyer = await one.buyer()
            await hold(one, buyer, 0)  # this process remembers the event as it is now
            dearer = {"prices": [{"zone_id": "stalls", "amount_minor": 9900}]}
            await two.client.patch(f"/api/events/{one.event_id}", headers=one.admin, json=dearer)
            assert (await opened(one, buyer))["total_minor"] == 9900

    asyncio.run(main())


def test_a_type_that_asks_for_no_payment_is_free(database: TestDatabase) -> None:
    async def work(made: Stage) -> None:
        await made.post("/api/organizations/config", {"holdTypes": TYPES})
        (comp,) = await hold(made, made.admin, 0, holdType="COMP")
        checkout = await opened(made, made.admin)
        (line,) = checkout["lines"]
        assert (line["price_minor"], line["due_minor"], line["held_until"]) == (4500, 0, None)
        assert (checkout["total_minor"], checkout["payment_required"]) == (0, False)
        assert [row[:3] for row in await ends(made)] == [("active", None, None)]  # it keeps its own rule
        assert comp == line["hold_id"]

    act(database, work)


def test_a_second_click_gets_the_same_checkout(database: TestDatabase) -> None:
    async def work(made: Stage) -> None:
        buyer = await made.buyer()
        refused(await open_(made, buyer), 409, "no_holds")
        holds = await hold(made, buyer, 0, 1)
        answers = await asyncio.gather(*[open_(made, buyer) for _ in range(6)])
        assert sorted(answer.status_code for answer in answers) == [200] * 5 + [201]
        assert len({answer.json()["data"]["id"] for answer in answers}) == 1
        again = await open_(made, buyer, hold_ids=holds)
        assert (again.status_code, again.json()["data"]["id"]) == (200, answers[0].json()["data"]["id"])
        new = await hold(made, buyer, 5)
        problem = refused(await open_(made, buyer, hold_ids=[*holds, *new]), 409, "hold_in_checkout")
        assert problem["hold_ids"] == sorted(holds)
        second = await opened(made, buyer)
        assert [line["hold_id"] for line in second["lines"]] == new
        (count,) = await made.sql("SELECT count(*) FROM checkouts")
        assert count[0] == 2

    act(database, work)


def test_an_idempotency_key_opens_one_checkout(database: TestDatabase) -> None:
    async def work(made: Stage) -> None:
        buyer = {**await made.buyer(), "Idempotency-Key": "k-1"}
        plain = {k: v for k, v in buyer.items() if k != "Idempotency-Key"}
        holds = await hold(made, plain, 0)
        first = await open_(made, buyer)
        assert (await drop(made, first.json()["data"], holds[0], plain)).status_code == 200
        second = await open_(made, buyer)
        assert (second.status_code, second.json()) == (201, first.json())
        refused(await open_(made, buyer, source="scanner"), 422, "idempotency_key_reused")

    act(database, work)


def test_what_is_over_or_anothers_cannot_be_checked_out(database: TestDatabase) -> None:
    async def work(made: Stage) -> None:
        buyer, other = await made.buyer(), await made.buyer()
        holds, theirs = await hold(made, buyer, 0, 1), await hold(made, other, 2)
        unknown = refused(await open_(made, buyer, hold_ids=[UNKNOWN]), 404, "hold_not_found")
        foreign = refused(await open_(made, buyer, hold_ids=theirs), 404, "hold_not_found")
        assert {**unknown, "hold_ids": theirs} == foreign
        assert (
            refused(await open_(made, buyer, hold_ids=[*holds, *theirs]), 404, "hold_not_found")["hold_ids"] == theirs
        )
        refused(await open_(made, made.admin, hold_ids=[*holds, *theirs]), 409, "several_owners")
        await made.client.delete(f"/api/holds/{holds[0]}", headers=buyer)
        assert refused(await open_(made, buyer, hold_ids=holds), 409, "holds_expired")["hold_ids"] == [holds[0]]
        await made.advance_clock(301)
        assert refused(await open_(made, buyer, hold_ids=[holds[1]]), 409, "holds_expired")["hold_ids"] == [holds[1]]
        refused(await open_(made, buyer), 409, "no_holds")
        assert await made.sql("SELECT FROM checkouts") == []

    act(database, work)


def test_staff_open_a_checkout_for_a_buyer_and_it_is_the_buyers(database: TestDatabase) -> None:
    async def work(made: Stage) -> None:
        buyer = await made.buyer()
        holds = await hold(made, buyer, 0)
        refused(await open_(made, made.api_key), 400, "invalid_request")
        checkout = await opened(made, made.api_key, hold_ids=holds)
        assert (await shown(made, checkout, buyer))["id"] == checkout["id"]
        mine = await hold(made, made.api_key, 4)  # an API key's own holds are nobody's
        refused(await post(made, checkout, "holds", made.api_key, {"hold_ids": mine}), 409, "several_owners")
        assert (await opened(made, made.api_key, hold_ids=mine))["user_id"] is None
        refused(await made.client.get("/api/checkouts", headers=made.api_key), 400, "invalid_request")

    act(database, work)


@pytest.mark.parametrize(
    "body",
    [
        {"hold_ids": []},
        {"hold_ids": ["x"]},
        {"hold_ids": [UNKNOWN, UNKNOWN]},
        {"hold_ids": [None]},
        {"hold_ids": UNKNOWN},
        {"hold_ids": {"a": 1}},
        {"source": "moon"},
        {"colour": 1},
        [],
        7,
    ],
)
def test_a_malformed_body_is_refused_by_name(shared_database: TestDatabase, body: Any) -> None:
    async def main() -> None:
        async with stage(shared_database) as made:
            buyer = await made.buyer()
            path = f"/api/events/{made.event_id}/checkouts"
            problem = refused(await made.client.post(path, headers=buyer, json=body), 400, "invalid_request")
            assert problem["errors"]
            if isinstance(body, dict) and "hold_ids" in body:
                path = f"/api/checkouts/{UNKNOWN}/holds"
                refused(await made.client.post(path, headers=buyer, json=body), 400, "invalid_request")

    asyncio.run(main())


def test_another_buyers_checkout_is_as_unknown_as_none(database: TestDatabase) -> None:
    async def work(made: Stage) -> None:
        buyer, other = await made.buyer(), await made.buyer()
        holds = await hold(made, buyer, 0)
        theirs = await hold(made, other, 1)
        checkout = await opened(made, buyer)
        for headers in (other, await made.member("scanner")):
            for method, rest, body in (
                ("GET", "", None),
                ("POST", "/holds", {"hold_ids": theirs}),
                ("DELETE", f"/holds/{holds[0]}", None),
                ("POST", "/heartbeat", None),
                ("POST", "/cancel", None),
            ):
                foreign, missing = [
                    await made.client.request(method, f"/api/checkouts/{one}{rest}", headers=headers, json=body)
                    for one in (checkout["id"], UNKNOWN)
                ]
                assert (foreign.status_code, foreign.content) == (404, missing.content), (method, rest)
                assert foreign.json()["error"] == "checkout_not_found"
            listed = await made.client.get("/api/checkouts", headers=headers)
            assert listed.json()["data"] == []
            assert (await made.client.get(f"/api/events/{made.event_id}/checkouts", headers=headers)).status_code == 403
        assert (await shown(made, checkout))["status"] == "open"

    act(database, work)


def test_dropping_gives_the_hold_back_and_an_empty_session_stays_open(database: TestDatabase) -> None:
    async def work(made: Stage) -> None:
        buyer = await made.buyer()
        one, two = await hold(made, buyer, 0, 1)
        checkout = await opened(made, buyer)
        for _ in range(2):
            answer = await drop(made, checkout, one, buyer)
            assert (answer.status_code, answer.json()["data"]["total_minor"]) == (200, 4500)
        assert [line["hold_id"] for line in answer.json()["data"]["lines"]] == [two]
        assert (await made.seat(0))["state"] == "available"
        # Giving the other back where holds are given back is the same.
        answer = await made.client.delete(f"/api/holds/{two}", headers=buyer)
        assert (answer.status_code, answer.json()["data"]["status"]) == (200, "cancelled")
        empty = await shown(made, checkout, buyer)
        assert (empty["status"], empty["lines"], empty["total_minor"], empty["payment_required"]) == (
            "open",
            [],
            0,
            False,
        )
        refused(await drop(made, checkout, UNKNOWN, buyer), 404, "hold_not_found")
        (new,) = await hold(made, buyer, 0)
        filled = (await post(made, checkout, "holds", buyer, {"hold_ids": [new]})).json()["data"]
        assert (filled["total_minor"], len(filled["lines"])) == (4500, 1)
        again = (await post(made, checkout, "holds", buyer, {"hold_ids": [new]})).json()["data"]
        assert again["lines"] == filled["lines"]
        assert refused(await post(made, checkout, "holds", buyer, {"hold_ids": [one]}), 409, "holds_expired")[
            "hold_ids"
        ] == [one]

    act(database, work)


def test_a_hold_in_a_checkout_is_neither_extended_nor_moved(database: TestDatabase) -> None:
    async def work(made: Stage) -> None:
        buyer = await made.buyer()
        (one,) = await hold(made, buyer, 0)
        checkout = await opened(made, buyer)
        problem = refused(await made.client.post(f"/api/holds/{one}/extend", headers=buyer), 409, "hold_in_checkout")
        assert problem["hold_ids"] == [one]
        moves = {"moves": [{"hold_id": one, "seat": made.seats[9]["id"]}]}
        refused(await made.post(f"/api/events/{made.event_id}/holds/move", moves), 409, "hold_in_checkout")
        assert (await made.seat(0))["state"] == "held"
        # The organiser's own ways stay open: the line says what became of the hold.
        await made.post(f"/api/events/{made.event_id}/holds/release", {"hold_ids": [one]})
        assert [line["status"] for line in (await shown(made, checkout))["lines"]] == ["cancelled"]
        (two,) = await hold(made, buyer, 1)
        assert (await post(made, checkout, "holds", buyer, {"hold_ids": [two]})).status_code == 200
        blocked = {"seats": [made.seats[1]["id"]], "reason": "broken"}
        assert (await made.post(f"/api/events/{made.event_id}/seats/block", blocked)).status_code == 200
        assert {line["status"] for line in (await shown(made, checkout))["lines"]} == {"cancelled"}

    act(database, work)


def test_while_it_is_being_paid_a_buyer_changes_nothing(database: TestDatabase) -> None:
    async def work(made: Stage) -> None:
        buyer = await made.buyer()
        one, two = await hold(made, buyer, 0, 1)
        checkout = await opened(made, buyer, hold_ids=[one])
        await pay(made, checkout)
        refused(await drop(made, checkout, one, buyer), 409, "checkout_paying")
        refused(await made.client.delete(f"/api/holds/{one}", headers=buyer), 409, "checkout_paying")
        refused(await post(made, checkout, "holds", buyer, {"hold_ids": [two]}), 409, "checkout_paying")
        refused(await post(made, checkout, "cancel", buyer), 409, "checkout_paying")
        refused(await open_(made, buyer, hold_ids=[one]), 409, "hold_in_checkout")
        assert (await post(made, checkout, "heartbeat", buyer)).status_code == 200
        assert [row[0] for row in await ends(made)] == ["active", "active"]
        answer = await post(made, checkout, "cancel", made.admin)
        assert (answer.status_code, answer.json()["data"]["status"]) == (200, "cancelled")
        assert [row[0] for row in await ends(made)] == ["cancelled", "active"]

    act(database, work)


def test_cancelling_gives_back_what_may_be_given_back(database: TestDatabase) -> None:
    async def work(made: Stage) -> None:
        await made.post("/api/organizations/config", {"holdTypes": {**TYPES, "KEPT": {"releaseApi": "API"}}})
        cart = await hold(made, made.admin, 0, ga=[{"zone_id": "pit", "quantity": 2}])
        await made.sql("UPDATE holds SET user_id = NULL")  # as if an API key's: nobody is their owner
        comp, loan, kept = [
            (await hold(made, made.api_key, n, holdType=t))[0] for n, t in ((4, "COMP"), (6, "LOAN"), (8, "KEPT"))
        ]
        checkout = await opened(made, made.admin, hold_ids=[*cart, comp, loan, kept])
        for _ in range(2):
            answer = await post(made, checkout, "cancel", made.admin)
            assert (answer.status_code, answer.json()["data"]["status"]) == (200, "cancelled")
            assert answer.json()["data"]["ended_at"] is not None
        rows = await made.sql("SELECT id::text, status::text, checkout_id FROM holds")
        found = {row["id"]: (row["status"], row["checkout_id"] is None) for row in rows}
        assert found[kept] == ("active", True)
        assert {found[one][0] for one in (*cart, comp, loan)} == {"cancelled"}
        assert (await opened(made, made.api_key, hold_ids=[kept]))["status"] == "open"
        refused(await post(made, checkout, "heartbeat", made.admin), 409, "checkout_not_open")
        refused(await post(made, checkout, "holds", made.api_key, {"hold_ids": [kept]}), 409, "checkout_not_open")
        actions = [
            row["action"] for row in await made.sql("SELECT action FROM audit_entries WHERE entity_type = 'Checkout'")
        ]
        assert sorted(actions) == ["checkout_cancelled", "checkout_opened", "checkout_opened"]

    act(database, work)


def test_buyers_check_out_no_more_than_one_booking_may_have(database: TestDatabase) -> None:
    async def work(made: Stage) -> None:
        buyer = await made.buyer()
        first, second = await hold(made, buyer, 0, 1), await hold(made, buyer, ga=[{"zone_id": "pit", "quantity": 2}])
        assert refused(await open_(made, buyer), 422, "max_seats_exceeded")["max_seats"] == 3
        checkout = await opened(made, buyer, hold_ids=first)
        refused(await post(made, checkout, "holds", buyer, {"hold_ids": second}), 422, "max_seats_exceeded")
        assert (await post(made, checkout, "holds", made.admin, {"hold_ids": second})).status_code == 200

    act(database, work, event=overrides(max_seats_per_booking=3))


def test_lists_are_newest_first_and_come_in_parts(database: TestDatabase) -> None:
    async def work(made: Stage) -> None:
        buyer = await made.buyer()
        made_ones = []
        for n in range(0, 10, 2):
            await hold(made, buyer, n)
            made_ones.append((await opened(made, buyer))["id"])
        await post(made, {"id": made_ones[0]}, "cancel", buyer)
        for path, headers in (("/api/checkouts", buyer), (f"/api/events/{made.event_id}/checkouts", made.admin)):
            found, cursor = [], None
            while True:
                params = {"limit": "2", **({"cursor": cursor} if cursor else {})}
                page = (await made.client.get(path, headers=headers, params=params)).json()
                found += [one["id"] for one in page["data"]]
                cursor = page["next_cursor"]
                if cursor is None:
                    break
            assert found == made_ones[::-1], path
            for bad in ({"limit": "0"}, {"limit": "201"}, {"cursor": "x"}, {"limit": "x"}):
                refused(await made.client.get(path, headers=headers, params=bad), 400, "invalid_request")
        path = f"/api/events/{made.event_id}/checkouts"
        for query, count in (
            ("status=cancelled", 1),
            ("status=open", 4),
            ("refund_due=true", 0),
            ("refund_due=false", 5),
        ):
            assert len((await made.client.get(f"{path}?{query}", headers=made.admin)).json()["data"]) == count, query
        refused(await made.client.get(f"{path}?status=lost", headers=made.admin), 400, "invalid_request")
        refused(await made.client.get(f"{path}?refund_due=perhaps", headers=made.admin), 400, "invalid_request")

    act(database, work, event=overrides())


def test_booking_v2_neither_sells_nor_releases_what_is_in_a_checkout(database: TestDatabase) -> None:
    async def work(made: Stage) -> None:
        pit = made.zones[0]["booking_id"]
        body = {
            "sessionId": "s-1",
            "seats": [{"id": made.seats[0]["booking_id"]}],
            "groupOfSeats": [{"id": pit, "capacity": 3}],
        }
        path = "/api/private/v2.0/booking"

        async def ask(call: str) -> Any:
            params = {"eventId": made.event_id}
            answer = await made.client.post(f"{path}/{call}", headers=made.api_key, params=params, json=body)
            assert answer.status_code == 200, answer.text
            return answer.json()

        assert await ask("lock") is True
        rows = await made.sql("SELECT id::text FROM holds")
        checkout = await opened(made, made.api_key, hold_ids=[row["id"] for row in rows])
        for call in ("sale", "unlock"):
            assert await ask(call) is False, call
        whole = body
        for body in (
            {**whole, "groupOfSeats": []},
            {**whole, "seats": [], "groupOfSeats": [{"id": pit, "capacity": 1}]},
        ):
            for call in ("sale", "unlock"):
                assert await ask(call) is False, (call, body)
        assert {line["status"] for line in (await shown(made, checkout))["lines"]} == {"active"}

    act(database, work)
