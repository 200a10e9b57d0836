"""A server that dies at every step between the provider's word and the answer: the next one finds the money, and makes one
thing of it. Never nothing, never both."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import httpx
import msgspec

from holdfast.insight.invariants import check_event
from holdfast.kernel.crash_points import CRASH_POINTS
from tests.checkouts import checkout_of, until
from tests.conftest import TestDatabase
from tests.http.payment_ground import add_provider, message, status_of, tell, tickets
from tests.stage import SECRETS, Stage, stage

SERVING = "Holdfast is serving on "
UNRECORDED = ("webhook.verified", "payment.written")
"""Where nothing is known yet, and all rests on the provider's saying it again."""


class Case(msgspec.Struct, frozen=True):
    point: str
    way: str = "in_time"


CASES = [
    *[Case(point) for point in CRASH_POINTS],
    Case("settle.sold", "late"),
    Case("settle.committed", "late"),
    Case("settle.before_commit", "taken"),
    Case("settle.committed", "taken"),
    Case("payment.recorded", "stated"),
    Case("settle.before_commit", "stated"),
]


@asynccontextmanager
async def doomed(
    database: TestDatabase, case: Case, folder: Path
) -> AsyncIterator[tuple[httpx.URL, asyncio.Task[int]]]:
    """A real server that dies where it is told to."""
    environment = {
        **os.environ,
        "HOLDFAST_DATABASE_URL": database.app,
        "HOLDFAST_JWT_SECRETS": SECRETS,
        "HOLDFAST_REDIS_URL": "none",
        "HOLDFAST_CRASH_AT": case.point,
    }
    command = (sys.executable, "-m", "holdfast", "serve", "--port", "0", "--no-work", "--data", str(folder))
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(60):
            line = (await process.stdout.readline()).decode()
        assert line.startswith(SERVING), line
        yield httpx.URL(line.removeprefix(SERVING).split()[0]), asyncio.create_task(process.wait())
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def pay_into(made: Stage, url: httpx.URL, case: Case, checkout: str, reference: str) -> None:
    """Without an answer: the server dies meanwhile."""
    async with httpx.AsyncClient(base_url=url, timeout=20) as client:
        try:
            if case.way == "stated":
                path = f"/api/checkouts/{checkout}/complete"
                answer = await client.post(path, headers=made.admin, json={"payment_reference": reference})
            else:
                answer = await tell(made, message(checkout, reference), client=client)
        except httpx.HTTPError:
            return
        raise AssertionError(f"{case} was answered: {answer.status_code} {answer.text}")


async def outcome(made: Stage, checkout: str) -> tuple[str, int, list[str]]:
    rows = await made.sql("SELECT p.status FROM payments p WHERE checkout_id = $1::uuid ORDER BY 1", checkout)
    return await status_of(made, checkout), len(await tickets(made, checkout)), [row["status"] for row in rows]


def test_whatever_step_a_server_dies_at_the_money_becomes_one_thing(database: TestDatabase, tmp_path: Path) -> None:
    async def run() -> None:
        async with stage(database) as made:
            await add_provider(made)
            checkouts: dict[int, str] = {}
            late = [n for n, case in enumerate(CASES) if case.way in ("late", "taken")]
            for n in late:
                checkouts[n] = await checkout_of(made, await made.buyer(), n, life_s=60)
            await made.advance_clock(61)
            for n, case in enumerate(CASES):
                if case.way == "taken":
                    assert (await made.reserve(n, await made.buyer())).status_code == 201
                elif n not in checkouts:
                    checkouts[n] = await checkout_of(made, await made.buyer(), n)

            async def one(n: int, case: Case) -> None:
                async with two_at_once, doomed(database, case, tmp_path / str(n)) as (url, death):
                    await pay_into(made, url, case, checkouts[n], f"pi_{n}")
                    async with asyncio.timeout(10):
                        assert await death == -signal.SIGKILL, case

            two_at_once = asyncio.Semaphore(3)
            await asyncio.gather(*[one(n, case) for n, case in enumerate(CASES)])
            for n, case in enumerate(CASES):
                if case.point in UNRECORDED:
                    assert (await outcome(made, checkouts[n]))[1:] == (0, []), case
            await after_the_crashes(made, checkouts)

    asyncio.run(run())


async def after_the_crashes(made: Stage, checkouts: dict[int, str]) -> None:
    """A server like any other, with its duties; a few seconds; and then the providers, who got no answer, say it again."""
    await made.database.advance_clock(4)
    async with stage(made.database, work=True, organization=made.first) as again:

        async def settled() -> bool:
            return not await again.sql("SELECT 1 FROM payments WHERE status IN ('pending', 'received')")

        await until(settled)
        before = {n: await outcome(again, checkout) for n, checkout in checkouts.items()}
        for n, case in enumerate(CASES):
            if case.way != "stated":
                assert (await tell(again, message(checkouts[n], f"pi_{n}"))).status_code == 200
        await until(settled)
        for n, case in enumerate(CASES):
            status, sold, payments = await outcome(again, checkouts[n])
            if case.way == "taken":
                assert (sold, payments) == (0, ["refund_due"]), case
            else:
                assert (status, sold, payments) == ("completed", 1, ["applied"]), case
            if case.point not in UNRECORDED:
                assert before[n] == (status, sold, payments), f"{case}: the retry changed something"
        found = await check_event(again.app.database, made.first.organization_id, UUID(made.event_id), [])
        assert [i for i in found if not i.ok] == []
