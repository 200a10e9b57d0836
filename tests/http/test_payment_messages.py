"""The door for payment providers' messages: what is not believed gets one answer, and changes nothing."""

import asyncio
import hashlib
import hmac
from collections.abc import Callable
from typing import Any

import msgspec
from prometheus_client import REGISTRY

from holdfast.payments.providers_service import PROVIDERS_MAX
from holdfast.payments.receiving import AUDITED_A_MINUTE
from holdfast.payments.signed_webhook import TOLERANCE_S, sign
from tests.checkouts import checkout_of
from tests.conftest import TestDatabase
from tests.http.payment_ground import SECRET, add_provider, database_time, message, money, status_of, tell, tickets
from tests.stage import Stage, stage

Told = tuple[str | None, bytes]
REFUSED = {
    "type": "urn:holdfast:problem:invalid_webhook",
    "title": "Bad Request",
    "status": 400,
    "detail": "The message was not accepted.",
    "error": "invalid_webhook",
}


def run_scene(database: TestDatabase, scene: Any) -> None:
    async def run() -> None:
        async with stage(database) as made:
            await add_provider(made)
            await scene(made, await checkout_of(made, await made.buyer(), 0))

    asyncio.run(run())


def counted(reason: str) -> float:
    return REGISTRY.get_sample_value("holdfast_payment_messages_total", {"outcome": reason}) or 0.0


async def audited(made: Stage) -> list[str]:
    rows = await made.sql("SELECT reason FROM audit_entries WHERE action = 'payment_message_refused' ORDER BY id")
    return [row["reason"] for row in rows]


def signed(body: bytes, now: int) -> str:
    return sign(SECRET, now, body)


def changed(made_of: Callable[[str], bytes]) -> Callable[[str, int], Told]:
    return lambda checkout, now: (signed(made_of(checkout), now), made_of(checkout))


def _intent(checkout: str, **changes: Any) -> bytes:
    document = msgspec.json.decode(message(checkout))
    document["data"]["object"] |= changes
    return msgspec.json.encode(document)


DEEP = b'{"id":"a","type":"b","data":' + b"[" * 20_000 + b"]" * 20_000 + b"}"
BAD: dict[str, tuple[str, Callable[[str, int], Told]]] = {
    "no signature": ("unsigned", lambda c, now: (None, message(c))),
    "an empty header": ("bad_header", lambda c, now: ("", message(c))),
    "no time": ("bad_header", lambda c, now: (signed(message(c), now).partition(",")[2], message(c))),
    "two times": ("bad_header", lambda c, now: (f"t={now}," + signed(message(c), now), message(c))),
    "a time that is no number": ("bad_header", lambda c, now: (f"t=now,v1={'0' * 64}", message(c))),
    "a time with a zero before it": ("bad_header", lambda c, now: ("t=0" + signed(message(c), now)[2:], message(c))),
    "a negative time": ("bad_header", lambda c, now: (f"t=-5,v1={'0' * 64}", message(c))),
    "a short signature": ("bad_header", lambda c, now: (f"t={now},v1=abcd", message(c))),
    "an old scheme": ("bad_header", lambda c, now: (signed(message(c), now).replace("v1", "v0"), message(c))),
    "very many signatures": ("bad_header", lambda c, now: (f"t={now}" + f",v1={'0' * 64}" * 11, message(c))),
    "a very long header": ("bad_header", lambda c, now: (f"t={now}," + "x" * 4_000, message(c))),
    "another's secret": ("forged", lambda c, now: (sign("whsec_another_of_16", now, message(c)), message(c))),
    "another body": ("forged", lambda c, now: (signed(message(c, amount=1), now), message(c))),
    "another time": (
        "forged",
        lambda c, now: (signed(message(c), now).replace(f"t={now}", f"t={now - 1}"), message(c)),
    ),
    "too old": ("stale", lambda c, now: (signed(message(c), now - TOLERANCE_S - 5), message(c))),
    "too young": ("stale", lambda c, now: (signed(message(c), now + TOLERANCE_S + 5), message(c))),
    "an empty body": ("malformed", changed(lambda c: b"")),
    "no JSON": ("malformed", changed(lambda c: b"{")),
    "no object": ("malformed", changed(lambda c: b"[1]")),
    "deep JSON": ("malformed", changed(lambda c: DEEP)),
    "broken UTF-8": ("malformed", changed(lambda c: b'{"id": "\xff"}')),
    "no metadata": ("malformed", changed(lambda c: _intent(c, metadata=None))),
    "no id": ("malformed", changed(lambda c: _intent("none"))),
    "an amount in words": ("malformed", changed(lambda c: _intent(c, amount_received="25"))),
    "half a cent": ("malformed", changed(lambda c: _intent(c, amount_received=25.5))),
    "a negative amount": ("malformed", changed(lambda c: _intent(c, amount_received=-1))),
    "an endless amount": ("malformed", changed(lambda c: _intent(c, amount_received=10**40))),
    "no amount": ("malformed", changed(lambda c: _intent(c, amount_received=None))),
    "no currency": ("malformed", changed(lambda c: _intent(c, currency=None))),
    "a long currency": ("malformed", changed(lambda c: _intent(c, currency="euro"))),
    "a reference with NUL": ("malformed", changed(lambda c: _intent(c, id="a\x00"))),
    "no reference": ("malformed", changed(lambda c: _intent(c, id=""))),
    "a long reference": ("malformed", changed(lambda c: _intent(c, id="p" * 201))),
    "an unknown checkout": ("unknown_checkout", changed(lambda c: message("00000000-0000-7000-8000-000000000000"))),
}


