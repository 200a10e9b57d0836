"""The box office: free places are sold over the counter, without being held before. One transaction, all or nothing."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from holdfast.accounts.principal import Call, require_staff
from holdfast.checkout.direct_sale import (
    Payment,
    SaleAnswer,
    SaleAsked,
    SoldTicket,
    check_payment,
    direct_sale_type,
    places_sold,
    total_minor,
)
from holdfast.checkout.reading import checkout_view
from holdfast.holds.answers import named_refusal
from holdfast.holds.attendees import Attendee, People, Person, require_known, require_room_for
from holdfast.holds.claims import SeatWanted, seat_not_offered, seconds_between, taken_seat
from holdfast.holds.plan import find_ordinals, find_places, plan_accessible, require_few, wanted_seats
from holdfast.kernel.errors import EventNotFound, InvalidRequest, LayoutChanged, Refusal
from holdfast.kernel.ids import new_id
from holdfast.kernel.problems import Problem
from holdfast.payments.refusals import PaymentReferenceUsed
from holdfast.seating.event import check_saleable
from holdfast.seating.event_writing import find_event
from holdfast.seating.view import EventView
from holdfast.store.catalogue import Catalogue
from holdfast.store.postgres import box_office as store
from holdfast.store.postgres import events, inventory, trail
from holdfast.store.postgres.accessibility import asker_of, audit_accessible, companion_rows
from holdfast.store.postgres.attendees import find_people
from holdfast.store.postgres.database import Database, Transaction
from holdfast.store.postgres.idempotency import run_once
from holdfast.store.postgres.returns import lock_seats
from holdfast.store.postgres.tickets import issue_tickets
from holdfast.tickets.places import ticket_place
from holdfast.tickets.terms import ticket_terms
from holdfast.tickets.ticket import NewTicket, PlaceSold, tickets_for

TOLD_AT_ONCE = 1_000
"""Tickets in one message."""


class BoxOffice:
    def __init__(self, database: Database, catalogue: Catalogue, seats_max: int) -> None:
        self._database = database
        self._catalogue = catalogue
        self._seats_max = seats_max

    async def sell(self, call: Call, event_id: UUID, asked: SaleAsked) -> SaleAnswer:
        require_staff(call)
        try:
            return await self._sell(call, event_id, asked)
        except LayoutChanged:  # seats are asked for by id: by the layout as it is now they can be found again
            self._catalogue.forget(call.organization_id, event_id)
            return await self._sell(call, event_id, asked)

    async def _sell(self, call: Call, event_id: UUID, asked: SaleAsked) -> SaleAnswer:
        view = await self._catalogue.fresh_event(call.organization_id, event_id)
        if view is None:
            raise EventNotFound
        check_saleable(view.status, None, None, view.database_now(), any_time=True)
        hold_type = direct_sale_type(view, asked.hold_type)
        ordinals = find_ordinals(view.layout, asked.seats)
        places = find_places(view.layout, asked.places)
        quantity = len(ordinals) + sum(wanted for _, wanted in places)
        require_few(call, quantity, self._seats_max, self._seats_max)
        require_room_for(asked.attendees, quantity)
        attendees = await self._people(call, view, asked)
        sold = places_sold(view, ordinals, places, hold_type.name, asked.buyer_id, attendees)
        paid = check_payment(sold, hold_type, asked, view.currency)

        async def work(tx: Transaction) -> SaleAnswer:
            await self._require_unchanged(tx, call, view)
            at = await tx.now()
            checkout_id = new_id()
            await self._insert(tx, call, view, checkout_id, asked.buyer_id, paid, at)
            seats = wanted_seats(view, call, sorted(ordinals), hold_type.name)
            await self._sell_seats(tx, call, view, seats, hold_type.name, checkout_id, asked.buyer_id)
            for zone, wanted in places:
                done = await store.sell_places(tx, call, event_id, zone.zone_no, wanted, hold_type.name, checkout_id)
                if not done:
                    raise await inventory.zone_refusal(tx, call.organization_id, event_id, zone.zone_no)
            tickets = [
                ticket
                for place in sold
                for ticket in tickets_for(place, ticket_terms(view, place.zone_no), view.currency)
            ]
            await issue_tickets(tx, call.organization_id, event_id, checkout_id, at, tickets)
            await self._tell(tx, call, view, checkout_id, hold_type.name, sold, tickets, paid)
            tx.moved(event_id, ordinals)
            shown = await checkout_view(tx, self._catalogue, call.organization_id, checkout_id)
            assert shown is not None
            return SaleAnswer(
                checkout=shown, total_minor=total_minor(sold, paid), tickets=[_sold(view, ticket) for ticket in tickets]
            )

        try:
            return await run_once(self._database, call, work, SaleAnswer)
        except Refusal as refusal:
            raise named_refusal(refusal, view) from refusal

    async def _people(self, call: Call, view: EventView, asked: SaleAsked) -> list[tuple[Attendee, Person]]:
        """Those it is for, as they are known here. Whoever is named as the buyer must be."""
        buyer = [] if asked.buyer_id is None else [Attendee(user_id=asked.buyer_id)]
        if not buyer and not asked.attendees:
            return []
        async with self._database.transaction(call.organization_id) as tx:
            found = await find_people(tx, call.organization_id, view.id, [*buyer, *asked.attendees])
        if buyer and not found[0].known:
            said = "there is no such user of the organization"
            raise InvalidRequest(f"/buyer/user_id: {said}", [Problem("/buyer/user_id", "unknown_user", said)])
        attendees = found[len(buyer) :]
        require_known(asked.attendees, People(Person(), tuple(attendees)))
        return list(zip(asked.attendees, attendees, strict=True))

    @staticmethod
    async def _require_unchanged(tx: Transaction, call: Call, view: EventView) -> None:
        """From here on the event stays as it is until the commit."""
        await events.share_event(tx, view.id)
        event = (await find_event(tx, call, view.id)).event
        check_saleable(event.status, None, None, event.updated_at, any_time=True)
        if event.layout_version != view.layout_version:
            raise LayoutChanged

    @staticmethod
    async def _insert(
        tx: Transaction,
        call: Call,
        view: EventView,
        checkout_id: UUID,
        buyer_id: UUID | None,
        paid: Payment | None,
        at: datetime,
    ) -> None:
        """Before any seat: of two sales that state one reference, the second waits here, with nothing in its hands."""
        payment_id = None if paid is None else new_id()
        await store.insert_checkout(tx, call, checkout_id, view.id, buyer_id, at, view.currency, payment_id)
        if paid is not None and payment_id is not None:
            amount = paid.amount_minor
            if not await store.insert_payment(
                tx, call, payment_id, checkout_id, view.id, paid.reference, amount, view.currency, at
            ):
                raise PaymentReferenceUsed

    @staticmethod
    async def _sell_seats(
        tx: Transaction,
        call: Call,
        view: EventView,
        seats: Sequence[SeatWanted],
        hold_type: str,
        checkout_id: UUID,
        buyer_id: UUID | None,
    ) -> None:
        if not seats:
            return
        rules = [(seat.ordinal, seat.companion) for seat in seats]
        chairs = {chair for _, rule in rules if rule is not None for chair in rule.wheelchairs}
        ordinals = [seat.ordinal for seat in seats]
        standing = await lock_seats(tx, call.organization_id, view.id, sorted({*ordinals, *chairs}))
        for ordinal in ordinals:
            now = standing[ordinal]
            if now.state != "available":
                raise taken_seat(ordinal, now.state, seconds_between(now.now, now.held_until))
        companions = companion_rows((n, rule) for n, (_, rule) in enumerate(rules, 1))
        done = await store.sell_seats(tx, call, view.id, ordinals, hold_type, checkout_id, buyer_id, companions)
        if not done:  # all are free: one is kept for somebody's companion
            raise seat_not_offered(next(seat for seat in seats if seat.companion is not None))
        terms = plan_accessible(view, call, ordinals)
        if terms is not None:
            await audit_accessible(tx, asker_of(call, str(checkout_id)), view.id, terms, rules, [])

    @staticmethod
    async def _tell(
        tx: Transaction,
        call: Call,
        view: EventView,
        checkout_id: UUID,
        hold_type: str,
        sold: Sequence[PlaceSold],
        tickets: Sequence[NewTicket],
        paid: Payment | None,
    ) -> None:
        told = {
            "source": "box_office",
            "hold_type": hold_type,
            "total_minor": total_minor(sold, paid),
            "currency": view.currency,
        }
        changes = {**told, "tickets": len(tickets), "paid": paid is not None}
        await trail.write_audit(
            tx, call, "checkout_completed", "Checkout", checkout_id, event_id=view.id, changes=changes
        )
        ids = [ticket.id for ticket in tickets]
        parts = [ids[at : at + TOLD_AT_ONCE] for at in range(0, len(ids), TOLD_AT_ONCE)]
        for n, part in enumerate(parts, 1):
            split = {"part": n, "parts": len(parts)} if len(parts) > 1 else {}
            payload = {"checkout_id": checkout_id, **told, "ticket_ids": part, **split}
            await trail.send_message(tx, call.organization_id, "CheckoutCompleted", view.id, payload)


def _sold(view: EventView, ticket: NewTicket) -> SoldTicket:
    place = ticket_place(view.layout, ticket.place.ordinal, ticket.place.zone_no)
    return SoldTicket(
        id=ticket.id,
        seat=place.seat,
        zone=place.zone,
        price_minor=ticket.place.price_minor,
        attendee_name=ticket.place.attendee_name,
    )
