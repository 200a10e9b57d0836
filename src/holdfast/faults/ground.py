"""Where the faults are: PostgreSQL, Valkey and two API processes of our own, in a temporary folder.

Everything here is called from the main thread, because a server ends with the thread that started it.
"""

import http.client
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from holdfast.deployment import deployed
from holdfast.server import bind
from holdfast.server_processes import ServerProcesses, ServerProcessFailed
from holdfast.settings import Settings
from holdfast.store.embedded import PostgresServer, ValkeyServer

NAMESPACE = "faults"
READY_S = 30.0
POSTGRES_SETTINGS = {"track_commit_timestamp": True}
"""When a move was committed bounds when it took effect."""
VALKEY_SETTINGS = {"appendonly": "no"}
"""What it held is gone when it is killed."""


class GroundFailed(Exception):
    """Something died that nobody struck, or did not come back."""


class Ground:
    def __init__(
        self,
        folder: Path,
        settings: Settings,
        postgres: PostgresServer,
        valkey: ValkeyServer,
    ) -> None:
        self.settings = settings
        self.postgres = postgres
        self.valkey = valkey
        self.ports: list[int] = []
        self._servers: list[ServerProcesses] = []
        self._sockets: list[socket.socket] = []
        self._log = folder / "servers.log"

    @property
    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{port}" for port in self.ports]

    @property
    def redis_url(self) -> str:
        assert self.settings.redis_url is not None
        return self.settings.redis_url

    # Striking and mending ----------------------------------------------------------------------------------------
    def add_server(self) -> None:
        """One more API process, on a port of its own; returns once it answers."""
        bound, server = self._serve(0)
        self._sockets.append(bound)
        self._servers.append(server)
        self.ports.append(bound.getsockname()[1])

    def _serve(self, port: int) -> tuple[socket.socket, ServerProcesses]:
        bound = bind("127.0.0.1", port)
        server = ServerProcesses(self.settings, bound, 1)
        try:
            with speaking_into(self._log):
                server.start()
        except ServerProcessFailed as error:
            bound.close()
            raise GroundFailed(f"{error}; {self.log_tail()}") from error
        return bound, server

    def kill_server(self, n: int) -> None:
        """With its port, which nobody listens on until it is started again."""
        self._servers[n].kill()
        self._sockets[n].close()

    def start_server(self, n: int) -> None:
        """Returns once it answers."""
        self._sockets[n], self._servers[n] = self._serve(self.ports[n])

    def stop_servers(self) -> None:
        for server, bound in zip(self._servers, self._sockets, strict=True):
            server.stop()
            bound.close()

    def kill_postgres(self) -> None:
        _kill(self.postgres.pid, "PostgreSQL")

    def start_postgres(self) -> None:
        self.postgres.start()

    def kill_valkey(self) -> None:
        _kill(self.valkey.pid, "Valkey")

    def start_valkey(self) -> None:
        before = self.redis_url
        self.valkey.start()
        if self.valkey.address.url() != before:
            raise GroundFailed("Valkey came back at another address")

    def stop_valkey(self) -> None:
        assert self.valkey.pid is not None
        os.kill(self.valkey.pid, signal.SIGSTOP)

    def continue_valkey(self) -> None:
        assert self.valkey.pid is not None
        os.kill(self.valkey.pid, signal.SIGCONT)

    def reconcile(self, admin_token: str) -> None:
        """As an operator does who finds the warm tier wrong."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[-1], timeout=READY_S)
        try:
            connection.request("POST", "/api/registry/reconcile", headers={"authorization": f"Bearer {admin_token}"})
            answer = connection.getresponse()
            if answer.status != 200:
                raise GroundFailed(f"the registry was not reconciled: {answer.status} {answer.read()[:300]!r}")
        except OSError as error:
            raise GroundFailed(f"the registry was not reconciled: {error}") from error
        finally:
            connection.close()

    # Looking -----------------------------------------------------------------------------------------------------
    def require_alive(self) -> None:
        """After a run everything stands again; what died of itself on the way would have hidden what is looked for."""
        if self.postgres.pid is None or self.valkey.pid is None:
            raise GroundFailed("a database server has died")
        for n in range(len(self._servers)):
            if not self._answers(n):
                raise GroundFailed(f"API process {n + 1} does not answer; {self.log_tail()}")

    def _answers(self, n: int) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[n], timeout=5)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def log_tail(self) -> str:
        with suppress(OSError):
            return "its log ends: " + self._log.read_text(errors="replace")[-1500:]
        return "it logged nothing"


def _kill(pid: int | None, name: str) -> None:
    if pid is None:
        raise GroundFailed(f"{name} was not running")
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + READY_S
    while Path(f"/proc/{pid}").exists() and _state(pid) != "Z":
        if time.monotonic() > deadline:
            raise GroundFailed(f"{name} did not die")
        time.sleep(0.005)


def _state(pid: int) -> str:
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return "Z"


@contextmanager
def speaking_into(log: Path) -> Iterator[None]:
    """Processes started meanwhile write what they have to say there, and not into the report."""
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextmanager
def standing_ground(sweeper_grace_s: float = 0.0) -> Iterator[Ground]:
    """Starts everything, and leaves nothing behind."""
    with TemporaryDirectory(prefix="holdfast-faults-", ignore_cleanup_errors=True) as temporary, ExitStack() as stack:
        folder = Path(temporary)
        data = folder / "data"
        postgres = stack.enter_context(PostgresServer(data, POSTGRES_SETTINGS))
        valkey = stack.enter_context(ValkeyServer(data, VALKEY_SETTINGS))
        with deployed(Settings(data=str(data), redis_url="none")) as deployment:
            settings = msgspec.structs.replace(
                deployment.settings,
                redis_url=valkey.address.url(),
                redis_namespace=NAMESPACE,
                sweeper_grace_s=sweeper_grace_s,
                failure_audit_sample=0.0,
                log_level="warning",
            )
        ground = Ground(folder, settings, postgres, valkey)
        stack.callback(ground.stop_servers)
        for _ in range(2):
            ground.add_server()
        yield ground
