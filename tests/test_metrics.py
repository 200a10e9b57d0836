"""The figures of several server processes on one port are told whole, whichever of them is asked."""

import os
import signal
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prometheus_client import Gauge
from prometheus_client.parser import text_string_to_metric_families

from holdfast.metrics import OLD_AFTER_S, SharedFigures, merged
from holdfast.server import bind, url_of
from holdfast.server_processes import ServerProcesses
from tests.conftest import TestDatabase
from tests.stage import stage_settings

PATIENCE_S = 30.0
ASKED = Gauge("test_shared_figure", "A figure of this process")


# Merging --------------------------------------------------------------------------------------------------------------
def test_families_are_told_once_with_the_samples_of_every_process() -> None:
    first = '# HELP a A thing\n# TYPE a counter\na{x="1"} 1.0\na{x="2"} 2.0\n# HELP b B\n# TYPE b gauge\nb 5.0\n'
    second = "# HELP b B\n# TYPE b gauge\nb 6.0\n# HELP c C\n# TYPE c gauge\nc{} 7.0\n"
    second += '# HELP a A thing\n# TYPE a counter\na{x="1"} 3.0\n'
    assert merged({"0": first, "1": second}).splitlines() == [
        "# HELP a A thing",
        "# TYPE a counter",
        'a{process="0",x="1"} 1.0',
        'a{process="0",x="2"} 2.0',
        'a{process="1",x="1"} 3.0',
        "# HELP b B",
        "# TYPE b gauge",
        'b{process="0"} 5.0',
        'b{process="1"} 6.0',
        "# HELP c C",
        "# TYPE c gauge",
        'c{process="1"} 7.0',
    ]


def test_braces_and_spaces_in_a_label_do_not_confuse_it() -> None:
    text = '# HELP a A\n# TYPE a gauge\na{route="/x/{id}",said="a } b \\" c"} 1.0\n'
    (family,) = text_string_to_metric_families(merged({"3": text}))
    (sample,) = family.samples
    assert sample.labels == {"process": "3", "route": "/x/{id}", "said": 'a } b " c'}


def test_a_file_that_has_grown_old_is_left_out(tmp_path: Path) -> None:
    ASKED.set(1)
    mine, other, dead = (SharedFigures(tmp_path, number) for number in range(3))
    for figures in (mine, other, dead):
        figures.write()
    long_ago = time.time() - OLD_AFTER_S - 1
    os.utime(tmp_path / "2.prom", (long_ago, long_ago))
    ASKED.set(2)
    told = [line for line in mine.exposition().decode().splitlines() if line.startswith("test_shared_figure")]
    assert told == ['test_shared_figure{process="0"} 2.0', 'test_shared_figure{process="1"} 1.0']
    other.withdraw()
    assert b'process="1"' not in mine.exposition()


def test_a_half_written_file_is_never_read(tmp_path: Path) -> None:
    figures = SharedFigures(tmp_path, 0)
    figures.write()
    figures.write()
    assert [path.name for path in tmp_path.iterdir()] == ["0.prom"]


# Real processes -------------------------------------------------------------------------------------------------------
def ask(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


def answered(text: str, route: str) -> dict[str, int]:
    """Requests of a route, by process."""
    found: Counter[str] = Counter()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == "holdfast_http_request_seconds_count" and sample.labels["route"] == route:
                found[sample.labels["process"]] += int(sample.value)
    return dict(found)


@contextmanager
def two_processes(database: TestDatabase) -> Iterator[tuple[str, ServerProcesses]]:
    bound = bind("127.0.0.1", 0)
    processes = ServerProcesses(stage_settings(database, redis_url="none", database_pool=2), bound, 2)
    processes.start()
    try:
        yield url_of(bound), processes
    finally:
        processes.stop()
        bound.close()


def test_whichever_process_is_asked_tells_of_all_that_both_have_done(database: TestDatabase) -> None:
    with two_processes(database) as (url, processes):
        deadline = time.monotonic() + PATIENCE_S
        sent = 0
        while True:  # until each of the two has answered some, and the other knows of it
            for _ in range(10):
                ask(f"{url}/healthz")
            sent += 10
            time.sleep(2.5)
            told = [answered(ask(f"{url}/metrics"), "/healthz") for _ in range(6)]
            if len(told[0]) == 2 or time.monotonic() > deadline:
                break
        assert [sum(one.values()) for one in told] == [sent] * 6
        assert set(told[0]) == {"0", "1"}
        text = ask(f"{url}/metrics")
        heads = [line for line in text.splitlines() if line.startswith("# TYPE ")]
        assert len(heads) == len(set(heads)) > 20
        started = {
            sample.labels["process"]
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == "process_start_time_seconds"
        }
        assert started == {"0", "1"}
        folder = Path(processes._figures.name)
        assert folder.exists()
    assert not folder.exists()


def starts(url: str, process: str) -> list[float]:
    return [
        sample.value
        for family in text_string_to_metric_families(ask(f"{url}/metrics"))
        for sample in family.samples
        if sample.name == "process_start_time_seconds" and sample.labels["process"] == process
    ]


def test_the_figures_of_a_replaced_process_go_on_under_its_number(database: TestDatabase) -> None:
    with two_processes(database) as (url, processes):
        deadline = time.monotonic() + PATIENCE_S
        while not (before := starts(url, "1")):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        killed = processes.pids[1]
        os.kill(killed, signal.SIGKILL)
        while killed in processes.pids or len(processes.pids) < 2:
            assert time.monotonic() < deadline
            processes.tend()
            time.sleep(0.05)
        while (now := starts(url, "1")) == before:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        assert len(now) == 1
        assert now[0] > before[0]
