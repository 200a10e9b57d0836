"""Analyses of an event, from its state log alone: how holds end, how full it was, how long holds live, who sits where."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import numpy as np

from holdfast.accounts.principal import Call, require_staff
from holdfast.allocation.alone import seats_alone
from holdfast.allocation.floor import floor_of
from holdfast.holds.lifecycle import SeatState
from holdfast.insight.accessibility_use import AccessibilityAnswer, SeatMove, accessibility_use
from holdfast.insight.analytics import (
    ConversionAnswer,
    Division,
    Drawn,
    ExpiryAnswer,
    FunnelAnswer,
    FunnelBeside,
    FunnelStep,
    Group,
    HoldEnd,
    LeftOut,
    OccupancySeries,
    Tally,
    attribute,
    divided,
    lives,
    share_of,
    tallies,
    total,
)
from holdfast.insight.numbers import Numbers
from holdfast.insight.occupancy_series import Change, series, zone_series
from holdfast.insight.report import Report, ZoneAlone
from holdfast.insight.sales_traced import SaleMove, trace
from holdfast.insight.window import DAY_S, HOUR_S, Window, step_for, window_of
from holdfast.kernel.errors import EventNotFound, InvalidRequest, ZoneNotFound
from holdfast.kernel.problems import Problem
from holdfast.seating.layout import Layout
from holdfast.seating.view import EventView
from holdfast.store.catalogue import Catalogue
from holdfast.store.postgres import analytics as log
from holdfast.store.postgres.database import Database, Row, Transaction
from holdfast.store.postgres.overview import seat_states

AT_ONCE = 2
"""Analyses in one process: each may read a million rows, and buyers come first."""
HOURS_MAX_DAYS = 92
BUCKETS = {Division.HOUR: HOUR_S, Division.DAY: DAY_S}

PLACED = "Holds placed from `from` on and before `to`, in the zone they were placed in; an end counts whenever it came."
COUNTED = {
    "conversion": f"{PLACED} A hold that the organiser moves to another seat is released, and placed anew.",
    "funnel": f"{PLACED} Direct sales and sales taken back, beside: those within the window.",
    "occupancy": "Places by state at each instant, added up from the event's first move on.",
    "expiry": f"{PLACED} From its placing to its end; to the second, above an hour to the minute, above a day to ten.",
    "accessibility": f"{PLACED} Direct sales and who took companions' seats: by the moves within the window.",
}
LEFT_OUT = [
    LeftOut(step="extended", why="A hold that is given more time stays held: the state log has no move for it."),
    LeftOut(step="in_checkout", why="A hold that goes into a checkout stays held: the state log has no move for it."),
]


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of every analysis."""

    since: datetime | None = None
    until: datetime | None = None
    hold_type: str | None = None
    zone: str | None = None


class _Ground(msgspec.Struct, frozen=True, kw_only=True):
    """An event, its log's numbers, and the question in their terms."""

    view: EventView
    numbers: Numbers
    numbering: log.Numbering
    asked: log.Asked
    zones: list[tuple[int, int]] | None
    zone_ids: frozenset[str] | None
    question: Question
    now: datetime

    def begins_answer(self, kind: str) -> dict[str, Any]:
        window = self.asked.window
        return {
            "event_id": self.view.id,
            "since": window.since,
            "until": window.until,
            "counted": COUNTED[kind],
            "hold_type": self.question.hold_type,
            "zone": self.question.zone,
        }

    def has_zone(self, segment: int, zone_no: int) -> bool:
        return self.zones is None or (segment, zone_no) in self.zones


