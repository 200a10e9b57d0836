"""What can be refused about a ticket."""

from holdfast.kernel.errors import Conflict


class TicketVoid(Conflict):
    code = "ticket_void"

    def __init__(self) -> None:
        super().__init__("The ticket is void.")
