"""Tenants, organizations, users, memberships, API keys, and the audit of what was changed about them."""

import math
from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from holdfast.accounts.credentials import ApiKeyText, secret_hash, shown_prefix
from holdfast.accounts.principal import Role
from holdfast.accounts.records import ApiKey, Member, MemberChange, Organization, Origin
from holdfast.accounts.refusals import EmailTaken, UserExists
from holdfast.accounts.standing import KeyStanding, Standing
from holdfast.kernel.ids import new_id
from holdfast.store.postgres.database import Row, Transaction


# Whose transaction ----------------------------------------------------------------------------------------------
async def enter_organization(tx: Transaction, organization_id: UUID) -> None:
    await tx.fetchval("SELECT set_config('holdfast.organization_id', $1, true)", str(organization_id))


async def enter_tenant(tx: Transaction, tenant_id: UUID) -> None:
    await tx.fetchval("SELECT set_config('holdfast.tenant_id', $1, true)", str(tenant_id))


# Tenants and organizations --------------------------------------------------------------------------------------
async def insert_tenant(tx: Transaction, tenant_id: UUID, name: str) -> None:
    await tx.execute("INSERT INTO tenants (tenant_id, name) VALUES ($1, $2)", tenant_id, name)


async def tenant_exists(tx: Transaction, tenant_id: UUID) -> bool:
    return await tx.fetchval("SELECT 1 FROM tenants WHERE tenant_id = $1", tenant_id) is not None


async def insert_organization(tx: Transaction, organization_id: UUID, tenant_id: UUID, name: str) -> None:
    await tx.execute(
        "INSERT INTO organizations (organization_id, tenant_id, name) VALUES ($1, $2, $3)",
        organization_id,
        tenant_id,
        name,
    )


async def find_organization(tx: Transaction, organization_id: UUID) -> Organization | None:
    row = await tx.fetchrow(
        "SELECT organization_id, tenant_id, name FROM organizations WHERE organization_id = $1",
        organization_id,
    )
    return None if row is None else Organization(**dict(row))


async def organizations_of_tenant(engine_tx: Transaction, tenant_id: UUID) -> list[UUID]:
    """Looks across organizations: in an engine's transaction."""
    rows = await engine_tx.fetch("SELECT organization_id FROM organizations WHERE tenant_id = $1", tenant_id)
    return [row["organization_id"] for row in rows]


async def organization_of_event(engine_tx: Transaction, event_id: UUID) -> UUID | None:
    """Of an event that is on sale. Looks across organizations: in an engine's transaction."""
    found: UUID | None = await engine_tx.fetchval(
        "SELECT organization_id FROM events WHERE id = $1 AND status IN ('published', 'live') LIMIT 1",
        event_id,
    )
    return found


async def organization_config(tx: Transaction, organization_id: UUID) -> str | None:
    found: str | None = await tx.fetchval(
        "SELECT config FROM organizations WHERE organization_id = $1", organization_id
    )
    return found


async def tenant_config(tx: Transaction, tenant_id: UUID) -> str | None:
    found: str | None = await tx.fetchval("SELECT config FROM tenants WHERE tenant_id = $1", tenant_id)
    return found


async def store_organization_config(tx: Transaction, organization_id: UUID, config: str) -> None:
    await tx.execute("UPDATE organizations SET config = $2::jsonb WHERE organization_id = $1", organization_id, config)


TELL_EVENTS_ON_SALE = """
INSERT INTO outbox (organization_id, at, kind, event_id)
SELECT $1, holdfast_now(), $2, e.id FROM events e WHERE e.organization_id = $1 AND e.status IN ('published', 'live')
"""


async def tell_events_on_sale(tx: Transaction, organization_id: UUID, kind: str) -> None:
    """Everybody who watches one of them learns of it."""
    await tx.execute(TELL_EVENTS_ON_SALE, organization_id, kind)


async def store_tenant_config(tx: Transaction, tenant_id: UUID, config: str) -> None:
    await tx.execute("UPDATE tenants SET config = $2::jsonb WHERE tenant_id = $1", tenant_id, config)


async def policy(tx: Transaction, organization_id: UUID) -> str | None:
    """Null where the organization has stated none."""
    found: str | None = await tx.fetchval(
        "SELECT policy FROM organizations WHERE organization_id = $1", organization_id
    )
    return found


async def store_policy(tx: Transaction, organization_id: UUID, stated: str) -> None:
    await tx.execute("UPDATE organizations SET policy = $2::jsonb WHERE organization_id = $1", organization_id, stated)


