"""The files one server keeps in the data folder: DIR/NAME/, DIR/NAME.lock, DIR/NAME.state, DIR/NAME.log."""

import errno
import fcntl
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from holdfast.store.embedded.accounts import Account
from holdfast.store.embedded.errors import AlreadyRunningError, NotAFolderError, NotWritableError
from holdfast.store.embedded.processes import ProcessIdentity

# A socket's address holds 108 bytes, the last of which is a zero.
MAX_SOCKET_PATH = 107
_LOG_ROTATION_SIZE = 10 * 1024 * 1024
_LOG_TAIL_SIZE = 8192
_PRIVATE_FOLDER_PREFIX = "holdfast-"
_LOCK_POLL_SECONDS = 0.01


@dataclass(frozen=True)
class ServerState:
    """Who runs the server, and where its socket is, for other processes to find."""

    supervisor: ProcessIdentity
    server: ProcessIdentity | None
    socket_dir: str

    def surely_in_use(self) -> bool:
        """False as soon as one of the two has died: the server's remains will then end by themselves."""
        return self.supervisor.alive() and (self.server is None or self.server.alive())


class ServerFolder:
    def __init__(self, data_dir: str | os.PathLike[str], name: str) -> None:
        self.root = Path(data_dir).expanduser().resolve()
        self.name = name
        self.home = self.root / name
        self.log = self.root / f"{name}.log"
        self._lock = self.root / f"{name}.lock"
        self._state = self.root / f"{name}.state"

    def create(self) -> None:
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        except (FileExistsError, NotADirectoryError):
            raise not_a_folder(self.root) from None
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise not_writable(self.root) from None
            raise
        if not os.access(self.root, os.R_OK | os.W_OK | os.X_OK):
            raise not_writable(self.root)
        if self.home.exists() and not self.home.is_dir():
            raise not_a_folder(self.home)

    def take_lock(self, patience: float, end_remains: Callable[[], None]) -> int:
        """Takes the lock which the server will inherit, so that it is held as long as a server process lives.

        Remains of a server whose supervisor died get time to end: `end_remains` is called meanwhile.
        """
        lock = self._open_own_file(self._lock, os.O_RDWR)
        deadline = time.monotonic() + patience
        try:
            while not _lock_at_once(lock):
                state = self.read_state()
                if (state is not None and state.surely_in_use()) or time.monotonic() > deadline:
                    raise self._already_running(state)
                end_remains()
                time.sleep(_LOCK_POLL_SECONDS)
        except BaseException:
            os.close(lock)
            raise
        return lock

    def _already_running(self, state: ServerState | None) -> AlreadyRunningError:
        server = state.server if state is not None else None
        pid = server.pid if server is not None else None
        who = f"server process {pid}" if pid is not None else "a server being started"
        if state is not None:
            who += f", run by process {state.supervisor.pid}"
        return AlreadyRunningError(
            f"{self.home} is in use by {who}: connect to it, stop it, or choose another data folder.", pid
        )

    def read_state(self) -> ServerState | None:
        try:
            fields = json.loads(self._state.read_text())
            server = fields["server"]
            return ServerState(
                supervisor=ProcessIdentity(**fields["supervisor"]),
                server=ProcessIdentity(**server) if server is not None else None,
                socket_dir=str(fields["socket_dir"]),
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write_state(self, state: ServerState) -> None:
        unfinished = self._state.with_suffix(".state.new")
        unfinished.unlink(missing_ok=True)
        with open(self._open_own_file(unfinished, os.O_WRONLY), "w") as file:
            file.write(json.dumps(asdict(state)))
        unfinished.replace(self._state)

    def forget_state(self) -> None:
        """Removes the state, and the private socket folder which it tells of."""
        state = self.read_state()
        if state is not None:
            self.remove_socket_folder(state.socket_dir)
        self._state.unlink(missing_ok=True)

    def open_log(self) -> int:
        """Opens the log to append; since nothing but appending happens, it may be truncated at any time."""
        with suppress(FileNotFoundError):
            if self.log.stat().st_size > _LOG_ROTATION_SIZE:
                self.log.replace(self.log.with_suffix(".log.1"))
        return self._open_own_file(self.log, os.O_WRONLY | os.O_APPEND)

    def _open_own_file(self, path: Path, flags: int) -> int:
        """Opens a file of ours; when root creates it in a user's folder, it is the user's.

        That user may not make root write elsewhere, either: links are not followed.
        """
        flags |= os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            file = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return os.open(path, flags)
        if os.geteuid() == 0:
            owner = self.root.stat()
            os.fchown(file, owner.st_uid, owner.st_gid)
        return file

    def log_tail(self, since: int, lines: int = 5) -> str:
        """The log's last lines written after the offset, as one line."""
        with suppress(OSError), self.log.open("rb") as log:
            log.seek(max(since, self.log.stat().st_size - _LOG_TAIL_SIZE))
            written = log.read().decode(errors="replace").splitlines()
            return " | ".join([line.strip() for line in written if line.strip()][-lines:])
        return ""

    def choose_socket_folder(self, socket_name: str, account: Account | None) -> str:
        """The server's own folder if clients can use that path, else a short private one."""
        path = str(self.home / socket_name)
        # A comma would make clients see a list of hosts.
        if path.isprintable() and "," not in path and len(os.fsencode(path)) <= MAX_SOCKET_PATH:
            return str(self.home)
        folder = tempfile.mkdtemp(prefix=_PRIVATE_FOLDER_PREFIX, dir=_short_folder())
        if account is not None:
            os.chown(folder, account.uid, account.gid)
        return folder

    def remove_socket_folder(self, folder: str) -> None:
        if folder != str(self.home) and Path(folder).name.startswith(_PRIVATE_FOLDER_PREFIX):
            shutil.rmtree(folder, ignore_errors=True)


def not_a_folder(path: Path) -> NotAFolderError:
    culprit = next((p for p in (path, *path.parents) if p.exists() and not p.is_dir()), path)
    return NotAFolderError(f"{culprit} is not a folder: move it away, or choose another data folder.")


def not_writable(path: Path) -> NotWritableError:
    return NotWritableError(
        f"{path} cannot be written by this user: give it to this user (chown), run as its owner or as root, "
        "or choose another data folder."
    )


def not_own(path: Path) -> NotWritableError:
    return NotWritableError(
        f"{path} belongs to another user (uid {path.stat().st_uid}): run as that user or as root, "
        "or choose another data folder."
    )


def sync_folder(folder: Path) -> None:
    """Makes a rename in the folder last through a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _lock_at_once(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _short_folder() -> str:
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    # Root's runtime folder is closed to the account the server runs under.
    if os.geteuid() != 0 and 0 < len(os.fsencode(runtime)) < 60 and os.access(runtime, os.W_OK | os.X_OK):
        return runtime
    return "/tmp"  # noqa: S108 - only ever used through mkdtemp
