"""Holding, releasing, extending and selling, as calls of the SQL functions that alone may change a seat's state."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

import asyncpg
import msgspec

from holdfast.accounts.principal import Call
from holdfast.holds.claims import (
    MAX_ATTEMPTS,
    ClaimFacts,
    Held,
    HoldRequest,
    PlacedHold,
    Unsettled,
    Verdict,
    held_by_another,
    settle,
)
from holdfast.holds.plan import require_few_wheelchairs
from holdfast.kernel.errors import Refusal
from holdfast.store.postgres import accessibility
from holdfast.store.postgres.accessibility import Asker, companion_rows
from holdfast.store.postgres.arrays import booleans, integers, texts, uuids
from holdfast.store.postgres.idempotency import lock_key

Row = asyncpg.Record


class Queries(Protocol):
    """A transaction, or a bare connection (each of the two `hold_…` calls is a transaction by itself)."""

    async def fetch(self, query: str, *args: Any) -> list[Row]: ...


_LIMITS = ("integer", "uuid", "text", "integer", "integer", "integer")
_OWNERS = ("uuid", "text", "text", "boolean", "text", "text", "text", "text", "text", "integer", "boolean")


def _call(function: str, *types: str) -> str:
    """A call whose first two parameters are the organization and the window, and whose others are arrays as text."""
    arrays = ", ".join(f"${n}::text::{kind}[]" for n, kind in enumerate(types, 3))
    return f"SELECT * FROM {function}($1, $2, {arrays})"


HOLD_SEATS = _call(
    "hold_seats",
    "bigint",
    "uuid",
    *_LIMITS,
    "integer",
    "uuid",
    "integer",
    "integer",
    "smallint",
    "uuid",
    *_OWNERS,
    "integer",
)
_ZONES = ("uuid", "integer", "smallint")
HOLD_PLACES = _call(
    "hold_places", "bigint", "uuid", *_LIMITS, *_ZONES, "integer", "integer", "integer", "uuid", *_OWNERS
)


def _limits(requests: Sequence[HoldRequest]) -> tuple[str, list[str]]:
    """The advisory locks that make the limits exact, sorted; and the limits to check, one row a limited request."""
    limited = [(n, r) for n, r in enumerate(requests, 1) if r.user_limit is not None or r.ip_limit is not None]
    locks: set[int] = set()
    for _, request in limited:
        if request.user_id is not None:
            locks.add(_user_lock(request.organization_id, request.user_id))
        if request.ip_limit is not None:
            locks.add(lock_key("ip", request.organization_id, request.ip))
    return integers(sorted(locks)), [
        integers([n for n, _ in limited]),
        uuids([r.user_id for _, r in limited]),
        texts([r.ip for _, r in limited]),
        integers([r.user_limit for _, r in limited]),
        integers([r.ip_limit for _, r in limited]),
        integers([len(r.seats) + len(r.places) for _, r in limited]),
    ]


def _user_lock(organization_id: UUID, user_id: UUID) -> int:
    return (user_id.int ^ organization_id.int) & 0x7FFF_FFFF_FFFF_FFFF


async def hold_seats(connection: Queries, requests: Sequence[HoldRequest], window_s: int) -> list[Verdict]:
    """Requests for seats of one organization, no seat twice among them: one call, one transaction, one outcome each."""
    claims = [(r.event_id, s.ordinal, n, s, r) for n, r in enumerate(requests, 1) for s in r.seats]
    claims.sort(key=_event_and_ordinal)
    locks, limits = _limits(requests)
    rows = await connection.fetch(
        HOLD_SEATS,
        requests[0].organization_id,
        window_s,
        locks,
        uuids({r.event_id for r in requests}),
        *limits,
        integers([c[2] for c in claims]),
        uuids([c[0] for c in claims]),
        integers([c[4].layout_version for c in claims]),
        integers([c[1] for c in claims]),
        integers([c[3].zone_no for c in claims]),
        uuids([c[3].hold_id for c in claims]),
        *_owners([c[4] for c in claims]),
        companion_rows((n, c[3].companion) for n, c in enumerate(claims, 1)),
    )
    places = [(n, requests[n - 1].seats.index(seat)) for _, _, n, seat, _ in claims] if len(rows) > 1 else []
    return _verdicts(requests, rows, places)


def _verdicts(requests: Sequence[HoldRequest], rows: Sequence[Row], claims: Sequence[tuple[int, int]]) -> list[Verdict]:
    """`claims`: for each claim, in the order it was sent, its request's number and its position within the request."""
    decided_at = rows[0]["decided_at"]
    if len(rows) == 1:
        return [Verdict(decided_at, {})] * len(requests)
    refused: list[dict[int, ClaimFacts]] = [{} for _ in requests]
    for row in rows[1:]:
        request, position = claims[row["n"] - 1]
        refused[request - 1][position] = ClaimFacts(*row)
    return [Verdict(decided_at, facts) for facts in refused]


