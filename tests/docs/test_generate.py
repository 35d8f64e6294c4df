"""The generated pages say what the code says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from docs import generate
from docs.pages import metrics
from turnscope.assembly.reasons import TABLE
from turnscope.catalog import METRICS, Kind, Label, Metric
from turnscope.cli import sessions
from turnscope.cli.main import COMMANDS, LIGHT, build
from turnscope.config import Settings
from turnscope.decode import table
from turnscope.emit.settings import VARIABLES

DOCS = Path(__file__).parents[2] / "docs"


def test_the_committed_pages_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "docs.generate", "--check"], cwd=DOCS.parent, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_stale_page_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert generate.main([], tmp_path) == 0
    (tmp_path / "docs/events.md").write_text("old")
    assert generate.main(["--check"], tmp_path) == 1
    assert "docs/events.md" in capsys.readouterr().err
    assert (tmp_path / "docs/events.md").read_text() == "old"


def test_every_row_of_the_table_of_reasons_is_documented_in_its_order() -> None:
    page = (DOCS / "reasons.md").read_text()
    places = [page.index(f"| {number} | `{row.reason}` | {row.says} |") for number, row in enumerate(TABLE, 1)]
    assert places == sorted(places)


def test_every_metric_is_documented() -> None:
    page = (DOCS / "metrics.md").read_text()
    assert [m for m in METRICS if f"`{m}`" not in page] == []


def test_a_metrics_labels_buckets_and_unit_are_shown() -> None:
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
    page = metrics.page({metric.name: metric})
    assert "## Counted by: leg" in page
    assert (
        "| `turnscope_x_seconds` | histogram | seconds | `engine`, `path` | Time of x. Buckets: 0.5, 1. *Diagnostic.* |"
        in page
    )


def test_every_attribute_that_can_enter_is_documented() -> None:
    page = (DOCS / "events.md").read_text()
    assert [key for key in table.ALLOWED_KEYS if f"`{key}`" not in page] == []


def test_every_setting_of_the_sidecar_is_documented() -> None:
    page = (DOCS / "settings.md").read_text()
    options = {f"`--{name.replace('_', '-')}`" for name in Settings.model_fields}
    assert {option for option in options if option not in page} == set()
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


def test_every_command_is_documented_and_named_in_the_readme() -> None:
    page = (DOCS / "commands.md").read_text()
    readme = (DOCS.parent / "README.md").read_text()
    names = [*COMMANDS, *LIGHT]
    assert [name for name in names if f"## `turnscope {name}`" not in page] == []
    assert [name for name in names if f"turnscope {name}" not in readme] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_and_command_has_a_help_text(name: str) -> None:
    group: Any = typer.main.get_command(build(name))
    command = group.commands[name]
    assert command.help
    assert [p.name for p in command.params if not p.help] == []


def test_the_page_of_commands_has_what_help_has_of_options() -> None:
    """Values to choose from, defaults, and how a switch is turned off."""
    page = (DOCS / "commands.md").read_text()
    assert " None`" not in page
    for line in (
        r"| `--outcome completed\|failed\|abandoned\|unknown` |",
        "| `--text / --no-text` |",
        "How many are shown. [default: 20]",
        "served, on this machine only. [default: 8501]",
        "its --http. [default: http://127.0.0.1:9464]",
        "its --otlp-grpc. [default: 127.0.0.1:4317]",
        "of the whole time. [default: last]",
    ):
        assert line in page


def test_the_help_names_everything_that_sessions_can_be_ordered_by() -> None:
    shown = {str(part) for part in sessions.PARTS}
    shares = {f"{name}-share" for name in (*sessions.PARTS, "ceiling")}
    assert {sort.value for sort in sessions.Sort} == set(sessions.ORDERS) | shown | shares


def test_every_variable_of_the_hooks_is_documented() -> None:
    page = (DOCS / "settings.md").read_text()
    assert [name for name in VARIABLES if f"`{name}`" not in page] == []
