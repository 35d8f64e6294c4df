"""What is judged of the scripted agent's sessions: parts by all spans, and by the proxy alone."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from live.agent import Session
from live.agent_verdict import judge
from tests.store.rows import NOON, span, turn
from turnscope.model import AgentSpan, Turn
from turnscope.semconv import Part

MS = 1_000_000
"""One task: the user asks, the model asks for a tool, the tool runs, the model answers."""


def session(**changes: Any) -> Session:
    """As the agent timed itself."""
    parts = Counter(
        {
            Part.INPUT_PROCESSING: 200 * MS,
            Part.GENERATION: 300 * MS,
            Part.TOOL_WAIT: 400 * MS,
            Part.APPLICATION_WORK: 100 * MS,
        }
    )
    values: dict[str, Any] = {
        "session_id": "s1",
        "configuration": "x",
        "seed": 0,
        "started_ns": NOON,
        "ended_ns": NOON + 1000 * MS,
        "parts": parts,
        "between_calls_ns": 450 * MS,
        "model_calls": 2,
        "tools": 1,
        "tasks": 1,
    }
    return Session(**{**values, **changes})


def at(ms: int) -> int:
    return NOON + ms * MS


def known() -> tuple[list[Turn], list[AgentSpan]]:
    """As it is stored of that: 50 ms of work before the first call and after the tool."""
    calls = [
        turn(1, started_ns=at(50), ended_ns=at(300), ttft_ns=100 * MS, tool_calls=1, last_role="user", streamed=True),
        turn(2, started_ns=at(750), ended_ns=at(1000), ttft_ns=100 * MS, tool_calls=0, last_role="tool", streamed=True,
             previous_turn_id=f"{1:032x}"),
    ]  # fmt: skip
    for call in calls:
        call.status, call.finish_reason = "ok", "tool_calls" if call.tool_calls else "stop"
    spans = [
        span(1, kind="agent", started_ns=at(0), ended_ns=at(1000)),
        span(2, kind="tool", parent_span_id=f"{1:016x}", started_ns=at(300), ended_ns=at(700)),
    ]
    return calls, spans


def test_a_session_told_as_the_agent_timed_it_is_right() -> None:
    assert judge([session()], {"s1": known()}) == []


@pytest.mark.parametrize("part", [Part.INPUT_PROCESSING, Part.GENERATION, Part.TOOL_WAIT, Part.APPLICATION_WORK])
def test_a_part_that_is_off_by_more_than_is_allowed_is_named(part: Part) -> None:
    true = session()
    true.parts[part] += 30 * MS
    (sentence, *_) = judge([true], {"s1": known()})
    assert sentence.startswith(f"s1: {part} was ")


def test_twenty_milliseconds_are_near_enough() -> None:
    true = session()
    true.parts[Part.GENERATION] += 19 * MS
    assert judge([true], {"s1": known()}) == []


def test_a_tool_wait_by_the_proxy_alone_is_at_most_what_was_between_the_calls() -> None:
    (sentence,) = judge([session(between_calls_ns=380 * MS)], {"s1": known()})
    assert sentence == "s1: tool_wait was 400.0 to 420.0 ms, and is told as 450.0 by the proxy alone"


def test_a_session_without_spans_or_turns_is_named() -> None:
    turns, spans = known()
    assert judge([session()], {"s1": (turns, [])}) == ["s1: 2 turns and 0 spans are stored of it"]
    assert judge([session()], {"s1": ([], spans)}) == ["s1: 0 turns and 2 spans are stored of it"]
    assert judge([session()], {}) == ["s1: 0 turns and 0 spans are stored of it"]


def test_tasks_and_tools_are_counted() -> None:
    out = judge([session(tasks=2, tools=3)], {"s1": known()})
    assert out == [
        "s1: its 2 tasks were completed, and are told as ['completed']",
        "s1: 3 tools ran, and [1] are told",
    ]
