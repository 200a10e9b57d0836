"""`holdfast bootstrap` and `holdfast token`: the operator's way to a first organization and to credentials."""

import asyncio
from typing import Annotated, Any

import msgspec
import typer

from holdfast.accounts.credentials import TOKEN_TTL_S
from holdfast.accounts.principal import Role
from holdfast.commands.operator import opened
from holdfast.commands.options import Data, Json, Organization, id_of, print_json, settings_for
from holdfast.deployment import deployed
from holdfast.settings import Settings


def add_to(app: typer.Typer) -> None:
    app.command(epilog='Example: holdfast bootstrap --organization "City Theatre" --json')(bootstrap)
    app.command(epilog="Example: holdfast token --organization 0198c0de-0000-7000-8000-000000000001 --role organizer")(
        token
    )


def bootstrap(
    organization: Annotated[str, typer.Option(metavar="NAME", help="Name of the organization.")],
    tenant: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of its tenant; the organization's where left out.")
    ] = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Make an organization with an administrator and API keys. The secrets are shown once."""

    async def make(settings: Settings) -> Any:
        async with opened(settings) as application:
            return await application.services.accounts.bootstrap(organization, tenant=tenant)

    with deployed(settings_for(data)) as deployment:
        made = asyncio.run(make(deployment.settings))
    _print(msgspec.to_builtins(made), json)


def token(
    organization: Organization,
    role: Annotated[Role, typer.Option(help="What the bearer may do.")],
    user: Annotated[str | None, typer.Option(metavar="ID", help="The bearer's id; a new user where left out.")] = None,
    tier: Annotated[list[str] | None, typer.Option(metavar="NAME", help="A membership tier; may be repeated.")] = None,
    ttl: Annotated[int, typer.Option(metavar="S", min=1, help="Life of the token in seconds.")] = TOKEN_TTL_S,
    data: Data = None,
    json: Json = False,
) -> None:
    """Sign a token for a user of an organization. A user not yet known is made."""
    organization_id = id_of("--organization", organization)
    user_id = None if user is None else id_of("--user", user)

    async def issue(settings: Settings) -> Any:
        async with opened(settings) as application:
            return await application.services.accounts.issue_token(organization_id, role, user_id, tier or (), ttl)

    with deployed(settings_for(data)) as deployment:
        issued = asyncio.run(issue(deployment.settings))
    _print({"user_id": str(issued.user_id), "token": issued.token, "expires_at": issued.expires_at.isoformat()}, json)


def _print(fields: dict[str, Any], json: bool) -> None:
    if json:
        print_json(fields)
        return
    width = max(map(len, fields))
    for name, value in fields.items():
        typer.echo(f"{name:<{width}}  {value}")
