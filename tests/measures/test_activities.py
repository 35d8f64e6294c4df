"""What ran in a session, for those who draw it."""

from __future__ import annotations

import itertools

from tests.measures.scripted import scripted
from tests.measures.session_rows import MS, T0, span, turn
from turnscope.measures.activities import activities
from turnscope.semconv import Part, SpanKind


def test_what_runs_at_once_is_all_there_each_with_the_agent_that_started_it() -> None:
    found = activities(
        [turn("a", 10, 100, ttft=30, caller_trace_id="0" * 31 + "1", caller_span_id="call")],
        [
            span("desk", SpanKind.AGENT, 0, 500, agent_name="desk"),
            span("sub", SpanKind.AGENT, 200, 400, "desk", agent_name="critic"),
            span("call", SpanKind.MODEL_CALL, 5, 105, "desk", model="m"),
            span("other", SpanKind.MODEL_CALL, 210, 300, "sub", model="m", time_to_first_token_ns=20 * MS),
            span("find", SpanKind.TOOL, 120, 400, "desk", tool_name="find", status="error"),
            span("http", SpanKind.OTHER, 130, 140, "find"),
        ],
    )
    told = [(a.kind, a.name, a.agent, (a.start_ns - T0) // MS, (a.end_ns - T0) // MS, a.failed) for a in found]
    assert told == [
        (SpanKind.AGENT, "desk", None, 0, 500, False),
        (SpanKind.MODEL_CALL, None, "desk", 10, 100, False),
        (SpanKind.TOOL, "find", "desk", 120, 400, True),
        (SpanKind.AGENT, "critic", "desk", 200, 400, False),
        (SpanKind.MODEL_CALL, "m", "critic", 210, 300, False),
    ]


def test_a_model_call_has_its_own_time_from_its_begin_to_its_end_without_gaps() -> None:
    (call,) = activities([turn("a", 10, 100, ttft=30)], [])
    assert [(s.part, (s.start_ns - T0) // MS, (s.end_ns - T0) // MS) for s in call.slices] == [
        (Part.INPUT_PROCESSING, 10, 40),
        (Part.GENERATION, 40, 100),
    ]


def test_every_turn_and_tool_of_a_scripted_session_is_one_activity() -> None:
    told = scripted(3)
    found = activities(told.turns, told.spans)
    assert [a.turn_id for a in found if a.turn_id] == [
        t.turn_id for t in sorted(told.turns, key=lambda t: t.started_ns)
    ]
    tools = [s for s in told.spans if s.kind in (SpanKind.TOOL, SpanKind.RETRIEVAL)]
    assert sum(a.kind in (SpanKind.TOOL, SpanKind.RETRIEVAL) for a in found) == len(tools)
    for activity in found:
        ends = [(s.start_ns, s.end_ns) for s in activity.slices]
        assert all(left[1] == right[0] for left, right in itertools.pairwise(ends))


def test_of_nothing_nothing_ran() -> None:
    assert activities([], []) == []