# Users and memberships ------------------------------------------------------------------------------------------
_MEMBER = """
SELECT u.id, u.email, u.display_name, u.created_at, u.deactivated_at,
       coalesce(m.role, 'customer') AS role, coalesce(m.tiers, '{}') AS tiers, coalesce(m.active, true) AS active
FROM users u
LEFT JOIN memberships m ON m.organization_id = u.organization_id AND m.user_id = u.id
"""


def _member(row: Row) -> Member:
    values = dict(row)
    return Member(**{**values, "role": Role(values["role"]), "tiers": tuple(values["tiers"])})


async def find_member(tx: Transaction, organization_id: UUID, user_id: UUID) -> Member | None:
    row = await tx.fetchrow(
        f"{_MEMBER} WHERE u.organization_id = $1 AND u.id = $2 FOR UPDATE OF u", organization_id, user_id
    )
    return None if row is None else _member(row)


async def list_members(tx: Transaction, organization_id: UUID, after: UUID | None, limit: int) -> list[Member]:
    rows = await tx.fetch(
        f"{_MEMBER} WHERE u.organization_id = $1 AND ($2::uuid IS NULL OR u.id > $2) ORDER BY u.id LIMIT $3",
        organization_id,
        after,
        limit,
    )
    return [_member(row) for row in rows]


async def insert_user(tx: Transaction, organization_id: UUID, member: Member) -> None:
    try:
        await tx.execute(
            "INSERT INTO users (organization_id, id, email, display_name, created_at) VALUES ($1, $2, $3, $4, $5)",
            organization_id,
            member.id,
            member.email,
            member.display_name,
            member.created_at,
        )
    except asyncpg.UniqueViolationError as error:
        raise (EmailTaken() if error.constraint_name == "users_email" else UserExists()) from error


async def store_membership(
    tx: Transaction, organization_id: UUID, user_id: UUID, role: Role, tiers: Iterable[str], active: bool
) -> None:
    await tx.execute(
        """
        INSERT INTO memberships (organization_id, id, user_id, role, tiers, active, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, holdfast_now())
        ON CONFLICT (organization_id, user_id)
        DO UPDATE SET role = excluded.role, tiers = excluded.tiers, active = excluded.active
        """,
        organization_id,
        new_id(),
        user_id,
        role.value,
        sorted(set(tiers)),
        active,
    )


async def change_user(tx: Transaction, organization_id: UUID, user_id: UUID, change: MemberChange) -> None:
    """The fields of the user's own row; the membership is `store_membership`'s."""
    email, name, gone = change.email, change.display_name, change.deactivated
    try:
        await tx.execute(
            """
            UPDATE users SET
              email = CASE WHEN $3 THEN $4 ELSE email END,
              sign_in_email = CASE WHEN password_hash IS NULL THEN NULL WHEN $3 THEN lower($4) ELSE sign_in_email END,
              display_name = CASE WHEN $5 THEN $6 ELSE display_name END,
              deactivated_at = CASE $7::boolean WHEN true THEN coalesce(deactivated_at, holdfast_now())
                                                WHEN false THEN NULL ELSE deactivated_at END
            WHERE organization_id = $1 AND id = $2
            """,
            organization_id,
            user_id,
            email is not msgspec.UNSET,
            None if email is msgspec.UNSET else email,
            name is not msgspec.UNSET,
            None if name is msgspec.UNSET else name,
            None if gone is msgspec.UNSET else gone,
        )
    except asyncpg.UniqueViolationError as error:
        raise EmailTaken() from error


async def standing(tx: Transaction, organization_id: UUID, user_id: UUID) -> Standing | None:
    """None: there is no such organization."""
    row = await tx.fetchrow(
        """
        SELECT o.tenant_id, extract(epoch FROM holdfast_now())::float8 AS now,
               m.role, coalesce(m.tiers, '{}') AS tiers, coalesce(m.active, false) AS active,
               u.deactivated_at IS NOT NULL AS deactivated
        FROM organizations o
        LEFT JOIN users u ON u.organization_id = o.organization_id AND u.id = $2
        LEFT JOIN memberships m ON m.organization_id = o.organization_id AND m.user_id = $2
        WHERE o.organization_id = $1
        """,
        organization_id,
        user_id,
    )
    if row is None:
        return None
    values = dict(row)
    role = None if values["role"] is None else Role(values["role"])
    return Standing(**{**values, "role": role, "tiers": frozenset(values["tiers"])})


# API keys -------------------------------------------------------------------------------------------------------
def _api_key(row: Row, organization_id: UUID) -> ApiKey:
    values = dict(row)
    prefix = shown_prefix(organization_id, values["id"])
    return ApiKey(**{**values, "scopes": tuple(values["scopes"]), "prefix": prefix})


