"""The best seats for those who do not pick: chosen and held in one call, or only proposed.

Others want the same seats. What this process is about to hold for one caller is not offered to the next; what another
process was faster to take is learned from the feed, and the next best is tried. Nobody hears that there is nothing left
before a look that began after the last try found nothing.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec
import numpy as np
from numpy.typing import NDArray

from holdfast.accounts.principal import Call
from holdfast.allocation.choose import Choice, Rung, Wish, choose
from holdfast.allocation.floor import Floor, floor_of
from holdfast.holds.answers import HoldView, Placement
from holdfast.holds.attendees import People, judge_buyer, require_access
from holdfast.holds.lifecycle import Actor
from holdfast.holds.orphan_guard import note_stranding
from holdfast.holds.orphan_rule import NOT_STRICT, Stranding, describe_seats
from holdfast.holds.plan import HoldsAsked, PlacesAsked, require_few
from holdfast.holds.service import HoldsService
from holdfast.holds.wish import Mask, SeatsWished, serving_seats, with_wheelchair, zones_wished
from holdfast.kernel.errors import (
    EventNotFound,
    NoSeatsLeft,
    Overloaded,
    SeatHeldByAnother,
    SeatNotAvailable,
    SeatNotOffered,
    Unprocessable,
    ZoneAccessDenied,
    ZoneAtCapacity,
    ZoneNotFound,
)
from holdfast.kernel.problems import Problem, listing
from holdfast.seating.groups import clusters_of
from holdfast.seating.layout import Zone
from holdfast.seating.sight import may_see
from holdfast.seating.view import EventView
from holdfast.settings import Settings
from holdfast.store.catalogue import Catalogue
from holdfast.store.registry import Registry

LOOKS_MAX = 3
"""Times that seats the database refused, though they look free, are tried again."""


class ProposedSeat(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    seat_id: str
    ordinal: int
    zone_id: str
    zone_name: str
    row: str
    number: int
    category: str
    amount_minor: int | None


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """Seats, or places in a zone without numbers, with the reason in words."""

    seats: list[ProposedSeat]
    rung: Rung | None  # how far down the ladder it had to go; None where places are counted
    clusters: list[list[str]]  # seat ids of those who sit together
    stranded: list[str]
    words: str
    currency: str | None
    total_minor: int | None
    zone_id: str | None = None  # of places that are counted


class Best(msgspec.Struct, frozen=True, kw_only=True):
    proposal: Proposal
    holds: list[HoldView]
    expires_in_seconds: int | None
    held_until: datetime | None


class _Search(msgspec.Struct, frozen=True, kw_only=True):
    view: EventView
    wished: SeatsWished
    floor: Floor
    masks: list[Mask]
    counted: list[Zone]
    """Zones without numbers that would serve, where no numbered one could."""
    prices: NDArray[np.int64] | None
    strict_orphans: bool

    def choose(self, free: Mask) -> Choice | None:
        policy, wished = self.view.effective_policy, self.wished
        for mask in self.masks:
            if wished.accessible:
                seats = with_wheelchair(self.view.layout, free, mask, self.floor.quality, wished.quantity)
                if seats:
                    clusters = clusters_of(self.view.layout, seats)
                    words = f"With a place for a wheelchair: {describe_seats(self.view.layout, seats)}."
                    return Choice(
                        ordinals=tuple(seats),
                        rung=Rung.TOGETHER if len(clusters) == 1 else Rung.NEAREST,
                        clusters=tuple(tuple(cluster) for cluster in clusters),
                        stranded=(),
                        excuse=None,
                        words=words,
                    )
                continue
            wish = Wish(
                quantity=wished.quantity,
                allowed=mask,
                strict_orphans=self.strict_orphans,
                max_group_split=policy.max_group_split,
                adjacency_strict=policy.group_adjacency_strict,
                strategy=wished.strategy,
                prices=self.prices,
            )
            choice = choose(self.floor, free, wish)
            if choice is not None:
                return choice
        return None


class _Marks:
    """Seats of one event that this process is about to hold, or has just held and not yet heard of by the feed."""

    __slots__ = ("placed", "under_way")

    def __init__(self) -> None:
        self.under_way: dict[asyncio.Future[None], tuple[int, ...]] = {}
        self.placed: dict[int, int] = {}
        """With the number of the feed's look that was under way then."""

    def cover(self, free: Mask, looks_done: int) -> None:
        self.placed = {ordinal: look for ordinal, look in self.placed.items() if looks_done <= look}
        busy = [ordinal for seats in self.under_way.values() for ordinal in seats]
        busy += self.placed
        if busy:
            free[busy] = False


