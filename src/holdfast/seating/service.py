"""Venues, layouts, events and their inventory: what organisers do with them, and what everybody may see of them."""

import asyncio
from typing import Any
from uuid import UUID

import msgspec

from holdfast.accounts.principal import Call, Role, require_staff
from holdfast.holds.lifecycle import SeatState, Verb, may_ask
from holdfast.kernel.errors import (
    EventNotFound,
    Forbidden,
    InvalidRequest,
    LayoutChanged,
    LayoutNotFound,
    SeatNotFound,
    SeatSold,
    VenueNotFound,
    ZoneNotFound,
)
from holdfast.kernel.ids import new_id
from holdfast.kernel.problems import Problem, quoted
from holdfast.seating.answers import (
    BlockAnswer,
    EventAnswer,
    LayoutAnswer,
    Part,
    PricesAnswer,
    SeatAnswer,
    UnblockAnswer,
    VenueAnswer,
    WhitelistAnswer,
    WhitelistedUser,
    ZoneCounts,
    describe_event,
    describe_prices,
    describe_seat,
    part_of,
)
from holdfast.seating.event import (
    ON_SALE,
    Event,
    EventStatus,
    check_event_move,
    check_saleable,
    check_zones,
    layout_reference,
    parse_event,
    patched_document,
)
from holdfast.seating.event_writing import (
    blocked_by_overlay,
    check_policy,
    check_reason,
    find_event,
    give_back,
    named_layout,
    open_inventory,
    use_layout,
    write_event,
)
from holdfast.seating.groups import GroupAnswer, describe_group
from holdfast.seating.layout import Layout
from holdfast.seating.offers import kept_seats
from holdfast.seating.overlay import effective_layout
from holdfast.seating.policy import SeatingPolicy, zone_conflicts
from holdfast.seating.refusals import BlockedByOverlay, EventChanged, SeatNotBlocked, SeriesChanged, SeriesNotFound
from holdfast.seating.series import Series, event_of_series, named_series
from holdfast.seating.sight import may_see
from holdfast.seating.validate import LayoutInvalid, parse_layout
from holdfast.seating.view import EventView
from holdfast.settings import Settings
from holdfast.store.catalogue import Catalogue, read_policy
from holdfast.store.postgres import events, inventory, layouts, trail
from holdfast.store.postgres import series as store_series
from holdfast.store.postgres.database import Database, Row, Transaction
from holdfast.store.postgres.idempotency import run_once

_THREAD_FROM_BYTES = 50_000
"""Configs larger than this are read in a thread: the loop has requests to answer."""

_AUDIT_OF_STATUS = {
    EventStatus.PUBLISHED: ("event_published", "EventPublished"),
    EventStatus.LIVE: ("event_live", "EventLive"),
    EventStatus.CANCELLED: ("event_cancelled", "EventCancelled"),
    EventStatus.ARCHIVED: ("event_archived", "EventArchived"),
}


class _ParsedLayout(msgspec.Struct, frozen=True):
    layout: Layout
    config: str
    columns: bytes


