"""The OTLP/gRPC receiver of logs and traces, through a real server and client."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import LogsServiceStub
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

from tests.builders import Pair
from tests.decode.spans import otlp_span, request
from turnscope.decode import codec
from turnscope.model import AgentSpan, Event
from turnscope.receivers.errors import Unavailable
from turnscope.receivers.intake import LogsIntake, SpansIntake
from turnscope.receivers.otlp_grpc import OtlpGrpc

LIMIT = 64 * 1024
EVENTS = Pair().turn("1")


class Receiver:
    """A running server with what it accepted and counted."""

    def __init__(self) -> None:
        self.accepted: list[Event] = []
        self.spans: list[AgentSpan] = []
        self.counted: Counter[tuple[str, ...]] = Counter()
        self.trouble: Exception | None = None
        logs = LogsIntake(self.accept, self.count, max_bytes=LIMIT)
        traces = SpansIntake(self.accept_spans, self.count, max_bytes=LIMIT)
        self.server = OtlpGrpc(logs, traces, "127.0.0.1:0", max_bytes=LIMIT)
        self.channel = grpc.insecure_channel(f"127.0.0.1:{self.server.port}")

    def accept(self, events: list[Event]) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.accepted += events

    def accept_spans(self, spans: list[AgentSpan]) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.spans += spans

    def count(self, metric: str, labels: tuple[str, ...], value: float) -> None:
        self.counted[(metric.removeprefix("turnscope_exporter_"), *labels)] += int(value)

    def send(self, request: ExportLogsServiceRequest, **options: Any) -> ExportLogsServiceResponse:
        answer: ExportLogsServiceResponse = LogsServiceStub(self.channel).Export(request, timeout=10, **options)
        return answer

    def send_bytes(self, body: bytes) -> None:
        call = self.channel.unary_unary("/opentelemetry.proto.collector.logs.v1.LogsService/Export")
        call(body, timeout=10)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Stopped after the test."""
    running = Receiver()
    running.server.start()
    yield running
    running.channel.close()
    running.server.stop(0)


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
def test_events_are_accepted_and_counted(receiver: Receiver, compression: grpc.Compression) -> None:
    answer = receiver.send(codec.encode(EVENTS, observed_ns=1), compression=compression)
    assert not answer.HasField("partial_success")
    assert receiver.accepted == EVENTS
    assert receiver.counted == Counter(
        ("records_received_total", e.body.EVENT.removeprefix("turnscope.")) for e in EVENTS
    )


def test_a_record_that_cannot_be_read_is_rejected_and_the_others_are_kept(receiver: Receiver) -> None:
    request = codec.encode(EVENTS, observed_ns=1)
    record = request.resource_logs[0].scope_logs[0].log_records[0]
    del record.attributes[:]
    answer = receiver.send(request)
    assert answer.partial_success.rejected_log_records == 1
    assert (
        answer.partial_success.error_message == f"{record.event_name}: turnscope.seq and turnscope.mono_ns are required"
    )
    assert receiver.accepted == EVENTS[1:]
    assert receiver.counted["records_rejected_total",] == 1


def test_many_rejections_are_explained_briefly(receiver: Receiver) -> None:
    request = codec.encode(Pair().start(), observed_ns=1)
    for n, block in enumerate(request.resource_logs):
        for item in block.scope_logs[0].log_records[0].attributes:
            if item.key == "turnscope.engine.state":
                item.key = "turnscope.engine.wrapped"
            elif item.key == "turnscope.mono_ns":
                item.value.string_value = str(n)
    partial = receiver.send(request).partial_success
    assert partial.rejected_log_records == 5
    assert len(partial.error_message) < 200


def test_records_of_others_are_ignored_without_complaint(receiver: Receiver) -> None:
    request = codec.encode(EVENTS, observed_ns=1)
    record = request.resource_logs[0].scope_logs[0].log_records.add()
    record.body.string_value = "GET /health 200"
    assert not receiver.send(request).HasField("partial_success")
    assert receiver.accepted == EVENTS
    assert receiver.counted["records_foreign_total",] == 1


