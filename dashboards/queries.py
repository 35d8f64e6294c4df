"""PromQL of the panels: what selects a deployment and its engines, and how counters become figures, stands here once.

Metrics are looked up in the catalogue, so a name or label that nobody exports fails when the dashboards are made.
"""

from __future__ import annotations

from typing import Final

from turnscope.catalog import METRICS, Kind

DEPLOYMENT: Final = 'job=~"$deployment"'
ENGINE: Final = 'engine=~"$engine"'
RECENT: Final = "$__rate_interval"
"""Of curves: as long as four scrapes, and as a step of the drawing."""
SHOWN: Final = "$__range"
"""Of single figures: all of the time that the dashboard shows."""
UP: Final = f"up{{{DEPLOYMENT}}}"
"""Prometheus' own: whether it could scrape a sidecar."""


def series(name: str, **where: str) -> str:
    """A selector. ``where``: label to value, or to an operator and a quoted value (``!="none"``).

    Raises ``KeyError`` for a metric, ``ValueError`` for a label that the catalogue does not have.
    """
    metric = METRICS[_family(name)]
    unknown = where.keys() - set(metric.label_names)
    if unknown:
        raise ValueError(f"{name} has no label {', '.join(sorted(unknown))}")
    chosen = [DEPLOYMENT, *([ENGINE] if "engine" in metric.label_names and "engine" not in where else [])]
    chosen += [label + (value if value[0] in "!=" else f'="{value}"') for label, value in where.items()]
    return f"{name}{{{', '.join(chosen)}}}"


def _family(name: str) -> str:
    for suffix in ("_bucket", "_sum", "_count"):
        short = name.removesuffix(suffix)
        if short != name and short in METRICS and METRICS[short].kind is Kind.HISTOGRAM:
            return short
    return name


def _sum(by: tuple[str, ...], inner: str) -> str:
    return f"sum by ({', '.join(by)}) ({inner})" if by else f"sum({inner})"


def rate(name: str, *by: str, **where: str) -> str:
    """Of a counter, a second."""
    return _sum(by, f"rate({series(name, **where)}[{RECENT}])")


def increase(name: str, *by: str, **where: str) -> str:
    """Of a counter, over the time shown."""
    return _sum(by, f"increase({series(name, **where)}[{SHOWN}])")


def now(name: str, *by: str, **where: str) -> str:
    """Of a gauge, its present value, summed."""
    return _sum(by, series(name, **where))


def most(name: str, *by: str, **where: str) -> str:
    """Of a gauge, its present value, the greatest."""
    return f"max by ({', '.join(by)}) ({series(name, **where)})"


def positive(expression: str) -> str:
    """Only the series that are above 0."""
    return f"{expression} > 0"


def share(part: str, whole: str) -> str:
    """A ratio; nothing, rather than NaN, where the whole is 0."""
    return f"{part} / ({whole} > 0)"


def mean(name: str, *by: str, **where: str) -> str:
    """Of a histogram, lately; nothing where nothing was observed."""
    return share(rate(f"{name}_sum", *by, **where), rate(f"{name}_count", *by, **where))


def quantile(q: float, name: str, *by: str, **where: str) -> str:
    """Of a histogram, lately; nothing where nothing was observed."""
    observed = rate(f"{name}_count", *by, **where)
    return (
        f"histogram_quantile({q:g}, {rate(f'{name}_bucket', 'le', *by, **where)}) "
        f"and on ({', '.join(by)}) ({observed} > 0)"
    )
