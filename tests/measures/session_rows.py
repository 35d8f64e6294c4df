"""Turns and spans of a session, placed by milliseconds since its begin."""

from __future__ import annotations

from typing import Any

from turnscope.model import AgentSpan, Segment, Turn
from turnscope.semconv import SpanKind

MS = 1_000_000
T0 = 1_796_040_000_000 * MS
TRACE = "0" * 31 + "1"


def turn(name: str, start: int, end: int, *, ttft: int | None = None, **more: Any) -> Turn:
    """A streamed turn that the proxy saw, from ``start`` to ``end`` ms, its first token ``ttft`` ms after its start."""
    values: dict[str, Any] = {
        "session_id": "s",
        "started_ns": T0 + start * MS,
        "ended_ns": T0 + end * MS,
        "duration_ns": (end - start) * MS,
        "ttft_ns": None if ttft is None else ttft * MS,
        "ttft_unattributed_ns": None if ttft is None else ttft * MS,
        "has_attempt": True,
        "streamed": True,
        "tool_calls": 0,
    }
    return Turn(turn_id=name, **{**values, **more})


def span(
    name: str, kind: SpanKind, start: int, end: int | None, parent: str | None = None, trace: str = TRACE, **more: Any
) -> AgentSpan:
    """A span from ``start`` to ``end`` ms."""
    values: dict[str, Any] = {
        "span_key": f"{trace}-{name}",
        "trace_id": trace,
        "span_id": name,
        "parent_span_id": parent,
        "session_id": "s",
        "kind": kind,
        "started_ns": T0 + start * MS,
        "ended_ns": None if end is None else T0 + end * MS,
    }
    return AgentSpan(**{**values, **more})


def told(segments: list[Segment]) -> list[tuple[str, int, int]]:
    """(part, or ``part/detail``, with a ``?`` where it is inferred; from; to) in ms."""
    out = []
    for s in segments:
        name = s.part + (f"/{s.detail}" if s.detail else "") + ("?" if s.evidence == "inferred" else "")
        out.append((name, (s.start_ns - T0) // MS, (s.end_ns - T0) // MS))
    return out
