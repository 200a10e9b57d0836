"""What can go wrong with an embedded server; each message is one line: what is wrong, then the remedy."""


class EmbeddedServerError(Exception):
    """An embedded server could not be started, found or stopped."""


class BinariesMissingError(EmbeddedServerError):
    """The server's programs are not installed, or cannot be run."""


class NotAFolderError(EmbeddedServerError):
    """Something that is not a folder stands where the data folder should be."""


class NotWritableError(EmbeddedServerError):
    """The data folder cannot be written by the user running this process."""


class UnknownContentsError(EmbeddedServerError):
    """The folder holds files which are not a database, and which must not be overwritten."""


class WrongMajorVersionError(EmbeddedServerError):
    """The data was made by another major version of PostgreSQL."""


class AlreadyRunningError(EmbeddedServerError):
    """Another process runs (or is just starting, or stopping) a server on this folder."""

    def __init__(self, message: str, pid: int | None) -> None:
        super().__init__(message)
        self.pid = pid


class StartedByOtherMeansError(AlreadyRunningError):
    """A server that no supervisor of ours started runs on this folder."""


class ServerExitedError(EmbeddedServerError):
    """The server ended by itself while starting."""


class StartTimedOutError(EmbeddedServerError):
    """The server did not accept connections in time."""


class NotMainThreadError(EmbeddedServerError):
    """A server was started from a thread whose end would take the server down."""
