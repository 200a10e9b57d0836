"""A signed-in browser: its cookie, the token that its own pages prove themselves with, and who it speaks for. Pure.

The cookie is `hfs_<organization>_<secret>`: where to look it up is part of its text, so no query crosses organizations.
The token against forged requests (CSRF) is derived from the secret: every process can say it, and nobody can get from it
back to the cookie.
"""

import hashlib
import hmac
import re
import secrets
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from holdfast.accounts.credentials import secret_hash, secrets_text
from holdfast.accounts.principal import STAFF, Principal, Role
from holdfast.accounts.records import Member
from holdfast.holds.lifecycle import Actor
from holdfast.kernel.errors import Unauthorized

UNUSED_LIFE_S: Final = 12 * 3600
LIFE_S: Final = 7 * 86_400
TOUCHED_AGAIN_S: Final = 60
"""That a sign-in is used is written down once a minute."""
FAILURES_MAX: Final = 10
FAILURE_WINDOW_S: Final = 15 * 60
KEPT_A_USER: Final = 50
"""Browsers that one person is signed in with; one more ends the oldest."""
ORGANIZATIONS_TRIED: Final = 8
"""With one address in more organizations than this, a sign-in must name its organization."""

MAY_SIGN_IN: Final = frozenset(Role) - {Role.CUSTOMER}

_COOKIE: Final = re.compile(r"hfs_([0-9a-f]{32})_([A-Za-z0-9_-]{43})")


class CookieText(msgspec.Struct, frozen=True):
    organization_id: UUID
    secret: str

    @property
    def text(self) -> str:
        return f"hfs_{self.organization_id.hex}_{self.secret}"

    @property
    def secret_hash(self) -> bytes:
        return secret_hash(self.secret)

    @property
    def csrf_token(self) -> str:
        return secrets_text(hmac.new(self.secret.encode(), b"csrf", hashlib.sha256).digest())

    def csrf_matches(self, said: bytes) -> bool:
        """In constant time."""
        return hmac.compare_digest(self.csrf_token.encode(), said)


def new_cookie(organization_id: UUID) -> CookieText:
    return CookieText(organization_id, secrets_text(secrets.token_bytes(32)))


def parse_cookie(text: str) -> CookieText | None:
    match = _COOKIE.fullmatch(text)
    return None if match is None else CookieText(UUID(match[1]), match[2])


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who may be signing in, as they stand now."""

    organization_id: UUID
    organization_name: str
    tenant_id: UUID
    member: Member
    has_membership: bool
    password_hash: str | None

    @property
    def may_sign_in(self) -> bool:
        return _good(self.member.role, self.has_membership and self.member.active, self.member.deactivated_at is None)


class SignInStanding(msgspec.Struct, frozen=True, kw_only=True):
    """How the bearer of a cookie stands now."""

    id: UUID
    user_id: UUID
    tenant_id: UUID
    role: Role | None
    tiers: frozenset[str]
    active: bool
    deactivated: bool
    remaining_s: float
    untouched_s: float


class SignIn(msgspec.Struct, frozen=True, kw_only=True):
    """One browser of the caller's."""

    id: UUID
    created_at: datetime
    last_used_at: datetime
    ip: str | None
    user_agent: str | None
    current: bool


class SignedInUser(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    email: str | None
    display_name: str | None


class SignedInOrganization(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    name: str


class Session(msgspec.Struct, frozen=True, kw_only=True):
    user: SignedInUser
    organization: SignedInOrganization
    role: Role
    csrf_token: str
    """To be sent in X-CSRF-Token with everything that changes something."""


def session_of(candidate: Candidate, cookie: CookieText) -> Session:
    member = candidate.member
    return Session(
        user=SignedInUser(id=member.id, email=member.email, display_name=member.display_name),
        organization=SignedInOrganization(id=candidate.organization_id, name=candidate.organization_name),
        role=member.role,
        csrf_token=cookie.csrf_token,
    )


def _good(role: Role | None, active: bool, present: bool) -> bool:
    return role in MAY_SIGN_IN and active and present


def sign_in_principal(organization_id: UUID, standing: SignInStanding | None) -> Principal:
    """One answer for a cookie that never was, one that is over, and one whose bearer may not any more."""
    if (
        standing is None
        or standing.remaining_s <= 0
        or standing.role is None
        or not _good(standing.role, standing.active, not standing.deactivated)
    ):
        raise Unauthorized("You are not signed in, or not any more. Please sign in.")
    return Principal(
        organization_id=organization_id,
        tenant_id=standing.tenant_id,
        actor=Actor.ADMIN if standing.role in STAFF else Actor.CUSTOMER,
        role=standing.role,
        subject=f"user:{standing.user_id}",
        user_id=standing.user_id,
        tiers=standing.tiers,
        membership_active=True,
    )