def test_what_is_not_believed_gets_one_answer_and_changes_nothing(database: TestDatabase) -> None:
    async def scene(made: Stage, checkout: str) -> None:
        answers = set()
        for name, (reason, make) in BAD.items():
            before = counted(reason)
            header, body = make(checkout, await database_time(made))
            headers = {} if header is None else {"Stripe-Signature": header}
            answer = await made.client.post("/api/payments/webhook/stripe", content=body, headers=headers)
            assert (answer.status_code, answer.json()) == (400, REFUSED), name
            answers.add(answer.content)
            assert counted(reason) == before + 1, name
        assert len(answers) == 1
        assert await audited(made) == ["forged"] * 3 + ["stale"] * 2
        assert (await money(made), await status_of(made, checkout)) == ([], "open")
        assert await made.sql("SELECT 1 FROM payment_messages") == []
        assert (await tell(made, message(checkout))).status_code == 200  # the good one still goes through

    run_scene(database, scene)


def test_unknown_and_foreign_providers_are_answered_alike(database: TestDatabase) -> None:
    async def scene(made: Stage, checkout: str) -> None:
        async with stage(database) as other:
            await add_provider(other, secret="whsec_of_the_other_house")
            theirs = await checkout_of(other, await other.buyer(), 0)
            for provider in ("nobody", "manual", "STRIPE", "%00", "x" * 300, "stripe%20"):
                answer = await tell(made, message(checkout), provider=provider)
                assert (answer.status_code, answer.json()) == (400, REFUSED), provider
            # Their secret for our checkout, and ours for theirs.
            for body, secret in ((message(checkout), "whsec_of_the_other_house"), (message(theirs), SECRET)):
                answer = await tell(made, body, secret=secret)
                assert (answer.status_code, answer.json()) == (400, REFUSED)
            organization = "SELECT DISTINCT organization_id FROM audit_entries WHERE action = 'payment_message_refused'"
            assert len(await made.sql(organization)) == 2
            assert await money(made) == []
            large = await made.client.post("/api/payments/webhook/stripe", content=b"x" * 5_000_000)
            assert large.status_code == 413

    run_scene(database, scene)


