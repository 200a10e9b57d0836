"""The account a server runs under: PostgreSQL refuses to run as root."""

import os
import pwd
import shutil
from dataclasses import dataclass
from pathlib import Path

from holdfast.store.embedded.errors import BinariesMissingError

_SERVICE_ACCOUNTS = ("postgres", "nobody")

# `setpriv` asks the kernel for the signal only once it runs. If our process died before that, no signal
# would ever come, so the server is not started at all unless our process is still its parent.
_EXEC_IF_PARENT_LIVES = 'test "$PPID" = "$0" && exec "$@"'


@dataclass(frozen=True)
class Account:
    """A user and group to switch to before running a server."""

    uid: int
    gid: int

    @property
    def name(self) -> str:
        try:
            return pwd.getpwuid(self.uid).pw_name
        except KeyError:
            return str(self.uid)


def account_for(home: Path) -> Account | None:
    """The account to run the server of this folder under; None when it is simply our own.

    Root keeps an existing folder's owner, so that a user's own data stays usable by that user.
    """
    if os.geteuid() != 0:
        return None
    try:
        owner = home.stat()
    except FileNotFoundError:
        return _service_account()
    return Account(owner.st_uid, owner.st_gid) if owner.st_uid != 0 else _service_account()


def give_folder(folder: Path, account: Account | None) -> None:
    """Makes our own server folder, with all its contents, belong to the account."""
    if account is None or folder.stat().st_uid == account.uid:
        return
    # The top goes last: an interrupted hand-over is then seen and repeated at the next start.
    for _, folders, files, here in os.fwalk(folder, topdown=False):
        for name in (*folders, *files):
            os.chown(name, account.uid, account.gid, dir_fd=here, follow_symlinks=False)
    os.chown(folder, account.uid, account.gid)


def switch_prefix(account: Account | None) -> list[str]:
    """The words which, put before a command, run it under the account."""
    if account is None:
        return []
    # `setpriv` itself still has root's right to run any file; a shell started by it has not.
    return [_setpriv(), *_switch_options(account), "--", "/bin/sh", "-c", 'exec "$@"', "sh"]


def supervised_prefix(account: Account | None) -> list[str]:
    """Like `switch_prefix`; the command moreover gets SIGINT when the thread which forked it ends."""
    options = [*_switch_options(account), "--pdeathsig", "INT"]
    return [_setpriv(), *options, "--", "/bin/sh", "-c", _EXEC_IF_PARENT_LIVES, str(os.getpid())]


def _switch_options(account: Account | None) -> list[str]:
    if account is None:
        return []
    return ["--reuid", str(account.uid), "--regid", str(account.gid), "--clear-groups"]


def _service_account() -> Account:
    for name in _SERVICE_ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid)
    raise BinariesMissingError(
        "Root may not run PostgreSQL, and there is no user 'postgres' or 'nobody' to run it as: "
        "create one of them, or run this command as an ordinary user."
    )


def _setpriv() -> str:
    path = shutil.which("setpriv")
    if path is None:
        raise BinariesMissingError("The program 'setpriv' was not found: install the package util-linux.")
    return path
