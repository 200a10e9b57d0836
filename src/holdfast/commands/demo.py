"""`holdfast demo`: everything at once, with simulated buyers, to look at."""

import asyncio
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated
from uuid import UUID

import msgspec
import typer
from rich.console import Console
from rich.live import Live

from holdfast import server
from holdfast.accounts.principal import Role
from holdfast.commands.operator import opened, operator_call
from holdfast.commands.options import Data, fail, settings_for
from holdfast.deployment import Deployment, deployed
from holdfast.logs import configure_logs
from holdfast.payments.provider import ProviderKind
from holdfast.payments.providers_service import ProviderAsked
from holdfast.seating.event import EventStatus
from holdfast.seating.layout import Layout
from holdfast.server_processes import ServerProcesses
from holdfast.simulation.buyers_process import Orders
from holdfast.simulation.screen import ExpirySeen, GaNow, MoveSeen, Scene, draw, line
from holdfast.simulation.tally import Report
from holdfast.simulation.theatre import theatre
from holdfast.store.postgres import inventory, overview
from holdfast.store.postgres.database import Database

CART_S = 60
CHECKOUT_MINUTES = 3
PROVIDER = "test"
ORGANISER = "organiser@demo.example"
MEMBERS = 3
FRAME_S = 0.5
LINE_S = 2.0
RATE_WINDOW_S = 5.0
TOKEN_FILE = "demo-admin-token"  # noqa: S105 - a file's name
SCRIPT_FILE = "try.sh"


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: holdfast demo --seats 2000 --buyers 20")(demo)


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """What was set up for the show."""

    organization_id: UUID
    event_id: UUID
    layout: Layout
    admin_token: str
    api_key: str
    member_tokens: list[str]
    guest_token: str
    seat_id: UUID
    password: str  # of the organiser, to sign in with


def demo(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the API; 0 takes any free one.")] = 8080,
    seats: Annotated[int, typer.Option(min=20, max=50_000, help="Numbered seats, about.")] = 2000,
    buyers: Annotated[int, typer.Option(min=0, max=1000, help="Simulated buyers.")] = 20,
    seconds: Annotated[float | None, typer.Option(min=0.0, help="End by itself after so long.")] = None,
    data: Data = None,
) -> None:
    """Show it: a theatre on sale with simulated buyers who use the API. Ctrl-C ends it and leaves nothing behind."""
    settings = settings_for(data, log_level="warning")
    if settings.database_url is not None:
        fail("the demo brings its own database: unset HOLDFAST_DATABASE_URL")
    configure_logs(settings.log_level)
    console = Console(highlight=False)
    bound = server.bind("127.0.0.1", port)
    with _folder(settings.data) as folder:
        console.print("Starting PostgreSQL and Valkey, and building a theatre …", style="dim")
        with deployed(msgspec.structs.replace(settings, data=str(folder))) as deployment:
            stage = asyncio.run(_set_up(deployment, seats))
            processes = ServerProcesses(deployment.settings, bound, 1)
            processes.start()
            try:
                show = _Show(deployment, stage, server.url_of(bound), console)
                show.say_where()
                with _buyers(stage, show.url, buyers, seats) as reports, suppress(KeyboardInterrupt):
                    asyncio.run(show.run(reports, processes, seconds))
            finally:
                processes.stop()
    console.print("The demo has ended; nothing of it is left running.", style="dim")


@contextmanager
def _folder(given: str | None) -> Iterator[Path]:
    if given is not None:
        folder = Path(given).expanduser().absolute()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-", ignore_cleanup_errors=True) as temporary:
        yield Path(temporary)


