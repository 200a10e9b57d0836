"""Tokens and API keys as text: what is accepted, and everything that must not be."""

import base64
import json
from typing import Any
from uuid import UUID

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey, OKPKey, RSAKey
from msgspec.structs import replace

from holdfast.accounts import credentials
from holdfast.accounts.credentials import (
    SecretsInvalid,
    TokenClaims,
    TokenKeys,
    generate_secrets,
    new_api_key,
    parse_api_key,
    parse_secrets,
    require_current,
    secret_hash,
    secret_matches,
)
from holdfast.accounts.principal import Role
from holdfast.kernel.errors import Unauthorized
from holdfast.kernel.ids import new_id

NOW = 1_700_000_000.0
SECRETS = {"new": b"n" * 40, "old": b"o" * 40}
KEYS = TokenKeys(SECRETS)
CLAIMS = TokenClaims(
    user_id=new_id(),
    organization_id=new_id(),
    tenant_id=new_id(),
    role=Role.ORGANIZER,
    issued_at=NOW,
    expires_at=NOW + 60,
    token_id="t1",
    tiers=("gold",),
)


def wire(**changes: Any) -> dict[str, Any]:
    said = {
        "iss": "holdfast",
        "aud": "holdfast",
        "sub": str(CLAIMS.user_id),
        "org": str(CLAIMS.organization_id),
        "role": "customer",
        "exp": int(NOW) + 60,
        "iat": int(NOW),
        **changes,
    }
    return {name: value for name, value in said.items() if value is not None}


def signed(claims: dict[str, Any], kid: str | None = "new", secret: bytes = SECRETS["new"], alg: str = "HS256") -> str:
    header = {"alg": alg} if kid is None else {"alg": alg, "kid": kid}
    return jwt.encode(header, claims, OctKey.import_key(secret), algorithms=[alg])


def refusal(text: str, keys: TokenKeys = KEYS) -> str:
    with pytest.raises(Unauthorized) as refused:
        keys.verify(text)
    return refused.value.detail


def test_a_token_comes_back_as_it_was_signed() -> None:
    assert KEYS.verify(KEYS.sign(CLAIMS)) == CLAIMS


def test_a_guests_token_carries_its_event() -> None:
    event_id = new_id()
    guest = replace(CLAIMS, role=Role.CUSTOMER, tiers=(), guest_event_id=event_id)
    assert KEYS.verify(KEYS.sign(guest)).guest_event_id == event_id


def test_the_first_secret_signs_and_all_verify() -> None:
    old = TokenKeys({"old": SECRETS["old"]})
    assert KEYS.verify(old.sign(CLAIMS)) == CLAIMS
    assert "kid" in refusal(KEYS.sign(CLAIMS), old)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (signed(wire(), secret=b"f" * 40), "signature"),
        (signed(wire(), kid="old"), "signature"),
        (signed(wire(), kid="unknown"), "kid"),
        (signed(wire(), kid=None), "kid"),
        (signed(wire(), alg="HS512"), "signature"),
        (signed(wire(aud="another")), "audience"),
        (signed(wire(aud=["another"])), "audience"),
        (signed(wire(iss="another")), "issuer"),
        (signed(wire(exp=None)), "exp"),
        (signed(wire(exp="soon")), "exp"),
        (signed(wire(iss=None)), "iss"),
        (signed(wire(aud=None)), "aud"),
        (signed(wire(sub="me")), "ids"),
        (signed(wire(org="us")), "ids"),
        (signed(wire(role="emperor")), "role"),
        (signed(wire(kind="guest")), "guest"),
        (signed(wire(event=str(new_id()))), "guest"),
        (signed(wire(kind="guest", event=str(new_id()), role="admin")), "guest"),
        ("", "malformed"),
        ("a.b.c", "malformed"),
        ("x" * 5000, "long"),
    ],
)
def test_a_token_that_is_not_ours_is_refused_with_the_reason(text: str, said: str) -> None:
    assert said in refusal(text)


