"""The generated pages say what the code says."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from turnscope.catalog import METRICS, Kind, Label, Metric
from turnscope.decode import codec

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_committed_pages_are_up_to_date() -> None:
    done = subprocess.run([sys.executable, DOCS / "generate.py", "--check"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_stale_page_is_named(generate: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert generate.main([], tmp_path) == 0
    (tmp_path / "events.md").write_text("old")
    assert generate.main(["--check"], tmp_path) == 1
    assert "docs/events.md" in capsys.readouterr().err
    assert (tmp_path / "events.md").read_text() == "old"


def test_every_metric_is_documented() -> None:
    page = (DOCS / "metrics.md").read_text()
    assert [m for m in METRICS if f"`{m}`" not in page] == []


def test_a_metrics_labels_buckets_and_unit_are_shown(generate: ModuleType) -> None:
    metric = Metric(
        name="turnscope_x_seconds",
        kind=Kind.HISTOGRAM,
        unit="seconds",
        help="Time of x.",
        labels=(Label("engine"), Label("path")),
        buckets=(0.5, 1.0),
        owner="leg",
        diagnostic=True,
    )
    page = generate.metrics_page({metric.name: metric})
    assert "## Counted by: leg" in page
    assert (
        "| `turnscope_x_seconds` | histogram | seconds | `engine`, `path` | Time of x. Buckets: 0.5, 1. *Diagnostic.* |"
        in page
    )


def test_every_attribute_that_can_enter_is_documented() -> None:
    page = (DOCS / "events.md").read_text()
    assert [key for key in codec.ALLOWED_KEYS if f"`{key}`" not in page] == []
