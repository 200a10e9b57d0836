"""What the holder of a wheelchair seat is told of the companions' seats beside it, as they stand."""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

import msgspec

from holdfast.seating.accessibility import CompanionSeat, describe_companion, places_to_free
from holdfast.seating.view import EventView
from holdfast.store.postgres.accessibility import Queries, standing_of


class WheelchairHold(msgspec.Struct, frozen=True):
    hold_id: UUID
    ordinal: int
    held_until: datetime | None


async def companion_seats(
    tx: Queries,
    view: EventView,
    holds: Iterable[tuple[UUID, int | None, datetime | None]],
    user_id: UUID | None,
    session_id: str | None,
) -> dict[UUID, list[CompanionSeat]]:
    """By hold, of those (id, seat, end) that are on a wheelchair seat with companions; none while nothing is kept."""
    layout, policy = view.layout, view.effective_policy
    if not policy.enforce_accessibility_rules:
        return {}
    wheelchairs = [
        WheelchairHold(hold_id, ordinal, until)
        for hold_id, ordinal, until in holds
        if ordinal is not None and ordinal in layout.wheelchair_companions
    ]
    companions = {c for hold in wheelchairs for c in layout.wheelchair_companions[hold.ordinal]}
    if not companions:
        return {}
    standing = await standing_of(tx, view.organization_id, view.id, sorted(companions), user_id, session_id)
    percent = policy.companion_release_occupancy_threshold
    return {
        hold.hold_id: [
            describe_companion(
                layout,
                ordinal,
                state=now.state,
                mine=now.own,
                freed=now.places_taken >= places_to_free(layout.zone_of(ordinal).capacity, percent),
                percent=percent,
                kept_until=hold.held_until,
            )
            for ordinal in layout.wheelchair_companions[hold.ordinal]
            if (now := standing.get(ordinal)) is not None
        ]
        for hold in wheelchairs
    }
