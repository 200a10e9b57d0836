"""kill -9 in the middle of a sale: of the server, and of the database under it. What was acknowledged is still there."""

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from uuid import UUID

import httpx
import msgspec
import pytest

from holdfast.app import Application
from holdfast.deployment import APPLICATION, DATABASE
from holdfast.insight.invariants import check_event
from holdfast.settings import Settings
from holdfast.store.embedded import find_running
from tests.factories import PublishedEvent, make_organization, make_published_event, staff_call, theatre_config
from tests.http.client import bearer
from tests.race.ground import parts_of, post
from tests.stage import SECRETS

SEATS = 300
BUYERS = 120
AT_ONCE = 12
SHORT_S = 3
# Some holds are over soon after the restart, the others live on.
HOLD_TYPES = {"FLASH": {"ttlSeconds": SHORT_S, "releaseApi": "CUSTOMER,ADMIN,SYSTEM"}}
SERVING = "Holdfast is serving on "


class Acknowledged(msgspec.Struct, frozen=True):
    hold_id: UUID
    seat: int
    buyer: dict[str, str]
    short: bool


# The server ----------------------------------------------------------------------------------------------------------
@contextmanager
def serving(data: Path, log: Path) -> Iterator[tuple["subprocess.Popen[str]", httpx.URL]]:
    """`holdfast serve` on the folder, in a process of its own. Whatever is left of it at the end is killed."""
    command = [sys.executable, "-m", "holdfast", "serve", "--port", "0", "--data", str(data)]
    environment = {**os.environ, "HOLDFAST_JWT_SECRETS": SECRETS}
    with log.open("a") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(SERVING):
                yield process, httpx.URL(line.removeprefix(SERVING).split()[0])
                return
        pytest.fail(f"the server did not start: {log.read_text()[-2000:]}")
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()


@asynccontextmanager
async def looking_in(data: Path) -> AsyncIterator[Application]:
    """The same database beside the server."""
    address = find_running(data)
    assert address is not None
    settings = Settings(database_url=address.dsn(APPLICATION, DATABASE), jwt_secrets=SECRETS)
    app = await Application.open(settings, work=False)
    try:
        yield app
    finally:
        await app.close()


async def open_sale(data: Path) -> tuple[PublishedEvent, list[dict[str, str]]]:
    async with looking_in(data) as app:
        parts = parts_of(app)
        organization = await make_organization(parts)
        await app.services.accounts.store_organization_config(staff_call(organization), {"holdTypes": HOLD_TYPES})
        event = await make_published_event(parts, organization, config=theatre_config(10, SEATS // 10))
        guests = [await app.services.accounts.issue_guest_token(event.id) for _ in range(BUYERS)]
        return event, [bearer(guest.token) for guest in guests]


# The sale ------------------------------------------------------------------------------------------------------------
class Sale:
    def __init__(self, url: httpx.URL, event: PublishedEvent, buyers: list[dict[str, str]]) -> None:
        self.url = url
        self.event = event
        self.buyers = buyers
        self.acknowledged: list[Acknowledged] = []
        self.answers: set[int] = set()
        self.over = False

    async def press(self, dice: random.Random) -> None:
        """One buyer after another at random seats, until the sale is over."""
        while not self.over:
            seat, buyer, short = dice.randrange(SEATS), dice.choice(self.buyers), dice.random() < 0.25
            path = f"/api/events/{self.event.id}/seats/{self.event.seats[seat]}/reserve"
            try:
                answer = await post(self.url, path, buyer, {"holdType": "FLASH"} if short else {})
            except (OSError, IndexError, ValueError):
                await asyncio.sleep(0.01)  # cut off: whether it was done is unknown
                continue
            self.answers.add(answer.status)
            if answer.status == 201:
                hold_id = UUID(answer.body["data"]["hold_id"])
                self.acknowledged.append(Acknowledged(hold_id, seat, buyer, short))

    async def until(self, strike: Callable[[], None]) -> None:
        """Lets the crowd in, and strikes in the middle of it."""
        crowd = [asyncio.create_task(self.press(random.Random(n))) for n in range(AT_ONCE)]
        try:
            await self.has(60)
            strike()
            await asyncio.sleep(0.2)
        finally:
            self.over = True
            await asyncio.gather(*crowd)

    async def has(self, count: int) -> None:
        async with asyncio.timeout(20):
            while len(self.acknowledged) < count:
                await asyncio.sleep(0.005)


async def check_after(data: Path, url: httpx.URL, sale: Sale) -> None:
    """Everything acknowledged is there, lives for its owner as long as promised, and is takeable afterwards."""
    event = sale.event
    organization_id = event.organization.organization_id
    ids = [a.hold_id for a in sale.acknowledged]
    async with looking_in(data) as app:
        found = await check_event(app.database, organization_id, event.id, ids)
        assert [i for i in found if not i.ok] == []
    seats = [a.seat for a in sale.acknowledged if not a.short]
    assert len(set(seats)) == len(seats), "a seat was given twice"
    assert len(seats) > 10
    async with httpx.AsyncClient(base_url=url, timeout=20) as client:
        for known in sale.acknowledged:
            if not known.short:
                answer = await client.get(f"/api/holds/{known.hold_id}", headers=known.buyer)
                assert answer.status_code == 200, answer.text
                assert answer.json()["data"]["status"] == "active"
                assert answer.json()["data"]["seat_id"] == str(event.seats[known.seat])
        await asyncio.sleep(SHORT_S)
        stranger = bearer(
            (await client.post("/api/guest-tokens", json={"event_id": str(event.id)})).json()["data"]["token"]
        )
        over = sorted({a.seat for a in sale.acknowledged if a.short} - set(seats))[:5]
        assert over
        for seat in over:
            answer = await client.post(f"/api/events/{event.id}/seats/{event.seats[seat]}/reserve", headers=stranger)
            assert answer.status_code == 201, answer.text
        taken = await client.post(f"/api/events/{event.id}/seats/{event.seats[seats[0]]}/reserve", headers=stranger)
        assert (taken.status_code, taken.json()["error"]) == (409, "seat_held_by_another_user")
    async with looking_in(data) as app:
        found = await check_event(app.database, organization_id, event.id, ids)
        assert [i for i in found if not i.ok] == []


def test_a_server_killed_under_load_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    data, log = tmp_path / "data", tmp_path / "log"
    with serving(data, log) as (process, url):
        sale = Sale(url, *asyncio.run(open_sale(data)))
        asyncio.run(sale.until(process.kill))
        assert process.wait(10) == -signal.SIGKILL
    assert sale.answers <= {201, 409, 429}
    with serving(data, log) as (_, url):
        asyncio.run(check_after(data, url, sale))


def test_a_database_killed_under_load_comes_back_and_has_lost_nothing(tmp_path: Path) -> None:
    data, log = tmp_path / "data", tmp_path / "log"
    with serving(data, log) as (_, url):
        sale = Sale(url, *asyncio.run(open_sale(data)))
        pid = int((data / "postgres" / "postmaster.pid").read_text().split()[0])

        async def run() -> None:
            crowd = [asyncio.create_task(sale.press(random.Random(n))) for n in range(AT_ONCE)]
            await sale.has(60)
            os.kill(pid, signal.SIGKILL)
            await asyncio.sleep(0.1)
            await sale.has(len(sale.acknowledged) + 20)  # it sells again, on its own
            sale.over = True
            await asyncio.gather(*crowd)

        asyncio.run(run())
        assert sale.answers <= {201, 409, 429, 503}, log.read_text()[-2000:]
        asyncio.run(check_after(data, url, sale))
