"""What is measured against: the product as `holdfast serve` runs it, with one process and an embedded PostgreSQL."""

import asyncio
import http.client
import os
import secrets
import signal
import time
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar
from uuid import UUID

import asyncpg
import msgspec
import uvloop

from holdfast.accounts.principal import Role
from holdfast.accounts.records import Bootstrap
from holdfast.accounts.service import AccountsService
from holdfast.app import token_keys
from holdfast.bench.cpu import Meter
from holdfast.seating.layout import seat_uuid_column
from holdfast.server import bind
from holdfast.server_processes import ServerProcesses
from holdfast.settings import Settings
from holdfast.store.embedded import OWNER, PostgresAddress, PostgresServer, ValkeyServer
from holdfast.store.postgres.database import Database
from holdfast.store.postgres.migrate import migrate
from holdfast.store.postgres.wakeups import CHANNEL

DATABASE = "bench"
QUIET = {"autovacuum": False}
"""It comes once a minute, to whoever's turn it is: a round of four seconds would be a third dearer for one side only.
`refill` does its work between the rounds."""
SEATS_A_ROW = 200
TOKENS_AT_ONCE = 16
UNLIMITED = {"max_holds_per_user": 1_000_000, "orphan_avoidance_strict": False}
"""The limit is checked exactly, as ever; it is only never reached. Seats are picked at random, so single ones are left."""

T = TypeVar("T")


class StandFailed(Exception):
    """The product did not do what was asked, so there is nothing to measure."""


SERVER_PROCESSES = 1  # as `serve` starts by default; on two cores that PostgreSQL shares, a second one does not help
WHOLE, BARE, SECOND = "whole", "bare", "second"
"""The product as `serve` runs it; the same without the tiers above the database; one more like the first."""
IN_THE_MIDDLE = """
SELECT count(*) AS busy FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND state <> 'idle'
"""
NOTICED_S = 0.3
"""For the servers to take in what they are called to look at."""
IDLE_CORES = 0.1
"""What the product uses while nobody asks anything of it is below."""
SETTLED_WITHIN_S = 60.0


@dataclass(frozen=True)
class Serving:
    port: int
    pids: Sequence[int]


@dataclass(frozen=True)
class OnSale:
    """A published event."""

    id: str
    layout_id: str
    seats: Sequence[str]
    """Ids, by ordinal."""


