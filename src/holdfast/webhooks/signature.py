"""Signatures as Standard Webhooks has them: who receives a message can tell that it came from here, and when."""

import base64
import hashlib
import hmac
import os
from collections.abc import Iterable

SECRET_BYTES = 32
PREFIX = "whsec_"


def new_secret() -> bytes:
    return os.urandom(SECRET_BYTES)


def secret_text(secret: bytes) -> str:
    """As it is shown, once, and as libraries that verify want it."""
    return PREFIX + base64.b64encode(secret).decode()


def signature(secret: bytes, webhook_id: str, timestamp: int, body: bytes) -> str:
    signed = b".".join((webhook_id.encode(), str(timestamp).encode(), body))
    return "v1," + base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()


def signed_headers(secrets: Iterable[bytes], webhook_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """With one signature a secret: while a secret is being replaced, either verifies."""
    return {
        "webhook-id": webhook_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signature(secret, webhook_id, timestamp, body) for secret in secrets),
    }
