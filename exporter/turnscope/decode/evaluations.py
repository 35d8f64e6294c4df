"""Results of evaluations that come as log records: OpenTelemetry's event ``gen_ai.evaluation.result``.

By its convention the record carries the ids of the span whose work was evaluated. Of it its name, label and score are
read, under the same rules as on a span; never its explanation or body. A record that names no span is nobody's here.
"""

from __future__ import annotations

from collections.abc import Iterator

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from turnscope import semconv
from turnscope.decode import span_table as table
from turnscope.decode.codec import MAX_NS
from turnscope.decode.spans import evaluation, values
from turnscope.model import AgentSpan


def read(request: ExportLogsServiceRequest) -> list[AgentSpan]:
    """What each record tells of its span: one that has nothing but its evaluation (``classified_by``)."""
    return [
        AgentSpan(
            span_key=f"{record.trace_id.hex()}-{record.span_id.hex()}",
            trace_id=record.trace_id.hex(),
            span_id=record.span_id.hex(),
            classified_by=semconv.EVALUATION_RESULT,
            started_ns=_time_ns(record),
            timing="unknown",
            **evaluation(values(record.attributes)),
        )
        for record in _records(request)
    ]


def _records(request: ExportLogsServiceRequest) -> Iterator[LogRecord]:
    for block in request.resource_logs:
        for scope in block.scope_logs:
            yield from (record for record in scope.log_records if _is_result(record) and _has_span(record))


def _is_result(record: LogRecord) -> bool:
    """Some collectors keep an event's name as an attribute only."""
    return table.EVALUATION_EVENT in (
        record.event_name,
        *(item.value.string_value for item in record.attributes if item.key == semconv.EVENT_NAME),
    )


def _has_span(record: LogRecord) -> bool:
    ids = (record.trace_id, 16), (record.span_id, 8)
    return all(len(raw) == length and any(raw) for raw, length in ids) and 0 < _time_ns(record) < MAX_NS


def _time_ns(record: LogRecord) -> int:
    return record.time_unix_nano or record.observed_time_unix_nano
