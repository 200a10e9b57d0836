"""Small builders: organizations, people, layouts and published events, made through the services as users make them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec

from holdfast.accounts.credentials import TokenKeys
from holdfast.accounts.principal import Call, Idempotency, Principal, Role
from holdfast.accounts.records import Bootstrap
from holdfast.accounts.service import AccountsService
from holdfast.holds.lifecycle import Actor
from holdfast.insight.service import InsightService
from holdfast.kernel.ids import new_id
from holdfast.seating.answers import EventAnswer, LayoutAnswer
from holdfast.seating.event import EventStatus
from holdfast.seating.layout import seat_uuid_column, zone_uuid
from holdfast.seating.service import SeatingService
from holdfast.settings import Settings
from holdfast.store.catalogue import Catalogue
from holdfast.store.postgres.database import Database

TOKEN_KEYS = TokenKeys({"test": b"a secret of thirty-two bytes and more, for tests"})
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
FAR_AHEAD = datetime(2999, 1, 1, tzinfo=UTC)


# Layouts ------------------------------------------------------------------------------------------------------------
def theatre_config(
    rows: int = 4, seats_per_row: int = 10, *, ga_capacity: int | None = None, aisle_after: int | None = None
) -> dict[str, Any]:
    """A zone `stalls` of seats `A-1`, `A-2`, … (rows beyond Z are `AA`, `AB`, …), and a zone `pit` if it has places."""
    names = [_row_name(row) for row in range(rows)]
    stalls: dict[str, Any] = {
        "zone_id": "stalls",
        "name": "Stalls",
        "zone_type": "reserved_seating",
        "capacity": rows * seats_per_row,
        "seats": [
            {
                "seat_id": f"{name}-{number}",
                "row": name,
                "number": number,
                "coordinates": {"x": 10.0 * number, "y": 20.0 * row},
            }
            for row, name in enumerate(names)
            for number in range(1, seats_per_row + 1)
        ],
    }
    if aisle_after is not None:
        stalls["rows"] = {name: {"aisles_after": [aisle_after]} for name in names}
    zones = [stalls]
    if ga_capacity is not None:
        zones.append({"zone_id": "pit", "name": "Pit", "zone_type": "ga_standing", "capacity": ga_capacity})
    return {"focal_point": {"x": 5.0 * seats_per_row, "y": -20.0}, "zones": zones}


def with_companions(config: dict[str, Any], *pairs: tuple[int, int]) -> dict[str, Any]:
    """The same with wheelchair seats and the seats of their companions, by position in the first zone."""
    seats = config["zones"][0]["seats"]
    for wheelchair, companion in pairs:
        seats[wheelchair] |= {"category": "wheelchair", "companion_seat_id": seats[companion]["seat_id"]}
        seats[companion]["category"] = "companion"
    return config


def _row_name(row: int) -> str:
    name = ""
    row += 1
    while row:
        row, letter = divmod(row - 1, 26)
        name = chr(ord("A") + letter) + name
    return name


# Organizations and people -------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Parts:
    """The services over one test's database."""

    database: Database
    catalogue: Catalogue
    seating: SeatingService
    insight: InsightService
    accounts: AccountsService
    settings: Settings


@asynccontextmanager
async def open_parts(dsn: str, settings: Settings | None = None, connections: int = 8) -> AsyncIterator[Parts]:
    settings = settings or Settings()
    database = await Database.open(dsn, connections)
    catalogue = Catalogue(database, settings)
    try:
        yield Parts(
            database,
            catalogue,
            SeatingService(database, catalogue, settings),
            InsightService(database, catalogue),
            AccountsService(database, TOKEN_KEYS),
            settings,
        )
    finally:
        await catalogue.close()
        await database.close()


async def make_organization(parts: Parts, name: str = "Theatre", tenant_id: UUID | None = None) -> Bootstrap:
    """Ids, the administrator's token and the API keys."""
    return await parts.accounts.bootstrap(name, tenant_id=tenant_id)


