"""The place that a ticket is for, in the words of its layout, and what is special about leaving or taking it. Pure."""

from uuid import UUID

import msgspec

from holdfast.seating.layout import Layout


class SeatLabel(msgspec.Struct, frozen=True):
    id: UUID
    seat_id: str
    row: str
    number: int


class TicketPlace(msgspec.Struct, frozen=True):
    seat: SeatLabel | None
    """Null: a place of the zone."""
    zone: str

    @property
    def words(self) -> str:
        return self.zone if self.seat is None else self.seat.seat_id


def ticket_place(layout: Layout, ordinal: int | None, zone_no: int) -> TicketPlace:
    """In the layout that the numbers are meant in."""
    seat = None
    if ordinal is not None:
        seat = SeatLabel(
            layout.seat_uuid(ordinal), layout.seat_ids[ordinal], layout.rows[ordinal], layout.numbers[ordinal]
        )
    return TicketPlace(seat, layout.zones[zone_no].zone_id)


def accessibility_notes(layout: Layout, left: int | None, taken: int | None) -> list[str]:
    """What staff should know when somebody leaves an accessible seat, or is put on one."""
    notes: list[str] = []
    for ordinal, is_left in ((left, True), (taken, False)):
        if ordinal is None:
            continue
        name = layout.seat_ids[ordinal]
        beside = ", ".join(layout.seat_ids[c] for c in layout.wheelchair_companions.get(ordinal, ()))
        chairs = ", ".join(layout.seat_ids[w] for w in layout.companion_wheelchairs.get(ordinal, ()))
        if ordinal in layout.wheelchair_seats:
            kept = "is no longer kept for a companion" if is_left else "is kept for this ticket's companion"
            said = f"Seat {name} is a wheelchair seat"
            notes.append(f"{said}; {beside} beside it {kept}." if beside else f"{said}.")
        elif chairs:
            notes.append(f"Seat {name} is the companion's seat of {chairs}.")
    return notes