def _event_and_ordinal(claim: tuple[Any, ...]) -> tuple[Any, ...]:
    return claim[:2]


async def hold_places(connection: Queries, requests: Sequence[HoldRequest], window_s: int) -> list[Verdict]:
    """The same for quantities of general admission."""
    zones = sorted({(r.event_id, p.zone_no, r.layout_version) for r in requests for p in r.places})
    position = {zone: n for n, zone in enumerate(zones, 1)}
    claims = [(n, r, p) for n, r in enumerate(requests, 1) for p in r.places]
    locks, limits = _limits(requests)
    rows = await connection.fetch(
        HOLD_PLACES,
        requests[0].organization_id,
        window_s,
        locks,
        uuids({r.event_id for r in requests}),
        *limits,
        uuids([zone[0] for zone in zones]),
        integers([zone[2] for zone in zones]),
        integers([zone[1] for zone in zones]),
        integers([n for n, _, _ in claims]),
        integers([position[r.event_id, p.zone_no, r.layout_version] for _, r, p in claims]),
        integers([p.quantity for _, _, p in claims]),
        uuids([p.hold_id for _, _, p in claims]),
        *_owners([r for _, r, _ in claims]),
    )
    return _verdicts(requests, rows, [(n, len(r.seats) + r.places.index(p)) for n, r, p in claims])


async def hold_whole(tx: Queries, request: HoldRequest, window_s: int) -> Held:
    """One request within a transaction of the caller's: seats, places, or both. Raises the refusal, which rolls it back."""
    if request.accessible is not None:
        await _require_few_wheelchairs(tx, request)
    kept: list[PlacedHold] = []
    seats, places = request.seats, request.places
    for _ in range(MAX_ATTEMPTS):
        if not seats:
            break
        # The limit is judged for seats and places together; the seats are what is claimed here.
        (verdict,) = await hold_seats(tx, [msgspec.structs.replace(request, seats=seats)], window_s)
        outcome = settle(msgspec.structs.replace(request, seats=seats, places=()), verdict)
        if isinstance(outcome, Refusal):
            raise outcome
        if isinstance(outcome, Unsettled):
            kept += outcome.kept
            seats = outcome.remaining.seats
            continue
        kept += outcome.holds
        decided_at = outcome.decided_at
        seats = ()
    if seats:
        raise held_by_another(seats[0].ordinal, 0)
    if places:
        wanted = msgspec.structs.replace(request, seats=(), places=places)
        outcome = settle(wanted, (await hold_places(tx, [wanted], window_s))[0])
        if not isinstance(outcome, Held):
            raise outcome if isinstance(outcome, Refusal) else held_by_another(0, 0)
        kept += outcome.holds
        decided_at = outcome.decided_at
    if request.accessible is not None and any(hold.created for hold in kept):
        await accessibility.audit_accessible(
            tx,
            Asker(
                organization_id=request.organization_id,
                actor=request.actor,
                user_id=request.user_id,
                session_id=request.session_id,
                ip=request.ip,
                user_agent=request.user_agent,
                request_id=request.request_id,
            ),
            request.event_id,
            request.accessible,
            [(seat.ordinal, seat.companion) for seat in request.seats],
            [hold.hold_id for hold in kept],
        )
    return Held(sorted(kept, key=lambda h: (h.ordinal is None, h.ordinal, h.zone_no)), decided_at)


async def _require_few_wheelchairs(tx: Queries, request: HoldRequest) -> None:
    """Together with what the buyer holds already. The buyer's lock, taken first of all, makes that exact."""
    terms = request.accessible
    if terms is None or terms.wheelchairs_max is None or not terms.wheelchairs or request.user_id is None:
        return
    keys = {_user_lock(request.organization_id, request.user_id)}
    if request.ip_limit is not None:
        keys.add(lock_key("ip", request.organization_id, request.ip))
    await accessibility.lock_owner(tx, keys)
    others = await accessibility.other_wheelchairs(
        tx, request.organization_id, request.event_id, request.user_id, terms
    )
    require_few_wheelchairs(terms, others)


