"""OTLP JSON lines of traces."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.decode.imports.sample import lines, read, sample, seconds
from turnscope.cli.inherit import inherited
from turnscope.decode.imports import otlp


def line(*spans: dict[str, Any]) -> str:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]})


def span(**changes: Any) -> dict[str, Any]:
    times = {"startTimeUnixNano": "1791795600000000000", "endTimeUnixNano": "1791795601000000000"}
    return {"traceId": "ab" * 16, "spanId": "cd" * 8, "name": "x", **times, **changes}


def test_a_lines_spans_are_read_as_they_would_be_received() -> None:
    found, report = read(otlp.read, sample("otlp.jsonl"))
    assert [(one.kind, seconds(one), one.timing) for one in found] == [
        ("agent", (0.0, 4.0), "measured"),
        ("model_call", (0.5, 2.5), "measured"),
        ("tool", (2.6, 3.6), "measured"),
        ("model_call", (3.7, 3.9), "measured"),
    ]
    call = found[1]
    assert (call.input_tokens, call.cached_tokens, call.evaluation_label) == (900, 512, "pass")
    assert (report.records, report.other, report.broken) == (4, 1, 0)


@pytest.mark.parametrize(
    "bad",
    [
        "{",
        "[]",
        '{"resourceSpans": 5}',
        '{"resourceSpans": [5]}',
        line(span(traceId="0" * 30)),
        line(span(startTimeUnixNano="0")),
        line(span(startTimeUnixNano="CANARY")),
        line(span(endTimeUnixNano=str(2**63))),
        '{"a":' + "[" * 100_000,
    ],
)
def test_a_broken_line_or_span_is_counted_and_costs_only_itself(bad: str) -> None:
    good = line(span()), line(span(spanId="ef" * 8))
    found, report = read(otlp.read, lines([good[0], bad, good[1]]))
    assert len(found) == 2
    assert [one.number for one in report.named] == [2]
    assert "CANARY" not in report.named[0].why


def test_of_logs_among_the_lines_evaluations_are_taken_with_the_span_that_they_name() -> None:
    told = {
        "eventName": "gen_ai.evaluation.result",
        "traceId": "ab" * 16,
        "spanId": "cd" * 8,
        "timeUnixNano": "1791795602000000000",
        "attributes": [{"key": "gen_ai.evaluation.name", "value": {"stringValue": "correctness"}}],
    }
    logs = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [told]}]}]})
    other = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [{**told, "eventName": "another"}]}]}]})
    for text in ([line(span()), logs, other], [logs, other, line(span())]):
        found, report = read(lambda some, told_of: inherited(otlp.read(some, told_of), told_of), lines(text))
        rows = {row.span_key: row for row in found}
        assert [row.evaluation_name for row in rows.values()] == ["correctness"]
        assert (report.other, report.broken) == (2, 0)


def test_spans_that_no_session_is_found_for_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    def imported(*told: dict[str, Any]) -> tuple[list[str | None], list[str]]:
        found, report = read(
            lambda some, told_of: inherited(otlp.read(some, told_of), told_of), lines([*map(line, told)])
        )
        rows = {row.span_key: row for row in found}
        return [rows[key].session_id for key in sorted(rows)], report.notes

    tools = [{"attributes": [{"key": "gen_ai.tool.name", "value": {"stringValue": "x"}}], "parentSpanId": "ff" * 8}] * 3
    below = [span(spanId=f"{n:016x}", **told) for n, told in enumerate(tools, 1)]
    root = span(spanId="ff" * 8, attributes=[{"key": "session.id", "value": {"stringValue": "s"}}])
    assert imported(*below, root) == (["s"] * 4, [])
    sessions, (note,) = imported(*below)
    assert (sessions, note.split(":")[0]) == (
        [None] * 3,
        "3 spans of model calls, tools and agents belong to no session, and no list shows them",
    )
    monkeypatch.setattr("turnscope.cli.inherit.REMEMBERED", 2)
    monkeypatch.setattr("turnscope.cli.inherit.AT_ONCE", 1)
    sessions, (note,) = imported(*below, root)
    assert (sessions, note.split(" ")[0]) == ([None] * 3 + ["s"], "3")
