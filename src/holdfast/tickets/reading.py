"""Tickets with their seats' names, in the transaction of whoever asks."""

from collections.abc import Sequence
from uuid import UUID

from holdfast.seating.layout import Layout
from holdfast.seating.view import EventView
from holdfast.store.catalogue import Catalogue
from holdfast.store.postgres import ticket_reading as store
from holdfast.store.postgres.database import Transaction
from holdfast.tickets.answers import TicketRecord, TicketView, describe_ticket, seats_beside


async def ticket_views(
    tx: Transaction, catalogue: Catalogue, organization_id: UUID, tickets: Sequence[TicketRecord]
) -> list[TicketView]:
    """In the order given."""
    seen: dict[UUID, EventView] = {}
    beside: dict[UUID, set[int]] = {}
    layouts: dict[UUID, Layout] = {}
    for ticket in tickets:
        if ticket.event_id not in seen:
            seen[ticket.event_id] = await event_of(catalogue, organization_id, ticket.event_id)
        layouts[ticket.id] = layout = await layout_in(catalogue, seen[ticket.event_id], ticket.layout_version)
        others = seats_beside(layout, ticket.ordinal)
        if others:
            beside.setdefault(ticket.event_id, set()).update(others)
    facts = {
        event_id: await store.seats_beside(tx, organization_id, event_id, sorted(ordinals))
        for event_id, ordinals in beside.items()
    }
    return [
        describe_ticket(ticket, seen[ticket.event_id].name, layouts[ticket.id], facts.get(ticket.event_id, {}))
        for ticket in tickets
    ]


async def event_of(catalogue: Catalogue, organization_id: UUID, event_id: UUID) -> EventView:
    """Of something that refers to it: events are never deleted."""
    view = await catalogue.event(organization_id, event_id)
    assert view is not None, "the database sees to it that the event exists"
    return view


async def layout_in(catalogue: Catalogue, view: EventView, version: int | None) -> Layout:
    """The event's layout in the version in which a number is meant: it may have migrated since, or a moment ago."""
    if version is None or version == view.layout_version or view.layout_id is None:
        return view.layout
    layout = await catalogue.layout(view.organization_id, view.layout_id, version)
    assert layout is not None, "versions are never deleted"
    return layout
