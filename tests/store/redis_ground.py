"""What the tests of the warm tier share: an event with a layout, messages as the feed brings them, a server to write to."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from holdfast.holds.lifecycle import SeatState
from holdfast.kernel.ids import new_id
from holdfast.live.message import Message
from holdfast.seating.layout import Layout, seat_uuid_column
from holdfast.store.embedded import ValkeyServer
from holdfast.store.redis.warm import Warm

T = TypeVar("T")

NAMESPACE = "test"
TIMEOUT_S = 0.5

STATES = {
    "SeatReserved": SeatState.HELD,
    "SeatHoldExtended": SeatState.HELD,
    "SeatReleased": SeatState.AVAILABLE,
    "SeatHoldExpired": SeatState.AVAILABLE,
    "SaleReverted": SeatState.AVAILABLE,
    "SeatUnblocked": SeatState.AVAILABLE,
    "SeatSold": SeatState.SOLD,
    "SeatBlocked": SeatState.BLOCKED,
}


def layout_of(seats: int) -> Layout:
    layout_id = new_id()
    seat_ids = [f"A-{number}" for number in range(1, seats + 1)]
    return Layout(layout_id=layout_id, zones=(), seat_ids=seat_ids, seat_uuids=seat_uuid_column(layout_id, seat_ids))


class Hall:
    """An event of an organization, and the moves of its seats. `now` is the database's clock: real time, but exact."""

    def __init__(self, seats: int = 100, layout: Layout | None = None, organization_id: UUID | None = None) -> None:
        self.organization_id = organization_id or new_id()
        self.event_id = new_id()
        self.layout = layout or layout_of(seats)
        self.now = datetime.now(UTC)

    def seat(self, ordinal: int) -> UUID:
        return self.layout.seat_uuid(ordinal)

    def move(
        self,
        kind: str,
        ordinals: list[int] | None,
        holds: list[UUID | None],
        version: int,
        *,
        lives_s: float | None = None,
        **more: Any,
    ) -> Message:
        """`lives_s`: how long from now the holds live."""
        begins = kind in ("SeatReserved", "SeatHoldExtended")
        fields: dict[str, Any] = {
            "organization_id": self.organization_id,
            "id": 1,
            "xid": 1,
            "at": self.now,
            "kind": kind,
            "event_id": self.event_id,
            "source": "web" if begins else None,
            "state": STATES[kind],
            "hold_type": "CART" if begins else None,
            "held_until": None if lives_s is None else self.now + timedelta(seconds=lives_s),
            "ordinals": ordinals,
            "versions": [version] * len(ordinals or []),
            "hold_ids": holds,
            "user_ids": [None] * len(holds) if begins else [],
        }
        return Message(**(fields | more))

    def places(self, kind: str, holds: list[UUID | None], quantities: list[int], **more: Any) -> Message:
        return self.move(kind, None, holds, 0, quantities=quantities, **more)

    async def apply(self, warm: Warm, *messages: Message) -> bool:
        return await warm.apply(messages, {self.event_id: self.layout}, self.now)

    async def bit(self, warm: Warm, ordinal: int) -> int:
        bits = await warm.get_bitmap(self.organization_id, self.event_id) or b""
        return bits[ordinal // 8] >> (7 - ordinal % 8) & 1 if ordinal // 8 < len(bits) else 0


@asynccontextmanager
async def opened(url: str, timeout_s: float = TIMEOUT_S) -> AsyncIterator[Warm]:
    warm = Warm.open(url, NAMESPACE, timeout_s)
    try:
        yield warm
    finally:
        await warm.close()


def run(url: str, work: Callable[[Warm], Awaitable[T]], timeout_s: float = TIMEOUT_S) -> T:
    async def main() -> T:
        async with opened(url, timeout_s) as warm:
            return await work(warm)

    return asyncio.run(main())


@contextmanager
def own_server(folder: Path) -> Iterator[ValkeyServer]:
    """A server that the test may stop, kill and start."""
    server = ValkeyServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()


async def eventually(condition: Callable[[], Awaitable[bool]], seconds: float = 5.0) -> bool:
    deadline = asyncio.get_running_loop().time() + seconds
    while not await condition():
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True