def _owners(owners: Sequence[HoldRequest]) -> tuple[str, ...]:
    """The columns that say whose claim it is and on what terms, in the order of `_OWNERS`."""
    return (
        uuids([r.user_id for r in owners]),
        texts([r.session_id for r in owners]),
        texts([r.ip for r in owners]),
        booleans([r.ip_limit is not None for r in owners]),
        texts([r.user_agent for r in owners]),
        texts([r.request_id for r in owners]),
        texts([r.actor for r in owners]),
        texts([r.source for r in owners]),
        texts([r.hold_type for r in owners]),
        integers([r.ttl_s for r in owners]),
        booleans([r.any_time for r in owners]),
    )


async def placed_among(connection: Queries, organization_id: UUID, hold_ids: Sequence[UUID]) -> dict[object, Row]:
    """Which of these holds exist: asked after a connection broke in the middle of a batch."""
    rows = await connection.fetch(PLACED_AMONG, organization_id, list(hold_ids))
    return {row["id"]: row for row in rows}


PLACED_AMONG = """
SELECT id, ordinal, zone_no, quantity, hold_type, held_until, created_at
FROM holds WHERE organization_id = $1 AND id = ANY ($2)
"""

HOLD_COLUMNS = """
h.id, h.event_id, h.ordinal, h.zone_no, h.quantity, h.user_id, h.session_id, h.hold_type, h.actor, h.source,
h.held_until, h.created_at, h.ended_at, h.checkout_id, h.attendee_user_id, h.attendee_name, h.associated_membership_id,
CASE WHEN h.status = 'active' AND h.held_until <= holdfast_now() THEN 'expired' ELSE h.status::text END AS status,
holdfast_now() AS now,
coalesce(h.layout_version, (
  SELECT e.layout_version FROM events e WHERE e.organization_id = h.organization_id AND e.id = h.event_id)) AS layout_version
"""
"""`layout_version`: in which ordinal and zone number are meant."""

GET_HOLD = f"SELECT {HOLD_COLUMNS} FROM holds h WHERE h.organization_id = $1 AND h.id = $2"

GET_HOLDS = f"""
SELECT {HOLD_COLUMNS} FROM holds h WHERE h.organization_id = $1 AND h.event_id = $2 AND h.id = ANY ($3) ORDER BY h.id
"""

LIST_OWN = f"""
SELECT {HOLD_COLUMNS} FROM holds h
WHERE h.organization_id = $1 AND h.user_id = $2 AND h.status = 'active'
  AND (h.held_until IS NULL OR h.held_until > holdfast_now()) AND ($3::uuid IS NULL OR h.event_id = $3)
  AND ($4::uuid IS NULL OR h.id > $4)
ORDER BY h.id LIMIT $5
"""

LIST_OF_EVENT = f"""
SELECT {HOLD_COLUMNS} FROM holds h
WHERE h.organization_id = $1 AND h.event_id = $2 AND h.status = 'active'
  AND (h.held_until IS NULL OR h.held_until > holdfast_now())
  AND ($3::text IS NULL OR h.hold_type = $3) AND ($4::uuid IS NULL OR h.user_id = $4)
  AND ($5::smallint IS NULL OR h.zone_no = $5)
  AND ($6::float8 IS NULL OR h.held_until <= holdfast_now() + make_interval(secs => $6))
  AND ($7::uuid IS NULL OR h.id > $7)
ORDER BY h.id LIMIT $8
"""

RELEASE = "SELECT hold_id, verb FROM release_holds($1, $2, $3, $4, $5, $6, $7, $8, $9)"
EXTEND = "SELECT extend_hold($1, $2, $3, $4, $5, $6, $7, $8, $9)"


class Transactional(Queries, Protocol):
    async def fetchrow(self, query: str, *args: Any) -> Row | None: ...
    async def fetchval(self, query: str, *args: Any) -> Any: ...
    async def execute(self, query: str, *args: Any) -> str: ...


async def get_hold(tx: Transactional, organization_id: UUID, hold_id: UUID) -> Row | None:
    return await tx.fetchrow(GET_HOLD, organization_id, hold_id)


