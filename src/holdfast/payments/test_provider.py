"""The built-in provider for demos and trials: takes no money, and says what it is told to say.

What it says is a message like any other, signed with the organization's secret, and comes in through the same door.
"""

from typing import Any
from uuid import UUID

import msgspec

from holdfast.kernel.ids import new_id
from holdfast.payments.payment import Payment
from holdfast.payments.provider import EventKind
from holdfast.payments.signed_webhook import SignedWebhook, sign

_TYPES = {EventKind.SUCCEEDED: "payment_intent.succeeded", EventKind.FAILED: "payment_intent.payment_failed"}


class TestProvider(SignedWebhook):
    __test__ = False  # no test, whatever its name

    def first_reference(self, payment_id: UUID) -> str:
        return f"test_{payment_id}"

    def page(self, payment: Payment) -> dict[str, Any]:
        return {**super().page(payment), "simulate": f"/api/payments/{payment.id}/simulate"}


def simulated(
    payment: Payment, outcome: EventKind, amount_minor: int | None, currency: str | None, secret: str, now_s: int
) -> tuple[str, bytes]:
    """Header and body of what such a provider would send."""
    body = msgspec.json.encode(
        {
            "id": f"evt_{new_id()}",
            "type": _TYPES[outcome],
            "data": {
                "object": {
                    "id": payment.reference,
                    "amount_received": amount_minor,
                    "currency": currency,
                    "metadata": {"checkout_id": str(payment.checkout_id)},
                }
            },
        }
    )
    return sign(secret, now_s, body), body
