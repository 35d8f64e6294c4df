"""OTLP JSON lines: one export request a line, of logs or of traces, as collectors' file exporters write them."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from turnscope.decode import codec, otlp_json, span_record
from turnscope.decode.otlp_json import NotOtlp
from turnscope.model import AgentSpan, Event

__all__ = ["NotOtlp", "Request", "observed_ns", "read", "read_any", "write", "write_spans"]

Request = ExportLogsServiceRequest | ExportTraceServiceRequest
_IDS: Final = ("traceId", "spanId", "parentSpanId")
_OTHER_SIGNALS: Final = frozenset({"resourceMetrics", "resourceProfiles"})


def write(events: Iterable[Event], observed_ns: int) -> bytes:
    """``events`` as one line; ``observed_ns`` is when they arrived."""
    return _line(codec.encode(events, observed_ns=observed_ns), "resourceLogs", "scopeLogs", "logRecords")


def write_spans(spans: Iterable[AgentSpan]) -> bytes:
    """``spans`` as one line."""
    return _line(span_record.encode(spans), "resourceSpans", "scopeSpans", "spans")


def _line(message: Request, *levels: str) -> bytes:
    line = json_format.MessageToDict(message, use_integers_for_enums=True)
    holders: list[dict[str, Any]] = [line]
    for level in levels:
        holders = [inner for holder in holders for inner in holder.get(level, ())]
    for record in holders:
        for key in record.keys() & set(_IDS):
            record[key] = base64.b64decode(record[key]).hex()
    return msgspec.json.encode(line) + b"\n"


def read(line: bytes) -> ExportLogsServiceRequest:
    """The log records in ``line``; empty for another signal's. Raises ``NotOtlp``.

    A record whose ids are not hex of the right length keeps everything but that id: no event needs it.
    """
    found = read_any(line)
    return found if isinstance(found, ExportLogsServiceRequest) else ExportLogsServiceRequest()


def read_any(line: bytes) -> Request:
    """The log records or the spans in ``line``; no log records for another signal's. Raises ``NotOtlp``."""
    content = otlp_json.parse(line)
    if "resourceLogs" in content:
        return otlp_json.logs(content)
    if "resourceSpans" in content:
        return otlp_json.span_request(content)
    if content.keys() & _OTHER_SIGNALS:
        return ExportLogsServiceRequest()
    raise NotOtlp("JSON, but not OTLP: there is no resourceLogs or resourceSpans in it")


def observed_ns(request: Request) -> int | None:
    """When the request's records were observed (else: happened), or its spans ended, the latest; None when nothing
    says."""
    if isinstance(request, ExportTraceServiceRequest):
        spans = (span for block in request.resource_spans for scope in block.scope_spans for span in scope.spans)
        return max((span.end_time_unix_nano for span in spans), default=0) or None
    times = [
        record.observed_time_unix_nano or record.time_unix_nano
        for block in request.resource_logs
        for scope in block.scope_logs
        for record in scope.log_records
    ]
    return max(times, default=0) or None
