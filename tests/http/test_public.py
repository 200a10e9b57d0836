"""What is on sale, as somebody finds it who has no credential."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.stage import Stage, stage

UNKNOWN = "00000000-0000-7000-8000-000000000000"


async def listed(made: Stage, organization_id: Any = None, **params: str) -> list[dict[str, Any]]:
    wanted = {"organization_id": str(organization_id or made.first.organization_id), **params}
    answer = await made.client.get("/api/public/events", params=wanted)
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "public, max-age=10"
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


def at_once(made: Stage) -> None:
    """Nothing is kept: the next answer is made anew."""
    made.app.services.public_events._keep_s = 0.0


def test_what_is_on_sale_can_be_read_by_everybody(database: TestDatabase) -> None:
    prices = [
        {"zone_id": "stalls", "category": None, "amount_minor": 8000},
        {"zone_id": "pit", "category": None, "amount_minor": 2500},
    ]
    pricing = {"Front": {"seat_ids": ["A-1"], "amount_minor": 12000}}
    event = {
        "name": "Hamlet",
        "days": ["2030-05-01"],
        "currency": "EUR",
        "prices": prices,
        "pricing_zones": pricing,
        "sale_end": "2030-04-30T12:00:00Z",
    }

    async def main() -> None:
        async with stage(database, event=event) as made:
            (found,) = await listed(made)
            assert found == {
                "id": made.event_id,
                "organization_id": str(made.first.organization_id),
                "organization_name": "Theatre",
                "name": "Hamlet",
                "days": ["2030-05-01"],
                "sale": "open",
                "sale_start": None,
                "sale_end": "2030-04-30T12:00:00Z",
                "currency": "EUR",
                "from_minor": 2500,
                "to_minor": 12000,
                "availability": "available",
            }
            answer = await made.client.get(f"/api/public/events/{made.event_id}")
            assert answer.headers["cache-control"] == "public, max-age=10"
            detail = answer.json()["data"]
            assert {name: detail[name] for name in found} == found
            assert detail["status"] == "published"
            assert [(z["zone_id"], z["name"], z["from_minor"], z["to_minor"]) for z in detail["zones"]] == [
                ("stalls", "Stalls", 8000, 12000),
                ("pit", "Pit", 2500, 2500),
            ]
            assert not {"layout_id", "overrides", "prices", "blocked_seat_ids"} & set(detail)

    asyncio.run(main())


def test_nothing_of_drafts_past_sales_or_other_organizations_is_to_be_seen(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, theatre_config(1, 3)) as made:
            at_once(made)
            second = await made.app.services.accounts.bootstrap("Zanzibar")
            other = Stage(made.client, made.app, database, second, "", [], [])
            theirs = await other.make_event(theatre_config(1, 3), name="Zanzibar night")
            draft = await made.make_event(theatre_config(1, 3), publish=False, name="Secret draft")
            cancelled = await made.make_event(theatre_config(1, 3), name="Cancelled")
            await made.post(f"/api/events/{cancelled}/status", {"status": "cancelled"})
            assert [event["id"] for event in await listed(made)] == [made.event_id]
            assert [event["id"] for event in await listed(made, second.organization_id)] == [theirs]
            # An organization that there is not looks like one with nothing on sale.
            empty = await made.app.services.accounts.bootstrap("Empty")
            answers = [
                (await made.client.get("/api/public/events", params={"organization_id": str(one)})).content
                for one in (UNKNOWN, empty.organization_id)
            ]
            assert answers[0] == answers[1]
            unknown = await made.client.get(f"/api/public/events/{UNKNOWN}")
            assert (unknown.status_code, unknown.json()["error"]) == (404, "event_not_found")
            for event in (draft, cancelled):
                answer = await made.client.get(f"/api/public/events/{event}")
                assert (answer.status_code, answer.content) == (404, unknown.content)
                # A credential changes nothing: this is what everybody sees.
                answer = await made.client.get(f"/api/public/events/{event}", headers=made.admin)
                assert (answer.status_code, answer.content) == (404, unknown.content)
            mine = await made.client.get("/api/public/events", params={"organization_id": str(second.organization_id)},
                                         headers=made.admin)  # fmt: skip
            assert [event["id"] for event in mine.json()["data"]] == [theirs]
            # What ends while it is shown ends here too.
            await made.post(f"/api/events/{made.event_id}/status", {"status": "cancelled"})
            assert await listed(made) == []
            assert (await made.client.get(f"/api/public/events/{made.event_id}")).status_code == 404
            for path in (
                "/api/public/events",
                "/api/public/events?organization_id=x",
                f"/api/public/events?organization_id={UNKNOWN}&limit=0",
                f"/api/public/events?organization_id={UNKNOWN}&limit=51",
                f"/api/public/events?organization_id={UNKNOWN}&cursor=x",
                "/api/public/events/x",
            ):
                answer = await made.client.get(path)
                assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request"), path

    asyncio.run(main())


def test_places_left_are_told_in_words(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, theatre_config(2, 20)) as made:
            at_once(made)

            async def left() -> str:
                return str((await listed(made))[0]["availability"])

            assert await left() == "available"
            await made.post(
                f"/api/events/{made.event_id}/seats/block",
                {"seats": [seat["id"] for seat in made.seats[:10]], "reason": "x"},
            )
            await made.app.feed.caught_up()
            assert await left() == "available"  # of what is for sale at all
            for start in (10, 20):
                held = await made.hold(made.admin, *range(start, start + 10))
                assert held.status_code == 201, held.text
            await made.app.feed.caught_up()
            assert await left() == "few_left"
            assert (await made.hold(made.admin, *range(30, 40))).status_code == 201
            await made.app.feed.caught_up()
            assert await left() == "few_left"  # held may come free again
            await made.sql("UPDATE occupancy_changes SET state = 'sold', hold_type = '' WHERE state = 'held'")
            await made.sql("UPDATE occupancy_counts SET state = 'sold', hold_type = '' WHERE state = 'held'")
            made.app.services.occupancy.forget(UUID(made.event_id))
            assert await left() == "sold_out"

    asyncio.run(main())


def test_the_sale_window_is_told_by_the_databases_clock(database: TestDatabase) -> None:
    async def main() -> None:
        now = datetime.now(UTC)
        window = {
            "sale_start": (now + timedelta(hours=1)).isoformat(),
            "sale_end": (now + timedelta(hours=2)).isoformat(),
        }
        async with stage(database, theatre_config(1, 3), event=window) as made:
            at_once(made)
            assert [event["sale"] for event in await listed(made)] == ["upcoming"]
            await made.advance_clock(3700)
            await asyncio.sleep(1)
            assert [event["sale"] for event in await listed(made)] == ["open"]
            await made.advance_clock(3700)
            assert await listed(made) == []
            detail = await made.client.get(f"/api/public/events/{made.event_id}")
            assert detail.json()["data"]["sale"] == "over"

    asyncio.run(main())


def test_a_long_list_comes_in_parts_and_many_who_ask_at_once_are_one_reading(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, theatre_config(1, 3)) as made:
            for n in range(4):
                await made.make_event(theatre_config(1, 2), name=f"Night {n}")
            whole = [event["id"] for event in await listed(made)]
            assert len(whole) == 5
            parts: list[str] = []
            cursor: str | None = None
            while True:
                params = {"organization_id": str(made.first.organization_id), "limit": "2"}
                page = (
                    await made.client.get(
                        "/api/public/events", params={**params, **({"cursor": cursor} if cursor else {})}
                    )
                ).json()
                parts += [event["id"] for event in page["data"]]
                cursor = page["next_cursor"]
                if cursor is None:
                    break
            assert parts == whole
            readings = 0
            real = made.app.services.public_events._event

            async def counted(event_id: Any) -> Any:
                nonlocal readings
                readings += 1
                return await real(event_id)

            made.app.services.public_events._event = counted  # type: ignore[method-assign]
            answers = await asyncio.gather(*(made.client.get(f"/api/public/events/{made.event_id}") for _ in range(30)))
            assert {answer.status_code for answer in answers} == {200}
            assert len({answer.content for answer in answers}) == 1
            assert readings == 1

    asyncio.run(main())