class AnalyticsService:
    def __init__(self, database: Database, catalogue: Catalogue) -> None:
        self._database = database
        self._catalogue = catalogue
        self._turn = asyncio.Semaphore(AT_ONCE)

    # Questions -----------------------------------------------------------------------------------------------------
    async def conversion(
        self, call: Call, event_id: UUID, question: Question, by: Division = Division.HOLD_TYPE
    ) -> ConversionAnswer:
        bucket = timedelta(seconds=BUCKETS[by]) if by in BUCKETS else None
        async with self._asking(call, event_id, question, bucket) as (tx, ground):
            window = ground.asked.window
            if by is Division.HOUR and window.until - window.since > timedelta(days=HOURS_MAX_DAYS):
                said = f"by hour needs a window of {HOURS_MAX_DAYS} days at most"
                raise InvalidRequest(f"`by`: {said}.", [Problem("/by", "window_too_long", said)])
            by_group = await self._ends(tx, ground)
        found = total(by_group).conversion()
        return ConversionAnswer(
            **ground.begins_answer("conversion"),
            holds=found.holds,
            places=found.places,
            rate=found.rate,
            rate_of_ended=found.rate_of_ended,
            by=by,
            groups=divided(by_group, by, ground.numbers.zones),
        )

    async def funnel(self, call: Call, event_id: UUID, question: Question) -> FunnelAnswer:
        async with self._asking(call, event_id, question) as (tx, ground):
            asked, first = ground.asked, await log.first_id(tx, ground.asked)
            by_group = await self._ends(tx, ground)
            sales = [
                row for row in await log.sales(tx, asked, first) if ground.has_zone(row["segment"], row["zone_no"])
            ]
            seats = ground.numbers.everywhere(await log.reverted_seats(tx, asked, first))
            moves = [_sale_move(ground.numbers, row) for row in await log.sales_of_seats(tx, asked, seats)]
        traced = trace(moves, lambda sale: _placed_counts(ground, sale), lambda move: _revert_counts(ground, move))
        summed = total(by_group)
        placed, sold = sum(summed.places.values()), summed.places[HoldEnd.CONVERTED]
        steps = (("held", placed), ("sold", sold), ("reverted", traced.of_holds))
        reverted = {row["counted"]: 0 for row in sales} | {True: 0, False: 0}
        for row in sales:
            if row["verb"] == "revert_sale":
                reverted[row["counted"]] += row["places"]
        return FunnelAnswer(
            **ground.begins_answer("funnel"),
            steps=[FunnelStep(step=step, places=places, share=share_of(places, placed)) for step, places in steps],
            left_out=LEFT_OUT,
            beside=FunnelBeside(
                direct_sales=sum(row["places"] for row in sales if row["verb"] == "direct_sale"),
                reverted=None if question.hold_type is not None else sum(reverted.values()),
                reverted_untraced=traced.untraced + reverted[True],
            ),
        )

    async def occupancy(
        self, call: Call, event_id: UUID, question: Question, by: Division | None = None
    ) -> OccupancySeries:
        """What is asked of a time that has not come yet ends now."""
        if question.hold_type is not None:
            said = "is not told apart here: what is held over time is told by state and zone"
            raise InvalidRequest(f"`hold_type` {said}.", [Problem("/hold_type", "not_divided", said)])
        async with self._asking(call, event_id, question) as (tx, ground):
            window = ground.asked.window
            if window.until > ground.now:
                if window.since >= ground.now:
                    said = "must be before now"
                    raise InvalidRequest(f"`from` {said}.", [Problem("/from", "in_the_future", said)])
                window = Window(window.since, ground.now)
            step_s = step_for(window)
            asked = msgspec.structs.replace(ground.asked, window=window)
            rows = await log.changes(tx, asked, timedelta(seconds=step_s))
        changes = [Change(**row) for row in rows]
        numbers = ground.numbers
        # A zone that a layout has no more still has its past.
        every = {zone.id: zone.zone_id for layout in numbers.layouts for zone in layout.zones}
        wanted = [key for key, name in every.items() if ground.zone_ids is None or name in ground.zone_ids]
        one = wanted[0] if question.zone is not None else None
        return OccupancySeries(
            **{**ground.begins_answer("occupancy"), "until": window.until},
            step_seconds=step_s,
            points=series(numbers, changes, window, step_s, one),
            zones=zone_series(numbers, changes, window, step_s, wanted) if by is Division.ZONE else None,
        )

    async def expiry(self, call: Call, event_id: UUID, question: Question) -> ExpiryAnswer:
        async with self._asking(call, event_id, question) as (tx, ground):
            found = await log.lived(tx, ground.asked, await log.first_id(tx, ground.asked))
        return ExpiryAnswer(**ground.begins_answer("expiry"), lives=lives(found))

    async def accessibility(self, call: Call, event_id: UUID, question: Question) -> AccessibilityAnswer:
        async with self._asking(call, event_id, question) as (tx, ground):
            asked, numbers = ground.asked, ground.numbers
            seats = numbers.accessible()
            summed = total(await self._ends(tx, ground))
            ended = await log.ended_on_seats(tx, asked, await log.first_id(tx, asked), seats) if seats else []
            moves = [SeatMove(**_seat_move(row)) for row in await log.moves_of_seats(tx, asked, seats)] if seats else []

        def counts(move: SeatMove) -> bool:
            of_type = question.hold_type in (None, move.hold_type)
            return move.at in asked.window and of_type and ground.has_zone(move.segment, move.zone_no)

        shown = ground.zone_ids
        used = accessibility_use(numbers, ended, moves, counts, lambda zone_id: shown is None or zone_id in shown)
        zones = [zone for zone in numbers.now.zones if shown is None or zone.zone_id in shown]
        both = (used.wheelchair, used.companion)
        return AccessibilityAnswer(
            **ground.begins_answer("accessibility"),
            wheelchair=used.wheelchair,
            companion=used.companion,
            companions_taken=used.companions_taken,
            share_of_seats=share_of(sum(each.seats for each in both), sum(zone.capacity for zone in zones)),
            share_of_held=share_of(sum(each.places.placed for each in both), sum(summed.places.values())),
            share_of_converted=share_of(sum(each.places.converted for each in both), summed.places[HoldEnd.CONVERTED]),
            zones=used.zones,
        )

    async def report(self, call: Call, event_id: UUID, since: datetime | None, until: datetime | None) -> Report:
        """All of it, for a page. Where `since` is left out: from the event's first move on."""
        require_staff(call)
        view = await self._catalogue.fresh_event(call.organization_id, event_id)
        if view is None:
            raise EventNotFound
        async with self._database.transaction(call.organization_id) as tx:
            now = (await tx.now()).astimezone(UTC)
            first, moves = await log.span(tx, call.organization_id, event_id)
            states = await seat_states(tx, call.organization_id, event_id)
        window = window_of(since or first, min(until or now, now), now)
        question = Question(since=window.since, until=window.until)
        return Report(
            event_id=event_id,
            name=view.name,
            status=view.status.value,
            made_at=now,
            moves=moves,
            conversion=await self.conversion(call, event_id, question),
            by_zone=await self.conversion(call, event_id, question, Division.ZONE),
            funnel=await self.funnel(call, event_id, question),
            occupancy=await self.occupancy(call, event_id, question),
            expiry=await self.expiry(call, event_id, question),
            accessibility=await self.accessibility(call, event_id, question),
            alone=_zones_alone(view.layout, states),
        )

    # The log -------------------------------------------------------------------------------------------------------
    @asynccontextmanager
    async def _asking(
        self, call: Call, event_id: UUID, question: Question, bucket: timedelta | None = None
    ) -> AsyncIterator[tuple[Transaction, _Ground]]:
        """One instant of the log, and what its numbers mean then."""
        require_staff(call)
        view = await self._catalogue.event(call.organization_id, event_id)
        if view is None:
            raise EventNotFound
        async with self._turn:
            numbering: log.Numbering | None = None
            while True:
                numbers = None if numbering is None else await self._numbers(view, numbering)
                async with self._database.transaction(call.organization_id) as tx:
                    await log.begin_analysis(tx)
                    found = await log.numbering(tx, call.organization_id, event_id)
                    if found is None:
                        raise EventNotFound
                    if numbers is None or found != numbering:  # the layouts are read outside: one connection each
                        numbering = found
                        continue
                    yield tx, await _ground(tx, view, numbers, found, question, bucket)
                    return

    async def _numbers(self, view: EventView, numbering: log.Numbering) -> Numbers:
        layouts: list[Layout] = []
        for version in numbering.versions:
            layout = view.layout
            if view.layout_id is not None and version is not None and version != view.layout_version:
                named = await self._catalogue.layout(view.organization_id, view.layout_id, version)
                assert named is not None, "versions are never deleted"
                layout = named
            layouts.append(layout)
        return Numbers(tuple(layouts), numbering.changed_at)

    async def _ends(self, tx: Transaction, ground: _Ground) -> dict[Group, Tally]:
        asked = ground.asked
        ended = await log.ended_holds(tx, asked, await log.first_id(tx, asked))
        drawn: Drawn = []
        if ground.numbers.any_counted:
            holds, parts = await log.drawn_parts(tx, asked)
            drawn = [
                each
                for each in attribute(holds, parts, ground.numbers.zone_ids)
                if each[0].at in asked.window and ground.has_zone(*each[0].group[:2])
            ]
        return tallies(ended, drawn)


