"""What organisers do with tickets that were sold: take the sale back, or move the ticket to another place."""

from collections.abc import Sequence
from uuid import UUID

from holdfast.accounts.principal import Call, require_staff
from holdfast.holds.answers import named_refusal
from holdfast.holds.claims import seconds_between, taken_seat
from holdfast.holds.lifecycle import BookingState
from holdfast.holds.plan import find_ordinals, plan_accessible
from holdfast.kernel.errors import (
    EventNotFound,
    InvalidRequest,
    LayoutChanged,
    Refusal,
    TicketNotFound,
    ZoneNotFound,
)
from holdfast.kernel.problems import Problem, quoted
from holdfast.seating.accessibility import CompanionRule, companion_rule
from holdfast.seating.event import check_saleable
from holdfast.seating.event_writing import find_event
from holdfast.seating.layout import Layout
from holdfast.seating.view import EventView
from holdfast.store.catalogue import Catalogue
from holdfast.store.postgres import inventory, trail
from holdfast.store.postgres import returns as store
from holdfast.store.postgres.accessibility import asker_of, audit_accessible, companion_rows
from holdfast.store.postgres.database import Database, Row, Transaction
from holdfast.store.postgres.idempotency import run_once
from holdfast.tickets.places import accessibility_notes, ticket_place
from holdfast.tickets.refusals import TicketVoid
from holdfast.tickets.returns import (
    PlaceAsked,
    RefundDue,
    ReturnedTicket,
    TicketExchanged,
    TicketsReverted,
    price_difference_minor,
)
from holdfast.tickets.ticket import TicketStatus

REVERTED_MAX = 10_000
"""Tickets in one call."""