class SeatingService:
    def __init__(self, database: Database, catalogue: Catalogue, settings: Settings) -> None:
        self._database = database
        self._catalogue = catalogue
        self._bulk_seats_max = settings.bulk_seats_max

    # Venues and layouts --------------------------------------------------------------------------------------
    async def create_venue(self, call: Call, name: str) -> VenueAnswer:
        require_staff(call)

        async def work(tx: Transaction) -> VenueAnswer:
            venue = VenueAnswer(**await layouts.insert_venue(tx, call.organization_id, new_id(), name))
            await trail.write_audit(tx, call, "venue_created", "Venue", venue.id, changes={"name": name})
            return venue

        return await run_once(self._database, call, work, VenueAnswer)

    async def list_venues(self, call: Call, before: UUID | None, limit: int) -> Part[VenueAnswer]:
        require_staff(call)
        async with self._database.transaction(call.organization_id) as tx:
            rows = await layouts.list_venues(tx, call.organization_id, before, limit + 1)
        return part_of([VenueAnswer(**row) for row in rows], limit, lambda venue: str(venue.id))

    async def create_layout(self, call: Call, venue_id: UUID, name: str, config: bytes) -> LayoutAnswer:
        """`config` is JSON, stored to the letter. Raises LayoutInvalid with every problem."""
        require_staff(call)
        layout_id = new_id()
        parsed = await _read_config(layout_id, config)

        async def work(tx: Transaction) -> LayoutAnswer:
            if await layouts.find_venue(tx, call.organization_id, venue_id) is None:
                raise VenueNotFound
            await layouts.insert_layout(tx, call.organization_id, layout_id, venue_id, name)
            return await self._add_version(tx, call, layout_id, 1, parsed, "layout_created")

        return await run_once(self._database, call, work, LayoutAnswer)

    async def create_version(self, call: Call, layout_id: UUID, config: bytes) -> LayoutAnswer:
        require_staff(call)
        parsed = await _read_config(layout_id, config)

        async def work(tx: Transaction) -> LayoutAnswer:
            version = await layouts.next_version(tx, call.organization_id, layout_id)
            if version is None:
                raise LayoutNotFound
            return await self._add_version(tx, call, layout_id, version, parsed, "layout_version_created")

        return await run_once(self._database, call, work, LayoutAnswer)

    async def _add_version(
        self, tx: Transaction, call: Call, layout_id: UUID, version: int, parsed: _ParsedLayout, action: str
    ) -> LayoutAnswer:
        policy = read_policy(await events.find_policy(tx, call.organization_id))
        _check_new_zones(policy, parsed.layout)
        await layouts.insert_version(
            tx,
            call.organization_id,
            layout_id,
            version,
            config=parsed.config,
            columns=parsed.columns,
            seat_count=parsed.layout.seat_count,
            total_capacity=parsed.layout.total_capacity,
        )
        row = await layouts.find_version(tx, call.organization_id, layout_id, version)
        assert row is not None
        changes = {"version": version, "seat_count": parsed.layout.seat_count}
        await trail.write_audit(tx, call, action, "Layout", layout_id, changes=changes)
        return LayoutAnswer(**row)

    async def get_layout(self, call: Call, layout_id: UUID, version: int | None) -> LayoutAnswer:
        """The latest version where none is named."""
        require_staff(call)
        async with self._database.transaction(call.organization_id) as tx:
            row = await layouts.find_version(tx, call.organization_id, layout_id, version)
            if row is None:
                raise LayoutNotFound
            config = await layouts.find_config(tx, call.organization_id, layout_id, row["version"])
        assert config is not None
        return LayoutAnswer(**row, config=msgspec.Raw(config))

    async def set_version_status(self, call: Call, layout_id: UUID, version: int, *, archived: bool) -> LayoutAnswer:
        """Nothing new may refer to what is archived; what does already, stays."""
        require_staff(call)

        async def work(tx: Transaction) -> LayoutAnswer:
            change = layouts.archive_version if archived else layouts.restore_version
            await change(tx, call.organization_id, layout_id, version)
            row = await layouts.find_version(tx, call.organization_id, layout_id, version)
            if row is None:
                raise LayoutNotFound
            action = "layout_version_archived" if archived else "layout_version_restored"
            await trail.write_audit(tx, call, action, "Layout", layout_id, changes={"version": version})
            return LayoutAnswer(**row)

        return await run_once(self._database, call, work, LayoutAnswer)

    async def list_layouts(
        self, call: Call, before: UUID | None, venue_id: UUID | None, limit: int
    ) -> Part[LayoutAnswer]:
        require_staff(call)
        async with self._database.transaction(call.organization_id) as tx:
            rows = await layouts.list_layouts(tx, call.organization_id, before, venue_id, limit + 1)
        return part_of([LayoutAnswer(**row) for row in rows], limit, lambda layout: str(layout.id))

    # Events --------------------------------------------------------------------------------------------------
    async def create_event(self, call: Call, raw: object) -> EventAnswer:
        """Raises EventInvalid with every problem."""
        require_staff(call)
        event_id = new_id()
        series, document = await self._with_series(call, raw)
        content = parse_event(document, event_id, *await self._named_layout(call, document))

        async def work(tx: Transaction) -> EventAnswer:
            if series is not None and await store_series.share_series(tx, call.organization_id, series.id) != series:
                raise SeriesChanged
            await check_policy(tx, call, content, {} if series else {"overrides": content.overrides})
            event = await events.insert_event(tx, call.organization_id, event_id, content)
            await use_layout(tx, call, content.layout_id, content.layout_version)
            await trail.write_audit(
                tx, call, "event_created", "Event", event_id, event_id=event_id, changes={"name": event.name}
            )
            await trail.send_message(tx, call.organization_id, "EventCreated", event_id)
            return describe_event(event, effective_layout(content.layout, content.overlay))

        return await run_once(self._database, call, work, EventAnswer)

    async def patch_event(self, call: Call, event_id: UUID, patch: object) -> EventAnswer:
        """A draft changes in everything; an event on sale in what buyers have not relied on; others in nothing."""
        require_staff(call)
        stored = await self._stored_event(call, event_id)
        document = patched_document(stored.event, stored.own_zones, patch)
        layout, latest = await self._named_layout(call, document)

        async def work(tx: Transaction) -> EventAnswer:
            await events.own_event(tx, event_id)
            current = await find_event(tx, call, event_id)
            newest = patched_document(current.event, current.own_zones, patch)
            if layout_reference(newest) != layout_reference(document):
                raise EventChanged
            content = parse_event(newest, event_id, layout, latest)
            assert isinstance(patch, dict)
            await check_policy(tx, call, content, patch, published=current.event.status is not EventStatus.DRAFT)
            event = await write_event(tx, call, current.event, content, patch)
            tx.after_commit(lambda: self._catalogue.forget(call.organization_id, event_id))
            return describe_event(event, effective_layout(content.layout, content.overlay))

        return await run_once(self._database, call, work, EventAnswer)

    async def set_status(self, call: Call, event_id: UUID, status: EventStatus) -> EventAnswer:
        """Publishing makes the inventory; cancelling gives back what the engine may give back."""
        require_staff(call)
        view = await self._fresh_event(call, event_id)

        async def work(tx: Transaction) -> EventAnswer:
            await events.own_event(tx, event_id)
            stored = await find_event(tx, call, event_id)
            old = stored.event
            check_event_move(old.status, status)
            event = await events.set_status(tx, call.organization_id, event_id, old.status, status)
            assert event is not None, "nobody else changes an event that this transaction owns"
            changes: dict[str, Any] = {"from": old.status, "to": status}
            if status is EventStatus.PUBLISHED:
                layout = _inventory_layout(view, stored)
                policy = read_policy(await events.find_policy(tx, call.organization_id))
                check_zones(policy, old.overrides, layout, old.overlay)
                await open_inventory(tx, call, event, layout)
                changes["seat_count"] = layout.seat_count
            elif status is EventStatus.CANCELLED:
                changes |= await give_back(tx, call, event_id)
            action, kind = _AUDIT_OF_STATUS[status]
            await trail.write_audit(tx, call, action, "Event", event_id, event_id=event_id, changes=changes)
            await trail.send_message(tx, call.organization_id, kind, event_id, {"status": status})
            tx.after_commit(lambda: self._catalogue.forget(call.organization_id, event_id))
            return describe_event(event, view.layout)

        return await run_once(self._database, call, work, EventAnswer)

    async def get_event(self, call: Call, event_id: UUID) -> EventAnswer:
        stored = await self._stored_event(call, event_id)
        if not may_see(call, stored.event.id, stored.event.status):
            raise EventNotFound
        view = await self._seen_event(call, event_id)
        answer = describe_event(stored.event, view.layout)
        return msgspec.structs.replace(answer, effective_policy=view.effective_policy.values())

    async def list_groups(self, call: Call, event_id: UUID) -> list[GroupAnswer]:
        layout = (await self._seen_event(call, event_id)).layout
        return [describe_group(layout, group) for group in layout.groups]

    async def get_prices(self, call: Call, event_id: UUID) -> PricesAnswer:
        """What places cost, for everybody who may see the event."""
        return describe_prices(await self._seen_event(call, event_id))

    async def list_events(
        self,
        call: Call,
        before: UUID | None,
        status: EventStatus | None,
        limit: int,
        series_id: UUID | None = None,
    ) -> Part[EventAnswer]:
        principal = call.principal
        wanted = list(EventStatus) if status is None else [status]
        if _is_buyer(call):
            wanted = [s for s in wanted if s in ON_SALE]
        async with self._database.transaction(call.organization_id) as tx:
            found = await events.list_events(
                tx,
                call.organization_id,
                before=before,
                statuses=[s.value for s in wanted],
                only=principal.guest_event_id,
                limit=limit + 1,
                series_id=series_id,
            )
        return part_of([describe_event(event, None) for event in found], limit, lambda event: str(event.id))

    # Seats and zones -----------------------------------------------------------------------------------------
    async def list_seats(
        self,
        call: Call,
        event_id: UUID,
        *,
        zone: str | None = None,
        state: SeatState | None = None,
        hold_type: str | None = None,
        after: int | None = None,
        limit: int = 200,
    ) -> Part[SeatAnswer]:
        """By ordinal. `after` is the ordinal of the last seat already seen."""
        view = await self._seen_event(call, event_id)
        ordinals = range(view.layout.seat_count)
        if zone is not None:
            found = view.layout.zone(zone)
            if found is None:
                raise ZoneNotFound(f"There is no zone {quoted(zone)}.", zone=zone)
            ordinals = found.ordinals
        if after is not None:
            ordinals = range(max(ordinals.start, after + 1), ordinals.stop)
        async with self._database.transaction(call.organization_id) as tx:
            rows = await inventory.list_seats(
                tx, call.organization_id, event_id, ordinals, state=state, hold_type=hold_type, limit=limit + 1
            )
            kept = await kept_seats(tx, call, view, rows)
        seats = [self._described(call, view, row, kept) for row in rows]
        return part_of(seats, limit, lambda seat: str(seat.ordinal))

    async def get_seat(self, call: Call, event_id: UUID, seat: UUID) -> SeatAnswer:
        view = await self._seen_event(call, event_id)
        (ordinal,) = _ordinals(view, [seat])
        async with self._database.transaction(call.organization_id) as tx:
            row = await inventory.find_seat(tx, call.organization_id, event_id, ordinal)
            if row is None:
                raise _no_such_seats([seat])
            kept = await kept_seats(tx, call, view, [row])
        return self._described(call, view, row, kept)

    async def list_zones(self, call: Call, event_id: UUID) -> list[ZoneCounts]:
        """The general-admission zones and what is left of them."""
        view = await self._seen_event(call, event_id)
        async with self._database.transaction(call.organization_id) as tx:
            rows = await inventory.list_zones(tx, call.organization_id, event_id)
        answers: list[ZoneCounts] = []
        for row in rows:
            zone = self._same_numbers(view, row).layout.zones[row["zone_no"]]
            answers.append(
                ZoneCounts(
                    id=zone.id,
                    zone_id=zone.zone_id,
                    name=zone.name,
                    zone_type=zone.zone_type,
                    access_mode=zone.access_mode,
                    booking_id=row["booking_id"],
                    capacity=row["capacity"],
                    held=row["held"],
                    sold=row["sold"],
                    blocked=row["blocked"],
                    available=row["capacity"] - row["held"] - row["sold"] - row["blocked"],
                    version=row["version"],
                    disabled=row["disabled"],
                )
            )
        return answers

    async def block_seats(
        self, call: Call, event_id: UUID, seats: list[UUID], reason: str, *, force: bool = False
    ) -> BlockAnswer:
        """All or nothing. Seats blocked before stay as they are; a sold one needs `force` and keeps its ticket."""
        _require_blocker(call)
        self._check_count(seats)
        check_reason(reason)
        view = await self._fresh_event(call, event_id)
        wanted = _ordinals(view, seats)

        async def work(tx: Transaction) -> BlockAnswer:
            await self._check_running(tx, call, view)
            done = set(await inventory.block_seats(tx, call, event_id, list(wanted), reason, force=force))
            tx.moved(event_id, done)
            left = [ordinal for ordinal in wanted if ordinal not in done]
            states = await inventory.find_states(tx, call.organization_id, event_id, left)
            sold = [wanted[ordinal] for ordinal in left if states.get(ordinal) != SeatState.BLOCKED]
            if sold:
                raise SeatSold(
                    f"{len(sold)} of the seats are sold; to block them nevertheless, say force.",
                    seats=[str(seat) for seat in sold],
                )
            return BlockAnswer(event_id, [wanted[o] for o in sorted(done)], [wanted[o] for o in left])

        return await run_once(self._database, call, work, BlockAnswer)

    async def unblock_seats(
        self, call: Call, event_id: UUID, seats: list[UUID], reason: str | None = None
    ) -> UnblockAnswer:
        """All or nothing. A seat whose ticket still stands is sold again, any other available."""
        _require_blocker(call)
        self._check_count(seats)
        view = await self._fresh_event(call, event_id)
        wanted = _ordinals(view, seats)

        async def work(tx: Transaction) -> UnblockAnswer:
            event = await self._check_running(tx, call, view)
            overlaid = blocked_by_overlay(view.layout, event.overlay, wanted)
            if overlaid:
                raise BlockedByOverlay(
                    f"{len(overlaid)} of the seats are taken out by the event's overlay: offer them there again, in"
                    " blocked_seat_ids or disabled_zones.",
                    seats=[str(seat) for seat in overlaid],
                )
            done = await inventory.unblock_seats(tx, call, event_id, list(wanted), reason)
            tx.moved(event_id, done)
            left = [wanted[ordinal] for ordinal in wanted.keys() - set(done)]
            if left:
                raise SeatNotBlocked(
                    f"{len(left)} of the seats are not blocked.", seats=sorted(str(seat) for seat in left)
                )
            return UnblockAnswer(event_id, [wanted[ordinal] for ordinal in sorted(done)])

        return await run_once(self._database, call, work, UnblockAnswer)

    def _check_count(self, seats: list[UUID]) -> None:
        if not 1 <= len(seats) <= self._bulk_seats_max:
            said = f"name 1 to {self._bulk_seats_max} seats, not {len(seats)}"
            raise InvalidRequest(
                f"One call can name 1 to {self._bulk_seats_max} seats.", [Problem("/seats", "count", said)]
            )

    async def _check_running(self, tx: Transaction, call: Call, view: EventView) -> Event:
        """Shares the event's lock: it stays what it is until the commit, and its seats are those of the view."""
        await events.share_event(tx, view.id)
        event = (await find_event(tx, call, view.id)).event
        check_saleable(event.status, None, None, event.updated_at, any_time=True)
        if event.layout_version != view.layout_version:
            raise LayoutChanged
        return event

    # Guest list ----------------------------------------------------------------------------------------------
    async def add_to_whitelist(self, call: Call, event_id: UUID, user_ids: list[UUID]) -> WhitelistAnswer:
        require_staff(call)

        async def work(tx: Transaction) -> WhitelistAnswer:
            await find_event(tx, call, event_id)
            added = await events.add_to_whitelist(tx, call.organization_id, event_id, user_ids)
            await _audit_whitelist(tx, call, event_id, "whitelist_added", user_ids)
            return WhitelistAnswer(event_id, added=added)

        return await run_once(self._database, call, work, WhitelistAnswer)

    async def remove_from_whitelist(self, call: Call, event_id: UUID, user_ids: list[UUID]) -> WhitelistAnswer:
        require_staff(call)

        async def work(tx: Transaction) -> WhitelistAnswer:
            await find_event(tx, call, event_id)
            removed = await events.remove_from_whitelist(tx, call.organization_id, event_id, user_ids)
            await _audit_whitelist(tx, call, event_id, "whitelist_removed", user_ids)
            return WhitelistAnswer(event_id, removed=removed)

        return await run_once(self._database, call, work, WhitelistAnswer)

    async def list_whitelist(self, call: Call, event_id: UUID, after: UUID | None, limit: int) -> Part[WhitelistedUser]:
        require_staff(call)
        async with self._database.transaction(call.organization_id) as tx:
            await find_event(tx, call, event_id)
            rows = await events.list_whitelist(tx, call.organization_id, event_id, after, limit + 1)
        return part_of([WhitelistedUser(**row) for row in rows], limit, lambda user: str(user.user_id))

    # Finding -------------------------------------------------------------------------------------------------
    async def _stored_event(self, call: Call, event_id: UUID) -> events.StoredEvent:
        async with self._database.transaction(call.organization_id) as tx:
            return await find_event(tx, call, event_id)

    async def _seen_event(self, call: Call, event_id: UUID) -> EventView:
        """The event, if the caller may see it; otherwise it does not exist."""
        view = await self._catalogue.event(call.organization_id, event_id)
        if view is None or not may_see(call, view.id, view.status):
            raise EventNotFound
        return view

    def _described(self, call: Call, view: EventView, row: Row, kept: set[int]) -> SeatAnswer:
        return describe_seat(self._same_numbers(view, row), row, kept, staff=call.principal.is_staff)

    def _same_numbers(self, view: EventView, row: Row) -> EventView:
        """The view may be a moment older than the row, and a migration between them."""
        if row["layout_version"] != view.layout_version:
            self._catalogue.forget(view.organization_id, view.id)
            raise LayoutChanged
        return view

    async def _fresh_event(self, call: Call, event_id: UUID) -> EventView:
        view = await self._catalogue.fresh_event(call.organization_id, event_id)
        if view is None:
            raise EventNotFound
        return view

    async def _named_layout(self, call: Call, document: object) -> tuple[Layout | None, int | None]:
        return await named_layout(self._database, self._catalogue, call, document)

    async def _with_series(self, call: Call, raw: object) -> tuple[Series | None, object]:
        """The series that a new event's document names, and the document with what the series has."""
        series_id = named_series(raw)
        if series_id is None or not isinstance(raw, dict):
            return None, raw
        async with self._database.transaction(call.organization_id) as tx:
            series = await store_series.find_series(tx, call.organization_id, series_id)
        if series is None:
            raise SeriesNotFound
        return series, event_of_series(raw, series)


