"""The rules and the dashboard that are shipped speak of figures that exist, and the guide of everything that is there."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml  # type: ignore[import-untyped]
from prometheus_client import REGISTRY

import holdfast.app
import holdfast.workers.audit_isolation
import holdfast.workers.measure_sales  # noqa: F401 - what is imported here has registered its figures
from holdfast.settings import Settings

OF_PROMETHEUS = {"instance", "job", "le", "process"}
"""Labels that are put on by whoever asks, by histograms, and by a node of several processes."""
SEVERITIES = {"critical", "warning", "info"}
DURATION = re.compile(r"\d+(s|m|h|d)")
UNITS = {"reqps", "percentunit", "short", "s", "bytes"}
_METRIC = re.compile(r"\b((?:holdfast|process)_[a-z0-9_]+)(?:\{([^}]*)\})?")
_GROUPING = re.compile(r"\b(?:by|without|on)\s*\(([^)]*)\)")
_MATCHER = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"')


def known() -> dict[str, set[str]]:
    """Every figure by the names of its samples, with its labels."""
    found: dict[str, set[str]] = {}
    for name, collector in REGISTRY._names_to_collectors.items():
        labels: Any = getattr(collector, "_labelnames", None) or getattr(collector, "_labels", ())
        found[name] = set(labels)
    return found


def sample_names() -> set[str]:
    """As they stand in the text: a counter's name without `_total` is none, nor is a histogram's own."""
    names: set[str] = set()
    for family in REGISTRY.collect():
        if family.type == "counter":
            names.add(f"{family.name}_total")
        elif family.type == "histogram":
            names |= {f"{family.name}_{part}" for part in ("bucket", "sum", "count")}
        else:
            names.add(family.name)
    return names


def faults_of(expression: str) -> list[str]:
    """What an expression of PromQL names and nobody tells."""
    faults: list[str] = []
    labels = set(OF_PROMETHEUS)
    figures, named = known(), sample_names()
    used = [(name, selector) for name, selector in _METRIC.findall(_GROUPING.sub("", expression)) if name != "process"]
    for name, selector in used:
        if name not in named:
            faults.append(f"{name} is no figure")
            continue
        base = name if name in figures else re.sub(r"_(bucket|sum|count|total)$", "", name)
        own = figures.get(base, set())
        labels |= own
        unknown = set(_MATCHER.findall(selector)) - own - OF_PROMETHEUS
        faults += [f"{name} has no label {label}" for label in sorted(unknown)]
    for group in _GROUPING.findall(expression):
        grouped = {label.strip() for label in group.split(",") if label.strip()}
        faults += [f"nothing here has the label {label}" for label in sorted(grouped - labels)]
    if not used and "up{" not in expression:
        faults.append("it names no figure")
    for opening, closing in ("()", "{}", "[]"):
        if expression.count(opening) != expression.count(closing):
            faults.append(f"{opening} and {closing} do not match")
    return faults


@pytest.mark.parametrize(
    "expression",
    [
        "holdfast_no_such_thing > 1",
        "rate(holdfast_holds[5m])",
        "rate(holdfast_duty_seconds[5m])",
        'holdfast_registry_drift{layer="hot"}',
        "sum by (tyre) (holdfast_registry_drift)",
        "max(holdfast_sweeper_lag_seconds > 1",
        "1 > 2",
    ],
)
def test_an_expression_that_speaks_of_nothing_is_found(expression: str) -> None:
    assert faults_of(expression) != []


def test_an_expression_that_speaks_of_what_there_is_is_let_through() -> None:
    assert faults_of('sum by (le, duty) (rate(holdfast_duty_seconds_bucket{duty="x",instance=~"a"}[5m]))') == []


# Rules ----------------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def alerts(repository: Path) -> list[dict[str, Any]]:
    document = yaml.safe_load((repository / "deploy/prometheus/holdfast.rules.yml").read_text())
    assert set(document) == {"groups"}
    return [rule for group in document["groups"] for rule in group["rules"]]


def test_every_alert_is_whole(alerts: list[dict[str, Any]]) -> None:
    assert len(alerts) >= 20
    names = [alert["alert"] for alert in alerts]
    assert len(set(names)) == len(names)
    for alert in alerts:
        assert set(alert) <= {"alert", "expr", "for", "labels", "annotations"}, alert["alert"]
        assert re.fullmatch(r"Holdfast[A-Z]\w+", alert["alert"])
        assert alert["labels"]["severity"] in SEVERITIES
        assert "for" not in alert or DURATION.fullmatch(alert["for"])
        for text in (alert["annotations"]["summary"], alert["annotations"]["what_to_do"]):
            assert text.endswith("."), alert["alert"]
        said = set(re.findall(r"\$labels\.(\w+)", json.dumps(alert["annotations"])))
        every = set().union(*known().values()) | OF_PROMETHEUS
        assert said <= every, alert["alert"]


def test_alerts_speak_of_figures_and_labels_that_exist(alerts: list[dict[str, Any]]) -> None:
    assert {alert["alert"]: found for alert in alerts if (found := faults_of(alert["expr"]))} == {}


def test_settings_that_alerts_tell_to_change_exist(alerts: list[dict[str, Any]]) -> None:
    fields = {f"HOLDFAST_{field.name.upper()}" for field in msgspec.structs.fields(Settings)}
    assert set(re.findall(r"HOLDFAST_[A-Z_]+", json.dumps(alerts))) <= fields


def test_the_example_for_prometheus_loads_the_rules(repository: Path) -> None:
    document = yaml.safe_load((repository / "deploy/prometheus/prometheus.yml").read_text())
    for name in document["rule_files"]:
        assert (repository / "deploy/prometheus" / name).is_file()
    (job,) = document["scrape_configs"]
    assert job["job_name"] == "holdfast"


# The dashboard --------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def dashboard(repository: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((repository / "deploy/grafana/holdfast.json").read_text())
    return found


def panels_of(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def test_every_panel_has_a_title_a_unit_and_queries_of_the_chosen_source(dashboard: dict[str, Any]) -> None:
    panels = panels_of(dashboard)
    assert len(panels) >= 25
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    assert [row["title"] for row in dashboard["panels"] if row["type"] == "row"] == [
        "Sales",
        "Latency",
        "Writer",
        "Tiers",
        "Feed and live",
        "Duties and sweeper",
        "Webhooks",
        "Processes",
        "Payments",
    ]
    for panel in panels:
        assert panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS, panel["title"]
        assert panel["targets"], panel["title"]
        for target in (panel, *panel["targets"]):
            assert target["datasource"]["uid"] == "${datasource}"
    assert {one["name"] for one in dashboard["templating"]["list"]} == {"datasource", "instance"}


def test_panels_speak_of_figures_and_labels_that_exist(dashboard: dict[str, Any]) -> None:
    said = [(panel["title"], target["expr"]) for panel in panels_of(dashboard) for target in panel["targets"]]
    assert {title: found for title, expression in said if (found := faults_of(expression))} == {}


def test_panels_do_not_lie_on_each_other(dashboard: dict[str, Any]) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells


def test_every_figure_of_the_engine_is_on_the_dashboard_or_in_an_alert(
    dashboard: dict[str, Any], alerts: list[dict[str, Any]]
) -> None:
    shown = json.dumps(panels_of(dashboard)) + json.dumps(alerts)
    families = {family.name for family in REGISTRY.collect() if family.name.startswith("holdfast_")}
    unseen = {name for name in families if name not in shown}
    assert unseen == {"holdfast_warm_writer"}, "which process writes the warm tier is of no interest to a reader"


# The guide ------------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def guide(repository: Path) -> str:
    return (repository / "docs/operating.md").read_text()


def test_the_guide_says_what_every_alert_means(guide: str, alerts: list[dict[str, Any]]) -> None:
    told = set(re.findall(r"^\| `(Holdfast\w+)` \|", guide, re.MULTILINE))
    assert told == {alert["alert"] for alert in alerts}


def test_the_guide_lists_every_setting_with_its_default(guide: str) -> None:
    told = dict(re.findall(r"^\| `(HOLDFAST_[A-Z_]+)` \| ([^|]*?) \|", guide, re.MULTILINE))
    for field in msgspec.structs.fields(Settings):
        variable = f"HOLDFAST_{field.name.upper()}"
        assert variable in told, variable
        default = told.pop(variable)
        if field.default is not None and field.default != "":
            assert default == f"`{spelled(field.default)}`", variable
        else:
            assert default == "none", variable
    assert told == {}


def spelled(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def test_the_guide_names_every_figure(guide: str) -> None:
    named = set(re.findall(r"`(holdfast_\w+)`", guide))
    told = {name for name in sample_names() if name.startswith("holdfast_")}
    bases = {re.sub(r"_(bucket|sum|count)$", "", name) for name in told}
    assert {name for name in bases if name not in named} == set()
    assert {name for name in named if name.startswith("holdfast_") and name not in bases} <= {
        "holdfast_app",
        "holdfast_engine",
        "holdfast_owner",
    }
