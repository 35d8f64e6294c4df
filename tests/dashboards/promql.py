"""What an expression asks for, and in which unit its answer is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import promql_parser

from turnscope.catalog import METRICS, Kind

TARGET_LABELS = {"job", "instance"}
"""Given by whoever scrapes."""
FOREIGN = {"up": ("Prometheus", Kind.GAUGE, "ratio")}
"""Metrics of others that a dashboard asks for: whose, of which kind and unit."""
RATES = {"rate", "increase", "irate"}
Unit = Counter[str]
"""Base unit to its power."""


class Asked(NamedTuple):
    """One selector in an expression."""

    name: str
    labels: frozenset[str]
    equal: tuple[tuple[str, str], ...]
    """Labels that have to have one value."""
    function: str | None
    """The function right around it, of a range."""


def parse(expression: str) -> Any:
    return promql_parser.parse(expression)


def asked(node: Any, function: str | None = None) -> Iterator[Asked]:
    """Every selector below."""
    match type(node).__name__:
        case "VectorSelector":
            matchers = node.matchers.matchers
            equal = tuple((m.name, m.value) for m in matchers if m.op == promql_parser.MatchOp.Equal)
            yield Asked(node.name, frozenset(m.name for m in matchers), equal, function)
        case "MatrixSelector":
            yield from asked(node.vector_selector, function)
        case "Call":
            for argument in node.args:
                yield from asked(argument, node.func.name)
        case "BinaryExpr":
            yield from asked(node.lhs)
            yield from asked(node.rhs)
        case "NumberLiteral" | "StringLiteral":
            return
        case _:
            yield from asked(node.expr)


def grouped(node: Any) -> Iterator[tuple[str, set[str]]]:
    """(metric, labels that its aggregation names) for every ``by`` and every ``on``."""
    kind = type(node).__name__
    if kind == "AggregateExpr":
        by = set(node.modifier.labels) if node.modifier is not None else set()
        for one in asked(node.expr):
            yield one.name, by
        yield from grouped(node.expr)
    elif kind == "BinaryExpr":
        yield from grouped(node.lhs)
        yield from grouped(node.rhs)
    elif kind == "Call":
        for argument in node.args:
            yield from grouped(argument)
    elif kind == "ParenExpr":
        yield from grouped(node.expr)


def family(name: str) -> tuple[str, str]:
    """The catalogue's name, and the histogram's suffix or nothing."""
    for suffix in ("_bucket", "_sum", "_count"):
        short = name.removesuffix(suffix)
        if short != name and short in METRICS and METRICS[short].kind is Kind.HISTOGRAM:
            return short, suffix
    return name, ""


def is_counter(name: str) -> bool:
    """Counters, and histograms, which are made of them."""
    short, _ = family(name)
    kind = METRICS[short].kind if short in METRICS else FOREIGN[name][1]
    return kind in (Kind.COUNTER, Kind.HISTOGRAM)


def labels_of(name: str) -> set[str]:
    """All that a series of it can have."""
    short, suffix = family(name)
    own = set(METRICS[short].label_names) if short in METRICS else set()
    return own | TARGET_LABELS | ({"le"} if suffix == "_bucket" else set())


def unit(node: Any) -> Unit:
    """The unit of the answer, from the catalogue's units. Raises ``AssertionError`` for a sum of different ones."""
    match type(node).__name__:
        case "NumberLiteral":
            return Counter()
        case "VectorSelector":
            return _of(node.name)
        case "MatrixSelector":
            return unit(node.vector_selector)
        case "Call":
            return _called(node)
        case "BinaryExpr":
            return _both(node)
        case _:
            return unit(node.expr)


def _of(name: str) -> Unit:
    short, suffix = family(name)
    if suffix in ("_bucket", "_count"):
        return Counter()
    told = METRICS[short].unit if short in METRICS else FOREIGN[name][2]
    return Counter(base if base.endswith("s") else f"{base}s" for base in told.split("-") if base not in ("", "ratio"))


def _called(node: Any) -> Unit:
    name = node.func.name
    if name == "histogram_quantile":
        (bucket,) = asked(node.args[1])
        return Counter({METRICS[family(bucket.name)[0]].unit: 1})
    inner = unit(node.args[0])
    if name == "rate":
        inner.subtract({"seconds": 1})
    return _reduced(inner)


def _both(node: Any) -> Unit:
    left, right = unit(node.lhs), unit(node.rhs)
    if str(node.op) == "/":
        left.subtract(right)
    elif str(node.op) == "*":
        left.update(right)
    elif str(node.op) in ("+", "-", "or"):
        assert left == right, node.prettify()
    return _reduced(left)


def _reduced(counted: Unit) -> Unit:
    return Counter({base: power for base, power in counted.items() if power})