def _zones_alone(layout: Layout, states: Sequence[str]) -> list[ZoneAlone]:
    """Of a draft, or of an event that was migrated between the reading of its layout and of its seats: nothing."""
    if len(states) != layout.seat_count or not states:
        return []
    free = np.array([state == SeatState.AVAILABLE for state in states], np.bool_)
    floor, zone_nos = floor_of(layout), np.array(layout.zone_nos)
    found: list[ZoneAlone] = []
    for zone in layout.zones:
        if not zone.is_ga:
            here = free & (zone_nos == zone.zone_no)
            found.append(ZoneAlone(zone.name, zone.seat_count, int(here.sum()), seats_alone(floor, here)))
    return found


async def _ground(
    tx: Transaction,
    view: EventView,
    numbers: Numbers,
    numbering: log.Numbering,
    question: Question,
    bucket: timedelta | None,
) -> _Ground:
    now = (await tx.now()).astimezone(UTC)
    window = window_of(question.since, question.until, now)
    zones = None if question.zone is None else numbers.zones_named(question.zone)
    if zones is not None and not zones:
        raise ZoneNotFound(f"There is no zone {question.zone!r} in this event.", zone=question.zone)
    hold_type = question.hold_type
    if hold_type is not None and not await _is_hold_type(tx, view, hold_type):
        said = f"must be a hold type: {', '.join(sorted(view.hold_types))}"
        raise InvalidRequest(f"`hold_type` {said}.", [Problem("/hold_type", "unknown_hold_type", said)])
    return _Ground(
        view=view,
        numbers=numbers,
        numbering=numbering,
        asked=log.Asked(
            organization_id=view.organization_id,
            event_id=view.id,
            window=window,
            hold_type=hold_type,
            begins=numbering.begins,
            zones=None if zones is None else [log.zone_code(*key) for key in zones],
            bucket=bucket,
        ),
        zones=zones,
        zone_ids=None if zones is None else frozenset(numbers.zones[key].zone_id for key in zones),
        question=question,
        now=now,
    )


