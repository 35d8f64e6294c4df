"""Every metric turnscope exports, declared once: documentation, scrape and tests are made from it."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Kind(StrEnum):
    """Prometheus metric types."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """One metric family."""

    name: str
    kind: Kind
    unit: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    owner: str = "exporter"
    """Who counts it: ``turn shard, hold shard, settler, leg, transfer`` or ``exporter``."""
    diagnostic: bool = False
    """Meant for the debugging of turnscope itself: no panel or alert needs it."""


METRICS: dict[str, Metric] = {}
