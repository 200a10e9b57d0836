"""Once only: a write that names an Idempotency-Key happens once, and every repetition gets the first answer.

The answer is stored by the transaction that does the work: both happened, or neither. A refusal does no work and stores
nothing, so a refused request may be tried again with the same key.
"""

import hashlib
from collections.abc import Awaitable, Callable
from typing import TypeVar
from uuid import UUID

import msgspec

from holdfast.accounts.principal import Call
from holdfast.kernel.errors import IdempotencyInFlight, IdempotencyMismatch
from holdfast.store.postgres.database import Database, Transaction

T = TypeVar("T")

KEPT_HOURS = 24

FIND = """
SELECT request_hash, answer FROM idempotency_keys
WHERE organization_id = $1 AND principal = $2 AND key = $3
  AND created_at > holdfast_now() - make_interval(hours => $4)
"""
FORGET = "DELETE FROM idempotency_keys WHERE organization_id = $1 AND principal = $2 AND key = $3"
REMEMBER = """
INSERT INTO idempotency_keys (organization_id, principal, key, request_hash, status, answer, created_at)
VALUES ($1, $2, $3, $4, 200, $5, holdfast_now())
"""
FORGET_OLD = """
DELETE FROM idempotency_keys WHERE organization_id = $1 AND created_at < holdfast_now() - make_interval(hours => $2)
"""
EVERY_ORGANIZATION = "SELECT organization_id FROM organizations"


def lock_key(*parts: object) -> int:
    """A 64-bit key for an advisory lock. A collision only makes two strangers wait for each other."""
    digest = hashlib.blake2b("\x00".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


async def run_once(
    database: Database, call: Call, work: Callable[[Transaction], Awaitable[T]], result_type: type[T]
) -> T:
    """Runs `work` in a transaction of the call's organization: once for its Idempotency-Key, if it has one."""
    once = call.idempotency
    if once is None:
        return await database.run(call.organization_id, work)
    name = (call.organization_id, call.principal.subject, once.key)

    async def guarded(tx: Transaction) -> T:
        if not await tx.fetchval("SELECT pg_try_advisory_xact_lock($1)", lock_key("idempotency", *name)):
            raise IdempotencyInFlight("A request with this Idempotency-Key is still being worked on.")
        known = await tx.fetchrow(FIND, *name, KEPT_HOURS)
        if known is not None:
            if known["request_hash"] != once.request_hash:
                raise IdempotencyMismatch("This Idempotency-Key was used before with another request.")
            return msgspec.json.decode(known["answer"], type=result_type)
        result = await work(tx)
        await tx.execute(FORGET, *name)  # one older than its 24 hours
        await tx.execute(REMEMBER, *name, once.request_hash, msgspec.json.encode(result))
        return result

    return await database.run(call.organization_id, guarded)


async def known_answer(database: Database, call: Call, result_type: type[T]) -> T | None:
    """What the call's Idempotency-Key was answered with before. For work in several transactions, which ends in `run_once`:
    asked first, so that nothing is done for a key that was used with another request."""
    once = call.idempotency
    if once is None:
        return None
    async with database.transaction(call.organization_id) as tx:
        known = await tx.fetchrow(FIND, call.organization_id, call.principal.subject, once.key, KEPT_HOURS)
    if known is None:
        return None
    if known["request_hash"] != once.request_hash:
        raise IdempotencyMismatch("This Idempotency-Key was used before with another request.")
    return msgspec.json.decode(known["answer"], type=result_type)


async def every_organization(tx: Transaction) -> list[UUID]:
    """As the engine's role, which sees their ids and nothing else."""
    return [row["organization_id"] for row in await tx.fetch(EVERY_ORGANIZATION)]


async def forget_old_keys(tx: Transaction, organization_id: UUID) -> None:
    await tx.execute(FORGET_OLD, organization_id, KEPT_HOURS)
