"""Checkouts for the tests of what comes after them: opened over HTTP, or in the database where a race needs many at once."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import asyncpg

from holdfast.kernel.ids import new_id
from tests.stage import Stage

PRICE = 2_500

OPEN = """
INSERT INTO checkouts (organization_id, id, event_id, user_id, session_id, status, source, actor, expires_at, currency,
  created_at)
SELECT h.organization_id, $1, h.event_id, h.user_id, h.session_id, 'open', 'web', 'CUSTOMER',
  holdfast_now() + make_interval(secs => $3), $4, holdfast_now()
FROM holds h WHERE h.id = $2
"""
LINES = """
INSERT INTO checkout_lines (organization_id, checkout_id, hold_id, quantity, price_minor, payment_required, added_at)
SELECT h.organization_id, $1, h.id, h.quantity, $3, $4, holdfast_now() FROM holds h WHERE h.id = ANY ($2::uuid[])
"""
HOLDS = """
UPDATE holds h SET checkout_id = $1, held_until = CASE WHEN h.held_until IS NOT NULL THEN c.expires_at END
FROM checkouts c WHERE c.id = $1 AND h.id = ANY ($2::uuid[])
"""
SEATS = """
UPDATE event_seats s SET held_until = h.held_until FROM holds h WHERE h.id = ANY ($1::uuid[]) AND s.hold_id = h.id
"""


async def open_checkout(
    connection: "asyncpg.Connection[asyncpg.Record]",
    hold_ids: Sequence[str | UUID],
    *,
    life_s: float = 1_800.0,
    price_minor: int | None = PRICE,
    payment_required: bool = True,
    currency: str | None = "EUR",
) -> UUID:
    """As the schema's owner."""
    checkout_id = new_id()
    holds = [UUID(str(hold_id)) for hold_id in hold_ids]
    async with connection.transaction():
        await connection.execute(OPEN, checkout_id, holds[0], float(life_s), currency)
        await connection.execute(LINES, checkout_id, holds, price_minor, payment_required)
        await connection.execute(HOLDS, checkout_id, holds)
        await connection.execute(SEATS, holds)
    return checkout_id


TERMS = """
WITH c AS (
  UPDATE checkouts SET currency = $2, expires_at = holdfast_now() + make_interval(secs => $5) WHERE id = $1
  RETURNING id, expires_at
), l AS (
  UPDATE checkout_lines SET price_minor = $3, payment_required = $4 WHERE checkout_id = $1 RETURNING hold_id
), h AS (
  UPDATE holds SET held_until = c.expires_at FROM c, l WHERE holds.id = l.hold_id AND holds.held_until IS NOT NULL
  RETURNING holds.id, holds.held_until
)
UPDATE event_seats s SET held_until = h.held_until FROM h WHERE s.hold_id = h.id
"""


async def checkout_of(made: Stage, buyer: dict[str, str], *numbers: int, places: int = 0, **terms: Any) -> str:
    """Seats by number and places of the pit, held by the buyer and in a checkout of theirs; then on these terms."""
    ga = {"ga": [{"zone_id": "pit", "quantity": places}]} if places else {}
    held = await made.hold(buyer, *numbers, **ga)
    assert held.status_code == 201, held.text
    hold_ids = [hold["hold_id"] for hold in held.json()["data"]["holds"]]
    opened = await made.client.post(
        f"/api/events/{made.event_id}/checkouts", headers=buyer, json={"hold_ids": hold_ids}
    )
    assert opened.status_code == 201, opened.text
    found: str = opened.json()["data"]["id"]
    await made.sql(
        TERMS,
        UUID(found),
        terms.pop("currency", "EUR"),
        terms.pop("price_minor", PRICE),
        terms.pop("payment_required", True),
        float(terms.pop("life_s", 1_800.0)),
    )
    assert not terms, terms
    # Nothing told memory of these terms: it is to look for itself.
    await made.app.feed.caught_up()
    made.app.hot.drop((made.first.organization_id, UUID(made.event_id)), "terms of a test")
    return found


async def until(condition: Any, seconds: float = 10.0) -> None:
    async with asyncio.timeout(seconds):
        while not await condition():
            await asyncio.sleep(0.05)
