"""Sessions of a store as an instrumented agent would have sent them to a trace backend: OTLP, OpenInference's names."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from turnscope.model import AgentSpan, Turn

TASK: Final = 5
"""Turns of a task: a trace for each."""


def request(spans: list[Span]) -> bytes:
    """What is posted to ``/v1/traces``."""
    made = ExportTraceServiceRequest()
    made.resource_spans.add().scope_spans.add().spans.extend(spans)
    return made.SerializeToString()


def spans(session_id: str, turns: list[Turn], tools: list[AgentSpan], shift_ns: int) -> Iterator[Span]:
    """A root for each task, its turns as calls of a model, and the tools that ran meanwhile; all of it ``shift_ns``
    later."""
    turns = sorted(turns, key=lambda turn: turn.started_ns)
    for first in range(0, len(turns), TASK):
        task = turns[first : first + TASK]
        trace, root = _id(f"{session_id} {first}", 16), _id(f"{session_id} {first} root", 8)
        until = max(turn.ended_ns or turn.started_ns for turn in task)
        ran = [tool for tool in tools if task[0].started_ns <= tool.started_ns <= until]
        until = max([until, *(tool.ended_ns or 0 for tool in ran)])
        asked = {"input.value": f"Question {first // TASK + 1}", "output.value": f"Answer {first // TASK + 1}"}
        common = {"session.id": session_id}
        for kind, name, span_id, parent, begin, end, facts in (
            ("AGENT", "task", root, b"", task[0].started_ns, until, asked),
            *(
                ("LLM", "chat", _id(turn.turn_id, 8), root, turn.started_ns, turn.ended_ns, _of_turn(turn))
                for turn in task
            ),
            *(
                ("TOOL", tool.tool_name or "tool", _id(tool.span_key, 8), root, tool.started_ns, tool.ended_ns, {})
                for tool in ran
            ),
        ):
            yield Span(
                trace_id=trace,
                span_id=span_id,
                parent_span_id=parent,
                name=name,
                start_time_unix_nano=begin + shift_ns,
                end_time_unix_nano=(end or begin) + shift_ns,
                status=Status(code=Status.STATUS_CODE_OK),
                attributes=[
                    KeyValue(key=key, value=_value(value))
                    for key, value in {"openinference.span.kind": kind, **common, **facts}.items()
                ],
            )


def _of_turn(turn: Turn) -> dict[str, str | int]:
    return {
        "llm.model_name": turn.model or "",
        "llm.token_count.prompt": turn.prompt_tokens or 0,
        "llm.token_count.completion": turn.output_tokens or 0,
        "llm.token_count.total": (turn.prompt_tokens or 0) + (turn.output_tokens or 0),
    }


def _value(value: str | int) -> AnyValue:
    return AnyValue(int_value=value) if isinstance(value, int) else AnyValue(string_value=value)


def _id(text: str, length: int) -> bytes:
    return sha256(text.encode()).digest()[:length]
