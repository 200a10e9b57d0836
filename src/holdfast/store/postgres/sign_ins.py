"""Passwords, signed-in browsers, and attempts to sign in."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from uuid import UUID

import msgspec

from holdfast.accounts.principal import Role
from holdfast.accounts.records import Member, Origin
from holdfast.accounts.sign_in import (
    FAILURE_WINDOW_S,
    FAILURES_MAX,
    KEPT_A_USER,
    LIFE_S,
    ORGANIZATIONS_TRIED,
    UNUSED_LIFE_S,
    Candidate,
    CookieText,
    SignIn,
    SignInStanding,
)
from holdfast.kernel.ids import new_id
from holdfast.store.postgres.database import Transaction

SETTLED_WITHIN_S = 60.0
"""An attempt that is pending for longer was cut off by a crash, and counts as failed."""


# Who may be signing in ------------------------------------------------------------------------------------------------
# Across organizations, as the engine's role, which sees these three columns of users with a password.
FIND_BY_EMAIL = """
SELECT organization_id, id FROM users
WHERE sign_in_email = $1 AND ($2::uuid IS NULL OR organization_id = $2) ORDER BY organization_id LIMIT $3
"""
FIND_CANDIDATE = """
SELECT o.name AS organization_name, o.tenant_id, u.id, u.email, u.display_name, u.created_at, u.deactivated_at,
       u.password_hash, coalesce(m.role, 'customer') AS role, coalesce(m.tiers, '{}') AS tiers,
       coalesce(m.active, false) AS active, m.role IS NOT NULL AS has_membership
FROM organizations o
JOIN users u ON u.organization_id = o.organization_id AND u.id = $2
LEFT JOIN memberships m ON m.organization_id = o.organization_id AND m.user_id = u.id
WHERE o.organization_id = $1
"""


async def folded(tx: Transaction, email: str) -> str:
    text: str = await tx.fetchval("SELECT lower($1::text)", email)
    return text


async def find_by_email(engine_tx: Transaction, email: str, organization_id: UUID | None) -> list[tuple[UUID, UUID]]:
    """Organizations and users; `email` as `folded` gives it. Looks across organizations: in an engine's transaction."""
    rows = await engine_tx.fetch(FIND_BY_EMAIL, email, organization_id, ORGANIZATIONS_TRIED)
    return [(row["organization_id"], row["id"]) for row in rows]


async def find_user_by_email(tx: Transaction, organization_id: UUID, email: str) -> UUID | None:
    """With a password or without."""
    found: UUID | None = await tx.fetchval(
        "SELECT id FROM users WHERE organization_id = $1 AND lower(email) = lower($2)", organization_id, email
    )
    return found


async def find_candidate(tx: Transaction, organization_id: UUID, user_id: UUID) -> Candidate | None:
    row = await tx.fetchrow(FIND_CANDIDATE, organization_id, user_id)
    if row is None:
        return None
    return Candidate(
        organization_id=organization_id,
        organization_name=row["organization_name"],
        tenant_id=row["tenant_id"],
        member=Member(
            id=row["id"],
            email=row["email"],
            display_name=row["display_name"],
            role=Role(row["role"]),
            tiers=tuple(row["tiers"]),
            active=row["active"],
            created_at=row["created_at"],
            deactivated_at=row["deactivated_at"],
        ),
        has_membership=row["has_membership"],
        password_hash=row["password_hash"],
    )


# Only where the password is still the one that `$4` was verified with.
REPLACE_HASH = """
UPDATE users SET password_hash = $3, sign_in_email = lower(email)
WHERE organization_id = $1 AND id = $2 AND password_hash IS NOT DISTINCT FROM $4
"""


async def set_password(tx: Transaction, organization_id: UUID, user_id: UUID, new: str, before: str | None) -> bool:
    return await tx.execute(REPLACE_HASH, organization_id, user_id, new, before) == "UPDATE 1"


