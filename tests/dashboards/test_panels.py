"""Every panel and variable asked of a real Prometheus that has the golden scenario in its store."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from dashboards.reading import filled, targets, variables
from live import overview
from live.expected import EngineSet, Facts, Moment
from live.fronts import Front
from live.prometheus import Prometheus, running_prometheus
from tests.dashboards import golden
from tests.dashboards.golden import Scenario
from turnscope.model import Attempt, Request, Transfer
from turnscope.semconv import Role, TransferState

COUNTERS: dict[str, Any] = json.loads(golden.RECORDING.with_suffix(".counters.json").read_text())


class Answers:
    """A running Prometheus, and when there is something to ask it for."""

    def __init__(self, prometheus: Prometheus, times: Scenario) -> None:
        self.prometheus = prometheus
        self.times = times

    def curve(self, expression: str) -> list[dict[str, Any]]:
        """Over the scenario."""
        return self.prometheus.curve(expression, self.times.first, self.times.last, golden.SCRAPE_S)

    def figures(self, board: str, title: str) -> dict[str, float]:
        """What a panel shows when all is counted, by its only label."""
        (target,) = [t for t in targets() if t.board == board and t.panel["title"] == title]
        spans = {"$__range": f"{int(self.times.last - self.times.first) + 60}s"}
        expression = filled(target.raw["expr"], **spans)
        return {
            ",".join(series["metric"].values()): float(series["value"][1])
            for series in self.prometheus.moment(expression, self.times.last)
        }


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answers]:
    """With the scenario's blocks."""
    promtool = shutil.which("promtool")
    assert promtool, "promtool is missing: apt-get install --no-install-recommends prometheus"
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
    kept = "--storage.tsdb.retention.time=100y"
    with running_prometheus(folder, kept, config="scrape_configs: []\n") as running:
        yield Answers(running, times)


@pytest.mark.timeout(600)
def test_every_query_is_answered_with_at_least_one_series_of_finite_values(prometheus: Answers) -> None:
    wrong = []
    for target in targets():
        if target.instant:
            found = [[s["value"]] for s in prometheus.prometheus.moment(target.expr, prometheus.times.busy)]
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
        values = prometheus.prometheus.get(
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
def test_the_time_of_sessions_is_that_of_the_sessions_at_rest_and_all_of_it(prometheus: Answers) -> None:
    named = {turn.session_id for turn in prometheus.times.turns if turn.session_id}
    assert prometheus.figures("sessions.json", "Sessions that came to rest") == {"": len(named)}
    spans = [
        (min(turn.started_ns for turn in its), max(turn.ended_ns or turn.started_ns for turn in its))
        for name in named
        for its in [[turn for turn in prometheus.times.turns if turn.session_id == name]]
    ]
    parts = prometheus.figures("sessions.json", "Time of sessions by what it was spent on")
    assert sum(parts.values()) == pytest.approx(sum(end - begin for begin, end in spans) / 1e9)
    shares = prometheus.figures("sessions.json", "Share of sessions' time by how it is known")
    assert sum(shares.values()) == pytest.approx(1)
    tasks = prometheus.figures("sessions.json", "Tasks by how they ended")
    assert tasks["completed"] > tasks["failed"] > 0


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


# --- as the live run judges its own ---------------------------------------------------------------------------
def facts(scenario: Scenario) -> Facts:
    rows = [msgspec.structs.asdict(turn) for turn in scenario.turns]
    engines = tuple(EngineSet(f"{role}-1", role, True) for role in (Role.PREFILL, Role.DECODE))
    moments = [Moment(scenario.busy, "cached", Front.HOOKED, engines)]
    return Facts(rows, engines=COUNTERS["engines"], moments=moments, begin_s=scenario.first, end_s=scenario.last)


@pytest.mark.timeout(600)
def test_every_panel_of_the_overview_is_exactly_what_was_done(prometheus: Answers) -> None:
    wrong = overview.judge(facts(prometheus.times), prometheus.prometheus)
    # The recording's engines were not scraped themselves, and the other pair's processes were still heard of.
    assert [one for one in wrong if "vllm:" not in one and "Processes with a hook" not in one] == []


CHANGES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a turn that was recomputed": (
        {"path": "recompute", "reason": "below_threshold"},
        ["Turns that fetched back from D", "Turns by where their prompt came from", "Why there was no (more) fetch"],
    ),
    "fewer tokens": ({"local_hit_tokens": 7}, ["Share of prompt tokens not computed"]),
    "a slower fetch": ({"net_gain_ns": -(10**9)}, ["Compute time saved by fetching"]),
    "a suspicion": (
        {"suspicions": ["stale_handle"]},
        ["Turns whose answer may be wrong", "Possibly wrong answers by prefill engine"],
    ),
    "a stuck turn": (
        {"status": "stuck", "stuck_cause": "preempted"},
        ["Turns found to stand still, by cause", "Turns by how they ended"],
    ),
    "an attempt that hung until it was asked again": (
        {"path": "recompute", "reason": "handle_consumed_by_retry"},
        ["Turns found to stand still, by cause", "Why there was no (more) fetch"],
    ),
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("change", CHANGES)
def test_a_panel_that_does_not_show_what_was_done_is_named(prometheus: Answers, change: str) -> None:
    fields, panels = CHANGES[change]
    known = facts(prometheus.times)
    fetched = next(n for n, row in enumerate(known.rows) if row["path"] == "reverse_fetch" and row["net_gain_ns"])
    rows = [{**row, **fields} if n == fetched else row for n, row in enumerate(known.rows)]
    said = "\n".join(overview.judge(replace(known, rows=rows), prometheus.prometheus))
    assert [title for title in panels if f"Overview, {title}" not in said] == []


@pytest.mark.timeout(600)
def test_a_counter_of_an_engine_that_was_scraped_too_low_is_named(prometheus: Answers) -> None:
    known = facts(prometheus.times)
    more = {name: {**values, "transfers": values["transfers"] + 1} for name, values in known.engines.items()}
    said = "\n".join(overview.judge(replace(known, engines=more), prometheus.prometheus))
    assert "prefill-0, transfers: turnscope_transfer_reads_total was scraped up to 21, and it is 22" in said
