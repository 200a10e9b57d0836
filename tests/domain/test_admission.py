"""How an event lets people in: its settings, its days, and the terms of its tickets."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernel.problems import Problems
from holdfast.seating.admission import Admission, ZoneAdmission, admission_document, read_admission
from holdfast.seating.validate import parse_layout
from holdfast.tickets.ticket import Entitlement
from tests.factories import theatre_config

LAYOUT = parse_layout(UUID(int=1), theatre_config(1, 2, ga_capacity=5))
FIRST, SECOND = date(2026, 5, 1), date(2026, 5, 2)


def read(value: object, days: tuple[date, ...] = (FIRST, SECOND)) -> Admission:
    problems = Problems()
    found = read_admission(problems, value, LAYOUT, days)
    assert not problems, problems.listed()
    return found


def faults(value: object) -> list[tuple[str, str]]:
    problems = Problems()
    read_admission(problems, value, LAYOUT, (FIRST, SECOND))
    return [(problem.pointer, problem.code) for problem in problems.listed()]


def test_what_is_said_is_read_and_written_back_the_same() -> None:
    said = {
        "entitlement": "limited_reentry_per_day",
        "max_daily_entries": 3,
        "timezone": "Europe/Berlin",
        "day_ends_at": "05:00",
        "exit_scans": True,
        "zones": {"pit": {"entitlement": "single_entry", "valid_days": ["2026-05-02"]}},
    }
    found = read(said)
    assert found.zones == {"pit": ZoneAdmission(entitlement=Entitlement.SINGLE_ENTRY, valid_days=(SECOND,))}
    assert admission_document(found) == said
    assert read(admission_document(found)) == found
    assert read(None) == read({}) == Admission()


@pytest.mark.parametrize(
    ("said", "pointer", "code"),
    [
        ("no", "/admission", "wrong_type"),
        ({"entitlment": 1}, "/admission/entitlment", "unknown_field"),
        ({"entitlement": "twice"}, "/admission/entitlement", "unknown_entitlement"),
        ({"entitlement": "limited_reentry_per_day"}, "/admission/max_daily_entries", "missing"),
        ({"max_daily_entries": 2}, "/admission/max_daily_entries", "ineffective_field"),
        ({"entitlement": "limited_reentry_per_day", "max_daily_entries": 0}, "/admission/max_daily_entries",
         "out_of_range"),
        ({"entitlement": "limited_reentry_per_day", "max_daily_entries": True}, "/admission/max_daily_entries",
         "wrong_type"),
        ({"timezone": "Mars/Olympus"}, "/admission/timezone", "unknown_timezone"),
        ({"timezone": "../../etc/passwd"}, "/admission/timezone", "unknown_timezone"),
        ({"timezone": "Europe"}, "/admission/timezone", "unknown_timezone"),
        ({"timezone": "localtime"}, "/admission/timezone", "unknown_timezone"),
        ({"timezone": 1}, "/admission/timezone", "wrong_type"),
        ({"timezone": "Europe/\0"}, "/admission/timezone", "bad_text"),
        ({"day_ends_at": "24:00"}, "/admission/day_ends_at", "bad_time_of_day"),
        ({"day_ends_at": 5}, "/admission/day_ends_at", "wrong_type"),
        ({"exit_scans": "yes"}, "/admission/exit_scans", "wrong_type"),
        ({"zones": {"moon": {}}}, "/admission/zones/moon", "unknown_zone"),
        ({"zones": {"pit": 3}}, "/admission/zones/pit", "wrong_type"),
        ({"zones": {"pit": {"valid_days": ["2026-05-03"]}}}, "/admission/zones/pit/valid_days",
         "not_a_day_of_the_event"),
        ({"zones": {"pit": {"valid_days": ["soon"]}}}, "/admission/zones/pit/valid_days/0", "bad_day"),
        ({"zones": {"pit": {}, str(LAYOUT.zones[1].id): {}}}, f"/admission/zones/{LAYOUT.zones[1].id}",
         "duplicate_zone"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_place(said: Any, pointer: str, code: str) -> None:
    assert faults(said) == [(pointer, code)]


def test_every_fault_is_named_at_once() -> None:
    assert len(faults({"timezone": "x", "day_ends_at": "x", "zones": {"moon": {"valid_days": 1}}})) == 4


@pytest.mark.parametrize(
    ("zone", "ends_at", "instant", "day"),
    [
        ("UTC", "00:00", "2026-05-02T00:00:00+00:00", SECOND),
        ("UTC", "00:00", "2026-05-01T23:59:59+00:00", FIRST),
        ("UTC", "05:00", "2026-05-02T04:59:59+00:00", FIRST),
        ("UTC", "05:00", "2026-05-02T05:00:00+00:00", SECOND),
        ("Europe/Berlin", "00:00", "2026-05-01T22:00:00+00:00", SECOND),
        ("Europe/Berlin", "05:00", "2026-05-02T02:59:00+00:00", FIRST),
        ("Pacific/Kiritimati", "00:00", "2026-05-01T10:00:00+00:00", SECOND),
        # The night the clocks go back: 05:00 on the wall is 04:00 UTC afterwards, whatever was slept through.
        ("Europe/Berlin", "05:00", "2026-10-25T03:59:00+00:00", date(2026, 10, 24)),
        ("Europe/Berlin", "05:00", "2026-10-25T04:00:00+00:00", date(2026, 10, 25)),
    ],
)
def test_the_day_of_a_scan_is_the_events_own(zone: str, ends_at: str, instant: str, day: date) -> None:
    assert Admission(timezone=zone, day_ends_at=ends_at).day_of(datetime.fromisoformat(instant)) == day


@given(
    st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "Pacific/Auckland"]),
    st.integers(0, 23),
    st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)),
)
def test_days_follow_one_another(zone: str, hour: int, naive: datetime) -> None:
    admission = Admission(timezone=zone, day_ends_at=f"{hour:02}:00")
    instant = naive.replace(tzinfo=UTC)
    later = admission.day_of(instant + timedelta(hours=25)) - admission.day_of(instant)
    assert timedelta(days=1) <= later <= timedelta(days=2)
    assert admission.day_of(instant) <= admission.day_of(instant + timedelta(hours=2))
