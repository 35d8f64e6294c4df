"""Metrics that engines count themselves: read from their own ``/metrics`` by the sidecar, beside what hooks tell.

Of several data-parallel engines behind one address each has a name of its own, ``<name>-dp<rank>``, as hooks name them.
"""

from __future__ import annotations

from turnscope.catalog.labels import ENGINE
from turnscope.catalog.metric import Kind, Metric

ENGINES = (
    Metric(
        name="turnscope_engine_metrics_up",
        kind=Kind.GAUGE,
        unit="",
        help="1 when the engine's own /metrics could be read at the last look, else 0; then what is read there is "
        "absent, never 0. Only of engines that --engine-metrics names.",
        labels=(ENGINE,),
        owner="engine metrics",
    ),
    Metric(
        name="turnscope_engine_requests_running",
        kind=Kind.GAUGE,
        unit="requests",
        help="Requests that the engine runs, by its own count (vllm:num_requests_running).",
        labels=(ENGINE,),
        owner="engine metrics",
    ),
    Metric(
        name="turnscope_engine_requests_waiting",
        kind=Kind.GAUGE,
        unit="requests",
        help="Requests that wait to be run, by its own count (vllm:num_requests_waiting).",
        labels=(ENGINE,),
        owner="engine metrics",
    ),
    Metric(
        name="turnscope_engine_preemptions_total",
        kind=Kind.COUNTER,
        unit="requests",
        help="Requests that the engine put back for want of memory since the sidecar first looked "
        "(vllm:num_preemptions_total).",
        labels=(ENGINE,),
        owner="engine metrics",
        sparse=True,
    ),
    Metric(
        name="turnscope_engine_kv_usage_ratio",
        kind=Kind.GAUGE,
        unit="ratio",
        help="Share of the engine's KV blocks in use, by its own count (vllm:kv_cache_usage_perc): what is held for "
        "next turns is part of it.",
        labels=(ENGINE,),
        owner="engine metrics",
    ),
)
