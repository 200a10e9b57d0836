"""The command line as its users meet it: real processes, real signals, one line when something is wrong."""

import asyncio
import base64
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
import pytest
from typer.testing import CliRunner

from holdfast.cli import build_app
from holdfast.deployment import DATABASE
from holdfast.store.embedded import OWNER, find_running
from tests.conftest import TestDatabase

HOLDFAST = [sys.executable, "-m", "holdfast"]
COMMANDS = [
    "demo",
    "serve",
    "work",
    "migrate",
    "doctor",
    "bootstrap",
    "token",
    "user",
    "user create",
    "user password",
    "layout",
    "layout validate",
    "layout import",
    "layout export",
    "layout draw",
    "event",
    "event show",
    "report",
    "simulate",
    "bench",
]
READY = re.compile(r"Holdfast is serving on (http://127\.0\.0\.1:\d+) \(data: .+, pid (\d+)\)")
PATIENCE_S = 60


def environment(**more: str) -> dict[str, str]:
    """Without what the machine's user may have set."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    return kept | {"NO_COLOR": "1", "COLUMNS": "200"} | more


def holdfast(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*HOLDFAST, *words], env=environment(**more), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def answered(*words: str) -> Any:
    done = holdfast(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1, (done.stdout, done.stderr)
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("holdfast: ")
    return lines[0]


def processes_of(folder: Path) -> list[str]:
    """Everything that works in the folder, was told of it, or was started on behalf of somebody who was."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with suppress(OSError):
            told = (entry / "cmdline").read_bytes() + b"\0" + (entry / "environ").read_bytes()
            here = str((entry / "cwd").readlink())
            if os.fsencode(folder) in told or here.startswith(str(folder)):
                found.append(f"{entry.name} {told[:100]!r}")
    return found


def await_no_processes(folder: Path, patience_s: float = 10) -> None:
    deadline = time.monotonic() + patience_s
    while left := processes_of(folder):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


