"""Asking for checkouts over HTTP, for the tests that are about them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx

from tests.conftest import TestDatabase
from tests.stage import Stage, stage

UNKNOWN = "00000000-0000-7000-8000-000000000000"
PRICES = [{"zone_id": "stalls", "amount_minor": 4500}, {"zone_id": "pit", "amount_minor": 2000}]
PRICED = {"currency": "EUR", "prices": PRICES}
TYPES = {
    "COMP": {"validStates": ["LOCKED"], "ttlSeconds": None, "releaseApi": "ADMIN,API", "paymentRequired": False},
    "LOAN": {"validStates": ["LOCKED"], "ttlSeconds": None, "releaseApi": "ADMIN,API,SYSTEM"},
}
Act = Callable[[Stage], Awaitable[None]]


def act(database: TestDatabase, work: Act, *, event: dict[str, Any] | None = None, **settings: Any) -> None:
    async def main() -> None:
        async with stage(database, event={**PRICED, **(event or {})}, **settings) as made:
            await work(made)

    asyncio.run(main())


def overrides(**fields: Any) -> dict[str, Any]:
    return {"overrides": {"orphan_avoidance_strict": False, "max_holds_per_user": None, **fields}}


async def hold(made: Stage, headers: dict[str, str], *numbers: int, **body: Any) -> list[str]:
    answer = await made.hold(headers, *numbers, **body)
    assert answer.status_code == 201, answer.text
    return [one["hold_id"] for one in answer.json()["data"]["holds"]]


async def open_(made: Stage, headers: dict[str, str], **body: Any) -> httpx.Response:
    path = f"/api/events/{made.event_id}/checkouts"
    return await made.client.post(path, headers=headers, json=body or None)


async def opened(made: Stage, headers: dict[str, str], **body: Any) -> dict[str, Any]:
    answer = await open_(made, headers, **body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()["data"]
    return found


async def shown(made: Stage, checkout: dict[str, Any], headers: dict[str, str] | None = None) -> dict[str, Any]:
    answer = await made.client.get(f"/api/checkouts/{checkout['id']}", headers=headers or made.admin)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["data"]
    return found


async def post(
    made: Stage, checkout: dict[str, Any], what: str, headers: dict[str, str], body: Any = None
) -> httpx.Response:
    return await made.client.post(f"/api/checkouts/{checkout['id']}/{what}", headers=headers, json=body)


async def drop(made: Stage, checkout: dict[str, Any], hold_id: str, headers: dict[str, str]) -> httpx.Response:
    return await made.client.delete(f"/api/checkouts/{checkout['id']}/holds/{hold_id}", headers=headers)


def refused(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    assert (answer.status_code, answer.json()["error"]) == (status, code), answer.text
    problem: dict[str, Any] = answer.json()
    return problem


async def ends(made: Stage) -> list[tuple[Any, ...]]:
    """Of every hold: its status, its own end, its seat's and its checkout's."""
    rows = await made.sql(
        """SELECT h.status::text, h.held_until, s.held_until AS seat, c.expires_at, c.status::text AS checkout
           FROM holds h LEFT JOIN event_seats s ON s.hold_id = h.id LEFT JOIN checkouts c ON c.id = h.checkout_id
           ORDER BY h.ordinal NULLS LAST, h.id"""
    )
    return [tuple(row) for row in rows]


async def pay(made: Stage, checkout: dict[str, Any]) -> None:
    await made.sql("UPDATE checkouts SET status = 'paying' WHERE id = $1::text::uuid", checkout["id"])
