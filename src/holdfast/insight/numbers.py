"""What an event's log means by its numbers: the versions of the layout in which it was written. Pure."""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

import msgspec

from holdfast.seating.layout import Layout, Zone


class Numbers(msgspec.Struct, frozen=True):
    """A segment of the log is what was written in one version: its position in `layouts`."""

    layouts: tuple[Layout, ...]
    changed_at: tuple[datetime, ...]
    """When each segment but the first began."""

    @property
    def now(self) -> Layout:
        return self.layouts[-1]

    @property
    def zones(self) -> dict[tuple[int, int], Zone]:
        return {(segment, zone.zone_no): zone for segment, layout in enumerate(self.layouts) for zone in layout.zones}

    @property
    def zone_ids(self) -> dict[tuple[int, int], UUID]:
        return {key: zone.id for key, zone in self.zones.items()}

    @property
    def any_counted(self) -> bool:
        return any(zone.is_ga for layout in self.layouts for zone in layout.zones)

    def zones_named(self, name: str) -> list[tuple[int, int]]:
        """The zone of that name or id, in every version that has it."""
        found = ((segment, layout.zone(name)) for segment, layout in enumerate(self.layouts))
        return [(segment, zone.zone_no) for segment, zone in found if zone is not None]

    def layout_at(self, instant: datetime) -> Layout:
        return self.layouts[sum(changed < instant for changed in self.changed_at)]

    def seat(self, segment: int, ordinal: int) -> bytes:
        """The same in every version."""
        return self.layouts[segment].seat_uuid_bytes(ordinal)

    def everywhere(self, seats: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """The same seats by their numbers in all versions."""
        wanted = sorted({self.seat(segment, ordinal) for segment, ordinal in seats})
        return [
            (segment, ordinal)
            for segment, layout in enumerate(self.layouts)
            for raw in wanted
            if (ordinal := layout.seat_index.get(raw)) is not None
        ]

    def accessible(self) -> list[tuple[int, int]]:
        """Wheelchair seats and their companions', of each version."""
        return [
            (segment, ordinal)
            for segment, layout in enumerate(self.layouts)
            for ordinal in sorted(layout.accessible_seats)
        ]
