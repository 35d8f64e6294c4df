"""Sessions of a scripted agent, whose truth is known: what is told of them is that, or bounded as it is said to be."""

from __future__ import annotations

import pytest

from tests.measures.scripted import scripted
from tests.measures.session_rows import MS
from turnscope.measures.partition import sums
from turnscope.measures.sessions import summarise
from turnscope.semconv import Evidence, Part

SEEDS = range(20)
CLIENT_NS = 10 * MS
"""What a call takes outside the proxy, at most."""


@pytest.mark.parametrize("seed", SEEDS)
def test_with_full_instrumentation_each_part_is_within_20_ms_or_2_percent(seed: int) -> None:
    told = scripted(seed)
    session = summarise("s", told.turns, told.spans)
    assert session is not None
    found = sums(session.segments)
    for part in Part:
        assert found[part] == pytest.approx(told.truth[part], rel=0.02, abs=20 * MS), part
    assert session.summary.wall_ns == pytest.approx(told.truth.total(), abs=20 * MS)


@pytest.mark.parametrize("seed", SEEDS)
def test_with_the_proxy_alone_model_time_is_exact_and_waits_are_upper_bounds_with_the_work_in_them(seed: int) -> None:
    told = scripted(seed)
    session = summarise("s", told.turns, [])
    assert session is not None
    found = sums(session.segments)
    calls = len(told.turns)
    retries = sum(turn.status == "error" for turn in told.turns)
    # The client's own time around a call, and its pause before a retry, are outside what the proxy sees.
    outside = calls * CLIENT_NS + retries * 410 * MS
    assert 0 <= told.truth[Part.INPUT_PROCESSING] - found[Part.INPUT_PROCESSING] <= outside
    assert 0 <= told.truth[Part.GENERATION] - found[Part.GENERATION] <= outside
    work = told.truth[Part.APPLICATION_WORK]
    assert told.truth[Part.TOOL_WAIT] <= found[Part.TOOL_WAIT] <= told.truth[Part.TOOL_WAIT] + work + outside
    assert told.truth[Part.USER_WAIT] <= found[Part.USER_WAIT] <= told.truth[Part.USER_WAIT] + work + outside
    assert found[Part.TOOL_WAIT] == pytest.approx(told.bounds[Part.TOOL_WAIT], abs=outside)
    assert found[Part.UNKNOWN] == 0
    inferred = {s.part for s in session.segments if s.evidence is Evidence.INFERRED}
    assert inferred <= {Part.TOOL_WAIT, Part.USER_WAIT, Part.APPLICATION_WORK}


@pytest.mark.parametrize("seed", SEEDS)
def test_with_neither_spans_nor_the_proxys_word_only_the_model_calls_are_told(seed: int) -> None:
    told = scripted(seed)
    for turn in told.turns:
        turn.last_role, turn.tool_calls, turn.finish_reason = None, None, None
    session = summarise("s", told.turns, [])
    assert session is not None
    found = sums(session.segments)
    assert found[Part.TOOL_WAIT] == found[Part.USER_WAIT] == 0
    assert found[Part.UNKNOWN] > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_both_tasks_are_found_with_their_latencies(seed: int) -> None:
    told = scripted(seed)
    session = summarise("s", told.turns, told.spans)
    assert session is not None
    one, two = session.summary.tasks
    assert (one.outcome, two.outcome) == ("completed", "completed")
    pause = told.truth[Part.USER_WAIT]
    assert one.latency_ns is not None
    assert two.latency_ns is not None
    assert one.latency_ns + two.latency_ns == pytest.approx(told.truth.total() - pause, abs=20 * MS)
    for task in (one, two):
        assert task.first_token_ns is not None
        assert task.latency_ns is not None
        assert task.first_token_ns < task.latency_ns
        assert (task.turns, task.tools, task.errors) == (8, 6, 1)
        assert sum(getattr(task, f"{part}_ns") for part in Part) == (task.ended_ns or 0) - task.started_ns
