"""Health, readiness, metrics and the description of the API."""

import asyncio
import io
import json
import logging
import re
import sys
from typing import Any

import asyncpg
import pytest
import structlog
from litestar import get
from litestar.params import FromPath
from litestar.types import ControllerRouterHandler
from prometheus_client import REGISTRY

from holdfast.http import api, system
from holdfast.http.api import _Lines
from holdfast.logs import configure_logs
from holdfast.store.embedded import ValkeyServer
from holdfast.store.feed import Feed
from holdfast.store.postgres import health
from holdfast.store.postgres.database import Database
from holdfast.store.postgres.health import Health
from holdfast.store.redis.warm import Warm
from tests.conftest import TestDatabase
from tests.http.client import world
from tests.stage import stage


def test_a_running_process_is_healthy_and_ready(database: TestDatabase) -> None:
    async def run() -> None:
        async with world(database) as w:
            assert (await w.client.get("/healthz")).status_code == 200
            assert (await w.client.get("/readyz")).status_code == 200

    asyncio.run(run())


def test_a_node_with_a_schema_that_is_behind_is_alive_but_not_ready(database: TestDatabase) -> None:
    async def run() -> None:
        async with world(database) as w:
            await w.sql("DELETE FROM schema_migrations WHERE name = '0002_find_event.sql'")
            got = await w.client.get("/readyz")
            assert (got.status_code, got.json()["error"]) == (503, "not_ready")
            assert "holdfast migrate" in got.json()["detail"]
            assert int(got.headers["retry-after"]) >= 1
            assert (await w.client.get("/healthz")).status_code == 200

    asyncio.run(run())


def test_a_node_whose_database_is_gone_is_not_ready_and_its_api_says_so(database: TestDatabase) -> None:
    async def run() -> None:
        async with world(database, remember_s=0) as w:
            assert (await w.client.get("/readyz")).status_code == 200
            owner = await asyncpg.connect(database.address.dsn("holdfast_owner", "postgres"))
            await owner.execute(f"ALTER DATABASE {database.name} ALLOW_CONNECTIONS false")
            await owner.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", database.name
            )
            await asyncio.sleep(0.1)
            got = await w.client.get("/readyz")
            await owner.execute(f"ALTER DATABASE {database.name} ALLOW_CONNECTIONS true")
            await owner.close()
            assert got.status_code == 503
            assert database.name not in got.text

    asyncio.run(run())


# What a process lives by ----------------------------------------------------------------------------------------------
def test_readiness_tells_of_the_database_the_feed_and_the_warm_tier(database: TestDatabase) -> None:
    async def run() -> None:
        async with world(database) as w:
            got = (await w.client.get("/readyz")).json()
            assert got == {"status": "ready", "database": "ok", "feed": "none", "warm": "none"}

    asyncio.run(run())


