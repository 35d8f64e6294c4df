"""The OTLP/HTTP receiver, through a real server and client."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from google.protobuf import json_format
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from tests.builders import Pair
from tests.decode.spans import NOON, TRACE, otlp_span, request
from tests.decode.test_evaluations import record
from turnscope.decode import codec, jsonlines
from turnscope.model import AgentSpan, Event
from turnscope.outputs.http import HttpServer
from turnscope.receivers import otlp_http
from turnscope.receivers.errors import Unavailable
from turnscope.receivers.intake import LogsIntake, SpansIntake
from turnscope.receivers.misdirected import Misdirected

LIMIT = 64 * 1024
PROTOBUF = "application/x-protobuf"
JSON = "application/json"
EVENTS = Pair().turn("1")


class Receiver:
    """A running server with what it accepted and counted."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.spans: list[AgentSpan] = []
        self.passed_on: list[tuple[bytes, bool]] = []
        self.counted: Counter[tuple[str, ...]] = Counter()
        self.trouble: Exception | None = None
        self.server = HttpServer("127.0.0.1", 0)
        logs = LogsIntake(self.accept, self.count, max_bytes=LIMIT, accept_evaluations=self.accept_spans)
        traces = SpansIntake(
            self.accept_spans, self.count, max_bytes=LIMIT, pass_on=lambda *given: self.passed_on.append(given)
        )
        self.server.start(otlp_http.app(logs, traces, max_bytes=LIMIT, misdirected=Misdirected(lambda *_: None)))

    def accept(self, events: list[Event]) -> None:
        self.events += events

    def accept_spans(self, spans: list[AgentSpan]) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.spans += spans

    def count(self, metric: str, labels: tuple[str, ...], value: float) -> None:
        self.counted[(metric.removeprefix("turnscope_exporter_"), *labels)] += int(value)

    def post(self, body: bytes, kind: str = PROTOBUF, path: str = "/v1/traces", **headers: str) -> httpx.Response:
        url = f"http://127.0.0.1:{self.server.port}{path}"
        return httpx.post(url, content=body, headers={"Content-Type": kind, **headers}, trust_env=False, timeout=30)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Stopped after the test."""
    running = Receiver()
    yield running
    running.server.stop()


def plain(number: int, **change: Any) -> dict[str, Any]:
    """A span in JSON."""
    span = {
        "traceId": TRACE,
        "spanId": f"{number:016X}",
        "name": "chat",
        "startTimeUnixNano": str(NOON),
        "endTimeUnixNano": NOON + 5,
        "attributes": [
            {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
            {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "9007199254740993"}},
            {"key": "gen_ai.usage.output_tokens", "value": {"intValue": 1199}},
        ],
        "aFieldOfTheFuture": {"deep": [1, 2]},
    }
    return {**span, **change}


def body(*spans: dict[str, Any]) -> bytes:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()


def test_of_three_spans_in_json_the_one_with_a_30_digit_trace_id_is_rejected_and_numbers_are_exact(
    receiver: Receiver,
) -> None:
    answer = receiver.post(gzip.compress(body(plain(1), plain(2, traceId=TRACE[:30]), plain(10))), JSON, **GZIP)
    assert (answer.status_code, answer.headers["content-type"]) == (200, JSON)
    assert answer.json()["partialSuccess"]["rejectedSpans"] == "1"
    assert [(s.span_id, s.input_tokens, s.output_tokens) for s in receiver.spans] == [
        (f"{1:016x}", 9_007_199_254_740_993, 1199),
        (f"{10:016x}", 9_007_199_254_740_993, 1199),
    ]
    assert receiver.counted["spans_rejected_total", "bad_id"] == 1


@pytest.mark.parametrize("field", ["attributes", "status", "events"])
@pytest.mark.parametrize("value", [7, "text", [7]])
def test_a_span_whose_field_has_another_shape_costs_no_other(receiver: Receiver, field: str, value: Any) -> None:
    answer = receiver.post(body(plain(1), plain(2, **{field: value}), plain(3)), JSON)
    assert answer.status_code == 200
    assert [span.span_id for span in receiver.spans] == [f"{1:016x}", f"{3:016x}"]
    assert receiver.counted["spans_rejected_total", "unreadable"] == 1


@pytest.mark.parametrize("junk", [7, "text", None, [], [plain(9)]])
def test_what_is_no_span_among_spans_costs_no_other(receiver: Receiver, junk: Any) -> None:
    answer = receiver.post(body(plain(1), junk, plain(3)), JSON)
    assert answer.json()["partialSuccess"]["rejectedSpans"] == "1"
    assert [span.span_id for span in receiver.spans] == [f"{1:016x}", f"{3:016x}"]


def test_a_span_of_a_clock_that_was_never_set_would_make_its_session_last_for_decades_and_is_rejected(
    receiver: Receiver,
) -> None:
    answer = receiver.post(body(plain(1), plain(2, startTimeUnixNano=5)), JSON)
    assert answer.json()["partialSuccess"]["rejectedSpans"] == "1"
    assert [span.span_id for span in receiver.spans] == [f"{1:016x}"]
    assert receiver.counted["spans_rejected_total", "bad_time"] == 1


def test_half_a_character_in_content_that_is_not_read_costs_nothing(receiver: Receiver) -> None:
    cut = plain(1, attributes=[{"key": "output.value", "value": {"stringValue": "a face: \ud83d"}}])
    named = plain(2, attributes=[{"key": "session.id", "value": {"stringValue": "s \ud83d"}}])
    assert (receiver.post(body(cut, named), JSON).json(), len(receiver.spans)) == ({}, 2)
    assert receiver.spans[1].session_id == "s \ufffd"


GZIP = {"Content-Encoding": "gzip"}


@pytest.mark.parametrize("packed", [False, True])
def test_protobuf_is_answered_in_protobuf(receiver: Receiver, packed: bool) -> None:
    sent = request(otlp_span(1), otlp_span(2)).SerializeToString()
    answer = receiver.post(gzip.compress(sent) if packed else sent, **(GZIP if packed else {}))
    assert (answer.status_code, answer.headers["content-type"]) == (200, PROTOBUF)
    assert not ExportTraceServiceResponse.FromString(answer.content).HasField("partial_success")
    assert len(receiver.spans) == 2
    assert receiver.passed_on == [(sent, False)]


def test_what_is_passed_on_is_what_was_sent_content_and_all(receiver: Receiver) -> None:
    sent = body(plain(1, attributes=[{"key": "gen_ai.input.messages", "value": {"stringValue": "a question"}}]))
    receiver.post(gzip.compress(sent), JSON, **GZIP)
    assert receiver.passed_on == [(sent, True)]
    assert "a question" not in str(receiver.spans)


def test_logs_of_hooks_are_taken_in_both_forms(receiver: Receiver) -> None:
    message = codec.encode(EVENTS, observed_ns=1)
    answer = receiver.post(message.SerializeToString(), path="/v1/logs")
    assert answer.status_code == 200
    assert not ExportLogsServiceResponse.FromString(answer.content).HasField("partial_success")
    assert receiver.post(jsonlines.write(EVENTS, 1), JSON, path="/v1/logs").json() == {}
    assert receiver.events == EVENTS * 2


@pytest.mark.parametrize("empty", [b"{}", b'{"resourceSpans": []}', b'{"resourceSpans": null}'])
def test_an_empty_request_is_a_success(receiver: Receiver, empty: bytes) -> None:
    assert (receiver.post(empty, JSON).status_code, receiver.post(b"").status_code) == (200, 200)


@pytest.mark.parametrize(
    "broken",
    [b"", b"{", b"[]", b"\xff", b'{"resourceSpans": 5}', b'{"resourceSpans": [{"scopeSpans": ["x"]}]}', b"[" * 9999],
)
def test_broken_json_is_answered_400_in_json(receiver: Receiver, broken: bytes) -> None:
    answer = receiver.post(broken, JSON)
    assert (answer.status_code, answer.headers["content-type"]) == (400, JSON)
    assert (answer.json()["code"], "JSON" in answer.json()["message"]) == (3, True)
    assert receiver.counted == {("requests_refused_total", "traces", "invalid"): 1}


def test_broken_protobuf_is_answered_400_in_protobuf(receiver: Receiver) -> None:
    answer = receiver.post(b"\xff\xff")
    assert (answer.status_code, answer.headers["content-type"]) == (400, PROTOBUF)
    assert "ExportTraceServiceRequest" in Status.FromString(answer.content).message


def test_gzip_of_several_members_is_read_to_its_end(receiver: Receiver) -> None:
    sent = body(plain(1), plain(2))
    answer = receiver.post(gzip.compress(sent[:100]) + gzip.compress(sent[100:]), JSON, **GZIP)
    assert (answer.status_code, len(receiver.spans)) == (200, 2)
    first, second = (request(otlp_span(n)).SerializeToString() for n in (3, 4))
    receiver.post(gzip.compress(first) + gzip.compress(second), **GZIP)
    assert [span.span_id for span in receiver.spans[2:]] == [f"{3:016x}", f"{4:016x}"]


def test_members_that_are_small_each_are_too_much_together(receiver: Receiver) -> None:
    assert receiver.post(gzip.compress(b" " * LIMIT) + gzip.compress(b"{}"), JSON, **GZIP).status_code == 413


@pytest.mark.parametrize("cut", [b"no gzip", gzip.compress(b"x" * 1000)[:-9], gzip.compress(b"{}") + b"more"])
def test_broken_gzip_is_answered_400(receiver: Receiver, cut: bytes) -> None:
    assert receiver.post(cut, JSON, **GZIP).status_code == 400


def test_too_much_is_answered_413_also_when_it_comes_packed_small(receiver: Receiver) -> None:
    bomb = gzip.compress(b" " * (100 * 2**20))
    for sent, headers in ((b" " * (LIMIT + 1), {}), (bomb, GZIP), (bomb[: LIMIT - 1], GZIP)):
        answer = receiver.post(sent, JSON, **headers)
        assert answer.status_code == 413
        assert str(LIMIT) in answer.json()["message"]
    assert receiver.counted == {("requests_refused_total", "traces", "too_large"): 3}


def test_ten_megabytes_in_one_attribute_are_answered_413(receiver: Receiver) -> None:
    span = otlp_span(1, {"gen_ai.input.messages": "x" * 10_000_000})
    assert receiver.post(request(span).SerializeToString()).status_code == 413


@pytest.mark.parametrize(("kind", "coding"), [("text/plain", "identity"), (JSON, "br"), ("", "identity")])
def test_other_types_and_encodings_are_answered_415(receiver: Receiver, kind: str, coding: str) -> None:
    assert receiver.post(body(plain(1)), kind, **{"Content-Encoding": coding}).status_code == 415
    assert receiver.counted == {("requests_refused_total", "traces", "unsupported"): 1}


def test_while_the_journal_cannot_be_written_senders_are_told_when_to_try_again(receiver: Receiver) -> None:
    receiver.trouble = Unavailable("the journal is full")
    answer = receiver.post(body(plain(1)), f"{JSON}; charset=utf-8")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert answer.json() == {"code": 14, "message": "the journal is full"}
    assert receiver.passed_on == []


def test_an_error_of_our_own_is_answered_500(receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    receiver.trouble = ZeroDivisionError()
    answer = receiver.post(request(otlp_span()).SerializeToString())
    assert answer.status_code == 500
    assert json_format.MessageToDict(Status.FromString(answer.content))["code"] == 13
    assert "ZeroDivisionError" in caplog.text


def test_an_evaluation_in_a_log_record_is_taken_in_and_what_names_no_span_is_foreign(receiver: Receiver) -> None:
    for told in (record(), record(span_id=b"")):
        assert receiver.post(told.SerializeToString(), path="/v1/logs").status_code == 200
    assert [span.evaluation_name for span in receiver.spans] == ["correctness"]
    assert receiver.counted == {("evaluations_received_total",): 1, ("records_foreign_total",): 1}


def test_an_evaluation_that_cannot_be_journalled_is_asked_for_again(receiver: Receiver) -> None:
    receiver.trouble = Unavailable("the disk is full")
    assert receiver.post(record().SerializeToString(), path="/v1/logs").status_code == 503
    assert ("evaluations_received_total",) not in receiver.counted
