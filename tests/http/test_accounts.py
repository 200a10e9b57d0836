"""Credentials, people, keys, hold types and policy, over HTTP."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey

from holdfast.accounts.credentials import new_api_key
from holdfast.accounts.principal import Role
from holdfast.accounts.refusals import UserInactive
from holdfast.kernel.ids import new_id
from tests.conftest import TestDatabase
from tests.http.client import SECRETS, World, bearer, world

Story = Callable[[World], Awaitable[None]]


def tell(database: TestDatabase, story: Story, **options: Any) -> None:
    async def run() -> None:
        async with world(database, **options) as w:
            await story(w)

    asyncio.run(run())


async def status(w: World, headers: dict[str, str], path: str = "/api/me") -> int:
    return (await w.client.get(path, headers=headers)).status_code


async def token(w: World, role: Role, **options: Any) -> dict[str, str]:
    return bearer((await w.accounts.issue_token(w.first.organization_id, role, **options)).token)


def forged(w: World, *, secret: bytes = SECRETS["new"], kid: str = "new", alg: str = "HS256", **changes: Any) -> str:
    claims = {
        "iss": "holdfast",
        "aud": "holdfast",
        "sub": str(w.first.admin_user_id),
        "org": str(w.first.organization_id),
        "role": "admin",
        "exp": 4_000_000_000,
        **changes,
    }
    return jwt.encode({"alg": alg, "kid": kid}, claims, OctKey.import_key(secret), algorithms=[alg])


async def make_event(w: World, organization_id: UUID, event_status: str = "published") -> UUID:
    event_id = new_id()
    await w.sql(
        "INSERT INTO events (organization_id, id, name, own_zones, status) VALUES ($1, $2, 'Night', '[]', $3)",
        organization_id,
        event_id,
        event_status,
    )
    return event_id


# Credentials ----------------------------------------------------------------------------------------------------
def test_a_call_without_a_good_credential_is_refused_and_challenged(database: TestDatabase) -> None:
    async def story(w: World) -> None:
        assert await status(w, bearer(forged(w))) == 200
        bad: list[dict[str, str]] = [
            {},
            {"Authorization": "Basic YTpi"},
            {"Authorization": "Bearer"},
            bearer("x.y.z"),
            bearer(forged(w, secret=b"f" * 40)),
            bearer(forged(w, kid="unknown")),
            bearer(forged(w, alg="HS384")),
            bearer(forged(w, aud="another")),
            bearer(forged(w, iss="another")),
            bearer(forged(w, exp=1_000_000_000)),
            bearer(forged(w, org=str(new_id()))),
            bearer(forged(w, tenant=str(new_id()))),
            bearer(forged(w, role="superadmin")),
            bearer(forged(w, sub=str(new_id()))),
            {"X-API-Key": "hf_x"},
            {"X-API-Key": new_api_key(w.first.organization_id).text},
            {"X-API-Key": w.first.api_key[:-1] + ("A" if w.first.api_key[-1] != "A" else "B")},
            {"X-API-Key": new_api_key(new_id(), of_tenant=True).text},
            {**w.admin, "X-API-Key": w.first.api_key},
        ]
        for headers in bad:
            got = await w.client.get("/api/me", headers=headers)
            assert (got.status_code, got.json()["error"]) == (401, "unauthorized"), headers
            assert got.headers["www-authenticate"].startswith("Bearer")

    tell(database, story)


def test_a_token_expires_by_the_databases_clock(database: TestDatabase) -> None:
    async def story(w: World) -> None:
        headers = await token(w, Role.CUSTOMER, ttl_s=60)
        assert await status(w, headers) == 200
        await w.database.advance_clock(61)
        assert await status(w, headers) == 401

    tell(database, story, remember_s=0)


def test_each_credential_is_the_actor_it_should_be(database: TestDatabase) -> None:
    async def story(w: World) -> None:
        async def me(headers: dict[str, str]) -> tuple[str, str]:
            found = (await w.client.get("/api/me", headers=headers)).json()["data"]
            assert found["organization_id"] == str(w.first.organization_id)
            assert found["tenant_id"] == str(w.first.tenant_id)
            return found["actor"], found["role"]

        assert await me(await token(w, Role.CUSTOMER)) == ("CUSTOMER", "customer")
        assert await me(await token(w, Role.SCANNER)) == ("CUSTOMER", "scanner")
        assert await me(await token(w, Role.ORGANIZER)) == ("ADMIN", "organizer")
        assert await me(w.admin) == ("ADMIN", "admin")
        assert await me({"X-API-Key": w.first.api_key}) == ("API", "organizer")
        assert w.first.tenant_api_key is not None
        for_one = {"X-API-Key": w.first.tenant_api_key, "X-Organization-ID": str(w.first.organization_id)}
        assert await me(for_one) == ("API", "organizer")

    tell(database, story)


def test_tiers_come_from_the_membership_and_not_from_the_token(database: TestDatabase) -> None:
    async def story(w: World) -> None:
        known = await w.accounts.issue_token(w.first.organization_id, Role.CUSTOMER, tiers=["gold"])
        found = (await w.client.get("/api/me", headers=bearer(known.token))).json()["data"]
        assert found["tiers"] == ["gold"]
        stranger = bearer(forged(w, sub=str(new_id()), role="customer", tiers=["gold"]))
        found = (await w.client.get("/api/me", headers=stranger)).json()["data"]
        assert (found["tiers"], found["role"]) == ([], "customer")

    tell(database, story)


def test_the_operators_token_raises_a_known_user_but_never_revives_one(database: TestDatabase) -> None:
    async def story(w: World) -> None:
        organization_id = w.first.organization_id
        known = await w.accounts.issue_token(organization_id, Role.CUSTOMER, tiers=["gold"])
        raised = await w.accounts.issue_token(organization_id, Role.ORGANIZER, known.user_id, ["vip"])
        found = (await w.client.get("/api/me", headers=bearer(raised.token))).json()["data"]
        assert (found["role"], found["tiers"]) == ("organizer", ["gold", "vip"])
        await w.client.patch(f"/api/users/{known.user_id}", headers=w.admin, json={"active": False})
        with pytest.raises(UserInactive):
            await w.accounts.issue_token(organization_id, Role.CUSTOMER, known.user_id)

    tell(database, story)


@pytest.mark.parametrize("change", [{"active": False}, {"deactivated": True}, {"role": "customer"}])
def test_a_user_who_loses_their_standing_is_refused_at_once(database: TestDatabase, change: dict[str, Any]) -> None:
    async def story(w: World) -> None:
        issued = await w.accounts.issue_token(w.first.organization_id, Role.ORGANIZER)
        assert await status(w, bearer(issued.token)) == 200
        got = await w.client.patch(f"/api/users/{issued.user_id}", headers=w.admin, json=change)
        assert got.status_code == 200
        assert await status(w, bearer(issued.token)) == 401

    tell(database, story)


def test_a_change_made_by_another_process_takes_effect_when_the_memory_ends(database: TestDatabase) -> None:
    async def story(w: World) -> None:
        issued = await w.accounts.issue_token(w.first.organization_id, Role.ORGANIZER)
        assert await status(w, bearer(issued.token)) == 200
        assert w.services.authenticator.remembered(f"Bearer {issued.token}".encode()) is not None
        await w.sql("UPDATE memberships SET active = false WHERE user_id = $1", issued.user_id)
        assert await status(w, bearer(issued.token)) == 200
        await asyncio.sleep(0.35)
        assert w.services.authenticator.remembered(f"Bearer {issued.token}".encode()) is None
        assert await status(w, bearer(issued.token)) == 401

    tell(database, story, remember_s=0.3)


def test_nothing_is_remembered_when_that_is_switched_off(database: TestDatabase) -> None:
    async def story(w: World) -> None:
        issued = await w.accounts.issue_token(w.first.organization_id, Role.ORGANIZER)
        assert await status(w, bearer(issued.token)) == 200
        await w.sql("UPDATE users SET deactivated_at = now() WHERE id = $1", issued.user_id)
        assert await status(w, bearer(issued.token)) == 401

    tell(database, story, remember_s=0)


def test_a_hundred_calls_with_one_new_credential_all_succeed(database: TestDatabase) -> None:
    async def story(w: World) -> None:
        assert set(await asyncio.gather(*(status(w, w.admin) for _ in range(100)))) == {200}

    tell(database, story)


# API keys -------------------------------------------------------------------------------------------------------
def test_a_key_is_shown_once_works_and_can_be_revoked(database: TestDatabase) -> None:
    async def story(w: World) -> None:
        made = await w.client.post("/api/api-keys", headers=w.admin, json={"name": "box office"})
        assert made.status_code == 201
        key = made.json()["data"]
        headers = {"X-API-Key": key["secret"]}
        assert await status(w, headers) == 200
        listed = (await w.client.get("/api/api-keys", headers=w.admin)).json()["data"]
        assert key["id"] in {item["id"] for item in listed}
        assert all("secret" not in item and "secret_hash" not in item for item in listed)
        assert key["secret"].startswith(key["prefix"])
        for _ in range(2):
            assert (await w.client.delete(f"/api/api-keys/{key['id']}", headers=w.admin)).status_code == 204
        assert await status(w, headers) == 401
        kept = await w.sql("SELECT secret_hash FROM api_keys WHERE id = $1", UUID(key["id"]))
        assert key["secret"].rpartition("_")[2].encode() not in kept[0]["secret_hash"]

    tell(database, story)


def test_a_key_ends_when_it_was_meant_to(database: TestDatabase) -> None:
    async def story(w: World) -> None:
        body = {"name": "short", "expires_at": "2999-01-01T00:00:00Z"}
        key = (await w.client.post("/api/api-keys", headers=w.admin, json=body)).json()["data"]
        await w.sql("UPDATE api_keys SET expires_at = now() + interval '1 hour' WHERE id = $1", UUID(key["id"]))
        assert await status(w, {"X-API-Key": key["secret"]}) == 200
        await w.database.advance_clock(3601)
        assert await status(w, {"X-API-Key": key["secret"]}) == 401
        for bad in ("2001-01-01T00:00:00Z", "2999-01-01T00:00:00", "never"):
            got = await w.client.post("/api/api-keys", headers=w.admin, json={"name": "x", "expires_at": bad})
            assert got.status_code == 400, bad
            assert got.json()["errors"][0]["pointer"] == "/expires_at"

    tell(database, story, remember_s=0)


def test_a_repeated_creation_of_a_key_answers_the_same_secret_and_keeps_none(database: TestDatabase) -> None:
    async def story(w: World) -> None:
        headers = {**w.admin, "Idempotency-Key": "once"}
        first = await w.client.post("/api/api-keys", headers=headers, json={"name": "a"})
        again = await w.client.post("/api/api-keys", headers=headers, json={"name": "a"})
        assert first.json() == again.json()
        assert await status(w, {"X-API-Key": again.json()["data"]["secret"]}) == 200
        other = await w.client.post("/api/api-keys", headers=headers, json={"name": "b"})
        assert (other.status_code, other.json()["error"]) == (422, "idempotency_key_reused")
        secret = first.json()["data"]["secret"].rpartition("_")[2].encode()
        kept = await w.sql("SELECT answer FROM idempotency_keys")
        assert len(kept) == 1
        assert secret not in kept[0]["answer"]

    tell(database, story)


def test_a_key_may_do_what_its_scopes_say_and_no_more(database: TestDatabase) -> None:
    async def story(w: World) -> None:
        async def key(*scopes: str) -> dict[str, str]:
            body = {"name": "k", "scopes": scopes}
            made = await w.client.post("/api/api-keys", headers=w.admin, json=body)
            return {"X-API-Key": made.json()["data"]["secret"]}

        reader, holder = await key("read"), await key("holds")
        assert await status(w, reader, "/api/policy") == 200
        assert await status(w, holder, "/api/policy") == 403
        got = await w.client.put("/api/policy", headers=reader, json={})
        assert (got.status_code, got.json()["required_scope"]) == (403, "*")
        full = {"X-API-Key": w.first.api_key}
        assert (await w.client.put("/api/policy", headers=full, json={})).status_code == 200
        assert await status(w, reader, "/api/users") == 403
        bad = await w.client.post("/api/api-keys", headers=w.admin, json={"name": "k", "scopes": ["read", "all"]})
        assert (bad.status_code, bad.json()["errors"][0]["pointer"]) == (400, "/scopes/1")

    tell(database, story)


def test_a_tenants_key_acts_for_its_own_organizations_only(database: TestDatabase) -> None:
    async def story(w: World) -> None:
        stranger = await w.accounts.bootstrap("Another", tenant="Elsewhere")
        sister = await w.accounts.bootstrap("Sister", tenant_id=w.first.tenant_id)
        assert w.first.tenant_api_key is not None
        assert sister.tenant_api_key is None
        key = {"X-API-Key": w.first.tenant_api_key}
        for known in (w.first.organization_id, sister.organization_id):
            assert await status(w, {**key, "X-Organization-ID": str(known)}) == 200
        foreign = await w.client.get("/api/me", headers={**key, "X-Organization-ID": str(stranger.organization_id)})
        unknown = await w.client.get("/api/me", headers={**key, "X-Organization-ID": str(new_id())})
        assert foreign.status_code == unknown.status_code == 403
        assert foreign.content == unknown.content
        assert await status(w, key) == 400
        assert await status(w, {**key, "X-Organization-ID": "us"}) == 400
        own = {"X-API-Key": w.first.api_key, "X-Organization-ID": str(stranger.organization_id)}
        assert await status(w, own) == 403

    tell(database, story)


# People ---------------------------------------------------------------------------------------------------------
def test_users_are_made_listed_by_page_and_changed(database: TestDatabase) -> None:
    async def story(w: World) -> None:
        body = {"role": "scanner", "tiers": ["vip", "gold", "vip"], "email": "a@example.org", "display_name": "Ann"}
        made = await w.client.post("/api/users", headers=w.admin, json=body)
        assert made.status_code == 201
        ann = made.json()["data"]
        assert (ann["role"], ann["tiers"], ann["active"]) == ("scanner", ["gold", "vip"], True)
        taken = await w.client.post("/api/users", headers=w.admin, json={"email": "A@example.org"})
        assert (taken.status_code, taken.json()["error"]) == (409, "email_taken")
        changed = await w.client.patch(f"/api/users/{ann['id']}", headers=w.admin, json={"email": None, "tiers": []})
        assert changed.json()["data"] == {**ann, "email": None, "tiers": []}
        seen: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            params = {"limit": "1", **({"cursor": cursor} if cursor else {})}
            page = (await w.client.get("/api/users", headers=w.admin, params=params)).json()
            seen += [item["id"] for item in page["data"]]
            cursor = page["next_cursor"]
        assert seen == [str(w.first.admin_user_id), ann["id"]]
        audit = await w.sql("SELECT action, actor, user_id, changes FROM audit_entries ORDER BY id DESC LIMIT 1")
        assert (audit[0]["action"], audit[0]["actor"]) == ("membership_changed", "ADMIN")
        assert audit[0]["user_id"] == w.first.admin_user_id
        assert "example.org" not in audit[0]["changes"]

    tell(database, story)


def test_bad_fields_of_a_user_are_named(database: TestDatabase) -> None:
    async def story(w: World) -> None:
        for body, pointer in [
            ({"role": "emperor"}, "/role"),
            ({"tiers": ["a", 1]}, "/tiers/1"),
            ({"tiers": ["a\u0000"]}, "/tiers/0"),
            ({"email": "a\u0000b"}, "/email"),
            ({"display_name": ""}, "/display_name"),
            ({"id": "7"}, "/id"),
            ({"rank": 1}, "/rank"),
        ]:
            got = await w.client.post("/api/users", headers=w.admin, json=body)
            assert (got.status_code, got.json()["errors"][0]["pointer"]) == (400, pointer), got.text
        for path in ("/api/users?limit=0", "/api/users?limit=x", "/api/users?cursor=x"):
            assert await status(w, w.admin, path) == 400

    tell(database, story)


def test_nobody_gives_or_changes_a_role_above_their_own(database: TestDatabase) -> None:
    async def story(w: World) -> None:
        above = await w.client.post("/api/users", headers=w.admin, json={"role": "superadmin"})
        assert (above.status_code, above.json()["error"]) == (403, "role_too_high")
        lord = await w.accounts.issue_token(w.first.organization_id, Role.SUPERADMIN)
        got = await w.client.patch(f"/api/users/{lord.user_id}", headers=w.admin, json={"active": False})
        assert got.status_code == 403
        assert (
            await w.client.post("/api/users", headers=bearer(lord.token), json={"role": "admin"})
        ).status_code == 201

    tell(database, story)


def test_buyers_and_organizers_cannot_look_after_people_keys_or_settings(database: TestDatabase) -> None:
    async def story(w: World) -> None:
        for role in (Role.CUSTOMER, Role.SCANNER, Role.ORGANIZER):
            headers = await token(w, role)
            for method, path, body in [
                ("GET", "/api/users", None),
                ("POST", "/api/users", {}),
                ("GET", "/api/api-keys", None),
                ("POST", "/api/api-keys", {"name": "x"}),
                ("POST", "/api/organizations/config/", {}),
                ("PUT", "/api/policy", {}),
                ("GET", "/api/tenants/config/", None),
                ("POST", "/api/tenants/config/", {}),
            ]:
                got = await w.client.request(method, path, headers=headers, json=body)
                assert (got.status_code, got.json()["error"]) == (403, "forbidden"), (role, path)
            expected = 200 if role is Role.ORGANIZER else 403
            for path in ("/api/policy", "/api/organizations/config/"):
                assert await status(w, headers, path) == expected

    tell(database, story)


def test_ids_of_another_organization_are_answered_like_unknown_ones(database: TestDatabase) -> None:
    async def story(w: World) -> None:
        stranger = await w.accounts.bootstrap("Another")
        keys = (await w.client.get("/api/api-keys", headers=bearer(stranger.admin_token))).json()["data"]
        for method, path, foreign in [
            ("PATCH", "/api/users", stranger.admin_user_id),
            ("DELETE", "/api/api-keys", keys[0]["id"]),
        ]:
            body = {"active": False} if method == "PATCH" else None
            theirs = await w.client.request(method, f"{path}/{foreign}", headers=w.admin, json=body)
            nobodys = await w.client.request(method, f"{path}/{new_id()}", headers=w.admin, json=body)
            assert theirs.status_code == nobodys.status_code == 404
            assert theirs.content == nobodys.content
            no_id = await w.client.request(method, f"{path}/7", headers=w.admin, json=body)
            assert (no_id.status_code, no_id.json()["errors"][0]["pointer"]) == (400, "/id")
        assert await status(w, bearer(stranger.admin_token)) == 200
        assert await status(w, {"X-API-Key": stranger.api_key}) == 200

    tell(database, story)


# Hold types and policy ------------------------------------------------------------------------------------------
def test_hold_types_merge_field_by_field_and_say_where_each_came_from(database: TestDatabase) -> None:
    async def story(w: World) -> None:
        assert w.first.tenant_api_key is not None
        tenant = {"X-API-Key": w.first.tenant_api_key}
        shared = {"holdTypes": {"CART": {"ttlSeconds": 1200, "displayColor": "#111111"}, "COMP": {"ttlSeconds": None}}}
        told: list[UUID] = []
        w.accounts.on_config_change.append(told.append)
        got = await w.client.post("/api/tenants/config/", headers=tenant, json=shared)
        assert (got.status_code, got.json()["data"]["stored"]) == (200, shared)
        own = {"holdTypes": {"CART": {"ttlSeconds": 60}, "PARTNER_HOLD": {"releaseApi": "API, ADMIN"}}}
        assert (await w.client.post("/api/organizations/config", headers=w.admin, json=own)).status_code == 200
        assert told == [w.first.organization_id] * 2
        found = (await w.client.get("/api/organizations/config/", headers=w.admin)).json()["data"]
        assert found["stored"]["holdTypes"]["PARTNER_HOLD"] == {"releaseApi": "ADMIN,API"}
        cart, layers = found["resolved"]["holdTypes"]["CART"], found["layers"]["holdTypes"]["CART"]
        assert (cart["ttlSeconds"], layers["ttlSeconds"]) == (60, "organization")
        assert (cart["displayColor"], layers["displayColor"]) == ("#111111", "tenant")
        assert (cart["paymentRequired"], layers["paymentRequired"]) == (True, "platform")
        assert found["layers"]["holdTypes"]["COMP"]["ttlSeconds"] == "tenant"
        assert found["layers"]["holdTypes"]["PARTNER_HOLD"]["ttlSeconds"] == "default"
        shown = (await w.client.get("/api/tenants/config", headers=tenant)).json()["data"]
        assert shown["resolved"]["holdTypes"]["CART"]["ttlSeconds"] == 1200
        audit = await w.sql("SELECT action FROM audit_entries WHERE action LIKE '%config_changed' ORDER BY id")
        assert [row["action"] for row in audit] == ["tenant_config_changed", "organization_config_changed"]

    tell(database, story)


def test_every_bad_field_of_a_config_is_named_and_nothing_is_stored(database: TestDatabase) -> None:
    async def story(w: World) -> None:
        good = {"holdTypes": {"CART": {"ttlSeconds": 60}}}
        await w.client.post("/api/organizations/config/", headers=w.admin, json=good)
        bad = {
            "holdTypes": {
                "CART": {"ttlSeconds": -1, "displayColor": "red", "validStates": ["SOMETIMES"], "colour": 1},
                "COMP": {"releaseApi": "NOBODY", "displayName": "a\u0000"},
            },
            "extra": 1,
        }
        got = await w.client.post("/api/organizations/config/", headers=w.admin, json=bad)
        assert (got.status_code, got.json()["error"]) == (400, "invalid_config")
        assert {problem["pointer"] for problem in got.json()["errors"]} == {
            "/extra",
            "/holdTypes/CART/ttlSeconds",
            "/holdTypes/CART/displayColor",
            "/holdTypes/CART/validStates/0",
            "/holdTypes/CART/colour",
            "/holdTypes/COMP/releaseApi",
            "/holdTypes/COMP/displayName",
        }
        found = (await w.client.get("/api/organizations/config/", headers=w.admin)).json()["data"]
        assert found["stored"] == good

    tell(database, story)


def test_a_tenants_config_is_for_its_key_or_a_superadmin(database: TestDatabase) -> None:
    async def story(w: World) -> None:
        lord = await token(w, Role.SUPERADMIN)
        assert (await w.client.post("/api/tenants/config/", headers=lord, json={})).status_code == 200
        assert await status(w, w.admin, "/api/tenants/config/") == 403
        assert await status(w, {"X-API-Key": w.first.api_key}, "/api/tenants/config/") == 403
        assert (
            await status(w, {"X-API-Key": new_api_key(w.first.tenant_id, of_tenant=True).text}, "/api/tenants/config/")
            == 401
        )
        assert await status(w, {}, "/api/tenants/config/") == 401

    tell(database, story)


def test_a_policy_goes_round_and_is_replaced_whole(database: TestDatabase) -> None:
    async def story(w: World) -> None:
        assert (await w.client.get("/api/policy", headers=w.admin)).json()["data"]["stored"] is None
        said = {"max_seats_per_booking": 4, "max_holds_per_user": None, "locked_fields": ["max_seats_per_booking"]}
        put = await w.client.put("/api/policy", headers=w.admin, json=said)
        got = (await w.client.get("/api/policy", headers=w.admin)).json()
        assert put.json() == got
        assert got["data"]["stored"] == said
        assert got["data"]["effective"]["max_seats_per_booking"] == 4
        assert got["data"]["effective"]["default_hold_ttl_minutes"] == 10
        again = (await w.client.put("/api/policy", headers=w.admin, json={"allow_vip_zones": True})).json()["data"]
        assert again["stored"] == {"allow_vip_zones": True}
        assert again["effective"]["max_seats_per_booking"] == 10

    tell(database, story)


def test_every_bad_field_of_a_policy_is_named_and_nothing_is_stored(database: TestDatabase) -> None:
    async def story(w: World) -> None:
        bad = {"max_seats_per_booking": 0, "allow_vip_zones": "yes", "locked_fields": ["x"], "colour": 1}
        got = await w.client.put("/api/policy", headers=w.admin, json=bad)
        assert (got.status_code, got.json()["error"]) == (400, "invalid_policy")
        assert {problem["pointer"] for problem in got.json()["errors"]} == {
            "/max_seats_per_booking",
            "/allow_vip_zones",
            "/locked_fields/0",
            "/colour",
        }
        assert (await w.client.get("/api/policy", headers=w.admin)).json()["data"]["stored"] is None

    tell(database, story)


# Guests ---------------------------------------------------------------------------------------------------------
def test_a_guest_is_a_customer_of_one_event(database: TestDatabase) -> None:
    async def story(w: World) -> None:
        event_id = await make_event(w, w.first.organization_id, "live")
        got = await w.client.post("/api/guest-tokens", json={"event_id": str(event_id)})
        assert got.status_code == 201
        guest = got.json()["data"]
        me = (await w.client.get("/api/me", headers=bearer(guest["token"]))).json()["data"]
        assert (me["actor"], me["role"], me["user_id"]) == ("CUSTOMER", "customer", guest["user_id"])
        assert me["guest_event_id"] == str(event_id)
        assert me["organization_id"] == str(w.first.organization_id)
        principal = w.services.authenticator.remembered(f"Bearer {guest['token']}".encode())
        assert principal is not None
        assert principal.guest_event_id == event_id
        assert principal.subject == f"guest:{guest['user_id']}"
        assert await status(w, bearer(guest["token"]), "/api/users") == 403
        other = (await w.client.post("/api/guest-tokens", json={"event_id": str(event_id)})).json()["data"]
        assert other["user_id"] != guest["user_id"]

    tell(database, story)


def test_a_guests_token_ends(database: TestDatabase) -> None:
    async def story(w: World) -> None:
        event_id = await make_event(w, w.first.organization_id)
        guest = (await w.client.post("/api/guest-tokens", json={"event_id": str(event_id)})).json()["data"]
        assert guest["expires_in_seconds"] == 3600
        await w.database.advance_clock(3601)
        assert await status(w, bearer(guest["token"])) == 401

    tell(database, story, guest_ttl_s=3600)


def test_there_are_no_guests_of_events_that_are_not_on_sale(database: TestDatabase) -> None:
    async def story(w: World) -> None:
        answers = []
        for event_status in ("draft", "cancelled", "archived"):
            event_id = await make_event(w, w.first.organization_id, event_status)
            answers.append(await w.client.post("/api/guest-tokens", json={"event_id": str(event_id)}))
        answers.append(await w.client.post("/api/guest-tokens", json={"event_id": str(new_id())}))
        assert {got.status_code for got in answers} == {404}
        assert len({got.content for got in answers}) == 1
        assert answers[0].json()["error"] == "event_not_found"
        for body in ({"event_id": "7"}, {}, {"event_id": 7}):
            got = await w.client.post("/api/guest-tokens", json=body)
            assert (got.status_code, got.json()["errors"][0]["pointer"]) == (400, "/event_id")

    tell(database, story)
