"""Where the races are run: several instances of the engine on one database, and ways to take a guard out of that database.

A control is a race run without the guard it is about. It is made from the shipped function by changing its text, in the
test's own database: the engine above it stays exactly what it is. A race whose control does not fail proves nothing.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg
import httpx
import msgspec

from holdfast.accounts.principal import Call, Principal, Role
from holdfast.accounts.records import Bootstrap
from holdfast.app import Application
from holdfast.compat.booking_v2 import GroupRef, SeatRef, StateSelection
from holdfast.holds.answers import Placement
from holdfast.holds.lifecycle import Actor
from holdfast.holds.lifetime import NATIVE_RESERVE_TTL_S
from holdfast.holds.plan import HoldsAsked, PlacesAsked
from holdfast.insight.invariants import check_event
from holdfast.kernel.errors import Refusal
from holdfast.store.postgres.migrate import functions
from tests.conftest import TestDatabase
from tests.factories import Parts, PublishedEvent, buyer_call, make_organization, make_published_event, staff_call
from tests.http.client import bearer, serving
from tests.stage import stage_settings

SESSION = "session-1"
Change = tuple[str, str]


# Guards -------------------------------------------------------------------------------------------------------------
def shipped(name: str) -> str:
    """The definition of a SQL function as it is shipped."""
    text, _ = functions()
    found = re.findall(rf"CREATE OR REPLACE FUNCTION {name}\(.*?\$\$;", text, re.DOTALL)
    assert len(found) == 1, f"{name} is defined {len(found)} times"
    return str(found[0])


def changed(name: str, *changes: Change) -> str:
    """The same with some text replaced; what is to be replaced must be there exactly once."""
    text = shipped(name)
    for old, new in changes:
        assert text.count(old) == 1, f"{name} has {text.count(old)} times {old!r}: the control must follow the function"
        text = text.replace(old, new)
    return text


async def as_owner(database: TestDatabase, *statements: str) -> None:
    connection = await asyncpg.connect(database.owner)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def deadlocks(database: TestDatabase) -> int:
    """All there ever were. A connection reports its own when it ends, so this comes after the instances are closed."""
    connection = await asyncpg.connect(database.address.dsn("holdfast_owner", "postgres"))
    try:
        others = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1"
        while await connection.fetchval(others, database.name):
            await asyncio.sleep(0.02)
        query = "SELECT deadlocks FROM pg_stat_database WHERE datname = $1"
        return int(await connection.fetchval(query, database.name))
    finally:
        await connection.close()


# The state that the one UPDATE expects, and the index behind it.
SEAT_IS_FREE = "      AND (s.state = 'available' OR (s.state = 'held' AND s.held_until <= v_now))\n"


def without_seat_state() -> list[str]:
    return [changed("hold_seats", (SEAT_IS_FREE, "")), "DROP INDEX holds_one_active_per_seat"]


# Asking -------------------------------------------------------------------------------------------------------------
class Answer(msgspec.Struct, frozen=True):
    status: int
    body: Any


async def post(server: httpx.URL, path: str, headers: dict[str, str], body: Any = None) -> Answer:
    """A request on a connection of its own: five hundred of these at once cost a client library ten seconds."""
    reader, writer = await asyncio.open_connection(server.host, server.port)
    try:
        content = b"" if body is None else msgspec.json.encode(body)
        lines = [
            f"POST {path} HTTP/1.1",
            f"Host: {server.host}",
            "Connection: close",
            f"Content-Length: {len(content)}",
        ]
        lines += ["Content-Type: application/json"] if content else []
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + content)
        head, _, rest = (await reader.read(-1)).partition(b"\r\n\r\n")
    finally:
        writer.close()
    return Answer(int(head.split(b" ", 2)[1]), msgspec.json.decode(rest))


def api_call(organization: Bootstrap) -> Call:
    """With an API key of the organization."""
    principal = Principal(
        organization_id=organization.organization_id,
        tenant_id=organization.tenant_id,
        actor=Actor.API,
        role=Role.ORGANIZER,
        subject="key:tests",
        scopes=frozenset({"*"}),
    )
    return Call(principal=principal)


# Instances ----------------------------------------------------------------------------------------------------------
@dataclass
class Ground:
    """An event on sale, and the instances that sell it: each with connections, caches and a writer of its own."""

    apps: list[Application]
    servers: list[httpx.URL]
    database: TestDatabase
    event: PublishedEvent
    parts: Parts
    owner: "asyncpg.Connection[asyncpg.Record]"

    @property
    def organization_id(self) -> UUID:
        return self.event.organization.organization_id

    @property
    def admin(self) -> Call:
        return staff_call(self.event.organization)

    def buyer(self, user_id: UUID | None = None) -> Call:
        return buyer_call(self.event.organization, user_id)

    @property
    def api(self) -> Call:
        return api_call(self.event.organization)

    async def new_event(self, config: dict[str, Any], **fields: Any) -> PublishedEvent:
        return await make_published_event(self.parts, self.event.organization, config=config, **fields)

    async def sql(self, query: str, *args: Any) -> list[asyncpg.Record]:
        """As the schema's owner."""
        return await self.owner.fetch(query, *args)

    async def post(self, n: int, path: str, headers: dict[str, str], body: Any = None) -> Answer:
        """To one of the servers (they are taken in turn), on a connection of its own."""
        return await post(self.servers[n % len(self.servers)], path, headers, body)

    async def guests(self, count: int) -> list[dict[str, str]]:
        """Headers of so many fresh guests, of whom every instance has heard."""
        accounts = self.apps[0].services.accounts
        tokens = await asyncio.gather(*[accounts.issue_guest_token(self.event.id) for _ in range(count)])
        return [bearer(issued.token) for issued in tokens]

    async def hold(
        self,
        app: Application,
        call: Call,
        seats: Sequence[int] = (),
        places: int = 0,
        event: PublishedEvent | None = None,
    ) -> Placement | Refusal:
        """Asks an instance for seats by ordinal, and places of the pit."""
        event = event or self.event
        asked = HoldsAsked(
            seats=tuple(event.seats[n] for n in seats),
            places=(PlacesAsked("pit", places),) if places else (),
            endpoint_ttl_s=NATIVE_RESERVE_TTL_S,
        )
        try:
            return await app.services.holds.hold_seats(call, event.id, asked)
        except Refusal as refusal:
            return refusal

    async def faults(self, acknowledged: Iterable[UUID] = (), event: PublishedEvent | None = None) -> list[str]:
        """What the engine's own examiner finds wrong with the event."""
        event_id = (event or self.event).id
        found = await check_event(self.apps[0].database, self.organization_id, event_id, set(acknowledged))
        return [f"{i.name}: {i.detail}" for i in found if not i.ok]

    async def statuses(self, event: PublishedEvent | None = None) -> dict[UUID, str]:
        """Every hold of the event with its status."""
        query = "SELECT id, status::text FROM holds WHERE event_id = $1"
        return {row["id"]: row["status"] for row in await self.sql(query, (event or self.event).id)}

    async def seconds_left(self) -> float:
        query = """
            SELECT extract(epoch FROM min(held_until) - holdfast_now())::float8 AS left FROM holds
            WHERE event_id = $1 AND status = 'active'
        """
        (row,) = await self.sql(query, self.event.id)
        return float(row["left"])

    async def pass_time(self, seconds: float) -> None:
        await self.sql("UPDATE test_clock SET ahead = ahead + make_interval(secs => $1)", float(seconds))
        for app in self.apps:
            await app.feed.caught_up()  # real clocks do not jump

    async def to_the_eve(self, seconds_before: float) -> None:
        """Moves the clock to shortly before the event's first hold ends."""
        await self.pass_time(await self.seconds_left() - seconds_before)


