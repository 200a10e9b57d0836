"""Proofs of who asks: signed tokens and API keys. Nothing here reads a clock, a file or a database.

A token is a JWT. Our own are HS256 with one of a few secrets, named by `kid`: the first signs, all verify, so that
a secret is changed by putting a new one in front. An outside identity provider's are verified with its public keys.

An API key is `hf_<organization>_<key>_<secret>`, a tenant's `hft_<tenant>_<key>_<secret>`. Where to look a key up is
part of its text, so no query ever crosses organizations. The secret is 256 random bits: a plain hash guards it.
"""

import base64
import hashlib
import hmac
import re
import secrets
import warnings
from collections.abc import Collection, Mapping
from typing import Any, Final
from uuid import NAMESPACE_URL, UUID, uuid5

import msgspec
from joserfc import jwt
from joserfc.errors import JoseError, SecurityWarning
from joserfc.jwk import Key, KeySet, OctKey

from holdfast.accounts.principal import Role
from holdfast.kernel.errors import Unauthorized
from holdfast.kernel.ids import new_id, parse_id

TOKEN_TTL_S: Final = 12 * 3600
GUEST_TTL_S: Final = 24 * 3600
MAX_TOKEN_TTL_S: Final = 366 * 86_400
MAX_CREDENTIAL_CHARS: Final = 4096
SECRET_BYTES_MIN: Final = 32
_AHEAD_S: Final = 60.0  # how far an issuer's clock may run before the database's

SCOPES: Final = ("*", "read", "holds", "booking", "checkout", "admissions", "seating")
"""What an API key may be allowed. "read" is every GET; the others are the writes of that part; "*" is everything."""

_KEY_ALGORITHMS: Final = {"oct": ("HS256",), "RSA": ("RS256",), "EC": ("ES256",), "OKP": ("EdDSA", "Ed25519")}
_ALGORITHMS: Final = ("HS256", "RS256", "ES256", "EdDSA", "Ed25519")
_KID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_KEY = re.compile(r"(hft?)_([0-9a-f]{32})_([0-9a-f]{32})_([A-Za-z0-9_-]{20,100})")

# RFC 9864 renames EdDSA; identity providers will go on using the old name for years.
warnings.filterwarnings("ignore", message="EdDSA is deprecated", category=SecurityWarning)


class SecretsInvalid(Exception):
    """The configured secrets or public keys cannot be used; the message says what to write."""


# Tokens ---------------------------------------------------------------------------------------------------------
class TokenClaims(msgspec.Struct, frozen=True, kw_only=True):
    """What a token says, its signature checked and its life not yet (`require_current`)."""

    user_id: UUID
    organization_id: UUID
    tenant_id: UUID | None
    role: Role
    expires_at: float
    issued_at: float
    token_id: str | None = None
    tiers: tuple[str, ...] = ()
    guest_event_id: UUID | None = None
    not_before: float | None = None


class _Wire(msgspec.Struct, kw_only=True):
    sub: str
    org: str
    iss: str
    aud: str | list[str]
    exp: float
    role: Role = Role.CUSTOMER
    tenant: str | None = None
    tiers: tuple[str, ...] = ()
    kind: str = "user"
    event: str | None = None
    iat: float = 0.0
    nbf: float | None = None
    jti: str | None = None


