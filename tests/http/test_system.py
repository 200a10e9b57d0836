"""Health, readiness, metrics and the description of the API."""

import asyncio
import re

import asyncpg

from tests.conftest import TestDatabase
from tests.http.client import world


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
