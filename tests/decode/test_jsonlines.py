"""OTLP JSON lines: what we write, and what others write."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.builders import Pair
from turnscope import semconv
from turnscope.decode import codec, jsonlines
from turnscope.model import Request

EVENTS = Pair().start() + Pair().turn("1")


def changed(change: dict[str, Any]) -> dict[str, Any]:
    """A line with one request event, whose record is updated by ``change``."""
    event = next(e for e in EVENTS if isinstance(e.body, Request))
    line: dict[str, Any] = json.loads(jsonlines.write([event], 5))
    line["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0].update(change)
    return line


def read(line: dict[str, Any]) -> codec.Decoded:
    return codec.decode(jsonlines.read(json.dumps(line).encode()))


def test_events_survive_the_round_trip_through_one_line() -> None:
    line = jsonlines.write(EVENTS, 5)
    assert line.count(b"\n") == 1
    assert codec.decode(jsonlines.read(line)).events == EVENTS


def test_ids_are_hex_and_long_integers_are_strings() -> None:
    record = changed({})["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]
    assert record["traceId"] == semconv.turn_key("p", "p1").hex()
    assert record["timeUnixNano"] == "1700000000400000000"
    assert {"key": "turnscope.seq", "value": {"intValue": "1"}} in record["attributes"]


@pytest.mark.parametrize("value", ["9007199254740993", 9007199254740993])
def test_integers_are_exact_as_strings_and_as_numbers(value: object) -> None:
    line = changed({})
    for item in line["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]["attributes"]:
        if item["key"] == semconv.INPUT_TOKENS:
            item["value"] = {"intValue": value}
    body = read(line).events[0].body
    assert isinstance(body, Request)
    assert body.input_tokens == 9_007_199_254_740_993


@pytest.mark.parametrize(
    "change",
    [
        {"someFieldOfTheFuture": {"a": [1]}},
        {"traceId": semconv.turn_key("p", "p1").hex().upper()},
        {"traceId": "12345"},
        {"traceId": "0" * 30},
        {"spanId": "not hex"},
        {"traceId": None},
        {"severityNumber": 9, "severityText": "INFO"},
    ],
)
def test_what_we_do_not_need_may_be_unknown_or_broken(change: dict[str, Any]) -> None:
    decoded = read(changed(change))
    assert len(decoded.events) == 1
    assert decoded.rejected == []


def test_lines_of_other_signals_hold_nothing_for_us() -> None:
    assert codec.decode(jsonlines.read(b'{"resourceSpans": []}')).events == []


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"hello", "not JSON"),
        (b'{"resourceLogs": [', "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[]", "it is no object"),
        (b'{"a": 1}', "no resourceLogs"),
        (b'{"resourceLogs": 5}', "not OTLP logs"),
        (b'{"resourceLogs": [{"scopeLogs": [{"logRecords": ["x"]}]}]}', "not OTLP logs"),
        (b'{"resourceLogs": [{"scopeLogs": [{"logRecords": [{"timeUnixNano": "soon"}]}]}]}', "not OTLP logs"),
    ],
)
def test_a_line_that_is_not_otlp_says_why(line: bytes, why: str) -> None:
    with pytest.raises(jsonlines.NotOtlp, match=why):
        jsonlines.read(line)


def test_a_line_knows_when_it_was_observed() -> None:
    assert jsonlines.observed_ns(jsonlines.read(jsonlines.write(EVENTS, 5))) == 5
    assert jsonlines.observed_ns(jsonlines.read(jsonlines.write(EVENTS, 0))) == max(e.wall_ns for e in EVENTS)
    assert jsonlines.observed_ns(jsonlines.read(b'{"resourceLogs": []}')) is None
