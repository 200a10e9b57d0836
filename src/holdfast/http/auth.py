"""From a request's headers to who asks (`Principal`) and the call that the services see (`Call`)."""

import asyncio
import hashlib
import ipaddress
import time
from collections.abc import Coroutine, Iterable
from functools import lru_cache, partial
from typing import Any, Final
from uuid import UUID

from litestar import Request
from litestar.types import Scope
from msgspec.structs import replace

from holdfast.accounts.credentials import MAX_CREDENTIAL_CHARS, ApiKeyText, parse_api_key, scope_allows
from holdfast.accounts.principal import Call, Idempotency, Principal, Role
from holdfast.accounts.records import Origin
from holdfast.accounts.service import AccountsService
from holdfast.accounts.sign_in import CookieText
from holdfast.accounts.sign_in_service import SignInService
from holdfast.accounts.standing import TenantAccess
from holdfast.holds.lifecycle import Actor
from holdfast.http.cookies import host_names, require_csrf_token, require_own_page, session_cookie
from holdfast.http.problem import request_id_of
from holdfast.http.services import services
from holdfast.kernel.errors import Forbidden, InvalidRequest, Unauthorized
from holdfast.kernel.ids import parse_id
from holdfast.kernel.problems import Problem

RawHeaders = Iterable[tuple[bytes, bytes]]

REMEMBER_S: Final = 5.0
GUEST_REMEMBER_S: Final = 300.0
CAPACITY: Final = 50_000
USER_AGENT_CHARS: Final = 300
SAFE_METHODS: Final = frozenset(("GET", "HEAD", "OPTIONS"))


