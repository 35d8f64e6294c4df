"""A sidecar sums sessions up by itself, and ``turnscope sessions`` reads what it wrote."""

from __future__ import annotations

import time
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.builders import Pair
from tests.cli.served import served
from turnscope.cli.sidecar import Sidecar
from turnscope.config import Settings
from turnscope.semconv import Evidence, Part
from turnscope.store import StoreReader
from turnscope.store.summaries import REST_S

SECONDS = "turnscope_session_seconds_total"
EVERY = {(str(part), str(evidence)) for part in Part for evidence in Evidence}


def seconds(sidecar: Sidecar) -> dict[tuple[str, str], float]:
    """What a scraper gets of ``turnscope_session_seconds_total``, by part and evidence, once replay is done."""
    page = httpx.Response(503)
    while page.status_code == 503:
        page = httpx.get(f"http://127.0.0.1:{sidecar.http_port}/metrics", trust_env=False, timeout=30)
    (family,) = (f for f in text_string_to_metric_families(page.text) if f.name == SECONDS.removesuffix("_total"))
    return {(s.labels["part"], s.labels["evidence"]): s.value for s in family.samples}


def test_a_session_that_has_come_to_rest_is_in_the_metrics_once_and_its_series_are_there_before(
    tmp_path: Path,
) -> None:
    with served(tmp_path, "--grace-seconds", "0.1") as sidecar:
        pair = Pair()
        sidecar.send([*pair.start(), *pair.turn("1", attempt={"last_role": "user", "tool_calls": 0})])
        sidecar.settled(1)
    for counted in (1, 0):
        again = Sidecar(
            Settings(
                data_dir=tmp_path / "data",
                http="127.0.0.1:0",
                otlp_grpc="127.0.0.1:0",
                otlp_http="127.0.0.1:0",
                session_rest_seconds=0.1,
            )
        )
        again.start()
        assert seconds(again) == dict.fromkeys(EVERY, 0.0), "of a session before its first, and of a restart"
        time.sleep(REST_S + 1.5)
        again.close()
        (points,) = (points for metric, points in again.metrics.points() if metric.name == SECONDS)
        assert {point.labels for point in points} == EVERY
        grown = {point.labels[0] for point in points if point.value}
        assert grown == ({"input_processing", "generation"} if counted else set())
        assert again.metrics.total("turnscope_sessions_total") == counted
        assert round(again.metrics.total("turnscope_session_seconds_total"), 3) == 0.9 * counted


def test_what_a_sidecar_was_told_is_summed_up_when_it_ends(tmp_path: Path) -> None:
    pair = Pair()
    asked = {"last_role": "user", "tool_calls": 1, "finish_reason": "tool_calls"}
    first = pair.turn("1", attempt=asked)
    second = pair.turn("2", at_ms=3000, attempt={"last_role": "tool"})
    with served(tmp_path, "--grace-seconds", "0.1") as sidecar:
        sidecar.send([*pair.start(), *first, *second])
        sidecar.settled(2)
    reader = StoreReader(str(tmp_path / "data" / "store"))
    (found,), total = reader.summaries()
    assert (total, reader.outdated()) == (1, [])
    reader.close()
    assert (found.session_id, found.turns, found.completed_tasks) == ("s", 2, 1)
    assert found.tool_wait_ns == found.tool_wait_inferred_ns == 2_100_000_000
    assert found.wall_ns == 3_900_000_000
