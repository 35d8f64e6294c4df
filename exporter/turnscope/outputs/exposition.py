"""The ``/metrics`` page: Prometheus text or OpenMetrics, as the scraper asks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar
from prometheus_client.utils import floatToGoString

from turnscope.catalog import Kind, Metric
from turnscope.outputs.metrics import Point


class _Page(Collector):
    def __init__(self, points: Iterable[tuple[Metric, list[Point]]]) -> None:
        self._points = points

    def collect(self) -> Iterator[Family]:
        for metric, points in self._points:
            yield _family(metric, points)


def _family(metric: Metric, points: list[Point]) -> Family:
    names = metric.label_names
    if metric.kind is Kind.COUNTER:
        counter = CounterMetricFamily(metric.name, metric.help, labels=names)
        for p in points:
            counter.add_metric(p.labels, p.value)
        return counter
    if metric.kind is Kind.HISTOGRAM:
        histogram = HistogramMetricFamily(metric.name, metric.help, labels=names)
        bounds = [*(floatToGoString(b) for b in metric.buckets), "+Inf"]  # type: ignore[no-untyped-call]
        for p in points:
            exemplars = {bucket: Exemplar({"trace_id": e.trace_id}, e.value) for bucket, e in p.exemplars}
            counts = zip(bounds, p.cumulative, strict=True)
            # Without a time of their own: Prometheus takes the scrape's, and those of one series in any order.
            buckets = [(bound, float(n), exemplars.get(i)) for i, (bound, n) in enumerate(counts)]
            histogram.add_metric(p.labels, buckets, p.value)  # type: ignore[arg-type]
        return histogram
    if metric.kind is Kind.INFO:
        info = InfoMetricFamily(metric.name.removesuffix("_info"), metric.help)
        for p in points:
            info.add_metric([], dict(zip(names, p.labels, strict=True)))
        return info
    gauge = GaugeMetricFamily(metric.name, metric.help, labels=names)
    for p in points:
        gauge.add_metric(p.labels, p.value)
    return gauge


def render(points: Iterable[tuple[Metric, list[Point]]], accept: str) -> tuple[bytes, str]:
    """The page and its content type for an ``Accept`` header."""
    encode, content_type = choose_encoder(accept)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Page(points))
    return encode(registry), content_type
