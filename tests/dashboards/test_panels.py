"""Every panel and variable asked of a real Prometheus that has the golden scenario in its store."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx
import pytest

from tests.cli.served import free_port
from tests.dashboards import golden
from tests.dashboards.boards import filled, targets, variables
from tests.dashboards.golden import Times
from turnscope.model import Attempt, Request, Transfer
from turnscope.semconv import TransferState

START_S = 120.0
COUNTERS: dict[str, Any] = json.loads(golden.RECORDING.with_suffix(".counters.json").read_text())


class Answers:
    """A running Prometheus, and when there is something to ask it for."""

    def __init__(self, url: str, times: Times) -> None:
        self._url = f"{url}/api/v1"
        self.times = times

    def get(self, path: str, **parameters: str | float) -> Any:
        """The data of an answer that says success."""
        answer = httpx.get(f"{self._url}/{path}", params=parameters, trust_env=False, timeout=60)
        content = answer.json()
        assert content["status"] == "success", content
        return content["data"]

    def curve(self, expression: str) -> list[dict[str, Any]]:
        """Over the scenario."""
        times = self.times
        found: list[dict[str, Any]] = self.get(
            "query_range", query=expression, start=times.first, end=times.last, step=golden.SCRAPE_S
        )["result"]
        return found

    def moment(self, expression: str, at_s: float) -> list[dict[str, Any]]:
        """At one time."""
        found: list[dict[str, Any]] = self.get("query", query=expression, time=at_s)["result"]
        return found

    def figures(self, board: str, title: str) -> dict[str, float]:
        """What a panel shows when all is counted, by its only label."""
        (target,) = [t for t in targets() if t.board == board and t.panel["title"] == title]
        spans = {"$__range": f"{int(self.times.last - self.times.first) + 60}s"}
        expression = filled(target.raw["expr"], **spans)
        return {
            ",".join(series["metric"].values()): float(series["value"][1])
            for series in self.moment(expression, self.times.last)
        }


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answers]:
    """With the scenario's blocks."""
    server, promtool = shutil.which("prometheus"), shutil.which("promtool")
    assert server, "prometheus is missing: apt-get install --no-install-recommends prometheus"
    assert promtool
    folder = tmp_path_factory.mktemp("prometheus")
    text, times = golden.openmetrics(folder)
    (folder / "golden.txt").write_text(text)
    made = subprocess.run(
        [promtool, "tsdb", "create-blocks-from", "openmetrics", folder / "golden.txt", folder / "tsdb"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert made.returncode == 0, made.stderr
    (folder / "prometheus.yml").write_text("scrape_configs: []\n")
    address = f"127.0.0.1:{free_port()}"
    command = [server, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'tsdb'}"]
    command += ["--storage.tsdb.retention.time=100y", f"--web.listen-address={address}"]
    log = folder / "prometheus.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        deadline = time.monotonic() + START_S
        while True:
            with suppress(httpx.TransportError):
                if httpx.get(f"http://{address}/-/ready", trust_env=False).status_code == 200:
                    break
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield Answers(f"http://{address}", times)
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.timeout(600)
def test_every_query_is_answered_with_at_least_one_series_of_finite_values(prometheus: Answers) -> None:
    wrong = []
    for target in targets():
        if target.instant:
            found = [[s["value"]] for s in prometheus.moment(target.expr, prometheus.times.busy)]
        else:
            found = [s["values"] for s in prometheus.curve(target.expr)]
        if not found:
            wrong.append(f"{target}: nothing")
        elif not all(math.isfinite(float(value)) for values in found for _, value in values):
            wrong.append(f"{target}: not finite")
    assert wrong == []


@pytest.mark.timeout(600)
def test_every_variable_has_values(prometheus: Answers) -> None:
    times = prometheus.times
    for variable in variables():
        values = prometheus.get(
            f"label/{variable.label}/values", **{"match[]": variable.selector}, start=times.first, end=times.last
        )
        expected = {"deployment": ["turnscope"], "engine": sorted(COUNTERS["engines"])}
        assert values == expected[variable.name], variable


# --- worked out from what was recorded, without the assembly ---------------------------------------------
def _of_engines(quantity: str, role: str) -> float:
    return float(sum(v[quantity] for name, v in COUNTERS["engines"].items() if name.startswith(role)))


def _prefills() -> list[Request]:
    """P legs that a proxy asked for: not warm-ups."""
    events = [event for _, event in golden.recorded()]
    asked = {
        (e.body.prefill.engine_id, e.body.prefill.request_id)
        for e in events
        if isinstance(e.body, Attempt) and e.body.prefill is not None
    }
    return [
        e.body
        for e in events
        if isinstance(e.body, Request) and e.engine is not None and (e.engine.id, e.body.request_id) in asked
    ]


def _reads() -> Counter[str]:
    """``<reader>,<holder>,done`` to reads."""
    events = [event for _, event in golden.recorded()]
    names = {e.engine.id: e.engine.name for e in events if e.engine is not None}
    return Counter(
        f"{e.engine.name},{names[e.body.remote_engine_id]},done"
        for e in events
        if isinstance(e.body, Transfer)
        and e.body.state is TransferState.DONE
        and e.engine is not None
        and e.body.remote_engine_id in names
    )


@pytest.mark.timeout(600)
def test_the_overview_shows_what_engines_and_client_had_counted_themselves(prometheus: Answers) -> None:
    fetched = _of_engines("prompt tokens, external_kv_transfer", "prefill")
    prefills = [r for r in _prefills() if r.stats_sent]
    reused = sum((r.local_hit_tokens or 0) + (r.external_tokens or 0) for r in prefills)
    fetching = sum((r.external_tokens or 0) > 0 for r in prefills)
    assert fetching > 0
    assert prometheus.figures("overview.json", "Turns") == {"": COUNTERS["turns"]}
    assert prometheus.figures("overview.json", "Prompt tokens fetched back") == {"": fetched}
    share = prometheus.figures("overview.json", "Share of prompt tokens not computed")
    assert share == {"": pytest.approx(reused / sum(r.input_tokens for r in prefills))}
    assert sum(prometheus.figures("overview.json", "Turns by how they ended").values()) == COUNTERS["turns"]
    assert prometheus.figures("overview.json", "Turns that fetched back from D") == {"": fetching}
    reasons = prometheus.figures("overview.json", "Why there was no (more) fetch")
    assert sum(reasons.values()) == COUNTERS["turns"] - fetching
    assert prometheus.figures("overview.json", "Turns that stand still now")["stuck"] == 0


@pytest.mark.timeout(600)
def test_reads_bytes_and_opportunities_are_what_the_recorded_events_add_up_to(prometheus: Answers) -> None:
    reads = prometheus.figures("transfer.json", "Reads between two engines")
    assert {labels: n for labels, n in reads.items() if labels.endswith(",done")} == dict(_reads())
    # One rank on each side: what is read is what was needed.
    ratio = prometheus.figures("transfer.json", "Wire bytes for a byte of KV")
    assert ratio == {"handoff": pytest.approx(1, rel=0.05), "reverse_fetch": pytest.approx(1, rel=0.05)}
    sessions = Counter(
        e.body.session_id
        for _, e in golden.recorded()
        if isinstance(e.body, Attempt) and e.body.session_id is not None and e.body.final
    )
    continuing = prometheus.figures("sessions.json", "Turns that continue a session")
    assert continuing == {"": sum(turns - 1 for turns in sessions.values())}
