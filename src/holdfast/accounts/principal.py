"""Who asks: the verified credential behind a call, and what every call carries along."""

from enum import StrEnum
from uuid import UUID

import msgspec

from holdfast.holds.lifecycle import Actor
from holdfast.kernel.errors import Forbidden


class Role(StrEnum):
    CUSTOMER = "customer"
    SCANNER = "scanner"
    ORGANIZER = "organizer"
    ADMIN = "admin"
    SUPERADMIN = "superadmin"


STAFF = frozenset({Role.ORGANIZER, Role.ADMIN, Role.SUPERADMIN})
MANAGERS = frozenset({Role.ADMIN, Role.SUPERADMIN})


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Taken from the credential alone: nothing in a request's body or query can change whose call it is."""

    organization_id: UUID
    tenant_id: UUID | None
    actor: Actor
    role: Role
    subject: str  # names the credential's bearer within the organization: "user:…", "guest:…", "key:…"
    user_id: UUID | None = None  # null for API keys
    tiers: frozenset[str] = frozenset()
    membership_active: bool = False
    guest_event_id: UUID | None = None  # a guest token is good for one event
    scopes: frozenset[str] = frozenset()  # of an API key; "*" for all
    tenant_wide: bool = False  # a tenant's key acting for one of its organizations

    @property
    def is_staff(self) -> bool:
        return self.role in STAFF


class Idempotency(msgspec.Struct, frozen=True):
    key: str
    request_hash: bytes


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One request as the services see it."""

    principal: Principal
    ip: str | None = None
    user_agent: str | None = None
    request_id: str | None = None
    idempotency: Idempotency | None = None

    @property
    def organization_id(self) -> UUID:
        return self.principal.organization_id


def require_staff(call: Call) -> None:
    if call.principal.role not in STAFF:
        raise Forbidden("This needs an organiser's credential.", required_role="organizer")


def require_manager(call: Call) -> None:
    if call.principal.role not in MANAGERS:
        raise Forbidden("This needs an administrator's credential.", required_role="admin")