class TokenKeys:
    """Signs our tokens and verifies ours and the outside provider's."""

    def __init__(
        self,
        own: Mapping[str, bytes],
        *,
        issuer: str = "holdfast",
        audience: str = "holdfast",
        jwks: Mapping[str, Any] | None = None,
    ) -> None:
        """`own`: kid → secret, the first signs. `issuer`: ours, then the outside provider's after a comma."""
        if not own:
            raise SecretsInvalid("no secret to sign tokens with: write kid:secret in HOLDFAST_JWT_SECRETS")
        try:
            self._own: dict[str, Key] = {kid: OctKey.import_key(secret) for kid, secret in own.items()}
        except ValueError as error:
            raise SecretsInvalid(f"HOLDFAST_JWT_SECRETS: {error}") from error
        self._kid, self._secret = next(iter(own.items()))
        self._issuer, _, outside = (part.strip() for part in issuer.partition(","))
        self._outside_issuer = outside or self._issuer
        self._audience = audience
        self._outside = _outside_keys(jwks) if jwks is not None else {}

    def sign(self, claims: TokenClaims) -> str:
        wire: dict[str, Any] = {
            "iss": self._issuer,
            "aud": self._audience,
            "sub": str(claims.user_id),
            "org": str(claims.organization_id),
            "role": claims.role.value,
            "kind": "guest" if claims.guest_event_id else "user",
            "iat": int(claims.issued_at),
            "exp": int(claims.expires_at),
            "jti": claims.token_id or str(new_id()),
        }
        if claims.tenant_id is not None:
            wire["tenant"] = str(claims.tenant_id)
        if claims.tiers:
            wire["tiers"] = list(claims.tiers)
        if claims.guest_event_id is not None:
            wire["event"] = str(claims.guest_event_id)
        return jwt.encode({"alg": "HS256", "kid": self._kid}, wire, self._own[self._kid])

    def verify(self, text: str) -> TokenClaims:
        """The claims of a genuine token for this service. Whether it is still good, `require_current` says."""
        if len(text) > MAX_CREDENTIAL_CHARS:
            raise Unauthorized("The token is too long.")
        outside = False

        def key_of(signature: Any) -> Key:
            nonlocal outside
            header = signature.headers()
            key, outside = self._key(header.get("kid"), header.get("alg"))
            return key

        try:
            token = jwt.decode(text, key_of, algorithms=_ALGORITHMS)
        except Unauthorized:
            raise
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise Unauthorized("The token is malformed or its signature does not verify.") from error
        try:
            wire = msgspec.convert(token.claims, _Wire)
        except msgspec.ValidationError as error:
            raise Unauthorized(f"The token's claims are incomplete: {error}.") from error
        if wire.iss != (self._outside_issuer if outside else self._issuer):
            raise Unauthorized("The token is from another issuer.")
        if self._audience not in ([wire.aud] if isinstance(wire.aud, str) else wire.aud):
            raise Unauthorized("The token is meant for another audience.")
        return _claims(wire, outside)

    def derived_secret(self, *parts: str) -> str:
        """A key's secret that can be told a second time, to a repetition of the request that made the key."""
        digest = hmac.new(self._secret, "\x00".join(("api-key", *parts)).encode(), hashlib.sha256).digest()
        return secrets_text(digest)

    def _key(self, kid: object, algorithm: object) -> tuple[Key, bool]:
        if not isinstance(kid, str):
            raise Unauthorized("The token names no key (kid).")
        key = self._own.get(kid) or self._outside.get(kid)
        if key is None:
            raise Unauthorized("The token names a key (kid) that is not known here.")
        algorithms = _KEY_ALGORITHMS[key.key_type]
        # The key decides the algorithm, never the token: a public key must not be usable as an HMAC secret.
        if algorithm not in algorithms:
            raise Unauthorized("The token is signed with an algorithm that is not accepted for its key.")
        return key, kid not in self._own


def _outside_keys(jwks: Mapping[str, Any]) -> dict[str, Key]:
    try:
        keys = KeySet.import_key_set(jwks).keys  # type: ignore[arg-type]
    except (JoseError, ValueError, TypeError, KeyError) as error:
        raise SecretsInvalid(f"the JWKS file cannot be read: {error}") from error
    found: dict[str, Key] = {}
    for key in keys:
        if key.kid is None or key.key_type not in ("RSA", "EC", "OKP"):
            raise SecretsInvalid("every key of the JWKS file needs a kid and the kty RSA, EC or OKP")
        found[key.kid] = key
    return found


