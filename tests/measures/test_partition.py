"""A session's time in disjoint parts: who is waited for, whatever overlaps, nests, is late, missing or skewed."""

from __future__ import annotations

import time
from itertools import permutations

import pytest

from tests.measures.session_rows import MS, T0, span, told, turn
from turnscope.measures.partition import clip, partition, sums
from turnscope.semconv import Part, SpanKind

AGENT, CALL, TOOL = SpanKind.AGENT, SpanKind.MODEL_CALL, SpanKind.TOOL


def test_a_model_calls_time_is_its_turns_and_what_the_client_needed_around_it() -> None:
    call = span("c", CALL, 100, 1000, "a")
    mine = turn("t", 110, 980, ttft=300, caller_trace_id=call.trace_id, caller_span_id="c")
    assert told(partition([mine], [span("a", AGENT, 0, 1200), call])) == [
        ("application_work", 0, 100),
        ("input_processing/client", 100, 110),
        ("input_processing/unattributed", 110, 410),
        ("generation", 410, 980),
        ("generation/client", 980, 1000),
        ("application_work", 1000, 1200),
    ]


def test_the_parts_of_input_processing_are_those_of_the_time_to_first_token() -> None:
    parts = {
        "ttft_proxy_ns": 10 * MS,
        "ttft_queue_ns": 20 * MS,
        "ttft_fetch_ns": 30 * MS,
        "ttft_prefill_ns": 40 * MS,
        "ttft_handoff_ns": 50 * MS,
        "ttft_first_step_ns": 60 * MS,
        "ttft_unattributed_ns": 90 * MS,
    }
    cut = told(partition([turn("t", 0, 1000, ttft=300, **parts)], []))
    assert cut == [
        ("input_processing/proxy", 0, 10),
        ("input_processing/queue", 10, 30),
        ("input_processing/reverse_fetch", 30, 60),
        ("input_processing/prefill", 60, 100),
        ("input_processing/handoff", 100, 150),
        ("input_processing/first_step", 150, 210),
        ("input_processing/unattributed", 210, 300),
        ("generation", 300, 1000),
    ]


def test_parallel_tools_are_waited_for_once_as_long_as_the_longest_runs() -> None:
    spans = [span("a", AGENT, 0, 100), span("x", TOOL, 10, 60, "a"), span("y", TOOL, 20, 90, "a")]
    assert told(partition([], spans)) == [
        ("application_work", 0, 10),
        ("tool_wait", 10, 20),
        ("tool_wait", 20, 90),
        ("application_work", 90, 100),
    ]


def test_a_tool_that_calls_a_model_waits_for_the_model_as_long_as_that_takes() -> None:
    spans = [span("x", TOOL, 0, 100), span("c", CALL, 20, 80, "x", time_to_first_token_ns=10 * MS)]
    assert told(partition([], spans)) == [
        ("tool_wait", 0, 20),
        ("input_processing/unattributed", 20, 30),
        ("generation", 30, 80),
        ("tool_wait", 80, 100),
    ]


def test_of_a_subagent_beside_a_tool_the_branch_that_ends_last_is_waited_for_with_all_that_is_in_it() -> None:
    branch = [span("b", AGENT, 0, 100, "a"), span("c", CALL, 0, 40, "b", time_to_first_token_ns=40 * MS)]
    spans = [span("a", AGENT, 0, 100), span("x", TOOL, 0, 80, "a"), *branch, span("y", TOOL, 50, 100, "b")]
    assert told(partition([], spans)) == [
        ("input_processing/unattributed", 0, 40),
        ("application_work", 40, 50),
        ("tool_wait", 50, 100),
    ]


def test_a_short_model_call_beside_a_long_tool_takes_no_time_of_its_own() -> None:
    spans = [span("a", AGENT, 0, 100), span("x", TOOL, 0, 100, "a"), span("c", CALL, 10, 40, "a")]
    assert told(partition([], spans)) == [("tool_wait", 0, 100)]


