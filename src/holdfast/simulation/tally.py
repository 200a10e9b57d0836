"""What simulated buyers did, what they were told, and how long it took."""

from collections import Counter

import msgspec


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A tally at one moment, small enough to be sent from process to process."""

    requests: int
    holds: int
    done: dict[str, int]
    """Successes by verb: hold, hold_ga, best, release, extend, check_out, pay, money, buy, arrive, lock, sell, return."""
    refused: dict[str, int]
    """Refusals by their code."""
    faults: int
    """Requests without an answer, or answered with a server's error."""
    latency_ms_p50: float
    latency_ms_p95: float
    latency_ms_p99: float
    last_fault: str | None = None


class Tally:
    RECENT = 2_000
    """Latencies that the percentiles of a report look back on, unless all are kept."""

    def __init__(self, *, keep_all: bool = False) -> None:
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.requests = 0
        self.faults = 0
        self.last_fault: str | None = None
        self._keep_all = keep_all
        self._latencies_ms: list[float] = []

    def took(self, latency_s: float) -> None:
        self.requests += 1
        self._latencies_ms.append(latency_s * 1000)
        if not self._keep_all and len(self._latencies_ms) > 2 * self.RECENT:
            del self._latencies_ms[: -self.RECENT]

    def fault(self, said: str) -> None:
        self.faults += 1
        self.last_fault = said

    def report(self) -> Report:
        ordered = sorted(self._latencies_ms if self._keep_all else self._latencies_ms[-self.RECENT :])
        return Report(
            requests=self.requests,
            holds=self.done["hold"] + self.done["hold_ga"] + self.done["best"],
            done=dict(self.done),
            refused=dict(self.refused),
            faults=self.faults,
            latency_ms_p50=percentile(ordered, 0.50),
            latency_ms_p95=percentile(ordered, 0.95),
            latency_ms_p99=percentile(ordered, 0.99),
            last_fault=self.last_fault,
        )


def percentile(ordered: list[float], share: float) -> float:
    """Of values in ascending order; 0 where there are none."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
