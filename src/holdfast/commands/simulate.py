"""`holdfast simulate`: a flash sale against a running server, and the proof that nothing went wrong in it."""

import asyncio
import time
from typing import Annotated
from uuid import UUID

import msgspec
import typer
import uvloop
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from holdfast.commands.options import Data, Json, Organization, fail, id_of, print_json, settings_for
from holdfast.deployment import deployed
from holdfast.insight.invariants import check_event
from holdfast.insight.verdict import Invariant
from holdfast.settings import Settings
from holdfast.simulation.buyer import RUSH, Crowd, run_crowd
from holdfast.simulation.client import Client, ServerAway, is_local
from holdfast.simulation.hall import Hall, HallUnreadable
from holdfast.simulation.tally import Report, Tally
from holdfast.store.postgres import inventory
from holdfast.store.postgres.database import Database
from holdfast.store.postgres.overview import count_seats

FRAME_S = 0.5
LINE_S = 2.0
Occupancy = dict[str, int]


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog="Example: holdfast simulate --event 0198c0de-0000-7000-8000-00000000000e"
        " --organization 0198c0de-0000-7000-8000-000000000001 --buyers 200 --seconds 20"
    )(simulate)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    seconds: float
    buyers: int
    holds_per_s: float
    report: Report
    occupancy: Occupancy
    invariants: list[Invariant]