class Authenticator:
    """Verifies credentials, and remembers each for a few seconds: so long a deactivated one may still be accepted."""

    def __init__(
        self,
        accounts: AccountsService,
        sign_ins: SignInService,
        *,
        trusted_proxies: str = "",
        remember_s: float = REMEMBER_S,
        capacity: int = CAPACITY,
    ) -> None:
        self._accounts = accounts
        self._sign_ins = sign_ins
        self._trusted_proxies = trusted_proxies
        self._remember_s = remember_s
        self._capacity = capacity
        # In the order of entry, which is nearly that of expiry: the first is the one to drop.
        self._known: dict[bytes, tuple[Principal, float]] = {}
        self._under_way: dict[bytes, asyncio.Task[tuple[Principal, float]]] = {}
        self._changes = 0  # what was read before a change is not remembered after it
        accounts.on_access_change.append(self.forget)

    def remembered(self, authorization: bytes) -> Principal | None:
        """For the hottest route: the principal of a raw Authorization header verified a moment ago."""
        found = self._known.get(authorization)
        if found is None:
            return None
        if found[1] > time.monotonic():
            return found[0]
        del self._known[authorization]
        return None

    def known_at_once(self, authorization: bytes) -> Principal | None:
        """The same, and a guest's new token too: nobody has to be asked about it. None where there is any doubt."""
        known = self.remembered(authorization)
        if known is not None or not authorization.startswith(b"Bearer ") or len(authorization) > MAX_CREDENTIAL_CHARS:
            return known
        try:
            verified = self._accounts.guest_at_once(_bearer_token(authorization))
        except Unauthorized:
            return None
        if verified is None:
            return None
        self._remember(authorization, *verified)
        return verified[0]

    def forget(self, organization_id: UUID) -> None:
        """Someone of this organization was changed by this process: their credentials are looked at anew."""
        self._changes += 1
        self._under_way.clear()
        for header in [h for h, (known, _) in self._known.items() if known.organization_id == organization_id]:
            del self._known[header]

    async def authenticate(
        self, headers: RawHeaders, connection: Scope | None = None, *, own_page: bool = False
    ) -> Principal:
        """From raw ASGI headers (names in small letters). Raises Unauthorized.

        `connection`: whose cookie is taken where there is no other credential; what it asks to change must come from our
        own pages. `own_page`: whatever it asks for.
        """
        found = _credentials(headers)
        authorization, api_key = found.get(b"authorization"), found.get(b"x-api-key")
        if authorization is not None and api_key is not None:
            raise Unauthorized("Send one credential: either Authorization or X-API-Key.")
        if authorization is not None:
            return self.remembered(authorization) or await self._once(
                authorization, self._accounts.principal_of_token(_bearer_token(authorization))
            )
        if api_key is not None:
            named = found.get(b"x-organization-id")
            header = b"\x00".join((b"key", api_key, named or b""))
            known = self.remembered(header)
            if known is not None:
                return known
            organization_id = None if named is None else _organization_id(named)
            return await self._once(header, self._accounts.principal_of_key(_api_key(api_key), organization_id))
        if connection is not None:
            cookie = self.cookie_of(connection)
            if cookie is not None:
                return await self._of_cookie(cookie, connection, own_page=own_page)
        raise Unauthorized("Send a credential: Authorization: Bearer with a token, or X-API-Key with a key.")

    # Signed-in browsers ---------------------------------------------------------------------------------------
    def cookie_of(self, connection: Scope) -> CookieText | None:
        return session_cookie(connection["headers"], https=is_https(connection, self._trusted_proxies))

    def used_cookie(self, connection: Scope) -> CookieText | None:
        """The cookie, where it is what the request is authenticated by."""
        found = _credentials(connection["headers"])
        return None if b"authorization" in found or b"x-api-key" in found else self.cookie_of(connection)

    def require_own_page(self, connection: Scope) -> None:
        headers = connection["headers"]
        believed = proxy_believed(connection.get("client"), self._trusted_proxies)
        socket = str(connection["type"]) == "websocket"
        https = is_https(connection, self._trusted_proxies)
        require_own_page(headers, host_names(headers, proxy_believed=believed), https=https, said_to=socket)

    async def _of_cookie(self, cookie: CookieText, connection: Scope, *, own_page: bool) -> Principal:
        header = b"\x00".join((b"cookie", cookie.text.encode()))
        principal = self.remembered(header) or await self._once(header, self._sign_ins.principal_of_cookie(cookie))
        socket = str(connection["type"]) == "websocket"
        changes = not socket and str(connection.get("method")) not in SAFE_METHODS
        if own_page or changes or socket:
            self.require_own_page(connection)
        if changes:
            require_csrf_token(connection["headers"], cookie)
        return principal

    def forget_cookie(self, cookie: CookieText) -> None:
        """Somebody signed out by this process."""
        self._changes += 1
        header = b"\x00".join((b"cookie", cookie.text.encode()))
        self._under_way.pop(header, None)
        self._known.pop(header, None)

    async def _once(self, header: bytes, work: Coroutine[Any, Any, tuple[Principal, float]]) -> Principal:
        """A hundred requests with the same new credential are one look into the database."""
        task = self._under_way.get(header)
        if task is None:
            task = asyncio.create_task(work)
            self._under_way[header] = task
            task.add_done_callback(partial(self._looked, header))
        else:
            work.close()
        changes = self._changes
        principal, good_for_s = await asyncio.shield(task)  # one caller going away must not fail the others
        if changes == self._changes:
            self._remember(header, principal, good_for_s)
        return principal

    def _looked(self, header: bytes, task: asyncio.Task[tuple[Principal, float]]) -> None:
        if self._under_way.get(header) is task:
            del self._under_way[header]
        if not task.cancelled():
            task.exception()  # nobody may be waiting for it any more

    def _remember(self, header: bytes, principal: Principal, good_for_s: float) -> None:
        # A guest has no membership that could change: only the token's own end matters.
        life_s = min(self._remember_s if principal.guest_event_id is None else GUEST_REMEMBER_S, good_for_s)
        if life_s <= 0:
            return
        while len(self._known) >= self._capacity:
            del self._known[next(iter(self._known))]
        self._known.pop(header, None)
        self._known[header] = (principal, time.monotonic() + life_s)

    async def tenant_access(self, connection: Scope, origin: Origin) -> TenantAccess:
        """A tenant's key without naming an organization, or a superadmin of one of the tenant's organizations."""
        headers = connection["headers"]
        found = _credentials(headers)
        raw = found.get(b"x-api-key")
        if raw is not None and b"authorization" not in found:
            key = _api_key(raw)
            if not key.of_tenant:
                await self._accounts.principal_of_key(key, None)
                raise Forbidden("This needs a tenant's API key.")
            by_key = replace(origin, actor=Actor.API, subject=f"tenant-key:{key.key_id}")
            return await self._accounts.tenant_access_of_key(key, by_key)
        principal = await self.authenticate(headers, connection)
        if principal.role is not Role.SUPERADMIN or principal.tenant_id is None:
            raise Forbidden("This needs a tenant's API key.", required_role="superadmin")
        by_user = replace(origin, actor=principal.actor, subject=principal.subject, user_id=principal.user_id)
        return TenantAccess(tenant_id=principal.tenant_id, origin=by_user)


