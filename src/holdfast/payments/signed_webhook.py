"""A provider that sends signed messages, in the form that Stripe made common.

The header `Stripe-Signature: t=<seconds>,v1=<hex>[,v1=<hex>]` signs `<t>.<body>` with HMAC-SHA256. Several signatures stand
there while the sender replaces its secret; several secrets are tried while the receiver does.
"""

import hashlib
import hmac
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import msgspec

from holdfast.kernel.ids import parse_id
from holdfast.payments.payment import AMOUNT_MAX_MINOR, REFERENCE_CHARS, Payment
from holdfast.payments.provider import EventKind, MessageRefused, ProviderEvent, Unverified

TOLERANCE_S: Final = 300
SIGNATURES_MAX: Final = 10
HEADER_CHARS: Final = 2_000
_KINDS: Final = {
    "payment_intent.succeeded": EventKind.SUCCEEDED,
    "payment_intent.payment_failed": EventKind.FAILED,
}
_SECONDS = re.compile(r"[0-9]{1,12}", re.ASCII)
_HEX = re.compile(r"[0-9a-f]{64}", re.ASCII)
_CURRENCY = re.compile(r"[A-Za-z]{3}", re.ASCII)
_PRINTABLE = re.compile(r"[\x21-\x7e]+", re.ASCII)


class _Metadata(msgspec.Struct, frozen=True):
    checkout_id: str


class _Intent(msgspec.Struct, frozen=True):
    id: str
    metadata: _Metadata
    amount: int | None = None
    amount_received: int | None = None
    currency: str | None = None


class _Data(msgspec.Struct, frozen=True):
    object: _Intent


class _Message(msgspec.Struct, frozen=True):
    id: str
    type: str
    data: _Data


_decoder = msgspec.json.Decoder(_Message)


class SignedWebhook:
    def first_reference(self, payment_id: UUID) -> str:
        return f"holdfast_{payment_id}"

    def page(self, payment: Payment) -> dict[str, Any]:
        """With these the shop's server makes the payment at the provider; its messages then name the checkout."""
        return {
            "amount": payment.amount_minor,
            "currency": payment.currency,
            "metadata": {"checkout_id": str(payment.checkout_id)},
        }

    def read(self, signature_header: str | None, body: bytes) -> Unverified:
        signed_at, signatures = _read_header(signature_header)
        signed = b"%d." % signed_at + body
        return Unverified(
            event=_read_body(body),
            signed_at=signed_at,
            signatures=signatures,
            signed=signed,
            digest=hashlib.sha256(signed).digest(),
        )

    def verify(self, message: Unverified, secrets: Sequence[str], now: datetime) -> None:
        # Every pair is compared, whatever was found before: how long it takes tells nothing.
        genuine = False
        for secret in secrets:
            expected = hmac.digest(secret.encode(), message.signed, hashlib.sha256)
            for given in message.signatures:
                genuine |= hmac.compare_digest(expected, given)
        if not genuine:
            raise MessageRefused("forged")
        if abs(now.timestamp() - message.signed_at) > TOLERANCE_S:
            raise MessageRefused("stale")


def sign(secret: str, signed_at: int, body: bytes) -> str:
    """The header of a message."""
    made = hmac.digest(secret.encode(), b"%d." % signed_at + body, hashlib.sha256)
    return f"t={signed_at},v1={made.hex()}"


def _read_header(header: str | None) -> tuple[int, tuple[bytes, ...]]:
    if header is None:
        raise MessageRefused("unsigned")
    if len(header) > HEADER_CHARS:
        raise MessageRefused("bad_header")
    times: list[str] = []
    signatures: list[bytes] = []
    for part in header.split(","):
        name, _, value = part.strip().partition("=")
        if name == "t":
            times.append(value)
        elif name == "v1":
            if not _HEX.fullmatch(value):
                raise MessageRefused("bad_header")
            signatures.append(bytes.fromhex(value))
    if len(times) != 1 or not _SECONDS.fullmatch(times[0]) or not 1 <= len(signatures) <= SIGNATURES_MAX:
        raise MessageRefused("bad_header")
    # Signed is the number as it was written: one with leading zeros would be another text.
    if str(int(times[0])) != times[0]:
        raise MessageRefused("bad_header")
    return int(times[0]), tuple(signatures)


def _read_body(body: bytes) -> ProviderEvent:
    try:
        said = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise MessageRefused("malformed") from None
    intent = said.data.object
    checkout_id = parse_id(intent.metadata.checkout_id)
    if checkout_id is None or not _is_name(said.id) or not _is_name(intent.id):
        raise MessageRefused("malformed")
    kind = _KINDS.get(said.type, EventKind.OTHER)
    amount = intent.amount if intent.amount_received is None else intent.amount_received
    if kind is EventKind.SUCCEEDED:
        if amount is None or not 0 <= amount <= AMOUNT_MAX_MINOR:
            raise MessageRefused("malformed")
        if intent.currency is None or not _CURRENCY.fullmatch(intent.currency):
            raise MessageRefused("malformed")
    return ProviderEvent(
        message_id=said.id,
        kind=kind,
        checkout_id=checkout_id,
        reference=intent.id,
        amount_minor=amount if kind is EventKind.SUCCEEDED else None,
        currency=intent.currency.upper() if kind is EventKind.SUCCEEDED and intent.currency else None,
    )


def _is_name(text: str) -> bool:
    return len(text) <= REFERENCE_CHARS and _PRINTABLE.fullmatch(text) is not None
