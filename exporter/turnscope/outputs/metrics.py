"""Counters, histograms and gauges of the catalogue, and what a scraper is shown of them.

A series that a scraper sees for the first time with a value other than 0 adds nothing to its ``increase()``.
So every series is shown at 0 until each regular scraper has seen it there, for at most ``HELD_S`` after its
first increment. Only scrapers are shown this (``scraper`` names them): everyone else sees the true value.
"""

from __future__ import annotations

import bisect
import itertools
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from turnscope.catalog import ADDED, Kind, Metric
from turnscope.model import Contribution, Sample

HELD_S: Final = 60.0


class Exemplar(NamedTuple):
    """One observation and the trace of the turn that it is of."""

    trace_id: str
    value: float


class _Series:
    """One label set. ``counts`` has one entry per bucket and one for +Inf; a counter has none."""

    __slots__ = ("counts", "exemplars", "first_s", "seen_by", "total")

    def __init__(self, buckets: int | None) -> None:
        self.total = 0.0
        self.counts = None if buckets is None else [0] * (buckets + 1)
        self.exemplars: dict[int, Exemplar] = {}
        """By bucket."""
        self.first_s: float | None = None
        self.seen_by: set[str] | None = set()
        """Scrapers that saw it at 0; None once it is no longer held back."""


class Point(msgspec.Struct, frozen=True):
    """One series as shown."""

    labels: tuple[str, ...]
    value: float
    """A histogram's sum."""
    cumulative: tuple[int, ...] = ()
    """A histogram's observations up to each bucket's bound, the last one up to +Inf."""
    exemplars: tuple[tuple[int, Exemplar], ...] = ()
    """A histogram's, by bucket: the last observation whose trace is kept."""


class MetricState:
    """All series of ``metrics``. Thread-safe. ``now_s`` is any monotonic clock in seconds."""

    def __init__(self, metrics: Mapping[str, Metric], *, now_s: Callable[[], float]) -> None:
        self._metrics = metrics
        self._now_s = now_s
        self._lock = threading.Lock()
        self._series: dict[str, dict[tuple[str, ...], _Series]] = {n: {} for n, m in metrics.items() if m.kind in ADDED}
        self._gauges: dict[str, dict[tuple[str, ...], float]] = {
            n: {} for n, m in metrics.items() if m.kind not in ADDED
        }
        self._sampled: dict[str, list[Sample]] = {}
        self._scrapers: dict[str, tuple[float, int]] = {}

    # --- writing ---------------------------------------------------------------------------------------
    def declare(self, metric: str, label_sets: Iterable[tuple[str, ...]]) -> None:
        """Export these label sets of a counter or histogram at 0 from now on."""
        with self._lock:
            for labels in label_sets:
                self._get(metric, self._checked(metric, labels))

    def add(self, metric: str, labels: tuple[str, ...], value: float) -> None:
        """Add ``value`` to a counter, or observe it in a histogram.

        Raises ``ValueError`` for what the catalogue does not know and for a counter that would go back.
        """
        with self._lock:
            refusal = self._add(metric, labels, value)
        if refusal is not None:
            raise ValueError(refusal)

    def add_all(self, contributions: Iterable[Contribution]) -> list[str]:
        """``add`` each, all at once for whoever reads; why those that are passed over could not be added."""
        with self._lock:
            refusals = [self._add(c.metric, c.labels, c.value) for c in contributions]
        return [refusal for refusal in refusals if refusal is not None]

    def exemplify(self, contributions: Iterable[Contribution], trace_id: str) -> None:
        """Name the trace of observations that were added before."""
        with self._lock:
            for c in contributions:
                series = self._series[c.metric].get(c.labels)
                if series is not None and series.counts is not None:
                    bucket = bisect.bisect_left(self._metrics[c.metric].buckets, c.value)
                    series.exemplars[bucket] = Exemplar(trace_id, c.value)

    def gauge(self, metric: str, labels: tuple[str, ...], value: float) -> None:
        """Give a gauge of the exporter's own its present value."""
        with self._lock:
            self._gauges[metric][self._checked(metric, labels)] = value

    def sample(self, samples: list[Sample], source: str = "assembly") -> None:
        """Replace all gauges that ``source`` computes: what it no longer tells is no longer shown."""
        for s in samples:
            self._checked(s.metric, s.labels)
        with self._lock:
            self._sampled[source] = samples

    def _checked(self, metric: str, labels: tuple[str, ...]) -> tuple[str, ...]:
        known = self._metrics.get(metric)
        if known is None or len(labels) != len(known.labels):
            raise ValueError(f"{metric}{labels} is not in the catalogue")
        return labels

    def _get(self, metric: str, labels: tuple[str, ...]) -> _Series:
        by_labels = self._series[metric]
        series = by_labels.get(labels)
        if series is None:
            known = self._metrics[metric]
            series = by_labels[labels] = _Series(len(known.buckets) if known.kind is Kind.HISTOGRAM else None)
        return series

    def _add(self, metric: str, labels: tuple[str, ...], value: float) -> str | None:
        """Why not, or None when it was added."""
        known = self._metrics.get(metric)
        if known is None:
            return f"{metric} is not in the catalogue"
        refusal = known.refusal(labels, value)
        if refusal is not None:
            return refusal
        series = self._get(metric, labels)
        if series.first_s is None:
            series.first_s = self._now_s()
        if series.counts is not None:
            series.counts[bisect.bisect_left(known.buckets, value)] += 1
        series.total += value
        return None

    # --- reading ---------------------------------------------------------------------------------------
    def total(self, metric: str, label: str | None = None) -> float:
        """The true sum of a counter over its label sets, or over those with this value of a label."""
        with self._lock:
            known = self._series[metric].items()
            return sum(series.total for labels, series in known if label is None or label in labels)

    def points(self, scraper: str | None = None) -> list[tuple[Metric, list[Point]]]:
        """Every family in catalogue order. With ``scraper`` this counts as one scrape by it."""
        with self._lock:
            now = self._now_s()
            regulars = self._regulars(scraper, now)
            sampled: dict[str, list[Point]] = {}
            for s in itertools.chain.from_iterable(self._sampled.values()):
                sampled.setdefault(s.metric, []).append(Point(s.labels, s.value))
            found = []
            for name, metric in self._metrics.items():
                if metric.kind in ADDED:
                    points = [self._show(k, s, scraper, regulars, now) for k, s in self._series[name].items()]
                else:
                    points = [Point(k, v) for k, v in self._gauges[name].items()] + sampled.get(name, [])
                found.append((metric, points))
            return found

    def _regulars(self, scraper: str | None, now: float) -> set[str]:
        """Who scrapes again and again: whoever asked once is not waited for."""
        self._scrapers = {k: v for k, v in self._scrapers.items() if now - v[0] <= HELD_S}
        if scraper is not None:
            self._scrapers[scraper] = (now, self._scrapers.get(scraper, (now, 0))[1] + 1)
        return {k for k, (_, times) in self._scrapers.items() if times > 1}

    def _show(
        self, labels: tuple[str, ...], series: _Series, scraper: str | None, regulars: set[str], now: float
    ) -> Point:
        if scraper is not None and series.seen_by is not None:
            over = series.first_s is not None and now - series.first_s >= HELD_S
            if over or (scraper in series.seen_by and regulars <= series.seen_by):
                series.seen_by = None
            else:
                series.seen_by.add(scraper)
                return Point(labels, 0.0, (0,) * len(series.counts or ()))
        exemplars = tuple(series.exemplars.items())
        return Point(labels, series.total, tuple(itertools.accumulate(series.counts or ())), exemplars)