class BestAvailable:
    def __init__(self, holds: HoldsService, catalogue: Catalogue, registry: Registry, settings: Settings) -> None:
        self._holds = holds
        self._catalogue = catalogue
        self._registry = registry
        self._bulk_max = settings.bulk_seats_max
        self._patience_s = settings.writer_deadline_s
        self._marks: dict[UUID, _Marks] = {}

    # Proposing ---------------------------------------------------------------------------------------------------
    async def preview(self, call: Call, event_id: UUID, wished: SeatsWished) -> Proposal:
        """What `hold` would take at this moment. Nothing is kept for anybody."""
        search = await self._prepare(call, event_id, wished)
        if search.counted:
            return _of_places(search, search.counted[0])
        event = await self._registry.seats(search.view)
        free = self._registry.free_seats(event)
        marks = self._marks.get(event_id)
        if marks is not None:
            marks.cover(free, self._registry.feed.looks_done)
        choice = search.choose(free)
        if choice is None:
            raise _nothing_left(search)
        return _proposal(search, choice)

    # Holding -----------------------------------------------------------------------------------------------------
    async def hold(self, call: Call, event_id: UUID, wished: SeatsWished) -> Best:
        search = await self._prepare(call, event_id, wished)
        if search.counted:
            return await self._hold_places(call, search)
        try:
            async with asyncio.timeout(self._patience_s):
                return await self._hold_best(call, search)
        except TimeoutError:
            raise Overloaded("Too many people want the same seats. Please try again.", retry_after_s=1) from None

    async def _hold_best(self, call: Call, search: _Search) -> Best:
        view = search.view
        marks = self._marks.setdefault(view.id, _Marks())
        feed = self._registry.feed
        refused: set[int] = set()
        looks = 0
        sure = False
        """Nothing has happened that the next choice does not know of."""
        while True:
            free = self._registry.free_seats(await self._registry.seats(view))
            marks.cover(free, feed.looks_done)
            if refused:
                free[list(refused)] = False
            choice = search.choose(free)
            if choice is None:
                if marks.under_way:
                    await asyncio.wait(list(marks.under_way))  # what they do not get, somebody else may
                elif not sure:
                    sure = True
                    await feed.caught_up()
                elif refused and looks < LOOKS_MAX:
                    looks += 1
                    refused.clear()
                else:
                    raise _nothing_left(search)
                continue
            sure = False
            placement = await self._try(call, search, choice, marks, refused)
            if placement is not None:
                return _best(search, choice, placement)
            await feed.caught_up()

    async def _try(
        self, call: Call, search: _Search, choice: Choice, marks: _Marks, refused: set[int]
    ) -> Placement | None:
        view, wished = search.view, search.wished
        asked = HoldsAsked(
            seats=tuple(view.layout.seat_uuid(ordinal) for ordinal in choice.ordinals),
            hold_type=wished.hold_type,
            source=wished.source,
            endpoint_ttl_s=wished.endpoint_ttl_s,
            chosen_by_system=True,
        )
        settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        marks.under_way[settled] = choice.ordinals
        try:
            placement = await self._holds.hold_seats(call, view.id, asked)
        except (SeatHeldByAnother, SeatNotAvailable, SeatNotOffered) as refusal:
            taken = view.layout.seat_index.of(UUID(refusal.facts["seat_id"]))
            refused.update(choice.ordinals if taken is None else (taken,))
            return None
        finally:
            del marks.under_way[settled]
            settled.set_result(None)
        look = self._registry.feed.looks_begun
        marks.placed.update((ordinal, look) for ordinal in choice.ordinals)
        if choice.stranded and call.principal.actor is Actor.CUSTOMER:
            reason = choice.excuse or NOT_STRICT
            stranding = Stranding(choice.stranded, reason, by_policy=choice.excuse is None)
            note_stranding(call, view, stranding, "excused" if choice.excuse else "allowed")
        return placement

    async def _hold_places(self, call: Call, search: _Search) -> Best:
        """In the first zone, in the order they were named, that has room."""
        wished = search.wished
        for zone in search.counted:
            asked = HoldsAsked(
                places=(PlacesAsked(zone.zone_id, wished.quantity),),
                hold_type=wished.hold_type,
                source=wished.source,
                endpoint_ttl_s=wished.endpoint_ttl_s,
            )
            try:
                placement = await self._holds.hold_seats(call, search.view.id, asked)
            except ZoneAtCapacity:
                continue
            return _held(_of_places(search, zone), placement)
        raise _nothing_left(search)

    # What could serve --------------------------------------------------------------------------------------------
    async def _prepare(self, call: Call, event_id: UUID, wished: SeatsWished) -> _Search:
        view = await self._catalogue.event(call.organization_id, event_id)
        if view is None or not may_see(call, view.id, view.status):
            raise EventNotFound
        require_few(call, wished.quantity, view.effective_policy.max_seats_per_booking, self._bulk_max)
        zones, unknown = zones_wished(view.layout, wished.zones)
        if unknown:
            raise ZoneNotFound(f"There is no zone {listing(unknown)} in this event.", zones=unknown)
        zones = await self._open_zones(call, view, zones, named=bool(wished.zones))
        prices = view.price_column()
        if wished.price_max is not None and prices is None:
            said = "the event has no prices, so no price can be the highest"
            raise Unprocessable(f"price_max: {said}.", [Problem("/price_max", "no_prices", said)])
        numbered = [zone for zone in zones if not zone.is_ga]
        counted = [] if numbered or wished.accessible or wished.categories else zones
        if wished.price_max is not None:
            limit = wished.price_max
            counted = [z for z in counted if (price := view.zone_price(z.zone_no)) is not None and price <= limit]
        buyer = call.principal.actor is Actor.CUSTOMER
        return _Search(
            view=view,
            wished=wished,
            floor=floor_of(view.layout),
            masks=serving_seats(view.layout, wished, numbered, prices),
            counted=counted,
            prices=prices,
            strict_orphans=buyer and view.effective_policy.orphan_avoidance_strict,
        )

    async def _open_zones(self, call: Call, view: EventView, zones: Sequence[Zone], *, named: bool) -> list[Zone]:
        """Those the caller may sit in; whoever names one that is closed to them is told so."""
        if view.layout.all_public or call.principal.actor is not Actor.CUSTOMER:
            return list(zones)
        buyer = await self._holds.buyer_of(call, view)
        if named:
            try:
                require_access(call, zones, (), (), People(buyer))
            except ZoneAccessDenied as denied:
                self._holds.note_refusal(call, view.id, denied)
                raise
            return list(zones)
        return [zone for zone in zones if judge_buyer(call, zone, buyer) is None]


