"""Settings, read from the environment once at start and frozen. Every error says what to write instead."""

import os
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.store.redis.address import RedisUrlInvalid, parse_url


class SettingsInvalid(Exception):
    """All problems with the environment, one a line."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Each field is the environment variable HOLDFAST_<NAME IN CAPITALS>."""

    database_url: str | None = None  # the application's role; none: the embedded PostgreSQL in the data folder
    admin_database_url: str | None = None  # the schema's owner, for migrations; none: database_url
    data: str | None = None  # folder of the embedded servers and the generated secrets
    jwt_secrets: str | None = (
        None  # "kid:secret,kid:secret"; the first signs, all verify; none: generated in the data folder
    )
    jwt_issuer: str = "holdfast"
    jwt_audience: str = "holdfast"
    jwks_file: str | None = None  # public keys of an outside identity provider
    trusted_proxies: str = ""  # comma list of addresses whose X-Forwarded-For is believed
    redis_url: str | None = (
        None  # the warm tier: redis://, rediss://, unix://, redis+sentinel://, redis+cluster://; "embedded"; "none"
    )
    redis_namespace: str = "holdfast"  # what every key begins with
    redis_timeout_s: float = 0.25  # a command that takes longer has failed

    database_pool: int = 8  # connections a process for everything but holding seats
    writer_connections: int = 2  # connections a process for the batching writer
    batch_size: int = 64  # claims a batch at most
    writer_queue: int = 10_000  # requests waiting at most; one more is refused with 503
    writer_deadline_s: float = 10.0  # a request that waited longer is refused with 503
    hold_window_s: int = 300  # the window of max_holds_per_user and max_holds_per_ip
    bulk_seats_max: int = 10_000  # seats in one organiser's call
    sweeper_grace_s: float = 0.0
    sweeper_batch: int = 1_000
    failure_audit_sample: float = 0.1  # share of refused reserves written to the audit
    body_limit_bytes: int = 64 * 1024
    layout_limit_bytes: int = 64 * 1024 * 1024
    layout_cache_seats: int = 2_000_000  # seats of layouts kept in memory
    hot_events: int = (
        200  # events whose seats are kept in memory, beside those that are watched; 0: nobody is refused from memory
    )
    hot_bytes: int = 256 * 1024 * 1024  # and the memory they may take
    live_coalesce_ms: int = 50  # changes gather for so long before they are sent to viewers
    live_clients: int = 20_000  # live connections a process
    live_buffer_bytes: int = 256 * 1024  # a viewer who lets more than this pile up is dropped
    live_heartbeat_s: float = 15.0
    webhook_private_targets: bool = (
        False  # lets webhooks go to private addresses and plain http: for tests and intranets
    )
    webhook_secret_overlap_s: float = 86_400  # after a rotation the old secret signs too for so long
    webhook_concurrency: int = 64  # webhooks under way at once in a worker process
    webhook_endpoint_concurrency: int = 4  # and to one endpoint, from all processes
    pages: str | None = None  # folder of the built web pages; none: those that came with the package
    log_level: str = "info"


_POSITIVE = (
    "database_pool",
    "writer_connections",
    "batch_size",
    "writer_queue",
    "writer_deadline_s",
    "hold_window_s",
    "bulk_seats_max",
    "sweeper_batch",
    "body_limit_bytes",
    "layout_limit_bytes",
    "layout_cache_seats",
    "redis_timeout_s",
    "hot_bytes",
    "live_coalesce_ms",
    "live_clients",
    "live_buffer_bytes",
    "live_heartbeat_s",
    "webhook_secret_overlap_s",
    "webhook_concurrency",
    "webhook_endpoint_concurrency",
)


def load_settings(environment: Mapping[str, str] = os.environ, **overrides: Any) -> Settings:
    """Settings from HOLDFAST_* variables; `overrides` (command line options that were given) win."""
    prefix = "HOLDFAST_"
    known = {f.name: f for f in msgspec.structs.fields(Settings)}
    problems: list[str] = []
    values: dict[str, Any] = {}
    for variable, text in environment.items():
        name = variable.removeprefix(prefix).lower()
        if not variable.startswith(prefix) or name not in known or text == "":
            continue
        try:
            values[name] = msgspec.convert(text, known[name].type, strict=False)
        except msgspec.ValidationError as error:
            problems.append(f"{variable}={text!r}: {error}")
    values.update({name: value for name, value in overrides.items() if value is not None})
    for name in _POSITIVE:
        if name in values and values[name] <= 0:
            problems.append(f"{prefix}{name.upper()}={values[name]}: must be above 0")
    if not 0.0 <= values.get("failure_audit_sample", 0.0) <= 1.0:
        problems.append(f"{prefix}FAILURE_AUDIT_SAMPLE: must be between 0 and 1")
    if values.get("log_level", "info") not in ("debug", "info", "warning", "error"):
        problems.append(f"{prefix}LOG_LEVEL: write debug, info, warning or error")
    for name in ("database_url", "admin_database_url"):
        url = values.get(name)
        if url is not None and not url.startswith(("postgresql://", "postgres://")):
            problems.append(f"{prefix}{name.upper()}: write postgresql://user:password@host:port/database")
    url = values.get("redis_url")
    if url not in (None, "embedded", "none"):
        try:
            parse_url(url)
        except RedisUrlInvalid as error:
            problems.append(f"{prefix}REDIS_URL: {error}; or embedded, or none")
    if not re.fullmatch(r"[A-Za-z0-9_.:-]+", values.get("redis_namespace", "holdfast")):
        problems.append(f"{prefix}REDIS_NAMESPACE: write letters, digits, and . _ : -")
    if values.get("hot_events", 0) < 0:
        problems.append(f"{prefix}HOT_EVENTS: must not be below 0")
    if problems:
        raise SettingsInvalid("\n".join(problems))
    return Settings(**values)
