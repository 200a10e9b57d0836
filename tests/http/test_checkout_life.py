"""How long a checkout and its holds live: one clock, heartbeats, sweeps, and the crowd."""

import asyncio
from uuid import UUID

from holdfast.workers.expire_checkouts import ExpireCheckouts
from holdfast.workers.expire_holds import ExpireHolds
from tests.conftest import TestDatabase
from tests.factories import staff_call
from tests.http.checkouts import (
    TYPES,
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


def test_a_session_is_over_at_its_end_swept_or_not(database: TestDatabase) -> None:
    async def work(made: Stage) -> None:
        await made.post("/api/organizations/config", {"holdTypes": TYPES})
        buyer = await made.buyer()
        holds = await hold(made, buyer, 0, ga=[{"zone_id": "pit", "quantity": 2}])
        checkout = await opened(made, buyer)
        comp, loan = [(await hold(made, made.api_key, n, holdType=t))[0] for n, t in ((4, "COMP"), (6, "LOAN"))]
        endless = await opened(made, made.api_key, hold_ids=[comp, loan])
        (new,) = await hold(made, buyer, 9)
        await made.advance_clock(1799)
        assert (await shown(made, checkout, buyer))["status"] == "open"
        assert [row[0] for row in await ends(made)][:2] == ["active", "active"]
        sweeper = ExpireCheckouts(made.app.database)
        assert 0 < await sweeper.once() <= 2
        await made.advance_clock(2)
        over = await shown(made, checkout, buyer)
        assert (over["status"], over["expires_in_seconds"], over["ended_at"]) == ("expired", 0, None)
        assert {line["status"] for line in over["lines"]} == {"expired"}
        refused(await post(made, checkout, "heartbeat", buyer), 409, "checkout_expired")
        refused(await post(made, checkout, "cancel", buyer), 409, "checkout_expired")
        refused(await post(made, checkout, "holds", buyer, {"hold_ids": [new]}), 409, "checkout_expired")
        refused(await drop(made, checkout, holds[0], buyer), 409, "checkout_expired")
        listed = await made.client.get(f"/api/events/{made.event_id}/checkouts?status=expired", headers=made.admin)
        assert len(listed.json()["data"]) == 2
        await sweeper.once()
        await sweeper.once()
        await ExpireHolds(made.app.database).once()
        swept = await shown(made, checkout, buyer)
        assert (swept["status"], swept["ended_at"] is None) == ("expired", False)
        rows = {str(r["id"]): r for r in await made.sql("SELECT id, status::text, checkout_id FROM holds")}
        assert [rows[one]["status"] for one in (*holds, comp, loan)] == ["expired", "expired", "active", "cancelled"]
        assert rows[comp]["checkout_id"] is None  # its type lets nobody but people release it
        told = await made.sql("SELECT kind, payload FROM outbox WHERE kind LIKE 'Checkout%'")
        assert [row["kind"] for row in told] == ["CheckoutExpired"] * 2
        audited = await made.sql("SELECT entity_id FROM audit_entries WHERE action = 'checkout_expired'")
        assert {str(row["entity_id"]) for row in audited} == {checkout["id"], endless["id"]}

    act(database, work)


def test_heartbeats_keep_holds_alive_up_to_the_sessions_end(database: TestDatabase) -> None:
    async def work(made: Stage) -> None:
        buyer = await made.buyer()
        (one,) = await hold(made, buyer, 0)
        checkout = await opened(made, buyer)
        assert checkout["heartbeat"]["every_seconds"] == 300
        assert 595 <= checkout["heartbeat"]["holds_expire_in_seconds"] <= 600
        (pit,) = await hold(made, buyer, ga=[{"zone_id": "pit", "quantity": 2}])
        for _ in range(2):
            await made.advance_clock(290)
            beaten = (await post(made, checkout, "heartbeat", buyer)).json()["data"]
            assert 595 <= beaten["heartbeat"]["holds_expire_in_seconds"] <= 600
            assert (beaten["expires_at"], beaten["lines"][0]["status"]) == (checkout["expires_at"], "active")
        del pit
        (late,) = await hold(made, buyer, 5)
        added = (await post(made, checkout, "holds", buyer, {"hold_ids": [late]})).json()["data"]
        assert added["lines"][1]["held_until"] > added["lines"][0]["held_until"]
        await made.advance_clock(500)
        await post(made, checkout, "heartbeat", buyer)
        await made.advance_clock(400)  # 1480 of 1800 s
        last = (await post(made, checkout, "heartbeat", buyer)).json()["data"]
        assert {line["held_until"] for line in last["lines"]} == {checkout["expires_at"]}
        await made.advance_clock(321)
        refused(await post(made, checkout, "heartbeat", buyer), 409, "checkout_expired")
        assert one == last["lines"][0]["hold_id"]

    act(database, work, event=overrides(checkout_heartbeat=True))


def test_a_hold_that_ended_is_not_revived_by_a_heartbeat(database: TestDatabase) -> None:
    async def work(made: Stage) -> None:
        buyer, other = await made.buyer(), await made.buyer()
        await hold(made, buyer, 0, 1)
        checkout = await opened(made, buyer)
        await made.advance_clock(601)
        (taken,) = await hold(made, other, 0)
        answer = (await post(made, checkout, "heartbeat", buyer)).json()["data"]
        assert ([line["status"] for line in answer["lines"]], answer["status"]) == (["expired", "expired"], "open")
        assert answer["heartbeat"]["holds_expire_in_seconds"] == 0
        (row,) = await made.sql(
            "SELECT held_until > holdfast_now() AS alive FROM holds WHERE id = $1::text::uuid", taken
        )
        assert row["alive"]

    act(database, work, event=overrides(checkout_heartbeat=True))


def test_turning_heartbeats_on_or_off_is_about_new_sessions(database: TestDatabase) -> None:
    async def work(made: Stage) -> None:
        buyer = await made.buyer()
        await hold(made, buyer, 0)
        plain = await opened(made, buyer)
        for wanted in (True, False):
            document = overrides(checkout_heartbeat=wanted, heartbeat_hold_minutes=1)
            await made.client.patch(f"/api/events/{made.event_id}", headers=made.admin, json=document)
            await hold(made, buyer, 3 if wanted else 6)
            checkout = await opened(made, buyer)
            assert (checkout["heartbeat"] is not None) is wanted
            lives = [line["held_until"] for line in checkout["lines"]]
            assert (lives == [checkout["expires_at"]]) is not wanted
        before = await ends(made)
        assert (await post(made, plain, "heartbeat", buyer)).json()["data"] == await shown(made, plain, buyer)
        assert await ends(made) == before

    act(database, work)


def test_a_longer_hold_is_shortened_and_nobody_is_refused_from_memory_past_its_end(database: TestDatabase) -> None:
    """Two processes: the one that did not open the checkout has the old end in memory, and must not go by it."""

    async def main() -> None:
        policy = overrides(default_hold_ttl_minutes=60, checkout_minutes=1)
        async with stage(database, event=policy) as one, stage(database, organization=one.first) as two:
            two.event_id, two.seats = one.event_id, one.seats
            buyer, other = await one.buyer(), await two.buyer()
            await hold(one, buyer, 0, 3)
            for made in (one, two):
                assert (await made.reserve(0, other)).json()["error"] == "seat_held_by_another_user"
                await made.app.feed.caught_up()
                assert (await made.reserve(0, other)).json()["expires_in"] > 3000
            checkout = await opened(one, buyer)
            assert 55 <= checkout["expires_in_seconds"] <= 60
            for made in (one, two):
                await made.app.feed.caught_up()
                assert (await made.reserve(0, other)).json()["expires_in"] <= 60
            await one.advance_clock(61)
            await two.app.feed.caught_up()
            seats = two.app.hot.known(one.first.organization_id, UUID(one.event_id))
            assert seats is not None
            assert seats.unsure.nonzero()[0].tolist() == [0, 3]
            assert not two.app.services.holds._registry.free_seats(seats)[[0, 3]].any()  # and is not chosen for anybody
            assert (await two.reserve(0, other)).status_code == 201  # nobody has swept
            assert (await one.reserve(3, other)).status_code == 201
            assert (await two.app.services.registry.status(staff_call(one.first), None)).consistent

    asyncio.run(main())


def test_an_event_that_is_cancelled_takes_its_sessions_along(database: TestDatabase) -> None:
    async def work(made: Stage) -> None:
        await made.post("/api/organizations/config", {"holdTypes": TYPES})
        buyer, other = await made.buyer(), await made.buyer()
        await hold(made, buyer, 0)
        checkout = await opened(made, buyer)
        comp = await hold(made, made.api_key, 4, holdType="COMP")
        business = await opened(made, made.api_key, hold_ids=comp)
        await pay(made, business)
        await hold(made, other, 2)
        answer = await made.post(f"/api/events/{made.event_id}/status", {"status": "cancelled"})
        assert answer.status_code == 200, answer.text
        for one in (checkout, business):
            assert (await shown(made, one))["status"] == "cancelled"
        rows = await made.sql("SELECT status::text, checkout_id FROM holds ORDER BY id")
        assert [row["status"] for row in rows] == ["cancelled", "active", "cancelled"]
        assert rows[1]["checkout_id"] is None
        refused(await open_(made, other), 400, "event_unavailable")
        (audited,) = await made.sql("SELECT changes FROM audit_entries WHERE action = 'event_cancelled'")
        assert '"cancelled_checkouts": 2' in audited["changes"]

    act(database, work)


def test_a_nearly_sold_event_gives_shorter_holds_where_the_policy_says_so(database: TestDatabase) -> None:
    async def main() -> None:
        for adaptive in (True, False):
            fields = overrides(
                adaptive_hold_life=adaptive,
                adaptive_hold_min_minutes=3,
                adaptive_hold_max_minutes=12,
                default_hold_ttl_minutes=10,
            )
            async with stage(database, event=fields) as made:
                first = (await made.reserve(0, await made.buyer())).json()["data"]["expires_in_seconds"]
                answer = await made.hold(made.api_key, *range(1, 39), ga=[{"zone_id": "pit", "quantity": 98}])
                assert answer.status_code == 201, answer.text
                await made.app.feed.caught_up()
                await asyncio.sleep(1.1)  # once a second, and an event is read again after half of one
                await made.reserve(0, await made.buyer())
                await asyncio.sleep(1.0)
                last = (await made.reserve(39, await made.buyer())).json()["data"]["expires_in_seconds"]
                assert (first, last) == ((720, 180) if adaptive else (600, 600))
                figures = (await made.client.get("/metrics")).text
                shown_life = f'holdfast_adaptive_hold_life_seconds{{event_id="{made.event_id}"}} 180.0'
                assert (shown_life in figures) is adaptive

    asyncio.run(main())


def test_bounds_that_leave_nothing_between_them_are_refused_in_an_event_too(database: TestDatabase) -> None:
    async def work(made: Stage) -> None:
        document = overrides(adaptive_hold_min_minutes=9, adaptive_hold_max_minutes=5)
        answer = await made.client.patch(f"/api/events/{made.event_id}", headers=made.admin, json=document)
        assert answer.status_code == 422, answer.text
        assert [e["pointer"] for e in answer.json()["errors"]] == ["/overrides/adaptive_hold_max_minutes"]
        for bad in (
            {"checkout_minutes": 0},
            {"checkout_minutes": 1441},
            {"checkout_heartbeat": 1},
            {"heartbeat_hold_minutes": None},
        ):
            answer = await made.client.put("/api/policy", headers=made.admin, json=bad)
            assert refused(answer, 400, "invalid_policy")["errors"][0]["pointer"] == f"/{next(iter(bad))}"

    act(database, work)