def test_a_token_without_a_signature_is_refused() -> None:
    def part(value: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    refusal(f"{part({'alg': 'none', 'kid': 'new'})}.{part(wire())}.")


def test_a_changed_payload_breaks_the_signature() -> None:
    header, _, signature = signed(wire()).split(".")
    forged = signed(wire(role="admin"), secret=b"f" * 40).split(".")[1]
    refusal(f"{header}.{forged}.{signature}")


def test_a_token_lives_until_its_expiry_and_no_longer() -> None:
    require_current(CLAIMS, NOW + 59.9)
    with pytest.raises(Unauthorized, match="expired"):
        require_current(CLAIMS, NOW + 60)


def test_a_token_from_the_future_is_refused_beyond_a_minute() -> None:
    require_current(CLAIMS, NOW - 59)
    with pytest.raises(Unauthorized, match="not valid yet"):
        require_current(CLAIMS, NOW - 61)


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        (RSAKey.generate_key(2048, {"kid": "idp"}), "RS256"),
        (ECKey.generate_key("P-256", {"kid": "idp"}), "ES256"),
        (OKPKey.generate_key("Ed25519", {"kid": "idp"}), "EdDSA"),
    ],
)
def test_an_outside_providers_tokens_are_verified_with_its_public_keys(key: Any, algorithm: str) -> None:
    jwks: Any = KeySet([key]).as_dict(private=False)
    keys = TokenKeys(SECRETS, issuer="holdfast,https://idp.example", jwks=jwks)
    text = jwt.encode(
        {"alg": algorithm, "kid": "idp"}, wire(iss="https://idp.example", sub="auth0|7"), key, algorithms=[algorithm]
    )
    claims = keys.verify(text)
    assert claims.user_id == keys.verify(text).user_id
    assert isinstance(claims.user_id, UUID)
    own_issuer = jwt.encode({"alg": algorithm, "kid": "idp"}, wire(), key, algorithms=[algorithm])
    assert "issuer" in refusal(own_issuer, keys)
    assert keys.verify(keys.sign(CLAIMS)) == CLAIMS


def test_a_public_key_is_never_taken_for_a_shared_secret() -> None:
    key = RSAKey.generate_key(2048, {"kid": "idp"})
    jwks: Any = KeySet([key]).as_dict(private=False)
    keys = TokenKeys(SECRETS, jwks=jwks)
    assert "algorithm" in refusal(signed(wire(), kid="idp"), keys)
    with pytest.raises(SecretsInvalid):
        TokenKeys({"idp": key.as_pem(private=False)})


def test_a_jwks_file_with_a_shared_secret_is_refused() -> None:
    jwks: Any = {"keys": [{"kty": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0", "kid": "x"}]}
    with pytest.raises(SecretsInvalid):
        TokenKeys(SECRETS, jwks=jwks)


def test_secrets_are_read_in_order_and_bad_ones_say_what_to_write() -> None:
    text = f"{generate_secrets()},b:{'x' * 32}"
    assert list(parse_secrets(text))[1] == "b"
    for bad in ("", "nokid", f"a:{'x' * 31}", f"a:{'x' * 32},a:{'y' * 32}", f"a b:{'x' * 32}"):
        with pytest.raises(SecretsInvalid, match="HOLDFAST_JWT_SECRETS"):
            parse_secrets(bad)


def test_an_api_key_names_where_to_look_it_up() -> None:
    for of_tenant in (False, True):
        key = new_api_key(new_id(), of_tenant=of_tenant)
        assert parse_api_key(key.text) == key
        assert key.secret not in key.shown


def test_a_text_that_is_no_key_is_not_parsed() -> None:
    key = new_api_key(new_id()).text
    for bad in ("", "hf_", key[:60], key.upper(), key + " ", key + "\n", f"x{key}", key.replace("hf_", "hf-", 1)):
        assert parse_api_key(bad) is None


def test_a_secret_is_kept_as_a_hash_and_matches_itself_only() -> None:
    key = new_api_key(new_id())
    assert secret_matches(key.secret, secret_hash(key.secret))
    assert not secret_matches(key.secret + "x", secret_hash(key.secret))
    assert key.secret.encode() not in secret_hash(key.secret)


def test_roles_have_an_order() -> None:
    order = [Role.CUSTOMER, Role.SCANNER, Role.ORGANIZER, Role.ADMIN, Role.SUPERADMIN]
    assert [[credentials.at_least(a, b) for b in order].count(True) for a in order] == [1, 2, 3, 4, 5]
