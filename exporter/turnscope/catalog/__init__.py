"""Every metric turnscope exports, declared once: documentation, scrape and tests are made from it."""

from __future__ import annotations

from turnscope.catalog.continuity import CONTINUITY
from turnscope.catalog.engines import ENGINES
from turnscope.catalog.evidence import EVIDENCE
from turnscope.catalog.exporter import EXPORTER
from turnscope.catalog.fabric import FABRIC
from turnscope.catalog.holds import HOLDS
from turnscope.catalog.labels import NO_ENGINE, SHARED_NAMES, label_sets, label_text, legal
from turnscope.catalog.metric import ADDED, Kind, Label, Metric
from turnscope.catalog.sessions import SESSIONS
from turnscope.catalog.turns import TURNS

METRICS: dict[str, Metric] = {
    metric.name: metric for metric in (*TURNS, *SESSIONS, *CONTINUITY, *HOLDS, *EVIDENCE, *FABRIC, *ENGINES, *EXPORTER)
}

__all__ = [
    "ADDED",
    "METRICS",
    "NO_ENGINE",
    "SHARED_NAMES",
    "Kind",
    "Label",
    "Metric",
    "label_sets",
    "label_text",
    "legal",
]
