"""Looks for what crosses the walls between organizations, and for gaps in the walls themselves.

Nobody needs to see two organizations at once for that. Within an organization's own transaction everybody else's rows are
hidden, so a reference that leads nowhere is a reference across, or to nothing, and neither may be. All searches are
bounded: ids of events are picked out of an index one after the other, and of long tables the newest rows are looked at.
"""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from holdfast.store.postgres.database import Row, Transaction

NEWEST = 10_000
"""Rows of a long table that are looked at in one audit; what is older was looked at by an earlier one."""
FOUND_MAX = 20
"""Findings of one kind in one organization: there is no need to list them all."""


class Finding(msgspec.Struct, frozen=True):
    """Something of this organization (None: of the database) that should not be."""

    organization_id: UUID | None
    where: str
    said: str
    reference: str | None = None


# Every organization, as the engine's role.
ORGANIZATIONS = "SELECT organization_id FROM organizations"

BY_EVENT = (
    "event_seats",
    "event_zones",
    "event_whitelist",
    "seat_state_events",
    "occupancy_counts",
    "occupancy_changes",
    "occupancy_snapshots",
    "sold_out_events",
    "event_layout_changes",
    "zone_attendance",
    "admissions",
)
"""Tables whose key goes on with the event: however long they are, each event costs one step."""
EVENTS_NAMED = """
WITH RECURSIVE named AS (
  (SELECT t.event_id FROM {table} t WHERE t.organization_id = $1 ORDER BY t.event_id LIMIT 1)
  UNION ALL
  SELECT (SELECT t.event_id FROM {table} t WHERE t.organization_id = $1 AND t.event_id > n.event_id
          ORDER BY t.event_id LIMIT 1)
  FROM named n WHERE n.event_id IS NOT NULL
)
SELECT n.event_id AS reference FROM named n
WHERE n.event_id IS NOT NULL AND NOT EXISTS (
  SELECT FROM events e WHERE e.organization_id = $1 AND e.id = n.event_id) LIMIT $2
"""

REFERENCES = (
    ("holds", "event_id", "events"),
    ("outbox", "event_id", "events"),
    ("audit_entries", "event_id", "events"),
    ("webhook_messages", "event_id", "events"),
    ("webhook_endpoints", "event_id", "events"),
    ("webhook_deliveries", "endpoint_id", "webhook_endpoints"),
    ("webhook_deliveries", "message_id", "webhook_messages"),
    ("memberships", "user_id", "users"),
    ("layouts", "venue_id", "venues"),
    ("events", "layout_id", "layouts"),
    ("events", "series_id", "series"),
    ("series", "layout_id", "layouts"),
    ("layout_migrations", "event_id", "events"),
    ("layout_migrations", "layout_id", "layouts"),
    ("holds", "checkout_id", "checkouts"),
    ("checkouts", "event_id", "events"),
    ("checkouts", "payment_id", "payments"),
    ("checkout_lines", "checkout_id", "checkouts"),
    ("checkout_lines", "hold_id", "holds"),
    ("payments", "event_id", "events"),
    ("payments", "checkout_id", "checkouts"),
    ("refunds", "event_id", "events"),
    ("refunds", "checkout_id", "checkouts"),
    ("refunds", "payment_id", "payments"),
    ("refunds", "ticket_id", "tickets"),
    ("tickets", "event_id", "events"),
    ("tickets", "checkout_id", "checkouts"),
    ("tickets", "hold_id", "holds"),
    ("ticket_days", "event_id", "events"),
    ("ticket_days", "ticket_id", "tickets"),
)
"""Table, column, and the table that it names a row of. Ids grow with time: the last are the newest."""
KEYS = {"checkout_lines": "checkout_id", "ticket_days": "ticket_id"}
"""Of tables whose rows have no id of their own, the id that their key begins with."""
NEWEST_REFERENCES = """
SELECT DISTINCT t.{column} AS reference FROM (
  SELECT t.{column} FROM {table} t WHERE t.organization_id = $1 ORDER BY t.{key} DESC LIMIT $3) t
WHERE t.{column} IS NOT NULL AND NOT EXISTS (
  SELECT FROM {named} r WHERE r.organization_id = $1 AND r.id = t.{column}) LIMIT $2
"""
ACTIVE_HOLDS = """
SELECT DISTINCT h.event_id AS reference FROM holds h
WHERE h.organization_id = $1 AND h.status = 'active' AND NOT EXISTS (
  SELECT FROM events e WHERE e.organization_id = $1 AND e.id = h.event_id) LIMIT $2
"""
EVENTS_ON_SALE = """
SELECT id FROM events WHERE organization_id = $1 AND status IN ('published', 'live') ORDER BY id DESC LIMIT $2
"""
HELD_SEATS = """
SELECT s.hold_id AS reference FROM event_seats s
WHERE s.organization_id = $1 AND s.event_id = $2 AND s.hold_id IS NOT NULL AND NOT EXISTS (
  SELECT FROM holds h WHERE h.organization_id = $1 AND h.id = s.hold_id AND h.event_id = s.event_id) LIMIT $3
"""
LOGGED_HOLDS = """
SELECT DISTINCT m.hold_id AS reference FROM (
  SELECT s.hold_id, s.event_id FROM seat_state_events s
  WHERE s.organization_id = $1 AND s.event_id = $2 ORDER BY s.id DESC LIMIT $4) m
WHERE m.hold_id IS NOT NULL AND NOT EXISTS (
  SELECT FROM holds h WHERE h.organization_id = $1 AND h.id = m.hold_id AND h.event_id = m.event_id) LIMIT $3
"""
SCANNED_TICKETS = """
SELECT DISTINCT m.ticket_id AS reference FROM (
  SELECT a.ticket_id, a.event_id FROM admissions a
  WHERE a.organization_id = $1 AND a.event_id = $2 ORDER BY a.id DESC LIMIT $4) m
WHERE m.ticket_id IS NOT NULL AND NOT EXISTS (
  SELECT FROM tickets t WHERE t.organization_id = $1 AND t.id = m.ticket_id AND t.event_id = m.event_id) LIMIT $3
"""

