"""Signing in with a password, as browsers, forgers and guessers find it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any
from uuid import uuid4

import pytest

from holdfast.accounts.passwords import Hashing, password_fault
from holdfast.accounts.principal import Role
from holdfast.accounts.sign_in import KEPT_A_USER, new_cookie
from holdfast.http.cookies import PLAIN_NAME, SECURE_NAME
from holdfast.store.postgres import sign_ins as store
from holdfast.workers.forget_sign_ins import ForgetSignIns
from tests.conftest import TestDatabase
from tests.http.browsers import PASSWORD, browser, make_person, set_cookie_of
from tests.http.client import World, bearer, world

ANN = "ann@example.org"
OTHER = "another good password"


def run(database: TestDatabase, test: Callable[[World], Coroutine[Any, Any, None]], **settings: Any) -> None:
    async def main() -> None:
        async with world(database, **settings) as made:
            await test(made)

    asyncio.run(main())


async def audited(w: World) -> list[str]:
    rows = await w.sql(
        "SELECT action FROM audit_entries WHERE action LIKE '%sign%' OR action = 'password_set' ORDER BY id"
    )
    return [row["action"] for row in rows]


# In and out -----------------------------------------------------------------------------------------------------------
def test_who_signs_in_gets_a_cookie_that_says_who_they_are_until_they_sign_out(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        user_id = await make_person(w.client, w.admin, ANN)
        async with browser(w.client) as b:
            answer = await b.sign_in("  Ann@Example.ORG ")
            assert answer.status_code == 201, answer.text
            said = answer.json()["data"]
            assert said["user"] == {"id": str(user_id), "email": ANN, "display_name": ANN}
            assert said["organization"] == {"id": str(w.first.organization_id), "name": "Teatro Uno"}
            assert said["role"] == "organizer"
            name, value, attributes = set_cookie_of(answer)
            assert name == PLAIN_NAME
            assert (attributes["path"], attributes["samesite"]) == ("/", "Strict")
            assert attributes["httponly"] is True
            assert attributes["secure"] == attributes["domain"] == ""
            assert value not in answer.text  # scripts of the page do not get to see it
            again = await b.ask("GET", "/api/session")
            assert again.json()["data"] == said
            me = (await b.ask("GET", "/api/me")).json()["data"]
            assert (me["role"], me["user_id"], me["actor"]) == ("organizer", str(user_id), "ADMIN")

            out = await b.ask("DELETE", "/api/session")
            assert out.status_code == 204
            name, value, attributes = set_cookie_of(out)
            assert (name, value, attributes["max-age"]) == (PLAIN_NAME, "", "0")
            assert await b.who() == 401
            assert (await b.ask("GET", "/api/me")).status_code == 401
            assert (await b.ask("DELETE", "/api/session")).status_code == 204  # again, without effect
            assert await w.sql("SELECT * FROM sign_ins") == []
        assert await audited(w) == ["password_set", "signed_in", "signed_out"]
        (row,) = await w.sql("SELECT * FROM audit_entries WHERE action = 'signed_in'")
        assert (row["user_id"], row["entity_id"], row["ip"]) == (user_id, user_id, "127.0.0.1")

    run(database, check)


def test_the_database_keeps_neither_password_nor_cookie(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        await make_person(w.client, w.admin, ANN)
        async with browser(w.client) as b:
            await b.sign_in(ANN)
            secret = b.cookie.rsplit("_", 1)[1] if b.cookie.count("_") == 2 else b.cookie.split("_", 2)[2]
            for table in ("users", "sign_ins", "audit_entries", "idempotency_keys", "sign_in_failures", "outbox"):
                for row in await w.sql(f"SELECT t::text AS row FROM {table} t"):
                    for hidden in (PASSWORD, secret, b.cookie, b.csrf_token):
                        assert hidden not in row["row"], table
            (user,) = await w.sql("SELECT password_hash FROM users WHERE email = $1", ANN)
            assert user["password_hash"].startswith("$argon2id$v=19$m=1024,t=2,p=1$")

    run(database, check)


def test_a_given_cookie_is_never_adopted(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        await make_person(w.client, w.admin, ANN)
        async with browser(w.client) as b:
            planted = new_cookie(w.first.organization_id).text
            first = await b.sign_in(ANN, headers={"Cookie": f"{PLAIN_NAME}={planted}"})
            assert first.status_code == 201
            assert b.cookie != planted
            before = b.cookie
            await b.sign_in(ANN, headers=b.cookie_header)
            assert b.cookie != before
            planted_answer = await w.client.get("/api/session", headers={"Cookie": f"{PLAIN_NAME}={planted}"})
            assert planted_answer.status_code == 401

    run(database, check)


def test_behind_a_proxy_that_says_https_the_cookie_is_secure_and_bound_to_the_host(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        await make_person(w.client, w.admin, ANN)
        https = {"X-Forwarded-Proto": "https"}
        async with browser(w.client) as b:
            answer = await b.sign_in(ANN, headers=https)
            name, value, attributes = set_cookie_of(answer)
            assert (name, attributes["secure"], attributes["path"]) == (SECURE_NAME, True, "/")
            secure = {**https, "Cookie": f"{SECURE_NAME}={value}"}
            assert (await w.client.get("/api/session", headers=secure)).status_code == 200
            # A page of the same host that came without https is another's: anybody on the wire may have written it.
            token = answer.json()["data"]["csrf_token"]
            for scheme, status in (("http", 403), ("https", 200)):
                sent = {
                    **secure,
                    "X-CSRF-Token": token,
                    "Origin": f"{scheme}://tickets.example",
                    "Host": "tickets.example",
                }
                ended = await w.client.delete("/api/users/me/sign-ins", headers=sent)
                assert ended.status_code == status, ended.text
            # A sibling host can set the plain name, and anybody on the wire the plain connection's cookies.
            plain = {**https, "Cookie": f"{PLAIN_NAME}={value}"}
            assert (await w.client.get("/api/session", headers=plain)).status_code == 401
            unsafe = {"Cookie": f"{SECURE_NAME}={value}"}
            assert (await w.client.get("/api/session", headers=unsafe)).status_code == 401

    run(database, check, trusted_proxies="127.0.0.1")


def test_a_stranger_cannot_pretend_to_be_the_proxy(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        await make_person(w.client, w.admin, ANN)
        async with browser(w.client) as b:
            answer = await b.sign_in(ANN, headers={"X-Forwarded-Proto": "https"})
            assert set_cookie_of(answer)[0] == PLAIN_NAME

    run(database, check)


def test_two_different_cookies_of_the_name_are_none(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        await make_person(w.client, w.admin, ANN)
        async with browser(w.client) as b:
            await b.sign_in(ANN)
            for _ in range(16):  # whichever of the two a server without this rule would take
                other = new_cookie(w.first.organization_id).text
                twice = {"Cookie": f"{PLAIN_NAME}={other}; {PLAIN_NAME}={b.cookie}"}
                assert (await w.client.get("/api/session", headers=twice)).status_code == 401
            same = {"Cookie": f"a=b; {PLAIN_NAME}={b.cookie}; x; {PLAIN_NAME}={b.cookie}"}
            assert (await w.client.get("/api/session", headers=same)).status_code == 200

    run(database, check)


def test_what_is_no_cookie_of_ours_is_nobody(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        for text in (
            "",
            "x",
            "hfs_",
            f"hfs_{'0' * 32}_{'a' * 42}",
            f"hfs_{'g' * 32}_{'a' * 43}",
            f"hfs_{'0' * 32}_{'a' * 43}",
        ):
            for path in ("/api/session", "/api/me"):
                answer = await w.client.get(path, headers={"Cookie": f"{PLAIN_NAME}={text}"})
                assert answer.status_code == 401, answer.text

    run(database, check)


# Who may --------------------------------------------------------------------------------------------------------------
def test_every_failure_is_answered_with_the_same_bytes(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        await make_person(w.client, w.admin, ANN)
        await make_person(w.client, w.admin, "bob@example.org", password=None)
        gone = await make_person(w.client, w.admin, "gone@example.org")
        await w.client.patch(f"/api/users/{gone}", headers=w.admin, json={"deactivated": True})
        lowered = await make_person(w.client, w.admin, "low@example.org")
        await w.client.patch(f"/api/users/{lowered}", headers=w.admin, json={"role": "customer"})
        async with browser(w.client) as b:
            answers = [
                await b.sign_in("nobody@example.org"),
                await b.sign_in(ANN, "wrong password"),
                await b.sign_in(ANN, organization_id=str(uuid4())),
                await b.sign_in("bob@example.org"),
                await b.sign_in("gone@example.org"),
                await b.sign_in("low@example.org"),
                await b.sign_in("", ""),
                await b.sign_in(ANN, "x" * 5_000),
            ]
        seen = {(a.status_code, a.content, *sorted(n for n in a.headers if n != "date")) for a in answers}
        assert len(seen) == 1
        assert (answers[0].status_code, answers[0].json()["error"]) == (401, "sign_in_failed")
        assert "set-cookie" not in answers[0].headers
        # Where the user is known, their organization can read of it.
        failed = await w.sql("SELECT entity_id FROM audit_entries WHERE action = 'sign_in_failed'")
        assert len(failed) == 4

    run(database, check)


def test_as_much_is_hashed_for_nobody_as_for_somebody(database: TestDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    verified: list[str] = []
    real = Hashing.matches

    async def counted(self: Hashing, password: str, kept: str) -> bool:
        verified.append(kept)
        return await real(self, password, kept)

    monkeypatch.setattr(Hashing, "matches", counted)

    async def check(w: World) -> None:
        await make_person(w.client, w.admin, ANN)
        async with browser(w.client) as b:
            for email in (ANN, "nobody@example.org"):
                verified.clear()
                assert (await b.sign_in(email, "wrong password")).status_code == 401
                assert len(verified) == 1
                assert verified[0].startswith("$argon2id$v=19$m=1024,t=2,p=1$")

    run(database, check)


def test_a_body_that_is_none_is_refused(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        good = {"email": ANN, "password": PASSWORD}
        wrong: list[Any] = [{}, {"email": ANN}, {**good, "email": 1}, {**good, "password": None}, [], "x", None]
        wrong += [{**good, "organization_id": "x"}, {**good, "more": 1}, {**good, "email": "a\x00@b.c"}]
        for body in wrong:
            answer = await w.client.post("/api/session", json=body)
            assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request"), body
        assert await w.sql("SELECT * FROM sign_in_failures") == []

    run(database, check)


def test_somebody_in_several_organizations_is_asked_which(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        second = await w.accounts.bootstrap("Teatro Due")
        third = await w.accounts.bootstrap("Teatro Tre")
        await make_person(w.client, w.admin, ANN)
        await make_person(w.client, bearer(second.admin_token), ANN)
        await make_person(w.client, bearer(third.admin_token), ANN, password=OTHER)
        async with browser(w.client) as b:
            answer = await b.sign_in(ANN)
            assert (answer.status_code, answer.json()["error"]) == (409, "choose_organization")
            assert sorted(one["name"] for one in answer.json()["organizations"]) == ["Teatro Due", "Teatro Uno"]
            assert "set-cookie" not in answer.headers
            assert str(third.organization_id) not in answer.text  # another password there
            chosen = await b.sign_in(ANN, organization_id=str(second.organization_id))
            assert chosen.json()["data"]["organization"]["name"] == "Teatro Due"
            assert (await b.sign_in(ANN, organization_id=str(third.organization_id))).status_code == 401
            assert (await b.sign_in(ANN, OTHER)).json()["data"]["organization"]["name"] == "Teatro Tre"

    run(database, check)


def test_a_cookie_opens_its_own_organization_alone(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        second = await w.accounts.bootstrap("Teatro Due")
        await make_person(w.client, w.admin, ANN, role="admin")
        mine = (await w.client.get("/api/users", headers=w.admin)).json()["data"]
        async with browser(w.client) as b:
            await b.sign_in(ANN)
            headers = {"X-Organization-ID": str(second.organization_id)}
            assert (await b.ask("GET", "/api/users", headers=headers)).json()["data"] == mine
            # The same secret under the other organization's name is nobody's.
            forged = b.cookie.replace(w.first.organization_id.hex, second.organization_id.hex)
            assert forged != b.cookie
            answer = await w.client.get("/api/session", headers={"Cookie": f"{PLAIN_NAME}={forged}"})
            assert answer.status_code == 401

    run(database, check)


def test_a_role_changed_while_signed_in_counts_at_once(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        user_id = await make_person(w.client, w.admin, ANN, role="admin")
        async with browser(w.client) as b:
            await b.sign_in(ANN)
            assert (await b.ask("GET", "/api/users")).status_code == 200
            await w.client.patch(f"/api/users/{user_id}", headers=w.admin, json={"role": "scanner"})
            assert (await b.ask("GET", "/api/users")).status_code == 403
            me = (await b.ask("GET", "/api/me")).json()["data"]
            assert (me["role"], me["actor"]) == ("scanner", "CUSTOMER")
            await w.client.patch(f"/api/users/{user_id}", headers=w.admin, json={"role": "customer"})
            assert await b.who() == 401

    run(database, check)


@pytest.mark.parametrize("change", [{"deactivated": True}, {"active": False}])
def test_a_deactivated_users_browsers_are_signed_out_for_good(database: TestDatabase, change: dict[str, bool]) -> None:
    async def check(w: World) -> None:
        user_id = await make_person(w.client, w.admin, ANN)
        async with browser(w.client) as b:
            await b.sign_in(ANN)
            assert await b.who() == 200
            await w.client.patch(f"/api/users/{user_id}", headers=w.admin, json=change)
            assert await b.who() == 401
            back = {name: not value for name, value in change.items()}
            await w.client.patch(f"/api/users/{user_id}", headers=w.admin, json=back)
            assert await b.who() == 401
            assert (await b.sign_in(ANN)).status_code == 201

    run(database, check)


def test_an_address_that_changes_is_the_one_to_sign_in_with(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        user_id = await make_person(w.client, w.admin, ANN)
        path = f"/api/users/{user_id}"
        assert (await w.client.patch(path, headers=w.admin, json={"email": "New@example.org"})).status_code == 200
        async with browser(w.client) as b:
            assert (await b.sign_in(ANN)).status_code == 401
            assert (await b.sign_in("new@example.org")).status_code == 201
            assert (await w.client.patch(path, headers=w.admin, json={"email": None})).status_code == 200
            assert (await b.sign_in("new@example.org")).status_code == 401
            (row,) = await w.sql("SELECT email, sign_in_email FROM users WHERE id = $1", user_id)
            assert tuple(row) == (None, None)

    run(database, check)


# Its life -------------------------------------------------------------------------------------------------------------
def test_a_sign_in_ends_twelve_hours_after_its_last_use(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        await make_person(w.client, w.admin, ANN)
        async with browser(w.client) as used, browser(w.client) as unused:
            await used.sign_in(ANN)
            await unused.sign_in(ANN)
            await w.database.advance_clock(11 * 3600)
            assert await used.who() == 200
            await w.database.advance_clock(2 * 3600)
            assert (await used.who(), await unused.who()) == (200, 401)
            await ForgetSignIns(w.services.database).once()
            assert len(await w.sql("SELECT * FROM sign_ins")) == 1
            await w.database.advance_clock(12 * 3600 + 1)
            assert await used.who() == 401
            await ForgetSignIns(w.services.database).once()
            assert await w.sql("SELECT * FROM sign_ins") == []

    run(database, check, remember_s=0)


def test_a_sign_in_ends_after_a_week_however_much_it_is_used(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        await make_person(w.client, w.admin, ANN)
        async with browser(w.client) as b:
            await b.sign_in(ANN)
            for _ in range(14):
                assert await b.who() == 200
                await w.database.advance_clock(12 * 3600 - 60)
            assert await b.who() == 200
            await w.database.advance_clock(15 * 60)
            assert await b.who() == 401

    run(database, check, remember_s=0)


def test_use_is_written_down_once_a_minute(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        await make_person(w.client, w.admin, ANN)

        async def last_used() -> Any:
            return (await w.sql("SELECT last_used_at FROM sign_ins"))[0]["last_used_at"]

        async with browser(w.client) as b:
            await b.sign_in(ANN)
            first = await last_used()
            await w.database.advance_clock(50)
            assert await b.who() == 200
            assert await last_used() == first
            await w.database.advance_clock(15)
            assert await b.who() == 200
            assert (await last_used() - first).total_seconds() > 60

    run(database, check, remember_s=0)


def test_ones_browsers_can_be_listed_and_all_others_signed_out(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        await make_person(w.client, w.admin, ANN)
        await make_person(w.client, w.admin, "bob@example.org")
        async with browser(w.client) as here, browser(w.client) as there, browser(w.client) as bob:
            await there.sign_in(ANN, headers={"User-Agent": "Elsewhere/1.0"})
            await here.sign_in(ANN)
            await bob.sign_in("bob@example.org")
            listed = (await here.ask("GET", "/api/users/me/sign-ins")).json()["data"]
            assert [one["current"] for one in listed] == [True, False]
            assert (listed[1]["user_agent"], listed[1]["ip"]) == ("Elsewhere/1.0", "127.0.0.1")
            assert "secret" not in str(listed)
            ended = await here.ask("DELETE", "/api/users/me/sign-ins")
            assert (ended.status_code, ended.json()["data"]) == (200, {"ended": 1})
            assert (await here.who(), await there.who(), await bob.who()) == (200, 401, 200)
        key = {"X-API-Key": w.first.api_key}
        assert (await w.client.get("/api/users/me/sign-ins", headers=key)).status_code == 403
        mine = await w.client.get("/api/users/me/sign-ins", headers=w.admin)
        assert (mine.status_code, mine.json()["data"]) == (200, [])

    run(database, check)


def test_one_person_has_a_limited_number_of_browsers(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        user_id = await make_person(w.client, w.admin, ANN)
        async with browser(w.client) as b:
            await b.sign_in(ANN)
            oldest = b.cookie
            await w.sql(
                "INSERT INTO sign_ins SELECT organization_id, gen_random_uuid(), user_id, sha256(n::text::bytea),"
                " created_at + n * interval '1 ms', last_used_at FROM sign_ins, generate_series(1, $1::int) n",
                KEPT_A_USER - 1,
            )
            await w.database.advance_clock(60)
            await b.sign_in(ANN)
            assert await b.who() == 200
            rows = await w.sql("SELECT count(*) AS n FROM sign_ins WHERE user_id = $1", user_id)
            assert rows[0]["n"] == KEPT_A_USER
            b.cookie = oldest
            assert await b.who() == 401

    run(database, check)


# Forged requests ------------------------------------------------------------------------------------------------------
def test_nothing_is_changed_without_the_sign_ins_own_token(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        await make_person(w.client, w.admin, ANN, role="admin")
        async with browser(w.client) as b, browser(w.client) as other:
            await b.sign_in(ANN)
            await other.sign_in(ANN)
            assert b.csrf_token != other.csrf_token
            for token in (None, "", "x", other.csrf_token, b.csrf_token[:-1], b.csrf_token + "x", b.cookie):
                headers = b.cookie_header | ({} if token is None else {"X-CSRF-Token": token})
                for method, path, body in (
                    ("POST", "/api/users", {"email": "eve@example.org", "role": "admin"}),
                    ("PUT", "/api/policy", {"max_seats_per_booking": 9}),
                    ("DELETE", "/api/session", None),
                    ("DELETE", "/api/users/me/sign-ins", None),
                    ("POST", "/api/api-keys", {"name": "mine"}),
                ):
                    answer = await w.client.request(method, path, headers=headers, json=body)
                    assert (answer.status_code, answer.json()["error"]) == (403, "csrf_failed"), (method, path, token)
            assert await w.sql("SELECT * FROM users WHERE email = 'eve@example.org'") == []
            assert await b.who() == await other.who() == 200
            made = await b.ask("POST", "/api/users", {"email": "eve@example.org"})
            assert made.status_code == 201, made.text

    run(database, check)


def test_a_page_of_another_site_changes_nothing_even_with_the_token(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        await make_person(w.client, w.admin, ANN, role="admin")
        host = f"127.0.0.1:{w.client.base_url.port}"
        async with browser(w.client) as b:
            await b.sign_in(ANN)
            for foreign in (
                {"Origin": "https://evil.example"},
                {"Origin": "null"},
                {"Origin": f"http://127.0.0.1:{w.client.base_url.port}.evil.example"},
                {"Origin": "http://127.0.0.1"},
                {"Origin": f"ftp://{host}"},
                {"Origin": "http://["},
                {"Sec-Fetch-Site": "cross-site"},
                {"Sec-Fetch-Site": "same-site"},
                {"Sec-Fetch-Site": "cross-site", "Origin": f"http://{host}"},
            ):
                answer = await b.ask("POST", "/api/users", {"role": "customer"}, headers=foreign)
                assert (answer.status_code, answer.json()["error"]) == (403, "csrf_failed"), foreign
                entered = await b.client.post(
                    "/api/session", json={"email": ANN, "password": PASSWORD}, headers=foreign
                )
                assert (entered.status_code, entered.json()["error"]) == (403, "csrf_failed"), foreign
            for own in (
                {"Origin": f"http://{host}"},
                {"Sec-Fetch-Site": "same-origin"},
                {"Sec-Fetch-Site": "none"},
                {"Sec-Fetch-Site": "same-origin", "Origin": "https://tickets.example"},  # a proxy that renames the host
            ):
                answer = await b.ask("POST", "/api/users", {"role": "customer"}, headers=own)
                assert answer.status_code == 201, (own, answer.text)

    run(database, check)


def test_beside_another_credential_the_cookie_does_not_count(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        await make_person(w.client, w.admin, ANN)
        async with browser(w.client) as b:
            await b.sign_in(ANN)
            both = await b.ask("GET", "/api/me", headers=w.admin)
            assert both.json()["data"]["user_id"] == str(w.first.admin_user_id)
            assert both.json()["data"]["role"] == "admin"
            # A bad header is not made good by a cookie.
            assert (await b.ask("GET", "/api/me", headers=bearer("x"))).status_code == 401
            assert (await b.ask("GET", "/api/me", headers={"X-API-Key": "x"})).status_code == 401
            # And with a header nobody needs the token of the cookie.
            answer = await w.client.post(
                "/api/users", headers={**b.cookie_header, **w.admin}, json={"role": "customer"}
            )
            assert answer.status_code == 201
            assert (await b.ask("GET", "/api/session", headers=w.admin)).status_code == 401
            # What a token asks for never ends a browser's sign-in by mistake.
            listed = (await b.ask("GET", "/api/users/me/sign-ins", headers=w.admin)).json()["data"]
            assert listed == []

    run(database, check)


# Guessing -------------------------------------------------------------------------------------------------------------
def test_after_ten_failures_an_address_has_to_wait_whoever_asks_and_wherever(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        await make_person(w.client, w.admin, ANN)
        async with (
            world(database, trusted_proxies="127.0.0.1") as second,
            browser(w.client) as b,
            browser(second.client) as elsewhere,
        ):
            for n in range(10):
                side = (b, elsewhere)[n % 2]
                answer = await side.sign_in(ANN, "wrong password", headers={"X-Forwarded-For": f"192.0.2.{n}"})
                assert answer.status_code == 401, n
            for side in (b, elsewhere):
                answer = await side.sign_in(ANN, headers={"X-Forwarded-For": "198.51.100.1"})
                assert (answer.status_code, answer.json()["error"]) == (429, "rate_limited")
                assert 800 < int(answer.headers["retry-after"]) <= 900
            # Nobody else's address is the worse for it.
            other = await b.sign_in("bob@example.org", headers={"X-Forwarded-For": "198.51.100.1"})
            assert other.status_code == 401
            wait_s = int(answer.headers["retry-after"])
            await w.database.advance_clock(wait_s - 60)
            assert (await b.sign_in(ANN, headers={"X-Forwarded-For": "198.51.100.1"})).status_code == 429
            await w.database.advance_clock(61)
            assert (await b.sign_in(ANN, headers={"X-Forwarded-For": "198.51.100.1"})).status_code == 201

    run(database, check, trusted_proxies="127.0.0.1")


def test_spellings_that_are_one_address_to_the_database_are_counted_together(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        async with browser(w.client) as b:
            for n in range(10):
                spelling = "".join(letter.upper() if n >> at & 1 else letter for at, letter in enumerate("nobody"))
                answer = await b.sign_in(f" {spelling}@example.org", headers={"X-Forwarded-For": f"192.0.2.{n}"})
                assert answer.status_code == 401
            rows = await w.sql("SELECT max(cardinality(failed_at)) AS most FROM sign_in_failures")
            assert rows[0]["most"] == 10

    run(database, check, trusted_proxies="127.0.0.1")


def test_an_address_that_nobody_has_is_limited_like_any_other(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        async with browser(w.client) as b:
            for n in range(10):
                headers = {"X-Forwarded-For": f"192.0.2.{n}"}
                assert (await b.sign_in("nobody@example.org", "wrong password", headers=headers)).status_code == 401
            assert (await b.sign_in("Nobody@example.org ", "wrong password")).status_code == 429

    run(database, check, trusted_proxies="127.0.0.1")


@pytest.mark.parametrize("addresses", [["192.0.2.7"], ["2001:db8:1:2::1", "2001:db8:1:2:ffff::9"]])
def test_after_ten_failures_a_network_has_to_wait_whomever_it_asks_for(
    database: TestDatabase, addresses: list[str]
) -> None:
    async def check(w: World) -> None:
        await make_person(w.client, w.admin, ANN)
        async with browser(w.client) as b:
            for n in range(10):
                headers = {"X-Forwarded-For": addresses[n % len(addresses)]}
                assert (await b.sign_in(f"p{n}@example.org", "wrong password", headers=headers)).status_code == 401
            assert (await b.sign_in(ANN, headers={"X-Forwarded-For": addresses[0]})).status_code == 429
            for other in ("192.0.2.8", "2001:db8:1:3::1"):
                assert (await b.sign_in(ANN, headers={"X-Forwarded-For": other})).status_code == 201

    run(database, check, trusted_proxies="127.0.0.1")


def test_what_succeeds_does_not_count(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        await make_person(w.client, w.admin, ANN)
        async with browser(w.client) as b:
            for _ in range(9):
                assert (await b.sign_in(ANN, "wrong password")).status_code == 401
            for _ in range(3):
                assert (await b.sign_in(ANN)).status_code == 201
            assert (await b.sign_in(ANN, "wrong password")).status_code == 401
            assert (await b.sign_in(ANN)).status_code == 429
            await w.database.advance_clock(16 * 60)
            await ForgetSignIns(w.services.database).once()
            assert await w.sql("SELECT * FROM sign_in_failures") == []

    run(database, check)


def test_a_hundred_guesses_at_once_are_ten(database: TestDatabase) -> None:
    """Two processes; and many right ones from one place wait for each other instead of being turned away."""

    async def check(w: World) -> None:
        await make_person(w.client, w.admin, ANN)
        async with world(database) as second, browser(w.client) as b, browser(second.client) as c:
            right = await asyncio.gather(*(side.sign_in(ANN) for side in (b, c) for _ in range(8)))
            assert {answer.status_code for answer in right} == {201}
            wrong = await asyncio.gather(*(side.sign_in(ANN, "wrong password") for side in (b, c) for _ in range(20)))
            statuses = [answer.status_code for answer in wrong]
            assert (statuses.count(401), statuses.count(429)) == (10, 30)
            (row,) = await w.sql(
                "SELECT max(cardinality(failed_at)) AS failed, max(cardinality(pending)) AS pending FROM sign_in_failures"
            )
            assert tuple(row) == (10, 0)

    run(database, check)


def test_guesses_at_once_are_more_than_ten_where_they_are_not_entered_before_they_are_looked_at(
    database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the test before."""
    monkeypatch.setattr(store, "ENTER", "SELECT $1::bytea, $2::timestamptz")

    async def check(w: World) -> None:
        async with browser(w.client) as b:
            wrong = await asyncio.gather(*(b.sign_in(ANN, "wrong password") for _ in range(20)))
            assert [answer.status_code for answer in wrong].count(401) > 10

    run(database, check)


