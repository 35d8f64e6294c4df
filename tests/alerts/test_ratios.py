"""The ratios that people quote, against figures worked out by hand."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from alerts.build import recordings, rules
from tests.alerts.cases import promtool

RATIOS = Path(__file__).parent / "ratios.yml"
CONVENTION = re.compile(r"[a-z_]+:turnscope_[a-z0-9_]+:[a-z]+_rate\d+[mh]")


def test_every_ratio_is_what_was_worked_out_by_hand(tmp_path: Path) -> None:
    done = promtool(yaml.safe_load(RATIOS.read_text()), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_ratio_has_a_case() -> None:
    cases = yaml.safe_load(RATIOS.read_text())["tests"]
    assert [test["promql_expr_test"][0]["expr"] for test in cases] == [rule.record for rule in recordings()]


def test_names_are_level_metric_and_operations() -> None:
    assert [rule.record for rule in recordings() if not CONVENTION.fullmatch(rule.record)] == []


def test_a_ratio_that_counts_suspect_tokens_as_saved_makes_its_case_fail(tmp_path: Path) -> None:
    broken = rules().replace(
        "- rate(turnscope_suspect_tokens_total[5m])", "- 0 * rate(turnscope_suspect_tokens_total[5m])"
    )
    assert promtool(yaml.safe_load(RATIOS.read_text()), tmp_path, broken).returncode != 0
