"""Where nothing is sent to, by URL and by address."""

from ipaddress import IPv4Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.webhooks.target import TargetRefused, address_fault, check_addresses, parse_target


@pytest.mark.parametrize(
    ("url", "host", "port", "path", "authority"),
    [
        ("https://example.com", "example.com", 443, "/", "example.com"),
        ("https://Example.COM/hook?a=b&c", "example.com", 443, "/hook?a=b&c", "example.com"),
        ("HTTPS://example.com:8443/x/", "example.com", 8443, "/x/", "example.com:8443"),
        ("https://example.com:443/", "example.com", 443, "/", "example.com"),
        ("https://[2606:4700::1111]:8443/", "2606:4700::1111", 8443, "/", "[2606:4700::1111]:8443"),
        ("https://xn--bcher-kva.example/", "xn--bcher-kva.example", 443, "/", "xn--bcher-kva.example"),
        ("https://93.184.216.34/", "93.184.216.34", 443, "/", "93.184.216.34"),
    ],
)
def test_a_url_of_the_open_internet_is_taken_apart(url: str, host: str, port: int, path: str, authority: str) -> None:
    target = parse_target(url)
    assert (target.host, target.port, target.path, target.authority) == (host, port, path, authority)


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://example.com/", "bad_scheme"),
        ("ftp://example.com/", "bad_scheme"),
        ("file:///etc/passwd", "bad_scheme"),
        ("gopher://example.com/", "bad_scheme"),
        ("//example.com/", "bad_scheme"),
        ("example.com", "bad_scheme"),
        ("", "bad_url"),
        ("https://", "no_host"),
        ("https:///path", "no_host"),
        ("https://user@example.com/", "credentials"),
        ("https://user:secret@example.com/", "credentials"),
        ("https://example.com@127.0.0.1/", "credentials"),
        ("https://@example.com/", "credentials"),
        ("https://example.com/#part", "fragment"),
        ("https://example.com:22/", "bad_port"),
        ("https://example.com:0/", "bad_port"),
        ("https://example.com:25/", "bad_port"),
        ("https://example.com:1023/", "bad_port"),
        ("https://example.com:65536/", "bad_url"),
        ("https://example.com:x/", "bad_url"),
        ("https://example.com\\@127.0.0.1/", "bad_url"),
        ("https://exa mple.com/", "bad_url"),
        ("https://example.com/\r\nX-Header: 1", "bad_url"),
        ("https://example.com/\x00", "bad_url"),
        ("https://bücher.example/", "bad_url"),
        ("https://exa_mple..com/", "bad_host"),
        ("https://-example.com/", "bad_host"),
        ("https://exam%70le.com/", "bad_host"),
        ("https://[fe80::1%25eth0]/", "bad_host"),
        ("https://[::1/", "bad_url"),
        ("https://example.com/" + "x" * 2_000, "too_long"),
    ],
)
def test_any_other_url_is_refused(url: str, code: str) -> None:
    with pytest.raises(TargetRefused) as refused:
        parse_target(url)
    assert refused.value.code == code


def test_http_is_for_intranets() -> None:
    assert parse_target("http://intranet/hook", private=True).port == 80
    with pytest.raises(TargetRefused):
        parse_target("ftp://intranet/hook", private=True)


REFUSED = {
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "::1": "loopback",
    "10.0.0.1": "private",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.168.1.1": "private",
    "100.64.0.1": "private",
    "100.127.255.255": "private",
    "fc00::1": "private",
    "fd12:3456::1": "private",
    "169.254.169.254": "link-local",
    "169.254.0.1": "link-local",
    "fe80::1": "link-local",
    "fec0::1": "link-local",
    "224.0.0.1": "multicast",
    "239.255.255.255": "multicast",
    "ff02::1": "multicast",
    "0.0.0.0": "reserved",
    "0.1.2.3": "reserved",
    "::": "reserved",
    "255.255.255.255": "reserved",
    "240.0.0.1": "reserved",
    "192.0.0.1": "reserved",
    "192.0.2.1": "reserved",
    "198.18.0.1": "reserved",
    "198.51.100.1": "reserved",
    "203.0.113.1": "reserved",
    "::7f00:1": "reserved",
    "2001:db8::1": "reserved",
    "2001::1": "reserved",
    "2002:7f00:1::1": "reserved",
    "100::1": "reserved",
    "64:ff9b:1::1": "reserved",
    "::ffff:127.0.0.1": "loopback",
    "::ffff:10.0.0.1": "private",
    "::ffff:169.254.169.254": "link-local",
    "64:ff9b::7f00:1": "loopback",
    "64:ff9b::a9fe:a9fe": "link-local",
    "64:ff9b::c0a8:101": "private",
}
OPEN = ("93.184.216.34", "8.8.8.8", "100.63.255.255", "100.128.0.1", "172.32.0.1", "2606:4700::1111", "::ffff:8.8.8.8",
        "64:ff9b::808:808")  # fmt: skip


@pytest.mark.parametrize("address", REFUSED)
def test_nothing_is_sent_to_an_address_inside_the_house_or_out_of_the_world(address: str) -> None:
    assert address_fault(ip_address(address)) == REFUSED[address]


@pytest.mark.parametrize("address", OPEN)
def test_addresses_of_the_open_internet_are_let_through(address: str) -> None:
    assert address_fault(ip_address(address)) is None


def test_an_intranet_opens_the_house_but_never_what_is_link_local_or_nobodys() -> None:
    for address, kind in REFUSED.items():
        fault = address_fault(ip_address(address), private=True)
        assert fault == (None if kind in ("loopback", "private") else kind), address


@given(st.integers(0, 2**32 - 1))
def test_whatever_python_knows_to_be_special_is_refused_in_every_wrapping(number: int) -> None:
    """Python's own list, which is shorter, as a second opinion."""
    plain = IPv4Address(number)
    wrapped = [plain, ip_address(f"::ffff:{plain}"), ip_address((0x64FF9B << 96) | number)]
    faults = {address_fault(address) for address in wrapped}
    assert len(faults) == 1
    if plain.is_private or plain.is_loopback or plain.is_link_local or plain.is_multicast or plain.is_reserved:
        assert faults != {None}


def test_one_bad_address_among_good_ones_is_enough() -> None:
    good, bad = ip_address("93.184.216.34"), ip_address("127.0.0.1")
    check_addresses([good])
    for addresses in ([good, bad], [bad, good], []):
        with pytest.raises(TargetRefused):
            check_addresses(addresses)
