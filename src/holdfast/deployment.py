"""Where a command works: its settings made whole, and the database behind them.

With HOLDFAST_DATABASE_URL that is the operator's own server. Without, it is the embedded PostgreSQL in the data folder:
the one already running there, or one started for the command's duration.
"""

import asyncio
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import asyncpg
import msgspec

from holdfast.accounts.credentials import generate_secrets
from holdfast.settings import Settings, SettingsInvalid
from holdfast.store.embedded import OWNER, PostgresServer
from holdfast.store.postgres.migrate import migrate, pending

DATABASE = "holdfast"
APPLICATION = "holdfast_app"
SECRETS_FILE = "jwt-secrets"


class SchemaBehind(Exception):
    pass


def data_folder(settings: Settings) -> Path:
    if settings.data is not None:
        return Path(settings.data).expanduser().absolute()
    if os.geteuid() == 0:
        return Path("/var/lib/holdfast")
    return Path("~/.local/share/holdfast").expanduser()


class Deployment:
    """Settings whose `database_url` and `jwt_secrets` are set, and what keeps the database behind them running."""

    def __init__(
        self, settings: Settings, data: Path, admin_url: str, server: PostgresServer | None, servers: ExitStack
    ) -> None:
        self.settings = settings
        self.data = data
        self.admin_url = admin_url
        self.applied: list[str] = []
        self._server = server
        self._servers = servers

    @property
    def embedded(self) -> bool:
        return self._server is not None

    def keep_database(self) -> bool:
        """Starts the embedded server again if it has ended: it crashed, or belonged to a command that is over.

        Blocks meanwhile, and must be called on the main thread. Answers whether it had to.
        """
        if self._server is None or self._server.alive or self._server.find_running() is not None:
            return False
        self._servers.enter_context(self._server.attached_or_started())
        return True


@contextmanager
def deployed(settings: Settings, *, prepare: bool = True) -> Iterator[Deployment]:
    """Call it on the main thread, before any event loop runs. `prepare`: brings the schema up to date."""
    data = data_folder(settings)
    with ExitStack() as servers:
        deployment = _own_server(settings, data) if settings.database_url else _embedded(settings, data, servers)
        if prepare:
            deployment.applied = asyncio.run(_prepare(deployment))
        yield deployment


def _own_server(settings: Settings, data: Path) -> Deployment:
    assert settings.database_url is not None
    ready = _with_secrets(settings, data)
    return Deployment(ready, data, settings.admin_database_url or settings.database_url, None, ExitStack())


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
