"""What can be refused about tickets beyond the common cases."""

from holdfast.kernel.errors import Conflict


class TicketVoid(Conflict):
    code = "ticket_void"

    def __init__(self, void_reason: str | None = None) -> None:
        super().__init__("This ticket is void.", void_reason=void_reason)
