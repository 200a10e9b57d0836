"""Figures for the hottest paths: plain dictionaries and lists, put into words when asked. The library's own take a lock
each time."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping

from prometheus_client import REGISTRY
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

Labels = tuple[str, ...]

LATENCY_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5, 10.0)
"""Bounds for the time a request takes; the promised ones (50, 100, 200 ms) are among them."""


class PlainCounter(Collector):
    """Used by one thread. `counts` may be added to directly, by the tuple of the labels' values."""

    def __init__(self, name: str, documentation: str, labels: Labels) -> None:
        self._name = name
        self._documentation = documentation
        self._labels = labels
        self.counts: dict[Labels, int] = {}
        REGISTRY.register(self)

    def add(self, *values: str, by: int = 1) -> None:
        self.counts[values] = self.counts.get(values, 0) + by

    def collect(self) -> Iterator[CounterMetricFamily]:
        family = CounterMetricFamily(self._name, self._documentation, labels=self._labels)
        for values, count in list(self.counts.items()):
            family.add_metric(values, count)
        yield family

    def describe(self) -> Iterator[CounterMetricFamily]:
        yield CounterMetricFamily(self._name, self._documentation, labels=self._labels)


class PlainSeries:
    """One row of a histogram. A hot path keeps it, and pays for a search among the bounds and two additions."""

    __slots__ = ("_bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    def buckets(self) -> list[tuple[str, float]]:
        """As the text format has them: each with all that lies below it."""
        below, found = 0, []
        for bound, count in zip((*map(str, self._bounds), "+Inf"), list(self.counts), strict=True):
            below += count
            found.append((bound, float(below)))
        return found


class PlainHistogram(Collector):
    """Used by one thread. `series` gives the row of these labels, which may be kept."""

    def __init__(
        self, name: str, documentation: str, labels: Labels = (), bounds: tuple[float, ...] = LATENCY_S
    ) -> None:
        self._name = name
        self._documentation = documentation
        self._labels = labels
        self._bounds = tuple(float(bound) for bound in bounds)
        self._rows: dict[Labels, PlainSeries] = {}
        REGISTRY.register(self)

    def series(self, *values: str) -> PlainSeries:
        row = self._rows.get(values)
        if row is None:
            row = self._rows[values] = PlainSeries(self._bounds)
        return row

    def observe(self, value: float, *values: str) -> None:
        self.series(*values).observe(value)

    def collect(self) -> Iterator[HistogramMetricFamily]:
        family = HistogramMetricFamily(self._name, self._documentation, labels=self._labels)
        for values, row in list(self._rows.items()):
            family.add_metric(values, row.buckets(), row.total)
        yield family

    def describe(self) -> Iterator[HistogramMetricFamily]:
        yield HistogramMetricFamily(self._name, self._documentation, labels=self._labels)


class PlainGauge(Collector):
    """Figures that are taken all together and shown all together: what was not taken this time is gone."""

    def __init__(self, name: str, documentation: str, labels: Labels) -> None:
        self._name = name
        self._documentation = documentation
        self._labels = labels
        self._values: Mapping[Labels, float] = {}
        REGISTRY.register(self)

    def replace(self, values: Mapping[Labels, float]) -> None:
        """The mapping is the gauge's from here on."""
        self._values = values

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily(self._name, self._documentation, labels=self._labels)
        for values, value in self._values.items():
            family.add_metric(values, value)
        yield family

    def describe(self) -> Iterator[GaugeMetricFamily]:
        yield GaugeMetricFamily(self._name, self._documentation, labels=self._labels)


class LatestGauge(PlainGauge):
    """Figures by one label, each the last that was noted; the oldest labels go when there are too many."""

    KEPT = 1_000

    def __init__(self, name: str, documentation: str, label: str) -> None:
        super().__init__(name, documentation, (label,))
        self._latest: dict[Labels, float] = {}
        self.replace(self._latest)

    def note(self, label: str, value: float | None) -> None:
        """None: there is no such figure at the moment."""
        self._latest.pop((label,), None)
        if value is not None:
            self._latest[label,] = value
            if len(self._latest) > self.KEPT:
                del self._latest[next(iter(self._latest))]
