"""The second wall: whatever a query forgets, the database shows one organization's rows and no others."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from holdfast.accounts.records import Origin
from holdfast.holds.lifecycle import Actor
from holdfast.store.postgres.webhooks import mark_sold_out
from holdfast.webhooks.courier import Courier
from holdfast.webhooks.records import NewEndpoint
from holdfast.webhooks.service import WebhooksService
from holdfast.workers.deliver_webhooks import DeliverWebhooks
from holdfast.workers.fold_occupancy import FoldOccupancy
from holdfast.workers.snapshot_occupancy import SnapshotOccupancy
from tests.checkouts import checkout_of
from tests.conftest import TestDatabase
from tests.factories import staff_call, theatre_config
from tests.http.browsers import PASSWORD, make_person
from tests.http.client import bearer
from tests.http.migration_ground import add_version, apply, plan
from tests.http.payment_ground import add_provider, message, tell
from tests.stage import Stage, stage

MORE = theatre_config(1, 6, ga_capacity=12)
APPEND_ONLY = ("seat_state_events", "audit_entries", "outbox", "admissions")
MAY_BE_DELETED = {
    "event_whitelist",
    "idempotency_keys",
    "occupancy_changes",
    "webhook_endpoints",
    "webhook_messages",
    "webhook_deliveries",
    "webhook_attempts",
    "sold_out_events",
    "payment_providers",
    "payment_messages",
    "sign_ins",
}
REWRITTEN_BY_MIGRATION = ("event_seats", "event_zones")
"""Deleted only by the transaction that migrates their event."""
ENGINE_MAY_READ = {
    "holds": {"organization_id", "held_until", "status"},
    "organizations": {"organization_id", "tenant_id"},
    "events": {"organization_id", "id", "status"},
    "occupancy_changes": {"organization_id", "event_id"},
    "webhook_endpoints": {"organization_id", "enabled"},
    "webhook_deliveries": {"status", "next_attempt_at"},
    "users": {"organization_id", "id", "sign_in_email"},
    "checkouts": {"organization_id", "id", "status", "expires_at"},
    "payments": {"organization_id", "id", "status", "received_at"},
}
"""All that the engine's role may see across organizations: whose turn it is, and nothing about it."""
ENGINE_FOLLOWS = "outbox"
"""But for the change feed, which it follows whole, and of which it may throw away what is old."""

Connection = asyncpg.Connection


@dataclass
class Wall:
    made: Stage
    app: Connection
    owner: Connection
    tables: dict[str, str]  # each tenant table, and the column that says whose a row is
    mine: dict[str, UUID]
    theirs: dict[str, UUID]


async def tenant_tables(owner: Connection) -> dict[str, str]:
    rows = await owner.fetch(
        """
        SELECT c.relname, (SELECT CASE WHEN bool_or(a.attname = 'organization_id') THEN 'organization_id'
                                  ELSE min(a.attname::text) END
                           FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname IN ('organization_id', 'tenant_id')
                           ) AS whose
        FROM pg_class c WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace
        """
    )
    return {row["relname"]: row["whose"] for row in rows if row["whose"] is not None}


async def scope(connection: Connection, ids: dict[str, UUID]) -> None:
    for name in ("organization_id", "tenant_id"):
        await connection.execute("SELECT set_config($1, $2, true)", f"holdfast.{name}", str(ids.get(name, "")))


async def furnish_webhooks(*sides: Stage) -> None:
    """An endpoint with a delivery that was tried, and an event known to be sold out."""
    database = sides[0].app.database
    courier = Courier(private_targets=True)
    service, worker = WebhooksService(database, courier), DeliverWebhooks(database, courier)
    for side in sides:
        call = staff_call(side.first)
        endpoint = await service.create(call, NewEndpoint(url="http://127.0.0.1:1025/"))
        await service.test(call, endpoint.id)
        async with database.transaction(call.organization_id) as tx:
            await mark_sold_out(tx, call.organization_id, UUID(side.event_id), True)
    await worker.once()
    await worker.close()
    await courier.close()


async def furnish_sign_ins(*sides: Stage) -> None:
    for number, side in enumerate(sides):
        email = f"person{number}@example.org"
        await make_person(side.client, side.admin, email)
        origin = Origin(actor=Actor.API, subject="unknown")
        await side.app.services.sign_ins.sign_in(email, PASSWORD, None, origin)


