"""What a whole live run comes to: unknown reasons, turns of nobody, and transports that cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from live.result import Result
from live.unknown import Share
from tests.live.test_verdict import SECOND, row, truth


def result(rows: list[dict[str, Any]], counted: Share, turns: int = 1, **fields: Any) -> list[str]:
    """The problems of a run with the first ``turns`` of a conversation."""
    done = [truth(number) for number in range(1, turns + 1)]
    found = Result(Path("nowhere"), truth=done, unknown={"uncached": counted}, **fields)
    found.judge(rows)
    return found.verdict.problems


def hooked(turn: int, **fields: Any) -> dict[str, Any]:
    given = {"started_ns": 11 * SECOND, **fields}
    return row(turn, has_attempt=True, has_prefill=True, has_decode=True, **given)


def test_a_run_with_nothing_wrong_has_no_problems() -> None:
    assert result([hooked(1)], Share(1, 0)) == []


def test_a_turn_of_nobody_is_a_problem() -> None:
    assert "2 turns in the store, and 1 were done" in result([hooked(1), hooked(9)], Share(1, 0))
    assert result([hooked(1), hooked(9, started_ns=SECOND)], Share(1, 0)) == [], "the engine was warmed up"


@pytest.mark.parametrize(("unknown", "right"), [(0, True), (1, True), (2, False)])
def test_less_than_one_turn_in_a_hundred_may_have_no_known_reason(unknown: int, right: bool) -> None:
    rows = [hooked(n, reason="unknown" if n <= unknown else "none") for n in range(1, 151)]
    said = f"uncached: {unknown} of 150 turns have no known reason as counted, {unknown} of 150"
    assert any(problem.startswith(said) for problem in result(rows, Share(150, unknown), turns=150)) is not right


@pytest.mark.parametrize("counted", [Share(1, 1), Share(2, 0), Share(0, 0)])
def test_the_metric_and_the_store_must_know_the_same_turns(counted: Share) -> None:
    (said,) = result([hooked(1)], counted)
    assert said.startswith(
        f"uncached: {counted.unknown} of {counted.turns} turns have no known reason as counted, 0 of 1"
    )


def test_the_loopback_is_never_efa() -> None:
    (said,) = result([hooked(1, transport="efa")], Share(1, 0))
    assert said.startswith("1 windows and turns over EFA")
    assert result([hooked(1)], Share(1, 0), over_efa=2)