async def _set_up(deployment: Deployment, seats: int) -> Stage:
    """An organization with its own hold length, a theatre, and an event on sale."""
    async with opened(deployment.settings) as application:
        accounts, seating = application.services.accounts, application.services.seating
        made = await accounts.bootstrap("Demo theatre")
        call = await operator_call(application, made.organization_id)
        await accounts.store_organization_config(call, {"holdTypes": {"CART": {"ttlSeconds": CART_S}}})
        await accounts.store_policy(
            call,
            {"allow_vip_zones": True, "max_holds_per_user": None, "checkout_minutes": CHECKOUT_MINUTES},
        )
        password = secrets.token_urlsafe(9)
        await accounts.create_user(call, role=Role.ADMIN, email=ORGANISER, display_name="Organiser")
        await application.services.sign_ins.set_password_as_operator(made.organization_id, ORGANISER, password)
        await application.services.payments.providers.put(call, PROVIDER, ProviderAsked(kind=ProviderKind.TEST))
        venue = await seating.create_venue(call, "Grand Theatre")
        config = msgspec.json.encode(theatre(seats))
        layout = await seating.create_layout(call, venue.id, "Main hall", config)
        now = datetime.now(UTC)
        event = await seating.create_event(
            call,
            {
                "name": "Opening night",
                "layout_id": str(layout.id),
                "sale_start": (now - timedelta(hours=1)).isoformat(),
                "sale_end": (now + timedelta(days=30)).isoformat(),
                "currency": "EUR",
                "prices": [
                    {"zone_id": zone_id, "category": None, "amount_minor": amount}
                    for zone_id, amount in (("stalls", 8000), ("balcony", 4500), ("boxes", 15000), ("pit", 3000))
                ],
            },
        )
        await seating.set_status(call, event.id, EventStatus.PUBLISHED)
        members = [
            await accounts.issue_token(made.organization_id, Role.CUSTOMER, tiers=["gold"]) for _ in range(MEMBERS)
        ]
        view = await application.catalogue.fresh_event(made.organization_id, event.id)
        assert view is not None
        return Stage(
            organization_id=made.organization_id,
            event_id=event.id,
            layout=view.layout,
            admin_token=made.admin_token,
            api_key=made.api_key,
            member_tokens=[member.token for member in members],
            guest_token=(await accounts.issue_guest_token(event.id)).token,
            seat_id=view.layout.seat_uuid(view.layout.seat_count - 1),
            password=password,
        )


