"""What is kept of tenants, organizations, their people and their keys, as the services and the store pass it on."""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from holdfast.accounts.principal import Call, Role
from holdfast.holds.lifecycle import Actor


class Organization(msgspec.Struct, frozen=True, kw_only=True):
    organization_id: UUID
    tenant_id: UUID
    name: str


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A user and their one membership of the organization."""

    id: UUID
    email: str | None
    display_name: str | None
    role: Role
    tiers: tuple[str, ...]
    active: bool
    created_at: datetime
    deactivated_at: datetime | None


class MemberChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fields left out stay as they are."""

    email: str | UnsetType | None = UNSET
    display_name: str | UnsetType | None = UNSET
    role: Role | UnsetType = UNSET
    tiers: tuple[str, ...] | UnsetType = UNSET
    active: bool | UnsetType = UNSET
    deactivated: bool | UnsetType = UNSET


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key without its secret, which is shown once and kept nowhere."""

    id: UUID
    name: str
    prefix: str
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


class NewApiKey(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    name: str
    prefix: str
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    secret: str
    """The whole key, as it is to be sent in X-API-Key. It cannot be shown again."""


class Bootstrap(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a new organization needs to start with; the secrets are in no other place."""

    tenant_id: UUID
    organization_id: UUID
    admin_user_id: UUID
    admin_token: str
    api_key: str
    tenant_api_key: str | None
    """None where the organization joined a tenant that was there already."""


class IssuedToken(msgspec.Struct, frozen=True, kw_only=True):
    user_id: UUID
    token: str
    expires_at: datetime


class GuestToken(msgspec.Struct, frozen=True, kw_only=True):
    user_id: UUID
    event_id: UUID
    organization_id: UUID
    token: str
    expires_at: datetime
    expires_in_seconds: int


class ConfigAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A layer of hold types as it was stored, and what all layers together come to."""

    stored: dict[str, Any]
    resolved: dict[str, Any]
    layers: dict[str, Any]
    """The same shape as `resolved`, with the layer that each field came from in the field's place."""


class PolicyAnswer(msgspec.Struct, frozen=True, kw_only=True):
    stored: dict[str, Any] | None
    """Null: the organization has stated no policy."""
    effective: dict[str, Any]


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a change came from, as the audit keeps it."""

    actor: Actor
    subject: str
    user_id: UUID | None = None
    ip: str | None = None
    user_agent: str | None = None
    request_id: str | None = None


OPERATOR = Origin(actor=Actor.SYSTEM, subject="operator")
"""Whoever can run commands on the machine itself."""


def origin_of(call: Call) -> Origin:
    return Origin(
        actor=call.principal.actor,
        subject=call.principal.subject,
        user_id=call.principal.user_id,
        ip=call.ip,
        user_agent=call.user_agent,
        request_id=call.request_id,
    )
