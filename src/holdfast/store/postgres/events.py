"""Events, their guest lists, and the organization's config that an event is read with."""

from typing import Any
from uuid import UUID

import msgspec

from holdfast.seating.admission import stored_admission
from holdfast.seating.event import Event, EventContent, EventStatus
from holdfast.seating.overlay import Overlay, stored_overlay
from holdfast.store.postgres.database import Row, Transaction

INSERT_EVENT = """
INSERT INTO events (organization_id, id, name, layout_id, layout_version, own_zones, own_columns, sale_start, sale_end,
  days, currency, prices, overrides, overlay, admission, series_id, created_at, updated_at)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, t.now, t.now
FROM (SELECT holdfast_now() AS now) t
RETURNING *
"""
UPDATE_EVENT = """
UPDATE events SET name = $3, layout_id = $4, layout_version = $5, own_zones = $6, own_columns = $7, sale_start = $8,
  sale_end = $9, days = $10, currency = $11, prices = $12, overrides = $13, overlay = $14,
  admission = $15, updated_at = holdfast_now()
WHERE organization_id = $1 AND id = $2
RETURNING *
"""
SET_STATUS = """
UPDATE events SET status = $4::event_status, updated_at = holdfast_now(),
  published_at = CASE WHEN $4 = 'published' THEN holdfast_now() ELSE published_at END
WHERE organization_id = $1 AND id = $2 AND status = $3::event_status
RETURNING *
"""
FIND_EVENT = "SELECT * FROM events WHERE organization_id = $1 AND id = $2"
LAYOUT_VERSION = "SELECT layout_version FROM events WHERE organization_id = $1 AND id = $2"
LIST_EVENTS = """
SELECT * FROM events
WHERE organization_id = $1 AND ($2::uuid IS NULL OR id < $2) AND status::text = ANY ($3::text[])
  AND ($4::uuid IS NULL OR id = $4) AND ($6::uuid IS NULL OR series_id = $6)
ORDER BY id DESC LIMIT $5
"""
# Sets the tenant for the rest of the transaction, which is what lets it see the tenant's row.
FIND_ORGANIZATION = """
SELECT tenant_id, config, policy, set_config('holdfast.tenant_id', tenant_id::text, true)
FROM organizations WHERE organization_id = $1
"""
FIND_TENANT_CONFIG = "SELECT config FROM tenants WHERE tenant_id = $1"
FIND_POLICY = "SELECT policy FROM organizations WHERE organization_id = $1"

ADD_TO_WHITELIST = """
INSERT INTO event_whitelist (organization_id, event_id, user_id, added_at)
SELECT $1, $2, u, holdfast_now() FROM unnest($3::uuid[]) u ORDER BY u ON CONFLICT DO NOTHING RETURNING user_id
"""
REMOVE_FROM_WHITELIST = """
DELETE FROM event_whitelist
WHERE organization_id = $1 AND event_id = $2 AND user_id = ANY ($3::uuid[]) RETURNING user_id
"""
LIST_WHITELIST = """
SELECT user_id, added_at FROM event_whitelist
WHERE organization_id = $1 AND event_id = $2 AND ($3::uuid IS NULL OR user_id > $3) ORDER BY user_id LIMIT $4
"""


class OrganizationConfig(msgspec.Struct, frozen=True):
    """As stored: JSON texts."""

    tenant_id: UUID
    tenant_config: str
    config: str
    policy: str | None


class StoredEvent(msgspec.Struct, frozen=True):
    event: Event
    own_zones: list[Any] | None
    own_columns: bytes | None


def read_event(row: Row) -> Event:
    return msgspec.convert(
        {
            **row,
            "prices": msgspec.json.decode(row["prices"]),
            "overrides": msgspec.json.decode(row["overrides"]),
            "overlay": stored_overlay(row["overlay"]),
            "admission": stored_admission(row["admission"]),
        },
        Event,
        strict=True,
    )


LIST_ON_SALE = """
SELECT id FROM events WHERE organization_id = $1 AND status IN ('published', 'live') ORDER BY id DESC LIMIT $2
"""


async def list_on_sale(tx: Transaction, organization_id: UUID, limit: int) -> list[UUID]:
    """The newest first."""
    return [row["id"] for row in await tx.fetch(LIST_ON_SALE, organization_id, limit)]


LIST_PUBLIC = """
SELECT id FROM events
WHERE organization_id = $1 AND status IN ('published', 'live') AND ($2::uuid IS NULL OR id > $2)
  AND (sale_end IS NULL OR sale_end > holdfast_now())
ORDER BY id LIMIT $3
"""


