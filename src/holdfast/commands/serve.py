"""`holdfast serve` and `holdfast work`: processes that run until they are told to stop."""

import os
import signal
import socket
import sys
import time
from typing import Annotated

import typer
import uvloop

from holdfast import server
from holdfast.commands.options import Data, settings_for
from holdfast.deployment import Deployment, deployed
from holdfast.logs import configure_logs
from holdfast.server_processes import ServerProcesses

TEND_S = 0.2


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: holdfast serve --port 8080 --workers 2 --data ./data")(serve)
    app.command(epilog="Example: holdfast work --data ./data")(work)


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes any free one.")] = 8080,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Server processes.")] = 1,
    no_work: Annotated[bool, typer.Option("--no-work", help="Leave the background duties to others.")] = False,
    data: Data = None,
) -> None:
    """Serve the API and, unless told otherwise, do the background duties. Ctrl-C stops it, a second one at once."""
    settings = settings_for(data)
    configure_logs(settings.log_level)
    bound = server.bind(host, port)
    with deployed(settings) as deployment:
        if workers > 1:
            _serve_with_processes(deployment, bound, workers, work=not no_work)
        else:
            uvloop.run(
                server.serve(
                    deployment.settings,
                    bound,
                    work=not no_work,
                    on_ready=lambda: _say_ready(deployment, bound),
                    keep_database=deployment.keep_servers,
                )
            )


def work(data: Data = None) -> None:
    """Do the background duties alone, beside servers that run with --no-work. Ctrl-C stops it."""
    settings = settings_for(data)
    configure_logs(settings.log_level)
    with deployed(settings) as deployment:
        where = _where(deployment)
        uvloop.run(
            server.work(
                deployment.settings,
                on_ready=lambda: _say(f"Holdfast is working ({where}, pid {os.getpid()})"),
                keep_database=deployment.keep_servers,
            )
        )


def _serve_with_processes(deployment: Deployment, bound: socket.socket, count: int, *, work: bool) -> None:
    stops: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _frame: stops.append(number))
    processes = ServerProcesses(deployment.settings, bound, count, work=work)
    processes.start()
    try:
        _say_ready(deployment, bound)
        while not stops:
            server.keep_once(deployment.keep_servers)
            processes.tend()
            time.sleep(TEND_S)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        processes.stop()
    except KeyboardInterrupt:
        pass  # the second Ctrl-C
    finally:
        processes.kill()


def _say_ready(deployment: Deployment, bound: socket.socket) -> None:
    _say(f"Holdfast is serving on {server.url_of(bound)} ({_where(deployment)}, pid {os.getpid()})")


def _where(deployment: Deployment) -> str:
    return f"data: {deployment.data}" if deployment.embedded else "data: the database at HOLDFAST_DATABASE_URL"


def _say(line: str) -> None:
    typer.echo(line)
    sys.stdout.flush()
