"""What everybody may know of what is on sale, without a credential: for the buyer's page before it has a guest's token.

Of an organization, its events that are published and not over; of an event, what its poster would say. Asked by anybody and
as often as they like, so an answer is made once in a few seconds and kept in memory.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Coroutine, Hashable
from datetime import date, datetime
from enum import StrEnum
from typing import Any, Final, TypeVar, cast
from uuid import UUID

import msgspec
import numpy as np
from numpy.typing import NDArray

from holdfast.insight.occupancy import OccupancyAnswer
from holdfast.insight.occupancy_service import OccupancyService
from holdfast.kernel.errors import EventNotFound
from holdfast.seating.answers import Part
from holdfast.seating.event import ON_SALE, EventStatus
from holdfast.seating.layout import AccessMode, ZoneType
from holdfast.seating.prices import NO_PRICE
from holdfast.seating.view import EventView
from holdfast.store.catalogue import Catalogue
from holdfast.store.postgres import accounts, events
from holdfast.store.postgres.database import Database

T = TypeVar("T")

KEEP_S: Final = 5.0
KEPT_MAX: Final = 2_000
FEW_SHARE: Final = 0.1
FEW_PLACES: Final = 10


class Sale(StrEnum):
    UPCOMING = "upcoming"
    OPEN = "open"
    OVER = "over"


class Left(StrEnum):
    """How many places, in words: what a poster says, and not what a competitor counts."""

    AVAILABLE = "available"
    FEW_LEFT = "few_left"
    SOLD_OUT = "sold_out"


class PublicEvent(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    organization_id: UUID
    organization_name: str
    name: str
    days: tuple[date, ...]
    sale: Sale
    sale_start: datetime | None
    sale_end: datetime | None
    currency: str | None
    from_minor: int | None
    """The lowest price; null where none is stated."""
    to_minor: int | None
    availability: Left


class PublicZone(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    zone_id: str
    name: str
    zone_type: ZoneType
    access_mode: AccessMode
    from_minor: int | None
    to_minor: int | None


class PublicEventDetail(PublicEvent, frozen=True, kw_only=True):
    status: EventStatus
    zones: list[PublicZone]


class PublicEvents:
    def __init__(
        self, database: Database, catalogue: Catalogue, occupancy: OccupancyService, *, keep_s: float = KEEP_S
    ) -> None:
        self._database = database
        self._catalogue = catalogue
        self._occupancy = occupancy
        self._keep_s = keep_s
        self._kept: OrderedDict[Hashable, tuple[float, asyncio.Task[Any]]] = OrderedDict()

    async def on_sale(self, organization_id: UUID, after: UUID | None, limit: int) -> Part[PublicEvent]:
        """An organization that there is not has nothing on sale, like one that has nothing."""
        return await self._once((organization_id, after, limit), self._on_sale(organization_id, after, limit))

    async def event(self, event_id: UUID) -> PublicEventDetail:
        found = await self._once((event_id,), self._event(event_id))
        if found is None:
            raise EventNotFound
        return found

    async def close(self) -> None:
        tasks = [task for _, task in self._kept.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _on_sale(self, organization_id: UUID, after: UUID | None, limit: int) -> Part[PublicEvent]:
        async with self._database.transaction(organization_id) as tx:
            organization = await accounts.find_organization(tx, organization_id)
            listed = await events.list_public(tx, organization_id, after, limit + 1)
        ids, more = listed[:limit], len(listed) > limit
        found: list[PublicEvent] = []
        for event_id in ids:
            view = await self._catalogue.event(organization_id, event_id)
            if organization is not None and view is not None and view.status in ON_SALE:
                found.append(PublicEvent(**await self._words(view, organization.name)))
        # The cursor is of what was listed, not of what was found: an event may end between the two.
        return Part(found, str(ids[-1]) if more else None)

    async def _event(self, event_id: UUID) -> PublicEventDetail | None:
        async with self._database.transaction(engine=True) as tx:
            organization_id = await accounts.organization_of_event(tx, event_id)
        if organization_id is None:
            return None
        async with self._database.transaction(organization_id) as tx:
            organization = await accounts.find_organization(tx, organization_id)
        view = await self._catalogue.fresh_event(organization_id, event_id)
        if organization is None or view is None or view.status not in ON_SALE:
            return None
        words = await self._words(view, organization.name)
        return PublicEventDetail(**words, status=view.status, zones=_zones(view))

    async def _words(self, view: EventView, organization_name: str) -> dict[str, Any]:
        zones = _zones(view)
        prices = [price for zone in zones for price in (zone.from_minor, zone.to_minor) if price is not None]
        return {
            "id": view.id,
            "organization_id": view.organization_id,
            "organization_name": organization_name,
            "name": view.name,
            "days": view.days,
            "sale": _sale(view),
            "sale_start": view.sale_start,
            "sale_end": view.sale_end,
            "currency": view.currency,
            "from_minor": min(prices, default=None),
            "to_minor": max(prices, default=None),
            "availability": _left(view, await self._occupancy.of_event(view)),
        }

    async def _once(self, key: Hashable, work: Coroutine[Any, Any, T]) -> T:
        """One answer for all who ask within a few seconds; what failed is not kept."""
        kept = self._kept.get(key)
        now = time.monotonic()
        if kept is not None and (not kept[1].done() or (now - kept[0] < self._keep_s and not _failed(kept[1]))):
            work.close()
            return cast(T, await asyncio.shield(kept[1]))
        task = asyncio.create_task(work)
        self._kept[key] = (now, task)
        self._kept.move_to_end(key)
        while len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)
        return await asyncio.shield(task)


def _failed(task: "asyncio.Task[Any]") -> bool:
    return task.cancelled() or task.exception() is not None


def _sale(view: EventView) -> Sale:
    now = view.database_now()
    if view.sale_start is not None and now < view.sale_start:
        return Sale.UPCOMING
    return Sale.OVER if view.sale_end is not None and now >= view.sale_end else Sale.OPEN


def _left(view: EventView, occupancy: OccupancyAnswer) -> Left:
    """Of the zones that the event offers. What is held may come free again: it is not sold out."""
    offered = {zone.zone_id for zone in view.layout.zones if not view.overlay.is_disabled(zone)}
    zones = [zone for zone in occupancy.by_zone if zone.zone_id in offered]
    free, held = sum(zone.available for zone in zones), sum(zone.held for zone in zones)
    for_sale = sum(zone.total - zone.blocked for zone in zones)
    if free <= 0:
        return Left.FEW_LEFT if held > 0 else Left.SOLD_OUT
    return Left.FEW_LEFT if free <= max(FEW_PLACES, for_sale * FEW_SHARE) < for_sale else Left.AVAILABLE


def _zones(view: EventView) -> list[PublicZone]:
    column = view.price_column()
    zones: list[PublicZone] = []
    for zone in view.layout.zones:
        if view.overlay.is_disabled(zone):
            continue
        if zone.is_ga:
            low = high = view.zone_price(zone.zone_no)
        else:
            low, high = _range(
                None if column is None else column[zone.first_ordinal : zone.first_ordinal + zone.seat_count]
            )
        zones.append(
            PublicZone(
                id=zone.id,
                zone_id=zone.zone_id,
                name=zone.name,
                zone_type=zone.zone_type,
                access_mode=zone.access_mode,
                from_minor=low,
                to_minor=high,
            )
        )
    return zones


def _range(prices: NDArray[np.int64] | None) -> tuple[int | None, int | None]:
    stated = prices[prices != NO_PRICE] if prices is not None else None
    return (None, None) if stated is None or not len(stated) else (int(stated.min()), int(stated.max()))
