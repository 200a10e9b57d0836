"""What a webhook says of a message of the outbox."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest

from holdfast.holds.lifecycle import SeatState
from holdfast.live.message import Message
from holdfast.seating.layout import Layout
from holdfast.seating.validate import parse_layout
from holdfast.webhooks.message import KINDS, Wanted, messages_of, total_places
from tests.factories import theatre_config

AT = datetime(2031, 5, 6, 12, 0, tzinfo=UTC)
EVENT = UUID("01900000-0000-7000-8000-000000000001")


def layout_of(rows: int, seats_per_row: int) -> Layout:
    return parse_layout(uuid4(), theatre_config(rows, seats_per_row, ga_capacity=50))


def message(**fields: Any) -> Message:
    known: dict[str, Any] = {"organization_id": uuid4(), "id": 7, "xid": 9, "at": AT, "kind": "X", "event_id": EVENT}
    return Message(**{**known, **fields})


def documents(of: Message, layout: Layout | None) -> list[dict[str, Any]]:
    return [msgspec.json.decode(one.body) for one in messages_of(of, "Evening", layout)]


def test_seats_are_named_as_the_organiser_and_the_routes_name_them() -> None:
    layout = layout_of(2, 3)
    holds, users = [uuid4(), uuid4()], [uuid4(), uuid4()]
    (said,) = documents(
        message(
            kind="SeatReserved",
            state=SeatState.HELD,
            hold_type="CART",
            held_until=AT + timedelta(minutes=5),
            actor="CUSTOMER",
            source="web",
            ordinals=[0, 4],
            versions=[1, 3],
            hold_ids=holds,
            user_ids=users,
        ),
        layout,
    )
    assert said["type"] == "SeatReserved"
    assert said["timestamp"] == "2031-05-06T12:00:00Z"
    data = said["data"]
    seats = data.pop("seats")
    assert data == {
        "event_id": str(EVENT),
        "event_name": "Evening",
        "state": "held",
        "hold_type": "CART",
        "held_until": "2031-05-06T12:05:00Z",
        "actor": "CUSTOMER",
        "source": "web",
    }
    assert seats[1] == {
        "id": str(layout.seat_uuid(4)),
        "seat_id": "B-2",
        "ordinal": 4,
        "zone": "stalls",
        "row": "B",
        "number": 2,
        "version": 3,
        "hold_id": str(holds[1]),
        "user_id": str(users[1]),
    }


def test_places_of_general_admission_are_told_by_quantity() -> None:
    holds = [uuid4(), uuid4()]
    (said,) = documents(
        message(kind="SeatReleased", state=SeatState.AVAILABLE, quantities=[2, 3], hold_ids=holds, zone_no=1),
        layout_of(1, 2),
    )
    data = said["data"]
    assert (data["zone"], data["quantity"]) == ("pit", 5)
    assert [(place["quantity"], place["hold_id"]) for place in data["places"]] == [
        (2, str(holds[0])),
        (3, str(holds[1])),
    ]


@pytest.mark.parametrize(("seats", "sizes"), [(1_000, [1_000]), (1_001, [1_000, 1]), (2_500, [1_000, 1_000, 500])])
def test_more_than_a_thousand_seats_are_sent_in_parts(seats: int, sizes: list[int]) -> None:
    layout = layout_of(50, 50)
    told = message(kind="SeatBlocked", state=SeatState.BLOCKED, ordinals=list(range(seats)), versions=[1] * seats)
    said = documents(told, layout)
    assert [len(one["data"]["seats"]) for one in said] == sizes
    named = [seat["seat_id"] for one in said for seat in one["data"]["seats"]]
    assert named == layout.seat_ids[:seats]
    if len(sizes) > 1:
        assert [(one["data"]["part"], one["data"]["parts"]) for one in said] == [
            (part, len(sizes)) for part in range(1, len(sizes) + 1)
        ]
    assert [one.part for one in messages_of(told, None, layout)] == list(range(len(sizes)))


def test_what_else_there_is_to_say_is_passed_on_as_it_is() -> None:
    (said,) = documents(message(kind="PaymentOrphaned", payload={"payment_id": "p-1", "amount_minor": 800}), None)
    assert said["data"] == {
        "event_id": str(EVENT),
        "event_name": "Evening",
        "payment_id": "p-1",
        "amount_minor": 800,
    }
    (bare,) = documents(message(kind="EventCreated"), None)
    assert bare["data"] == {"event_id": str(EVENT), "event_name": "Evening"}


def test_the_kinds_that_are_promised_can_be_listened_to() -> None:
    promised = (
        "SeatReserved SeatReleased SeatHoldExpired SeatSold SaleReverted CheckoutExpired PaymentOrphaned EventSoldOut"
    )
    assert set(promised.split()) <= set(KINDS)


def test_an_endpoint_wants_what_it_listens_to_and_nothing_from_before_its_time() -> None:
    everything = Wanted(endpoint_id=uuid4(), kinds=frozenset(), event_id=None, since=AT)
    assert everything.wants("SeatSold", EVENT, AT)
    assert not everything.wants("SeatSold", EVENT, AT - timedelta(seconds=1))
    assert not everything.wants("SomethingInternal", EVENT, AT)
    sales = Wanted(endpoint_id=uuid4(), kinds=frozenset(["SeatSold"]), event_id=EVENT, since=AT)
    assert sales.wants("SeatSold", EVENT, AT)
    assert not sales.wants("SeatReserved", EVENT, AT)
    assert not sales.wants("SeatSold", uuid4(), AT)
    assert not sales.wants("SeatSold", None, AT)


def test_places_in_all_are_seats_and_places_of_general_admission() -> None:
    assert total_places(layout_of(2, 3)) == 56
