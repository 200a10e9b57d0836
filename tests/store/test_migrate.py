"""Migrations: once each, together from many nodes, never changed afterwards; functions replaced whatever their form was."""

import asyncio

import asyncpg
import pytest

from holdfast.store.embedded import PostgresAddress
from holdfast.store.postgres import migrate as migrations
from tests.conftest import OWNER, TestDatabase


async def fresh(postgres: PostgresAddress, name: str) -> str:
    connection = await asyncpg.connect(postgres.dsn(OWNER, "postgres"))
    await connection.execute(f"CREATE DATABASE {name}")
    await connection.close()
    return postgres.dsn(OWNER, name)


def test_nodes_that_start_together_migrate_once(postgres: PostgresAddress) -> None:
    async def scenario() -> None:
        dsn = await fresh(postgres, "migrate_together")
        applied = await asyncio.gather(*(migrations.migrate(dsn) for _ in range(4)))
        assert sorted(map(len, applied))[:3] == [0, 0, 0]
        assert "functions" in max(applied, key=len)
        assert await migrations.migrate(dsn) == []

    asyncio.run(scenario())


def test_a_function_of_an_earlier_form_is_replaced_and_leaves_no_twin(database: TestDatabase) -> None:
    async def scenario() -> None:
        connection = await asyncpg.connect(database.owner)
        await connection.execute(
            """
            DROP FUNCTION expire_due_holds;
            CREATE FUNCTION expire_due_holds(p_org uuid, p_limit text) RETURNS text LANGUAGE sql RETURN 'earlier';
            UPDATE schema_migrations SET checksum = 'earlier' WHERE name = 'functions';
            """
        )
        assert await migrations.pending(connection) == ["functions"]
        assert await migrations.migrate(database.owner) == ["functions"]
        forms = await connection.fetch(
            "SELECT prorettype::regtype::text FROM pg_proc WHERE proname = 'expire_due_holds'"
        )
        assert [tuple(form) for form in forms] == [("integer",)]
        assert await migrations.pending(connection) == []
        await connection.close()

    asyncio.run(scenario())


def test_a_migration_changed_after_it_was_applied_is_refused(database: TestDatabase) -> None:
    async def scenario() -> None:
        connection = await asyncpg.connect(database.owner)
        await connection.execute("UPDATE schema_migrations SET checksum = 'other' WHERE name LIKE '0001%'")
        await connection.close()
        with pytest.raises(migrations.MigrationError, match="0001_foundation"):
            await migrations.migrate(database.owner)

    asyncio.run(scenario())
