"""Turn traces on their way to a backend."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.cli.served import free_port
from tests.outputs.backend import Backend, grpc_backend, http_backend
from turnscope.model import Turn
from turnscope.outputs import otlp
from turnscope.outputs.otlp import BadEndpoint, SendFailed, SendLater, trace_sender
from turnscope.outputs.traces import TraceExporter


def turn(n: int) -> Turn:
    return Turn(turn_id=f"{n:032x}", started_ns=1, ended_ns=2)


class Counts(Counter[tuple[str, ...]]):
    """Metrics by their last part and labels."""

    def __call__(self, metric: str, labels: tuple[str, ...], value: float) -> None:
        self[(metric.removeprefix("turnscope_exporter_traces_"), *labels)] += int(value)


@pytest.fixture(params=[grpc_backend, http_backend])
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """One of each protocol."""
    make: Callable[[], AbstractContextManager[Backend]] = request.param
    with make() as running:
        yield running


@pytest.fixture
def counts() -> Counts:
    """What was counted."""
    return Counts()


def later(backend: Backend) -> int | grpc.StatusCode:
    return 503 if backend.endpoint.endswith("/v1/traces") else grpc.StatusCode.UNAVAILABLE


def never(backend: Backend) -> int | grpc.StatusCode:
    return 400 if backend.endpoint.endswith("/v1/traces") else grpc.StatusCode.INVALID_ARGUMENT


def test_each_turn_is_sent_once(backend: Backend, counts: Counts) -> None:
    exporter = TraceExporter(trace_sender(backend.endpoint, {"X-Key": "1"}), count=counts, version="1")
    for n in range(150):
        exporter.add(turn(n))
    exporter.close(10)
    assert sorted(backend.traces()) == [turn(n).turn_id for n in range(150)]
    assert counts == {("exported_total",): 150}
    assert {k.lower(): v for k, v in backend.headers[0].items()}["x-key"] == "1"


def test_a_backend_that_is_away_for_a_moment_gets_everything(
    backend: Backend, counts: Counts, caplog: pytest.LogCaptureFixture
) -> None:
    backend.refusals = [later(backend)]
    exporter = TraceExporter(trace_sender(backend.endpoint, {}), count=counts, version="1")
    exporter.add(turn(1))
    assert backend.wait(1) == [turn(1).turn_id]
    exporter.close(10)
    assert counts == {("exported_total",): 1}
    assert exporter.trouble is None
    assert "turn traces are not taken: 127.0.0.1" in caplog.text or "turn traces are not taken: http" in caplog.text


def test_what_is_refused_for_good_is_dropped_and_counted(backend: Backend, counts: Counts) -> None:
    backend.refusals = [never(backend)]
    exporter = TraceExporter(trace_sender(backend.endpoint, {}), count=counts, version="1")
    exporter.add(turn(1))
    exporter.close(10)
    assert counts == {("dropped_total", "refused"): 1}
    assert exporter.trouble is not None
    assert "says the backend" in exporter.trouble


def test_a_request_that_is_too_large_for_the_backend_is_refused_for_good() -> None:
    with grpc_backend() as backend:
        backend.refusals = [grpc.StatusCode.RESOURCE_EXHAUSTED]
        sender = trace_sender(backend.endpoint, {})
        with pytest.raises(SendFailed, match="RESOURCE_EXHAUSTED") as caught:
            sender.send(ExportTraceServiceRequest())
        sender.close()
    assert not isinstance(caught.value, SendLater)


def test_spans_rejected_in_part_are_told(backend: Backend, counts: Counts) -> None:
    backend.answer.partial_success.rejected_spans = 1
    backend.answer.partial_success.error_message = "too old"
    exporter = TraceExporter(trace_sender(backend.endpoint, {}), count=counts, version="1")
    exporter.add(turn(1))
    exporter.close(10)
    assert exporter.trouble == "the backend rejected 1 spans: too old"


class Stuck:
    """A backend that answers only when told to."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.go = threading.Event()

    def send(self, _request: ExportTraceServiceRequest) -> tuple[int, str]:
        self.asked.set()
        self.go.wait(10)
        return 0, ""

    def close(self) -> None:
        self.go.set()


def test_a_full_queue_drops_the_newest_without_waiting(counts: Counts) -> None:
    sender = Stuck()
    exporter = TraceExporter(sender, count=counts, version="1", queue=3)
    for n in range(5):
        exporter.add(turn(n))
    assert counts == {("dropped_total", "queue_full"): 2}
    sender.go.set()
    exporter.close(10)
    assert counts == {("dropped_total", "queue_full"): 2, ("exported_total",): 3}