def test_the_same_bytes_count_once_and_a_providers_retry_changes_nothing(database: TestDatabase) -> None:
    async def scene(made: Stage, checkout: str) -> None:
        now = await database_time(made)
        body = message(checkout)
        header = sign(SECRET, now, body)
        assert (await tell(made, body, header=header)).status_code == 200
        before = counted("replay")
        both = f"{header},v1={'0' * 64}"  # the same with another signature beside it is the same
        for replayed in (header, both):
            answer = await tell(made, body, header=replayed)
            assert (answer.status_code, answer.json()) == (400, REFUSED)
        assert counted("replay") == before + 2
        assert await audited(made) == ["replay", "replay"]
        sold = await tickets(made, checkout)
        for ago_s in (20, 40, 60):
            assert (await tell(made, body, ago_s=ago_s)).status_code == 200
        assert await money(made) == [("pi_1", "applied", None)]
        assert await tickets(made, checkout) == sold
        assert len(await made.sql("SELECT 1 FROM outbox WHERE kind = 'CheckoutCompleted'")) == 1

    run_scene(database, scene)


def test_messages_of_no_interest_are_accepted_and_ignored(database: TestDatabase) -> None:
    async def scene(made: Stage, checkout: str) -> None:
        for kind in ("payment_intent.created", "charge.refunded", ""):
            assert (await tell(made, message(checkout, kind=kind, amount=None, currency=None))).status_code == 200
        unknown = message(checkout, "pi_7", kind="payment_intent.payment_failed")
        assert (await tell(made, unknown)).status_code == 200  # of a payment nobody here knows
        assert (await money(made), await status_of(made, checkout)) == ([], "open")

    run_scene(database, scene)


def test_a_message_is_good_for_minutes_either_way(database: TestDatabase) -> None:
    async def scene(made: Stage, checkout: str) -> None:
        assert (await tell(made, message(checkout, "pi_1"), ago_s=TOLERANCE_S - 5)).status_code == 200
        assert (await tell(made, message(checkout, "pi_2"), ago_s=5 - TOLERANCE_S)).status_code == 200
        assert len(await money(made)) == 2

    run_scene(database, scene)


def test_one_payment_is_not_money_for_two_checkouts(database: TestDatabase) -> None:
    async def scene(made: Stage, checkout: str) -> None:
        other = await checkout_of(made, await made.buyer(), 1)
        assert (await tell(made, message(checkout))).status_code == 200
        answer = await tell(made, message(other))
        assert (answer.status_code, answer.json()) == (400, REFUSED)
        assert await audited(made) == ["payment_of_another_checkout"]
        assert (await money(made), await status_of(made, other)) == ([("pi_1", "applied", None)], "open")

    run_scene(database, scene)


def test_the_audit_of_refused_messages_cannot_be_flooded(database: TestDatabase) -> None:
    async def scene(made: Stage, checkout: str) -> None:
        for number in range(AUDITED_A_MINUTE + 10):
            await tell(made, message(checkout, f"pi_{number}"), secret="whsec_not_the_secret")
        assert AUDITED_A_MINUTE <= len(await audited(made)) <= AUDITED_A_MINUTE + 9

    run_scene(database, scene)


