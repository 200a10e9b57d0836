"""PostgreSQL on a data folder, reached through a unix socket only."""

import os
import signal
import struct
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from holdfast.store.embedded.accounts import Account, give_folder
from holdfast.store.embedded.binaries import (
    postgres_has_library,
    postgres_major_version,
    postgres_programs,
    postgres_supports_lz4,
    program_for,
)
from holdfast.store.embedded.errors import (
    StartedByOtherMeansError,
    UnknownContentsError,
    WrongMajorVersionError,
)
from holdfast.store.embedded.folder import sync_folder
from holdfast.store.embedded.processes import ProcessIdentity, processes_titled, program_name, works_in
from holdfast.store.embedded.supervisor import (
    WORKING_FOLDER,
    EmbeddedServer,
    Setting,
    ask,
    make_home,
    remove_tree,
)

OWNER = "holdfast_owner"
PORT = 5432
_SOCKET_NAME = f".s.PGSQL.{PORT}"
_SSL_REQUEST = struct.pack("!ii", 8, 80877103)

DEFAULT_SETTINGS: Mapping[str, Setting] = {
    "max_connections": 200,
    "shared_buffers": "256MB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "15min",
    "checkpoint_completion_target": 0.9,
    "jit": False,
    "random_page_cost": 1.1,
    "autovacuum": True,
    "autovacuum_naptime": "15s",
    "autovacuum_vacuum_scale_factor": 0.02,
    "autovacuum_vacuum_insert_scale_factor": 0.05,
    "autovacuum_analyze_scale_factor": 0.02,
    "track_io_timing": False,
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_min_messages": "warning",
}

# A seat once sold stays sold through any crash; and nobody but the folder's owner can connect.
FIXED_SETTINGS: Mapping[str, Setting] = {
    "fsync": True,
    "synchronous_commit": True,
    "full_page_writes": True,
    "listen_addresses": "",
    "port": PORT,
    "unix_socket_permissions": "0700",
    "logging_collector": False,
    "log_destination": "stderr",
}


@dataclass(frozen=True)
class PostgresAddress:
    socket_dir: str
    port: int

    def dsn(self, user: str, database: str) -> str:
        host = quote(self.socket_dir, safe="/")
        return f"postgresql://{quote(user, safe='')}@/{quote(database, safe='')}?host={host}&port={self.port}"

    def client_environment(self, user: str, database: str) -> dict[str, str]:
        """The present environment, with what makes psql, pgbench and the like connect here."""
        here = {
            "PGHOST": self.socket_dir,
            "PGPORT": str(self.port),
            "PGUSER": user,
            "PGDATABASE": database,
        }
        others = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return {**others, **here}


