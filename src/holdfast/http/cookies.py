"""The cookie of a signed-in browser, and whether a request comes from our own pages. Pure.

Over https the cookie has the `__Host-` prefix, which no other host of the domain can set; the plain name counts only over
http. A cookie is sent along by the browser whoever wrote the page, so a request that changes something must also say the
sign-in's token, which only our own pages can read, and must not come from another site.
"""

from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from holdfast.accounts.refusals import CsrfFailed
from holdfast.accounts.sign_in import LIFE_S, CookieText, parse_cookie

RawHeaders = Iterable[tuple[bytes, bytes]]

PLAIN_NAME: Final = "holdfast_session"
SECURE_NAME: Final = f"__Host-{PLAIN_NAME}"
_OWN_SITE: Final = (b"same-origin", b"none")


def cookie_name(*, https: bool) -> str:
    return SECURE_NAME if https else PLAIN_NAME


def session_cookie(headers: RawHeaders, *, https: bool) -> CookieText | None:
    """None too where there are two of the name: one of them was put there by somebody else."""
    name = cookie_name(https=https).encode()
    values = {
        value.strip()
        for header, line in headers
        if header == b"cookie"
        for key, _, value in (part.partition(b"=") for part in line.split(b";"))
        if key.strip() == name
    }
    if len(values) != 1:
        return None
    return parse_cookie(values.pop().decode("latin-1"))


def setting(cookie: CookieText, *, https: bool) -> str:
    """The Set-Cookie header of a sign-in."""
    return _line(cookie.text, LIFE_S, https=https)


def clearing(*, https: bool) -> str:
    return _line("", 0, https=https)


def _line(value: str, max_age_s: int, *, https: bool) -> str:
    secure = "; Secure" if https else ""
    name = cookie_name(https=https)
    return f"{name}={value}; Path=/; Max-Age={max_age_s}; HttpOnly; SameSite=Strict{secure}"


def require_own_page(headers: RawHeaders, hosts: frozenset[bytes], *, https: bool, said_to: bool = False) -> None:
    """Refuses what another site's page sent. `hosts`: names this server is called by in the request.

    A browser says so in Sec-Fetch-Site where the connection is safe, and in Origin otherwise. `said_to`: it must say so
    (WebSockets, which every browser sends an Origin with).
    """
    site, origin = _one(headers, b"sec-fetch-site"), _one(headers, b"origin")
    if site is not None:
        if site.lower() not in _OWN_SITE:
            raise CsrfFailed("This request was sent by a page of another site.")
    elif origin is not None:
        if _authority(origin, https=https) not in hosts:
            raise CsrfFailed("This request was sent by a page of another site.")
    elif said_to:
        raise CsrfFailed("A request with a cookie must say where it comes from (Origin).")


def require_csrf_token(headers: RawHeaders, cookie: CookieText) -> None:
    said = _one(headers, b"x-csrf-token")
    if said is None or not cookie.csrf_matches(said):
        raise CsrfFailed("X-CSRF-Token is missing or not that of this sign-in: GET /api/session says it.")


def host_names(headers: RawHeaders, *, proxy_believed: bool) -> frozenset[bytes]:
    named = (b"host", b"x-forwarded-host") if proxy_believed else (b"host",)
    return frozenset(_without_port(value.strip().lower()) for name, value in headers if name in named)


def _authority(origin: bytes, *, https: bool) -> bytes | None:
    """None for `null`, which is what hides its origin; and, over https, for a page that came without."""
    try:
        parts = urlsplit(origin.decode("latin-1"))
    except ValueError:
        return None
    if parts.scheme not in (("https",) if https else ("http", "https")):
        return None
    return _without_port(parts.netloc.lower().encode("latin-1"))


def _without_port(host: bytes) -> bytes:
    """Without the port that the scheme implies anyway."""
    for port in (b":80", b":443"):
        if host.endswith(port):
            return host[: -len(port)]
    return host


def _one(headers: RawHeaders, wanted: bytes) -> bytes | None:
    values = [value for name, value in headers if name == wanted]
    if len(values) > 1:
        raise CsrfFailed(f"The header {wanted.decode()} was sent twice.")
    return values[0].strip() if values else None
