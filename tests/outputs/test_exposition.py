"""The page that Prometheus reads, judged by Prometheus' own tools."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from turnscope.catalog import METRICS, Kind, label_sets
from turnscope.model import Contribution, Sample
from turnscope.outputs.exposition import render
from turnscope.outputs.metrics import MetricState
from turnscope.semconv import Role

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
ENGINES = {"prefill-0": Role.PREFILL, "decode-0": Role.DECODE}


@pytest.fixture
def state() -> MetricState:
    """Every metric of the catalogue with at least one series that is not 0."""
    state = MetricState(METRICS, now_s=lambda: 0.0)
    samples = []
    for name, metric in METRICS.items():
        if metric.kind in (Kind.COUNTER, Kind.HISTOGRAM):
            met = tuple(label.values[0] if label.values else label.name for label in metric.labels)
            sets = list(label_sets(metric, ENGINES)) or [met]
            state.declare(name, sets)
            state.add(name, sets[0], 0.25)
        else:
            values = tuple(label.values[0] if label.values else 'odd "name"\n' for label in metric.labels)
            samples.append(Sample(name, values, 1.0))
    state.sample(samples)
    return state


def page(state: MetricState, accept: str = "") -> str:
    return render(state.points(), accept)[0].decode()


def test_promtool_finds_nothing_wrong(state: MetricState) -> None:
    promtool = shutil.which("promtool")
    assert promtool, "promtool is missing: apt-get install --no-install-recommends prometheus"
    done = subprocess.run([promtool, "check", "metrics"], input=page(state), capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_families_types_and_help_are_the_catalogues() -> None:
    # Even before anything happened: a dashboard finds every name.
    empty = MetricState(METRICS, now_s=lambda: 0.0)
    for accept, parse in (("", parse_text), (OPENMETRICS, parse_openmetrics)):
        suffix = {Kind.COUNTER: "_total", Kind.INFO: "_info"}
        families = {f.name: f for f in parse(page(empty, accept))}
        assert len(families) == len(METRICS)
        for name, metric in METRICS.items():
            short = name.removesuffix(suffix.get(metric.kind, "")) if name not in families else name
            assert families[short].documentation == metric.help
            if accept == OPENMETRICS or metric.kind is not Kind.INFO:
                assert families[short].type == metric.kind


def test_samples_carry_the_catalogues_labels(state: MetricState) -> None:
    for family in parse_openmetrics(page(state, OPENMETRICS)):
        for sample in family.samples:
            name = sample.name
            for ending in ("_bucket", "_count", "_sum"):
                if name not in METRICS:
                    name = sample.name.removesuffix(ending)
            assert set(sample.labels) - {"le"} == set(METRICS[name].label_names)


def test_there_are_no_created_series(state: MetricState) -> None:
    assert "_created" not in page(state)
    assert "_created" not in page(state, OPENMETRICS)


def test_the_content_type_is_the_one_asked_for(state: MetricState) -> None:
    assert render(state.points(), "")[1].startswith("text/plain")
    assert render(state.points(), OPENMETRICS)[1].startswith("application/openmetrics-text")
    assert page(state, OPENMETRICS).endswith("# EOF\n")


def test_exemplars_are_on_the_page_that_can_have_them_and_on_no_other(state: MetricState) -> None:
    contributions = [Contribution("turnscope_ttft_seconds", ("mixed",), 0.25)]
    state.add_all(contributions)
    state.exemplify(contributions, "ab" * 16)
    found = {
        sample.labels["le"]: sample.exemplar
        for family in parse_openmetrics(page(state, OPENMETRICS))
        for sample in family.samples
        if sample.exemplar is not None
    }
    assert {le: (e.labels, e.value) for le, e in found.items()} == {"0.3": ({"trace_id": "ab" * 16}, 0.25)}
    assert "trace_id" not in page(state)
