"""The keys that sign an organization's tickets. A private key is read here, used here, and goes nowhere else."""

import secrets
from datetime import datetime
from uuid import UUID

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from holdfast.store.postgres.database import Transaction

CURRENT = "SELECT id, private_key FROM ticket_keys WHERE organization_id = $1 AND retired_at IS NULL"
# Whoever comes second waits for the first, and finds its key.
INSERT = """
INSERT INTO ticket_keys (organization_id, id, private_key, public_key, created_at)
VALUES ($1, $2, $3, $4, holdfast_now()) ON CONFLICT DO NOTHING
"""
RETIRE = (
    "UPDATE ticket_keys SET retired_at = holdfast_now() WHERE organization_id = $1 AND retired_at IS NULL RETURNING id"
)
PUBLIC = """
SELECT id, public_key, created_at, retired_at FROM ticket_keys WHERE organization_id = $1 ORDER BY created_at, id
"""
FIND_PUBLIC = "SELECT public_key FROM ticket_keys WHERE organization_id = $1 AND id = $2"


class TicketSigner:
    """Signs with the organization's current key."""

    __slots__ = ("_key", "key_id")

    def __init__(self, key_id: str, private_key: bytes) -> None:
        self.key_id = key_id
        self._key = Ed25519PrivateKey.from_private_bytes(private_key)

    def sign(self, message: bytes) -> bytes:
        return self._key.sign(message)


class PublicKey(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    public_key: bytes
    created_at: datetime
    retired_at: datetime | None


async def ticket_signer(tx: Transaction, organization_id: UUID) -> TicketSigner:
    """Makes the first key where there is none yet."""
    row = await tx.fetchrow(CURRENT, organization_id)
    while row is None:
        await _add_key(tx, organization_id)
        row = await tx.fetchrow(CURRENT, organization_id)
    return TicketSigner(row["id"], row["private_key"])


async def rotate_key(tx: Transaction, organization_id: UUID) -> tuple[str | None, str]:
    """A new key signs from here on. The ids of the old one, if there was one, and of the new one."""
    retired: str | None = await tx.fetchval(RETIRE, organization_id)
    signer = await ticket_signer(tx, organization_id)
    return retired, signer.key_id


async def public_keys(tx: Transaction, organization_id: UUID) -> list[PublicKey]:
    """All there ever were: what they signed stays good."""
    return [PublicKey(**row) for row in await tx.fetch(PUBLIC, organization_id)]


async def find_public_key(tx: Transaction, organization_id: UUID, key_id: str) -> bytes | None:
    found: bytes | None = await tx.fetchval(FIND_PUBLIC, organization_id, key_id)
    return found


async def _add_key(tx: Transaction, organization_id: UUID) -> None:
    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes_raw()
    await tx.execute(INSERT, organization_id, secrets.token_urlsafe(6), key.private_bytes_raw(), public)