def _claims(wire: _Wire, outside: bool) -> TokenClaims:
    user_id = parse_id(wire.sub)
    if user_id is None and outside and wire.sub:
        # A provider's own way of naming people, turned into an id that is always the same for the same person.
        user_id = uuid5(NAMESPACE_URL, f"{wire.iss}#{wire.sub}")
    organization_id = parse_id(wire.org)
    tenant_id = parse_id(wire.tenant) if wire.tenant is not None else None
    if user_id is None or organization_id is None or (wire.tenant is not None and tenant_id is None):
        raise Unauthorized("The token's claims are incomplete: sub, org and tenant must be ids.")
    event_id = parse_id(wire.event) if wire.event is not None else None
    if wire.kind not in ("user", "guest") or (wire.kind == "guest") != (event_id is not None):
        raise Unauthorized("The token's claims are incomplete: a guest's token names one event, no other does.")
    if wire.kind == "guest" and wire.role is not Role.CUSTOMER:
        raise Unauthorized("A guest's token can only be a customer's.")
    return TokenClaims(
        user_id=user_id,
        organization_id=organization_id,
        tenant_id=tenant_id,
        role=wire.role,
        expires_at=wire.exp,
        issued_at=wire.iat,
        token_id=wire.jti,
        tiers=wire.tiers,
        guest_event_id=event_id,
        not_before=wire.nbf,
    )


def require_current(claims: TokenClaims, now: float) -> None:
    """Refuses a token before or after its life. `now` is the database's time, in seconds since 1970."""
    if not claims.expires_at > now:
        raise Unauthorized("The token has expired.")
    if max(claims.issued_at, claims.not_before or 0.0) > now + _AHEAD_S:
        raise Unauthorized("The token is not valid yet.")


def parse_secrets(text: str) -> dict[str, bytes]:
    """`kid:secret,kid:secret` → kid to secret, in that order."""
    found: dict[str, bytes] = {}
    for place, part in enumerate(text.split(","), 1):
        kid, colon, secret = part.strip().partition(":")
        if not colon or not _KID.fullmatch(kid) or kid in found:
            raise SecretsInvalid(
                f"HOLDFAST_JWT_SECRETS, entry {place}: write kid:secret, each kid once,"
                " of letters, digits, dot, dash and underscore"
            )
        if len(secret.encode()) < SECRET_BYTES_MIN:
            raise SecretsInvalid(
                f"HOLDFAST_JWT_SECRETS, entry {place} ({kid}): a secret has at least {SECRET_BYTES_MIN} bytes;"
                " make one with: openssl rand -hex 32"
            )
        found[kid] = secret.encode()
    return found


def generate_secrets() -> str:
    """A fresh value for HOLDFAST_JWT_SECRETS."""
    return f"{secrets.token_hex(4)}:{secrets.token_urlsafe(48)}"


# API keys -------------------------------------------------------------------------------------------------------
class ApiKeyText(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a key's text. `owner_id` is an organization, or a tenant where `of_tenant`."""

    of_tenant: bool
    owner_id: UUID
    key_id: UUID
    secret: str

    @property
    def shown(self) -> str:
        return shown_prefix(self.owner_id, self.key_id, of_tenant=self.of_tenant)

    @property
    def text(self) -> str:
        return f"{self.shown}_{self.secret}"


def shown_prefix(owner_id: UUID, key_id: UUID, *, of_tenant: bool = False) -> str:
    """The part of a key that may be shown: it tells keys apart and opens nothing."""
    return f"{'hft' if of_tenant else 'hf'}_{owner_id.hex}_{key_id.hex}"


def new_api_key(owner_id: UUID, *, of_tenant: bool = False) -> ApiKeyText:
    secret = secrets_text(secrets.token_bytes(32))
    return ApiKeyText(of_tenant=of_tenant, owner_id=owner_id, key_id=new_id(), secret=secret)


def secrets_text(entropy: bytes) -> str:
    """Bytes as they stand in a key: the letters and digits of base64 for URLs."""
    return base64.urlsafe_b64encode(entropy).rstrip(b"=").decode()


def parse_api_key(text: str) -> ApiKeyText | None:
    match = _KEY.fullmatch(text)
    if match is None:
        return None
    kind, owner, key, secret = match.groups()
    return ApiKeyText(of_tenant=kind == "hft", owner_id=UUID(owner), key_id=UUID(key), secret=secret)


def secret_hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def secret_matches(secret: str, stored_hash: bytes) -> bool:
    """In constant time."""
    return hmac.compare_digest(secret_hash(secret), stored_hash)


# What a credential may do ---------------------------------------------------------------------------------------
_RANKS: Final = {role: rank for rank, role in enumerate(Role)}


def at_least(role: Role, other: Role) -> bool:
    return _RANKS[role] >= _RANKS[other]


def scope_allows(scopes: Collection[str], needed: str) -> bool:
    return "*" in scopes or needed in scopes