class Stand:
    def __init__(
        self,
        postgres: PostgresServer,
        valkey: ValkeyServer,
        servers: dict[str, Serving],
        settings: Settings,
        folder: Path,
    ) -> None:
        assert postgres.pid is not None
        assert valkey.pid is not None
        self.address: PostgresAddress = postgres.address
        self.settings = settings
        self.folder = folder
        self.servers = servers
        self.meter = Meter(postgres.pid)
        self.meter.watch("valkey", valkey.pid)
        self._runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self._owner = self.run(asyncpg.connect(self.address.dsn(OWNER, DATABASE)))
        self._database = self.run(Database.open(str(settings.database_url), TOKENS_AT_ONCE))
        self._accounts = AccountsService(self._database, token_keys(settings))
        self.first: Bootstrap = self.run(self._accounts.bootstrap("Bench"))
        self.use(WHOLE)
        self._venue: str | None = None
        self._guests: dict[str, list[str]] = {}

    def rest(self) -> None:
        """No server runs, until one is used again: neither do their duties."""
        while True:
            self._signal(signal.SIGSTOP, *self.servers)
            if not self.sql(IN_THE_MIDDLE)[0]["busy"]:
                return
            self._signal(signal.SIGCONT, *self.servers)  # one was stopped in the middle of a transaction
            time.sleep(0.05)

    def use(self, *names: str) -> None:
        """These servers run, the others stand still; the first is the one that is spoken to."""
        self.rest()
        self._signal(signal.SIGCONT, *names)
        self.port = self.servers[names[0]].port
        self.meter.watch("server", *(pid for name in names for pid in self.servers[name].pids))

    def _signal(self, number: signal.Signals, *names: str) -> None:
        for name in names:
            for pid in self.servers[name].pids:
                os.kill(pid, number)

    def close(self) -> None:
        self._signal(signal.SIGCONT, *self.servers)
        self.run(self._owner.close())
        self.run(self._database.close())
        self._runner.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    # The database, as the schema's owner -------------------------------------------------------------------------
    def sql(self, query: str, *args: Any) -> list[asyncpg.Record]:
        """One statement with arguments, or several without."""
        if args or query.lstrip().upper().startswith("SELECT"):
            return self.run(self._fetch(query, args))
        self.run(self._execute(query))
        return []

    @property
    def owner(self) -> "asyncpg.Connection[asyncpg.Record]":
        """For `run`."""
        return self._owner

    async def _fetch(self, query: str, args: Sequence[Any]) -> list[asyncpg.Record]:
        return await self._owner.fetch(query, *args)

    async def _execute(self, query: str) -> None:
        for statement in query.split(";"):
            if statement.strip():
                await self._owner.execute(statement, timeout=300)

    def refill(self) -> None:
        """Every seat free again, and nothing remembered of who had it: each round begins alike. The servers are told in
        the one way they listen to, the outbox; which is kept, because one that stands still has not read it yet."""
        self.sql(
            """
            WITH freed AS (
              UPDATE event_seats SET state = 'available', hold_id = NULL, hold_type = NULL, held_until = NULL,
                locked_at = NULL, version = version + 1 WHERE state <> 'available'
              RETURNING organization_id, event_id, ordinal, version)
            INSERT INTO outbox (organization_id, at, kind, event_id, actor, state, ordinals, versions, hold_ids)
            SELECT organization_id, holdfast_now(), 'SeatReleased', event_id, 'SYSTEM', 'available', array_agg(ordinal),
              array_agg(version), array_agg(NULL::uuid)
            FROM freed GROUP BY organization_id, event_id;
            TRUNCATE holds, checkout_lines; TRUNCATE seat_state_events; TRUNCATE audit_entries;
            TRUNCATE occupancy_changes; TRUNCATE occupancy_counts;
            VACUUM (ANALYZE)
            """
        )
        self.notify()

    def notify(self) -> None:
        """Calls the servers, as they call each other, and waits until they have taken in what is new. One that stood
        still has to catch up with everything that was done meanwhile, which is not what a round measures."""
        self.sql("SELECT pg_notify($1, '')", CHANNEL)
        deadline = time.monotonic() + SETTLED_WITHIN_S
        quiet = 0
        while quiet < 2:
            before = self.meter.read()
            time.sleep(NOTICED_S)
            spent = self.meter.between(before, self.meter.read())
            quiet = quiet + 1 if sum(spent.ours.values()) < IDLE_CORES * NOTICED_S else 0
            if time.monotonic() > deadline:
                raise StandFailed(f"the servers did not come to rest within {SETTLED_WITHIN_S:.0f} s: {spent.ours}")

    # The product, as its users see it ----------------------------------------------------------------------------
    def post(self, path: str, body: Any) -> Any:
        """As the organization's administrator; answers the data."""
        return self.post_bytes(path, msgspec.json.encode(body))

    def post_bytes(self, path: str, body: bytes) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        try:
            headers = {"authorization": f"Bearer {self.first.admin_token}", "content-type": "application/json"}
            connection.request("POST", path, body, headers)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status not in (200, 201):
            raise StandFailed(f"POST {path}: {answer.status} {text[:500]!r}")
        return msgspec.json.decode(text)["data"]

    @property
    def venue(self) -> str:
        if self._venue is None:
            self._venue = str(self.post("/api/venues", {"name": "Hall"})["id"])
        return self._venue

    def publish(self, seats: int) -> OnSale:
        layout = self.post_bytes(f"/api/venues/{self.venue}/layouts", layout_body(seats))
        event = self.post("/api/events", event_body(layout["id"]))
        self.post(f"/api/events/{event['id']}/status", {"status": "published"})
        return on_sale(event["id"], layout["id"], seats)

    def publish_again(self, known: OnSale) -> OnSale:
        """One more event on the same layout."""
        event = self.post("/api/events", event_body(known.layout_id))
        self.post(f"/api/events/{event['id']}/status", {"status": "published"})
        return OnSale(event["id"], known.layout_id, known.seats)

    def guests(self, event: OnSale, count: int) -> list[str]:
        """Tokens of buyers without an account, good for this event; the same ones when asked again."""

        async def issue() -> str:
            return (await self._accounts.issue_guest_token(UUID(event.id))).token

        known = self._guests.setdefault(event.id, [])
        known += self.run(_few_at_once([issue] * (count - len(known))))
        return known[:count]

    def members(self, count: int) -> list[str]:
        """Tokens of buyers with an account, good for every event."""

        async def issue() -> str:
            return (await self._accounts.issue_token(self.first.organization_id, Role.CUSTOMER)).token

        return self.run(_few_at_once([issue] * count))


