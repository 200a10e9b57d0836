"""An event that is to go to another version of its layout, with some of it sold and some of it held."""

from copy import deepcopy
from typing import Any
from uuid import UUID

import httpx

from holdfast.compat.booking_v2 import GroupRef, SeatRef, StateSelection
from holdfast.insight.invariants import check_event
from tests.factories import theatre_config
from tests.http.contents import contents
from tests.race.ground import api_call
from tests.stage import Stage

PRICES = [{"zone_id": "stalls", "category": None, "amount_minor": 8000}]
ON_SALE: dict[str, Any] = {
    "currency": "EUR",
    "prices": PRICES,
    "overrides": {"orphan_avoidance_strict": False},
}
TABLES = (
    "events", "holds", "event_seats", "event_zones", "seat_state_events", "audit_entries", "outbox", "occupancy_counts",
    "occupancy_changes", "layout_migrations", "event_layout_changes", "layout_versions",
)  # fmt: skip


def without_rows(config: dict[str, Any], *rows: str) -> dict[str, Any]:
    """The same plan with some rows taken out of its first zone."""
    changed = deepcopy(config)
    zone = changed["zones"][0]
    zone["seats"] = [seat for seat in zone["seats"] if seat["row"] not in rows]
    zone["capacity"] = len(zone["seats"])
    return changed


async def add_version(made: Stage, config: dict[str, Any]) -> int:
    event = (await made.client.get(f"/api/events/{made.event_id}", headers=made.admin)).json()["data"]
    answer = await made.post(f"/api/layouts/{event['layout_id']}/versions", {"config": config})
    assert answer.status_code == 201, answer.text
    version: int = answer.json()["data"]["version"]
    return version


def path(made: Stage, migration_id: str = "", rest: str = "") -> str:
    return f"/api/events/{made.event_id}/migrations" + (f"/{migration_id}" if migration_id else "") + rest


async def plan(made: Stage, version: int, **more: Any) -> dict[str, Any]:
    answer = await made.post(path(made), {"layout_version": version, **more})
    assert answer.status_code == 201, answer.text
    planned: dict[str, Any] = answer.json()["data"]
    return planned


async def apply(made: Stage, migration_id: str) -> httpx.Response:
    return await made.client.post(path(made, migration_id, "/apply"), headers=made.admin)


async def sell(made: Stage, session: str, *numbers: int, places: int = 0) -> None:
    """As booking v2 does: locked by a session, then sold to it."""
    groups = [GroupRef(made.zones[0]["booking_id"], places)] if places else []
    wanted = StateSelection(session, [SeatRef(made.seats[n]["booking_id"]) for n in numbers], groups)
    call = api_call(made.first)
    booking = made.app.services.booking
    assert await booking.lock(call, UUID(made.event_id), wanted)
    assert await booking.sale(call, UUID(made.event_id), wanted)


async def faults(made: Stage) -> list[str]:
    found = await check_event(made.app.database, made.first.organization_id, UUID(made.event_id))
    return [f"{invariant.name}: {invariant.detail}" for invariant in found if not invariant.ok]


async def inventory(made: Stage) -> dict[str, dict[str, Any]]:
    """Every seat by its name, as the API shows it."""
    found: dict[str, dict[str, Any]] = {}
    cursor = None
    while True:
        params = {"limit": "1000", **({"cursor": cursor} if cursor else {})}
        page = await made.client.get(f"/api/events/{made.event_id}/seats", headers=made.admin, params=params)
        found |= {seat["seat_id"]: seat for seat in page.json()["data"]}
        cursor = page.json()["next_cursor"]
        if cursor is None:
            return found


async def owners(made: Stage) -> dict[str, Any]:
    """By hold: its status and the seat it is on, by ordinal."""
    rows = await made.sql(
        "SELECT id, status::text, ordinal, layout_version FROM holds WHERE event_id = $1", made.event_id
    )
    return {str(row["id"]): row for row in rows}


async def everything(made: Stage) -> dict[str, list[str]]:
    return await contents(made, TABLES)


HALL = theatre_config(4, 10, ga_capacity=100)
