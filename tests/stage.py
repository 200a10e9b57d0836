"""The whole product for a test: the real application behind a real server, an organization, an event on sale."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg
import httpx

from holdfast.accounts.principal import Role
from holdfast.accounts.records import Bootstrap
from holdfast.app import Application
from holdfast.settings import Settings
from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.http.client import bearer, serving

SECRETS = "test:" + "s" * 43


@dataclass
class Stage:
    client: httpx.AsyncClient
    app: Application
    database: TestDatabase
    first: Bootstrap
    event_id: str
    seats: list[dict[str, Any]]  # as `GET /api/events/{id}/seats` lists them
    zones: list[dict[str, Any]]

    @property
    def admin(self) -> dict[str, str]:
        return bearer(self.first.admin_token)

    @property
    def api_key(self) -> dict[str, str]:
        return {"X-API-Key": self.first.api_key}

    async def buyer(self, **claims: Any) -> dict[str, str]:
        """Headers of a fresh guest of the event."""
        answer = await self.client.post("/api/guest-tokens", json={"event_id": self.event_id})
        assert answer.status_code == 201, answer.text
        return bearer(answer.json()["data"]["token"])

    async def member(self, role: str = "customer", tiers: tuple[str, ...] = ()) -> dict[str, str]:
        """Headers of a fresh user of the organization, with a membership."""
        issued = await self.app.services.accounts.issue_token(self.first.organization_id, Role(role), tiers=tiers)
        return bearer(issued.token)

    async def advance_clock(self, seconds: float) -> None:
        """Moves the database's clock ahead, and lets the process notice: real clocks do not jump."""
        await self.database.advance_clock(seconds)
        await self.app.feed.caught_up()

    def seat_path(self, n: int, event_id: str | None = None) -> str:
        return f"/api/events/{event_id or self.event_id}/seats/{self.seats[n]['id']}/reserve"

    async def reserve(self, n: int, headers: dict[str, str], **body: Any) -> httpx.Response:
        return await self.client.post(self.seat_path(n), headers=headers, json=body or None)

    async def hold(self, headers: dict[str, str], *numbers: int, **body: Any) -> httpx.Response:
        wanted = {"seats": [self.seats[n]["id"] for n in numbers], **body}
        return await self.client.post(f"/api/events/{self.event_id}/holds", headers=headers, json=wanted)

    async def seat(self, n: int) -> dict[str, Any]:
        answer = await self.client.get(f"/api/events/{self.event_id}/seats/{self.seats[n]['id']}", headers=self.admin)
        found: dict[str, Any] = answer.json()["data"]
        return found

    async def sql(self, query: str, *args: Any) -> list[asyncpg.Record]:
        """As the schema's owner."""
        connection = await asyncpg.connect(self.database.owner)
        try:
            return await connection.fetch(query, *args)
        finally:
            await connection.close()

    async def post(self, path: str, body: Any, headers: dict[str, str] | None = None) -> httpx.Response:
        return await self.client.post(path, json=body, headers=headers or self.admin)

    async def make_event(self, config: dict[str, Any] | None = None, publish: bool = True, **content: Any) -> str:
        """Another event, on a layout of its own. The orphan rule is off, unless `overrides` say something else: most tests
        pick whatever seats are at hand."""
        content.setdefault("overrides", {"orphan_avoidance_strict": False})
        venue = (await self.post("/api/venues", {"name": "Hall"})).json()["data"]["id"]
        layout = await self.post(f"/api/venues/{venue}/layouts", {"name": "Plan", "config": config or theatre_config()})
        assert layout.status_code == 201, layout.text
        event = await self.post("/api/events", {"name": "Evening", "layout_id": layout.json()["data"]["id"], **content})
        assert event.status_code == 201, event.text
        event_id: str = event.json()["data"]["id"]
        if publish:
            answer = await self.post(f"/api/events/{event_id}/status", {"status": "published"})
            assert answer.status_code == 200, answer.text
        return event_id


def stage_settings(database: TestDatabase, **changed: Any) -> Settings:
    values: dict[str, Any] = {"database_url": database.app, "jwt_secrets": SECRETS, "failure_audit_sample": 1.0}
    return Settings(**{**values, **changed})


@asynccontextmanager
async def stage(
    database: TestDatabase,
    config: dict[str, Any] | None = None,
    *,
    work: bool = False,
    event: dict[str, Any] | None = None,
    organization: Bootstrap | None = None,
    **settings: Any,
) -> AsyncIterator[Stage]:
    """`work`: with the background duties (off by default, so that a test decides when a hold is swept)."""
    app = await Application.open(stage_settings(database, **settings), work=work)
    try:
        first = organization or await app.services.accounts.bootstrap("Theatre")
        async with serving(app.asgi, app.protocol) as client:
            made = Stage(client, app, database, first, "", [], [])
            made.event_id = await made.make_event(config or theatre_config(ga_capacity=100), **(event or {}))
            made.seats = await _all(made, f"/api/events/{made.event_id}/seats")
            zones = await client.get(f"/api/events/{made.event_id}/zones", headers=made.admin)
            made.zones = zones.json()["data"]
            yield made
    finally:
        await app.close()


async def _all(made: Stage, path: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        params = {"limit": "1000", **({"cursor": cursor} if cursor else {})}
        page = (await made.client.get(path, headers=made.admin, params=params)).json()
        rows += page["data"]
        cursor = page["next_cursor"]
        if cursor is None:
            return rows
