"""The way out: a POST to a checked address, and what came back. Beside service.py the only file here that does I/O.

A name is looked up once for each delivery; every address it has is checked, and the connection goes to one of those, with
the name for the certificate. There is no second lookup that could be answered differently (DNS rebinding), no proxy from
the environment, no cookie, and no redirect is followed.
"""

import asyncio
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from ipaddress import ip_address

import httpx
import msgspec

from holdfast.webhooks.target import Address, Target, TargetRefused, check_addresses, parse_target

TIMEOUT_S = 10.0
LOOKUP_S = 5.0
CONNECT_S = 4.0
ANSWER_BYTES = 1_024
ADDRESSES_TRIED = 3
_LOOKUPS = 32
"""Threads of their own: names that resolve slowly must not keep the rest of the product from its threads."""

Lookup = Callable[[str, int], Awaitable[list[Address]]]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an attempt: a status, or the error that was in the way of one."""

    status_code: int | None = None
    error: str | None = None
    body: str | None = None
    """The first kilobyte."""
    retry_after: str | None = None
    duration_ms: int = 0

    @property
    def succeeded(self) -> bool:
        return self.status_code is not None and 200 <= self.status_code < 300


@lru_cache(maxsize=1)
def _default_tls() -> ssl.SSLContext:
    """Reading every authority that is trusted takes a while: once a process."""
    return httpx.create_ssl_context()


class Courier:
    def __init__(
        self,
        *,
        private_targets: bool = False,
        timeout_s: float = TIMEOUT_S,
        tls: ssl.SSLContext | None = None,
        lookup: Lookup | None = None,
    ) -> None:
        """`private_targets`: http and the house's own addresses too, for intranets and tests."""
        self._private = private_targets
        self._timeout_s = timeout_s
        self._threads = ThreadPoolExecutor(_LOOKUPS, thread_name_prefix="webhook-lookup")
        self._lookup = lookup or self._ask_resolver
        # A connection is used once: kept open, it would be found again by its address, whatever name it was made for.
        self._transport = httpx.AsyncHTTPTransport(
            verify=tls or _default_tls(), trust_env=False, limits=httpx.Limits(max_keepalive_connections=0)
        )

    async def close(self) -> None:
        await self._transport.aclose()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def check(self, url: str) -> None:
        """Whether anything would be sent there at this moment. Raises TargetRefused."""
        await self._resolve(parse_target(url, private=self._private))

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """One attempt; never raises for what the other side does."""
        started = time.monotonic()
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await self._post(url, headers, body)
        except TimeoutError:
            answer = Answer(error=f"no answer within {self._timeout_s:g} seconds")
        except TargetRefused as refused:
            answer = Answer(error=f"refused to send: {refused.detail}")
        except (httpx.HTTPError, OSError, ssl.SSLError) as error:
            answer = Answer(error=_said(error))
        return msgspec.structs.replace(answer, duration_ms=int((time.monotonic() - started) * 1000))

    async def _post(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        target = parse_target(url, private=self._private)
        addresses = await self._resolve(target)
        failed: Exception | None = None
        for address in addresses[:ADDRESSES_TRIED]:
            try:
                return await self._send(target, address, headers, body)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failed = error  # nothing was sent: another address may do
        assert failed is not None
        raise failed

    async def _send(self, target: Target, address: Address, headers: Mapping[str, str], body: bytes) -> Answer:
        limits = httpx.Timeout(self._timeout_s, connect=CONNECT_S)
        extensions: dict[str, object] = {"timeout": limits.as_dict()}
        if target.address is None:
            extensions["sni_hostname"] = target.host.rstrip(".")
        request = httpx.Request(
            "POST",
            target.url_at(address),
            headers={"host": target.authority, "accept-encoding": "identity", **headers},
            content=body,
            extensions=extensions,
        )
        response = await self._transport.handle_async_request(request)
        try:
            said = await _beginning(response)
        finally:
            await response.aclose()
        return Answer(
            status_code=response.status_code,
            body=said,
            retry_after=response.headers.get("retry-after"),
            error=None if 200 <= response.status_code < 300 else f"answered {response.status_code}",
        )

    async def _resolve(self, target: Target) -> list[Address]:
        literal = target.address
        try:
            addresses = [literal] if literal is not None else await self._lookup(target.host, target.port)
        except (OSError, UnicodeError, TimeoutError) as error:
            raise TargetRefused("unknown_host", "the host cannot be found") from error
        check_addresses(addresses, private=self._private)
        return addresses

    async def _ask_resolver(self, host: str, port: int) -> list[Address]:
        loop = asyncio.get_running_loop()
        asked = loop.run_in_executor(self._threads, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        async with asyncio.timeout(LOOKUP_S):
            found = await asked
        texts = dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in found)
        return [ip_address(text) for text in texts]


async def _beginning(response: httpx.Response) -> str | None:
    """The status has been said already: an answer that comes slowly, or breaks off, is kept as far as it came."""
    kept = b""
    try:
        async with asyncio.timeout(1.0):
            async for chunk in response.stream:  # type: ignore[union-attr]
                kept += chunk
                if len(kept) >= ANSWER_BYTES:
                    break
    except (TimeoutError, httpx.HTTPError):
        pass
    return kept[:ANSWER_BYTES].decode("utf-8", "replace").replace("\x00", "") or None


def _said(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return f"could not be sent: {text[:300]}".replace("\x00", "")