class ReturnsService:
    def __init__(self, database: Database, catalogue: Catalogue) -> None:
        self._database = database
        self._catalogue = catalogue

    # Reverting ---------------------------------------------------------------------------------------------------
    async def revert(self, call: Call, ticket_id: UUID, reason: str, *, refund: bool = True) -> ReturnedTicket:
        """The ticket is void, its place free again, what was paid for it due back. Repeating it changes nothing."""
        require_staff(call)
        event_id = await self._event_of(call, ticket_id)
        return (await self._revert(call, event_id, [ticket_id], reason, refund=refund)).tickets[0]

    async def revert_many(
        self, call: Call, event_id: UUID, ticket_ids: Sequence[UUID], reason: str, *, refund: bool = True
    ) -> TicketsReverted:
        """All of them, or none."""
        require_staff(call)
        if await self._catalogue.event(call.organization_id, event_id) is None:
            raise EventNotFound
        return await self._revert(call, event_id, ticket_ids, reason, refund=refund)

    async def _revert(
        self, call: Call, event_id: UUID, ticket_ids: Sequence[UUID], reason: str, *, refund: bool
    ) -> TicketsReverted:
        async def work(tx: Transaction) -> TicketsReverted:
            voided = await store.revert_tickets(tx, call, event_id, ticket_ids, reason, refund=refund)
            rows = await store.returned_tickets(tx, call.organization_id, event_id, ticket_ids)
            missing = [str(ticket_id) for ticket_id in ticket_ids if ticket_id not in rows]
            if missing:
                refusal = TicketNotFound()
                if len(ticket_ids) > 1:
                    refusal.facts["ticket_ids"] = missing
                raise refusal
            tx.moved(event_id, [rows[ticket_id]["ordinal"] for ticket_id in voided])
            layouts = await self._layouts(call, event_id, {row["layout_version"] for row in rows.values()})
            return TicketsReverted(
                reverted=len(voided),
                already_void=len(ticket_ids) - len(voided),
                tickets=[_returned(layouts[rows[t]["layout_version"]], rows[t]) for t in ticket_ids],
            )

        return await run_once(self._database, call, work, TicketsReverted)

    async def _event_of(self, call: Call, ticket_id: UUID) -> UUID:
        async with self._database.transaction(call.organization_id) as tx:
            event_id = await store.event_of(tx, call.organization_id, ticket_id)
        if event_id is None:
            raise TicketNotFound
        return event_id

    async def _layouts(self, call: Call, event_id: UUID, versions: set[int | None]) -> dict[int | None, Layout]:
        """A void ticket may be on a seat that only an earlier version of the layout has."""
        view = await self._catalogue.event(call.organization_id, event_id)
        assert view is not None, "a ticket's event is never deleted: the database sees to it"
        found: dict[int | None, Layout] = {}
        for version in versions:
            layout: Layout | None = view.layout
            if view.layout_id is not None and version is not None and version != view.layout_version:
                layout = await self._catalogue.layout(call.organization_id, view.layout_id, version)
            assert layout is not None, "versions are never deleted"
            found[version] = layout
        return found

    # Exchanging --------------------------------------------------------------------------------------------------
    async def exchange(self, call: Call, ticket_id: UUID, asked: PlaceAsked, reason: str | None) -> TicketExchanged:
        """The same ticket for another place: codes made before are refused, its terms and its price stay."""
        require_staff(call)
        event_id = await self._event_of(call, ticket_id)
        try:
            return await self._exchange(call, event_id, ticket_id, asked, reason)
        except LayoutChanged:  # places are asked for by id: by the layout as it is now they can be found again
            self._catalogue.forget(call.organization_id, event_id)
            return await self._exchange(call, event_id, ticket_id, asked, reason)

    async def _exchange(
        self, call: Call, event_id: UUID, ticket_id: UUID, asked: PlaceAsked, reason: str | None
    ) -> TicketExchanged:
        view = await self._catalogue.fresh_event(call.organization_id, event_id)
        assert view is not None, "a ticket's event is never deleted: the database sees to it"
        ordinal, zone_no = _target(view, asked)
        rule = None
        if ordinal is not None:
            rule = companion_rule(view.layout, view.effective_policy, ordinal, binding=False)

        async def work(tx: Transaction) -> TicketExchanged:
            ticket = await self._locked(tx, call, view, ticket_id)
            if (ticket["ordinal"], ticket["zone_no"]) == (ordinal, zone_no):
                field = "/zone_id" if ordinal is None else "/seat"
                said = "the ticket is for this very place already"
                raise InvalidRequest(f"{field}: {said}", [Problem(field, "same_place", said)])
            await self._require_free(tx, call, view, ticket["ordinal"], ordinal, rule)
            left = ticket_place(view.layout, ticket["ordinal"], ticket["zone_no"])
            taken = ticket_place(view.layout, ordinal, zone_no)
            said = f"exchange of ticket {ticket_id} from {left.words} to {taken.words}"
            said += f": {reason}" if reason else ""
            companions = companion_rows([(1, rule)])
            hold_type = _type_when_sold(view, ticket["hold_type"])
            if not await store.exchange_ticket(tx, call, ticket, ordinal, zone_no, hold_type, companions, said):
                if ordinal is None:
                    raise await inventory.zone_refusal(tx, call.organization_id, event_id, zone_no)
                raise LayoutChanged  # the seat is locked and was free: only a number with another meaning is left
            answer = _exchanged(view, ticket, ordinal, zone_no)
            await self._tell(tx, call, view, answer, ordinal, rule, reason)
            tx.moved(event_id, [ticket["ordinal"], ordinal])
            return answer

        try:
            return await run_once(self._database, call, work, TicketExchanged)
        except Refusal as refusal:
            raise named_refusal(refusal, view) from refusal

    @staticmethod
    async def _locked(tx: Transaction, call: Call, view: EventView, ticket_id: UUID) -> Row:
        ticket = await store.lock_ticket(tx, call.organization_id, view.id, ticket_id)
        if ticket is None:
            raise TicketNotFound
        event = (await find_event(tx, call, view.id)).event  # which stays so until the commit
        if event.layout_version != view.layout_version:
            raise LayoutChanged
        if ticket["status"] != TicketStatus.VALID:
            raise TicketVoid(ticket["void_reason"])
        check_saleable(event.status, None, None, event.updated_at, any_time=True)
        return ticket

    @staticmethod
    async def _require_free(
        tx: Transaction,
        call: Call,
        view: EventView,
        left: int | None,
        taken: int | None,
        rule: CompanionRule | None,
    ) -> None:
        """Locks both seats, and the wheelchair seats that the new one depends on."""
        chairs = () if rule is None else rule.wheelchairs
        wanted = sorted({o for o in (left, taken, *chairs) if o is not None})
        standing = await store.lock_seats(tx, call.organization_id, view.id, wanted)
        if taken is not None and standing[taken].state != "available":
            now = standing[taken]
            raise taken_seat(taken, now.state, seconds_between(now.now, now.held_until))

    @staticmethod
    async def _tell(
        tx: Transaction,
        call: Call,
        view: EventView,
        answer: TicketExchanged,
        ordinal: int | None,
        rule: CompanionRule | None,
        reason: str | None,
    ) -> None:
        terms = None if ordinal is None else plan_accessible(view, call, [ordinal])
        if terms is not None and ordinal is not None:
            await audit_accessible(tx, asker_of(call, None), view.id, terms, [(ordinal, rule)], [])
        told = {
            "ticket_id": answer.ticket_id,
            "from": answer.left,
            "to": answer.taken,
            "code_version": answer.code_version,
            "price_difference_minor": answer.price_difference_minor,
            "currency": answer.currency,
        }
        await trail.write_audit(
            tx,
            call,
            "ticket_exchanged",
            "Ticket",
            answer.ticket_id,
            event_id=view.id,
            reason=reason,
            changes={**told, "notes": answer.notes},
        )
        await trail.send_message(tx, call.organization_id, "TicketExchanged", view.id, told)


