"""Structured logs on stderr: lines of JSON for machines, coloured ones for a terminal. Secrets never reach them.

What is logged while a request is served says which request that was, and where known for which organization, event and
seat. A request costs one assignment for it: the words are looked up only when a line is written.
"""

import logging
import re
import sys
from collections.abc import Mapping, MutableMapping
from contextvars import ContextVar
from typing import Any

import structlog

_SECRET_NAMES = re.compile(r"token|secret|password|authorization|api_?key|cookie|dsn|_url$", re.IGNORECASE)
_PASSWORD_IN_URL = re.compile(r"(\w+://[^:/@\s]*:)[^@\s]+@")
_CREDENTIALS = re.compile(
    r"\beyJ[\w-]+\.[\w-]+\.[\w-]+"  # a token
    r"|\bhft?_[0-9a-f]{32}_[0-9a-f]{32}_[\w-]+"  # an API key
    r"|\bhfs_[0-9a-f]{32}_[\w-]+"  # a signed-in browser's cookie
    r"|\bwhsec_[\w+/=-]+"  # a webhook's secret
    r"|(?i:\bbearer\s+)[\w.~+/=-]+"
    r"|(?i:(?<=access_token=)|(?<=password=)|(?<=secret=)|(?<=token=))[^&\s\"']+"
)
HIDDEN = "[hidden]"

Fields = MutableMapping[str, Any]

REQUEST: ContextVar[Mapping[str, Any] | None] = ContextVar("request", default=None)
"""The ASGI scope of the request that is being served."""
_IN_PATH = {"event_id": "event_id", "seat": "seat_id", "seat_id": "seat_id", "hold_id": "hold_id"}
"""Words of the paths, and how the lines call them."""


def tell_request(_logger: Any, _method: str, fields: Fields) -> Fields:
    """What the line itself says wins."""
    scope = REQUEST.get()
    if scope is None:
        return fields
    state = scope.get("state", {})
    for name in ("request_id", "organization_id"):
        if state.get(name) is not None:
            fields.setdefault(name, str(state[name]))
    path = scope.get("path_params", {})
    for word, name in _IN_PATH.items():
        if word in path:
            fields.setdefault(name, str(path[word]))
    return fields


def hide_secrets(_logger: Any, _method: str, fields: Fields) -> Fields:
    for name, value in fields.items():
        if name != "event" and _SECRET_NAMES.search(name) and value is not None:
            fields[name] = HIDDEN
        else:
            fields[name] = _without_secrets(value)
    return fields


def _without_secrets(value: Any) -> Any:
    """Also within lists and objects: a secret does not become less of one by being packed."""
    if isinstance(value, str):
        return _CREDENTIALS.sub(HIDDEN, without_password(value))
    if isinstance(value, Mapping):
        return {
            name: HIDDEN if isinstance(name, str) and _SECRET_NAMES.search(name) else _without_secrets(inner)
            for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_without_secrets(inner) for inner in value]
    return value


def without_password(text: str) -> str:
    """The text with the password of every URL in it left out."""
    return _PASSWORD_IN_URL.sub(rf"\1{HIDDEN}@", text)


def configure_logs(level: str = "info") -> None:
    terminal = sys.stderr.isatty()
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        tell_request,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        hide_secrets,
    ]
    renderer: Any = structlog.dev.ConsoleRenderer() if terminal else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    # The libraries log through the standard module: the same processors make them look the same.
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for quiet in ("uvicorn", "uvicorn.error", "asyncio"):
        logging.getLogger(quiet).setLevel(max(logging.WARNING, root.level))