def _credentials(headers: RawHeaders) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in (b"authorization", b"x-api-key", b"x-organization-id"):
            if name in found:
                raise Unauthorized(f"The header {name.decode()} was sent twice.")
            if len(value) > MAX_CREDENTIAL_CHARS:
                raise Unauthorized("The credential is too long.")
            found[name] = value
    return found


def _bearer_token(authorization: bytes) -> str:
    scheme, _, token = authorization.partition(b" ")
    if scheme.lower() != b"bearer" or not token.strip() or not token.isascii():
        raise Unauthorized("The Authorization header must be: Bearer, a space, and a token.")
    return token.strip().decode()


def _api_key(raw: bytes) -> ApiKeyText:
    key = parse_api_key(raw.decode("latin-1").strip())
    if key is None:
        raise Unauthorized("The API key is not valid.")
    return key


def _organization_id(raw: bytes) -> UUID:
    found = parse_id(raw.decode("latin-1").strip())
    if found is None:
        problem = Problem("/headers/X-Organization-ID", "not_an_id", "must be a UUID")
        raise InvalidRequest("X-Organization-ID must be a UUID.", [problem])
    return found


# The call -------------------------------------------------------------------------------------------------------
async def call_of(request: Request[Any, Any, Any]) -> Call:
    """Who asks and from where. An API key's scope is checked here: the handler's opt `scope`, else read or *."""
    raw = request.scope["headers"]
    idempotency = await _idempotency_of(request)
    principal = await services(request).authenticator.authenticate(raw, request.scope)
    request.scope["state"]["organization_id"] = principal.organization_id  # for the log
    origin = origin_of_request(request)
    call = Call(
        principal=principal,
        ip=origin.ip,
        user_agent=origin.user_agent,
        request_id=origin.request_id,
        idempotency=idempotency,
    )
    named = request.route_handler.opt.get("scope")
    require_scope(call, named or ("read" if request.method in SAFE_METHODS else "*"))
    return call


def origin_of_request(request: Request[Any, Any, Any]) -> Origin:
    """Where a request comes from, whoever sent it."""
    raw = list(request.scope["headers"])
    return Origin(
        actor=Actor.API,
        subject="unknown",
        ip=client_ip(request.scope.get("client"), raw, services(request).settings.trusted_proxies),
        user_agent=user_agent_of(raw),
        request_id=request_id_of(request.scope),
    )


def require_scope(call: Call, scope: str) -> None:
    """Only API keys have scopes; people have roles."""
    principal = call.principal
    if principal.actor is Actor.API and not scope_allows(principal.scopes, scope):
        raise Forbidden("This API key lacks the scope for this.", required_scope=scope)


async def _idempotency_of(request: Request[Any, Any, Any]) -> Idempotency | None:
    raw = request.scope["headers"]
    if request.method in SAFE_METHODS or not any(name == b"idempotency-key" for name, _ in raw):
        return None
    return idempotency_of(request.method, request.scope["path"], raw, await request.body())


