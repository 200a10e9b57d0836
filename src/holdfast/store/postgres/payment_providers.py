"""An organization's payment providers and their secrets."""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from holdfast.payments.provider import ProviderKind, ProviderRecord
from holdfast.store.postgres.database import Row, Transaction

_COLUMNS = "v.name, v.kind, v.enabled, v.previous_until, v.created_at, v.updated_at"
LIST = f"SELECT {_COLUMNS} FROM payment_providers v WHERE v.organization_id = $1 ORDER BY v.name"
FIND = f"SELECT {_COLUMNS} FROM payment_providers v WHERE v.organization_id = $1 AND v.name = $2"
INSERT = """
INSERT INTO payment_providers (organization_id, name, kind, secret, enabled, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, holdfast_now(), holdfast_now())
"""
CHANGE = """
UPDATE payment_providers SET enabled = $3, updated_at = holdfast_now() WHERE organization_id = $1 AND name = $2
"""
# The one before stays good for a while: what was signed with it is on its way.
ROTATE = """
UPDATE payment_providers SET secret = $3, previous_secret = secret,
  previous_until = holdfast_now() + make_interval(secs => $4), updated_at = holdfast_now()
WHERE organization_id = $1 AND name = $2
"""
DELETE = "DELETE FROM payment_providers WHERE organization_id = $1 AND name = $2"
SECRETS = """
SELECT v.kind, v.secret, CASE WHEN v.previous_until > holdfast_now() THEN v.previous_secret END AS previous,
  holdfast_now() AS now
FROM payment_providers v WHERE v.organization_id = $1 AND v.name = $2
"""
UNDER_WAY = """
SELECT count(*) FROM payments p
JOIN checkouts c ON c.organization_id = $1 AND c.id = p.checkout_id
WHERE p.organization_id = $1 AND p.provider = $2 AND p.status = 'pending' AND c.status IN ('open', 'paying')
  AND c.expires_at > holdfast_now()
"""


class Secrets(msgspec.Struct, frozen=True):
    kind: ProviderKind
    secrets: tuple[str, ...]
    """The current one first."""
    now: datetime


def _provider(row: Row) -> ProviderRecord:
    fields: dict[str, Any] = dict(row)
    until = fields.pop("previous_until")
    return ProviderRecord(**{**fields, "kind": ProviderKind(row["kind"]), "old_secret_until": until})


async def list_providers(tx: Transaction, organization_id: UUID) -> list[ProviderRecord]:
    return [_provider(row) for row in await tx.fetch(LIST, organization_id)]


async def find_provider(tx: Transaction, organization_id: UUID, name: str) -> ProviderRecord | None:
    row = await tx.fetchrow(FIND, organization_id, name)
    return None if row is None else _provider(row)


async def insert_provider(
    tx: Transaction, organization_id: UUID, name: str, kind: ProviderKind, secret: str, enabled: bool
) -> None:
    await tx.execute(INSERT, organization_id, name, kind.value, secret, enabled)


async def enable_provider(tx: Transaction, organization_id: UUID, name: str, enabled: bool) -> None:
    await tx.execute(CHANGE, organization_id, name, enabled)


async def rotate_secret(tx: Transaction, organization_id: UUID, name: str, secret: str, overlap_s: float) -> None:
    await tx.execute(ROTATE, organization_id, name, secret, overlap_s)


async def delete_provider(tx: Transaction, organization_id: UUID, name: str) -> bool:
    return await tx.execute(DELETE, organization_id, name) == "DELETE 1"


async def find_secrets(tx: Transaction, organization_id: UUID, name: str) -> Secrets | None:
    row = await tx.fetchrow(SECRETS, organization_id, name)
    if row is None:
        return None
    secrets = (row["secret"],) if row["previous"] is None else (row["secret"], row["previous"])
    return Secrets(ProviderKind(row["kind"]), secrets, row["now"])


async def payments_under_way(tx: Transaction, organization_id: UUID, name: str) -> int:
    found: int = await tx.fetchval(UNDER_WAY, organization_id, name)
    return found