# Signed-in browsers ---------------------------------------------------------------------------------------------------
# Waits for whoever is changing the password at this moment, and then finds that it is another.
INSERT = """
INSERT INTO sign_ins (organization_id, id, user_id, secret_hash, created_at, last_used_at, ip, user_agent)
SELECT u.organization_id, $3, u.id, $4, t.now, t.now, $6, $7 FROM users u, (SELECT holdfast_now() AS now) t
WHERE u.organization_id = $1 AND u.id = $2 AND u.password_hash = $5 AND u.deactivated_at IS NULL
FOR NO KEY UPDATE OF u
"""
END_OLDEST = """
DELETE FROM sign_ins WHERE organization_id = $1 AND user_id = $2 AND id IN (
  SELECT s.id FROM sign_ins s WHERE s.organization_id = $1 AND s.user_id = $2
  ORDER BY s.created_at DESC, s.id DESC OFFSET $3)
"""
_REMAINING = f"""
extract(epoch FROM least(s.last_used_at + interval '{UNUSED_LIFE_S} s', s.created_at + interval '{LIFE_S} s')
  - holdfast_now())::float8
"""
FIND = f"""
SELECT s.id, s.user_id, o.tenant_id, m.role, coalesce(m.tiers, '{{}}') AS tiers, coalesce(m.active, false) AS active,
       u.deactivated_at IS NOT NULL AS deactivated, {_REMAINING} AS remaining_s,
       extract(epoch FROM holdfast_now() - s.last_used_at)::float8 AS untouched_s
FROM sign_ins s
JOIN organizations o ON o.organization_id = s.organization_id
JOIN users u ON u.organization_id = s.organization_id AND u.id = s.user_id
LEFT JOIN memberships m ON m.organization_id = s.organization_id AND m.user_id = s.user_id
WHERE s.organization_id = $1 AND s.secret_hash = $2
"""
TOUCH = "UPDATE sign_ins SET last_used_at = holdfast_now() WHERE organization_id = $1 AND id = $2"
LIST = f"""
SELECT s.id, s.created_at, s.last_used_at, s.ip, s.user_agent, s.secret_hash IS NOT DISTINCT FROM $3 AS current
FROM sign_ins s WHERE s.organization_id = $1 AND s.user_id = $2 AND {_REMAINING} > 0
ORDER BY s.created_at DESC, s.id DESC
"""
END_ALL = """
DELETE FROM sign_ins WHERE organization_id = $1 AND user_id = $2 AND secret_hash IS DISTINCT FROM $3 RETURNING id
"""
FORGET = f"DELETE FROM sign_ins s WHERE s.organization_id = $1 AND {_REMAINING} <= 0"


async def insert_sign_in(
    tx: Transaction, user_id: UUID, cookie: CookieText, password_hash: str, origin: Origin
) -> UUID | None:
    """None: the password has been changed since it was verified."""
    organization_id, sign_in_id = cookie.organization_id, new_id()
    done = await tx.execute(
        INSERT,
        organization_id,
        user_id,
        sign_in_id,
        cookie.secret_hash,
        password_hash,
        origin.ip,
        origin.user_agent,
    )
    if done != "INSERT 0 1":
        return None
    await tx.execute(END_OLDEST, organization_id, user_id, KEPT_A_USER)
    return sign_in_id


async def find_sign_in(tx: Transaction, cookie: CookieText) -> SignInStanding | None:
    row = await tx.fetchrow(FIND, cookie.organization_id, cookie.secret_hash)
    if row is None:
        return None
    values = dict(row)
    role = None if values["role"] is None else Role(values["role"])
    return SignInStanding(**{**values, "role": role, "tiers": frozenset(values["tiers"])})


async def touch_sign_in(tx: Transaction, organization_id: UUID, sign_in_id: UUID) -> None:
    await tx.execute(TOUCH, organization_id, sign_in_id)


async def list_sign_ins(
    tx: Transaction, organization_id: UUID, user_id: UUID, current: CookieText | None
) -> list[SignIn]:
    rows = await tx.fetch(LIST, organization_id, user_id, None if current is None else current.secret_hash)
    return [SignIn(**dict(row)) for row in rows]