async def furnish_checkouts(*sides: Stage) -> None:
    """A checkout that was paid for twice, once by a provider; its ticket was seen at the gate."""
    for side in sides:
        await add_provider(side)
        checkout = await checkout_of(side, side.admin, 2)
        assert (await tell(side, message(checkout))).status_code == 200
        done = await side.post(f"/api/checkouts/{checkout}/complete", {"payment_reference": "till-1"})
        (ticket,) = done.json()["data"]["tickets"]
        assert (await side.client.get(f"/api/tickets/{ticket}", headers=side.admin)).status_code == 200
        scan = await side.post(f"/api/events/{side.event_id}/admissions", {"ticket_id": ticket})
        assert scan.json()["data"]["outcome"] == "admit", scan.text


@asynccontextmanager
async def wall(database: TestDatabase) -> AsyncIterator[Wall]:
    """Two furnished organizations of two tenants, and connections of both roles."""
    async with stage(database, theatre_config(1, 5, ga_capacity=10)) as made:
        second = await made.app.services.accounts.bootstrap("Second")
        other = Stage(made.client, made.app, database, second, "", [], [])
        other.event_id = await other.make_event(theatre_config(1, 5, ga_capacity=10))
        other.seats = (
            await made.client.get(f"/api/events/{other.event_id}/seats", headers=bearer(second.admin_token))
        ).json()["data"]
        for side in (made, other):
            key = {**side.admin, "Idempotency-Key": "one"}
            held = await side.hold(key, 0, ga=[{"zone_id": "pit", "quantity": 1}])
            assert held.status_code == 201
            listed = f"/api/events/{side.event_id}/whitelist"
            await made.client.put(listed, headers=side.admin, json={"user_ids": [str(uuid4())]})
            found = await made.client.get(f"/api/events/{side.event_id}", headers=side.admin)
            series = {"name": "Run", "layout_id": found.json()["data"]["layout_id"]}
            assert (await side.post("/api/series", series)).status_code == 201
        await FoldOccupancy(made.app.database).once()
        for side in (made, other):
            assert (await side.hold(side.admin, 1)).status_code == 201  # a change that is not folded yet
        await SnapshotOccupancy(made.app.database).once()
        await furnish_webhooks(made, other)
        await furnish_sign_ins(made, other)
        await furnish_checkouts(made, other)
        for side in (made, other):
            assert (await apply(side, (await plan(side, await add_version(side, MORE)))["id"])).status_code == 200
        app, owner = await asyncpg.connect(database.app), await asyncpg.connect(database.owner)
        try:
            yield Wall(
                made,
                app,
                owner,
                await tenant_tables(owner),
                {"organization_id": made.first.organization_id, "tenant_id": made.first.tenant_id},
                {"organization_id": second.organization_id, "tenant_id": second.tenant_id},
            )
        finally:
            await app.close()
            await owner.close()


