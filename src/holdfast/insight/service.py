"""What happened: the state log of an event, and the audit of an organization."""

from typing import Any
from uuid import UUID

import msgspec

from holdfast.accounts.principal import Call, require_manager, require_staff
from holdfast.insight.answers import AuditAnswer, MoveAnswer
from holdfast.kernel.errors import EventNotFound
from holdfast.seating.answers import Part, part_of
from holdfast.seating.layout import Layout
from holdfast.seating.view import EventView
from holdfast.store.catalogue import Catalogue
from holdfast.store.postgres import events, trail
from holdfast.store.postgres.database import Database, Row
from holdfast.store.postgres.layout_migrations import changes_of


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
            changes = await changes_of(tx, call.organization_id, [event_id])  # after the rows: all that bears on them
            version = await events.layout_version(tx, call.organization_id, event_id)
        layouts = await self._layouts(view, {version, *(change.from_version for change in changes)})
        moves: list[MoveAnswer] = []
        for row in rows:
            meant = next((change.from_version for change in changes if row["id"] <= change.log_id), version)
            moves.append(_move_answer(layouts[meant], row))
        return part_of(moves, limit, lambda move: str(move.id))

    async def _layouts(self, view: EventView, versions: set[int | None]) -> dict[int | None, Layout]:
        """The versions of the event's layout in which its log was written."""
        found: dict[int | None, Layout] = {}
        for version in versions:
            layout = view.layout
            if view.layout_id is not None and version is not None and version != view.layout_version:
                named = await self._catalogue.layout(view.organization_id, view.layout_id, version)
                assert named is not None, "versions are never deleted"
                layout = named
            found[version] = layout
        return found

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
