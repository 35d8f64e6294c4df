"""What figures say should be done next: every word of it earned by data."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnscope.measures.verdict import RULES, Kind, Reuse, Verdict, judge, largest, reuse, separated
from turnscope.model import Figures
from turnscope.semconv import Part

S = 1_000_000_000


def figures(**changes: Any) -> Figures:
    """Ten sessions, forty turns: the agent worked for 100 s, 60 of them writing; reuse was judged and gives nothing."""
    values: dict[str, Any] = {
        "sessions": 10,
        "turns": 40,
        "wall_ns": 200 * S,
        "user_wait_ns": 100 * S,
        "generation_ns": 60 * S,
        "input_processing_ns": 40 * S,
        "input_prefill_ns": 30 * S,
        "judged_turns": 40,
        "free_ns": 0,
        "fetched_ns": 0,
        "fetched_low_ns": 0,
        "fetched_high_ns": 0,
    }
    return Figures(**{**values, **changes})


def said(**changes: Any) -> list[Verdict]:
    return [rule.verdict for rule in judge(figures(**changes))]


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, Verdict.WRITING_ANSWERS),
        ({"sessions": 0}, Verdict.NOTHING_SEEN),
        ({"user_wait_ns": 200 * S}, Verdict.NOTHING_TIMED),
        ({"suspicious_turns": 1}, Verdict.ANSWERS_IN_DOUBT),
        ({"failed_turns": 1, "fetched_low_ns": 3 * S, "fetched_high_ns": 9 * S}, Verdict.NOT_ANSWERED),
        ({"failed_tasks": 1}, Verdict.TASKS_FAILED),
        ({"unknown_ns": 50 * S}, Verdict.MOSTLY_UNKNOWN),
        ({"unknown_ns": 49 * S, "generation_ns": 11 * S}, Verdict.LARGEST_UNKNOWN),
        ({"fetched_low_ns": 3 * S, "fetched_high_ns": 9 * S}, Verdict.REUSE_WOULD_HELP),
        ({"tool_wait_ns": 70 * S}, Verdict.TOOLS),
        (
            {"tool_wait_ns": 70 * S, "tool_wait_inferred_ns": 70 * S},
            Verdict.OUTSIDE_THE_MODEL,
        ),
        ({"application_work_ns": 70 * S}, Verdict.APPLICATION),
        ({"input_processing_ns": 70 * S}, Verdict.READING_PROMPTS),
        ({"input_processing_ns": 70 * S, "input_queue_ns": 31 * S}, Verdict.WAITING_FOR_ENGINES),
    ],
)
def test_the_most_urgent_comes_first(changes: dict[str, Any], verdict: Verdict) -> None:
    assert judge(figures(**changes))[0].verdict is verdict


def test_a_doubtful_answer_does_not_hide_where_the_time_goes() -> None:
    assert said(suspicious_turns=1, failed_turns=40, fetched_low_ns=50 * S, fetched_high_ns=60 * S) == [
        Verdict.ANSWERS_IN_DOUBT,
        Verdict.NOT_ANSWERED,
        Verdict.REUSE_WOULD_HELP,
        Verdict.WRITING_ANSWERS,
    ]


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ({}, Reuse.WOULD_NOT),
        ({"judged_turns": 0}, Reuse.UNKNOWN),
        ({"fetched_ns": None}, Reuse.UNKNOWN),
        ({"fetched_low_ns": 3 * S, "fetched_high_ns": 9 * S}, Reuse.WOULD),
        ({"fetched_low_ns": 2 * S, "fetched_high_ns": 9 * S}, Reuse.MIGHT),
        ({"fetched_low_ns": 2 * S, "fetched_high_ns": 2 * S}, Reuse.WOULD_NOT),
        ({"judged_turns": 20, "unjudged_turns": 20}, Reuse.UNKNOWN),
        ({"judged_turns": 20, "unjudged_turns": 20, "fetched_low_ns": 3 * S, "fetched_high_ns": 3 * S}, Reuse.WOULD),
    ],
)
def test_reuse_is_judged_by_its_interval_and_by_how_many_turns_told(changes: dict[str, Any], answer: Reuse) -> None:
    assert reuse(figures(**changes)) is answer


def test_waits_for_people_are_nobodys_work() -> None:
    assert largest(figures(user_wait_ns=190 * S, wall_ns=290 * S)) is Part.GENERATION


def test_tool_wait_is_separated_when_spans_tell_most_of_it() -> None:
    assert separated(figures(tool_wait_ns=10 * S, tool_wait_inferred_ns=4 * S))
    assert not separated(figures(tool_wait_ns=10 * S, tool_wait_inferred_ns=5 * S))


_COUNT = st.integers(0, 10**12)


@given(st.builds(Figures, **dict.fromkeys(Figures.__struct_fields__[:20], _COUNT)))
def test_something_is_always_said_and_of_where_the_time_goes_once_at_most(made: Figures) -> None:
    found = judge(made)
    assert found
    assert sum(rule.kind is Kind.WHERE for rule in found) <= 1
    assert found == [rule for rule in RULES if rule in found]


def test_every_verdict_has_one_rule() -> None:
    assert sorted(rule.verdict for rule in RULES) == sorted(Verdict)
