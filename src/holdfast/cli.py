"""The command `holdfast`. Each command is a file in `commands`; what can go wrong becomes one line here."""

import signal
import sys
from types import FrameType
from typing import NoReturn

import asyncpg
import typer

from holdfast.accounts.credentials import SecretsInvalid
from holdfast.commands import bench, demo, doctor, event, layout, organization, schema, serve, simulate
from holdfast.commands.options import CommandFailed
from holdfast.deployment import SchemaBehind
from holdfast.kernel.errors import Refusal
from holdfast.kernel.problems import DocumentInvalid
from holdfast.logs import without_password
from holdfast.server import AddressTaken
from holdfast.server_processes import ServerProcessFailed
from holdfast.settings import SettingsInvalid
from holdfast.store.embedded import EmbeddedServerError
from holdfast.store.postgres.migrate import MigrationError

app = typer.Typer(
    name="holdfast",
    help="Holdfast holds a seat for one buyer for a few minutes, and never sells it twice.",
    epilog="Example: holdfast demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
demo.add_to(app)
serve.add_to(app)
schema.add_to(app)
doctor.add_to(app)
organization.add_to(app)
layout.add_to(app)
event.add_to(app)
simulate.add_to(app)
bench.add_to(app)

_OUR_ERRORS = (
    CommandFailed,
    SettingsInvalid,
    SecretsInvalid,
    SchemaBehind,
    EmbeddedServerError,
    MigrationError,
    Refusal,
    DocumentInvalid,
    AddressTaken,
    ServerProcessFailed,
)
INTERRUPTED = 130


def main() -> NoReturn:
    """Exit status: 0 done, 1 failed, 2 not understood, 130 interrupted."""
    signal.signal(signal.SIGTERM, _terminated)
    try:
        status = app(standalone_mode=False)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:
        message, status = _explained(error)
        typer.echo(f"holdfast: {_one_line(message)}", err=True)
    sys.exit(status if isinstance(status, int) else 0)


def _terminated(_number: int, _frame: FrameType | None) -> None:
    """An exit that unwinds, so that what was started is stopped."""
    sys.exit(128 + signal.SIGTERM)


def _explained(error: Exception) -> tuple[str, int]:
    """A sentence, and the exit status."""
    if isinstance(error, _OUR_ERRORS):
        return str(error), 1
    if isinstance(error, asyncpg.InvalidPasswordError | asyncpg.InvalidAuthorizationSpecificationError):
        return f"the database does not let us in ({error}): check user and password in HOLDFAST_DATABASE_URL", 1
    if isinstance(error, asyncpg.InsufficientPrivilegeError):
        owner = "give the schema owner's address in HOLDFAST_ADMIN_DATABASE_URL"
        return f"the database role may not do this ({error}): {owner}", 1
    if isinstance(error, asyncpg.InvalidCatalogNameError):
        return f"{error}: create the database first, or correct HOLDFAST_DATABASE_URL", 1
    if isinstance(error, asyncpg.PostgresError):
        return f"the database refused: {error}", 1
    if isinstance(error, OSError):
        return f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""), 1
    if hasattr(error, "format_message"):  # the command line itself was wrong
        context = getattr(error, "ctx", None)
        where = f"; see {context.command_path} --help" if context is not None else ""
        return f"{error.format_message()}{where}", int(getattr(error, "exit_code", 2))
    return f"this should not have happened: {type(error).__name__}: {error}", 1


def _one_line(message: str) -> str:
    return without_password("; ".join(line.strip() for line in message.splitlines() if line.strip()))
