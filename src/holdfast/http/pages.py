"""The two web pages, as they were built: the buyer's at `/` and `/e/{event}`, the organiser's at `/dashboard`.

`make web` puts them into `holdfast/pages`, from where they are part of the wheel:

    index.html          the buyer's page
    dashboard.html      the organiser's; every address below /dashboard is the page's own to interpret
    assets/…            what they load, named after its content: kept by browsers for ever
    favicon.svg, …      a few files at the root (ROOT_FILES)
    *.br, *.gz          the same file packed ahead, sent to who can unpack it

All of it is read into memory once. A request names a file among those or it names nothing: no path is ever put together
from what a browser sent.
"""

import hashlib
from functools import lru_cache
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any, Final

import msgspec
from litestar import HttpMethod, MediaType, Request, Response, route
from litestar.params import FromPath
from litestar.types import ASGIApp, ControllerRouterHandler, Receive, Scope, Send

from holdfast.http.negotiation import names_tag, weights
from holdfast.http.services import services

AnyRequest = Request[Any, Any, Any]
Headers = list[tuple[bytes, bytes]]

KINDS: Final = {
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".mjs": b"text/javascript; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".svg": b"image/svg+xml",
    ".png": b"image/png",
    ".webp": b"image/webp",
    ".ico": b"image/x-icon",
    ".woff2": b"font/woff2",
    ".wasm": b"application/wasm",
    ".json": b"application/json",
    ".webmanifest": b"application/manifest+json",
    ".map": b"application/json",
    ".txt": b"text/plain; charset=utf-8",
}
"""What is of no kind here is not served."""
PACKED: Final = (("br", ".br"), ("gzip", ".gz"))
"""The better first."""
ROOT_FILES: Final = ("favicon.ico", "favicon.svg", "robots.txt", "manifest.webmanifest")
FOREVER: Final = b"public, max-age=31536000, immutable"
ASK_AGAIN: Final = b"no-cache"
METHODS: Final = [HttpMethod.GET, HttpMethod.HEAD]

BUYERS: Final = "index.html"
ORGANISERS: Final = "dashboard.html"

PAGE_POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    b"connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; "
    b"frame-ancestors 'none'"
)
"""Nothing from elsewhere, and no script or style in the page itself."""


class PageFile(msgspec.Struct, frozen=True):
    kind: bytes
    cached: bytes
    plain: bytes
    packed: dict[str, bytes]
    tag: str


class PageFiles:
    """The built files by their path below the folder."""

    def __init__(self, files: dict[str, PageFile]) -> None:
        self._files = files

    @classmethod
    def read(cls, folder: Path) -> "PageFiles":
        contents = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in (sorted(folder.rglob("*")) if folder.is_dir() else ())
            if path.is_file() and path.resolve().is_relative_to(folder.resolve())
        }
        files: dict[str, PageFile] = {}
        for name, plain in contents.items():
            kind = KINDS.get(PurePosixPath(name).suffix)
            if kind is None:
                continue
            packed = {coding: contents[name + end] for coding, end in PACKED if name + end in contents}
            cached = FOREVER if name.startswith("assets/") else ASK_AGAIN
            files[name] = PageFile(kind, cached, plain, packed, hashlib.blake2b(plain, digest_size=12).hexdigest())
        return cls(files)

    def get(self, name: str) -> PageFile | None:
        return self._files.get(name)


@lru_cache(maxsize=4)
def page_files(folder: str | None) -> PageFiles:
    """None: those that came with the package."""
    return PageFiles.read(Path(str(resources.files("holdfast"))) / "pages" if folder is None else Path(folder))


def _files(request: AnyRequest) -> PageFiles:
    return page_files(services(request).settings.pages)


# Answers ----------------------------------------------------------------------------------------------------------
def _page(request: AnyRequest, name: str) -> ASGIApp:
    found = _files(request).get(name)
    return _NOT_BUILT if found is None else _send(request, found)


def _file(request: AnyRequest, name: str) -> ASGIApp:
    found = _files(request).get(name)
    return _MISSING if found is None else _send(request, found)