def test_a_retrieval_is_a_named_part_of_tool_wait() -> None:
    cut = partition([], [span("r", SpanKind.RETRIEVAL, 0, 100)])
    assert told(cut) == [("tool_wait/retrieval", 0, 100)]


def test_a_retried_turn_is_one_of_two_calls_and_the_pause_between_them_is_the_clients() -> None:
    call = span("c", CALL, 0, 1000)
    link = {"caller_trace_id": call.trace_id, "caller_span_id": "c"}
    failed = turn("t1", 10, 200, status="error", **link)
    again = turn("t2", 400, 980, ttft=100, **link)
    assert told(partition([failed, again], [call])) == [
        ("input_processing/client", 0, 10),
        ("input_processing/unattributed", 10, 200),
        ("input_processing/client", 200, 400),
        ("input_processing/unattributed", 400, 500),
        ("generation", 500, 980),
        ("generation/client", 980, 1000),
    ]


def test_a_span_whose_parent_is_missing_is_taken_to_be_in_what_encloses_it() -> None:
    spans = [span("a", AGENT, 0, 100), span("x", TOOL, 10, 90, "a"), span("c", CALL, 20, 80, "lost")]
    cut = told(partition([], spans))
    assert cut[2] == ("unknown/model_call", 20, 80)
    assert [name for name, _, _ in cut] == [
        "application_work",
        "tool_wait",
        "unknown/model_call",
        "tool_wait",
        "application_work",
    ]


def test_turns_without_a_callers_trace_are_placed_in_the_calls_that_enclose_them_one_in_each() -> None:
    spans = [span("a", AGENT, 0, 100), span("c", CALL, 0, 100, "a"), span("d", CALL, 1, 99, "a")]
    turns = [turn("t", 2, 97, ttft=10), turn("u", 2, 98, ttft=20)]
    assert Part.UNKNOWN not in sums(partition(turns, spans))


def test_a_host_whose_clock_is_seconds_off_is_moved_so_that_its_calls_enclose_their_turns() -> None:
    late = 5000
    spans = [
        span("a", AGENT, late, late + 1000, host="agents"),
        span("c", CALL, late + 100, late + 500, "a", host="agents"),
        span("x", TOOL, late + 500, late + 900, "a", host="agents"),
    ]
    mine = turn("t", 110, 490, ttft=100, caller_trace_id=spans[0].trace_id, caller_span_id="c")
    assert told(partition([mine], spans)) == [
        ("application_work", 0, 100),
        ("input_processing/client", 100, 110),
        ("input_processing/unattributed", 110, 210),
        ("generation", 210, 490),
        ("generation/client", 490, 500),
        ("tool_wait", 500, 900),
        ("application_work", 900, 1000),
    ]


def test_a_span_that_ends_before_it_starts_takes_no_time() -> None:
    spans = [span("a", AGENT, 0, 100), span("x", TOOL, 50, 20, "a")]
    assert sums(partition([], spans)) == {Part.APPLICATION_WORK: 100 * MS}


def test_a_span_without_an_end_ends_with_what_it_started() -> None:
    spans = [span("a", AGENT, 0, None), span("x", TOOL, 20, 80, "a")]
    assert told(partition([], spans)) == [("application_work", 0, 20), ("tool_wait", 20, 80)]


def test_what_outlives_the_span_that_started_it_is_still_seen() -> None:
    spans = [span("h", SpanKind.OTHER, 0, 10), span("a", AGENT, 5, 100, "h"), span("x", TOOL, 20, 80, "a")]
    assert sums(partition([], spans))[Part.TOOL_WAIT] == 60 * MS


def test_what_begins_only_after_the_span_that_started_it_has_ended_is_seen_where_it_was() -> None:
    spans = [span("a", AGENT, 0, 10), span("x", TOOL, 40, 100, "a")]
    assert told(partition([], spans)) == [("application_work", 0, 10), ("unknown", 10, 40), ("tool_wait", 40, 100)]


