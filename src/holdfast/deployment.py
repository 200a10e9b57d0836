"""Where a command works: its settings made whole, and the servers behind them.

With HOLDFAST_DATABASE_URL that is the operator's own database. Without, it is the embedded PostgreSQL in the data folder:
the one already running there, or one started for the command's duration.

The warm tier likewise: the server at HOLDFAST_REDIS_URL, or the embedded Valkey in the data folder (`embedded`, and where
nothing is said, beside the embedded PostgreSQL), or none at all (`none`, and where nothing is said, beside a database of the
operator's own). It is a cache: if the embedded one does not start, that is logged, and things go on without.
"""

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import asyncpg
import msgspec
import structlog

from holdfast.accounts.credentials import generate_secrets
from holdfast.settings import Settings, SettingsInvalid
from holdfast.store.embedded import OWNER, EmbeddedServerError, PostgresServer, ValkeyServer
from holdfast.store.postgres.migrate import migrate, pending

log = structlog.get_logger(__name__)

DATABASE = "holdfast"
APPLICATION = "holdfast_app"
SECRETS_FILE = "jwt-secrets"
EMBEDDED, NONE = "embedded", "none"  # words in place of a URL of the warm tier
VALKEY_START_S, VALKEY_STOP_S = 10.0, 5.0
VALKEY_RETRY_S = 30.0
"""A cache that did not start is not tried again for so long: trying takes the time of whoever is being served."""


class SchemaBehind(Exception):
    pass


def data_folder(settings: Settings) -> Path:
    if settings.data is not None:
        return Path(settings.data).expanduser().absolute()
    if os.geteuid() == 0:
        return Path("/var/lib/holdfast")
    return Path("~/.local/share/holdfast").expanduser()


class Deployment:
    """Settings whose `database_url`, `redis_url` and `jwt_secrets` are what is meant, and what keeps the servers running."""

    def __init__(
        self, settings: Settings, data: Path, admin_url: str, server: PostgresServer | None, servers: ExitStack
    ) -> None:
        self.settings = settings
        self.data = data
        self.admin_url = admin_url
        self.applied: list[str] = []
        self.warm_tier_fault: str | None = None
        """Why the embedded Valkey does not run, though it should."""
        self._server = server
        self._servers = servers
        self._valkey: ValkeyServer | None = None
        self._valkey_due = 0.0

    @property
    def embedded(self) -> bool:
        return self._server is not None

    @property
    def embedded_warm_tier(self) -> bool:
        return self._valkey is not None

    def keep_database(self) -> bool:
        """Starts the embedded server again if it has ended: it crashed, or belonged to a command that is over.

        Blocks meanwhile, and must be called on the main thread. Answers whether it had to.
        """
        if self._server is None or self._server.alive or self._server.find_running() is not None:
            return False
        self._servers.enter_context(self._server.attached_or_started())
        return True

    def keep_servers(self) -> bool:
        """Does the same for the embedded Valkey, too, and still answers for the database alone."""
        self._keep_warm_tier()
        return self.keep_database()

    def start_warm_tier(self) -> None:
        """Attaches to the embedded Valkey, or starts it."""
        self._valkey = ValkeyServer(self.data, start_timeout=VALKEY_START_S, stop_timeout=VALKEY_STOP_S)
        url = None
        try:
            url = self._servers.enter_context(self._valkey.attached_or_started()).url()
        except EmbeddedServerError as error:
            log.error("warm_tier_not_started", error=str(error))
            self.warm_tier_fault = str(error)
            self._valkey = None
        self.settings = msgspec.structs.replace(self.settings, redis_url=url)

    def _keep_warm_tier(self) -> None:
        if self._valkey is None or self._valkey.is_running() or time.monotonic() < self._valkey_due:
            return
        try:
            self._servers.enter_context(self._valkey.attached_or_started())
            log.warning("warm_tier_restarted")
        except EmbeddedServerError as error:
            self._valkey_due = time.monotonic() + VALKEY_RETRY_S
            log.error("warm_tier_restart_failed", error=str(error), retry_in_s=VALKEY_RETRY_S)


@contextmanager
def deployed(settings: Settings, *, prepare: bool = True) -> Iterator[Deployment]:
    """Call it on the main thread, before any event loop runs. `prepare`: brings the schema up to date."""
    data = data_folder(settings)
    with ExitStack() as servers:
        own = settings.database_url is not None
        deployment = _own_server(settings, data, servers) if own else _embedded(settings, data, servers)
        if settings.redis_url == EMBEDDED or (settings.redis_url is None and not own):
            deployment.start_warm_tier()
        elif settings.redis_url == NONE:
            deployment.settings = msgspec.structs.replace(deployment.settings, redis_url=None)
        if prepare:
            deployment.applied = asyncio.run(_prepare(deployment))
        yield deployment


def _own_server(settings: Settings, data: Path, servers: ExitStack) -> Deployment:
    assert settings.database_url is not None
    ready = _with_secrets(settings, data)
    return Deployment(ready, data, settings.admin_database_url or settings.database_url, None, servers)


def _embedded(settings: Settings, data: Path, servers: ExitStack) -> Deployment:
    if settings.admin_database_url is not None:
        raise SettingsInvalid("HOLDFAST_ADMIN_DATABASE_URL is set without HOLDFAST_DATABASE_URL: set both, or neither")
    server = PostgresServer(data)
    address = servers.enter_context(server.attached_or_started())
    ready = msgspec.structs.replace(
        _with_secrets(settings, data), database_url=address.dsn(APPLICATION, DATABASE), data=str(data)
    )
    asyncio.run(_create_database(address.dsn(OWNER, "postgres")))
    return Deployment(ready, data, address.dsn(OWNER, DATABASE), server, servers)


async def _create_database(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        if not await connection.fetchval("SELECT true FROM pg_database WHERE datname = $1", DATABASE):
            # Two commands may come here together: the later one finds it made.
            with suppress(asyncpg.DuplicateDatabaseError, asyncpg.UniqueViolationError):
                await connection.execute(f"CREATE DATABASE {DATABASE}")
    finally:
        await connection.close()


async def _prepare(deployment: Deployment) -> list[str]:
    if deployment.embedded or deployment.settings.admin_database_url is not None:
        return await migrate(deployment.admin_url)
    connection = await asyncpg.connect(deployment.admin_url)
    try:
        missing = await pending(connection)
    finally:
        await connection.close()
    if missing:
        raise SchemaBehind(
            f"the schema is behind ({len(missing)} to apply): run holdfast migrate with the schema owner's address in"
            " HOLDFAST_ADMIN_DATABASE_URL"
        )
    return []


# The secret ------------------------------------------------------------------------------------------------------
def _with_secrets(settings: Settings, data: Path) -> Settings:
    if settings.jwt_secrets is not None:
        return settings
    return msgspec.structs.replace(settings, jwt_secrets=_kept_secrets(data))


def _kept_secrets(data: Path) -> str:
    """Made once in the data folder, so that a token from one command is good in every other."""
    path = data / SECRETS_FILE
    with suppress(FileNotFoundError):
        return path.read_text().strip()
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f"{SECRETS_FILE}.{os.getpid()}")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(generate_secrets() + "\n")
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(fresh, path)  # unlike a rename, this fails where another command was first
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
    return path.read_text().strip()
