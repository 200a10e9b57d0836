"""The real application under a real server, on a port of its own, in the test's event loop."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg
import httpx
import uvicorn
from litestar.types import ControllerRouterHandler

from holdfast.accounts.credentials import TokenKeys
from holdfast.accounts.passwords import Hashing
from holdfast.accounts.records import Bootstrap
from holdfast.accounts.service import AccountsService
from holdfast.accounts.sign_in_service import SignInService
from holdfast.http import accounts as accounts_routes
from holdfast.http import session, system
from holdfast.http.api import build_api
from holdfast.http.auth import Authenticator
from holdfast.http.services import Services
from holdfast.settings import Settings
from holdfast.store.postgres.database import Database
from tests.conftest import TestDatabase

SECRETS = {"new": b"n" * 40, "old": b"o" * 40}
OWN_ROUTES: list[ControllerRouterHandler] = [*system.ROUTES, *accounts_routes.ROUTES, *session.ROUTES]


@asynccontextmanager
async def serving(app: Any, protocol: Any = "auto") -> AsyncIterator[httpx.AsyncClient]:
    """`app` behind uvicorn on 127.0.0.1, and a client of it."""
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            host="127.0.0.1",
            port=0,
            log_level="warning",
            access_log=False,
            http=protocol,
            proxy_headers=False,  # as the product's own server has it
        )
    )
    task = asyncio.create_task(server.serve())
    while not server.started:
        if task.done():
            task.result()
        await asyncio.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20, verify=False) as client:
            yield client
    finally:
        server.should_exit = True
        await task


@dataclass
class World:
    """A running application and one organization in it."""

    client: httpx.AsyncClient
    services: Services
    accounts: AccountsService
    keys: TokenKeys
    database: TestDatabase
    first: Bootstrap

    @property
    def admin(self) -> dict[str, str]:
        return bearer(self.first.admin_token)

    async def sql(self, query: str, *args: Any) -> list[asyncpg.Record]:
        """As the schema's owner, for whom row-level security has no policy: superuser in tests."""
        connection = await asyncpg.connect(self.database.owner)
        try:
            return await connection.fetch(query, *args)
        finally:
            await connection.close()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@asynccontextmanager
async def world(
    database: TestDatabase,
    *,
    remember_s: float = 5.0,
    routes: Sequence[ControllerRouterHandler] = OWN_ROUTES,
    front: Any = None,
    guest_ttl_s: int = 86_400,
    **settings: Any,
) -> AsyncIterator[World]:
    pool = await Database.open(database.app, 4)
    keys = TokenKeys(SECRETS)
    accounts = AccountsService(pool, keys, guest_ttl_s=guest_ttl_s)
    sign_ins = SignInService(pool, accounts, Hashing(memory_kib=1024))  # quick, and still Argon2
    unused: Any = None
    services = Services(
        settings=Settings(**settings),
        database=pool,
        accounts=accounts,
        sign_ins=sign_ins,
        authenticator=Authenticator(
            accounts, sign_ins, remember_s=remember_s, trusted_proxies=settings.get("trusted_proxies", "")
        ),
        seating=unused,
        series=unused,
        places=unused,
        layout_files=unused,
        migrations=unused,
        holds=unused,
        best=unused,
        booking=unused,
        checkouts=unused,
        box_office=unused,
        returns=unused,
        insight=unused,
        analytics=unused,
        refusals=unused,
        catalogue=unused,
        live=unused,
        availability=unused,
        registry=unused,
        webhooks=unused,
        occupancy=unused,
        geometry=unused,
        payments=unused,
        tickets=unused,
        gates=unused,
        public_events=unused,
    )
    try:
        first = await accounts.bootstrap("Teatro Uno", tenant="Group")
        async with serving(build_api(services, routes, front=front)) as client:
            yield World(client, services, accounts, keys, database, first)
    finally:
        sign_ins.close()
        await pool.close()
