"""What the tables say, for tests that compare before and after."""

from collections.abc import Sequence
from typing import Any

import asyncpg

from holdfast.accounts.principal import Role
from holdfast.accounts.records import IssuedToken
from tests.http.client import bearer
from tests.stage import Stage

WRITTEN = ("holds", "event_seats", "event_zones", "seat_state_events", "audit_entries", "outbox", "idempotency_keys")
"""Every table that holding, releasing or selling writes to."""


async def contents(stage: Stage, tables: Sequence[str] = WRITTEN) -> dict[str, list[str]]:
    """Each table's rows as text, sorted. Refusals in the audit are left out: they are written whenever it suits."""
    connection = await asyncpg.connect(stage.database.owner)
    try:
        found: dict[str, list[str]] = {}
        for table in tables:
            where = (
                "WHERE action NOT IN ('seat_reserve_failed', 'zone_access_denied')" if table == "audit_entries" else ""
            )
            rows = await connection.fetch(f"SELECT t::text AS row FROM {table} t {where} ORDER BY 1")
            found[table] = [row["row"] for row in rows]
        return found
    finally:
        await connection.close()


async def seat_row(stage: Stage, n: int) -> dict[str, Any]:
    (row,) = await stage.sql(
        "SELECT * FROM event_seats WHERE event_id = $1 AND ordinal = $2", stage.event_id, stage.seats[n]["ordinal"]
    )
    return dict(row)


async def hold_row(stage: Stage, hold_id: str) -> dict[str, Any]:
    (row,) = await stage.sql("SELECT * FROM holds WHERE id = $1", hold_id)
    return dict(row)


async def seat_log(stage: Stage, n: int) -> list[dict[str, Any]]:
    """A seat's moves, oldest first."""
    rows = await stage.sql(
        "SELECT * FROM seat_state_events WHERE event_id = $1 AND ordinal = $2 ORDER BY id",
        stage.event_id,
        stage.seats[n]["ordinal"],
    )
    return [dict(row) for row in rows]


async def user(stage: Stage, role: Role = Role.CUSTOMER, tiers: Sequence[str] = (), ttl_s: int = 3600) -> IssuedToken:
    """A fresh user of the stage's organization."""
    return await stage.app.services.accounts.issue_token(stage.first.organization_id, role, tiers=tiers, ttl_s=ttl_s)


async def member(stage: Stage, role: Role = Role.CUSTOMER, tiers: Sequence[str] = ()) -> dict[str, str]:
    """The headers of one."""
    return bearer((await user(stage, role, tiers)).token)
