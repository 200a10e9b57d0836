"""Tickets: issuing, finding, voiding them."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from holdfast.store.postgres.database import Transaction
from holdfast.tickets.ticket import NewTicket

ISSUE = """
INSERT INTO tickets (organization_id, id, event_id, checkout_id, hold_id, ordinal, zone_no, hold_type, user_id,
  attendee_user_id, attendee_name, associated_membership_id, price_minor, currency, valid_days, entitlement,
  max_daily_entries, issued_at)
SELECT $1, t.id, $2, $3, t.hold_id, t.ordinal, t.zone_no, t.hold_type, t.user_id, t.attendee_user_id, t.attendee_name,
  t.membership_id, t.price_minor, t.currency, string_to_array(t.days, ' ')::date[], t.entitlement, t.max_daily_entries, $4
FROM unnest($5::uuid[], $6::uuid[], $7::integer[], $8::smallint[], $9::text[], $10::uuid[], $11::uuid[], $12::text[],
  $13::uuid[], $14::bigint[], $15::text[], $16::text[], $17::text[], $18::integer[])
  AS t (id, hold_id, ordinal, zone_no, hold_type, user_id, attendee_user_id, attendee_name, membership_id, price_minor,
    currency, days, entitlement, max_daily_entries)
"""


async def issue_tickets(
    tx: Transaction,
    organization_id: UUID,
    event_id: UUID,
    checkout_id: UUID,
    at: datetime,
    tickets: Sequence[NewTicket],
) -> None:
    """In the transaction that sells the places: what is sold has a ticket, and nothing else has."""
    places = [ticket.place for ticket in tickets]
    await tx.execute(
        ISSUE,
        organization_id,
        event_id,
        checkout_id,
        at,
        [ticket.id for ticket in tickets],
        [place.hold_id for place in places],
        [place.ordinal for place in places],
        [place.zone_no for place in places],
        [place.hold_type for place in places],
        [place.user_id for place in places],
        [place.attendee_user_id for place in places],
        [place.attendee_name for place in places],
        [place.associated_membership_id for place in places],
        [place.price_minor for place in places],
        [ticket.currency for ticket in tickets],
        [" ".join(map(str, ticket.terms.valid_days)) for ticket in tickets],
        [ticket.terms.entitlement.value for ticket in tickets],
        [ticket.terms.max_daily_entries for ticket in tickets],
    )
