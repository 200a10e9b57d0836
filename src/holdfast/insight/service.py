"""What happened: the state log of an event, and the audit of an organization."""

from typing import Any
from uuid import UUID

import msgspec

from holdfast.accounts.principal import Call, require_manager, require_staff
from holdfast.insight.answers import AuditAnswer, MoveAnswer
from holdfast.kernel.errors import EventNotFound
from holdfast.seating.answers import Part, part_of
from holdfast.seating.layout import Layout
from holdfast.store.catalogue import Catalogue
from holdfast.store.postgres import trail
from holdfast.store.postgres.database import Database, Row


class InsightService:
    def __init__(self, database: Database, catalogue: Catalogue) -> None:
        self._database = database
        self._catalogue = catalogue

    async def state_log(self, call: Call, event_id: UUID, after: int, limit: int) -> Part[MoveAnswer]:
        """The moves of an event's seats and places in the order of their ids, from the one after `after`."""
        require_staff(call)
        view = await self._catalogue.event(call.organization_id, event_id)
        if view is None:
            raise EventNotFound
        async with self._database.transaction(call.organization_id) as tx:
            rows = await trail.list_moves(tx, call.organization_id, event_id, after, limit + 1)
        return part_of([_move_answer(view.layout, row) for row in rows], limit, lambda move: str(move.id))

    async def audit(
        self,
        call: Call,
        *,
        before: int | None = None,
        action: str | None = None,
        event_id: UUID | None = None,
        user_id: UUID | None = None,
        entity_id: UUID | None = None,
        limit: int = 200,
    ) -> Part[AuditAnswer]:
        """Newest first; `before` is the id of the last entry already read."""
        require_manager(call)
        async with self._database.transaction(call.organization_id) as tx:
            rows = await trail.list_audit(
                tx,
                call.organization_id,
                before=before,
                action=action,
                event_id=event_id,
                user_id=user_id,
                entity_id=entity_id,
                limit=limit + 1,
            )
        entries = [AuditAnswer(**{**row, "changes": msgspec.Raw(row["changes"] or "null")}) for row in rows]
        return part_of(entries, limit, lambda entry: str(entry.id))


def _move_answer(layout: Layout, row: Row) -> MoveAnswer:
    ordinal, zone_no = row["ordinal"], row["zone_no"]
    facts: dict[str, Any] = dict(row)
    del facts["zone_no"]
    return MoveAnswer(
        **facts,
        seat=None if ordinal is None else layout.seat_uuid(ordinal),
        seat_id=None if ordinal is None else layout.seat_ids[ordinal],
        zone=layout.zones[zone_no].zone_id,
    )
