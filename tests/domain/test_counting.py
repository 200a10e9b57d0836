"""The plain figures say what the library's own would say."""

import timeit

import pytest
from prometheus_client import REGISTRY, CollectorRegistry, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from holdfast.kernel.counting import PlainCounter, PlainGauge, PlainHistogram

BOUNDS = (0.01, 0.1, 1.0)
SECONDS = (0.0, 0.01, 0.010001, 0.09, 0.1, 0.5, 1.0, 1.5, 99.0)


def samples(text: str, name: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith(name)
    }


def test_a_plain_histogram_counts_like_the_librarys() -> None:
    plain = PlainHistogram("test_plain_like_seconds", "Time", ("way",), BOUNDS)
    own = CollectorRegistry()
    library = Histogram("test_plain_like_seconds", "Time", ["way"], buckets=BOUNDS, registry=own)
    for n, seconds in enumerate(SECONDS):
        way = ("short", "long")[n % 2]
        plain.observe(seconds, way)
        library.labels(way).observe(seconds)
    said = samples(generate_latest(REGISTRY).decode(), "test_plain_like_seconds")
    expected = samples(generate_latest(own).decode(), "test_plain_like_seconds")
    expected = {key: value for key, value in expected.items() if not key[0].endswith("_created")}
    assert len(expected) == 2 * (4 + 2)
    assert said == pytest.approx(expected)


def test_the_row_of_a_histogram_may_be_kept() -> None:
    plain = PlainHistogram("test_plain_row_seconds", "Time", ("way",), BOUNDS)
    row = plain.series("short")
    assert plain.series("short") is row
    row.observe(0.5)
    plain.observe(0.5, "short")
    assert row.buckets() == [("0.01", 0.0), ("0.1", 0.0), ("1.0", 2.0), ("+Inf", 2.0)]
    assert row.total == 1.0


def test_observing_costs_a_fraction_of_what_the_library_takes() -> None:
    row = PlainHistogram("test_plain_cost_seconds", "Time", (), BOUNDS).series()
    library = Histogram("test_plain_cost_seconds", "Time", buckets=BOUNDS, registry=CollectorRegistry())

    def best(observe: object) -> float:
        return min(timeit.repeat("observe(0.5)", globals={"observe": observe}, number=20_000, repeat=7))

    assert best(row.observe) < 0.7 * best(library.observe)


def test_a_gauge_that_is_replaced_forgets_what_is_no_more() -> None:
    gauge = PlainGauge("test_plain_gauge", "Share", ("event",))
    gauge.replace({("a",): 0.5, ("b",): 1.0})
    gauge.replace({("b",): 0.25})
    found = samples(generate_latest(REGISTRY).decode(), "test_plain_gauge")
    assert found == {("test_plain_gauge", (("event", "b"),)): 0.25}


def test_a_counter_counts_by_its_labels() -> None:
    counter = PlainCounter("test_plain_counter", "Things", ("kind",))
    counter.add("a")
    counter.add("a", by=2)
    counter.add("b")
    found = samples(generate_latest(REGISTRY).decode(), "test_plain_counter")
    assert found == {
        ("test_plain_counter_total", (("kind", "a"),)): 3.0,
        ("test_plain_counter_total", (("kind", "b"),)): 1.0,
    }
