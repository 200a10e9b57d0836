"""Which free seats are not offered to whoever asks, because they are kept for somebody else's companion."""

from collections.abc import Iterable

from holdfast.accounts.principal import Call
from holdfast.seating.accessibility import companion_rule
from holdfast.seating.view import EventView
from holdfast.store.postgres.accessibility import kept_from
from holdfast.store.postgres.database import Row, Transaction


async def kept_seats(tx: Transaction, call: Call, view: EventView, rows: Iterable[Row]) -> set[int]:
    """Of seats as the inventory lists them, by ordinal. Asks the database only where one of them could be kept."""
    layout = view.layout
    wanted = [
        (row["ordinal"], layout.zone_nos[row["ordinal"]], rule)
        for row in rows
        if row["ordinal"] in layout.companion_wheelchairs and row["state"] == "available"
        if (rule := companion_rule(layout, view.effective_policy, row["ordinal"])) is not None
    ]
    return await kept_from(tx, call.organization_id, view.id, call.principal.user_id, wanted) if wanted else set()