def parts_of(app: Application) -> Parts:
    """What the factories work with, out of an instance."""
    services = app.services
    return Parts(
        database=app.database,
        catalogue=app.catalogue,
        seating=services.seating,
        insight=services.insight,
        accounts=services.accounts,
        settings=app.settings,
    )


@asynccontextmanager
async def ground(
    database: TestDatabase,
    config: dict[str, Any],
    *,
    instances: int = 2,
    serve: bool = False,
    control: Sequence[str] = (),
    policy: dict[str, Any] | None = None,
    event: dict[str, Any] | None = None,
    hold_types: dict[str, Any] | None = None,
    **settings: Any,
) -> AsyncIterator[Ground]:
    """`control`: statements that take a guard out of the database, before any instance connects to it."""
    await as_owner(database, *control)
    async with AsyncExitStack() as stack:
        apps: list[Application] = []
        for _ in range(instances):
            app = await Application.open(stage_settings(database, **settings), work=False)
            stack.push_async_callback(app.close)
            apps.append(app)
        first = apps[0]
        parts = parts_of(first)
        organization = await make_organization(parts)
        if policy is not None:
            await first.services.accounts.store_policy(staff_call(organization), policy)
        if hold_types is not None:
            await first.services.accounts.store_organization_config(staff_call(organization), {"holdTypes": hold_types})
        published = await make_published_event(parts, organization, config=config, **(event or {}))
        servers = [(await stack.enter_async_context(serving(app.asgi))).base_url for app in apps] if serve else []
        owner = await asyncpg.connect(database.owner)
        stack.push_async_callback(owner.close)
        yield Ground(apps, servers, database, published, parts, owner)


def selection(
    seats: Sequence[int] = (), group: int | None = None, places: int = 0, session: str = SESSION
) -> StateSelection:
    """In the words of booking v2; a seat's integer is its ordinal and one, a zone's follow the seats'."""
    groups = [] if group is None or not places else [GroupRef(group, places)]
    return StateSelection(session, [SeatRef(n + 1) for n in seats], groups)


async def all_at_once(calls: Iterable[Any]) -> list[Any]:
    """Everybody stands ready before the first may go."""
    gate = asyncio.Event()

    async def wait(call: Any) -> Any:
        await gate.wait()
        return await call

    tasks = [asyncio.create_task(wait(call)) for call in calls]
    await asyncio.sleep(0)
    gate.set()
    return await asyncio.gather(*tasks)


async def until_seen(race: Callable[[], Any], tries: int = 10) -> list[str]:
    """For controls: repeats a race until its checker finds something, a few times at most."""
    found: list[str] = []
    for _ in range(tries):
        found = await race()
        if found:
            break
    return found
