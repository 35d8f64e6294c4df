"""The OTLP/gRPC receiver, through a real server and client."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import LogsServiceStub

from tests.builders import Pair
from turnscope.decode import codec
from turnscope.model import Event
from turnscope.receivers.errors import Unavailable
from turnscope.receivers.grpc_logs import GrpcLogs
from turnscope.receivers.intake import LogsIntake

LIMIT = 64 * 1024
EVENTS = Pair().turn("1")


class Receiver:
    """A running server with what it accepted and counted."""

    def __init__(self) -> None:
        self.accepted: list[Event] = []
        self.counted: Counter[tuple[str, ...]] = Counter()
        self.trouble: Exception | None = None
        self.server = GrpcLogs(LogsIntake(self.accept, self.count, max_bytes=LIMIT), "127.0.0.1:0", max_bytes=LIMIT)
        self.channel = grpc.insecure_channel(f"127.0.0.1:{self.server.port}")

    def accept(self, events: list[Event]) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.accepted += events

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
    assert receiver.counted == {("requests_refused_total", "too_large"): 1}


def test_bytes_that_are_no_request_are_refused_for_good(receiver: Receiver) -> None:
    with pytest.raises(grpc.RpcError, match="not an ExportLogsServiceRequest") as caught:
        receiver.send_bytes(b"\xff\xff")
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert receiver.counted == {("requests_refused_total", "invalid"): 1}


def test_while_the_journal_cannot_be_written_senders_are_asked_to_try_again(receiver: Receiver) -> None:
    receiver.trouble = Unavailable("the journal in /data cannot be written (No space left on device)")
    with pytest.raises(grpc.RpcError, match="No space left") as caught:
        receiver.send(codec.encode(EVENTS, observed_ns=1))
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert receiver.counted == {("requests_refused_total", "unavailable"): 1}


def test_an_error_of_our_own_is_not_asked_for_again(receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    receiver.trouble = ZeroDivisionError()
    with pytest.raises(grpc.RpcError, match="see the sidecar's log") as caught:
        receiver.send(codec.encode(EVENTS, observed_ns=1))
    assert caught.value.code() is grpc.StatusCode.INTERNAL
    assert "ZeroDivisionError" in caplog.text


def test_a_taken_port_is_an_error_and_not_shared(receiver: Receiver) -> None:
    intake = LogsIntake(receiver.accept, receiver.count, max_bytes=LIMIT)
    with pytest.raises(OSError, match=str(receiver.server.port)):
        GrpcLogs(intake, f"127.0.0.1:{receiver.server.port}", max_bytes=LIMIT)
