"""Webhooks over HTTP: endpoints and their secrets, deliveries, sending again; and nobody else's."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from holdfast.http import webhooks as webhook_routes
from holdfast.http.api import build_api
from holdfast.webhooks import service as webhooks_service
from holdfast.webhooks.courier import Courier
from holdfast.webhooks.service import WebhooksService
from tests.conftest import TestDatabase
from tests.http.client import bearer, serving
from tests.workers.receiver import Reply
from tests.workers.webhook_ground import WebhookGround, webhook_ground

UNKNOWN = "01900000-0000-7000-8000-00000000dead"
TABLES = ("webhook_endpoints", "webhook_messages", "webhook_deliveries", "webhook_attempts", "pgqueuer")


@dataclass
class Hooks:
    ground: WebhookGround
    client: httpx.AsyncClient

    @property
    def admin(self) -> dict[str, str]:
        return self.ground.made.admin

    async def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> httpx.Response:
        kwargs: dict[str, Any] = {} if body is None else {"json": body}
        return await self.client.request(method, f"/api/webhooks{path}", headers=headers or self.admin, **kwargs)

    async def listen(self, path: str = "/hook", **fields: Any) -> dict[str, Any]:
        answer = await self.ask("POST", "", {"url": self.ground.receiver.url(path), **fields})
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()["data"]
        return made

    async def rows(self) -> dict[str, int]:
        return {table: len(await self.ground.sql(f"SELECT FROM {table}")) for table in TABLES}


@asynccontextmanager
async def hooks(database: TestDatabase, *, private_targets: bool = True) -> AsyncIterator[Hooks]:
    async with webhook_ground(database) as ground:
        services = ground.made.app.services
        courier = Courier(private_targets=private_targets)
        object.__setattr__(services, "webhooks", WebhooksService(ground.database, courier))
        async with serving(build_api(services, webhook_routes.ROUTES)) as client:
            yield Hooks(ground, client)
        await courier.close()


# Endpoints ------------------------------------------------------------------------------------------------------------
def test_an_endpoint_is_made_shown_changed_and_removed(database: TestDatabase) -> None:
    async def main() -> None:
        async with hooks(database) as made:
            event_id = made.ground.made.event_id
            one = await made.listen(kinds=["SeatSold", "SeatReserved"], description="Sales", event_id=event_id)
            secret = one.pop("secret")
            assert secret.startswith("whsec_")
            assert 24 <= len(base64.b64decode(secret.removeprefix("whsec_"))) <= 64
            assert (one["kinds"], one["description"], one["event_id"]) == (
                ["SeatReserved", "SeatSold"],
                "Sales",
                event_id,
            )
            assert (one["enabled"], one["disabled_reason"], one["old_secret_until"]) == (True, None, None)
            shown = await made.ask("GET", f"/{one['id']}")
            assert (shown.status_code, shown.json()) == (200, {"data": one})
            two = await made.listen("/two")
            first = await made.ask("GET", "?limit=1")
            assert first.json() == {"data": [one], "next_cursor": one["id"]}
            rest = (await made.ask("GET", f"?limit=1&cursor={one['id']}")).json()
            assert ([found["id"] for found in rest["data"]], rest["next_cursor"]) == ([two["id"]], None)
            assert secret not in shown.text + first.text
            change: dict[str, Any] = {"kinds": [], "description": None, "event_id": None, "enabled": False}
            changed = await made.ask("PATCH", f"/{one['id']}", change)
            assert changed.status_code == 200
            assert {name: changed.json()["data"][name] for name in change} == change
            assert changed.json()["data"]["url"] == one["url"]
            assert (await made.ask("DELETE", f"/{one['id']}")).status_code == 204
            assert (await made.ask("GET", f"/{one['id']}")).status_code == 404
            assert (await made.ask("DELETE", f"/{one['id']}")).json()["error"] == "webhook_not_found"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        ({}, 400, "/url"),
        ({"url": 5}, 400, "/url"),
        ({"url": "https://example.com", "colour": "red"}, 400, "/colour"),
        ({"url": "https://example.com", "enabled": "yes"}, 400, "/enabled"),
        ({"url": "https://example.com", "event_id": "x"}, 400, "/event_id"),
        ({"url": "ftp://127.0.0.1/"}, 422, "/url"),
        ({"url": "http://user:pw@127.0.0.1:8000/"}, 422, "/url"),
        ({"url": "http://127.0.0.1:22/"}, 422, "/url"),
        ({"url": "http://169.254.169.254/"}, 422, "/url"),
        ({"url": "http://no-such-host.invalid/"}, 422, "/url"),
        ({"url": "http://127.0.0.1:8000/", "kinds": ["SeatSold", "SeatEaten"]}, 422, "/kinds/1"),
        ({"url": "http://127.0.0.1:8000/", "kinds": ["WebhookTest"]}, 422, "/kinds/0"),
        ({"url": "http://127.0.0.1:8000/", "description": ""}, 422, "/description"),
        ({"url": "http://127.0.0.1:8000/", "description": "x" * 201}, 422, "/description"),
        ({"url": "http://127.0.0.1:8000/", "description": "a\x00b"}, 422, "/description"),
    ],
)
def test_what_cannot_stand_is_named_and_nothing_is_stored(
    database: TestDatabase, body: Any, status: int, pointer: str
) -> None:
    async def main() -> None:
        async with hooks(database) as made:
            answer = await made.ask("POST", "", body)
            assert answer.status_code == status, answer.text
            assert [problem["pointer"] for problem in answer.json()["errors"]] == [pointer]
            assert await made.rows() == dict.fromkeys(TABLES, 0)
            if status == 422:
                one = await made.listen()
                change = {name: value for name, value in body.items() if name != "url" or pointer == "/url"}
                refused = await made.ask("PATCH", f"/{one['id']}", change)
                assert refused.status_code == 422
                one.pop("secret")
                assert (await made.ask("GET", f"/{one['id']}")).json()["data"] == one

    asyncio.run(main())


def test_every_fault_of_an_endpoint_is_listed_at_once(database: TestDatabase) -> None:
    async def main() -> None:
        async with hooks(database) as made:
            answer = await made.ask("POST", "", {"url": "nowhere", "kinds": ["A", "B"], "description": " "})
            assert [problem["pointer"] for problem in answer.json()["errors"]] == [
                "/url",
                "/kinds/0",
                "/kinds/1",
                "/description",
            ]
            assert "“A”" in answer.text

    asyncio.run(main())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "10.1.2.3", "169.254.169.254", "100.64.0.1"])
def test_a_target_inside_the_house_is_refused_unless_the_operator_allows_it(database: TestDatabase, host: str) -> None:
    async def main() -> None:
        async with hooks(database, private_targets=False) as made:
            answer = await made.ask("POST", "", {"url": f"https://{host}:8443/hook"})
            assert answer.status_code == 422
            (problem,) = answer.json()["errors"]
            assert (problem["pointer"], problem["code"]) == ("/url", "private_target")
            plain = await made.ask("POST", "", {"url": "http://example.com/hook"})
            assert plain.json()["errors"][0]["code"] == "bad_scheme"

    asyncio.run(main())


def test_an_organization_has_only_so_many_endpoints(database: TestDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks_service, "ENDPOINTS_MAX", 3)

    async def main() -> None:
        async with hooks(database) as made:
            body = {"url": made.ground.receiver.url()}
            answers = await asyncio.gather(*(made.ask("POST", "", body) for _ in range(8)))
            assert sorted(answer.status_code for answer in answers) == [201] * 3 + [409] * 5
            refused = next(answer for answer in answers if answer.status_code == 409)
            assert (refused.json()["error"], refused.json()["limit"]) == ("too_many_webhooks", 3)

    asyncio.run(main())


def test_a_repeated_request_gets_the_same_endpoint_and_secret_and_the_stored_answer_holds_none(
    database: TestDatabase,
) -> None:
    async def main() -> None:
        async with hooks(database) as made:
            once = {**made.admin, "Idempotency-Key": "one"}
            body = {"url": made.ground.receiver.url()}
            first, second = [await made.ask("POST", "", body, once) for _ in range(2)]
            assert first.json() == second.json()
            assert (await made.rows())["webhook_endpoints"] == 1
            path, again = f"/{first.json()['data']['id']}/rotate-secret", {**made.admin, "Idempotency-Key": "two"}
            rotated, repeated = [await made.ask("POST", path, None, again) for _ in range(2)]
            assert rotated.json() == repeated.json()
            assert rotated.json()["data"]["secret"] != first.json()["data"]["secret"]
            kept = await made.ground.sql("SELECT convert_from(answer, 'UTF8') AS answer FROM idempotency_keys")
            assert len(kept) == 2
            assert not any("whsec_" in row["answer"] for row in kept)

    asyncio.run(main())


def test_webhooks_are_for_administrators_and_keys_that_may_do_everything(database: TestDatabase) -> None:
    async def main() -> None:
        async with hooks(database) as made:
            one = await made.listen()
            stage = made.ground.made
            body = {"url": made.ground.receiver.url()}
            people = [await stage.buyer(), await stage.member(), await stage.member("scanner")]
            people.append(await stage.member("organizer"))
            issued = await stage.post("/api/api-keys", {"name": "reader", "scopes": ["read"]})
            people.append({"X-API-Key": issued.json()["data"]["secret"]})
            before = await made.rows()
            for headers in people:
                for method, path, sent in (
                    ("POST", "", body),
                    ("GET", "", None),
                    ("GET", f"/{one['id']}", None),
                    ("PATCH", f"/{one['id']}", {"enabled": False}),
                    ("DELETE", f"/{one['id']}", None),
                    ("POST", f"/{one['id']}/rotate-secret", None),
                    ("POST", f"/{one['id']}/test", None),
                    ("GET", f"/{one['id']}/deliveries", None),
                    ("POST", f"/{one['id']}/replay", {"since": "2020-01-01T00:00:00Z"}),
                    ("POST", f"/deliveries/{UNKNOWN}/replay", None),
                    ("GET", f"/deliveries/{UNKNOWN}", None),
                ):
                    answer = await made.ask(method, path, sent, headers)
                    assert answer.status_code == 403, (method, path, answer.text)
            assert await made.rows() == before
            assert (await made.client.get("/api/webhooks")).status_code == 401
            assert (await made.ask("POST", "", body, stage.api_key)).status_code == 201

    asyncio.run(main())


def test_every_act_is_in_the_audit_and_no_secret_with_it(database: TestDatabase) -> None:
    async def main() -> None:
        async with hooks(database) as made:
            one = await made.listen("/path-that-is-a-secret?token=t")
            path = f"/{one['id']}"
            await made.ask("PATCH", path, {"description": "x"})
            rotated = await made.ask("POST", f"{path}/rotate-secret")
            tested = await made.ask("POST", f"{path}/test")
            await made.ground.deliver()
            await made.ask("POST", f"/deliveries/{tested.json()['data']['id']}/replay")
            await made.ask("POST", f"{path}/replay", {"since": "2020-01-01T00:00:00Z"})
            await made.ask("DELETE", path)
            rows = await made.ground.sql(
                "SELECT action, entity_id::text, user_id, a::text AS entry FROM audit_entries a"
                " WHERE entity_type = 'Webhook' ORDER BY id"
            )
            assert [row["action"] for row in rows] == [
                "webhook_created",
                "webhook_changed",
                "webhook_secret_rotated",
                "webhook_tested",
                "webhook_replayed",
                "webhook_replayed",
                "webhook_deleted",
            ]
            assert {row["entity_id"] for row in rows} == {one["id"]}
            assert {row["user_id"] for row in rows} == {made.ground.made.first.admin_user_id}
            said = " ".join(row["entry"] for row in rows)
            for secret in (one["secret"], rotated.json()["data"]["secret"], "path-that-is-a-secret", "token=t"):
                assert secret not in said

    asyncio.run(main())


# Deliveries -----------------------------------------------------------------------------------------------------------
def test_a_test_message_is_sent_at_once_and_its_delivery_can_be_looked_at(database: TestDatabase) -> None:
    async def main() -> None:
        async with hooks(database) as made:
            one = await made.listen()
            made.ground.receiver.reply = lambda _: Reply(200, {}, b"thanks")
            answer = await made.ask("POST", f"/{one['id']}/test")
            assert answer.status_code == 202
            delivery = answer.json()["data"]
            assert (delivery["kind"], delivery["status"], delivery["attempts"]) == ("WebhookTest", "pending", 0)
            await made.ground.deliver()
            (received,) = made.ground.receiver.received
            assert received.headers["webhook-id"] == delivery["webhook_id"]
            found = (await made.ask("GET", f"/deliveries/{delivery['id']}")).json()["data"]
            assert (found["status"], found["status_code"]) == ("delivered", 200)
            assert found["body"] == received.document
            (attempt,) = found["log"]
            assert (attempt["n"], attempt["status_code"], attempt["answer"]) == (1, 200, "thanks")

    asyncio.run(main())


def test_deliveries_are_paged_newest_first_and_filtered_by_status(database: TestDatabase) -> None:
    async def main() -> None:
        async with hooks(database) as made:
            one = await made.listen()
            path = f"/{one['id']}/deliveries"
            ids = [(await made.ask("POST", f"/{one['id']}/test")).json()["data"]["id"] for _ in range(5)]
            await made.ground.deliver()
            made.ground.receiver.reply = lambda _: Reply(500)
            ids += [(await made.ask("POST", f"/{one['id']}/test")).json()["data"]["id"] for _ in range(2)]
            await made.ground.deliver()
            seen: list[str] = []
            cursor = ""
            for size in (3, 3, 1):
                page = (await made.ask("GET", f"{path}?limit=3{cursor}")).json()
                assert len(page["data"]) == size
                seen += [row["id"] for row in page["data"]]
                cursor = f"&cursor={page['next_cursor']}"
            assert page["next_cursor"] is None
            assert seen == sorted(ids, reverse=True)
            failed = (await made.ask("GET", f"{path}?status=failed")).json()["data"]
            assert {row["id"] for row in failed} == set(ids[5:])
            assert (await made.ask("GET", f"{path}?status=pending")).json()["data"] == []
            for wrong in ("?status=lost", "?cursor=x", "?limit=0", "?limit=1000"):
                assert (await made.ask("GET", path + wrong)).status_code == 400, wrong

    asyncio.run(main())


def test_a_delivery_is_sent_again_with_the_same_id_whatever_came_of_it(database: TestDatabase) -> None:
    async def main() -> None:
        async with hooks(database) as made:
            one = await made.listen()
            await made.ground.reserve(0)
            await made.ground.spread()
            await made.ground.deliver()
            (delivery,) = (await made.ask("GET", f"/{one['id']}/deliveries")).json()["data"]
            assert delivery["status"] == "delivered"
            again = await made.ask("POST", f"/deliveries/{delivery['id']}/replay")
            assert (again.status_code, again.json()["data"]["status"]) == (202, "pending")
            await made.ground.deliver()
            first, second = made.ground.receiver.received
            assert first.headers["webhook-id"] == second.headers["webhook-id"]
            assert first.body == second.body
            found = (await made.ask("GET", f"/deliveries/{delivery['id']}")).json()["data"]
            assert (found["status"], found["attempts"], len(found["log"])) == ("delivered", 2, 2)

    asyncio.run(main())


def test_all_that_failed_since_a_time_is_sent_again_and_nothing_else(database: TestDatabase) -> None:
    async def main() -> None:
        async with hooks(database) as made:
            one, other = await made.listen("/one"), await made.listen("/other")
            made.ground.receiver.reply = lambda _: Reply(500)
            await made.ask("POST", f"/{one['id']}/test")
            await made.ground.deliver()
            await database.advance_clock(3600)
            since = (await made.ground.sql("SELECT holdfast_now() AS now"))[0]["now"].isoformat()
            for endpoint in (one, one, other):
                await made.ask("POST", f"/{endpoint['id']}/test")
            await made.ground.deliver()
            made.ground.receiver.reply = lambda _: Reply(200)
            await made.ask("POST", f"/{one['id']}/test")
            await made.ground.deliver()
            made.ground.receiver.received.clear()
            answer = await made.ask("POST", f"/{one['id']}/replay", {"since": since})
            assert (answer.status_code, answer.json()) == (202, {"data": {"replayed": 2, "remaining": 0}})
            await made.ground.deliver()
            assert [received.path for received in made.ground.receiver.received] == ["/one", "/one"]
            none = await made.ask("POST", f"/{one['id']}/replay", {"since": since})
            assert none.json()["data"]["replayed"] == 0
            for wrong in ({}, {"since": "yesterday"}, {"since": "2031-01-01T00:00:00"}, {"since": since, "x": 1}):
                assert (await made.ask("POST", f"/{one['id']}/replay", wrong)).status_code == 400, wrong

    asyncio.run(main())


def test_more_than_one_call_may_replay_is_left_for_the_next(
    database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks_service, "REPLAY_MAX", 2)

    async def main() -> None:
        async with hooks(database) as made:
            one = await made.listen()
            made.ground.receiver.reply = lambda _: Reply(500)
            for _ in range(3):
                await made.ask("POST", f"/{one['id']}/test")
            await made.ground.deliver()
            body = {"since": "2020-01-01T00:00:00Z"}
            told = [(await made.ask("POST", f"/{one['id']}/replay", body)).json()["data"] for _ in range(2)]
            assert told == [{"replayed": 2, "remaining": 1}, {"replayed": 1, "remaining": 0}]

    asyncio.run(main())


def test_nothing_is_replayed_to_a_webhook_that_is_disabled(database: TestDatabase) -> None:
    async def main() -> None:
        async with hooks(database) as made:
            one = await made.listen()
            delivery = (await made.ask("POST", f"/{one['id']}/test")).json()["data"]
            await made.ask("PATCH", f"/{one['id']}", {"enabled": False})
            before = await made.rows()
            single = await made.ask("POST", f"/deliveries/{delivery['id']}/replay")
            several = await made.ask("POST", f"/{one['id']}/replay", {"since": "2020-01-01T00:00:00Z"})
            for answer in (single, several):
                assert (answer.status_code, answer.json()["error"]) == (409, "webhook_disabled")
            assert await made.rows() == before

    asyncio.run(main())


# Walls ----------------------------------------------------------------------------------------------------------------
def test_what_is_another_organizations_answers_like_what_never_existed(database: TestDatabase) -> None:
    async def main() -> None:
        async with hooks(database) as made:
            one = await made.listen("/theirs", description="Theirs")
            delivery = (await made.ask("POST", f"/{one['id']}/test")).json()["data"]
            second, _ = await made.ground.second_organization()
            me = bearer(second.admin_token)
            before = await made.rows()
            url = made.ground.receiver.url("/mine")
            cases = [
                ("GET", "/{endpoint}", None),
                ("PATCH", "/{endpoint}", {"url": url, "enabled": False}),
                ("DELETE", "/{endpoint}", None),
                ("POST", "/{endpoint}/rotate-secret", None),
                ("POST", "/{endpoint}/test", None),
                ("GET", "/{endpoint}/deliveries", None),
                ("POST", "/{endpoint}/replay", {"since": "2020-01-01T00:00:00Z"}),
                ("GET", "/deliveries/{delivery}", None),
                ("POST", "/deliveries/{delivery}/replay", None),
            ]
            for method, path, body in cases:
                theirs = path.format(endpoint=one["id"], delivery=delivery["id"])
                nobodys = path.format(endpoint=UNKNOWN, delivery=UNKNOWN)
                answer, missing = [await made.ask(method, way, body, me) for way in (theirs, nobodys)]
                assert answer.status_code == missing.status_code == 404, (method, path, answer.text)
                assert answer.content == missing.content, (method, path)
                wrong = path.format(endpoint="x", delivery="x")
                assert (await made.ask(method, wrong, body, me)).status_code == 400, (method, path)
            listed = await made.ask("GET", "", None, me)
            assert listed.json() == {"data": [], "next_cursor": None}
            named = await made.ask("POST", "", {"url": url, "event_id": made.ground.made.event_id}, me)
            assert (named.status_code, named.json()["error"]) == (404, "event_not_found")
            assert await made.rows() == before

    asyncio.run(main())
