"""How the events on sale are doing, as the figures tell it; and how late the sweeper is."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from prometheus_client import REGISTRY

from holdfast.seating.event import EventStatus
from holdfast.workers.expire_holds import ExpireHolds
from holdfast.workers.fold_occupancy import FoldOccupancy
from holdfast.workers.measure_sales import MeasureSales
from tests.conftest import TestDatabase
from tests.factories import make_organization, make_published_event, theatre_config
from tests.race.ground import Ground, ground, selection

HALL = theatre_config(2, 10, ga_capacity=50)


def run(database: TestDatabase, test: Callable[[Ground], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        async with ground(database, HALL, instances=1, **options) as g:
            await test(g)

    asyncio.run(main())


def told(name: str) -> dict[tuple[str, ...], float]:
    """What a gauge says: by its labels in the order of their names, but for the organization."""
    return {
        tuple(value for label, value in sorted(sample.labels.items()) if label != "organization_id"): sample.value
        for family in REGISTRY.collect()
        for sample in family.samples
        if sample.name == name
    }


def utilisation() -> dict[tuple[str, ...], float]:
    return told("holdfast_zone_utilisation_ratio")


def measuring(g: Ground, **options: Any) -> MeasureSales:
    return MeasureSales(g.apps[0].database, g.apps[0].catalogue, **options)


def test_zones_are_as_full_as_what_is_held_and_sold_in_them(database: TestDatabase) -> None:
    async def test(g: Ground) -> None:
        event, duty = str(g.event.id), measuring(g)
        await duty.once()
        assert utilisation() == {(event, "stalls", "reserved_seating"): 0.0, (event, "pit", "ga_standing"): 0.0}
        await g.hold(g.apps[0], g.buyer(), [0, 1, 2], 5)
        await FoldOccupancy(g.apps[0].database).once()
        await g.apps[0].services.booking.direct_sale(g.api, g.event.id, selection([3, 4]))  # not folded
        await duty.once()
        assert utilisation() == {(event, "stalls", "reserved_seating"): 5 / 20, (event, "pit", "ga_standing"): 5 / 50}

    run(database, test)


def test_conversion_is_what_was_sold_of_the_holds_that_ended(database: TestDatabase) -> None:
    async def test(g: Ground) -> None:
        event, duty, booking = str(g.event.id), measuring(g), g.apps[0].services.booking
        assert await booking.lock(g.api, g.event.id, selection([0, 1, 2]))
        assert await booking.sale(g.api, g.event.id, selection([0, 1]))
        assert await booking.unlock(g.api, g.event.id, selection([2]))
        await g.hold(g.apps[0], g.buyer(), [5])  # goes on
        assert await booking.direct_sale(g.api, g.event.id, selection([7]))  # was never held
        await duty.once()
        (hold_type,) = {key[1] for key in told("holdfast_event_conversion_ratio")}
        assert told("holdfast_event_holds_ended") == {
            (event, hold_type, "converted"): 2,
            (event, hold_type, "cancelled"): 1,
        }
        assert told("holdfast_event_conversion_ratio") == {(event, hold_type): 2 / 3}
        await g.to_the_eve(-1)
        await ExpireHolds(g.apps[0].database).once()
        await duty.once()
        assert sum(told("holdfast_event_holds_ended").values()) == 4

    run(database, test)


def test_what_ended_more_than_an_hour_ago_is_forgotten_and_not_read_again(database: TestDatabase) -> None:
    async def test(g: Ground) -> None:
        duty, booking = measuring(g), g.apps[0].services.booking
        assert await booking.lock(g.api, g.event.id, selection([0]))
        assert await booking.unlock(g.api, g.event.id, selection([0]))
        await duty.once()
        assert sum(told("holdfast_event_holds_ended").values()) == 1
        assert duty._read_from[g.event.id] == 0
        await g.pass_time(3700)
        assert await booking.lock(g.api, g.event.id, selection([1]))
        assert await booking.sale(g.api, g.event.id, selection([1]))
        await duty.once()
        assert list(told("holdfast_event_conversion_ratio").values()) == [1.0]
        (row,) = await g.sql("SELECT max(id) AS id FROM seat_state_events WHERE verb = 'release'")
        assert duty._read_from[g.event.id] == row["id"]
        await duty.once()
        assert list(told("holdfast_event_conversion_ratio").values()) == [1.0]

    run(database, test)


def test_the_newest_events_on_sale_of_all_organizations_are_told_and_no_others(database: TestDatabase) -> None:
    async def test(g: Ground) -> None:
        other = await make_published_event(g.parts, await make_organization(g.parts, "Second"), config=HALL)
        await make_published_event(g.parts, g.event.organization, config=HALL, status=EventStatus.DRAFT)
        await measuring(g).once()
        assert {key[0] for key in utilisation()} == {str(g.event.id), str(other.id)}
        duty = measuring(g, events_max=1)
        await duty.once()
        assert {key[0] for key in utilisation()} == {str(other.id)}
        newer = await make_published_event(g.parts, g.event.organization, config=HALL)
        await duty.once()
        assert {key[0] for key in utilisation()} == {str(newer.id)}
        assert set(duty._zones) == set(duty._read_from) == {newer.id}

    run(database, test)


def test_the_lag_of_the_sweeper_is_how_long_the_oldest_hold_has_been_over(database: TestDatabase) -> None:
    def lag() -> float:
        value = REGISTRY.get_sample_value("holdfast_sweeper_lag_seconds")
        assert value is not None
        return value

    async def test(g: Ground) -> None:
        duty, sweeper = measuring(g), ExpireHolds(g.apps[0].database)
        await g.hold(g.apps[0], g.buyer(), [0])
        await duty.once()
        assert lag() == 0
        await g.to_the_eve(-40)  # forty seconds after its end
        await duty.once()
        assert 40 <= lag() < 60
        await sweeper.once()
        assert 40 <= lag() < 60, "what the sweeper found when it came"
        await sweeper.once()
        assert lag() == 0

    run(database, test)
