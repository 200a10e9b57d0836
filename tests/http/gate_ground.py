"""An event with gates for the tests: tickets, codes and scans over HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from holdfast.accounts.principal import Role
from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.stage import Stage, stage
from tests.tickets import issue


@dataclass
class Gates:
    made: Stage
    scanner: dict[str, str]

    @property
    def path(self) -> str:
        return f"/api/events/{self.made.event_id}/admissions"

    async def tickets(self, *ordinals: int, **named: Any) -> list[str]:
        found = await issue(self.made.app, self.made.first.organization_id, self.made.event_id, *ordinals, **named)
        return [str(ticket) for ticket in found]

    async def ticket(self, ticket_id: str, headers: dict[str, str] | None = None) -> dict[str, Any]:
        answer = await self.made.client.get(f"/api/tickets/{ticket_id}", headers=headers or self.made.admin)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()["data"]
        return found

    async def code(self, ticket_id: str) -> str:
        code: str = (await self.ticket(ticket_id))["code"]
        return code

    async def scan(self, code: str | None = None, **said: Any) -> dict[str, Any]:
        body = {**({} if code is None else {"code": code}), **said}
        answer = await self.made.client.post(self.path, headers=self.scanner, json=body)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()["data"]
        return found

    async def verdict(self, code: str | None = None, **said: Any) -> tuple[str, str | None]:
        answer = await self.scan(code, **said)
        return answer["outcome"], answer["reason"]

    async def upload(self, *scans: dict[str, Any]) -> dict[str, Any]:
        return await self.scan(source="offline_sync", scans=list(scans))

    async def now(self) -> datetime:
        (row,) = await self.made.sql("SELECT holdfast_now() AS now")
        found: datetime = row["now"]
        return found

    async def to_time(self, day: str, hour: int = 19, minute: int = 30) -> None:
        """Moves the clock to that time, UTC."""
        wanted = datetime.fromisoformat(f"{day}T{hour:02}:{minute:02}:00+00:00")
        await self.pass_time((wanted - await self.now()).total_seconds())

    async def pass_time(self, seconds: float) -> None:
        """Tokens do not last for years: everybody signs in again."""
        await self.made.advance_clock(seconds)
        first = self.made.first
        issued = await self.made.app.services.accounts.issue_token(
            first.organization_id, Role.ADMIN, user_id=first.admin_user_id
        )
        self.made.first = msgspec.structs.replace(first, admin_token=issued.token)
        self.scanner = await self.made.member("scanner")

    async def attendance(self) -> dict[str, Any]:
        answer = await self.made.client.get(f"/api/events/{self.made.event_id}/attendance", headers=self.scanner)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()["data"]
        return found

    async def patch(self, **fields: Any) -> None:
        answer = await self.made.client.patch(f"/api/events/{self.made.event_id}", headers=self.made.admin, json=fields)
        assert answer.status_code == 200, answer.text

    async def faults(self) -> list[str]:
        """Where attendance is not what follows from who is inside."""
        rows = await self.made.sql(
            """
            WITH inside AS (
              SELECT event_id, day, zone_no, sum(inside::integer + others_inside) AS present,
                count(*) FILTER (WHERE entries > 0) AS entered
              FROM ticket_days WHERE zone_no IS NOT NULL GROUP BY 1, 2, 3)
            SELECT coalesce(a.day, i.day) AS day, a.present, a.entered, i.present AS inside, i.entered AS tickets
            FROM zone_attendance a FULL JOIN inside i USING (event_id, day, zone_no)
            WHERE coalesce(a.present, 0) <> coalesce(i.present, 0) OR coalesce(a.entered, 0) <> coalesce(i.entered, 0)
            """
        )
        return [str(dict(row)) for row in rows]


@asynccontextmanager
async def gates(database: TestDatabase, config: dict[str, Any] | None = None, **event: Any) -> AsyncIterator[Gates]:
    """`event`: more of its document. Its layout: two rows of five seats, and a pit of three places."""
    plan = config or theatre_config(2, 5, ga_capacity=3)
    async with stage(database, plan, event=event) as made:
        yield Gates(made, await made.member("scanner"))


def uuid_of(number: int) -> str:
    """A scan's id that sorts by its number."""
    return str(UUID(int=(7 << 76) | (2 << 62) | number))
