"""The time law: whatever is told of a session, its parts are disjoint and sum to its wall time, to the nanosecond."""

from __future__ import annotations

from itertools import pairwise, permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnscope.measures.partition import clip, partition, sums
from turnscope.model import AgentSpan, Segment, Turn
from turnscope.semconv import Part, Reason, SpanKind, Status

ids = st.sampled_from("abcdefgh")
moments = st.integers(0, 60) | st.integers(-3, 10_000)
some_ns = st.none() | st.integers(-5, 60)


@st.composite
def turns(draw: Any) -> Turn:
    start = draw(moments)
    ended = draw(st.none() | st.integers(-5, 60))
    return Turn(
        turn_id=draw(ids),
        revision=draw(st.integers(1, 3)),
        started_ns=start,
        ended_ns=None if ended is None else start + ended,
        duration_ns=draw(some_ns),
        ttft_ns=draw(some_ns),
        **{
            f"ttft_{part}_ns": draw(some_ns)
            for part in ("proxy", "queue", "fetch", "prefill", "handoff", "first_step", "unattributed")
        },
        prefill_queue_ns=draw(some_ns),
        decode_ns=draw(some_ns),
        handoff_ns=draw(some_ns),
        output_tokens=draw(st.none() | st.integers(0, 5)),
        has_attempt=draw(st.booleans()),
        streamed=draw(st.none() | st.booleans()),
        tool_calls=draw(st.none() | st.integers(0, 2)),
        last_role=draw(st.sampled_from([None, "user", "tool", "assistant"])),
        finish_reason=draw(st.sampled_from([None, "stop", "tool_calls"])),
        status=draw(st.sampled_from(list(Status))),
        reason=draw(st.sampled_from(list(Reason))),
        previous_turn_id=draw(st.none() | ids),
        retry_of=draw(st.none() | ids),
        agent_id=draw(st.sampled_from([None, "main", "sub"])),
        caller_trace_id=draw(st.sampled_from([None, "1", "2"])),
        caller_span_id=draw(st.none() | ids),
        server_trace_id=draw(st.sampled_from([None, "1"])),
        server_span_id=draw(st.none() | ids),
    )


@st.composite
def spans(draw: Any) -> AgentSpan:
    trace, span, start = draw(st.sampled_from("12")), draw(ids), draw(moments)
    ended = draw(st.none() | st.integers(-5, 80))
    return AgentSpan(
        span_key=f"{trace}-{span}",
        trace_id=trace,
        span_id=span,
        parent_span_id=draw(st.none() | ids),
        revision=draw(st.integers(1, 3)),
        kind=draw(st.sampled_from(list(SpanKind))),
        host=draw(st.sampled_from([None, "x", "y"])),
        started_ns=start,
        ended_ns=None if ended is None else start + ended,
        time_to_first_token_ns=draw(some_ns),
        tool_calls=draw(st.none() | st.integers(0, 2)),
        status=draw(st.sampled_from(["ok", "error", "unset"])),
    )


def newest(rows: list[Any], key: str) -> list[Any]:
    """Of rows with the same key and revision, one: which of two different ones is the truth nobody can know."""
    return list({(getattr(row, key), row.revision): row for row in rows}.values())


@pytest.mark.timeout(600)
@settings(max_examples=5000, deadline=None)
@given(st.lists(turns(), max_size=4), st.lists(spans(), max_size=6), st.randoms(use_true_random=False))
def test_parts_are_disjoint_sum_to_wall_time_and_do_not_depend_on_any_order(
    some_turns: list[Turn], some_spans: list[AgentSpan], random: Any
) -> None:
    some_turns, some_spans = newest(some_turns, "turn_id"), newest(some_spans, "span_key")
    cut = partition(some_turns, some_spans)
    for one, two in pairwise(cut):
        assert one.end_ns == two.start_ns
    assert all(segment.start_ns < segment.end_ns for segment in cut)
    wall = cut[-1].end_ns - cut[0].start_ns if cut else 0
    assert sum(sums(cut).values()) == wall
    random.shuffle(some_turns)
    random.shuffle(some_spans)
    assert partition(some_turns, some_spans) == cut
    if cut:
        a, b = sorted(random.randint(cut[0].start_ns - 2, cut[-1].end_ns + 2) for _ in "ab")
        inside = max(0, min(b, cut[-1].end_ns) - max(a, cut[0].start_ns))
        assert sum(sums(clip(cut, a, b)).values()) == inside


@settings(max_examples=500, deadline=None)
@given(st.lists(spans(), min_size=3, max_size=3))
def test_all_six_orders_of_three_spans_give_the_same_session(three: list[AgentSpan]) -> None:
    three = newest(three, "span_key")
    found: list[list[Segment]] = [partition([], list(order)) for order in permutations(three)]
    assert all(cut == found[0] for cut in found)


@settings(max_examples=500, deadline=None)
@given(st.lists(turns(), max_size=6))
def test_a_session_ends_where_the_last_thing_known_of_it_ends(some: list[Turn]) -> None:
    some = [turn for turn in newest(some, "turn_id") if turn.ended_ns is not None]
    best = {turn.turn_id: turn for turn in sorted(some, key=lambda turn: turn.revision)}
    cut = partition(some, [])
    begin = min((turn.started_ns for turn in best.values()), default=0)
    end = max((max(turn.started_ns, turn.ended_ns or 0) for turn in best.values()), default=0)
    assert sum(sums(cut).values()) == end - begin
    assert Part.APPLICATION_WORK not in sums(cut) or any(turn.retry_of or turn.tool_calls for turn in some)
