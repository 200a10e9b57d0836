"""Wheelchair seats and their companions' in the database: how many a buyer holds, what is kept from whom, the audit."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol
from uuid import UUID

import asyncpg
import msgspec

from holdfast.accounts.principal import Call
from holdfast.seating.accessibility import AccessibleTerms, CompanionRule
from holdfast.store.postgres.arrays import integers, texts, uuids

Row = asyncpg.Record

# A buyer's other live holds in the event. The caller holds the buyer's advisory lock, which makes the count exact.
OWN_WHEELCHAIRS = """
SELECT h.ordinal FROM holds h
WHERE h.organization_id = $1 AND h.user_id = $2 AND h.event_id = $3 AND h.status = 'active'
  AND (h.held_until IS NULL OR h.held_until > holdfast_now()) AND h.ordinal = ANY ($4::text::integer[])
"""
LOCK = "SELECT pg_advisory_xact_lock(k) FROM unnest($1::text::bigint[]) k"
KEPT = """
SELECT k.kept FROM kept_companions($1, holdfast_now(), $2::text::integer[], $3::text::integer[], $4::text::uuid[],
  $5::text::integer[], $6::text::smallint[], $7::text::uuid[], $8::text::text[]) k
"""
# Companion seats among these whose wheelchair seat is this owner's.
CLAIMED = """
SELECT DISTINCT w.companion FROM unnest($3::text::integer[], $4::text::integer[]) AS w (companion, wheelchair)
JOIN event_seats s ON s.organization_id = $1 AND s.event_id = $2 AND s.ordinal = w.wheelchair
WHERE (s.state = 'sold' OR (s.state = 'held' AND (s.held_until IS NULL OR s.held_until > holdfast_now())))
  AND seat_is_own($1, s.event_id, s.ordinal, s.hold_id, s.sold_at, $5, $6)
ORDER BY 1
"""
STANDING = """
SELECT s.ordinal, CASE WHEN t.over THEN 'available' ELSE s.state::text END AS state,
  NOT t.over AND s.state IN ('held', 'sold') AND seat_is_own($1, s.event_id, s.ordinal, s.hold_id, s.sold_at, $4, $5) AS own,
  places_taken($1, s.event_id, s.zone_no) AS places_taken
FROM event_seats s CROSS JOIN LATERAL (SELECT coalesce(s.state = 'held' AND s.held_until <= holdfast_now(), false) AS over) t
WHERE s.organization_id = $1 AND s.event_id = $2 AND s.ordinal = ANY ($3::text::integer[]) ORDER BY s.ordinal
"""
AUDIT = """
INSERT INTO audit_entries (organization_id, at, action, entity_type, entity_id, event_id, actor, user_id, ip, user_agent,
  request_id, changes)
VALUES ($1, holdfast_now(), 'accessible_booking', $2, $3, $4, $5, $6, $7, $8, $9, $10)
"""


class Queries(Protocol):
    async def fetch(self, query: str, *args: Any) -> list[Row]: ...


class Standing(msgspec.Struct, frozen=True):
    """How a companion's seat stands for one owner."""

    ordinal: int
    state: str
    own: bool
    places_taken: int
    """Held or sold in the zone."""


class Asker(msgspec.Struct, frozen=True, kw_only=True):
    """Who books, as the audit keeps it."""

    organization_id: UUID
    actor: str
    user_id: UUID | None
    session_id: str | None
    ip: str | None
    user_agent: str | None
    request_id: str | None


def asker_of(call: Call, session_id: str | None) -> Asker:
    return Asker(
        organization_id=call.organization_id,
        actor=call.principal.actor.value,
        user_id=call.principal.user_id,
        session_id=session_id,
        ip=call.ip,
        user_agent=call.user_agent,
        request_id=call.request_id,
    )


def companion_rows(rules: Iterable[tuple[int, CompanionRule | None]]) -> str | None:
    """The rules of claims, by position (from 1), as `p_companions`; None where there are none."""
    rows = [
        integers((n, wheelchair, rule.free_from, int(rule.binding)))
        for n, rule in rules
        if rule is not None
        for wheelchair in rule.wheelchairs
    ]
    return "{" + ",".join(rows) + "}" if rows else None


async def lock_owner(tx: Queries, keys: Iterable[int]) -> None:
    """Until the transaction ends; in the order in which everybody takes such locks."""
    await tx.fetch(LOCK, integers(sorted(keys)))


async def other_wheelchairs(
    tx: Queries, organization_id: UUID, event_id: UUID, user_id: UUID, terms: AccessibleTerms
) -> int:
    """The wheelchair seats of the event that the user holds beside those of the request."""
    rows = await tx.fetch(OWN_WHEELCHAIRS, organization_id, user_id, event_id, integers(terms.all_wheelchairs))
    return len({row["ordinal"] for row in rows} - set(terms.wheelchairs))


async def kept_from(
    tx: Queries,
    organization_id: UUID,
    event_id: UUID,
    user_id: UUID | None,
    seats: Sequence[tuple[int, int, CompanionRule]],
) -> set[int]:
    """Of these companion seats (ordinal, zone, rule) those that this user could not have now."""
    rules = companion_rows((n, rule) for n, (_, _, rule) in enumerate(seats, 1))
    if rules is None:
        return set()
    (row,) = await tx.fetch(
        KEPT,
        organization_id,
        rules,
        integers(range(1, len(seats) + 1)),
        uuids([event_id] * len(seats)),
        integers([ordinal for ordinal, _, _ in seats]),
        integers([zone_no for _, zone_no, _ in seats]),
        uuids([user_id] * len(seats)),
        texts([None] * len(seats)),
    )
    return {seats[n - 1][0] for n in row["kept"]}


async def standing_of(
    tx: Queries,
    organization_id: UUID,
    event_id: UUID,
    ordinals: Iterable[int],
    user_id: UUID | None,
    session_id: str | None,
) -> dict[int, Standing]:
    rows = await tx.fetch(STANDING, organization_id, event_id, integers(ordinals), user_id, session_id)
    return {row["ordinal"]: Standing(*row) for row in rows}


async def audit_accessible(
    tx: Queries,
    asker: Asker,
    event_id: UUID,
    terms: AccessibleTerms,
    rules: Sequence[tuple[int, CompanionRule | None]],
    hold_ids: Sequence[UUID],
) -> None:
    """Of a booking with a wheelchair seat in it, or a companion's whose wheelchair seat is the same owner's; in the
    transaction that makes it."""
    if not terms.audited:
        return
    pairs = [(ordinal, chair) for ordinal, rule in rules if rule is not None for chair in rule.wheelchairs]
    claimed: list[int] = []
    if pairs:
        rows = await tx.fetch(
            CLAIMED,
            asker.organization_id,
            event_id,
            integers([companion for companion, _ in pairs]),
            integers([chair for _, chair in pairs]),
            asker.user_id,
            asker.session_id,
        )
        claimed = [row["companion"] for row in rows]
    if not terms.wheelchairs and not claimed:
        return
    changes = {
        "wheelchair_ordinals": list(terms.wheelchairs),
        "companion_ordinals": claimed,
        "hold_ids": [str(hold_id) for hold_id in hold_ids],
        "session_id": asker.session_id,
    }
    await tx.fetch(
        AUDIT,
        asker.organization_id,
        "SeatHold" if hold_ids else "Seat",
        hold_ids[0] if hold_ids else None,
        event_id,
        asker.actor,
        asker.user_id,
        asker.ip,
        asker.user_agent,
        asker.request_id,
        msgspec.json.encode(changes).decode(),
    )
