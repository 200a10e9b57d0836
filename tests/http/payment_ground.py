"""What tests of payments say and look at: providers, their signed messages, and what became of the money."""

from typing import Any

import httpx
import msgspec

from holdfast.payments.signed_webhook import sign
from tests.stage import Stage

SECRET = "whsec_0123456789abcdef"


def message(
    checkout_id: str,
    reference: str = "pi_1",
    *,
    kind: str = "payment_intent.succeeded",
    amount: Any = 2_500,
    currency: Any = "eur",
    message_id: str = "evt_1",
) -> bytes:
    intent = {"id": reference, "amount_received": amount, "currency": currency}
    intent["metadata"] = {"checkout_id": checkout_id}
    return msgspec.json.encode({"id": message_id, "type": kind, "data": {"object": intent}, "livemode": True})


async def database_time(made: Stage) -> int:
    (row,) = await made.sql("SELECT extract(epoch FROM holdfast_now())::bigint AS now")
    return int(row["now"])


async def add_provider(made: Stage, name: str = "stripe", **body: Any) -> dict[str, Any]:
    wanted = {"kind": "webhook", "secret": SECRET, **body}
    answer = await made.client.put(f"/api/payments/providers/{name}", headers=made.admin, json=wanted)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["data"]
    return found


async def tell(
    made: Stage,
    body: bytes,
    *,
    provider: str = "stripe",
    secret: str = SECRET,
    ago_s: int = 0,
    header: str | None = None,
    client: httpx.AsyncClient | None = None,
) -> httpx.Response:
    """A provider's message, signed so long ago."""
    signed = header or sign(secret, await database_time(made) - ago_s, body)
    path = f"/api/payments/webhook/{provider}"
    return await (client or made.client).post(path, content=body, headers={"Stripe-Signature": signed})


async def money(made: Stage) -> list[tuple[str, str, str | None]]:
    """Every payment: reference, status, and why it is to be refunded."""
    rows = await made.sql(
        "SELECT p.reference, p.status, r.reason FROM payments p LEFT JOIN refunds r ON r.payment_id = p.id ORDER BY p.id"
    )
    return [tuple(row) for row in rows]


async def tickets(made: Stage, checkout_id: str) -> list[tuple[int | None, int]]:
    rows = await made.sql(
        "SELECT ordinal, zone_no FROM tickets WHERE checkout_id = $1::uuid AND status = 'valid' ORDER BY ordinal, zone_no",
        checkout_id,
    )
    return [tuple(row) for row in rows]


async def status_of(made: Stage, checkout_id: str) -> str:
    (row,) = await made.sql("SELECT status::text FROM checkouts WHERE id = $1::uuid", checkout_id)
    return str(row["status"])
