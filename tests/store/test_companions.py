"""Companions' seats in the batching writer: what travels together is decided as if it had come one after the other."""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

from holdfast.app import Application
from holdfast.holds.claims import Held, HoldRequest, SeatWanted
from holdfast.kernel.errors import Refusal, SeatNotOffered
from holdfast.kernel.ids import new_id
from holdfast.seating.accessibility import CompanionRule
from tests.conftest import TestDatabase
from tests.factories import make_published_event, theatre_config, with_companions
from tests.race.ground import parts_of
from tests.stage import stage_settings

CHAIR, COMPANION = 0, 1
RULE = CompanionRule((CHAIR,), 17, 85)
Asking = Callable[..., HoldRequest]


def on_stage(database: TestDatabase, work: Callable[[Application, Asking], Any]) -> None:
    async def run() -> None:
        app = await Application.open(stage_settings(database), work=False)
        try:
            config = with_companions(theatre_config(2, 10), (CHAIR, COMPANION))
            made = await make_published_event(parts_of(app), config=config)

            def asking(*ordinals: int, user_id: UUID | None = None) -> HoldRequest:
                return HoldRequest(
                    organization_id=made.organization.organization_id,
                    event_id=made.id,
                    layout_version=1,
                    seats=tuple(SeatWanted(o, 0, new_id(), RULE if o == COMPANION else None) for o in ordinals),
                    places=(),
                    user_id=user_id or new_id(),
                    session_id=None,
                    actor="CUSTOMER",
                    source="web",
                    hold_type="CART",
                    ttl_s=600,
                    any_time=False,
                    user_limit=None,
                    ip_limit=None,
                    ip=None,
                    user_agent=None,
                    request_id=None,
                )

            await work(app, asking)
        finally:
            await app.close()

    asyncio.run(run())


async def outcomes(app: Application, *requests: HoldRequest) -> list[Held | Refusal]:
    """All of them handed to the writer in one turn of the loop."""
    futures = [app.combiner.submit(request) for request in requests]
    found: list[Any] = await asyncio.gather(*futures, return_exceptions=True)
    return found


def test_wheelchair_and_companions_seat_wanted_by_two_in_one_batch_go_to_the_first_alone(
    database: TestDatabase,
) -> None:
    async def work(app: Application, asking: Asking) -> None:
        chair, companion = await outcomes(app, asking(CHAIR), asking(COMPANION))
        assert isinstance(chair, Held)
        assert isinstance(companion, SeatNotOffered)

    on_stage(database, work)


def test_in_one_batch_the_same_owner_gets_both(database: TestDatabase) -> None:
    async def work(app: Application, asking: Asking) -> None:
        owner = new_id()
        chair, companion = await outcomes(app, asking(CHAIR, user_id=owner), asking(COMPANION, user_id=owner))
        assert isinstance(chair, Held)
        assert isinstance(companion, Held)

    on_stage(database, work)


def test_a_wheelchair_seat_that_could_not_be_had_keeps_nothing(database: TestDatabase) -> None:
    async def work(app: Application, asking: Asking) -> None:
        (taken,) = await outcomes(app, asking(5))
        assert isinstance(taken, Held)
        both, companion = await outcomes(app, asking(CHAIR, 5), asking(COMPANION))
        assert isinstance(both, Refusal)
        assert isinstance(companion, Held)

    on_stage(database, work)


def test_who_follows_a_refused_stranger_is_judged_by_whose_the_wheelchair_seat_is(database: TestDatabase) -> None:
    async def work(app: Application, asking: Asking) -> None:
        owner = new_id()
        (chair,) = await outcomes(app, asking(CHAIR, user_id=owner))
        assert isinstance(chair, Held)
        answers = await outcomes(
            app, asking(COMPANION), asking(COMPANION), asking(COMPANION, user_id=owner), asking(COMPANION)
        )
        assert [type(answer) for answer in answers[:2]] == [SeatNotOffered, SeatNotOffered]
        assert isinstance(answers[2], Held)
        assert isinstance(answers[3], Refusal)
        assert not isinstance(answers[3], SeatNotOffered), "by then the seat was its owner's"

    on_stage(database, work)
