"""What engines say of themselves, read from pages as vLLM of several ages serves them."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.dashboards.golden import engine_serving
from turnscope.catalog import METRICS
from turnscope.model import Sample
from turnscope.outputs.metrics import MetricState
from turnscope.receivers import engine_metrics
from turnscope.receivers.engine_metrics import EngineMetrics, Unreadable, fetch, read

V0_21 = """
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="toy"} 4.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="toy"} 2.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="toy"} 0.125
# TYPE vllm:gpu_prefix_cache_queries_total counter
vllm:gpu_prefix_cache_queries_total{engine="0",model_name="toy"} 100.0
# TYPE vllm:num_preemptions_total counter
vllm:num_preemptions_total{engine="0",model_name="toy"} 7.0
# TYPE vllm:num_preemptions_created gauge
vllm:num_preemptions_created{engine="0",model_name="toy"} 1.7e+09
"""
V0_30 = """
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="toy"} 1.0
vllm:num_requests_running{engine="1",model_name="toy"} 2.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="toy"} 0.0
vllm:num_requests_waiting{engine="1",model_name="toy"} 5.0
# TYPE vllm:num_requests_waiting_by_reason gauge
vllm:num_requests_waiting_by_reason{engine="0",model_name="toy",reason="capacity"} 0.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="toy"} 0.1
vllm:kv_cache_usage_perc{engine="1",model_name="toy"} 0.3
# TYPE vllm:num_preemptions_total counter
vllm:num_preemptions_total{engine="0",model_name="toy"} 0.0
vllm:num_preemptions_total{engine="1",model_name="toy"} 3.0
# TYPE vllm:nixl_bytes_transferred histogram
vllm:nixl_bytes_transferred_sum{engine="0",model_name="toy"} 4096.0
vllm:nixl_bytes_transferred_count{engine="0",model_name="toy"} 2.0
"""


class Engine:
    """An engine's page that can change, or be gone."""

    def __init__(self, page: str | None) -> None:
        self.page = page

    def __call__(self, _: str) -> str:
        if self.page is None:
            raise Unreadable("it cannot be reached")
        return self.page


def watching(engine: Engine) -> tuple[MetricState, EngineMetrics]:
    state = MetricState(METRICS, now_s=lambda: 0.0)
    watch = EngineMetrics({"d": "http://d"}, sample=state.sample, count=state.add, every_s=1, fetch=engine)
    return state, watch


def values(state: MetricState) -> dict[tuple[str, ...], float]:
    """What is shown of engines: (metric without prefix, engine) to value."""
    return {
        (metric.name.removeprefix("turnscope_engine_"), *point.labels): point.value
        for metric, points in state.points()
        if metric.owner == "engine metrics"
        for point in points
    }


def test_one_engine_of_an_older_vllm() -> None:
    state, watch = watching(Engine(V0_21))
    watch.look("d")
    assert values(state) == {
        ("metrics_up", "d"): 1,
        ("requests_running", "d"): 4,
        ("requests_waiting", "d"): 2,
        ("kv_usage_ratio", "d"): 0.125,
        ("preemptions_total", "d"): 0,
    }


def test_data_parallel_engines_of_a_newer_vllm_stay_apart_and_can_be_added_up() -> None:
    state, watch = watching(Engine(V0_30))
    watch.look("d")
    found = values(state)
    assert [found["requests_running", f"d-dp{rank}"] for rank in "01"] == [1, 2]
    assert sum(found["kv_usage_ratio", f"d-dp{rank}"] for rank in "01") / 2 == pytest.approx(0.2)


def test_the_name_of_usage_before_it_was_renamed_is_understood() -> None:
    older = V0_21.replace("kv_cache_usage_perc", "gpu_cache_usage_perc")
    assert read(older)["turnscope_engine_kv_usage_ratio", "0"] == 0.125


def test_preemptions_are_counted_from_the_first_look_on_and_through_a_restart_of_the_engine() -> None:
    engine = Engine(V0_21)
    state, watch = watching(engine)
    watch.look("d")
    for total, counted in ((9, 2), (9, 2), (1, 3), (4, 6)):
        engine.page = V0_21.replace(" 7.0", f" {total}")
        watch.look("d")
        assert values(state)["preemptions_total", "d"] == counted