def _check_new_zones(policy: SeatingPolicy | None, layout: Layout) -> None:
    # Only a policy that was stated can forbid a kind of zone: a new organization may draw first and rule later.
    conflicts = zone_conflicts(policy, layout.zones) if policy is not None else []
    if conflicts:
        raise LayoutInvalid(conflicts)


async def _audit_whitelist(tx: Transaction, call: Call, event_id: UUID, action: str, user_ids: list[UUID]) -> None:
    await trail.write_audit(tx, call, action, "Event", event_id, event_id=event_id, changes={"user_ids": user_ids})


def _inventory_layout(view: EventView, stored: events.StoredEvent) -> Layout:
    """What the event is made of now: a draft may have changed since `view` was read, until it was owned."""
    if stored.own_columns is not None:
        return Layout.unpack(stored.own_columns)
    now = stored.event
    if (view.layout_id, view.layout_version, view.overlay) != (now.layout_id, now.layout_version, now.overlay):
        raise EventChanged
    return view.layout


# Who may ------------------------------------------------------------------------------------------------------
def _is_buyer(call: Call) -> bool:
    return call.principal.role is Role.CUSTOMER


def _require_blocker(call: Call) -> None:
    require_staff(call)
    if not may_ask(Verb.BLOCK, call.principal.actor):
        raise Forbidden("Seats are blocked and unblocked by people, not by API keys.", required_actor="ADMIN")


