"""Taking an event on sale to another version of its layout: plan, look, confirm.

Planning changes nothing. Applying is one transaction, alone with the event: everything moves, or, if anything changed since
the plan was made, nothing does.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from holdfast.accounts.principal import Call, require_staff
from holdfast.kernel.errors import Unprocessable
from holdfast.kernel.ids import new_id
from holdfast.kernel.problems import Problem, Problems
from holdfast.seating.answers import Part, part_of
from holdfast.seating.event import ON_SALE, Event, EventStatus, permitted_overrides
from holdfast.seating.event_writing import find_event, take_out
from holdfast.seating.layout import Layout
from holdfast.seating.migration import (
    MigrationStatus,
    Notification,
    Occupied,
    PlacesHeld,
    Plan,
    PlannedMove,
    PlannedZone,
    Replacement,
    Tally,
    check_replacements,
    make_plan,
    notifications_of,
    renumber,
)
from holdfast.seating.overlay import disabled_pools, overlay_conflicts, overlay_within, unoffered_seats
from holdfast.seating.policy import apply_overrides
from holdfast.seating.refusals import (
    EventChanged,
    MigrationBlocked,
    MigrationEnded,
    MigrationNotFound,
    MigrationOutdated,
    NotMigratable,
)
from holdfast.store.catalogue import Catalogue, read_policy
from holdfast.store.postgres import events, layouts, trail
from holdfast.store.postgres import layout_migrations as store
from holdfast.store.postgres.database import Database, Transaction
from holdfast.store.postgres.idempotency import run_once

REPLACEMENTS_MAX = 10_000
TOLD_AT_ONCE = 500
"""Holders in one message to webhooks."""


class MigrationAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    event_id: UUID
    layout_id: UUID
    from_version: int
    to_version: int
    status: MigrationStatus
    applicable: bool
    """No blockers. Whether anything changed since is found out when it is applied."""
    one_to_one: Tally
    moving: Tally
    unplaced: Tally
    seats_added: int
    seats_removed: int
    blockers: list[str]
    warnings: list[str]
    created_at: datetime
    created_by: UUID | None
    ended_at: datetime | None
    moves: list[PlannedMove] | msgspec.UnsetType = msgspec.UNSET
    zones: list[PlannedZone] | msgspec.UnsetType = msgspec.UNSET
    cancelled_places: list[PlacesHeld] | msgspec.UnsetType = msgspec.UNSET
    """These three are left out of lists."""


class MigrationService:
    def __init__(self, database: Database, catalogue: Catalogue) -> None:
        self._database = database
        self._catalogue = catalogue

    # Planning ------------------------------------------------------------------------------------------------
    async def plan(
        self, call: Call, event_id: UUID, layout_version: int, replacements: Sequence[Replacement] = ()
    ) -> MigrationAnswer:
        """Changes nothing but that the plan is kept."""
        require_staff(call)
        async with self._database.transaction(call.organization_id) as tx:
            await store.begin_instant(tx)
            event = (await find_event(tx, call, event_id)).event
            _check_state(event)
            made_from = await store.fingerprint(tx, call.organization_id, event_id)
            occupied = await store.occupied(tx, call.organization_id, event_id)
        old, new = await self._both_layouts(call, event, layout_version)
        await self._check_policy(call, event, new)
        plan = await asyncio.to_thread(_planned, old, new, event, occupied, replacements)
        assert event.layout_id is not None
        assert event.layout_version is not None
        layout_id, versions = event.layout_id, (event.layout_version, layout_version)

        async def work(tx: Transaction) -> MigrationAnswer:
            stored = await store.insert(tx, call, new_id(), event_id, layout_id, versions, plan, made_from)
            changes = {"from_version": versions[0], "to_version": versions[1], "applicable": not plan.blockers}
            await trail.write_audit(
                tx, call, "migration_planned", "LayoutMigration", stored.id, event_id=event_id, changes=changes
            )
            return _answer(stored)

        return await run_once(self._database, call, work, MigrationAnswer)

    async def _both_layouts(self, call: Call, event: Event, layout_version: int) -> tuple[Layout, Layout]:
        assert event.layout_id is not None
        assert event.layout_version is not None
        if layout_version == event.layout_version:
            raise _unfit("same_version", f"the event has version {layout_version} already")
        async with self._database.transaction(call.organization_id) as tx:
            found = await layouts.find_version(tx, call.organization_id, event.layout_id, layout_version)
        if found is not None and found["status"] == "archived":
            raise _unfit("archived_version", f"version {layout_version} is archived")
        new = await self._catalogue.layout(call.organization_id, event.layout_id, layout_version)
        if new is None:
            raise _unfit("unknown_version", f"there is no version {layout_version} of the event's layout")
        old = await self._catalogue.layout(call.organization_id, event.layout_id, event.layout_version)
        assert old is not None, "the event refers to it"
        return old, new

    async def _check_policy(self, call: Call, event: Event, new: Layout) -> None:
        async with self._database.transaction(call.organization_id) as tx:
            policy = read_policy(await events.find_policy(tx, call.organization_id))
        conflicts: list[Problem] = []
        if policy is not None:
            effective = apply_overrides(policy, permitted_overrides(policy, event.overrides))
            conflicts = overlay_conflicts(effective, new, event.overlay)
        if conflicts:
            raise Unprocessable("The organization's policy does not allow that version's zones.", list(conflicts))

    # Confirming ----------------------------------------------------------------------------------------------
    async def apply(self, call: Call, event_id: UUID, migration_id: UUID) -> MigrationAnswer:
        """Everything, or (409) nothing."""
        require_staff(call)
        known = await self._stored(call, event_id, migration_id)
        old = await self._catalogue.layout(call.organization_id, known.layout_id, known.from_version)
        new = await self._catalogue.layout(call.organization_id, known.layout_id, known.to_version)
        assert old is not None
        assert new is not None
        numbers = await asyncio.to_thread(renumber, old, new, known.plan)
        notifications = notifications_of(known.plan, old)

        async def work(tx: Transaction) -> MigrationAnswer:
            await store.own_inventory(tx, call.organization_id, event_id)
            stored = await store.find(tx, call.organization_id, event_id, migration_id)
            assert stored is not None
            _require_planned(stored)
            if stored.plan.blockers:
                said = " ".join(stored.plan.blockers)
                raise MigrationBlocked(f"The plan cannot be applied. {said}", blockers=stored.plan.blockers)
            if await store.fingerprint(tx, call.organization_id, event_id) != stored.fingerprint:
                raise MigrationOutdated(
                    "The event has changed since the plan was made; plan again. Nothing was applied."
                )
            event = (await find_event(tx, call, event_id)).event
            dropped = set(stored.plan.dropped_prices)
            prices = [price for price in event.prices if price not in dropped]
            told = _told(stored)
            await store.migrate(tx, call, stored, numbers, prices, told)
            if not await layouts.activate_version(tx, call.organization_id, stored.layout_id, stored.to_version):
                raise MigrationBlocked("The version was archived since the plan was made.", blockers=[])
            overlay = overlay_within(new, event.overlay)
            if overlay != event.overlay:
                await events.set_overlay(tx, call.organization_id, event_id, overlay)
            await take_out(tx, call, event, unoffered_seats(new, overlay), disabled_pools(new, overlay))
            done = await store.end(tx, call.organization_id, event_id, migration_id, MigrationStatus.APPLIED)
            assert done is not None
            await trail.write_audit(tx, call, "event_migrated", "Event", event_id, event_id=event_id, changes=told)
            for start in range(0, len(notifications), TOLD_AT_ONCE):
                await trail.send_message(
                    tx,
                    call.organization_id,
                    "HoldersMoved",
                    event_id,
                    {"migration_id": migration_id, "holders": notifications[start : start + TOLD_AT_ONCE]},
                )
            tx.after_commit(lambda: self._catalogue.forget(call.organization_id, event_id))
            return _answer(done)

        return await run_once(self._database, call, work, MigrationAnswer)

    async def discard(self, call: Call, event_id: UUID, migration_id: UUID) -> MigrationAnswer:
        require_staff(call)

        async def work(tx: Transaction) -> MigrationAnswer:
            stored = await self._find(tx, call, event_id, migration_id)
            done = await store.end(tx, call.organization_id, event_id, migration_id, MigrationStatus.DISCARDED)
            if done is None:
                _require_planned(stored)
                raise EventChanged
            await trail.write_audit(tx, call, "migration_discarded", "LayoutMigration", migration_id, event_id=event_id)
            return _answer(done)

        return await run_once(self._database, call, work, MigrationAnswer)

    # Reading -------------------------------------------------------------------------------------------------
    async def get(self, call: Call, event_id: UUID, migration_id: UUID) -> MigrationAnswer:
        require_staff(call)
        return _answer(await self._stored(call, event_id, migration_id))

    async def list_of_event(self, call: Call, event_id: UUID, before: UUID | None, limit: int) -> Part[MigrationAnswer]:
        """Newest first, without their moves."""
        require_staff(call)
        async with self._database.transaction(call.organization_id) as tx:
            await find_event(tx, call, event_id)
            found = await store.list_migrations(tx, call.organization_id, event_id, before, limit + 1)
        return part_of([_answer(stored, brief=True) for stored in found], limit, lambda answer: str(answer.id))

    async def notifications(
        self, call: Call, event_id: UUID, migration_id: UUID, after: int, limit: int
    ) -> Part[Notification]:
        """Whom to tell, in the order of the plan; of a plan that is not applied, whom one would have to tell."""
        require_staff(call)
        stored = await self._stored(call, event_id, migration_id)
        old = await self._catalogue.layout(call.organization_id, stored.layout_id, stored.from_version)
        assert old is not None
        told = notifications_of(stored.plan, old)
        shown = told[after : after + limit]
        more = len(told) > after + limit
        return Part(shown, str(after + limit) if more else None)

    async def _stored(self, call: Call, event_id: UUID, migration_id: UUID) -> store.StoredMigration:
        async with self._database.transaction(call.organization_id) as tx:
            return await self._find(tx, call, event_id, migration_id)

    @staticmethod
    async def _find(tx: Transaction, call: Call, event_id: UUID, migration_id: UUID) -> store.StoredMigration:
        await find_event(tx, call, event_id)
        stored = await store.find(tx, call.organization_id, event_id, migration_id)
        if stored is None:
            raise MigrationNotFound
        return stored


def _planned(old: Layout, new: Layout, event: Event, occupied: Occupied, replacements: Sequence[Replacement]) -> Plan:
    problems = Problems()
    chosen = check_replacements(old, new, occupied, replacements, problems)
    if problems:
        raise Unprocessable("The replacements cannot stand; every problem is listed.", list(problems.listed()))
    return make_plan(old, new, event.prices, occupied, chosen, event.overlay)


def _check_state(event: Event) -> None:
    if event.layout_id is None:
        raise NotMigratable("The event lists its zones itself: it has no layout to take another version of.")
    if event.series_id is not None:
        raise NotMigratable("The event shares its layout with the other events of its series: it cannot leave them.")
    if event.status not in ON_SALE:
        way = "change its layout_version instead" if event.status is EventStatus.DRAFT else "it stays as it is"
        raise NotMigratable(f"The event is {event.status}: {way}.", current_status=event.status.value)


def _require_planned(stored: store.StoredMigration) -> None:
    if stored.status is not MigrationStatus.PLANNED:
        raise MigrationEnded(f"This migration was {stored.status} already.", migration_status=stored.status.value)


def _unfit(code: str, said: str) -> Unprocessable:
    return Unprocessable("The event cannot be migrated to that version.", [Problem("/layout_version", code, said)])


def _told(stored: store.StoredMigration) -> dict[str, object]:
    """For everybody who watches the event: nothing about anybody in it."""
    return {
        "migration_id": stored.id,
        "layout_id": stored.layout_id,
        "from_version": stored.from_version,
        "layout_version": stored.to_version,
        "moved": len(stored.plan.placed),
        "cancelled_holds": len(stored.plan.cancelled_holds),
    }


def _answer(stored: store.StoredMigration, *, brief: bool = False) -> MigrationAnswer:
    plan = stored.plan
    answer = MigrationAnswer(
        id=stored.id,
        event_id=stored.event_id,
        layout_id=stored.layout_id,
        from_version=stored.from_version,
        to_version=stored.to_version,
        status=stored.status,
        applicable=stored.status is MigrationStatus.PLANNED and not plan.blockers,
        one_to_one=plan.one_to_one,
        moving=plan.moving,
        unplaced=plan.unplaced,
        seats_added=plan.seats_added,
        seats_removed=plan.seats_removed,
        blockers=plan.blockers,
        warnings=plan.warnings,
        created_at=stored.created_at,
        created_by=stored.created_by,
        ended_at=stored.ended_at,
    )
    if brief:
        return answer
    return msgspec.structs.replace(answer, moves=plan.moves, zones=plan.zones, cancelled_places=plan.cancelled_places)