class PostgresServer(EmbeddedServer[PostgresAddress]):
    """Settings given override `DEFAULT_SETTINGS`, but never `FIXED_SETTINGS`."""

    name: ClassVar[str] = "postgres"
    title: ClassVar[str] = "PostgreSQL"
    last_resort: ClassVar[signal.Signals] = signal.SIGQUIT

    def _prepare(self, account: Account | None, lock: int) -> None:
        home = self._folder.home
        if _holds_database(home):
            _require_our_major_version(home)
            give_folder(home, account)
            _clear_stale_pid_files(home)
        else:
            self._create_database(account, lock)

    def _create_database(self, account: Account | None, lock: int) -> None:
        """Runs initdb beside the final place, so that a half-made database is never taken for a whole one."""
        unfinished = self._folder.root / f"{self.name}.initdb"
        remove_tree(unfinished)
        make_home(unfinished, account)
        initdb = program_for(account, postgres_programs()).with_name("initdb")
        self._run_to_end([str(initdb), *_initdb_options()], unfinished, account, lock)
        unfinished.rename(self._folder.home)
        sync_folder(self._folder.root)

    def _command(self, account: Account | None, socket_dir: str) -> Sequence[str]:
        in_home = socket_dir == str(self._folder.home)
        settings = _merged(self._settings) | {
            "unix_socket_directories": WORKING_FOLDER if in_home else socket_dir,
            "cluster_name": _cluster_name(self._folder.home),
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={_spelled(value)}")]
        return [str(program_for(account, postgres_programs())), "-D", WORKING_FOLDER, *options]

    def _remains(self) -> list[int]:
        home = self._folder.home
        if not home.exists():
            return []
        return processes_titled(f"postgres: {_cluster_name(home)}: ", home.stat().st_uid)

    def _socket_name(self) -> str:
        return _SOCKET_NAME

    def _address_at(self, socket_dir: str) -> PostgresAddress:
        return PostgresAddress(socket_dir, PORT)

    def _is_ready(self, socket_dir: str, pid: int) -> bool:
        return _accepts_connections(self._folder.home, socket_dir, pid)


def find_running(data_dir: str | os.PathLike[str]) -> PostgresAddress | None:
    """Where the server running on the folder can be reached, if one runs and accepts connections."""
    return PostgresServer(data_dir).find_running()


def running_postgres(
    data_dir: str | os.PathLike[str], settings: Mapping[str, Setting] | None = None
) -> AbstractContextManager[PostgresAddress]:
    """The server running on the folder, left running at exit; or one started for the duration."""
    return PostgresServer(data_dir, settings).attached_or_started()


def _initdb_options() -> list[str]:
    return [
        *("-D", WORKING_FOLDER),
        *("-U", OWNER),
        *("-E", "UTF8"),
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--auth=trust",
        "--no-instructions",
    ]


def _merged(wanted: Mapping[str, Setting]) -> dict[str, Setting]:
    optional: dict[str, Setting] = {}
    if postgres_supports_lz4():
        optional["wal_compression"] = "lz4"
    if postgres_has_library("pg_stat_statements"):
        optional["shared_preload_libraries"] = "pg_stat_statements"
    # PostgreSQL takes any spelling of a name, so a fixed one must not slip through in capitals.
    chosen = {name.lower().replace("-", "_"): value for name, value in wanted.items()}
    return {**DEFAULT_SETTINGS, **optional, **chosen, **FIXED_SETTINGS}


def _cluster_name(home: Path) -> str:
    """Part of the titles of all the server's processes, which tells them from others when it is dead."""
    folder = home.stat()
    return f"holdfast-{folder.st_dev:x}-{folder.st_ino:x}"


def _spelled(value: Setting) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def _holds_database(home: Path) -> bool:
    if (home / "PG_VERSION").exists():
        return True
    if home.exists() and any(home.iterdir()):
        raise UnknownContentsError(f"{home} holds files but no database: move it away, or choose another data folder.")
    return False


def _require_our_major_version(home: Path) -> None:
    theirs = (home / "PG_VERSION").read_text(errors="replace").strip()
    ours = postgres_major_version()
    if theirs != str(ours):
        raise WrongMajorVersionError(
            f"{home} was made by PostgreSQL {theirs}, and this is PostgreSQL {ours}: dump it with version "
            f"{theirs} and load the dump into a new data folder, or choose another data folder."
        )


def _clear_stale_pid_files(home: Path) -> None:
    """Removes pid files whose pid now belongs to something else, which PostgreSQL cannot tell by itself.

    This is common in containers, where the same few pids come back at each start. Where the pid is
    free, the files are left for PostgreSQL, which then looks for other remains of the server, too.
    """
    pid = _recorded_pid(home)
    if pid is None or not _pid_exists(pid):
        return
    if ProcessIdentity.of(pid) and program_name(pid) == "postgres" and works_in(pid, home) is not False:
        raise StartedByOtherMeansError(
            f"{home} is in use by a PostgreSQL started by other means, process {pid}: "
            "stop it, or choose another data folder.",
            pid,
        )
    for name in ("postmaster.pid", f"{_SOCKET_NAME}.lock"):
        (home / name).unlink(missing_ok=True)


def _recorded_pid(home: Path) -> int | None:
    with suppress(OSError, ValueError, IndexError):
        return abs(int((home / "postmaster.pid").read_text().split()[0]))
    return None


def _pid_exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _accepts_connections(home: Path, socket_dir: str, pid: int) -> bool:
    if _recorded_pid(home) != pid or _recorded_status(home) != "ready":
        return False
    return ask(f"{socket_dir}/{_SOCKET_NAME}", pid, _SSL_REQUEST, 1) in (b"N", b"S")


def _recorded_status(home: Path) -> str | None:
    with suppress(OSError, IndexError):
        return (home / "postmaster.pid").read_text().splitlines()[7].strip()
    return None
