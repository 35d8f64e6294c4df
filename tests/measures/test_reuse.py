"""What a session's prompts were made of, worked out by hand."""

from __future__ import annotations

import pytest

from tests.store.rows import turn
from turnscope.measures.reuse import main_reason, reuse
from turnscope.model import SessionSummary


def test_tokens_are_added_up_and_what_nobody_measured_stays_absent() -> None:
    found = reuse(
        [
            turn(1, prompt_tokens=100, local_hit_tokens=30, fetched_tokens=20, external_tokens=0, computed_tokens=50),
            turn(2, prompt_tokens=1000),
            turn(3, prompt_tokens=1000, local_hit_tokens=500, computed_tokens=500, status="error"),
        ]
    )
    assert (found["reused_tokens"], found["source_tokens"], found["prompt_tokens"]) == (50, 100, 2100)
    assert (found["computed_tokens"], found["recomputed_tokens"], found["fetched_bytes"]) == (550, None, None)
    assert found["failed_turns"] == 1


def test_what_occurs_among_turns_is_named_once_in_order() -> None:
    found = reuse(
        [
            turn(
                1, prefill_engine="p1", decode_engine="d", path="recompute", reason="first_turn", suspicions=["b", "a"]
            ),
            turn(2, prefill_engine="p0", decode_engine="d", path="mixed", reason="none", suspicions=["a"]),
        ]
    )
    assert found["engines"] == ["d", "p0", "p1"]
    assert (found["paths"], found["reasons"]) == (["mixed", "recompute"], ["first_turn", "none"])
    assert found["suspicions"] == ["a", "b"]


@pytest.mark.parametrize(
    ("reasons", "main"),
    [
        (["first_turn", "none", "local_hit_covers", "below_threshold"], None),
        (["first_turn", "unknown", "unknown"], "unknown"),
        (["unknown", "unknown", "stuck"], "stuck"),
        (["stuck", "declined_expired", "declined_expired"], "declined_expired"),
        (["stuck", "declined_expired"], "stuck"),
        ([], None),
    ],
)
def test_the_most_frequent_obstacle_is_the_main_one_and_the_earlier_of_equals(
    reasons: list[str], main: str | None
) -> None:
    turns = [turn(n, reason=reason) for n, reason in enumerate(reasons, 1)]
    assert main_reason(turns) == main_reason(turns[::-1]) == main


def test_every_figure_is_a_field_of_a_summary() -> None:
    assert set(reuse([])) <= set(SessionSummary.__struct_fields__)
