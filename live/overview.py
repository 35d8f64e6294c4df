"""Every panel of the Overview dashboard, asked of a real Prometheus after a run, against what was done in it.

Counters are exported at 0 before they first count, and a panel is asked at the very moment of a scrape: there
``increase()`` has nothing to extrapolate, so a panel's own expression over the whole run must be exact.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, Protocol

from dashboards.reading import Target, targets
from live.expected import EVERY, NOW, RUN, SHOWN, Expected, Facts
from live.prometheus import ENGINES, JOB
from turnscope.measures import reconcile

BOARD: Final = "overview.json"
_HERE: Final = {"$deployment": JOB}


class Asked(Protocol):
    """A Prometheus (``live.prometheus``)."""

    def moment(self, expression: str, at_s: float) -> list[dict[str, Any]]:
        """The series that an expression has at a time."""

    def counted(self, selector: str, at_s: float) -> float:
        """What counters have counted until then, by their raw samples."""

    def curve(self, expression: str, begin_s: float, end_s: float, step_s: float) -> list[dict[str, Any]]:
        """The series that it has in between."""


def judge(facts: Facts, prometheus: Asked) -> list[str]:
    """One sentence for each thing that a panel shows and that was not so."""
    panels = {target.panel["title"]: target for target in targets() if target.board == BOARD}
    out = [f"Overview, {title}: nobody says what it must show" for title in panels.keys() - RUN.keys() - NOW.keys()]
    for title, of_run in RUN.items():
        panel = panels[title]
        shown = partial(_over_the_run, panel, facts, prometheus)
        out += _differences(title, shown(EVERY), of_run(facts))
        if "$engine" in panel.raw["expr"]:
            for engine in facts.prefill_engines:
                out += _differences(f"{title}, {engine}", shown(engine), of_run(facts.of(engine)))
        out += _curve(panel, facts, prometheus)
    for title, at in NOW.items():
        for moment in facts.moments:
            # An engine is listed for a minute after it ended: the pair before this one may be.
            here = {**_HERE, "$engine": "|".join(engine.name for engine in moment.engines)}
            found = prometheus.moment(panels[title].filled(**here), moment.at_s)
            where = f"{title}, {moment.configuration}"
            out += _differences(where, _values(found, SHOWN.get(title)), at(moment, facts))
    return [*out, *_reconciliation(facts, prometheus)]


def _reconciliation(facts: Facts, prometheus: Asked) -> Iterator[str]:
    """Ours and the engines' own counters, both as they were scraped, against what engines said themselves."""
    for engine, values in sorted(facts.engines.items()):
        for quantity in reconcile.QUANTITIES:
            if quantity.name not in values:
                continue
            seen = values[quantity.name]
            done = seen + facts.unseen.get(engine, {}).get(quantity.name, 0)
            for job, samples, known in ((JOB, quantity.ours, seen), (ENGINES, quantity.theirs, done)):
                counted = prometheus.counted(samples.selector(job=job, engine=engine), facts.end_s)
                if counted != known:
                    yield f"{engine}, {quantity.name}: {samples.name} was scraped up to {counted:g}, and it is {known}"


def _over_the_run(panel: Target, facts: Facts, prometheus: Asked, engine: str) -> dict[str, float]:
    """What it shows of the whole run at its last scrape; of a rate, what that comes to."""
    span_s = math.ceil(facts.end_s - facts.begin_s) + 1
    span = f"{span_s}s"
    expression = panel.filled(**{**_HERE, "$__range": span, "$__rate_interval": span, "$engine": engine})
    found = _values(prometheus.moment(expression, facts.end_s))
    return {label: value * span_s for label, value in found.items()} if _is_rate(panel) else found


def _is_rate(panel: Target) -> bool:
    unit = panel.panel["fieldConfig"]["defaults"]["unit"]
    return bool(unit.endswith("/s"))


def _curve(panel: Target, facts: Facts, prometheus: Asked) -> Iterator[str]:
    """As Grafana draws it, step by step: finite, and nothing below 0 but a net gain."""
    if panel.instant:
        return
    begin, end = facts.begin_s, facts.end_s
    for series in prometheus.curve(panel.filled(**_HERE, **{"$__rate_interval": "1m"}), begin, end, step_s=15):
        if not all(math.isfinite(float(value)) and float(value) >= 0 for _, value in series["values"]):
            yield f"Overview, {panel.panel['title']}: its curve has values that cannot be"


def _values(found: Iterable[Mapping[str, Any]], labels: Collection[str] | None = None) -> dict[str, float]:
    out: dict[str, float] = {}
    for series in found:
        metric = series["metric"]
        name = ",".join(metric[label] for label in labels) if labels else ",".join(metric.values())
        out[name] = float(series["value"][1])
    return out


def _differences(title: str, shown: Mapping[str, float], expected: Expected) -> Iterator[str]:
    for label in sorted(shown.keys() | expected.keys()):
        name = f"Overview, {title}{f', {label}' if label else ''}"
        if label not in expected:
            yield f"{name}: shows {shown[label]:g}, and there is nothing of it"
        elif label not in shown:
            yield f"{name}: shows nothing, and it is {expected[label]}"
        elif not expected[label].has(shown[label]):
            yield f"{name}: shows {shown[label]:g}, and it is {expected[label]}"
