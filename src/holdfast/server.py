"""One process that answers requests on a socket that is already bound, until it is told to stop."""

import asyncio
import gc
import importlib.util
import resource
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress

import structlog
import uvicorn

from holdfast.app import Application
from holdfast.settings import Settings
from holdfast.store.embedded import EmbeddedServerError

log = structlog.get_logger(__name__)

BACKLOG = 4096
KEEP_ALIVE_S = 75
GRACE_S = 10
DATABASE_CHECK_S = 0.5

KeepDatabase = Callable[[], bool]


class AddressTaken(Exception):
    pass


def bind(host: str, port: int) -> socket.socket:
    """Bound, not yet listening: whether the address is free is known before anything is started."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        # Whether another process listens here is only known by listening, too; uvicorn asks again with its own backlog.
        bound.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise AddressTaken(f"cannot listen on {host} port {port}: {reason}; choose another with --port") from error
    bound.set_inheritable(True)
    return bound


def raise_file_limit() -> None:
    """As many connections as the system allows: the limit that most systems begin with is meant for programs of old."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def url_of(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class StopSignals:
    """The first SIGINT or SIGTERM asks for an orderly stop, the second for one at once."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.at_once = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.ask)

    def ask(self) -> None:
        (self.at_once if self.asked.is_set() else self.asked).set()


async def unless(event: asyncio.Event, work: Awaitable[None]) -> None:
    """Awaits the work, but gives it up as soon as the event is set."""
    task, waiting = asyncio.ensure_future(work), asyncio.create_task(event.wait())
    await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if not task.done():
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    elif not task.cancelled():
        task.result()


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # ours are caught by StopSignals


async def serve(
    settings: Settings,
    bound: socket.socket,
    *,
    work: bool,
    on_ready: Callable[[], None],
    keep_database: KeepDatabase | None = None,
    stop: StopSignals | None = None,
) -> None:
    stop = stop or StopSignals()
    raise_file_limit()
    application = await Application.open(settings, work=work)
    server = _Server(_config(application), on_ready)
    _calm_collector()
    chores = [asyncio.create_task(_pass_on(stop, server))]
    if keep_database is not None:
        chores.append(asyncio.create_task(_keep(keep_database)))
    try:
        await server.serve(sockets=[bound])
    finally:
        for chore in chores:
            chore.cancel()
        await unless(stop.at_once, application.close())


def _calm_collector() -> None:
    """What exists at the start stays: the collector need not look at it again, nor look so often at a busy server."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)


def _config(application: Application) -> uvicorn.Config:
    return uvicorn.Config(
        application.asgi,
        loop="uvloop",
        http=application.protocol,
        ws="websockets-sansio" if importlib.util.find_spec("websockets") else "none",
        lifespan="auto",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,  # whose word is taken for a client's address is a setting of ours
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
    )


async def _pass_on(stop: StopSignals, server: uvicorn.Server) -> None:
    await stop.asked.wait()
    server.should_exit = True
    await stop.at_once.wait()
    server.force_exit = True


async def work(settings: Settings, *, on_ready: Callable[[], None], keep_database: KeepDatabase | None = None) -> None:
    """The background duties without the API."""
    stop = StopSignals()
    application = await Application.open(settings, work=True, serve=False)
    keeping = asyncio.create_task(_keep(keep_database)) if keep_database is not None else None
    try:
        on_ready()
        await stop.asked.wait()
    finally:
        if keeping is not None:
            keeping.cancel()
        await unless(stop.at_once, application.close())


async def _keep(keep_database: KeepDatabase) -> None:
    while True:
        await asyncio.sleep(DATABASE_CHECK_S)
        keep_once(keep_database)


def keep_once(keep_database: KeepDatabase) -> None:
    """What cannot be mended now is tried again the next time."""
    try:
        if keep_database():
            log.warning("database_restarted")
    except EmbeddedServerError as error:
        log.error("database_restart_failed", error=str(error))
