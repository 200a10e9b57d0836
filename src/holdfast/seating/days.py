"""Days of the calendar as organisers write them. Pure."""

import re
from datetime import date

from holdfast.kernel.problems import Problems, child, quoted
from holdfast.seating.reading import read_list

MAX_DAYS = 366
YEARS = range(1970, 9000)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def read_days(problems: Problems, pointer: str, value: object) -> tuple[date, ...]:
    """Each once, in order; none where nothing is said."""
    if value is None:
        return ()
    raw_days = read_list(problems, pointer, value) or []
    if len(raw_days) > MAX_DAYS:
        problems.add(pointer, "too_many_days", f"at most {MAX_DAYS} days, not {len(raw_days)}")
        return ()
    days: set[date] = set()
    for place, raw in enumerate(raw_days):
        here = child(pointer, place)
        day = _day(raw)
        if day is None:
            said = f"{quoted(raw)} is no day like 2026-05-01"
            problems.add(here, "bad_day" if isinstance(raw, str) else "wrong_type", said)
        elif day in days:
            problems.add(here, "duplicate_day", f"{day} is listed twice")
        else:
            days.add(day)
    return tuple(sorted(days))


def _day(raw: object) -> date | None:
    if not isinstance(raw, str) or not _DAY.fullmatch(raw):
        return None
    try:
        day = date.fromisoformat(raw)
    except ValueError:
        return None
    return day if day.year in YEARS else None
