"""What becomes of the holds of a checkout that ends unsold, in the transaction that ends it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from uuid import UUID

from holdfast.accounts.principal import Call
from holdfast.holds.hold_types import ResolvedHoldType
from holdfast.holds.lifecycle import Actor
from holdfast.store.catalogue import read_hold_types
from holdfast.store.postgres import checkouts as store
from holdfast.store.postgres import events
from holdfast.store.postgres.database import Row, Transaction

ABANDONED = "checkout expired"


async def end_holds(
    tx: Transaction,
    organization_id: UUID,
    types: Mapping[str, ResolvedHoldType],
    rows: Sequence[Row],
    reason: str,
    call: Call | None = None,
) -> None:
    """Gives back those whose type lets the caller, or the engine, do so; the others are in no checkout again."""
    released: dict[Actor, list[UUID]] = defaultdict(list)
    kept: dict[UUID, list[UUID]] = defaultdict(list)
    for row in rows:
        known = types.get(row["hold_type"])
        may = known.hold_type.release_api if known else frozenset({Actor.ADMIN})
        if call is not None and (call.principal.actor in may or _is_own(call, row)):
            released[call.principal.actor].append(row["id"])
        elif Actor.SYSTEM in may:
            released[Actor.SYSTEM].append(row["id"])
        else:
            kept[row["event_id"]].append(row["id"])
    for actor, hold_ids in released.items():
        await store.release_as(tx, organization_id, actor, hold_ids, reason, call)
    for event_id, hold_ids in sorted(kept.items()):
        await store.detach_holds(tx, organization_id, event_id, hold_ids)


def _is_own(call: Call, row: Row) -> bool:
    return call.principal.user_id is not None and row["user_id"] == call.principal.user_id


async def expire_checkouts(tx: Transaction, organization_id: UUID, limit: int) -> int:
    """One bounded step of the sweeper: how many sessions it ended. Holds with an end have the session's and end by
    themselves; those without go the way their type says."""
    ended = await store.expire_due_checkouts(tx, organization_id, limit)
    endless = [row for row in await store.live_holds(tx, organization_id, ended) if row["held_until"] is None]
    if endless:
        config = await events.find_organization(tx, organization_id)
        assert config is not None, "an organization that has checkouts exists"
        types = read_hold_types(config.tenant_config, config.config)
        await end_holds(tx, organization_id, types, endless, ABANDONED)
        by_event: dict[UUID, list[int | None]] = defaultdict(list)
        for row in endless:
            by_event[row["event_id"]].append(row["ordinal"])
        for event_id, ordinals in by_event.items():
            tx.moved(event_id, ordinals)
    return len(ended)