def test_an_engine_that_is_gone_is_shown_as_gone_and_nothing_of_it_as_zero() -> None:
    engine = Engine(V0_21)
    state, watch = watching(engine)
    watch.look("d")
    engine.page = None
    watch.look("d")
    assert values(state) == {("metrics_up", "d"): 0, ("preemptions_total", "d"): 0}
    assert watch.troubles == ["the metrics of d cannot be read: it cannot be reached"]
    engine.page = V0_21
    watch.look("d")
    assert values(state)["metrics_up", "d"] == 1
    assert watch.troubles == []


def test_what_a_page_lacks_is_absent() -> None:
    state, watch = watching(Engine('# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine="0"} 1\n'))
    watch.look("d")
    assert values(state) == {("metrics_up", "d"): 1, ("requests_running", "d"): 1}


@pytest.mark.parametrize("page", ["", "<html>nothing here</html>", "python_gc_objects 3\n", "a{b=} x\n"])
def test_a_page_that_is_no_engines_is_not_taken_for_an_idle_engine(page: str) -> None:
    state, watch = watching(Engine(page))
    watch.look("d")
    assert values(state) == {("metrics_up", "d"): 0}


def test_of_a_long_page_only_what_is_asked_for_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def noting(page: str) -> Iterator[Metric]:
        parsed.append(page)
        return text_string_to_metric_families(page)

    monkeypatch.setattr(engine_metrics, "text_string_to_metric_families", noting)
    buckets = "".join(f'vllm:e2e_request_latency_seconds_bucket{{engine="0",le="{n}"}} 1\n' for n in range(10_000))
    assert read(V0_30 + buckets) == read(V0_30)
    assert len(parsed) == 2
    assert parsed[0] == parsed[1]


def test_ranks_and_texts_that_make_no_sense_share_one_value() -> None:
    lines = "".join(f'vllm:num_requests_running{{engine="x{n}"}} 1\n' for n in range(1000))
    assert read("# TYPE vllm:num_requests_running gauge\n" + lines) == {
        ("turnscope_engine_requests_running", "other"): 1000
    }


def test_a_real_server_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with engine_serving(V0_30) as url:
        assert read(fetch(url))["turnscope_engine_requests_waiting", "1"] == 5
        monkeypatch.setattr(engine_metrics, "MAX_BYTES", 100)
        with pytest.raises(Unreadable, match="longer than 100 bytes"):
            fetch(url)
    with pytest.raises(Unreadable, match="cannot be reached"):
        fetch(url)


def test_looking_goes_on_until_it_is_stopped() -> None:
    asked: list[Sample] = []
    watch = EngineMetrics(
        {"d": "http://d", "p": "http://p"},
        sample=lambda samples, _: asked.extend(samples),
        count=lambda *_: None,
        every_s=0.01,
        fetch=Engine(V0_21),
    )
    watch.start()
    try:
        deadline = time.monotonic() + 30
        while len({s.labels[0] for s in asked}) < 2 or len(asked) < 30:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        watch.stop()
    assert {s.labels[0] for s in asked} == {"d", "p"}


def test_figures_without_an_end_are_passed_over() -> None:
    page = "vllm:num_requests_waiting +Inf\nvllm:num_preemptions_total +Inf\nvllm:num_requests_running 1\n"
    assert read(page) == {("turnscope_engine_requests_running", "0"): 1}


@pytest.mark.parametrize("begin", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nX-Slow: ", b""])
def test_an_engine_that_drips_its_page_or_its_head_is_given_up(begin: bytes) -> None:
    done = threading.Event()

    def drip(listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection, _ = listening.accept()
            with connection:
                connection.sendall(begin)
                while not done.wait(0.02):
                    connection.sendall(b"H")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=drip, args=(listening,))
        thread.start()
        begun = time.monotonic()
        try:
            with pytest.raises(Unreadable, match="did not come within"):
                fetch(f"http://127.0.0.1:{listening.getsockname()[1]}", timeout_s=0.3)
            assert time.monotonic() - begun < 5
        finally:
            done.set()
            thread.join()