def test_an_attempt_cut_off_by_a_crash_counts_as_failed(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        await make_person(w.client, w.admin, ANN)
        async with browser(w.client) as b:
            await b.sign_in(ANN, "wrong password")
            await w.sql("UPDATE sign_in_failures SET pending = array_fill(failed_at[1], ARRAY[10]), failed_at = '{}'")
            await w.database.advance_clock(61)
            answer = await b.sign_in(ANN)
            assert answer.status_code == 429
            assert int(answer.headers["retry-after"]) > 700

    run(database, check)


def test_a_crowd_at_the_sign_in_is_refused_before_it_takes_the_machine(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        w.services.sign_ins._hashing._room = 0
        async with browser(w.client) as b:
            answer = await b.sign_in(ANN)
            assert (answer.status_code, answer.json()["error"]) == (503, "overloaded")
            assert int(answer.headers["retry-after"]) >= 1
            (row,) = await w.sql("SELECT sum(cardinality(failed_at || pending)) AS n FROM sign_in_failures")
            assert row["n"] == 0

    run(database, check)


# Passwords ------------------------------------------------------------------------------------------------------------
def test_ones_own_password_is_changed_with_the_current_one_and_ends_all_other_sign_ins(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        user_id = await make_person(w.client, w.admin, ANN)
        path = f"/api/users/{user_id}/password"
        async with browser(w.client) as here, browser(w.client) as there:
            await here.sign_in(ANN)
            await there.sign_in(ANN)
            for body, status, code in (
                ({"password": OTHER}, 400, "invalid_request"),
                ({"password": OTHER, "current_password": "wrong password"}, 403, "wrong_password"),
                ({"password": "short", "current_password": PASSWORD}, 400, "invalid_request"),
            ):
                answer = await here.ask("PUT", path, body)
                assert (answer.status_code, answer.json()["error"]) == (status, code), body
            assert await there.who() == 200
            changed = await here.ask("PUT", path, {"password": OTHER, "current_password": PASSWORD})
            assert changed.status_code == 204, changed.text
            assert (await here.who(), await there.who()) == (200, 401)
            assert (await there.sign_in(ANN)).status_code == 401
            assert (await there.sign_in(ANN, OTHER)).status_code == 201

    run(database, check)


def test_the_current_password_cannot_be_guessed_either(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        user_id = await make_person(w.client, w.admin, ANN)
        async with browser(w.client) as b:
            await b.sign_in(ANN)
            body = {"password": OTHER, "current_password": "wrong password"}
            for _ in range(10):
                assert (await b.ask("PUT", f"/api/users/{user_id}/password", body)).status_code == 403
            body["current_password"] = PASSWORD
            assert (await b.ask("PUT", f"/api/users/{user_id}/password", body)).status_code == 429

    run(database, check)


def test_an_administrator_sets_passwords_of_those_who_are_not_above_them(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        ann = await make_person(w.client, w.admin, ANN)
        customer = await make_person(w.client, w.admin, "cus@example.org", role="customer", password=None)
        nameless = (await w.client.post("/api/users", headers=w.admin, json={"role": "scanner"})).json()["data"]["id"]
        issued = await w.accounts.issue_token(w.first.organization_id, Role.SUPERADMIN)
        organizer = bearer((await w.accounts.issue_token(w.first.organization_id, Role.ORGANIZER)).token)
        body = {"password": OTHER}
        async with browser(w.client) as b:
            await b.sign_in(ANN)
            for headers, who, status, code in (
                (organizer, ann, 403, "forbidden"),
                (organizer, uuid4(), 403, "forbidden"),
                (w.admin, uuid4(), 404, "user_not_found"),
                (w.admin, issued.user_id, 403, "role_too_high"),
                (w.admin, customer, 409, "cannot_sign_in"),
                (w.admin, nameless, 409, "cannot_sign_in"),
                (w.admin, "x", 400, "invalid_request"),
            ):
                answer = await w.client.put(f"/api/users/{who}/password", headers=headers, json=body)
                assert (answer.status_code, answer.json()["error"]) == (status, code), (who, answer.text)
            assert await b.who() == 200
            answer = await w.client.put(f"/api/users/{ann}/password", headers=w.admin, json=body)
            assert answer.status_code == 204
            assert await b.who() == 401
        # The administrator of the bootstrap has no password yet, and an address to sign in with only after this.
        me = f"/api/users/{w.first.admin_user_id}"
        assert (await w.client.put(f"{me}/password", headers=w.admin, json=body)).status_code == 409
        await w.client.patch(me, headers=w.admin, json={"email": "chief@example.org"})
        assert (await w.client.put(f"{me}/password", headers=w.admin, json=body)).status_code == 204
        again = await w.client.put(f"{me}/password", headers=w.admin, json={"password": PASSWORD})
        assert (again.status_code, again.json()["errors"][0]["pointer"]) == (400, "/current_password")

    run(database, check)


@pytest.mark.parametrize(
    ("password", "code"),
    [
        ("", "bad_length"),
        ("nine char", "bad_length"),
        ("x" * 201, "bad_length"),
        ("Password123", "too_common"),
        (" qwertyuiop ", "too_common"),
        ("aaaaaaaaaaaa", "too_common"),
        ("ababababababab", "too_common"),
        ("LONG.ADDRESS@example.org", "is_the_email"),
        ("long.address", "is_the_email"),
        ("lone \ud800 surrogate", "not_text"),
    ],
)
def test_a_weak_password_is_refused_with_the_reason(password: str, code: str) -> None:
    fault = password_fault(password, "Long.Address@example.org")
    assert fault is not None
    assert fault[0] == code
    assert password not in fault[1] or not password


@pytest.mark.parametrize("password", ["x y z long enough", "ten chars!", "пароль, но длинный", "a1" * 3 + "b" * 194])
def test_a_good_password_is_let_through(password: str) -> None:
    assert password_fault(password, ANN) is None


def test_what_is_kept_of_a_password_is_as_slow_as_is_recommended() -> None:
    async def main() -> None:
        hashing = Hashing()
        try:
            kept = await hashing.hash(PASSWORD)
            assert kept.startswith("$argon2id$v=19$m=47104,t=2,p=1$")
            assert await hashing.matches(PASSWORD, kept)
            assert not await hashing.matches(PASSWORD + " ", kept)
            assert not await hashing.matches(PASSWORD, "no hash at all")
        finally:
            hashing.close()

    asyncio.run(main())


def test_accents_count_the_same_however_they_are_typed(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        await make_person(w.client, w.admin, ANN, password="caf\u00e9 au lait, s'il")
        async with browser(w.client) as b:
            assert (await b.sign_in(ANN, "cafe\u0301 au lait, s'il")).status_code == 201

    run(database, check)


# At the same moment ---------------------------------------------------------------------------------------------------
async def overtaken(w: World, monkeypatch: pytest.MonkeyPatch) -> int:
    """Signs in with the old password, which is changed after it was verified; the status, and nothing may be signed in."""
    user_id = await make_person(w.client, w.admin, ANN)
    verified, changed = asyncio.Event(), asyncio.Event()
    real = Hashing.matches

    async def paused(self: Hashing, password: str, kept: str) -> bool:
        matches = await real(self, password, kept)
        verified.set()
        await changed.wait()
        return matches

    monkeypatch.setattr(Hashing, "matches", paused)
    async with browser(w.client) as b:
        signing_in = asyncio.create_task(b.sign_in(ANN))
        await verified.wait()
        answer = await w.client.put(f"/api/users/{user_id}/password", headers=w.admin, json={"password": OTHER})
        assert answer.status_code == 204
        changed.set()
        return (await signing_in).status_code


def test_a_password_that_is_changed_while_somebody_signs_in_with_it_opens_nothing(
    database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check(w: World) -> None:
        assert await overtaken(w, monkeypatch) == 401
        assert await w.sql("SELECT * FROM sign_ins") == []

    run(database, check)


def test_it_would_open_where_the_insert_did_not_look_at_the_password_again(
    database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the test before."""
    broken = store.INSERT.replace("u.password_hash = $5", "$5::text IS NOT NULL")
    assert broken != store.INSERT
    monkeypatch.setattr(store, "INSERT", broken)

    async def check(w: World) -> None:
        assert await overtaken(w, monkeypatch) == 201

    run(database, check)


def test_a_sign_in_waits_for_a_password_that_is_being_changed(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        user_id = await make_person(w.client, w.admin, ANN)
        database_ = w.services.database
        hashed = await w.services.sign_ins._hashing.hash(OTHER)
        async with browser(w.client) as b:
            async with database_.transaction(w.first.organization_id) as tx:
                before = await tx.fetchval("SELECT password_hash FROM users WHERE id = $1", user_id)
                assert await store.set_password(tx, w.first.organization_id, user_id, hashed, before)
                signing_in = asyncio.create_task(b.sign_in(ANN))  # sees the old password, and verifies it
                await asyncio.sleep(0.8)
                assert not signing_in.done()
            assert (await signing_in).status_code == 401
            assert await w.sql("SELECT * FROM sign_ins") == []

    run(database, check)


def test_uses_during_a_change_of_password_end_with_it(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        user_id = await make_person(w.client, w.admin, ANN)
        async with browser(w.client) as b:
            await b.sign_in(ANN)
            over = False

            async def use() -> list[tuple[bool, int]]:
                seen = []
                while True:
                    began_after = over
                    seen.append((began_after, await b.who()))
                    if began_after:
                        return seen

            users = [asyncio.create_task(use()) for _ in range(6)]
            answer = await w.client.put(f"/api/users/{user_id}/password", headers=w.admin, json={"password": OTHER})
            assert answer.status_code == 204
            over = True
            seen = [one for task in users for one in await task]
            assert {status for after, status in seen if after} == {401}
            assert (False, 200) in seen

    run(database, check)


def test_of_two_changes_of_ones_own_password_with_the_same_current_one_one_counts(database: TestDatabase) -> None:
    async def check(w: World) -> None:
        user_id = await make_person(w.client, w.admin, ANN)
        async with browser(w.client) as b:
            await b.sign_in(ANN)
            both = await asyncio.gather(
                *(
                    b.ask("PUT", f"/api/users/{user_id}/password", {"password": new, "current_password": PASSWORD})
                    for new in (OTHER, "a third good password")
                )
            )
            assert sorted(answer.status_code for answer in both) == [204, 403]

    run(database, check)


def test_no_line_of_the_log_has_a_secret_in_it(
    database: TestDatabase, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    async def check(w: World) -> None:
        await make_person(w.client, w.admin, ANN)
        async with browser(w.client) as b:
            await b.sign_in(ANN)
            await b.sign_in(ANN, "wrong password of mine")
            await b.ask("DELETE", "/api/session")
            said = "".join(capsys.readouterr()) + caplog.text
            assert "sign_in_failed" in said
            for hidden in (PASSWORD, "wrong password of mine", b.cookie, b.csrf_token, ANN):
                assert hidden not in said

    run(database, check)
