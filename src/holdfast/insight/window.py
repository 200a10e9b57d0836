"""The time that an analysis looks at, how it is divided, and quantiles. Pure. Days are those of UTC."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from holdfast.kernel.errors import InvalidRequest
from holdfast.kernel.problems import Problem

DEFAULT_DAYS = 7
POINTS_MAX = 500
MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400
STEPS_S = (MINUTE_S, 5 * MINUTE_S, 15 * MINUTE_S, HOUR_S, 6 * HOUR_S, DAY_S, 7 * DAY_S, 28 * DAY_S, 364 * DAY_S)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Window(msgspec.Struct, frozen=True):
    """From `since` on, and before `until`."""

    since: datetime
    until: datetime

    def __contains__(self, instant: datetime) -> bool:
        return self.since <= instant < self.until


def window_of(since: datetime | None, until: datetime | None, now: datetime) -> Window:
    """Where left out: until now, and for the seven days before that."""
    end = now if until is None else until
    begin = end - timedelta(days=DEFAULT_DAYS) if since is None else since
    if begin >= end:
        said = "must be before `to`"
        if until is None:
            said += ", which is now where it is left out"
        raise InvalidRequest(f"`from` {said}.", [Problem("/from", "not_before", said)])
    return Window(begin.astimezone(UTC), end.astimezone(UTC))


def step_for(window: Window, points_max: int = POINTS_MAX) -> int:
    """The shortest step, in seconds, with which a series over the window has no more than so many points."""
    # The window's ends lie anywhere between two steps: one point more at each side.
    fits = (step for step in STEPS_S if (window.until - window.since).total_seconds() / step + 2 <= points_max)
    return next(fits, STEPS_S[-1])


def floor_to(instant: datetime, step_s: int) -> datetime:
    return instant - (instant - EPOCH) % timedelta(seconds=step_s)


def instants(window: Window, step_s: int) -> list[datetime]:
    """The beginning of the window, each multiple of the step within it, and its end."""
    found = [window.since]
    at = floor_to(window.since, step_s) + timedelta(seconds=step_s)
    while at < window.until:
        found.append(at)
        at += timedelta(seconds=step_s)
    return [*found, window.until]


def quantile(counts: Sequence[tuple[int, int]], share: float) -> int | None:
    """The smallest value that at least this share of all is not above; of (value, how many), the smallest value first."""
    total = sum(count for _, count in counts)
    below = 0
    for value, count in counts:
        below += count
        if below >= share * total:
            return value
    return None


def histogram(counts: Sequence[tuple[int, int]], edges: Sequence[int]) -> list[int]:
    """How many lie at or above each edge and below the next; those above the last edge are in the last."""
    found = [0] * len(edges)
    for value, count in counts:
        found[max(n for n, edge in enumerate(edges) if edge <= value)] += count
    return found
