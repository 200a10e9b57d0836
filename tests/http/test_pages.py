"""The built pages as browsers load them, and the plain words of a server that has none."""

import asyncio
import gzip
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx
import pytest

from holdfast.http import pages
from tests.conftest import TestDatabase
from tests.http.client import OWN_ROUTES, world

ROUTES = [*OWN_ROUTES, *pages.ROUTES]
HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As `make web` leaves it; beside it what must never be sent."""
    built = tmp_path / "pages"
    (built / "assets" / "deep").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "pages-too").mkdir()
    (tmp_path / "pages-too" / "secret.js").write_text("secret")
    (built / "index.html").write_text("<!doctype html><title>Buyers</title>")
    (built / "dashboard.html").write_text("<!doctype html><title>Organisers</title>")
    (built / "favicon.svg").write_text("<svg/>")
    script = b"export const a = 1\n" * 50
    (built / "assets" / "app-1a2b.js").write_bytes(script)
    (built / "assets" / "app-1a2b.js.gz").write_bytes(gzip.compress(script))
    (built / "assets" / "app-1a2b.js.br").write_bytes(b"packed by brotli")
    for name in ("a.css", "a.svg", "a.woff2", "a.wasm", "a.json", "deep/b.js", "a.py", "noending"):
        (built / "assets" / name).write_text(name)
    (built / "assets" / "outside.js").symlink_to(tmp_path / "pages-too" / "secret.js")
    return built


def run(database: TestDatabase, folder: Path, test: Callable[[httpx.AsyncClient], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with world(database, routes=ROUTES, pages=str(folder)) as made:
            await test(made.client)

    asyncio.run(main())


def test_both_pages_are_where_people_look_for_them(shared_database: TestDatabase, folder: Path) -> None:
    async def check(client: httpx.AsyncClient) -> None:
        for path, title in (
            ("/", "Buyers"),
            ("/e/0198c0de-0000-7000-8000-000000000001", "Buyers"),
            ("/e/whatever", "Buyers"),
            ("/dashboard", "Organisers"),
            ("/dashboard/", "Organisers"),
            ("/dashboard/events/1/holds", "Organisers"),
        ):
            answer = await client.get(path)
            assert (answer.status_code, f"<title>{title}</title>" in answer.text) == (200, True), path
            assert answer.headers["content-type"] == "text/html; charset=utf-8"
            assert answer.headers["cache-control"] == "no-cache"
            policy = answer.headers["content-security-policy"]
            assert "script-src 'self'" in policy
            assert "unsafe" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            again = await client.get(path, headers={"If-None-Match": answer.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")
            assert again.headers["content-security-policy"] == answer.headers["content-security-policy"]
            assert again.headers["etag"] == answer.headers["etag"]
            assert again.headers["content-security-policy"] == policy, "browsers take it over into the page they kept"
            head = await client.head(path)
            assert (head.status_code, head.content) == (200, b"")
            assert head.headers["content-length"] == str(len(answer.content))
            assert (await client.post(path)).status_code == 405
        assert (await client.get("/docs")).status_code == 200
        assert (await client.get("/favicon.svg")).headers["content-type"] == "image/svg+xml"
        assert (await client.get("/robots.txt")).status_code == 404

    run(shared_database, folder, check)


def test_assets_are_kept_for_ever_and_say_what_they_are(shared_database: TestDatabase, folder: Path) -> None:
    async def check(client: httpx.AsyncClient) -> None:
        for name, kind in (
            ("app-1a2b.js", "text/javascript; charset=utf-8"),
            ("a.css", "text/css; charset=utf-8"),
            ("a.svg", "image/svg+xml"),
            ("a.woff2", "font/woff2"),
            ("a.wasm", "application/wasm"),
            ("a.json", "application/json"),
            ("deep/b.js", "text/javascript; charset=utf-8"),
        ):
            answer = await client.get(f"/assets/{name}", headers={"Accept-Encoding": "identity"})
            assert (answer.status_code, answer.headers["content-type"]) == (200, kind), name
            assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
            assert answer.content == (folder / "assets" / name).read_bytes()

    run(shared_database, folder, check)


def test_what_was_packed_ahead_is_sent_packed_to_who_can_unpack_it(shared_database: TestDatabase, folder: Path) -> None:
    async def check(client: httpx.AsyncClient) -> None:
        tags = set()
        for accepted, coding in (
            ("gzip, br", "br"),
            ("gzip", "gzip"),
            ("br;q=0, gzip;q=0.5", "gzip"),
            ("*", "br"),
            ("identity", None),
            ("br;q=0, *;q=0", None),
        ):
            request = client.build_request("GET", "/assets/app-1a2b.js", headers={"Accept-Encoding": accepted})
            answer = await client.send(request, stream=True)
            body = b"".join([part async for part in answer.aiter_raw()])
            assert answer.headers.get("content-encoding") == coding, accepted
            assert answer.headers["vary"] == "accept-encoding"
            assert (
                body
                == (
                    folder / "assets" / f"app-1a2b.js{ {'br': '.br', 'gzip': '.gz'}.get(coding or '', '') }"
                ).read_bytes()
            )
            tags.add(answer.headers["etag"])
        assert len(tags) == 3
        for packed in ("app-1a2b.js.gz", "app-1a2b.js.br"):
            assert (await client.get(f"/assets/{packed}")).status_code == 404  # not by their own names

    run(shared_database, folder, check)


def test_nothing_outside_the_folder_is_ever_sent(shared_database: TestDatabase, folder: Path) -> None:
    async def check(client: httpx.AsyncClient) -> None:
        port = client.base_url.port
        assert port is not None
        for path in (
            "/assets/../index.html",
            "/assets/../../secret.txt",
            "/assets/%2e%2e/%2e%2e/secret.txt",
            "/assets/..%2f..%2fsecret.txt",
            "/assets/%2e%2e%2f%2e%2e%2fpages-too/secret.js",
            "/assets/..%5c..%5csecret.txt",
            "/assets/....//....//secret.txt",
            "/assets/%252e%252e/secret.txt",
            f"/assets/{folder.parent}/secret.txt",
            f"/assets//{folder.parent}/secret.txt",
            "/assets/app-1a2b.js%00.css",
            "/assets/outside.js",
            "/assets/a.py",
            "/assets/noending",
            "/assets/deep",
            "/assets/",
            "/assets",
            "/favicon.svg/../../secret.txt",
            "/pages-too/secret.js",
        ):
            # By hand: a client would tidy the path before it sends it.
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            answer = await reader.read()
            writer.close()
            assert answer.split(b" ")[1] in (b"404", b"400"), (path, answer[:100])
            assert b"secret" not in answer.partition(b"\r\n\r\n")[2], path

    run(shared_database, folder, check)


def test_a_person_at_a_dead_link_gets_a_page_and_a_program_a_problem(
    shared_database: TestDatabase, folder: Path
) -> None:
    async def check(client: httpx.AsyncClient) -> None:
        page = await client.get("/nowhere", headers=HTML)
        assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert "nothing at this address" in page.text
        assert "script-src 'self'" in page.headers["content-security-policy"]
        assert (await client.head("/nowhere", headers=HTML)).content == b""
        for path, headers in (("/nowhere", {}), ("/api/nowhere", HTML), ("/nowhere", {"Accept": "text/html;q=0"})):
            answer = await client.get(path, headers=headers)
            assert (answer.status_code, answer.json()["error"]) == (404, "not_found"), path
        assert (await client.post("/nowhere", headers=HTML)).json()["error"] == "not_found"
        assert (await client.get("/assets/nowhere.js")).status_code == 404

    run(shared_database, folder, check)


def test_a_server_without_its_pages_says_how_to_build_them(shared_database: TestDatabase, tmp_path: Path) -> None:
    async def check(client: httpx.AsyncClient) -> None:
        for path in ("/", "/e/1", "/dashboard", "/dashboard/x"):
            answer = await client.get(path)
            assert answer.status_code == 404, path  # no fault to be woken for
            assert "make web" in answer.text
            assert answer.headers["cache-control"] == "no-store"
            assert "script-src 'self'" in answer.headers["content-security-policy"]
        assert (await client.get("/assets/a.js")).status_code == 404

    run(shared_database, tmp_path / "nowhere", check)
