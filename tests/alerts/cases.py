"""The alerts' cases: promtool's format, but of annotations only what a case is about.

A case's name says what it shows: ``fires: ...`` (at once), ``waits, then fires: ...`` (after its ``for``) or
``nearly: ...``; where an alert has several rules, then comes the label that tells them apart.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from alerts.build import GROUPS, alerts, rules
from alerts.rule import Alert

FOLDER = Path(__file__).parent / "cases"


@dataclass(frozen=True)
class Case:
    """One test of one alert."""

    alert: str
    what: str
    """``fires``, ``waits, then fires`` or ``nearly``."""
    of: str
    """The rest of its name."""
    test: dict[str, Any]

    @property
    def expected(self) -> list[dict[str, Any]]:
        """All alerts that it expects at some time."""
        return [exp for check in self.test["alert_rule_test"] for exp in check.get("exp_alerts", ())]


def cases(path: Path) -> Iterator[Case]:
    """The cases of one file."""
    for test in yaml.safe_load(path.read_text())["tests"]:
        what, _, of = test["name"].partition(": ")
        yield Case(path.stem, what, of, test)


def rule_of(name: str, labels: dict[str, str]) -> Alert:
    """The rule that gives an alert these labels."""
    (found,) = [a for a in alerts() if a.name == name and a.labels.items() <= labels.items()]
    return found


def run(path: Path, folder: Path, rule_file: str | None = None) -> subprocess.CompletedProcess[str]:
    """promtool on the cases of ``path``, with what every alert has anyway filled in: its runbook's address, and a
    description that is the same whatever its labels."""
    whole = yaml.safe_load(path.read_text())
    for check in (check for test in whole["tests"] for check in test["alert_rule_test"]):
        for expected in check.get("exp_alerts", ()):
            rule = rule_of(check["alertname"], expected["exp_labels"])
            said = {"runbook_url": rule.runbook_url}
            if "{{" not in rule.description:
                said["description"] = rule.description
            expected["exp_annotations"] = said | expected["exp_annotations"]
    return promtool(whole, folder, rule_file)


def promtool(tests: dict[str, Any], folder: Path, rule_file: str | None = None) -> subprocess.CompletedProcess[str]:
    """``promtool test rules`` in ``folder``, on the rules of the tree unless others are given."""
    (folder / "rules.yml").write_text(rules() if rule_file is None else rule_file)
    # Otherwise promtool evaluates groups in any order, and what is recorded comes a minute late or not.
    order = [group.name for group in GROUPS]
    (folder / "tests.yml").write_text(yaml.safe_dump(tests | {"rule_files": ["rules.yml"], "group_eval_order": order}))
    return subprocess.run(
        ["promtool", "test", "rules", "tests.yml"], cwd=folder, capture_output=True, text=True, timeout=100
    )
