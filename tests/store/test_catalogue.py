"""The cache in front of every hot request: how old it may be, what it keeps, and whose it is."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any
from uuid import UUID

import asyncpg
import msgspec
import pytest

from holdfast.kernel.ids import new_id
from holdfast.seating.event import EventStatus
from holdfast.seating.view import EventView
from holdfast.settings import Settings
from holdfast.store import catalogue as catalogue_module
from holdfast.store.catalogue import HARD_AGE_S, SOFT_AGE_S, Catalogue
from tests.conftest import TestDatabase
from tests.factories import (
    Parts,
    PublishedEvent,
    make_layout,
    make_organization,
    make_published_event,
    open_parts,
    staff_call,
    theatre_config,
)


class Clock:
    """In place of time.monotonic."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(catalogue_module, "time", clock)
    return clock


def run(database: TestDatabase, test: Callable[[Parts], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with open_parts(database.app) as parts:
            await test(parts)

    asyncio.run(main())


async def behind_its_back(database: TestDatabase, query: str, *args: Any) -> None:
    """A change made by another node."""
    connection = await asyncpg.connect(database.owner)
    try:
        await connection.execute(query, *args)
    finally:
        await connection.close()


async def rename(database: TestDatabase, event: PublishedEvent, name: str) -> None:
    await behind_its_back(database, "UPDATE events SET name = $2 WHERE id = $1", event.id, name)


def count_readings(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> list[UUID]:
    readings: list[UUID] = []
    original = Catalogue._read

    async def counted(self: Catalogue, organization_id: UUID, event_id: UUID) -> EventView | None:
        readings.append(event_id)
        return await original(self, organization_id, event_id)

    monkeypatch.setattr(Catalogue, "_read", counted)
    return readings


def test_a_view_has_all_a_request_is_decided_by(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        made = await make_published_event(
            parts, config=theatre_config(2, 3, ga_capacity=7), overrides={"max_seats_per_booking": 4}
        )
        org = made.organization
        await behind_its_back(
            database,
            "UPDATE tenants SET config = $2::jsonb WHERE tenant_id = $1",
            org.tenant_id,
            '{"holdTypes": {"COMP": {"ttlSeconds": 60}}}',
        )
        await behind_its_back(
            database,
            "UPDATE organizations SET config = $2::jsonb, policy = $3::jsonb WHERE organization_id = $1",
            org.organization_id,
            '{"holdTypes": {"COMP": {"displayName": "Free"}}}',
            '{"max_group_split": 3, "max_seats_per_booking": 8}',
        )
        view = await parts.catalogue.fresh_event(org.organization_id, made.id)
        assert view is not None
        assert (view.id, view.tenant_id, view.status) == (made.id, org.tenant_id, EventStatus.PUBLISHED)
        assert [view.layout.seat_index.of(seat) for seat in made.seats] == list(range(6))
        comp = view.hold_types["COMP"].hold_type
        assert (comp.ttl_seconds, comp.display_name) == (60, "Free")
        assert view.hold_types["CART"].ttl_seconds == 900
        assert view.policy is not None
        assert view.policy.max_seats_per_booking == 8
        assert view.effective_policy.max_seats_per_booking == 4
        assert view.effective_policy.max_group_split == 3

    run(database, test)


def test_an_organization_without_a_policy_has_the_defaults(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        made = await make_published_event(parts)
        view = await parts.catalogue.event(made.organization.organization_id, made.id)
        assert view is not None
        assert view.policy is None
        assert view.effective_policy.max_seats_per_booking == 10

    run(database, test)


def test_an_override_locked_since_does_not_count(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        made = await make_published_event(parts, overrides={"max_seats_per_booking": 4})
        await behind_its_back(
            database,
            "UPDATE organizations SET policy = $2::jsonb WHERE organization_id = $1",
            made.organization.organization_id,
            '{"locked_fields": ["max_seats_per_booking"]}',
        )
        view = await parts.catalogue.fresh_event(made.organization.organization_id, made.id)
        assert view is not None
        assert view.overrides == {}
        assert view.effective_policy.max_seats_per_booking == 10

    run(database, test)


def test_an_unknown_event_and_one_of_another_organization_are_both_none(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        made = await make_published_event(parts)
        other = await make_organization(parts, "Rival")
        for organization_id, event_id in (
            (made.organization.organization_id, new_id()),
            (other.organization_id, made.id),
            (new_id(), made.id),
        ):
            assert await parts.catalogue.event(organization_id, event_id) is None
            assert parts.catalogue.peek(organization_id, event_id) is None

    run(database, test)


def test_a_young_view_is_served_without_a_reading(
    database: TestDatabase, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(parts: Parts) -> None:
        made = await make_published_event(parts)
        key = (made.organization.organization_id, made.id)
        first = await parts.catalogue.event(*key)
        readings = count_readings(parts, monkeypatch)
        clock.now += SOFT_AGE_S - 0.01
        assert parts.catalogue.peek(*key) is first
        assert await parts.catalogue.event(*key) is first
        await asyncio.sleep(0.05)
        assert readings == []

    run(database, test)


def test_an_older_view_is_served_while_one_reading_renews_it(
    database: TestDatabase, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(parts: Parts) -> None:
        made = await make_published_event(parts)
        key = (made.organization.organization_id, made.id)
        first = await parts.catalogue.event(*key)
        await rename(database, made, "Second night")
        readings = count_readings(parts, monkeypatch)
        clock.now += SOFT_AGE_S + 0.01
        for _ in range(5):
            assert parts.catalogue.peek(*key) is first
            assert await parts.catalogue.event(*key) is first
        deadline = time.monotonic() + 5
        while parts.catalogue.peek(*key) is first and time.monotonic() < deadline:
            await asyncio.sleep(0.005)
        renewed = parts.catalogue.peek(*key)
        assert renewed is not None
        assert renewed.name == "Second night"
        assert len(readings) == 1

    run(database, test)


def test_a_view_that_is_too_old_is_read_again_before_anyone_gets_it(
    database: TestDatabase, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(parts: Parts) -> None:
        made = await make_published_event(parts)
        key = (made.organization.organization_id, made.id)
        await parts.catalogue.event(*key)
        await rename(database, made, "Second night")
        readings = count_readings(parts, monkeypatch)
        clock.now += HARD_AGE_S + 0.001
        assert parts.catalogue.peek(*key) is None
        views = await asyncio.gather(*(parts.catalogue.event(*key) for _ in range(20)))
        assert {view.name for view in views if view} == {"Second night"}
        assert len(readings) == 1

    run(database, test)


def test_one_who_gives_up_does_not_take_the_reading_from_the_others(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        made = await make_published_event(parts)
        key = (made.organization.organization_id, made.id)
        impatient = asyncio.create_task(parts.catalogue.event(*key))
        patient = asyncio.create_task(parts.catalogue.event(*key))
        await asyncio.sleep(0)
        impatient.cancel()
        assert await patient is not None

    run(database, test)


def test_a_forgotten_event_is_read_again_and_a_reading_begun_before_is_not_kept(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        made = await make_published_event(parts)
        key = (made.organization.organization_id, made.id)
        stale = asyncio.create_task(parts.catalogue.event(*key))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        parts.catalogue.forget(*key)
        await stale
        assert parts.catalogue.peek(*key) is None
        await parts.catalogue.event(*key)
        assert parts.catalogue.peek(*key) is not None
        parts.catalogue.forget(made.organization.organization_id)
        assert parts.catalogue.peek(*key) is None

    run(database, test)


def test_a_change_by_this_process_counts_at_once(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        made = await make_published_event(parts)
        call = staff_call(made.organization)
        await parts.catalogue.event(call.organization_id, made.id)
        await parts.seating.set_status(call, made.id, EventStatus.CANCELLED)
        view = await parts.catalogue.event(call.organization_id, made.id)
        assert view is not None
        assert view.status is EventStatus.CANCELLED

    run(database, test)


def test_a_failing_renewal_in_the_background_leaves_the_view_until_it_is_too_old(
    database: TestDatabase, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(parts: Parts) -> None:
        made = await make_published_event(parts)
        key = (made.organization.organization_id, made.id)
        first = await parts.catalogue.event(*key)

        async def broken(self: Catalogue, organization_id: UUID, event_id: UUID) -> EventView | None:
            raise ConnectionError

        monkeypatch.setattr(Catalogue, "_read", broken)
        clock.now += SOFT_AGE_S + 0.1
        assert await parts.catalogue.event(*key) is first
        await asyncio.sleep(0.01)
        assert await parts.catalogue.event(*key) is first
        clock.now += HARD_AGE_S + 0.001
        with pytest.raises(ConnectionError):
            await parts.catalogue.event(*key)

    run(database, test)


def test_events_beyond_the_bound_are_dropped_least_recently_used_first(
    database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue_module, "MAX_EVENTS", 2)

    async def test(parts: Parts) -> None:
        organization = await make_organization(parts)
        a, b, c = [await make_published_event(parts, organization) for _ in range(3)]
        org = organization.organization_id
        for event in (a, b, a, c):
            await parts.catalogue.event(org, event.id)
        assert parts.catalogue.peek(org, b.id) is None
        assert parts.catalogue.peek(org, a.id) is not None
        assert parts.catalogue.peek(org, c.id) is not None

    run(database, test)


def test_layouts_are_kept_by_version_within_the_bound_of_seats(database: TestDatabase) -> None:
    async def main() -> None:
        async with open_parts(database.app, Settings(layout_cache_seats=400)) as parts:
            organization = await make_organization(parts)
            call = staff_call(organization)
            first = await make_layout(parts, call, theatre_config(10, 20))
            kept = await parts.catalogue.layout(call.organization_id, first.id, 1)
            assert kept is await parts.catalogue.layout(call.organization_id, first.id, 1)
            await parts.seating.create_version(call, first.id, msgspec.json.encode(theatre_config(9, 20)))
            second = await parts.catalogue.layout(call.organization_id, first.id, 2)
            assert second is not None
            assert second.seat_count == 180
            again = await parts.catalogue.layout(call.organization_id, first.id, 1)
            assert again is not kept
            assert again == kept
            assert await parts.catalogue.layout(call.organization_id, first.id, 3) is None

    asyncio.run(main())


def test_an_event_with_zones_of_its_own_has_their_layout(database: TestDatabase) -> None:
    async def test(parts: Parts) -> None:
        organization = await make_organization(parts)
        call = staff_call(organization)
        zones = [{"zone_id": "field", "name": "Field", "zone_type": "ga_standing", "capacity": 900}]
        event = await parts.seating.create_event(call, {"name": "Festival", "zones": zones})
        view = await parts.catalogue.event(call.organization_id, event.id)
        assert view is not None
        assert view.layout.total_capacity == 900
        zones[0]["capacity"] = 800
        await parts.seating.patch_event(call, event.id, {"zones": zones})
        view = await parts.catalogue.event(call.organization_id, event.id)
        assert view is not None
        assert view.layout.total_capacity == 800

    run(database, test)
