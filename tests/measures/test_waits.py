"""Without agents' spans: what the time between two turns was, told by the turns around it, and said to be inferred."""

from __future__ import annotations

from typing import Any

import pytest

from tests.measures.session_rows import MS, span, told, turn
from turnscope.measures.partition import partition, sums
from turnscope.model import Turn
from turnscope.semconv import Part, SpanKind


def between(before: dict[str, Any], after: dict[str, Any]) -> str:
    """What the second between two turns is told to be."""
    turns = [turn("a", 0, 100, ttft=50, **before), turn("b", 1100, 1200, ttft=50, previous_turn_id="a", **after)]
    (name,) = [name for name, start, end in told(partition(turns, [])) if (start, end) == (100, 1100)]
    return name


def test_after_an_answer_that_asked_for_tools_until_their_results_come_it_is_tool_wait() -> None:
    assert between({"tool_calls": 2}, {"last_role": "tool"}) == "tool_wait?"


def test_after_a_plain_answer_until_the_user_writes_it_is_user_wait() -> None:
    assert between({"tool_calls": 0}, {"last_role": "user"}) == "user_wait?"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"tool_calls": None, "has_attempt": False}, {"last_role": None, "has_attempt": False}),
        ({"tool_calls": None, "has_attempt": False}, {"last_role": "user"}),
        ({"tool_calls": 1}, {"last_role": "user"}),
        ({"tool_calls": 0}, {"last_role": "assistant"}),
        ({"tool_calls": 0}, {"last_role": "tool"}),
        ({"status": "cancelled"}, {"last_role": "user"}),
        ({"status": "error"}, {"last_role": "user"}),
    ],
)
def test_what_the_turns_do_not_tell_is_unknown(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert between(before, after) == "unknown"


def test_before_the_same_request_is_sent_again_the_application_waits_on_purpose() -> None:
    assert between({"status": "error"}, {"retry_of": "a", "last_role": "user"}) == "application_work?"


def test_until_another_agents_first_request_that_agent_is_the_tool_and_likewise_after_its_answer() -> None:
    turns = [
        turn("a", 0, 100, ttft=50, tool_calls=1, last_role="user"),
        turn("b", 200, 300, ttft=50, agent_id="sub", previous_turn_id="a", last_role="user"),
        turn("c", 400, 500, ttft=50, previous_turn_id="b", last_role="tool"),
    ]
    assert sums(partition(turns, [])) == {
        Part.INPUT_PROCESSING: 150 * MS,
        Part.GENERATION: 150 * MS,
        Part.TOOL_WAIT: 200 * MS,
    }


def test_where_tools_were_seen_to_run_the_rest_of_that_wait_is_the_applications_work() -> None:
    turns = [
        turn("a", 0, 100, ttft=50, tool_calls=1),
        turn("b", 1100, 1200, ttft=50, previous_turn_id="a", last_role="tool"),
    ]
    cut = told(partition(turns, [span("x", SpanKind.TOOL, 200, 1000)]))
    assert cut[2:5] == [("application_work?", 100, 200), ("tool_wait", 200, 1000), ("application_work?", 1000, 1100)]


def test_an_agent_whose_tools_nobody_sees_waits_for_them_after_an_answer_that_asked() -> None:
    turns = [
        turn("a", 100, 200, ttft=50, tool_calls=1, last_role="user"),
        turn("b", 700, 800, ttft=50, previous_turn_id="a", last_role="tool"),
    ]
    assert told(partition(turns, [span("g", SpanKind.AGENT, 0, 900)])) == [
        ("application_work", 0, 100),
        ("input_processing/unattributed", 100, 150),
        ("generation", 150, 200),
        ("tool_wait?", 200, 700),
        ("input_processing/unattributed", 700, 750),
        ("generation", 750, 800),
        ("application_work", 800, 900),
    ]


def test_model_calls_that_only_spans_tell_of_are_taken_by_their_traces() -> None:
    first = [
        span("a", SpanKind.MODEL_CALL, 0, 100, tool_calls=1),
        span("b", SpanKind.MODEL_CALL, 300, 400, tool_calls=0),
    ]
    second = span("c", SpanKind.MODEL_CALL, 900, 1000, trace="2" * 32)
    cut = partition([], [*first, second])
    assert [name for name, _, _ in told(cut)] == [
        "unknown/model_call",
        "tool_wait?",
        "unknown/model_call",
        "user_wait?",
        "unknown/model_call",
    ]


def whole(**fields: Any) -> list[tuple[str, int, int]]:
    values: dict[str, Any] = {"streamed": False, "ttft_proxy_ns": 10 * MS, "ttft_prefill_ns": 90 * MS}
    return told(partition([turn("a", 0, 1000, ttft=1000, **{**values, **fields})], []))


def test_an_answer_that_is_not_streamed_is_divided_by_what_its_engine_needed_for_each_token() -> None:
    assert whole(decode_ns=820 * MS, ttft_handoff_ns=20 * MS, output_tokens=80) == [
        ("input_processing/proxy", 0, 10),
        ("input_processing/prefill", 10, 100),
        ("input_processing/handoff", 100, 120),
        ("input_processing/first_step?", 120, 130),
        ("input_processing/unattributed?", 130, 210),
        ("generation?", 210, 1000),
    ]


def test_an_answer_that_is_not_streamed_by_an_engine_that_nobody_hears_is_unknown() -> None:
    assert whole() == [("unknown/model_call", 0, 1000)]


def test_a_turn_that_only_engines_saw_is_divided_by_their_durations() -> None:
    seen = Turn(
        turn_id="a",
        started_ns=turn("a", 0, 0).started_ns,
        ended_ns=turn("a", 0, 1000).ended_ns,
        prefill_queue_ns=100 * MS,
        decode_ns=520 * MS,
        handoff_ns=20 * MS,
        output_tokens=50,
    )
    assert told(partition([seen], [])) == [
        ("input_processing/queue", 0, 100),
        ("input_processing/handoff", 100, 120),
        ("input_processing/first_step?", 120, 130),
        ("input_processing/unattributed?", 130, 510),
        ("generation?", 510, 1000),
    ]


def test_a_turn_that_failed_before_its_first_byte_was_waited_for_all_the_time() -> None:
    cut = told(partition([turn("a", 0, 100, status="error")], []))
    assert cut == [("input_processing/unattributed", 0, 100)]
