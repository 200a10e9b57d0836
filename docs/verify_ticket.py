#!/usr/bin/env python3
"""Verifies ticket codes without a connection. Needs the package `cryptography` and the organization's public keys in a file:

    curl -H "Authorization: Bearer $TOKEN" https://tickets.example/api/ticket-keys > keys.json
    python verify_ticket.py --keys keys.json --event EVENT_ID --day 2026-05-01 "HF1.…"

Prints what the ticket says and ends with 0, or prints what is wrong and ends with 1. What this cannot know: whether the
ticket was returned, issued anew or used already. That comes out when the scans are uploaded.
"""

import argparse
import base64
import json
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


class NotGenuine(Exception):
    pass


def decode(text):
    """Base64url without padding, and only as it is written by the one who signed."""
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if base64.urlsafe_b64encode(raw).rstrip(b"=").decode() != text:
        raise ValueError("not canonical")
    return raw


def public_keys(document):
    """By key id. The answer of the API, or the key set in it."""
    key_set = document.get("data", document)
    return {
        key["kid"]: Ed25519PublicKey.from_public_bytes(decode(key["x"]))
        for key in key_set["keys"]
        if (key["kty"], key["crv"]) == ("OKP", "Ed25519")
    }


def verify(code, keys):
    """What the ticket says. Raises NotGenuine."""
    try:
        version, payload, signature = code.split(".")
        said, signed = json.loads(decode(payload)), decode(signature)
    except ValueError:
        raise NotGenuine("this is not a ticket's code") from None
    if version != "HF1" or not isinstance(said, dict):
        raise NotGenuine("this is not a ticket's code")
    key = keys.get(said.get("k"))
    if key is None:
        raise NotGenuine("it was signed with a key that is not in the file")
    try:
        key.verify(signed, f"HF1.{payload}".encode())
    except InvalidSignature:
        raise NotGenuine("its signature is wrong") from None
    return said


def valid_on(said, day):
    """`day` like 2026-05-01. Spans are inclusive; no days at all means any day."""
    wanted = day.replace("-", "")
    spans = [span.split("-") for span in said["d"].split()]
    return not spans or any(span[0] <= wanted <= span[-1] for span in spans)


def main():
    options = argparse.ArgumentParser(description="Verify a ticket's code without a connection.")
    options.add_argument("--keys", required=True, help="file with the answer of GET /api/ticket-keys")
    options.add_argument("--event", help="the event's id: tickets for another are refused")
    options.add_argument("--day", help="such as 2026-05-01: tickets for other days are refused")
    options.add_argument("code")
    asked = options.parse_args()
    with open(asked.keys, encoding="utf-8") as file:
        keys = public_keys(json.load(file))
    try:
        said = verify(asked.code, keys)
        if asked.event is not None and said["e"] != asked.event.lower():
            raise NotGenuine("it is for another event")
        if asked.day is not None and not valid_on(said, asked.day):
            raise NotGenuine(f"it is not for this day but for {said['d']}")
    except NotGenuine as fault:
        print(f"REFUSE: {fault}")
        return 1
    place = ", ".join(part for part in (said["z"], said["s"]) if part)
    entries = f", {said['m']} a day" if said["m"] else ""
    print(f"GENUINE: {place}; {said['n']}{entries}; ticket {said['t']}, code {said['v']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
