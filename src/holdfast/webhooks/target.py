"""Where a webhook may go: addresses of the open internet, and nothing inside the house.

A URL is taken apart once, here. What is sent later is put together from these parts and an address that was checked, so
that no second parser and no second lookup can come to another result.
"""

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final
from urllib.parse import urlsplit

import msgspec

Address = IPv4Address | IPv6Address

URL_CHARS: Final = 2_000
PORTS: Final = {"https": 443, "http": 80}
_VISIBLE: Final = re.compile(r"[!-~]+")
_NAME: Final = re.compile(
    r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*\.?"
)


class TargetRefused(Exception):
    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class Target(msgspec.Struct, frozen=True):
    scheme: str
    host: str
    """A name in its ASCII form, or an address without brackets."""
    port: int
    path: str
    """With the query."""

    @property
    def authority(self) -> str:
        """For the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def address(self) -> Address | None:
        """Where the URL names an address instead of a name."""
        try:
            return ip_address(self.host)
        except ValueError:
            return None

    def url_at(self, address: Address) -> str:
        """The same URL with the address in place of the name."""
        host = f"[{address}]" if address.version == 6 else str(address)
        return f"{self.scheme}://{host}:{self.port}{self.path}"


def parse_target(url: str, *, private: bool = False) -> Target:
    """Raises TargetRefused. `private` lets http through; whatever is inside the house is judged by its address."""
    if len(url) > URL_CHARS:
        raise TargetRefused("too_long", f"must be at most {URL_CHARS} characters")
    if not _VISIBLE.fullmatch(url) or "\\" in url:
        raise TargetRefused("bad_url", "must be a URL in ASCII, with anything else percent-encoded")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise TargetRefused("bad_url", "must be a URL such as https://example.com/hook") from error
    scheme = parts.scheme.lower()
    if scheme not in PORTS or (scheme == "http" and not private):
        raise TargetRefused("bad_scheme", "must begin with https://" + (" or http://" if private else ""))
    if "@" in parts.netloc:
        raise TargetRefused("credentials", "must not contain a user name or password")
    if "#" in url:
        raise TargetRefused("fragment", "must not contain a fragment")
    port = PORTS[scheme] if port is None else port
    if port < 1024 and port not in PORTS.values():
        raise TargetRefused("bad_port", "the port must be 80, 443 or from 1024 to 65535")
    path = parts.path or "/"
    return Target(scheme, _host(parts.hostname), port, f"{path}?{parts.query}" if parts.query else path)


def _host(host: str | None) -> str:
    if not host:
        raise TargetRefused("no_host", "must name a host")
    if ":" in host:
        if "%" in host:
            raise TargetRefused("bad_host", "must not name a network interface")
        try:
            return str(IPv6Address(host))
        except ValueError as error:
            raise TargetRefused("bad_host", "must name a host") from error
    if not _NAME.fullmatch(host):
        raise TargetRefused("bad_host", "must name a host; one with other letters in its xn-- form")
    return host


# Addresses ------------------------------------------------------------------------------------------------------
_HOUSE_4: Final = {
    "loopback": ("127.0.0.0/8",),
    "private": ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"),
}
_NEVER_4: Final = {
    "link-local": ("169.254.0.0/16",),
    "multicast": ("224.0.0.0/4",),
    "reserved": (
        "0.0.0.0/8", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24",
        "203.0.113.0/24", "240.0.0.0/4",
    ),
}  # fmt: skip
_HOUSE_6: Final = {"loopback": ("::1/128",), "private": ("fc00::/7",)}
_NEVER_6: Final = {
    "link-local": ("fe80::/10", "fec0::/10"),
    "multicast": ("ff00::/8",),
    "reserved": ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"),
}
_OPEN_6: Final = IPv6Network("2000::/3")
"""All of IPv6 that is given out; what lies outside is reserved."""
_NAT64: Final = IPv6Network("64:ff9b::/96")


def address_fault(address: Address, *, private: bool = False) -> str | None:
    """What kind of address it is, where nothing may be sent to it.

    `private` allows the house's own (loopback and private networks); link-local addresses, where clouds keep the
    credentials of their machines, are refused always. An IPv4 address within an IPv6 address is what counts.
    """
    if isinstance(address, IPv6Address):
        inner = _inner(address)
        return _fault_6(address, private) if inner is None else address_fault(inner, private=private)
    for kind, networks in (_NEVER_4 if private else _HOUSE_4 | _NEVER_4).items():
        if any(address in IPv4Network(network) for network in networks):
            return kind
    return None


def _fault_6(address: IPv6Address, private: bool) -> str | None:
    for kind, networks in (_HOUSE_6 | _NEVER_6).items():
        if any(address in IPv6Network(network) for network in networks):
            return None if private and kind in _HOUSE_6 else kind
    return None if address in _OPEN_6 else "reserved"


def _inner(address: IPv6Address) -> IPv4Address | None:
    """Of ::ffff:a.b.c.d, and of what a gateway from IPv6 to IPv4 stands for (NAT64)."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None


def check_addresses(addresses: list[Address], *, private: bool = False) -> None:
    """Every address a name has must be one that may be sent to: the next lookup may bring any of them."""
    if not addresses:
        raise TargetRefused("unknown_host", "the host has no address")
    for address in addresses:
        fault = address_fault(address, private=private)
        if fault is not None:
            article = "an" if fault[0] in "aeiou" else "a"
            raise TargetRefused("private_target", f"the host has {article} {fault} address, where nothing is sent to")
