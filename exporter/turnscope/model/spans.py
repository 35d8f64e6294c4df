"""Spans of agents: what an application's own OpenTelemetry SDK, or an importer, tells of a session."""

from __future__ import annotations

import msgspec


class AgentSpan(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """One span of an agent, as stored: a row of the ``spans`` table. Holds no content of prompts, answers or tools.

    Its identity is (trace_id, span_id). Times are Unix nanoseconds by the clock of the host that the agent ran on.
    """

    span_key: str
    """``<trace_id>-<span_id>``."""
    trace_id: str
    """32 hex digits."""
    span_id: str
    """16 hex digits."""
    parent_span_id: str | None = None
    revision: int = 1
    session_id: str | None = None
    """Its own, else its parent's, else the one that its trace agrees on."""
    session_source: str | None = None
    """The attribute it came from; ``parent`` or ``trace`` where it was inherited."""
    parent_session_id: str | None = None
    """The session that started this one."""
    kind: str = "other"
    """``model_call, tool, retrieval, agent, user_wait, other``."""
    classified_by: str | None = None
    """The attribute, or the name, that decided; None of ``other``."""
    source: str = "otlp"
    """``otlp``, or the importer's name."""
    name: str | None = None
    """The span's name, cut; None where it may hold content."""
    service_name: str | None = None
    service_version: str | None = None
    deployment: str | None = None
    host: str | None = None
    agent_name: str | None = None
    agent_id: str | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    model: str | None = None
    """The one that answered, else the one that was asked for."""
    started_ns: int
    ended_ns: int | None = None
    """None where the source does not tell; never before ``started_ns``."""
    timing: str = "measured"
    """``measured`` around the operation itself; ``inferred`` from when the lines of a log were written, an upper bound;
    ``unknown``: it is only known to have stood there, and ``ended_ns`` is None."""
    time_to_first_token_ns: int | None = None
    input_tokens: int | None = None
    """All prompt tokens, cached ones included."""
    cached_tokens: int | None = None
    """The part of them read from a cache, as the model's provider reported it."""
    output_tokens: int | None = None
    tool_calls: int | None = None
    """How many tools a model call's answer asked for."""
    finish_reason: str | None = None
    status: str = "unset"
    """``ok, error, unset``."""
    error_type: str | None = None
    evaluation_name: str | None = None
    """Of a ``gen_ai.evaluation.*`` result on this span."""
    evaluation_label: str | None = None
    evaluation_score: float | None = None