def test_a_process_that_lost_the_feed_is_ready_for_a_while_and_then_not(
    database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        pool = await Database.open(database.app, 2)
        feed = Feed(pool, [])
        asked = Health(pool, feed)
        try:
            await feed.start()
            await feed.caught_up()
            assert (asked.feed_state(), await asked.fault()) == ("fresh", None)
            await feed.close()
            monkeypatch.setattr(health, "STALE_AFTER_S", 1.5)
            await asyncio.sleep(1.2)
            assert (asked.feed_state(), await asked.fault()) == ("stale", None)
            feed.trusted_until = 0.0  # what the feed says of itself once it has given up
            await asyncio.sleep(1.6)
            fault = await asked.fault()
            assert fault is not None
            assert "change feed" in fault
        finally:
            await pool.close()

    asyncio.run(run())


def test_a_process_that_has_just_begun_is_not_called_stale(database: TestDatabase) -> None:
    async def run() -> None:
        pool = await Database.open(database.app, 2)
        try:
            asked = Health(pool, Feed(pool, []))
            assert (asked.feed_state(), await asked.fault()) == ("stale", None)
        finally:
            await pool.close()

    asyncio.run(run())


def test_a_warm_tier_that_is_away_leaves_a_node_ready(database: TestDatabase, valkey_server: ValkeyServer) -> None:
    async def run() -> None:
        pool = await Database.open(database.app, 2)
        there = Warm.open(valkey_server.address.url(), "test", 0.5)
        gone = Warm.open("redis://127.0.0.1:1/0", "test", 0.2)
        try:
            assert await there.ping()
            for _ in range(4):
                await gone.ping()
            assert Health(pool, None, there).warm_state() == "ok"
            asked = Health(pool, None, gone)
            assert (asked.warm_state(), await asked.fault()) == ("away", None)
        finally:
            await there.close()
            await gone.close()
            await pool.close()

    asyncio.run(run())


# Lines ----------------------------------------------------------------------------------------------------------------
@get("/noisy/{event_id:str}")
async def noisy(event_id: FromPath[str]) -> dict[str, str]:
    await asyncio.sleep(0.02)  # the other request has begun meanwhile
    structlog.get_logger("holdfast.tests").warning("heard")
    return {}


def test_lines_of_requests_served_at_once_are_not_mixed_up(
    database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.StringIO()

    async def run() -> None:
        async with world(database, routes=[*system.ROUTES, noisy]) as w:
            root = logging.getLogger()
            before, level, kept = root.handlers, root.level, structlog.get_config()
            monkeypatch.setattr(sys, "stderr", written)
            configure_logs("info")
            try:
                asked = [
                    w.client.get(
                        f"/noisy/{n}", headers={"x-request-id": f"request-{n}", "authorization": f"Bearer {n}"}
                    )
                    for n in range(5)
                ]
                await asyncio.gather(*asked)
            finally:
                root.handlers = before
                root.setLevel(level)
                structlog.configure(**kept)

    asyncio.run(run())
    lines = [json.loads(line) for line in written.getvalue().splitlines() if '"heard"' in line]
    assert sorted((line["request_id"], line["event_id"]) for line in lines) == [
        (f"request-{n}", str(n)) for n in range(5)
    ]


# Figures --------------------------------------------------------------------------------------------------------------
def requests(method: str, route: str, status: int) -> float:
    labels = {"method": method, "route": route, "status": str(status)}
    return REGISTRY.get_sample_value("holdfast_http_request_seconds_count", labels) or 0.0


def test_every_request_is_timed_by_its_route_and_not_by_its_path(database: TestDatabase) -> None:
    async def run() -> None:
        async with stage(database) as s:
            route = "/api/events/{event_id}/seats/{seat}"
            before = requests("GET", route, 200)
            for n in range(3):
                await s.seat(n)
            assert requests("GET", route, 200) == before + 3
            text = (await s.client.get("/metrics")).text
            assert not re.search(r'route="[^"]*[0-9a-f]{8}-', text)

    asyncio.run(run())


def test_refused_unknown_and_odd_requests_are_timed_too(database: TestDatabase) -> None:
    async def run() -> None:
        async with world(database) as w:
            before = (
                requests("GET", "/api/users", 401),
                requests("GET", "unknown", 404),
                requests("other", "unknown", 405),
            )
            assert (await w.client.get("/api/users")).status_code == 401
            assert (await w.client.get("/nowhere/at/all")).status_code == 404
            assert (await w.client.request("TRACE", "/healthz")).status_code == 405
            after = (
                requests("GET", "/api/users", 401),
                requests("GET", "unknown", 404),
                requests("other", "unknown", 405),
            )
            assert after == tuple(count + 1 for count in before)

    asyncio.run(run())


def test_a_stream_is_timed_when_it_begins_and_not_when_it_ends(database: TestDatabase) -> None:
    async def run() -> None:
        async with stage(database) as s:
            route = "/api/events/{event_id}/live"
            before = requests("GET", route, 200)
            path = f"/api/events/{s.event_id}/live"
            async with s.client.stream("GET", path, headers=s.admin) as answer:
                assert answer.status_code == 200
                async for _ in answer.aiter_lines():
                    break
                assert requests("GET", route, 200) == before + 1

    asyncio.run(run())


@get("/slow/{event_id:str}")
async def slow(event_id: FromPath[str]) -> dict[str, str]:
    await asyncio.sleep(0.05)
    return {}


@get("/broken")
async def broken() -> dict[str, str]:
    raise RuntimeError("planted")


def test_only_slow_and_failed_requests_are_logged(database: TestDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[dict[str, Any]] = []

    class Log:
        def warning(self, event: str, **fields: Any) -> None:
            lines.append({"event": event, "level": "warning", **fields})

        def error(self, event: str, **fields: Any) -> None:
            lines.append({"event": event, "level": "error", **fields})

    async def run() -> None:
        routes: list[ControllerRouterHandler] = [*system.ROUTES, slow, broken]
        async with world(database, routes=routes) as w:
            monkeypatch.setattr(api, "log", Log())
            await w.client.get("/healthz")
            await w.client.get("/slow/x")
            assert lines == []
            monkeypatch.setattr(api, "SLOW_S", 0.04)
            assert (await w.client.get("/slow/x")).status_code == 200
            assert (await w.client.get("/broken")).status_code == 500

    asyncio.run(run())
    assert [(line["level"], line["route"], line["status"]) for line in lines] == [
        ("warning", "/slow/{event_id}", 200),
        ("error", "/broken", 500),
    ]
    assert lines[0]["duration_ms"] >= 40


def test_metrics_are_in_the_text_format_of_prometheus(database: TestDatabase) -> None:
    async def run() -> None:
        async with world(database) as w:
            got = await w.client.get("/metrics")
            assert got.headers["content-type"].startswith("text/plain")
            assert "python_info" in got.text

    asyncio.run(run())


def test_the_description_names_the_routes_and_their_bodies(database: TestDatabase) -> None:
    async def run() -> None:
        async with world(database) as w:
            found = (await w.client.get("/openapi.json")).json()
            assert found["openapi"].startswith("3.1")
            assert {"get", "post"} <= set(found["paths"]["/api/users"])
            schema = found["paths"]["/api/users"]["post"]["requestBody"]["content"]["application/json"]["schema"]
            named = found["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
            assert "role" in named["properties"]
            assert "/healthz" not in found["paths"]

    asyncio.run(run())


def test_the_viewer_works_without_inline_script_and_without_the_internet(database: TestDatabase) -> None:
    async def run() -> None:
        async with world(database) as w:
            page = await w.client.get("/docs")
            policy = page.headers["content-security-policy"]
            assert "unsafe" not in policy
            assert "default-src 'none'" in policy
            assert "http" not in re.sub(r"<!--.*?-->", "", page.text)
            assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=", page.text)
            for link in re.findall(r'(?:src|href)="(/docs/[^"]+)"', page.text):
                got = await w.client.get(link)
                assert got.status_code == 200
                assert "http" not in got.text.replace("http.", "")
            assert (await w.client.get("/docs/..%2f..%2fapi.py")).status_code == 404
            assert (await w.client.get("/docs/api.py")).status_code == 404

    asyncio.run(run())


def test_when_everything_is_slow_only_so_many_lines_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("holdfast.http.api.time.monotonic", lambda: now)
    lines = _Lines(3)
    assert [lines.one_more() for _ in range(5)] == [True, True, True, False, False]
    now = 101.0
    assert lines.one_more()
    assert lines.left_out() == {"left_out": 2}
    assert lines.left_out() == {}