class Server:
    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.log = (folder.parent / "server.log").open("w+")
        self.process = subprocess.Popen(
            [*HOLDFAST, "serve", "--port", "0", "--data", str(folder), *options],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        ready = READY.match(self.process.stdout.readline())
        assert ready is not None, (folder.parent / "server.log").read_text()
        self.url = ready[1]
        assert int(ready[2]) == self.process.pid

    def get(self, path: str) -> tuple[int, Any]:
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:
            return answer.status, json.loads(answer.read())

    def send(self, method: str, path: str, body: Any = None, token: str | None = None) -> tuple[int, Any]:
        request = urllib.request.Request(
            self.url + path,
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={"content-type": "application/json"} | ({"authorization": f"Bearer {token}"} if token else {}),
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)

    def children(self) -> list[int]:
        pid = self.process.pid
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [int(p) for p in listed if b"server_process" in Path(f"/proc/{p}/cmdline").read_bytes()]


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Server]:
    server = Server(folder, *options)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
        server.process.wait()
        server.log.close()
        await_no_processes(folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where nothing is yet."""
    return tmp_path / "data"


class Begun(NamedTuple):
    folder: Path
    made: dict[str, str]


@pytest.fixture(scope="module")
def bootstrapped(tmp_path_factory: pytest.TempPathFactory) -> Begun:
    folder = tmp_path_factory.mktemp("bootstrapped") / "data"
    made = answered("bootstrap", "--organization", "City", "--tenant", "Group", "--data", str(folder))
    await_no_processes(folder)
    return Begun(folder, made)


@pytest.fixture
def begun(bootstrapped: Begun, tmp_path: Path) -> Begun:
    """A data folder with a database in it and an organization in that; copying one is quicker than making one."""
    folder = tmp_path / "data"
    subprocess.run(["cp", "-a", str(bootstrapped.folder), str(folder)], check=True)
    return Begun(folder, bootstrapped.made)


def layout_file(folder: Path, **changes: Any) -> str:
    seats = [{"seat_id": f"A-{n}", "row": "A", "number": n} for n in (1, 2, 3)]
    zone = {"zone_id": "stalls", "name": "Stalls", "zone_type": "reserved_seating", "capacity": 3, "seats": seats}
    path = folder / "layout.json"
    path.write_text(json.dumps({"zones": [{**zone, "access_mode": "public", **changes}]}))
    return str(path)


# Help and mistakes -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str) -> None:
    words = command.split()
    done = CliRunner().invoke(build_app(words[0]), [*words, "--help"], env={"COLUMNS": "200"})
    assert done.exit_code == 0
    assert f"Example: holdfast {words[0]}" in done.output
    if command not in ("layout", "event", "user"):
        assert "--data" in done.output


def test_all_commands_are_listed() -> None:
    done = CliRunner().invoke(build_app(), ["--help"], env={"COLUMNS": "200"})
    assert all(re.search(rf"^\W+{command} ", done.output, re.MULTILINE) for command in COMMANDS if " " not in command)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nonsense"], "No such command"),
        (["serve", "--port", "many"], "--port"),
        (["token", "--role", "admin"], "--organization"),
    ],
)
def test_a_wrong_command_line_is_said_in_one_line(words: list[str], said: str) -> None:
    done = holdfast(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_wrong_settings_are_said_in_one_line_each_with_what_to_write() -> None:
    line = one_line(holdfast("migrate", HOLDFAST_DATABASE_POOL="0", HOLDFAST_LOG_LEVEL="loud"))
    assert "HOLDFAST_DATABASE_POOL" in line
    assert "HOLDFAST_LOG_LEVEL" in line


def test_a_database_that_is_not_there_is_one_line_without_its_password(folder: Path) -> None:
    url = "postgresql://app:geheim@127.0.0.1:9/holdfast"
    line = one_line(holdfast("migrate", "--data", str(folder), HOLDFAST_DATABASE_URL=url))
    assert "geheim" not in line
    assert "HOLDFAST_DATABASE_URL" in line


def test_a_port_in_use_is_one_line_and_nothing_is_started(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        line = one_line(holdfast("serve", "--port", port, "--data", str(folder)))
    assert f"port {port}" in line
    assert not folder.exists()


# Organizations and tokens ----------------------------------------------------------------------------------------
def test_bootstrap_and_token_answer_what_programs_need(begun: Begun) -> None:
    folder, made = begun
    assert list(made) == [
        "tenant_id",
        "organization_id",
        "admin_user_id",
        "admin_token",
        "api_key",
        "tenant_api_key",
    ]
    user = "0198c0de-0000-7000-8000-000000000001"
    words = ["token", "--organization", made["organization_id"], "--role", "organizer", "--user", user]
    issued = answered(*words, "--tier", "gold", "--tier", "silver", "--ttl", "60", "--data", str(folder))
    assert issued["user_id"] == user
    claims = json.loads(base64.urlsafe_b64decode(issued["token"].split(".")[1] + "=="))
    assert (claims["role"], claims["tiers"], claims["exp"] - claims["iat"]) == ("organizer", ["gold", "silver"], 60)
    assert (folder / "jwt-secrets").stat().st_mode & 0o777 == 0o600
    await_no_processes(folder)


def test_a_token_for_an_organization_that_does_not_exist_is_refused_in_one_line(begun: Begun) -> None:
    nobody = "0198c0de-0000-7000-8000-000000000009"
    line = one_line(holdfast("token", "--organization", nobody, "--role", "admin", "--data", str(begun.folder)))
    assert "no such organization" in line


# Serving ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_answers_and_stops_on_a_signal_leaving_no_process(begun: Begun, number: signal.Signals) -> None:
    folder = begun.folder
    with serving(folder) as server:
        assert server.get("/healthz") == (200, {"status": "ok"})
        ready = {"status": "ready", "database": "ok", "feed": "fresh", "warm": "ok"}
        deadline = time.monotonic() + 10
        while (answer := server.get("/readyz")) != (200, ready) and time.monotonic() < deadline:
            time.sleep(0.1)  # the tiers come a moment after the door is open
        assert answer == (200, ready)
        assert server.end(number) == 0
        await_no_processes(folder, 1)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_killing_serve_leaves_no_process_after_a_few_seconds(begun: Begun, workers: str) -> None:
    folder = begun.folder
    with serving(folder, "--workers", workers) as server:
        server.end(signal.SIGKILL)
        await_no_processes(folder)


def test_what_one_command_makes_another_finds_while_serving_and_after_a_restart(begun: Begun) -> None:
    folder, made = begun
    organization, data = ["--organization", made["organization_id"]], ["--data", str(folder)]
    with serving(folder) as server:
        path = layout_file(folder)
        stored = answered("layout", "import", path, "--venue", "House", "--name", "Hall", *organization, *data)
        event = {"name": "Night", "layout_id": stored["id"]}
        status, created = server.send("POST", "/api/events", event, made["admin_token"])
        assert status == 201, created
        event_id = created["data"]["id"]
        published = {"status": "published"}
        assert server.send("POST", f"/api/events/{event_id}/status", published, made["admin_token"])[0] == 200
        assert server.end(signal.SIGTERM) == 0
    with serving(folder) as server:
        issued = answered("token", "--role", "customer", *organization, *data)
        status, seats = server.send("GET", f"/api/events/{event_id}/seats", token=issued["token"])
        assert status == 200
        seat = seats["data"][0]["id"]
        assert server.send("POST", f"/api/events/{event_id}/seats/{seat}/reserve", {}, issued["token"])[0] == 201
        shown = answered("event", "show", event_id, *organization, *data)
        assert {name: shown["zones"][0][name] for name in ("available", "held", "sold")} == {
            "available": 2,
            "held": 1,
            "sold": 0,
        }
        done = holdfast(
            "simulate",
            "--event",
            event_id,
            "--buyers",
            "4",
            "--seconds",
            "1",
            "--url",
            server.url,
            *organization,
            *data,
        )
        assert done.returncode == 0, done.stderr + done.stdout
        assert done.stdout.count("ok  ") == 11
        table = holdfast("event", "show", event_id, *organization, *data).stdout
        assert "Stalls" in table
        exported = holdfast("layout", "export", stored["id"], *organization, *data)
        assert json.loads(exported.stdout) == json.loads(Path(path).read_text())


def test_several_processes_serve_one_port_and_a_dead_one_is_replaced(begun: Begun) -> None:
    folder = begun.folder
    with serving(folder, "--workers", "2") as server:
        before = server.children()
        assert len(before) == 2
        os.kill(before[0], signal.SIGKILL)
        deadline = time.monotonic() + PATIENCE_S
        while len(now := server.children()) < 2 or before[0] in now:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert server.get("/readyz")[0] == 200
        assert server.end(signal.SIGTERM) == 0


def test_a_database_that_dies_under_the_server_is_started_again(begun: Begun) -> None:
    folder = begun.folder
    with serving(folder) as server:
        postmaster = int((folder / "postgres" / "postmaster.pid").read_text().split()[0])
        os.kill(postmaster, signal.SIGKILL)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            with suppress(OSError):
                if server.get("/readyz")[0] == 200 and find_running(folder) is not None:
                    break
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert int((folder / "postgres" / "postmaster.pid").read_text().split()[0]) != postmaster


def test_work_runs_until_it_is_told_to_stop(begun: Begun) -> None:
    folder = begun.folder
    process = subprocess.Popen(
        [*HOLDFAST, "work", "--data", str(folder)], env=environment(), stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Holdfast is working")
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()
    await_no_processes(folder)


# Schema and doctor -----------------------------------------------------------------------------------------------
def test_migrate_says_what_it_applied_and_then_nothing(folder: Path) -> None:
    first = answered("migrate", "--data", str(folder))["applied"]
    assert first[0] == "0001_foundation.sql"
    assert first[-1] == "functions"
    again = holdfast("migrate", "--data", str(folder))
    assert (again.returncode, again.stdout) == (0, "the schema is current\n")


def test_doctor_finds_a_sound_deployment_sound_and_a_weakened_one_not(folder: Path) -> None:
    behind = holdfast("doctor", "--data", str(folder))
    assert behind.returncode == 1
    assert "run: holdfast migrate" in behind.stdout
    answered("migrate", "--data", str(folder))
    sound = answered("doctor", "--data", str(folder))
    assert sound["ok"]
    assert {check["outcome"] for check in sound["checks"]} <= {"ok", "warn"}
    with serving(folder):
        _weaken(folder)
        weakened = holdfast("doctor", "--json", "--data", str(folder))
        assert weakened.returncode == 1
        failed = {c["name"] for c in json.loads(weakened.stdout)["checks"] if c["outcome"] == "fail"}
        assert failed == {"row security", "append-only log"}


def _weaken(folder: Path) -> None:
    async def work() -> None:
        address = find_running(folder)
        assert address is not None
        connection = await asyncpg.connect(address.dsn(OWNER, DATABASE))
        await connection.execute(
            "ALTER TABLE holds NO FORCE ROW LEVEL SECURITY; GRANT UPDATE ON seat_state_events TO holdfast_app"
        )
        await connection.close()

    asyncio.run(work())


def test_doctor_examines_a_server_of_the_operators_own(database: TestDatabase, tmp_path: Path) -> None:
    words = ["doctor", "--json", "--data", str(tmp_path)]
    secrets = {"HOLDFAST_JWT_SECRETS": f"one:{'0123456789abcdef' * 4}"}
    sound = holdfast(*words, HOLDFAST_DATABASE_URL=database.app, HOLDFAST_ADMIN_DATABASE_URL=database.owner, **secrets)
    assert sound.returncode == 0, sound.stdout
    as_owner = holdfast(*words, HOLDFAST_DATABASE_URL=database.owner, **secrets)
    failed = {c["name"] for c in json.loads(as_owner.stdout)["checks"] if c["outcome"] == "fail"}
    assert failed == {"database role", "append-only log"}


def test_doctor_refuses_a_weak_secret(folder: Path) -> None:
    done = holdfast("doctor", "--data", str(folder), HOLDFAST_JWT_SECRETS=f"one:{'a' * 40}")
    assert done.returncode == 1
    assert re.search(r"^fail +token secret +it is easy to guess → make one with", done.stdout, re.MULTILINE)


# Layouts ---------------------------------------------------------------------------------------------------------
def test_layout_validate_lists_every_problem_with_its_pointer(tmp_path: Path) -> None:
    good = holdfast("layout", "validate", layout_file(tmp_path))
    assert (good.returncode, good.stdout) == (0, "valid: 1 zones, 3 numbered seats, 3 places\n")
    path = layout_file(tmp_path, capacity=-1, zone_type="balcony")
    bad = holdfast("layout", "validate", path)
    assert bad.returncode == 1
    assert "/zones/0/capacity: " in bad.stderr
    assert "/zones/0/zone_type: " in bad.stderr
    listed = json.loads(holdfast("layout", "validate", path, "--json").stdout)
    assert {"/zones/0/capacity", "/zones/0/zone_type"} <= {problem["pointer"] for problem in listed["problems"]}


def test_a_file_that_is_not_json_or_not_there_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "text.json").write_text("zones: none")
    assert "is not JSON" in one_line(holdfast("layout", "validate", str(tmp_path / "text.json")))
    assert "No such file" in one_line(holdfast("layout", "validate", str(tmp_path / "none.json")))


# Demo and simulation ---------------------------------------------------------------------------------------------
def test_the_demo_runs_without_a_terminal_and_cleans_up(tmp_path: Path) -> None:
    done = holdfast("demo", "--seconds", "6", "--port", "0", "--seats", "200", "--buyers", "5", TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert READY.search(done.stdout)
    assert "/docs" in done.stdout
    assert "curl -X POST http://127.0.0.1:" in done.stdout
    held = [int(count) for count in re.findall(r"held (\d+)", done.stdout)]
    assert max(held) > 0, done.stdout
    assert "faults" not in done.stdout
    assert list(tmp_path.iterdir()) == []
    await_no_processes(tmp_path)


def test_simulate_sends_load_to_this_machine_only() -> None:
    nobody = "0198c0de-0000-7000-8000-000000000009"
    line = one_line(holdfast("simulate", "--event", nobody, "--organization", nobody, "--url", "http://example.com"))
    assert "--anywhere" in line