async def _few_at_once(work: Sequence[Any]) -> list[Any]:
    made: list[Any] = []
    for at in range(0, len(work), TOKENS_AT_ONCE):
        made += await asyncio.gather(*(each() for each in work[at : at + TOKENS_AT_ONCE]))
    return made


def seat_ids(seats: int) -> list[str]:
    return [f"{n // SEATS_A_ROW + 1}-{n % SEATS_A_ROW + 1}" for n in range(seats)]


def layout_config(seats: int, a_row: int = SEATS_A_ROW) -> dict[str, Any]:
    listed = [
        {
            "seat_id": f"{n // a_row + 1}-{n % a_row + 1}",
            "row": str(n // a_row + 1),
            "number": n % a_row + 1,
            "coordinates": {"x": 10.0 * (n % a_row), "y": 20.0 * (n // a_row)},
        }
        for n in range(seats)
    ]
    zone = {"zone_id": "stalls", "name": "Stalls", "zone_type": "reserved_seating", "capacity": seats, "seats": listed}
    return {"focal_point": {"x": 5.0 * a_row, "y": -20.0}, "zones": [zone]}


def layout_body(seats: int) -> bytes:
    return msgspec.json.encode({"name": "Plan", "config": layout_config(seats)})


def event_body(layout_id: str) -> dict[str, Any]:
    return {"name": "Evening", "layout_id": layout_id, "overrides": UNLIMITED}


def on_sale(event_id: str, layout_id: str, seats: int) -> OnSale:
    column = seat_uuid_column(UUID(layout_id), seat_ids(seats))
    return OnSale(event_id, layout_id, [str(UUID(bytes=column[at : at + 16])) for at in range(0, len(column), 16)])


@contextmanager
def standing() -> Iterator[Stand]:
    """Starts everything in a folder of its own, and leaves nothing behind."""
    with (
        TemporaryDirectory(prefix="holdfast-bench-") as folder,
        PostgresServer(Path(folder) / "data", QUIET) as postgres,
        ValkeyServer(Path(folder) / "data") as valkey,
        ExitStack() as stack,
    ):
        asyncio.run(_create(postgres.address))
        settings = Settings(
            database_url=postgres.address.dsn("holdfast_app", DATABASE),
            jwt_secrets=f"bench:{secrets.token_urlsafe(32)}",
            redis_url=valkey.address.url(),
            log_level="warning",
        )
        variants = {
            WHOLE: settings,
            BARE: msgspec.structs.replace(settings, redis_url=None, hot_events=0),
            SECOND: settings,
        }
        servers = {name: _served(stack, variant) for name, variant in variants.items()}
        stand = Stand(postgres, valkey, servers, settings, Path(folder))
        try:
            yield stand
        finally:
            stand.close()


def _served(stack: ExitStack, settings: Settings) -> Serving:
    bound = stack.enter_context(bind("127.0.0.1", 0))
    server = ServerProcesses(settings, bound, SERVER_PROCESSES)
    server.start()
    stack.callback(server.stop)
    return Serving(bound.getsockname()[1], server.pids)


async def _create(address: PostgresAddress) -> None:
    connection = await asyncpg.connect(address.dsn(OWNER, "postgres"))
    try:
        await connection.execute(f"CREATE DATABASE {DATABASE}")
    finally:
        await connection.close()
    await migrate(address.dsn(OWNER, DATABASE))
