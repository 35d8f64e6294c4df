"""Dynamo's request traces."""

from __future__ import annotations

from typing import Any

import pytest

from tests.decode.imports.sample import MS, NINE_NS, lines, read, sample, seconds
from turnscope.decode.imports import dynamo
from turnscope.model import AgentSpan
from turnscope.semconv import SpanKind


def spans(kind: SpanKind) -> list[AgentSpan]:
    return [span for span in read(dynamo.read, sample("dynamo.jsonl"))[0] if span.kind == kind]


def request(**fields: Any) -> dict[str, Any]:
    whole = {"request_id": "r", "request_received_ms": NINE_NS // MS, "total_time_ms": 10.0, **fields}
    return {"schema": "dynamo.request.trace.v1", "event_type": "request_end", "request": whole}


def test_a_request_is_a_measured_model_call() -> None:
    call = spans(SpanKind.MODEL_CALL)[0]
    assert (seconds(call), call.timing, call.model) == ((0.0, 2.5005), "measured", "model-d")
    assert (call.input_tokens, call.cached_tokens, call.output_tokens) == (4096, 3584, 64)
    assert call.time_to_first_token_ns == 192.75 * MS
    assert (call.tool_calls, call.finish_reason) == (1, "tool_calls")
    assert (call.session_id, call.parent_session_id) == ("run-42:researcher", "run-42:planner")


def test_a_received_time_in_whole_milliseconds_is_exact() -> None:
    (call,) = read(dynamo.read, lines([request(request_received_ms=1_791_795_600_123)]))[0]
    assert call.started_ns == 1_791_795_600_123 * MS


def test_a_request_that_tells_no_duration_has_none() -> None:
    call = spans(SpanKind.MODEL_CALL)[1]
    assert (call.ended_ns, call.timing, call.session_id, call.input_tokens) == (None, "unknown", None, None)


def test_the_older_schema_names_the_session_a_program() -> None:
    call = spans(SpanKind.MODEL_CALL)[2]
    assert (call.session_id, call.parent_session_id, seconds(call)) == (
        "run-41:writer",
        "run-41:planner",
        (8.0, 9.0),
    )


def test_a_tools_time_comes_from_its_times_or_from_its_end_and_duration_or_stays_unknown() -> None:
    timed, failed, bare = spans(SpanKind.TOOL)
    assert (seconds(timed), timed.timing, timed.status) == ((2.6, 4.1), "measured", "ok")
    assert (seconds(failed), failed.status, failed.error_type) == ((4.75, 5.0), "error", "Timeout")
    assert (seconds(bare), bare.timing, bare.status) == ((6.0, None), "unknown", "unset")


@pytest.mark.parametrize(
    "bad",
    [
        {"schema": "dynamo.request.trace.v2", "event_type": "request_end"},
        {**request(), "request": None},
        request(request_id=None),
        request(request_received_ms=None),
        request(request_received_ms=-5),
        request(request_received_ms=1e300),
        request(request_received_ms=9e12),
        request(request_received_ms="now"),
        request(input_tokens=1.5),
        {"schema": "dynamo.request.trace.v1", "event_type": "tool_end", "tool": {"tool_call_id": "t"}},
        {"schema": "dynamo.request.trace.v1", "event_type": "tool_end"},
        "{}",
        '{"event": {"schema": 3}}',
    ],
)
def test_a_broken_record_is_counted_and_costs_only_itself(bad: Any) -> None:
    found, report = read(dynamo.read, lines([request(request_id="a"), bad, request(request_id="b")]))
    assert len(found) == 2
    assert [one.number for one in report.named] == [2]


@pytest.mark.parametrize("field", ["input_tokens", "output_tokens", "cached_tokens"])
def test_a_count_that_cannot_be_is_unknown(field: str) -> None:
    for value in (-1, 2**62):
        (call,) = read(dynamo.read, lines([request(**{field: value})]))[0]
        assert getattr(call, field) is None


def test_a_first_token_after_the_end_is_unknown() -> None:
    (call,) = read(dynamo.read, lines([request(ttft_ms=11.0)]))[0]
    assert call.time_to_first_token_ns is None


def test_what_ai_dynamo_1_6_wrote_is_read_whole() -> None:
    found, report = read(dynamo.read, sample("real/dynamo-1.6.jsonl"))
    assert (report.records, report.broken, report.other) == (3, 0, 0)
    assert [(call.input_tokens, call.cached_tokens, call.output_tokens) for call in found] == [
        (620, 0, 16),
        (620, 576, 16),
        (620, 576, 16),
    ]
    assert {(call.session_id, call.parent_session_id, call.finish_reason) for call in found} == {
        ("sess-real-1", "sess-root", "length")
    }
    assert all(0 < (call.time_to_first_token_ns or 0) < (call.ended_ns or 0) - call.started_ns for call in found)
