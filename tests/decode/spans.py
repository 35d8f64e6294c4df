"""OTLP spans for tests, as an SDK would send them."""

from __future__ import annotations

from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

NOON = 1_700_000_000_000_000_000
SECOND = 1_000_000_000
TRACE = "0af7651916cd43dd8448eb211c80319c"


def put(out: Any, attributes: dict[str, Any]) -> None:
    """Each as the type that it has."""
    for key, value in attributes.items():
        item: KeyValue = out.add(key=key)
        if isinstance(value, bool):
            item.value.bool_value = value
        elif isinstance(value, int):
            item.value.int_value = value
        elif isinstance(value, float):
            item.value.double_value = value
        elif isinstance(value, list):
            for text in value:
                item.value.array_value.values.add().string_value = text
        else:
            item.value.string_value = value


def otlp_span(
    number: int = 1,
    attributes: dict[str, Any] | None = None,
    *,
    name: str = "chat",
    trace_id: str = TRACE,
    parent: int | None = None,
    start_s: float = 0,
    end_s: float | None = 1,
    events: tuple[tuple[str, dict[str, Any]], ...] = (),
) -> Span:
    """Span ``number`` of a trace; its parent by number."""
    span = Span(
        trace_id=bytes.fromhex(trace_id),
        span_id=number.to_bytes(8, "big"),
        parent_span_id=parent.to_bytes(8, "big") if parent is not None else b"",
        name=name,
        start_time_unix_nano=NOON + int(start_s * SECOND),
        end_time_unix_nano=0 if end_s is None else NOON + int(end_s * SECOND),
    )
    put(span.attributes, attributes or {})
    for event_name, told in events:
        put(span.events.add(name=event_name, time_unix_nano=NOON + SECOND // 2).attributes, told)
    return span


def request(*spans: Span, resource: dict[str, Any] | None = None) -> ExportTraceServiceRequest:
    """One export request of one resource."""
    found = ExportTraceServiceRequest()
    block = found.resource_spans.add()
    put(block.resource.attributes, resource or {})
    block.scope_spans.add().spans.extend(spans)
    return found
