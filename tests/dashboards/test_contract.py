"""Dashboards ask for what is exported, by its names, labels and units, and every metric is asked for by somebody."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from dashboards.panels import grafana_unit
from dashboards.queries import series
from dashboards.reading import Target, boards, panels, targets, variables
from tests.dashboards.promql import FOREIGN, RATES, asked, family, grouped, is_counter, labels_of, parse, unit
from turnscope.catalog import METRICS, Kind
from turnscope_app import filters, words

ROOT = Path(__file__).parents[2]
TARGETS = targets()


def test_all_that_the_issue_names_is_there() -> None:
    assert set(boards()) == {
        "overview.json",
        "reuse.json",
        "transfer.json",
        "retention.json",
        "latency.json",
        "sessions.json",
        "health.json",
    }


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_every_name_and_label_of_a_query_is_exported(target: Target) -> None:
    for one in asked(parse(target.expr)):
        assert family(one.name)[0] in METRICS or one.name in FOREIGN, one.name
        assert one.labels <= labels_of(one.name), one
        short = METRICS.get(family(one.name)[0])
        values = {label.name: label.values for label in short.labels} if short is not None else {}
        assert [pair for pair in one.equal if values.get(pair[0]) is not None and pair[1] not in values[pair[0]]] == []
    for name, by in grouped(parse(target.expr)):
        assert by <= labels_of(name), (name, by)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_the_labels_of_a_legend_are_left_in_the_answer(target: Target) -> None:
    wanted = set(re.findall(r"{{(\w+)}}", target.raw["legendFormat"]))
    by = [labels for _, labels in grouped(parse(target.expr))]
    plain = [labels_of(one.name) for one in asked(parse(target.expr))] if not by else []
    assert wanted <= set.union(*by, *plain), target.expr


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_counters_stand_inside_rates_only_and_only_they_do(target: Target) -> None:
    for one in asked(parse(target.expr)):
        assert is_counter(one.name) == (one.function in RATES), one


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_the_unit_of_a_panel_is_that_of_what_it_asks_for(target: Target) -> None:
    shown = target.panel["fieldConfig"]["defaults"].get("unit") if target.panel["type"] != "table" else "none"
    found = unit(parse(target.expr))
    over = {base for base, power in found.items() if power == 1}
    under = {base for base, power in found.items() if power == -1}
    assert set(found) == over | under, found
    assert under <= {"seconds"}, found
    name = "-".join(sorted(over)) + ("/s" if under else "")
    metrics = {METRICS[family(one.name)[0]] for one in asked(parse(target.expr)) if family(one.name)[0] in METRICS}
    allowed = {grafana_unit(name)}
    if not name:
        states = {m for m in metrics if m.unit == "" and m.kind in (Kind.INFO, Kind.GAUGE)}
        allowed = {"none"} if states or target.expr.startswith("up{") else {"percentunit"}
    assert shown in allowed, (shown, allowed)


def test_a_unit_that_does_not_fit_is_noticed() -> None:
    assert unit(parse("rate(turnscope_transfer_bytes_total[5m])")) == Counter({"bytes": 1, "seconds": -1})
    assert unit(parse("rate(turnscope_hold_token_seconds_total[5m])")) == Counter({"tokens": 1})
    assert unit(parse("turnscope_held_blocks / (turnscope_engine_blocks > 0)")) == Counter()
    with pytest.raises(AssertionError):
        unit(parse("turnscope_held_tokens + turnscope_held_bytes"))


def test_every_variable_asks_for_a_label_that_is_exported() -> None:
    assert len(variables()) == 2 * len(boards())
    for each in variables():
        (one,) = asked(parse(each.selector))
        assert one.name in METRICS
        assert {each.label, *one.labels} <= labels_of(one.name)


def test_every_dashboard_can_be_narrowed_to_a_data_source_a_deployment_and_an_engine() -> None:
    for board in boards().values():
        names = [variable["name"] for variable in board["templating"]["list"]]
        assert names == ["datasource", "deployment", "engine", "explorer", "runbooks"]
    for target in TARGETS:
        assert target.raw["datasource"]["uid"] == "${datasource}"
        for one in asked(parse(target.expr)):
            assert "job" in one.labels
            assert ("engine" in one.labels) == ("engine" in labels_of(one.name)), one


def test_every_panel_says_what_it_is_and_none_is_twice_on_a_dashboard() -> None:
    titles = [(board, panel["title"]) for board, panel in panels()]
    assert [title for title, times in Counter(titles).items() if times > 1] == []
    for board, panel in panels():
        assert panel["title"], board
        assert len(panel["description"]) > 30, (board, panel["title"])
    for board in boards().values():
        ids = [panel["id"] for panel in board["panels"]]
        assert len(set(ids)) == len(ids)


def test_every_metric_is_on_a_dashboard_or_in_an_alert_or_marked_as_diagnostic() -> None:
    used = {family(one.name)[0] for target in TARGETS for one in asked(parse(target.expr))}
    rules = "".join(path.read_text() for path in (ROOT / "alerts").glob("*.yml"))
    used |= {family(name)[0] for name in re.findall(r"\bturnscope_\w+", rules)}
    assert [name for name, metric in METRICS.items() if name not in used and not metric.diagnostic] == []


def test_runbooks_that_panels_lead_to_are_there() -> None:
    for board, panel in panels():
        for link in panel.get("links", []):
            name = re.fullmatch(r"\$\{runbooks\}(\w+)\.md", link["url"])
            if name:
                assert (ROOT / "alerts" / "runbooks" / f"{name[1]}.md").exists(), (board, link)


EXPLORERS = {
    "sessions_path": {word.shown for word in words.PATHS.values()},
    "sessions_reason": {word.shown for word in words.REASONS.values()},
    "sessions_sort": filters.SORTS,
    "sessions_check": filters.CHECKS,
}
"""Filters of the explorer's first page, and what each can be set to."""


def test_links_into_the_explorer_set_filters_that_it_has() -> None:
    found = [
        parse_qs(link["url"].removeprefix("${explorer}/sessions?"), strict_parsing=True)
        for _, panel in panels()
        for link in panel.get("links", [])
        if link["url"].startswith("${explorer}/")
    ]
    assert len(found) >= 5
    page = (ROOT / "app" / "turnscope_app" / "views" / "sessions.py").read_text()
    for query in found:
        for name, (value,) in query.items():
            field = name.removeprefix("sessions_")
            assert f'key="{name}"' in page or f'"{field}"' in page
            assert value in EXPLORERS[name], (name, value)


def test_a_metric_or_label_that_nobody_exports_cannot_be_drawn() -> None:
    with pytest.raises(KeyError):
        series("turnscope_turn_total")
    with pytest.raises(ValueError, match="has no label session"):
        series("turnscope_turns_total", session="x")