def _target(view: EventView, asked: PlaceAsked) -> tuple[int | None, int]:
    """The seat, or null and the counted zone."""
    layout = view.layout
    if asked.seat is not None:
        (ordinal,) = find_ordinals(layout, [asked.seat])
        return ordinal, layout.zone_nos[ordinal]
    assert asked.zone is not None
    zone = layout.zone(asked.zone)
    if zone is None:
        raise ZoneNotFound(f"There is no zone {quoted(asked.zone)} in this event.", zone=asked.zone)
    if not zone.is_ga:
        raise InvalidRequest(f"{zone.name} has numbered seats: name one by id.", zone=zone.zone_id)
    return None, zone.zone_no


def _type_when_sold(view: EventView, hold_type: str | None) -> str | None:
    """As a sale keeps the type of its hold: only where it is one that sold seats may have."""
    resolved = view.hold_types.get(hold_type or "")
    return hold_type if resolved is not None and BookingState.SOLD in resolved.hold_type.valid_states else None


def _exchanged(view: EventView, ticket: Row, ordinal: int | None, zone_no: int) -> TicketExchanged:
    price = view.zone_price(zone_no) if ordinal is None else view.price_of(ordinal)
    return TicketExchanged(
        ticket_id=ticket["id"],
        event_id=view.id,
        left=ticket_place(view.layout, ticket["ordinal"], ticket["zone_no"]),
        taken=ticket_place(view.layout, ordinal, zone_no),
        code_version=ticket["code_version"] + 1,
        price_minor=ticket["price_minor"],
        list_price_minor=price,
        price_difference_minor=price_difference_minor(ticket["price_minor"], price),
        currency=ticket["currency"],
        notes=accessibility_notes(view.layout, ticket["ordinal"], ordinal),
    )


def _returned(layout: Layout, row: Row) -> ReturnedTicket:
    place = ticket_place(layout, row["ordinal"], row["zone_no"])
    refund = None
    if row["refund_id"] is not None:
        refund = RefundDue(row["refund_id"], row["amount_minor"], row["currency"], row["refund_status"])
    return ReturnedTicket(
        ticket_id=row["id"],
        event_id=row["event_id"],
        seat=place.seat,
        zone=place.zone,
        status=TicketStatus(row["status"]),
        voided_at=row["voided_at"],
        void_reason=row["void_reason"],
        was_inside=row["inside"],
        refund=refund,
    )