def staff_call(organization: Bootstrap, role: Role = Role.ADMIN, idempotency: Idempotency | None = None) -> Call:
    principal = Principal(
        organization_id=organization.organization_id,
        tenant_id=organization.tenant_id,
        actor=Actor.ADMIN,
        role=role,
        subject=f"user:{organization.admin_user_id}",
        user_id=organization.admin_user_id,
    )
    return Call(principal=principal, ip="192.0.2.1", user_agent="tests", request_id="r-1", idempotency=idempotency)


def buyer_call(
    organization: Bootstrap,
    user_id: UUID | None = None,
    *,
    tiers: frozenset[str] = frozenset(),
    guest_event_id: UUID | None = None,
) -> Call:
    user_id = user_id or new_id()
    principal = Principal(
        organization_id=organization.organization_id,
        tenant_id=organization.tenant_id,
        actor=Actor.CUSTOMER,
        role=Role.CUSTOMER,
        subject=f"{'guest' if guest_event_id else 'user'}:{user_id}",
        user_id=user_id,
        tiers=tiers,
        membership_active=bool(tiers),
        guest_event_id=guest_event_id,
    )
    return Call(principal=principal, ip="198.51.100.7", user_agent="tests")


# Events -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class PublishedEvent:
    organization: Bootstrap
    event: EventAnswer
    layout: LayoutAnswer
    seats: list[UUID]
    """By ordinal."""

    @property
    def id(self) -> UUID:
        return self.event.id

    def zone(self, zone_id: str) -> UUID:
        return zone_uuid(self.layout.id, zone_id)


async def make_layout(parts: Parts, call: Call, config: dict[str, Any] | None = None) -> LayoutAnswer:
    venue = await parts.seating.create_venue(call, "Playhouse")
    body = msgspec.json.encode(config or theatre_config())
    return await parts.seating.create_layout(call, venue.id, "House", body)


def seats_of(layout: LayoutAnswer, config: dict[str, Any]) -> list[UUID]:
    seat_ids = [seat["seat_id"] for zone in config["zones"] for seat in zone.get("seats", [])]
    column = seat_uuid_column(layout.id, seat_ids)
    return [UUID(bytes=column[at : at + 16]) for at in range(0, len(column), 16)]


async def make_published_event(
    parts: Parts,
    organization: Bootstrap | None = None,
    *,
    config: dict[str, Any] | None = None,
    sale_start: datetime | None = LONG_AGO,
    sale_end: datetime | None = FAR_AHEAD,
    status: EventStatus = EventStatus.PUBLISHED,
    **fields: Any,
) -> PublishedEvent:
    """An event on sale; `fields` are more of its document (prices, overrides, …). Makes the organization if need be."""
    organization = organization or await make_organization(parts)
    config = config or theatre_config()
    call = staff_call(organization)
    layout = await make_layout(parts, call, config)
    document = {
        "name": "First night",
        "layout_id": str(layout.id),
        "sale_start": None if sale_start is None else sale_start.isoformat(),
        "sale_end": None if sale_end is None else sale_end.isoformat(),
        "overrides": {"orphan_avoidance_strict": False},  # most tests pick whatever seats are at hand
        **fields,
    }
    event = await parts.seating.create_event(call, document)
    ways = {
        EventStatus.DRAFT: (),
        EventStatus.PUBLISHED: (EventStatus.PUBLISHED,),
        EventStatus.LIVE: (EventStatus.PUBLISHED, EventStatus.LIVE),
        EventStatus.ARCHIVED: (EventStatus.PUBLISHED, EventStatus.LIVE, EventStatus.ARCHIVED),
        EventStatus.CANCELLED: (EventStatus.PUBLISHED, EventStatus.CANCELLED),
    }
    for step in ways[status]:
        event = await parts.seating.set_status(call, event.id, step)
    return PublishedEvent(organization, event, layout, seats_of(layout, config))
