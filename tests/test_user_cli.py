"""`holdfast user`: people who sign in, made at the machine."""

import asyncio
import json
from typing import Any

from typer.testing import CliRunner, Result

from holdfast.cli import build_app
from tests.conftest import TestDatabase
from tests.http.browsers import PASSWORD, browser
from tests.stage import SECRETS, stage

UNKNOWN = "00000000-0000-7000-8000-000000000000"


def run(database: TestDatabase, *words: str, typed: str | None = None) -> Result:
    environment = {"HOLDFAST_DATABASE_URL": database.app, "HOLDFAST_JWT_SECRETS": SECRETS, "NO_COLOR": "1"}
    return CliRunner().invoke(build_app("user"), ["user", *words], env=environment, input=typed)


def test_a_user_made_at_the_machine_signs_in_and_is_signed_out_by_a_new_password(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database) as made:
            organization = ("--organization", str(made.first.organization_id))
            who = ("--email", "ann@example.org")

            async def command(*words: str, typed: str | None = None) -> Result:
                return await asyncio.to_thread(run, database, *words, typed=typed)

            async def told(*words: str, typed: str | None = None) -> Any:
                done = await command(*words, "--json", typed=typed)
                assert done.exit_code == 0, (done.output, done.exception)
                return json.loads(done.stdout)

            create = ("create", *organization, *who, "--role", "superadmin", "--password-stdin")
            said = await told(*create, typed=f"{PASSWORD}\n")
            assert (said["email"], said["role"], said["has_password"]) == ("ann@example.org", "superadmin", True)
            async with browser(made.client) as b:
                assert (await b.sign_in("ann@example.org")).status_code == 201
                changed = await told(
                    "password",
                    *organization,
                    "--email",
                    "ANN@example.org",
                    "--password-stdin",
                    typed="quite another one",
                )
                assert changed["user_id"] == said["user_id"]
                await asyncio.sleep(0)
                b_later = await made.sql("SELECT * FROM sign_ins")
                assert b_later == []
                assert (await b.sign_in("ann@example.org", "quite another one")).status_code == 201
            for words, typed, sentence in (
                (create, f"{PASSWORD}\n", "Another user of this organization has this e-mail address."),
                (create, "short\n", "must have 10 to 200 characters"),
                (create, "", "no password on standard input"),
                ((*create[:-3], "--role", "customer", "--password-stdin"), PASSWORD, "only staff"),
                (("password", *organization, "--email", "x@example.org", "--password-stdin"), PASSWORD, "no such user"),
                (("password", *organization, *who), "", "--password-stdin"),
                (("password", *organization, "--email", "ann", "--password-stdin"), PASSWORD, "e-mail address"),
                (("password", "--organization", UNKNOWN, *who, "--password-stdin"), PASSWORD, "no such organization"),
                (("password", "--organization", "x", *who, "--password-stdin"), PASSWORD, "must be a UUID"),
            ):
                done = await command(*words, typed=typed)
                assert done.exit_code != 0, words
                assert sentence in str(done.exception), (words, done.exception)
                assert PASSWORD not in str(done.exception)
            audit = await made.sql("SELECT changes::text, actor FROM audit_entries WHERE action = 'password_set'")
            assert [row["actor"] for row in audit] == ["SYSTEM", "SYSTEM"]

    asyncio.run(main())
