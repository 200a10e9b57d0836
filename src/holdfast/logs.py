"""Structured logs on stderr: lines of JSON for machines, coloured ones for a terminal. Secrets never reach them."""

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

_SECRET_NAMES = re.compile(r"token|secret|password|authorization|api_?key|cookie|dsn|_url$", re.IGNORECASE)
_PASSWORD_IN_URL = re.compile(r"(\w+://[^:/@\s]+:)[^@\s]+@")
HIDDEN = "[hidden]"

Fields = MutableMapping[str, Any]


def hide_secrets(_logger: Any, _method: str, fields: Fields) -> Fields:
    for name, value in fields.items():
        if name != "event" and _SECRET_NAMES.search(name) and value is not None:
            fields[name] = HIDDEN
        elif isinstance(value, str):
            fields[name] = without_password(value)
    return fields


def without_password(text: str) -> str:
    """The text with the password of every URL in it left out."""
    return _PASSWORD_IN_URL.sub(rf"\1{HIDDEN}@", text)


def configure_logs(level: str = "info") -> None:
    terminal = sys.stderr.isatty()
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
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
