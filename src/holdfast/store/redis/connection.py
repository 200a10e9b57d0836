"""Connections to Redis or Valkey: one server, a master watched by Sentinels, or a Cluster.

Nothing is connected before the first command, so a server that is away delays no start. Nothing is tried twice here: the
breaker decides when a server is asked again.
"""

from typing import Any

from redis.asyncio import Redis
from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff

from holdfast.store.redis.address import Form, RedisAddress, parse_url

CONNECTIONS_MAX = 64

Client = Redis | RedisCluster


class RedisConnection:
    """`client` is for commands; whoever listens gets a client of its own from `subscriber`."""

    def __init__(self, address: RedisAddress, timeout_s: float) -> None:
        self.address = address
        self._timeout_s = timeout_s
        self._sentinel = self._sentinels() if address.form is Form.SENTINEL else None
        self.client: Client = self._cluster() if address.form is Form.CLUSTER else self._single(timeout_s)

    @classmethod
    def open(cls, url: str, timeout_s: float) -> "RedisConnection":
        """Raises RedisUrlInvalid."""
        return cls(parse_url(url), timeout_s)

    @property
    def is_cluster(self) -> bool:
        return self.address.form is Form.CLUSTER

    @property
    def patience_s(self) -> float:
        """How long a call may take as a whole. Where the server has to be found first, that may take as long again."""
        return self._timeout_s if self.address.form in (Form.SINGLE, Form.UNIX) else 2 * self._timeout_s

    async def ready(self) -> Client:
        """The client, which of a cluster must know the nodes first: it sends what it cannot place anywhere at all."""
        client = self.client
        if isinstance(client, RedisCluster) and client.get_default_node() is None:
            await client.initialize()
        return client

    def subscriber(self, attempt: int) -> Redis:
        """A client whose connection may be silent for any time. Of a cluster any node will do: the next one each attempt."""
        if isinstance(self.client, RedisCluster):
            hosts = [(str(node.host), int(node.port)) for node in self.client.get_primaries()] or self.address.hosts
            return self._redis(None, hosts[attempt % len(hosts)])
        return self._single(None)

    async def close(self) -> None:
        await self.client.aclose()
        if self._sentinel is not None:
            await self._sentinel.aclose()

    def _single(self, read_timeout_s: float | None) -> Redis:
        if self._sentinel is not None and self.address.master is not None:
            found: Redis = self._sentinel.master_for(
                self.address.master, db=self.address.db, ssl=self.address.tls, **self._options(read_timeout_s)
            )
            return found
        return self._redis(read_timeout_s, self.address.hosts[0] if self.address.hosts else None)

    def _redis(self, read_timeout_s: float | None, host: tuple[str, int] | None) -> Redis:
        options = self._options(read_timeout_s)
        if host is None:
            return Redis(unix_socket_path=self.address.path, db=self.address.db, **options)
        return Redis(host=host[0], port=host[1], db=self.address.db, ssl=self.address.tls, **options)

    def _sentinels(self) -> Sentinel:
        address = self.address
        # All can be asked in the time one answer may take: the first may be the one that is away.
        share_s = self._timeout_s / len(address.hosts)
        return Sentinel(  # type: ignore[no-untyped-call]
            address.hosts,
            sentinel_kwargs={
                "socket_timeout": share_s,
                "socket_connect_timeout": share_s,
                "username": address.options.get("sentinel_username"),
                "password": address.options.get("sentinel_password"),
                "ssl": address.tls,
                "retry": _never_again(),
                "protocol": 2,
                **self._tls_options(),
            },
        )

    def _cluster(self) -> RedisCluster:
        return RedisCluster(
            startup_nodes=[ClusterNode(host, port) for host, port in self.address.hosts],
            ssl=self.address.tls,
            require_full_coverage=False,
            reinitialize_steps=0,  # a slot that moved is noted; the others' connections are not cut for it
            **self._options(self._timeout_s),
        )

    def _options(self, read_timeout_s: float | None) -> dict[str, Any]:
        return {
            "username": self.address.username,
            "password": self.address.password,
            "socket_timeout": read_timeout_s,
            "socket_connect_timeout": self._timeout_s,
            "max_connections": CONNECTIONS_MAX,
            "client_name": "holdfast",
            "protocol": 2,
            "retry": _never_again(),
            **self._tls_options(),
        }

    def _tls_options(self) -> dict[str, str]:
        return {name: value for name, value in self.address.options.items() if name.startswith("ssl_")}


def _never_again() -> Retry:
    return Retry(NoBackoff(), 0)