async def list_public(tx: Transaction, organization_id: UUID, after: UUID | None, limit: int) -> list[UUID]:
    """What is on sale, or will be."""
    return [row["id"] for row in await tx.fetch(LIST_PUBLIC, organization_id, after, limit)]


async def insert_event(tx: Transaction, organization_id: UUID, event_id: UUID, content: EventContent) -> Event:
    row = await tx.fetchrow(INSERT_EVENT, organization_id, event_id, *_values(content), content.series_id)
    assert row is not None
    return read_event(row)


SET_OVERLAY = "UPDATE events SET overlay = $3 WHERE organization_id = $1 AND id = $2"


async def set_overlay(tx: Transaction, organization_id: UUID, event_id: UUID, overlay: Overlay) -> None:
    """The caller owns the event."""
    await tx.execute(SET_OVERLAY, organization_id, event_id, _json(overlay))


async def update_event(tx: Transaction, organization_id: UUID, event_id: UUID, content: EventContent) -> Event:
    """The caller owns the event's lock."""
    row = await tx.fetchrow(UPDATE_EVENT, organization_id, event_id, *_values(content))
    assert row is not None
    return read_event(row)


def _values(content: EventContent) -> tuple[Any, ...]:
    own = content.own_zones is not None
    return (
        content.name,
        content.layout_id,
        content.layout_version,
        _json(content.own_zones) if own else None,
        content.layout.pack() if own else None,
        content.sale_start,
        content.sale_end,
        content.days,
        content.currency,
        _json(content.prices),
        _json(content.overrides),
        _json(content.overlay),
        _json(content.admission),
    )


async def own_event(tx: Transaction, event_id: UUID) -> None:
    """Alone with the event until the commit: moves under way have ended, and those that follow see what is done."""
    await tx.execute("SELECT own_event($1)", event_id)


async def share_event(tx: Transaction, event_id: UUID) -> None:
    """Beside others who move its seats; the event itself cannot change meanwhile."""
    await tx.execute("SELECT share_events(ARRAY[$1::uuid])", event_id)


async def set_status(
    tx: Transaction, organization_id: UUID, event_id: UUID, old: EventStatus, new: EventStatus
) -> Event | None:
    row = await tx.fetchrow(SET_STATUS, organization_id, event_id, old.value, new.value)
    return None if row is None else read_event(row)


async def find_event(tx: Transaction, organization_id: UUID, event_id: UUID) -> StoredEvent | None:
    row = await tx.fetchrow(FIND_EVENT, organization_id, event_id)
    if row is None:
        return None
    own = row["own_zones"]
    return StoredEvent(read_event(row), None if own is None else msgspec.json.decode(own), row["own_columns"])


async def list_events(
    tx: Transaction,
    organization_id: UUID,
    *,
    before: UUID | None,
    statuses: list[str],
    only: UUID | None,
    limit: int,
    series_id: UUID | None = None,
) -> list[Event]:
    """Newest first."""
    rows = await tx.fetch(LIST_EVENTS, organization_id, before, statuses, only, limit, series_id)
    return [read_event(row) for row in rows]


async def find_organization(tx: Transaction, organization_id: UUID) -> OrganizationConfig | None:
    row = await tx.fetchrow(FIND_ORGANIZATION, organization_id)
    if row is None:
        return None
    tenant_config = await tx.fetchval(FIND_TENANT_CONFIG, row["tenant_id"])
    return OrganizationConfig(row["tenant_id"], tenant_config or "{}", row["config"], row["policy"])


async def find_policy(tx: Transaction, organization_id: UUID) -> str | None:
    policy: str | None = await tx.fetchval(FIND_POLICY, organization_id)
    return policy


async def layout_version(tx: Transaction, organization_id: UUID, event_id: UUID) -> int | None:
    version: int | None = await tx.fetchval(LAYOUT_VERSION, organization_id, event_id)
    return version


async def add_to_whitelist(tx: Transaction, organization_id: UUID, event_id: UUID, user_ids: list[UUID]) -> int:
    return len(await tx.fetch(ADD_TO_WHITELIST, organization_id, event_id, user_ids))


async def remove_from_whitelist(tx: Transaction, organization_id: UUID, event_id: UUID, user_ids: list[UUID]) -> int:
    return len(await tx.fetch(REMOVE_FROM_WHITELIST, organization_id, event_id, user_ids))


async def list_whitelist(
    tx: Transaction, organization_id: UUID, event_id: UUID, after: UUID | None, limit: int
) -> list[Row]:
    return await tx.fetch(LIST_WHITELIST, organization_id, event_id, after, limit)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
