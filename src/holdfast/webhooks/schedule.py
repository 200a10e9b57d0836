"""When a delivery that failed is tried again, and when it is given up."""

import email.utils
from datetime import UTC, datetime, timedelta

DELAYS_S = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
"""After the first failed try, after the second, …: about three days in all."""
JITTER = 0.1
LONGEST_WAIT_S = 86_400.0
"""However long an endpoint asks to be left alone."""
FAILING_FOR = timedelta(days=3)
"""An endpoint at which nothing has succeeded for so long is disabled."""


def delay_s(tries: int, asked_s: float | None, chance: float) -> float | None:
    """Seconds until the next try, after so many; None: there is none.

    `asked_s` is what the endpoint asked for (Retry-After), which is never undercut. `chance`, from 0 to 1, spreads what
    failed together over a tenth of the delay to either side.
    """
    if tries > len(DELAYS_S):
        return None
    planned = DELAYS_S[tries - 1] * (1 + JITTER * (2 * chance - 1))
    if asked_s is None:
        return planned
    return max(planned, min(asked_s, LONGEST_WAIT_S) * (1 + JITTER * chance))


def asked_delay_s(retry_after: str | None, now: datetime) -> float | None:
    """Of a Retry-After header: seconds or a date. One that is neither says nothing."""
    if retry_after is None:
        return None
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:10]), LONGEST_WAIT_S)
    try:
        until = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0.0, (until - now).total_seconds())
