"""What the commands' options have in common."""

from typing import Annotated, Any, NoReturn
from uuid import UUID

import msgspec
import typer

from holdfast.kernel.ids import parse_id
from holdfast.settings import Settings, load_settings

Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="DIR",
        envvar="HOLDFAST_DATA",
        show_envvar=False,
        help="Data folder of the embedded PostgreSQL; also HOLDFAST_DATA. Where neither is given:"
        " ~/.local/share/holdfast, for root /var/lib/holdfast.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Answer as JSON, for programs.")]
Organization = Annotated[str, typer.Option("--organization", metavar="ID", help="The organization's id.")]


class CommandFailed(Exception):
    """A sentence for the user; the command ends with status 1."""


def fail(sentence: str) -> NoReturn:
    raise CommandFailed(sentence)


def settings_for(data: str | None, **overrides: Any) -> Settings:
    return load_settings(data=data, **overrides)


def id_of(name: str, text: str) -> UUID:
    found = parse_id(text)
    if found is None:
        fail(f"{name} must be a UUID, not {text!r}")
    return found


def print_json(value: Any) -> None:
    typer.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
