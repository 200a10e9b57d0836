"""Series through HTTP: sessions that share layout, overlay and prices, and change together or not at all."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import httpx

from holdfast.insight.invariants import check_event
from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.stage import Stage, stage

LENIENT = {"orphan_avoidance_strict": False}


def run(database: TestDatabase, test: Callable[[Stage, str], Awaitable[None]]) -> None:
    async def main() -> None:
        async with stage(database, theatre_config(2, 5, ga_capacity=20)) as made:
            event = (await made.client.get(f"/api/events/{made.event_id}", headers=made.admin)).json()["data"]
            await test(made, event["layout_id"])

    asyncio.run(main())


async def make_series(made: Stage, layout_id: str, **fields: Any) -> str:
    answer = await made.post("/api/series", {"name": "Hamlet", "layout_id": layout_id, "overrides": LENIENT, **fields})
    assert answer.status_code == 201, answer.text
    found: str = answer.json()["data"]["id"]
    return found


async def make_session(made: Stage, series: str, name: str, publish: bool = True, **fields: Any) -> str:
    answer = await made.post("/api/events", {"series_id": series, "name": name, **fields})
    assert answer.status_code == 201, answer.text
    event_id: str = answer.json()["data"]["id"]
    if publish:
        done = await made.post(f"/api/events/{event_id}/status", {"status": "published"})
        assert done.status_code == 200, done.text
    return event_id


async def patch(made: Stage, path: str, **fields: Any) -> httpx.Response:
    return await made.client.patch(path, headers=made.admin, json=fields)


async def blocked(made: Stage, event_id: str) -> list[str]:
    listed = await made.client.get(f"/api/events/{event_id}/seats?state=blocked", headers=made.admin)
    return [seat["seat_id"] for seat in listed.json()["data"]]


async def event_of(made: Stage, event_id: str) -> dict[str, Any]:
    found: dict[str, Any] = (await made.client.get(f"/api/events/{event_id}", headers=made.admin)).json()["data"]
    return found


async def sell(made: Stage, event_id: str, booking_id: int) -> None:
    body = {"sessionId": "box-office", "seats": [{"id": booking_id}]}
    answer = await made.client.post(
        "/api/private/v2.0/booking/directsale", params={"eventId": event_id}, json=body, headers=made.api_key
    )
    assert answer.json() is True, answer.text


def test_sessions_have_what_their_series_has_and_what_is_their_own(database: TestDatabase) -> None:
    async def test(made: Stage, layout_id: str) -> None:
        prices = [{"zone_id": "stalls", "category": None, "amount_minor": 4000}]
        series = await make_series(
            made, layout_id, currency="EUR", prices=prices, blocked_seat_ids=["A-1"], disabled_zones=["pit"]
        )
        matinee = await make_session(
            made, series, "Matinée", sale_start="2020-01-01T00:00:00Z", sale_end="2999-01-01T00:00:00Z"
        )
        evening = await make_session(made, series, "Evening", publish=False, days=["2027-03-01"])
        found = await event_of(made, evening)
        assert found["series_id"] == series
        assert (found["layout_id"], found["layout_version"], found["currency"]) == (layout_id, 1, "EUR")
        assert (found["prices"], found["blocked_seat_ids"]) == (prices, ["A-1"])
        assert (found["overrides"], found["disabled_zones"], found["days"]) == (LENIENT, ["pit"], ["2027-03-01"])
        assert await blocked(made, matinee) == ["A-1"]
        shown = (await made.client.get(f"/api/series/{series}", headers=made.admin)).json()["data"]
        assert [event["name"] for event in shown["events"]] == ["Evening", "Matinée"]
        assert (shown["name"], shown["prices"], shown["disabled_zones"]) == ("Hamlet", prices, ["pit"])
        listed = (await made.client.get("/api/series", headers=made.admin)).json()["data"]
        assert [one["id"] for one in listed] == [series]
        assert "events" not in listed[0]
        of_series = await made.client.get("/api/events", headers=made.admin, params={"series_id": series})
        assert [event["id"] for event in of_series.json()["data"]] == [evening, matinee]
        # Its own name, window and days; nothing of what is shared, not even to take it away.
        renamed = await patch(made, f"/api/events/{matinee}", name="Early", sale_end=None)
        assert renamed.json()["data"]["name"] == "Early"
        shared = await patch(made, f"/api/events/{matinee}", blocked_seat_ids=[], prices=None, seating_overrides={})
        assert (shared.status_code, shared.json()["error"]) == (409, "shared_by_series")
        assert shared.json()["fields"] == ["blocked_seat_ids", "prices", "seating_overrides"]
        left = await patch(made, f"/api/events/{evening}", series_id=None)
        assert (left.status_code, left.json()["errors"][0]["pointer"]) == (422, "/series_id")
        said = {"series_id": series, "name": "Own", "layout_id": layout_id, "currency": "EUR", "zones": None}
        own = await made.post("/api/events", said)
        assert (own.status_code, own.json()["fields"]) == (409, ["currency", "layout_id"])

    run(database, test)


def test_a_change_of_the_series_reaches_all_of_its_events_that_are_not_over(database: TestDatabase) -> None:
    async def test(made: Stage, layout_id: str) -> None:
        series = await make_series(made, layout_id, currency="EUR")
        over = await make_session(made, series, "Premiere")
        await made.post(f"/api/events/{over}/status", {"status": "cancelled"})
        on_sale, draft = await make_session(made, series, "One"), await make_session(made, series, "Two", publish=False)
        made.event_id = on_sale
        held = await made.reserve(2, await made.buyer())
        assert held.status_code == 201
        answer = await patch(
            made,
            f"/api/series/{series}",
            name="Hamlet, Prince",
            blocked_seat_ids=["A-3"],
            zone_overrides={"pit": {"name": "Arena"}},
            prices=[{"zone_id": "pit", "amount_minor": 900}],
        )
        assert answer.status_code == 200, answer.text
        assert answer.json()["data"]["name"] == "Hamlet, Prince"
        assert (await blocked(made, on_sale), await blocked(made, over)) == (["A-3"], [])
        hold = await made.client.get(f"/api/holds/{held.json()['data']['hold_id']}", headers=made.admin)
        assert hold.json()["data"]["status"] == "cancelled"
        for event_id in (on_sale, draft):
            event = await event_of(made, event_id)
            assert (event["name"] in ("One", "Two"), event["blocked_seat_ids"]) == (True, ["A-3"])
            assert (event["zones"][1]["name"], event["prices"][0]["amount_minor"]) == ("Arena", 900)
        assert (await event_of(made, over))["blocked_seat_ids"] == []
        await made.post(f"/api/events/{draft}/status", {"status": "published"})
        assert await blocked(made, draft) == ["A-3"]
        await patch(made, f"/api/series/{series}", blocked_seat_ids=None)
        assert (await blocked(made, on_sale), await blocked(made, draft)) == ([], [])
        for event_id in (on_sale, draft):
            found = await check_event(made.app.database, made.first.organization_id, UUID(event_id), set())
            assert [i.detail for i in found if not i.ok] == []

    run(database, test)


def test_what_one_event_cannot_be_none_becomes(database: TestDatabase) -> None:
    async def test(made: Stage, layout_id: str) -> None:
        series = await make_series(made, layout_id)
        first, second = await make_session(made, series, "One"), await make_session(made, series, "Two")
        await sell(made, second, 4)
        answer = await patch(made, f"/api/series/{series}", blocked_seat_ids=["A-3", "A-4"])
        assert (answer.status_code, answer.json()["error"]) == (409, "places_sold")
        refused = answer.json()
        assert (refused["event_id"], refused["event_name"], refused["seat_ids"]) == (second, "Two", ["A-4"])
        assert (await blocked(made, first), await blocked(made, second)) == ([], [])
        assert (await event_of(made, first))["blocked_seat_ids"] == []
        shown = (await made.client.get(f"/api/series/{series}", headers=made.admin)).json()["data"]
        assert shown["blocked_seat_ids"] == []
        # Nor a version that an event on sale cannot change to.
        version = await made.post(
            f"/api/layouts/{layout_id}/versions", {"config": theatre_config(3, 5, ga_capacity=20)}
        )
        assert version.status_code == 201
        frozen = await patch(made, f"/api/series/{series}", layout_version=2)
        assert (frozen.status_code, frozen.json()["error"]) == (409, "event_frozen")
        assert (frozen.json()["event_id"], frozen.json()["fields"]) == (first, ["layout_version"])

    run(database, test)


def test_a_series_of_drafts_takes_another_version_for_all(database: TestDatabase) -> None:
    async def test(made: Stage, layout_id: str) -> None:
        series = await make_series(made, layout_id)
        draft = await make_session(made, series, "One", publish=False)
        await made.post(f"/api/layouts/{layout_id}/versions", {"config": theatre_config(3, 5, ga_capacity=20)})
        answer = await patch(made, f"/api/series/{series}", layout_id=layout_id, blocked_seat_ids=["C-1"])
        assert answer.status_code == 200, answer.text
        assert answer.json()["data"]["layout_version"] == 2
        event = await event_of(made, draft)
        assert (event["layout_version"], event["seat_count"], event["blocked_seat_ids"]) == (2, 15, ["C-1"])

    run(database, test)


def test_a_series_that_cannot_stand_is_refused_with_every_problem(database: TestDatabase) -> None:
    async def test(made: Stage, layout_id: str) -> None:
        said = {
            "layout_id": layout_id,
            "zones": [],
            "sale_start": "2027-01-01T00:00:00Z",
            "colour": 1,
            "blocked_seat_ids": ["Q-1"],
            "prices": [{"zone_id": "attic", "amount_minor": 1}],
        }
        answer = await made.post("/api/series", said)
        assert answer.status_code == 422
        assert {p["pointer"]: p["code"] for p in answer.json()["errors"]} == {
            "/name": "missing",
            "/zones": "unknown_field",
            "/sale_start": "unknown_field",
            "/colour": "unknown_field",
            "/blocked_seat_ids/0": "unknown_seat",
            "/prices/0/zone_id": "unknown_zone",
            "/currency": "currency_required",
        }
        assert (await made.post("/api/series", {"name": "x"})).json()["errors"][0]["pointer"] == "/layout_id"
        assert (await made.client.get("/api/series", headers=made.admin)).json()["data"] == []
        missing = await made.post("/api/events", {"name": "x", "series_id": made.event_id})
        assert (missing.status_code, missing.json()["error"]) == (404, "series_not_found")
        bad = await made.post("/api/events", {"name": "x", "series_id": 7, "layout_id": layout_id})
        assert (bad.status_code, bad.json()["errors"][0]["pointer"]) == (422, "/series_id")
        series = await make_series(made, layout_id)
        worse = await patch(made, f"/api/series/{series}", days=["2027-01-01"], disabled_zones=["attic"])
        assert {p["pointer"] for p in worse.json()["errors"]} == {"/days", "/disabled_zones/0"}
        buyer = await made.buyer()
        for method, path in (
            ("GET", f"/api/series/{series}"),
            ("GET", "/api/series"),
            ("PATCH", f"/api/series/{series}"),
        ):
            denied = await made.client.request(method, path, headers=buyer, json={} if method == "PATCH" else None)
            assert denied.status_code == 403, path

    run(database, test)