async def _is_hold_type(tx: Transaction, view: EventView, name: str) -> bool:
    """Configured now, or when something was held."""
    return name in view.hold_types or (
        "\0" not in name and await log.knows_type(tx, view.organization_id, view.id, name)
    )


def _placed_counts(ground: _Ground, sale: SaleMove) -> bool:
    """Whether the hold that was sold is one of those that are counted."""
    assert sale.placed_at is not None
    assert sale.placed_zone is not None
    of_type = ground.question.hold_type in (None, sale.hold_type)
    return sale.placed_at in ground.asked.window and of_type and ground.has_zone(*sale.placed_zone)


def _revert_counts(ground: _Ground, move: SaleMove) -> bool:
    return move.at in ground.asked.window and ground.has_zone(*move.zone)


def _sale_move(numbers: Numbers, row: Row) -> SaleMove:
    placed_at = row["placed_at"]
    return SaleMove(
        at=row["at"],
        seat=numbers.seat(row["segment"], row["ordinal"]),
        zone=(row["segment"], row["zone_no"]),
        verb=row["verb"],
        placed_at=placed_at,
        hold_type=row["hold_type"],
        placed_zone=None if placed_at is None else (row["placed_segment"], row["placed_zone"]),
    )


def _seat_move(row: Row) -> dict[str, Any]:
    return {**row, "new_state": SeatState(row["new_state"])}
