"""What `doctor` asks a database: facts about its settings, roles and rights, none about anybody's data."""

import time
from dataclasses import dataclass

import asyncpg

APPEND_ONLY = ("seat_state_events", "audit_entries")

_UNGUARDED = """
SELECT c.relname FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
  AND NOT (c.relrowsecurity AND c.relforcerowsecurity)
  AND EXISTS (SELECT FROM pg_attribute a
    WHERE a.attrelid = c.oid AND a.attname IN ('organization_id', 'tenant_id') AND NOT a.attisdropped)
ORDER BY c.relname
"""
_GUARDED = """
SELECT count(*) FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND relrowsecurity AND relforcerowsecurity
"""
_OWNED = """
SELECT relname FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND pg_has_role(current_user, relowner, 'USAGE')
ORDER BY relname
"""
_ROLE = "SELECT rolname, rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user"
_REWRITABLE = """
SELECT t || ': ' || right_name FROM unnest($1::text[]) AS t, unnest(ARRAY['UPDATE', 'DELETE', 'TRUNCATE']) AS right_name
WHERE has_table_privilege(current_user, t, right_name) ORDER BY 1
"""


@dataclass(frozen=True)
class Examination:
    server_version: str
    server_version_num: int
    role: str
    superuser: bool
    bypasses_row_security: bool
    owned_tables: list[str]
    guarded_tables: int
    unguarded_tables: list[str]
    rewritable: list[str]
    """Rights the role has on append-only tables and must not have."""
    fsync: str
    synchronous_commit: str
    clock_ahead_s: float
    """How far the database's clock is ahead of this machine's."""


async def examine(connection: asyncpg.Connection) -> Examination:
    role = await connection.fetchrow(_ROLE)
    assert role is not None
    asked = time.time()
    theirs: float = await connection.fetchval("SELECT extract(epoch FROM clock_timestamp())::float")
    ours = (asked + time.time()) / 2
    return Examination(
        server_version=await connection.fetchval("SHOW server_version"),
        server_version_num=int(await connection.fetchval("SHOW server_version_num")),
        role=role["rolname"],
        superuser=role["rolsuper"],
        bypasses_row_security=role["rolbypassrls"],
        owned_tables=[row[0] for row in await connection.fetch(_OWNED)],
        guarded_tables=await connection.fetchval(_GUARDED),
        unguarded_tables=[row[0] for row in await connection.fetch(_UNGUARDED)],
        rewritable=[row[0] for row in await connection.fetch(_REWRITABLE, list(APPEND_ONLY))],
        fsync=await connection.fetchval("SHOW fsync"),
        synchronous_commit=await connection.fetchval("SHOW synchronous_commit"),
        clock_ahead_s=theirs - ours,
    )
