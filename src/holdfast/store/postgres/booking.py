"""Booking v2's reads and moves: selections by booking id, owned by a session."""

from collections.abc import Sequence
from uuid import UUID

from holdfast.accounts.principal import Call
from holdfast.store.postgres.database import Row, Transaction

FIND_SEATS = """
SELECT booking_id, ordinal FROM event_seats WHERE organization_id = $1 AND event_id = $2 AND booking_id = ANY ($3)
"""
FIND_ZONES = """
SELECT booking_id, zone_no FROM event_zones WHERE organization_id = $1 AND event_id = $2 AND booking_id = ANY ($3)
"""
SEAT_STATES = """
SELECT booking_id, ordinal, zone_no,
  CASE WHEN state = 'held' AND held_until <= holdfast_now() THEN 'available' ELSE state::text END AS state,
  CASE WHEN state = 'held' AND held_until <= holdfast_now() THEN NULL ELSE hold_type END AS hold_type
FROM event_seats WHERE organization_id = $1 AND event_id = $2 ORDER BY ordinal
"""
# Holds that are over count as free, swept or not.
ZONE_COUNTS = """
SELECT z.booking_id, z.zone_no, z.capacity, z.sold, z.blocked, z.held - coalesce((
  SELECT sum(h.quantity) FROM holds h
  WHERE h.organization_id = $1 AND h.event_id = $2 AND h.zone_no = z.zone_no AND h.status = 'active'
    AND h.ordinal IS NULL AND h.held_until <= holdfast_now()), 0)::integer AS held
FROM event_zones z WHERE z.organization_id = $1 AND z.event_id = $2 ORDER BY z.zone_no
"""
SESSION_HOLDS = """
SELECT h.id FROM event_seats s JOIN holds h ON h.organization_id = $1 AND h.id = s.hold_id
WHERE s.organization_id = $1 AND s.event_id = $2 AND s.ordinal = ANY ($3) AND s.state = 'held' AND h.session_id = $4
  AND (s.held_until IS NULL OR s.held_until > holdfast_now()) AND h.checkout_id IS NULL
"""
# A hold comes into a checkout under the lock of its seat: behind this, it is in one or it will not be.
LOCK_SEATS = "SELECT count(*) FROM lock_seats($1, $2, $3)"
RELEASE = "SELECT count(*) FROM release_holds($1, $2, $3, $4, $5, $6, $7, $8, NULL) WHERE verb = 'release'"
CONVERT = "SELECT convert_session_seats($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
SELL = "SELECT sell_seats_directly($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::text::integer[])"
REVERT = "SELECT revert_booked_seats($1, $2, $3, $4, $5, $6, $7, $8, $9)"
MOVE_PLACES = "SELECT move_session_places($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"
SHARE_EVENT = "SELECT share_events(ARRAY[$1::uuid])"


async def share_event(tx: Transaction, event_id: UUID) -> None:
    await tx.execute(SHARE_EVENT, event_id)


async def find_seats(tx: Transaction, organization_id: UUID, event_id: UUID, ids: Sequence[int]) -> dict[int, int]:
    rows = await tx.fetch(FIND_SEATS, organization_id, event_id, list(ids)) if ids else []
    return {row["booking_id"]: row["ordinal"] for row in rows}


async def find_zones(tx: Transaction, organization_id: UUID, event_id: UUID, ids: Sequence[int]) -> dict[int, int]:
    rows = await tx.fetch(FIND_ZONES, organization_id, event_id, list(ids)) if ids else []
    return {row["booking_id"]: row["zone_no"] for row in rows}


async def seat_states(tx: Transaction, organization_id: UUID, event_id: UUID) -> list[Row]:
    return await tx.fetch(SEAT_STATES, organization_id, event_id)


async def zone_counts(tx: Transaction, organization_id: UUID, event_id: UUID) -> list[Row]:
    return await tx.fetch(ZONE_COUNTS, organization_id, event_id)


async def move_selection(
    tx: Transaction,
    call: Call,
    event_id: UUID,
    verb: str,
    session_id: str,
    ordinals: Sequence[int],
    groups: Sequence[tuple[int, int]],
    hold_type: str | None,
    types_when_sold: Sequence[str],
    companions: str | None = None,
) -> bool:
    """Moves all of the selection; false where any of it was not in the expected state (the caller rolls back).
    `companions`: the rules for companions' seats among what is sold directly (`companion_rows`). The caller has shared the
    event before it looked up where the selection stands."""
    who = call.principal
    trace = (who.actor.value, who.user_id, call.ip, call.user_agent, call.request_id)
    if ordinals:
        moved = await _move_seats(
            tx, call, event_id, verb, session_id, ordinals, hold_type, types_when_sold, companions
        )
        if moved < len(ordinals):
            return False
    for zone_no, quantity in groups:
        if not await tx.fetchval(
            MOVE_PLACES,
            call.organization_id,
            event_id,
            zone_no,
            quantity,
            verb,
            session_id,
            hold_type,
            *trace,
        ):
            return False
    return True


async def _move_seats(
    tx: Transaction,
    call: Call,
    event_id: UUID,
    verb: str,
    session_id: str,
    ordinals: Sequence[int],
    hold_type: str | None,
    types_when_sold: Sequence[str],
    companions: str | None = None,
) -> int:
    who = call.principal
    organization_id = call.organization_id
    seats = list(ordinals)
    trace = (who.actor.value, who.user_id, call.ip, call.user_agent, call.request_id)
    match verb:
        case "release":
            await tx.execute(LOCK_SEATS, organization_id, event_id, seats)
            rows = await tx.fetch(SESSION_HOLDS, organization_id, event_id, seats, session_id)
            mine = [row["id"] for row in rows]
            if len(mine) < len(seats):
                return 0
            actor, user_id, *rest = trace
            moved = await tx.fetchval(RELEASE, organization_id, mine, actor, user_id, session_id, *rest)
        case "convert":
            moved = await tx.fetchval(
                CONVERT,
                organization_id,
                event_id,
                seats,
                session_id,
                hold_type,
                list(types_when_sold),
                *trace,
            )
        case "direct_sale":
            moved = await tx.fetchval(SELL, organization_id, event_id, seats, hold_type, session_id, *trace, companions)
        case _:
            moved = await tx.fetchval(REVERT, organization_id, event_id, seats, session_id, *trace)
    return int(moved)
