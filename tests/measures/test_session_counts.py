"""What a session that has come to rest adds to the metrics."""

from __future__ import annotations

from collections import Counter

from tests.measures.session_rows import MS, T0, span, turn
from turnscope.catalog import METRICS
from turnscope.measures.session_counts import contributions
from turnscope.measures.sessions import Session, summarise
from turnscope.semconv import SpanKind


def session() -> Session:
    """Two tasks: the first asks for a tool and answers, the second fails; between them the user is waited for."""
    found = summarise(
        "s",
        [
            turn("a", 0, 100, ttft=30, last_role="user", tool_calls=1, finish_reason="tool_calls"),
            turn("b", 300, 400, ttft=20, last_role="tool"),
            turn("c", 1000, 1100, last_role="user", status="error"),
        ],
        [span("t", SpanKind.TOOL, 100, 300)],
    )
    assert found is not None
    return found


def added(session: Session, since_ns: int = 0) -> dict[tuple[str, ...], float]:
    out: Counter[tuple[str, ...]] = Counter()
    for one in contributions(session, since_ns):
        assert METRICS[one.metric].refusal(one.labels, one.value) is None
        out[one.metric.removeprefix("turnscope_"), *one.labels] += one.value
    return {key: round(value, 9) for key, value in out.items()}


def test_a_session_adds_its_parts_and_its_tasks() -> None:
    assert added(session()) == {
        ("sessions_total",): 1,
        ("session_seconds_total", "input_processing", "measured"): 0.15,
        ("session_seconds_total", "generation", "measured"): 0.15,
        ("session_seconds_total", "tool_wait", "measured"): 0.2,
        ("session_seconds_total", "user_wait", "inferred"): 0.6,
        ("tasks_total", "completed"): 1,
        ("tasks_total", "failed"): 1,
        ("task_first_token_seconds",): 0.03,
        ("task_latency_seconds",): 0.4,
    }


def test_of_one_that_was_counted_before_only_what_came_since_is_added() -> None:
    assert added(session(), T0 + 400 * MS) == {
        ("session_seconds_total", "user_wait", "inferred"): 0.6,
        ("session_seconds_total", "input_processing", "measured"): 0.1,
        ("tasks_total", "failed"): 1,
    }
    assert added(session(), T0 + 1100 * MS) == {}


def test_what_is_added_at_several_times_sums_to_what_would_be_at_once() -> None:
    whole = added(session())
    seconds = [key for key in whole if key[0] == "session_seconds_total"]
    for cut in range(0, 1101, 50):
        first = Session(session().summary, session().segments)
        first.summary.ended_ns = T0 + cut * MS
        for key in seconds:
            earlier = added(first).get(key, 0)
            assert round(earlier + added(session(), T0 + cut * MS).get(key, 0), 9) == whole[key], (cut, key)