async def insert_api_key(
    tx: Transaction, key: ApiKeyText, name: str, scopes: Iterable[str], expires_at: datetime | None
) -> ApiKey:
    row = await tx.fetchrow(
        "INSERT INTO api_keys (organization_id, id, name, secret_hash, scopes, created_at, expires_at)"
        " VALUES ($1, $2, $3, $4, $5, holdfast_now(), $6)"
        " RETURNING id, name, scopes, created_at, expires_at, revoked_at",
        key.owner_id,
        key.key_id,
        name,
        secret_hash(key.secret),
        list(scopes),
        expires_at,
    )
    assert row is not None
    return _api_key(row, key.owner_id)


async def insert_tenant_api_key(tx: Transaction, key: ApiKeyText, name: str, scopes: Iterable[str]) -> None:
    await tx.execute(
        "INSERT INTO tenant_api_keys (tenant_id, id, name, secret_hash, scopes, created_at)"
        " VALUES ($1, $2, $3, $4, $5, holdfast_now())",
        key.owner_id,
        key.key_id,
        name,
        secret_hash(key.secret),
        list(scopes),
    )


async def list_api_keys(tx: Transaction, organization_id: UUID, after: UUID | None, limit: int) -> list[ApiKey]:
    rows = await tx.fetch(
        "SELECT id, name, scopes, created_at, expires_at, revoked_at FROM api_keys"
        " WHERE organization_id = $1 AND ($2::uuid IS NULL OR id > $2) ORDER BY id LIMIT $3",
        organization_id,
        after,
        limit,
    )
    return [_api_key(row, organization_id) for row in rows]


async def revoke_api_key(tx: Transaction, organization_id: UUID, key_id: UUID) -> bool | None:
    """True: revoked now; False: it was before; None: there is no such key."""
    row = await tx.fetchrow(
        "SELECT revoked_at FROM api_keys WHERE organization_id = $1 AND id = $2 FOR UPDATE",
        organization_id,
        key_id,
    )
    if row is None:
        return None
    if row["revoked_at"] is not None:
        return False
    await tx.execute(
        "UPDATE api_keys SET revoked_at = holdfast_now() WHERE organization_id = $1 AND id = $2",
        organization_id,
        key_id,
    )
    return True


async def key_standing(tx: Transaction, organization_id: UUID, key_id: UUID) -> KeyStanding | None:
    row = await tx.fetchrow(
        """
        SELECT o.tenant_id, k.secret_hash, k.scopes, k.revoked_at IS NOT NULL AS revoked,
               extract(epoch FROM k.expires_at - holdfast_now())::float8 AS remaining_s
        FROM api_keys k JOIN organizations o ON o.organization_id = k.organization_id
        WHERE k.organization_id = $1 AND k.id = $2
        """,
        organization_id,
        key_id,
    )
    return _key_standing(row)


async def tenant_key_standing(tx: Transaction, tenant_id: UUID, key_id: UUID) -> KeyStanding | None:
    row = await tx.fetchrow(
        """
        SELECT k.tenant_id, k.secret_hash, k.scopes, k.revoked_at IS NOT NULL AS revoked,
               extract(epoch FROM k.expires_at - holdfast_now())::float8 AS remaining_s
        FROM tenant_api_keys k WHERE k.tenant_id = $1 AND k.id = $2
        """,
        tenant_id,
        key_id,
    )
    return _key_standing(row)


def _key_standing(row: Row | None) -> KeyStanding | None:
    if row is None:
        return None
    values = dict(row)
    remaining_s = values["remaining_s"]
    if remaining_s is not None and math.isinf(remaining_s):
        remaining_s = None if remaining_s > 0 else 0.0
    return KeyStanding(**{**values, "scopes": frozenset(values["scopes"]), "remaining_s": remaining_s})


# Audit ----------------------------------------------------------------------------------------------------------
async def audit(
    tx: Transaction,
    organization_id: UUID,
    origin: Origin,
    action: str,
    entity_type: str,
    entity_id: UUID | None,
    changes: dict[str, Any],
) -> None:
    """One entry, in the transaction that makes the change."""
    await tx.execute(
        """
        INSERT INTO audit_entries (organization_id, at, action, entity_type, entity_id, actor, user_id, ip, user_agent,
                                   request_id, changes)
        VALUES ($1, holdfast_now(), $2, $3, $4, $5, $6, $7, $8, $9, $10::jsonb)
        """,
        organization_id,
        action,
        entity_type,
        entity_id,
        origin.actor.value,
        origin.user_id,
        origin.ip,
        origin.user_agent,
        origin.request_id,
        msgspec.json.encode({"by": origin.subject, **changes}).decode(),
    )
