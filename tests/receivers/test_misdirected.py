"""Clients of other protocols at the port for OTLP over HTTP, as they come: each is told, counted and logged once."""

from __future__ import annotations

import socket
import ssl
from collections import Counter
from collections.abc import Iterator

import grpc
import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

from tests.decode.spans import otlp_span, request
from turnscope.outputs.http import HttpServer
from turnscope.receivers import otlp_http
from turnscope.receivers.intake import LogsIntake, SpansIntake
from turnscope.receivers.misdirected import Misdirected

LIMIT = 64 * 1024


class Port:
    """A running server with what it counted."""

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()
        misdirected = Misdirected(self.count)
        logs = LogsIntake(lambda _: None, lambda *_: None, max_bytes=LIMIT)
        traces = SpansIntake(lambda _: None, lambda *_: None, max_bytes=LIMIT)
        app = otlp_http.app(logs, traces, max_bytes=LIMIT, misdirected=misdirected)
        self.server = HttpServer("127.0.0.1", 0)
        self.server.start(app, misdirected.protocol())
        self.address = f"127.0.0.1:{self.server.port}"

    def count(self, metric: str, labels: tuple[str, ...], value: float) -> None:
        assert metric == "turnscope_exporter_misdirected_total"
        self.counted[labels[0]] += int(value)

    def post(self, path: str) -> httpx.Response:
        sent = request(otlp_span()).SerializeToString()
        headers = {"Content-Type": "application/x-protobuf"}
        return httpx.post(f"http://{self.address}{path}", content=sent, headers=headers, trust_env=False, timeout=30)


@pytest.fixture
def port() -> Iterator[Port]:
    """Stopped after the test."""
    running = Port()
    yield running
    running.server.stop()


def test_an_agent_that_speaks_grpc_to_it_is_counted_and_said_once(port: Port, caplog: pytest.LogCaptureFixture) -> None:
    with grpc.insecure_channel(port.address) as channel, pytest.raises(grpc.RpcError) as error:
        TraceServiceStub(channel).Export(request(otlp_span()), timeout=10)
    assert error.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "Trying to connect an http1.x server" in error.value.details()
    with socket.create_connection(("127.0.0.1", port.server.port), timeout=10) as another:
        another.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert another.recv(100).startswith(b"HTTP/1.1 400")
    assert set(port.counted) == {"grpc"}
    assert port.counted["grpc"] >= 2
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        "nothing can be taken in of what 127.0.0.1 sends: it speaks gRPC, and this is the port for OTLP over HTTP (see "
        "turnscope doctor)"
    ]


def test_an_agent_that_speaks_tls_to_it_is_counted(port: Port, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(httpx.ConnectError, match="WRONG_VERSION_NUMBER"):
        httpx.get(f"https://{port.address}/v1/traces", trust_env=False, timeout=10, verify=ssl.create_default_context())
    assert port.counted == {"tls": 1}
    assert "it speaks TLS" in caplog.text


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/spans"])
def test_a_post_to_another_path_is_counted_and_answered_with_what_to_set(port: Port, path: str) -> None:
    answer = port.post(path)
    assert (answer.status_code, port.counted) == (404, {"path": 1})
    assert "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" in answer.text


def test_metrics_that_come_unasked_are_told_so_and_are_no_mistake(port: Port) -> None:
    answer = port.post("/v1/metrics")
    assert (answer.status_code, port.counted) == (404, {})
    assert "OTEL_METRICS_EXPORTER=none" in answer.text


def test_what_is_sent_as_it_should_be_is_taken_in_and_not_counted(port: Port) -> None:
    assert port.post("/v1/traces").status_code == 200
    assert port.counted == {}