def run(database: TestDatabase, test: Callable[[Wall], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with wall(database) as found:
            await test(found)

    asyncio.run(main())


async def refuses(connection: Connection, statement: str, *args: Any) -> None:
    transaction = connection.transaction()
    await transaction.start()
    try:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(statement, *args)
    finally:
        await transaction.rollback()


def test_every_table_with_a_tenants_rows_is_behind_the_wall(database: TestDatabase) -> None:
    async def check(found: Wall) -> None:
        assert len(found.tables) >= 18
        rows = await found.owner.fetch(
            "SELECT relname, relrowsecurity, relforcerowsecurity FROM pg_class WHERE relname = ANY ($1)",
            list(found.tables),
        )
        assert [row["relname"] for row in rows if not (row["relrowsecurity"] and row["relforcerowsecurity"])] == []
        policies = await found.owner.fetch(
            "SELECT tablename, policyname, roles::text[], cmd, qual, with_check FROM pg_policies"
        )
        guarded = {p["tablename"] for p in policies if "holdfast_app" in p["roles"]}
        assert guarded == set(found.tables)
        # Nobody but the two roles has a way in, and the engine's ways are for reading; one is for throwing away.
        assert {role for p in policies for role in p["roles"]} == {"holdfast_app", "holdfast_engine"}
        others = [p for p in policies if "holdfast_engine" in p["roles"] and p["cmd"] != "SELECT"]
        assert [(p["tablename"], p["policyname"], p["cmd"]) for p in others] == [(ENGINE_FOLLOWS, "outdated", "DELETE")]
        assert "now() - '7 days'::interval" in others[0]["qual"]
        # A table without an owner's column is not an organization's: these are all there are.
        tables = await found.owner.fetch(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace"
        )
        assert {row["relname"] for row in tables} - set(found.tables) == {
            "schema_migrations",
            "test_clock",
            "feed_cursors",
            "sign_in_failures",
            "pgqueuer",
            "pgqueuer_log",
            "pgqueuer_schedules",
            "pgqueuer_statistics",
        }

    run(database, check)


def test_without_an_organization_there_is_nothing_to_see_and_nothing_can_be_added(database: TestDatabase) -> None:
    async def check(found: Wall) -> None:
        for table, whose in found.tables.items():
            (kept,) = await found.owner.fetch(f"SELECT count(*) AS n FROM {table}")
            assert kept["n"] >= 2, f"{table} is empty: the test would prove nothing"
            assert await found.app.fetchval(f"SELECT count(*) FROM {table}") == 0, table
            copy = f"INSERT INTO {table} SELECT * FROM jsonb_populate_record(NULL::{table}, $1::jsonb)"
            row = await found.owner.fetchval(
                f"SELECT to_jsonb(t)::text FROM {table} t WHERE {whose} = $1 LIMIT 1", found.mine[whose]
            )
            await refuses(found.app, copy.replace(" SELECT *", " OVERRIDING SYSTEM VALUE SELECT *"), row)

    run(database, check)


def test_with_an_organization_only_its_own_rows_are_there(database: TestDatabase) -> None:
    async def check(found: Wall) -> None:
        for ids, others in ((found.mine, found.theirs), (found.theirs, found.mine)):
            async with found.app.transaction():
                await scope(found.app, ids)
                for table, whose in found.tables.items():
                    seen = await found.app.fetch(f"SELECT DISTINCT {whose} AS whose FROM {table}")
                    assert [row["whose"] for row in seen] == [ids[whose]], table
                    forged = await found.owner.fetchval(
                        f"SELECT to_jsonb(t)::text FROM {table} t WHERE {whose} = $1 LIMIT 1", others[whose]
                    )
                    insert = (
                        f"INSERT INTO {table} OVERRIDING SYSTEM VALUE"
                        f" SELECT * FROM jsonb_populate_record(NULL::{table}, $1::jsonb)"
                    )
                    await refuses(found.app, insert, forged)
                for table in ("events", "holds", "users", "venues"):
                    taken = await found.app.execute(
                        f"UPDATE {table} SET created_at = created_at WHERE organization_id = $1",
                        others["organization_id"],
                    )
                    assert taken == "UPDATE 0", table
                    await refuses(found.app, f"UPDATE {table} SET organization_id = $1", others["organization_id"])
        # The setting ends with its transaction.
        assert await found.app.fetchval("SELECT count(*) FROM events") == 0

    run(database, check)


def test_what_happened_can_be_added_to_but_never_changed(database: TestDatabase) -> None:
    async def check(found: Wall) -> None:
        async with found.app.transaction():
            await scope(found.app, found.mine)
            for table in APPEND_ONLY:
                await refuses(found.app, f"UPDATE {table} SET at = at")
                await refuses(found.app, f"DELETE FROM {table}")
                await refuses(found.app, f"TRUNCATE {table}")
            for table in set(found.tables) - MAY_BE_DELETED - set(REWRITTEN_BY_MIGRATION):
                await refuses(found.app, f"DELETE FROM {table}")
            for table in found.tables:
                await refuses(found.app, f"TRUNCATE {table}")

    run(database, check)


def test_seats_and_zones_are_deleted_by_the_migration_of_their_own_event_alone(database: TestDatabase) -> None:
    async def check(found: Wall) -> None:
        foreign = await found.owner.fetchval(
            "SELECT id FROM events WHERE organization_id = $1", found.theirs["organization_id"]
        )
        for table in REWRITTEN_BY_MIGRATION:
            for event_id in ("", str(foreign)):
                async with found.app.transaction():
                    await scope(found.app, found.mine)
                    await found.app.execute("SELECT set_config('holdfast.migrating', $1, true)", event_id)
                    assert await found.app.execute(f"DELETE FROM {table}") == "DELETE 0"
            before = await found.owner.fetchval(f"SELECT count(*) FROM {table} WHERE event_id = $1", foreign)
            async with found.app.transaction():
                await scope(found.app, found.mine)
                await found.app.execute("SELECT set_config('holdfast.migrating', $1, true)", found.made.event_id)
                assert await found.app.execute(f"DELETE FROM {table}") != "DELETE 0"
            assert (
                await found.owner.fetchval(f"SELECT count(*) FROM {table} WHERE event_id = $1", foreign) == before > 0
            )

    run(database, check)


def test_the_applications_role_owns_nothing_and_can_become_nobody_greater(database: TestDatabase) -> None:
    async def check(found: Wall) -> None:
        roles = await found.owner.fetch(
            "SELECT * FROM pg_roles WHERE rolname IN ('holdfast_app', 'holdfast_engine') ORDER BY rolname"
        )
        assert [role["rolname"] for role in roles] == ["holdfast_app", "holdfast_engine"]
        for role in roles:
            for power in ("rolsuper", "rolbypassrls", "rolcreatedb", "rolcreaterole", "rolreplication"):
                assert role[power] is False, (role["rolname"], power)
        assert [role["rolcanlogin"] for role in roles] == [True, False]
        owned = await found.owner.fetch(
            """
            SELECT relname::text AS name FROM pg_class WHERE relowner::regrole::text LIKE 'holdfast_app%'
            UNION ALL SELECT proname FROM pg_proc WHERE proowner::regrole::text IN ('holdfast_app', 'holdfast_engine')
            UNION ALL SELECT nspname FROM pg_namespace WHERE nspowner::regrole::text IN ('holdfast_app', 'holdfast_engine')
            UNION ALL SELECT datname FROM pg_database WHERE datdba::regrole::text IN ('holdfast_app', 'holdfast_engine')
            UNION ALL SELECT relname FROM pg_class WHERE relowner::regrole::text = 'holdfast_engine'
            """
        )
        assert owned == []
        for statement in (
            "CREATE TABLE mine (id int)",
            "CREATE FUNCTION mine() RETURNS int LANGUAGE sql RETURN 1",
            "ALTER TABLE holds DISABLE ROW LEVEL SECURITY",
            "DROP POLICY of_organization ON holds",
            "SET ROLE holdfast_owner",
            "CREATE ROLE mine",
            "INSERT INTO schema_migrations (name, checksum) VALUES ('x', 'x')",
        ):
            await refuses(found.app, statement)
        definers = await found.owner.fetch(
            "SELECT proname FROM pg_proc WHERE prosecdef AND pronamespace = 'public'::regnamespace"
        )
        assert definers == []  # no function lends its owner's power

    run(database, check)


def test_the_engines_role_sees_whose_turn_it_is_and_nothing_else(database: TestDatabase) -> None:
    async def check(found: Wall) -> None:
        async with found.app.transaction():
            await found.app.execute("SET LOCAL ROLE holdfast_engine")
            for table in found.tables:
                columns = await found.owner.fetch(
                    "SELECT attname FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped",
                    table,
                )
                readable = set()
                for column in columns:
                    name = column["attname"]
                    if await found.app.fetchval("SELECT has_column_privilege($1, $2, 'SELECT')", table, name):
                        readable.add(name)
                follows = table == ENGINE_FOLLOWS
                every = {column["attname"] for column in columns}
                assert readable == (every if follows else ENGINE_MAY_READ.get(table, set())), table
                whose = found.tables[table]
                for statement in (
                    *([] if follows else [f"SELECT * FROM {table}", f"DELETE FROM {table}"]),
                    f"UPDATE {table} SET {whose} = {whose}",
                    f"TRUNCATE {table}",
                    f"INSERT INTO {table} ({whose}) VALUES (gen_random_uuid())",
                ):
                    await refuses(found.app, statement)
            seen = await found.app.fetch("SELECT DISTINCT organization_id, status::text FROM holds")
            assert {row["organization_id"] for row in seen} == {
                found.mine["organization_id"],
                found.theirs["organization_id"],
            }
            assert {row["status"] for row in seen} == {"active"}
            assert await found.app.fetchval("SELECT count(organization_id) FROM organizations") == 2
        # Of the change feed it can throw away what is a week old, and nothing younger.
        await found.owner.execute("UPDATE outbox SET at = now() - interval '8 days' WHERE kind = 'EventCreated'")
        old = await found.owner.fetchval("SELECT count(*) FROM outbox WHERE kind = 'EventCreated'")
        young = await found.owner.fetchval("SELECT count(*) FROM outbox WHERE kind <> 'EventCreated'")
        assert (old, young > 0) == (2, True)
        async with found.app.transaction():
            await found.app.execute("SET LOCAL ROLE holdfast_engine")
            assert await found.app.execute("DELETE FROM outbox") == "DELETE 2"
        assert await found.owner.fetchval("SELECT count(*) FROM outbox") == young
        # Holds that have ended and events that are not on sale are none of its business.
        await found.owner.execute("UPDATE holds SET status = 'cancelled'")
        await found.owner.execute("UPDATE events SET status = 'draft'")
        async with found.app.transaction():
            await found.app.execute("SET LOCAL ROLE holdfast_engine")
            assert await found.app.fetchval("SELECT count(organization_id) FROM holds") == 0
            assert await found.app.fetchval("SELECT count(organization_id) FROM events") == 0

    run(database, check)
