"""Lines that machines read: whose request it was, and nobody's secret."""

import io
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
import structlog

from holdfast.accounts.credentials import generate_secrets
from holdfast.logs import HIDDEN, REQUEST, configure_logs

TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJlLXNpZ25hdHVyZQ"
KEY = f"hf_{uuid4().hex}_{uuid4().hex}_QkFzZTY0LXVybC1zZWNyZXQtb2Yta2V5"
TENANT_KEY = f"hft_{uuid4().hex}_{uuid4().hex}_QkFzZTY0LXVybC1zZWNyZXQtb2Yta2V5"
WEBHOOK_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What goes to stderr, with the logs set up as a server sets them up."""
    root = logging.getLogger()
    before, level, kept = root.handlers, root.level, structlog.get_config()
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    configure_logs("debug")
    yield stream
    root.handlers = before
    root.setLevel(level)
    structlog.configure(**kept)


def lines(written: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written.getvalue().splitlines()]


def test_a_line_is_json_with_its_level_its_time_and_its_facts(written: io.StringIO) -> None:
    structlog.get_logger("holdfast.tests").warning("something_happened", seats=3)
    (line,) = lines(written)
    assert (line["event"], line["level"], line["logger"], line["seats"]) == (
        "something_happened",
        "warning",
        "holdfast.tests",
        3,
    )
    assert line["timestamp"].endswith("Z")


def test_what_is_logged_during_a_request_says_which_it_was(written: io.StringIO) -> None:
    event_id, seat_id, organization_id = uuid4(), uuid4(), uuid4()
    scope = {
        "state": {"request_id": "r-12345678", "organization_id": organization_id},
        "path_params": {"event_id": str(event_id), "seat": str(seat_id), "name": "x"},
    }
    token = REQUEST.set(scope)
    try:
        structlog.get_logger("holdfast.tests").info("first")
        structlog.get_logger("holdfast.tests").info("second", request_id="its own")
        logging.getLogger("a.library").warning("third")
    finally:
        REQUEST.reset(token)
    structlog.get_logger("holdfast.tests").info("after")
    first, second, third, after = lines(written)
    for line in (first, third):
        assert line["request_id"] == "r-12345678"
        assert line["organization_id"] == str(organization_id)
        assert (line["event_id"], line["seat_id"]) == (str(event_id), str(seat_id))
        assert "name" not in line
    assert second["request_id"] == "its own"
    assert "request_id" not in after


def test_a_request_that_is_not_routed_yet_has_an_id_only(written: io.StringIO) -> None:
    token = REQUEST.set({"state": {"request_id": "r-12345678"}})
    try:
        structlog.get_logger("holdfast.tests").info("early")
    finally:
        REQUEST.reset(token)
    (line,) = lines(written)
    assert line["request_id"] == "r-12345678"
    assert not {"organization_id", "event_id", "seat_id"} & set(line)


@pytest.mark.parametrize(
    ("fields", "secret"),
    [
        ({"token": TOKEN}, TOKEN),
        ({"Authorization": f"Bearer {TOKEN}"}, TOKEN),
        ({"api_key": KEY}, KEY),
        ({"jwt_secrets": "kid:" + "s" * 43}, "s" * 43),
        ({"redis_url": "redis://:swordfish@cache:6379/0"}, "swordfish"),
        ({"error": f"cannot read Bearer {TOKEN} today"}, TOKEN),
        ({"error": f"no such key {KEY}"}, KEY),
        ({"error": f"no such key {TENANT_KEY}"}, TENANT_KEY),
        ({"error": f"signed with {WEBHOOK_SECRET}!"}, WEBHOOK_SECRET),
        ({"error": "connecting to postgresql://app:sword%40fish@db:5432/x failed"}, "sword%40fish"),
        ({"error": "connecting to redis://:swordfish@cache:6379/0 failed"}, "swordfish"),
        ({"path": f"/api/events/x/stream?access_token={TOKEN}&from=1"}, TOKEN),
        ({"path": "/callback?password=swordfish&x=1"}, "swordfish"),
        ({"headers": {"authorization": "Basic c3dvcmRmaXNo", "x": [KEY]}}, "c3dvcmRmaXNo"),
        ({"headers": {"x": [KEY, ("y", TOKEN)]}}, KEY),
        ({"said": ["a", f"Bearer {TOKEN}"]}, TOKEN),
    ],
)
def test_a_secret_is_hidden_wherever_it_stands(written: io.StringIO, fields: dict[str, Any], secret: str) -> None:
    structlog.get_logger("holdfast.tests").error("it_failed", **fields)
    text = written.getvalue()
    assert secret not in text
    assert HIDDEN in text
    assert lines(written)[0]["event"] == "it_failed"


def test_a_secret_in_a_sentence_or_in_a_traceback_is_hidden_too(written: io.StringIO) -> None:
    try:
        raise ConnectionError(f"postgresql://app:swordfish@db/x refused {KEY}")
    except ConnectionError:
        structlog.get_logger("holdfast.tests").exception("it_failed")
    logging.getLogger("a.library").error("sent %s to %s", TOKEN, WEBHOOK_SECRET)
    text = written.getvalue()
    assert "ConnectionError" in text
    for secret in ("swordfish", KEY, TOKEN, WEBHOOK_SECRET):
        assert secret not in text


def test_generated_secrets_do_not_reach_a_line_by_their_name(written: io.StringIO) -> None:
    made = generate_secrets()
    structlog.get_logger("holdfast.tests").info("made", jwt_secrets=made)
    assert made.partition(":")[2] not in written.getvalue()


def test_ids_and_plain_sentences_stay_as_they_are(written: io.StringIO) -> None:
    said = "hold 0198a1b2 of seat A-12 was released; see https://example.org/docs?page=2"
    structlog.get_logger("holdfast.tests").info("plain", said=said, hold_id=str(uuid4()), count=2, share=0.5, none=None)
    assert HIDDEN not in written.getvalue()
    assert lines(written)[0]["said"] == said
