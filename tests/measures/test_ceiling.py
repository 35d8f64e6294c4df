"""The ceiling: the most that reuse could give, with its interval, and never more than the session waited for."""

from __future__ import annotations

from typing import Any

from tests.measures.session_rows import MS, span, turn
from turnscope.measures.sessions import summarise
from turnscope.model import AgentSpan, Ceiling, Turn
from turnscope.semconv import SpanKind

PRICED = {
    "recomputed_tokens": 1000,
    "reason": "no_handle_from_decode",
    "recompute_ns": 200 * MS,
    "recompute_low_ns": 150 * MS,
    "recompute_high_ns": 260 * MS,
    "refetch_ns": 50 * MS,
    "refetch_low_ns": 40 * MS,
    "refetch_high_ns": 160 * MS,
    "refetch_basis": "measured",
}


def ceiling(*turns: Turn, spans: list[AgentSpan] | None = None) -> Ceiling:
    found = summarise("s", turns, spans or [])
    assert found is not None
    return found.summary.ceiling


def priced(name: str, start: int, **more: Any) -> Turn:
    return turn(name, start, start + 1000, ttft=400, **{**PRICED, **more})


def test_fetched_instead_a_turn_is_shorter_by_what_computing_cost_less_what_fetching_would() -> None:
    found = ceiling(priced("a", 0))
    assert (found.free_ns, found.free_low_ns, found.free_high_ns) == (200 * MS, 150 * MS, 260 * MS)
    assert (found.fetched_ns, found.fetched_low_ns, found.fetched_high_ns) == (150 * MS, 0, 220 * MS)
    assert (found.judged_turns, found.unjudged_turns, found.transfer) == (1, 0, "measured")


def test_turns_are_summed_and_the_costliest_reason_is_named_first() -> None:
    found = ceiling(priced("a", 0, reason="declined_expired", recompute_ns=20 * MS), priced("b", 2000))
    assert found.free_ns == 220 * MS
    assert [(r.reason, r.turns, r.free_ns) for r in found.reasons] == [
        ("no_handle_from_decode", 1, 200 * MS),
        ("declined_expired", 1, 20 * MS),
    ]


def test_a_turn_gives_no_more_than_the_input_processing_that_was_waited_for() -> None:
    found = ceiling(priced("a", 0, recompute_ns=900 * MS, recompute_high_ns=1900 * MS))
    assert (found.free_ns, found.free_high_ns) == (400 * MS, 400 * MS)


def test_a_turn_beside_a_longer_tool_gives_nothing() -> None:
    spans = [span("a", SpanKind.AGENT, 0, 5000), span("x", SpanKind.TOOL, 0, 5000, "a")]
    call = span("c", SpanKind.MODEL_CALL, 100, 1200, "a")
    mine = priced("t", 150, caller_trace_id=call.trace_id, caller_span_id="c")
    assert ceiling(mine, spans=[*spans, call]).free_ns == 0


def test_what_was_assumed_is_labelled_so() -> None:
    assert ceiling(priced("a", 0, refetch_basis="assumed")).transfer == "assumed"
    assert ceiling(priced("a", 0, refetch_basis="assumed"), priced("b", 2000)).transfer == "both"


def test_turns_without_evidence_or_price_are_counted_and_not_judged() -> None:
    found = ceiling(turn("a", 0, 100, ttft=50), priced("b", 200, recompute_ns=None), turn("c", 2000, 2100))
    assert (found.judged_turns, found.unjudged_turns, found.free_ns, found.fetched_ns) == (0, 3, None, None)


def test_where_nothing_was_computed_twice_there_is_nothing_to_gain() -> None:
    found = ceiling(turn("a", 0, 100, ttft=50, recomputed_tokens=0))
    assert (found.free_ns, found.fetched_high_ns, found.transfer) == (0, 0, None)
