"""Real servers for the tests: one embedded PostgreSQL a run, and a fresh database a test, copied from a template; and one
embedded Valkey a run, emptied for each test that asks for it."""

import asyncio
import itertools
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from holdfast.store.embedded import PostgresAddress, PostgresServer, ValkeyAddress, ValkeyServer
from holdfast.store.postgres.migrate import migrate

OWNER = "holdfast_owner"
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresAddress]:
    server = PostgresServer(tmp_path_factory.mktemp("server"))
    server.start()
    try:
        yield server.address
    finally:
        server.stop()


@pytest.fixture(scope="session")
def template(postgres: PostgresAddress) -> str:
    """A migrated database whose clock tests can move (see `clock`). Copying it takes milliseconds."""
    asyncio.run(_make_template(postgres))
    return "template_holdfast"


async def _make_template(postgres: PostgresAddress) -> None:
    connection = await asyncpg.connect(postgres.dsn(OWNER, "postgres"))
    await connection.execute("CREATE DATABASE template_holdfast")
    await connection.close()
    dsn = postgres.dsn(OWNER, "template_holdfast")
    await migrate(dsn)
    connection = await asyncpg.connect(dsn)
    await connection.execute(
        """
        CREATE TABLE test_clock (ahead interval NOT NULL);
        INSERT INTO test_clock VALUES ('0');
        GRANT SELECT ON test_clock TO holdfast_app, holdfast_engine;
        CREATE OR REPLACE FUNCTION holdfast_now() RETURNS timestamptz LANGUAGE sql VOLATILE
          BEGIN ATOMIC SELECT clock_timestamp() + ahead FROM test_clock; END;
        """
    )
    await connection.close()


class TestDatabase:
    """One test's database: `app` is what the product connects with, `owner` sees and may do everything."""

    __test__ = False

    def __init__(self, address: PostgresAddress, name: str) -> None:
        self.address = address
        self.name = name
        self.app = address.dsn("holdfast_app", name)
        self.owner = address.dsn(OWNER, name)

    async def advance_clock(self, seconds: float) -> None:
        """Moves the database's clock ahead, for every connection at once."""
        connection = await asyncpg.connect(self.owner)
        await connection.execute("UPDATE test_clock SET ahead = ahead + make_interval(secs => $1)", float(seconds))
        await connection.close()


def _copy_of(postgres: PostgresAddress, template: str) -> TestDatabase:
    name = f"test_{os.getpid()}_{next(_numbers)}"

    async def copy() -> None:
        connection = await asyncpg.connect(postgres.dsn(OWNER, "postgres"))
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        await connection.close()

    asyncio.run(copy())
    return TestDatabase(postgres, name)


@pytest.fixture
def database(postgres: PostgresAddress, template: str) -> TestDatabase:
    return _copy_of(postgres, template)


@pytest.fixture(scope="module")
def shared_database(postgres: PostgresAddress, template: str) -> TestDatabase:
    return _copy_of(postgres, template)


@pytest.fixture(scope="session")
def valkey_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyServer]:
    with ValkeyServer(tmp_path_factory.mktemp("valkey")) as server:
        yield server


@pytest.fixture
def valkey(valkey_server: ValkeyServer) -> str:
    """The URL of an empty Valkey."""
    assert ask_valkey(valkey_server.address, "FLUSHALL") == "+OK"
    return valkey_server.address.url()


def ask_valkey(address: ValkeyAddress, command: str) -> str:
    """The first line of the answer, as the server writes it."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(address.socket_path)
        connection.sendall(command.encode() + b"\r\n")
        return connection.makefile("rb").readline().decode().rstrip()


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).parent.parent
