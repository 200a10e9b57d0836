"""People with passwords, and the browsers they sign in with."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.cookies import SimpleCookie
from typing import Any
from uuid import UUID

import httpx

from holdfast.http.cookies import PLAIN_NAME

PASSWORD = "correct horse battery"


class Browser:
    """Keeps its cookie and its token as our own page would. `headers` of a request win over both."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client
        self.cookie = ""
        self.csrf_token = ""
        self.session: dict[str, Any] = {}

    async def sign_in(self, email: str, password: str = PASSWORD, **more: Any) -> httpx.Response:
        headers = more.pop("headers", {})
        body = {"email": email, "password": password, **more}
        answer = await self.client.post("/api/session", json=body, headers=headers)
        if answer.status_code == 201:
            self.session = answer.json()["data"]
            self.csrf_token = self.session["csrf_token"]
            self.cookie = set_cookie_of(answer)[1]
        return answer

    @property
    def cookie_header(self) -> dict[str, str]:
        return {"Cookie": f"{PLAIN_NAME}={self.cookie}"}

    @property
    def headers(self) -> dict[str, str]:
        return {**self.cookie_header, "X-CSRF-Token": self.csrf_token}

    async def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> httpx.Response:
        sent = self.cookie_header if method == "GET" else self.headers
        kwargs: dict[str, Any] = {} if body is None else {"json": body}
        return await self.client.request(method, path, headers={**sent, **(headers or {})}, **kwargs)

    async def who(self) -> int:
        return (await self.ask("GET", "/api/session")).status_code


def set_cookie_of(answer: httpx.Response) -> tuple[str, str, Any]:
    """Name, value and attributes of the one cookie that an answer sets."""
    (line,) = answer.headers.get_list("set-cookie")
    ((name, morsel),) = SimpleCookie(line).items()
    return name, morsel.value, morsel


@asynccontextmanager
async def browser(server: httpx.AsyncClient) -> AsyncIterator[Browser]:
    """Of somebody else than `server`'s client: with no cookies that were set for that one."""
    async with httpx.AsyncClient(base_url=server.base_url, timeout=20, cookies=_Forgetful()) as client:
        yield Browser(client)


class _Forgetful(httpx.Cookies):
    """Keeps nothing by itself: a test says what is sent."""

    def extract_cookies(self, response: httpx.Response) -> None:
        pass


async def make_person(
    server: httpx.AsyncClient,
    admin: dict[str, str],
    email: str,
    *,
    role: str = "organizer",
    password: str | None = PASSWORD,
) -> UUID:
    """A user whom an administrator has given a password."""
    made = await server.post("/api/users", headers=admin, json={"email": email, "role": role, "display_name": email})
    assert made.status_code == 201, made.text
    user_id: str = made.json()["data"]["id"]
    if password is not None:
        answer = await server.put(f"/api/users/{user_id}/password", headers=admin, json={"password": password})
        assert answer.status_code == 204, answer.text
    return UUID(user_id)
