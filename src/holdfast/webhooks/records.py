"""Endpoints and deliveries as they are shown."""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType


class DeliveryStatus(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    url: str
    description: str | None
    kinds: list[str]
    """What it listens to; empty: all."""
    event_id: UUID | None
    """Only of this event; null: of all."""
    enabled: bool
    disabled_reason: str | None
    """Why it was disabled, where nobody did it."""
    failing_since: datetime | None
    old_secret_until: datetime | None
    """So long the secret before the last rotation signs too."""
    created_at: datetime
    updated_at: datetime


class EndpointWithSecret(Endpoint, frozen=True, kw_only=True):
    secret: str
    """Shown here and never again."""


class NewEndpoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    url: str
    kinds: list[str] | None = None
    """What to be told of; left out or empty: everything."""
    description: str | None = None
    enabled: bool = True
    event_id: UUID | None = None


class EndpointChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fields left out stay as they are."""

    url: str | UnsetType = UNSET
    kinds: list[str] | UnsetType | None = UNSET
    description: str | UnsetType | None = UNSET
    enabled: bool | UnsetType = UNSET
    event_id: UUID | UnsetType | None = UNSET


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    n: int
    at: datetime
    duration_ms: int
    status_code: int | None
    error: str | None
    answer: str | None
    """The first kilobyte of what the endpoint answered."""


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    webhook_id: str
    """The header of the same name: the same at every attempt, and at a replay."""
    endpoint_id: UUID
    kind: str
    event_id: UUID | None
    status: DeliveryStatus
    attempts: int
    status_code: int | None
    """Of the last attempt."""
    error: str | None
    next_attempt_at: datetime | None
    created_at: datetime
    ended_at: datetime | None


class DeliveryInFull(Delivery, frozen=True, kw_only=True):
    body: msgspec.Raw
    log: list[Attempt]


class Replayed(msgspec.Struct, frozen=True):
    replayed: int
    remaining: int
    """Still failed, because there were too many for one call: ask again."""


def webhook_id(delivery_id: UUID) -> str:
    return f"msg_{delivery_id.hex}"
