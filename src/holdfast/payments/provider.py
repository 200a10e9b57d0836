"""The port to whoever takes the money: a payment is begun with it, and its word is read when the money is there."""

import re
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID

import msgspec

from holdfast.payments.payment import Payment

_NAME = re.compile(r"[a-z0-9_-]{1,40}", re.ASCII)


def is_provider_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


class ProviderKind(StrEnum):
    WEBHOOK = "webhook"
    TEST = "test"


class ProviderRecord(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    kind: ProviderKind
    enabled: bool
    """A disabled one begins no payments; its word still counts, for money may be on its way."""
    old_secret_until: datetime | None
    """Until then the secret before this one is accepted too."""
    created_at: datetime
    updated_at: datetime


class ProviderWithSecret(ProviderRecord, frozen=True, kw_only=True):
    secret: str | None
    """Where it is new: it cannot be read again."""


class EventKind(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    OTHER = "other"
    """Genuine, and of no interest here."""


class ProviderEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider says of one payment."""

    message_id: str
    kind: EventKind
    checkout_id: UUID
    reference: str
    amount_minor: int | None = None
    currency: str | None = None


class MessageRefused(Exception):
    """Why a message is not believed: for log, metric and audit, never for the sender."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Unverified(msgspec.Struct, frozen=True, kw_only=True):
    """A message that could be read. Whose secret it must be signed with follows from the checkout that it names."""

    event: ProviderEvent
    signed_at: int
    signatures: tuple[bytes, ...]
    signed: bytes
    """What the signatures are over."""
    digest: bytes
    """The same for the same bytes at the same time, whichever secrets signed them."""


class Provider(Protocol):
    def first_reference(self, payment_id: UUID) -> str:
        """What the payment is called here until the provider has a name of its own for it."""
        ...

    def page(self, payment: Payment) -> dict[str, Any]:
        """What the buyer's page needs to go on."""
        ...

    def read(self, signature_header: str | None, body: bytes) -> Unverified:
        """Raises MessageRefused."""
        ...

    def verify(self, message: Unverified, secrets: Sequence[str], now: datetime) -> None:
        """Raises MessageRefused."""
        ...
