"""Venues, and layouts in versions that are written once."""

from uuid import UUID

from holdfast.store.postgres.database import Row, Transaction

INSERT_VENUE = """
INSERT INTO venues (organization_id, id, name, created_at) VALUES ($1, $2, $3, holdfast_now())
RETURNING id, name, created_at
"""
FIND_VENUE = "SELECT id, name, created_at FROM venues WHERE organization_id = $1 AND id = $2"
LIST_VENUES = """
SELECT id, name, created_at FROM venues
WHERE organization_id = $1 AND ($2::uuid IS NULL OR id < $2) ORDER BY id DESC LIMIT $3
"""
INSERT_LAYOUT = """
INSERT INTO layouts (organization_id, id, venue_id, name, latest_version, created_at)
VALUES ($1, $2, $3, $4, 1, holdfast_now())
"""
# The row's lock makes the numbers of versions that are added at the same moment follow each other.
NEXT_VERSION = """
UPDATE layouts SET latest_version = latest_version + 1 WHERE organization_id = $1 AND id = $2 RETURNING latest_version
"""
INSERT_VERSION = """
INSERT INTO layout_versions (organization_id, layout_id, version, config, columns, seat_count, total_capacity,
  created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, holdfast_now())
"""
_DESCRIBED = """
SELECT l.id, l.name, l.venue_id, l.latest_version, v.version, v.status, v.seat_count, v.total_capacity, v.created_at
"""
FIND_VERSION = f"""{_DESCRIBED}
FROM layouts l
JOIN layout_versions v ON v.organization_id = $1 AND v.layout_id = l.id AND v.version = coalesce($3, l.latest_version)
WHERE l.organization_id = $1 AND l.id = $2
"""
LIST_LAYOUTS = f"""{_DESCRIBED}
FROM layouts l
JOIN layout_versions v ON v.organization_id = $1 AND v.layout_id = l.id AND v.version = l.latest_version
WHERE l.organization_id = $1 AND ($2::uuid IS NULL OR l.id < $2) AND ($3::uuid IS NULL OR l.venue_id = $3)
ORDER BY l.id DESC LIMIT $4
"""
LATEST_VERSION = "SELECT latest_version FROM layouts WHERE organization_id = $1 AND id = $2"
FIND_CONFIG = """
SELECT config FROM layout_versions WHERE organization_id = $1 AND layout_id = $2 AND version = $3
"""
FIND_COLUMNS = """
SELECT columns FROM layout_versions WHERE organization_id = $1 AND layout_id = $2 AND version = $3
"""
ACTIVATE = """
WITH used AS (
  UPDATE layout_versions SET status = 'active'
  WHERE organization_id = $1 AND layout_id = $2 AND version = $3 AND status = 'draft')
SELECT v.status <> 'archived' FROM layout_versions v WHERE v.organization_id = $1 AND v.layout_id = $2 AND v.version = $3
"""
ARCHIVE = """
UPDATE layout_versions SET status = 'archived' WHERE organization_id = $1 AND layout_id = $2 AND version = $3
"""
# As before it was archived: active if anything refers to it, else a draft.
RESTORE = """
UPDATE layout_versions v SET status = CASE WHEN
    EXISTS (SELECT FROM events e WHERE e.organization_id = $1 AND e.layout_id = $2 AND e.layout_version = $3)
    OR EXISTS (SELECT FROM series s WHERE s.organization_id = $1 AND s.layout_id = $2 AND s.layout_version = $3)
  THEN 'active' ELSE 'draft' END
WHERE v.organization_id = $1 AND v.layout_id = $2 AND v.version = $3 AND v.status = 'archived'
"""


async def insert_venue(tx: Transaction, organization_id: UUID, venue_id: UUID, name: str) -> Row:
    row = await tx.fetchrow(INSERT_VENUE, organization_id, venue_id, name)
    assert row is not None
    return row


async def find_venue(tx: Transaction, organization_id: UUID, venue_id: UUID) -> Row | None:
    return await tx.fetchrow(FIND_VENUE, organization_id, venue_id)


async def list_venues(tx: Transaction, organization_id: UUID, before: UUID | None, limit: int) -> list[Row]:
    """Newest first; ids are ordered by the time of their making."""
    return await tx.fetch(LIST_VENUES, organization_id, before, limit)


async def insert_layout(tx: Transaction, organization_id: UUID, layout_id: UUID, venue_id: UUID, name: str) -> None:
    await tx.execute(INSERT_LAYOUT, organization_id, layout_id, venue_id, name)


async def next_version(tx: Transaction, organization_id: UUID, layout_id: UUID) -> int | None:
    """The number of a layout's new version; None where there is no such layout."""
    version: int | None = await tx.fetchval(NEXT_VERSION, organization_id, layout_id)
    return version


async def insert_version(
    tx: Transaction,
    organization_id: UUID,
    layout_id: UUID,
    version: int,
    *,
    config: str,
    columns: bytes,
    seat_count: int,
    total_capacity: int,
) -> None:
    await tx.execute(INSERT_VERSION, organization_id, layout_id, version, config, columns, seat_count, total_capacity)


async def find_version(tx: Transaction, organization_id: UUID, layout_id: UUID, version: int | None) -> Row | None:
    """A version without its config; the latest where none is named."""
    return await tx.fetchrow(FIND_VERSION, organization_id, layout_id, version)


async def find_config(tx: Transaction, organization_id: UUID, layout_id: UUID, version: int) -> str | None:
    """What the organiser sent, to the letter."""
    config: str | None = await tx.fetchval(FIND_CONFIG, organization_id, layout_id, version)
    return config


async def find_columns(tx: Transaction, organization_id: UUID, layout_id: UUID, version: int) -> bytes | None:
    columns: bytes | None = await tx.fetchval(FIND_COLUMNS, organization_id, layout_id, version)
    return columns


async def latest_version(tx: Transaction, organization_id: UUID, layout_id: UUID) -> int | None:
    version: int | None = await tx.fetchval(LATEST_VERSION, organization_id, layout_id)
    return version


async def list_layouts(
    tx: Transaction, organization_id: UUID, before: UUID | None, venue_id: UUID | None, limit: int
) -> list[Row]:
    return await tx.fetch(LIST_LAYOUTS, organization_id, before, venue_id, limit)


async def activate_version(tx: Transaction, organization_id: UUID, layout_id: UUID, version: int) -> bool:
    """An event refers to it now. False: it is archived."""
    usable: bool = await tx.fetchval(ACTIVATE, organization_id, layout_id, version)
    return usable


async def archive_version(tx: Transaction, organization_id: UUID, layout_id: UUID, version: int) -> None:
    await tx.execute(ARCHIVE, organization_id, layout_id, version)


async def restore_version(tx: Transaction, organization_id: UUID, layout_id: UUID, version: int) -> None:
    await tx.execute(RESTORE, organization_id, layout_id, version)