def test_spans_linked_in_a_circle_are_taken_as_if_they_had_no_links() -> None:
    spans = [span("a", AGENT, 0, 100, "b"), span("b", TOOL, 20, 80, "a")]
    assert sums(partition([], spans)) == {Part.APPLICATION_WORK: 40 * MS, Part.TOOL_WAIT: 60 * MS}


def test_times_that_come_from_a_logs_lines_are_inferred() -> None:
    spans = [
        span("x", TOOL, 0, 10, timing="inferred"),
        span("c", CALL, 10, 30, time_to_first_token_ns=5 * MS, timing="inferred"),
        span("u", TOOL, 30, None, timing="unknown"),
    ]
    assert told(partition([], spans)) == [
        ("tool_wait?", 0, 10),
        ("input_processing/unattributed?", 10, 15),
        ("generation?", 15, 30),
    ]


def test_spans_of_a_library_that_say_nothing_hide_no_tool() -> None:
    spans = [span("a", AGENT, 0, 100), span("x", TOOL, 0, 50, "a"), span("h", SpanKind.OTHER, 0, 90, "a")]
    assert sums(partition([], spans)) == {Part.TOOL_WAIT: 50 * MS, Part.APPLICATION_WORK: 50 * MS}


def test_waiting_for_a_persons_consent_in_a_tool_is_user_wait() -> None:
    spans = [span("x", TOOL, 0, 100), span("u", SpanKind.USER_WAIT, 10, 60, "x")]
    assert sums(partition([], spans)) == {Part.TOOL_WAIT: 50 * MS, Part.USER_WAIT: 50 * MS}


def test_a_kind_of_span_that_only_a_newer_turnscope_knows_is_taken_as_another() -> None:
    newer = span("n", AGENT, 20, 60, "a")
    newer.kind = "guardrail"
    assert sums(partition([], [span("a", AGENT, 0, 100), newer])) == {Part.APPLICATION_WORK: 100 * MS}


def test_a_session_of_one_span_is_that_span() -> None:
    assert told(partition([], [span("x", TOOL, 5, 6)])) == [("tool_wait", 5, 6)]


def test_a_session_that_lasted_no_time_has_no_segments() -> None:
    assert partition([], []) == []
    assert partition([turn("t", 5, 5)], []) == []


def test_the_newest_revision_counts_and_only_that() -> None:
    old, new = turn("t", 0, 50, ttft=10), turn("t", 0, 100, ttft=40, revision=2)
    assert partition([old, new], []) == partition([new, old], []) == partition([new], [])


def test_all_six_orders_in_which_three_spans_can_come_give_the_same_session() -> None:
    spans = [span("a", AGENT, 0, 100), span("x", TOOL, 10, 60, "a"), span("c", CALL, 20, 90, "x")]
    assert len({tuple(told(partition([], list(order)))) for order in permutations(spans)}) == 1


def test_a_part_of_a_session_is_cut_out_to_the_nanosecond() -> None:
    cut = partition([turn("t", 0, 100, ttft=40)], [])
    assert told(clip(cut, T0 + 30 * MS, T0 + 50 * MS)) == [
        ("input_processing/unattributed", 30, 40),
        ("generation", 40, 50),
    ]


@pytest.mark.parametrize("instrumented", [False, True])
def test_four_thousand_turns_are_cut_in_a_fraction_of_a_second(instrumented: bool) -> None:
    turns = [
        turn(f"{n}", n * 100, n * 100 + 90, ttft=30, tool_calls=1, last_role="tool", ttft_prefill_ns=20 * MS)
        for n in range(4000)
    ]
    spans = []
    if instrumented:
        spans = [span(f"{n:016x}", TOOL, n * 100 + 90, n * 100 + 99) for n in range(4000)]
    partition(turns[:100], spans[:100])
    best = min(_seconds(turns, spans) for _ in range(3))
    assert best < (0.8 if instrumented else 0.4)


def _seconds(turns: list, spans: list) -> float:  # type: ignore[type-arg]
    begin = time.perf_counter()
    partition(turns, spans)
    return time.perf_counter() - begin
