"""How an event is written, in the transaction of whoever writes it: the event's own service, or its series'.

The event, its inventory, the audit and the messages change together or not at all.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from holdfast.accounts.principal import Call
from holdfast.holds.lifecycle import Actor, Verb, may_ask
from holdfast.kernel.errors import EventNotFound, Forbidden, InvalidRequest, LayoutNotFound
from holdfast.kernel.problems import Problem
from holdfast.seating.event import (
    ON_SALE,
    Event,
    EventContent,
    EventInvalid,
    check_overrides,
    check_zones,
    layout_reference,
    overrides_said,
)
from holdfast.seating.layout import Layout
from holdfast.seating.overlay import (
    NO_OVERLAY,
    OVERLAY_REASON,
    RESERVED_REASON,
    Overlay,
    disabled_pools,
    unoffered_seats,
)
from holdfast.seating.policy import ZONE_FIELDS
from holdfast.seating.refusals import PlacesSold
from holdfast.store.catalogue import Catalogue, read_hold_types, read_policy
from holdfast.store.postgres import checkouts, events, inventory, layouts, trail
from holdfast.store.postgres.database import Database, Transaction

OFFERED_AGAIN = "overlay: offered again"
_NAMED_MAX = 1_000


# Finding ----------------------------------------------------------------------------------------------------------------
async def find_event(tx: Transaction, call: Call, event_id: UUID) -> events.StoredEvent:
    stored = await events.find_event(tx, call.organization_id, event_id)
    if stored is None:
        raise EventNotFound
    return stored


async def named_layout(
    database: Database, catalogue: Catalogue, call: Call, document: object
) -> tuple[Layout | None, int | None]:
    """The layout a document refers to, and its latest version where the document names none."""
    reference = layout_reference(document)
    if reference is None:
        return None, None
    async with database.transaction(call.organization_id) as tx:
        latest = await layouts.latest_version(tx, call.organization_id, reference.layout_id)
    if latest is None:
        raise LayoutNotFound
    version = reference.version or latest
    layout = await catalogue.layout(call.organization_id, reference.layout_id, version)
    if layout is None:
        said = f"there is no version {version} of this layout; its latest is {latest}"
        raise EventInvalid([Problem("/layout_version", "unknown_version", said)])
    return layout, latest


# Writing ----------------------------------------------------------------------------------------------------------------
async def check_policy(
    tx: Transaction, call: Call, content: EventContent, said: Mapping[str, Any], *, published: bool = False
) -> None:
    """`said`: what was sent; overrides that stand already are not held against a policy that locked them since. What is
    published keeps the zones it has, unless something is said about them."""
    policy = read_policy(await events.find_policy(tx, call.organization_id))
    new = content.overrides if overrides_said(said) else {}
    check_overrides(policy, new)
    if not published or not ZONE_FIELDS.isdisjoint(new) or "zone_overrides" in said:
        check_zones(policy, content.overrides, content.layout, content.overlay)


async def use_layout(
    tx: Transaction, call: Call, layout_id: UUID | None, version: int | None, *, already: bool = False
) -> None:
    """`already`: it was referred to before, and stays so though it has been archived since."""
    if layout_id is None or version is None:
        return
    usable = await layouts.activate_version(tx, call.organization_id, layout_id, version)
    if not usable and not already:
        said = f"version {version} of this layout is archived; name another, or bring it back"
        raise EventInvalid([Problem("/layout_version", "archived_version", said)])


async def write_event(
    tx: Transaction, call: Call, old: Event, content: EventContent, patch: Mapping[str, Any]
) -> Event:
    """The event as its organiser wants it from now on. The caller owns the event and has checked what it may be."""
    event = await events.update_event(tx, call.organization_id, old.id, content)
    already = (old.layout_id, old.layout_version) == (content.layout_id, content.layout_version)
    await use_layout(tx, call, content.layout_id, content.layout_version, already=already)
    if old.status in ON_SALE and old.overlay != content.overlay:
        await apply_overlay(tx, call, event, content.layout, old.overlay, content.overlay)
    await trail.write_audit(tx, call, "event_updated", "Event", old.id, event_id=old.id, changes=patch)
    await trail.send_message(tx, call.organization_id, "EventUpdated", old.id, {"fields": sorted(patch)})
    return event


async def open_inventory(tx: Transaction, call: Call, event: Event, layout: Layout) -> None:
    """At publication: every place of the layout, those of the overlay blocked from the beginning."""
    await inventory.make_inventory(tx, call.organization_id, event.id, layout)
    await take_out(tx, call, event, unoffered_seats(layout, event.overlay), disabled_pools(layout, event.overlay))


async def apply_overlay(tx: Transaction, call: Call, event: Event, layout: Layout, old: Overlay, new: Overlay) -> None:
    """Of an event on sale: what `new` takes out and `old` did not is blocked at once, and what is held of it given back;
    what is offered again becomes available, unless somebody blocked it by hand. Raises PlacesSold, and then nothing of
    this transaction may stay. The caller owns the event."""
    had, wanted = unoffered_seats(layout, old), unoffered_seats(layout, new)
    pools_had, pools_wanted = disabled_pools(layout, old), disabled_pools(layout, new)
    if (had, pools_had) == (wanted, pools_wanted):
        return
    if not may_ask(Verb.BLOCK, call.principal.actor):
        raise Forbidden(
            "Seats of an event on sale are taken out and offered again by people, not by API keys.",
            required_actor="ADMIN",
        )
    await _require_unsold(tx, call, event, layout, wanted - had, pools_wanted - pools_had)
    await take_out(tx, call, event, wanted - had, pools_wanted - pools_had)
    back = await inventory.seats_blocked_for(tx, call.organization_id, event.id, sorted(had - wanted), OVERLAY_REASON)
    if back:
        tx.moved(event.id, await inventory.unblock_seats(tx, call, event.id, back, OFFERED_AGAIN))
    if pools_had - pools_wanted:
        await inventory.enable_zones(tx, call, event.id, sorted(pools_had - pools_wanted), OFFERED_AGAIN)


async def take_out(tx: Transaction, call: Call, event: Event, seats: set[int], pools: set[int]) -> None:
    if seats:
        blocked = await inventory.block_seats(tx, call, event.id, sorted(seats), OVERLAY_REASON, force=False)
        tx.moved(event.id, blocked)
    if pools:
        await inventory.disable_zones(tx, call, event.id, sorted(pools), OVERLAY_REASON)


async def _require_unsold(
    tx: Transaction, call: Call, event: Event, layout: Layout, seats: set[int], pools: set[int]
) -> None:
    sold = await inventory.sold_seats(tx, call.organization_id, event.id, sorted(seats))
    places = await inventory.sold_places(tx, call.organization_id, event.id, sorted(pools))
    if not sold and not places:
        return
    what = [f"{len(sold)} of the seats"] if sold else []
    what += [f"{count} places of {layout.zones[zone_no].name}" for zone_no, count in places.items()]
    raise PlacesSold(
        f"The event “{event.name}” cannot do without {' and '.join(what)}: they are sold. Nothing was changed.",
        event_id=str(event.id),
        event_name=event.name,
        seats=[str(layout.seat_uuid(ordinal)) for ordinal in sold[:_NAMED_MAX]],
        seat_ids=[layout.seat_ids[ordinal] for ordinal in sold[:_NAMED_MAX]],
        zones=[{"zone_id": layout.zones[zone_no].zone_id, "sold": count} for zone_no, count in places.items()],
    )


def blocked_by_overlay(layout: Layout, overlay: Overlay, ordinals: Mapping[int, UUID]) -> list[UUID]:
    """Those of the seats that the overlay takes out."""
    if overlay == NO_OVERLAY:
        return []
    unoffered = unoffered_seats(layout, overlay)
    return [seat for ordinal, seat in ordinals.items() if ordinal in unoffered]


def check_reason(reason: str) -> None:
    """Of a person who blocks something by hand."""
    if reason.lower().startswith(RESERVED_REASON):
        said = f"must not begin with {RESERVED_REASON} which marks the seats of the event's overlay"
        raise InvalidRequest(f"reason {said}.", [Problem("/reason", "reserved_text", said)])


async def give_back(tx: Transaction, call: Call, event_id: UUID) -> dict[str, int]:
    """Of an event that is cancelled: its checkouts end, and what the engine may give back is free. The caller owns the
    event. Answers how many of each."""
    config = await events.find_organization(tx, call.organization_id)
    assert config is not None
    hold_types = read_hold_types(config.tenant_config, config.config)
    ours = [name for name, t in hold_types.items() if Actor.SYSTEM in t.hold_type.release_api]
    cancelled = await checkouts.cancel_checkout(tx, call, event_id, None, "event cancelled")
    released = await inventory.release_event_holds(tx, call, event_id, ours, "event cancelled")
    await checkouts.detach_event_holds(tx, call.organization_id, event_id)
    return {"released_holds": released, "cancelled_checkouts": cancelled}
