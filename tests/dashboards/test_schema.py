"""The dashboards are what Grafana itself takes for one, by its own types."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dashboards.reading import FOLDER, boards
from tests.node import setup


@pytest.mark.timeout(300)
def test_the_dashboards_have_the_fields_that_grafanas_types_have() -> None:
    done = setup.run("validate.mjs", *(str(FOLDER / name) for name in boards()))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.timeout(300)
def test_a_field_an_enumeration_and_an_option_that_grafana_does_not_know_are_found(tmp_path: Path) -> None:
    board = boards()["overview.json"]
    panel = next(p for p in board["panels"] if p["type"] == "timeseries")
    panel["gridPos"]["width"] = 3
    panel["options"]["legend"]["displayMode"] = "somewhere"
    board["graphTooltip"] = 7
    (tmp_path / "broken.json").write_text(json.dumps(board))
    done = setup.run("validate.mjs", str(tmp_path / "broken.json"))
    assert done.returncode == 1
    for part in ('"additionalProperty":"width"', "displayMode", "graphTooltip"):
        assert part in done.stdout
