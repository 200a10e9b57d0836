"""`holdfast doctor`: is this deployment sound, and if not, what is to be done."""

import asyncio
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import msgspec
import typer
from rich.console import Console
from rich.text import Text

from holdfast.accounts.credentials import SecretsInvalid, parse_secrets
from holdfast.commands.options import Data, Json, print_json
from holdfast.deployment import NONE, SECRETS_FILE, Deployment, data_folder, deployed
from holdfast.logs import without_password
from holdfast.settings import Settings, SettingsInvalid, load_settings
from holdfast.store.embedded import EmbeddedServerError
from holdfast.store.postgres.examination import Examination, examine
from holdfast.store.postgres.migrate import MINIMUM_SERVER, pending
from holdfast.store.redis.address import RedisUrlInvalid
from holdfast.store.redis.warm import Warm

DISK_WARN_BYTES = 2 * 1024**3
DISK_FAIL_BYTES = 200 * 1024**2
CLOCK_WARN_S, CLOCK_FAIL_S = 1.0, 30.0
DISTINCT_BYTES_MIN = 10

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "bold red"}


class Check(msgspec.Struct, frozen=True):
    name: str
    outcome: str
    detail: str
    remedy: str | None = None


def ok(name: str, detail: str) -> Check:
    return Check(name, "ok", detail)


def warn(name: str, detail: str, remedy: str) -> Check:
    return Check(name, "warn", detail, remedy)


def failed(name: str, detail: str, remedy: str) -> Check:
    return Check(name, "fail", detail, remedy)


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: holdfast doctor --data ./data")(doctor)


def doctor(data: Data = None, json: Json = False) -> None:
    """Check a deployment: one line a check, ok, warn or fail, with the remedy. Fails if any check does."""
    checks = list(_checks(data))
    if json:
        print_json({"ok": all(check.outcome != "fail" for check in checks), "checks": checks})
    else:
        _draw(checks)
    if any(check.outcome == "fail" for check in checks):
        raise typer.Exit(1)


def _draw(checks: list[Check]) -> None:
    console = Console(highlight=False)
    width = max(len(check.name) for check in checks)
    for check in checks:
        line = Text(f"{check.outcome:<4}", _COLOURS[check.outcome]).append(f"  {check.name:<{width}}  ", "default")
        line.append(check.detail, "default")
        if check.remedy:
            line.append(f" → {check.remedy}", "default")
        console.print(line, soft_wrap=True)


def _checks(data: str | None) -> Iterator[Check]:
    try:
        settings = load_settings(data=data)
    except SettingsInvalid as error:
        yield failed("settings", "; ".join(str(error).splitlines()), "correct these variables")
        return
    yield ok("settings", "valid")
    folder = data_folder(settings)
    yield _folder_check(folder, settings)
    yield _disk_check(folder)
    yield _secret_check(settings, folder)
    try:
        with deployed(settings, prepare=False) as deployment:
            yield from asyncio.run(_database_checks(deployment))
            yield asyncio.run(_warm_tier_check(deployment, switched_off=settings.redis_url == NONE))
    except EmbeddedServerError as error:
        yield failed("database", f"the embedded server does not run: {error}", "do what it says")
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, ValueError) as error:
        remedy = "check HOLDFAST_DATABASE_URL, and that the server runs"
        yield failed("database", without_password(f"not reachable: {error or type(error).__name__}"), remedy)


def _folder_check(folder: Path, settings: Settings) -> Check:
    needed = settings.database_url is None or settings.jwt_secrets is None
    if not folder.exists():
        parent = next(p for p in folder.parents if p.exists())
        if needed and not os.access(parent, os.W_OK):
            return failed("data folder", f"{folder} cannot be made", "choose another with --data, or give rights")
        return ok("data folder", f"{folder} (made when first needed)")
    if not folder.is_dir():
        return failed("data folder", f"{folder} is not a folder", "choose another with --data")
    if needed and not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return failed("data folder", f"{folder} cannot be written", "give it to this user (chown)")
    return ok("data folder", str(folder))


def _disk_check(folder: Path) -> Check:
    free = shutil.disk_usage(next(p for p in (folder, *folder.parents) if p.exists())).free
    said = f"{free / 1024**3:.1f} GiB free"
    if free < DISK_FAIL_BYTES:
        return failed("disk", said, "make room: the database stops when the disk is full")
    if free < DISK_WARN_BYTES:
        return warn("disk", said, "make room soon")
    return ok("disk", said)


def _secret_check(settings: Settings, folder: Path) -> Check:
    name = "token secret"
    kept = folder / SECRETS_FILE
    if settings.jwt_secrets is None:
        if not kept.exists():
            return ok(name, "made in the data folder when first needed")
        if kept.stat().st_mode & 0o077:
            return failed(name, f"{kept} can be read by others", f"chmod 600 {kept}")
    try:
        secrets = parse_secrets(settings.jwt_secrets or kept.read_text().strip())
    except (SecretsInvalid, OSError) as error:
        return failed(name, str(error), "make one with: openssl rand -hex 32")
    if any(len(set(secret)) < DISTINCT_BYTES_MIN for secret in secrets.values()):
        return failed(name, "it is easy to guess", "make one with: openssl rand -hex 32")
    if settings.jwt_secrets is None and settings.database_url is not None:
        remedy = "with more than one node, set the same HOLDFAST_JWT_SECRETS on each"
        return warn(name, f"kept in {kept}", remedy)
    return ok(name, f"{len(secrets)} in use" if settings.jwt_secrets else f"kept in {kept}")


