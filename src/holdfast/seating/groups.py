"""Seats that belong together: which of them a buyer must take whole, and which are not for buyers at all.

A `vip_table` is sold whole: whoever takes one of its seats takes all that are still free. A `reserved_block` is the
organiser's. A `family_block` and a `wheelchair_pair` are advice, for choosing seats and for pictures.
"""

from collections.abc import Collection, Iterable, Sequence
from uuid import UUID

import msgspec

from holdfast.allocation.floor import floor_of
from holdfast.kernel.problems import listing, quoted
from holdfast.seating.layout import GroupType, Layout, SeatGroup
from holdfast.seating.refusals import GroupIncomplete, GroupNotFound, GroupReserved, SeatsNotTogether


class GroupSeat(msgspec.Struct, frozen=True):
    id: UUID
    seat_id: str
    ordinal: int


class GroupAnswer(msgspec.Struct, frozen=True, kw_only=True):
    group_id: str
    group_type: GroupType
    zone: str
    seats: tuple[GroupSeat, ...]
    sold_whole: bool
    for_buyers: bool


def describe_group(layout: Layout, group: SeatGroup) -> GroupAnswer:
    return GroupAnswer(
        group_id=group.group_id,
        group_type=group.group_type,
        zone=layout.zones[group.zone_no].zone_id,
        seats=tuple(GroupSeat(layout.seat_uuid(o), layout.seat_ids[o], o) for o in group.ordinals),
        sold_whole=group.group_type is GroupType.VIP_TABLE,
        for_buyers=group.group_type is not GroupType.RESERVED_BLOCK,
    )


def find_groups(layout: Layout, names: Iterable[str]) -> list[SeatGroup]:
    by_name = {group.group_id: group for group in layout.groups}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        said = f"There is no group {listing(map(quoted, unknown))} in this event."
        raise GroupNotFound(said, groups=unknown)
    return [by_name[name] for name in names]


def tables_among(layout: Layout, ordinals: Sequence[int]) -> tuple[SeatGroup, ...]:
    """The tables that these seats are at, each of which must be taken whole. Refuses seats that are not for buyers."""
    binding = layout.binding_groups
    touched = {group.group_id: group for o in ordinals if o in binding for group in binding[o]}
    reserved = [group for group in touched.values() if group.group_type is GroupType.RESERVED_BLOCK]
    if reserved:
        theirs = {o for group in reserved for o in group.ordinals}
        raise GroupReserved(
            f"These seats are kept by the organiser: {listing(quoted(group.group_id) for group in reserved)}.",
            groups=[group.group_id for group in reserved],
            seats=[str(layout.seat_uuid(o)) for o in ordinals if o in theirs],
        )
    return tuple(touched.values())


def require_whole(layout: Layout, tables: Sequence[SeatGroup], taken: Collection[int], free: Collection[int]) -> None:
    """`taken`: what the buyer takes now. `free`: the seats of these tables that nobody has, by the database; what the
    buyer had from before is not among them."""
    for table in tables:
        missing = [o for o in table.ordinals if o in free and o not in taken]
        if missing:
            names = listing(layout.seat_ids[o] for o in missing)
            raise GroupIncomplete(
                f"The table {quoted(table.group_id)} is sold whole: take {names} as well.",
                group=table.group_id,
                group_type=table.group_type.value,
                missing=[str(layout.seat_uuid(o)) for o in missing],
                missing_seat_ids=[layout.seat_ids[o] for o in missing],
            )


def clusters_of(layout: Layout, ordinals: Iterable[int]) -> list[list[int]]:
    """The seats in runs of neighbours, as they stand."""
    floor = floor_of(layout)
    clusters: list[list[int]] = []
    for ordinal in sorted(ordinals, key=floor.place.__getitem__):
        if clusters and floor.right_of[clusters[-1][-1]] == ordinal:
            clusters[-1].append(ordinal)
        else:
            clusters.append([ordinal])
    return clusters


def require_together(layout: Layout, ordinals: Sequence[int], clusters_max: int) -> None:
    clusters = clusters_of(layout, ordinals)
    if len(clusters) <= clusters_max:
        return
    parts = "; ".join(listing(layout.seat_ids[o] for o in cluster) for cluster in clusters)
    allowed = "side by side" if clusters_max == 1 else f"in at most {clusters_max} parts"
    raise SeatsNotTogether(
        f"The seats of one booking must be {allowed}; these are in {len(clusters)}: {parts}.",
        max_group_split=clusters_max,
        clusters=[[str(layout.seat_uuid(o)) for o in cluster] for cluster in clusters],
    )


def kept_from_choice(layout: Layout) -> frozenset[int]:
    """Seats that the system must not choose for a buyer: tables, which are taken whole or not at all, and the
    organiser's own."""
    return frozenset(layout.binding_groups)