def simulate(
    event: Annotated[str, typer.Option(metavar="ID", help="The event, which must be on sale.")],
    organization: Organization,
    buyers: Annotated[int, typer.Option(min=1, max=10_000, help="Buyers at the same time.")] = 100,
    seconds: Annotated[float, typer.Option(min=0.1, help="How long the sale lasts.")] = 10.0,
    url: Annotated[str, typer.Option(help="Where the server answers.")] = "http://127.0.0.1:8080",
    api_key: Annotated[
        str | None, typer.Option(envvar="HOLDFAST_API_KEY", help="With an API key, buyers also buy (booking v2).")
    ] = None,
    anywhere: Annotated[bool, typer.Option("--anywhere", help="Allow a server on another machine.")] = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Run a flash sale against a running server, then check every invariant in its database."""
    event_id, organization_id = id_of("--event", event), id_of("--organization", organization)
    if not is_local(url) and not anywhere:
        fail(f"{url} is not this machine: load is sent elsewhere only with --anywhere")
    with deployed(settings_for(data)) as deployment:
        sale = _Sale(organization_id, event_id, url, buyers, seconds, api_key, quiet=json)
        outcome = uvloop.run(sale.run(deployment.settings))
    if json:
        print_json(outcome)
    else:
        _print_outcome(outcome)
    if not all(invariant.ok for invariant in outcome.invariants):
        raise typer.Exit(1)


class _Sale:
    def __init__(
        self,
        organization_id: UUID,
        event_id: UUID,
        url: str,
        buyers: int,
        seconds: float,
        api_key: str | None,
        *,
        quiet: bool,
    ) -> None:
        self._organization_id = organization_id
        self._event_id = event_id
        self._url = url
        self._buyers = buyers
        self._seconds = seconds
        self._api_key = api_key
        self._quiet = quiet
        self._console = Console(highlight=False)

    async def run(self, settings: Settings) -> Outcome:
        assert settings.database_url is not None
        database = await Database.open(settings.database_url, 2)
        try:
            crowd = await self._gather()
            begun = time.monotonic()
            await self._sell(database, crowd, begun)
            lasted_s = time.monotonic() - begun
            report = crowd.tally.report()
            return Outcome(
                seconds=round(lasted_s, 3),
                buyers=self._buyers,
                holds_per_s=round(report.holds / lasted_s, 1),
                report=report,
                occupancy=await self._occupancy(database),
                invariants=await check_event(database, self._organization_id, self._event_id, crowd.acknowledged),
            )
        finally:
            await database.close()

    async def _gather(self) -> Crowd:
        client = Client(self._url)
        try:
            hall = await Hall.learn(client, str(self._event_id))
        except ServerAway as error:
            fail(f"no server answers at {self._url} ({error}): start one with holdfast serve, or name it with --url")
        except HallUnreadable as error:
            fail(f"{error}: is the event on sale, and this its server?")
        finally:
            client.close()
        return Crowd(
            url=self._url,
            event_id=str(self._event_id),
            hall=hall,
            manner=RUSH,
            tally=Tally(keep_all=True),
            api_key=self._api_key,
        )

    async def _sell(self, database: Database, crowd: Crowd, begun: float) -> None:
        rush = asyncio.create_task(run_crowd(crowd, self._buyers, self._seconds))
        terminal = self._console.is_terminal and not self._quiet
        live = Live(console=self._console, auto_refresh=False, transient=True) if terminal else None
        try:
            if live is not None:
                live.start()
            while not rush.done():
                await asyncio.wait((rush,), timeout=FRAME_S if live is not None else LINE_S)
                lasted_s = time.monotonic() - begun
                if live is not None:
                    occupancy = await self._occupancy(database)
                    live.update(_figures(crowd.tally.report(), lasted_s, self._seconds, occupancy), refresh=True)
                elif not self._quiet:
                    report = crowd.tally.report()
                    self._console.print(
                        f"{lasted_s:6.1f} s | {report.holds} holds | {sum(report.refused.values())} refused |"
                        f" p50 {report.latency_ms_p50:.1f} ms | p99 {report.latency_ms_p99:.1f} ms",
                        soft_wrap=True,
                    )
            rush.result()
        finally:
            rush.cancel()
            if live is not None:
                live.stop()

    async def _occupancy(self, database: Database) -> Occupancy:
        organization_id, event_id = self._organization_id, self._event_id
        totals: Occupancy = {"available": 0, "held": 0, "sold": 0, "blocked": 0}
        async with database.transaction(organization_id) as tx:
            for (_, state), count in (await count_seats(tx, organization_id, event_id)).items():
                totals[state] += count
            for zone in await inventory.list_zones(tx, organization_id, event_id):
                totals["held"] += zone["held"]
                totals["sold"] += zone["sold"]
                totals["available"] += zone["capacity"] - zone["held"] - zone["sold"]
        return totals


def _figures(report: Report, lasted_s: float, seconds: float, occupancy: Occupancy) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    done = min(1.0, lasted_s / seconds)
    table.add_row("sale", Text("█" * round(30 * done) + "░" * (30 - round(30 * done)), "cyan"), f"{lasted_s:.1f} s")
    table.add_row("holds", f"{report.holds:,}", f"{report.holds / max(lasted_s, 0.001):,.0f} a second")
    table.add_row("requests", f"{report.requests:,}", f"{report.requests / max(lasted_s, 0.001):,.0f} a second")
    answers = f"p50 {report.latency_ms_p50:.1f} · p95 {report.latency_ms_p95:.1f} · p99 {report.latency_ms_p99:.1f} ms"
    table.add_row("answers", answers)
    table.add_row("seats", " · ".join(f"{name} {count:,}" for name, count in occupancy.items()))
    for reason, count in sorted(report.refused.items(), key=lambda item: -item[1]):
        table.add_row("refused", reason.replace("_", " "), f"{count:,}")
    if report.faults:
        table.add_row(Text("faults", "bold red"), f"{report.faults:,}", report.last_fault or "")
    return table


def _print_outcome(outcome: Outcome) -> None:
    console = Console(highlight=False)
    console.print(Group(_figures(outcome.report, outcome.seconds, outcome.seconds, outcome.occupancy), Text()))
    for invariant in outcome.invariants:
        verdict = Text("ok    ", "green") if invariant.ok else Text("BROKEN", "bold red")
        console.print(
            verdict.append(f"  {invariant.name} ", "default").append(f"({invariant.detail})", "dim"), soft_wrap=True
        )
