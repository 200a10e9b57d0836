"""Brings a database to this version's schema: numbered files once each, then the functions whenever they changed."""

import hashlib
import re
from importlib import resources
from typing import Any

import asyncpg
from asyncpg.pool import PoolConnectionProxy

_LOCK = 0x686F6C64  # one migrator at a time, whatever the number of nodes that start together
MINIMUM_SERVER = 180000


class MigrationError(Exception):
    pass


def _files(folder: str) -> list[tuple[str, str]]:
    root = resources.files("holdfast.store.postgres").joinpath(folder)
    return sorted((f.name, f.read_text("utf-8")) for f in root.iterdir() if f.name.endswith(".sql"))


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def migrations() -> list[tuple[str, str]]:
    return _files("migrations")


def functions() -> tuple[str, str]:
    """All function files as one text and its checksum: they call one another, so they are replaced together."""
    text = "\n".join(body for _, body in _files("functions"))
    return text, _checksum(text)


async def migrate(dsn: str) -> list[str]:
    """Applies what is missing; answers the names of what it applied. Safe to call from many nodes at once."""
    connection = await asyncpg.connect(dsn)
    try:
        if connection.get_server_version().major * 10000 < MINIMUM_SERVER:
            raise MigrationError(
                f"PostgreSQL {connection.get_server_version().major} is too old: Holdfast needs version 18 or newer."
            )
        await connection.execute("SELECT pg_advisory_lock($1)", _LOCK)
        try:
            return await _apply(connection)
        finally:
            await connection.execute("SELECT pg_advisory_unlock($1)", _LOCK)
    finally:
        await connection.close()


async def pending(connection: "asyncpg.Connection[Any] | PoolConnectionProxy[Any]") -> list[str]:
    """What `migrate` would apply, without changing anything."""
    if await connection.fetchval("SELECT to_regclass('schema_migrations')") is None:
        return [name for name, _ in migrations()] + ["functions"]
    applied = await _applied(connection)
    return [name for name, _ in migrations() if name not in applied] + (
        ["functions"] if applied.get("functions") != functions()[1] else []
    )


async def _applied(connection: "asyncpg.Connection[Any] | PoolConnectionProxy[Any]") -> dict[str, str]:
    rows = await connection.fetch("SELECT name, checksum FROM schema_migrations")
    return {row["name"]: row["checksum"] for row in rows}


async def _drop_functions(connection: asyncpg.Connection, text: str) -> None:
    """A version may change what a function takes or gives: the earlier form goes first, whatever its parameters were."""
    names = re.findall(r"CREATE OR REPLACE FUNCTION (\w+)", text)
    rows = await connection.fetch(
        "SELECT oid::regprocedure::text AS signature FROM pg_proc"
        " WHERE pronamespace = 'public'::regnamespace AND proname = ANY ($1)",
        names,
    )
    for row in rows:
        await connection.execute(f"DROP FUNCTION IF EXISTS {row['signature']} CASCADE")


async def _apply(connection: asyncpg.Connection) -> list[str]:
    await connection.execute("SET client_min_messages = warning")
    await connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_migrations"
        " (name text PRIMARY KEY, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
    )
    applied = await _applied(connection)
    done: list[str] = []
    for name, text in migrations():
        if name not in applied:
            async with connection.transaction():
                await connection.execute(text)
                await connection.execute(
                    "INSERT INTO schema_migrations (name, checksum) VALUES ($1, $2)", name, _checksum(text)
                )
            done.append(name)
        elif applied[name] != _checksum(text):
            raise MigrationError(f"{name} was changed after it had been applied here; migrations are written once.")
    text, checksum = functions()
    if applied.get("functions") != checksum:
        async with connection.transaction():
            await _drop_functions(connection, text)
            await connection.execute(text)
            await connection.execute(
                "INSERT INTO schema_migrations (name, checksum) VALUES ('functions', $1)"
                " ON CONFLICT (name) DO UPDATE SET checksum = excluded.checksum, applied_at = now()",
                checksum,
            )
        done.append("functions")
    return done