async def _database_checks(deployment: Deployment) -> list[Check]:
    admin = await asyncpg.connect(deployment.admin_url, timeout=10)
    try:
        missing = await pending(admin)
        version = await admin.fetchval("SHOW server_version")
    finally:
        await admin.close()
    if missing:
        remedy = "run: holdfast migrate"
        return [
            ok("database", f"reachable, PostgreSQL {version}"),
            failed("schema", f"behind: {len(missing)} to apply", remedy),
        ]
    assert deployment.settings.database_url is not None
    connection = await asyncpg.connect(deployment.settings.database_url, timeout=10)
    try:
        found = await examine(connection)
    finally:
        await connection.close()
    where = "embedded" if deployment.embedded else "at HOLDFAST_DATABASE_URL"
    return [ok("database", f"reachable, {where}"), *_judged(found)]


async def _warm_tier_check(deployment: Deployment, *, switched_off: bool) -> Check:
    """Never a failure: everything works without."""
    name = "warm tier"
    if deployment.warm_tier_fault is not None:
        remedy = "do what it says; meanwhile things go on without"
        return warn(name, f"the embedded Valkey does not run: {deployment.warm_tier_fault}", remedy)
    settings = deployment.settings
    if settings.redis_url is None:
        if switched_off:
            return ok(name, "switched off by HOLDFAST_REDIS_URL=none")
        remedy = "where there is load, name a Redis or Valkey in HOLDFAST_REDIS_URL (or write embedded, or none)"
        return warn(name, "none: messages travel by PostgreSQL", remedy)
    where = "embedded" if deployment.embedded_warm_tier else "at HOLDFAST_REDIS_URL"
    remedy = "check HOLDFAST_REDIS_URL, and that the server runs and can be written to"
    try:
        warm = Warm.open(settings.redis_url, settings.redis_namespace, settings.redis_timeout_s)
    except RedisUrlInvalid as error:
        return warn(name, f"the URL is wrong: {error}", remedy)
    try:
        version = await warm.version()
        writable = await warm.lead("holdfast doctor", 1) is not None
    finally:
        await warm.close()
    if version is None or not writable:
        fault = "does not answer" if version is None else "cannot be written to"
        return warn(name, f"the server {where} {fault}: {warm.breaker.last_error}", remedy)
    return ok(name, f"reachable, {where}, {version}")


def _judged(found: Examination) -> Iterator[Check]:
    version = f"PostgreSQL {found.server_version}"
    if found.server_version_num < MINIMUM_SERVER:
        yield failed("server version", version, "use version 18 or newer")
    else:
        yield ok("server version", version)
    yield ok("schema", "current")
    yield _role_check(found)
    if found.unguarded_tables:
        yield failed("row security", f"not forced on {', '.join(found.unguarded_tables)}", "run: holdfast migrate")
    else:
        yield ok("row security", f"forced on {found.guarded_tables} tables")
    if found.rewritable:
        remedy = f"REVOKE these rights from {found.role}"
        yield failed("append-only log", f"{found.role} may {', '.join(found.rewritable)}", remedy)
    else:
        yield ok("append-only log", f"{found.role} can add to log and audit, and change nothing in them")
    yield _durability_check(found)
    yield _clock_check(found)


def _role_check(found: Examination) -> Check:
    name = "database role"
    remedy = "connect as holdfast_app, which owns nothing"
    if found.superuser:
        return failed(name, f"{found.role} is a superuser: row security does not bind it", remedy)
    if found.bypasses_row_security:
        return failed(name, f"{found.role} has BYPASSRLS", remedy)
    if found.owned_tables:
        return failed(name, f"{found.role} owns {len(found.owned_tables)} tables", remedy)
    return ok(name, f"{found.role} owns nothing and is bound by row security")


def _durability_check(found: Examination) -> Check:
    said = f"fsync {found.fsync}, synchronous_commit {found.synchronous_commit}"
    if found.fsync != "on" or found.synchronous_commit == "off":
        return failed("durability", said, "turn both on: a crash would lose seats that were sold")
    return ok("durability", said)


def _clock_check(found: Examination) -> Check:
    said = f"the database's is {abs(found.clock_ahead_s):.3f} s {'ahead' if found.clock_ahead_s > 0 else 'behind'}"
    remedy = "let both machines follow a time server"
    if abs(found.clock_ahead_s) > CLOCK_FAIL_S:
        return failed("clock", said, remedy)
    if abs(found.clock_ahead_s) > CLOCK_WARN_S:
        return warn("clock", said, remedy)
    return ok("clock", said)
