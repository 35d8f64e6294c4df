"""Spans in a recording: what had been read of each, field by field, as OTLP attributes.

``turnscope replay`` sends them again, and they are read back as they were: the content of the original was never there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, get_type_hints

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from turnscope.decode.codec import MAX_INT
from turnscope.decode.span_table import RECORDED
from turnscope.model import AgentSpan
from turnscope.semconv import SCOPE, SpanKind, bounded

_OWN: Final = frozenset(
    {"span_key", "trace_id", "span_id", "parent_span_id", "revision", "started_ns", "ended_ns", "status"}
)
"""Fields of the OTLP span itself; the revision is whoever reads it again's."""
_TYPES: Final = {
    name: next(t for t in (str, float, int) if t.__name__ in str(hint))
    for name, hint in get_type_hints(AgentSpan).items()
    if name not in _OWN
}
_CODES: Final = {"ok": 1, "error": 2}
_KINDS: Final = frozenset(str(kind) for kind in SpanKind)


def encode(spans: Iterable[AgentSpan]) -> ExportTraceServiceRequest:
    """``spans`` as one request."""
    request = ExportTraceServiceRequest()
    block = request.resource_spans.add()
    scope = block.scope_spans.add()
    scope.scope.name = SCOPE
    for span in spans:
        out = scope.spans.add()
        out.trace_id, out.span_id = bytes.fromhex(span.trace_id), bytes.fromhex(span.span_id)
        out.parent_span_id = bytes.fromhex(span.parent_span_id or "")
        out.name = span.name or ""
        out.start_time_unix_nano, out.end_time_unix_nano = span.started_ns, span.ended_ns or 0
        out.status.code = _CODES.get(span.status, 0)
        for name, kind in _TYPES.items():
            value = getattr(span, name)
            if value is None:
                continue
            item = out.attributes.add(key=RECORDED + name)
            if kind is str:
                item.value.string_value = value
            elif kind is int:
                item.value.int_value = value
            else:
                item.value.double_value = value
    return request


def fields(own: dict[str, Any]) -> dict[str, Any] | None:
    """The fields that a recording told, or None for a span of anybody else's."""
    if own.get(f"{RECORDED}kind") not in _KINDS:
        return None
    found: dict[str, Any] = {}
    for name, kind in _TYPES.items():
        value = own.get(RECORDED + name)
        if isinstance(value, str):
            if kind is str:
                found[name] = bounded(value)
        elif isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        elif kind is float:
            found[name] = float(value)
        elif kind is int and isinstance(value, int) and 0 <= value < MAX_INT:
            found[name] = value
    return found
