"""Series of events: made, read, and changed together with all of their events that are not over."""

from typing import Any
from uuid import UUID

import msgspec

from holdfast.accounts.principal import Call, require_staff
from holdfast.kernel.ids import new_id
from holdfast.seating.answers import Part, SeriesAnswer, describe_event, describe_overlay, part_of
from holdfast.seating.event import EventStatus, layout_reference, parse_event, patched_document
from holdfast.seating.event_writing import check_policy, find_event, named_layout, use_layout, write_event
from holdfast.seating.layout import Layout
from holdfast.seating.refusals import EventFrozen, SeriesChanged, SeriesNotFound
from holdfast.seating.series import Series, changes_for_events, parse_series, patched_series
from holdfast.store.catalogue import Catalogue
from holdfast.store.postgres import events, trail
from holdfast.store.postgres import series as store
from holdfast.store.postgres.database import Database, Transaction
from holdfast.store.postgres.idempotency import run_once

EVENTS_SHOWN = 1_000


class SeriesService:
    def __init__(self, database: Database, catalogue: Catalogue) -> None:
        self._database = database
        self._catalogue = catalogue

    async def create_series(self, call: Call, raw: object) -> SeriesAnswer:
        """Raises EventInvalid with every problem."""
        require_staff(call)
        series_id = new_id()
        layout, latest = await named_layout(self._database, self._catalogue, call, raw)
        content = parse_series(raw, series_id, layout, latest)

        async def work(tx: Transaction) -> SeriesAnswer:
            await check_policy(tx, call, content.event, {"overrides": content.overrides})
            series = await store.insert_series(tx, call.organization_id, series_id, content)
            await use_layout(tx, call, content.layout_id, content.layout_version)
            await trail.write_audit(tx, call, "series_created", "Series", series_id, changes={"name": series.name})
            return _answer(series)

        return await run_once(self._database, call, work, SeriesAnswer)

    async def patch_series(self, call: Call, series_id: UUID, patch: object) -> SeriesAnswer:
        """For all of its events that are not over, in one transaction: what one of them cannot be, none becomes."""
        require_staff(call)
        async with self._database.transaction(call.organization_id) as tx:
            known = await store.find_series(tx, call.organization_id, series_id)
        if known is None:
            raise SeriesNotFound
        document = patched_series(known, patch)
        layout, latest = await named_layout(self._database, self._catalogue, call, document)

        async def work(tx: Transaction) -> SeriesAnswer:
            current = await store.own_series(tx, call.organization_id, series_id)
            assert current is not None, "a series is never deleted"
            newest = patched_series(current, patch)
            if layout_reference(newest) != layout_reference(document):
                raise SeriesChanged
            content = parse_series(newest, series_id, layout, latest)
            assert isinstance(patch, dict)
            await check_policy(tx, call, content.event, patch)
            series = await store.update_series(tx, call.organization_id, series_id, content)
            already = (current.layout_id, current.layout_version) == (content.layout_id, content.layout_version)
            await use_layout(tx, call, content.layout_id, content.layout_version, already=already)
            await trail.write_audit(tx, call, "series_updated", "Series", series_id, changes=patch)
            changes = changes_for_events(current, content)
            if changes:
                await self._change_events(tx, call, series_id, changes, content.event.layout, latest)
            return await _with_events(tx, call, series)

        return await run_once(self._database, call, work, SeriesAnswer)

    async def _change_events(
        self, tx: Transaction, call: Call, series_id: UUID, changes: dict[str, Any], layout: Layout, latest: int | None
    ) -> None:
        ids = await store.events_not_over(tx, call.organization_id, series_id)
        for event_id in ids:
            await events.own_event(tx, event_id)
        for event_id in ids:
            event = (await find_event(tx, call, event_id)).event
            if event.status in (EventStatus.CANCELLED, EventStatus.ARCHIVED):
                continue  # since its id was read
            try:
                document = patched_document(event, None, changes, by_series=True)
            except EventFrozen as frozen:
                frozen.facts.update(event_id=str(event_id), event_name=event.name)
                raise
            content = parse_event(document, event_id, layout, latest)
            await write_event(tx, call, event, content, changes)
        tx.after_commit(lambda: self._forget(call.organization_id, ids))

    def _forget(self, organization_id: UUID, event_ids: list[UUID]) -> None:
        for event_id in event_ids:
            self._catalogue.forget(organization_id, event_id)

    async def get_series(self, call: Call, series_id: UUID) -> SeriesAnswer:
        require_staff(call)
        async with self._database.transaction(call.organization_id) as tx:
            series = await store.find_series(tx, call.organization_id, series_id)
            if series is None:
                raise SeriesNotFound
            return await _with_events(tx, call, series)

    async def list_series(self, call: Call, before: UUID | None, limit: int) -> Part[SeriesAnswer]:
        require_staff(call)
        async with self._database.transaction(call.organization_id) as tx:
            found = await store.list_series(tx, call.organization_id, before, limit + 1)
        return part_of([_answer(series) for series in found], limit, lambda series: str(series.id))


async def _with_events(tx: Transaction, call: Call, series: Series) -> SeriesAnswer:
    found = await events.list_events(
        tx,
        call.organization_id,
        before=None,
        statuses=[status.value for status in EventStatus],
        only=None,
        limit=EVENTS_SHOWN,
        series_id=series.id,
    )
    return msgspec.structs.replace(_answer(series), events=[describe_event(event, None) for event in found])


def _answer(series: Series) -> SeriesAnswer:
    said = msgspec.structs.asdict(series)
    overlay = said.pop("overlay")
    return SeriesAnswer(**said, seating_overrides=series.overrides, **describe_overlay(overlay))
