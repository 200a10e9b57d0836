"""Places of a general-admission zone that an organiser takes out of the sale by hand, and gives back."""

from uuid import UUID

from holdfast.accounts.principal import Call, require_staff
from holdfast.holds.lifecycle import Verb, may_ask
from holdfast.kernel.errors import (
    EventNotFound,
    Forbidden,
    InvalidRequest,
    ZoneAtCapacity,
    ZoneDisabled,
    ZoneNotFound,
)
from holdfast.kernel.problems import Problem, quoted
from holdfast.seating.answers import PlacesAnswer
from holdfast.seating.event import check_saleable
from holdfast.seating.event_writing import check_reason, find_event
from holdfast.seating.layout import Zone
from holdfast.seating.refusals import PlacesNotBlocked
from holdfast.store.catalogue import Catalogue
from holdfast.store.postgres import events, inventory
from holdfast.store.postgres.database import Database, Row, Transaction
from holdfast.store.postgres.idempotency import run_once

QUANTITY_MAX = 1_000_000


class PlacesService:
    def __init__(self, database: Database, catalogue: Catalogue) -> None:
        self._database = database
        self._catalogue = catalogue

    async def block_places(self, call: Call, event_id: UUID, zone: str, quantity: int, reason: str) -> PlacesAnswer:
        """Free places only, all or none: nobody's hold ends by it, and nobody's ticket."""
        check_reason(reason)
        return await self._move(call, event_id, zone, quantity, reason, block=True)

    async def unblock_places(
        self, call: Call, event_id: UUID, zone: str, quantity: int, reason: str | None
    ) -> PlacesAnswer:
        return await self._move(call, event_id, zone, quantity, reason, block=False)

    async def _move(
        self, call: Call, event_id: UUID, named: str, quantity: int, reason: str | None, *, block: bool
    ) -> PlacesAnswer:
        require_staff(call)
        if not may_ask(Verb.BLOCK, call.principal.actor):
            raise Forbidden("Places are blocked and unblocked by people, not by API keys.", required_actor="ADMIN")
        if not 1 <= quantity <= QUANTITY_MAX:
            said = f"must be from 1 to {QUANTITY_MAX}"
            raise InvalidRequest(f"quantity {said}.", [Problem("/quantity", "out_of_range", said)])
        zone = await self._zone(call, event_id, named)

        async def work(tx: Transaction) -> PlacesAnswer:
            await events.share_event(tx, event_id)
            event = (await find_event(tx, call, event_id)).event
            check_saleable(event.status, None, None, event.updated_at, any_time=True)
            move = inventory.block_places if block else inventory.unblock_places
            done = await move(tx, call, event_id, zone.zone_no, quantity, reason)
            row = await inventory.find_zone(tx, call.organization_id, event_id, zone.zone_no)
            if not done:
                raise _refusal(zone, row, quantity, block=block)
            return PlacesAnswer(
                event_id=event_id,
                zone_id=zone.zone_id,
                quantity=quantity,
                blocked=row["blocked"],
                available=_free(row),
            )

        return await run_once(self._database, call, work, PlacesAnswer)

    async def _zone(self, call: Call, event_id: UUID, named: str) -> Zone:
        view = await self._catalogue.fresh_event(call.organization_id, event_id)
        if view is None:
            raise EventNotFound
        zone = view.layout.zone(named)
        if zone is None:
            raise ZoneNotFound(f"There is no zone {quoted(named)}.", zone=named)
        if not zone.is_ga:
            raise InvalidRequest(f"{zone.name} has numbered seats: block them by id.", zone=zone.zone_id)
        return zone


def _free(row: Row) -> int:
    free: int = row["capacity"] - row["held"] - row["sold"] - row["blocked"]
    return free


def _refusal(zone: Zone, row: Row, quantity: int, *, block: bool) -> ZoneDisabled | ZoneAtCapacity | PlacesNotBlocked:
    if row["disabled"]:
        said = f"{zone.name} is disabled by the event's overlay: offer it there again first."
        return ZoneDisabled(said, zone_id=zone.zone_id)
    if block:
        free = _free(row)
        said = f"{zone.name} has {free} free places, and {quantity} were to be blocked."
        return ZoneAtCapacity(said, zone_id=zone.zone_id, available=free)
    said = f"{row['blocked']} places of {zone.name} are blocked, and {quantity} were to be given back."
    return PlacesNotBlocked(said, zone_id=zone.zone_id, blocked=row["blocked"])
