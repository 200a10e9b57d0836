"""Two thousand parties of one to four want the best of five thousand seats at once, over two instances, until sold out."""

import asyncio
import random
import time
from typing import Any
from uuid import UUID

import msgspec
import pytest

from holdfast.accounts.principal import Call
from holdfast.allocation.floor import floor_of
from holdfast.app import Application
from holdfast.bench.selling_out import ALMOST, drawn, sale_curve
from holdfast.bench.stand import layout_config
from holdfast.holds.best_available import BestAvailable, _Marks
from holdfast.holds.lifetime import NATIVE_RESERVE_TTL_S
from holdfast.holds.wish import SeatsWished
from holdfast.kernel.errors import NoSeatsLeft
from holdfast.seating.validate import parse_layout
from tests.conftest import TestDatabase
from tests.race.ground import Ground, all_at_once, ground

SEATS, A_ROW, PARTIES = 5_000, 25, 2_000


class Tried(msgspec.Struct, frozen=True):
    quantity: int
    seats: tuple[int, ...]  # none: refused
    hold_ids: tuple[UUID, ...]
    answered_at: float


async def ask(made: Ground, app: Application, quantity: int) -> Tried:
    wished = SeatsWished(quantity=quantity, endpoint_ttl_s=NATIVE_RESERVE_TTL_S)
    try:
        best = await app.services.best.hold(made.buyer(), made.event.id, wished)
    except NoSeatsLeft:
        return Tried(quantity, (), (), time.time())
    ordinals = tuple(seat.ordinal for seat in best.proposal.seats)
    return Tried(quantity, ordinals, tuple(hold.hold_id for hold in best.holds), time.time())


@pytest.mark.parametrize("hot_events", [64])
def test_everybody_is_served_as_long_as_something_fits_and_nothing_twice(
    database: TestDatabase, hot_events: int
) -> None:
    config = layout_config(SEATS, A_ROW)
    dice = random.Random(11)
    overrides = {"orphan_avoidance_strict": True}

    async def main() -> tuple[list[Tried], list[Any], list[str]]:
        async with ground(
            database, config, event={"overrides": overrides}, hot_events=hot_events, writer_deadline_s=60.0
        ) as made:
            parties = [dice.randint(1, 4) for _ in range(PARTIES)]
            tried = await all_at_once(ask(made, made.apps[n % 2], quantity) for n, quantity in enumerate(parties))
            while tried[-1].seats:  # single buyers take what is left
                tried.append(await ask(made, made.apps[0], 1))
            query = """
                SELECT ordinal, extract(epoch FROM at)::float8 AS at FROM seat_state_events
                WHERE event_id = $1 AND verb = 'hold' ORDER BY at, id
            """
            log = await made.sql(query, made.event.id)
            acknowledged = [hold_id for one in tried for hold_id in one.hold_ids]
            return tried, log, await made.faults(acknowledged)

    tried, log, faults = asyncio.run(main())
    assert faults == []
    given = [ordinal for one in tried for ordinal in one.seats]
    assert len(given) == len(set(given)) == SEATS
    assert sorted(row["ordinal"] for row in log) == list(range(SEATS))
    moments = [row["at"] for row in log]
    for one in tried:
        if not one.seats:  # seats only ever go: what was left when it was answered was there when it was decided
            left = SEATS - sum(at <= one.answered_at for at in moments)
            assert left < one.quantity, f"{one.quantity} refused while {left} were free"
    layout = parse_layout(UUID(int=1), config)
    curve = sale_curve(floor_of(layout), [row["ordinal"] for row in log])
    print(drawn(curve))
    almost = next(point for point in curve if point.taken >= ALMOST)
    assert almost.alone_of_free < 0.05, drawn(curve)


def test_control_whoever_tries_only_once_refuses_while_seats_are_free(
    database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def try_once(self: BestAvailable, call: Call, search: Any) -> Any:
        free = self._registry.free_seats(await self._registry.seats(search.view))
        choice = search.choose(free)
        placement = None if choice is None else await self._try(call, search, choice, _Marks(), set())
        if placement is None:
            raise NoSeatsLeft("tried once")
        return placement

    monkeypatch.setattr(BestAvailable, "_hold_best", try_once)

    async def main() -> int:
        async with ground(database, layout_config(500, A_ROW), hot_events=64) as made:
            wished = SeatsWished(quantity=2, endpoint_ttl_s=NATIVE_RESERVE_TTL_S)
            asked = (app.services.best.hold(made.buyer(), made.event.id, wished) for app in made.apps * 50)
            answers = await asyncio.gather(*asked, return_exceptions=True)
            return sum(isinstance(answer, NoSeatsLeft) for answer in answers)

    assert asyncio.run(main()) > 0


def test_the_report_draws_a_sale() -> None:
    layout = parse_layout(UUID(int=1), layout_config(10, 5))
    curve = sale_curve(floor_of(layout), [1, 3, 5, 6, 0, 2, 4, 7, 8, 9], points=5)
    # After seats 1 and 3 of the first row its seats 0, 2 and 4 stand alone; then they go, one by one.
    assert [round(point.alone * 10) for point in curve] == [3, 3, 1, 0, 1, 0]
    assert [point.taken for point in curve] == [0.2, 0.4, 0.6, 0.8, 0.9, 1.0]
    assert drawn(curve).splitlines()[0].startswith(" 20% taken  " + "█" * 40)