@pytest.mark.parametrize(("make", "scheme"), [(grpc_backend, "grpc"), (http_backend, "http")])
def test_a_backend_that_comes_back_gets_what_the_queue_held_and_the_rest_is_counted(
    make: Callable[[int], AbstractContextManager[Backend]],
    scheme: str,
    counts: Counts,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    port = free_port()
    path = "/v1/traces" if scheme == "http" else ""
    exporter = TraceExporter(
        trace_sender(f"{scheme}://127.0.0.1:{port}{path}", {}), count=counts, version="1", queue=100
    )
    try:
        for n in range(250):
            exporter.add(turn(n))
        deadline = time.monotonic() + 30
        while exporter.trouble is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert str(port) in exporter.trouble
        assert counts == {("dropped_total", "queue_full"): 150}
        with make(port) as backend:
            assert backend.wait(100) == [turn(n).turn_id for n in range(100)]
            exporter.add(turn(300))
            assert backend.wait(101)[-1] == turn(300).turn_id
            exporter.close(10)
    finally:
        exporter.close(0)
    assert counts == {("dropped_total", "queue_full"): 150, ("exported_total",): 101}
    assert exporter.trouble is None
    assert [r.getMessage() for r in caplog.records].count("turn traces are taken again") == 1


@pytest.mark.parametrize("scheme", ["grpcs", "https"])
def test_tls_to_a_backend_that_has_none_is_named_and_tried_again(scheme: str) -> None:
    with http_backend() as backend:
        port = backend.endpoint.split(":")[2].split("/")[0]
        path = "/v1/traces" if scheme == "https" else ""
        sender = trace_sender(f"{scheme}://127.0.0.1:{port}{path}", {})
        with pytest.raises(SendLater, match=rf"127\.0\.0\.1:{port}.*WRONG_VERSION_NUMBER"):
            sender.send(ExportTraceServiceRequest())
        sender.close()


def test_an_unreachable_backend_does_not_keep_the_sidecar_from_stopping(counts: Counts) -> None:
    exporter = TraceExporter(trace_sender("http://127.0.0.1:1", {}), count=counts, version="1")
    exporter.add(turn(1))
    exporter.close(10)
    assert counts == {("dropped_total", "stopping"): 1}


def test_a_turn_that_cannot_be_encoded_does_not_stop_the_others(
    counts: Counts, caplog: pytest.LogCaptureFixture
) -> None:
    with grpc_backend() as backend:
        exporter = TraceExporter(trace_sender(backend.endpoint, {}), count=counts, version="1")
        exporter.add(Turn(turn_id="not hex", started_ns=1))
        while not counts:
            threading.Event().wait(0.01)
        exporter.add(turn(1))
        exporter.close(10)
    assert counts == {("dropped_total", "refused"): 1, ("exported_total",): 1}
    assert "turn traces could not be sent" in caplog.text


@pytest.mark.parametrize(
    ("endpoint", "kind"),
    [
        ("http://h:4317", otlp._Grpc),
        ("h:4317", otlp._Grpc),
        ("grpc://h:4318", otlp._Grpc),
        ("https://h:443", otlp._Grpc),
        ("http://[::1]:4317/", otlp._Grpc),
        ("http://h:4318", otlp._Http),
        ("h:4318", otlp._Http),
        ("http://h:6006/v1/traces", otlp._Http),
        ("https://h/api/otel", otlp._Http),
    ],
)
def test_scheme_port_and_path_choose_the_protocol(endpoint: str, kind: type) -> None:
    sender = trace_sender(endpoint, {})
    assert type(sender) is kind
    sender.close()


@pytest.mark.parametrize(
    "endpoint", ["ftp://h", "http://", "", "http://h:port", "http://h:99999", "http://[::1", "http://a b:4317"]
)
def test_what_is_no_endpoint_is_refused_with_an_example(endpoint: str) -> None:
    with pytest.raises(BadEndpoint, match=r"write it like http://127\.0\.0\.1:4317"):
        trace_sender(endpoint, {})


def test_a_password_in_an_endpoint_is_not_shown() -> None:
    with pytest.raises(BadEndpoint) as caught:
        trace_sender("ftp://user:secret@h", {})
    assert "secret" not in str(caught.value)


def test_grpc_sent_to_an_http_port_names_protocol_and_port() -> None:
    with http_backend() as backend:
        port = backend.endpoint.split(":")[2].split("/")[0]
        sender = trace_sender(f"http://127.0.0.1:{port}", {})
        with pytest.raises((SendLater, SendFailed), match=rf"127\.0\.0\.1:{port} answered .* over gRPC"):
            sender.send(ExportTraceServiceRequest())
        sender.close()
