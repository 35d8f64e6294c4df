"""Dynamo's request traces, ``dynamo.request.trace.v1`` and the older ``dynamo.agent.trace.v1``: JSON lines.

Each request is told whole by its ``request_end``, each tool by its ``tool_end`` or ``tool_error``; times are the
frontend's own measurements. A line may be wrapped as ``{timestamp, event}``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from turnscope.decode.imports.report import BadRecord, Line, Report
from turnscope.decode.imports.values import count, decoder, in_time, is_object, ms_to_ns, span_id, trace_id
from turnscope.model import AgentSpan
from turnscope.semconv import SpanKind, Timing, bounded

NAME: Final = "dynamo"
SCHEMAS: Final = ("dynamo.request.trace.v1", "dynamo.agent.trace.v1")
_FAILED: Final = frozenset({"error", "failed", "cancelled", "canceled", "timeout"})
_SUCCEEDED: Final = frozenset({"succeeded", "ok", "success"})


class _Context(msgspec.Struct):
    session_id: str | None = None
    parent_session_id: str | None = None
    program_id: str | None = None
    """The same in ``dynamo.agent.trace.v1``."""
    parent_program_id: str | None = None


class _Finish(msgspec.Struct):
    finish_reason: msgspec.Raw = msgspec.Raw(b"null")
    tool_calls: list[msgspec.Raw] = []


class _Request(msgspec.Struct):
    request_id: str | None = None
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    request_received_ms: int | float | None = None
    ttft_ms: float | None = None
    total_time_ms: float | None = None
    finish_reason_metadata: _Finish | None = None


class _Tool(msgspec.Struct):
    tool_call_id: str | None = None
    tool_class: str | None = None
    started_at_unix_ms: int | float | None = None
    ended_at_unix_ms: int | float | None = None
    duration_ms: float | None = None
    status: str | None = None
    error_type: str | None = None


class _Record(msgspec.Struct):
    schema: str | None = None
    event_type: str | None = None
    event_time_unix_ms: int | float | None = None
    agent_context: _Context | None = None
    request: _Request | None = None
    tool: _Tool | None = None
    event: msgspec.Raw = msgspec.Raw(b"null")
    """The record itself, where the line is an envelope."""


_record = decoder(_Record)
_word = decoder(str)


def read(lines: Iterable[Line], report: Report) -> Iterator[AgentSpan]:
    """The spans in a trace file. A broken line is counted in ``report`` and costs nothing but itself."""
    for line in lines:
        report.records += 1
        try:
            record = _record(line.text)
            if record.schema is None and is_object(record.event):
                record = _record(record.event)
            if record.schema not in SCHEMAS:
                raise BadRecord("JSON, but not a record of this kind")
            if record.event_type == "request_end":
                yield _call(record)
            elif record.event_type in ("tool_end", "tool_error"):
                yield _tool(record)
            else:
                report.other += 1
        except BadRecord as error:
            report.refuse(line.number, str(error))


def _call(record: _Record) -> AgentSpan:
    request = record.request
    if request is None or not request.request_id:
        raise BadRecord("a request without an id")
    took_ns = ms_to_ns(request.total_time_ms)
    started_ns = _moment(request.request_received_ms)
    if started_ns is None:
        raise BadRecord("a request without a time")
    span = _span(record, SpanKind.MODEL_CALL, request.request_id, started_ns)
    span.ended_ns = in_time(started_ns + took_ns) if took_ns is not None else None
    span.timing = Timing.MEASURED if took_ns is not None else Timing.UNKNOWN
    first_ns = ms_to_ns(request.ttft_ms)
    span.time_to_first_token_ns = first_ns if first_ns is not None and first_ns <= (took_ns or first_ns) else None
    span.model = bounded(request.model) if request.model else None
    span.input_tokens, span.output_tokens = count(request.input_tokens), count(request.output_tokens)
    span.cached_tokens = count(request.cached_tokens)
    if request.finish_reason_metadata is not None:
        span.tool_calls = len(request.finish_reason_metadata.tool_calls)
        span.finish_reason = _text(request.finish_reason_metadata.finish_reason)
    return span


def _tool(record: _Record) -> AgentSpan:
    tool = record.tool
    if tool is None or not tool.tool_call_id:
        raise BadRecord("a tool without an id")
    took_ns = ms_to_ns(tool.duration_ms)
    started_ns = _moment(tool.started_at_unix_ms)
    ended_ns = _moment(tool.ended_at_unix_ms)
    if started_ns is None and took_ns is not None:
        end_ns = ended_ns if ended_ns is not None else _moment(record.event_time_unix_ms)
        started_ns = in_time(end_ns - took_ns) if end_ns is not None else None
    if ended_ns is None and started_ns is not None and took_ns is not None:
        ended_ns = in_time(started_ns + took_ns)
    at_ns = started_ns if started_ns is not None else _moment(record.event_time_unix_ms)
    if at_ns is None:
        raise BadRecord("a tool without a time")
    span = _span(record, SpanKind.TOOL, tool.tool_call_id, at_ns)
    known = started_ns is not None and ended_ns is not None and ended_ns >= started_ns
    span.ended_ns, span.timing = (ended_ns, Timing.MEASURED) if known else (None, Timing.UNKNOWN)
    span.tool_call_id = bounded(tool.tool_call_id)
    span.tool_name = bounded(tool.tool_class) if tool.tool_class else None
    if record.event_type == "tool_error" or tool.status in _FAILED:
        span.status, span.error_type = "error", bounded(tool.error_type or tool.status or "error")
    elif tool.status in _SUCCEEDED:
        span.status = "ok"
    return span


def _span(record: _Record, kind: SpanKind, key: str, started_ns: int) -> AgentSpan:
    context = record.agent_context or _Context()
    session = context.session_id or context.program_id
    parent = context.parent_session_id or context.parent_program_id
    # Requests of no session have a trace of their own each.
    trace = trace_id(NAME, session) if session else trace_id(NAME, "", key)
    span = span_id(kind, key)
    return AgentSpan(
        span_key=f"{trace}-{span}",
        trace_id=trace,
        span_id=span,
        session_id=bounded(session) if session else None,
        session_source="agent_context" if session else None,
        parent_session_id=bounded(parent) if parent else None,
        kind=kind,
        classified_by="event_type",
        source=NAME,
        service_name=NAME,
        started_ns=started_ns,
    )


def _moment(ms: int | float | None) -> int | None:
    """Unix milliseconds as nanoseconds. Raises BadRecord for what is no time."""
    if ms is None:
        return None
    ns = ms_to_ns(ms)
    if ns is None:
        raise BadRecord("a time out of range")
    return in_time(ns)


def _text(raw: msgspec.Raw) -> str | None:
    """A finish reason, if it is a plain word."""
    try:
        return bounded(_word(raw))
    except BadRecord:
        return None