KNOWN = {
    "events": "SELECT id FROM events WHERE organization_id = $1 AND id = ANY ($2::uuid[])",
    "layouts": "SELECT id FROM layouts WHERE organization_id = $1 AND id = ANY ($2::uuid[])",
}

# The walls: each table of an organization's or tenant's rows is closed, also to its owner, to whoever names nobody.
OPEN_TABLES = """
SELECT c.relname AS name FROM pg_class c
WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace
  AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname IN ('organization_id', 'tenant_id')
              AND NOT a.attisdropped)
  AND NOT (c.relrowsecurity AND c.relforcerowsecurity) ORDER BY 1
"""
# A restrictive policy only takes away from what the others allow.
OPEN_POLICIES = """
SELECT tablename || '.' || policyname AS name FROM pg_policies
WHERE schemaname = 'public' AND permissive = 'PERMISSIVE' AND roles && ARRAY['holdfast_app', 'public']::name[]
  AND coalesce(qual, '') !~ 'current_(organization|tenant)\\(\\)' AND coalesce(with_check, '') !~
  'current_(organization|tenant)\\(\\)' ORDER BY 1
"""
MIGHTY_ROLES = """
SELECT rolname AS name FROM pg_roles WHERE rolname IN ('holdfast_app', 'holdfast_engine')
  AND (rolsuper OR rolbypassrls OR rolcreaterole) ORDER BY 1
"""
OWNED_TABLES = """
SELECT c.relname AS name FROM pg_class c
WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace
  AND pg_get_userbyid(c.relowner) IN ('holdfast_app', 'holdfast_engine') ORDER BY 1
"""
WALLS = (
    (OPEN_TABLES, "the table has no forced row-level security"),
    (OPEN_POLICIES, "the policy asks for no organization or tenant"),
    (MIGHTY_ROLES, "the role may pass through row-level security"),
    (OWNED_TABLES, "the table belongs to a role that serves requests"),
)


async def organizations(tx: Transaction) -> list[UUID]:
    """As the engine's role."""
    return [row["organization_id"] for row in await tx.fetch(ORGANIZATIONS)]


async def wall_faults(tx: Transaction) -> list[Finding]:
    """Read from the database's own catalogue, which everybody may see."""
    return [Finding(None, row["name"], said) for query, said in WALLS for row in await tx.fetch(query)]


async def reference_faults(tx: Transaction, organization_id: UUID) -> list[Finding]:
    """Rows of the organization that name what is not its own."""
    found: list[Finding] = []
    for table in BY_EVENT:
        rows = await tx.fetch(EVENTS_NAMED.format(table=table), organization_id, FOUND_MAX)
        found += _findings(organization_id, f"{table}.event_id", rows)
    for table, column, named in REFERENCES:
        query = NEWEST_REFERENCES.format(table=table, column=column, named=named, key=KEYS.get(table, "id"))
        rows = await tx.fetch(query, organization_id, FOUND_MAX, NEWEST)
        found += _findings(organization_id, f"{table}.{column}", rows)
    rows = await tx.fetch(ACTIVE_HOLDS, organization_id, FOUND_MAX)
    return _once([*found, *_findings(organization_id, "holds.event_id", rows)])


async def events_on_sale_of(tx: Transaction, organization_id: UUID, limit: int) -> list[UUID]:
    return [row["id"] for row in await tx.fetch(EVENTS_ON_SALE, organization_id, limit)]


async def hold_faults(tx: Transaction, organization_id: UUID, event_id: UUID) -> list[Finding]:
    """Seats and moves of an event that name a hold which is not one of it, and scans that name such a ticket."""
    seats = await tx.fetch(HELD_SEATS, organization_id, event_id, FOUND_MAX)
    moves = await tx.fetch(LOGGED_HOLDS, organization_id, event_id, FOUND_MAX, NEWEST)
    scans = await tx.fetch(SCANNED_TICKETS, organization_id, event_id, FOUND_MAX, NEWEST)
    return [
        *_findings(organization_id, "admissions.ticket_id", scans),
        *_findings(organization_id, "event_seats.hold_id", seats),
        *_findings(organization_id, "seat_state_events.hold_id", moves),
    ]


async def unknown_of(tx: Transaction, organization_id: UUID, what: str, ids: Sequence[UUID]) -> list[UUID]:
    """Those of the ids (`what`: events or layouts) that are not the organization's."""
    known = {row["id"] for row in await tx.fetch(KNOWN[what], organization_id, list(ids))}
    return [one for one in ids if one not in known]


def _findings(organization_id: UUID, where: str, rows: Sequence[Row]) -> list[Finding]:
    said = "it names what is not the organization's"
    return [Finding(organization_id, where, said, str(row["reference"])) for row in rows]


def _once(found: list[Finding]) -> list[Finding]:
    return list(dict.fromkeys(found))
