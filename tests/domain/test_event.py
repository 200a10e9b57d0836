"""Events without I/O: states, what an organiser says, whether it is on sale."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from holdfast.kernel.errors import (
    EventNotAvailable,
    EventSalesClosed,
    EventUnavailable,
    IllegalEventMove,
    OverrideNotPermitted,
    Refusal,
)
from holdfast.seating.event import (
    Event,
    EventInvalid,
    EventStatus,
    LayoutReference,
    Price,
    check_event_move,
    check_overrides,
    check_saleable,
    event_document,
    layout_reference,
    parse_event,
    patched_document,
    permitted_overrides,
)
from holdfast.seating.layout import Layout, SeatCategory
from holdfast.seating.policy import parse_policy
from holdfast.seating.refusals import EventFrozen
from holdfast.seating.validate import parse_layout
from tests.factories import theatre_config

EVENT = UUID("00000000-0000-7000-8000-000000000001")
LAYOUT = parse_layout(uuid4(), theatre_config(2, 4, ga_capacity=50))
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
GA = [{"zone_id": "field", "name": "Field", "zone_type": "ga_standing", "capacity": 900}]


def document(**changes: Any) -> dict[str, Any]:
    said = {"name": "First night", "layout_id": str(LAYOUT.layout_id), "layout_version": 1}
    return {**said, **changes}


def problems_of(raw: object, layout: Layout | None = LAYOUT) -> dict[str, str]:
    with pytest.raises(EventInvalid) as caught:
        parse_event(raw, EVENT, layout, 1)
    return {problem.pointer: problem.code for problem in caught.value.problems}


LEGAL = {
    ("draft", "published"),
    ("published", "live"),
    ("live", "archived"),
    ("draft", "cancelled"),
    ("published", "cancelled"),
    ("live", "cancelled"),
}


@pytest.mark.parametrize("old", list(EventStatus))
@pytest.mark.parametrize("new", list(EventStatus))
def test_an_event_moves_only_along_the_legal_ways(old: EventStatus, new: EventStatus) -> None:
    if (old.value, new.value) in LEGAL:
        check_event_move(old, new)
        return
    with pytest.raises(IllegalEventMove) as caught:
        check_event_move(old, new)
    facts = caught.value.facts
    assert (facts["current_status"], facts["requested_status"]) == (old.value, new.value)
    assert set(facts["allowed"]) == {to for of, to in LEGAL if of == old.value}


@pytest.mark.parametrize(
    ("status", "refusal"),
    [
        (EventStatus.DRAFT, EventNotAvailable),
        (EventStatus.ARCHIVED, EventNotAvailable),
        (EventStatus.CANCELLED, EventUnavailable),
    ],
)
def test_an_event_that_is_not_on_sale_refuses_even_those_not_bound_by_the_window(
    status: EventStatus, refusal: type[Refusal]
) -> None:
    for any_time in (True, False):
        with pytest.raises(refusal):
            check_saleable(status, NOW + timedelta(days=1), None, NOW, any_time)


@pytest.mark.parametrize("status", [EventStatus.PUBLISHED, EventStatus.LIVE])
def test_the_sale_window_includes_both_its_ends_and_nothing_beyond(status: EventStatus) -> None:
    tick = timedelta(microseconds=1)
    check_saleable(status, NOW, NOW + tick, NOW, any_time=False)
    check_saleable(status, NOW - tick, NOW, NOW, any_time=False)
    check_saleable(status, None, None, NOW, any_time=False)
    for start, end in ((NOW + tick, None), (None, NOW - tick)):
        with pytest.raises(EventSalesClosed):
            check_saleable(status, start, end, NOW, any_time=False)
        check_saleable(status, start, end, NOW, any_time=True)


def test_a_whole_event_is_read() -> None:
    content = parse_event(
        document(
            sale_start="2026-05-01T10:00:00+02:00",
            sale_end="2026-06-01T00:00:00Z",
            days=["2026-06-03", "2026-06-02"],
            currency="EUR",
            prices=[
                {"zone_id": "stalls", "category": None, "amount_minor": 8000},
                {"zone_id": "stalls", "category": "wheelchair", "amount_minor": 0},
                {"zone_id": str(LAYOUT.zones[1].id), "amount_minor": 2500},
            ],
            overrides={"max_seats_per_booking": 4},
        ),
        EVENT,
        LAYOUT,
        3,
    )
    assert content.sale_start == datetime(2026, 5, 1, 8, tzinfo=UTC)
    assert content.days == (date(2026, 6, 2), date(2026, 6, 3))
    assert content.layout_version == 1
    assert content.prices == (
        Price("stalls", None, 8000),
        Price("stalls", SeatCategory.WHEELCHAIR, 0),
        Price("pit", None, 2500),
    )
    assert content.overrides == {"max_seats_per_booking": 4}


def test_the_latest_version_stands_in_for_one_not_named() -> None:
    said = document()
    del said["layout_version"]
    assert layout_reference(said) == LayoutReference(LAYOUT.layout_id, None)
    assert parse_event(said, EVENT, LAYOUT, 7).layout_version == 7


def test_an_event_without_a_layout_lists_its_own_zones() -> None:
    content = parse_event({"name": "Festival", "zones": GA}, EVENT, None, None)
    assert content.layout_id is None
    assert content.own_zones == GA
    assert content.layout.total_capacity == 900


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"name": ""}, {"/name": "empty"}),
        ({"name": "x" * 201}, {"/name": "too_long"}),
        ({"name": 3}, {"/name": "wrong_type"}),
        ({"colour": "red"}, {"/colour": "unknown_field"}),
        ({"zones": GA}, {"/zones": "conflicting_fields"}),
        ({"layout_version": 0}, {"/layout_version": "out_of_range"}),
        ({"layout_version": "1"}, {"/layout_version": "wrong_type"}),
        ({"layout_id": "house"}, {"/layout_id": "bad_id"}),
        ({"layout_id": None}, {"/layout_version": "layout_required"}),
        ({"sale_start": "2026-05-01T10:00:00"}, {"/sale_start": "bad_time"}),
        ({"sale_start": "2026-02-30T10:00:00Z"}, {"/sale_start": "bad_time"}),
        ({"sale_end": "tomorrow"}, {"/sale_end": "bad_time"}),
        ({"sale_end": 1_777_000_000}, {"/sale_end": "wrong_type"}),
        ({"sale_end": "0001-01-01T00:00:00+14:00"}, {"/sale_end": "bad_time"}),
        ({"sale_start": "2026-05-01T10:00Z", "sale_end": "2026-05-01T12:00+02:00"}, {"/sale_end": "empty_window"}),
        ({"days": "2026-05-01"}, {"/days": "wrong_type"}),
        ({"days": ["2026-05-01", "2026-5-2", "2026-05-01"]}, {"/days/1": "bad_day", "/days/2": "duplicate_day"}),
        ({"currency": "eur"}, {"/currency": "bad_currency"}),
        ({"currency": "EURO"}, {"/currency": "bad_currency"}),
        ({"prices": [{"zone_id": "stalls", "amount_minor": 1}]}, {"/currency": "currency_required"}),
        ({"prices": {}, "currency": "EUR"}, {"/prices": "wrong_type"}),
        ({"overrides": {"max_seats_per_booking": 0}}, {"/overrides/max_seats_per_booking": "out_of_range"}),
        ({"overrides": {"free_beer": True}}, {"/overrides/free_beer": "unknown_field"}),
        ({"overrides": []}, {"/overrides": "wrong_type"}),
    ],
)
def test_each_bad_field_is_named(changes: dict[str, Any], expected: dict[str, str]) -> None:
    assert problems_of(document(**changes)) == expected


@pytest.mark.parametrize(
    ("price", "expected"),
    [
        ({"amount_minor": 1}, {"/prices/0/zone_id": "missing"}),
        ({"zone_id": "attic", "amount_minor": 1}, {"/prices/0/zone_id": "unknown_zone"}),
        ({"zone_id": "stalls"}, {"/prices/0/amount_minor": "missing"}),
        ({"zone_id": "stalls", "amount_minor": -1}, {"/prices/0/amount_minor": "out_of_range"}),
        ({"zone_id": "stalls", "amount_minor": 10**12}, {"/prices/0/amount_minor": "out_of_range"}),
        ({"zone_id": "stalls", "amount_minor": 9.5}, {"/prices/0/amount_minor": "wrong_type"}),
        ({"zone_id": "stalls", "amount_minor": True}, {"/prices/0/amount_minor": "wrong_type"}),
        ({"zone_id": "stalls", "amount_minor": 1, "category": "royal"}, {"/prices/0/category": "unknown_category"}),
        ({"zone_id": "stalls", "amount_minor": 1, "vat": 7}, {"/prices/0/vat": "unknown_field"}),
        ("free", {"/prices/0": "wrong_type"}),
    ],
)
def test_each_bad_price_is_named(price: object, expected: dict[str, str]) -> None:
    assert problems_of(document(currency="EUR", prices=[price])) == expected


def test_one_zone_and_category_has_one_price() -> None:
    twice = [
        {"zone_id": "stalls", "amount_minor": 1},
        {"zone_id": str(LAYOUT.zones[0].id), "category": None, "amount_minor": 2},
        {"zone_id": "stalls", "category": "aisle", "amount_minor": 2},
    ]
    assert problems_of(document(currency="EUR", prices=twice)) == {"/prices/1": "duplicate_price"}


def test_every_problem_is_reported_at_once() -> None:
    found = problems_of(document(name="", sale_end="never", days=[1], currency="E", overrides={"max_group_split": 0}))
    assert set(found) == {"/name", "/sale_end", "/days/0", "/currency", "/overrides/max_group_split"}


@pytest.mark.parametrize("raw", [None, [], "event", 3])
def test_what_is_no_object_is_no_event(raw: object) -> None:
    assert problems_of(raw, None)[""] == "wrong_type"


def test_an_event_needs_a_layout_or_zones() -> None:
    assert problems_of({"name": "Nowhere"}, None) == {"/layout_id": "missing"}


def test_own_zones_are_checked_like_a_layouts() -> None:
    zones = [{"zone_id": "a", "name": "A", "zone_type": "reserved_seating", "capacity": 0}]
    found = problems_of({"name": "Festival", "zones": zones}, None)
    assert found["/zones/0/zone_type"] == "reserved_zone_without_layout"
    assert found["/zones/0/capacity"] == "out_of_range"


def event(status: EventStatus, **changes: Any) -> Event:
    values: dict[str, Any] = {
        "id": EVENT,
        "name": "First night",
        "status": status,
        "layout_id": LAYOUT.layout_id,
        "layout_version": 1,
        "sale_start": NOW,
        "sale_end": None,
        "days": (date(2026, 6, 2),),
        "currency": "EUR",
        "prices": (Price("stalls", None, 8000),),
        "overrides": {"max_group_split": 3},
        "created_at": NOW,
        "updated_at": NOW,
        "published_at": None,
    }
    return Event(**{**values, **changes})


def test_an_events_document_reads_back_as_the_event() -> None:
    stored = event(EventStatus.DRAFT)
    content = parse_event(event_document(stored, None), EVENT, LAYOUT, 9)
    for field in ("name", "layout_id", "layout_version", "sale_start", "sale_end", "days", "prices", "overrides"):
        assert getattr(content, field) == getattr(stored, field)


def test_a_draft_changes_in_everything() -> None:
    changed = patched_document(event(EventStatus.DRAFT), None, {"zones": GA, "prices": None, "currency": None})
    content = parse_event(changed, EVENT, None, None)
    assert content.layout_id is None
    assert content.prices == ()


def test_another_layout_comes_in_its_latest_version_unless_one_is_named() -> None:
    other = str(uuid4())
    changed = patched_document(event(EventStatus.DRAFT), None, {"layout_id": other})
    assert layout_reference(changed) == LayoutReference(UUID(other), None)


@pytest.mark.parametrize("status", [EventStatus.PUBLISHED, EventStatus.LIVE])
@pytest.mark.parametrize("field", ["layout_id", "layout_version", "zones"])
def test_an_event_on_sale_keeps_its_layout(status: EventStatus, field: str) -> None:
    with pytest.raises(EventFrozen) as caught:
        patched_document(event(status), None, {"name": "Second night", field: None})
    assert caught.value.facts["fields"] == [field]


def test_an_event_on_sale_keeps_its_currency_but_may_be_given_one() -> None:
    patched_document(event(EventStatus.PUBLISHED, currency=None, prices=()), None, {"currency": "USD"})
    patched_document(event(EventStatus.PUBLISHED), None, {"currency": "EUR"})
    with pytest.raises(EventFrozen):
        patched_document(event(EventStatus.PUBLISHED), None, {"currency": "USD"})


@pytest.mark.parametrize("status", [EventStatus.CANCELLED, EventStatus.ARCHIVED])
def test_an_event_that_is_over_changes_in_nothing(status: EventStatus) -> None:
    with pytest.raises(EventFrozen):
        patched_document(event(status), None, {"name": "Again"})


def test_a_patch_names_the_fields_it_does_not_know() -> None:
    with pytest.raises(EventInvalid) as caught:
        patched_document(event(EventStatus.DRAFT), None, {"status": "live"})
    assert [problem.pointer for problem in caught.value.problems] == ["/status"]


def test_locked_fields_cannot_be_overridden_and_are_named() -> None:
    policy = parse_policy({"locked_fields": ["max_group_split", "max_seats_per_booking"]})
    check_overrides(policy, {"orphan_avoidance_strict": False})
    check_overrides(None, {"max_group_split": 5})
    with pytest.raises(OverrideNotPermitted) as caught:
        check_overrides(policy, {"max_seats_per_booking": 5, "orphan_avoidance_strict": False, "max_group_split": 1})
    assert caught.value.facts["fields"] == ["max_group_split", "max_seats_per_booking"]


def test_an_override_locked_later_no_longer_counts() -> None:
    policy = parse_policy({"locked_fields": ["max_group_split"]})
    assert permitted_overrides(policy, {"max_group_split": 5, "max_hold_minutes": 9}) == {"max_hold_minutes": 9}
