"""Every alert fires when it should, nearly fires and stays silent, and waits out its time: promtool says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from alerts.build import alerts, rules
from alerts.rule import PAGE, Alert
from tests.alerts.cases import FOLDER, Case, cases, rule_of, run

FILES = sorted(FOLDER.glob("*.yml"))
CASES = [case for path in FILES for case in cases(path)]
KINDS = ("fires", "waits, then fires", "nearly")
BOUNDED = {"job", "instance", "severity", "engine", "holder", "node", "kind", "cause", "stage", "state", "streamed"}
BOUNDED |= {"role", "context", "emitter_kind"}
"""Labels that an alert may carry: all from closed lists or bounded by the catalogue, none a session or a request."""


def minutes(text: str) -> int:
    """``90m`` or ``1h`` in minutes."""
    return int(text[:-1]) * {"s": 0, "m": 1, "h": 60}[text[-1]]


def name(case: Case) -> str:
    return f"{case.alert}: {case.what}: {case.of}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_promtool_agrees_with_the_cases(path: Path, tmp_path: Path) -> None:
    done = run(path, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_alerts_and_files_of_cases_are_the_same_set() -> None:
    assert {path.stem for path in FILES} == {alert.name for alert in alerts()}


@pytest.mark.parametrize("case", CASES, ids=name)
def test_a_case_shows_what_its_name_says(case: Case) -> None:
    assert case.what in KINDS
    assert {check["alertname"] for check in case.test["alert_rule_test"]} == {case.alert}
    if case.what == "nearly":
        assert case.expected == []
        return
    assert case.expected
    times = {minutes(check["eval_time"]): check.get("exp_alerts", []) for check in case.test["alert_rule_test"]}
    waiting = [exp["exp_labels"] for exp in case.expected if rule_of(case.alert, exp["exp_labels"]).wait != "0s"]
    assert bool(waiting) == (case.what == "waits, then fires")
    for labels in waiting:
        expected = {at for at, found in times.items() if labels in [exp["exp_labels"] for exp in found]}
        # Just before, it was silent. What compares floating-point numbers may turn a minute earlier.
        assert {min(expected) - 1, min(expected) - 2} & (times.keys() - expected)


@pytest.mark.parametrize("rule", list(alerts()), ids=lambda r: "-".join([r.name, *r.labels.values()]))
def test_every_rule_fires_nearly_fires_and_waits_out_its_time(rule: Alert) -> None:
    mine = [case for case in CASES if case.alert == rule.name]
    cause = "".join(f"{value}: " for value in rule.labels.values())
    fire = "fires" if rule.wait == "0s" else "waits, then fires"
    assert any(case.what == fire and case.of.startswith(cause) for case in mine)
    assert any(case.what == "nearly" and case.of.startswith(cause) for case in mine)
    fired = [exp["exp_labels"] for case in mine for exp in case.expected]
    assert any(rule.labels.items() <= labels.items() for labels in fired)


def test_labels_of_alerts_are_bounded() -> None:
    assert {label for case in CASES for exp in case.expected for label in exp["exp_labels"]} - BOUNDED == set()


def test_only_possibly_wrong_answers_and_stuck_turns_page() -> None:
    assert {alert.name for alert in alerts() if alert.severity == PAGE} == {
        "TurnscopeKvMismatch",
        "TurnscopeReadAfterRelease",
        "TurnscopeHandleReused",
        "TurnscopeAnsweredAfterFailedLoad",
        "TurnscopeTurnsStuck",
    }


def test_an_alert_has_one_severity_and_says_why_it_waits() -> None:
    severities: dict[str, set[str]] = {}
    for alert in alerts():
        severities.setdefault(alert.name, set()).add(alert.severity)
        assert alert.wait_reason.endswith(".")
        assert alert.description.rstrip().endswith(".")
    assert {name for name, found in severities.items() if len(found) > 1} == set()


def test_a_rule_that_is_broken_makes_its_case_fail(tmp_path: Path) -> None:
    broken = rules().replace('kind="kv_mismatch"', 'kind="stale_handle"')
    assert run(FOLDER / "TurnscopeKvMismatch.yml", tmp_path, broken).returncode != 0
