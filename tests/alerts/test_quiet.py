"""What must fire nothing at all: a system in which nothing happens yet, and a sidecar that is restarted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from alerts.build import alerts
from tests.alerts.cases import promtool
from turnscope.catalog import METRICS, Kind, Metric, label_sets
from turnscope.semconv import Role

ENGINES: Final = {"prefill-0": Role.PREFILL, "decode-0": Role.DECODE}
RUNNING: Final = {"turnscope_engine_blocks": 1000, "turnscope_emitters_alive": 2, "turnscope_fabric_devices": 4}
"""Gauges that are not 0 where all is well."""
FREE: Final = {"engine": "prefill-0", "node": "a", "counter": "rdma_read_bytes", "holder": "decode-0"}
NAMES: Final = sorted({alert.name for alert in alerts()})


def sets(metric: Metric) -> Iterator[tuple[str, ...]]:
    """Its label sets that are known in advance, or one that may occur."""
    known = list(label_sets(metric, ENGINES))
    yield from known or [tuple(FREE.get(label.name) or (label.values or ("yes",))[0] for label in metric.labels)]


def series(counters: str, gauges: str, up: str) -> list[dict[str, str]]:
    """Every series of the catalogue, counters with these values and gauges that are 0 with those."""
    out = [{"series": 'up{job="turnscope",instance="n1"}', "values": up}]
    for name, metric in METRICS.items():
        for values in sets(metric):
            labels = dict(zip(metric.label_names, values, strict=True))
            if name == "turnscope_engine_info":
                labels["bidirectional"] = "yes"
            text = ",".join(
                f'{key}="{value}"' for key, value in {"job": "turnscope", "instance": "n1", **labels}.items()
            )
            if metric.kind is Kind.HISTOGRAM:
                bounds = [*map(str, metric.buckets), "+Inf"]
                out += [{"series": f'{name}_bucket{{{text},le="{le}"}}', "values": counters} for le in bounds]
                out += [{"series": f"{name}_{part}{{{text}}}", "values": counters} for part in ("sum", "count")]
            elif metric.kind is Kind.COUNTER:
                out.append({"series": f"{name}{{{text}}}", "values": counters})
            else:
                well = 1 if metric.kind is Kind.INFO else RUNNING.get(name, 0)
                out.append({"series": f"{name}{{{text}}}", "values": gauges.replace("G", str(well))})
    return out


def quiet(tests: list[dict[str, str]], times: tuple[str, ...]) -> dict[str, Any]:
    """A test by which no alert fires at these times."""
    checks = [{"eval_time": time, "alertname": name, "exp_alerts": []} for time in times for name in NAMES]
    return {
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": tests, "alert_rule_test": checks}],
    }


@pytest.mark.parametrize(
    ("counters", "gauges", "up"),
    [
        ("0+0x120", "G+0x120", "1+0x120"),
        ("1000+0x60 _ 0+0x58", "G+0x60 _ G+0x58", "1+0x60 0 1+0x58"),
    ],
    ids=["every denominator is 0", "the sidecar is restarted"],
)
def test_nothing_fires(counters: str, gauges: str, up: str, tmp_path: Path) -> None:
    done = promtool(quiet(series(counters, gauges, up), ("30m", "61m", "62m", "119m")), tmp_path)
    assert done.returncode == 0, (done.stdout + done.stderr)[:3000]


def test_the_same_test_sees_one_suspicion(tmp_path: Path) -> None:
    tests = series("0+0x30", "G+0x30", "1+0x30")
    labels = 'job="turnscope",instance="n1",engine="prefill-0",kind="kv_mismatch"'
    (one,) = [s for s in tests if s["series"] == f"turnscope_suspicions_total{{{labels}}}"]
    one["values"] = "0 1+0x29"
    done = promtool(quiet(tests, ("20m",)), tmp_path)
    assert done.returncode != 0
    assert "TurnscopeKvMismatch" in done.stdout + done.stderr
