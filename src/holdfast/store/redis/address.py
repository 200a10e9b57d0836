"""The URL of the warm tier, taken apart. Pure, so that the settings can be checked without loading a driver."""

from enum import StrEnum
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import msgspec

PORT, SENTINEL_PORT = 6379, 26379

_FORMS = (
    "redis://[user:password@]host:port[/db], rediss:// for TLS, valkey:// likewise, unix:///path/to/socket,"
    " redis+sentinel://[user:password@]host:port,host:port/master_name[/db]"
    " or redis+cluster://[user:password@]host:port,host:port"
)


class RedisUrlInvalid(ValueError):
    """Says what is wrong and what to write, and never the password."""


class Form(StrEnum):
    SINGLE = "single"
    UNIX = "unix"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"


class RedisAddress(msgspec.Struct, frozen=True, kw_only=True):
    form: Form
    hosts: tuple[tuple[str, int], ...] = ()
    """Of the server, of the sentinels, or of some of the cluster's nodes."""
    path: str | None = None
    master: str | None = None
    db: int = 0
    tls: bool = False
    username: str | None = None
    password: str | None = None
    options: dict[str, str] = {}


_SCHEMES: dict[str, tuple[Form, bool]] = {
    f"{name}{suffix}": (form, tls)
    for suffix, form in (("", Form.SINGLE), ("+sentinel", Form.SENTINEL), ("+cluster", Form.CLUSTER))
    for name, tls in (("redis", False), ("rediss", True), ("valkey", False), ("valkeys", True))
} | {"unix": (Form.UNIX, False)}

_TLS_OPTIONS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_SENTINEL_OPTIONS = ("sentinel_username", "sentinel_password")


def parse_url(url: str) -> RedisAddress:
    scheme, separator, _ = url.partition("://")
    if not separator or scheme.lower() not in _SCHEMES:
        raise RedisUrlInvalid(f"write {_FORMS}")
    form, tls = _SCHEMES[scheme.lower()]
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise RedisUrlInvalid(f"{error}: write {_FORMS}") from None
    username, password = _credentials(parts)
    options = _options(parts, form, tls)
    chosen_db = options.pop("db", None)
    common: dict[str, Any] = {"form": form, "tls": tls, "username": username, "password": password, "options": options}
    if form is Form.UNIX:
        if not parts.path.strip("/"):
            raise RedisUrlInvalid("the socket's path is missing: write unix:///path/to/socket")
        return RedisAddress(path=unquote(parts.path), db=_db(chosen_db), **common)
    hosts = _hosts(parts, SENTINEL_PORT if form is Form.SENTINEL else PORT)
    if form is Form.SINGLE and len(hosts) > 1:
        raise RedisUrlInvalid("several hosts: write redis+sentinel:// or redis+cluster:// before them")
    words = [unquote(word) for word in parts.path.split("/") if word]
    master = None
    if form is Form.SENTINEL:
        if not words:
            raise RedisUrlInvalid(
                "the master's name is missing: write redis+sentinel://host:port,host:port/master_name"
            )
        master = words.pop(0)
    if len(words) > 1 or (words and chosen_db is not None):
        raise RedisUrlInvalid(f"'{parts.path}' is more than a database's number: write {_FORMS}")
    db = _db(words[0] if words else chosen_db)
    if form is Form.CLUSTER and db != 0:
        raise RedisUrlInvalid("a cluster has database 0 only: leave the number out")
    return RedisAddress(hosts=hosts, master=master, db=db, **common)


def _credentials(parts: SplitResult) -> tuple[str | None, str | None]:
    before, found, _ = parts.netloc.rpartition("@")
    if not found:
        return None, None
    username, _, password = before.partition(":")
    return unquote(username) or None, unquote(password) or None


def _hosts(parts: SplitResult, default_port: int) -> tuple[tuple[str, int], ...]:
    return tuple(_host(word, default_port) for word in parts.netloc.rpartition("@")[2].split(","))


def _host(word: str, default_port: int) -> tuple[str, int]:
    name, colon, port = word.rpartition(":")
    if not colon or port.endswith("]"):  # an IPv6 address has colons of its own, within brackets
        name, port = word, str(default_port)
    if not name.strip("[]"):
        raise RedisUrlInvalid(f"a host is missing: write {_FORMS}")
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise RedisUrlInvalid(f"'{port}' is no port: write a number from 1 to 65535")
    return name.removeprefix("[").removesuffix("]"), int(port)


def _options(parts: SplitResult, form: Form, tls: bool) -> dict[str, str]:
    known = ("db", *(_TLS_OPTIONS if tls else ()), *(_SENTINEL_OPTIONS if form is Form.SENTINEL else ()))
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    unknown = [name for name in options if name not in known]
    if unknown:
        raise RedisUrlInvalid(f"'{unknown[0]}' is no option here: there are {', '.join(known)}")
    return options


def _db(text: str | None) -> int:
    if text is None:
        return 0
    if not (text.isascii() and text.isdigit()):
        raise RedisUrlInvalid(f"'{text}' is no database: write its number")
    return int(text)
