"""Signatures, against another implementation of the same standard: written here from its text, and Python's own parts."""

import base64
import binascii
import hashlib

from hypothesis import given
from hypothesis import strategies as st

from holdfast.webhooks.signature import new_secret, secret_text, signed_headers

BLOCK = 64


def independent_hmac_sha256(key: bytes, message: bytes) -> bytes:
    """RFC 2104, by hand."""
    if len(key) > BLOCK:
        key = hashlib.sha256(key).digest()
    key = key.ljust(BLOCK, b"\x00")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in key) + message).digest()
    return hashlib.sha256(bytes(byte ^ 0x5C for byte in key) + inner).digest()


def verifies(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """As a receiver does it, by the standard's text."""
    assert secret.startswith("whsec_")
    key = binascii.a2b_base64(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    wanted = base64.b64encode(independent_hmac_sha256(key, signed)).decode()
    return any(
        version == "v1" and value == wanted
        for version, _, value in (part.partition(",") for part in headers["webhook-signature"].split(" "))
    )


ids = st.from_regex(r"msg_[0-9a-f]{32}", fullmatch=True)
times = st.integers(0, 2**34)


@given(st.binary(min_size=24, max_size=64), ids, times, st.binary(max_size=2_000))
def test_a_receiver_verifies_what_was_signed(secret: bytes, name: str, at: int, body: bytes) -> None:
    headers = signed_headers([secret], name, at, body)
    assert verifies(secret_text(secret), headers, body)
    assert not verifies(secret_text(secret), headers, body + b" ")
    assert not verifies(secret_text(secret), {**headers, "webhook-timestamp": str(at + 1)}, body)
    assert not verifies(secret_text(secret), {**headers, "webhook-id": name[:-1] + "g"}, body)


@given(st.lists(st.binary(min_size=24, max_size=64), min_size=3, max_size=3, unique=True), ids, times, st.binary())
def test_while_a_secret_is_replaced_both_verify_and_no_other(
    secrets: list[bytes], name: str, at: int, body: bytes
) -> None:
    new, old, other = secrets
    headers = signed_headers([new, old], name, at, body)
    assert len(headers["webhook-signature"].split(" ")) == 2
    assert verifies(secret_text(new), headers, body)
    assert verifies(secret_text(old), headers, body)
    assert not verifies(secret_text(other), headers, body)


def test_the_signature_of_the_standards_own_example() -> None:
    secret = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    headers = signed_headers([secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_secrets_are_long_and_never_the_same() -> None:
    made = {new_secret() for _ in range(100)}
    assert len(made) == 100
    assert {len(secret) for secret in made} == {32}
