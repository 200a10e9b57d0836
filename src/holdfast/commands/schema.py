"""`holdfast migrate`."""

import asyncio

import typer

from holdfast.commands.options import Data, Json, print_json, settings_for
from holdfast.deployment import deployed
from holdfast.store.postgres.migrate import migrate as apply_migrations


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: holdfast migrate --data ./data")(migrate)


def migrate(data: Data = None, json: Json = False) -> None:
    """Bring the database's schema to this version, and say what was applied. Safe to repeat."""
    with deployed(settings_for(data), prepare=False) as deployment:
        applied = asyncio.run(apply_migrations(deployment.admin_url))
    if json:
        print_json({"applied": applied})
        return
    for name in applied:
        typer.echo(f"applied {name}")
    if not applied:
        typer.echo("the schema is current")