async def get_holds(tx: Transactional, organization_id: UUID, event_id: UUID, hold_ids: Sequence[UUID]) -> list[Row]:
    return await tx.fetch(GET_HOLDS, organization_id, event_id, list(hold_ids))


async def list_own_holds(
    tx: Transactional,
    organization_id: UUID,
    user_id: UUID,
    event_id: UUID | None,
    after: UUID | None,
    limit: int,
) -> list[Row]:
    return await tx.fetch(LIST_OWN, organization_id, user_id, event_id, after, limit)


async def list_event_holds(
    tx: Transactional,
    organization_id: UUID,
    event_id: UUID,
    *,
    hold_type: str | None = None,
    user_id: UUID | None = None,
    zone_no: int | None = None,
    expiring_within_s: float | None = None,
    after: UUID | None = None,
    limit: int,
) -> list[Row]:
    return await tx.fetch(
        LIST_OF_EVENT, organization_id, event_id, hold_type, user_id, zone_no, expiring_within_s, after, limit
    )


async def release_holds(
    tx: Transactional, call: Call, hold_ids: Sequence[UUID], reason: str | None, session_id: str | None = None
) -> dict[UUID, str]:
    """Frees these holds' seats; answers what was done to each that was still active: 'release' or 'expire'."""
    who = call.principal
    rows = await tx.fetch(
        RELEASE,
        call.organization_id,
        list(hold_ids),
        who.actor.value,
        who.user_id,
        session_id,
        call.ip,
        call.user_agent,
        call.request_id,
        reason,
    )
    return {row["hold_id"]: row["verb"] for row in rows}


async def extend_hold(tx: Transactional, call: Call, hold_id: UUID, ttl_s: int, cap_s: int) -> datetime | None:
    """The new end, or none where the hold is over or already as long as allowed."""
    who = call.principal
    until: datetime | None = await tx.fetchval(
        EXTEND,
        call.organization_id,
        hold_id,
        ttl_s,
        cap_s,
        who.actor.value,
        who.user_id,
        call.ip,
        call.user_agent,
        call.request_id,
    )
    return until


AUDIT_REFUSALS = """
INSERT INTO audit_entries (organization_id, at, action, entity_type, event_id, actor, user_id, ip, user_agent, request_id,
  reason, changes)
SELECT $1, holdfast_now(), r.action, r.entity_type, r.event_id, r.actor, r.user_id, r.ip, r.agent, r.trace, r.reason,
  r.changes::jsonb
FROM unnest($2::text[], $3::text[], $4::uuid[], $5::text[], $6::uuid[], $7::text[], $8::text[], $9::text[], $10::text[],
  $11::text[]) AS r (action, entity_type, event_id, actor, user_id, ip, agent, trace, reason, changes)
"""


async def audit_refusals(tx: Transactional, organization_id: UUID, columns: Sequence[Sequence[Any]]) -> None:
    await tx.execute(AUDIT_REFUSALS, organization_id, *columns)


DUE = """
SELECT array_agg(DISTINCT d.organization_id) AS organizations, min(d.held_until) AS oldest FROM (
  SELECT h.organization_id, h.held_until FROM holds h
  WHERE h.status = 'active' AND h.held_until <= holdfast_now() - make_interval(secs => $1)
  ORDER BY h.held_until LIMIT 10000) d
"""
NEXT_DUE = """
SELECT greatest(0, extract(epoch FROM min(h.held_until) - holdfast_now()))::float8 FROM holds h
WHERE h.status = 'active' AND h.held_until IS NOT NULL HAVING min(h.held_until) IS NOT NULL
"""
EXPIRE_DUE = "SELECT expire_due_holds($1, $2, $3) AS expired"


async def organizations_with_due_holds(tx: Transactional, grace_s: float) -> list[UUID]:
    """Across organizations, as the engine's role: whose holds are over. Nothing else is visible to it."""
    row = await tx.fetchrow(DUE, grace_s)
    return list(row["organizations"] or []) if row is not None else []


async def seconds_to_next_expiry(tx: Transactional) -> float | None:
    seconds: float | None = await tx.fetchval(NEXT_DUE)
    return seconds


async def expire_due_holds(connection: Queries, organization_id: UUID, grace_s: float, limit: int) -> int:
    """One bounded step of the sweeper: how many holds it expired."""
    (row,) = await connection.fetch(EXPIRE_DUE, organization_id, grace_s, limit)
    expired: int = row["expired"]
    return expired