def idempotency_of(method: str, path: str, headers: RawHeaders, body: bytes) -> Idempotency | None:
    """The Idempotency-Key, with what tells a repetition from another request."""
    keys = [value for name, value in headers if name == b"idempotency-key"]
    if not keys:
        return None
    if len(keys) > 1 or not 1 <= len(keys[0]) <= 255 or any(not 0x20 <= byte <= 0x7E for byte in keys[0]):
        said = "must be sent once, with 1 to 255 printable ASCII characters"
        problem = Problem("/headers/Idempotency-Key", "invalid", said)
        raise InvalidRequest(f"Idempotency-Key {said}.", [problem])
    digest = hashlib.sha256(b"\x00".join((method.encode(), path.encode(), body))).digest()
    return Idempotency(keys[0].decode(), digest)


_CONTROLS: Final = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)))


def user_agent_of(headers: RawHeaders) -> str | None:
    for name, value in headers:
        if name == b"user-agent":
            return user_agent_text(value)
    return None


@lru_cache(maxsize=4096)
def user_agent_text(raw: bytes) -> str | None:
    return raw[: 4 * USER_AGENT_CHARS].decode("latin-1").translate(_CONTROLS)[:USER_AGENT_CHARS] or None


Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@lru_cache(maxsize=8)
def proxy_networks(trusted: str) -> tuple[Network, ...]:
    """The networks in a list with commas between; raises ValueError for what is none."""
    parts = (part.strip() for part in trusted.split(","))
    return tuple(ipaddress.ip_network(part, strict=False) for part in parts if part and part != "unix")


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(text.strip())
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def proxy_believed(client: Any, trusted_proxies: str) -> bool:
    """Whether the peer is a proxy whose word is taken for where a request comes from."""
    if not trusted_proxies:
        return False
    peer = _address(client[0]) if client else None
    return any(peer in network for network in proxy_networks(trusted_proxies)) if peer else "unix" in trusted_proxies


def is_https(connection: Scope, trusted_proxies: str) -> bool:
    """Whether the browser's own connection is encrypted: ours, or the one to a trusted proxy that says so."""
    if str(connection.get("scheme")) in ("https", "wss"):
        return True
    if not proxy_believed(connection.get("client"), trusted_proxies):
        return False
    said = [value for name, value in connection["headers"] if name == b"x-forwarded-proto"]
    return bool(said) and said[0].split(b",")[0].strip().lower() in (b"https", b"wss")


def client_ip(client: Any, headers: RawHeaders, trusted_proxies: str) -> str | None:
    """The peer's address; behind trusted proxies the nearest address in X-Forwarded-For that is not one of them.

    `trusted_proxies`: addresses and networks with commas between; the word unix stands for a proxy on a socket file.
    """
    peer = _address(client[0]) if client else None
    trusted = proxy_networks(trusted_proxies)
    if proxy_believed(client, trusted_proxies):
        hops = [hop for name, value in headers if name == b"x-forwarded-for" for hop in value.split(b",")]
        for hop in reversed(hops):
            address = _address(hop.decode("latin-1"))
            if address is None:
                break  # what stands further left was written by whoever wrote this
            peer = address
            if not any(address in network for network in trusted):
                break
    return str(peer) if peer else None


def path_id(name: str, text: str) -> UUID:
    """An id out of a path."""
    found = parse_id(text)
    if found is None:
        raise InvalidRequest(f"{name} must be a UUID.", [Problem(f"/{name}", "not_an_id", "must be a UUID")])
    return found


def cursor_id(cursor: str | None) -> UUID | None:
    """The last id of the page before; none for the first page."""
    if cursor is None:
        return None
    try:
        return path_id("cursor", cursor)
    except InvalidRequest as error:
        problem = Problem("/cursor", "bad_cursor", "must be the next_cursor of a page")
        raise InvalidRequest("cursor must be the next_cursor of a page.", [problem]) from error