def _nothing_left(search: _Search) -> NoSeatsLeft:
    quantity = search.wished.quantity
    what = "No seat that fits is" if quantity == 1 else f"No {quantity} seats that fit are"
    if search.wished.accessible:
        what = "No place for a wheelchair that fits is"
    detail = f"{what} free at this moment."
    if search.view.effective_policy.group_adjacency_strict and quantity > 1:
        detail += " Parties are not spread over the house here; fewer seats may still be found."
    return NoSeatsLeft(detail, quantity=quantity)


def _proposal(search: _Search, choice: Choice) -> Proposal:
    view = search.view
    layout, prices = view.layout, search.prices
    amounts = [None if prices is None or prices[o] < 0 else int(prices[o]) for o in choice.ordinals]
    known = [amount for amount in amounts if amount is not None]
    return Proposal(
        seats=[
            ProposedSeat(
                id=layout.seat_uuid(ordinal),
                seat_id=layout.seat_ids[ordinal],
                ordinal=ordinal,
                zone_id=layout.zone_of(ordinal).zone_id,
                zone_name=layout.zone_of(ordinal).name,
                row=layout.rows[ordinal],
                number=layout.numbers[ordinal],
                category=layout.categories[ordinal].value,
                amount_minor=amount,
            )
            for ordinal, amount in zip(choice.ordinals, amounts, strict=True)
        ],
        rung=choice.rung,
        clusters=[[layout.seat_ids[ordinal] for ordinal in cluster] for cluster in choice.clusters],
        stranded=[layout.seat_ids[ordinal] for ordinal in choice.stranded],
        words=choice.words,
        currency=view.currency,
        total_minor=sum(known) if len(known) == len(amounts) else None,
    )


def _of_places(search: _Search, zone: Zone) -> Proposal:
    quantity, price = search.wished.quantity, search.view.zone_price(zone.zone_no)
    noun = "place" if quantity == 1 else "places"
    return Proposal(
        seats=[],
        rung=None,
        clusters=[],
        stranded=[],
        words=f"{quantity} {noun} in {zone.name}, without a number.",
        currency=search.view.currency,
        total_minor=None if price is None else price * quantity,
        zone_id=zone.zone_id,
    )


def _best(search: _Search, choice: Choice, placement: Placement) -> Best:
    proposal = _proposal(search, choice)
    held = {hold.seat_id for hold in placement.holds}
    if held != {seat.id for seat in proposal.seats}:
        # The answer of an earlier request with the same Idempotency-Key: what it chose, not what would be chosen now.
        ordinals = [
            o for seat in held if seat is not None and (o := search.view.layout.seat_index.of(seat)) is not None
        ]
        words = f"Chosen before: {describe_seats(search.view.layout, ordinals)}."
        before = msgspec.structs.replace(
            choice, ordinals=tuple(sorted(ordinals)), clusters=(), stranded=(), words=words
        )
        proposal = _proposal(search, before)
    return _held(proposal, placement)


def _held(proposal: Proposal, placement: Placement) -> Best:
    lives = [hold.expires_in_seconds for hold in placement.holds if hold.expires_in_seconds is not None]
    ends = [hold.held_until for hold in placement.holds if hold.held_until is not None]
    return Best(
        proposal=proposal,
        holds=placement.holds,
        expires_in_seconds=min(lives) if lives else None,
        held_until=min(ends) if ends else None,
    )
