"""The command `holdfast`. Each command is a file in `commands`; what can go wrong becomes one line here."""

import importlib
import signal
import sys
from types import FrameType
from typing import NoReturn

import asyncpg
import typer

from holdfast.logs import without_password

_COMMANDS = {
    "demo": "demo",
    "serve": "serve",
    "work": "serve",
    "migrate": "schema",
    "doctor": "doctor",
    "bootstrap": "organization",
    "token": "organization",
    "user": "user",
    "layout": "layout",
    "event": "event",
    "report": "report",
    "registry": "registry",
    "simulate": "simulate",
    "bench": "bench",
    "faults": "faults",
}
"""Each command with its module. Only the one that is called is imported: some carry the whole server with them."""

INTERRUPTED = 130


def build_app(called: str | None = None) -> typer.Typer:
    """With the called command alone, or (none, or no such command) with all of them."""
    app = typer.Typer(
        name="holdfast",
        help="Holdfast holds a seat for one buyer for a few minutes, and never sells it twice.",
        epilog="Example: holdfast demo",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_holdfast)
    for module in [_COMMANDS[called]] if called in _COMMANDS else dict.fromkeys(_COMMANDS.values()):
        importlib.import_module(f"holdfast.commands.{module}").add_to(app)
    return app


def _holdfast() -> None:
    """Holdfast holds a seat for one buyer for a few minutes, and never sells it twice."""


def main() -> NoReturn:
    """Exit status: 0 done, 1 failed, 2 not understood, 130 interrupted."""
    signal.signal(signal.SIGTERM, _terminated)
    try:
        status = build_app(sys.argv[1] if len(sys.argv) > 1 else None)(standalone_mode=False)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:
        message, status = _explained(error)
        if message:
            typer.echo(f"holdfast: {_one_line(message)}", err=True)
    sys.exit(status if isinstance(status, int) else 0)


def _terminated(_number: int, _frame: FrameType | None) -> None:
    """An exit that unwinds, so that what was started is stopped."""
    sys.exit(128 + signal.SIGTERM)


def _explained(error: Exception) -> tuple[str, int]:
    """A sentence, and the exit status."""
    if isinstance(error, _our_errors()):
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
    if isinstance(error, ConnectionError | TimeoutError):
        return f"no connection to the database ({error}): does it run, and is HOLDFAST_DATABASE_URL right?", 1
    if isinstance(error, OSError):
        return f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""), 1
    if type(error).__name__ == "NoArgsIsHelpError":  # the help was printed instead
        return "", 2
    if hasattr(error, "format_message"):  # the command line itself was wrong
        context = getattr(error, "ctx", None)
        where = f"; see {context.command_path} --help" if context is not None else ""
        return f"{error.format_message().rstrip('.')}{where}", int(getattr(error, "exit_code", 2))
    return f"this should not have happened: {type(error).__name__}: {error}", 1


def _our_errors() -> tuple[type[Exception], ...]:
    """Those whose own words are a sentence for the user."""
    from holdfast.accounts.credentials import SecretsInvalid
    from holdfast.commands.options import CommandFailed
    from holdfast.deployment import SchemaBehind
    from holdfast.kernel.errors import Refusal
    from holdfast.kernel.problems import DocumentInvalid
    from holdfast.server import AddressTaken
    from holdfast.server_processes import ServerProcessFailed
    from holdfast.settings import SettingsInvalid
    from holdfast.store.embedded import EmbeddedServerError
    from holdfast.store.postgres.migrate import MigrationError

    return (
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


def _one_line(message: str) -> str:
    return without_password("; ".join(line.strip() for line in message.splitlines() if line.strip()))
