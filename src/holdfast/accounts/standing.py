"""From a genuine credential and how its bearer stands now to the principal of a call: the rules, without I/O."""

import time
from uuid import UUID

import msgspec

from holdfast.accounts.credentials import ApiKeyText, TokenClaims, at_least, require_current, secret_matches
from holdfast.accounts.principal import MANAGERS, STAFF, Principal, Role
from holdfast.accounts.records import Origin
from holdfast.holds.lifecycle import Actor
from holdfast.kernel.errors import Forbidden, Unauthorized

_NO_SUCH_KEY = "The API key is not valid."


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How a token's bearer stands with the organization now. `role` is None where there is no membership."""

    tenant_id: UUID
    now: float
    role: Role | None
    tiers: frozenset[str]
    active: bool
    deactivated: bool


class GuestStandings:
    """Guests have no membership: all of an organization stand alike, so one reading serves a whole crowd for seconds."""

    LIFE_S = 5.0
    CAPACITY = 10_000

    def __init__(self) -> None:
        self._known: dict[UUID, tuple[Standing, float]] = {}

    def get(self, organization_id: UUID) -> Standing | None:
        found = self._known.get(organization_id)
        if found is None:
            return None
        age_s = time.monotonic() - found[1]
        if age_s > self.LIFE_S:
            del self._known[organization_id]
            return None
        return msgspec.structs.replace(found[0], now=found[0].now + age_s)

    def remember(self, organization_id: UUID, standing: Standing) -> None:
        if len(self._known) >= self.CAPACITY:
            self._known.clear()
        self._known[organization_id] = (standing, time.monotonic())


class KeyStanding(msgspec.Struct, frozen=True, kw_only=True):
    tenant_id: UUID
    secret_hash: bytes
    scopes: frozenset[str]
    remaining_s: float | None
    """Until it expires; None: never. Zero or less: it has."""
    revoked: bool


class TenantAccess(msgspec.Struct, frozen=True, kw_only=True):
    """May look after what a tenant's organizations share: the tenant's own key, or a superadmin of one of them."""

    tenant_id: UUID
    origin: Origin


def token_principal(claims: TokenClaims, standing: Standing | None) -> Principal:
    """Raises Unauthorized with the reason. A customer needs no membership; everybody else one as high as the token."""
    if standing is None or claims.tenant_id not in (None, standing.tenant_id):
        raise Unauthorized("The token is for an organization that is not known here.")
    require_current(claims, standing.now)
    if standing.deactivated or (standing.role is not None and not standing.active):
        raise Unauthorized("This user has been deactivated.")
    if claims.role is not Role.CUSTOMER and (standing.role is None or not at_least(standing.role, claims.role)):
        raise Unauthorized("The token claims a role that its bearer does not have.")
    guest = claims.guest_event_id is not None
    return Principal(
        organization_id=claims.organization_id,
        tenant_id=standing.tenant_id,
        actor=Actor.ADMIN if claims.role in STAFF else Actor.CUSTOMER,
        role=claims.role,
        subject=f"{'guest' if guest else 'user'}:{claims.user_id}",
        user_id=claims.user_id,
        tiers=frozenset() if guest else standing.tiers,
        membership_active=standing.role is not None,
        guest_event_id=claims.guest_event_id,
    )


def key_principal(key: ApiKeyText, standing: KeyStanding | None, organization_id: UUID) -> Principal:
    """One answer for a key that never existed and for one with a wrong secret: it tells nothing."""
    require_key(key, standing)
    assert standing is not None
    return Principal(
        organization_id=organization_id,
        tenant_id=standing.tenant_id,
        actor=Actor.API,
        role=Role.ORGANIZER,
        subject=f"{'tenant-key' if key.of_tenant else 'key'}:{key.key_id}",
        scopes=standing.scopes,
        tenant_wide=key.of_tenant,
    )


def require_key(key: ApiKeyText, standing: KeyStanding | None) -> None:
    if standing is None or not secret_matches(key.secret, standing.secret_hash):
        raise Unauthorized(_NO_SUCH_KEY)
    if standing.revoked:
        raise Unauthorized("The API key was revoked.")
    if standing.remaining_s is not None and standing.remaining_s <= 0:
        raise Unauthorized("The API key has expired.")


# Who may look after an organization -----------------------------------------------------------------------------
def highest_grantable(principal: Principal) -> Role | None:
    """The highest role this credential may give away; None: it may not look after people and keys at all."""
    if principal.role in MANAGERS:
        return principal.role
    if principal.actor is Actor.API and "*" in principal.scopes:
        return Role.SUPERADMIN if principal.tenant_wide else Role.ADMIN
    return None


def require_administrator(principal: Principal) -> None:
    """An administrator, or an API key that may do everything."""
    if highest_grantable(principal) is None:
        raise Forbidden("This needs an administrator's credential.", required_role="admin")
