"""Tasks: where they begin and end, how they ended, and what came of a session on the whole."""

from __future__ import annotations

from typing import Any

import pytest

from tests.measures.session_rows import MS, span, turn
from turnscope.measures.sessions import Session, summarise
from turnscope.model import AgentSpan, SessionSummary, Turn
from turnscope.semconv import Part, SpanKind


def session(turns: list[Turn], spans: list[AgentSpan] | None = None) -> Session:
    found = summarise("s", turns, spans or [])
    assert found is not None
    return found


def outcomes(*turns: Turn) -> list[str]:
    return [task.outcome for task in session(list(turns)).summary.tasks]


def asked(name: str, start: int, role: str = "user", **more: Any) -> Turn:
    """A turn of 100 ms that asks for a tool."""
    return turn(name, start, start + 100, **{"ttft": 40, "tool_calls": 1, "last_role": role, **more})


def answered(name: str, start: int, role: str = "tool", **more: Any) -> Turn:
    """A turn of 100 ms that does not."""
    return turn(name, start, start + 100, **{"ttft": 40, "tool_calls": 0, "last_role": role, **more})


def test_a_task_goes_from_the_users_message_to_the_first_answer_that_asks_for_no_tool() -> None:
    turns = [asked("a", 0, prompt_tokens=500, turn_index=1), asked("b", 300, "tool"), answered("c", 600)]
    (task,) = session(turns).summary.tasks
    assert (task.outcome, task.latency_ns, task.first_token_ns) == ("completed", 700 * MS, 40 * MS)
    assert (task.turns, task.tools, task.tools_evidence, task.turn_index, task.context_tokens) == (
        3,
        2,
        "inferred",
        1,
        500,
    )
    assert task.tool_wait_ns == 400 * MS


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ([answered("a", 0, "user"), answered("b", 500, "user")], ["completed", "completed"]),
        ([asked("a", 0), answered("b", 500, "user")], ["abandoned", "completed"]),
        ([asked("a", 0), asked("b", 500, "tool", status="cancelled")], ["abandoned"]),
        ([asked("a", 0), asked("b", 500, "tool", status="error", tool_calls=None)], ["failed"]),
        ([asked("a", 0), turn("b", 500, 600, status="stuck", last_role="tool")], ["failed"]),
        ([asked("a", 0)], ["unknown"]),
        ([turn("a", 0, 9, last_role="user", status="error"), answered("b", 20, "user", retry_of="a")], ["completed"]),
        ([answered("a", 0, "user", tool_calls=None, finish_reason="tool_calls"), answered("b", 500)], ["completed"]),
        ([answered("a", 0, None)], []),
    ],
)
def test_a_task_ends_as_its_last_turn_tells(turns: list[Turn], expected: list[str]) -> None:
    assert outcomes(*turns) == expected


def test_a_subagents_turns_belong_to_the_task_that_started_it() -> None:
    turns = [asked("a", 0), answered("b", 200, "user", agent_id="sub"), answered("c", 400)]
    (task,) = session(turns).summary.tasks
    assert (task.turns, task.outcome, task.latency_ns) == (3, "completed", 500 * MS)


def test_an_agents_span_around_a_task_tells_its_begin_and_end_better() -> None:
    spans = [span("r", SpanKind.AGENT, 100, 700), span("x", SpanKind.TOOL, 310, 390, "r", status="error")]
    (task,) = session([asked("a", 200), answered("b", 400)], spans).summary.tasks
    assert (task.latency_ns, task.first_token_ns) == (600 * MS, 140 * MS)
    assert (task.tools, task.tools_evidence, task.errors) == (1, "measured", 1)
    assert task.application_work_ns == (600 - 200 - 80) * MS


def test_without_turns_agents_outermost_spans_are_the_tasks() -> None:
    spans = [
        span("r", SpanKind.AGENT, 0, 100),
        span("i", SpanKind.AGENT, 10, 90, "r"),
        span("c", SpanKind.MODEL_CALL, 20, 80, "i", time_to_first_token_ns=5 * MS),
        span("q", SpanKind.AGENT, 200, 300, status="error"),
    ]
    one, two = session([], spans).summary.tasks
    assert (one.outcome, one.first_token_ns, one.turns, one.latency_ns) == ("completed", 25 * MS, 1, 100 * MS)
    assert (two.outcome, two.latency_ns) == ("failed", None)


def test_evaluations_that_spans_carry_stand_beside_the_outcome() -> None:
    spans = [span("e", SpanKind.OTHER, 50, 51, evaluation_name="relevance", evaluation_label="pass")]
    summary = session([answered("a", 0, "user")], spans).summary
    assert [(e.name, e.label) for e in summary.tasks[0].evaluations] == [("relevance", "pass")]
    assert len(summary.evaluations) == 1


def test_a_summary_names_who_took_part() -> None:
    spans = [
        span("a", SpanKind.AGENT, 0, 100, service_name="shop", service_version="2", agent_name="buyer", model="m"),
        span("c", SpanKind.MODEL_CALL, 10, 20, "a", deployment="prod"),
    ]
    summary = session([answered("t", 30, "user", model="tiny", agent_id="main")], spans).summary
    assert (summary.applications, summary.agents, summary.models) == (["shop 2"], ["buyer", "main"], ["m", "tiny"])
    assert (summary.deployments, summary.sources, summary.model_calls) == (["prod"], ["otlp", "proxy"], 1)


def test_the_parts_of_a_summary_sum_to_its_wall_time_and_its_inputs_parts_to_input_processing() -> None:
    spans = [span("r", SpanKind.RETRIEVAL, 100, 300)]
    one = session([asked("a", 0, ttft_prefill_ns=10 * MS), answered("b", 400)], spans).summary
    assert sum(getattr(one, f"{part}_ns") for part in Part) == one.wall_ns == 500 * MS
    fields = [
        name for name in SessionSummary.__struct_fields__ if name.startswith("input_") and name != "input_processing_ns"
    ]
    assert sum(getattr(one, name) for name in fields) == one.input_processing_ns == 80 * MS
    assert one.retrieval_ns == one.tool_wait_ns == 200 * MS


def test_of_nothing_there_is_no_summary() -> None:
    assert summarise("s", [], []) is None


def test_a_summary_of_ten_thousand_short_tasks_is_made_in_seconds() -> None:
    turns = [answered(f"{n}", 200 * n, "user") for n in range(10_000)]
    assert len(session(turns, [span("x", SpanKind.TOOL, 0, 1)]).summary.tasks) == 10_000
