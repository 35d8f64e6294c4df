"""The whole way, with real parts: sidecar, Prometheus with the shipped rules, Alertmanager, webhook."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path

import pytest

from alerts.build import rules
from tests.alerts.receiving import alertmanager, webhook
from tests.builders import Pair
from tests.cli.served import served
from tests.cli.test_prometheus import scraping

QUIET_S = 10.0


@pytest.mark.timeout(600)
def test_the_first_read_after_release_wakes_somebody_once_and_a_restart_nobody(
    alertmanager_binary: str, tmp_path: Path
) -> None:
    (tmp_path / "rules.yml").write_text(rules())
    pair = Pair()
    events = [*pair.start(), *pair.turn("1", prompt=1000)]
    events += pair.turn("2", at_ms=3000, prompt=1700, fetched=1199, given=pair.handle("1", 1199))
    # The handle is given once more, and its reader comes when D has let the blocks go: three suspicions, one cause.
    again = pair.turn("3", at_ms=7000, prompt=1700, fetched=1199, given=pair.handle("1", 1199))
    again = [e for e in again if e.emitter != pair.dw.emitter or getattr(e.body, "phase", "") != "released"]
    again += pair.late_notice("d1", 7100)
    with (
        webhook() as hook,
        alertmanager(alertmanager_binary, hook.url, tmp_path) as manager,
        served(tmp_path, "--grace-seconds", "0.1") as sidecar,
        scraping(f"127.0.0.1:{sidecar.http}", tmp_path, telling=manager) as prometheus,
    ):
        prometheus.wait("up", 1)
        prometheus.scraped()
        sidecar.send(sorted(events, key=lambda e: e.mono_ns))
        prometheus.wait("sum(turnscope_turns_total)", 2)
        assert hook.got == []

        sidecar.send(again)
        hook.wait(1)
        ((path, body),) = hook.got
        (alert,) = body["alerts"]
        assert (path, body["status"], alert["status"]) == ("page", "firing", "firing")
        assert alert["labels"]["alertname"] == "TurnscopeReadAfterRelease"
        # On a busy machine two scrapes are far apart, and increase() makes more of one.
        assert re.match(
            r"Possibly wrong answers: [12] in the last hour on prefill-0, ", alert["annotations"]["summary"]
        )
        assert "Late notices reached: decode-0." in alert["annotations"]["description"]
        assert alert["annotations"]["runbook_url"].endswith("TurnscopeReadAfterRelease.md")

        sidecar.end(signal.SIGTERM)
        sidecar.start()
        prometheus.scraped(3)
        time.sleep(QUIET_S)
        assert len(hook.got) == 1
