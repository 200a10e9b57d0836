"""What of people who sign in can be seen across the walls: that there is somebody with an address and a password."""

import asyncio

import asyncpg

from tests.conftest import TestDatabase
from tests.http.browsers import browser, make_person
from tests.http.client import bearer, world


def test_the_engine_finds_who_has_a_password_and_nothing_more_about_them(database: TestDatabase) -> None:
    async def main() -> None:
        async with world(database) as w:
            second = await w.accounts.bootstrap("Second")
            ann = await make_person(w.client, w.admin, "Ann@example.org")
            bob = await make_person(w.client, bearer(second.admin_token), "bob@example.org")
            await make_person(w.client, w.admin, "without@example.org", password=None)
            async with browser(w.client) as b:
                assert (await b.sign_in("ann@example.org")).status_code == 201
            app = await asyncpg.connect(database.app)
            try:
                async with app.transaction():
                    await app.execute("SET LOCAL ROLE holdfast_engine")
                    rows = await app.fetch(
                        "SELECT organization_id, id, sign_in_email FROM users ORDER BY sign_in_email"
                    )
                    assert [tuple(row) for row in rows] == [
                        (w.first.organization_id, ann, "ann@example.org"),
                        (second.organization_id, bob, "bob@example.org"),
                    ]
                    for column in ("password_hash", "email", "display_name", "*"):
                        try:
                            async with app.transaction():
                                await app.fetch(f"SELECT {column} FROM users")
                        except asyncpg.InsufficientPrivilegeError:
                            continue
                        raise AssertionError(f"the engine reads users.{column}")
                    for table in ("sign_ins", "sign_in_failures"):
                        assert not await app.fetchval("SELECT has_table_privilege($1, 'SELECT')", table)
                # By an index, behind the wall too: whoever signs in is not searched for among all users.
                await app.execute("SET enable_seqscan = off")
                async with app.transaction():
                    await app.execute("SET LOCAL ROLE holdfast_engine")
                    plan = await app.fetch(
                        "EXPLAIN SELECT id FROM users WHERE sign_in_email = lower('ANN@example.org')"
                    )
                    assert any("Index Cond: (sign_in_email" in row[0] for row in plan), plan
                # One organization's browsers are not there for another.
                for organization, seen in ((second, 0), (w.first, 1)):
                    async with app.transaction():
                        await app.execute(f"SET LOCAL holdfast.organization_id = '{organization.organization_id}'")
                        assert await app.fetchval("SELECT count(*) FROM sign_ins") == seen
                assert await app.fetchval("SELECT count(*) FROM sign_ins") == 0
            finally:
                await app.close()

    asyncio.run(main())
