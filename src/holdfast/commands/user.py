"""`holdfast user`: the people of an organization who sign in with a password."""

import asyncio
import getpass
import sys
from typing import Annotated, Any

import msgspec
import typer

from holdfast.accounts.principal import Role
from holdfast.accounts.sign_in import MAY_SIGN_IN
from holdfast.accounts.sign_in_service import require_password
from holdfast.commands.operator import opened, operator_call
from holdfast.commands.options import Data, Json, Organization, fail, id_of, print_json, settings_for
from holdfast.deployment import deployed
from holdfast.settings import Settings

READ_MAX = 4096

Email = Annotated[str, typer.Option("--email", metavar="ADDRESS", help="What the user signs in with.")]
PasswordStdin = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from standard input: its first line.")
]


def add_to(app: typer.Typer) -> None:
    user = typer.Typer(
        name="user",
        help="Add people who sign in to the dashboard, and set their passwords.",
        epilog="Example: holdfast user create --organization 0198c0de-0000-7000-8000-000000000001"
        " --email ann@example.org --role organizer",
        no_args_is_help=True,
    )
    user.command(
        "create",
        epilog="Example: holdfast user create --organization 0198c0de-0000-7000-8000-000000000001"
        " --email ann@example.org --role organizer --password-stdin < password.txt",
    )(create)
    user.command(
        "password",
        epilog="Example: holdfast user password --organization 0198c0de-0000-7000-8000-000000000001"
        " --email ann@example.org",
    )(password)
    app.add_typer(user)


def create(
    organization: Organization,
    email: Email,
    role: Annotated[Role, typer.Option(help="What the user may do.")],
    name: Annotated[str | None, typer.Option(metavar="NAME", help="How the user is shown.")] = None,
    password_stdin: PasswordStdin = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Add a user to an organization; with --password-stdin one who can sign in at once."""
    organization_id = id_of("--organization", organization)
    address = _address(email)
    secret = _read_line() if password_stdin else None
    if secret is not None:
        if role not in MAY_SIGN_IN:
            fail("only staff sign in with a password: choose another --role, or leave out --password-stdin")
        require_password(secret, address)

    async def make(settings: Settings) -> Any:
        async with opened(settings) as application:
            call = await operator_call(application, organization_id)
            principal = msgspec.structs.replace(call.principal, role=Role.SUPERADMIN)  # an operator may give any role
            member = await application.services.accounts.create_user(
                msgspec.structs.replace(call, principal=principal), role=role, email=address, display_name=name
            )
            if secret is not None:
                await application.services.sign_ins.set_password_as_operator(organization_id, address, secret)
            return member

    with deployed(settings_for(data)) as deployment:
        member = asyncio.run(make(deployment.settings))
    said = {
        "user_id": str(member.id),
        "organization_id": str(organization_id),
        "email": member.email,
        "role": member.role.value,
        "has_password": secret is not None,
    }
    if json:
        print_json(said)
    else:
        how = "can sign in" if secret is not None else "has no password yet: set one with holdfast user password"
        typer.echo(f"{member.email} ({member.role.value}, {member.id}) {how}.")


def password(
    organization: Organization,
    email: Email,
    password_stdin: PasswordStdin = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Set a user's password, and sign them out everywhere. Asks for it, unless --password-stdin is given."""
    organization_id = id_of("--organization", organization)
    address = _address(email)
    secret = _read_line() if password_stdin else _ask()
    require_password(secret, address)

    async def store(settings: Settings) -> Any:
        async with opened(settings) as application:
            await operator_call(application, organization_id)  # says if there is no such organization
            return await application.services.sign_ins.set_password_as_operator(organization_id, address, secret)

    with deployed(settings_for(data)) as deployment:
        user_id = asyncio.run(store(deployment.settings))
    if json:
        print_json({"user_id": str(user_id), "organization_id": str(organization_id), "email": address})
    else:
        typer.echo(f"The password of {address} is set; all of their browsers are signed out.")


def _address(email: str) -> str:
    address = email.strip()
    name, at, host = address.partition("@")
    if not (name and at and host) or any(character.isspace() for character in address):
        fail(f"--email must be an e-mail address, not {email!r}")
    return address


def _read_line() -> str:
    line = sys.stdin.readline(READ_MAX).rstrip("\r\n")
    if not line:
        fail("there is no password on standard input")
    return line


def _ask() -> str:
    if not sys.stdin.isatty():
        fail("there is no terminal to ask for the password: write it to standard input with --password-stdin")
    first = getpass.getpass("New password: ")
    if getpass.getpass("Again: ") != first:
        fail("the two are not the same: nothing was changed")
    return first
