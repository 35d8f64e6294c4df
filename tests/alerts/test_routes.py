"""One cause, one notification: a real Alertmanager with the shipped routes."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from alerts.build import alerts
from tests.alerts.cases import FOLDER, cases
from tests.alerts.receiving import CONFIG, Webhook, alertmanager, webhook

QUIET_S = 7.0
"""Three times as long as the hurried routes wait before they tell a group again."""

RULES: list[dict[str, Any]] = yaml.safe_load(CONFIG.read_text())["inhibit_rules"]


@pytest.fixture
def hook() -> Iterator[Webhook]:
    with webhook() as running:
        yield running


@pytest.fixture
def address(alertmanager_binary: str, hook: Webhook, tmp_path: Path) -> Iterator[str]:
    with alertmanager(alertmanager_binary, hook.url, tmp_path) as running:
        yield running


def fire(address: str, *labels: dict[str, str]) -> None:
    """As Prometheus does."""
    posted = httpx.post(
        f"http://{address}/api/v2/alerts", json=[{"labels": found} for found in labels], trust_env=False, timeout=30
    )
    posted.raise_for_status()


def fired(name: str, **changed: str) -> dict[str, str]:
    """The labels with which the rule fires in its first case, and others in place of some."""
    expected = next(case.expected[0] for case in cases(FOLDER / f"{name}.yml") if case.expected)
    return {"alertname": name, **expected["exp_labels"], **changed}


def named(matchers: list[str]) -> set[str]:
    """The alerts that matchers name."""
    (found,) = [m for m in matchers if m.startswith("alertname")]
    pattern = re.fullmatch(r'alertname=~?"(.+)"', found)
    assert pattern is not None
    return {alert.name for alert in alerts() if re.fullmatch(pattern[1], alert.name)}


def test_amtool_finds_nothing_wrong(amtool_binary: str) -> None:
    done = subprocess.run([amtool_binary, "check-config", CONFIG], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_that_the_routes_name_exists() -> None:
    for rule in RULES:
        for matchers in (rule["source_matchers"], rule["target_matchers"]):
            words = {word for m in matchers for word in re.findall(r"Turnscope\w+", m)}
            assert words <= {alert.name for alert in alerts()}
            assert named(matchers)


def test_what_must_be_equal_is_a_label_of_both() -> None:
    for rule in RULES:
        for name in named(rule["source_matchers"]) | named(rule["target_matchers"]):
            if len(named(rule["target_matchers"])) < 7:
                assert set(rule["equal"]) <= fired(name).keys(), name


def test_no_ticket_silences_a_page() -> None:
    pages = {alert.name for alert in alerts() if alert.severity == "page"}
    for rule in RULES:
        if named(rule["target_matchers"]) & pages and 'severity="ticket"' not in rule["target_matchers"]:
            assert named(rule["source_matchers"]) <= pages


@pytest.mark.timeout(300)
def test_a_restart_of_d_is_one_notification_and_not_ten(address: str, hook: Webhook) -> None:
    pairs = [{"engine": f"prefill-{n}", "holder": "decode-0"} for n in range(3)]
    fire(
        address,
        *(fired("TurnscopeHandshakesFail", **pair) for pair in pairs),
        *(fired("TurnscopeTransfersFail", **pair) for pair in pairs),
        fired("TurnscopeReadsDeclined"),
        fired("TurnscopeRetentionPressure"),
        fired("TurnscopeFetchSlowerThanRecompute"),
        fired("TurnscopeTtftRegressed", context="4096-16383"),
        fired("TurnscopeTtftRegressed", context="16384-65535"),
    )
    hook.wait(1)
    time.sleep(QUIET_S)
    assert hook.firing() == [("ticket", "TurnscopeHandshakesFail", 3)]


@pytest.mark.timeout(300)
def test_another_sidecar_s_pair_and_a_page_are_told_beside_it(address: str, hook: Webhook) -> None:
    fire(
        address,
        fired("TurnscopeHandshakesFail"),
        fired("TurnscopeTransfersFail", instance="n2"),
        fired("TurnscopeKvMismatch"),
        fired("TurnscopeReadAfterRelease"),
        fired("TurnscopeHandleReused"),
    )
    hook.wait(4)
    time.sleep(QUIET_S)
    assert sorted(hook.firing()) == [
        ("page", "TurnscopeKvMismatch", 1),
        ("page", "TurnscopeReadAfterRelease", 1),
        ("ticket", "TurnscopeHandshakesFail", 1),
        ("ticket", "TurnscopeTransfersFail", 1),
    ]
