"""The two organizations of a run: each has a hall of the same plan, an event on sale in it, and buyers of its own."""

from typing import Any
from uuid import UUID

import msgspec

from holdfast.app import Application
from holdfast.commands.operator import opened, operator_call
from holdfast.seating.event import EventStatus
from holdfast.settings import Settings

ROWS, SEATS_A_ROW = 12, 16
PIT = "pit"
PIT_CAPACITY = 60
POLICY = {"max_holds_per_user": None, "orphan_avoidance_strict": False}
"""Whoever asks for a free seat is to get it: only then does a refusal say something about the engine."""


class Guest(msgspec.Struct, frozen=True):
    user_id: str
    token: str


class House(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    organization_id: UUID
    event_id: UUID
    admin_token: str
    api_key: str
    guests: list[Guest]
    seats: list[UUID]
    """By ordinal."""
    ordinals: dict[str, int]
    zone_nos: dict[str, int]
    booking_ids: list[int]
    """By ordinal."""
    pit_booking_id: int

    @property
    def pit_no(self) -> int:
        return self.zone_nos[PIT]


async def open_houses(settings: Settings, life_s: int, guests: int) -> list[House]:
    async with opened(settings) as application:
        return [await _open_house(application, name, life_s, guests) for name in ("Theatre", "Control")]


async def _open_house(application: Application, name: str, life_s: int, guests: int) -> House:
    services = application.services
    made = await services.accounts.bootstrap(name)
    call = await operator_call(application, made.organization_id)
    await services.accounts.store_organization_config(call, {"holdTypes": {"CART": {"ttlSeconds": life_s}}})
    await services.accounts.store_policy(call, POLICY)
    venue = await services.seating.create_venue(call, "Hall")
    layout = await services.seating.create_layout(call, venue.id, "Plan", msgspec.json.encode(_plan()))
    event = await services.seating.create_event(
        call,
        {
            "name": "Evening",
            "layout_id": str(layout.id),
            "overrides": {"orphan_avoidance_strict": False},  # the crowd picks at random
        },
    )
    await services.seating.set_status(call, event.id, EventStatus.PUBLISHED)
    view = await application.catalogue.fresh_event(made.organization_id, event.id)
    assert view is not None
    seats = [view.layout.seat_uuid(ordinal) for ordinal in range(view.layout.seat_count)]
    state = await services.booking.state(call, event.id)
    booking_ids = {seat.seat_id: seat.id for seat in state.seats}
    issued = [await services.accounts.issue_guest_token(event.id) for _ in range(guests)]
    return House(
        name=name,
        organization_id=made.organization_id,
        event_id=event.id,
        admin_token=made.admin_token,
        api_key=made.api_key,
        guests=[Guest(str(guest.user_id), guest.token) for guest in issued],
        seats=seats,
        ordinals={str(seat): ordinal for ordinal, seat in enumerate(seats)},
        zone_nos={zone.zone_id: zone.zone_no for zone in view.layout.zones},
        booking_ids=[booking_ids[seat_id] for seat_id in view.layout.seat_ids],
        pit_booking_id=state.group_of_seats[0].id,
    )


def _plan() -> dict[str, Any]:
    seats = [
        {
            "seat_id": f"{row}-{number}",
            "row": str(row),
            "number": number,
            "coordinates": {"x": 20 * number, "y": 30 * row},
        }
        for row in range(1, ROWS + 1)
        for number in range(1, SEATS_A_ROW + 1)
    ]
    stalls = {"zone_id": "stalls", "name": "Stalls", "zone_type": "reserved_seating", "capacity": len(seats)}
    pit = {"zone_id": PIT, "name": "Pit", "zone_type": "ga_standing", "capacity": PIT_CAPACITY}
    return {"focal_point": {"x": 170, "y": 0}, "zones": [{**stalls, "seats": seats}, pit]}
