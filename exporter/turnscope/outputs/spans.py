"""A turn as one OTLP trace: a root span ``turn`` with its legs and transfers as siblings below it.

A part whose time was not measured has no span; nothing is filled in. A clock that shows a time before 1970 measures
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span, Status

from turnscope import semconv
from turnscope.measures.reuse import reused_tokens
from turnscope.model import Turn, TurnAttempt

MAX_BYTES: Final = 2_048
"""Longest attribute: trace stores cut there."""
MAX_TRACE_BYTES: Final = 65_536
"""Of one turn. Only attempts can be many: those that do not fit are left out, and their number is told."""
_RESERVE: Final = 1_024
"""For what stands around the spans, and for saying that some were left out."""

_GEN_AI: Final = {
    "session_id": semconv.CONVERSATION_ID,
    "agent_id": semconv.AGENT_ID,
    "model": semconv.REQUEST_MODEL,
    "prompt_tokens": semconv.INPUT_TOKENS,
    "output_tokens": semconv.OUTPUT_TOKENS,
}
_AS_SPANS: Final = frozenset(
    {
        "turn_id",
        "attempts_made",
        "started_ns",
        "ended_ns",
        "duration_ns",
        "ttft_ns",
        "finish_reason",
        "prefill_queue_ns",
    }
    | {f"{part}{suffix}" for part in ("prefill", "fetch", "handoff", "decode") for suffix in ("_ns", "_started_ns")}
)
"""Fields that are parts, times or a convention's attribute instead of one of ours. What is linked is an attribute as
well: not every trace store keeps links."""
_OF_ROWS: Final = frozenset({"withdrawn", "part_of"})
"""Fields that a row of the store alone can have: what was shown and withdrawn before it was counted has no trace."""
_PARTS: Final = {
    "prefill": (
        "prefill",
        (
            "prefill_engine",
            "prefill_engine_id",
            "prefill_request_id",
            "recomputed_tokens",
            "new_tokens",
            "rewritten_tokens",
            "local_miss",
        ),
    ),
    "reverse_fetch": (
        "fetch",
        ("fetched_tokens", "suspect_tokens", "mismatch_evidence", "fetched_bytes", "fetch_reads", "used_hold_id"),
    ),
    "handoff": ("handoff", ("handoff_tokens", "handoff_bytes", "handoff_reads")),
    "decode": ("decode", ("decode_engine", "decode_engine_id", "decode_request_id", "left_hold_id")),
}
"""Span name -> prefix of its times in ``Turn``, and the fields repeated on it."""


def encode(turns: Iterable[Turn], *, version: str) -> ExportTraceServiceRequest:
    """One export request with the trace of each turn."""
    request = ExportTraceServiceRequest()
    block = request.resource_spans.add()
    _put(block.resource.attributes, "service.name", "turnscope")
    _put(block.resource.attributes, "service.version", version)
    scope = block.scope_spans.add()
    scope.scope.name, scope.scope.version = semconv.SCOPE, version
    for turn in turns:
        _add_turn(scope, turn)
    return request


def _add_turn(scope: ScopeSpans, turn: Turn) -> None:
    trace_id, before = bytes.fromhex(turn.turn_id), len(scope.spans)
    root = scope.spans.add()
    root.trace_id, root.span_id = trace_id, semconv.span_key(trace_id)
    root.name, root.kind = "turn", Span.SPAN_KIND_INTERNAL
    _put(root.attributes, semconv.TURN_ID, turn.turn_id)
    root.start_time_unix_nano = max(0, turn.started_ns)
    ends = [turn.ended_ns] if turn.ended_ns is not None else []
    if not ends and turn.duration_ns is not None:
        ends.append(turn.started_ns + turn.duration_ns)
    for name in _PARTS:
        ended = _add_part(scope, turn, name, trace_id, root.span_id)
        if ended is not None and turn.ended_ns is None:
            ends.append(ended)
    root.end_time_unix_nano = max([0, turn.started_ns, *ends])
    if not ends:
        _put(root.attributes, "turnscope.turn.end_measured", False)
    _describe(root, turn)
    _link(root, turn)
    room = MAX_TRACE_BYTES - _RESERVE - sum(span.ByteSize() for span in scope.spans[before:])
    for number, attempt in enumerate(turn.attempts_made):
        had = len(scope.spans)
        _add_attempt(scope, turn, attempt, trace_id, root.span_id)
        room -= sum(span.ByteSize() for span in scope.spans[had:])
        if room < 0:
            del scope.spans[had:]
            _put(root.attributes, "turnscope.turn.attempts_left_out", len(turn.attempts_made) - number)
            break


def _add_part(scope: ScopeSpans, turn: Turn, name: str, trace_id: bytes, parent: bytes) -> int | None:
    prefix, fields = _PARTS[name]
    started: int | None = getattr(turn, f"{prefix}_started_ns")
    lasted: int | None = getattr(turn, f"{prefix}_ns")
    if started is None or lasted is None or started < 0:
        return None
    span = scope.spans.add()
    span.trace_id, span.span_id, span.parent_span_id = trace_id, semconv.span_key(trace_id, name), parent
    span.name, span.kind = name, Span.SPAN_KIND_INTERNAL
    span.start_time_unix_nano, span.end_time_unix_nano = started, started + lasted
    _put(span.attributes, semconv.CONVERSATION_ID, turn.session_id)
    for field in fields:
        _put(span.attributes, f"turnscope.turn.{field}", getattr(turn, field))
    if name == "prefill" and turn.prefill_queue_ns is not None:
        _put(span.attributes, "turnscope.prefill.queue_seconds", turn.prefill_queue_ns / 1e9)
    if turn.status == "error" and turn.stage == name:
        span.status.code = Status.STATUS_CODE_ERROR
    return started + lasted


def _add_attempt(scope: ScopeSpans, turn: Turn, attempt: TurnAttempt, trace_id: bytes, parent: bytes) -> None:
    """One attempt of several: of those that were given up there is nothing else in the trace."""
    if attempt.started_ns is None or attempt.duration_ns is None or attempt.started_ns < 0:
        return
    span = scope.spans.add()
    span.trace_id, span.span_id = trace_id, semconv.span_key(trace_id, f"attempt {attempt.number}")
    span.parent_span_id = parent
    span.name, span.kind = "attempt", Span.SPAN_KIND_INTERNAL
    span.start_time_unix_nano, span.end_time_unix_nano = attempt.started_ns, attempt.started_ns + attempt.duration_ns
    _put(span.attributes, semconv.CONVERSATION_ID, turn.session_id)
    for field in msgspec.structs.fields(TurnAttempt):
        if field.name not in ("started_ns", "duration_ns"):
            _put(span.attributes, f"turnscope.attempt.{field.name}", getattr(attempt, field.name))
    if attempt.status in ("error", "stuck"):
        span.status.code = Status.STATUS_CODE_ERROR


def _describe(root: Span, turn: Turn) -> None:
    _put(root.attributes, semconv.OPERATION_NAME, "chat")
    for field in msgspec.structs.fields(Turn):
        if field.name not in _AS_SPANS | _OF_ROWS:
            name, value = field.name, getattr(turn, field.name)
            if name.endswith("_ns"):
                name, value = f"{name.removesuffix('_ns')}_seconds", None if value is None else value / 1e9
            _put(root.attributes, _GEN_AI.get(name, f"turnscope.turn.{name}"), value)
    if turn.finish_reason is not None:
        _put(root.attributes, semconv.FINISH_REASON, [turn.finish_reason])
    if turn.ttft_ns is not None:
        _put(root.attributes, semconv.TIME_TO_FIRST_CHUNK, turn.ttft_ns / 1e9)
    _put(root.attributes, "gen_ai.usage.cache_read.input_tokens", reused_tokens(turn))
    if turn.status in ("error", "stuck"):
        what = "failed" if turn.status == "error" else "stuck"
        root.status.code = Status.STATUS_CODE_ERROR
        root.status.message = f"{what} at {turn.stage}" if turn.stage else what
        _put(root.attributes, "error.type", turn.reason if turn.stage is None else turn.stage)


def _link(root: Span, turn: Turn) -> None:
    """To the proxy's span, the caller's span, the previous turn, and the hold that was offered."""
    _add_link(root, "proxy", _id(turn.server_trace_id, 16), _id(turn.server_span_id, 8))
    _add_link(root, "caller", _id(turn.caller_trace_id, 16), _id(turn.caller_span_id, 8))
    for what, trace_id, part in (
        ("previous_turn", _id(turn.previous_turn_id, 16), "turn"),
        ("hold", _id(turn.used_hold_id, 16), "hold"),
    ):
        _add_link(root, what, trace_id, semconv.span_key(trace_id, part) if trace_id else None)


def _id(text: str | None, length: int) -> bytes | None:
    """Ids come from headers of any content: what is no id gives no link."""
    try:
        raw = bytes.fromhex(text or "")
    except ValueError:
        return None
    return raw if len(raw) == length else None


def _add_link(root: Span, what: str, trace_id: bytes | None, span_id: bytes | None) -> None:
    if trace_id and span_id:
        link = root.links.add()
        link.trace_id, link.span_id = trace_id, span_id
        _put(link.attributes, "turnscope.link", what)


def _put(out: Any, key: str, value: Any) -> None:
    """Nothing for None and empty lists: absent is not zero."""
    if value is None or value == []:
        return
    item = out.add()
    item.key = key
    if isinstance(value, list):
        room = MAX_BYTES
        for text in value:
            room -= len(text.encode()) + 1
            if room < 0:
                break
            item.value.array_value.values.add().string_value = text
    elif isinstance(value, bool):
        item.value.bool_value = value
    elif isinstance(value, int):
        item.value.int_value = value
    elif isinstance(value, float):
        item.value.double_value = value
    else:
        item.value.string_value = value.encode()[:MAX_BYTES].decode(errors="ignore")
