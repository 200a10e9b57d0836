"""The people a booking is for: how they stand with the organization and the event now, and their names on the holds."""

from collections.abc import Sequence
from uuid import UUID

from holdfast.holds.attendees import Attendee, Person
from holdfast.holds.claims import AttendeeNamed
from holdfast.store.postgres.holds import Transactional

# Named by user, by membership or by address: one of the three is set in each row. A guest has an id and no account.
FIND_PEOPLE = """
SELECT coalesce(a.user_id, u.id) AS user_id, m.id AS membership_id, u.id IS NOT NULL AS known,
  coalesce(m.role, 'customer') AS role, coalesce(m.tiers, '{}') AS tiers,
  coalesce(m.active AND u.deactivated_at IS NULL, false) AS active, w.user_id IS NOT NULL AS whitelisted
FROM unnest($3::uuid[], $4::uuid[], $5::text[]) WITH ORDINALITY AS a (user_id, membership_id, email, n)
LEFT JOIN memberships b ON b.organization_id = $1 AND b.id = a.membership_id
LEFT JOIN users e ON e.organization_id = $1 AND lower(e.email) = lower(a.email) AND e.email IS NOT NULL
LEFT JOIN users u ON u.organization_id = $1 AND u.id = coalesce(a.user_id, b.user_id, e.id)
LEFT JOIN memberships m ON m.organization_id = $1 AND m.user_id = u.id
LEFT JOIN event_whitelist w ON w.organization_id = $1 AND w.event_id = $2 AND w.user_id = coalesce(a.user_id, u.id)
ORDER BY a.n
"""
NAME_ATTENDEES = "SELECT name_attendees($1, $2, $3, $4, $5)"


async def find_people(
    tx: Transactional, organization_id: UUID, event_id: UUID, wanted: Sequence[Attendee]
) -> list[Person]:
    """One for each that is wanted, in their order. Asked anew each time: what is taken from somebody counts at once."""
    rows = await tx.fetch(
        FIND_PEOPLE,
        organization_id,
        event_id,
        [one.user_id for one in wanted],
        [one.membership_id for one in wanted],
        [one.email for one in wanted],
    )
    return [Person(**{**dict(row), "tiers": frozenset(row["tiers"])}) for row in rows]


async def name_attendees(tx: Transactional, organization_id: UUID, named: Sequence[AttendeeNamed]) -> None:
    """In the transaction that placed the holds."""
    await tx.execute(
        NAME_ATTENDEES,
        organization_id,
        [one.hold_id for one in named],
        [one.user_id for one in named],
        [one.name for one in named],
        [one.membership_id for one in named],
    )