async def end_sign_in(tx: Transaction, cookie: CookieText) -> UUID | None:
    """Whose it was; None where there is none."""
    found: UUID | None = await tx.fetchval(
        "DELETE FROM sign_ins WHERE organization_id = $1 AND secret_hash = $2 RETURNING user_id",
        cookie.organization_id,
        cookie.secret_hash,
    )
    return found


async def end_sign_ins(tx: Transaction, organization_id: UUID, user_id: UUID, but: CookieText | None = None) -> int:
    """All of a user, but the one that asks. Answers how many there were."""
    return len(await tx.fetch(END_ALL, organization_id, user_id, None if but is None else but.secret_hash))


async def forget_sign_ins(tx: Transaction, organization_id: UUID) -> None:
    await tx.execute(FORGET, organization_id)


# Attempts -------------------------------------------------------------------------------------------------------------
class Entry(StrEnum):
    ENTERED = "entered"
    FULL = "full"
    """Too many have failed."""
    BUSY = "busy"
    """As many as may fail are being looked at: each may yet succeed."""


class Attempt(msgspec.Struct, frozen=True):
    subjects: tuple[bytes, ...]
    """Sorted: rows are locked in one order."""
    at: datetime


class Entered(msgspec.Struct, frozen=True):
    entry: Entry
    retry_after_s: float = 0.0


_WINDOW = f"interval '{FAILURE_WINDOW_S} s'"
LOCK = "SELECT subject FROM sign_in_failures WHERE subject = $1 FOR UPDATE"
OPEN = "INSERT INTO sign_in_failures (subject, failed_at, pending) VALUES ($1, '{}', '{}') ON CONFLICT DO NOTHING"
COUNT = f"""
SELECT count(*) FILTER (WHERE a.failed) AS failed, count(*) AS tried,
       extract(epoch FROM min(a.at) FILTER (WHERE a.failed) + {_WINDOW} - $2::timestamptz)::float8 AS retry_after_s
FROM sign_in_failures f, LATERAL (
  SELECT t AS at, true AS failed FROM unnest(f.failed_at) t
  UNION ALL SELECT t, t <= $2::timestamptz - make_interval(secs => {SETTLED_WITHIN_S}) FROM unnest(f.pending) t) a
WHERE f.subject = $1 AND a.at > $2::timestamptz - {_WINDOW}
"""
ENTER = "UPDATE sign_in_failures SET pending = pending || $2::timestamptz WHERE subject = $1"
SETTLE = f"""
UPDATE sign_in_failures SET pending = array_remove(pending, $2::timestamptz),
  failed_at = ARRAY(SELECT t FROM unnest(failed_at) t WHERE t > $2::timestamptz - {_WINDOW})
    || CASE WHEN $3 THEN ARRAY[$2::timestamptz] ELSE '{{}}' END
WHERE subject = $1
"""
FORGET_FAILURES = f"""
DELETE FROM sign_in_failures WHERE NOT EXISTS (
  SELECT FROM unnest(failed_at || pending) t WHERE t > holdfast_now() - {_WINDOW})
"""


async def enter_attempt(tx: Transaction, attempt: Attempt) -> Entered:
    """Counts the attempt as pending, unless one of its subjects has no room; then the transaction is to be given up."""
    for subject in attempt.subjects:
        await tx.execute(OPEN, subject)
        await tx.fetchval(LOCK, subject)
        row = await tx.fetchrow(COUNT, subject, attempt.at)
        assert row is not None
        if row["failed"] >= FAILURES_MAX:
            return Entered(Entry.FULL, row["retry_after_s"])
        if row["tried"] >= FAILURES_MAX:
            return Entered(Entry.BUSY, 1.0)
        await tx.execute(ENTER, subject, attempt.at)
    return Entered(Entry.ENTERED)


async def settle_attempt(tx: Transaction, attempt: Attempt, *, failed: bool) -> None:
    for subject in attempt.subjects:
        await tx.execute(SETTLE, subject, attempt.at, failed)


async def forget_failures(tx: Transaction) -> None:
    await tx.execute(FORGET_FAILURES)


def attempt_of(subjects: Sequence[bytes], at: datetime) -> Attempt:
    return Attempt(tuple(sorted(set(subjects))), at)