@pytest.mark.parametrize("size", [LIMIT + 1, 8 * LIMIT])
def test_a_message_beyond_the_limit_is_refused_for_good(receiver: Receiver, size: int) -> None:
    request = codec.encode(EVENTS, observed_ns=1)
    request.resource_logs[0].schema_url = "x" * size
    with pytest.raises(grpc.RpcError) as caught:
        receiver.send(request)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert str(LIMIT) in caught.value.details() or "larger than max" in caught.value.details()
    assert receiver.accepted == []


def test_what_is_refused_for_size_is_counted(receiver: Receiver) -> None:
    with pytest.raises(grpc.RpcError, match="send smaller batches"):
        receiver.send_bytes(b"x" * (LIMIT + 1))
    assert receiver.counted == {("requests_refused_total", "logs", "too_large"): 1}


def test_bytes_that_are_no_request_are_refused_for_good(receiver: Receiver) -> None:
    with pytest.raises(grpc.RpcError, match="not an ExportLogsServiceRequest") as caught:
        receiver.send_bytes(b"\xff\xff")
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert receiver.counted == {("requests_refused_total", "logs", "invalid"): 1}


def test_while_the_journal_cannot_be_written_senders_are_asked_to_try_again(receiver: Receiver) -> None:
    receiver.trouble = Unavailable("the journal in /data cannot be written (No space left on device)")
    with pytest.raises(grpc.RpcError, match="No space left") as caught:
        receiver.send(codec.encode(EVENTS, observed_ns=1))
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert receiver.counted == {("requests_refused_total", "logs", "unavailable"): 1}


def test_an_error_of_our_own_is_not_asked_for_again(receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    receiver.trouble = ZeroDivisionError()
    with pytest.raises(grpc.RpcError, match="see the sidecar's log") as caught:
        receiver.send(codec.encode(EVENTS, observed_ns=1))
    assert caught.value.code() is grpc.StatusCode.INTERNAL
    assert "ZeroDivisionError" in caplog.text


def test_a_taken_port_is_an_error_and_not_shared(receiver: Receiver) -> None:
    logs = LogsIntake(receiver.accept, receiver.count, max_bytes=LIMIT)
    traces = SpansIntake(receiver.accept_spans, receiver.count, max_bytes=LIMIT)
    with pytest.raises(OSError, match=str(receiver.server.port)):
        OtlpGrpc(logs, traces, f"127.0.0.1:{receiver.server.port}", max_bytes=LIMIT)


# --- spans -------------------------------------------------------------------------------------------------
def test_spans_are_accepted_on_the_same_port_and_bad_ones_rejected_one_by_one(receiver: Receiver) -> None:
    bad = otlp_span(2)
    bad.trace_id = bad.trace_id[:15]
    answer = TraceServiceStub(receiver.channel).Export(
        request(otlp_span(1, {"gen_ai.operation.name": "chat"}), bad, otlp_span(3, end_s=-1)), timeout=10
    )
    assert answer.partial_success.rejected_spans == 1
    assert "32 hex digits" in answer.partial_success.error_message
    assert [span.kind for span in receiver.spans] == ["model_call", "other"]
    assert receiver.counted == {
        ("spans_received_total", "model_call"): 1,
        ("spans_received_total", "other"): 1,
        ("spans_rejected_total", "bad_id"): 1,
        ("spans_without_end_total",): 1,
    }


def test_spans_wait_like_events_while_the_journal_cannot_be_written(receiver: Receiver) -> None:
    receiver.trouble = Unavailable("no room")
    with pytest.raises(grpc.RpcError, match="no room") as caught:
        TraceServiceStub(receiver.channel).Export(request(otlp_span()), timeout=10)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert receiver.counted == {("requests_refused_total", "traces", "unavailable"): 1}
