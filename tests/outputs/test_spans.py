"""A turn as a trace."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from turnscope import semconv
from turnscope.model import Turn, TurnAttempt
from turnscope.outputs import spans

TURN_ID = semconv.turn_key("p", "p2").hex()
PREVIOUS_ID = semconv.turn_key("p", "p1").hex()
HOLD_ID = semconv.hold_key("d", "d1").hex()
MS = 1_000_000
START = 1_700_000_000_000 * MS


def turn(**changes: Any) -> Turn:
    fields: dict[str, Any] = {
        "turn_id": TURN_ID,
        "session_id": "s",
        "previous_turn_id": PREVIOUS_ID,
        "started_ns": START,
        "ended_ns": START + 900 * MS,
        "model": "toy",
        "path": "reverse_fetch",
        "reason": "none",
        "finish_reason": "stop",
        "prompt_tokens": 1250,
        "local_hit_tokens": 0,
        "fetched_tokens": 1199,
        "external_tokens": 0,
        "computed_tokens": 51,
        "output_tokens": 200,
        "prefill_started_ns": START,
        "prefill_ns": 400 * MS,
        "prefill_queue_ns": 10 * MS,
        "fetch_started_ns": START + 50 * MS,
        "fetch_ns": 40 * MS,
        "fetched_bytes": 157_286_400,
        "handoff_started_ns": START + 430 * MS,
        "handoff_ns": 20 * MS,
        "decode_started_ns": START + 415 * MS,
        "decode_ns": 485 * MS,
        "ttft_ns": 600 * MS,
        "used_hold_id": HOLD_ID,
        "caller_trace_id": "aa" * 16,
        "caller_span_id": "bb" * 8,
        "server_trace_id": "aa" * 16,
        "server_span_id": "cc" * 8,
    }
    return Turn(**{**fields, **changes})


def trace(**changes: Any) -> dict[str, Span]:
    """The spans by name."""
    (block,) = spans.encode([turn(**changes)], version="1").resource_spans
    (scope,) = block.scope_spans
    return {span.name: span for span in scope.spans}


def attributes(span: Span) -> dict[str, Any]:
    found = {}
    for item in span.attributes:
        kind = item.value.WhichOneof("value")
        value = getattr(item.value, kind)
        found[item.key] = [v.string_value for v in value.values] if kind == "array_value" else value
    return found


def test_legs_and_transfers_are_siblings_under_one_root() -> None:
    found = trace()
    root = found.pop("turn")
    assert list(found) == ["prefill", "reverse_fetch", "handoff", "decode"]
    assert not root.parent_span_id
    assert {s.parent_span_id for s in found.values()} == {root.span_id}
    assert {s.trace_id for s in (root, *found.values())} == {bytes.fromhex(TURN_ID)}
    assert {s.kind for s in (root, *found.values())} == {Span.SPAN_KIND_INTERNAL}


def test_what_only_a_row_of_the_store_can_be_is_no_attribute() -> None:
    keys = attributes(trace(withdrawn=True, part_of=PREVIOUS_ID)["turn"]).keys()
    assert not {key for key in keys if key.endswith((".withdrawn", ".part_of"))}


def test_span_ids_can_be_derived_by_others() -> None:
    assert trace()["turn"].span_id == semconv.span_key(bytes.fromhex(TURN_ID))
    assert {n: s.span_id for n, s in trace().items()} == {n: s.span_id for n, s in trace(status="error").items()}
    assert len({s.span_id for s in trace().values()}) == 5


def test_times_are_those_measured() -> None:
    times = {n: (s.start_time_unix_nano - START, s.end_time_unix_nano - START) for n, s in trace().items()}
    assert {n: (a // MS, b // MS) for n, (a, b) in times.items()} == {
        "turn": (0, 900),
        "prefill": (0, 400),
        "reverse_fetch": (50, 90),
        "handoff": (430, 450),
        "decode": (415, 900),
    }


@pytest.mark.parametrize("field", ["fetch_ns", "fetch_started_ns"])
def test_what_was_not_measured_has_no_span(field: str) -> None:
    assert list(trace(**{field: None})) == ["turn", "prefill", "handoff", "decode"]


def test_a_time_before_1970_was_not_measured_and_costs_no_other_span() -> None:
    found = trace(started_ns=-MS, ended_ns=None, handoff_started_ns=-20 * MS)
    assert list(found) == ["turn", "prefill", "reverse_fetch", "decode"]
    assert (found["turn"].start_time_unix_nano, found["turn"].end_time_unix_nano) == (0, START + 900 * MS)


def test_a_duration_of_zero_was_measured() -> None:
    assert "handoff" in trace(handoff_ns=0)


def test_a_turn_whose_end_was_not_seen_ends_with_its_last_part() -> None:
    root = trace(ended_ns=None)["turn"]
    assert root.end_time_unix_nano == START + 900 * MS
    assert "turnscope.turn.end_measured" not in attributes(root)


def test_a_turn_without_any_end_says_so() -> None:
    root = trace(ended_ns=None, prefill_ns=None, fetch_ns=None, handoff_ns=None, decode_ns=None)["turn"]
    assert root.end_time_unix_nano == START
    assert attributes(root)["turnscope.turn.end_measured"] is False


def test_conventions_are_used_where_there_are_any() -> None:
    found = attributes(trace()["turn"])
    assert {k: v for k, v in found.items() if k.startswith("gen_ai.")} == {
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": "s",
        "gen_ai.request.model": "toy",
        "gen_ai.usage.input_tokens": 1250,
        "gen_ai.usage.output_tokens": 200,
        "gen_ai.usage.cache_read.input_tokens": 1199,
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.response.time_to_first_chunk": 0.6,
    }
    assert found["turnscope.turn.path"] == "reverse_fetch"
    assert found["turnscope.turn.computed_tokens"] == 51
    assert attributes(trace()["prefill"])["turnscope.prefill.queue_seconds"] == 0.01


def test_what_a_turn_computed_twice_and_what_is_suspect_stand_where_it_happened() -> None:
    spans = trace(recomputed_tokens=11, new_tokens=40, local_miss="evicted", suspect_tokens=7, diverged_after=1192)
    turn, prefill, fetch = (attributes(spans[name]) for name in ("turn", "prefill", "reverse_fetch"))
    for field, value, part in (
        ("recomputed_tokens", 11, prefill),
        ("new_tokens", 40, prefill),
        ("local_miss", "evicted", prefill),
        ("suspect_tokens", 7, fetch),
    ):
        assert part[f"turnscope.turn.{field}"] == turn[f"turnscope.turn.{field}"] == value
    assert turn["turnscope.turn.diverged_after"] == 1192
    assert "turnscope.turn.diverged_before" not in turn


def test_what_is_unknown_is_absent() -> None:
    found = attributes(trace(fetched_tokens=None, ttft_ns=None, session_id=None)["turn"])
    assert "turnscope.turn.fetched_tokens" not in found
    assert "gen_ai.usage.cache_read.input_tokens" not in found
    assert "gen_ai.response.time_to_first_chunk" not in found
    assert "gen_ai.conversation.id" not in found


def test_it_links_to_proxy_caller_previous_turn_and_hold() -> None:
    previous, hold = bytes.fromhex(PREVIOUS_ID), bytes.fromhex(HOLD_ID)
    links = {n.attributes[0].value.string_value: (n.trace_id, n.span_id) for n in trace()["turn"].links}
    assert links == {
        "proxy": (b"\xaa" * 16, b"\xcc" * 8),
        "caller": (b"\xaa" * 16, b"\xbb" * 8),
        "previous_turn": (previous, semconv.span_key(previous)),
        "hold": (hold, semconv.span_key(hold, "hold")),
    }


def test_ids_from_outside_that_are_no_ids_make_no_link() -> None:
    found = trace(caller_trace_id="zz", server_span_id="ab", used_hold_id="", previous_turn_id=None)
    assert list(found["turn"].links) == []


def test_a_failed_turn_and_the_leg_that_failed_are_errors() -> None:
    found = trace(status="error", stage="decode", reason="transfer_failed")
    assert found["turn"].status.code == Status.STATUS_CODE_ERROR
    assert found["turn"].status.message == "failed at decode"
    assert found["decode"].status.code == Status.STATUS_CODE_ERROR
    assert found["prefill"].status.code == Status.STATUS_CODE_UNSET


def test_a_stuck_turn_is_an_error_with_its_stage() -> None:
    root = trace(status="stuck", stage="handoff", stuck_cause="unknown")["turn"]
    assert (root.status.code, root.status.message) == (Status.STATUS_CODE_ERROR, "stuck at handoff")
    assert attributes(root)["turnscope.turn.stuck_cause"] == "unknown"


def test_each_attempt_of_several_is_a_span_and_the_attempt_that_failed_an_error() -> None:
    first = TurnAttempt(
        number=1,
        final=False,
        turn_id="ab" * 16,
        path="reverse_fetch",
        status="error",
        stage="prefill",
        started_ns=START,
        duration_ns=300 * MS,
        moved_bytes=157_286_400,
    )
    second = TurnAttempt(
        number=2,
        final=True,
        turn_id=TURN_ID,
        path="recompute",
        status="ok",
        started_ns=START + 400 * MS,
        duration_ns=MS,
    )
    unmeasured = msgspec.structs.replace(second, number=3, duration_ns=None)
    encoded = spans.encode([turn(attempts=2, attempts_made=[first, second, unmeasured])], version="1")
    found = [s for s in encoded.resource_spans[0].scope_spans[0].spans if s.name == "attempt"]
    root = encoded.resource_spans[0].scope_spans[0].spans[0]
    assert len({s.span_id for s in found}) == len(found) == 2
    assert {s.parent_span_id for s in found} == {root.span_id}
    assert [s.status.code for s in found] == [Status.STATUS_CODE_ERROR, Status.STATUS_CODE_UNSET]
    one, two = map(attributes, found)
    assert (one["turnscope.attempt.path"], one["turnscope.attempt.moved_bytes"]) == ("reverse_fetch", 157_286_400)
    assert two["turnscope.attempt.final"] is True
    assert "turnscope.turn.attempts_made" not in attributes(root)


def test_no_attribute_is_longer_than_trace_stores_take() -> None:
    found = trace(session_id="ü" * 2_000, suspicions=["x" * 100] * 50)
    for span in found.values():
        for item in span.attributes:
            assert item.value.ByteSize() <= 2_048 + 2 * 50
    assert len(attributes(found["turn"])["gen_ai.conversation.id"].encode()) == 2_048
    assert len(attributes(found["turn"])["turnscope.turn.suspicions"]) == 20


def test_durations_without_a_span_of_their_own_are_attributes_in_seconds() -> None:
    found = attributes(trace(net_gain_ns=-250 * MS, ttft_queue_ns=100 * MS, late_by_ns=-4000 * MS)["turn"])
    assert found["turnscope.turn.net_gain_seconds"] == -0.25
    assert found["turnscope.turn.ttft_queue_seconds"] == 0.1
    assert found["turnscope.turn.late_by_seconds"] == -4.0
    assert "turnscope.turn.ttft_fetch_seconds" not in found
    assert [key for key in found if key.endswith("_ns")] == []


def test_the_longest_turn_there_can_be_fits_and_says_how_many_attempts_it_left_out() -> None:
    long = "🐢" * semconv.MAX_TEXT
    attempts = [
        TurnAttempt(number=n, final=n == 999, turn_id=TURN_ID, path=long, status=long, stage=long, started_ns=START)
        for n in range(1000)
    ]
    for attempt in attempts:
        attempt.duration_ns = MS
    texts = {f.name: long for f in msgspec.structs.fields(Turn) if f.type in (str, str | None) and "id" not in f.name}
    request = spans.encode(
        [turn(**texts, session_id=long, suspicions=[long] * 10, attempts_made=attempts)], version="0"
    )
    (scope,) = request.resource_spans[0].scope_spans
    assert request.ByteSize() <= 65_536
    (root,) = [span for span in scope.spans if span.name == "turn"]
    left_out = attributes(root)["turnscope.turn.attempts_left_out"]
    assert 0 < left_out < 1000
    assert len([span for span in scope.spans if span.name == "attempt"]) == 1000 - left_out


def test_a_turn_with_a_few_attempts_leaves_none_out() -> None:
    attempt = TurnAttempt(number=1, final=True, turn_id=TURN_ID, path="mixed", status="ok")
    found = trace(attempts_made=[attempt] * 3)
    assert "turnscope.turn.attempts_left_out" not in attributes(found["turn"])
