"""A ticket's code: what is in the QR code, signed, so that a gate without a connection can tell a true one. Pure.

`HF1.<payload>.<signature>`: the payload is compact JSON in base64url, the signature is Ed25519 over `HF1.<payload>`.
There is exactly one way to write a code: whatever is accepted is byte for byte what was issued.
"""

import base64
import binascii
import re
from collections.abc import Iterable
from datetime import date, timedelta
from enum import StrEnum
from uuid import UUID

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from holdfast.tickets.ticket import Entitlement

PREFIX = "HF1"
CODE_CHARS = 2_900
"""As much as a QR code can carry, and a little less."""
WORDS_CHARS = 40
SIGNATURE_CHARS = 86


class TicketPayload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """In the order in which it is written. Names are short because each character makes the squares smaller."""

    k: str
    """The key's id."""
    t: UUID
    """The ticket."""
    e: UUID
    """The event."""
    o: UUID
    """The organization."""
    v: int
    """The code's version: a ticket issued anew has a higher one, and gates with a connection refuse the older."""
    s: str
    """The seat in words; empty where there is none."""
    z: str
    """The zone in words."""
    d: str
    """The days it is good for, or spans of them: `20260501-20260503 20260507`. Empty: any day."""
    n: Entitlement
    m: int | None
    """Entries a day, of a limited one."""


class CodeFault(StrEnum):
    """Why a code is none."""

    UNREADABLE = "unreadable_code"
    UNKNOWN_KEY = "unknown_key"
    OTHER_ORGANIZATION = "other_organization"
    FORGED = "forged_code"


class CodeRead(msgspec.Struct, frozen=True):
    """A code taken apart. Nothing of it is to be believed before its signature has been verified."""

    payload: TicketPayload
    signed: bytes
    signature: bytes

    def is_signed_by(self, public_key: bytes) -> bool:
        try:
            Ed25519PublicKey.from_public_bytes(public_key).verify(self.signature, self.signed)
        except InvalidSignature:
            return False
        return True


def signed_part(payload: TicketPayload) -> bytes:
    """What is to be signed. Where there is no room for words, it goes without: the rest must fit."""
    part = _signed_part(payload)
    if len(part) + 1 + SIGNATURE_CHARS > CODE_CHARS:
        part = _signed_part(msgspec.structs.replace(payload, s="", z=""))
    return part


def whole_code(part: bytes, signature: bytes) -> str:
    return f"{part.decode()}.{_written(signature)}"


def read_code(text: str) -> CodeRead | None:
    """None: not one of our codes, or not as we write them."""
    if len(text) > CODE_CHARS or not text.isascii():
        return None
    parts = text.split(".")
    if len(parts) != 3 or parts[0] != PREFIX:
        return None
    raw, signature = _read(parts[1]), _read(parts[2])
    if raw is None or signature is None or len(signature) != 64:
        return None
    try:
        payload = msgspec.json.decode(raw, type=TicketPayload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if msgspec.json.encode(payload) != raw or not _KEY_ID.fullmatch(payload.k):
        return None
    return CodeRead(payload, f"{PREFIX}.{parts[1]}".encode(), signature)


def short_words(text: str) -> str:
    return text if len(text) <= WORDS_CHARS else text[: WORDS_CHARS - 1] + "…"


def day_spans(days: Iterable[date]) -> str:
    """Days that follow one another as one span."""
    spans: list[list[date]] = []
    for day in sorted(days):
        if spans and day - spans[-1][1] == timedelta(days=1):
            spans[-1][1] = day
        else:
            spans.append([day, day])
    return " ".join(f"{a:%Y%m%d}" if a == b else f"{a:%Y%m%d}-{b:%Y%m%d}" for a, b in spans)


def _signed_part(payload: TicketPayload) -> bytes:
    return f"{PREFIX}.{_written(msgspec.json.encode(payload))}".encode()


_BASE64URL = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
"""Looked up before anything is verified: nothing else gets as far as the database."""


def _written(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _read(text: str) -> bytes | None:
    """Only what `_written` would have written: bits left over at the end could otherwise be anything."""
    if not _BASE64URL.fullmatch(text):
        return None
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return None
    return raw if _written(raw) == text else None
