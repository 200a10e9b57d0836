"""Database servers inside the data folder, for those who run none of their own.

The API is synchronous: servers are started before the event loop is, and from the main thread (Linux only;
`holdfast.store.embedded.supervisor` says why).
"""

from holdfast.store.embedded.binaries import pgbench_path, postgres_tool
from holdfast.store.embedded.errors import (
    AlreadyRunningError,
    BinariesMissingError,
    EmbeddedServerError,
    NotAFolderError,
    NotMainThreadError,
    NotWritableError,
    ServerExitedError,
    StartedByOtherMeansError,
    StartTimedOutError,
    UnknownContentsError,
    WrongMajorVersionError,
)
from holdfast.store.embedded.postgres import (
    OWNER,
    PostgresAddress,
    PostgresServer,
    find_running,
    running_postgres,
)
from holdfast.store.embedded.valkey import (
    ValkeyAddress,
    ValkeyServer,
    find_running_valkey,
    running_valkey,
)

__all__ = [
    "OWNER",
    "AlreadyRunningError",
    "BinariesMissingError",
    "EmbeddedServerError",
    "NotAFolderError",
    "NotMainThreadError",
    "NotWritableError",
    "PostgresAddress",
    "PostgresServer",
    "ServerExitedError",
    "StartTimedOutError",
    "StartedByOtherMeansError",
    "UnknownContentsError",
    "ValkeyAddress",
    "ValkeyServer",
    "WrongMajorVersionError",
    "find_running",
    "find_running_valkey",
    "pgbench_path",
    "postgres_tool",
    "running_postgres",
    "running_valkey",
]
