"""What rules and the queries in their texts may say: names that exist, counters inside rates, rates before sums."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import promql_parser as promql
import pytest

from alerts.build import alerts, recordings
from alerts.rule import Recording
from turnscope.catalog import METRICS, Kind, Metric

FOREIGN: Final = {"up": {"job", "instance"}}
"""Metrics that are not ours, with their labels: here only Prometheus' own, none of vLLM's."""
TARGET: Final = {"job", "instance"}
RATES: Final = {"rate", "increase"}
RECORDED: Final = {rule.record for rule in recordings()}
_PRINTED: Final = re.compile(r'printf "((?:[^"])*)"')

EXPRESSIONS: Final = {rule.record: rule.expr for rule in recordings()} | {
    "-".join([rule.name, *rule.labels.values()]): rule.expr for rule in alerts()
}
QUERIES: Final = {
    f"{rule.name}'s text": found.replace("%q", '"x"')
    for rule in alerts()
    for found in _PRINTED.findall(rule.description)
    if "{job" in found
}
ALL: Final = EXPRESSIONS | QUERIES


def family(name: str) -> Metric | None:
    """The catalogue's metric behind a series' name."""
    for suffix in ("", "_bucket", "_sum", "_count"):
        found = METRICS.get(name.removesuffix(suffix)) if name.endswith(suffix) else None
        if found is not None and (suffix == "" or found.kind is Kind.HISTOGRAM):
            return found
    return None


def nodes(expr: promql.Expr, inside: tuple[promql.Expr, ...] = ()) -> Iterator[tuple[promql.Expr, tuple[object, ...]]]:
    """Every node with those around it, the nearest last."""
    yield expr, inside
    around = (*inside, expr)
    children: list[promql.Expr] = []
    if isinstance(expr, promql.BinaryExpr):
        children = [expr.lhs, expr.rhs]
    elif isinstance(expr, promql.Call):
        children = list(expr.args)
    elif isinstance(expr, promql.MatrixSelector):
        children = [expr.vector_selector]
    elif hasattr(expr, "expr"):
        children = [expr.expr]
    for child in children:
        yield from nodes(child, around)


def selectors(text: str) -> Iterator[tuple[promql.VectorSelector, tuple[object, ...]]]:
    """Every selector with what is around it."""
    for node, inside in nodes(promql.parse(text)):
        if isinstance(node, promql.VectorSelector):
            yield node, inside


@pytest.mark.parametrize("text", ALL.values(), ids=ALL.keys())
def test_every_metric_and_value_of_a_label_exists(text: str) -> None:
    for selector, _ in selectors(text):
        name = selector.name
        if name in FOREIGN or name in RECORDED:
            continue
        metric = family(name)
        assert metric is not None, f"nobody exports {name}"
        labels = {label.name: label.values for label in metric.labels}
        for matcher in selector.matchers.matchers:
            assert matcher.name in labels.keys() | TARGET, f"{name} has no label {matcher.name}"
            values = labels.get(matcher.name)
            if values is not None:
                named = set(matcher.value.split("|")) if "Re" in str(matcher.op) else {matcher.value}
                assert named <= set(values), f"{name} has no {matcher.name}={matcher.value}"


def grouping(text: str) -> set[str]:
    """Labels that it sums over or joins by."""
    found: set[str] = set()
    for node, _ in nodes(promql.parse(text)):
        modifier = getattr(node, "modifier", None)
        if isinstance(modifier, promql.AggModifier):
            found |= set(modifier.labels)
        elif isinstance(modifier, promql.BinModifier) and modifier.matching is not None:
            found |= set(modifier.matching.labels)
    return found


@pytest.mark.parametrize("text", ALL.values(), ids=ALL.keys())
def test_every_label_that_is_grouped_or_joined_by_exists(text: str) -> None:
    known = set(TARGET)
    for selector, _ in selectors(text):
        metric = family(selector.name)
        known |= set(metric.label_names) if metric is not None else set()
        known |= FOREIGN.get(selector.name, set())
        if selector.name in RECORDED:
            known |= {"engine", "node", "context"}
    assert grouping(text) - known == set()


@pytest.mark.parametrize("text", ALL.values(), ids=ALL.keys())
def test_counters_stand_inside_rates_and_nothing_else_does(text: str) -> None:
    for selector, inside in selectors(text):
        metric = family(selector.name)
        if metric is None:
            continue
        call = next((node for node in reversed(inside) if isinstance(node, promql.Call)), None)
        ranged = bool(inside) and isinstance(inside[-1], promql.MatrixSelector)
        rated = ranged and call is not None and call.func.name in RATES
        assert rated == (metric.kind in (Kind.COUNTER, Kind.HISTOGRAM)), selector.name


@pytest.mark.parametrize("text", ALL.values(), ids=ALL.keys())
def test_rates_come_before_sums(text: str) -> None:
    for node, inside in nodes(promql.parse(text)):
        if isinstance(node, promql.AggregateExpr):
            assert not [n for n in inside if isinstance(n, promql.Call) and n.func.name in RATES]
        assert not isinstance(node, promql.SubqueryExpr)


@pytest.mark.parametrize("rule", list(recordings()), ids=lambda rule: rule.record)
def test_a_ratio_names_the_window_that_it_is_taken_over(rule: Recording) -> None:
    (window,) = set(re.findall(r"\[(\w+)\]", rule.expr))
    assert rule.record.endswith(f"_rate{window}")


def test_the_checks_see_what_is_wrong() -> None:
    with pytest.raises(AssertionError, match="nobody exports"):
        test_every_metric_and_value_of_a_label_exists("rate(turnscope_turn_total[5m])")
    with pytest.raises(AssertionError, match="no label engin"):
        test_every_metric_and_value_of_a_label_exists('turnscope_held_blocks{engin="x"}')
    with pytest.raises(AssertionError, match="kind=kv_mismatched"):
        test_every_metric_and_value_of_a_label_exists('rate(turnscope_suspicions_total{kind="kv_mismatched"}[5m])')
    with pytest.raises(AssertionError):
        test_every_label_that_is_grouped_or_joined_by_exists("sum without (cause) (rate(turnscope_turns_total[5m]))")
    with pytest.raises(AssertionError):
        test_counters_stand_inside_rates_and_nothing_else_does("turnscope_turns_total > 3")
    with pytest.raises(AssertionError):
        test_counters_stand_inside_rates_and_nothing_else_does("rate(turnscope_held_blocks[5m])")
    with pytest.raises(AssertionError):
        test_rates_come_before_sums("rate(sum(turnscope_turns_total)[5m:1m])")
