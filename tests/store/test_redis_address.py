"""The URL of the warm tier: every form, and what a wrong one is told."""

import pytest

from holdfast.store.redis.address import Form, RedisAddress, RedisUrlInvalid, parse_url

TWO = (("a", 1), ("b", 2))


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("redis://cache", RedisAddress(form=Form.SINGLE, hosts=(("cache", 6379),))),
        ("valkey://cache:1/3", RedisAddress(form=Form.SINGLE, hosts=(("cache", 1),), db=3)),
        ("redis://cache?db=3", RedisAddress(form=Form.SINGLE, hosts=(("cache", 6379),), db=3)),
        ("redis://[::1]:7", RedisAddress(form=Form.SINGLE, hosts=(("::1", 7),))),
        ("redis://[::1]", RedisAddress(form=Form.SINGLE, hosts=(("::1", 6379),))),
        (
            "rediss://me:p%40ss@cache?ssl_ca_certs=/ca.pem",
            RedisAddress(
                form=Form.SINGLE,
                tls=True,
                hosts=(("cache", 6379),),
                username="me",
                password="p@ss",
                options={"ssl_ca_certs": "/ca.pem"},
            ),
        ),
        ("redis://:secret@cache", RedisAddress(form=Form.SINGLE, hosts=(("cache", 6379),), password="secret")),
        ("unix:///run/a%20b.sock", RedisAddress(form=Form.UNIX, path="/run/a b.sock")),
        ("unix:///run/a.sock?db=2", RedisAddress(form=Form.UNIX, path="/run/a.sock", db=2)),
        ("redis+sentinel://a:1,b:2/main", RedisAddress(form=Form.SENTINEL, hosts=TWO, master="main")),
        (
            "redis+sentinel://u:p@a,b:2/main/4?sentinel_password=q",
            RedisAddress(
                form=Form.SENTINEL,
                hosts=(("a", 26379), ("b", 2)),
                master="main",
                db=4,
                username="u",
                password="p",
                options={"sentinel_password": "q"},
            ),
        ),
        ("redis+cluster://a:1,b:2", RedisAddress(form=Form.CLUSTER, hosts=TWO)),
        (
            "valkeys+cluster://u:p@a:1",
            RedisAddress(form=Form.CLUSTER, tls=True, hosts=(("a", 1),), username="u", password="p"),
        ),
    ],
)
def test_every_form_is_understood(url: str, address: RedisAddress) -> None:
    assert parse_url(url) == address


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("cache:6379", "write redis://"),
        ("http://cache", "write redis://"),
        ("redis://", "a host is missing"),
        ("redis://me:secret@", "a host is missing"),
        ("redis://cache:port", "'port' is no port"),
        ("redis://cache:0", "'0' is no port"),
        ("redis://cache:99999", "'99999' is no port"),
        ("redis://cache/first", "'first' is no database"),
        ("redis://cache/1/2", "more than a database's number"),
        ("redis://cache/1?db=2", "more than a database's number"),
        ("redis://a,b", "write redis+sentinel:// or redis+cluster://"),
        ("redis://cache?retry=yes", "'retry' is no option here"),
        ("redis://cache?ssl_ca_certs=/ca.pem", "'ssl_ca_certs' is no option here"),
        ("unix://", "the socket's path is missing"),
        ("redis+sentinel://a:1,b:2", "the master's name is missing"),
        ("redis+sentinel://a:1,/main", "a host is missing"),
        ("redis+cluster://a/1", "database 0 only"),
        ("redis://[::1", "write redis://"),
    ],
)
def test_a_wrong_one_is_told_what_to_write(url: str, hint: str) -> None:
    with pytest.raises(RedisUrlInvalid) as caught:
        parse_url(url)
    assert hint in str(caught.value)
    assert "secret" not in str(caught.value)