# Secrets ----------------------------------------------------------------------------------------------------------
def test_a_secret_is_shown_once_and_the_one_before_is_good_for_a_day(database: TestDatabase) -> None:
    async def scene(made: Stage, checkout: str) -> None:
        again = await add_provider(made)
        assert again["secret"] is None
        rotated = await add_provider(made, secret="whsec_fedcba9876543210")
        assert (rotated["secret"], rotated["old_secret_until"] is not None) == ("whsec_fedcba9876543210", True)
        listed = (await made.client.get("/api/payments/providers", headers=made.admin)).json()["data"]
        assert [(p["name"], p["kind"], p["enabled"], "secret" in p) for p in listed] == [
            ("stripe", "webhook", True, False)
        ]
        assert (await tell(made, message(checkout, "pi_old"))).status_code == 200
        assert (await tell(made, message(checkout, "pi_new"), secret=rotated["secret"])).status_code == 200
        await made.advance_clock(86_401)
        assert (await tell(made, message(checkout, "pi_late"))).status_code == 400
        assert (await tell(made, message(checkout, "pi_good"), secret=rotated["secret"])).status_code == 200
        body = message(checkout, "pi_both")
        now = await database_time(made)
        wrong = hmac.digest(b"wrong", body, hashlib.sha256).hex()
        both = sign(rotated["secret"], now, body).replace(",v1=", f",v1={wrong},v1=")
        assert (await tell(made, body, header=both)).status_code == 200
        made_here = await add_provider(made, secret=None, rotate=True)
        assert made_here["secret"].startswith("whsec_")
        assert len(made_here["secret"]) > 40
        kept = await made.sql("SELECT changes::text FROM audit_entries WHERE entity_type = 'PaymentProvider'")
        assert len(kept) == 4
        assert not any(SECRET in row["changes"] or made_here["secret"] in row["changes"] for row in kept)

    run_scene(database, scene)


def test_providers_are_the_administrators(database: TestDatabase) -> None:
    async def scene(made: Stage, checkout: str) -> None:
        path = "/api/payments/providers"
        for headers in (await made.buyer(), await made.member("organizer")):
            assert (await made.client.get(path, headers=headers)).status_code == 403
            assert (await made.client.put(f"{path}/x", headers=headers, json={"kind": "test"})).status_code == 403
            assert (await made.client.delete(f"{path}/stripe", headers=headers)).status_code == 403
        for name, body in (
            ("manual", {"kind": "test"}),
            ("Stripe", {"kind": "test"}),
            ("x" * 41, {"kind": "test"}),
            ("a", {"kind": "card"}),
            ("a", {"kind": "webhook", "secret": "short"}),
            ("a", {"kind": "webhook", "secret": "with a space in it"}),
            ("a", {"kind": "webhook", "secret": "x" * 201}),
            ("a", {"kind": "webhook", "secret": SECRET, "rotate": True}),
            ("a", {}),
        ):
            answer = await made.client.put(f"{path}/{name}", headers=made.admin, json=body)
            assert (answer.status_code, bool(answer.json()["errors"][0]["pointer"])) == (400, True), (name, body)
        answer = await made.client.put(f"{path}/stripe", headers=made.admin, json={"kind": "test"})
        assert (answer.status_code, answer.json()["error"]) == (409, "provider_kind_fixed")
        begun = await made.client.post(
            f"/api/checkouts/{checkout}/pay", headers=made.admin, json={"provider": "stripe"}
        )
        assert begun.status_code == 200
        answer = await made.client.delete(f"{path}/stripe", headers=made.admin)
        assert (answer.status_code, answer.json()["error"]) == (409, "provider_in_use")
        # A disabled one begins nothing, but its word still counts: the money may be on its way.
        await add_provider(made, enabled=False)
        assert (await tell(made, message(checkout))).status_code == 200
        assert await status_of(made, checkout) == "completed"
        assert (await made.client.delete(f"{path}/stripe", headers=made.admin)).status_code == 204
        assert (await made.client.delete(f"{path}/stripe", headers=made.admin)).status_code == 404
        assert (await tell(made, message(checkout, "pi_2"))).status_code == 400

    run_scene(database, scene)


def test_an_organization_has_so_many_providers(database: TestDatabase) -> None:
    async def scene(made: Stage, checkout: str) -> None:
        answers = [
            await made.client.put(f"/api/payments/providers/p{n}", headers=made.admin, json={"kind": "test"})
            for n in range(PROVIDERS_MAX)
        ]
        assert [a.status_code for a in answers] == [200] * (PROVIDERS_MAX - 1) + [409]
        assert answers[-1].json()["error"] == "too_many_providers"

    run_scene(database, scene)
