"""Spans passed on to the user's own backend."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from turnscope.outputs import outbox
from turnscope.outputs.otlp import SendFailed, SendLater
from turnscope.outputs.passing_on import PassingOn


class Backend:
    """Keeps what it is sent; ``troubles`` are raised first, and nothing is taken while ``open`` is not set."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.troubles: list[Exception] = []
        self.open = threading.Event()
        self.open.set()
        self.closed = False

    def send(self, request: ExportTraceServiceRequest) -> tuple[int, str]:
        raise NotImplementedError

    def send_bytes(self, body: bytes) -> tuple[int, str]:
        self.open.wait(30)
        if self.troubles:
            raise self.troubles.pop(0)
        self.sent.append(body)
        return 0, ""

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def counted() -> Counter[tuple[str, ...]]:
    return Counter()


def made(backend: Backend, counted: Counter[tuple[str, ...]], **options: int) -> PassingOn:
    def count(metric: str, labels: tuple[str, ...], value: float) -> None:
        counted[(metric.removeprefix("turnscope_exporter_span_requests_"), *labels)] += int(value)

    return PassingOn(backend, lambda body: b"protobuf of " + body, count=count, **options)


def eventually(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_requests_are_sent_on_in_their_order_as_they_were_and_json_as_protobuf(
    counted: Counter[tuple[str, ...]],
) -> None:
    backend = Backend()
    out = made(backend, counted)
    out.add(b"one", False)
    out.add(b"two", True)
    out.close(30)
    assert backend.sent == [b"one", b"protobuf of two"]
    assert (counted, backend.closed) == ({("passed_on_total",): 2}, True)


def test_a_backend_that_is_away_is_tried_again_and_a_refusal_costs_one_request(
    counted: Counter[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "_FIRST_PAUSE_S", 0.01)
    backend = Backend()
    backend.troubles = [SendLater("away"), SendFailed("no"), ZeroDivisionError("ours")]
    out = made(backend, counted)
    for body in (b"refused", b"ours", b"taken"):
        out.add(body, False)
    eventually(lambda: backend.sent)
    out.close(30)
    assert backend.sent == [b"taken"]
    assert counted == {("not_passed_on_total", "refused"): 2, ("passed_on_total",): 1}
    assert out.trouble is None


def test_a_full_queue_drops_the_newest_without_waiting(counted: Counter[tuple[str, ...]]) -> None:
    backend = Backend()
    backend.open.clear()
    out = made(backend, counted, queue_bytes=10)
    started = time.monotonic()
    for body in (b"12345", b"67890", b"x"):
        out.add(body, False)
    assert time.monotonic() - started < 5
    assert counted == {("not_passed_on_total", "queue_full"): 1}
    backend.open.set()
    out.close(30)
    assert backend.sent == [b"12345", b"67890"]


def test_what_is_left_when_the_sidecar_stops_is_counted(counted: Counter[tuple[str, ...]]) -> None:
    backend = Backend()
    backend.troubles = [SendLater("away")] * 99
    out = made(backend, counted)
    out.add(b"one", False)
    out.add(b"two", False)
    eventually(lambda: out.trouble)
    out.close(5)
    assert counted == {("not_passed_on_total", "stopping"): 2}
