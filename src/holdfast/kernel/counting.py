"""Counters for the hottest paths: a plain dictionary, put into words when asked. The library's own takes a lock each time."""

from collections.abc import Iterator

from prometheus_client import REGISTRY
from prometheus_client.metrics_core import CounterMetricFamily
from prometheus_client.registry import Collector


class PlainCounter(Collector):
    """Used by one thread. `counts` may be added to directly, by the tuple of the labels' values."""

    def __init__(self, name: str, documentation: str, labels: tuple[str, ...]) -> None:
        self._name = name
        self._documentation = documentation
        self._labels = labels
        self.counts: dict[tuple[str, ...], int] = {}
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
