"""An event as the hot path sees it: everything about it that a request for seats must be held against."""

import time
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Self
from uuid import UUID

import msgspec
import numpy as np
from numpy.typing import NDArray

from holdfast.holds.hold_types import ResolvedHoldType
from holdfast.seating.admission import DEFAULT_ADMISSION, Admission
from holdfast.seating.event import ON_SALE, EventStatus, Price
from holdfast.seating.layout import Layout, SeatCategory
from holdfast.seating.overlay import NO_OVERLAY, Overlay
from holdfast.seating.policy import PolicyValue, SeatingPolicy
from holdfast.seating.prices import NO_PRICE, PriceList, price_list


class HoldTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What a hold of one type gets from one kind of caller."""

    hold_type: str
    ttl_s: int | None
    any_time: bool  # not bound by the sale window
    user_limit: int | None
    ip_limit: int | None


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
    layout: Layout  # with the zones as the event's overlay has them
    hold_types: Mapping[str, ResolvedHoldType]
    policy: SeatingPolicy | None  # the organization's own; none where it stated none
    effective_policy: SeatingPolicy  # with defaults and the event's overrides
    overrides: Mapping[str, PolicyValue]  # those that count: fields locked since are left out
    read_at: datetime  # by the database's clock
    read_monotonic: float  # by this process's
    overlay: Overlay = NO_OVERLAY
    series_id: UUID | None = None
    pressure: float = 0.0  # how hard it is being bought, where the policy lets that shorten holds
    admission: Admission = DEFAULT_ADMISSION

    terms: dict[tuple[str | None, str, int], HoldTerms] = {}  # worked out as they are asked for
    opens: float = float("-inf")  # the sale window by this process's monotonic clock; see `with_window`
    closes: float = float("-inf")

    def with_window(self) -> Self:
        """With the sale window reckoned into `opens` and `closes`, for a check that costs two comparisons."""
        if self.status not in ON_SALE:
            return self
        return msgspec.structs.replace(
            self,
            opens=self._monotonic(self.sale_start, float("-inf")),
            closes=self._monotonic(self.sale_end, float("inf")),
        )

    def _monotonic(self, instant: datetime | None, otherwise: float) -> float:
        if instant is None:
            return otherwise
        return self.read_monotonic + (instant - self.read_at).total_seconds()

    def on_sale(self) -> bool:
        """By what was read; the database asserts it again when it writes."""
        return self.opens <= time.monotonic() <= self.closes

    def database_now(self) -> datetime:
        """The database's time, reckoned from when this view was read: its clock decides, not this machine's."""
        return self.read_at + timedelta(seconds=time.monotonic() - self.read_monotonic)

    # What places cost, in minor units of `currency` --------------------------------------------------------------
    @property
    def price_list(self) -> PriceList:
        return price_list(self.layout, self.prices, self.overlay.pricing_zones)

    def price_column(self) -> NDArray[np.int64] | None:
        """By ordinal, -1 where a seat has no price; None where nothing has one. Worked out once, not to be written to."""
        return self.price_list.column()

    def price_of(self, ordinal: int) -> int | None:
        column = self.price_column()
        if column is None or column[ordinal] == NO_PRICE:
            return None
        return int(column[ordinal])

    def zone_price(self, zone_no: int, category: SeatCategory | None = None) -> int | None:
        """Of a place in the zone that is not a seat named by a pricing zone: for general admission, and for lists."""
        return self.price_list.zone_price(zone_no, category)