@contextmanager
def _buyers(stage: Stage, url: str, count: int, seats: int) -> Iterator[int]:
    """The buyers' process; gives the pipe of its reports."""
    orders = Orders(
        url=url,
        event_id=str(stage.event_id),
        buyers=count,
        seats=seats,
        api_key=stage.api_key,
        provider=PROVIDER,
        member_tokens=stage.member_tokens,
        parent=os.getpid(),
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast.simulation.buyers_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(msgspec.json.encode(orders) + b"\n")
        process.stdin.close()
        os.set_blocking(process.stdout.fileno(), False)
        yield process.stdout.fileno()
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


class _Show:
    def __init__(self, deployment: Deployment, stage: Stage, url: str, console: Console) -> None:
        self.url = url
        self._deployment = deployment
        self._stage = stage
        self._console = console
        self._begun = time.monotonic()
        self._report: Report | None = None
        self._unread = b""
        self._holds: deque[tuple[float, int]] = deque()

    def say_where(self) -> None:
        """Where to look, before the display starts: it stays above it, to be copied."""
        stage, folder = self._stage, self._deployment.data
        token_file = folder / TOKEN_FILE
        _write(token_file, stage.admin_token + "\n", 0o600)
        reserve = f"{self.url}/api/events/{stage.event_id}/seats/{stage.seat_id}/reserve"
        curl = f"curl -X POST {reserve} -H 'Authorization: Bearer {stage.guest_token}'"
        _write(folder / SCRIPT_FILE, f"#!/bin/sh\n{curl}\necho\n", 0o700)
        say = self._console.print
        say(f"[bold]Holdfast is serving on {self.url}[/bold] (data: {folder}, pid {os.getpid()})", soft_wrap=True)
        say(f"  buy a ticket          {self.url}/e/{stage.event_id}", soft_wrap=True)
        say(f"  organise              {self.url}/dashboard", soft_wrap=True)
        say(f"  sign in with          {ORGANISER}  {stage.password}", soft_wrap=True)
        say(f"  the API, described    {self.url}/docs", soft_wrap=True)
        say(f"  administrator's token {token_file}", soft_wrap=True)
        say(f"  event                 {stage.event_id}", soft_wrap=True)
        say("  hold a seat yourself:", soft_wrap=True)
        say(curl, soft_wrap=True, markup=False)
        say("  Ctrl-C ends the demo.", soft_wrap=True)

    def _pointers(self) -> list[tuple[str, str]]:
        folder = self._deployment.data
        return [
            ("buy a ticket", f"{self.url}/e/{self._stage.event_id}"),
            ("organise", f"{self.url}/dashboard  ({ORGANISER}, {self._stage.password})"),
            ("the API, described", f"{self.url}/docs"),
            ("hold a seat yourself", f"sh {folder / SCRIPT_FILE}"),
            ("administrator's token", str(folder / TOKEN_FILE)),
            ("to stop", "Ctrl-C"),
        ]

    async def run(self, reports: int, processes: ServerProcesses, seconds: float | None) -> None:
        stop = server.StopSignals()
        assert self._deployment.settings.database_url is not None
        database = await Database.open(self._deployment.settings.database_url, 1)
        try:
            if self._console.is_terminal:
                with Live(console=self._console, auto_refresh=False, transient=True) as live:
                    async for scene in self._scenes(database, reports, processes, stop, seconds, FRAME_S):
                        size = self._console.size
                        live.update(
                            draw(self._stage.layout, scene, self._pointers(), size.width, size.height - 1), refresh=True
                        )
            else:
                async for scene in self._scenes(database, reports, processes, stop, seconds, LINE_S):
                    self._console.print(line(scene), soft_wrap=True)
                    sys.stdout.flush()
        finally:
            await database.close()

    async def _scenes(
        self,
        database: Database,
        reports: int,
        processes: ServerProcesses,
        stop: server.StopSignals,
        seconds: float | None,
        pause_s: float,
    ) -> AsyncIterator[Scene]:
        end = None if seconds is None else self._begun + seconds
        while not stop.asked.is_set() and (end is None or time.monotonic() < end):
            server.keep_once(self._deployment.keep_servers)
            processes.tend()
            self._read_reports(reports)
            yield await self._scene(database)
            left = pause_s if end is None else max(0.0, min(pause_s, end - time.monotonic()))
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.asked.wait(), left)

    async def _scene(self, database: Database) -> Scene:
        organization_id, event_id = self._stage.organization_id, self._stage.event_id
        async with database.transaction(organization_id) as tx:
            states = await overview.seat_states(tx, organization_id, event_id)
            zones = await inventory.list_zones(tx, organization_id, event_id)
            moves = await overview.latest_moves(tx, organization_id, event_id, 20)
            expiries = await overview.next_expiries(tx, organization_id, event_id, 10)
        return Scene(
            states=states,
            ga=[GaNow(row["zone_no"], row["capacity"], row["held"], row["sold"]) for row in zones],
            moves=[MoveSeen(r["at"], r["verb"], r["ordinal"], r["zone_no"], r["quantity"]) for r in moves],
            expiries=[ExpirySeen(r["ordinal"], r["zone_no"], r["quantity"], r["left_s"]) for r in expiries],
            report=self._report,
            holds_per_s=self._holds_per_s(),
            running_s=time.monotonic() - self._begun,
        )

    def _read_reports(self, pipe: int) -> None:
        with suppress(BlockingIOError):
            while chunk := os.read(pipe, 65536):
                self._unread += chunk
        *whole, self._unread = self._unread.split(b"\n")
        if whole:
            self._report = msgspec.json.decode(whole[-1], type=Report)
            self._holds.append((time.monotonic(), self._report.holds))

    def _holds_per_s(self) -> float:
        while len(self._holds) > 2 and self._holds[0][0] < time.monotonic() - RATE_WINDOW_S:
            self._holds.popleft()
        if len(self._holds) < 2:
            return 0.0
        (begin, first), (end, last) = self._holds[0], self._holds[-1]
        return (last - first) / (end - begin) if end > begin else 0.0


def _write(path: Path, content: str, mode: int) -> None:
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
        file.write(content)