# Reading and answering ----------------------------------------------------------------------------------------
async def _read_config(layout_id: UUID, config: bytes) -> _ParsedLayout:
    if len(config) < _THREAD_FROM_BYTES:
        return _parse_config(layout_id, config)
    return await asyncio.to_thread(_parse_config, layout_id, config)


def _parse_config(layout_id: UUID, config: bytes) -> _ParsedLayout:
    try:
        document = msgspec.json.decode(config)
        text = config.decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequest(f"The layout's config is not valid JSON: {error}") from None
    layout = parse_layout(layout_id, document)
    return _ParsedLayout(layout, text, layout.pack())


def _ordinals(view: EventView, seats: list[UUID]) -> dict[int, UUID]:
    """Each seat once, by ordinal, in order."""
    index = view.layout.seat_index
    found: dict[int, UUID] = {}
    unknown: list[UUID] = []
    for seat in seats:
        ordinal = index.of(seat)
        if ordinal is None:
            unknown.append(seat)
        else:
            found[ordinal] = seat
    if unknown:
        raise _no_such_seats(unknown)
    return dict(sorted(found.items()))


def _no_such_seats(seats: list[UUID]) -> SeatNotFound:
    names = [str(seat) for seat in dict.fromkeys(seats)]
    said = "There is no such seat." if len(names) == 1 else f"There are no such seats: {len(names)} of those named."
    return SeatNotFound(said, seats=names)
