"""Every half minute: how full the zones of the events on sale are, and what became of their holds within the last hour.

Of the newest 200 events, so that the number of series is bounded. Any number may run; they all say the same.
"""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from holdfast.kernel.counting import Labels, PlainGauge
from holdfast.store.catalogue import Catalogue
from holdfast.store.postgres.database import Database
from holdfast.store.postgres.occupancy import events_on_sale
from holdfast.store.postgres.sales import Ended, ended_holds, longest_overdue_s, taken_places
from holdfast.workers.expire_holds import LAG

UTILISATION = PlainGauge(
    "holdfast_zone_utilisation_ratio",
    "Share of a zone's places that are held or sold, of the newest events on sale",
    ("organization_id", "event_id", "zone", "zone_type"),
)
ENDED = PlainGauge(
    "holdfast_event_holds_ended",
    "Holds of the newest events on sale that ended within the last hour, by how (converted, expired, cancelled)",
    ("organization_id", "event_id", "hold_type", "outcome"),
)
CONVERSION = PlainGauge(
    "holdfast_event_conversion_ratio",
    "Share of the holds that ended within the last hour which were sold, of the newest events on sale",
    ("organization_id", "event_id", "hold_type"),
)

PAUSE_S = 30.0
EVENTS_MAX = 200
ZONES_MAX = 50
"""Of an event, in the order of its layout."""
MOVES_MAX = 5_000
"""Of an event: what it did before these is not looked at, if it did so much within the hour."""


class ZonePlaces(msgspec.Struct, frozen=True):
    zone_no: int
    zone_id: str
    zone_type: str
    capacity: int


class MeasureSales:
    name = "measure_sales"

    def __init__(self, database: Database, catalogue: Catalogue, *, events_max: int = EVENTS_MAX) -> None:
        self._database = database
        self._catalogue = catalogue
        self._events_max = events_max
        self._zones: dict[UUID, tuple[ZonePlaces, ...]] = {}
        """By event: a published event keeps the version of its layout."""
        self._read_from: dict[UUID, int] = {}

    async def once(self) -> float:
        async with self._database.transaction(engine=True) as tx:
            LAG.set(await longest_overdue_s(tx))  # here too: a sweeper that hangs cannot say so
            on_sale = await events_on_sale(tx)
        newest = self._newest(on_sale)
        self._forget_all_but({event_id for events in newest.values() for event_id in events})
        utilisation: dict[Labels, float] = {}
        ended: dict[Labels, float] = {}
        conversion: dict[Labels, float] = {}
        for organization_id, events in newest.items():
            await self._learn_zones(organization_id, events)
            async with self._database.transaction(organization_id) as tx:
                taken = await taken_places(tx, organization_id, events)
                marks = {event_id: self._read_from.get(event_id, 0) for event_id in events}
                found = await ended_holds(tx, organization_id, marks, MOVES_MAX)
            for event_id in events:
                whose = (str(organization_id), str(event_id))
                for zone in self._zones.get(event_id, ()):
                    share = taken.get((event_id, zone.zone_no), 0) / zone.capacity
                    utilisation[(*whose, zone.zone_id, zone.zone_type)] = share
                self._read_from[event_id] = found[event_id].read_from
                ended |= {(*whose, *key): float(holds) for key, holds in found[event_id].holds.items()}
                conversion |= {
                    (*whose, hold_type): share for hold_type, share in conversion_of(found[event_id]).items()
                }
        UTILISATION.replace(utilisation)
        ENDED.replace(ended)
        CONVERSION.replace(conversion)
        return PAUSE_S

    def _newest(self, on_sale: dict[UUID, list[UUID]]) -> dict[UUID, list[UUID]]:
        """Ids grow with time."""
        every = [(event_id, organization_id) for organization_id, events in on_sale.items() for event_id in events]
        newest: dict[UUID, list[UUID]] = {}
        for event_id, organization_id in sorted(every, reverse=True)[: self._events_max]:
            newest.setdefault(organization_id, []).append(event_id)
        return newest

    def _forget_all_but(self, wanted: set[UUID]) -> None:
        self._zones = {event_id: zones for event_id, zones in self._zones.items() if event_id in wanted}
        self._read_from = {event_id: mark for event_id, mark in self._read_from.items() if event_id in wanted}

    async def _learn_zones(self, organization_id: UUID, events: Sequence[UUID]) -> None:
        for event_id in events:
            if event_id in self._zones:
                continue
            view = await self._catalogue.event(organization_id, event_id)
            if view is not None:
                self._zones[event_id] = tuple(
                    ZonePlaces(zone.zone_no, zone.zone_id, zone.zone_type.value, zone.capacity)
                    for zone in view.layout.zones[:ZONES_MAX]
                    if zone.capacity > 0
                )


def conversion_of(ended: Ended) -> dict[str, float]:
    """By hold type: of the holds that ended, the share that was sold."""
    sold: dict[str, int] = {}
    all_of: dict[str, int] = {}
    for (hold_type, outcome), holds in ended.holds.items():
        all_of[hold_type] = all_of.get(hold_type, 0) + holds
        sold[hold_type] = sold.get(hold_type, 0) + (holds if outcome == "converted" else 0)
    return {hold_type: sold[hold_type] / holds for hold_type, holds in all_of.items()}
