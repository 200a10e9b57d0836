"""An event as the hot path sees it: everything about it that a request for seats must be held against."""

import time
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from uuid import UUID

import msgspec

from holdfast.holds.hold_types import ResolvedHoldType
from holdfast.seating.event import EventStatus, Price
from holdfast.seating.layout import Layout
from holdfast.seating.policy import PolicyValue, SeatingPolicy


class EventView(msgspec.Struct, frozen=True, kw_only=True):
    organization_id: UUID
    tenant_id: UUID
    id: UUID
    name: str
    status: EventStatus
    sale_start: datetime | None
    sale_end: datetime | None
    layout_id: UUID | None
    layout_version: int | None
    days: tuple[date, ...]
    currency: str | None
    prices: tuple[Price, ...]
    layout: Layout
    hold_types: Mapping[str, ResolvedHoldType]
    policy: SeatingPolicy | None  # the organization's own; none where it stated none
    effective_policy: SeatingPolicy  # with defaults and the event's overrides
    overrides: Mapping[str, PolicyValue]  # those that count: fields locked since are left out
    read_at: datetime  # by the database's clock
    read_monotonic: float  # by this process's

    def database_now(self) -> datetime:
        """The database's time, reckoned from when this view was read: its clock decides, not this machine's."""
        return self.read_at + timedelta(seconds=time.monotonic() - self.read_monotonic)
