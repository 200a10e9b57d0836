"""Signing in and out with a password, over HTTP; one's signed-in browsers; setting passwords."""

from typing import Any
from uuid import UUID

import msgspec
from litestar import Request, Response, delete, get, post, put
from litestar.params import FromPath, JSONBody
from litestar.types import ControllerRouterHandler

from holdfast.accounts.sign_in import Session, SignIn
from holdfast.http.auth import call_of, is_https, origin_of_request, path_id
from holdfast.http.cookies import clearing, require_csrf_token, setting
from holdfast.http.envelope import Data
from holdfast.http.services import services
from holdfast.kernel.errors import Unauthorized

Asked = Request[Any, Any, Any]


class SignInRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    email: str
    password: str
    organization_id: UUID | None = None
    """Needed where the same address and password belong to several organizations."""


class NewPassword(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    password: str
    current_password: str | None = None
    """Needed to change one's own."""


class SignInsEnded(msgspec.Struct, frozen=True):
    ended: int


@post("/api/session", security=[], summary="Sign in")
async def sign_in(request: Asked, data: JSONBody[SignInRequest]) -> Response[Data[Session]]:
    """For staff, with a password. Sets a cookie that scripts cannot read; `csrf_token` goes into X-CSRF-Token of every
    request that changes something. After ten failures in a quarter of an hour, by address or network: 429."""
    found = services(request)
    found.authenticator.require_own_page(request.scope)
    origin = origin_of_request(request)
    session, cookie = await found.sign_ins.sign_in(data.email, data.password, data.organization_id, origin)
    request.scope["state"]["organization_id"] = session.organization.id  # for the log
    return Response(Data(session), headers={"Set-Cookie": setting(cookie, https=_https(request))})


@get("/api/session", security=[{"signIn": []}], summary="Who is signed in")
async def show_session(request: Asked) -> Data[Session]:
    """With the cookie alone."""
    found = services(request)
    cookie = found.authenticator.used_cookie(request.scope)
    if cookie is None:
        raise Unauthorized("You are not signed in, or not any more. Please sign in.")
    principal = await found.authenticator.authenticate(request.scope["headers"], request.scope)
    return Data(await found.sign_ins.session(cookie, principal))


@delete("/api/session", status_code=204, security=[{"signIn": []}], summary="Sign out")
async def sign_out(request: Asked) -> Response[None]:
    """Ends this browser's sign-in and takes its cookie back; a second time without effect."""
    found = services(request)
    cookie = found.authenticator.used_cookie(request.scope)
    if cookie is None:
        raise Unauthorized("You are not signed in, or not any more. Please sign in.")
    found.authenticator.require_own_page(request.scope)
    require_csrf_token(request.scope["headers"], cookie)
    await found.sign_ins.sign_out(cookie, origin_of_request(request))
    found.authenticator.forget_cookie(cookie)
    return Response(None, headers={"Set-Cookie": clearing(https=_https(request))})


@get("/api/users/me/sign-ins", summary="List one's signed-in browsers")
async def list_sign_ins(request: Asked) -> Data[list[SignIn]]:
    call = await call_of(request)
    found = services(request)
    return Data(await found.sign_ins.list_own(call, found.authenticator.used_cookie(request.scope)))


@delete("/api/users/me/sign-ins", status_code=200, summary="Sign out all other browsers")
async def end_sign_ins(request: Asked) -> Data[SignInsEnded]:
    """All but the one that asks; with a token: all."""
    call = await call_of(request)
    found = services(request)
    return Data(SignInsEnded(await found.sign_ins.end_others(call, found.authenticator.used_cookie(request.scope))))


@put("/api/users/{id:str}/password", status_code=204, summary="Set a user's password")
async def set_password(request: Asked, id: FromPath[str], data: JSONBody[NewPassword]) -> None:
    """One's own with `current_password`; an administrator's for somebody of no higher role. Ends the user's sign-ins, but
    for the one that asks."""
    call = await call_of(request)
    found = services(request)
    cookie = found.authenticator.used_cookie(request.scope)
    await found.sign_ins.set_password(call, path_id("id", id), data.password, data.current_password, cookie)


def _https(request: Asked) -> bool:
    return is_https(request.scope, services(request).settings.trusted_proxies)


ROUTES: list[ControllerRouterHandler] = [
    sign_in,
    show_session,
    sign_out,
    list_sign_ins,
    end_sign_ins,
    set_password,
]
