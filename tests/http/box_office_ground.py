"""An event with prices whose tickets are sold over the counter, and what the tables say of them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import asyncpg
import httpx

from holdfast.insight.invariants import check_event
from tests.conftest import TestDatabase
from tests.factories import theatre_config, with_companions
from tests.http.contents import contents
from tests.stage import Stage, stage

PRICES = [
    {"zone_id": "stalls", "category": None, "amount_minor": 8000},
    {"zone_id": "pit", "category": None, "amount_minor": 3000},
]
ON_SALE: dict[str, Any] = {"currency": "EUR", "prices": PRICES, "overrides": {"orphan_avoidance_strict": False}}
HOLD_TYPES = {
    "TILL": {"validStates": ["LOCKED", "SOLD"], "skipLockedState": True, "paymentRequired": True},
    "COMP": {"validStates": ["SOLD"], "skipLockedState": True, "paymentRequired": False},
    "SLOW": {"validStates": ["LOCKED", "SOLD"], "skipLockedState": False},
}
HALL = with_companions(theatre_config(4, 10, ga_capacity=20), (0, 1))
"""A-1 is a wheelchair seat, A-2 its companion's."""
TABLES = (
    "holds", "event_seats", "event_zones", "seat_state_events", "audit_entries", "outbox", "idempotency_keys", "checkouts",
    "payments", "refunds", "tickets", "zone_attendance",
)  # fmt: skip


@asynccontextmanager
async def house(database: TestDatabase, config: dict[str, Any] | None = None, **more: Any) -> AsyncIterator[Stage]:
    async with stage(database, config or HALL, event=more.pop("event", ON_SALE), **more) as made:
        answer = await made.post("/api/organizations/config", {"holdTypes": HOLD_TYPES})
        assert answer.status_code == 200, answer.text
        yield made


async def sell(made: Stage, *numbers: int, places: int = 0, **body: Any) -> httpx.Response:
    """Given away unless a hold type is named."""
    headers = body.pop("headers", None)
    wanted: dict[str, Any] = {"seats": [made.seats[n]["id"] for n in numbers], "holdType": "COMP", **body}
    if places:
        wanted["ga"] = [{"zone_id": "pit", "quantity": places}]
    return await made.post(f"/api/events/{made.event_id}/sales", wanted, headers)


async def sold(made: Stage, *numbers: int, places: int = 0, **body: Any) -> list[str]:
    """Ids of the tickets."""
    answer = await sell(made, *numbers, places=places, **body)
    assert answer.status_code == 201, answer.text
    return [ticket["id"] for ticket in answer.json()["data"]["tickets"]]


async def revert(made: Stage, ticket: str, **body: Any) -> httpx.Response:
    headers = body.pop("headers", None)
    return await made.post(f"/api/tickets/{ticket}/revert", {"reason": "ill", **body}, headers)


async def exchange(made: Stage, ticket: str, seat: int | None = None, **body: Any) -> httpx.Response:
    headers = body.pop("headers", None)
    where = {} if seat is None else {"seat": made.seats[seat]["id"]}
    return await made.post(f"/api/tickets/{ticket}/exchange", {**where, **body}, headers)


async def ticket_row(made: Stage, ticket: str) -> asyncpg.Record:
    (row,) = await made.sql("SELECT * FROM tickets WHERE id = $1", UUID(ticket))
    return row


async def log(made: Stage, ordinal: int | None) -> list[tuple[str, str | None]]:
    """Verb and reason of every move of a seat, or (None) of places."""
    rows = await made.sql(
        "SELECT verb, reason FROM seat_state_events WHERE event_id = $1 AND ordinal IS NOT DISTINCT FROM $2 ORDER BY id",
        UUID(made.event_id),
        ordinal,
    )
    return [(row["verb"], row["reason"]) for row in rows]


async def pit(made: Stage) -> tuple[int, int]:
    """Held and sold."""
    (row,) = await made.sql("SELECT held, sold FROM event_zones WHERE event_id = $1", UUID(made.event_id))
    return row["held"], row["sold"]


async def everything(made: Stage) -> dict[str, list[str]]:
    return await contents(made, TABLES)


async def faults(made: Stage) -> list[str]:
    found = await check_event(made.app.database, made.first.organization_id, UUID(made.event_id))
    return [f"{invariant.name}: {invariant.detail}" for invariant in found if not invariant.ok]
