"""Evaluations as log records: what is read of them, and of whom."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from tests.decode.spans import NOON, TRACE, put
from turnscope.decode import evaluations, otlp_json

CANARY = "canary-7d1f"
TOLD = {
    "gen_ai.evaluation.name": "correctness",
    "gen_ai.evaluation.score.label": "pass",
    "gen_ai.evaluation.score.value": 0.9,
    "gen_ai.evaluation.explanation": CANARY,
    "gen_ai.response.id": CANARY,
}


def record(told: dict[str, Any] = TOLD, *, named_by: str = "field", **fields: Any) -> ExportLogsServiceRequest:
    """As an SDK sends it; ``named_by`` the attribute where a collector dropped the field."""
    request = ExportLogsServiceRequest()
    log = (
        request.resource_logs.add()
        .scope_logs.add()
        .log_records.add(
            trace_id=bytes.fromhex(TRACE),
            span_id=(7).to_bytes(8, "big"),
            time_unix_nano=NOON,
            body=AnyValue(string_value=CANARY),
        )
    )
    if named_by == "field":
        log.event_name = "gen_ai.evaluation.result"
    else:
        told = {**told, "event.name": "gen_ai.evaluation.result"}
    put(log.attributes, told)
    for name, value in fields.items():
        setattr(log, name, value)
    return request


@pytest.mark.parametrize("named_by", ["field", "attribute"])
def test_name_label_and_score_are_read_and_nothing_else(named_by: str) -> None:
    (found,) = evaluations.read(record(named_by=named_by))
    assert (found.trace_id, found.span_id, found.started_ns) == (TRACE, f"{7:016x}", NOON)
    assert (found.evaluation_name, found.evaluation_label, found.evaluation_score) == ("correctness", "pass", 0.9)
    assert CANARY.encode() not in msgspec.json.encode(found)


def test_a_label_that_may_hold_content_and_a_score_that_is_none_are_absent() -> None:
    (found,) = evaluations.read(
        record({"gen_ai.evaluation.score.label": f"it said {CANARY}", "gen_ai.evaluation.score.value": "high"})
    )
    assert (found.evaluation_name, found.evaluation_label, found.evaluation_score) == (None, None, None)


@pytest.mark.parametrize(
    "fields",
    [
        {"event_name": "gen_ai.client.inference.operation.details"},
        {"span_id": b""},
        {"trace_id": bytes(16)},
        {"trace_id": b"short"},
        {"time_unix_nano": 0},
        {"time_unix_nano": 2**63},
    ],
)
def test_other_records_and_those_that_name_no_span_or_time_are_nobodys(fields: dict[str, Any]) -> None:
    assert evaluations.read(record(**fields)) == []


def test_the_time_it_was_observed_serves_where_it_tells_no_other() -> None:
    (found,) = evaluations.read(record(time_unix_nano=0, observed_time_unix_nano=NOON + 5))
    assert found.started_ns == NOON + 5


def test_json_is_read_alike() -> None:
    content = {
        "resourceLogs": [
            {
                "scopeLogs": [
                    {
                        "logRecords": [
                            {
                                "eventName": "gen_ai.evaluation.result",
                                "traceId": TRACE,
                                "spanId": f"{7:016X}",
                                "timeUnixNano": str(NOON),
                                "body": {"stringValue": CANARY},
                                "attributes": [
                                    {"key": "gen_ai.evaluation.name", "value": {"stringValue": "correctness"}},
                                    {"key": "gen_ai.evaluation.score.label", "value": {"stringValue": "pass"}},
                                    {"key": "gen_ai.evaluation.score.value", "value": {"doubleValue": 0.9}},
                                ],
                            }
                        ]
                    }
                ]
            }
        ]
    }
    assert evaluations.read(otlp_json.logs(content)) == evaluations.read(record())