def _send(request: AnyRequest, file: PageFile) -> ASGIApp:
    wanted = weights(request.headers.get("accept-encoding", ""))
    coding = next((name for name in file.packed if wanted.get(name, wanted.get("*", 0.0)) > 0.0), None)
    tag = f'"{file.tag}{f"-{coding}" if coding else ""}"'
    headers = [(b"etag", tag.encode()), (b"cache-control", file.cached)]
    if file.packed:
        headers.append((b"vary", b"accept-encoding"))
    if file.kind.startswith((b"text/html", b"text/javascript")):
        # A worker lives under the policy that its own script came with. A 304 says it too: browsers take its headers over
        # into the page they kept, and the API's policy would leave it blank.
        headers.append((b"content-security-policy", PAGE_POLICY))
    if names_tag(request.headers.get("if-none-match", ""), tag):
        return _Bytes(304, headers, None)
    headers.append((b"content-type", file.kind))
    if coding is None:
        return _Bytes(200, headers, file.plain)
    return _Bytes(200, [*headers, (b"content-encoding", coding.encode())], file.packed[coding])


class _Bytes:
    def __init__(self, status: int, headers: Headers, body: bytes | None) -> None:
        self._status = status
        self.body = body or b""
        self._headers = [*headers] if body is None else [*headers, (b"content-length", str(len(body)).encode())]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = b"" if scope.get("method") == "HEAD" else self.body
        await send({"type": "http.response.start", "status": self._status, "headers": list(self._headers)})
        await send({"type": "http.response.body", "body": body, "more_body": False})


def _plain_page(status: int, title: str, said: str) -> _Bytes:
    text = (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>\n'
        f"<body><h1>{title}</h1>\n{said}\n</body></html>\n"
    )
    headers = [(b"content-type", KINDS[".html"]), (b"cache-control", b"no-store")]
    return _Bytes(status, headers, text.encode())


_NOT_BUILT: Final = _plain_page(
    404,
    "The pages are not built",
    "<p>The server runs, but this copy of Holdfast came without its web pages. In the source folder, build them with"
    " <code>make web</code> and start the server again.</p>\n"
    '<p>The API is there without them: see <a href="/docs">its description</a>.</p>',
)
_MISSING: Final = _plain_page(
    404, "There is nothing at this address", '<p>Perhaps it was moved. <a href="/">To what is on sale</a></p>'
)


def missing_page(request: AnyRequest) -> Response[bytes] | None:
    """For a person who follows a dead link; None for everything that is not one."""
    accept = weights(request.headers.get("accept", ""))
    person = accept.get("text/html", 0.0) > 0.0 and request.method in ("GET", "HEAD")
    if not person or request.scope["path"].startswith("/api/"):
        return None
    return Response(_MISSING.body, status_code=404, media_type=MediaType.HTML)


# Routes -----------------------------------------------------------------------------------------------------------
@route("/", http_method=METHODS, include_in_schema=False)
async def buyers_page(request: AnyRequest) -> ASGIApp:
    return _page(request, BUYERS)


@route("/e/{event_id:str}", http_method=METHODS, include_in_schema=False)
async def event_page(request: AnyRequest, event_id: FromPath[str]) -> ASGIApp:
    """The page itself finds out whether there is such an event, and says so."""
    return _page(request, BUYERS)


@route(["/dashboard", "/dashboard/{rest:path}"], http_method=METHODS, include_in_schema=False)
async def organisers_page(request: AnyRequest) -> ASGIApp:
    return _page(request, ORGANISERS)


@route("/assets/{name:path}", http_method=METHODS, include_in_schema=False)
async def asset(request: AnyRequest, name: FromPath[PurePosixPath]) -> ASGIApp:
    return _file(request, f"assets/{str(name).lstrip('/')}")


@route([f"/{name}" for name in ROOT_FILES], http_method=METHODS, include_in_schema=False)
async def root_file(request: AnyRequest) -> ASGIApp:
    return _file(request, request.scope["path"].lstrip("/"))


ROUTES: list[ControllerRouterHandler] = [buyers_page, event_page, organisers_page, asset, root_file]
